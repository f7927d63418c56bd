"""The gain of threads: the same work on one thread and on two, with a GIL and without it.

python benchmarks/free_threaded.py [--beside PYTHON] [--rounds 5] [WORK ...]

The interpreter that runs it, and the one that `--beside` names, have a process each, which they keep; all ways of a
work take turns in each round, so that other load on the machine falls on all of them. Printed are medians, how much
faster two threads are than one, and the ratios that are promised, as medians of the ratios of each round.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import queue
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent.parent
THREADS = (1, 2)

CALLS = 4_000
TURNS = 500
"""Of the loop that one call is: about 30 µs."""

HANDED = 200_000
"""Elements that change threads at a boundary."""
FUSED = 300_000

FANNED = 400
SUBSCRIBERS = 100
FANNED_TURNS = 50

SEPARATE = 3_000
"""Subscriptions one after the other, of ten elements each."""

LIVE = 10_000
EACH = 20


def work(n: int) -> int:
    """A call that computes, and touches nothing that other threads touch."""
    total = n
    for i in range(TURNS):
        total = (total * 31 + i) & 0xFFFFFF
    return total


def long_work(n: int) -> int:
    total = n
    for i in range(5 * TURNS):
        total = (total * 31 + i) & 0xFFFFFF
    return total


def short_work(n: int) -> int:
    total = n
    for i in range(FANNED_TURNS):
        total = (total * 31 + i) & 0xFFFFFF
    return total


def add(n: int) -> int:
    return n + 1


def odd(n: int) -> bool:
    return n % 2 == 1


class Sum:
    """The same `on_next` for all."""

    def __init__(self) -> None:
        self.total = 0
        self.done = threading.Event()

    def on_next(self, n: int) -> None:
        self.total += n


Way = Callable[[], object]


@contextmanager
def ways_of(name: str) -> Iterator[dict[str, Way]]:
    """The ways of one work; their pools live as long as the block."""
    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(2) as two, ThreadPoolExecutor(1) as other:
        yield WORKS[name]({1: one, 2: two}, other)


Pools = dict[int, ThreadPoolExecutor]


def calls_of(function: Callable[[int], int], calls: int, chunk: int, pools: Pools) -> dict[str, Way]:
    """Calls of a function, in order: of chunks, and one a task."""
    from reactive_runtime import Flow

    def worked(first: int) -> list[int]:
        return [function(n) for n in range(first, first + chunk)]

    def by_chunks(pool: ThreadPoolExecutor) -> None:
        total = 0
        for made in pool.map(worked, range(0, calls, chunk)):
            for n in made:
                total += n

    def by_map(pool: ThreadPoolExecutor) -> None:
        total = 0
        for n in pool.map(function, range(calls)):
            total += n

    def by_flow(pool: ThreadPoolExecutor, threads: int, size: int) -> None:
        total = Sum()
        flow = Flow.range(calls).map_parallel(function, pool, concurrency=4 * threads, chunk=size)
        flow.subscribe(total.on_next, on_complete=total.done.set)
        total.done.wait()

    ways: dict[str, Way] = {}
    for n in THREADS:
        ways[f"ThreadPoolExecutor.map, chunks, {n}"] = partial(by_chunks, pools[n])
        ways[f"map_parallel, chunks, {n}"] = partial(by_flow, pools[n], n, chunk)
        ways[f"ThreadPoolExecutor.map, {n}"] = partial(by_map, pools[n])
        ways[f"map_parallel, {n}"] = partial(by_flow, pools[n], n, 1)
    return ways


def calls(pools: Pools, other: ThreadPoolExecutor) -> dict[str, Way]:
    """1,000 calls of about 150 µs, which compute; in order, chunks of 20."""
    return calls_of(long_work, 1_000, 20, pools)


def short_calls(pools: Pools, other: ThreadPoolExecutor) -> dict[str, Way]:
    """4,000 calls of about 30 µs; in order, chunks of 50: what an element costs is seen here."""
    return calls_of(work, CALLS, 50, pools)


def rails(pools: Pools, other: ThreadPoolExecutor) -> dict[str, Way]:
    """CPU-bound calls on rails."""
    from reactive_runtime import Flow

    def by_rails(pool: ThreadPoolExecutor, threads: int) -> None:
        total = Sum()
        flow = Flow.range(CALLS).parallel(threads).run_on(pool).map(work).sequential()
        flow.subscribe(total.on_next, on_complete=total.done.set)
        total.done.wait()

    return {f"rails, {n}": partial(by_rails, pools[n], n) for n in THREADS}


def stages(pools: Pools, other: ThreadPoolExecutor) -> dict[str, Way]:
    """Two stages that compute, with a boundary between them: on one pool of one thread, and on two."""
    from reactive_runtime import Flow

    def by_stages(first: ThreadPoolExecutor, second: ThreadPoolExecutor) -> None:
        total = Sum()
        flow = Flow.range(CALLS // 2).map(work).subscribe_on(first).publish_on(second).map(work)
        flow.subscribe(total.on_next, on_complete=total.done.set)
        total.done.wait()

    return {
        "two stages, 1": lambda: by_stages(pools[1], pools[1]),
        "two stages, 2": lambda: by_stages(pools[1], other),
    }


def boundary(pools: Pools, other: ThreadPoolExecutor) -> dict[str, Way]:
    """From one thread to another, bounded."""
    from reactive_runtime import Flow

    def by_flow() -> None:
        total = Sum()
        flow = Flow.range(HANDED).subscribe_on(pools[1]).publish_on(other, prefetch=256)
        flow.subscribe(total.on_next, on_complete=total.done.set)
        total.done.wait()

    def by_queue() -> None:
        numbers: queue.Queue[int] = queue.Queue(256)
        total = Sum()

        def produce() -> None:
            for n in range(HANDED):
                numbers.put(n)
            numbers.put(-1)

        def consume() -> None:
            while (n := numbers.get()) != -1:
                total.on_next(n)

        made, taken = pools[1].submit(produce), other.submit(consume)
        made.result()
        taken.result()

    return {"publish_on(prefetch=256)": by_flow, "queue.Queue(256)": by_queue}


def fused(pools: Pools, other: ThreadPoolExecutor) -> dict[str, Way]:
    """map, filter, map: the generated loop beside the loop that a person would write."""
    from reactive_runtime import Flow

    flow = Flow.range(FUSED).map(add).filter(odd).map(add)

    def loop(on_next: Callable[[int], None]) -> None:
        for n in range(FUSED):
            m = add(n)
            if odd(m):
                on_next(add(m))

    def by_flow(threads: int) -> None:
        for made in [pools[threads].submit(flow.subscribe, Sum().on_next) for _ in range(threads)]:
            made.result()

    def by_loop(threads: int) -> None:
        for made in [pools[threads].submit(loop, Sum().on_next) for _ in range(threads)]:
            made.result()

    ways: dict[str, Way] = {}
    for n in THREADS:
        ways[f"a loop on each of {n}"] = partial(by_loop, n)
        ways[f"a fused chain on each of {n}"] = partial(by_flow, n)
    return ways


def fan_out(pools: Pools, other: ThreadPoolExecutor) -> dict[str, Way]:
    """A hot source, with a hundred subscribers on the pool, each of which computes."""
    from reactive_runtime.hot import PublishProcessor

    def by_processor(pool: ThreadPoolExecutor) -> None:
        hot: PublishProcessor[int] = PublishProcessor(capacity=FANNED)
        sums = [Sum() for _ in range(SUBSCRIBERS)]
        flow = hot.publish_on(pool).map(short_work)
        for item in sums:
            flow.subscribe(item.on_next, on_complete=item.done.set)
        for n in range(FANNED):
            hot.emit(n)
        hot.on_complete()
        for item in sums:
            item.done.wait()

    return {f"fan-out to {SUBSCRIBERS}, {n}": partial(by_processor, pools[n]) for n in THREADS}


def separate(pools: Pools, other: ThreadPoolExecutor) -> dict[str, Way]:
    """Flows that share nothing, each on a pool of its own: one long, and many short ones after each other."""
    from reactive_runtime import Flow, Subscription

    own = (pools[1], other)

    class Next:
        """Subscribes the next one when it has completed."""

        def __init__(self, flow: Flow[int]) -> None:
            self.flow = flow
            self.left = SEPARATE
            self.done = threading.Event()

        def on_subscribe(self, subscription: Subscription, /) -> None:
            subscription.request(100)

        def on_next(self, element: int, /) -> None:
            pass

        def on_error(self, error: BaseException, /) -> None:
            raise error

        def on_complete(self) -> None:
            self.left -= 1
            if self.left:
                self.flow.subscribe(self)
            else:
                self.done.set()

    def by_elements(threads: int) -> None:
        sums = [Sum() for _ in range(threads)]
        for pool, item in zip(own, sums, strict=False):
            flow = Flow.range(FUSED).map(add).filter(odd).subscribe_on(pool)
            flow.subscribe(item.on_next, on_complete=item.done.set)
        for item in sums:
            item.done.wait()

    def by_subscriptions(threads: int) -> None:
        chains = [Next(Flow.range(10).subscribe_on(pool)) for pool in own[:threads]]
        for item in chains:
            item.flow.subscribe(item)
        for item in chains:
            item.done.wait()

    ways: dict[str, Way] = {}
    for n in THREADS:
        ways[f"a flow on a pool of its own, {n}"] = partial(by_elements, n)
        ways[f"{SEPARATE:,} flows on a pool of their own, {n}"] = partial(by_subscriptions, n)
    return ways


def live(pools: Pools, other: ThreadPoolExecutor) -> dict[str, Way]:
    """Ten thousand subscriptions, made and served by the threads of one pool, from the first to the last element."""
    from reactive_runtime import Flow, Subscription

    class Countdown:
        """Until all have had theirs."""

        def __init__(self) -> None:
            self.lock = threading.Lock()
            self.left = LIVE  # lock
            self.done = threading.Event()

        def less(self) -> None:
            with self.lock:
                self.left -= 1
                last = not self.left
            if last:
                self.done.set()

    class Counting:
        __slots__ = ("count", "countdown", "subscription")

        def __init__(self, countdown: Countdown) -> None:
            self.count = 0
            self.countdown = countdown
            self.subscription: Subscription

        def on_subscribe(self, subscription: Subscription, /) -> None:
            self.subscription = subscription
            subscription.request(EACH)

        def on_next(self, element: int, /) -> None:
            self.count += 1
            if self.count == EACH:
                self.subscription.cancel()
                self.countdown.less()

        def on_error(self, error: BaseException, /) -> None:
            raise error

        def on_complete(self) -> None:
            pass

    def by_subscriptions(pool: ThreadPoolExecutor, threads: int) -> None:
        countdown = Countdown()
        flow = Flow.range(1_000_000).subscribe_on(pool).map(short_work)

        def subscribe() -> None:
            for _ in range(LIVE // threads):
                flow.subscribe(Counting(countdown))

        for _ in range(threads):
            pool.submit(subscribe)
        countdown.done.wait()

    return {f"{LIVE:,} subscriptions, {n}": partial(by_subscriptions, pools[n], n) for n in THREADS}


WORKS: dict[str, Callable[[Pools, ThreadPoolExecutor], dict[str, Way]]] = {
    "calls": calls,
    "short_calls": short_calls,
    "rails": rails,
    "stages": stages,
    "boundary": boundary,
    "fused": fused,
    "fan_out": fan_out,
    "separate": separate,
    "live": live,
}


def worker() -> None:
    """Run each way of each work that standard input names, once, and print the seconds."""
    gil = getattr(sys, "_is_gil_enabled", lambda: True)()
    version = ".".join(map(str, sys.version_info[:3]))
    print(json.dumps(f"{version}{'' if gil else 't'}"), flush=True)
    for line in sys.stdin:
        with ways_of(json.loads(line)) as ways:
            for way in ways.values():  # warm
                way()
            for way_line in sys.stdin:
                if way_line == "\n":
                    break
                gc.collect()
                begin, computed = time.perf_counter(), time.process_time()
                ways[json.loads(way_line)]()
                print(json.dumps((time.perf_counter() - begin, time.process_time() - computed)), flush=True)


Took = tuple[float, float]
"""Seconds by the clock, and of the processor, on all cores."""


class Interpreter:
    """A process that works, and what it is."""

    def __init__(self, python: str) -> None:
        environment = {**os.environ, "PYTHONPATH": str(HERE)}
        if python != sys.executable:
            environment.pop("PYTHON_GIL", None)  # a build with a GIL does not start where it is to do without
        self.process = subprocess.Popen(
            [python, __file__, "--worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self.name: str = self.answer()

    def answer(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.process.args!r} has ended: {self.process.wait()}")
        return json.loads(line)

    def say(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def time(self, way: str) -> Took:
        self.say(json.dumps(way))
        seconds, computed = self.answer()
        return seconds, computed

    def end(self) -> None:
        self.process.communicate()


def names_of(work: str) -> list[str]:
    with ways_of(work) as ways:
        return list(ways)


def measured(work: str, interpreters: list[Interpreter], rounds: int) -> dict[str, dict[str, list[Took]]]:
    """The seconds of each way in each round, by interpreter."""
    ways = names_of(work)
    for item in interpreters:
        item.say(json.dumps(work))
    seconds: dict[str, dict[str, list[Took]]] = {item.name: {way: [] for way in ways} for item in interpreters}
    for _ in range(rounds):
        for way in ways:
            for item in interpreters:
                seconds[item.name][way].append(item.time(way))
    for item in interpreters:
        item.say("")
    return seconds


def ratio(first: list[Took], second: list[Took], of: int = 0) -> float:
    """How much longer the first took: the median of the rounds. `of`: by the clock (0), or the processor (1)."""
    return statistics.median(a[of] / b[of] for a, b in zip(first, second, strict=True))


def show(work: str, seconds: dict[str, dict[str, list[Took]]]) -> None:
    """A table: milliseconds by the clock, and of the processor; then what the second thread was good for.

    The processor's is the one to look at on a machine with other work: where two threads use no more of it than one,
    they do not get into each other's way, and take half as long once they have a core each.
    """
    summary = (WORKS[work].__doc__ or "").partition("\n")[0]
    print(f"\n{summary}\n")
    print("| ms: clock, processor | " + " | ".join(seconds) + " |\n| --- |" + " ---: |" * len(seconds))
    for way in next(iter(seconds.values())):
        cells = [
            ", ".join(f"{1e3 * statistics.median(took[of] for took in ways[way]):.0f}" for of in (0, 1))
            for ways in seconds.values()
        ]
        print(f"| {way} | " + " | ".join(cells) + " |")
    for way in next(iter(seconds.values())):
        if way.endswith("2") and (alone := way[:-1] + "1") in next(iter(seconds.values())):
            times = 2 if work in ("fused", "separate") else 1  # there each thread does all of the work
            clock = [f"{ratio(ways[alone], ways[way]) * times:.2f}" for ways in seconds.values()]
            used = [f"{ratio(ways[alone], ways[way], 1) * times:.0%}" for ways in seconds.values()]
            cells = [f"{by_clock}, {by_processor}" for by_clock, by_processor in zip(clock, used, strict=True)]
            print(f"| {way}: x as fast as 1; efficiency of each core | " + " | ".join(cells) + " |")


PROMISED: list[tuple[str, str, str, str, Callable[[float], bool], str]] = [
    ("calls", "map_parallel, chunks, 1", "map_parallel, chunks, 2",
     "map_parallel on 2 threads: x one thread", lambda x: x >= 1.7, "at least 1.7"),
    ("calls", "ThreadPoolExecutor.map, chunks, 2", "map_parallel, chunks, 2",
     "ThreadPoolExecutor.map with chunks: x map_parallel, 2 threads", lambda x: x >= 1, "at least 1"),
    ("fused", "a fused chain on each of 1", "a loop on each of 1",
     "a fused chain: x the loop", lambda x: x <= 1.2, "at most 1.2"),
    ("boundary", "queue.Queue(256)", "publish_on(prefetch=256)",
     "queue.Queue(256): x a boundary", lambda x: x >= 4.5, "at least 4.5"),
]  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("works", nargs="*", metavar="WORK", help=", ".join(WORKS))
    parser.add_argument("--beside", action="append", default=[], metavar="PYTHON")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    sys.path.insert(0, str(HERE))
    interpreters = [Interpreter(python) for python in (sys.executable, *given.beside)]
    print(f"{os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f}; medians of {given.rounds} rounds in turn")
    missed = 0
    for work in given.works or WORKS:
        seconds = measured(work, interpreters, given.rounds)
        show(work, seconds)
        for at, first, second, what, holds, aim in PROMISED:
            if at == work:
                reached = ratio(seconds[interpreters[0].name][first], seconds[interpreters[0].name][second])
                missed += not holds(reached)
                print(f"\n{what}: {reached:.2f} ({aim}){'' if holds(reached) else ': MISSED'}", flush=True)
    print(f"\nload average {os.getloadavg()[0]:.1f}")
    for item in interpreters:
        item.end()
    return 1 if missed else 0


if __name__ == "__main__":
    if sys.argv[1:] == ["--worker"]:
        worker()
    else:
        sys.exit(main())
