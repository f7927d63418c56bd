"""What is slower than it used to be is named for as long as that lasts, and noise is not."""

from __future__ import annotations

import math
import random
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from reactive_runtime.spark._verdict.comparing import compared, regressions
from reactive_runtime.spark._verdict.regressions import ALL, FEWEST, gone_through

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
try:
    from regressions import SCENARIOS, alarms, history, slowed  # type: ignore[import-not-found]
finally:
    sys.path.pop(0)

BEGIN = 30


def nights_named(nights: list[Any], scenario: str = "scenario 0") -> list[int]:
    """The nights on which that scenario is slower."""
    return [
        at
        for at, said in enumerate(gone_through(nights))
        if any(name == scenario and item.slower for (name, _), item in said.items())
    ]


def others_named(nights: list[Any]) -> set[str]:
    """Whatever is slower on any night, but for the first scenario."""
    return {name for said in gone_through(nights) for (name, _), item in said.items() if item.slower} - {"scenario 0"}


@pytest.mark.parametrize("seed", range(5))
def test_a_lasting_change_is_named_on_each_night_for_as_long_as_it_lasts(seed: int) -> None:
    nights = slowed(history(random.Random(seed), 0.05, False, BEGIN + 70), 3.0, BEGIN, BEGIN + 60)
    named = nights_named(nights)
    assert set(range(BEGIN + 2, BEGIN + 60)) <= set(named)
    assert not [item for item in named if item >= BEGIN + 61]
    assert others_named(nights) == set()


@pytest.mark.parametrize(("heavy", "most"), [(False, 1), (True, 8)], ids=["normal", "heavy tails"])
def test_thirty_percent_at_five_percent_of_noise_is_named_from_the_third_night_on(heavy: bool, most: int) -> None:
    late = []
    for seed in range(40):
        nights = slowed(history(random.Random(seed), 0.05, heavy, BEGIN + 60, scenarios=12), 1.3, BEGIN, BEGIN + 60)
        named = nights_named(nights)
        since = next(item for item in named if item >= BEGIN)
        assert set(range(since, BEGIN + 60)) <= set(named), seed  # on each night for as long as it lasts
        if since > BEGIN + 2:
            late.append(seed)
    assert len(late) <= most


def test_one_good_night_hides_no_change_of_many() -> None:
    nights = slowed(history(random.Random(1), 0.05, False, BEGIN + 30), 3.0, BEGIN, BEGIN + 30)
    named = nights_named(slowed(nights, 1 / 3, BEGIN + 20, BEGIN + 21))
    assert set(range(BEGIN + 2, BEGIN + 30)) <= set(named)


def test_thirty_percent_is_over_three_nights_after_it_is() -> None:
    for seed in range(20):
        nights = slowed(history(random.Random(seed), 0.05, False, BEGIN + 40, scenarios=12), 1.3, BEGIN, BEGIN + 20)
        assert not [item for item in nights_named(nights) if item >= BEGIN + 23], seed


def test_a_change_that_becomes_less_is_named_without_a_gap() -> None:
    for seed in range(20):
        nights = slowed(history(random.Random(seed), 0.05, False, BEGIN + 40, scenarios=12), 1.4, BEGIN, BEGIN + 40)
        named = nights_named(slowed(nights, 4.0, BEGIN, BEGIN + 20))
        assert set(range(BEGIN + 2, BEGIN + 40)) <= set(named), seed


@pytest.mark.parametrize("noise", [0.001, 0.05])
def test_a_change_says_since_when_and_how_much(noise: float) -> None:
    nights = slowed(history(random.Random(1), noise, False, BEGIN + 5), 1.3, BEGIN, BEGIN + 5)
    *_, last = gone_through(nights)
    seen = last["scenario 0", "demand"]
    assert seen.slower
    assert seen.since == f"night {BEGIN:03}"
    assert 1.15 < seen.ratio < 1.5


@pytest.mark.parametrize("seed", range(5))
def test_a_hiccup_hides_nothing(seed: int) -> None:
    nights = slowed(history(random.Random(seed), 0.05, False, BEGIN + 20), 20.0, BEGIN - 5, BEGIN - 4)
    named = nights_named(slowed(nights, 1.5, BEGIN, BEGIN + 20))
    assert set(range(BEGIN + 2, BEGIN + 20)) <= set(named)
    assert not set(named) & set(range(BEGIN - 3, BEGIN))  # and is over when it is over


@pytest.mark.parametrize("seed", range(5))
def test_a_slowdown_of_all_scenarios_is_said_as_one(seed: int) -> None:
    nights = slowed(history(random.Random(seed), 0.05, False, BEGIN + 20), 3.0, BEGIN, BEGIN + 20, range(SCENARIOS))
    assert set(range(BEGIN + 2, BEGIN + 20)) <= set(nights_named(nights, ALL))
    assert len({name for said in gone_through(nights) for (name, _), item in said.items() if item.slower} - {ALL}) <= 1


def test_a_slow_night_of_the_machine_names_no_scenario() -> None:
    nights = slowed(history(random.Random(1), 0.05, False, BEGIN + 1), 2.0, BEGIN, BEGIN + 1, range(SCENARIOS))
    *_, last = gone_through(nights)
    assert {name for (name, _), item in last.items() if item.slower} <= {ALL}


def test_what_got_faster_is_not_named_and_is_usual_after_a_while() -> None:
    nights = slowed(history(random.Random(2), 0.05, False, BEGIN + 60), 0.3, BEGIN, BEGIN + 40)
    named = nights_named(nights)
    assert not [item for item in named if item < BEGIN + 40]
    assert set(range(BEGIN + 42, BEGIN + 60)) <= set(named)


@pytest.mark.parametrize("heavy", [False, True], ids=["normal", "heavy tails"])
def test_noise_raises_a_false_alarm_at_most_once_in_a_thousand_series_nights(heavy: bool) -> None:
    found = judged = 0
    for noise in (0.05, 0.2):
        more, of = alarms(random.Random(11), noise, heavy, 8)
        found, judged = found + more, judged + of
    assert judged > 50_000
    assert found <= judged / 1_000


def test_too_short_a_history_judges_nothing() -> None:
    nights = slowed(history(random.Random(3), 0.05, False, FEWEST + 1), 9.0, FEWEST - 1, FEWEST)
    assert nights_named(nights[:FEWEST]) == []
    nights = slowed(history(random.Random(3), 0.05, False, FEWEST + 1), 9.0, FEWEST, FEWEST + 1)
    assert nights_named(nights) == [FEWEST]


def test_differences_below_a_microsecond_are_the_clock() -> None:
    nights = [(f"night {n}", {("one", "demand"): 900.0 if n > 20 else 90.0}) for n in range(30)]
    assert nights_named(nights, "one") == []


# -- from the tables ----------------------------------------------------------------------------------------------


def tables(nights: list[Any], **other: Any) -> tuple[pa.Table, pa.Table]:
    """The tables `latency` and `runs` of these nights."""
    latency = [
        {"run": run, "scenario": scenario, "what": what, "p50": int(value)}
        for run, values in nights
        for (scenario, what), value in values.items()
    ]
    facts = {"complete": True, "python": "3.11.7", "machine": "here", **other}
    runs = [{"run": run, "started": f"2026-{run}", **facts} for run, _ in nights]
    return pa.Table.from_pylist(latency), pa.Table.from_pylist(runs)


def kept(folder: Path, nights: list[Any], **other: Any) -> None:
    """What `tables` makes, below the folder, as a verdict has it."""
    for name, table in zip(("latency", "runs"), tables(nights, **other), strict=True):
        for run, _ in nights:
            (folder / name / f"run={run}").mkdir(parents=True, exist_ok=True)
            rows = [row for row in table.to_pylist() if row["run"] == run]
            cells = pa.Table.from_pylist(rows).drop_columns(["run"])
            parquet.write_table(cells, folder / name / f"run={run}" / "part-0.parquet")


def slower(table: pa.Table | None) -> list[str]:
    return [] if table is None else [item["scenario"] for item in table.to_pylist() if item["slower"]]


def test_the_run_just_judged_is_held_against_those_that_were_kept(tmp_path: Path) -> None:
    nights = slowed(history(random.Random(4), 0.05, False, 16), 9.0, 15, 16)
    kept(tmp_path, nights[:-1])
    made = regressions(tmp_path, *tables(nights[-1:]))
    assert slower(made) == ["scenario 0"]
    assert made is not None
    (worst, *_) = made.to_pylist()
    assert (worst["run"], worst["since"], worst["runs"]) == ("night 015", "night 015", 15)
    assert math.isclose(worst["now"] / worst["usual"], worst["ratio"], rel_tol=0.01)
    kept(tmp_path, nights[-1:])  # judged again, it is held against the same
    assert slower(regressions(tmp_path, *tables(nights[-1:]))) == ["scenario 0"]


@pytest.mark.parametrize("other", [{"machine": "there"}, {"python": "3.13.0"}, {"complete": False}])
def test_runs_of_another_machine_or_that_were_killed_are_no_measure(tmp_path: Path, other: dict[str, Any]) -> None:
    nights = slowed(history(random.Random(4), 0.05, False, 16), 9.0, 15, 16)
    kept(tmp_path, nights[:-1], **other)
    assert slower(regressions(tmp_path, *tables(nights[-1:]))) == []


def test_a_run_that_says_it_begins_in_the_future_is_no_measure_of_those_before_it(tmp_path: Path) -> None:
    nights = slowed(history(random.Random(4), 0.05, False, 17), 9.0, 15, 16)
    kept(tmp_path, [*nights[:15], nights[16]])
    assert slower(regressions(tmp_path, *tables(nights[15:16]))) == ["scenario 0"]


def test_each_interpreter_is_held_against_its_own_runs(tmp_path: Path) -> None:
    one, other = (history(random.Random(seed), 0.05, False, 16) for seed in (5, 6))
    other = [(f"{run} of the other", values) for run, values in slowed(other, 5.0, 15, 16)]
    kept(tmp_path, one[:-1], python="3.11.7")
    kept(tmp_path, other[:-1], python="3.13.0")
    latency, runs = zip(tables(one[-1:], python="3.11.7"), tables(other[-1:], python="3.13.0"), strict=True)
    made = regressions(tmp_path, pa.concat_tables(latency), pa.concat_tables(runs))
    assert made is not None
    assert [(item["run"], item["scenario"]) for item in made.to_pylist() if item["slower"]] == [
        ("night 015 of the other", "scenario 0")
    ]


@pytest.mark.parametrize("seed", range(3))
def test_a_night_gone_on_to_from_what_is_kept_has_the_same_rows(seed: int, tmp_path: Path) -> None:
    """As one of a history that is gone through from its beginning; runs are cut off, and series miss nights."""
    rng = random.Random(seed)
    nights = slowed(history(rng, 0.08, True, 44, scenarios=10), 3.0, 20, 36)
    went_on, from_tables = tmp_path / "went on", tmp_path / "from tables"
    said = []
    for run, values in nights:
        night = [(run, {name: value for name, value in values.items() if rng.random() < 0.95})]
        complete = rng.random() < 0.9
        made, same = (compared(folder, *tables(night, complete=complete)) for folder in (went_on, from_tables))
        assert made.table == same.table
        assert made.kept == same.kept
        said += slower(made.table)
        for folder in (went_on, from_tables):
            kept(folder, night, complete=complete)
        for name, table in made.kept.items():
            (went_on / name).mkdir(parents=True, exist_ok=True)
            parquet.write_table(table, went_on / name / "part-0.parquet")
    assert "scenario 0" in said
    assert not (from_tables / "series").exists()


def test_what_is_kept_is_not_used_where_it_is_damaged_or_a_run_comes_late(tmp_path: Path) -> None:
    nights = slowed(history(random.Random(4), 0.05, False, 17), 9.0, 15, 17)
    kept(tmp_path, nights[:15])
    ((name, table),) = compared(tmp_path, *tables(nights[16:])).kept.items()
    (tmp_path / name).mkdir(parents=True)
    parquet.write_table(table, tmp_path / name / "part-0.parquet")
    kept(tmp_path, nights[16:])
    late = compared(tmp_path, *tables(nights[15:16]))
    assert slower(late.table) == ["scenario 0"]
    assert late.table is not None
    assert set(late.table["run"].to_pylist()) == {"night 015"}
    (tmp_path / name / "part-0.parquet").write_bytes(b"PAR1")
    assert compared(tmp_path, *tables(nights[15:16])).kept == late.kept
