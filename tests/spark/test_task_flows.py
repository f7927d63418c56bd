"""Inside Spark: what is ready leaves, the whole job is limited and counted, errors are rows, and groups have flows."""

from __future__ import annotations

import enum
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from sinks import PATIENCE, until

from reactive_runtime import Flow
from reactive_runtime.errors import SparkError
from reactive_runtime.picklable import Threads, Timers
from reactive_runtime.pipeline import Pipeline
from reactive_runtime.spark import JobLimits, TaskFlow, TaskMetrics, map_flow
from reactive_runtime.spark._tasks import coordinator

pytestmark = pytest.mark.timeout(300)

# The workers can't import it.
cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]


def as_is(flow: Flow[Any]) -> Flow[Any]:
    return flow


# -- what is ready leaves ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("flushed", [True, False], ids=["the stream is found", "it is pushed out"])
def test_a_limit_is_reached_by_the_rows_that_it_needs_and_these_are_counted(
    flushed: bool, spark: Any, tmp_path: Path
) -> None:
    """The sixth row is not there before the limit is reached: were the others to wait for it, there would be more."""
    metrics = TaskMetrics(spark)

    def fn(flow: Flow[Any]) -> Flow[Any]:
        if not flushed:
            from reactive_runtime.spark._tasks import worker_stream

            worker_stream._stream = lambda: None

        def only_five(row: dict[str, Any]) -> dict[str, Any]:
            end = time.monotonic() + PATIENCE
            while row["id"] >= 5 and not (tmp_path / "reached").exists() and time.monotonic() < end:
                threading.Event().wait(0.01)
            threading.Event().wait(0.001)
            return row

        return flow.map(only_five).do_finally((tmp_path / "over").write_text)

    rows = map_flow(spark.range(0, 10**7, 1, 1), fn, "id long", metrics=metrics).limit(5).collect()
    assert [row["id"] for row in rows] == [0, 1, 2, 3, 4]
    assert metrics.given == 5
    assert metrics.taken in (5, 6)
    (tmp_path / "reached").touch()
    until(lambda: (tmp_path / "over").exists() and (tmp_path / "over").read_text() == "cancel")


def test_a_flow_that_takes_the_rows_twice_is_an_error_and_loses_none(spark: Any) -> None:
    def unlucky(row: dict[str, Any]) -> dict[str, Any]:
        if row["id"] == 3:
            raise ValueError("not today")
        return row

    twice = [
        lambda f: f.map(unlucky).retry(),
        lambda f: f.repeat(2),
        lambda f: Flow.merge(f, f),
        lambda f: f.map(unlucky).on_error_resume(lambda error: f),
    ]
    for fn in twice:
        df = map_flow(spark.range(0, 8, 1, 1), fn, "id long")
        with pytest.raises(Exception, match="the rows of a partition come once, and the flow was subscribed to twice"):
            df.collect()

    def both(flow: Flow[Any]) -> Flow[Any]:
        rows = flow.publish().ref_count(2)
        return Flow.merge(rows, rows.map(dict))

    shared = map_flow(spark.range(0, 8, 1, 1), both, "id long")
    assert sorted(row["id"] for row in shared.collect()) == sorted([*range(8), *range(8)])


# -- the whole job ----------------------------------------------------------------------------------------------------


def test_calls_of_all_tasks_begin_at_the_rate_of_the_job(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Evenly spaced by the driver: n calls take n - 1 pauses, however many tasks make them. Slower is the machine.

    The driver's moments count: a task that has no turn meanwhile begins several of its calls at once.
    """
    granted: list[float] = []  # the server's thread owns it until the job is done
    say = coordinator._Peer.say

    def noted(peer: Any, **words: Any) -> None:
        if "answered" in words:
            granted.append(time.monotonic())
        say(peer, **words)

    monkeypatch.setattr(coordinator._Peer, "say", noted)
    limits = JobLimits(spark, rate=200)
    call = limits.limited(lambda row: row)
    pool = Threads(4)
    df = map_flow(spark.range(0, 100, 1, 4), lambda f: f.map_parallel(call, pool, concurrency=4), "id long")
    assert sorted(row["id"] for row in df.collect()) == list(range(100))
    assert len(granted) == 100
    assert granted[-1] - granted[0] > 99 / 200 - 0.2  # what it makes up for after a late timer, and a late reading


def test_calls_of_all_tasks_are_bounded_together(spark: Any, tmp_path: Path) -> None:
    limits = JobLimits(spark, concurrency=3)
    pool = Threads(4)

    def counted(row: dict[str, Any]) -> dict[str, Any]:
        mine = tmp_path / str(row["id"])
        mine.touch()
        there = len(list(tmp_path.iterdir()))
        threading.Event().wait(0.002)
        mine.unlink()
        return {"there": there}

    call = limits.limited(counted)
    df = map_flow(spark.range(0, 80, 1, 4), lambda f: f.map_parallel(call, pool, concurrency=4), "there int")
    there = [row["there"] for row in df.collect()]
    assert len(there) == 80
    assert 1 <= max(there) <= 3


def test_coroutines_and_calls_that_are_repeated_ask_anew(spark: Any) -> None:
    limits = JobLimits(spark, concurrency=1)

    async def call(row: dict[str, Any]) -> dict[str, Any]:
        return row

    limited = limits.limited(call)
    rows = map_flow(spark.range(0, 20, 1, 2), lambda f: f.map_parallel(limited, concurrency=4), "id long").collect()
    assert sorted(row["id"] for row in rows) == list(range(20))
    clock, pool = Timers(), Threads(2)

    def fn(flow: Flow[Any]) -> Flow[Any]:
        tried: set[int] = set()

        def at_times(row: dict[str, Any]) -> dict[str, Any]:
            if row["id"] not in tried:
                tried.add(row["id"])
                raise OSError("busy")
            return row

        def called(row: dict[str, Any]) -> Flow[Any]:
            one = Flow.from_callable(lambda: limits.limited(at_times)(row)).subscribe_on(pool)
            return one.retry_backoff(3, clock=clock, first=0.001)

        return flow.flat_map(called)

    rows = map_flow(spark.range(0, 6, 1, 2), fn, "id long").collect()
    assert sorted(row["id"] for row in rows) == list(range(6))


def test_what_a_task_held_that_was_cut_short_is_free_again(spark: Any) -> None:
    """The task ends with calls in flight, and others that wait for their turn."""
    limits = JobLimits(spark, concurrency=2)
    pool = Threads(4)

    def slow(row: dict[str, Any]) -> dict[str, Any]:
        threading.Event().wait(0.3 if row["id"] > 2 else 0)
        return row

    call = limits.limited(slow)
    df = map_flow(spark.range(0, 1000, 1, 1), lambda f: f.map_parallel(call, pool, concurrency=4), "id long")
    assert len(df.limit(2).collect()) == 2
    after = map_flow(spark.range(0, 4, 1, 2), lambda f: f.map_parallel(call, pool, concurrency=4), "id long")
    assert len(after.collect()) == 4


def test_limits_serve_a_flow_in_the_driver_too(spark: Any) -> None:
    limits = JobLimits(spark, rate=1000, concurrency=1)
    assert list(Flow.range(5).map(limits.limited(lambda n: -n))) == [0, -1, -2, -3, -4]
    limits._link.shutdown()


@pytest.mark.parametrize(
    ("more", "error", "words"),
    [
        ({}, ValueError, "JobLimits: give a rate, a concurrency, or both"),
        ({"rate": 0}, ValueError, "JobLimits: rate must be a number of calls above 0, not 0"),
        ({"rate": "7"}, TypeError, "JobLimits: rate must be a number of calls, not str"),
        ({"rate": 7, "per": 0}, ValueError, "JobLimits: per must be a number of seconds above 0"),
        ({"concurrency": 0}, ValueError, "JobLimits: concurrency must be at least 1"),
    ],
)
def test_wrong_limits_are_reported_at_once(
    more: dict[str, Any], error: type[Exception], words: str, spark: Any
) -> None:
    with pytest.raises(error, match=words):
        JobLimits(spark, **more)


# -- errors as a column -----------------------------------------------------------------------------------------------


def test_a_row_that_fails_is_a_row_with_its_error_and_its_attempts(spark: Any) -> None:
    metrics = TaskMetrics(spark)

    def at_times(row: dict[str, Any]) -> dict[str, Any]:
        if row["id"] % 4 == 3:
            raise ValueError(f"no {row['id']}")
        return {"id": row["id"], "name": 7 if row["id"] == 4 else f"customer {row['id']}"}

    pipeline = Pipeline[Any, Any]().map_parallel(at_times, Threads(4)).retry(2)
    ten = spark.range(0, 10, 1, 2)
    df = map_flow(ten, pipeline, "id long not null, name string", on_error="column", metrics=metrics)
    assert df.schema.simpleString() == (
        "struct<id:bigint,name:string,_error:struct<row:struct<id:bigint>,error:string,attempts:int>>"
    )
    rows = df.collect()
    assert [row["id"] for row in rows] == [0, 1, 2, None, None, 5, 6, None, 8, 9]
    bad = [row["_error"] for row in rows if row["_error"] is not None]
    assert [(item["row"]["id"], item["attempts"]) for item in bad] == [(3, 3), (4, 1), (7, 3)]
    assert bad[0]["error"].startswith("ValueError: no 3 (in map_parallel(")
    assert bad[1]["error"] == "SparkError: field 'name': 7 (int) is no string"
    assert (metrics.taken, metrics.given, metrics.failed, metrics.retries) == (10, 10, 3, 4)


def test_attempts_are_those_of_the_row_also_where_it_calls_flows(spark: Any) -> None:
    clock, pool = Timers(), Threads(4)

    def called(row: tuple[int]) -> Flow[Any]:
        def call() -> Any:
            if row[0] % 2:
                raise OSError("busy")
            return row

        return Flow.from_callable(call).subscribe_on(pool).retry_backoff(row[0], clock=clock, first=0.001)

    df = map_flow(
        spark.range(0, 6, 1, 1),
        lambda f: f.flat_map(called),
        "id long",
        form="tuples",
        on_error="column",
        concurrency=3,
    )
    rows = df.collect()
    assert [None if row["_error"] is None else row["_error"]["attempts"] for row in rows] == [None, 2, None, 4, None, 6]


def test_all_rows_bad_none_bad_and_no_rows(spark: Any) -> None:
    def bad(row: dict[str, Any]) -> dict[str, Any]:
        raise KeyError(row["id"])

    rows = map_flow(spark.range(0, 5, 1, 2), lambda f: f.map(bad), "id long", on_error="column").collect()
    assert [row["_error"]["row"]["id"] for row in rows] == [0, 1, 2, 3, 4]
    rows = map_flow(spark.range(0, 5, 1, 2), as_is, "id long", on_error="column").collect()
    assert [(row["id"], row["_error"]) for row in rows] == [(n, None) for n in range(5)]
    assert map_flow(spark.range(0), as_is, "id long", on_error="column").collect() == []


NESTED = "id long, a array<array<long>>, m map<string, array<long>>, s struct<b: array<long>, c: struct<d: long>>"


@pytest.mark.parametrize("form", ["dicts", "tuples"])
def test_the_row_of_an_error_is_as_it_was_read(form: Any, spark: Any) -> None:
    """Whatever the function had done to it before it failed, and to what is in it."""

    def spoil(row: Any) -> Any:
        values = list(row.values()) if isinstance(row, dict) else row
        if isinstance(row, dict):
            row["id"] = -1
            row["new"] = -1
        _, array, found, struct = values
        array[0].append(-1)
        array.append([-1])
        found["k"].append(-1)
        found["new"] = [-1]
        struct.b.append(-1)
        raise OSError("no")

    values = (7, [[1], None], {"k": [2], "l": None}, ([3], (4,)))
    df = spark.createDataFrame([values, values], NESTED).coalesce(1)
    rows = map_flow(df, lambda f: f.map(spoil), "id long", form=form, on_error="column").collect()
    assert [row["_error"]["row"] for row in rows] == [values, values]


@pytest.mark.parametrize("form", ["dicts", "tuples"])
def test_bytes_and_variants_of_an_error_are_as_they_were_read(form: Any, spark: Any) -> None:
    def spoil(row: Any) -> Any:
        _, blob, variant = row.values() if isinstance(row, dict) else row
        blob.append(1)
        variant.value = b""
        raise OSError("no")

    spark.conf.set("spark.sql.execution.pyspark.binaryAsBytes", "false")
    try:
        df = spark.sql("select 7L as id, x'0a0b' as b, parse_json('[1]') as v")
        (row,) = map_flow(df, lambda f: f.map(spoil), "id long", form=form, on_error="column").collect()
    finally:
        spark.conf.unset("spark.sql.execution.pyspark.binaryAsBytes")
    assert row["_error"]["error"].startswith("OSError: no")
    kept = row["_error"]["row"]
    assert (kept["id"], bytes(kept["b"]), kept["v"].toPython()) == (7, b"\x0a\x0b", [1])


class Odd:
    """Its field raises what no schema expects."""

    @property
    def id(self) -> int:
        raise OverflowError("too odd")


class UnspokenError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


def raised(error: Exception) -> Any:
    raise error


FAULTS: list[tuple[Any, str]] = [
    (lambda flow: raised(OSError("no flow")), "OSError: no flow"),
    (lambda flow: [1], "TypeError: fn returned [1], and no flow"),
    (lambda flow: flow.map(lambda row: Odd()), "OverflowError: too odd"),
    (lambda flow: flow.map(lambda row: raised(OSError("a\udc80b"))), "OSError: a\\udc80b"),
    (lambda flow: flow.map(lambda row: raised(UnspokenError())), "UnspokenError: its text raised RuntimeError"),
    (lambda flow: flow.map(lambda row: ("\ud800",)), "SparkError: field 'id': '\\ud800' (str) is no string"),
    (lambda flow: flow.map(lambda row: ()), "SparkError: map_flow: element 0: () has 0 values, and the schema 1"),
]


@pytest.mark.parametrize(("fault", "words"), FAULTS)
def test_a_row_fails_alone_in_whichever_way_it_fails(fault: Any, words: str, spark: Any) -> None:
    def fn(flow: Flow[Any]) -> Flow[Any]:
        row = next(iter(flow))
        return fault(Flow.just(row)) if row["id"] == 1 else Flow.just((str(row["id"]),))

    rows = map_flow(spark.range(0, 3, 1, 1), fn, "id string", on_error="column").collect()
    assert [row["id"] for row in rows] == ["0", None, "2"]
    assert rows[1]["_error"]["error"].startswith(words)
    assert (rows[1]["_error"]["row"]["id"], rows[1]["_error"]["attempts"]) == (1, 1)


# -- a pipeline -------------------------------------------------------------------------------------------------------


def test_a_pipeline_that_would_see_a_part_of_the_rows_is_refused(spark: Any) -> None:
    df = spark.range(0, 100, 1, 4)
    three = Pipeline[Any, Any]().map(dict).take(3)
    assert three.stateful == ("take",)
    with pytest.raises(ValueError, match="map_flow: `take` of the pipeline would see the rows of one partition only"):
        map_flow(df, three, "id long")
    assert len(map_flow(df, three, "id long", by_partition=True).collect()) == 12
    with pytest.raises(ValueError, match="`take` of the pipeline would see one row only"):
        map_flow(df, three, "id long", on_error="column", by_partition=True)
    assert Pipeline[Any, Any]().transform(three).rate_limit(3).stateful == ("take",)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"on_error": "row"}, "map_flow: on_error must be one of fail, column"),
        ({"concurrency": 3}, "map_flow: concurrency is for on_error='column'"),
        ({"max_delay": -1}, "map_flow: max_delay must be a number of seconds from 0"),
        ({"on_error": "column", "form": "batches"}, "on_error='column' is of rows, and form='batches' has none"),
        ({"on_error": "column", "schema": "_error int"}, "the schema has a column '_error', which is to be that of"),
        ({"on_error": "column", "schema": "_Error int"}, "the schema has a column '_Error', which is to be that of"),
        ({"on_error": "column", "concurrency": 0}, "map_flow: concurrency must be at least 1"),
    ],
)
def test_choices_that_do_not_go_together_are_reported(change: dict[str, Any], words: str, spark: Any) -> None:
    given: dict[str, Any] = {"schema": "id long", **change}
    with pytest.raises(ValueError, match=words):
        map_flow(spark.range(1), as_is, given.pop("schema"), **given)


# -- groups, cogroups, state ------------------------------------------------------------------------------------------


def test_groups_and_cogroups_go_through_flows(spark: Any) -> None:
    pool = Threads(2)
    doubled = TaskFlow(lambda f: f.map_parallel(lambda r: {"k": r["k"], "v": 2 * r["v"]}, pool), "k long, v long")
    df = spark.range(0, 12, 1, 2).selectExpr("id % 3 as k", "id as v")
    expected = sorted((n % 3, 2 * n) for n in range(12))

    def each(table: pa.Table) -> pa.Table:
        return doubled.table(table)

    def each_of(key: Any, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return doubled.batches(batches)

    assert sorted(map(tuple, df.groupBy("k").applyInArrow(each, doubled.schema).collect())) == expected
    assert sorted(map(tuple, df.groupBy("k").applyInArrow(each_of, doubled.schema).collect())) == expected
    assert sorted(map(tuple, df.mapInArrow(doubled.batches, doubled.schema).collect())) == expected

    joined = TaskFlow(
        lambda left, right: left.zip_with(right).map(lambda two: (two[0]["v"], two[1]["v"])), "a long, b long"
    )

    def both(left: pa.Table, right: pa.Table) -> pa.Table:
        return joined.table(left, right)

    other = df.selectExpr("k", "v + 100 as v")
    rows = df.groupBy("k").cogroup(other.groupBy("k")).applyInArrow(both, joined.schema).collect()
    assert sorted(map(tuple, rows)) == [(n, n + 100) for n in range(12)]


def test_an_error_in_a_group_names_the_row(spark: Any) -> None:
    def unlucky(row: dict[str, Any]) -> dict[str, Any]:
        return {"v": 1 // (row["v"] - 4)}

    flow = TaskFlow(lambda f: f.map(unlucky), "v long")

    def each(table: pa.Table) -> pa.Table:
        return flow.table(table)

    df = spark.range(0, 6, 1, 1).selectExpr("id % 2 as k", "id as v")
    with pytest.raises(Exception, match=r"TaskFlow: partition 0, row 2 \{'k': 0, 'v': 4\}: ZeroDivisionError"):
        df.groupBy("k").applyInArrow(each, "v long").collect()


@pytest.mark.nightly  # it begins RocksDB, and a server for its state in each task; the next test has `rows` without
def test_rows_of_a_processor_with_state_go_through_a_flow(spark: Any, tmp_path: Path) -> None:
    from pyspark.sql import Row
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor

    pool = Threads(2)
    named = TaskFlow(
        lambda rows: rows.map_parallel(lambda row: {"k": row.k, "total": row.v}, pool), "k long, total long"
    )

    class Totals(StatefulProcessor):
        def init(self, handle: Any) -> None:
            self.total = handle.getValueState("total", "total long")

        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
            total = self.total.get()[0] if self.total.exists() else 0
            for row in named.rows(rows):
                total += row.total
            self.total.update((total,))
            yield Row(k=key[0], total=total)

        def close(self) -> None:
            pass

    spark.range(0, 12, 1, 2).selectExpr("id % 3 as k", "id as v").write.parquet(str(tmp_path / "in"))
    stream = spark.readStream.schema("k long, v long").option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))
    provider = "spark.sql.streaming.stateStore.providerClass"
    spark.conf.set(provider, "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider")
    try:
        totals = stream.groupBy("k").transformWithState(Totals(), named.schema, "update", "none")
        query = totals.writeStream.format("memory").queryName("totals").outputMode("update")
        done = query.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start()
        done.awaitTermination()
    finally:
        spark.conf.unset(provider)
    rows = spark.sql("select k, max(total) as total from totals group by k order by k").collect()
    assert [tuple(row) for row in rows] == [(0, 18), (1, 22), (2, 26)]


def test_rows_that_do_not_fit_and_iterators_that_are_left() -> None:
    closed: list[str] = []
    flow = TaskFlow(lambda rows: rows.do_finally(closed.append), "a long, b long")
    rows = flow.rows(iter([(1, 2), (3, 4)]))
    assert tuple(next(rows)) == (1, 2)
    rows.close()  # type: ignore[attr-defined]
    assert closed == ["cancel"]
    for wrong, words in (
        ((1,), "has 1 values, and the schema 2 fields"),
        ({"a": 1}, "has not the fields of the schema"),
    ):
        with pytest.raises(SparkError, match=words):
            list(flow.rows([wrong]))


class Level(enum.IntEnum):
    HIGH = 3


def test_values_of_a_processor_are_kept_whole_or_refused(spark: Any) -> None:
    flow = TaskFlow(lambda rows: rows, "a long, b array<float>")
    (row,) = flow.rows([(Level.HIGH, (0.5, None))])
    assert [type(value) for value in row] == [int, list]
    assert tuple(row) == (3, [0.5, None])
    wrong_ones = {r"'a': 1\.5 \(float\) is no int64": (1.5, []), r"'b\[0\]': 1e\+300 .* too large": (1, [1e300])}
    for field, wrong in wrong_ones.items():
        with pytest.raises(SparkError, match=f"element 1, field {field}"):
            list(flow.rows([(1, []), wrong]))
