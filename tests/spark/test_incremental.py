"""Only what was not judged is judged; and each verdict says by which rules, of which files, and when."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import pytest
from recorded_nights import night
from sinks import Sink
from typer.testing import CliRunner

from reactive_runtime import Flow, __version__
from reactive_runtime._cli.commands import app
from reactive_runtime.errors import TraceError
from reactive_runtime.judging import RULES_VERSION
from reactive_runtime.judging._compacting import compact
from reactive_runtime.judging._stores import FewFiles
from reactive_runtime.report import load
from reactive_runtime.report._retention import prune_verdicts
from reactive_runtime.spark import verify
from reactive_runtime.spark._verdict import judging, lineage, traces
from reactive_runtime.spark._verdict.lineage import entries_of, outstanding
from reactive_runtime.spark._verdict.nights import rows_of
from reactive_runtime.testing.trace import TraceWriter

Judge = Callable[..., tuple[list[str], Any]]


@pytest.fixture(params=["driver", pytest.param("tasks", marks=pytest.mark.nightly)])
def planner(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The driver; at night tasks too, whose jobs take ten times as long for so little."""
    if request.param == "tasks":
        monkeypatch.setattr(judging, "FEW", FewFiles(-1, -1))
    return str(request.param)


@pytest.fixture
def judge(spark: Any, planner: str, monkeypatch: pytest.MonkeyPatch) -> Judge:
    """Judges what is outstanding below a folder: the runs whose records were read, and the verdict."""
    read: list[str] = []
    judged = traces._verdict

    def watched(spark: Any, source: Any, *settings: Any) -> Any:
        read.extend(sorted(source.names))
        return judged(spark, source, *settings)

    monkeypatch.setattr(traces, "_verdict", watched)

    def judge(folder: Path, **settings: Any) -> tuple[list[str], Any]:
        read.clear()
        verdict = verify(spark, [folder], folder / "verdict", **{"incremental": True, **settings})
        return [*read], verdict

    return judge


@contextmanager
def rules(version: int) -> Iterator[None]:
    """A program with that version of the rules."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lineage, "RULES_VERSION", version)
        yield


def table(folder: Path, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = parquet.read_table(folder / "verdict" / name).to_pylist()
    return found


@pytest.mark.parametrize("planner", ["driver", "tasks"], indirect=True)
def test_a_second_night_judges_its_own_run_and_the_tables_keep_the_first(judge: Judge, tmp_path: Path) -> None:
    first = night(tmp_path, "one", 1, (3, 1))
    read, verdict = judge(tmp_path)
    assert (read, verdict.before, [row["rule"] for row in verdict.violations]) == (["one"], 0, ["order"])
    (first / "signals-00000.parquet").unlink()  # of a run that was judged nothing but its metadata is looked at
    night(tmp_path, "two", 2)
    read, verdict = judge(tmp_path)
    assert (read, verdict.before, verdict.clean) == (["two"], 1, True)
    assert {row["run"] for row in table(tmp_path, "summary")} == {"one", "two"}
    assert [row["run"] for row in load(tmp_path).together] == ["two"]
    assert load(tmp_path / "verdict", history=False).runs == load(tmp_path).runs[:1]
    before = {file: file.read_bytes() for file in (tmp_path / "verdict").rglob("*") if file.is_file()}
    read, verdict = judge(tmp_path)
    assert (read, verdict.before, verdict.summary) == ([], 2, [])
    assert {file: file.read_bytes() for file in (tmp_path / "verdict").rglob("*") if file.is_file()} == before


def test_a_run_that_has_changed_is_judged_again_and_one_that_was_moved_is_not(judge: Judge, tmp_path: Path) -> None:
    path = night(tmp_path, "one", 1)
    judge(tmp_path)
    shutil.move(path, tmp_path / "elsewhere" / path.name)
    shutil.copytree(tmp_path / "elsewhere" / path.name, tmp_path / "a copy")
    assert judge(tmp_path)[0] == []
    shutil.rmtree(tmp_path / "elsewhere")
    shutil.rmtree(tmp_path / "a copy")
    night(tmp_path, "one", 1, (3, 1))
    read, verdict = judge(tmp_path)
    assert (read, [row["rule"] for row in verdict.violations]) == (["one"], ["order"])
    assert judge(tmp_path, late_signals=2)[0] == ["one"]
    assert judge(tmp_path, late_signals=2)[0] == []


def test_a_run_that_was_cut_off_is_judged_again_when_it_is_complete(judge: Judge, tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path, "one")
    writer.recorder().wrap(Flow.range(3), "numbers").subscribe(Sink())
    writer.flush()
    shutil.copytree(writer.path, tmp_path / "as it was")
    assert judge(tmp_path)[0] == ["one"]
    assert judge(tmp_path)[0] == []
    writer.close()
    assert judge(tmp_path)[0] == ["one"]
    assert judge(tmp_path)[0] == []  # nor the copy, which holds less
    assert [entry.complete for entry in entries_of(tmp_path / "verdict").values()] == [True]


@pytest.mark.parametrize("planner", ["driver", "tasks"], indirect=True)
def test_a_run_that_ends_while_it_is_judged_is_judged_again(
    judge: Judge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = TraceWriter(tmp_path, "one")
    writer.recorder().wrap(Flow.range(3), "numbers").subscribe(Sink())
    writer.flush()
    judged = traces._verdict

    def ends(*settings: Any) -> Any:
        writer.close()
        return judged(*settings)

    with monkeypatch.context() as patched:
        patched.setattr(traces, "_verdict", ends)
        judge(tmp_path)
    assert [entry.complete for entry in entries_of(tmp_path / "verdict").values()] == [False]
    assert judge(tmp_path)[0] == ["one"]
    assert [entry.complete for entry in entries_of(tmp_path / "verdict").values()] == [True]


def test_a_run_that_was_compacted_is_not_judged_again(judge: Judge, tmp_path: Path) -> None:
    night(tmp_path, "one", 1, files=3)
    assert judge(tmp_path)[0] == ["one"]
    said: list[object] = []
    assert [run.left for run in compact(tmp_path, note=said.append, unable=said.append)] == [1]
    assert (judge(tmp_path)[0], said) == ([], [])


def test_the_lineage_of_a_verdict_is_in_its_table(judge: Judge, tmp_path: Path) -> None:
    path = night(tmp_path, "one", 1, files=2)
    judge(tmp_path)
    rows = table(tmp_path, "lineage")
    assert [row["file"] for row in rows] == ["signals-00000.parquet", "signals-00001.parquet"]
    assert sum(row["file_records"] for row in rows) == rows[0]["records"]
    assert all(len(row["checksum"]) == 64 for row in rows)
    for row in rows:
        assert (row["rules"], row["version"], row["late_signals"]) == (RULES_VERSION, __version__, 1)
        assert (row["folder"], row["complete"], row["month"]) == (str(path), True, "2026-11")
        assert row["judged"].endswith("+00:00")


def test_what_older_rules_have_judged_is_known_and_judged_again_on_demand(judge: Judge, tmp_path: Path) -> None:
    night(tmp_path, "one", 1)
    night(tmp_path, "two", 2)
    judge(tmp_path)
    night(tmp_path, "three", 3)
    with rules(RULES_VERSION + 1):
        read, verdict = judge(tmp_path)
        assert (read, verdict.before, verdict.older) == (["three"], 2, 2)
        read, verdict = judge(tmp_path, again=True)
        assert (read, verdict.before, verdict.older) == (["one", "two"], 1, 0)
        assert judge(tmp_path, again=True)[0] == []
    assert {row["rules"] for row in table(tmp_path, "lineage")} == {RULES_VERSION + 1}


@pytest.mark.parametrize("incremental", [True, False])
def test_a_verdict_of_newer_rules_is_one_line_and_the_rest_is_judged(
    judge: Judge, tmp_path: Path, incremental: bool
) -> None:
    with rules(7):
        for name in ("one", "two"):
            night(tmp_path, name, 1, (3, 1))
        judge(tmp_path)
    night(tmp_path, "three", 3)
    told: list[TraceError] = []
    read, verdict = judge(tmp_path, incremental=incremental, unreadable=told.append)
    assert (read, verdict.clean) == (["three"], True)
    (line,) = map(str, told)
    index = tmp_path / "verdict" / "judged" / "part-0.parquet"
    assert line.startswith(
        f"{index}: verdict of run one and of 1 more: was made by version 7 of the rules, and this program has 1"
    )
    assert "\n" not in line
    assert {row["run"]: row["rules"] for row in table(tmp_path, "lineage")} == {"one": 7, "three": 1, "two": 7}
    assert len(table(tmp_path, "violations")) == 2
    assert load(tmp_path).unable == [line]


def test_verdicts_without_an_index_or_a_lineage_are_known(judge: Judge, tmp_path: Path) -> None:
    night(tmp_path, "one", 1)
    judge(tmp_path)
    known = entries_of(tmp_path / "verdict")
    file = tmp_path / "verdict" / "judged" / "part-0.parquet"
    file.write_bytes(b"PAR1 and no more")
    told: list[str] = []
    assert entries_of(tmp_path / "verdict", told.append) == known
    assert outstanding([tmp_path], tmp_path / "verdict", note=told.append).folders == []
    assert [line.startswith(f"{file}: can't be read: ") for line in told] == [True, True]
    shutil.rmtree(file.parent)
    assert entries_of(tmp_path / "verdict") == known
    shutil.rmtree(tmp_path / "verdict" / "lineage")
    assert [(item.run, item.rules) for item in entries_of(tmp_path / "verdict").values()] == [("one", 0)]
    assert outstanding([tmp_path], tmp_path / "verdict").older == {"one"}
    assert judge(tmp_path, again=True)[0] == ["one"]
    assert entries_of(tmp_path / "verdict").keys() == {"one"}


def test_a_run_that_cannot_be_judged_is_named_each_night_and_the_verdict_stays(judge: Judge, tmp_path: Path) -> None:
    night(tmp_path, "one", 1)
    judge(tmp_path)
    (night(tmp_path, "bad", 2) / "signals-00000.parquet").write_bytes(b"PAR1 and no more PAR1")
    for _ in range(2):
        told: list[TraceError] = []
        read, verdict = judge(tmp_path, unreadable=told.append)
        assert (read, verdict.before, ["run=bad" in str(line) for line in told]) == ([], 1, [True])
        report = load(tmp_path)
        assert ([row["run"] for row in report.together], report.verdict) == (["one"], "incomplete")
    with pytest.raises(TraceError, match="nowhere: is no folder"):
        verify(None, [tmp_path / "nowhere"], tmp_path / "verdict", incremental=True)  # type: ignore[arg-type]


def test_a_folder_of_an_object_store_is_refused_by_name_and_a_file_uri_taken(tmp_path: Path) -> None:
    night(tmp_path, "one", 1)
    left = lineage.outstanding([tmp_path.as_uri()], tmp_path / "verdict")
    assert [folder.name for folder in left.folders] == ["run=one"]
    with pytest.raises(TraceError, match=r"^s3://bucket/nights: can't be judged incrementally: only folders of this "):
        lineage.outstanding(["s3://bucket/nights"], tmp_path / "verdict")


def test_nights_has_what_the_tables_by_run_have_and_prune_takes_it_out(judge: Judge, tmp_path: Path) -> None:
    for day, elements in enumerate([(3, 1), (1, 2), (1, 2)], 1):
        night(tmp_path, f"night {day}", day, elements)
        judge(tmp_path)
    rules = {(row["run"], row["scenario"]): {row["rule"]} for row in table(tmp_path, "violations")}
    runs, summary, latency = (table(tmp_path, name) for name in ("runs", "summary", "latency"))
    made = rows_of(runs, summary, latency, rules)
    kept = table(tmp_path, "nights")
    assert [row.pop("month") for row in kept] == ["2026-11"] * 3
    assert sorted(kept, key=lambda row: row["run"]) == sorted(made, key=lambda row: row["run"])
    assert [(row["state"], row["rules"], row["load_signals"]) for row in made][:2] == [
        ("broken", "order", 9), ("clean", "", 9),
    ]  # fmt: skip
    assert prune_verdicts(tmp_path, 1) == ["night 1", "night 2"]
    assert [row["run"] for row in table(tmp_path, "nights")] == ["night 3"]
    assert entries_of(tmp_path / "verdict").keys() == {"night 3"}
    assert judge(tmp_path)[0] == ["night 1", "night 2"]


def test_the_command_says_what_was_judged_before_and_what_is_new(spark: Any, tmp_path: Path) -> None:
    def said(*options: str) -> tuple[int, str]:
        done = CliRunner().invoke(app, ["verify", str(tmp_path), "--master", "local[2]", *options])
        return done.exit_code, " ".join(done.output.split())

    night(tmp_path, "one", 1, (3, 1))
    assert said("--incremental")[0] == 1
    status, text = said("--incremental")
    assert (status, "judging" in text) == (1, False)
    assert "1 run(s) were judged before; nothing is new verdict as before: broken" in text
    night(tmp_path, "two", 2)
    with rules(RULES_VERSION + 1):
        status, text = said("--incremental")
    assert status == 0
    assert "1 run(s) were judged before; 1 to judge" in text
    assert "note one: judged by an older version of the rules (1, this is" in text
    status, text = said("--incremental")
    assert (status, text.count("verdict of run two: was made by version 2 of the rules")) == (3, 1)
    assert said("--again")[0] == said("--follow", "--incremental")[0] == 2
