"""Sinks are spelt as the writers of PySpark, and a count is what is there: in every mode, for no elements as well."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sinks import PATIENCE, Numbers, until

from reactive_runtime import Flow
from reactive_runtime.errors import SparkError
from reactive_runtime.hooks import Dropped
from reactive_runtime.spark import SparkSink, elements_written
from reactive_runtime.spark._write.marks import Marks
from reactive_runtime.spark._write.writes import Append

SCHEMA = "n long, part long"
LONG = 4 * PATIENCE

pytestmark = pytest.mark.timeout(600)


def sink(spark: Any, n: int, first: int = 0, batch_rows: int = 10) -> SparkSink[tuple[int, int]]:
    numbers = Flow.range(n).skip(first).map(lambda i: (i, i % 3))
    return numbers.to_spark(spark, SCHEMA, batch_rows=batch_rows)


async def awaited(frame: Any, number: int) -> None:
    """A function that a sink does not await."""


@pytest.fixture
def table(spark: Any) -> Iterator[str]:
    name = f"table_{uuid.uuid4().hex}"  # a test that was killed leaves its folder
    yield name
    spark.sql(f"DROP TABLE IF EXISTS {name}")


@pytest.mark.parametrize(
    ("place", "mode", "before", "counts", "there"),
    [
        ("folder", "append", 5, 15, 20),
        ("folder", "overwrite", 0, 15, 15),
        ("folder", "overwrite", 5, 15, 15),
        ("folder", "ignore", 0, 15, 15),
        ("folder", "ignore", 5, 0, 5),
        ("folder", "error", 0, 15, 15),
        ("folder", "error", 5, None, 5),
        ("table", "append", 5, 15, 20),
        ("table", "overwrite", 5, 15, 15),
        ("table", "ignore", 5, 0, 5),
        ("table", "error", 5, None, 5),
        ("database", "append", 5, 15, 20),
        ("database", "overwrite", 5, 15, 15),
        ("database", "ignore", 5, 0, 5),
        ("database", "error", 5, None, 5),
    ],
)
def test_the_count_is_what_is_there_after_several_batches(
    place: str, mode: str, before: int, counts: int | None, there: int, spark: Any, table: str, tmp_path: Path
) -> None:
    url = f"jdbc:derby:memory:{tmp_path.name};create=true"
    write: Callable[[SparkSink[Any], str], Any] = {
        "folder": lambda sink, mode: sink.parquet(tmp_path / "out", mode=mode),
        "table": lambda sink, mode: sink.saveAsTable(table, mode=mode),
        "database": lambda sink, mode: sink.jdbc(url, "numbers", mode=mode),
    }[place]
    if before:
        assert write(sink(spark, before, batch_rows=100), "append").result(LONG) == before
    written = write(sink(spark, 15), mode)
    if counts is None:
        with pytest.raises(SparkError, match=r"^to_spark: .*already exists"):
            written.result(LONG)
    else:
        assert written.result(LONG) == counts
    read: Callable[[], Any] = {
        "folder": lambda: spark.read.parquet(str(tmp_path / "out")),
        "table": lambda: spark.table(table),
        "database": lambda: spark.read.jdbc(url, "numbers"),
    }[place]
    assert read().count() == there


def test_what_is_there_makes_mode_ignore_leave_the_source(spark: Any, tmp_path: Path) -> None:
    assert sink(spark, 5).parquet(tmp_path / "out").result(LONG) == 5
    source = Numbers(100_000)
    rows: Flow[Any] = Flow.from_supplier(lambda: source).map(lambda n: (n, n))
    written = rows.to_spark(spark, SCHEMA, batch_rows=10).mode("ignore").parquet(tmp_path / "out")
    assert written.result(LONG) == 0
    until(lambda: bool(source.closed))
    assert source.pulled < 100


def test_what_replaces_leaves_what_was_there_until_the_flow_is_at_its_end(spark: Any, tmp_path: Path) -> None:
    assert sink(spark, 5).parquet(tmp_path / "out").result(LONG) == 5
    bad: Flow[Any] = Flow.from_iterable([*((i, i) for i in range(30)), ("three", 3)])
    with pytest.raises(SparkError, match="element 30, field 'n': 'three'"):
        bad.to_spark(spark, SCHEMA, batch_rows=10).parquet(tmp_path / "out", mode="overwrite").result(LONG)
    assert spark.read.parquet(str(tmp_path / "out")).count() == 5


@pytest.mark.parametrize("mode", ["append", "overwrite", "ignore", "error"])
def test_no_elements_make_the_folder_the_table_and_the_partitions_readable(
    mode: str, spark: Any, table: str, tmp_path: Path
) -> None:
    assert sink(spark, 0).parquet(tmp_path / "out", mode=mode).result(LONG) == 0
    assert spark.read.parquet(str(tmp_path / "out")).columns == ["n", "part"]
    assert sink(spark, 0).saveAsTable(table, mode=mode, partitionBy="part").result(LONG) == 0
    assert sink(spark, 4).insertInto(table).result(LONG) == 4
    assert spark.table(table).count() == 4


def test_a_partitioned_table_is_appended_to_inserted_into_and_replaced_by_partition(spark: Any, table: str) -> None:
    made = sink(spark, 30).partitionBy("part")
    assert made.saveAsTable(table).result(LONG) == 30
    assert made.saveAsTable(table).result(LONG) == 30
    assert sink(spark, 30).insertInto(table).result(LONG) == 30
    assert spark.table(table).count() == 90
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        ones = Flow.range(25).map(lambda i: (i, 1)).to_spark(spark, SCHEMA, batch_rows=10)
        assert ones.insertInto(table, overwrite=True).result(LONG) == 25
    finally:
        spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    counts = spark.sql(f"SELECT part, count(*) FROM {table} GROUP BY part ORDER BY part").collect()
    assert [tuple(row) for row in counts] == [(0, 30), (1, 25), (2, 30)]
    with pytest.raises(SparkError, match="partition"):
        sink(spark, 3).saveAsTable(table).result(LONG)


def test_options_are_passed_on_and_formats_are_spelt_as_there(spark: Any, tmp_path: Path) -> None:
    plain = sink(spark, 12)
    assert plain.format("csv").option("header", value=True).save(tmp_path / "a", sep="|").result(LONG) == 12
    assert sorted(file.read_text()[:11] for file in (tmp_path / "a").glob("*.csv")) == ["n|part\n0|0\n", "n|part\n10|1"]
    assert plain.csv(tmp_path / "b", header=True, compression="gzip").result(LONG) == 12
    assert len(list((tmp_path / "b").glob("*.csv.gz"))) == 2
    assert plain.json(tmp_path / "c").result(LONG) == 12
    assert plain.orc(tmp_path / "d", partitionBy=["part"]).result(LONG) == 12
    assert sorted(place.name for place in (tmp_path / "d").glob("part=*")) == ["part=0", "part=1", "part=2"]
    assert spark.read.json(str(tmp_path / "c")).count() == spark.read.orc(str(tmp_path / "d")).count() == 12


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda s: s.parquet("p", partition_by="n"),
            TypeError,
            "parquet has no parameter 'partition_by', but partitionBy",
        ),
        (
            lambda s: s.save("p", partitonBy="n"),
            TypeError,
            "save has no parameter 'partitonBy', but partitionBy: an opt",
        ),
        (lambda s: s.saveAsTable("t", fromat="orc"), TypeError, "saveAsTable has no parameter 'fromat', but format"),
        (lambda s: s.csv("p", Mode="append"), TypeError, "csv has no parameter 'Mode', but mode"),
        (lambda s: s.csv("p", partitionBy="n"), TypeError, "csv has no parameter 'partitionBy'"),
        (lambda s: s.saveAsTable("t", overwrite=True), TypeError, "saveAsTable has no parameter 'overwrite'"),
        (lambda s: s.mode("appendd"), ValueError, "mode should be one of append, overwrite, .*, not 'appendd'"),
        (lambda s: s.parquet("p", mode="replace"), ValueError, "mode should be one of"),
        (lambda s: s.partitionBy("parts"), SparkError, "partitionBy: the schema has no column 'parts': n, part"),
        (lambda s: s.save("p", partitionBy=["n", "m"]), SparkError, "the schema has no column 'm'"),
        (lambda s: s.bucketBy(2, "m"), SparkError, "bucketBy: the schema has no column 'm'"),
        (lambda s: s.option("TxnVersion", 1), ValueError, "TxnVersion is of one write, .* use exactly_once"),
        (lambda s: s.save("p", txnAppId="a"), ValueError, "txnAppId is of one write"),
        (lambda s: s.writeTo("t").option("txnVersion", 1), ValueError, "txnVersion is of one write"),
        (lambda s: s.mode("overwrite").writeTo("t"), SparkError, "writeTo takes no mode, no format and no partitionBy"),
        (lambda s: s.mode("append").format("orc").stream("p"), SparkError, "stream takes no format, mode"),
        (lambda s: s.format("orc").foreachBatch(print), SparkError, "foreachBatch takes no format, mode"),
        (lambda s: s.foreachBatch(7), TypeError, "func of foreachBatch must be callable, not int"),
        (lambda s: s.foreachBatch(awaited), TypeError, "func of foreachBatch is a coroutine function, which"),
        (lambda s: s.exactly_once("a").parquet("p"), SparkError, "exactly_once is for appending to a table of Delta"),
        (
            lambda s: s.exactly_once("a").insertInto("t"),
            SparkError,
            "exactly_once is for appending to a table of Delta",
        ),
        (lambda s: s.exactly_once("a").saveAsTable("t", mode="overwrite"), SparkError, "is for appending, and this"),
        (lambda s: s.exactly_once("a").saveAsTable("t", mode="ignore"), SparkError, "exactly_once is for appending"),
        (lambda s: s.exactly_once("a").writeTo("t").overwritePartitions(), SparkError, "is for appending, and this"),
        (lambda s: s.exactly_once(""), ValueError, "app should be a name"),
        (lambda s: s.exactly_once(7), TypeError, "app should be a str, not 7"),
        (lambda s: s.exactly_once("a", position=-1), ValueError, "position"),
    ],
)
def test_what_is_misspelt_or_makes_no_sense_is_refused_at_once(
    call: Callable[[Any], object], error: type[Exception], words: str, spark: Any
) -> None:
    with pytest.raises(error, match=f"^to_spark: .*{words}|^to_spark: {words}"):
        call(sink(spark, 3))


def test_what_is_no_session_is_refused_at_once() -> None:
    with pytest.raises(TypeError, match=r"^to_spark: a SparkSession is needed, not NoneType"):
        Flow.just((1,)).to_spark(None, "n long")  # type: ignore[arg-type]


def test_a_format_that_spark_has_not_is_the_reason(spark: Any, tmp_path: Path, dropped: list[Dropped]) -> None:
    with pytest.raises(SparkError, match=r"^to_spark: .*DATA_SOURCE_NOT_FOUND.*no_such_format"):
        sink(spark, 3).format("no_such_format").save(tmp_path / "out").result(LONG)
    assert [item.reason for item in dropped] == ["to_spark: a micro-batch was not written, and is tried once more"]


def test_an_option_that_looks_like_a_parameter_is_passed_on_where_it_is_meant(spark: Any, tmp_path: Path) -> None:
    written = sink(spark, 3).option("partition_by", "n").option("modes", "x").parquet(tmp_path / "out")
    assert written.result(LONG) == 3


def test_what_spark_can_not_do_is_said_once_and_not_tried_again(spark: Any, table: str, dropped: list[Dropped]) -> None:
    assert sink(spark, 3).saveAsTable(table).result(LONG) == 3
    wider = Flow.just((1, 2, 3)).to_spark(spark, "n long, part long, more long")
    with pytest.raises(SparkError, match=r"^to_spark: .*column"):
        wider.saveAsTable(table).result(LONG)
    with pytest.raises(SparkError, match=r"^to_spark: .*a_table_that_is_not_there"):
        sink(spark, 3).insertInto("a_table_that_is_not_there").result(LONG)
    assert dropped == []


def test_a_folder_in_the_way_of_a_table_is_an_error_in_mode_ignore_too(spark: Any, table: str) -> None:
    folder = Path(spark.conf.get("spark.sql.warehouse.dir").removeprefix("file:")) / table
    folder.mkdir(parents=True)
    (folder / "something").touch()
    try:
        with pytest.raises(SparkError, match="LOCATION_ALREADY_EXISTS"):
            sink(spark, 3).saveAsTable(table, mode="ignore").result(LONG)
    finally:
        shutil.rmtree(folder)


def test_a_function_is_called_with_each_batch_and_once_more_where_it_fails(spark: Any, dropped: list[Dropped]) -> None:
    called: list[tuple[int, int]] = []

    def merged(batch: Any, number: int) -> None:
        called.append((number, batch.count()))
        if len(called) == 2:
            raise OSError("the table is locked")

    assert sink(spark, 25).foreachBatch(merged).result(LONG) == 25
    assert called == [(0, 10), (1, 10), (1, 10), (2, 5)]
    assert [str(drop.error) for drop in dropped] == ["the table is locked"]


def test_a_table_that_keeps_no_number_of_elements_can_not_promise_once(spark: Any, table: str) -> None:
    assert sink(spark, 3).saveAsTable(table).result(LONG) == 3
    with pytest.raises(SparkError, match=f"^to_spark: {table} is a table of parquet: exactly once is for tables of"):
        sink(spark, 3).exactly_once("orders").saveAsTable(table).result(LONG)
    with pytest.raises(SparkError, match=f"^elements_written: {table} is a table of parquet"):
        elements_written(table, "orders", session=spark)
    assert elements_written("a_table_that_is_not_there", "orders", session=spark) == 0


class Lake:
    """A table that takes a batch and its mark in one commit, or neither; a frame is the list of its rows."""

    begin = 0

    def __init__(self) -> None:
        self.rows: list[int] | None = None
        self.marked = 0
        self.fails: dict[int, str] = {}
        self.tries = 0

    def position(self) -> int | None:
        return None if self.rows is None else self.marked

    def options(self, position: int) -> dict[str, str]:
        return {"mark": str(position)}

    expect = Marks.expect
    _what, _table, _app = "to_spark", "lake", "orders"

    def append(self, frame: Any, options: Any) -> None:
        self.tries += 1
        if self.fails.get(self.tries) == "before":
            raise OSError("before its commit")
        self.rows = (self.rows or []) + frame
        self.marked = int(options.get("mark", self.marked))
        if self.fails.get(self.tries) == "after":
            raise OSError("after its commit")


class Rows(list[int]):
    def limit(self, n: int) -> list[int]:
        return list(self[:n])


@pytest.mark.parametrize("how", ["before", "after"])
@pytest.mark.parametrize("attempt", range(1, 6))
def test_a_write_that_fails_before_or_after_its_commit_is_in_the_table_once(
    attempt: int, how: str, dropped: list[Dropped]
) -> None:
    """Each write in turn, of the table first, fails; at once, or as a kill that a new beginning follows."""
    lake = Lake()
    lake.fails[attempt] = how
    for _ in range(2):  # the second is a new beginning
        lake.begin = lake.marked
        write = Append(lake.append, lambda: False, marks=lake)  # type: ignore[arg-type]
        try:
            for first in range(lake.begin, 8, 2):
                write.put(lambda first=first: Rows([first, first + 1]), 2)  # type: ignore[arg-type,misc]
            write.end(Rows)  # type: ignore[arg-type]
        except OSError:
            assert attempt == 1  # the table could not be made
    assert lake.rows == list(range(8))


def test_a_flow_that_another_has_written_to_the_table_meanwhile_is_an_error() -> None:
    lake = Lake()
    write = Append(lake.append, lambda: False, marks=lake)  # type: ignore[arg-type]
    write.put(lambda: Rows([0, 1]), 2)  # type: ignore[arg-type,return-value]
    lake.append([2, 3], {"mark": "4"})
    with pytest.raises(SparkError, match="lake has 4 elements of 'orders', and the flow goes on with element 2"):
        write.put(lambda: Rows([2, 3]), 2)  # type: ignore[arg-type,return-value]
    assert lake.rows == [0, 1, 2, 3]
