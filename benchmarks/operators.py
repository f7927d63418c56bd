"""Operators beside what one would write by hand: synchronous ones, flat_map, map_parallel, coroutines, processes."""

from __future__ import annotations

import asyncio
import itertools
import operator
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from typing import Any

from side_by_side import measure, reached, show

from reactive_runtime import Flow
from reactive_runtime.hot import SubmissionPublisher

N = 300_000


class Sum:
    """The same `on_next` for all."""

    def __init__(self) -> None:
        self.total = 0
        self.done = threading.Event()

    def on_next(self, n: Any) -> None:
        self.total += 1


def half(n: int) -> int:
    return n // 2


def small(n: int) -> bool:
    return n < N


def eight_by_hand(on_next: Callable[[Any], None]) -> None:
    """take_while, scan, distinct_until_changed, batch(64), flatten, enumerate, starmap, skip."""
    taken = itertools.takewhile(small, map(half, range(N)))
    scanned = itertools.accumulate(taken, max)
    changed = (key for key, _ in itertools.groupby(scanned))

    def batches(elements: Iterator[int]) -> Iterator[list[int]]:
        while batch := list(itertools.islice(elements, 64)):
            yield batch

    numbered = enumerate(itertools.chain.from_iterable(batches(changed)))
    for n in itertools.islice(itertools.starmap(operator.add, numbered), 10, None):
        on_next(n)


EIGHT = (
    Flow.range(N)
    .map(half)
    .take_while(small)
    .scan(max, 0)
    .distinct_until_changed()
    .batch(64)
    .flatten()
    .enumerate()
    .starmap(operator.add)
    .skip(10)
)


def synchronous() -> None:
    ways = {
        "itertools and generators": lambda: eight_by_hand(Sum().on_next),
        "Flow, fused": lambda: EIGHT.subscribe(Sum().on_next),
    }
    medians = measure(ways, rounds=7)
    show("eight operators", medians, dict.fromkeys(ways, N), "itertools and generators", {"Flow, fused": "at most 1.5"})
    ratio = medians["Flow, fused"] / medians["itertools and generators"]
    reached("eight operators, fused: x itertools and generators", ratio, at_most=1.5)


def add(n: int) -> int:
    return n + 1


def odd(n: int) -> bool:
    return n % 2 == 1


def pushed() -> None:
    """map, filter, map on signals that are pushed, without the boundary itself: a hot source on this thread."""

    def loop() -> None:
        on_next = Sum().on_next
        for n in range(N):
            m = add(n)
            if odd(m):
                on_next(add(m))

    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(1) as two:
        bare = Flow.range(N).subscribe_on(one).publish_on(two)
        flow = bare.map(add).filter(odd).map(add)

        def run(item: Flow[int]) -> None:
            total = Sum()
            item.subscribe(total.on_next, on_complete=total.done.set)
            total.done.wait()

        ways = {
            "hand-written loop": loop,
            "behind a boundary": lambda: run(flow),
            "the boundary alone": lambda: run(bare),
        }
        medians = measure(ways, rounds=7)
    medians["the three stages, without the boundary"] = medians["behind a boundary"] - medians["the boundary alone"]
    aims = {"the three stages, without the boundary": "at most 2.0"}
    show("map, filter, map, pushed", medians, dict.fromkeys(medians, N), "hand-written loop", aims)
    stages = medians["the three stages, without the boundary"] / medians["hand-written loop"]
    reached("map, filter, map, pushed: x the loop", stages, at_most=2)


def seconds(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def tasks() -> None:
    calls = 2_000
    lock = threading.Lock()
    flying = [0, 0]

    def work(n: int) -> int:
        with lock:
            flying[0] += 1
            flying[1] = max(flying)
        time.sleep(0.005)
        with lock:
            flying[0] -= 1
        return n

    with ThreadPoolExecutor(32) as pool:
        list(pool.map(work, range(64)))
        ordered = Flow.range(calls).map_parallel(work, pool, concurrency=32)
        unordered = Flow.range(calls).map_parallel(work, pool, concurrency=32, ordered=False)
        flat = Flow.range(calls).flat_map(
            lambda n: Flow.from_callable(lambda: work(n)).subscribe_on(pool), concurrency=32, prefetch=1
        )
        ways: dict[str, Callable[[], object]] = {
            "ThreadPoolExecutor.map": lambda: list(pool.map(work, range(calls))),
            "map_parallel": ordered.run,
            "map_parallel, as they are done": unordered.run,
            "flat_map": flat.run,
        }
        if sys.version_info >= (3, 14):
            ways["ThreadPoolExecutor.map(buffersize=32)"] = lambda: list(pool.map(work, range(calls), buffersize=32))
        medians = measure(ways, rounds=5)
        first = statistics.median(seconds(ordered.first().block) for _ in range(9))
    aims = dict.fromkeys(list(ways)[1:4], "at most 1.05")
    show("2,000 calls of 5 ms, 32 at a time", medians, dict.fromkeys(ways, calls), "ThreadPoolExecutor.map", aims)
    print(f"in flight, at most: {flying[1]}; first result after {first * 1e3:.1f} ms (aims: 32, 10 ms)\n")
    for way in ("map_parallel", "flat_map"):
        reached(f"{way}: x ThreadPoolExecutor.map", medians[way] / medians["ThreadPoolExecutor.map"], at_most=1.05)
    reached("calls in flight", flying[1], at_most=32)
    reached("first result, ms", first * 1e3, at_most=10)


def in_order() -> None:
    """Calls that are tried again, one publisher each: those whose turn has not come are under way too."""
    calls = 64
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(time.sleep, [0.01] * 32))

        def call(n: int) -> Flow[int]:
            def slow() -> int:
                time.sleep(0.01)
                return n

            return Flow.from_callable(slow).subscribe_on(pool).retry(3)

        flat = Flow.range(calls).flat_map(call, concurrency=16)
        sequential = Flow.range(calls).flat_map_sequential(call, concurrency=16)
        ways = {"flat_map": flat.run, "flat_map_sequential": sequential.run}
        medians = measure(ways, rounds=9)
    aims = {"flat_map_sequential": "at most 1.3"}
    show("64 calls of 10 ms, each with retry, 16 at a time", medians, dict.fromkeys(ways, calls), "flat_map", aims)
    ratio = medians["flat_map_sequential"] / medians["flat_map"]
    reached("flat_map_sequential of calls with retry: x flat_map", ratio, at_most=1.3)


async def nap(n: int) -> int:
    await asyncio.sleep(0.001)
    return n


def coroutines() -> None:
    calls = 10_000

    async def by_hand() -> None:
        semaphore = asyncio.Semaphore(256)

        async def one(n: int) -> int:
            async with semaphore:
                return await nap(n)

        await asyncio.gather(*(one(n) for n in range(calls)))

    flow = Flow.range(calls).flat_map(nap, concurrency=256)
    ways = {"asyncio and a semaphore": lambda: asyncio.run(by_hand()), "flat_map": flow.run}
    medians = measure(ways, rounds=5)
    title = "10,000 coroutines of 1 ms, 256 at a time"
    show(title, medians, dict.fromkeys(ways, calls), "asyncio and a semaphore", {"flat_map": "at most 1.15"})
    ratio = medians["flat_map"] / medians["asyncio and a semaphore"]
    reached("flat_map of coroutines: x asyncio and a semaphore", ratio, at_most=1.15)


def burn(n: int) -> int:
    return sum(i * i for i in range(4_000 + n % 7))


def processes() -> None:
    calls = 3_000
    with ProcessPoolExecutor(2) as two, ProcessPoolExecutor(1) as one:
        list(two.map(burn, range(8)))
        list(one.map(burn, range(8)))
        flow = Flow.range(calls).map_parallel(burn, two, concurrency=8, chunk=50)
        single = Flow.range(calls).map_parallel(burn, one, concurrency=8, chunk=50)
        ways: dict[str, Callable[[], object]] = {
            "ProcessPoolExecutor.map(chunksize=50)": lambda: list(two.map(burn, range(calls), chunksize=50)),
            "map_parallel, 2 workers": flow.run,
            "map_parallel, 1 worker": single.run,
        }
        medians = measure(ways, rounds=5)
    aims = {"map_parallel, 2 workers": "at most 1.1", "map_parallel, 1 worker": "at least 1.8 of 2 workers"}
    show("CPU-bound, on processes", medians, dict.fromkeys(ways, calls), "ProcessPoolExecutor.map(chunksize=50)", aims)
    print(f"1 worker / 2 workers: {medians['map_parallel, 1 worker'] / medians['map_parallel, 2 workers']:.2f}\n")
    two_workers = medians["map_parallel, 2 workers"]
    ratio = two_workers / medians["ProcessPoolExecutor.map(chunksize=50)"]
    reached("map_parallel on processes: x ProcessPoolExecutor.map", ratio, at_most=1.1)
    reached("one worker process: x two", medians["map_parallel, 1 worker"] / two_workers, at_least=1.8)


def multicast() -> None:
    """A publisher with 1, 10 and 100 subscribers, in turn: one run differs from the next by a half and more."""
    elements = 2_000

    def to(subscribers: int, pool: ThreadPoolExecutor) -> None:
        hot: SubmissionPublisher[int] = SubmissionPublisher(pool, max_buffer=256)
        ended = [threading.Event() for _ in range(subscribers)]
        for event in ended:
            hot.subscribe(int, on_complete=event.set)
        for n in range(elements):
            hot.submit(n)
        hot.close()
        for event in ended:
            event.wait()

    with ThreadPoolExecutor(4) as pool:
        medians = measure({f"{n}": partial(to, n, pool) for n in (1, 10, 100)}, rounds=9)
    rates = {n: elements * int(n) / seconds for n, seconds in medians.items()}
    for subscribers, rate in rates.items():
        print(f"multicast to {subscribers:>3} subscribers on 4 threads: {rate:,.0f} elements x subscribers / s")
    print()
    reached("multicast to 100: elements x subscribers / s, x that to 10", rates["100"] / rates["10"], at_least=1)


def demand() -> None:
    """`request(1)` from 8 threads, 1M calls, beside a counter with a lock."""
    calls = 1_000_000

    class Counter:
        def __init__(self) -> None:
            self.lock = threading.Lock()
            self.value = 0

        def request(self, n: int) -> None:
            with self.lock:
                self.value += n

    def spread(request: Callable[[int], object]) -> None:
        def some() -> None:
            for _ in range(calls // 8):
                request(1)

        threads = [threading.Thread(target=some) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    with ThreadPoolExecutor(1) as pool:

        def held() -> None:  # the drain is owned: what is measured is the adding of demand
            began, release, ended = threading.Event(), threading.Event(), threading.Event()

            def source() -> int:
                began.set()
                release.wait()
                return 1

            flow = Flow.from_callable(source).subscribe_on(pool)
            handle = flow.subscribe(int, on_complete=ended.set, demand=1)
            began.wait()
            spread(handle._subscription.request)
            release.set()
            ended.wait()

        ways = {"a lock and a counter": lambda: spread(Counter().request), "request(1)": held}
        medians = measure(ways, rounds=3)
    show(
        "1M calls from 8 threads",
        medians,
        dict.fromkeys(ways, calls),
        "a lock and a counter",
        {"request(1)": "at most 2"},
    )
    reached("request(1) from 8 threads: x a lock", medians["request(1)"] / medians["a lock and a counter"], at_most=2)


def apart() -> None:
    """The cost of a drain of its own for an upstream: `take_until`, over a step and over a range."""
    on_next = Sum().on_next
    n = N // 10
    ways: dict[str, Callable[[], object]] = {
        "map": lambda: Flow.range(n).map(add).subscribe(on_next),
        "take_until, on one drain": lambda: Flow.range(n).take_until(Flow.never()).subscribe(on_next),
        "map, take_until: a drain of its own": lambda: (
            Flow.range(n).map(add).take_until(Flow.never()).subscribe(on_next)
        ),
    }
    medians = measure(ways, rounds=7)
    show("a drain of its own", medians, dict.fromkeys(ways, n), "take_until, on one drain", {})


def deep() -> None:
    begin = time.perf_counter()
    flow: Flow[int] = Flow.range(1_000)
    for _ in range(1_000):
        flow = flow.map(add)
    assert flow.last().block() == 1_999
    print(f"a chain of 1,000 maps, 1,000 elements: {time.perf_counter() - begin:.2f} s")
    begin = time.perf_counter()
    assert Flow.concat(*(Flow.just(1) for _ in range(100_000))).count().block() == 100_000
    print(f"concat of 100,000: {time.perf_counter() - begin:.2f} s")
    begin = time.perf_counter()
    left = [1_000_000]

    def fail() -> int:
        left[0] -= 1
        if left[0]:
            raise OSError("busy")
        return 7

    assert Flow.from_callable(fail).retry().block() == 7
    print(f"retry, 1,000,000 times: {time.perf_counter() - begin:.2f} s\n")


def interrupted() -> None:
    """Ctrl-C in a blocking sink: how long until the source is closed, and the call has returned."""
    program = """
import signal, threading, time
from reactive_runtime import Flow
closed = []
def numbers():
    try:
        while True:
            yield time.sleep(0.001) or 7
    finally:
        closed.append(time.perf_counter())
def strike():
    sent.append(time.perf_counter())
    signal.raise_signal(signal.SIGINT)
sent = []
threading.Timer(0.3, strike).start()
try:
    Flow.from_supplier(numbers).run()
except KeyboardInterrupt:
    print(1e3 * (time.perf_counter() - sent[0]) if closed else "not closed")
"""
    took = [float(subprocess.check_output([sys.executable, "-c", program], text=True)) for _ in range(5)]
    print(f"Ctrl-C in a blocking sink: closed and returned after {statistics.median(took):.1f} ms\n")
    reached("Ctrl-C, ms until all is closed", statistics.median(took), at_most=200)


def main() -> None:
    for bench in (
        synchronous,
        pushed,
        tasks,
        in_order,
        coroutines,
        processes,
        multicast,
        demand,
        apart,
        deep,
        interrupted,
    ):
        if len(sys.argv) == 1 or bench.__name__ in sys.argv[1:]:
            bench()


if __name__ == "__main__":
    main()
