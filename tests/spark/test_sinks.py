"""Into Spark: rows in micro-batches; what does not fit is named; a stream outlives a kill of either side."""

from __future__ import annotations

import datetime
import decimal
import os
import random
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import pyarrow as pa
import pyarrow.parquet as parquet
import pydantic
import pytest
from sinks import PATIENCE, Numbers, until

from reactive_runtime import Flow
from reactive_runtime.errors import SparkError
from reactive_runtime.hooks import Dropped
from reactive_runtime.spark import elements_fed
from reactive_runtime.spark._feed.segments import Segments
from reactive_runtime.spark._write.schemas import Elements, arrow_schema, spark_schema

KILLS = int(os.environ.get("FEED_KILLS", "1"))
"""How often each side is killed; 20 in a night."""

FED = 400 * min(KILLS, 5)
"""Rows that are fed meanwhile."""

pytestmark = pytest.mark.timeout(300 + 60 * KILLS)


@dataclass
class Order:
    number: int
    customer: str
    price: decimal.Decimal | None = None


class Model(pydantic.BaseModel):
    number: int
    customer: str
    price: decimal.Decimal | None = None


class Event(TypedDict):
    at: datetime.datetime
    tags: list[str]
    by: NotRequired[str]


def numbers_of(file: Path) -> list[Any]:
    found: list[Any] = parquet.read_table(file)["n"].to_pylist()
    return found


def orders(n: int) -> Flow[Order]:
    return Flow.range(n).map(lambda i: Order(i, f"c{i % 3}", None if i % 2 else decimal.Decimal(i)))


@pytest.mark.parametrize(
    "elements",
    [
        [Order(1, "a"), Order(2, "b", decimal.Decimal(3))],
        [Model(number=1, customer="a"), Model(number=2, customer="b", price=decimal.Decimal(3))],
        [{"number": 1, "customer": "a"}, {"number": 2, "customer": "b", "price": decimal.Decimal(3)}],
        [(1, "a", None), (2, "b", decimal.Decimal(3))],
        [
            pa.RecordBatch.from_pylist(
                [{"number": 1, "customer": "a"}, {"number": 2, "customer": "b", "price": decimal.Decimal(3)}],
                arrow_schema("test", Order),
            )
        ],
    ],
    ids=["objects", "models", "mappings", "sequences", "arrow"],
)
def test_elements_of_every_kind_become_the_same_rows(elements: list[Any]) -> None:
    table = Elements("test", arrow_schema("test", Order)).table(elements)
    assert table.to_pylist() == [
        {"number": 1, "customer": "a", "price": None},
        {"number": 2, "customer": "b", "price": decimal.Decimal(3)},
    ]


def test_a_schema_is_taken_from_what_there_is(spark: Any) -> None:
    wanted = "number bigint, customer string, price decimal(38,18)"
    by_hand = spark.createDataFrame([], wanted).schema
    for given in (Order, Model, wanted, by_hand, arrow_schema("test", Order)):
        found = spark_schema("test", given)
        assert [(finding.name, finding.dataType) for finding in found] == [
            (item.name, item.dataType) for item in by_hand
        ]
    assert [item.nullable for item in spark_schema("test", Order)] == [False, False, True]
    event = spark_schema("test", Event)
    assert [(item.name, item.dataType.simpleString(), item.nullable) for item in event] == [
        ("at", "timestamp", False),
        ("tags", "array<string>", False),
        ("by", "string", True),
    ]


@pytest.mark.parametrize(
    ("element", "words"),
    [
        (Order("7", "a"), r"element 2, field 'number': '7' \(str\) is no int64"),  # type: ignore[arg-type]
        (Order(7, None), "element 2, field 'customer': None, in a field that is required"),  # type: ignore[arg-type]
        (Order(2**70, "a"), "element 2, field 'number': 1180591620717411303424"),
        ({"number": 7}, "element 2, field 'customer': {'number': 7} has no such field"),
        ({"number": 7, "customer": "a", "price": None, "colour": 1}, "element 2, field 'colour': is not in the schema"),
        ({"number": 7, "customer": "a", "colour": 1}, "element 2, field 'price': .* has no such field"),
        ((7, "a"), r"element 2: \(7, 'a'\) has 2 values, and the schema 3 fields"),
        (7, "element 2: 7 is no sequence, as the first was"),
        ("abc", "element 2: 'abc' is no sequence, as the first was"),
    ],
    ids=["type", "none", "range", "missing", "beside", "instead", "short", "number", "text"],
)
def test_what_does_not_fit_is_named_with_its_element_and_field(element: Any, words: str) -> None:
    rows = Elements("to_spark", arrow_schema("test", Order))
    kind = type(element)
    good: Any = Order(1, "a") if kind is Order else (1, "a", None)
    if kind is dict:
        good = {"number": 1, "customer": "a", "price": None}
    rows.table([good])
    with pytest.raises(SparkError, match=f"^to_spark: {words}"):
        rows.table([good, element])


@pytest.mark.parametrize(
    ("schema", "error", "words"),
    [
        (
            7,
            TypeError,
            "a schema is a pyarrow.Schema, a StructType, a DDL string or a class with annotated fields, not 7",
        ),
        ("n lang", SparkError, "'n lang' is no schema of Spark"),
        (
            dataclass(type("Odd", (), {"__annotations__": {"z": complex}})),
            SparkError,
            "field 'z': .*complex.* has no type",
        ),
        (dataclass(type("Two", (), {"__annotations__": {"z": int | str}})), SparkError, "field 'z': .* use one type"),
        (pa.schema([("u", pa.dense_union([pa.field("a", pa.int64())]))]), SparkError, "Spark has no such type"),
    ],
    ids=["none", "ddl", "type", "union", "arrow"],
)
def test_a_schema_that_is_none_is_reported_at_once(schema: Any, error: type[Exception], words: str, spark: Any) -> None:
    with pytest.raises(error, match=f"^to_spark: .*{words}"):
        Flow.range(1).to_spark(spark, schema)


def test_rows_are_appended_in_micro_batches_to_files_and_tables(spark: Any, tmp_path: Path) -> None:
    sink = orders(1000).to_spark(spark, Order, batch_rows=300)
    assert sink.parquet(tmp_path / "orders").result(PATIENCE * 4) == 1000
    assert sink.saveAsTable("orders_of_the_test").result(PATIENCE * 4) == 1000
    assert sink.format("json").save(tmp_path / "json", compression="gzip").result(PATIENCE * 4) == 1000
    for found in (
        spark.read.parquet(str(tmp_path / "orders")),
        spark.table("orders_of_the_test"),
        spark.read.json(str(tmp_path / "json")),
    ):
        assert found.selectExpr("count(*)", "sum(number)", "count(price)").first() == (1000, 499_500, 500)
    spark.sql("drop table orders_of_the_test")


def test_a_batch_is_written_when_its_time_has_come(spark: Any, tmp_path: Path) -> None:
    slow = Flow.range(3).concat_with(Flow.never()).map(lambda n: (n,))
    written = slow.to_spark(spark, "n long", batch_rows=1000, seconds=0.05).parquet(tmp_path / "slow")
    until(lambda: any((tmp_path / "slow").glob("*.parquet")))
    written.cancel()
    assert spark.read.schema("n long").parquet(str(tmp_path / "slow")).count() == 3


def test_a_write_that_fails_is_tried_once_more_and_then_cancels_the_source(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dropped: list[Dropped]
) -> None:
    tried: list[int] = []
    make = spark.createDataFrame

    def failing(table: Any, schema: Any) -> Any:
        tried.append(table.num_rows)
        if len(tried) in (2, 4, 5):
            raise OSError("No space left on device")
        return make(table, schema)

    monkeypatch.setattr(spark, "createDataFrame", failing)
    source = Numbers(100_000)
    written = (
        Flow.from_supplier(lambda: source)
        .map(lambda n: (n,))
        .to_spark(spark, "n long", batch_rows=10)
        .parquet(tmp_path / "n")
    )
    with pytest.raises(SparkError, match=r"^to_spark: No space left on device"):
        written.result(PATIENCE * 4)
    assert [str(drop.error) for drop in dropped if drop.error] == ["No space left on device"] * 2  # of each first try
    assert tried == [10] * 5  # the second batch came through, the third did not
    assert spark.read.parquet(str(tmp_path / "n")).count() == 20
    until(lambda: bool(source.closed))
    assert source.pulled < 100


def test_an_element_that_does_not_fit_ends_the_flow_after_what_came_before(spark: Any, tmp_path: Path) -> None:
    rows: Flow[Any] = Flow.just((1,), (2,), ("three",), (4,))
    with pytest.raises(SparkError, match=r"^to_spark: element 2, field 'n': 'three' \(str\) is no int64"):
        rows.to_spark(spark, "n long", batch_rows=2).parquet(tmp_path / "n").result(PATIENCE * 4)
    assert sorted(row[0] for row in spark.read.parquet(str(tmp_path / "n")).collect()) == [1, 2]


def test_a_path_that_cannot_be_written_is_sparks_reason(spark: Any, tmp_path: Path, dropped: list[Dropped]) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(SparkError, match=r"^to_spark: "):
        orders(3).to_spark(spark, Order).parquet(tmp_path / "file").result(PATIENCE * 4)


def fed(spark: Any, folder: Path, n: int, rows: int = 10, segments: int = 4) -> Any:
    source = Flow.range(n).skip(elements_fed(folder))
    return source.map(lambda i: (i,)).to_spark(spark, "n long", batch_rows=rows).stream(folder, segments=segments)


def test_a_stream_is_fed_by_demand_of_its_query(spark: Any, tmp_path: Path) -> None:
    feed = fed(spark, tmp_path / "feed", 500)
    until(lambda: feed.outstanding() == 4)  # and there it stays: it is not read
    assert not feed.done.done()
    most: list[int] = []
    query = (
        feed.dataframe.writeStream.foreachBatch(lambda df, number: most.append(feed.outstanding()))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start()
    )
    assert feed.done.result(PATIENCE * 4) == 500
    query.processAllAvailable()
    query.stop()
    assert max(most) <= 4
    assert feed.position == 0


def test_a_full_disk_ends_the_flow_and_what_was_in_segments_stays(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, made = parquet.write_table, []

    def full(table: Any, path: Path) -> None:
        made.append(path)
        if len(made) == 3:
            path.write_bytes(b"PAR1")  # as much as there was room for
            raise OSError(28, "No space left on device")
        real(table, path)

    with monkeypatch.context() as patched:
        patched.setattr(parquet, "write_table", full)
        with pytest.raises(SparkError, match=r"^to_spark: \[Errno 28\] No space left on device"):
            fed(spark, tmp_path / "feed", 50, segments=9).done.result(PATIENCE)
    again = fed(spark, tmp_path / "feed", 50, segments=9)
    assert (again.position, again.done.result(PATIENCE)) == (20, 30)
    files = (tmp_path / "feed" / "segments").iterdir()
    assert sorted(n for file in files for n in numbers_of(file)) == list(range(50))


def test_a_feed_of_another_schema_is_refused(spark: Any, tmp_path: Path) -> None:
    fed(spark, tmp_path / "feed", 5).done.result(PATIENCE)
    with pytest.raises(SparkError, match=r"feed: holds segments of another schema: use another folder"):
        Flow.just(("a",)).to_spark(spark, "s string").stream(tmp_path / "feed")


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A file system with room for 2 MiB; skips where this machine does not allow one."""
    folder = tempfile.mkdtemp()  # not below tmp_path, which could not be removed if this process were killed
    command = ["mount", "-t", "tmpfs", "-o", "size=2m", "none", folder]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"no file system can be mounted here: {made.stderr.strip()}")
    yield Path(folder)
    subprocess.run(["umount", "--lazy", folder], check=True)  # Spark still has open what it could not write
    os.rmdir(folder)


def noise(n: int) -> Flow[tuple[int, float]]:
    """What no file format makes small."""
    return Flow.range(n).map(lambda i: (i, random.random()))


def test_a_disk_that_is_really_full_under_files_is_reported_and_whole_batches_are_there(
    spark: Any, small_disk: Path, dropped: list[Dropped]
) -> None:
    written = noise(1_000_000).to_spark(spark, "n long, x double", batch_rows=20_000).parquet(small_disk / "out")
    with pytest.raises(SparkError, match=r"^to_spark: .*No space left on device"):
        written.result(PATIENCE * 4)
    found = spark.read.schema("n long, x double").parquet(str(small_disk / "out"))
    rows, least, most = found.selectExpr("count(*)", "min(n)", "max(n)").first()
    assert (rows % 20_000, least, most) == (0, 0, rows - 1)
    assert rows >= 20_000
    assert len(list((small_disk / "out").glob("*.parquet"))) == rows // 20_000  # each batch by one rename


def test_a_disk_that_is_really_full_under_a_feed_is_reported_and_what_it_counts_is_there(
    spark: Any, small_disk: Path, tmp_path: Path
) -> None:
    folder = small_disk / "feed"
    feed = noise(1_000_000).to_spark(spark, "n long, x double", batch_rows=20_000).stream(folder, segments=100)
    with pytest.raises(SparkError, match=r"^to_spark: .*No space left on device"):
        feed.done.result(PATIENCE * 4)
    counted = elements_fed(folder)
    assert counted >= 20_000
    stream = Flow.from_stream(feed.dataframe, checkpoint=tmp_path / "checkpoint", trigger={"availableNow": True})
    assert list(stream.map(lambda row: row["n"])) == list(range(counted))
    # And there is room again.
    again = noise(counted + 7).skip(counted).to_spark(spark, "n long, x double").stream(folder, segments=100)
    assert again.done.result(PATIENCE) == 7


def test_the_checkpoint_of_a_query_of_another_feed_is_refused_before_anything_is_removed(
    spark: Any, tmp_path: Path
) -> None:
    checkpoint = tmp_path / "checkpoint"

    def taken(feed: Any) -> list[Any]:
        return list(Flow.from_stream(feed.dataframe, checkpoint=checkpoint, trigger={"availableNow": True}))

    one, other = fed(spark, tmp_path / "one", 30), fed(spark, tmp_path / "other", 20)
    assert one.done.result(PATIENCE) == 30
    assert taken(one) == [{"n": n} for n in range(30)]
    assert other.done.result(PATIENCE) == 20
    with pytest.raises(SparkError, match=r"other: the checkpoint is of a query that read another feed: use the folder"):
        taken(other)
    assert other.outstanding() == 2


def test_a_second_query_of_a_feed_learns_what_it_has_missed(spark: Any, tmp_path: Path) -> None:
    feed = fed(spark, tmp_path / "feed", 30)
    assert feed.done.result(PATIENCE) == 30
    first = Flow.from_stream(feed.dataframe, checkpoint=tmp_path / "checkpoint", trigger={"availableNow": True})
    assert len(list(first)) == 30
    fed(spark, tmp_path / "feed", 40).done.result(
        PATIENCE
    )  # its query sees that the rest was committed, and removes it
    assert len(list(first)) == 10
    fed(spark, tmp_path / "feed", 50).done.result(PATIENCE)
    second = Flow.from_stream(feed.dataframe, checkpoint=tmp_path / "another", trigger={"availableNow": True})
    with pytest.raises(SparkError, match=r"feed: the segment that begins with element 0 is not there: another query"):
        list(second)


WRITER = """
import sys, time
from pathlib import Path
from reactive_runtime.spark._write.schemas import Elements, arrow_schema
from reactive_runtime.spark import elements_fed
from reactive_runtime.spark._feed.segments import Segments
import pyarrow as pa
kept = Segments(Path(sys.argv[1]), pa.schema([("n", pa.int64())]), 4)
position = kept.recovered()
print(position, flush=True)
while position < int(sys.argv[2]):
    if kept.room():
        position += kept.put(pa.table({"n": list(range(position, position + 10))}))
    else:
        time.sleep(0.002)
"""

READER = """
import sys
from pathlib import Path
import pyarrow as pa
from reactive_runtime.spark import elements_fed
from reactive_runtime.spark._feed.segments import Segments
from reactive_runtime.spark._session.spark_session import BRIEF, session
folder = Path(sys.argv[1])
spark = session("local[2]", {**BRIEF, "spark.driver.memory": "1g"})
frame = Segments(folder / "feed", pa.schema([("n", pa.int64())]), 4).frame(spark)
query = (
    frame.writeStream.format("parquet")
    .options(path=str(folder / "out"), checkpointLocation=str(folder / "checkpoint"))
    .start()
)
query.awaitTermination()
"""


@pytest.mark.nightly  # `test_kills.py` has a kill by day, and `test_feeds.py` one of what feeds
def test_nothing_is_lost_or_doubled_when_either_side_is_killed(spark: Any, tmp_path: Path) -> None:
    """The writer is killed again and again, the reader as well; at the end each number is there once."""

    def begun(program: str, *arguments: Path | int) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", program, *map(str, arguments)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    feed, out = tmp_path / "feed", tmp_path / "out"
    begins = Segments(feed, pa.schema([("n", pa.int64())]), 4)
    begins.recovered()
    begins.close()
    rows = 0
    for kill in range(KILLS):
        writer, reader = begun(WRITER, feed, FED), begun(READER, tmp_path)
        try:

            def moved(before: int = rows, reader: subprocess.Popen[str] = reader) -> bool:
                return written(out) > before or elements_fed(feed) == FED or reader.poll() is not None

            until(moved)
            rows = written(out)
        finally:
            victims = (writer, reader) if kill % 2 else (reader, writer)
            for process in victims:
                process.send_signal(signal.SIGKILL)
                process.wait()
                assert process.stdout is not None
                process.stdout.close()
    writer = begun(WRITER, feed, FED)
    frame = Segments(feed, pa.schema([("n", pa.int64())]), 4).frame(spark)
    query = frame.writeStream.format("parquet").options(path=str(out), checkpointLocation=str(tmp_path / "checkpoint"))
    running = query.start()
    assert writer.wait(PATIENCE * 4) == 0
    assert writer.stdout is not None
    writer.stdout.close()
    running.processAllAvailable()
    running.stop()
    found = spark.read.parquet(str(out))
    assert found.selectExpr("count(*)", "count(distinct n)", "min(n)", "max(n)").first() == (FED, FED, 0, FED - 1)


BOTH = """
import sys
from pathlib import Path
from reactive_runtime import Flow
from reactive_runtime.spark import elements_fed, session
from reactive_runtime.spark._session.spark_session import BRIEF
folder = Path(sys.argv[1])
spark = session("local[2]", {**BRIEF, "spark.driver.memory": "1g"})
rows = Flow.range(2000).skip(elements_fed(folder / "feed")).map(lambda n: (n,))
feed = rows.to_spark(spark, "n long", batch_rows=10).stream(folder / "feed", segments=4)
query = (
    feed.dataframe.writeStream.format("parquet")
    .options(path=str(folder / "out"), checkpointLocation=str(folder / "checkpoint"))
    .start()
)
feed.done.result()
query.processAllAvailable()
"""


@pytest.mark.nightly
def test_a_flow_that_is_killed_together_with_its_query_goes_on_where_it_was(spark: Any, tmp_path: Path) -> None:
    """What most programs are: the flow and the query in one process. At the end each number is there once."""
    out = tmp_path / "out"
    for _ in range(KILLS):
        command = [sys.executable, "-c", BOTH, str(tmp_path)]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        before = written(out)
        try:

            def moved(before: int = before, process: subprocess.Popen[bytes] = process) -> bool:
                return written(out) > before + 1 or process.poll() is not None

            until(moved)
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
    rest = fed(spark, tmp_path / "feed", 2000)
    query = rest.dataframe.writeStream.format("parquet")
    running = query.options(path=str(out), checkpointLocation=str(tmp_path / "checkpoint")).start()
    assert rest.position + rest.done.result(PATIENCE * 4) == 2000
    running.processAllAvailable()
    running.stop()
    found = spark.read.parquet(str(out))
    assert found.selectExpr("count(*)", "count(distinct n)", "min(n)", "max(n)").first() == (2000, 2000, 0, 1999)


def written(out: Path) -> int:
    """Files that the reader has committed."""
    log = out / "_spark_metadata"
    return sum(1 for item in log.glob("[0-9]*")) if log.is_dir() else 0


@pytest.mark.parametrize("step", range(1, 10))
def test_a_kill_at_any_step_of_a_segment_loses_and_doubles_nothing(
    step: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each call that touches the disk is the last one, in turn."""
    schema = pa.schema([("n", pa.int64())])
    one = Segments(tmp_path, schema, 9)
    one.recovered()
    one.put(pa.table({"n": [0, 1]}))

    class Killed(BaseException):
        pass

    left = [step]

    def counted(real: Any) -> Any:
        def call(*arguments: Any, **named: Any) -> Any:
            left[0] -= 1
            if not left[0]:
                raise Killed
            return real(*arguments, **named)

        return call

    with monkeypatch.context() as patched:
        patched.setattr(parquet, "write_table", counted(parquet.write_table))
        patched.setattr(os, "fsync", counted(os.fsync))
        patched.setattr(Path, "replace", counted(Path.replace))
        patched.setattr(Path, "write_text", counted(Path.write_text))
        try:
            one.put(pa.table({"n": [2, 3]}))
        except Killed:
            pass
        else:
            assert step == 9, "a call on the disk that no kill was tried at"
    one.close()  # as a kill does
    two = Segments(tmp_path, schema, 9)
    at = two.recovered()
    while at < 6:
        at += two.put(pa.table({"n": [at, at + 1]}))
    two.close()
    found = sorted(n for file in (tmp_path / "segments").iterdir() for n in numbers_of(file))
    assert found == list(range(6))
    assert list((tmp_path / ".next").iterdir()) == []
