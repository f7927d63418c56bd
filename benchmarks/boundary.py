"""From one thread to another, bounded: `publish_on(prefetch=256)` beside `queue.Queue(256)` and reactivex."""

from __future__ import annotations

import queue
import threading
from concurrent.futures import ThreadPoolExecutor

import reactivex
from reactivex import operators as rx
from reactivex.scheduler import ThreadPoolScheduler
from side_by_side import measure, show

from reactive_runtime import Flow

N = 200_000
N_SLOW = 20_000  # reactivex takes its time


class Sum:
    """The same `on_next` for all."""

    def __init__(self) -> None:
        self.total = 0
        self.done = threading.Event()

    def on_next(self, n: int) -> None:
        self.total += n


def hand_over(numbers: queue.Queue[int] | queue.SimpleQueue[int]) -> None:
    """From one thread to another through a queue."""
    total = Sum()

    def produce() -> None:
        for n in range(N):
            numbers.put(n)
        numbers.put(-1)

    def consume() -> None:
        while (n := numbers.get()) != -1:
            total.on_next(n)

    threads = [threading.Thread(target=produce), threading.Thread(target=consume)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main() -> None:
    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(1) as two:
        flow = Flow.range(N).subscribe_on(one).publish_on(two, prefetch=256)
        scheduler = ThreadPoolScheduler(1)
        other = reactivex.range(0, N_SLOW).pipe(rx.observe_on(scheduler))

        def by_flow() -> None:
            total = Sum()
            flow.subscribe(total.on_next, on_complete=total.done.set)
            total.done.wait()

        def by_reactivex() -> None:
            total = Sum()
            other.subscribe(total.on_next, on_completed=total.done.set)
            total.done.wait()

        ways = {
            "Flow, publish_on(prefetch=256)": by_flow,
            "queue.Queue(256)": lambda: hand_over(queue.Queue(256)),
            "queue.SimpleQueue, unbounded": lambda: hand_over(queue.SimpleQueue()),
            "reactivex observe_on, unbounded": by_reactivex,
        }
        medians = measure(ways, rounds=5)
    count = dict.fromkeys(ways, N) | {"reactivex observe_on, unbounded": N_SLOW}
    aims = {"queue.Queue(256)": "at least 4", "reactivex observe_on, unbounded": "at least 80"}
    show("from thread to thread", medians, count, "Flow, publish_on(prefetch=256)", aims)


if __name__ == "__main__":
    main()
