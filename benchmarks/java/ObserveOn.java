import io.reactivex.rxjava3.core.Flowable;
import io.reactivex.rxjava3.core.Scheduler;
import io.reactivex.rxjava3.schedulers.Schedulers;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;

/** One run of RxJava's observeOn, with a prefetch of 256, for each line of input; answers with the sum. */
class ObserveOn {
    public static void main(String[] arguments) throws Exception {
        int count = Integer.parseInt(arguments[0]);
        Scheduler one = Schedulers.from(Executors.newSingleThreadExecutor(ObserveOn::daemon));
        Scheduler two = Schedulers.from(Executors.newSingleThreadExecutor(ObserveOn::daemon));
        Flowable<Integer> flow = Flowable.range(0, count).subscribeOn(one).observeOn(two, false, 256);
        for (int warmUp = 0; warmUp < 20; warmUp++) {
            run(flow);
        }
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("ready");
        while (input.readLine() != null) {
            System.out.println(run(flow));
        }
    }

    private static long run(Flowable<Integer> flow) throws InterruptedException {
        long[] total = new long[1];
        CountDownLatch done = new CountDownLatch(1);
        flow.subscribe(n -> total[0] += n, Throwable::printStackTrace, done::countDown);
        done.await();
        return total[0];
    }

    private static Thread daemon(Runnable task) {
        Thread thread = new Thread(task);
        thread.setDaemon(true);
        return thread;
    }
}
