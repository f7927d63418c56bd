"""What is slower than it used to be is named, and noise is not."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from reactive_runtime.spark.regressions import BEFORE, FEWEST, compared, regressions

LATENCY = "run string, scenario string, what string, count bigint, p50 bigint, p90 bigint, p99 bigint, max bigint"
RUNS = "run string, started string, complete boolean, python string, machine string"

SCENARIOS = 20


def history(
    nights: int, noise: float, seed: int, slower: float = 1.0, *, tails: bool = False, machine: float = 0.3
) -> list[tuple[Any, ...]]:
    """Made-up medians, run by run; in the last run, scenario 3 takes `slower` times as long."""
    dice = random.Random(seed)
    usual = [math.exp(dice.gauss(11, 1)) for _ in range(SCENARIOS)]
    rows = []
    for night in range(nights):
        that_night = dice.gauss(0, machine)
        for scenario, value in enumerate(usual):
            error = dice.gauss(0, 1)
            if tails:  # Student's t with four degrees of freedom
                error /= math.sqrt(sum(dice.gauss(0, 1) ** 2 for _ in range(4)) / 4)
            factor = slower if (scenario, night) == (3, nights - 1) else 1.0
            p50 = int(value * factor * math.exp(that_night + noise * error))
            rows.append((f"run {night:03}", f"scenario {scenario}", "demand → element", 1_000, p50, p50, p50, p50))
    return rows


def runs_of(rows: Iterable[tuple[Any, ...]], **other: Any) -> list[tuple[Any, ...]]:
    facts = {"complete": True, "python": "3.11.7", "machine": "here", **other}
    return [(run, f"2026-{run}", *facts.values()) for run in sorted({row[0] for row in rows})]


def named(spark: Any, rows: list[tuple[Any, ...]], runs: list[tuple[Any, ...]] | None = None) -> list[str]:
    found = compared(spark.createDataFrame(rows, LATENCY), spark.createDataFrame(runs or runs_of(rows), RUNS))
    return [row["scenario"] for row in found.where("slower").collect()]


def test_a_scenario_that_takes_three_times_as_long_is_named_and_no_other(spark: Any) -> None:
    assert [named(spark, history(15, 0.1, seed, slower=3.0)) for seed in range(3)] == [["scenario 3"]] * 3


@pytest.mark.parametrize("tails", [False, True], ids=["normal", "heavy tails"])
def test_noise_does_not_cry_wolf(spark: Any, tails: bool) -> None:
    assert [named(spark, history(15, 0.15, seed, tails=tails)) for seed in range(4)] == [[]] * 4


def test_a_slow_night_of_the_machine_is_no_regression(spark: Any) -> None:
    rows = history(15, 0.05, seed=1)
    last = max(row[0] for row in rows)
    slow = [(*row[:4], *(4 * it for it in row[4:])) if row[0] == last else row for row in rows]
    assert named(spark, slow) == []


def test_what_got_faster_is_not_named(spark: Any) -> None:
    assert named(spark, history(15, 0.05, seed=2, slower=0.1)) == []


def test_too_short_a_history_judges_nothing_and_a_long_one_only_its_end(spark: Any) -> None:
    assert named(spark, history(FEWEST, 0.05, seed=3, slower=9.0)) == []
    assert named(spark, history(FEWEST + 1, 0.05, seed=3, slower=9.0)) == ["scenario 3"]
    rows = history(BEFORE + 6, 0.05, seed=3, slower=9.0)
    (row,) = (
        compared(spark.createDataFrame(rows, LATENCY), spark.createDataFrame(runs_of(rows), RUNS))
        .where("slower")
        .collect()
    )
    assert (row["scenario"], row["runs"]) == ("scenario 3", BEFORE)
    assert 6 < row["ratio"] < 12


def test_runs_of_another_machine_or_that_were_killed_are_no_measure(spark: Any) -> None:
    rows = history(15, 0.05, seed=4, slower=9.0)
    last = max(row[0] for row in rows)
    for other in ({"machine": "there"}, {"python": "3.13.0"}, {"complete": False}):
        elsewhere = [it for it in runs_of(rows, **other) if it[0] != last]
        assert named(spark, rows, elsewhere + [it for it in runs_of(rows) if it[0] == last]) == []


def test_differences_below_a_microsecond_are_the_clock(spark: Any) -> None:
    rows = [(*row[:4], *([900 if row[0] == "run 014" else 90] * 4)) for row in history(15, 0.0, seed=5)]
    assert named(spark, rows) == []


def test_the_benchmark_of_false_alarms_is_of_the_same_arithmetic(spark: Any) -> None:
    import sys

    import numpy as np

    sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
    try:
        from regressions import slower
    finally:
        sys.path.pop(0)
    for seed in range(3):
        rows = history(15, 0.3, seed, slower=4.0, tails=True)
        values = np.log(np.array([row[4] for row in rows], float).reshape(15, SCENARIOS))
        by_numpy = {f"scenario {at}" for at in np.flatnonzero(slower(values[:-1], values[-1]))}
        assert set(named(spark, rows)) == by_numpy


def test_what_came_of_it_is_written_beside_the_history(spark: Any, tmp_path: Path) -> None:
    rows = history(15, 0.05, seed=6, slower=5.0)
    spark.createDataFrame(rows, LATENCY).write.partitionBy("run").parquet(str(tmp_path / "latency"))
    spark.createDataFrame(runs_of(rows), RUNS).write.partitionBy("run").parquet(str(tmp_path / "runs"))
    for _ in range(2):  # the second replaces the first
        (worst,) = regressions(spark, tmp_path)
        assert (worst["scenario"], worst["run"]) == ("scenario 3", "run 014")
    written = spark.read.parquet(str(tmp_path / "regressions"))
    assert (written.count(), written.where("slower").count()) == (SCENARIOS, 1)
