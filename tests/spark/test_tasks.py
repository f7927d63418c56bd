"""Inside Spark: a flow in each task, its errors named, its threads gone; a pipeline is the same wherever it runs."""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark import cloudpickle
from pyspark.sql import types
from sinks import PATIENCE, until

from reactive_runtime import Flow
from reactive_runtime.errors import SparkError
from reactive_runtime.picklable import Scope, Threads, Timers
from reactive_runtime.pipeline import Pipeline
from reactive_runtime.spark import TaskFlow, TaskMetrics, map_flow
from reactive_runtime.spark._read.frames import Rows

pytestmark = pytest.mark.timeout(300)

SCHEMA = "id long, square long"

# The workers can't import it.
cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]


def squared(row: dict[str, Any]) -> dict[str, Any]:
    return {"id": row["id"], "square": row["id"] ** 2}


def rows_of(df: Any) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in df.collect()]


@pytest.mark.parametrize("rows", ["dicts", "tuples", "batches"])
def test_rows_go_through_the_flow_in_their_order(rows: Any, spark: Any) -> None:
    def fn(flow: Flow[Any]) -> Flow[Any]:
        if rows == "batches":
            return flow.map(
                lambda batch: pa.table({"id": batch["id"], "square": [n**2 for n in batch["id"].to_pylist()]})
            )
        return flow.map(squared if rows == "dicts" else lambda row: (row[0], row[0] ** 2))

    df = map_flow(spark.range(0, 100, 1, 3), fn, SCHEMA, form=rows, batch_rows=7)
    assert rows_of(df) == [(n, n * n) for n in range(100)]


def test_calls_are_in_flight_together_and_come_in_order_or_as_they_are_done(spark: Any) -> None:
    pool = Threads(4)

    def meet(row: dict[str, Any], barrier: Any = None) -> dict[str, Any]:
        return squared(row)

    metrics = TaskMetrics(spark)
    ordered = map_flow(
        spark.range(0, 40, 1, 2), lambda f: f.map_parallel(meet, pool, concurrency=4), SCHEMA, metrics=metrics
    )
    assert rows_of(ordered) == [(n, n * n) for n in range(40)]
    assert (metrics.taken, metrics.given, metrics.retries) == (40, 40, 0)
    assert 1 <= metrics.in_flight <= 4
    some = map_flow(
        spark.range(0, 40, 1, 2), lambda f: f.map_parallel(meet, pool, concurrency=4, ordered=False), SCHEMA
    )
    assert sorted(rows_of(some)) == [(n, n * n) for n in range(40)]


def test_four_calls_at_once_meet_at_a_barrier(spark: Any) -> None:
    """No call returns before four are under way: with fewer in flight this would never end."""

    def fn(flow: Flow[Any]) -> Flow[Any]:
        barrier, pool = threading.Barrier(4), Threads(4)

        def meet(row: dict[str, Any]) -> dict[str, Any]:
            barrier.wait(PATIENCE)
            return squared(row)

        return flow.map_parallel(meet, pool, concurrency=4)

    assert len(rows_of(map_flow(spark.range(0, 16, 1, 2), fn, SCHEMA))) == 16


def test_retries_are_counted(spark: Any) -> None:
    metrics = TaskMetrics(spark)
    clock = Timers()

    def fn(flow: Flow[Any]) -> Flow[Any]:
        tried: set[int] = set()

        def at_times(row: dict[str, Any]) -> dict[str, Any]:
            if row["id"] not in tried:
                tried.add(row["id"])
                raise OSError("busy")
            return squared(row)

        def called(row: dict[str, Any]) -> Flow[Any]:
            return Flow.from_callable(lambda: at_times(row)).retry_backoff(3, clock=clock, first=0.001)

        return flow.concat_map(called)

    assert rows_of(map_flow(spark.range(0, 6, 1, 2), fn, SCHEMA, metrics=metrics)) == [(n, n * n) for n in range(6)]
    assert (metrics.taken, metrics.given, metrics.retries) == (6, 6, 6)


def test_an_error_names_the_operator_the_partition_and_the_row(spark: Any) -> None:
    def unlucky(row: dict[str, Any]) -> dict[str, Any]:
        if row["id"] == 33:
            raise ValueError("not today")
        return squared(row)

    df = map_flow(spark.range(0, 40, 1, 2), lambda f: f.map(unlucky), SCHEMA)
    with pytest.raises(
        Exception, match=r"map_flow: partition 1, row 13 \{'id': 33\}: ValueError: not today \(in map\("
    ):
        df.collect()
    pool = Threads(4)
    df = map_flow(spark.range(0, 40, 1, 2), lambda f: f.map_parallel(unlucky, pool, concurrency=4), SCHEMA)
    with pytest.raises(Exception, match=r"partition 1, row 13 \{'id': 33\}: ValueError: not today \(in map_parallel\("):
        df.collect()


def test_a_row_that_does_not_fit_is_named(spark: Any) -> None:
    df = map_flow(spark.range(0, 4, 1, 1), lambda f: f.map(lambda row: {"id": row["id"], "square": "x"}), SCHEMA)
    with pytest.raises(Exception, match=r"element 0, field 'square': 'x' \(str\) is no int64"):
        df.collect()


def test_a_limit_cancels_the_flow_and_leaves_no_thread_in_the_worker(spark: Any, tmp_path: Path) -> None:
    pool = Threads(4)

    def fn(flow: Flow[Any]) -> Flow[Any]:
        return flow.map_parallel(squared, pool, concurrency=4).finalize((tmp_path / "over").touch)

    assert len(rows_of(map_flow(spark.range(0, 100_000, 1, 1), fn, SCHEMA, batch_rows=10).limit(3))) == 3
    assert rows_of(map_flow(spark.range(0, 9, 1, 2), fn, SCHEMA)) == [(n, n * n) for n in range(9)]
    assert (tmp_path / "over").exists()
    assert left_in_workers(spark) == {0}


def left_in_workers(spark: Any) -> set[int]:
    """How many threads of flows there are in the workers, which Spark uses again."""

    def threads(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            names = [item.name for item in threading.enumerate()]
            yield pa.RecordBatch.from_pydict(
                {"left": [sum(name.startswith(("Threads", "timers", "map_flow", "spark-link")) for name in names)]}
            )

    return {row["left"] for row in spark.range(0, 4, 1, 4).mapInArrow(threads, "left long").collect()}


def test_a_cancel_of_the_job_cancels_the_flow_of_a_task_that_is_under_way(spark: Any, tmp_path: Path) -> None:
    """So does the end of the slower of two attempts, which Spark kills in the same way."""
    pool = Threads(4)

    def fn(flow: Flow[Any]) -> Flow[Any]:
        def slow(row: dict[str, Any]) -> dict[str, Any]:
            threading.Event().wait(0.005)
            (tmp_path / "began").touch()
            return squared(row)

        def over(way: str) -> None:
            (tmp_path / "over").write_text(way)

        return flow.map_parallel(slow, pool, concurrency=4).do_finally(over)

    endless = map_flow(spark.range(0, 10_000_000, 1, 1), fn, SCHEMA, batch_rows=4)
    handle = Flow.from_dataframe(endless).subscribe(print)
    until((tmp_path / "began").exists)
    assert not (tmp_path / "over").exists()
    handle.cancel()
    until(lambda: (tmp_path / "over").exists() and bool((tmp_path / "over").read_text()))
    assert (tmp_path / "over").read_text() == "cancel"
    assert left_in_workers(spark) == {0}


def test_of_a_stream_batch_by_batch(spark: Any, tmp_path: Path) -> None:
    spark.range(0, 30, 1, 3).write.parquet(str(tmp_path / "in"))
    stream = spark.readStream.schema("id long").option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))
    rows = Flow.from_stream(map_flow(stream, lambda f: f.map(squared), SCHEMA), trigger={"availableNow": True})
    assert sorted((row["id"], row["square"]) for row in rows) == [(n, n * n) for n in range(30)]


def test_one_function_does_in_driver_tasks_and_streams(spark: Any, tmp_path: Path) -> None:
    spark.range(0, 6, 1, 1).write.parquet(str(tmp_path / "in"))
    df = spark.read.parquet(str(tmp_path / "in"))
    stream = spark.readStream.schema("id long").parquet(str(tmp_path / "in"))

    def fn(rows: Flow[dict[str, Any]]) -> Flow[dict[str, Any]]:
        return rows.map(lambda row: {**row, "square": row["id"] ** 2})

    found = [{"id": n, "square": n * n} for n in range(6)]
    assert list(fn(Flow.from_dataframe(df))) == found
    assert list(fn(Flow.from_stream(stream, trigger={"availableNow": True}))) == found
    assert [row.asDict() for row in map_flow(df, fn, SCHEMA).collect()] == found
    assert TaskFlow(fn, SCHEMA).table(pa.table({"id": range(6)})).to_pylist() == found


@pytest.mark.parametrize("name", ["from_dataframe", "from_stream", "map_flow", "TaskFlow"])
def test_rows_have_one_default_form(name: str) -> None:
    calls: dict[str, Any] = {"map_flow": map_flow, "TaskFlow": TaskFlow}
    assert inspect.signature(calls.get(name) or getattr(Flow, name)).parameters["form"].default == "dicts"


def test_what_cannot_travel_is_named_with_the_way_to_it(spark: Any) -> None:
    lock = threading.Lock()

    def call(row: dict[str, Any]) -> dict[str, Any]:
        with lock:
            return squared(row)

    with pytest.raises(SparkError, match=r"fn can't travel to the tasks: 'lock' \(lock\) in call can't be pickled: "):
        map_flow(spark.range(1), lambda f: f.map(call), SCHEMA)
    with pytest.raises(SparkError, match=r"'lock' \(lock\) in map can't be pickled: "):
        map_flow(spark.range(1), Pipeline[Any, Any]().map(call), SCHEMA)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"df": 7}, TypeError, "map_flow: a DataFrame is needed, not int"),
        ({"fn": 7}, TypeError, "map_flow: fn must be callable, not int"),
        ({"form": "lists"}, ValueError, "map_flow: form must be one of dicts, tuples, batches"),
        ({"batch_rows": 0}, ValueError, "map_flow: batch_rows must be at least 1"),
        ({"schema": "n lang"}, SparkError, "map_flow: 'n lang' is no schema of Spark"),
        ({"schema": "x int, x int"}, ValueError, "map_flow: two fields of the schema are named 'x'"),
        ({"schema": "v array<struct<a: int, a: int>>"}, ValueError, "map_flow: two fields of the schema are named 'a'"),
        ({"schema": "v interval month"}, SparkError, "map_flow: field 'v' has the type interval month, which a flow"),
        ({"schema": "v array<interval>"}, SparkError, "map_flow: field 'v' has the type array<interval>, which a flow"),
        ({"schema": "v map<void, void>"}, SparkError, "map_flow: field 'v' has the type map<void,void>, which a flow"),
    ],
)
def test_wrong_arguments_are_reported_at_once(
    change: dict[str, Any], error: type[Exception], words: str, spark: Any
) -> None:
    given_: dict[str, Any] = {"df": spark.range(1), "fn": lambda f: f, "schema": "id long", **change}
    with pytest.raises(error, match=words):
        map_flow(given_.pop("df"), given_.pop("fn"), given_.pop("schema"), **given_)


def test_types_that_no_flow_has_are_refused_where_it_is_made(spark: Any) -> None:
    for sql in ("interval '1' month", "make_interval(1)"):
        for form in get_args(Rows):
            df = spark.sql(f"select {sql} v")
            with pytest.raises(SparkError, match=r"^map_flow: .* is not implemented"):
                map_flow(df, lambda f: f, "n int", form=form)
            with pytest.raises(SparkError, match=r"^from_dataframe: .* is not implemented"):
                Flow.from_dataframe(df, form=form)
    with pytest.raises(SparkError, match=r"^to_spark: field 'v' has the type map<void,void>, which a flow can't write"):
        Flow.empty().to_spark(spark, "v map<void, void>")
    with pytest.raises(ValueError, match=r"^TaskFlow: two fields of the schema are named 'x', which Spark can't read"):
        TaskFlow(lambda f: f, "x int, x int")
    with pytest.raises(ValueError, match=r"^map_flow: two fields of the schema are named 'a', which Spark can't read"):
        map_flow(spark.sql("select named_struct('a', 1, 'a', 2) v"), lambda f: f, "n int", on_error="column")


def test_an_array_of_nothing_travels_both_ways(spark: Any) -> None:
    empty = types.StructType([types.StructField("v", types.ArrayType(types.NullType(), False), False)])
    df = map_flow(spark.sql("select array() v"), lambda f: f, empty)
    assert df.collect() == [([],)]
    df = map_flow(spark.sql("select array() v"), lambda f: f.map(lambda row: 1 // 0), "n int", on_error="column")
    assert [row["_error"].row for row in df.collect()] == [([],)]


def test_a_pool_travels_without_its_threads_and_a_scope_ends_it() -> None:
    import pickle

    with Threads(2) as pool:
        assert pool.submit(int, "7").result(PATIENCE) == 7
        copy = pickle.loads(pickle.dumps(pool))
    clock = pickle.loads(pickle.dumps(Timers()))
    before = set(threading.enumerate())
    with Scope() as scope:
        assert list(Flow.range(6).map_parallel(str, copy, concurrency=2)) == list("012345")
        assert clock.schedule(0.0, int, "8").result(PATIENCE) == 8
        assert set(threading.enumerate()) - before
    assert set(threading.enumerate()) - before == set()  # others, of earlier tests, may have ended meanwhile
    assert 1 <= scope.most <= 2
    with pytest.raises(RuntimeError, match="is over: nothing would end what began now"):
        scope.enter(copy)
    with pytest.raises(RuntimeError, match="is over: nothing would end what began now"):
        scope.flies()
    with copy:
        assert copy.submit(int, "9").result(PATIENCE) == 9  # begun anew


# -- one pipeline, three places -----------------------------------------------------------------------------------

LINKS: list[Callable[[Pipeline[Any, Any]], Pipeline[Any, Any]]] = [
    lambda p: p.map(squared),
    lambda p: p.filter(lambda row: row["id"] % 3),
    lambda p: p.flat_map_iterable(lambda row: [row, {**row, "id": -row["id"]}]),
    lambda p: p.map_parallel(lambda row: {**row, "id": row["id"] + 1}, Threads(2), concurrency=2),
    lambda p: p.flat_map_sequential(lambda row: Flow.just(row, row)),
    lambda p: p.batch(2).flatten(),
    lambda p: p.handle(lambda row, emit: emit(row) if row["id"] else None),
    lambda p: p.do_on_next(lambda row: row["id"]),
]


@settings(
    max_examples=5,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(links=st.lists(st.sampled_from(LINKS), min_size=1, max_size=4), rows=st.integers(0, 30))
def test_a_pipeline_does_the_same_to_a_flow_a_frame_and_a_stream(
    links: list[Any], rows: int, spark: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    pipeline: Pipeline[Any, Any] = Pipeline().map(squared)
    for link in links:
        pipeline = link(pipeline)
    here = list(pipeline(Flow.range(rows).map(lambda n: {"id": n})))
    folder = tmp_path_factory.mktemp("same")
    spark.range(0, rows, 1, 1).write.parquet(str(folder / "in"))
    frame = map_flow(spark.range(0, rows, 1, 1), pipeline, SCHEMA, by_partition=True)
    streaming = spark.readStream.schema("id long").parquet(str(folder / "in"))
    stream = Flow.from_stream(map_flow(streaming, pipeline, SCHEMA, by_partition=True), trigger={"availableNow": True})
    assert [row.asDict() for row in frame.collect()] == here
    assert list(stream) == here


def test_a_pipeline_has_the_operators_of_flow_and_no_others() -> None:
    assert repr(Pipeline[int, int]().map(str).take(2)) == "<Pipeline map take>"
    with pytest.raises(AttributeError, match="Pipeline has no 'mpa', since Flow has no such operator"):
        Pipeline[int, int]().mpa(str)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
    for name in ("range", "just", "block", "subscribe", "explain", "to_future", "from_async"):
        assert not hasattr(Pipeline(), name)
    for name in (
        "map",
        "filter",
        "flat_map",
        "publish_on",
        "retry_backoff",
        "buffer_timeout",
        "take",
        "do_on_next",
        "scan",
    ):
        assert hasattr(Pipeline(), name)
    doubled = Pipeline[int, int]().map(lambda n: 2 * n)
    assert list(Flow.range(3).transform(doubled)) == [0, 2, 4]
    assert list(doubled(Flow.range(3))) == list(doubled(Flow.range(3)))
