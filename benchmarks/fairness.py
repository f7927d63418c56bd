"""Slow flows that share a pool: how long each waits for its turn.

python benchmarks/fairness.py [--seconds 2] [--rounds 3] [--only NAME]

Eight flows of 2 ms an element run on two threads, in each of the shapes in which a flow uses a pool. The longest time
between two elements of one flow is printed, at most 100 ms; the median of `--rounds`. By the clock, other work on the
machine counts too. By steps, it is the time that an idle machine would take: so many steps of 2 ms began in the pool
between the two elements, and the two threads share them. The verdict is that of the steps.

Then a timer of 50 ms runs beside a slow flow on a pool of one thread: the ticks that came, of those that were due.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from statistics import median
from threading import Lock
from typing import Any

from rich.table import Table
from side_by_side import console

from reactive_runtime import Flow, hooks

FLOWS, THREADS, STEP = 8, 2, 0.002


class Steps:
    """Counts the steps of all flows."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._begun = 0  # _lock

    def take(self) -> None:
        """Begin a step, and take its time."""
        with self._lock:
            self._begun += 1
        time.sleep(STEP)

    def begun(self) -> int:
        """How many have begun."""
        with self._lock:
            return self._begun


STEPS = Steps()


def slow(_: Any) -> None:
    STEPS.take()


def ignored(_: Any) -> None:
    """A subscriber's function that does nothing."""


def slowly(i: int) -> int:
    STEPS.take()
    return i


def endless() -> Iterator[int]:
    return iter(range(1_000_000))


def slow_source() -> Iterator[int]:
    return map(slowly, range(1_000_000))


SHAPES: dict[str, Callable[[Executor, Executor], Flow[int]]] = {
    "publish_on, slow subscriber": lambda pool, _: Flow.from_supplier(endless).publish_on(pool),
    "publish_on, prefetch=16": lambda pool, _: Flow.from_supplier(endless).publish_on(pool, prefetch=16),
    "publish_on behind another pool": lambda pool, other: Flow.range(10**6).subscribe_on(other).publish_on(pool),
    "publish_on, slow map": lambda pool, _: Flow.range(10**6).publish_on(pool).map(slowly),
    "subscribe_on, slow source": lambda pool, _: Flow.from_supplier(slow_source).subscribe_on(pool),
    "subscribe_on, slow filter that drops": lambda pool, _: (
        Flow.from_supplier(slow_source).filter(lambda i: i % 4 == 0).subscribe_on(pool)
    ),
    "concat_map of slow flows": lambda pool, _: (
        Flow.range(10**6).concat_map(lambda i: Flow.range(100).map(slowly)).subscribe_on(pool)
    ),
    "flat_map of slow flows": lambda pool, _: (
        Flow.range(10**6).flat_map(lambda i: Flow.range(100).map(slowly)).subscribe_on(pool)
    ),
    "flat_map of flows on the pool": lambda pool, _: Flow.range(10**6).flat_map(
        lambda i: Flow.range(100).map(slowly).subscribe_on(pool), concurrency=2
    ),
    "map_parallel": lambda pool, _: Flow.range(10**6).map_parallel(slowly, executor=pool, concurrency=2),
    "timeout over a slow source": lambda pool, _: Flow.from_supplier(slow_source).timeout(60).subscribe_on(pool),
}


class Waits:
    """The longest time between two elements of one flow, by the clock and by steps. Its signals are serial."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.steps = 0
        self._at, self._step = time.monotonic(), STEPS.begun()

    def ends(self) -> None:
        """A wait is over, or the flow is."""
        self.seconds = max(self.seconds, time.monotonic() - self._at)
        self.steps = max(self.steps, STEPS.begun() - self._step)

    def begins(self) -> None:
        """The flow has had its turn."""
        self._at, self._step = time.monotonic(), STEPS.begun()


def longest_wait(
    shape: Callable[[Executor, Executor], Flow[int]], seconds: float, consume: Callable[[Any], None]
) -> tuple[float, float]:
    """The longest time between two elements of one of the flows: by the clock, and by steps."""
    with ThreadPoolExecutor(THREADS) as pool, ThreadPoolExecutor(1) as other:

        def subscribe(waits: Waits) -> Any:
            def on_next(element: Any) -> None:
                waits.ends()
                consume(element)
                waits.begins()

            return shape(pool, other).subscribe(on_next)

        flows = [Waits() for _ in range(FLOWS)]
        handles = [subscribe(waits) for waits in flows]
        time.sleep(seconds)
        for handle in handles:
            handle.cancel()
    for waits in flows:
        waits.ends()
    return max(waits.seconds for waits in flows), max(waits.steps for waits in flows) * STEP / THREADS


def ticks(seconds: float) -> tuple[int, int]:
    """The ticks of 50 ms that came beside a slow flow, and those that were due."""
    seen: list[int] = []
    with ThreadPoolExecutor(1) as pool:
        busy = Flow.from_supplier(endless).publish_on(pool).subscribe(slow)
        ticker = Flow.interval(0.05).publish_on(pool).subscribe(seen.append)
        time.sleep(seconds)
        ticker.cancel()
        busy.cancel()
    return len(seen), int(seconds / 0.05 + 1e-9) - 1


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seconds", type=float, default=2.0)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--only", default="")
    asked = options.parse_args()
    hooks.set_handler(lambda dropped: None)
    table = Table(
        "shape",
        "longest wait, ms",
        "by steps, ms",
        "at most 100",
        title="8 flows of 2 ms on 2 threads",
        title_justify="left",
    )
    for name, shape in SHAPES.items():
        if asked.only not in name:
            continue
        consume = slow if "subscriber" in name or "publish_on" in name else ignored
        rounds = [longest_wait(shape, asked.seconds, consume) for _ in range(asked.rounds)]
        waited, by_steps = (median(figures) for figures in zip(*rounds, strict=True))
        table.add_row(name, f"{waited * 1e3:.0f}", f"{by_steps * 1e3:.0f}", "yes" if by_steps <= 0.1 else "no")
    console.print(table)
    came, due = ticks(asked.seconds)
    console.print(f"ticks of 50 ms beside a slow flow on one thread: {came} came, {due} were due")


if __name__ == "__main__":
    main()
