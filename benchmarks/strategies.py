"""How soon each strategy of the explorer finds the broken programs of the tests, and how soon portfolios do.

    python benchmarks/strategies.py [--seeds 20] [--schedules 1000] [STRATEGY ...]

Each program is explored with each seed. For each strategy a line: how many of the explorations found the bug, how many
programs were found with all seeds, and of the schedules until then the median, the 95th of 100 and the most; the last
column is the highest of the medians of the programs. A bug that was not found counts as one schedule more.
The numbers are of schedules, not of seconds: they are the same on every machine, with the same interpreter.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

ALONE = ("random", "pct2", "pct3", "pos", "urw", "surw", "feedback", "bounded", "dpor")
TOGETHER = (
    "portfolio",
    "pos+bounded+pct3+bounded+surw+bounded",
    "pct3+bounded+urw+bounded",
    "bounded+pct3+bounded+surw",
    "pos+pct3+bounded+urw+pct2+random",
    "pos+pct3+dpor+urw+pct2+random",
    "pos+pct3+bounded+surw+pct2+random",
    "pos+pct3+bounded+surw+feedback+random",
    "pos+pct3+bounded+surw",
    "pos+pct3+bounded+feedback",
    "pos+pct3+bounded",
    "pos+bounded",
    "pos+pct3+surw",
    "pos+surw+bounded",
    "pct3+surw+bounded",
)


def found_after(program: Any, strategy: str, seed: int, schedules: int) -> int:
    from reactive_runtime.explore import explore

    failure = explore(program, strategy=strategy, seed=seed, schedules=schedules, shrink=False).failure
    return schedules + 1 if failure is None else failure.found_after


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("strategies", nargs="*", metavar="STRATEGY", default=[*ALONE, *TOGETHER])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--schedules", type=int, default=1_000)
    given = parser.parse_args()
    from explore.programs import BROKEN

    print(f"{len(BROKEN)} programs, {given.seeds} seeds each, {given.schedules} schedules at most\n")
    print("| strategy | found | programs with all seeds | median | p95 | most | highest median | slowest program |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |")
    for strategy in given.strategies:
        every: list[int] = []
        medians: dict[str, float] = {}
        whole = 0
        worst = (0, "")
        for entry in BROKEN:
            counts = [found_after(entry.program, strategy, seed, given.schedules) for seed in range(given.seeds)]
            every += counts
            medians[entry.name] = statistics.median(counts)
            whole += max(counts) <= given.schedules
            worst = max(worst, (max(counts), entry.name))
        every.sort()
        found = sum(count <= given.schedules for count in every)
        shown = (
            strategy,
            f"{found} of {len(every)}",
            f"{whole} of {len(BROKEN)}",
            f"{statistics.median(every):g}",
            str(every[int(len(every) * 0.95)]),
            str(every[-1]),
            f"{max(medians.values()):g}",
            worst[1],
        )
        print("| " + " | ".join(shown) + " |", flush=True)


if __name__ == "__main__":
    main()
