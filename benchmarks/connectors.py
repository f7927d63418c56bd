"""Flows between Spark and this package, on `local[2]`, each beside what one would write by hand, in one run, warm.

python benchmarks/connectors.py [--rows 2000000] [--only out | map_flow | heap]
"""

from __future__ import annotations

import argparse
import gc
import itertools
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as F
from rich.table import Table
from side_by_side import console

from reactive_runtime import Flow
from reactive_runtime.picklable import Threads
from reactive_runtime.spark import JobLimits, map_flow, session

PARTITIONS = 8
LARGE = 10_000_000
SMALL = 1_000
CALL = 0.01
FLIGHT = 32


def seconds(fn: Callable[[], object], times: int = 3) -> float:
    """The median, warm."""
    fn()
    taken = []
    for _ in range(times):
        begin = time.perf_counter()
        fn()
        taken.append(time.perf_counter() - begin)
    return statistics.median(taken)


def out_of(df: Any) -> Iterator[tuple[str, float, float, str]]:
    def iterated() -> None:
        for _ in df.toLocalIterator(prefetchPartitions=True):
            pass

    def drained(rows: Any) -> Callable[[], object]:
        return lambda: Flow.from_dataframe(df, form=rows).count().block()

    by_hand = seconds(iterated)
    yield "from_dataframe, tuples", seconds(drained("tuples")), by_hand, "toLocalIterator(prefetchPartitions=True)"
    yield "from_dataframe, dicts", seconds(drained("dicts")), by_hand, "toLocalIterator(prefetchPartitions=True)"

    def each() -> None:
        for partition in range(PARTITIONS):
            df.where(F.spark_partition_id() == partition).toArrow()

    yield "from_dataframe, batches", seconds(drained("batches")), seconds(each), "one toArrow a partition"
    spark = df.sparkSession
    large = spark.range(0, LARGE, 1, 1).selectExpr("id", "id * 1.5D as x", "cast(id % 1000 as string) as s")
    first = seconds(lambda: Flow.from_dataframe(large).first().block(), 9)
    what = f"from_dataframe, first row of a partition of {LARGE:,}"
    yield what, first, seconds(lambda: large.head(1), 9), "head(1)"
    small = spark.range(0, 3 * SMALL, 1, SMALL)
    many = seconds(lambda: Flow.from_dataframe(small).count().block())
    yield f"from_dataframe, {SMALL:,} small partitions", many, seconds(small.toArrow), "toArrow"


def inside(df: Any) -> Iterator[tuple[str, float, float, str]]:
    def function(row: dict[str, Any]) -> dict[str, Any]:
        return {"id": row["id"], "x": row["x"] * 2, "s": row["s"]}

    def by_hand(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.RecordBatch.from_pylist([function(row) for row in batch.to_pylist()], batch.schema)

    schema = "id long, x double, s string"
    ours = seconds(lambda: map_flow(df, lambda f: f.map(function), schema).agg({"x": "sum"}).first())
    theirs = seconds(lambda: df.mapInArrow(by_hand, schema).agg({"x": "sum"}).first())
    yield "map_flow, map", ours, theirs, "the same in mapInArrow"

    pool = Threads(FLIGHT)

    def slow(row: dict[str, Any]) -> dict[str, Any]:
        time.sleep(CALL)
        return row

    rows = 6_400
    calls = df.sparkSession.range(0, rows, 1, 2)
    nothing = seconds(lambda: map_flow(calls, lambda f: f, "id long").count())  # start-up
    took = seconds(
        lambda: map_flow(
            calls, lambda f: f.map_parallel(slow, pool, concurrency=FLIGHT, ordered=False), "id long"
        ).count()
    )
    yield f"map_flow, {FLIGHT} calls of 10 ms in flight", took - nothing, rows * CALL / FLIGHT / 2, "the ideal"


def limit(spark: Any) -> Iterator[tuple[str, float, float, str]]:
    """`limit(5)` of calls of 2 ms, beside the same of rows that are at hand: both begin a worker anew each time."""

    def slow(row: dict[str, Any]) -> dict[str, Any]:
        time.sleep(0.002)
        return row

    df = spark.range(0, 100_000, 1, 4)
    ours = seconds(lambda: map_flow(df, lambda f: f.map(slow), "id long").limit(5).collect(), 5)
    theirs = seconds(lambda: df.mapInArrow(handed_on, "id long").limit(5).collect(), 5)
    yield "map_flow, limit(5) of calls of 2 ms", ours, theirs, "limit(5) in mapInArrow, without calls"


def handed_on(batches: Iterator[Any]) -> Iterator[Any]:
    yield from batches


def job(spark: Any) -> Iterator[str]:
    """Limits of the whole job, over four tasks, two of which run at once."""
    pool = Threads(8)
    for rate in (50, 200, 1000):
        call = JobLimits(spark, rate=rate).limited(lambda row: {"at": time.time()})
        calls = spark.range(0, 6 * rate, 1, 4)
        df = map_flow(calls, lambda f, call=call: f.map_parallel(call, pool, concurrency=8), "at double")  # type: ignore[misc]
        begun = sorted(row["at"] for row in df.collect())
        reached = (len(begun) - 1) / (begun[-1] - begun[0])
        yield f"JobLimits(rate={rate}) over 4 tasks: {reached:.1f} calls a second, {reached / rate - 1:+.1%}"
    call = JobLimits(spark, concurrency=3).limited(spent)
    df = map_flow(
        spark.range(0, 400, 1, 4), lambda f: f.map_parallel(call, pool, concurrency=8), "begin double, end double"
    )
    spans = [(row["begin"], row["end"]) for row in df.collect()]
    most = max(sum(begin <= at < end for begin, end in spans) for at, _ in spans)
    yield f"JobLimits(concurrency=3) over 4 tasks of 8 threads: at most {most} calls at once"


def spent(row: dict[str, Any]) -> dict[str, Any]:
    begin = time.time()
    time.sleep(0.01)
    return {"begin": begin, "end": time.time()}


def into(spark: Any, df: Any, folder: Path) -> Iterator[tuple[str, float, float, str]]:
    table = df.toArrow()
    number = iter(range(1_000))

    def path() -> str:
        return str(folder / str(next(number)))

    whole = seconds(lambda: spark.createDataFrame(table).write.parquet(path()))
    batches = table.to_batches(max_chunksize=10_000)
    sent = seconds(
        lambda: Flow.from_iterable(batches).to_spark(spark, table.schema, batch_rows=50).parquet(path()).result()
    )
    yield "to_spark, Arrow batches to Parquet", sent, whole, "createDataFrame(arrow).write of the whole"
    rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    sent = seconds(
        lambda: Flow.from_iterable(rows).to_spark(spark, table.schema, batch_rows=500_000).parquet(path()).result()
    )
    yield "to_spark, tuples to Parquet", sent, whole, "createDataFrame(arrow).write of the whole"


def stream(spark: Any, folder: Path, rows: int) -> str:
    numbers = Flow.range(rows).map(lambda n: (n,))
    begin = time.perf_counter()
    feed = numbers.to_spark(spark, "n long", batch_rows=50_000).stream(folder / "feed", segments=4)
    most = 0
    query = feed.dataframe.writeStream.format("noop").option("checkpointLocation", str(folder / "checkpoint")).start()
    while not feed.done.done():
        most = max(most, feed.outstanding())
        threading.Event().wait(0.005)
    query.processAllAvailable()
    took = time.perf_counter() - begin
    query.stop()
    return (
        f"to_spark, stream: {rows / took:,.0f} rows/s from range to committed, at most {most} segments of 4 outstanding"
    )


def slept(batches: Iterator[Any]) -> Iterator[Any]:
    """A task that is under way for as long as anyone looks."""
    for batch in batches:
        time.sleep(60)
        yield batch


def cancel(spark: Any) -> str:
    tracker = spark.sparkContext.statusTracker()
    taken = []
    for _ in range(5):
        stuck = spark.range(0, 8, 1, 8).mapInArrow(slept, "id long")
        handle = Flow.from_dataframe(stuck).subscribe(print)
        while not tracker.getActiveJobsIds():
            time.sleep(0.01)
        begin = time.perf_counter()
        handle.cancel()
        while tracker.getActiveJobsIds():
            time.sleep(0.001)
        taken.append(time.perf_counter() - begin)
    return f"cancel of a running from_dataframe: Spark's job is gone after {1e3 * max(taken):.0f} ms at most, of 5"


def kept(what: str) -> int:
    """The memory of this process by Linux, now (VmRSS) or at most (VmHWM), in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(what))


def memory(spark: Any, rows: int) -> Iterator[str]:
    """The most memory in use, less that before, in partitions; with strings, so that these are large."""
    df = spark.range(0, rows, 1, PARTITIONS).selectExpr("id", "id * 1.5D as x", "lpad(id, 120, '0') as s")
    one = df.where(F.spark_partition_id() == 0).toArrow().nbytes
    yield f"memory of from_dataframe, in partitions of {one / 2**20:.0f} MiB, of which there are {PARTITIONS}:"
    for form in ("batches", "tuples", "dicts"):
        gc.collect()
        pa.default_memory_pool().release_unused()
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
        before, arrow, most, seen = kept("VmRSS"), pa.total_allocated_bytes(), [0], itertools.count()

        def look(element: Any, form: str = form, most: list[int] = most, seen: Any = seen) -> None:
            if form == "batches" or next(seen) % 1_000 == 0:
                most[0] = max(most[0], pa.total_allocated_bytes())

        Flow.from_dataframe(df, form=form).do_on_next(look).count().block()
        process = kept("VmHWM") - before
        yield f"    as {form}: at most {(most[0] - arrow) / one:.1f} as Arrow, {process / one:.1f} by the process"


HEAP = "512m"


def heap(spark: Any) -> str:
    """The most memory that the driver's JVM uses while one partition passes."""
    df = spark.range(0, LARGE, 1, 1).selectExpr("id", "id * 1.5D as x", "lpad(id, 120, '0') as s")
    pools = [
        pool
        for pool in spark.sparkContext._jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans()
        if pool.getType().toString() == "Heap memory"
    ]
    for pool in pools:
        pool.resetPeakUsage()
    rows = Flow.from_dataframe(df, form="batches").map(lambda batch: batch.num_rows).sum().block()
    live = sum(pool.getCollectionUsage().getUsed() for pool in pools) >> 20
    most = sum(pool.getPeakUsage().getUsed() for pool in pools) >> 20
    return (
        f"one partition of {rows:,} rows, 1.4 GB as Arrow, in a JVM of {HEAP}: {most} MiB of its heap at most,"
        f" {live} MiB after its last collection"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--only", choices=["out", "map_flow", "heap"], help="not the others")
    arguments = parser.parse_args()
    if arguments.only == "heap":
        console.print(heap(session("local[2]", {"spark.driver.memory": HEAP})))
        return
    spark = session("local[2]")
    df = spark.range(0, arguments.rows, 1, PARTITIONS).selectExpr(
        "id", "id * 1.5D as x", "cast(id % 1000 as string) as s"
    )
    table = Table(title=f"{arguments.rows:,} rows of three columns, {PARTITIONS} partitions", title_justify="left")
    for title in ("what", "ours, s", "theirs, s", "ours / theirs", "theirs"):
        table.add_column(title, justify="left" if title in ("what", "theirs") else "right")
    with tempfile.TemporaryDirectory() as folder:
        parts = {"out": [out_of(df)], "map_flow": [inside(df), limit(spark)], "into": [into(spark, df, Path(folder))]}
        only = arguments.only is not None
        for rows in parts[arguments.only] if only else [rows for part in parts.values() for rows in part]:
            for what, ours, theirs, name in rows:
                table.add_row(what, f"{ours:.2f}", f"{theirs:.2f}", f"{ours / theirs:.2f}", name)
                console.print(f"{what}: {ours:.2f} s, {theirs:.2f} s")
        console.print(table)
        if arguments.only != "out":
            for line in job(spark):
                console.print(line)
        if only:
            return
        console.print(stream(spark, Path(folder), arguments.rows))
    for line in memory(spark, arguments.rows):
        console.print(line)
    console.print(cancel(spark))


if __name__ == "__main__":
    main()
