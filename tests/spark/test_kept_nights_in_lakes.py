"""Nights in tables of Delta and Iceberg, with their own jars: kept once, replaced, travelled to, over kills."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
import spark_jars
from recorded_nights import night

TESTS = Path(__file__).parent.parent

pytestmark = [
    pytest.mark.nightly,  # each needs a PySpark of its own; `test_kept_nights.py` has the same by day, without versions
    pytest.mark.timeout(1800),
    pytest.mark.skipif(bool(spark_jars.missing()), reason=spark_jars.missing()),
]

SESSION = """
import os, signal, sys
from datetime import date
from pathlib import Path

sys.path.insert(0, sys.argv[4])
from recorded_nights import night
from reactive_runtime.spark import judge_files, judge_frame, keep_nights, read_as_of, session, verify
from reactive_runtime.spark._lakehouse.lake_tables import LakeTables
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
LAKE = {"delta": str(folder / "the `nights`"), "iceberg": "lake.of-nights.`select`"}[kind]
runs = folder / "runs"
tables = LakeTables("test", spark, LAKE)


def keep(**settings):
    found = keep_nights(spark, [runs], LAKE, format=kind, note=print, unreadable=print, **settings)
    print([(str(item.night), item.runs, item.was) for item in found], flush=True)
    return found


def findings(found):
    return sorted(map(str, found.frame.where("part < 2").collect()))  # subscriptions and violations


def is_verdict_on(frame, files):
    there = findings(judge_frame(frame))
    return there == findings(judge_files(spark, files)) and bool(there)


def runs_in(frame):
    found = frame.groupBy("night", "run").count().collect()
    return sorted(f"{row['night']:%d} {row['run']} {row['count']}" for row in found)


def commits(table):
    return [len(tables.versions(table, date(2026, 11, day))) for day in (1, 2, 3)]


def files():
    return sorted(runs.rglob("date=*/run=*/signals-*.parquet"))


"""

KEPT = (
    SESSION
    + """
early = files()
verify(spark, [runs], runs / "verdict")
print(len({item.version for item in keep(verdict=runs / "verdict")}))
keep()
print(commits("signals"), commits("lineage"))

night(runs, "three", 1, (5, 4))
night(runs, "four", 3, (9, 1))
verify(spark, [runs], runs / "verdict", incremental=True)
keep(verdict=runs / "verdict")
print(commits("signals"), commits("lineage"))

print(is_verdict_on(read_as_of(spark, LAKE, "2026-11-03"), files()))
print(is_verdict_on(read_as_of(spark, LAKE, "2026-11-02"), early))
print(runs_in(read_as_of(spark, LAKE, "2026-11-02")))  # as it was, without what came to the first night
print(runs_in(read_as_of(spark, LAKE, date(2026, 11, 1))))  # the third night was not there yet
print(runs_in(read_as_of(spark, LAKE, "2026-11-03")))
print(runs_in(read_as_of(spark, LAKE, "2026-11-02", table="violations")))
print(runs_in(read_as_of(spark, LAKE, "2026-11-03", table="violations")))
try:
    read_as_of(spark, LAKE, "2026-11-09")
except Exception as error:
    print(type(error).__name__, error)
"""
)


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_table_is_read_as_of_each_night_and_judged_as_its_files(kind: str, tmp_path: Path) -> None:
    night(tmp_path / "runs", "one", 1, (3, 1))
    night(tmp_path / "runs", "two `x=y", 2, files=2)
    lines = spark_jars.done(kind, KEPT, kind, tmp_path, TESTS)
    print(*lines, sep="\n")  # for a failure
    assert lines[:4] == [
        "[('2026-11-01', 1, 'new'), ('2026-11-02', 1, 'new')]",
        "2",
        "[('2026-11-01', 1, 'there'), ('2026-11-02', 1, 'there')]",
        "[1, 1, 0] [1, 1, 0]",
    ]
    assert lines[4:6] == [
        "[('2026-11-01', 2, 'replaced'), ('2026-11-02', 1, 'there'), ('2026-11-03', 1, 'new')]",
        "[2, 1, 1] [2, 1, 1]",
    ]
    assert lines[6:8] == ["True", "True"]
    assert lines[8:-1] == [
        "['01 one 6', '02 two `x=y 14']",
        "['01 one 6', '01 three 6', '02 two `x=y 14']",
        "['01 one 6', '01 three 6', '02 two `x=y 14', '03 four 6']",
        "['01 one 1']",
        "['01 one 1', '01 three 1', '03 four 1']",
    ]
    assert lines[-1].startswith("SparkError read_as_of: ")
    assert "has no version of 2026-11-09: the night was not kept there" in lines[-1]


KILLED = (
    SESSION
    + """
if len(sys.argv) > 5:
    replace = LakeTables.replace

    def killed(self, table, night, *settings):
        replace(self, table, night, *settings)
        if (table, night.day) == ("signals", 2):
            os.killpg(os.getpgrp(), signal.SIGKILL)  # the JVM as well

    LakeTables.replace = killed
else:
    print(runs_in(tables.frame("signals")), runs_in(tables.frame("lineage")))
keep()
print(runs_in(tables.frame("signals")), runs_in(tables.frame("lineage")))
print(commits("lineage"), is_verdict_on(tables.frame("signals"), files()))
"""
)


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_night_whose_writer_was_killed_is_in_the_tables_once(kind: str, tmp_path: Path) -> None:
    for day in (1, 2, 3):
        night(tmp_path / "runs", f"run {day}", day)
    process = spark_jars.begun(kind, KILLED, kind, tmp_path, TESTS, "killed", start_new_session=True)
    out, err = process.communicate(timeout=540)
    assert (process.returncode, out) == (-signal.SIGKILL, ""), err[-5000:]
    lines = spark_jars.done(kind, KILLED, kind, tmp_path, TESTS)
    print(*lines, sep="\n")  # for a failure
    assert lines == [
        "['01 run 1 7', '02 run 2 7'] ['01 run 1 1']",
        "[('2026-11-01', 1, 'there'), ('2026-11-02', 1, 'new'), ('2026-11-03', 1, 'new')]",
        "['01 run 1 7', '02 run 2 7', '03 run 3 7'] ['01 run 1 1', '02 run 2 1', '03 run 3 1']",
        "[1, 1, 1] True",
    ]
