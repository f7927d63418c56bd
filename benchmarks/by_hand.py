"""A client used by hand beside this package: medians of pairs in turn, by the clock and by the time of this process."""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

from rich.table import Table
from side_by_side import console

__all__ = ["Pairs", "options"]


def options(text: str | None, unit: str, count: int) -> argparse.Namespace:
    """The arguments of a program: `count` elements and `pairs`, unless the command line says other numbers."""
    arguments = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument(f"--{unit}", dest="count", type=int, default=count)
    arguments.add_argument("--pairs", type=int, default=5)
    return arguments.parse_args()


def seconds(way: Callable[[], object]) -> tuple[float, float]:
    """By the clock, and of this process: a server is another one."""
    wall, process = time.perf_counter(), time.process_time()
    way()
    return time.perf_counter() - wall, time.process_time() - process


class Pairs:
    """A table with a line for each comparison.

    Args:
        unit: The name of the elements.
        count: How many of them each way has.
        rounds: How many pairs are measured, after one to get warm.
    """

    def __init__(self, unit: str, count: int, rounds: int) -> None:
        self.count, self.rounds = count, rounds
        self.table = Table("what", f"by hand, {unit}/s", f"ours, {unit}/s", "ours / by hand", "of process time")

    def compare(
        self,
        name: str,
        by_hand: Callable[[], object],
        ours: Callable[[], object],
        before: Callable[[], object] = lambda: None,
    ) -> None:
        """Measure both; `before` is called before each run."""
        pairs = []
        for turn in range(self.rounds + 1):
            taken = {}
            for way in (by_hand, ours) if turn % 2 else (ours, by_hand):
                before()
                taken[way] = seconds(way)
            if turn:
                pairs.append((*taken[by_hand], *taken[ours]))
        hand, mine = (self.count / statistics.median(pair[at] for pair in pairs) for at in (0, 2))
        wall, process = (statistics.median(pair[at] / pair[at + 2] for pair in pairs) for at in (0, 1))
        self.table.add_row(name, f"{hand:,.0f}", f"{mine:,.0f}", f"{wall:.2f}", f"{process:.2f}")

    def show(self) -> None:
        """Print the table."""
        console.print(self.table)
