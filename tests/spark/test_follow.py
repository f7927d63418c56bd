"""Runs are judged as they arrive, each once, whenever the job is killed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import pytest
from breaches import element, request, trace

from reactive_runtime._cli.commands import app
from reactive_runtime._cli.verdict import judged
from reactive_runtime.errors import TraceError
from reactive_runtime.spark import Verdict, follow, verify
from reactive_runtime.testing.trace import table_of

pytestmark = pytest.mark.timeout(300)


def arrives(folder: Path, run: str, elements: int, complete: bool = True) -> Path:
    """A run with one subscription, that breaks rule 1.1 as often as there are elements but one."""
    path = folder / "date=2026-11-22" / f"run={run}"
    path.mkdir(parents=True)
    records = trace(request(1, 3, 4), *(element(n, 5 + 2 * n, 6 + 2 * n) for n in range(elements)), run=run)
    parquet.write_table(table_of(records), path / "signals-00000.parquet", write_page_checksum=True)
    facts = {"run": run, "identity": {"random": run}, "complete": complete, "started": "2026-11-22T02:15:00+00:00"}
    facts["files"] = {"signals-00000.parquet": len(records)}
    (path / ("metadata.json" if complete else "_metadata.json")).write_text(json.dumps(facts))
    return path


def no_error(error: TraceError) -> None:
    raise error


def counts(out: Path) -> dict[str, list[tuple[str, int]]]:
    """What the table of violations says of each run."""
    found: dict[str, list[tuple[str, int]]] = {}
    for file in sorted(out.glob("violations/run=*/*.parquet")):
        rows = parquet.ParquetFile(file).read().to_pylist()
        found.setdefault(file.parent.name, []).extend((row["rule"], row["count"]) for row in rows)
    return found


def test_what_has_come_since_is_judged_and_nothing_twice(spark: Any, tmp_path: Path) -> None:
    runs, out = tmp_path / "runs", tmp_path / "out"
    arrives(runs, "a", 3)
    arrives(runs, "b", 5)
    verdicts: list[Verdict] = []
    follow(spark, runs, out, verdicts.append, no_error, once=True)
    assert sorted({row["run"] for verdict in verdicts for row in verdict.summary}) == ["a", "b"]
    arrives(runs, "c", 2)
    arrives(runs, "killed", 9, complete=False)
    later: list[Verdict] = []
    follow(spark, runs, out, later.append, no_error, once=True)
    assert [row["run"] for verdict in later for row in verdict.summary] == ["c"]
    follow(spark, runs, out, later.append, no_error, once=True)
    assert len(later) == 1
    assert counts(out) == {"run=a": [("1.1", 2)], "run=b": [("1.1", 4)], "run=c": [("1.1", 1)]}


def test_the_tables_are_those_that_verify_writes(spark: Any, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    for run, elements in (("a", 3), ("b", 6)):
        arrives(runs, run, elements)
    follow(spark, runs, tmp_path / "followed", lambda _: None, no_error, once=True)
    verify(spark, [runs], tmp_path / "verified")
    verify(spark, [runs], tmp_path / "verified")  # a run that is judged again replaces itself
    for table in ("violations", "summary", "latency", "histogram", "runs", "examples"):
        one, other = (spark.read.parquet(str(tmp_path / name / table)) for name in ("followed", "verified"))
        assert one.count() == other.count() > 0, table
        assert one.exceptAll(other.select(*one.columns)).count() == 0, table


def test_a_verdict_leaves_the_settings_of_a_session_that_is_there_as_they_are(spark: Any, tmp_path: Path) -> None:
    arrives(tmp_path / "runs", "a", 3)
    before = spark.conf.getAll
    judged([tmp_path / "runs"], tmp_path / "out", "local[2]", {})
    judged([tmp_path / "runs"], tmp_path / "out", "local[2]", {"spark.sql.shuffle.partitions": "5"})
    assert spark.conf.getAll == {**before, "spark.sql.shuffle.partitions": "5"}


def test_a_run_that_cannot_be_read_is_named_and_the_others_are_judged(spark: Any, tmp_path: Path) -> None:
    runs, out = tmp_path / "runs", tmp_path / "out"
    arrives(runs, "a", 3)
    (file,) = runs.glob("**/signals-*.parquet")
    file.write_bytes(b"PAR1")
    arrives(runs, "b", 3)
    verdicts: list[Verdict] = []
    errors: list[TraceError] = []
    follow(spark, runs, out, verdicts.append, errors.append, once=True)
    assert [row["run"] for verdict in verdicts for row in verdict.summary] == ["b"]
    assert ["signals-00000.parquet: is no whole Parquet file" in str(error) for error in errors] == [True]


def test_a_run_whose_bytes_have_changed_is_named_and_the_others_are_judged_by_both(spark: Any, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    damaged = arrives(runs, "a", 5_000) / "signals-00000.parquet"
    arrives(runs, "b", 3)
    data = bytearray(damaged.read_bytes())
    data[2_000:5_000] = bytes(255 - datum for datum in data[2_000:5_000])  # the footer is as it was
    damaged.write_bytes(data)
    told: list[TraceError] = []
    verdict = verify(spark, [runs], tmp_path / "verified", unreadable=told.append)
    assert {row["run"] for row in verdict.summary} == {"b"}
    verdicts: list[Verdict] = []
    follow(spark, runs, tmp_path / "followed", verdicts.append, told.append, once=True)
    assert {row["run"] for verdict in verdicts for row in verdict.summary} == {"b"}
    assert [f"{damaged}: " in str(message) and "\n" not in str(message) for message in told] == [True, True]
    follow(spark, runs, tmp_path / "followed", verdicts.append, no_error, once=True)  # it is not tried for ever
    with pytest.raises(TraceError, match=r"run=a/signals-00000\.parquet: "):
        verify(spark, [runs], tmp_path / "verified")


def test_a_run_whose_metadata_come_before_its_files_is_judged_when_they_are_there(spark: Any, tmp_path: Path) -> None:
    runs, out = tmp_path / "runs", tmp_path / "out"
    file = arrives(runs, "early", 4) / "signals-00000.parquet"
    arrives(runs, "other", 3)
    elsewhere = file.rename(tmp_path / file.name)
    verdicts: list[Verdict] = []
    told: list[TraceError] = []
    for _ in range(2):
        follow(spark, runs, out, verdicts.append, told.append, once=True)
    assert [row["run"] for verdict in verdicts for row in verdict.summary] == ["other"]
    assert ["not all files that it says it holds are there" in str(message) for message in told] == [True, True]
    file.write_bytes(elsewhere.read_bytes()[:-100])  # half copied is not there
    follow(spark, runs, out, verdicts.append, told.append, once=True)
    assert len(told) == 3
    file.write_bytes(elsewhere.read_bytes())
    follow(spark, runs, out, verdicts.append, no_error, once=True)
    assert [row["run"] for verdict in verdicts for row in verdict.summary] == ["other", "early"]
    follow(spark, runs, out, verdicts.append, no_error, once=True)
    assert len(verdicts) == 2


def test_what_a_batch_raises_ends_the_job_and_is_raised(spark: Any, tmp_path: Path) -> None:
    def refuse(verdict: Verdict) -> None:
        raise OSError("no mail server")

    arrives(tmp_path / "runs", "a", 3)
    with pytest.raises(OSError, match="no mail server"):
        follow(spark, tmp_path / "runs", tmp_path / "out", refuse, no_error, once=True)
    with pytest.raises(TraceError, match="nowhere: is no folder"):
        follow(spark, tmp_path / "nowhere", tmp_path / "out", refuse, no_error, once=True)


@pytest.mark.parametrize("more", [(), ("--follow", "--once")], ids=["verify", "verify --follow"])
def test_the_command_has_a_line_on_standard_error_for_a_corrupt_run_and_judges_the_others(
    spark: Any, tmp_path: Path, more: tuple[str, ...], capfd: pytest.CaptureFixture[str]
) -> None:
    clean, corrupt, broken = (arrives(tmp_path / "runs", run, n) for run, n in (("a", 1), ("b", 1), ("c", 5)))
    file = corrupt / "signals-00000.parquet"
    file.write_bytes(file.read_bytes()[:100] + b"PAR1")

    def called(*out: str) -> tuple[Any, list[str], str]:
        arguments = ["verify", str(tmp_path / "runs"), *out, "--master", spark.sparkContext.master, *more]
        status = app(arguments, standalone_mode=False)
        told = capfd.readouterr()
        return (
            status,
            [line for line in told.err.splitlines() if "UNABLE" in line or "Traceback" in line],
            told.out,
        )

    status, (line,), told = called()
    assert status == 1  # a rule broken is worse than a run that could not be judged
    assert line.startswith(f"UNABLE   {file}: is no whole Parquet file")
    assert "BROKEN   rule 1.1" in told
    assert "UNABLE" not in told
    assert sorted(item.name for item in (tmp_path / "runs/verdict/summary").glob("run=*")) == ["run=a", "run=c"]
    for run in (clean, broken):
        shutil.rmtree(run)
    arrives(tmp_path / "runs", "d", 1)
    status, (line,), told = called("--out", str(tmp_path / "other"))
    assert status == 3
    assert line.startswith(f"UNABLE   {file}: is no whole Parquet file")
    assert f"INCOMPLETE no rule was broken in what there is; {file}: is no whole Parquet file" in told
    assert "clean    " not in told


def test_a_line_that_was_printed_before_spark_began_is_not_printed_again(
    spark: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    _, corrupt = (arrives(tmp_path / "runs", run, 1) for run in ("a", "b"))
    file = corrupt / "signals-00000.parquet"
    file.write_bytes(file.read_bytes()[:100] + b"PAR1")
    master = spark.sparkContext.master
    first = judged([tmp_path / "runs"], tmp_path / "first", master, {})
    assert capfd.readouterr().err.count("UNABLE") == 1
    assert len(first.unable) == 1
    again = judged([tmp_path / "runs"], tmp_path / "again", master, {}, first.unable)
    assert "UNABLE" not in capfd.readouterr().err
    assert again.unable == first.unable
