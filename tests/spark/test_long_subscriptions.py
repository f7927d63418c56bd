"""Long subscriptions on Spark: many tasks judge one, and the verdict is that of one thread."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import pytest
from judges import rows_of
from spark.test_scale import Run, write  # type: ignore[attr-defined]

from reactive_runtime.judging import _files, judge_runs
from reactive_runtime.spark import judge_files
from reactive_runtime.spark._verdict import long_subscriptions
from reactive_runtime.testing.trace import check_files, read_trace, table_of

RUN = Run("long", 20, long=12_000, broken=(3, 20), length=100)
"""Its long subscription is number 20, and has most of the records."""


@pytest.mark.parametrize(
    "upto",
    [pytest.param({"long": 9_000}, id="cut off"), pytest.param({}, id="whole", marks=pytest.mark.nightly)],
)
def test_many_tasks_judge_a_long_subscription(
    spark: Any, upto: dict[str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_files, "_LONG", 5_000)
    monkeypatch.setattr(long_subscriptions, "RANGE", 1_000)
    write(RUN, tmp_path)
    found = judge_files(spark, check_files(tmp_path), way="moved", upto=upto, most=500)
    tables = {name: getattr(found, name).toArrow() for name in ("subscriptions", "violations", "waits")}
    assert found.plan.endswith("; 1 long subscription is cut into 12 pieces")
    found.release()
    assert rows_of(tables) == rows_of(judge_runs([tmp_path], upto=upto))


def test_a_subscription_that_no_core_waits_for_is_left_whole(spark: Any, tmp_path: Path) -> None:
    write(RUN, tmp_path)
    found = judge_files(spark, check_files(tmp_path), way="moved")
    assert "pieces" not in found.plan


def test_half_of_all_records_in_one_subscription_are_not_moved(
    planner: str, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(Run("half", 320, long=9_600, broken=(3, 320), length=30), tmp_path / "made")
    table = table_of(read_trace(tmp_path / "made"))
    (place := tmp_path / "files").mkdir()
    for number, at in enumerate(range(0, len(table), 1_000)):
        parquet.write_table(table.slice(at, 1_000), place / f"signals-{number:05}.parquet")
    found = judge_files(spark, check_files(place), most=4_000)
    assert found.plan.startswith("ranges: ")
    tables = {name: getattr(found, name).toArrow() for name in ("subscriptions", "violations", "waits")}
    found.release()
    assert rows_of(tables) == rows_of(judge_runs([place]))
    monkeypatch.setattr(_files, "_LONG", 1_000)
    monkeypatch.setattr(_files, "_UNEVEN", 0.1)
    too_long = judge_files(spark, check_files(place), most=4_000)
    assert too_long.plan.startswith("moved: ")
    too_long.release()
