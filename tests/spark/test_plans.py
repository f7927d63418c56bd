"""How files are judged is chosen by itself: what `explain` says, and the same verdict whichever way it is."""

from __future__ import annotations

import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from breaches import element, request, trace
from judges import by_reference, rows_of, same
from pyspark.sql import functions as F
from random_traces import LAYOUTS, likely, shuffled, written

from reactive_runtime.errors import TraceError
from reactive_runtime.judging import judge_runs
from reactive_runtime.spark import Found, explain, judge_files, judge_frame
from reactive_runtime.spark._verdict import judging
from reactive_runtime.testing import Record
from reactive_runtime.testing.trace import table_of

pytestmark = pytest.mark.timeout(300)


def recorded() -> list[Record]:
    """Runs whose names look like numbers, and are none."""
    return [item for number in range(9) for item in likely(random.Random(number), f"00{number}")]


def in_tables(found: Found) -> Any:
    kept = found.kept()
    return rows_of({name: getattr(kept, name).toArrow() for name in ("subscriptions", "violations", "waits")})


@pytest.mark.parametrize("layout", LAYOUTS)
def test_explain_says_how_each_layout_is_judged_and_the_verdict_is_the_same(
    layout: str, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judging, "RANGE", 100)  # so few records are worth several tasks here
    monkeypatch.setattr(judging, "_LITTLE", 10)
    one = trace(request(1, 3, 4), element(0, 5, 6), element(1, 7, 8))
    records = [item._replace(run="run", subscription=number) for number in range(200) for item in one]
    lying = records if layout == "one file" else shuffled(random.Random(1), records)
    files = written(tmp_path, layout, lying, row_group_size=20)
    told = explain(spark, [tmp_path])
    ways = {"one file": "ranges", "many files": "ranges"}
    assert told.split(":")[0] == ways.get(layout, "moved"), told
    assert f"{len(records)} records in " in told
    assert f" of {len(files)} files" in told
    assert (" of them without statistics;" in told) == (layout == "no statistics"), told
    found = judge_files(spark, [*files])
    assert found.plan == told
    same(in_tables(found), by_reference(records), records)


def upper(records: list[Record], folder: Path, spark: Any) -> None:
    table = table_of(records)
    parquet.write_table(table.rename_columns([name.upper() for name in table.column_names]), folder / "a b%20c.parquet")


def decimals(records: list[Record], folder: Path, spark: Any) -> None:
    table = table_of(records)
    for name in ("begin", "elements", "end_ns"):
        wide = table[name].cast(pa.decimal128(20, 0))
        table = table.set_column(table.column_names.index(name), name, wide)
    parquet.write_table(table, folder / "signals-00000.parquet")


def partitions(records: list[Record], folder: Path, spark: Any) -> None:
    half = len(records) // 2
    for root, some in (("a table", records[:half]), ("another", records[half:])):
        frame = spark.createDataFrame(table_of(some)).repartition(1)
        frame.write.partitionBy("run", "shared_callers", "subscription").parquet(str(folder / root))


def older_and_newer(records: list[Record], folder: Path, spark: Any) -> None:
    """Files whose columns differ: what is in one of them only counts there."""
    half = len(records) // 2
    for number, some in enumerate((records[:half], records[half:])):
        (folder / str(number)).mkdir()
        upper(some, folder / str(number), spark)
    file = folder / "0" / "a b%20c.parquet"
    parquet.write_table(parquet.read_table(file, partitioning=None).drop_columns(["DEPTH", "LATE_SIGNALS"]), file)


FOREIGN = {
    upper: "a b%20c.parquet: it has no column 'run'",
    decimals: "signals-00000.parquet: column 'elements' should be of integers, and is decimal128(20, 0)",
    partitions: ".parquet: it has no column 'run'",
    older_and_newer: "a b%20c.parquet: it has no column 'run'",
}


@pytest.mark.parametrize("make", FOREIGN, ids=lambda item: item.__name__)
def test_what_can_not_be_planned_is_left_to_spark_and_explain_says_why(make: Any, spark: Any, tmp_path: Path) -> None:
    records = recorded()
    make(records, tmp_path, spark)
    if make is older_and_newer:
        half = len(records) // 2
        records = [*(record._replace(depth=0, late_signals=None) for record in records[:half]), *records[half:]]
    told = explain(spark, [tmp_path])
    assert told.startswith("frame: Spark reads, packed rows are moved: ")
    assert told.endswith(FOREIGN[make])
    found = judge_files(spark, [tmp_path], late_signals=2)
    assert found.plan == told
    same(in_tables(found), by_reference(records, 2), records)
    uri = judge_files(spark, [tmp_path.as_uri()], late_signals=2)
    assert uri.plan == told
    if make is decimals:  # this process alone has nothing to fall back on, and says so
        with pytest.raises(TraceError, match="is no trace: column 'elements' should be"):
            judge_runs([tmp_path])


def test_a_file_system_that_only_spark_has_is_left_to_spark(spark: Any, tmp_path: Path) -> None:
    records = recorded()
    for name in ("flat", "parts"):
        (tmp_path / name).mkdir()
        mounted = f"fs.viewfs.mounttable.default.link./{name}"
        spark.sparkContext._jsc.hadoopConfiguration().set(mounted, (tmp_path / name).as_uri())
    written(tmp_path / "flat", "one file", records)
    partitions(records, tmp_path / "parts", spark)
    (tmp_path / "parts" / "metadata.json").write_text("{}")
    (tmp_path / "flat" / "trace").write_bytes(next((tmp_path / "flat" / "all").glob("*.parquet")).read_bytes())
    for folder in ("viewfs:///flat/all", "viewfs:///flat/trace", "viewfs:///parts"):
        told = explain(spark, [folder])
        assert told == f"frame: Spark reads, packed rows are moved: {folder}: is not there for this process"
        found = judge_files(spark, [folder])
        assert found.plan == told
        same(in_tables(found), by_reference(records), records)


def test_what_the_tasks_do_not_see_is_left_to_spark(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = recorded()
    files = written(tmp_path, "many files", records)
    monkeypatch.setattr(judging, "_on_one_machine", lambda _: False)
    assert explain(spark, [tmp_path]).startswith("ranges: ")
    size = judging._size
    monkeypatch.setattr(judging, "_size", lambda item: size(item) + (item == files[2]))  # here, not in the tasks
    told = explain(spark, [tmp_path])
    assert told.startswith("frame: ")
    assert told.endswith(f"{files[2]}: is not there, or another file, for a task")
    found = judge_files(spark, files)
    assert found.plan == told
    same(in_tables(found), by_reference(records), records)


def test_tasks_that_judge_what_was_moved_are_bounded() -> None:
    most = 10_000
    assert [judging.parts_of_moved(*of) for of in ((0, 0), (3, 10), (3, 10**7))] == [1, 3, 10]
    assert [judging.parts_of_moved(*of) for of in ((1, 10**12), (10**6, 10), (10**6, 10**12))] == [most, most, most]


def test_a_way_that_is_asked_for_is_taken(spark: Any, tmp_path: Path) -> None:
    records = recorded()
    files = written(tmp_path, "many files", records)
    found = judge_files(spark, files, way="frame")
    assert found.plan.endswith(": it was asked for")
    same(in_tables(found), by_reference(records), records)


def test_what_can_be_read_in_no_way_is_named(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"/nowhere: can't be read: .*not there for this process; and Spark says: "):
        explain(spark, [tmp_path / "nowhere"])
    with pytest.raises(TraceError, match=r"/nowhere: can't be read: "):
        judge_files(spark, [tmp_path / "nowhere"])
    with pytest.raises(TraceError, match=r"has no Parquet files"):
        explain(spark, [tmp_path])
    (tmp_path / "damaged.parquet").write_bytes(b"PAR1")
    with pytest.raises(TraceError, match=r"damaged\.parquet: is no whole Parquet file"):
        judge_files(spark, [tmp_path])


def test_bytes_that_have_changed_are_no_trace_to_spark_either(spark: Any, tmp_path: Path) -> None:
    table = table_of(recorded()).replace_schema_metadata(None)
    parquet.write_table(
        table, tmp_path / "a.parquet", write_page_checksum=True, compression="none", use_dictionary=False
    )
    judge_files(spark, [tmp_path], way="frame").kept()
    bytes_ = bytearray((tmp_path / "a.parquet").read_bytes())
    begins = parquet.ParquetFile(tmp_path / "a.parquet").metadata.row_group(0).column(9)
    bytes_[begins.data_page_offset + begins.total_compressed_size - 20] ^= 1
    (tmp_path / "a.parquet").write_bytes(bytes_)
    with pytest.raises(Exception, match="FAILED_READ_FILE"):
        judge_files(spark, [tmp_path], way="frame").kept()


def test_a_run_that_verify_refuses_has_no_plan(spark: Any, tmp_path: Path) -> None:
    (file,) = written(tmp_path, "one file", recorded())
    (file.parent / "metadata.json").write_text('{"run": "x", "files": {"signals-00000.parquet": 7}, "complete": true}')
    with pytest.raises(TraceError, match="it says that it holds 7: it can't be judged"):
        explain(spark, [tmp_path])


def test_numbers_that_are_none_are_refused_and_not_cut(spark: Any) -> None:
    frame = spark.createDataFrame(table_of(trace(request(1, 3, 4), element(0, 5, 6))))
    for name, kind in (("begin", "double"), ("begin_ns", "timestamp"), ("n", "string"), ("end", "decimal(20,2)")):
        with pytest.raises(TraceError, match=f"column '{name}' should be of integers, and is {kind[:7]}"):
            judge_frame(frame.withColumn(name, F.lit(None).cast(kind)))
    large = frame.withColumn("end", F.lit(Decimal(2**70)).cast("decimal(38,0)"))
    with pytest.raises(Exception, match="column end has what is beyond 64 bits"):
        judge_frame(large).kept()
