"""SCTBench's 52 programs: how soon each strategy of the explorer finds each fault.

    make bench PART=sctbench
    python benchmarks/sctbench.py [--seeds 20] [--schedules 10000] [--seconds 600] [--only NAME] [STRATEGY ...]

A cell is a program, a strategy and all seeds: the median of the schedules until the fault, and the seeds that found it
if these are not all. A seed that did not find it counts as one schedule more. A cell ends after `--seconds` of the
processor, and then says how many seeds it had. `bounded` draws nothing, so it runs once.

The last column was published for the JVM: the medians of ten runs of Fray with random, POS and PCT3 on its translation
of 26 programs (https://github.com/cmu-pasta/fray-benchmark, data/rf.csv, with the first iteration counted as 1).
The counts of schedules are the same on every machine, with the same interpreter.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

STRATEGIES = ("portfolio", "random", "pct3", "pos", "surw", "bounded")

JVM = {
    "CS.account": (2, 2, 2), "CS.arithmetic_prog": (1, 1, 1), "CS.bluetooth_driver": (4.5, 1.5, 2.5),
    "CS.carter01": (2, 1, 7), "CS.circular_buffer": (1, 1, 3.5), "CS.deadlock01": (1.5, 3, 7), "CS.fsbench": (1, 1, 1),
    "CS.lazy01": (2, 2, 2), "CS.phase01": (1, 1, 1), "CS.queue": (1, 1, 1), "CS.reorder_3": (13.5, 3.5, 73.5),
    "CS.reorder_4": (21, 8.5, 53.5), "CS.reorder_5": (49, 11.5, 94.5), "CS.reorder_10": (76, 22, 225.5),
    "CS.reorder_20": (6.5, 2, 100), "CS.stack": (1.5, 1, 2), "CS.sync01": (1, 1, 1), "CS.sync02": (1, 1, 1),
    "CS.token_ring": (2, 2, 2), "CS.twostage": (6, 7.5, 19), "CS.twostage_100": (46, 124.5, "5 of 10"),
    "CS.wronglock": (1.5, 1, 6), "CS.wronglock_3": (1, 2, 5), "Fray, Reorder50": (487.5, 195.5, "7 of 10"),
    "Fray, Reorder100": (1213, 314, "6 of 10"), "Fray, Wronglock1": (3.5, 2.5, 10.5),
}  # fmt: skip
"""Published for the JVM: random, POS, PCT3."""


def cell(program: Any, strategy: str, seeds: int, schedules: int, seconds: float) -> tuple[str, bool]:
    """A cell of the table; whether all seeds found the fault."""
    from reactive_runtime.explore import explore

    seeds = 1 if strategy in ("bounded", "dpor") else seeds
    counts: list[int] = []
    began = time.process_time()
    for seed in range(seeds):
        failure = explore(program, strategy=strategy, seed=seed, schedules=schedules, shrink=False).failure
        counts.append(schedules + 1 if failure is None else failure.found_after)
        if time.process_time() - began > seconds:
            break
    found = sum(count <= schedules for count in counts)
    median = statistics.median(counts)
    shown = f"{median:,g}" if median <= schedules else "never" if not found else f"> {schedules:,}"
    whole = found == len(counts) == seeds
    return shown if whole else f"{shown} ({found} of {len(counts)})", whole


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("strategies", nargs="*", metavar="STRATEGY", default=[*STRATEGIES])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--schedules", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=600, help="Of the processor, for a cell.")
    parser.add_argument("--only", default="", help="Programs whose name has this in it.")
    given = parser.parse_args()
    from explore.sctbench import OTHERS, PROGRAMS

    whole = dict.fromkeys(given.strategies, 0)
    programs = [item for item in PROGRAMS + OTHERS if given.only in item.name]
    print(f"{given.seeds} seeds, {given.schedules:,} schedules at most\n")
    print("| program | " + " | ".join(given.strategies) + " | JVM: random, POS, PCT3 |")
    print("| --- |" + " ---: |" * (len(given.strategies) + 1))
    for item in programs:
        row = [item.name]
        for strategy in given.strategies:
            shown, found = cell(item.broken, strategy, given.seeds, given.schedules, given.seconds)
            row.append(shown)
            whole[strategy] += found and item in PROGRAMS
        row.append(", ".join(f"{value}" for value in JVM.get(item.name, ())))
        print("| " + " | ".join(row) + " |", flush=True)
    count = sum(item in PROGRAMS for item in programs)
    print(f"| with all seeds, of SCTBench's {count} | " + " | ".join(map(str, whole.values())) + " | |")


if __name__ == "__main__":
    main()
