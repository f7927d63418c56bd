"""Runs several ways of doing the same work in turn, and prints medians and ratios. Nothing is asserted."""

from __future__ import annotations

import gc
import statistics
import sys
import time
from collections.abc import Callable, Mapping

from rich.console import Console
from rich.table import Table

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


def picture(path: str, title: str, ratios: Mapping[str, float]) -> None:
    """One bar a ratio, as SVG; the line is the peer, at 1."""
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "reactive_runtime"
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 0.5 * len(ratios) + 1))
    names = list(reversed(ratios))
    axes.barh(names, [ratios[name] for name in names], color="#4878a8")
    axes.axvline(1, color="black", linewidth=1)
    for at, name in enumerate(names):
        axes.text(ratios[name] + 0.02, at, f"{ratios[name]:.2f}", va="center")
    axes.set_title(title)
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
