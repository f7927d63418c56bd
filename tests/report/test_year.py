"""The report on a year names what was planted in it, on which night, machine and commit; and nothing else."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from examples.year.made_year import (
    SCENARIOS,
    Planted,
    commit_of,
    date_of,
    machine_of,
    made_year,
    planted_in,
    write_year,
)
from reactive_runtime.errors import TraceError
from reactive_runtime.report import load, load_year
from reactive_runtime.report import write_year as write_report_on
from reactive_runtime.report._year import OVER, Year, year_of
from reactive_runtime.report._year_page import LARGEST, year_json, year_markdown, year_page
from report.conftest import LONG, NASTY, history


def named(year: Year) -> set[tuple[Any, ...]]:
    """Scenario, rules, night, commit, and machines of what began."""
    places = ((item, tuple(machine for machine, _ in item.places)) for item in year.began)
    return {(item.scenario, item.rules, item.night, item.commit, of) for item, of in places}


def expected(planted: list[Planted]) -> set[tuple[Any, ...]]:
    """The same, of what was planted."""
    return {
        (item.scenario, (item.rule,), date_of(item.night), commit_of(item.night), tuple(map(machine_of, item.machines)))
        for item in planted
    }


def test_of_365_nights_on_200_machines_it_names_what_was_planted_and_no_more() -> None:
    planted = planted_in(random.Random(1), 12, 200, 365)
    year = year_of(made_year(planted))
    assert (year.runs, len(year.machines), len(year.nights)) == (73_000, 200, 365)
    assert named(year) == expected(planted)
    assert len(year_page(year).encode()) <= LARGEST
    by_kind = {(item.scenario, item.rule): item for item in planted}
    for item in year.began:
        made = by_kind[item.scenario, item.rules[0]]
        on = [night for night in range(365) if made.on(night)]
        assert item.failed == len(on) * len(made.machines)
        assert item.last == date_of(on[-1])
        assert item.before is not None
        assert item.before != item.commit
        assert item.lasts == (made.nights is None)


@pytest.mark.parametrize("seed", range(20))
def test_whatever_is_planted_in_a_small_year_is_named_and_no_more(seed: int) -> None:
    rng = random.Random(seed)
    planted = planted_in(rng, rng.randrange(8), machines := rng.randrange(1, 6), nights := rng.randrange(30, 90))
    year = year_of(made_year(planted, machines, nights, seed))
    assert named(year) == expected(planted)
    assert {row.scenario for row in year.scenarios if row.state != "clean"} == {
        item.scenario for item in planted if item.nights is None
    }
    failed = {
        (machine, night) for item in planted for machine in item.machines for night in range(nights) if item.on(night)
    }
    assert {machine_of(at): row.failing for at, row in enumerate(year.machines)} == {
        machine_of(at): 0 for at in range(0)
    } | {machine_of(at): sum(machine == at for machine, _ in failed) for at in range(machines)}


def test_a_gap_of_seven_nights_ends_it_and_a_shorter_one_does_not() -> None:
    one = Planted("merge", 4, (1,), "1.3", nights=1)
    twice = [one, replace(one, night=4 + OVER)]
    assert [item.failed for item in year_of(made_year(twice, 2, 30, seed=3)).began] == [2]
    twice = [one, replace(one, night=4 + OVER + 8)]
    assert [item.state for item in year_of(made_year(twice, 2, 30)).began] == ["over", "over"]


def rows(*nights: tuple[str, str, str], machine: str | None = "here", **other: Any) -> pa.Table:
    """Of one machine: date, state and rules by night."""
    made = made_year([], 1, 1).slice(0, 1).to_pylist()[0]
    return pa.Table.from_pylist(
        [
            {
                **made, "run": f"{at}", "started": f"{date}T02:00:00", "state": state, "rules": broken,
                "machine": machine, "commit": f"commit {at}", **other,
            }
            for at, (date, state, broken) in enumerate(nights)
        ],
        schema=made_year([], 1, 1).schema,
    )  # fmt: skip


def test_what_fails_on_the_first_night_may_have_begun_before() -> None:
    (item,) = year_of(rows(("2026-01-01", "broken", "1.3"), ("2026-01-02", "broken", "1.3"))).began
    assert (item.night, item.before, item.nights, item.state) == ("2026-01-01", None, 2, "fails")


def test_another_rule_of_a_scenario_that_fails_begins_on_a_night_of_its_own() -> None:
    year = year_of(
        rows(("2026-01-01", "broken", "1.3"), ("2026-01-02", "broken", "1.3, 2.7"), ("2026-01-03", "stuck", ""))
    )
    assert [(item.night, item.rules, item.state) for item in year.began] == [
        ("2026-01-03", ("stuck",), "fails"),
        ("2026-01-02", ("2.7",), "comes and goes"),
        ("2026-01-01", ("1.3",), "comes and goes"),
    ]


def test_a_night_on_which_it_was_not_looked_at_says_nothing() -> None:
    year = year_of(rows(("2026-01-01", "clean", ""), ("2026-01-02", "skipped", ""), ("2026-01-03", "broken", "1.3")))
    (item,) = year.began
    assert (item.night, item.before, item.nights) == ("2026-01-03", "commit 0", 1)
    assert [(row.nights, row.failing, row.incomplete) for row in year.machines] == [(3, 1, 1)]


def test_what_fails_where_it_is_no_longer_run_does_not_last() -> None:
    gone = rows(("2026-01-01", "broken", "1.3"), machine="gone")
    kept = rows(("2026-01-09", "clean", ""), machine=None, run="other")
    year = year_of(pa.concat_tables([gone, kept]))
    assert [(item.state, item.lasts) for item in year.began] == [("not run", False)]
    assert [row.machine for row in year.machines] == ["gone", "not known"]


def test_runs_without_a_day_are_counted_and_left_out() -> None:
    dated = rows(("2026-01-01", "clean", ""))
    odd = rows(("2026-99-99", "broken", "1.3"), run="odd")
    none = rows(("2026-01-01", "broken", "1.3"), run="none", started=None)
    year = year_of(pa.concat_tables([dated, odd, none]))
    assert (year.undated, year.runs, year.began) == (2, 1, [])
    assert "2 run(s) do not say when they began" in year_page(year)
    with pytest.raises(TraceError, match="there is no year to show"):
        year_of(pa.concat_tables([odd, none]))


def test_a_year_ends_with_its_newest_night() -> None:
    year = year_of(made_year([], 1, 40), days=10)
    assert (year.first, year.last, year.runs) == (date_of(30), date_of(39), 10)


def test_percentiles_are_those_of_the_night_and_of_all_nights() -> None:
    table = made_year([], 3, 8, seed=5)
    year = year_of(table)
    waits = {night: [] for night in year.nights}  # type: dict[str, list[int]]
    for row in table.to_pylist():
        waits[row["started"][:10]].append(row["silence_p99"])
    for night, found in zip(year.nights, year.silence, strict=True):
        values = sorted(waits[night])
        assert len(values) == 3 * len(SCENARIOS)
        assert (found.low, found.middle, found.high) == (values[8], values[16], values[17])
    of_one = sorted(row["load_signals"] / 0.5 for row in table.to_pylist() if row["scenario"] == "merge")
    (merge,) = [row for row in year.scenarios if row.scenario == "merge"]
    assert (merge.throughput.low, merge.throughput.middle, merge.throughput.high) == (of_one[0], of_one[2], of_one[11])


def test_the_page_is_small_whatever_is_in_it_and_carries_nothing_that_runs() -> None:
    """Of names as long as they get, each fails on each second night of its own."""
    rng = random.Random(3)
    made: list[dict[str, Any]] = []
    (one,) = rows(("2026-01-01", "clean", "")).to_pylist()
    for machine in range(12):
        for night in range(365):
            for name in (*LONG, NASTY):
                fails = rng.random() < 0.1
                made.append(
                    {
                        **one, "run": f"{machine} {night}", "machine": f"{NASTY} {machine}" * 4, "commit": NASTY * 9,
                        "started": f"{date_of(night)}T02", "scenario": name.format(machine * 400 + night),
                        "state": "broken" if fails else "clean", "rules": NASTY if fails else "",
                    }
                )  # fmt: skip
    year = year_of(pa.Table.from_pylist(made, schema=rows().schema))
    assert len(year.began) > 1_000
    page = year_page(year)
    assert len(page.encode()) <= LARGEST
    assert "older: <code>reactive-runtime report --year" in page
    assert "<script>document" not in page
    assert page.count("<script>") == 1
    assert "<script>" not in year_markdown(year)


def test_the_year_of_a_verdict_without_the_table_is_made_of_the_others(tmp_path: Path) -> None:
    year = load_year(history(tmp_path))
    assert (year.first, year.last, year.runs) == ("2026-11-20", "2026-11-22", 3)
    (item,) = year.began
    assert (item.scenario, item.rules, item.night, item.state) == ("scenario_1", ("1.3",), "2026-11-22", "fails")
    assert load(tmp_path).verdict == "broken"


def test_the_command_writes_each_form_and_fails_while_something_fails(tmp_path: Path) -> None:
    planted = [Planted("merge", 4, (1,), "1.3")]
    write_year(tmp_path, made_year(planted, 2, 12))

    def said(*options: str) -> tuple[int, str, str]:
        command = [sys.executable, "-m", "reactive_runtime", "report", "--year", str(tmp_path), *options]
        done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False, cwd=Path.cwd())
        return done.returncode, " ".join(done.stdout.split()), done.stderr

    files = [tmp_path / f"year{ending}" for ending in (".html", ".md", ".json")]
    status, text, _ = said(*(part for file in files for part in ("-o", str(file))))
    assert status == 1
    assert "24 run(s) on 2 machine(s); 1 failure(s) began, 1 last" in text
    (began,) = json.loads(files[2].read_text())["began"]
    assert (began["scenario"], began["rules"], began["night"]) == ("merge", ["1.3"], date_of(4))
    assert began["places"] == [{"machine": machine_of(1), "python": "3.13.1"}]
    assert f"| {date_of(4)} | {commit_of(4)} | merge | 1.3 |" in files[1].read_text()
    assert "1 failure(s) last" in files[0].read_text()
    (tmp_path / "verdict" / "nights" / "month=2025-12" / "part-0.parquet").write_bytes(b"PAR1")
    status, _, wrong = said("-o", str(files[0]))
    assert (status, wrong.count("\n"), files[0].exists()) == (4, 1, False)
    assert "part-0.parquet: can't be read" in wrong


def test_a_clean_year_says_so(tmp_path: Path) -> None:
    write_year(tmp_path, made_year([], 2, 5))
    year = write_report_on(tmp_path, tmp_path / "year.md")
    assert (year.began, year.lasting) == ([], [])
    assert (tmp_path / "year.md").read_text().startswith(f"## {date_of(0)} to {date_of(4)}: 0 failure(s) last")
    assert "Nothing: no scenario broke a rule" in year_page(year)
    assert json.loads(year_json(year))["nights"][4]["night"] == date_of(4)
