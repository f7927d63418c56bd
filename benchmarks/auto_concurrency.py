"""`map_parallel(concurrency="auto")` beside fixed values, over a tenfold step of the latency of a service.

A service runs so many calls at once, by a semaphore. A call takes 2 ms in the first half of the time and 20 ms in the
second. A way is as good as the work that the service has done for it: the sum of the latencies of its calls, of the
whole run and of the second half. The ways take turns, and the medians count.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Literal

from rich.table import Table
from side_by_side import console, reached

from reactive_runtime import Flow

WORKERS = 64
FIXED = (1, 2, 4, 8, 16, 32, 64)
BEFORE, AFTER = 0.002, 0.02


class Service:
    """A service that runs so many calls at once, and becomes slow at a time."""

    def __init__(self, capacity: int, step: float) -> None:
        self._room = threading.Semaphore(capacity)
        self._step = step

    def call(self, n: int) -> tuple[float, float]:
        """The latency, and the time of the end."""
        with self._room:
            latency = BEFORE if time.perf_counter() < self._step else AFTER
            time.sleep(latency)
            return latency, time.perf_counter()


def run(concurrency: int | Literal["auto"], capacity: int, seconds: float) -> tuple[float, float]:
    """The work of the whole run, and that of its second half."""
    step = time.perf_counter() + seconds
    service = Service(capacity, step)
    work = {BEFORE: 0.0, AFTER: 0.0}
    with ThreadPoolExecutor(WORKERS) as pool:
        calls = Flow.from_supplier(itertools.count).map_parallel(
            service.call, pool, concurrency=concurrency, ordered=False
        )
        for latency, end in calls:
            if end > step + seconds:
                break
            work[latency] += latency
    return sum(work.values()), work[AFTER]


def measure(capacity: int, rounds: int, seconds: float) -> None:
    """All ways, in turn."""
    ways: tuple[int | Literal["auto"], ...] = ("auto", *FIXED)
    done: dict[int | str, list[tuple[float, float]]] = {way: [] for way in ways}
    for _ in range(rounds):
        for way in ways:
            done[way].append(run(way, capacity, seconds))
    medians = {way: [statistics.median(part) for part in zip(*works, strict=True)] for way, works in done.items()}
    best = [max(medians[way][part] for way in FIXED) for part in (0, 1)]
    table = Table(title=f"{capacity} at once: work done, the best fixed value = 1", title_justify="left")
    for column in ("concurrency", "whole run", "after the step"):
        table.add_column(column, justify="right")
    for way in ways:
        table.add_row(str(way), *(f"{medians[way][part] / best[part]:.2f}" for part in (0, 1)))
    console.print(table)
    for part, name in enumerate(("whole run", "after the step")):
        ratio = medians["auto"][part] / best[part]
        reached(f"concurrency=auto, {capacity} at once, {name}: x the best fixed", ratio, at_least=0.9)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--capacity", type=int, nargs="+", default=[4, 8, 16], help="calls that run at once")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each latency")
    options = parser.parse_args()
    for capacity in options.capacity:
        measure(capacity, options.rounds, options.seconds)


if __name__ == "__main__":
    main()
