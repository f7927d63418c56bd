"""What the report says, how it is escaped, and what it says where there is nothing to report."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import pytest

from reactive_runtime._results.figures import duration
from reactive_runtime.errors import MissingDependencyError, TraceError
from reactive_runtime.report import _page as page
from reactive_runtime.report import load, write_report
from reactive_runtime.report._page import page_of
from reactive_runtime.report._retention import prune_traces, prune_verdicts
from reactive_runtime.report._summary import json_of, markdown_of
from report.conftest import NASTY, history, write


class Outline(HTMLParser):
    """The tags of a page, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_verdict_comes_first_and_names_rule_and_scenario(tmp_path: Path) -> None:
    report = load(history(tmp_path))
    text = " ".join(Outline(page_of(report)).text.split())
    assert not report.clean
    assert text.index("Broken Rule 1.3 in scenario_1, 3 subscription(s).") < text.index("Scenarios")
    assert "1 scenario(s) slower than before" in text


def test_a_clean_night_says_so(tmp_path: Path) -> None:
    report = load(history(tmp_path, broken=False))
    assert report.clean
    text = " ".join(Outline(page_of(report)).text.split())
    assert "Clean No rule was broken in 4 scenarios." in text
    assert "None, in 3 run(s)." in text


def test_a_scenario_that_was_given_up_makes_it_broken(tmp_path: Path) -> None:
    report = load(history(tmp_path, broken=False, given_up={"gone": "its factory raised OSError()"}))
    assert not report.clean
    assert "gone was given up: its factory raised OSError()." in " ".join(Outline(page_of(report)).text.split())
    assert {row.scenario: row.verdict for row in report.rows}["gone"] == "given up"


def test_every_scenario_has_a_row_with_its_verdict_its_history_and_its_histogram(tmp_path: Path) -> None:
    report = load(history(tmp_path))
    assert {row.scenario: row.verdict for row in report.rows} == {
        NASTY: "clean",
        "scenario_1": "broken",
        "scenario_2": "slower",
        "scenario_3": "clean",
    }
    assert [run for run, _ in report.rows[0].history] == ["night-0", "night-1", "night-2"]
    tags = Outline(page_of(report)).tags
    labels = [attributes["aria-label"] or "" for tag, attributes in tags if tag == "svg"]
    assert sum("histogram of" in label for label in labels) == 4
    assert sum("a regression" in label for label in labels) == 1


def test_pictures_come_before_tables_and_what_is_not_clean_before_the_rest(tmp_path: Path) -> None:
    page = page_of(load(history(tmp_path, scenarios=12)))
    last_picture = max(page.rindex("<svg"), page.rindex("<pre"))
    assert last_picture < page.index("<table")
    text = " ".join(Outline(page).text.split())
    order = [text.index(name) for name in ("scenario_1 broken", "scenario_2 slower", "scenario_11 ", "scenario_3 ")]
    assert order == sorted(order)


def test_each_picture_says_how_much_load_its_scenario_had_as_far_as_that_is_known(tmp_path: Path) -> None:
    report = load(history(tmp_path))
    page = re.sub(r"[ \n]+", " ", Outline(page_of(report)).text)
    assert "scenario_3 9 signals and calls, 23\xa0rounds, 0.50\xa0s" in page
    assert "scenario_1 broken: 1.3 900 signals 1.45 µs to" in page  # its metadata has been edited by hand


def test_of_64_scenarios_each_has_its_picture_its_row_and_its_load(tmp_path: Path) -> None:
    report = load(history(tmp_path, runs=10, scenarios=64, long_names=True))
    page = page_of(report)
    assert len({row.scenario for row in report.rows}) == 64
    pictures, table = page.split('<div class="grid">')[1].split('<table id="scenarios">')
    captions = [words_of(item) for item in re.findall(r"<figcaption>.*?</figcaption>", pictures, re.DOTALL)]
    rows = [words_of(item) for item in re.findall(r"<tr data-verdict.*?</tr>", table, re.DOTALL)]
    assert (len(captions), len(rows)) == (64, 64)
    for row in report.rows:
        assert row.load is not None
        had = f"{row.load['signals']:,} signals and calls, {row.load['rounds']:,} rounds, {row.load['seconds']:.2f} s"
        assert [
            caption for caption in captions if caption.startswith(f"{row.scenario} ") and caption.endswith(f" {had}")
        ], had
        assert [item for item in rows if item.startswith(f"{row.scenario} {said(row)} {row.load['rounds']:,} 0.50 s ")]
    assert captions[0].startswith("scenario_1 broken: 1.3 ")
    assert captions[1].startswith("scenario_2 slower \u00d7 5.0 ")
    assert len(page) < 64 * 8_000  # bytes: a browser opens it at once


def words_of(part: str) -> str:
    return " ".join(Outline(part).text.split())


def said(row: Any) -> str:
    verdict: str = row.verdict
    return {"broken": "broken: 1.3", "slower": "slower \u00d7 5.0"}.get(verdict, verdict)


def test_what_a_rule_broke_in_runs_before_is_folded(tmp_path: Path) -> None:
    folder = history(tmp_path, runs=24)
    tables = folder / "verdict"
    for run in range(23):
        for name in ("violations", "examples", "summary"):
            file = tables / name / f"run=night-{run}" / "part-0.parquet"
            file.write_bytes((tables / name / "run=night-23" / "part-0.parquet").read_bytes())
    outline = Outline(page_of(load(folder)))
    folds = [attributes for tag, attributes in outline.tags if tag == "details"]
    assert len(folds) == 1 + 1 + 23  # the newest, open; one fold, and in it the others
    assert ["open" in item for item in folds] == [True] + [False] * 24
    assert "Broken in 23 run(s) before" in outline.text


def test_what_a_trace_carries_is_escaped(tmp_path: Path) -> None:
    text = page_of(load(history(tmp_path)))
    outline = Outline(text)
    assert NASTY not in text
    assert NASTY in outline.text
    assert [tag for tag, _ in outline.tags].count("script") == 1
    assert not any(tag == "img" for tag, _ in outline.tags)
    assert not any(name.startswith("on") for _, attributes in outline.tags for name in attributes)


def test_it_needs_nothing_from_anywhere_else(tmp_path: Path) -> None:
    tags = Outline(page_of(load(history(tmp_path)))).tags
    assert not [tag for tag, attributes in tags if {"src", "href"} & attributes.keys()]


def test_only_the_page_s_own_script_may_run(tmp_path: Path) -> None:
    (policy,) = (
        item["content"] or "" for tag, item in Outline(page_of(load(history(tmp_path)))).tags if item.get("http-equiv")
    )
    assert "default-src 'none'" in policy
    assert "script-src 'sha256-" in policy


@pytest.mark.parametrize(
    ("ns", "said"),
    [
        (None, "-"),
        (0, "0 ns"),
        (999, "999 ns"),
        (1_500, "1.5 µs"),
        (123_456, "123 µs"),
        (2.5e6, "2.5 ms"),
        (3e9, "3 s"),
    ],
)
def test_durations_are_said_as_people_read_them(ns: float | None, said: str) -> None:
    assert duration(ns) == said


def test_a_million_broken_subscriptions_are_counted_and_not_listed(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as parquet

    folder = history(tmp_path)
    many = pa.table(
        {
            "scenario": ["scenario_1"] * 200_000,
            "subscription": range(200_000),
            "rule": ["1.3"] * 200_000,
            "count": [2] * 200_000,
            "first": [1] * 200_000,
        }
    )
    parquet.write_table(many, folder / "verdict" / "violations" / "run=night-2" / "part-0.parquet")
    file = folder / "verdict" / "summary" / "run=night-2" / "part-0.parquet"
    rows = parquet.ParquetFile(file).read().to_pylist()
    rows[1]["broken"] = 200_000
    parquet.write_table(pa.Table.from_pylist(rows), file)
    (found,) = load(folder).broken
    assert (found["subscriptions"], found["count"], found["scenarios"]) == (200_000, 400_000, {"scenario_1"})


def test_where_there_is_no_verdict_it_says_how_to_get_one(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="has no verdict to report: judge its runs with `reactive-runtime verify"):
        load(tmp_path)


def test_a_table_that_is_cut_off_is_named(tmp_path: Path) -> None:
    folder = history(tmp_path)
    file = folder / "verdict" / "latency" / "run=night-0" / "part-0.parquet"
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(TraceError, match=r"night-0/part-0\.parquet: is no whole Parquet file"):
        load(folder)


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    folder = history(tmp_path)
    with pytest.raises(TraceError, match=r"verdict: can't be written"):
        write_report(folder, folder / "verdict")


def test_without_jinja_a_line_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page.page_environment.cache_clear()
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'reactive-runtime\[report\]'"):
        page_of(load(history(tmp_path)))


def test_the_command_writes_it_and_says_where(tmp_path: Path) -> None:
    folder, file = history(tmp_path), tmp_path / "made" / "report.html"
    command = [sys.executable, "-m", "reactive_runtime", "report", str(folder), "-o", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 1, done.stderr  # what it shows is broken
    assert f"report   {file} (3 run(s), 4 scenarios)" in done.stdout
    assert file.read_text().startswith("<!doctype html>")
    gone = subprocess.run(
        [*command[:4], str(tmp_path / "gone")], capture_output=True, text=True, timeout=100, check=False
    )
    assert gone.returncode == 4
    assert gone.stderr.count("\n") == 1


# -- what was judged together -------------------------------------------------------------------------------------


def judged_together(folder: Path, runs: list[str], unable: list[str] | None = None) -> Path:
    (folder / "verdict" / "verdict.json").write_text(json.dumps({"runs": runs, "unable": unable or []}))
    return folder


def test_the_headline_is_the_worst_of_all_that_was_judged_together(tmp_path: Path) -> None:
    folder = history(tmp_path)  # night-2 is broken; and now it is not the newest
    write(folder / "verdict", "runs", "night-3", [{**facts(folder, "night-1"), "started": "2999-01-01T00:00:00+00:00"}])
    for name in ("summary", "latency", "histogram"):
        shutil.copytree(folder / "verdict" / name / "run=night-1", folder / "verdict" / name / "run=night-3")
    assert load(judged_together(folder, ["night-3"])).clean
    report = load(judged_together(folder, ["night-2", "night-3"]))
    assert not report.clean
    assert "Broken Rule 1.3 in scenario_1, 3 subscription(s)." in " ".join(Outline(page_of(report)).text.split())
    assert {item["run"] for item in report.together} == {"night-2", "night-3"}
    assert not load(judged_together(folder, ["night-2"])).clean


def facts(folder: Path, run: str) -> dict[str, Any]:
    return dict(
        parquet.ParquetFile(folder / "verdict" / "runs" / f"run={run}" / "part-0.parquet").read().to_pylist()[0]
    )


def test_what_could_not_be_judged_makes_it_not_clean(tmp_path: Path) -> None:
    folder = judged_together(history(tmp_path, broken=False), ["night-2"], ["run=x: <b>is no run</b>"])
    report = load(folder)
    assert (report.clean, report.verdict) == (False, "incomplete")
    page = page_of(report)
    assert "Could not be judged: run=x: <b>is no run</b>." in " ".join(Outline(page).text.split())
    assert "Incomplete" in page


def test_a_night_of_which_nothing_could_be_judged_is_not_reported_as_the_one_before(tmp_path: Path) -> None:
    folder = judged_together(history(tmp_path, broken=False), [], ["run=x: is no run"])
    with pytest.raises(TraceError, match="no run could be judged: run=x: is no run"):
        load(folder)


def test_what_was_not_looked_at_is_named_in_page_and_summaries(tmp_path: Path) -> None:
    """The metadata names a scenario without a round, and one without a record; a third was given up."""
    folder = history(tmp_path, broken=False)
    run = facts(folder, "night-2")
    some = {"rounds": 3, "signals": 9, "seconds": 0.1}
    load_of = {"scenario_3": some, "idle": {**some, "rounds": 0}, "lost": some}
    of_run = {"scenarios": [*load_of, "hanging"], "load": load_of, "given_up": {"hanging": "it hangs"}}
    of_run |= {"failed": {"hanging": "stuck"}}
    write(folder / "verdict", "runs", "night-2", [run | {name: json.dumps(value) for name, value in of_run.items()}])
    report = load(judged_together(folder, ["night-2"]))
    states = {"idle": "skipped", "lost": "not judged", "hanging": "stuck", "scenario_3": "clean"}
    assert {row.scenario: row.verdict for row in report.rows if row.scenario in states} == states
    assert report.verdict == "stuck"
    text = " ".join(Outline(page_of(report)).text.split())
    assert "1 of 7 scenarios skipped: idle: it had no round: give the load more --seconds." in text
    assert "1 of 7 scenarios not judged: lost: no record of it was judged." in text
    assert "hanging was given up: it hangs." in text
    summary = markdown_of(report)
    assert "- skipped: idle: it had no round: give the load more --seconds\n" in summary
    assert "- not judged: lost: no record of it was judged\n" in summary
    assert "- stuck: hanging: it hangs\n" in summary


def test_a_run_without_a_round_of_a_scenario_is_named(tmp_path: Path) -> None:
    folder = history(tmp_path, broken=False)
    run = facts(folder, "night-2")
    loads = {"scenario_3": {"rounds": 0, "signals": 0, "seconds": 0.0}}
    of_run = {"load": json.dumps(loads), "scenarios": json.dumps(["scenario_3"])}
    write(folder / "verdict", "runs", "night-2", [run | of_run])
    summary = parquet.read_table(folder / "verdict" / "summary" / "run=night-2").to_pylist()
    write(folder / "verdict", "summary", "night-2", [row for row in summary if row["scenario"] != "scenario_3"])
    report = load(judged_together(folder, ["night-1", "night-2"]))
    why = "run night-2 (Python 3.11.7): it had no round: give the load more --seconds"
    assert (report.verdict, report.findings["scenario_3"].why) == ("incomplete", why)
    assert why in " ".join(Outline(page_of(report)).text.split())
    assert f"- incomplete: scenario\\_3: {why}\n" in markdown_of(report)
    assert why in json_of(report)


def test_a_planted_fault_that_was_not_found_is_said(tmp_path: Path) -> None:
    folder = history(tmp_path, broken=False)
    run = facts(folder, "night-2") | {"fault": "two-drains", "fault_rule": "1.3"}
    write(folder / "verdict", "runs", "night-2", [run])
    report = load(folder)
    line = "the planted fault two-drains was not found: no scenario has broken its rule 1.3"
    assert (report.verdict, report.unseen) == ("incomplete", line)
    assert line in " ".join(Outline(page_of(report)).text.split())
    assert f"- {line}\n" in markdown_of(report)
    assert line in json_of(report)


def test_interpreters_and_nights_are_a_matrix(tmp_path: Path) -> None:
    folder = history(tmp_path)
    run = {**facts(folder, "night-1"), "python": "3.13.5t", "complete": False}
    write(folder / "verdict", "runs", "other", [run])
    shutil.copytree(folder / "verdict" / "summary" / "run=night-1", folder / "verdict" / "summary" / "run=other")
    matrix = {python: [(night.date[-2:], night.verdict) for night in nights] for python, nights in load(folder).matrix}
    assert matrix == {
        "3.11.7": [("20", "clean"), ("21", "clean"), ("22", "broken")],
        "3.13.5t": [("20", "-"), ("21", "incomplete"), ("22", "-")],
    }
    assert "3.13.5t" in Outline(page_of(load(folder))).text


def test_a_summary_for_a_ci_page_as_markdown_and_as_json(tmp_path: Path) -> None:
    folder = history(tmp_path)
    write_report(folder, tmp_path / "made" / "summary.md")
    text = (tmp_path / "made" / "summary.md").read_text()
    assert text.startswith("## Broken\n")
    assert "- rule 1.3 (" in text
    assert "| 3.11.7 | clean | clean | broken: 1.3 |" in text
    write_report(folder, tmp_path / "summary.json")
    told = json.loads((tmp_path / "summary.json").read_text())
    assert (told["verdict"], [message["rule"] for message in told["broken"]]) == ("broken", ["1.3"])
    assert [message["scenario"] for message in told["slower"]] == ["scenario_2"]
    assert {message["scenario"] for message in told["scenarios"]} >= {NASTY, "scenario_1"}
    assert NASTY not in markdown_of(load(history(tmp_path / "other", given_up={NASTY: NASTY})))


def test_a_report_that_cannot_be_made_leaves_none_of_an_earlier_night(tmp_path: Path) -> None:
    old = tmp_path / "report.html"
    old.write_text("Clean")
    command = [sys.executable, "-m", "reactive_runtime", "report", str(tmp_path), "-o", str(old)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert (done.returncode, done.stderr.count("\n"), old.exists()) == (4, 1, False)


LOST = {
    "file of violations": (
        "violations/run=night-2/part-0.parquet",
        "violations: has 0 broken subscriptions of scenario_1",
    ),
    "run of violations": ("violations/run=night-2", "violations: has 0 broken subscriptions of scenario_1"),
    "violations": ("violations", "violations: has 0 broken subscriptions of scenario_1 in run night-2, and summary 3"),
    "run of the summary": ("summary/run=night-2", "summary: has no row of run night-2, which runs names"),
    "older summary": ("summary/run=night-0", "summary: has no row of run night-0, which runs names"),
    "summary": ("summary", "summary: has no row of run night-0, which runs names"),
    "run": ("runs/run=night-2", "runs: has no row of run night-2, which verdict.json names"),
    "older run": ("runs/run=night-1", "runs: has no row of run night-1, which summary names"),
    "runs": ("runs", "runs: has no row of run night-2, which verdict.json names"),
    "word": ("verdict.json", "verdict.json: is missing or damaged"),
}
"""What may go of a verdict, and what is said then."""


@pytest.mark.parametrize("part", LOST)
def test_a_verdict_of_which_a_part_is_lost_is_not_reported(part: str, tmp_path: Path) -> None:
    lost, words = LOST[part]
    tables = history(tmp_path) / "verdict"
    if (tables / lost).is_dir():
        shutil.rmtree(tables / lost)
    else:
        (tables / lost).unlink()
    with pytest.raises(TraceError, match=f"verdict/{words}.*: judge the runs again"):
        load(tmp_path)
    command = [sys.executable, "-m", "reactive_runtime", "report", str(tmp_path), "-o", str(tmp_path / "report.md")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert (done.returncode, done.stderr.count("\n"), (tmp_path / "report.md").exists()) == (4, 1, False)


def test_a_part_of_the_breaches_of_a_run_that_is_lost_is_missed(tmp_path: Path) -> None:
    file = history(tmp_path) / "verdict" / "violations" / "run=night-2" / "part-0.parquet"
    parquet.write_table(parquet.ParquetFile(file).read().slice(1), file)
    with pytest.raises(TraceError, match=r"violations: has 2 broken subscriptions of scenario_1 .*, and summary 3"):
        load(tmp_path)


def test_breaches_of_a_scenario_that_the_summary_lacks_are_missed(tmp_path: Path) -> None:
    tables = history(tmp_path) / "verdict"
    file = tables / "summary" / "run=night-2" / "part-0.parquet"
    rows = parquet.ParquetFile(file).read().to_pylist()
    write(tables, "summary", "night-2", [row for row in rows if row["scenario"] != "scenario_1"])
    with pytest.raises(TraceError, match=r"summary: has no row of scenario_1 in run night-2, which violations names"):
        load(tmp_path)


@pytest.mark.parametrize("name", ["latency/run=night-2", "examples/run=night-2", "regressions"])
def test_what_the_verdict_says_it_wrote_has_to_be_there(name: str, tmp_path: Path) -> None:
    tables = history(tmp_path) / "verdict"
    whole = name == "regressions"
    word = {"tables": {} if whole else {name.split("/")[0]: ["run=night-2"]}, "whole": {name: True} if whole else {}}
    (tables / "verdict.json").write_text(json.dumps({"runs": ["night-2"], "unable": [], **word}))
    assert load(tmp_path).verdict == "broken"
    shutil.rmtree(tables / name)
    with pytest.raises(TraceError, match=f"verdict/{name}: is missing, and verdict.json names it"):
        load(tmp_path)


# -- what is kept -------------------------------------------------------------------------------------------------


def test_traces_and_verdicts_are_kept_for_as_many_nights_as_one_says(tmp_path: Path) -> None:
    folder = judged_together(history(tmp_path, runs=5), ["night-3", "night-4"])
    for day in range(20, 25):
        (folder / f"date=2026-11-{day}" / "run=x").mkdir(parents=True)
    assert [trace.name for trace in prune_traces(folder, 2, dry_run=True)] == [
        f"date=2026-11-{day}" for day in (20, 21, 22)
    ]
    assert len(list(folder.glob("date=*"))) == 5
    prune_traces(folder, 2)
    assert sorted(item.name for item in folder.glob("date=*")) == ["date=2026-11-23", "date=2026-11-24"]
    assert len(load(folder).runs) == 5
    assert prune_verdicts(folder, 3) == ["night-0", "night-1"]
    report = load(folder)
    assert [item["run"] for item in report.runs] == ["night-4", "night-3", "night-2"]
    assert all(run != "night-0" for row in report.rows for run, _ in row.history)
    assert {item["run"] for item in report.together} == {"night-3", "night-4"}
    assert prune_verdicts(folder, 3) == []


def test_a_night_may_be_a_link_and_one_that_there_is_not_is_none(tmp_path: Path) -> None:
    """Of a link what it leads to stays: it is elsewhere on purpose."""
    folder, elsewhere = tmp_path / "runs", tmp_path / "elsewhere"
    (elsewhere / "run=x").mkdir(parents=True)
    for day in ("2026-11-21", "2026-11-22", "2026-99-99"):
        (folder / f"date={day}" / "run=x").mkdir(parents=True)
    (folder / "date=2026-11-20").symlink_to(elsewhere)
    assert [item.name for item in prune_traces(folder, 1)] == ["date=2026-11-20", "date=2026-11-21"]
    assert sorted(item.name for item in folder.iterdir()) == ["date=2026-11-22", "date=2026-99-99"]
    assert (elsewhere / "run=x").is_dir()


def test_only_runs_are_removed_and_days_without_runs_are_no_nights(tmp_path: Path) -> None:
    for day in ("20", "21", "22"):
        (tmp_path / f"date=2026-11-{day}" / "run=x").mkdir(parents=True)
    (tmp_path / "date=2026-11-20" / "notes.txt").write_text("by hand")
    (tmp_path / "date=2027-11-20").mkdir()
    assert [item.name for item in prune_traces(tmp_path, 1)] == ["date=2026-11-20", "date=2026-11-21"]
    left = sorted(str(item.relative_to(tmp_path)) for item in tmp_path.glob("*/*"))
    assert left == ["date=2026-11-20/notes.txt", "date=2026-11-22/run=x"]
    assert prune_traces(tmp_path, 1) == []


def test_a_verdict_without_a_day_that_there_is_stays(tmp_path: Path) -> None:
    folder = judged_together(history(tmp_path, runs=3), ["night-2"])
    (runs,) = folder.rglob("runs/run=night-0/*.parquet")
    table = parquet.ParquetFile(runs).read()
    at = table.column_names.index("started")
    parquet.write_table(table.set_column(at, "started", [["2026-99-99T00:00:00"] * table.num_rows]), runs)
    assert prune_verdicts(folder, 1) == ["night-1"]
