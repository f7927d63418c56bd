package reactive_runtime;

/** Throwables that can't be looked up in a map. */
public class Nasty extends RuntimeException {
  @Override public int hashCode() { throw new IllegalStateException("no hash"); }

  @Override public boolean equals(Object other) { throw new IllegalStateException("no equality"); }

  /** The same, as an answer to a request (3.9), and without a text. */
  public static class Argument extends IllegalArgumentException {
    @Override public int hashCode() { throw new IllegalStateException("no hash"); }

    @Override public boolean equals(Object other) { throw new IllegalStateException("no equality"); }
  }
}
