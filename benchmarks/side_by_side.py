"""Runs several ways of doing the same work in turn, prints medians and ratios, and keeps them. Nothing is asserted."""

from __future__ import annotations

import gc
import json
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from rich.console import Console
from rich.table import Table

Clock = Callable[[], float]
console = Console(width=None if sys.stdout.isatty() else 110, highlight=False)


def measure(ways: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Median seconds of each way, the ways taking turns, after one round to warm up."""
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(rounds + 1):
        for name, way in ways.items():
            gc.collect()
            begin = time.perf_counter()
            way()
            if turn:
                seconds[name].append(time.perf_counter() - begin)
    return {name: statistics.median(values) for name, values in seconds.items()}


def pairs(one: Callable[[], object], other: Callable[[], object], rounds: int, clock: Clock) -> list[float]:
    """The quartiles of the time of `one` in the time of `other`, of pairs in turn, after one to warm up."""
    ratios = []
    for turn in range(rounds + 1):
        seconds = []
        for way in (one, other):
            gc.collect()
            begin = clock()
            way()
            seconds.append(clock() - begin)
        if turn:
            ratios.append(seconds[0] / seconds[1])
    return statistics.quantiles(ratios, n=4)


def show(
    title: str, medians: Mapping[str, float], count: Mapping[str, int], base: str, aims: Mapping[str, str]
) -> None:
    """One row a way: ns an element, and its ratio to `base`."""
    table = Table(title=title, title_justify="left")
    for column in ("way", "ns an element", f"time, {base} = 1", "must reach"):
        table.add_column(column, justify="left" if column in ("way", "must reach") else "right")
    unit = medians[base] / count[base]
    for name, seconds in medians.items():
        each = seconds / count[name]
        table.add_row(name, f"{each * 1e9:,.0f}", f"{each / unit:.2f}", aims.get(name, ""))
    console.print(table)


RESULTS = Path(__file__).parent / "results.jsonl"
"""The results, a line each; `summary.py` makes a table and a picture of it."""


def reached(work: str, value: float, *, at_most: float | None = None, at_least: float | None = None) -> None:
    """Keep a figure, beside what it should be."""
    line = json.dumps({"work": work, "value": value, "at_most": at_most, "at_least": at_least})
    with RESULTS.open("a", encoding="utf-8") as results:
        results.write(f"{line}\n")
