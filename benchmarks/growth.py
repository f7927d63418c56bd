"""The cost of each operator that has parts as these become more: time and memory a part, 1,600 to 102,400 parts.

python benchmarks/growth.py [--most 102400] [--rounds 3] [--only NAME] [--limit 20]

Parts are what an operator keeps one of for each key, inner flow, subscriber, timer or task. The number of parts doubles
from row to row, and the time that the process computes is taken, the least of `--rounds`. A factor above 2.3 for twice
the parts is marked, at sizes that take 10 ms or more: then the cost of a part grows with their number. A size that
takes more than `--limit` seconds is the last one of its operator. Memory is the peak that tracemalloc sees, in a run of
its own.
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
from typing import Any, Final

from rich.table import Table
from side_by_side import console

from reactive_runtime import Flow, hooks
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


@dataclass
class Growth:
    """The figures of one operator."""

    seconds: dict[int, float] = field(default_factory=dict)
    kib: dict[int, float] = field(default_factory=dict)
    why: str = ""

    def factors(self, of: dict[int, float], counts_from: float = 0.0) -> list[float]:
        return [of[n] / of[n // 2] for n in of if n // 2 in of and of[n // 2] >= counts_from]


def seconds_of(work: Work, n: int, rounds: int) -> float:
    times = []
    for _ in range(rounds):
        gc.collect()
        began = time.process_time()
        work(n)
        times.append(time.process_time() - began)
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
            growth.seconds[n] = seconds_of(work, n, rounds if n < most // 4 else 1)
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
    table = Table("operator: parts", "parts", "µs a part, at the fewest", "at the most", "worst factor for twice",
                  "KiB a part", title="what a part costs as parts become more", title_justify="left")  # fmt: skip
    for name, work in GROWING.items():
        if asked.only not in name:
            continue
        growth = grown(work, asked.most, asked.rounds, asked.limit)
        factors = growth.factors(growth.seconds, COUNTS_FROM)
        worst = max(factors, default=0.0)
        first, last = min(growth.seconds, default=0), max(growth.seconds, default=0)
        if first:
            table.add_row(
                name,
                f"{last:,}",
                f"{growth.seconds[first] / first * 1e6:.1f}",
                f"{growth.seconds[last] / last * 1e6:.1f}",
                f"{worst:.2f}{' !' if worst > BOUND or growth.why else ''}",
                " ".join(f"{kib / n:.2f}" for n, kib in growth.kib.items()),
            )
        console.print(f"{name}: {', '.join(f'{n:,} {s:.3f} s' for n, s in growth.seconds.items())} {growth.why}")
    console.print(table)


if __name__ == "__main__":
    main()
