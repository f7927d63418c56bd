"""Out of Spark: rows by demand, and by the rules; errors with the reason first; a cancel that reaches the jobs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from searching import one_pair_each_by_day
from sinks import PATIENCE, Sink, until

from reactive_runtime import MAX_DEMAND, Flow
from reactive_runtime.errors import SparkError
from reactive_runtime.hooks import Dropped
from reactive_runtime.spark._session.jobs import Jobs
from reactive_runtime.testing import Recorder, check

pytestmark = pytest.mark.timeout(300)


def first(row: Any) -> Any:
    (value,) = row.values()
    return value


def stream_of(spark: Any, folder: Path, files: int = 3, rows: int = 7) -> Any:
    """A streaming DataFrame, one file of numbers a batch."""
    for number in range(files):
        numbers = spark.range(number * rows, (number + 1) * rows, 1, 1).toDF("n")
        numbers.write.mode("append").parquet(str(folder))
    return spark.readStream.schema("n long").option("maxFilesPerTrigger", 1).parquet(str(folder))


def frame(spark: Any, folder: Path) -> Flow[int]:
    return Flow.from_dataframe(spark.range(0, 21, 1, 4)).map(first)


def batches(spark: Any, folder: Path) -> Flow[int]:
    rows = Flow.from_dataframe(spark.range(0, 21, 1, 4), prefetch_partitions=3, form="batches", batch_rows=2)

    def numbers(batch: Any) -> list[int]:
        found: list[int] = batch.column(0).to_pylist()
        return found

    return rows.flat_map_iterable(numbers)


def stream(spark: Any, folder: Path) -> Flow[int]:
    return Flow.from_stream(
        stream_of(spark, folder / "in"), checkpoint=folder / "checkpoint", trigger={"availableNow": True}
    ).map(first)


SOURCES: dict[str, Callable[[Any, Path], Flow[int]]] = {"dataframe": frame, "batches": batches, "stream": stream}


class Demanding(Sink):
    """Asks for `demand` elements, again and again."""

    def __init__(self, demand: int) -> None:
        super().__init__(demand, Demanding.again)
        self.owed = demand

    def again(self, element: Any) -> None:
        self.owed -= 1
        if not self.owed:
            self.owed = self.demand
            self.subscription.request(self.demand)


@pytest.mark.parametrize(("source", "demand"), one_pair_each_by_day(SOURCES, [1, 7, MAX_DEMAND]))
def test_a_source_gives_its_rows_in_order_and_keeps_the_rules(
    source: str, demand: int, spark: Any, tmp_path: Path
) -> None:
    recorder = Recorder()
    sink = Demanding(demand)
    publisher = recorder.wrap(SOURCES[source](spark, tmp_path), source, ascending=True, elements=21)
    publisher.subscribe(sink)
    sink.wait()
    assert [signal[1] for signal in sink.signals[1:-1]] == list(range(21))
    assert sink.signals[-1] == ("on_complete",)
    assert check(recorder.records()) == []


@pytest.mark.parametrize("source", SOURCES)
def test_nothing_comes_without_demand_and_a_cancel_from_inside_is_the_last(
    source: str, spark: Any, tmp_path: Path, dropped: list[Dropped]
) -> None:
    sink = Sink(0, lambda sink, element: sink.subscription.cancel())
    SOURCES[source](spark, tmp_path).subscribe(sink)
    assert sink.signals == [("on_subscribe",)]
    sink.subscription.request(9)
    sink.wait_for(1)
    assert sink.signals == [("on_subscribe",), ("on_next", 0)]
    assert [drop for drop in dropped if drop.error is not None] == []


def test_elements_are_tuples_dicts_or_batches_of_so_many_rows(spark: Any) -> None:
    df = spark.sql("select * from values (1, 'a', 1.5D), (2, null, null) as (n, s, x)").coalesce(1)
    dicts = [{"n": 1, "s": "a", "x": 1.5}, {"n": 2, "s": None, "x": None}]
    assert list(Flow.from_dataframe(df)) == list(Flow.from_dataframe(df, form="dicts")) == dicts
    assert list(Flow.from_dataframe(df, form="tuples")) == [(1, "a", 1.5), (2, None, None)]
    one, two = Flow.from_dataframe(df, form="batches", batch_rows=1)
    assert (one.num_rows, two.num_rows, one.schema.names) == (1, 1, ["n", "s", "x"])
    assert pa.Table.from_batches([one, two]).to_pylist() == df.toArrow().to_pylist()


def test_every_type_comes_as_spark_itself_gives_it(spark: Any) -> None:
    df = spark.sql(
        "select 1Y as b, 2S as s, 3 as i, 4L as l, 1.5F as f, 2.5D as d, 3.50BD as m, true as t, binary('x') as y,"
        " date'2026-11-22' as day, array(1, 2) as a, map('k', 1) as k, named_struct('p', 1) as n from range(0, 3, 1, 2)"
    )
    assert list(Flow.from_dataframe(df)) == [row.asDict() for row in df.collect()]


def test_a_shuffle_is_planned_once_and_its_partitions_come_in_order(spark: Any) -> None:
    df = spark.range(0, 100, 1, 4).selectExpr("id % 10 as k").groupBy("k").count().orderBy("k")
    flow = Flow.from_dataframe(df, prefetch_partitions=2)
    assert list(flow) == list(flow) == [{"k": k, "count": 10} for k in range(10)]


def test_an_empty_frame_completes(spark: Any) -> None:
    assert list(Flow.from_dataframe(spark.range(0))) == []


def test_no_more_partitions_are_fetched_than_asked_for(spark: Any) -> None:
    """One that is being taken and one ahead: the third is not begun before the rows of the first have been taken."""
    jobs = spark.sparkContext.accumulator(0)

    def counted(rows: Any) -> Any:
        jobs.add(1)
        yield from rows

    df = spark.range(0, 60, 1, 6).mapInArrow(counted, "id long")
    sink = Sink(5)
    Flow.from_dataframe(df).subscribe(sink)
    sink.wait_for(5)
    until(lambda: jobs.value >= 2)
    idle(spark)
    assert jobs.value == 2
    sink.subscription.request(6)  # one of the second
    sink.wait_for(6)
    until(lambda: jobs.value >= 3)
    idle(spark)
    assert jobs.value == 3
    sink.subscription.cancel()


def idle(spark: Any) -> None:
    """Wait until Spark has no job of ours."""
    until(lambda: not spark.sparkContext.statusTracker().getActiveJobsIds())


def test_a_cancel_ends_the_jobs_and_the_threads(spark: Any, tmp_path: Path) -> None:
    def stuck(rows: Any) -> Any:
        (tmp_path / "began").touch()
        threading.Event().wait(600)
        yield from rows

    before = set(threading.enumerate())
    flow = Flow.from_dataframe(spark.range(0, 8, 1, 8).mapInArrow(stuck, "id long"))
    handle = flow.subscribe(print)
    until((tmp_path / "began").exists)
    assert spark.sparkContext.statusTracker().getActiveJobsIds() != []
    handle.cancel()
    idle(spark)
    for thread in set(threading.enumerate()) - before:
        thread.join(PATIENCE)
        assert not thread.is_alive(), thread


def test_a_cancel_that_spark_refuses_goes_to_the_hook(dropped: list[Dropped]) -> None:
    class Context:
        """Of a session that is stopped while a job runs."""

        _jsc = SimpleNamespace(sc=lambda: SimpleNamespace(isStopped=lambda: False))

        def addJobTag(self, tag: str) -> None:  # noqa: N802
            """As Spark's."""

        def setInterruptOnCancel(self, interrupt: bool) -> None:  # noqa: N802
            """As Spark's."""

        def cancelJobsWithTag(self, tag: str) -> None:  # noqa: N802
            raise RuntimeError("the context is stopped")

    jobs = Jobs(SimpleNamespace(sparkContext=Context()), "from_dataframe", 1)
    began, over = threading.Event(), threading.Event()

    def hold() -> bool:
        began.set()
        return over.wait(PATIENCE)

    running = jobs.pool.submit(jobs.call, None, hold)
    assert began.wait(PATIENCE)
    jobs.leave()
    until(lambda: bool(dropped))
    over.set()
    running.result(PATIENCE)
    assert [str(drop.error) for drop in dropped] == ["the context is stopped"]


def test_an_error_of_a_job_comes_after_its_rows_with_sparks_reason_first(spark: Any) -> None:
    df = spark.range(0, 40, 1, 4).selectExpr("if(id = 25, raise_error('out of luck'), cast(id as string)) as s")
    sink = Sink()
    Flow.from_dataframe(df).subscribe(sink)
    sink.wait()
    assert len(sink.signals) == 1 + 20 + 1
    ((kind, error),) = sink.signals[-1:]
    assert kind == "on_error"
    assert isinstance(error, SparkError)
    assert str(error).startswith("from_dataframe: [USER_RAISED_EXCEPTION] out of luck")
    assert "\n" not in str(error)
    assert error.__cause__ is not None


def test_a_job_that_fails_does_not_take_the_one_before_it_along(spark: Any, tmp_path: Path) -> None:
    """Spark ends all jobs over an RDD when one of them fails: they must not share one."""
    failed, told = tmp_path / "failed", tmp_path / "told"

    def part(rows: Any) -> Any:
        for batch in rows:
            number = batch["id"][0].as_py() // 10
            if number == 1:  # is under way until 2 has failed
                while not told.exists():
                    threading.Event().wait(0.01)
            if number == 2:
                failed.touch()
                raise LookupError("no such customer")
            yield batch

    sink = Sink()
    Flow.from_dataframe(spark.range(0, 40, 1, 4).mapInArrow(part, "id long")).subscribe(sink)
    until(failed.exists)
    until(lambda: len(spark.sparkContext.statusTracker().getActiveJobsIds()) <= 1)
    told.touch()
    sink.wait()
    assert [row["id"] for row in sink.elements] == list(range(20))
    assert "no such customer" in str(sink.error)


def test_an_error_of_a_function_in_a_worker_is_the_reason(spark: Any) -> None:
    def broken(rows: Any) -> Any:
        for _ in rows:
            raise LookupError("no such customer")
        yield from rows

    with pytest.raises(SparkError, match=r"^from_dataframe: LookupError: no such customer(\n|$)"):
        list(Flow.from_dataframe(spark.range(3).mapInArrow(broken, "id long")))


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"df": 7}, TypeError, "from_dataframe: a DataFrame is needed, not int"),
        ({"prefetch_partitions": 0}, ValueError, "prefetch_partitions must be at least 1"),
        ({"batch_rows": 0}, ValueError, "batch_rows must be at least 1"),
        ({"form": "lists"}, ValueError, "form must be one of dicts, tuples, batches, not 'lists'"),
    ],
)
def test_wrong_arguments_are_reported_where_the_flow_is_made(
    arguments: dict[str, Any], error: type[Exception], words: str, spark: Any
) -> None:
    df = arguments.pop("df", None) or spark.range(1)
    with pytest.raises(error, match=words):
        Flow.from_dataframe(df, **arguments)


def test_a_frame_is_no_stream(spark: Any) -> None:
    with pytest.raises(TypeError, match="from_stream: a streaming DataFrame is needed"):
        Flow.from_stream(spark.range(1))


def test_a_batch_is_committed_when_all_of_it_was_taken_and_comes_again_where_it_was_not(
    spark: Any, tmp_path: Path
) -> None:
    df = stream_of(spark, tmp_path / "in")
    part = Sink(10)
    Flow.from_stream(df, checkpoint=tmp_path / "checkpoint", trigger={"availableNow": True}).map(first).subscribe(part)
    part.wait_for(10)
    taken = [signal[1] for signal in part.signals[1:]]
    part.subscription.cancel()
    no_query(spark)
    again = list(Flow.from_stream(df, checkpoint=tmp_path / "checkpoint", trigger={"availableNow": True}).map(first))
    assert taken == list(range(10))
    assert again == list(range(7, 21))  # the first batch was committed, the second was not
    assert list(Flow.from_stream(df, checkpoint=tmp_path / "checkpoint", trigger={"availableNow": True})) == []


def no_query(spark: Any) -> None:
    """Wait until no query runs."""
    until(lambda: not spark.streams.active)


def test_without_demand_spark_plans_no_further_batch(spark: Any, tmp_path: Path) -> None:
    sink = Sink(3)
    Flow.from_stream(stream_of(spark, tmp_path / "in"), checkpoint=tmp_path / "checkpoint").map(first).subscribe(sink)
    sink.wait_for(3)
    commits = tmp_path / "checkpoint" / "commits"
    assert list(commits.glob("[0-9]*")) == []
    sink.subscription.request(4)
    sink.wait_for(4)
    sink.subscription.request(1)
    sink.wait_for(1)  # of the second batch: the first is committed
    assert [item.name for item in commits.glob("[0-9]*")] == ["0"]
    sink.subscription.cancel()
    no_query(spark)


def test_an_error_of_the_query_is_the_flows(spark: Any, tmp_path: Path) -> None:
    df = stream_of(spark, tmp_path / "in").selectExpr("if(n = 9, raise_error('spilt'), cast(n as string)) as s")
    sink = Sink()
    Flow.from_stream(df, checkpoint=tmp_path / "checkpoint", trigger={"availableNow": True}).subscribe(sink)
    sink.wait()
    assert "spilt" in str(sink.signals[-1][1])
    assert isinstance(sink.signals[-1][1], SparkError)
    no_query(spark)


def test_what_a_stream_has_added_up_comes_in_the_mode_that_is_asked_for(spark: Any, tmp_path: Path) -> None:
    counts = stream_of(spark, tmp_path / "in", files=2).selectExpr("n % 2 as k").groupBy("k").count()
    whole = Flow.from_stream(counts, trigger={"availableNow": True}, mode="complete", form="tuples")
    assert sorted(whole) == [(0, 4), (0, 7), (1, 3), (1, 7)]
    with pytest.raises(ValueError, match="from_stream: mode must be one of append, update, complete, not 'replace'"):
        Flow.from_stream(counts, mode="replace")  # type: ignore[call-overload]


def test_the_checkpoint_of_another_query_is_named(spark: Any, tmp_path: Path) -> None:
    options: Any = {"checkpoint": tmp_path / "checkpoint", "trigger": {"availableNow": True}}
    one = stream_of(spark, tmp_path / "in")
    assert len(list(Flow.from_stream(one, **options))) == 21
    words = r"^from_stream: .*; the checkpoint .*/checkpoint was there before: if it is that of another query, use"
    for other in (spark.readStream.format("rate").load(), one.union(one), stream_of(spark, tmp_path / "other")):
        with pytest.raises(SparkError, match=words):
            list(Flow.from_stream(other, **options))
    assert list(Flow.from_stream(one, **options)) == []  # its own query still can
