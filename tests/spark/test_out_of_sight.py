"""Verdicts in a folder that tasks do not see, or that is not of Spark's default file system."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import pytest
from pyspark.sql.readwriter import DataFrameWriter
from spark.test_follow import arrives, counts

from reactive_runtime.errors import TraceError
from reactive_runtime.judging._stores import FewFiles
from reactive_runtime.spark import verify
from reactive_runtime.spark._verdict import judging, tables

pytestmark = pytest.mark.timeout(600)

RUNS = {f"run-{number}": number + 2 for number in range(5)}
EXPECTED = {f"run={run}": [("1.1", elements - 1)] for run, elements in RUNS.items()}


@pytest.fixture(autouse=True)
def by_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All is planned by tasks, which would write most tables."""
    monkeypatch.setattr(judging, "FEW", FewFiles(-1, -1))
    for run, elements in RUNS.items():
        arrives(tmp_path / "runs", run, elements)


def files_in(table: Path) -> list[str]:
    return sorted(row["run"] for row in parquet.read_table(table).to_pylist())


def test_the_driver_writes_what_tasks_cannot(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_: object, path: str, *args: object) -> None:
        raise AssertionError(path)

    monkeypatch.setattr(judging, "is_shared", lambda *_: False)
    monkeypatch.setattr(DataFrameWriter, "parquet", refused)
    monkeypatch.setattr(tables, "_BROUGHT", 2)  # rows at a time
    out = tmp_path / "out"
    verify(spark, [tmp_path / "runs"], out)
    assert counts(out) == EXPECTED
    assert files_in(out / "lineage") == sorted(RUNS)
    monkeypatch.setattr(tables, "_BROUGHT", 0)
    with pytest.raises(TraceError, match=r"violations: run run-0 has 1 rows there, and tasks do not see that folder: "):
        verify(spark, [tmp_path / "runs"], out)
    assert counts(out) == EXPECTED


def test_a_verdict_is_where_it_was_asked_for(spark: Any, tmp_path: Path) -> None:
    settings = spark.sparkContext._jsc.hadoopConfiguration()
    before = settings.get("fs.defaultFS")
    settings.set("fs.defaultFS", "viewfs://nowhere/")
    try:
        verify(spark, [tmp_path / "runs"], tmp_path / "out")
    finally:
        settings.set("fs.defaultFS", before)
    assert counts(tmp_path / "out") == EXPECTED
    assert files_in(tmp_path / "out" / "lineage") == sorted(RUNS)
