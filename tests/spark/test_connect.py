"""The same with Spark Connect, as far as it goes: its server is a process of its own, and so is what drives it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as parquet
import pytest
from breaches import element, request, trace

from reactive_runtime.testing.trace import table_of

pytestmark = pytest.mark.timeout(300)

BEGIN = """
import os, sys, threading
from pathlib import Path

os.environ["PYSPARK_PYTHON"] = sys.executable
os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
from pyspark.sql import SparkSession
from reactive_runtime import Flow
from reactive_runtime.spark._read import arrow_jobs
from reactive_runtime.spark._verdict.judging import cores_of
from reactive_runtime.spark import TaskMetrics, judge_files, judge_frame, map_flow
from reactive_runtime.picklable import Threads

folder = Path(sys.argv[1])
builder = SparkSession.builder.remote("local[2]").config("spark.driver.memory", "1g")
spark = builder.config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "2").getOrCreate()
pool = Threads(4)
print(cores_of(spark), flush=True)


def told(what):
    try:
        print(what(), flush=True)
    except Exception as error:
        print(f"{type(error).__name__}: {str(error)[:120]}", flush=True)


twice = lambda row: {"n": 2 * row["id"]}
doubled = map_flow(spark.range(0, 1000, 1, 4), lambda rows: rows.map_parallel(twice, pool, concurrency=4), "n long")
told(lambda: doubled.agg({"n": "sum"}).collect()[0][0])

rows = Flow.range(100).map(lambda n: (n,))
told(lambda: rows.to_spark(spark, "n long", batch_rows=40).parquet(folder / "out").result())
told(lambda: spark.read.parquet(str(folder / "out")).count())
told(lambda: rows.to_spark(spark, "n long", batch_rows=40).parquet(folder / "out", mode="overwrite").result())
told(lambda: rows.to_spark(spark, "n long", batch_rows=40).parquet(folder / "out", mode="ignore").result())
told(lambda: spark.read.parquet(str(folder / "out")).count())
"""

FRAMES = """
TYPES = (
    "select 1Y a, 2S b, 3L c, 1.5F d, 2.5D e, 3.50BD f, true g, binary('x') h, date'1899-11-22' i, array(1, null) j,"
    " timestamp'2026-01-01 00:00:00' k, timestamp_ntz'2026-01-01 00:00:00' l, map('k', named_struct('p', 1)) m,"
    " named_struct('p', 1, 'p', array('x')) n, null o, interval '1' day p from range(0, 5, 1, 3)"
)


def as_collected():
    df = spark.sql(TYPES)
    variants = [row["v"].toPython() for row in Flow.from_dataframe(spark.sql("select parse_json('[1, null]') v"))]
    rows = [*map(repr, Flow.from_dataframe(df, form="tuples", batch_rows=2))]
    return rows == [repr(tuple(row)) for row in df.collect()] and variants == [[1, None]]


def is_left(rows):  # with what runs on the server
    pid = folder / "pid"

    def endless(batches):
        pid.write_text(str(os.getpid()))
        for batch in batches:
            yield batch
            threading.Event().wait(600)

    handle = Flow.from_dataframe(spark.range(0, rows, 1, 1).mapInArrow(endless, "id long")).subscribe(print)
    while not (pid.exists() and pid.read_text()):
        threading.Event().wait(0.01)
    worker = Path("/proc") / pid.read_text()
    handle.cancel()
    for thread in threading.enumerate():
        if thread.name.startswith("from_dataframe"):
            thread.join(60)
            if thread.is_alive():
                return f"{thread} goes on"
    for _ in range(3000):
        if not worker.exists():
            pid.unlink()
            return "left"
        threading.Event().wait(0.01)
    return "the worker goes on"


unlucky = spark.range(0, 40, 1, 4).selectExpr("if(id = 25, raise_error('out of luck'), id) as n")


def frames_out():
    told(lambda: Flow.from_dataframe(doubled).map(lambda row: row["n"]).sum().block())
    told(as_collected)
    told(lambda: list(Flow.from_dataframe(unlucky)))
    told(lambda: list(Flow.from_dataframe(spark.range(0))))
    told(lambda: is_left(10))


frames_out()  # as its client receives it
"""

REST = """
arrow_jobs._can_connect = lambda df: False  # by public names alone
frames_out()

(folder / "file").touch()
told(lambda: rows.to_spark(spark, "n long").parquet(folder / "file" / "below").result())

feed = rows.to_spark(spark, "n long", batch_rows=10).stream(folder / "feed", segments=4)
query = feed.dataframe.writeStream.format("parquet")
running = query.options(path=str(folder / "fed"), checkpointLocation=str(folder / "checkpoint")).start()
told(feed.done.result)
running.processAllAvailable()
running.stop()
told(lambda: spark.read.parquet(str(folder / "fed")).distinct().count())


def cancelled():  # a write that would take for ever
    began = folder / "began"

    def wait(batches):
        (Path(str(began))).touch()
        threading.Event().wait(600)
        yield from batches

    made = spark.createDataFrame
    spark.createDataFrame = lambda table, schema: made(table, schema).mapInArrow(wait, "n long")
    try:
        future = rows.to_spark(spark, "n long").parquet(folder / "never")
        while not began.exists():
            if future.done():
                return future.result()
            threading.Event().wait(0.01)
        future.cancel()
    finally:
        del spark.createDataFrame
    for thread in threading.enumerate():
        if thread.name.startswith("to_spark"):
            thread.join(60)
            if thread.is_alive():
                return "the job goes on"
    return "cancelled"


told(cancelled)
told(lambda: Flow.from_stream(feed.dataframe))
told(lambda: TaskMetrics(spark))

files = sorted((folder / "run").glob("*.parquet"))
for way in ("ranges", "moved"):
    told(lambda: judge_files(spark, files, way=way).kept().violations.collect())
told(lambda: judge_frame(spark.read.parquet(str(folder / "run"))).violations.collect())
"""


def printed(folder: Path, *parts: str) -> list[str]:
    """What the driver made of these parts has printed."""
    made = [sys.executable, "-c", "\n".join(parts), str(folder)]
    driver = subprocess.run(made, capture_output=True, text=True, timeout=280, check=False)
    assert driver.returncode == 0, driver.stderr
    return driver.stdout.splitlines()


def is_out(lines: list[str]) -> None:
    assert lines[:2] == ["999000", "True"]
    assert lines[2].startswith("SparkError: from_dataframe: [USER_RAISED_EXCEPTION] out of luck")
    assert lines[3:] == ["[]", "left"]


def test_tasks_files_and_frames_with_spark_connect(tmp_path: Path) -> None:
    lines = printed(tmp_path, BEGIN, FRAMES)
    assert lines[:7] == ["2", "999000", "100", "100", "100", "0", "100"]
    is_out(lines[7:])


@pytest.mark.nightly
def test_what_spark_connect_can_do_and_what_it_says_where_it_can_not(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    records = trace(request(1, 3, 4), *(element(n, 5 + 2 * n, 6 + 2 * n) for n in range(50)))
    parquet.write_table(table_of(records), tmp_path / "run" / "signals-00000.parquet", row_group_size=20)
    lines = printed(tmp_path, BEGIN, FRAMES, REST)[12:]
    is_out(lines[:5])
    assert lines[5].startswith("SparkError: to_spark: ")
    assert "is not a directory" in lines[5]
    assert lines[6:9] == ["100", "100", "cancelled"]
    no_batches = "a DataFrame of Spark Connect can't be used here, whose batches only its server sees"
    assert lines[9].startswith(f"TypeError: from_stream: {no_batches}"[:120])
    what = "the tasks of Spark Connect can't reach this process: it needs a session of a master"
    assert lines[10] == f"RuntimeError: TaskMetrics: {what}"
    found = "[Row(run='run', scenario='scenario', subscription=0, rule='1.1', count=49, first=7)]"
    assert lines[11:] == [found] * 3
