package reactive_runtime;

import org.reactivestreams.Publisher;
import org.reactivestreams.tck.PublisherVerification;
import org.reactivestreams.tck.TestEnvironment;

public class PythonPublisherTest extends PublisherVerification<Object> {
  private final Maker maker;

  public PythonPublisherTest(Maker maker) {
    super(new TestEnvironment(maker.setting("timeout"), maker.setting("no_signals")), maker.setting("gc"));
    this.maker = maker;
  }

  @SuppressWarnings("unchecked")
  @Override public Publisher<Object> createPublisher(long elements) {
    return (Publisher<Object>) maker.make("publisher", elements);
  }

  @SuppressWarnings("unchecked")
  @Override public Publisher<Object> createFailedPublisher() {
    return (Publisher<Object>) maker.make("failed", null);
  }

  @Override public long maxElementsFromPublisher() { return maker.setting("max_elements"); }
}
