package reactive_runtime;

import java.util.ArrayList;
import java.util.List;
import org.reactivestreams.Subscriber;
import org.reactivestreams.Subscription;

/** Keeps its subscription, also after the end and a cancel. */
public class Keeper implements Subscriber<Object> {
  public final List<Object> elements = new ArrayList<>();
  private Subscription subscription;

  @Override public void onSubscribe(Subscription given) { subscription = given; }

  public void cancel() { subscription.cancel(); }

  @Override public void onNext(Object element) { elements.add(element); }

  @Override public void onError(Throwable error) { }

  @Override public void onComplete() { }
}
