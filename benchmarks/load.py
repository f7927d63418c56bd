"""The amount of the load: signals, rounds of each scenario, and what a round costs by its switch interval.

python benchmarks/load.py [--seconds 30] [--seed 1]

Nothing is judged; signals go to Parquet files, as those of `make run`. Exit status 1 where a switch interval costs more
than three times the median round, or a scenario has less than its least load; those with slow subscribers may.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from statistics import fmean, median

from side_by_side import reached

from reactive_runtime import hooks
from reactive_runtime.stress import Load, Result, Scenario, find, run
from reactive_runtime.stress._shares import LEAST_ROUNDS, LEAST_SIGNALS, PER, short
from reactive_runtime.testing.trace import TraceWriter

MOST = 3.0
SIGNALS = 1_000_000  # in 30 s


def all_have_their_least(scenarios: Sequence[Scenario], result: Result, seconds: float) -> bool:
    """Whether all have it, but for those whose subscribers are slow; says which have not."""
    few = short(result.load, seconds)
    slow = {scenario.name for scenario in scenarios if scenario.subscribers == "slow"}
    per = seconds / PER
    for what, names in (
        (f"fewer than {LEAST_ROUNDS * per:.0f} rounds or {LEAST_SIGNALS * per:,.0f} signals", set(few) - slow),
        ("the same, since their subscribers are slow", set(few) & slow),
    ):
        told = [
            f"{name} ({result.load[name].rounds:,} rounds, {result.load[name].signals:,} signals)"
            for name in sorted(names)
        ]
        print(f"{what}: {', '.join(told) or 'none'}")
    return slow.issuperset(few)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    hooks.set_handler(lambda _: None)
    costs: dict[float, list[tuple[str, float]]] = defaultdict(list)
    before: dict[str, float] = defaultdict(float)

    def note(result: Result) -> None:
        share = result.load[result.running]
        costs[sys.getswitchinterval()].append((result.running, share.seconds - before[result.running]))
        before[result.running] = share.seconds

    scenarios = find("stress")
    print(f"load average {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores\n")
    with tempfile.TemporaryDirectory() as folder:
        writer = TraceWriter(folder, "run")
        result = run(scenarios, Load(12, given.seconds, given.seed), writer.recorder(), note)
        writer.close({})
    usual: dict[str, list[float]] = defaultdict(list)
    for rounds in costs.values():
        for name, cost in rounds:
            usual[name].append(cost)
    of_all = median(cost for rounds in costs.values() for _, cost in rounds)
    print("| switch interval | rounds | median | mean | mean, the median round = 1 | mean, its scenario's median = 1 |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: |")
    worst = 0.0
    for interval, rounds in sorted(costs.items()):
        seconds = [cost for _, cost in rounds]
        own = fmean(cost / median(usual[name]) for name, cost in rounds)
        worst = max(worst, fmean(seconds) / of_all)
        print(
            f"| {interval * 1e6:,.0f} µs | {len(rounds):,} | {1e3 * median(seconds):.1f} ms"
            f" | {1e3 * fmean(seconds):.1f} ms | {fmean(seconds) / of_all:.1f} | {own:.1f} |"
        )
    per = given.seconds / PER
    print(
        f"\n{writer.rows:,} signals in {result.seconds:.1f} s, {result.rounds:,} rounds of {len(result.load)} scenarios"
    )
    enough = all_have_their_least(scenarios, result, given.seconds)
    print(f"load average {os.getloadavg()[0]:.1f}; process time {sum(os.times()[:2]):.0f} s")
    reached("stress: signals of all scenarios, against 1,000,000 in 30 s", writer.rows / per / SIGNALS, at_least=1.0)
    return 0 if worst <= MOST and enough else 1


if __name__ == "__main__":
    sys.exit(main())
