package reactive_runtime;

import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.reactivestreams.Processor;
import org.reactivestreams.Publisher;
import org.reactivestreams.tck.IdentityProcessorVerification;
import org.reactivestreams.tck.TestEnvironment;

public class PythonProcessorTest extends IdentityProcessorVerification<Object> {
  private final Maker maker;
  private final ExecutorService threads = Executors.newCachedThreadPool(it -> {
    Thread thread = new Thread(it);
    thread.setDaemon(true);
    return thread;
  });

  public PythonProcessorTest(Maker maker) {
    super(new TestEnvironment(maker.setting("timeout"), maker.setting("no_signals")), maker.setting("gc"));
    this.maker = maker;
  }

  @SuppressWarnings("unchecked")
  @Override public Processor<Object, Object> createIdentityProcessor(int bufferSize) {
    return (Processor<Object, Object>) maker.make("processor", (long) bufferSize);
  }

  @SuppressWarnings("unchecked")
  @Override public Publisher<Object> createFailedPublisher() {
    return (Publisher<Object>) maker.make("failed", null);
  }

  @Override public Object createElement(int element) { return (long) element; }

  @Override public ExecutorService publisherExecutorService() { return threads; }

  @Override public long maxSupportedSubscribers() { return maker.setting("max_subscribers"); }
}
