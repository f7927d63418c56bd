package oracle;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import com.google.gson.JsonPrimitive;
import io.reactivex.rxjava3.core.BackpressureOverflowStrategy;
import io.reactivex.rxjava3.core.BackpressureStrategy;
import io.reactivex.rxjava3.core.Flowable;
import io.reactivex.rxjava3.core.FlowableSubscriber;
import io.reactivex.rxjava3.core.Notification;
import io.reactivex.rxjava3.core.Scheduler;
import io.reactivex.rxjava3.disposables.Disposable;
import io.reactivex.rxjava3.exceptions.CompositeException;
import io.reactivex.rxjava3.exceptions.MissingBackpressureException;
import io.reactivex.rxjava3.exceptions.QueueOverflowException;
import io.reactivex.rxjava3.plugins.RxJavaPlugins;
import io.reactivex.rxjava3.processors.PublishProcessor;
import io.reactivex.rxjava3.schedulers.TestScheduler;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.reactivestreams.Publisher;
import org.reactivestreams.Subscriber;
import org.reactivestreams.Subscription;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Hooks;
import reactor.util.retry.Retry;

/**
 * Runs chains of operators in RxJava 3 and Reactor, on virtual time. A plan is a line of JSON on the standard input; its
 * signals are a line on the standard output. `plans.py` says what a plan is, and `ours.py` runs the same one in Python.
 */
public final class Oracle {
  public static void main(String[] arguments) throws Exception {
    PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
    System.setOut(System.err); // whatever a library prints is no answer
    RxJavaPlugins.setErrorHandler(error -> {});
    Hooks.onErrorDropped(error -> {});
    Hooks.onNextDropped(element -> {});
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      out.println(new Run(JsonParser.parseString(line).getAsJsonObject()).result());
      out.flush();
    }
  }

  static final TimeUnit UNIT = TimeUnit.MICROSECONDS;

  /** What a function of a plan fails with, and a source that fails. */
  static final class Fault extends RuntimeException {
    final String kind;

    Fault(String kind) {
      super(kind, null, false, false);
      this.kind = kind;
    }
  }

  static JsonElement kindOf(Throwable error) {
    if (error instanceof Fault fault) {
      return new JsonPrimitive(fault.kind);
    }
    if (error instanceof CompositeException several) {
      List<String> kinds = new ArrayList<>();
      several.getExceptions().forEach(it -> kinds.add(kindOf(it).getAsString()));
      kinds.sort(null);
      return new JsonPrimitive("several: " + String.join(", ", kinds));
    }
    if (error instanceof NullPointerException) {
      return new JsonPrimitive("none");
    }
    if (error instanceof NoSuchElementException || error instanceof IndexOutOfBoundsException) {
      return new JsonPrimitive("missing");
    }
    if (error instanceof IllegalArgumentException && error.getMessage().contains("more than one element")) {
      return new JsonPrimitive("too many");
    }
    if (error instanceof TimeoutException) {
      return new JsonPrimitive("timeout");
    }
    if (error instanceof MissingBackpressureException || error instanceof QueueOverflowException) {
      return new JsonPrimitive("overflow");
    }
    if (reactor.core.Exceptions.isOverflow(error)) {
      return new JsonPrimitive("overflow");
    }
    return new JsonPrimitive(error.toString());
  }

  /** Any element as a number, so that every function takes what every operator makes. */
  static long num(Object element) {
    if (element instanceof Number number) {
      return number.longValue();
    }
    if (element instanceof Boolean bool) {
      return bool ? 1 : 0;
    }
    if (element instanceof List<?> list) {
      return list.stream().mapToLong(Oracle::num).sum() + list.size();
    }
    if (element instanceof Map<?, ?> map) {
      return map.entrySet().stream().mapToLong(it -> num(it.getKey()) + num(it.getValue())).sum() + map.size();
    }
    if (element instanceof Notification<?> notice) {
      return notice.isOnNext() ? num(notice.getValue()) : notice.isOnComplete() ? 7 : 9;
    }
    throw new IllegalStateException("no number: " + element);
  }

  static JsonElement json(Object element) {
    if (element instanceof Number number) {
      return new JsonPrimitive(number.longValue());
    }
    if (element instanceof Boolean bool) {
      return new JsonPrimitive(bool);
    }
    JsonArray array = new JsonArray();
    if (element instanceof Map<?, ?> map) {
      array.add("map");
      map.forEach(
          (key, value) -> {
            array.add(json(key));
            array.add(json(value));
          });
    } else if (element instanceof Notification<?> notice) {
      array.add("notice");
      array.add(notice.isOnNext() ? json(notice.getValue()) : notice.isOnComplete() ? new JsonPrimitive("complete") : kindOf(notice.getError()));
    } else {
      ((List<?>) element).forEach(it -> array.add(json(it)));
    }
    return array;
  }

  interface Fn {
    Object of(Object element);
  }

  interface Test {
    boolean of(Object element);
  }

  /** One plan, run once. */
  static final class Run {
    final JsonObject plan;
    final TestScheduler clock = new TestScheduler();
    final JsonArray signals = new JsonArray();
    final JsonArray log = new JsonArray();
    final JsonObject probes = new JsonObject();

    static boolean healed; // whether the functions of the plan that runs now never fail

    Run(JsonObject plan) {
      this.plan = plan;
      healed = plan.has("healed") && plan.get("healed").getAsBoolean();
    }

    long now() {
      return clock.now(UNIT);
    }

    JsonObject result() {
      Flowable<Object> flow = source(plan.getAsJsonArray("source"));
      for (JsonElement op : plan.getAsJsonArray("ops")) {
        flow = apply(flow, op.getAsJsonArray());
      }
      Sink sink = new Sink();
      flow.subscribe((FlowableSubscriber<Object>) sink);
      clock.triggerActions();
      for (JsonElement step : plan.getAsJsonArray("steps")) { // [time, how much is asked for, 0: cancel]
        JsonArray it = step.getAsJsonArray();
        clock.advanceTimeTo(it.get(0).getAsLong(), UNIT);
        long n = it.get(1).getAsLong();
        if (n > 0) {
          sink.subscription.request(n);
        } else {
          sink.cancel();
        }
        clock.triggerActions();
      }
      clock.advanceTimeTo(plan.get("until").getAsLong(), UNIT);
      JsonObject result = new JsonObject();
      result.add("signals", signals.deepCopy());
      result.add("log", log.deepCopy());
      result.add("probes", probes.deepCopy());
      sink.subscription.cancel();
      return result;
    }

    final class Sink implements FlowableSubscriber<Object> {
      Subscription subscription;
      boolean cancelled;
      boolean over;
      long left = plan.get("cancel_after").getAsLong();
      final long refill = plan.get("refill").getAsLong();

      @Override
      public void onSubscribe(Subscription subscription) {
        this.subscription = subscription;
        long first = plan.get("demand").getAsLong();
        if (first > 0) {
          subscription.request(first);
        }
      }

      @Override
      public void onNext(Object element) {
        signal("next", json(element));
        if (--left == 0) {
          cancel();
        } else if (refill > 0 && !cancelled) {
          subscription.request(refill);
        }
      }

      @Override
      public void onError(Throwable error) {
        over = true;
        signal("error", kindOf(error));
      }

      @Override
      public void onComplete() {
        over = true;
        signal("complete", null);
      }

      void cancel() {
        if (!over) {
          cancelled = true;
          subscription.cancel();
          signal("cancel", null);
        }
      }

      void signal(String name, JsonElement value) {
        JsonArray signal = new JsonArray();
        signal.add(now());
        signal.add(name);
        if (value != null) {
          signal.add(value);
        }
        signals.add(signal);
      }
    }

    void note(String what, Object... values) {
      JsonArray entry = new JsonArray();
      entry.add(now());
      entry.add(what);
      for (Object value : values) {
        entry.add(value instanceof JsonElement element ? element : value instanceof String text ? new JsonPrimitive(text) : json(value));
      }
      log.add(entry);
    }

    /** What a source is asked for, and when it is cancelled. */
    Flowable<Object> probed(String name, Publisher<Object> source) {
      JsonArray seen = new JsonArray();
      probes.add(name, seen);
      return Flowable.fromPublisher(
          subscriber -> {
            see(seen, "subscribe", 0);
            source.subscribe(
                new FlowableSubscriber<Object>() {
                  boolean over;

                  @Override
                  public void onSubscribe(Subscription it) {
                    subscriber.onSubscribe(
                        new Subscription() {
                          @Override
                          public void request(long n) {
                            if (!over) {
                              see(seen, "request", n);
                            }
                            it.request(n);
                          }

                          @Override
                          public void cancel() {
                            if (!over) {
                              over = true;
                              see(seen, "cancel", 0);
                            }
                            it.cancel();
                          }
                        });
                  }

                  @Override
                  public void onNext(Object element) {
                    subscriber.onNext(element);
                  }

                  @Override
                  public void onError(Throwable error) {
                    end();
                    subscriber.onError(error);
                  }

                  @Override
                  public void onComplete() {
                    end();
                    subscriber.onComplete();
                  }

                  void end() {
                    if (!over) {
                      over = true;
                      see(seen, "end", 0);
                    }
                  }
                });
          });
    }

    void see(JsonArray seen, String what, long n) {
      JsonArray entry = new JsonArray();
      entry.add(now());
      entry.add(what);
      entry.add(n);
      seen.add(entry);
    }

    // sources

    Flowable<Object> source(JsonArray it) {
      String name = it.get(0).getAsString();
      switch (name) {
        case "just":
          return Flowable.fromArray(elements(it));
        case "empty":
          return Flowable.empty();
        case "never":
          return Flowable.never();
        case "error":
          return Flowable.error(new Fault("source"));
        case "range":
          return Flowable.range(it.get(1).getAsInt(), it.get(2).getAsInt()).map(n -> (Object) n.longValue());
        case "from_iterable":
          {
            return Flowable.fromIterable(Arrays.asList(elements(it.get(1).getAsJsonArray(), 0)));
          }
        case "from_supplier": // an iterator that is asked for its end only with demand
          {
            Object[] elements = elements(it.get(1).getAsJsonArray(), 0);
            boolean fails = it.get(2).getAsBoolean();
            return Flowable.generate(
                () -> new int[1],
                (next, emitter) -> {
                  if (next[0] < elements.length) {
                    emitter.onNext(elements[next[0]++]);
                  } else if (fails) {
                    emitter.onError(new Fault("source"));
                  } else {
                    emitter.onComplete();
                  }
                });
          }
        case "from_callable":
          {
            Fn fn = fn(it.get(1).getAsJsonArray());
            long value = it.get(2).getAsLong();
            return Flowable.fromCallable(() -> fn.of(value));
          }
        case "from_publisher":
          {
            Flowable<Object> inner = source(it.get(1).getAsJsonArray());
            return Flowable.fromPublisher(inner::subscribe);
          }
        case "generate":
          {
            long count = it.get(1).getAsLong();
            return Flowable.generate(
                () -> 0L,
                (state, emitter) -> {
                  if (state < count) {
                    emitter.onNext(state * 3);
                  } else {
                    emitter.onComplete();
                  }
                  return state + 1;
                });
          }
        case "create":
          {
            Object[] elements = elements(it.get(1).getAsJsonArray(), 0);
            boolean fails = it.get(2).getAsBoolean();
            return Flowable.create(
                emitter -> {
                  for (Object element : elements) {
                    emitter.onNext(element);
                  }
                  if (fails) {
                    emitter.tryOnError(new Fault("source"));
                  } else {
                    emitter.onComplete();
                  }
                },
                BackpressureStrategy.BUFFER);
          }
        case "defer":
          return Flowable.defer(() -> source(it.get(1).getAsJsonArray()));
        case "using":
          return Flowable.using(
              () -> {
                note("open");
                return 0;
              },
              resource -> source(it.get(1).getAsJsonArray()),
              resource -> note("close"));
        case "timer": // row: no-demand-no-error
          return Flowable.timer(it.get(1).getAsLong(), UNIT, clock).map(n -> (Object) n).onBackpressureBuffer();
        case "interval":
          {
            Flowable<Object> ticks = Flowable.interval(it.get(1).getAsLong(), UNIT, clock).map(n -> (Object) n);
            return switch (it.get(2).getAsString()) {
              case "drop" -> ticks.onBackpressureDrop();
              case "latest" -> ticks.onBackpressureLatest();
              default -> ticks.onBackpressureBuffer(256);
            };
          }
        case "timed":
          return Flowable.create(emitter -> emitter.setDisposable(timeline(it, emitter::onNext, emitter::tryOnError, emitter::onComplete)), BackpressureStrategy.BUFFER);
        case "hot":
          {
            PublishProcessor<Object> processor = PublishProcessor.create();
            timeline(it, processor::onNext, processor::onError, processor::onComplete);
            return processor.onBackpressureBuffer(256, true);
          }
        case "probe":
          return probed(it.get(1).getAsString(), source(it.get(2).getAsJsonArray()));
        case "concat":
          return it.get(1).getAsBoolean() ? Flowable.concatArrayDelayError(sources(it, 2)) : Flowable.concatArray(sources(it, 2));
        case "merge":
          return it.get(1).getAsBoolean() ? Flowable.mergeArrayDelayError(sources(it, 2)) : Flowable.mergeArray(sources(it, 2));
        case "merge_comparing":
          return Flowable.fromPublisher(mergeComparing(sources(it, 1)));
        case "zip":
          return Flowable.zipArray(list -> (Object) Arrays.asList(list), false, 256, sources(it, 1));
        case "combine_latest":
          return Flowable.combineLatestArray(sources(it, 1), list -> (Object) Arrays.asList(list), 256);
        case "race":
          return Flowable.ambArray(sources(it, 1));
        default:
          throw new IllegalArgumentException("no source: " + name);
      }
    }

    @SuppressWarnings("unchecked")
    static Flux<Object> mergeComparing(Flowable<Object>[] sources) {
      Publisher<Object>[] publishers = Arrays.copyOf(sources, sources.length, Publisher[].class);
      return Flux.mergeComparing(256, Comparator.comparingLong(Oracle::num), publishers);
    }

    interface Emit {
      void emit(Object element);
    }

    interface Fail {
      void fail(Throwable error);
    }

    /** [name, [[after, element], ...], end, after]: each so long after the one before; with 0, in the same call. */
    Disposable timeline(JsonArray it, Emit emit, Fail fail, Runnable complete) {
      List<long[]> events = new ArrayList<>();
      for (JsonElement event : it.get(1).getAsJsonArray()) {
        events.add(new long[] {event.getAsJsonArray().get(0).getAsLong(), event.getAsJsonArray().get(1).getAsLong()});
      }
      String end = it.get(2).getAsString();
      long after = it.get(3).getAsLong();
      Scheduler.Worker worker = clock.createWorker();
      Runnable[] next = new Runnable[1];
      int[] place = {0};
      Runnable last =
          () -> {
            if (end.equals("complete")) {
              complete.run();
            } else if (end.equals("error")) {
              fail.fail(new Fault("source"));
            }
          };
      Runnable schedule =
          () -> {
            if (place[0] < events.size()) {
              worker.schedule(next[0], events.get(place[0])[0], UNIT);
            } else if (!end.equals("none")) {
              worker.schedule(last, after, UNIT);
            }
          };
      next[0] =
          () -> {
            do {
              emit.emit(events.get(place[0]++)[1]);
            } while (place[0] < events.size() && events.get(place[0])[0] == 0);
            schedule.run();
          };
      schedule.run();
      return worker;
    }

    Object[] elements(JsonArray it) {
      return elements(it, 1);
    }

    static Object[] elements(JsonArray it, int from) {
      Object[] elements = new Object[it.size() - from];
      for (int i = 0; i < elements.length; i++) {
        elements[i] = it.get(i + from).getAsLong();
      }
      return elements;
    }

    @SuppressWarnings("unchecked")
    Flowable<Object>[] sources(JsonArray it, int from) {
      Flowable<Object>[] sources = new Flowable[it.size() - from];
      for (int i = 0; i < sources.length; i++) {
        sources[i] = source(it.get(i + from).getAsJsonArray());
      }
      return sources;
    }

    // functions

    static Fn fn(JsonArray it) {
      String name = it.get(0).getAsString();
      long k = it.size() > 1 ? it.get(1).getAsLong() : 0;
      return switch (name) {
        case "add" -> element -> num(element) + k;
        case "mul" -> element -> Math.floorMod(num(element) * k, 1000L);
        case "mod" -> element -> Math.floorMod(num(element), k);
        case "same" -> element -> element;
        case "fail_on" -> element -> {
          if (Math.floorMod(num(element), 7L) == k) {
            throw new Fault("function");
          }
          return element;
        };
        case "none_on" -> element -> Math.floorMod(num(element), 7L) == k ? null : element;
        default -> throw new IllegalArgumentException("no function: " + name);
      };
    }

    static Test test(JsonArray it) {
      String name = it.get(0).getAsString();
      long k = it.size() > 1 ? it.get(1).getAsLong() : 0;
      return switch (name) {
        case "odd" -> element -> Math.floorMod(num(element), 2L) == 1;
        case "less" -> element -> num(element) < k;
        case "not" -> element -> num(element) != k;
        case "fail_on" -> element -> {
          if (Math.floorMod(num(element), 7L) == k) {
            throw new Fault("predicate");
          }
          return true;
        };
        default -> throw new IllegalArgumentException("no predicate: " + name);
      };
    }

    static Object add(Object total, Object element) {
      long sum = num(total) + num(element);
      if (Math.floorMod(sum, 11L) == 10 && !healed) {
        throw new Fault("function");
      }
      return sum;
    }

    /** What an element becomes: a publisher. */
    Flowable<Object> inner(JsonArray it, Object element) {
      String name = it.get(0).getAsString();
      long k = it.size() > 1 && it.get(1).isJsonPrimitive() ? it.get(1).getAsLong() : 0;
      long n = num(element);
      return switch (name) {
        case "just_twice" -> Flowable.just(n, n + 100);
        case "just" -> Flowable.just(element);
        case "empty" -> Flowable.empty();
        case "to_range" -> Flowable.rangeLong(n, Math.floorMod(n, k)).map(it2 -> (Object) it2);
        case "fail_on" -> Math.floorMod(n, 7L) == k ? Flowable.just((Object) n).concatWith(Flowable.error(new Fault("inner"))) : Flowable.just(n);
        case "raise_on" -> {
          if (Math.floorMod(n, 7L) == k) {
            throw new Fault("function");
          }
          yield Flowable.just(n);
        }
        case "later" -> Flowable.timer(k * (Math.floorMod(n, 3L) + 1), UNIT, clock).map(tick -> (Object) n).onBackpressureBuffer();
        case "now_and_later" -> Flowable.just((Object) n).concatWith(Flowable.timer(k, UNIT, clock).map(tick -> (Object) (n + 100)).onBackpressureBuffer());
        case "fail_later" -> Flowable.timer(k, UNIT, clock)
            .onBackpressureBuffer()
            .concatMap(tick -> Math.floorMod(n, 2L) == 1 ? Flowable.error(new Fault("inner")) : Flowable.just((Object) n));
        case "never" -> Flowable.never();
        case "given" -> source(it.get(1).getAsJsonArray());
        default -> throw new IllegalArgumentException("no publisher: " + name);
      };
    }

    /** For `expand`: trees that end. */
    static Flowable<Object> children(Object element) {
      long n = num(element);
      return n > 0 && n < 4 ? Flowable.just(n - 1, n - 2) : Flowable.empty();
    }

    /** What `retry_when` and `repeat_when` wait for: [how many times, after how long (0: at once), what comes then]. */
    Flowable<Object> companion(JsonArray it, long times) {
      if (times <= it.get(1).getAsLong()) {
        long after = it.get(2).getAsLong();
        return after == 0 ? Flowable.just(1L) : Flowable.timer(after, UNIT, clock).map(n -> (Object) n);
      }
      return switch (it.get(3).getAsString()) {
        case "empty" -> Flowable.empty();
        case "error" -> Flowable.error(new Fault("companion"));
        default -> Flowable.never();
      };
    }

    static Flowable<Object> flux(Publisher<?> flux) {
      return Flowable.fromPublisher(flux).map(it -> (Object) it);
    }

    /** Those that are not empty: where nothing came, RxJava and Reactor have a list without elements. */
    static Flowable<Object> lists(Flowable<?> lists) { // row: nothing-came
      return lists.filter(list -> !((List<?>) list).isEmpty()).map(list -> (Object) list);
    }

    static Object list(Object... elements) {
      return Arrays.asList(elements);
    }

    /** The flow, and after a while once more, by whatever the two share. */
    Flowable<Object> twice(Flowable<Object> shared, long after) {
      if (after == 0) {
        return shared;
      }
      Flowable<Object> late = Flowable.timer(after, UNIT, clock).onBackpressureBuffer().concatMap(tick -> shared.map(it -> list(2L, it)));
      return Flowable.merge(shared.map(it -> list(1L, it)), late);
    }

    Flowable<Object> apply(Flowable<Object> f, JsonArray it) {
      String name = it.get(0).getAsString();
      switch (name) {
        case "map":
          return f.map(fn(it.get(1).getAsJsonArray())::of);
        case "starmap":
          return f.map(x -> list(x, it.get(1).getAsLong())).map(pair -> (Object) (num(((List<?>) pair).get(0)) + num(((List<?>) pair).get(1))));
        case "map_not_none":
          {
            Fn fn = fn(it.get(1).getAsJsonArray());
            return f.mapOptional(x -> Optional.ofNullable(fn.of(x)));
          }
        case "handle":
          {
            Test test = test(it.get(1).getAsJsonArray());
            return flux(
                Flux.from(f)
                    .handle(
                        (x, sink) -> {
                          if (test.of(x)) {
                            sink.next(num(x) + 1);
                          }
                        }));
          }
        case "flat_map_iterable":
          return f.flatMapIterable(x -> several(x, it.get(1).getAsLong()));
        case "flatten":
          return f.map(x -> several(x, 3)).flatMapIterable(x -> x);
        case "enumerate":
          return flux(Flux.from(f).index((n, x) -> list(n + it.get(1).getAsLong(), x)));
        case "pairwise":
          return f.map(x -> list(x, x)).scan((before, x) -> list(((List<?>) before).get(1), ((List<?>) x).get(1))).skip(1);
        case "scan": // row: scan-initial
          return f.startWithItem(it.get(1).getAsLong()).scan(Run::add).skip(1);
        case "batch":
          return f.buffer(it.get(1).getAsInt()).map(list -> (Object) list);
        case "buffer":
          return f.buffer(it.get(1).getAsInt(), it.get(2).getAsInt()).map(list -> (Object) list);
        case "buffer_until":
          return flux(Flux.from(f).bufferUntil(test(it.get(1).getAsJsonArray())::of, it.get(2).getAsBoolean()));
        case "start_with":
          return f.startWithArray(elements(it));
        case "end_with":
          return f.concatWith(Flowable.fromArray(elements(it)));
        case "materialize":
          return f.materialize().map(notice -> (Object) notice);
        case "dematerialize":
          return f.dematerialize(
              x -> {
                long n = Math.floorMod(num(x), 5L);
                return n == 4 ? Notification.createOnComplete() : n == 3 && !healed ? Notification.createOnError(new Fault("notice")) : Notification.createOnNext(x);
              });
        case "transform":
          return f.compose(flow -> flow.map(x -> (Object) (num(x) + 1)));
        case "filter":
          return f.filter(test(it.get(1).getAsJsonArray())::of);
        case "distinct":
          return f.distinct(fn(it.get(1).getAsJsonArray())::of);
        case "distinct_until_changed":
          return f.distinctUntilChanged(fn(it.get(1).getAsJsonArray())::of);
        case "take":
          return f.take(it.get(1).getAsLong());
        case "take_while":
          return f.takeWhile(test(it.get(1).getAsJsonArray())::of);
        case "skip":
          return f.skip(it.get(1).getAsLong());
        case "skip_while":
          return f.skipWhile(test(it.get(1).getAsJsonArray())::of);
        case "first":
          return it.size() > 1 ? f.first(it.get(1).getAsLong()).toFlowable() : f.firstOrError().toFlowable();
        case "last":
          return it.size() > 1 ? f.last(it.get(1).getAsLong()).toFlowable() : f.lastOrError().toFlowable();
        case "single":
          return it.size() > 1 ? f.single(it.get(1).getAsLong()).toFlowable() : f.singleOrError().toFlowable();
        case "take_last":
          return f.takeLast(it.get(1).getAsInt());
        case "skip_last":
          return f.skipLast(it.get(1).getAsInt());
        case "sort":
          return f.sorted(Comparator.comparingLong(Oracle::num));
        case "element_at":
          return it.size() > 2 ? f.elementAt(it.get(1).getAsLong(), it.get(2).getAsLong()).toFlowable() : f.elementAtOrError(it.get(1).getAsLong()).toFlowable();
        case "default_if_empty":
          return f.defaultIfEmpty(it.get(1).getAsLong());
        case "ignore_elements":
          return f.ignoreElements().toFlowable();
        case "reduce":
          return it.size() > 1 ? f.reduce((Object) it.get(1).getAsLong(), Run::add).toFlowable() : f.reduce(Run::add).toFlowable();
        case "collect":
          return f.collect(() -> (Object) new ArrayList<Object>(), (list, x) -> collected(list, x)).toFlowable();
        case "to_list":
          return f.toList().map(list -> (Object) list).toFlowable();
        case "to_dict":
          return f.toMap(x -> (Object) Math.floorMod(num(x), 3L), x -> x, LinkedHashMap::new).map(map -> (Object) map).toFlowable();
        case "count":
          return f.count().map(n -> (Object) n).toFlowable();
        case "sum":
          return f.reduce((Object) 0L, (total, x) -> num(total) + num(x)).toFlowable();
        case "min":
          return f.reduce((best, x) -> num(x) < num(best) ? x : best).toFlowable();
        case "max":
          return f.reduce((best, x) -> num(x) > num(best) ? x : best).toFlowable();
        case "all":
          return f.all(test(it.get(1).getAsJsonArray())::of).map(b -> (Object) b).toFlowable();
        case "any":
          return f.any(test(it.get(1).getAsJsonArray())::of).map(b -> (Object) b).toFlowable();
        case "contains":
          return f.map(Oracle::num).contains(it.get(1).getAsLong()).map(b -> (Object) b).toFlowable();
        case "concat_with":
          return f.concatWith(source(it.get(1).getAsJsonArray()));
        case "merge_with":
          return f.map(x -> list(1L, x)).cast(Object.class).mergeWith(source(it.get(1).getAsJsonArray()).map(x -> list(2L, x)));
        case "zip_with":
          return f.zipWith(source(it.get(1).getAsJsonArray()), (a, b) -> list(a, b));
        case "with_latest_from":
          return f.withLatestFrom(source(it.get(1).getAsJsonArray()), (a, b) -> list(a, b));
        case "switch_if_empty":
          return f.switchIfEmpty(source(it.get(1).getAsJsonArray()));
        case "take_until":
          return f.takeUntil(source(it.get(1).getAsJsonArray()));
        case "skip_until": // row: skip-until-empty
          return f.skipUntil(source(it.get(1).getAsJsonArray()).concatWith(Flowable.never()));
        case "flat_map":
          return f.flatMap(x -> inner(it.get(1).getAsJsonArray(), x), it.get(3).getAsBoolean(), it.get(2).getAsInt(), 32);
        case "flat_map_sequential":
          return it.get(3).getAsBoolean()
              ? f.concatMapEagerDelayError(x -> inner(it.get(1).getAsJsonArray(), x), true, it.get(2).getAsInt(), 32)
              : f.concatMapEager(x -> inner(it.get(1).getAsJsonArray(), x), it.get(2).getAsInt(), 32);
        case "concat_map":
          return it.get(2).getAsBoolean()
              ? f.concatMapDelayError(x -> inner(it.get(1).getAsJsonArray(), x), true, 2)
              : f.concatMap(x -> inner(it.get(1).getAsJsonArray(), x));
        case "switch_map":
          return f.switchMap(x -> inner(it.get(1).getAsJsonArray(), x));
        case "expand": // row: expand-depth
          return flux(Flux.from(f).expandDeep(Run::children));
        case "group_by":
          return f.groupBy(x -> Math.floorMod(num(x), it.get(1).getAsLong())).flatMap(group -> group.map(x -> list(group.getKey(), x)));
        case "window": // row: window-abandoned
          return flux(Flux.from(f).window(it.get(1).getAsInt()).concatMap(window -> window.collectList()));
        case "window_until":
          return lists(flux(Flux.from(f).windowUntil(test(it.get(1).getAsJsonArray())::of, it.get(2).getAsBoolean()).concatMap(window -> window.collectList())));
        case "window_when":
          return lists(f.window(source(it.get(1).getAsJsonArray())).flatMapSingle(window -> window.toList()));
        case "window_time":
          {
            Flowable<Flowable<Object>> windows =
                it.get(2).getAsLong() == 0
                    ? f.window(it.get(1).getAsLong(), UNIT, clock)
                    : f.window(it.get(1).getAsLong(), it.get(2).getAsLong(), UNIT, clock);
            return lists(windows.flatMapSingle(window -> window.toList()));
          }
        case "buffer_when":
          return lists(f.buffer(source(it.get(1).getAsJsonArray())));
        case "buffer_time":
          return lists(
                  it.get(2).getAsLong() == 0
                      ? f.buffer(it.get(1).getAsLong(), UNIT, clock)
                      : f.buffer(it.get(1).getAsLong(), it.get(2).getAsLong(), UNIT, clock))
              .onBackpressureBuffer();
        case "window_timeout": // row: window-timeout-begins
        case "buffer_timeout":
          return flux(Flux.from(f).bufferTimeout(it.get(1).getAsInt(), Duration.ofNanos(it.get(2).getAsLong() * 1000), new OnClock(clock), true));
        case "debounce":
          return f.debounce(it.get(1).getAsLong(), UNIT, clock).onBackpressureLatest();
        case "delay": // row: delay-asks-ahead
          return f.delay(it.get(1).getAsLong(), UNIT, clock).onBackpressureBuffer();
        case "delay_subscription":
          return f.delaySubscription(it.get(1).getAsLong(), UNIT, clock);
        case "timestamp":
          return f.timestamp(UNIT, clock).map(timed -> list(timed.time(), timed.value()));
        case "elapsed":
          return f.timeInterval(UNIT, clock).map(timed -> list(timed.time(), timed.value()));
        case "sample":
          return (it.get(1).isJsonArray()
                  ? f.sample(source(it.get(1).getAsJsonArray()), true)
                  : f.sample(it.get(1).getAsLong(), UNIT, clock, true))
              .onBackpressureLatest();
        case "throttle":
          return f.throttleFirst(it.get(1).getAsLong(), UNIT, clock);
        case "timeout":
          return it.size() > 2 ? f.timeout(it.get(1).getAsLong(), UNIT, clock, source(it.get(2).getAsJsonArray())) : f.timeout(it.get(1).getAsLong(), UNIT, clock);
        case "publish_on":
          return f.observeOn(clock, false, it.get(1).getAsInt());
        case "subscribe_on":
          return f.subscribeOn(clock);
        case "limit_rate":
          return f.rebatchRequests(it.get(1).getAsInt());
        case "on_overflow_buffer":
          return switch (it.get(2).getAsString()) {
            case "error" -> f.onBackpressureBuffer(it.get(1).getAsInt(), () -> {}, BackpressureOverflowStrategy.ERROR);
            case "oldest" -> f.onBackpressureBuffer(it.get(1).getAsInt(), () -> {}, BackpressureOverflowStrategy.DROP_OLDEST);
            default -> f.onBackpressureBuffer(it.get(1).getAsInt(), () -> {}, BackpressureOverflowStrategy.DROP_LATEST);
          };
        case "on_overflow_drop":
          return f.onBackpressureDrop();
        case "on_overflow_latest":
          return f.onBackpressureLatest();
        case "serialize":
          return f.serialize();
        case "parallel":
          return f.parallel(it.get(1).getAsInt(), 32).runOn(clock, 32).map(x -> (Object) (num(x) + 1)).sequential(32);
        case "share":
          return twice(f.share(), it.get(1).getAsLong());
        case "publish":
          return twice(f.publish().refCount(), it.get(1).getAsLong());
        case "replay":
          if (it.get(1).getAsLong() == 0) {
            return f.replay(it.get(2).getAsInt()).refCount();
          }
          // row: replay-after-end; refCount would begin anew
          return twice(f.replay(it.get(2).getAsInt()).autoConnect(), it.get(1).getAsLong());
        case "cache":
          return twice(f.cache(), it.get(1).getAsLong());
        case "on_error_resume":
          return f.onErrorResumeNext(error -> source(it.get(1).getAsJsonArray()));
        case "on_error_return":
          return f.onErrorReturn(error -> kindOf(error).getAsString().equals("function") ? -1L : -2L);
        case "on_error_complete":
          return f.onErrorComplete();
        case "map_error":
          return f.onErrorResumeNext(error -> Flowable.error(new Fault("mapped " + kindOf(error).getAsString())));
        case "retry":
          return f.retry(it.get(1).getAsLong());
        case "retry_when":
          return Flowable.defer(
              () -> {
                long[] attempt = {0};
                return f.retryWhen(
                    errors -> errors.concatMap(error -> companion(it, ++attempt[0]).take(1).switchIfEmpty(Flowable.error(error))));
              });
        case "retry_backoff":
          return flux(
              Flux.from(f)
                  .retryWhen(
                      Retry.backoff(it.get(1).getAsLong(), Duration.ofNanos(it.get(2).getAsLong() * 1000))
                          .jitter(0)
                          .scheduler(new OnClock(clock))
                          .onRetryExhaustedThrow((spec, signal) -> signal.failure())));
        case "repeat":
          return f.repeat(it.get(1).getAsLong());
        case "repeat_when":
          return Flowable.defer(
              () -> {
                long[] times = {0};
                Object over = new Object();
                return f.repeatWhen(
                    ends -> ends.concatMap(end -> companion(it, ++times[0]).take(1).defaultIfEmpty(over)).takeWhile(news -> news != over));
              });
        case "finalize":
          return f.doFinally(() -> note("finalize"));
        case "do_finally":
          return flux(Flux.from(f).doFinally(way -> note("finally", way.name().replace("ON_", "").toLowerCase())));
        case "do_on_subscribe":
          return f.doOnSubscribe(subscription -> note("subscribe"));
        case "do_on_request":
          return f.doOnRequest(n -> note("request", n));
        case "do_on_next":
          return f.doOnNext(x -> note("next", x));
        case "do_on_error":
          return f.doOnError(error -> note("error", kindOf(error)));
        case "do_on_complete":
          return f.doOnComplete(() -> note("complete"));
        case "do_on_cancel":
          return Flowable.defer( // row: cancel-after-end
              () -> {
                boolean[] over = {false};
                return f.doOnTerminate(() -> over[0] = true)
                    .doOnCancel(
                        () -> {
                          if (!over[0]) {
                            note("cancel");
                          }
                        });
              });
        case "tap":
          return f.doOnEach(
              notice -> {
                if (notice.isOnNext()) {
                  note("tap", notice.getValue());
                } else if (notice.isOnError()) {
                  note("tap error", kindOf(notice.getError()));
                } else {
                  note("tap complete");
                }
              });
        default:
          throw new IllegalArgumentException("no operator: " + name);
      }
    }

    @SuppressWarnings("unchecked")
    static void collected(Object list, Object element) {
      if (Math.floorMod(num(element), 13L) == 12 && !healed) {
        throw new Fault("function");
      }
      ((List<Object>) list).add(element);
    }

    /** 0 to k-1 times the element, and more; the iterable of some of them fails. */
    static List<Object> several(Object element, long k) {
      long n = num(element);
      if (Math.floorMod(n, 7L) == 6 && !healed) {
        throw new Fault("function");
      }
      List<Object> list = new ArrayList<>();
      for (long i = 0; i < Math.floorMod(n, k); i++) {
        list.add(n + 100 * i);
      }
      return list;
    }
  }

  /** RxJava's virtual time, for Reactor. */
  static final class OnClock implements reactor.core.scheduler.Scheduler {
    final Scheduler scheduler;

    OnClock(Scheduler scheduler) {
      this.scheduler = scheduler;
    }

    @Override
    public long now(TimeUnit unit) {
      return scheduler.now(unit);
    }

    @Override
    public reactor.core.Disposable schedule(Runnable task) {
      return disposable(scheduler.scheduleDirect(task));
    }

    @Override
    public reactor.core.Disposable schedule(Runnable task, long delay, TimeUnit unit) {
      return disposable(scheduler.scheduleDirect(task, delay, unit));
    }

    @Override
    public Worker createWorker() {
      Scheduler.Worker worker = scheduler.createWorker();
      return new Worker() {
        @Override
        public reactor.core.Disposable schedule(Runnable task) {
          return disposable(worker.schedule(task));
        }

        @Override
        public reactor.core.Disposable schedule(Runnable task, long delay, TimeUnit unit) {
          return disposable(worker.schedule(task, delay, unit));
        }

        @Override
        public void dispose() {
          worker.dispose();
        }

        @Override
        public boolean isDisposed() {
          return worker.isDisposed();
        }
      };
    }

    static reactor.core.Disposable disposable(Disposable it) {
      return new reactor.core.Disposable() {
        @Override
        public void dispose() {
          it.dispose();
        }

        @Override
        public boolean isDisposed() {
          return it.isDisposed();
        }
      };
    }
  }
}
