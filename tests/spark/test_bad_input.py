"""A run that is none, or not whole, is one line that names the file; the rest is judged, by either planner."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from spark.test_follow import arrives, counts
from typer.testing import CliRunner

from reactive_runtime._cli.commands import app
from reactive_runtime.errors import TraceError
from reactive_runtime.spark import estimate, verify
from reactive_runtime.spark._verdict import sources, traces
from reactive_runtime.testing._rule_checks import RULES_VERSION
from reactive_runtime.testing._traces.trace_columns import VERSION
from reactive_runtime.testing._traces.trace_files import checksum_of

pytestmark = pytest.mark.timeout(600)


def said(folder: Path, **facts: Any) -> None:
    """The run says that of itself, besides."""
    path = next(path for name in ("metadata.json", "_metadata.json") if (path := folder / name).exists())
    path.write_text(json.dumps({**json.loads(path.read_text()), **facts}))


def file_of(run: Path) -> Path:
    return run / "signals-00000.parquet"


def other_things(run: Path) -> str:
    parquet.write_table(pa.table({"price": [1.5]}), file_of(run))
    (run / "notes.txt").write_text("no trace")
    return f"{file_of(run)}: is no trace: column 'run' should be string, and is none"


def other_metadata(run: Path) -> str:
    (run / "metadata.json").write_text("[1, 2]")
    return f"{run}/metadata.json: is no metadata of a run: should be an object, not list"


def half_a_file(run: Path) -> str:
    data = file_of(run).read_bytes()
    file_of(run).write_bytes(data[: len(data) // 2])
    return f"{file_of(run)}: is no whole Parquet file"


def half_the_files(run: Path) -> str:
    said(run, files={"signals-00000.parquet": 4, "signals-00001.parquet": 9})
    return f"{run}/signals-00001.parquet: is not there, and the run says that it holds 9 records"


def too_few_records(run: Path) -> str:
    said(run, files={"signals-00000.parquet": 1_004})
    return f"{run}: its files have 5 records, and it says that it holds 1,004: it can't be judged"


def other_bytes(run: Path) -> str:
    said(run, checksums={"signals-00000.parquet": checksum_of(file_of(run))})
    data = bytearray(file_of(run).read_bytes())
    data[40] ^= 1
    file_of(run).write_bytes(data)
    return f"{file_of(run)}: has changed since it was written: its checksum is another"


def newer_schema(run: Path) -> str:
    said(run, schema=9)
    return f"{run}/metadata.json: has schema 9, and this version reads 1 to "


def newer_rules(run: Path) -> str:
    said(run, rules=RULES_VERSION + 1)
    return (
        f"{run}/metadata.json: was recorded for version {RULES_VERSION + 1} of the rules, and this version judges by "
    )


def newer_columns(run: Path) -> str:
    table = parquet.read_table(file_of(run), partitioning=None)
    parquet.write_table(table.replace_schema_metadata({VERSION: b"9"}), file_of(run))
    return f"{file_of(run)}: has schema 9, and this version reads up to "


def nothing_yet(run: Path) -> str:
    file_of(run).unlink()
    said(run, files={}, complete=False)
    (run / "metadata.json").rename(run / "_metadata.json")
    return f"{run}: nothing was recorded there that could be judged"


TASKS_BY_NIGHT = pytest.mark.parametrize(
    "planner", ["driver", pytest.param("tasks", marks=pytest.mark.nightly)], indirect=True
)
"""The jobs of tasks take ten times as long; two tests have them by day."""

BAD: list[Callable[[Path], str]] = [
    *(other_things, other_metadata, half_a_file, half_the_files, too_few_records),
    *(other_bytes, newer_schema, newer_rules, newer_columns, nothing_yet),
]


def test_each_bad_run_is_a_line_and_the_others_are_judged(spark: Any, tmp_path: Path, planner: str) -> None:
    runs, out = tmp_path / "runs", tmp_path / "out"
    lines = [make(arrives(runs, make.__name__, 3)) for make in BAD]
    arrives(runs, "good", 5)
    arrives(runs, "better", 7)
    (runs / "other").mkdir()
    (runs / "other" / "table.parquet").write_bytes(b"no trace")
    errors: list[TraceError] = []
    verify(spark, [runs], out, unreadable=errors.append)
    found = sorted(map(str, errors))
    assert len(found) == len(lines), found
    for line, of in zip(sorted(lines), found, strict=True):
        assert of.startswith(line)
        assert "\n" not in of
    assert counts(out) == {"run=better": [("1.1", 6)], "run=good": [("1.1", 4)]}


def test_copies_and_clocks_and_cut_off_runs_are_notes(spark: Any, tmp_path: Path, planner: str) -> None:
    runs, out = tmp_path / "runs", tmp_path / "out"
    first = arrives(runs, "first", 3)
    copy = runs / "date=2026-11-22" / "run=copied"
    shutil.copytree(first, copy)
    said(copy, run="copied")
    now = datetime.now(UTC)
    ahead, back = arrives(runs, "ahead", 4), arrives(runs, "back", 5)
    said(ahead, started=(now + timedelta(hours=5)).isoformat())
    said(back, started=now.isoformat(), finished=(now - timedelta(hours=3)).isoformat())
    cut = arrives(runs, "cut", 6, complete=False)
    notes: list[str] = []
    verify(spark, [runs], out, note=notes.append)
    shown = sorted(line.removeprefix(f"{runs}/date=2026-11-22/run=") for line in notes)
    of_copy = [line for line in shown if "is a copy of the run in " in line]
    assert len(of_copy) == 1
    assert [line for line in shown if line not in of_copy] == [
        "ahead: began 5.0 h after now, by the clock of its machine: its place among the nights is a guess",
        "back: ended 3.0 h before it began, by the clocks of its machines: its place among the nights is a guess",
        "cut: was cut off before it was complete; what was recorded by then is judged",
    ]
    assert cut.is_dir()
    judged = {run: found for run, found in counts(out).items() if run not in ("run=first", "run=copied")}
    assert judged == {"run=ahead": [("1.1", 3)], "run=back": [("1.1", 4)], "run=cut": [("1.1", 5)]}
    assert len(counts(out)) == 4


@TASKS_BY_NIGHT
def test_another_run_of_a_name_is_a_line_for_both_planners(spark: Any, tmp_path: Path, planner: str) -> None:
    runs = tmp_path / "runs"
    arrives(runs / "a", "same", 3)
    other = arrives(runs / "b", "same", 9)
    said(other, identity={"random": "other"})
    errors: list[TraceError] = []
    verify(spark, [runs], tmp_path / "out", unreadable=errors.append)
    (line,) = map(str, errors)
    assert line == (f"{other}: another run of that name is in {runs}/a/date=2026-11-22/run=same: judge them one by one")
    assert counts(tmp_path / "out") == {"run=same": [("1.1", 2)]}


@TASKS_BY_NIGHT
def test_a_better_copy_is_taken_by_both_planners(spark: Any, tmp_path: Path, planner: str) -> None:
    runs = tmp_path / "runs"
    first = arrives(runs / "a", "run", 3)
    shutil.copytree(first, runs / "b" / "run=run")
    half_a_file(first)
    verify(spark, [runs], tmp_path / "out")
    assert counts(tmp_path / "out") == {"run=run": [("1.1", 2)]}


@TASKS_BY_NIGHT
def test_a_page_that_has_changed_in_a_run_without_checksums(spark: Any, tmp_path: Path, planner: str) -> None:
    runs = tmp_path / "runs"
    bad = arrives(runs, "bad", 300)
    arrives(runs, "good", 3)
    footer = parquet.read_metadata(file_of(bad))
    column = footer.row_group(0).column(9)
    data = bytearray(file_of(bad).read_bytes())
    data[column.data_page_offset + column.total_compressed_size - 10] ^= 1
    file_of(bad).write_bytes(data)
    errors: list[TraceError] = []
    verify(spark, [runs], tmp_path / "out", unreadable=errors.append)
    (line,) = map(str, errors)
    assert line.startswith(f"{file_of(bad)}: is no whole Parquet file (")
    assert counts(tmp_path / "out") == {"run=good": [("1.1", 2)]}


def test_runs_are_not_read_again_for_an_error_that_is_not_theirs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrives(tmp_path / "runs", "good", 3)
    read: list[object] = []

    def lost(*_: object) -> None:
        raise RuntimeError("Job aborted due to stage failure: ExecutorLostFailure")

    monkeypatch.setattr(traces, "_verdict", lost)
    monkeypatch.setattr(sources, "read_through", read.append)
    with pytest.raises(RuntimeError, match="ExecutorLostFailure"):
        verify(None, [tmp_path / "runs"], tmp_path / "out")  # type: ignore[arg-type]
    assert read == []


def test_a_dry_run_says_what_it_takes_and_writes_nothing(spark: Any, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    arrives(runs, "a", 3)
    arrives(runs, "b", 4)
    bad = other_bytes(arrives(runs, "bad", 4))
    cost = estimate(spark, [runs], lambda error: None)
    assert (cost.runs, cost.files, cost.rows) == (2, 2, 11)
    assert 1 <= cost.tasks <= 2
    said_ = CliRunner().invoke(app, ["verify", str(runs), "--dry-run", "--master", "local[2]"])
    assert said_.exit_code == 3, said_.output
    text = " ".join(said_.output.split())
    assert "dry run 2 run(s), 2 files, 11 records" in text
    assert f"tasks {cost.tasks} that judge, {cost.tasks} side by side" in text
    assert bad in text
    assert not (runs / "verdict").exists()
    refused = CliRunner().invoke(app, ["verify", str(runs), "--dry-run", "--follow"])
    assert refused.exit_code == 2
