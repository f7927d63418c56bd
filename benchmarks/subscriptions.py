"""10,000 live subscriptions on a pool of 4: the memory of each, and whether all of them progress."""

from __future__ import annotations

import threading
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

from side_by_side import console

from reactive_runtime import Flow, Subscription

N = 10_000
EACH = 100


class Counting:
    """A subscriber as small as can be."""

    __slots__ = ("count", "done", "subscription")

    def __init__(self, done: threading.Semaphore) -> None:
        self.count = 0
        self.done = done
        self.subscription: Subscription

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self.subscription = subscription

    def on_next(self, element: int, /) -> None:
        self.count += 1
        if self.count == EACH:
            self.done.release()

    def on_error(self, error: BaseException, /) -> None:
        raise error

    def on_complete(self) -> None:
        pass


def main() -> None:
    for name, behind in (("subscribe_on", False), ("subscribe_on, publish_on(prefetch=16)", True)):
        with ThreadPoolExecutor(4) as pool:
            flow = Flow.range(1_000_000).subscribe_on(pool).map(lambda n: n + 1)
            if behind:
                flow = flow.publish_on(pool, prefetch=16)
            done = threading.Semaphore(0)
            subscribers = [Counting(done) for _ in range(N)]
            tracemalloc.start()
            before = tracemalloc.get_traced_memory()[0]
            for subscriber in subscribers:
                flow.subscribe(subscriber)
            pool.submit(int).result()  # all have opened their source
            memory = (tracemalloc.get_traced_memory()[0] - before) / N
            tracemalloc.stop()
            begin = time.perf_counter()
            for subscriber in subscribers:
                subscriber.subscription.request(EACH)
            for _ in subscribers:
                done.acquire()
            seconds = time.perf_counter() - begin
            for subscriber in subscribers:
                subscriber.subscription.cancel()
        console.print(
            f"{N:,} subscriptions, {name}: {memory:,.0f} bytes each; all got {EACH} elements,"
            f" {N * EACH / seconds:,.0f} elements a second in all"
        )


if __name__ == "__main__":
    main()
