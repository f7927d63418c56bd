"""All scenarios in turn, for long: no violation, and threads and memory back to where they began.

python benchmarks/soak.py [--seconds 600]

The first tenth warms up; then threads and memory are counted, and again at the end. Exit status 1 where a rule was
broken, a scenario was given up, threads are left, or memory has grown by more than a tenth.
"""

from __future__ import annotations

import argparse
import gc
import sys
import threading
import time
from pathlib import Path

from rich.table import Table
from side_by_side import console

from reactive_runtime import hooks
from reactive_runtime.stress import Load, Result, find, run
from reactive_runtime.testing import Recorder, check

PART = 30.0
"""Seconds of a part, with a recorder of its own; it is judged when all is quiet."""


def memory() -> float:
    """MiB that this process has in memory, by the kernel."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20


def part(seconds: float, seed: int) -> tuple[Result, list[str], int]:
    """Some load, judged: what came of it, the rules broken, and how many signals there were."""
    recorder = Recorder("soak")
    result = run(find("stress"), Load(12, seconds, seed), recorder, lambda _: None)
    records = recorder.records()
    violations = check(records)
    for violation in violations[:3]:
        console.print(str(violation), markup=False)
    return result, sorted({item.rule for item in violations}), len(records)


def main() -> int:
    """Print a table, a line a part."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=600.0)
    seconds = parser.parse_args().seconds
    hooks.set_handler(lambda _: None)
    begin = time.monotonic()
    table = Table(title=f"soak, {seconds:g} s", title_justify="left")
    for column in ("after, s", "signals", "subscriptions", "rounds", "threads", "memory, MiB", "broken"):
        table.add_column(column, justify="right")
    total = number = 0
    wrong: list[str] = []
    first: tuple[int, float] | None = None
    threads, size = threading.active_count(), memory()
    while time.monotonic() - begin < seconds:
        result, rules, signals = part(min(PART, seconds), number)
        wrong += [*rules, *(failure.why for failure in result.failures)]
        total += signals
        number += 1
        threads, size = threading.active_count(), memory()
        elapsed = time.monotonic() - begin
        if first is None and elapsed >= seconds / 10:
            first = threads, size
        table.add_row(
            f"{elapsed:.0f}", f"{signals:,}", f"{result.subscriptions:,}", f"{result.rounds:,}", str(threads),
            f"{size:.0f}", ", ".join(rules) or "-",
        )  # fmt: skip
    console.print(table)
    assert first is not None
    console.print(
        f"{total:,} signals; threads {first[0]} at first, {threads} at last; memory {first[1]:.0f} MiB, {size:.0f} MiB"
    )
    if threads > first[0]:
        wrong.append("threads are left")
    if size > 1.1 * first[1]:
        wrong.append("memory has grown")
    console.print("; ".join(wrong) or "clean", style="bold red" if wrong else "green")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
