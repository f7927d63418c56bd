"""Into tables of Delta and Iceberg, with their own jars: each element once, over kills; merged; partitions replaced."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest
import spark_jars
from sinks import until

KILLS = int(os.environ.get("SINK_KILLS", "3"))
"""How often a flow into each table is killed; 20 in a long night."""

pytestmark = [
    pytest.mark.nightly,  # each needs a PySpark of its own, of half a gigabyte; `test_writes.py` has the same by day
    pytest.mark.timeout(1800 + 120 * KILLS),
    pytest.mark.skipif(bool(spark_jars.missing()), reason=spark_jars.missing()),
]

SESSION = """
import sys
from pathlib import Path
from reactive_runtime import Flow
from reactive_runtime.spark import elements_written, session
from reactive_runtime.spark._session.spark_session import BRIEF

jars, kind, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "1",
}
ICEBERG = {
    "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.lake.type": "hadoop",
    "spark.sql.catalog.lake.warehouse": str(folder / "lake"),
}
spark = session(
    "local[2]",
    {
        **BRIEF,
        **(DELTA if kind == "delta" else ICEBERG),
        "spark.jars": jars,
        "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    },
)
spark.sparkContext.setLogLevel("OFF")
TABLE = {"delta": f"delta.`{folder / 'orders'}`", "iceberg": "lake.db.orders"}[kind]


def numbers(n, first=0):
    return Flow.range(n).skip(first).map(lambda i: (i, i % 3)).to_spark(spark, "n long, part long", batch_rows=10)


def shown(what):
    try:
        print(what(), flush=True)
    except Exception as error:
        print(f"{type(error).__name__}: {error}", flush=True)


def rows(table):
    found = spark.table(table).selectExpr("count(*)", "count(distinct n)", "max(n)").first()
    return tuple(found)


"""

ONCE = (
    SESSION
    + """
def write(n, first, **position):
    sink = numbers(n, first).exactly_once("orders", **position)
    if kind == "delta":
        return sink.format("delta").save(folder / "orders").result()
    return sink.saveAsTable(TABLE, format="iceberg").result()


shown(lambda: elements_written(TABLE, "orders"))
shown(lambda: write(25, 0))
shown(lambda: elements_written(TABLE, "orders"))
shown(lambda: elements_written(TABLE, "others"))
shown(lambda: write(25, 0))  # begun again from its beginning
shown(lambda: write(40, 25, position=25))
shown(lambda: numbers(50, 40).exactly_once("orders", position=40).writeTo(TABLE).append().result())
shown(lambda: rows(TABLE))
"""
)


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_flow_that_is_begun_again_goes_on_where_the_table_is_or_is_an_error(kind: str, tmp_path: Path) -> None:
    lines = spark_jars.done(kind, ONCE, kind, tmp_path)
    assert lines[:4] == ["0", "25", "25", "0"]
    assert lines[4].startswith("SparkError: to_spark: ")
    assert "has 25 elements of 'orders', and the flow goes on with element 0: begin it with skip(n)" in lines[4]
    assert lines[5:] == ["15", "10", "(50, 50, 49)"]


KILLED = (
    SESSION
    + """
done = elements_written(TABLE, "orders")
sink = numbers(400, done).exactly_once("orders", position=done)
print("begins", done, flush=True)
if kind == "delta":
    sink.format("delta").save(folder / "orders").result()
else:
    sink.saveAsTable(TABLE, format="iceberg").result()
print(rows(TABLE), flush=True)
"""
)


def commits(kind: str, folder: Path) -> int:
    """How many commits the table has, as its own files say."""
    if kind == "delta":
        return len(list((folder / "orders" / "_delta_log").glob("*.json")))
    return len(list((folder / "lake" / "db" / "orders" / "metadata").glob("v*.metadata.json")))


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_each_element_is_in_the_table_once_after_kills_in_the_middle_of_writes(kind: str, tmp_path: Path) -> None:
    begins = []
    for kill in range(KILLS):
        before = commits(kind, tmp_path)
        process = spark_jars.begun(kind, KILLED, kind, tmp_path, stderr=subprocess.DEVNULL, start_new_session=True)
        assert process.stdout is not None
        begins.append(process.stdout.readline().strip())

        def moved(before: int = before, process: subprocess.Popen[str] = process, more: int = kill % 3) -> bool:
            return commits(kind, tmp_path) > before + 1 + more or process.poll() is not None

        until(moved)
        os.killpg(process.pid, signal.SIGKILL)  # the JVM as well
        process.wait()
        process.stdout.close()
    assert begins[0] == "begins 0"
    lines = spark_jars.done(kind, KILLED, kind, tmp_path)
    assert lines[0] != "begins 0"
    assert lines[1] == "(400, 400, 399)"


OTHERS = (
    SESSION
    + """
from pyspark.sql import functions as F

name = {"delta": "many", "iceberg": "lake.db.many"}[kind]
shown(lambda: numbers(30).format(kind).partitionBy("part").saveAsTable(name).result())
shown(lambda: numbers(25, 20).writeTo(name).append().result())
replaced = Flow.range(25).map(lambda n: (100 + n, 1)).to_spark(spark, "n long, part long", batch_rows=10)
shown(lambda: replaced.writeTo(name).overwritePartitions().result())
parts = f"SELECT part, count(*) FROM {name} GROUP BY part ORDER BY part"
shown(lambda: [tuple(row) for row in spark.sql(parts).collect()])
shown(lambda: numbers(7).mode("ignore").format(kind).saveAsTable(name).result())
shown(lambda: numbers(7).mode("error").format(kind).saveAsTable(name).result())
shown(lambda: Flow.just((1, 2, 3)).to_spark(spark, "n long, part long, more long").writeTo(name).append().result())
shown(lambda: numbers(35).mode("overwrite").format(kind).saveAsTable(name).result())
shown(lambda: rows(name))
shown(lambda: numbers(0).format(kind).saveAsTable(f"{name}_empty").result())
shown(lambda: rows(f"{name}_empty"))


def merged(batch, number):
    changes = batch.alias("changes").mergeInto(name, F.expr(f"{name}.n = changes.n"))
    changes.whenMatched().updateAll().whenNotMatched().insertAll().merge()


upsert = Flow.range(30, 50).map(lambda n: (n, 7)).to_spark(spark, "n long, part long", batch_rows=10)
written = upsert.foreachBatch(merged)
shown(written.result)
shown(lambda: rows(name))
shown(lambda: spark.table(name).where("part = 7").count())
"""
)


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_tables_are_made_appended_to_replaced_and_merged_into(kind: str, tmp_path: Path) -> None:
    lines = spark_jars.done(kind, OTHERS, kind, tmp_path)
    assert lines[:4] == ["30", "5", "25", "[(0, 12), (1, 25), (2, 12)]"]
    assert lines[4] == "0"
    assert lines[5].startswith("IsThereError: to_spark: [TABLE_OR_VIEW_ALREADY_EXISTS]")
    assert lines[6].startswith("SparkError: to_spark: ")
    assert lines[7:] == ["35", "(35, 35, 34)", "0", "(0, 0, None)", "20", "(50, 50, 49)", "20"]
