"""The cost of each operator that has parts as these become more: time and memory a part, 1,600 to 102,400 parts.

python benchmarks/growth.py [--most 102400] [--rounds 3] [--only NAME] [--limit 20]

Parts are what an operator keeps one of for each key, inner flow, subscriber, timer or task. The number of parts doubles
from row to row, and the time that the process computes is taken, the least of `--rounds`. A factor above 2.3 for twice
the parts is marked, at sizes that take 10 ms or more.

Each size is measured with the collections of CPython's garbage collector, and without. A full collection visits all
live objects, and comes when a quarter more have survived. So the visits of each object are few at every size, but they
come at some sizes rather than at others. The factor without collections shows how an operator grows: if it is marked,
the cost of a part grows with their number. The factor with collections shows what a program has to expect.

A size that takes more than `--limit` seconds is the last one of its operator. Memory is the peak that tracemalloc sees,
in a run of its own.
"""

from __future__ import annotations

import argparse
import gc
import time
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import reduce
from itertools import count
from threading import Event
from typing import Any, Final

from rich.table import Table
from side_by_side import console

from reactive_runtime import Bulkhead, Flow, hooks
from reactive_runtime.executors import VirtualTimeExecutor
from reactive_runtime.hot import PublishProcessor
from reactive_runtime.testing import Recorder

FEWEST: Final = 1_600
BOUND: Final = 2.3
COUNTS_FROM: Final = 0.010
"""Seconds: the factor of a shorter time is noise."""

Work = Callable[[int], object]
GROWING: dict[str, Work] = {}


def growing(name: str) -> Callable[[Work], Work]:
    """The work that makes `n` parts, and uses each of them."""

    def add(work: Work) -> Work:
        GROWING[name] = work
        return work

    return add


def expect(seen: object, expected: object) -> None:
    """A wrong result is no figure."""
    if seen != expected:
        raise SystemExit(f"growth: {seen!r} came, and not {expected!r}")


def ignored(_: Any) -> None:
    """A subscriber's function that does nothing."""


@growing("group_by, flat_map: groups")
def groups(n: int) -> None:
    flow = Flow.range(2 * n).group_by(lambda i: i % n, groups=n).flat_map(lambda group: group[1].count(), concurrency=n)
    expect(flow.sum().block(), 2 * n)


@growing("group_by, merge: groups")
def merged_groups(n: int) -> None:
    flow = Flow.range(2 * n).group_by(lambda i: i % n, groups=n).flat_map(lambda group: group[1], concurrency=n)
    expect(flow.count().block(), 2 * n)


@growing("window: open windows")
def windows(n: int) -> None:
    """Every element opens a window of n, each of which is open when the source ends."""
    flow = Flow.range(n).window(1).flat_map(lambda window: window.concat_with(Flow.never()), concurrency=n)
    flow.subscribe(ignored).cancel()


@growing("window: overlapping windows that are open")
def overlapping_windows(n: int) -> None:
    """Every 8th element opens a window, of which eight are open."""
    flow = Flow.range(n).window(64, skip=8).flat_map(lambda window: window.count(), concurrency=n)
    expect(flow.count().block(), -(-n // 8))


@growing("window_until: windows")
def cut_windows(n: int) -> None:
    flow = Flow.range(2 * n).window_until(lambda i: i % 2 == 1).flat_map(lambda window: window.count(), concurrency=n)
    expect(flow.sum().block(), 2 * n)


@growing("window_time: windows")
def timed_windows(n: int) -> None:
    clock = VirtualTimeExecutor()
    flow = Flow.interval(1, clock=clock, overflow="buffer", capacity=n).take(n).window_time(1.5, clock=clock)
    counts = flow.flat_map(lambda window: window.count(), concurrency=n).sum().to_future()
    clock.advance(n + 1)
    expect(counts.result(0), n)


@growing("balance: workers")
def workers(n: int) -> None:
    seen: list[int] = []
    for worker in Flow.range(2 * n).balance(n):
        worker.subscribe(seen.append)
    expect(len(seen), 2 * n)


@growing("flat_map: open inner flows")
def inners(n: int) -> None:
    hot: list[PublishProcessor[int]] = []

    def inner(i: int) -> Flow[int]:
        hot.append(PublishProcessor())
        return hot[-1]

    seen: list[int] = []
    Flow.range(n).flat_map(inner, concurrency=n).subscribe(seen.append)
    for i, processor in enumerate(hot):
        processor.emit(i)
    for processor in hot:
        processor.on_complete()
    expect(len(seen), n)


@growing("flat_map: open inner flows, one by one")
def inners_one_by_one(n: int) -> None:
    flow = Flow.range(n).flat_map(lambda i: Flow.range(2), concurrency=n)
    expect(sum(1 for _ in flow.iterate(prefetch=1)), 2 * n)


@growing("merge: sources")
def merged(n: int) -> None:
    expect(Flow.merge(*(Flow.range(2) for _ in range(n))).count().block(), 2 * n)


@growing("concat: sources")
def concatenated(n: int) -> None:
    expect(Flow.concat(*(Flow.range(2) for _ in range(n))).count().block(), 2 * n)


@growing("zip: sources")
def zipped(n: int) -> None:
    expect(Flow.zip(*(Flow.range(2) for _ in range(n))).count().block(), 2)


@growing("PublishProcessor: subscribers")
def subscribers(n: int) -> None:
    processor: PublishProcessor[int] = PublishProcessor()
    seen: list[int] = []
    for _ in range(n):
        processor.subscribe(seen.append)
    processor.emit(1)
    processor.emit(2)
    processor.on_complete()
    expect(len(seen), 2 * n)


@growing("PublishProcessor: subscribers that leave")
def leaving(n: int) -> None:
    processor: PublishProcessor[int] = PublishProcessor()
    handles = [processor.subscribe(ignored) for _ in range(n)]
    for handle in handles:
        handle.cancel()


@growing("delay: timers")
def timers(n: int) -> None:
    clock = VirtualTimeExecutor()
    seen: list[int] = []
    for i in range(n):
        Flow.just(i).delay(1 + i % 97, clock=clock).subscribe(seen.append)
    clock.advance(100)
    expect(len(seen), n)


@growing("timeout: timers that are cancelled")
def cancelled_timers(n: int) -> None:
    clock = VirtualTimeExecutor()
    handles = [Flow.never().timeout(1 + i % 97, clock=clock).subscribe(ignored) for i in range(n)]
    for handle in handles:
        handle.cancel()
    clock.advance(100)


@growing("distinct: keys")
def keys(n: int) -> None:
    expect(Flow.range(2 * n).map(lambda i: i % n).distinct().count().block(), n)


@growing("map_parallel: pending tasks")
def tasks(n: int) -> None:
    with ThreadPoolExecutor(1) as pool:
        expect(Flow.range(n).map_parallel(lambda i: i, executor=pool, concurrency=n).count().block(), n)


@growing("map_parallel: tasks that are done behind one that isn't")
def tasks_behind(n: int) -> None:
    left, others_done = count(1), Event()

    def work(i: int) -> int:
        if i == 0:
            others_done.wait()
        elif next(left) == n - 1:
            others_done.set()
        return i

    with ThreadPoolExecutor(2) as pool:
        expect(Flow.range(n).map_parallel(work, executor=pool, concurrency=n).count().block(), n)


@growing("map_by_key: keys that wait")
def waiting_keys(n: int) -> None:
    with ThreadPoolExecutor(1) as pool:
        flow = Flow.range(2 * n).map_by_key(lambda i: i, lambda i: i % n, pool, concurrency=1, prefetch=2 * n)
        expect(flow.count().block(), 2 * n)


@growing("bulkhead: subscriptions that wait")
def waiting_subscriptions(n: int) -> None:
    bulkhead, first = Bulkhead(1, waiting=n), PublishProcessor[int]()
    seen: list[int] = []
    first.bulkhead(bulkhead).subscribe(ignored)
    for i in range(n):
        Flow.just(i).bulkhead(bulkhead).subscribe(seen.append)
    first.on_complete()
    expect(len(seen), n)


@growing("subscribe_on: subscriptions on a pool")
def subscriptions(n: int) -> None:
    with ThreadPoolExecutor(1) as pool:
        futures = [Flow.range(2).subscribe_on(pool).count().to_future() for _ in range(n)]
        expect(sum(future.result() or 0 for future in futures), 2 * n)


@growing("publish_on: subscriptions on a pool")
def boundaries(n: int) -> None:
    with ThreadPoolExecutor(1) as pool:
        futures = [Flow.range(2).publish_on(pool).count().to_future() for _ in range(n)]
        expect(sum(future.result() or 0 for future in futures), 2 * n)


@growing("map: operators in a chain")
def chain(n: int) -> None:
    expect(reduce(lambda flow, _: flow.map(lambda i: i + 1), range(n), Flow.range(2)).sum().block(), 2 * n + 1)


@growing("concat_with: operators in a chain")
def concat_chain(n: int) -> None:
    expect(reduce(lambda flow, _: flow.concat_with(Flow.just(1)), range(n), Flow.just(1)).count().block(), n + 1)


@growing("Recorder: recorded subscriptions")
def recorded(n: int) -> None:
    recorder = Recorder()
    publisher = recorder.wrap(Flow.range(2))
    for _ in range(n):
        Flow.from_publisher(publisher).subscribe(ignored)
    expect(len(recorder.subscriptions), n)


@growing("buffer: an element each")
def buffered(n: int) -> None:
    expect(len(Flow.range(n).buffer(n).block()), n)  # type: ignore[arg-type]


@growing("buffer: overlapping, an element each")
def buffered_overlapping(n: int) -> None:
    expect(Flow.range(n).buffer(64, skip=8).count().block(), -(-n // 8))


@growing("buffer_time: kept elements, sliding")
def kept_for_a_time(n: int) -> None:
    clock = VirtualTimeExecutor()
    flow = Flow.interval(1, clock=clock, overflow="buffer", capacity=n).take(n)
    lists = flow.buffer_time(64, every=8, clock=clock, capacity=n).count().to_future()
    clock.advance(n + 1)
    expect(lists.result(0), n // 8 + 1)


@growing("take_last: kept elements")
def last_ones(n: int) -> None:
    expect(Flow.range(2 * n).take_last(n).count().block(), n)


@growing("sort: elements in memory")
def sorted_in_memory(n: int) -> None:
    expect(Flow.range(n).sort(reverse=True, capacity=n + 1).first().block(), n - 1)


@growing("sort: elements on disk")
def sorted_on_disk(n: int) -> None:
    expect(Flow.range(n).sort(reverse=True, capacity=512).first().block(), n - 1)


@dataclass
class Growth:
    """The figures of one operator."""

    seconds: dict[int, float] = field(default_factory=dict)
    uncollected: dict[int, float] = field(default_factory=dict)
    """Seconds without collections of garbage."""
    kib: dict[int, float] = field(default_factory=dict)
    why: str = ""

    def factor(self, of: dict[int, float]) -> float:
        """The greatest one for twice the parts."""
        factors = (of[n] / of[n // 2] for n in of if n // 2 in of and of[n // 2] >= COUNTS_FROM)
        return max(factors, default=0.0)


def seconds_of(work: Work, n: int, rounds: int, *, collects: bool) -> float:
    times = []
    for _ in range(rounds):
        gc.collect()
        if not collects:
            gc.disable()
        try:
            began = time.process_time()
            work(n)
            times.append(time.process_time() - began)
        finally:
            gc.enable()
    return min(times)


def peak_of(work: Work, n: int) -> float:
    gc.collect()
    tracemalloc.start()
    try:
        work(n)
        return tracemalloc.get_traced_memory()[1] / 1024
    finally:
        tracemalloc.stop()


def grown(work: Work, most: int, rounds: int, limit: float) -> Growth:
    growth, n = Growth(), FEWEST
    work(100)
    while n <= most:
        try:
            growth.seconds[n] = seconds_of(work, n, rounds, collects=True)
            growth.uncollected[n] = seconds_of(work, n, rounds, collects=False)
        except Exception as error:
            growth.why = f"{n:,}: {type(error).__name__}: {error}"
            break
        if growth.seconds[n] > limit:
            growth.why = f"more than {limit:g} s at {n:,}"
            break
        n *= 2
    for size in [n for n in growth.seconds if n <= most // 8][-2:]:
        growth.kib[size] = peak_of(work, size)
    return growth


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--most", type=int, default=FEWEST * 64)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--only", default="")
    options.add_argument("--limit", type=float, default=20.0)
    asked = options.parse_args()
    hooks.set_handler(lambda dropped: None)
    table = Table("operator: parts", "parts", "µs a part", "worst factor", "without collections", "worst factor",
                  "KiB a part", title="what a part costs as parts become more", title_justify="left")  # fmt: skip
    for name, work in GROWING.items():
        if asked.only not in name:
            continue
        growth = grown(work, asked.most, asked.rounds, asked.limit)
        first, last = min(growth.uncollected, default=0), max(growth.uncollected, default=0)
        if first:
            figures = []
            for seconds in (growth.seconds, growth.uncollected):
                factor = growth.factor(seconds)
                marked = " !" if factor > BOUND or growth.why else ""
                costs = (f"{seconds[n] / n * 1e6:.1f}" for n in (first, last))
                figures += [" to ".join(costs), f"{factor:.2f}{marked}"]
            table.add_row(
                name,
                f"{last:,}",
                *figures,
                " ".join(f"{kib / n:.2f}" for n, kib in growth.kib.items()),
            )
        console.print(f"{name}: {', '.join(f'{n:,} {s:.3f} s' for n, s in growth.seconds.items())} {growth.why}")
    console.print(table)


if __name__ == "__main__":
    main()
