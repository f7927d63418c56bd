"""How partitions come out of Spark: in pieces, several a job where they are small, under the caller's own settings."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from sinks import PATIENCE, Sink, until

import reactive_runtime.spark
from reactive_runtime import Flow
from reactive_runtime.errors import SparkError
from reactive_runtime.hooks import Dropped
from reactive_runtime.spark._read import arrow_jobs, frames, spools
from reactive_runtime.spark._read.arrow_jobs import PartitionJobs

pytestmark = pytest.mark.timeout(300)

BATCH = 10_000
"""Rows of a batch, by Spark's own default."""


def numbers(rows: Any) -> list[int]:
    return [row[0] for row in rows]


def idle(spark: Any) -> None:
    until(lambda: not spark.sparkContext.statusTracker().getActiveJobsIds())


def test_rows_of_a_partition_come_while_its_task_runs(spark: Any, tmp_path: Path) -> None:
    taken = tmp_path / "taken"

    def part(batches: Any) -> Any:
        for number, batch in enumerate(batches):
            while number == 10 and not taken.exists():  # what a worker has yielded may wait in its buffer, for the next
                threading.Event().wait(0.01)
            yield batch

    sink = Sink(BATCH)
    Flow.from_dataframe(spark.range(0, 12 * BATCH, 1, 1).mapInArrow(part, "id long"), form="tuples").subscribe(sink)
    try:
        sink.wait_for(BATCH)
    finally:
        taken.touch()
    sink.subscription.request(11 * BATCH)
    sink.wait()
    assert numbers(sink.elements) == list(range(12 * BATCH))


@pytest.mark.parametrize("in_memory", [0, 1 << 24], ids=["file", "memory"])
def test_no_batch_of_a_large_partition_passes_through_the_drivers_heap(
    in_memory: int, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    returned: list[int] = []
    monkeypatch.setattr(spools, "IN_MEMORY", in_memory)
    monkeypatch.setattr(spools.Spool, "returned", lambda spool, batches: returned.append(len(batches)))
    rows = Flow.from_dataframe(spark.range(0, 30 * BATCH, 1, 1), form="batches")
    assert rows.map(lambda batch: batch.num_rows).to_list().block() == [BATCH] * 30
    assert returned == []


def test_an_error_in_the_middle_of_a_partition_comes_after_the_rows_before_it(spark: Any) -> None:
    rows = spark.range(0, 5 * BATCH, 1, 1).selectExpr(f"if(id = {3 * BATCH + 5}, raise_error('out of luck'), id) as n")
    sink = Sink()
    Flow.from_dataframe(rows, form="tuples").subscribe(sink)
    sink.wait()
    assert [int(n) for n in numbers(sink.elements)] == list(range(3 * BATCH))
    assert str(sink.error).startswith("from_dataframe: [USER_RAISED_EXCEPTION] out of luck")


def test_small_partitions_are_fetched_many_a_job(spark: Any) -> None:
    context = spark.sparkContext
    context.setJobGroup("many", "small partitions")
    try:
        df = spark.range(0, 600, 1, 300).where("id % 7 != 0")
        assert numbers(Flow.from_dataframe(df, form="tuples")) == numbers(df.collect())
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)
        context.setLocalProperty("spark.job.description", None)
    jobs = context.statusTracker().getJobIdsForGroup("many")
    assert len(jobs) < 300 / 10 + 1  # that of `collect` is one of them


def test_no_more_small_partitions_are_asked_for_than_were_taken_before(spark: Any) -> None:
    begun = spark.sparkContext.accumulator(0)

    def counted(rows: Any) -> Any:
        begun.add(1)
        yield from rows

    sink = Sink(1)
    Flow.from_dataframe(spark.range(0, 200, 1, 200).mapInArrow(counted, "id long")).subscribe(sink)
    for taken in range(1, 40):
        sink.wait_for(1)
        until(lambda least=taken + 1: begun.value >= least)  # type: ignore[misc]
        idle(spark)
        assert begun.value <= 3 * taken + 1
        sink.subscription.request(1)
    sink.subscription.cancel()


def test_large_partitions_among_small_ones_come_whole_and_in_order(spark: Any) -> None:
    """Those that turn out to be large where a job has several are fetched again, alone."""
    large = (30, 31, 47, 79)
    df = spark.range(0, 80, 1, 80).selectExpr(f"explode(array_repeat(id, if(id in {large}, 60000, 2))) as n")
    found = [n for n in range(80) for _ in range(60_000 if n in large else 2)]
    rows = Flow.from_dataframe(df, form="batches").flat_map_iterable(lambda batch: batch.column(0).to_pylist())
    assert list(rows) == found


@pytest.mark.parametrize("partitions", [1, 2, 60])
def test_partitions_without_rows_are_passed_over(partitions: int, spark: Any) -> None:
    df = spark.range(0, partitions, 1, partitions)
    assert list(Flow.from_dataframe(df.where("id < 0"))) == []
    assert numbers(Flow.from_dataframe(df.where(f"id = {partitions - 1}"), form="tuples")) == [partitions - 1]


# -- what the caller's thread has set ---------------------------------------------------------------------------


def test_jobs_have_the_group_the_description_and_the_pool_of_the_thread_that_subscribes(spark: Any) -> None:
    def told(batches: Any) -> Any:
        import pyarrow as pa
        from pyspark import TaskContext

        yield from ()
        context = TaskContext.get()
        assert context is not None
        names = ("spark.jobGroup.id", "spark.job.description", "spark.scheduler.pool")
        found = [str(context.getLocalProperty(name)) for name in names]
        yield pa.RecordBatch.from_arrays([pa.array([name]) for name in found], ["a", "b", "c"])

    df = spark.range(0, 1, 1, 1).mapInArrow(told, "a string, b string, c string")
    flow = Flow.from_dataframe(df, form="tuples")
    found: dict[str, list[Any]] = {}

    def subscribes(name: str) -> None:
        context = spark.sparkContext
        context.setJobGroup(name, f"rows of {name}")
        context.setLocalProperty("spark.scheduler.pool", f"pool of {name}")
        found[name] = list(flow)
        assert context.getLocalProperty("spark.job.tags") is None  # ours is left on no thread of the caller's

    threads = [threading.Thread(target=subscribes, args=(name,)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert found == {name: [(name, f"rows of {name}", f"pool of {name}")] for name in ("one", "two")}
    assert list(flow) == [("None", "None", "None")]


def test_a_cancel_of_the_callers_group_is_an_error_of_the_flow(spark: Any, tmp_path: Path) -> None:
    def stuck(rows: Any) -> Any:
        (tmp_path / "began").touch()
        threading.Event().wait(600)
        yield from rows

    sink = Sink()

    def subscribes() -> None:
        spark.sparkContext.setJobGroup("mine", "to be cancelled")
        Flow.from_dataframe(spark.range(0, 8, 1, 8).mapInArrow(stuck, "id long")).subscribe(sink)

    thread = threading.Thread(target=subscribes)
    thread.start()
    thread.join(PATIENCE)
    until((tmp_path / "began").exists)
    spark.sparkContext.cancelJobGroup("mine")
    sink.wait()
    assert isinstance(sink.error, SparkError)
    assert "cancelled" in str(sink.error)


# -- a cancel ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("taken", [0, 1, BATCH, BATCH + 1, 3 * BATCH])
def test_a_cancel_at_any_row_frees_the_task_and_leaves_nothing(
    taken: int, spark: Any, dropped: list[Dropped], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frames, "_GRACE", PATIENCE)  # it stops by itself, also on a busy machine
    before = set(threading.enumerate())
    arrow = spark.sparkContext._jvm.org.apache.spark.sql.util.ArrowUtils.rootAllocator()
    kept = arrow.getAllocatedMemory()  # Spark keeps a batch for good where a task is interrupted while it writes it
    sink = Sink(taken)
    Flow.from_dataframe(spark.range(0, 100_000_000, 1, 2)).subscribe(sink)
    sink.wait_for(taken)
    sink.subscription.cancel()
    idle(spark)
    for thread in set(threading.enumerate()) - before:
        thread.join(PATIENCE)
        assert not thread.is_alive(), thread
    until(lambda: arrow.getAllocatedMemory() <= kept)
    assert [drop for drop in dropped if drop.error is not None] == []


def test_threads_of_the_jvm_end_with_the_flows(spark: Any) -> None:
    threads = spark.sparkContext._jvm.java.lang.Thread
    df = spark.range(0, 10, 1, 2)
    for _ in range(5):
        list(Flow.from_dataframe(df))
    before = threads.activeCount()
    for _ in range(20):
        list(Flow.from_dataframe(df))
    until(lambda: threads.activeCount() <= before + 10)


# -- other ways ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["encrypted", "address of another machine", "closed port"])
def test_where_tasks_can_not_reach_this_process_batches_come_with_their_results(
    way: str, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    if way == "encrypted":
        monkeypatch.setattr(PartitionJobs, "_may_send", lambda jobs: False)
    elif way == "closed port":
        listening = arrow_jobs._listening
        monkeypatch.setattr(arrow_jobs, "_listening", lambda *given: (listening(*given)[0], 1))
    else:
        monkeypatch.setattr(PartitionJobs, "_hosts", lambda jobs: ("192.0.2.1", "192.0.2.1"))
    assert numbers(Flow.from_dataframe(spark.range(0, 5 * BATCH, 1, 3), form="tuples")) == list(range(5 * BATCH))


@pytest.fixture
def publicly(monkeypatch: pytest.MonkeyPatch) -> None:
    """The names that PySpark keeps to itself are not there."""

    def missing(context: Any) -> Any:
        raise AttributeError("SparkContext has no _jvm")

    monkeypatch.setattr(arrow_jobs, "_sender_of", missing)


def test_by_public_names_alone_errors_and_a_cancel_are_the_same(
    publicly: None, spark: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    before = set(threading.enumerate())
    rows = spark.range(0, 40, 1, 4).selectExpr("if(id = 25, raise_error('out of luck'), cast(id as string)) as s")
    sink = Sink()
    Flow.from_dataframe(rows).subscribe(sink)
    sink.wait()
    assert str(sink.error).startswith("from_dataframe: [USER_RAISED_EXCEPTION] out of luck")
    assert "from_dataframe: rows come by toLocalIterator, since SparkContext has no _jvm" in caplog.text

    def stuck(rows: Any) -> Any:
        (tmp_path / "began").touch()
        threading.Event().wait(600)
        yield from rows

    handle = Flow.from_dataframe(spark.range(0, 8, 1, 8).mapInArrow(stuck, "id long")).subscribe(print)
    until((tmp_path / "began").exists)
    handle.cancel()
    idle(spark)
    waits = Sink(1)
    Flow.from_dataframe(spark.range(0, 8, 1, 8)).subscribe(waits)
    waits.wait_for(1)
    waits.subscription.cancel()
    idle(spark)
    for thread in set(threading.enumerate()) - before:
        if thread.name.startswith("from_dataframe"):
            thread.join(PATIENCE)
            assert not thread.is_alive(), thread


def test_names_that_pyspark_keeps_to_itself_are_used_in_one_module() -> None:
    """What fetches partitions; whether a session is over (`_jsc`), and how a query ended (`_jsq`), are elsewhere."""
    names = re.compile(r"\._jdf\b|\._jvm\.\w*PythonRDD|_load_from_socket|\._gateway\b|\._plan\b|\._session\b.*client")
    folder = Path(reactive_runtime.spark.__file__).parent
    found = {
        path.name
        for path in folder.rglob("*.py")
        if names.search(re.sub(r"self\._(plan|session)\b", "", path.read_text(encoding="utf-8")))
    }
    assert found == {"arrow_jobs.py"}


# -- a task that is lost -------------------------------------------------------------------------------------------

AGAIN = """
import sys
from pathlib import Path
from reactive_runtime import Flow
from reactive_runtime.spark import session
from reactive_runtime.spark._session.spark_session import BRIEF

spark = session("local[2,3]", {**BRIEF, "spark.driver.memory": "1g"})


def lost(differs):
    def part(batches):
        from pyspark import TaskContext

        again = TaskContext.get().attemptNumber()
        for number, batch in enumerate(batches):
            if number == 3 and not again:
                raise OSError("the disk went away")
            if differs and again:
                import pyarrow as pa
                batch = pa.RecordBatch.from_pydict({"id": batch.column(0).to_pylist()[::-1]})
            yield batch

    return Flow.from_dataframe(spark.range(0, 50_000, 1, 1).mapInArrow(part, "id long"))


print([row["id"] for row in lost(False)] == list(range(50_000)), flush=True)
try:
    print(len(list(lost(True))), flush=True)
except Exception as error:
    print(type(error).__name__, error, flush=True)
"""


@pytest.mark.nightly  # a JVM of its own; test_spools.py has attempts of all kinds
def test_a_task_that_runs_again_gives_each_row_once_or_an_error() -> None:
    done = subprocess.run([sys.executable, "-c", AGAIN], capture_output=True, text=True, timeout=250, check=False)
    same, other = done.stdout.splitlines()
    assert same == "True", done.stderr[-3000:]
    assert other.startswith("SparkError from_dataframe: partition 0: its task was lost, and had other rows")


HEAP = """
import sys
from reactive_runtime import Flow
from reactive_runtime.spark import session

spark = session("local[2]", {"spark.driver.memory": "512m"})
rows = int(sys.argv[1])
df = spark.range(0, rows, 1, 1).selectExpr("id", "id * 1.5D as x", "lpad(id, 120, '0') as s")
print(Flow.from_dataframe(df, form="batches").map(lambda batch: batch.num_rows).sum().block(), flush=True)
print(Flow.from_dataframe(df).count().block(), flush=True)
"""


@pytest.mark.nightly
@pytest.mark.timeout(1200)
def test_a_partition_that_is_larger_than_the_drivers_heap_comes_whole() -> None:
    """Some 1.4 GB as Arrow, in a JVM of 512 MB."""
    done = subprocess.run(
        [sys.executable, "-c", HEAP, "10000000"], capture_output=True, text=True, timeout=1100, check=False
    )
    assert done.stdout.splitlines() == ["10000000"] * 2, done.stderr[-3000:]


UNREAD = {
    "date": ("date'12000-01-01'", "date value out of range"),
    "timestamp": ("timestamp'12000-01-01'", "year 12000 is out of range"),
    "ntz": ("timestamp_ntz'12000-01-01'", "date value out of range"),
    "string": ("cast(x'ff' as string)", "'utf-8' codec can't decode byte 0xff"),
    "array": ("array(cast(x'ff' as string))", "'utf-8' codec can't decode byte 0xff"),
    "keys": ("map(array(1), 2)", "unhashable type: 'list'"),
    "struct": ("named_struct('p', date'12000-01-01')", "date value out of range"),
}


@pytest.mark.parametrize("name", UNREAD)
def test_a_value_that_python_has_not_names_element_and_field(name: str, spark: Any) -> None:
    """Of the second batch of a partition too, and in a task."""
    value, why = UNREAD[name]
    df = spark.range(0, 5, 1, 1).selectExpr("id", f"if(id = 3, {value}, null) as v")
    words = rf"element 3, field 'v': Python has no such value \({re.escape(why)}.*: cast it in Spark"
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", 2)
    try:
        for form in ("dicts", "tuples"):
            flow = Flow.from_dataframe(df, form=form, batch_rows=2)
            for _ in range(2):  # each subscription counts its own
                with pytest.raises(SparkError, match=f"^from_dataframe: {words}"):
                    list(flow)
        with pytest.raises(Exception, match=f"map_flow: partition 0, .*map_flow: {words}"):
            reactive_runtime.spark.map_flow(df, lambda f: f.map(lambda row: (row["id"],)), "id long").collect()
    finally:
        spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")
