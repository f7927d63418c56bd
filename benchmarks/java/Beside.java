import io.reactivex.rxjava3.core.Flowable;
import io.reactivex.rxjava3.core.Scheduler;
import io.reactivex.rxjava3.schedulers.Schedulers;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadFactory;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * The six programs of beside_programs.py in RxJava and in Reactor: java Beside.java PEER PROGRAM.
 *
 * Says "ready", then does one run for each line of input, a count of elements, and answers with the nanoseconds, the
 * rows that waited, the bytes that were alive, and the result.
 */
class Beside {
    static final int DEPTH = 256, THREADS = 8, UNDER_WAY = 16, GROUPS = 50, INNER = 10, ROW = 1024, PACK = 64, PAUSE = 5;

    static final Scheduler ONE = scheduler(1), TWO = scheduler(1), CALLERS = scheduler(THREADS);
    static final reactor.core.scheduler.Scheduler R_ONE = reactor(1), R_TWO = reactor(1), R_CALLERS = reactor(THREADS);

    interface Program {
        Object run(int n) throws Exception;
    }

    public static void main(String[] arguments) throws Exception {
        Program program = program(arguments[0] + " " + arguments[1]);
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("ready");
        for (String line; (line = input.readLine()) != null; ) {
            Rows.lookAtHeap = line.endsWith("memory");
            int n = Integer.parseInt(line.split(" ")[0]);
            System.gc();
            long begin = System.nanoTime();
            Object result = program.run(n);
            long end = System.nanoTime();
            System.out.println((end - begin) + " " + Rows.waited + " " + Rows.alive + " " + result);
        }
        System.exit(0);
    }

    static Program program(String name) {
        switch (name) {
            case "RxJava chain":
                return n -> total(Flowable.range(0, n).map(Beside::add).filter(Beside::odd).map(Beside::add));
            case "Reactor chain":
                return n -> total(Flux.range(0, n).map(Beside::add).filter(Beside::odd).map(Beside::add));
            case "RxJava boundary":
                return n -> total(Flowable.range(0, n).subscribeOn(ONE).observeOn(TWO, false, DEPTH));
            case "Reactor boundary":
                return n -> total(Flux.range(0, n).subscribeOn(R_ONE).publishOn(R_TWO, DEPTH));
            case "RxJava calls":
                return n -> digest(Flowable.range(0, n).concatMapEager(
                    k -> Flowable.fromCallable(() -> call(k)).subscribeOn(CALLERS), UNDER_WAY, 1).blockingIterable());
            case "RxJava short calls":
                return n -> digest(Flowable.range(0, n).concatMapEager(
                    k -> Flowable.fromCallable(() -> add(k)).subscribeOn(CALLERS), UNDER_WAY, 1).blockingIterable());
            case "Reactor calls":
                return n -> digest(Flux.range(0, n).flatMapSequential(
                    k -> Mono.fromCallable(() -> call(k)).subscribeOn(R_CALLERS), UNDER_WAY, 1).toIterable());
            case "Reactor short calls":
                return n -> digest(Flux.range(0, n).flatMapSequential(
                    k -> Mono.fromCallable(() -> add(k)).subscribeOn(R_CALLERS), UNDER_WAY, 1).toIterable());
            case "RxJava flatten":
                return n -> total(Flowable.range(0, n / INNER)
                    .flatMap(k -> Flowable.range(0, INNER), false, UNDER_WAY, DEPTH));
            case "Reactor flatten":
                return n -> total(Flux.range(0, n / INNER).flatMap(k -> Flux.range(0, INNER), UNDER_WAY, DEPTH));
            case "RxJava group":
                return n -> sorted(Flowable.range(0, n).groupBy(k -> k % GROUPS, k -> (long) k, false, DEPTH)
                    .flatMapMaybe(numbers -> numbers.reduce(Long::sum), false, GROUPS).toList().blockingGet());
            case "Reactor group":
                return n -> sorted(Flux.range(0, n).groupBy(k -> k % GROUPS, k -> (long) k, DEPTH)
                    .flatMap(numbers -> numbers.reduce(Long::sum), GROUPS).collectList().block());
            case "RxJava slow":
                return n -> slow(n, rows -> Flowable.fromIterable(rows).subscribeOn(ONE).observeOn(TWO, false, DEPTH));
            case "Reactor slow":
                return n -> slow(n, rows -> Flux.fromIterable(rows).subscribeOn(R_ONE).publishOn(R_TWO, DEPTH));
            default:
                throw new IllegalArgumentException("there is no " + name);
        }
    }

    static int add(int n) {
        return n + 1;
    }

    static boolean odd(int n) {
        return n % 2 == 1;
    }

    static int call(int n) throws InterruptedException {
        Thread.sleep(1);
        return n + 1;
    }

    static long total(Publisher<Integer> numbers) throws InterruptedException {
        long[] total = new long[1];
        CountDownLatch done = new CountDownLatch(1);
        subscribe(numbers, n -> total[0] += n, done);
        done.await();
        return total[0];
    }

    interface OnNext<T> {
        void accept(T element) throws Exception;
    }

    static <T> void subscribe(Publisher<T> elements, OnNext<T> onNext, CountDownLatch done) {
        if (elements instanceof Flowable<T> flowable) {
            flowable.subscribe(onNext::accept, Beside::fail, done::countDown);
        } else {
            ((Flux<T>) elements).subscribe(element -> {
                try {
                    onNext.accept(element);
                } catch (Exception error) {
                    throw new IllegalStateException(error);
                }
            }, Beside::fail, done::countDown);
        }
    }

    static void fail(Throwable error) {
        error.printStackTrace();
        System.exit(1);
    }

    static long digest(Iterable<Integer> results) {
        long known = 0;
        for (int n : results) {
            known = (known * 31 + n) % 1_000_003;
        }
        return known;
    }

    static List<Long> sorted(List<Long> totals) {
        List<Long> result = new ArrayList<>(totals);
        Collections.sort(result);
        return result;
    }

    interface Handed {
        Publisher<byte[]> over(Rows rows);
    }

    static long slow(int n, Handed handed) throws InterruptedException {
        Rows rows = new Rows(n);
        CountDownLatch done = new CountDownLatch(1);
        subscribe(handed.over(rows), rows::write, done);
        done.await();
        Rows.waited = rows.waiting;
        return rows.total;
    }

    /** Rows of a kilobyte, and a consumer that writes them in packs. */
    static class Rows implements Iterable<byte[]> {
        static boolean lookAtHeap;
        static long waited, alive;

        final int n;
        volatile int made; // written by the producer alone
        int taken; // this and the others by the consumer alone
        int waiting;
        long total;
        final long before;

        Rows(int n) {
            this.n = n;
            alive = 0;
            before = lookAtHeap ? used() : 0;
        }

        public Iterator<byte[]> iterator() {
            return new Iterator<>() {
                public boolean hasNext() {
                    return made < n;
                }

                public byte[] next() {
                    byte[] row = new byte[ROW];
                    Arrays.fill(row, (byte) (made % 251));
                    made = made + 1;
                    return row;
                }
            };
        }

        void write(byte[] row) throws InterruptedException {
            waiting = Math.max(waiting, made - taken);
            taken++;
            total += row[0] & 0xff;
            if (taken % PACK == 0) {
                Thread.sleep(PAUSE);
            }
            if (lookAtHeap && taken % (n / 8) == 0) {
                alive = Math.max(alive, used() - before);
            }
        }

        static long used() {
            System.gc();
            return Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory();
        }
    }

    static Scheduler scheduler(int threads) {
        return Schedulers.from(Executors.newFixedThreadPool(threads, daemon()));
    }

    static reactor.core.scheduler.Scheduler reactor(int threads) {
        return reactor.core.scheduler.Schedulers.fromExecutor(Executors.newFixedThreadPool(threads, daemon()));
    }

    static ThreadFactory daemon() {
        return task -> {
            Thread thread = new Thread(task);
            thread.setDaemon(true);
            return thread;
        };
    }
}
