"""From one thread to another, bounded: `publish_on(prefetch=256)` beside `queue.Queue(256)`, reactivex and RxJava.

The time that passes varies threefold from run to run, on both sides: a thread that waits for a core, or for the GIL,
waits for other work. The time of the processor varies by a tenth. So both are printed, as medians of pairs.
"""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import reactivex
from reactivex import operators as rx
from reactivex.scheduler import ThreadPoolScheduler
from side_by_side import console, measure, pairs, reached, show

from reactive_runtime import Flow

N = 200_000
N_SLOW = 20_000  # reactivex takes its time
N_JAVA = 2_000_000  # and the JVM hardly any

HERE = Path(__file__).parent


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


@contextmanager
def rxjava() -> Iterator[subprocess.Popen[str] | None]:
    """A JVM that has warmed up, and does one run for each line of its input; None where there is no Maven or JDK."""
    sys.path.insert(0, str(HERE.parent / "tests"))
    from jvm.conftest import built, missing

    if reason := missing():
        print(f"without RxJava: {reason}")
        yield None
        return
    command = ["java", "-cp", os.pathsep.join(built()), str(HERE / "java/ObserveOn.java"), str(N_JAVA)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
        process.communicate()


def main() -> None:
    with rxjava() as java, ThreadPoolExecutor(1) as one, ThreadPoolExecutor(1) as two:
        compare(java, one, two)


def compare(java: subprocess.Popen[str] | None, one: ThreadPoolExecutor, two: ThreadPoolExecutor) -> None:
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

    def by_rxjava() -> None:
        assert java is not None
        assert java.stdin is not None
        assert java.stdout is not None
        java.stdin.write("\n")
        java.stdin.flush()
        assert java.stdout.readline() == f"{N_JAVA * (N_JAVA - 1) // 2}\n"

    ways = {
        "Flow, publish_on(prefetch=256)": by_flow,
        "queue.Queue(256)": lambda: hand_over(queue.Queue(256)),
        "queue.SimpleQueue, unbounded": lambda: hand_over(queue.SimpleQueue()),
        "reactivex observe_on, unbounded": by_reactivex,
    }
    if java is not None:
        ways["RxJava observeOn(256)"] = by_rxjava
    medians = measure(ways, rounds=5)
    count = dict.fromkeys(ways, N) | {"reactivex observe_on, unbounded": N_SLOW, "RxJava observeOn(256)": N_JAVA}
    aims = {
        "queue.Queue(256)": "at least 10",
        "reactivex observe_on, unbounded": "at least 80",
        "RxJava observeOn(256)": "at least 1",
    }
    show("from thread to thread", medians, count, "Flow, publish_on(prefetch=256)", aims)
    each = {name: medians[name] / count[name] for name in medians}
    ours = each["Flow, publish_on(prefetch=256)"]
    for name, clock in (("the processor's time", time.process_time), ("elapsed time", time.perf_counter)):
        low, median, high = pairs(lambda: hand_over(queue.Queue(256)), by_flow, 15, clock)
        console.print(f"queue.Queue(256), times a boundary, {name}: {median:.1f} ({low:.1f} to {high:.1f})")
        reached(f"queue.Queue(256): x a boundary, {name}", median, at_least=10)
    reached("reactivex observe_on: x a boundary", each["reactivex observe_on, unbounded"] / ours, at_least=80)
    if java is not None:
        reached("RxJava observeOn: x a boundary", each["RxJava observeOn(256)"] / ours, at_least=1)


if __name__ == "__main__":
    main()
