package reactive_runtime;

import org.reactivestreams.Subscriber;
import org.reactivestreams.tck.SubscriberBlackboxVerification;
import org.reactivestreams.tck.TestEnvironment;

public class PythonSubscriberTest extends SubscriberBlackboxVerification<Object> {
  private final Maker maker;

  public PythonSubscriberTest(Maker maker) {
    super(new TestEnvironment(maker.setting("timeout"), maker.setting("no_signals")));
    this.maker = maker;
  }

  @SuppressWarnings("unchecked")
  @Override public Subscriber<Object> createSubscriber() {
    return (Subscriber<Object>) maker.make("subscriber", null);
  }

  @Override public Object createElement(int element) { return (long) element; }
}
