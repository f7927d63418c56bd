"""Nights in tables: what is kept, left and named; in Parquet, which needs no connector and has no versions."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from recorded_nights import night
from sinks import Sink
from typer.testing import CliRunner

from reactive_runtime import Flow
from reactive_runtime._cli.commands import app
from reactive_runtime.errors import SparkError, TraceError
from reactive_runtime.spark import judge_files, judge_frame, keep_nights, read_as_of, verify
from reactive_runtime.spark._lakehouse.lake_tables import LakeTables
from reactive_runtime.testing.trace import TraceWriter

Keep = Callable[..., tuple[list[tuple[str, int, str]], list[str]]]


@pytest.fixture
def lake(spark: Any) -> Iterator[str]:
    yield "spark_catalog.nights"
    spark.sql("DROP NAMESPACE IF EXISTS nights CASCADE")


@pytest.fixture
def keep(spark: Any, lake: str, tmp_path: Path) -> Keep:
    """Keeps the runs of a test: its nights, and the lines on what was left."""

    def keep(**settings: Any) -> tuple[list[tuple[str, int, str]], list[str]]:
        said: list[str] = []
        say = {"note": said.append, "unreadable": lambda error: said.append(str(error))}
        found = keep_nights(spark, [tmp_path / "runs"], lake, format="parquet", **say, **settings)  # type: ignore[arg-type]
        return [(f"{item.night:%m-%d}", item.runs, item.was) for item in found], said

    return keep


def rows(spark: Any, table: str) -> list[tuple[str, str]]:
    """The nights and runs that a table has rows of."""
    found = spark.table(f"nights.{table}").select("night", "run").distinct().collect()
    return sorted((f"{row['night']:%m-%d}", row["run"]) for row in found)


def findings(found: Any) -> list[list[str]]:
    return [sorted(map(str, frame.collect())) for frame in (found.subscriptions, found.violations, found.waits)]


def test_a_night_is_kept_once_and_its_verdict_is_that_on_its_files(spark: Any, keep: Keep, tmp_path: Path) -> None:
    path = night(tmp_path / "runs", "one", 1, (3, 1))
    night(tmp_path / "runs", "two `x=y/é", 2)
    assert keep() == ([("11-01", 1, "new"), ("11-02", 1, "new")], [])
    assert keep() == ([("11-01", 1, "there"), ("11-02", 1, "there")], [])
    found = judge_frame(spark.table("nights.signals").where("night = '2026-11-01'"))
    assert findings(found) == findings(judge_files(spark, [path]))
    assert [row["rule"] for row in found.violations.collect()] == ["order"]
    kept = spark.table("nights.lineage").where("run = 'one'").collect()
    assert [(row["folder"], row["file"], row["file_records"]) for row in kept] == [
        (str(path.resolve()), "signals-00000.parquet", 6)
    ]
    assert all(row["checksum"] and row["rules"] is None and row["judged"] is None for row in kept)
    with pytest.raises(SparkError, match="has no version of 2026-11-01: the night was not kept"):
        read_as_of(spark, "nights", "2026-11-01")


def test_a_night_whose_run_changes_is_replaced_with_its_verdict(spark: Any, keep: Keep, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    broken = night(runs, "one", 1, (3, 1))
    night(runs, "two", 2)
    verdict = tmp_path / "verdict [of {all}*"  # which Spark would take for a pattern
    verify(spark, [runs], tmp_path / "verdict")
    shutil.copytree(tmp_path / "verdict", verdict)
    assert keep(verdict=verdict) == ([("11-01", 1, "new"), ("11-02", 1, "new")], [])
    assert rows(spark, "violations") == [("11-01", "one")]
    assert rows(spark, "summary") == rows(spark, "runs") == [("11-01", "one"), ("11-02", "two")]
    shutil.rmtree(broken)
    night(runs, "one", 1)
    nights, said = keep(verdict=verdict)
    assert nights == [("11-01", 1, "replaced"), ("11-02", 1, "there")]
    assert said == [
        "night 2026-11-01: judge them first (reactive-runtime verify --incremental):"
        f" {verdict} has no verdict on 1 of 1 run(s) as they are now"
    ]
    assert (rows(spark, "violations"), rows(spark, "summary")) == ([], [("11-02", "two")])
    verify(spark, [runs], tmp_path / "verdict", incremental=True)
    shutil.rmtree(verdict)
    shutil.copytree(tmp_path / "verdict", verdict)
    assert keep(verdict=verdict) == ([("11-01", 1, "replaced"), ("11-02", 1, "there")], [])
    assert (rows(spark, "violations"), rows(spark, "summary")) == ([], [("11-01", "one"), ("11-02", "two")])


def test_a_run_that_cannot_be_kept_is_a_line_and_others_are(keep: Keep, planner: str, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    night(runs, "one", 1)
    damaged = night(runs, "two", 2)
    (damaged / "signals-00000.parquet").write_bytes(b"PAR1 is not all PAR1")
    writer = TraceWriter(runs, "three")
    writer.recorder().wrap(Flow.range(3), "numbers").subscribe(Sink())
    writer.flush()
    nights, said = keep()
    assert nights == [("11-01", 1, "new")]
    assert sorted(said) == sorted([
        f"{damaged / 'signals-00000.parquet'}: has changed since it was written: its checksum is another",
        f"{writer.path}: was cut off, or is being written: it is left alone",
    ])  # fmt: skip
    writer.close()


def test_a_run_that_tasks_find_damaged_is_a_line_and_others_are(spark: Any, keep: Keep, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    for day, name in enumerate(("one", "two", "three"), start=1):
        night(runs, name, day)
    damaged = next(runs.rglob("run=two"))
    metadata = json.loads((damaged / "metadata.json").read_text())
    del metadata["checksums"]  # as older traces have none: only the pages of the file have
    (damaged / "metadata.json").write_text(json.dumps(metadata))
    file = damaged / "signals-00000.parquet"
    data = bytearray(file.read_bytes())
    data[40] ^= 255
    file.write_bytes(data)
    nights, said = keep()
    assert nights == [("11-01", 1, "new"), ("11-03", 1, "new")]
    assert [line.partition(": ")[0] for line in said] == [str(file)]
    assert rows(spark, "signals") == rows(spark, "lineage") == [("11-01", "one"), ("11-03", "three")]


def test_a_night_is_not_replaced_by_less_than_the_tables_have(spark: Any, keep: Keep, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    gone = night(runs, "one", 1)
    night(runs, "two", 1)
    night(runs, "old", 2)
    assert keep()[0] == [("11-01", 2, "new"), ("11-02", 1, "new")]
    shutil.rmtree(gone)
    shutil.rmtree(next(runs.rglob("run=old")))  # a night that has gone as a whole is not asked for
    line = "night 2026-11-01: the tables have run one of it, which can't be found or read now: it is left as it is"
    assert keep() == ([], [line])
    assert rows(spark, "signals") == [("11-01", "one"), ("11-01", "two"), ("11-02", "old")]


def test_an_error_between_the_tables_leaves_a_night_to_the_next_call(
    spark: Any, keep: Keep, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    night(tmp_path / "runs", "one", 1)
    night(tmp_path / "runs", "two", 2)
    replace, left = LakeTables.replace, ["signals", "lineage", "signals"]

    def until(self: LakeTables, table: str, *settings: Any) -> None:
        if not left or left.pop(0) != table:
            raise OSError("the disk is full")
        replace(self, table, *settings)

    with monkeypatch.context() as patch:
        patch.setattr(LakeTables, "replace", until)
        with pytest.raises(SparkError, match="keep_nights: the disk is full"):
            keep()
    assert (len(rows(spark, "signals")), len(rows(spark, "lineage"))) == (2, 1)
    assert keep()[0] == [("11-01", 1, "there"), ("11-02", 1, "new")]
    assert spark.table("nights.signals").count() == 14


def test_a_compacted_run_is_the_same(spark: Any, keep: Keep, tmp_path: Path) -> None:
    from reactive_runtime.judging._compacting import compact

    night(tmp_path / "runs", "one", 1, files=3)
    assert keep()[0] == [("11-01", 1, "new")]
    assert [run.left for run in compact(tmp_path / "runs", note=print, unable=print)] == [1]
    assert keep() == ([("11-01", 1, "there")], [])


@pytest.mark.parametrize("name", ["", ".", "a..b", "a.", "`a", "a`b"])
def test_a_name_that_is_no_namespace_is_an_error(name: str) -> None:
    with pytest.raises(ValueError, match="is no namespace: should be names with dots between"):
        LakeTables("keep_nights", None, name)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("namespace", "name"),
    [
        ("lake.nights", "`lake`.`nights`.`signals`"),
        ("lake.`a.b`.of-x", "`lake`.`a.b`.`of-x`.`signals`"),
        ("/data/the `nights`/", "delta.`/data/the ``nights``/signals`"),
        ("s3a://lake/nights", "delta.`s3a://lake/nights/signals`"),
    ],
)
def test_each_part_of_a_name_is_quoted(namespace: str, name: str) -> None:
    assert LakeTables("keep_nights", None, namespace).name("signals") == name  # type: ignore[arg-type]


def test_wrong_arguments_are_errors_before_spark_is_asked(tmp_path: Path) -> None:
    none: Any = None
    with pytest.raises(ValueError, match="format 'orc': should be one of delta, iceberg, parquet"):
        keep_nights(none, [tmp_path], "nights", format="orc")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="a folder is for tables of Delta, not of iceberg"):
        keep_nights(none, [tmp_path], "/data/nights", format="iceberg")
    with pytest.raises(TraceError, match="has no verdict: judge the runs first"):
        keep_nights(none, [tmp_path], "nights", format="delta", verdict=tmp_path)
    with pytest.raises(ValueError, match="Invalid isoformat"):
        read_as_of(none, "nights", "tonight")


def test_the_command_prints_nights_and_one_line_on_an_error(spark: Any, lake: str, tmp_path: Path) -> None:
    def called(*words: object) -> tuple[int, list[str]]:
        done = CliRunner().invoke(app, ["tables", *map(str, words)])
        return done.exit_code, done.output.splitlines()

    runs = tmp_path / "runs"
    into = ("--into", lake, "--format", "parquet")
    status, lines = called(tmp_path, *into)
    assert (status, lines) == (4, [f"reactive-runtime: {tmp_path}: has no runs: no date=<day>/run=<run>/signals-*.parquet in it"])  # noqa: E501  # fmt: skip
    night(runs, "one", 1)
    assert called(runs, *into) == (0, ["night    2026-11-01: 1 run(s), 7 records: new"])
    assert called(runs, *into) == (0, ["night    2026-11-01: 1 run(s), 7 records: as before"])
    (night(runs, "two", 2) / "signals-00000.parquet").unlink()
    status, lines = called(runs, *into)
    assert (status, lines[-1]) == (3, "night    2026-11-01: 1 run(s), 7 records: as before")
    status, lines = called(runs, "--into", "nights", "--format", "delta")
    assert (status, len(lines)) == (4, 1)
    assert lines[0].startswith("reactive-runtime: keep_nights: ")
    assert "delta" in lines[0]
    assert called(runs, "--into", "nights", "--format", "orc")[0] == 2
