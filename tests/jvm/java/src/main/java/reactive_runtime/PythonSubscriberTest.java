package reactive_runtime;

import org.reactivestreams.Subscriber;
import org.reactivestreams.tck.SubscriberBlackboxVerification;
import org.reactivestreams.tck.TestEnvironment;

public class PythonSubscriberTest extends SubscriberBlackboxVerification<Object> {
  public static Maker maker;

  public PythonSubscriberTest() {
    super(new TestEnvironment(maker.setting("timeout"), maker.setting("no_signals")));
  }

  @SuppressWarnings("unchecked")
  @Override public Subscriber<Object> createSubscriber() {
    return (Subscriber<Object>) maker.make("subscriber", null);
  }

  @Override public Object createElement(int element) { return (long) element; }
}
