"""Nights of traces and verdicts in tables of a lakehouse, each of them once.

    signals     the records of all runs, with the columns of a trace
    runs, violations, summary, latency, histogram, examples     as of the verdict on them
    lineage     a row for each file: its run, records and checksum, and by which rules the run was judged

All have a column `night`, the day on which a run began, and are partitioned by it. A night is written as a whole, one
commit a table, `lineage` last: that is how the next call knows that the night is there. So after a kill the next call
writes the night again that was not finished, in the place of what there is of it.

Of many runs tasks compare the checksums, as for a verdict (`run_planning`); tasks read all records. The driver then has
a row for each night, and one for each run of the verdict.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from reactive_runtime import __version__
from reactive_runtime._support.public_names import at_home
from reactive_runtime.errors import ReactiveError, SparkError, TraceError
from reactive_runtime.judging._stores import roots_of
from reactive_runtime.spark._lakehouse.lake_tables import FORMATS, Format, LakeTables
from reactive_runtime.spark._lakehouse.night_rows import (
    LINEAGE,
    RECORDS,
    judged_in,
    lineage_rows,
    planned,
    records_of_files,
    verdict_tables,
)
from reactive_runtime.spark._session.spark_errors import is_of_reading, not_stopped, spark_error
from reactive_runtime.spark._verdict.judging import cores_of
from reactive_runtime.spark._verdict.planning import spark_schema
from reactive_runtime.spark._verdict.run_planning import SAID, RunsInTasks, without_damaged
from reactive_runtime.spark._verdict.tables import one_verifier

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

__all__ = ["KeptNight", "keep_nights", "read_as_of"]


Was = Literal["new", "replaced", "there"]


@dataclass(frozen=True)
class KeptNight:
    """A night that is in the tables."""

    night: date
    runs: int
    records: int
    was: Was
    """Whether it is new, has replaced what the tables had of it, or was there as it is."""
    version: int | None = None
    """The version of `signals`, or its snapshot, that the night has made now; None where it has made none."""


def keep_nights(
    spark: SparkSession,
    runs: Sequence[Path | str],
    namespace: str,
    *,
    format: Format,
    verdict: Path | str | None = None,
    kept: Callable[[KeptNight], object] | None = None,
    unreadable: Callable[[TraceError], object] | None = None,
    note: Callable[[str], object] | None = None,
) -> list[KeptNight]:
    """Keep the complete runs below `runs` in the tables of a lakehouse, a commit a night in each.

    A night that the tables have is left as it is, unless a run of it is new, or has changed: it is replaced then, in
    one commit. It can be killed at any time, and goes on when it is called again. One call at a time.

    Args:
        spark: The session, with the connector of the format.
        runs: Folders of runs, which this process and all tasks see.
        namespace: The namespace of the tables as Spark SQL has it, ``lake.nights``; it is made if it is not there. For
            Delta also the path of a folder, with a slash in it.
        format: "delta" or "iceberg"; or "parquet", tables of Spark's own without versions.
        verdict: The folder of a verdict, whose tables are kept as well: of each run that it has judged as the run is
            now. None: the tables of verdicts stay as they are.
        kept: Called for each night, in order, when it is in the tables.
        unreadable: Called for each run that can't be kept; the others are. None: the first such run is an error.
        note: Called with a line on each run, or night, that is left alone.

    Returns:
        The nights that are in the tables, in order.

    Raises:
        TraceError: There is no run; a run does not hold what its metadata says; there is no such verdict, or a verifier
            is at work on it.
        SparkError: A table can't be made, read or written.
        ValueError: The namespace or the format is none.
    """
    if format not in FORMATS:
        raise ValueError(f"keep_nights: format {format!r}: should be one of {', '.join(FORMATS)}")
    lake = LakeTables("keep_nights", spark, namespace)
    if lake.is_folder and format != "delta":
        raise ValueError(f"keep_nights: {namespace}: a folder is for tables of Delta, not of {format}")
    judged = None if verdict is None else Path(verdict)
    if judged is not None and not (judged / "verdict.json").is_file():
        raise TraceError(f"{judged}: has no verdict: judge the runs first (reactive-runtime verify)")
    not_stopped("keep_nights", spark)
    keeper = _Keeper(spark, lake, format, judged, unreadable or _raised, note or _ignored)
    found = []
    try:
        with contextlib.nullcontext() if judged is None else one_verifier(judged):
            keeper.make()
            for night in keeper.nights(roots_of(map(str, runs))):
                found.append(night)
                if kept is not None:
                    kept(night)
    except ReactiveError:
        raise
    except Exception as error:
        raise spark_error("keep_nights", error) from error
    return found


def read_as_of(spark: SparkSession, namespace: str, night: date | str, *, table: str = "signals") -> DataFrame:
    """A table of `keep_nights` as it was when a night had been kept; if it was kept several times, the last.

    So `judge_frame(read_as_of(spark, "lake.nights", "2026-11-21"))` is the verdict on all nights that the table had
    then; `.where("night = '2026-11-21'")` on the frame leaves that night alone.

    Args:
        spark: The session, with the connector of the table.
        namespace: As of `keep_nights`.
        night: The night, or its text, `2026-11-21`.
        table: The name of the table.

    Returns:
        A DataFrame with the columns of the table, `night` among them.

    Raises:
        SparkError: The table has no version of that night, or can't be read.
        ValueError: The namespace or the night is none.
    """
    day = night if isinstance(night, date) else date.fromisoformat(night)
    lake = LakeTables("read_as_of", spark, namespace)
    not_stopped("read_as_of", spark)
    try:
        versions = lake.versions("lineage", day)
        if not versions:
            raise SparkError(
                f"read_as_of: {lake.name('lineage')} has no version of {day}: the night was not kept there, the version"
                " has expired, or the format of the table has no versions"
            )
        return lake.as_of(table, versions[-1].when)
    except SparkError:
        raise
    except Exception as error:
        raise spark_error("read_as_of", error) from error


def _raised(error: TraceError) -> None:
    raise error


def _ignored(line: str) -> None:
    pass


@dataclass(frozen=True)
class _Keeper:
    """One call of `keep_nights`."""

    spark: SparkSession
    lake: LakeTables
    format: Format
    verdict: Path | None
    unreadable: Callable[[TraceError], object]
    note: Callable[[str], object]

    def make(self) -> None:
        """Make the tables that are not there; what is wrong with the connector is an error here."""
        columns = {"signals": spark_schema(RECORDS), "lineage": spark_schema(LINEAGE)}
        columns |= {table: rows.schema for table, rows in self._verdict_tables.items()}
        for table, of in columns.items():
            self.lake.make(table, of, self.format)

    @cached_property
    def _verdict_tables(self) -> dict[str, DataFrame]:
        """The rows of each table of the verdict, on all nights."""
        return {} if self.verdict is None else verdict_tables(self.spark, self.verdict)

    def nights(self, roots: Sequence[str]) -> Iterator[KeptNight]:
        """Write the nights of the runs below these folders, one after the other."""
        done: set[date] = set()
        cores = cores_of(self.spark)
        plan = planned(self.spark, roots, self.unreadable, self.note)
        try:
            while True:
                try:
                    for night in self._written(plan, done):
                        done.add(night.night)
                        yield night
                    return
                except Exception as error:
                    # A file without a checksum may be found damaged only now: the nights go on without its run.
                    left = without_damaged(plan, self.unreadable, cores) if is_of_reading(error) else None
                    if left is None:
                        raise
                    plan = left
        finally:
            plan.kept.release()

    def _written(self, plan: RunsInTasks, done: set[date]) -> Iterator[KeptNight]:
        from pyspark.sql import functions as F

        runs = plan.kept.add(self._with_verdict(self._complete(plan.runs)))
        for row in self._compared(runs).collect():
            if row["night"] in done:
                continue
            night = row["night"]
            if row["gone"]:
                more = f" and {row['gone'] - 1:,} more" if row["gone"] > 1 else ""
                which = f"run {row['first_gone']}{more} of it, which can't be found or read now"
                self.note(f"night {night}: the tables have {which}: it is left as it is")
                continue
            if self.verdict is not None and row["unjudged"]:
                first = f"judge them first (reactive-runtime verify --incremental): {self.verdict} has no verdict on"
                self.note(f"night {night}: {first} {row['unjudged']:,} of {row['runs']:,} run(s) as they are now")
            was: Was = "new" if not row["there"] else "replaced" if row["changed"] or row["judged_anew"] else "there"
            version = None
            if was != "there":
                self._replace(plan, runs.where(F.col("night") == F.lit(night)), row)
                made = self.lake.versions("signals", night) if row["changed"] else []
                version = made[-1].number if made else None
            yield KeptNight(night, row["runs"], row["records"], was, version)

    def _complete(self, runs: DataFrame) -> DataFrame:
        """The runs that are complete, with their night; `note` has a line on each of the first others."""
        from pyspark.sql import functions as F

        day = F.expr("try_cast(substr(get_json_object(text, '$.started'), 1, 10) as date)")
        runs = runs.withColumn("night", day)
        why = (
            F.when(F.col("complete").isNull(), "has no metadata")
            .when(~F.col("complete"), "was cut off, or is being written")
            .when(F.col("night").isNull(), "does not say on which day it began")
        )
        others = runs.withColumn("why", why).where("why is not null")
        for row in others.orderBy("folder").limit(SAID).collect():
            self.note(f"{row['folder']}: {row['why']}: it is left alone")
        compacted = F.get_json_object("text", "$.compacted").isNotNull().alias("compacted")
        known = ("night", "run", "folder", "identity", F.col("checksum").alias("contents"), F.col("rows"))
        return runs.where(why.isNull()).select(*known, compacted).withColumnRenamed("rows", "records")

    def _with_verdict(self, runs: DataFrame) -> DataFrame:
        """With the rules and the time of the verdict on each run, if that is on what the run holds now."""
        from pyspark.sql import functions as F

        if self.verdict is None:
            return runs.withColumns({"rules": F.lit(None).cast("bigint"), "judged": F.lit(None).cast("string")})
        joined = runs.join(judged_in(self.spark, self.verdict), "run", "left")
        for name in ("rules", "judged"):
            joined = joined.withColumn(name, F.when(_same("judged_"), F.col(name)))
        return joined.select(*runs.columns, "rules", "judged")

    def _compared(self, runs: DataFrame) -> DataFrame:
        """A row for each night of these runs: how they differ from those that the tables have of it."""
        from pyspark.sql import functions as F

        names = ("identity", "contents", "records", "rules", "judged")
        known = self.lake.frame("lineage").select(
            "night", "run", *(F.col(name).alias(f"kept_{name}") for name in names)
        )
        both = runs.join(known.distinct(), ["night", "run"], "full")
        here, there = F.col("folder").isNotNull(), F.col("kept_contents").isNotNull()
        differs = ~(F.col("rules").eqNullSafe(F.col("kept_rules")) & F.col("judged").eqNullSafe(F.col("kept_judged")))
        compared = both.groupBy("night").agg(
            F.count_if(here).alias("runs"),
            F.coalesce(F.sum("records"), F.lit(0)).alias("records"),
            F.count_if(there).alias("there"),
            F.count_if(there & ~here).alias("gone"),
            F.min(F.when(there & ~here, F.col("run"))).alias("first_gone"),
            F.count_if(here & ~F.coalesce(_same("kept_"), F.lit(False))).alias("changed"),
            F.count_if(here & differs & F.lit(self.verdict is not None)).alias("judged_anew"),
            F.count_if(here & F.col("judged").isNull()).alias("unjudged"),
        )
        return compared.where("runs > 0").orderBy("night")

    def _replace(self, plan: RunsInTasks, mine: DataFrame, row: Any) -> None:
        """Write a night to each table, `lineage` last."""
        if row["changed"]:
            files = plan.files.join(mine, "folder")
            records = records_of_files(files, row["records"], cores_of(self.spark))
            self.lake.replace("signals", row["night"], records, self.format)
        if self.verdict is not None:
            judged = mine.where("judged is not null").select("run")
            for table, rows in self._verdict_tables.items():
                self.lake.replace(table, row["night"], rows.join(judged, "run", "left_semi"), self.format)
        self.lake.replace("lineage", row["night"], lineage_rows(plan, mine, __version__), self.format)


def _same(other: str) -> Column:
    """Whether a run holds what another row says of it; a compacted one has the same records in other files."""
    from pyspark.sql import functions as F

    same = F.col("contents") == F.col(f"{other}contents")
    of_old = (F.col("identity") == F.col(f"{other}identity")) & (F.col("records") == F.col(f"{other}records"))
    return same | (F.col("compacted") & of_old)


at_home("reactive_runtime.spark", KeptNight, keep_nights, read_as_of)
