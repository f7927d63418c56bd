package reactive_runtime;

/** What Python implements: makes the things under test. */
public interface Maker {
  Object make(String what, Object argument);

  long setting(String name);
}
