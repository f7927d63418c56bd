"""Runs and files as tasks find them: listed, each run once, and examined."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from reactive_runtime.errors import TraceError
from reactive_runtime.judging._examining import (
    EXAMINED,
    FOREIGN,
    GROUP,
    HELD,
    WRONG,
    changed,
    check_run,
    examined,
    known_footers,
    unread,
)
from reactive_runtime.judging._files import ForeignError
from reactive_runtime.judging._kernel import schema_of
from reactive_runtime.judging._stores import FILE, FOLDER, LISTED, RUN, UNABLE, batches, parquet_in, runs_in
from reactive_runtime.spark._verdict.planning import Kept, parts_for, spark_schema
from reactive_runtime.testing._traces.trace_files import copy_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


__all__ = ["SAID", "RunsInTasks", "plan_files", "plan_runs", "without_damaged", "without_runs"]

SAID: Final = 1_000
"""Lines on what can't be judged that the driver receives; of others, their number."""

_FOLDERS: Final = 64
"""Folders that are worth a task."""

_FILES: Final = 500
"""Files that are worth a task."""

_MANY: Final = 5_000
"""Files of a task, at most, up to `parts_for`'s number of tasks: 0.5 s of it. A task itself costs as much as some
hundred files."""

_BYTES: Final = 64 << 20
"""Bytes to compare that are worth a task."""

_COPIES: Final = schema_of(folder=pa.string(), best=pa.string(), why=pa.string())
_DROPPED: Final = schema_of(folder=pa.string(), why=pa.string())


@dataclass
class RunsInTasks:
    """The runs that can be judged."""

    runs: DataFrame
    """A row for each, of LISTED."""
    groups: DataFrame
    """A row for each row group and file of them, of EXAMINED."""
    files: DataFrame
    """A row for each file that was found: folder, file, and the checksum that is written down."""
    count: int
    sums: dict[str, int]
    """As of `_sums`."""
    kept: Kept
    notes: list[str] = field(default_factory=list)
    """The first lines on copies."""


def _parts(files: int, cores: int) -> int:
    """How many tasks share so many files: four for each core, so that all are busy to the end, or more."""
    return parts_for(files, min(max(files // (4 * cores), _FILES), _MANY), cores)


# -- listing --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _List:
    """In a task: what its folders hold."""

    of_runs: bool
    elsewhere: frozenset[str]

    def __call__(self, some: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        look = runs_in if self.of_runs else parquet_in
        yield from batches(
            (
                row
                for batch in some
                for item in batch.select(["root", "level", "folder"]).to_pylist()
                for row in look(item["root"], item["level"], item["folder"], self.elsewhere)
            ),
            LISTED,
        )


def _listed(
    spark: SparkSession, roots: Sequence[str], of_runs: bool, kept: Kept, cores: int
) -> tuple[DataFrame, dict[int, Counter[int]]]:
    """Rows of LISTED of all folders below the roots, a level after the other; how many there are of a kind, by root."""
    look = _List(of_runs, frozenset(roots))
    first = [(FOLDER, at, 0, root, *[None] * (len(LISTED) - 4)) for at, root in enumerate(roots)]
    level = spark.createDataFrame(pa.Table.from_batches(batches(first, LISTED), LISTED))
    counts: dict[int, Counter[int]] = {at: Counter() for at in range(len(roots))}
    found: DataFrame | None = None
    while True:
        seen = kept.add(level.mapInArrow(look, spark_schema(LISTED)))
        found = seen if found is None else found.unionByName(seen)
        folders = 0
        for row in seen.groupBy("root", "kind").count().collect():
            counts[row["root"]][row["kind"]] += row["count"]
            folders += row["count"] if row["kind"] == FOLDER else 0
        if not folders:
            return found, counts
        level = seen.where(f"kind = {FOLDER}").repartition(parts_for(folders, _FOLDERS, cores))


# -- runs, each once ------------------------------------------------------------------------------------------


def _best_copies(some: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """In a task: of the copies of a run, which come one after the other, all but the best, with what is wrong."""
    rows = (row for batch in some for row in batch.to_pylist())
    for _, of in groupby(rows, lambda row: row["identity"]):
        copies = sorted(of, key=_claim, reverse=True)
        wrong: list[str] = []
        for row in copies:
            try:
                check_run(row["folder"])
            except (TraceError, OSError) as error:
                wrong.append(str(error))
            else:
                break
        best = copies[len(wrong)] if len(wrong) < len(copies) else copies[0]
        dropped = [
            (row["folder"], best["folder"], why if best is not copies[0] and _claim(row) > _claim(best) else None)
            for row, why in zip(copies, [*wrong, *[None] * len(copies)], strict=False)
            if row is not best
        ]
        yield from batches(dropped, _COPIES)


def _claim(row: dict[str, Any]) -> tuple[bool, int]:
    return row["complete"] or False, row["rows"] or 0


@dataclass
class _Runs:
    """The runs that were found, before their files are examined."""

    frame: DataFrame
    count: int
    dropped: int = 0
    """Folders that were found, and do not count."""
    notes: list[str] = field(default_factory=list)


def _different(found: DataFrame, kept: Kept, cores: int, say: Callable[[DataFrame], int]) -> _Runs:
    """Each run once, however many copies there are; and each name once."""
    from pyspark.sql import functions as F

    runs = found.where(f"kind = {RUN}")
    names = ("folder", "identity", "run")
    distinct = (F.count_distinct(name) for name in names)
    count, folders, copies, named = runs.agg(F.count("*"), *distinct).collect()[0]
    if count == folders == copies == named:
        return _Runs(runs, count)
    runs = runs.dropDuplicates(["folder"])
    notes: list[str] = []
    if folders > copies:
        runs, notes = _without_copies(runs, folders, kept, cores, say)
    if folders > named:
        runs = _without_other(runs, say)
    runs = kept.add(runs)
    left = runs.count()
    return _Runs(runs, left, count - left, notes)


def _without_copies(
    runs: DataFrame, count: int, kept: Kept, cores: int, say: Callable[[DataFrame], int]
) -> tuple[DataFrame, list[str]]:
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    alike = runs.withColumn("copies", F.count("*").over(Window.partitionBy("identity"))).where("copies > 1")
    alike = alike.select("identity", "root", "level", "folder", "complete", "rows")
    alike = alike.repartition(parts_for(count, _FOLDERS, cores), "identity")
    alike = alike.sortWithinPartitions("identity", "root", "level", "folder")
    dropped = kept.add(alike.mapInArrow(_best_copies, spark_schema(_COPIES)))
    say(dropped.where("why is not null"))
    notes = [copy_of(row["folder"], row["best"]) for row in dropped.orderBy("folder").limit(SAID).collect()]
    return runs.join(dropped.select("folder"), "folder", "left_anti"), notes


def _without_other(runs: DataFrame, say: Callable[[DataFrame], int]) -> DataFrame:
    """Without those that have the name of an earlier one, which is another run."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    same = Window.partitionBy("run").orderBy("root", "level", "folder")
    runs = runs.withColumn("nth", F.row_number().over(same)).withColumn("other", F.first("folder").over(same))
    why = F.concat("folder", F.lit(": another run of that name is in "), "other", F.lit(": judge them one by one"))
    say(runs.where("nth > 1").select("folder", why.alias("why")))
    return runs.where("nth = 1").drop("nth", "other")


# -- files ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Examine:
    """In a task: the footers of its files."""

    of_runs: bool

    def __call__(self, some: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        known = known_footers()
        yield from batches(
            (
                row
                for batch in some
                for item in batch.to_pylist()
                for row in examined(item["folder"], item["file"], item["checksum"], self.of_runs, known)
            ),
            EXAMINED,
        )


def _compare_bytes(some: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """In a task: large files whose checksum is another."""
    items = (item for batch in some for item in batch.to_pylist())
    wrong = (row for item in items for row in changed(item["folder"], item["file"], item["checksum"]))
    yield from batches(((row.folder, row.text) for row in wrong), _DROPPED)


def plan_runs(
    spark: SparkSession,
    roots: Sequence[str],
    unable: Callable[[TraceError], object],
    cores: int,
    *,
    compare: bool = True,
) -> RunsInTasks:
    """List the runs below the folders and examine their files, all by tasks.

    Args:
        spark: The session.
        roots: Folders, none of them twice.
        unable: Called for each of the first `SAID` runs that can't be judged, and once for the others.
        cores: How many tasks run side by side.
        compare: Whether to compare checksums of large files, which reads all bytes.

    Returns:
        The runs that can be judged.

    Raises:
        TraceError: A folder has no runs.
    """
    kept = Kept()
    try:
        return _planned_runs(spark, roots, _Saying(roots[0], unable), cores, kept, compare)
    except BaseException:
        kept.release()
        raise


def _planned_runs(
    spark: SparkSession, roots: Sequence[str], say: _Saying, cores: int, kept: Kept, compare: bool
) -> RunsInTasks:
    from pyspark.sql import functions as F

    found, counts = _listed(spark, roots, True, kept, cores)
    for at, root in enumerate(roots):
        if not (counts[at][RUN] or counts[at][UNABLE]):
            raise TraceError(no_runs(root))
    if any(of[UNABLE] for of in counts.values()):
        say(found.where(f"kind = {UNABLE}").selectExpr("folder", "text as why"))
    runs = _different(found, kept, cores, say)
    files = found.where(f"kind = {FILE}").select("folder", "file", "checksum")
    if runs.dropped:
        files = files.dropDuplicates(["folder", "file"]).join(runs.frame.select("folder"), "folder", "left_semi")
    looked = files.repartition(_parts(sum(of[FILE] for of in counts.values()), cores))
    groups = kept.add(looked.mapInArrow(_Examine(True), spark_schema(EXAMINED)))
    wrong = kept.add(_wrong(runs.frame, groups))
    bad = say(wrong)
    sums = _sums(groups)
    if compare and sums["large"]:
        large = groups.where(f"kind = {HELD} and checksum is not null").join(wrong, "folder", "left_anti")
        parts = min(parts_for(sums["size"], _BYTES, cores), sums["large"])
        compared = large.select("folder", "file", "checksum").repartition(parts)
        changed_files = compared.mapInArrow(_compare_bytes, spark_schema(_DROPPED))
        other = kept.add(changed_files.groupBy("folder").agg(F.min("why").alias("why")))
        bad += say(other)
        wrong = wrong.unionByName(other)
    left = runs.frame
    if bad:
        left = left.join(wrong, "folder", "left_anti")
        groups = groups.join(wrong, "folder", "left_anti")
        sums = _sums(groups)
    return RunsInTasks(left, groups, files, runs.count - bad, sums, kept, runs.notes)


def _read_through(some: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """In a task: files whose bytes can't be read to their end."""
    items = (item for batch in some for item in batch.to_pylist())
    found = ((item["folder"], why) for item in items if (why := unread(item["folder"], item["file"])) is not None)
    yield from batches(found, _DROPPED)


def without_damaged(plan: RunsInTasks, unable: Callable[[TraceError], object], cores: int) -> RunsInTasks | None:
    """The runs without those of which a file can't be read to its end; None where all can."""
    from pyspark.sql import functions as F

    files = plan.groups.where(f"kind = {HELD}").select("folder", "file")
    parts = min(parts_for(plan.sums["size"], _BYTES, cores), max(plan.sums["files"], 1))
    wrong = files.repartition(parts).mapInArrow(_read_through, spark_schema(_DROPPED))
    wrong = plan.kept.add(wrong.groupBy("folder").agg(F.min("why").alias("why")))
    root = str(plan.runs.agg(F.min("folder")).collect()[0][0])
    bad = _Saying(root, unable)(wrong)
    if not bad:
        return None
    runs, groups = (frame.join(wrong, "folder", "left_anti") for frame in (plan.runs, plan.groups))
    return RunsInTasks(runs, groups, plan.files, plan.count - bad, _sums(groups), plan.kept)


def without_runs(plan: RunsInTasks, names: Collection[str]) -> RunsInTasks:
    """The others than the runs of these names."""
    from pyspark.sql import functions as F

    out = plan.runs.where(F.col("run").isin(*names)).select("folder")
    runs, groups = (frame.join(out, "folder", "left_anti") for frame in (plan.runs, plan.groups))
    return RunsInTasks(runs, groups, plan.files, plan.count - len(names), _sums(groups), plan.kept, plan.notes)


class _Saying:
    """Says why runs can't be judged: of the first `SAID` each, of the others how many they are."""

    def __init__(self, root: str, unable: Callable[[TraceError], object]) -> None:
        self._root = root
        self._unable = unable

    def __call__(self, dropped: DataFrame) -> int:
        """How many there are."""
        lines = [row["why"] for row in dropped.orderBy("folder").limit(SAID + 1).collect()]
        for line in lines[:SAID]:
            self._unable(TraceError(line))
        if len(lines) <= SAID:
            return len(lines)
        count = dropped.count()
        self._unable(TraceError(f"{self._root}: {count - SAID:,} more runs can't be judged"))
        return count


def no_runs(root: str) -> str:
    """The line on a folder without runs, as `run_folders` has it."""
    from pathlib import Path

    there = "://" in root or Path(root).is_dir()
    what = "has no runs: no date=<day>/run=<run>/signals-*.parquet in it" if there else "is no folder"
    return f"{root}: {what}"


def _wrong(runs: DataFrame, groups: DataFrame) -> DataFrame:
    """Runs with a file that is wrong, with a record too few or too many, or without any: folder and why."""
    from pyspark.sql import functions as F

    none = F.lit(None)
    files = groups.where(f"kind in ({HELD}, {WRONG})").select(
        "folder",
        F.col("rows").alias("had"),
        none.cast("bigint").alias("said"),
        F.when(F.col("kind") == WRONG, F.struct("file", "text")).alias("first"),
    )
    whole = runs.select("folder", F.lit(0).cast("bigint").alias("had"), F.col("rows").alias("said"))
    each = files.unionByName(whole, allowMissingColumns=True)
    sums = (F.sum("had").alias("had"), F.max("said").alias("said"), F.min("first")["text"].alias("first"))
    each = each.groupBy("folder").agg(*sums)
    records = [F.format_number(of, 0) for of in ("had", "said")]
    counted = (F.lit(": its files have "), records[0], F.lit(" records, and it says that it holds "), records[1])
    why = F.coalesce(
        "first",
        F.when(F.col("said") != F.col("had"), F.concat("folder", *counted, F.lit(": it can't be judged"))),
        F.when(F.col("had") == 0, F.concat("folder", F.lit(": nothing was recorded there that could be judged"))),
    )
    return each.select("folder", why.alias("why")).where("why is not null")


def _sums(examined: DataFrame) -> dict[str, int]:
    """How much there is."""
    from pyspark.sql import functions as F

    is_group, is_file = F.col("kind") == GROUP, F.col("kind") == HELD
    unknown = (F.col("low") == -(2**63)) & (F.col("high") == 2**63 - 1)
    row = examined.agg(
        F.coalesce(F.sum(F.when(is_group, F.col("rows"))), F.lit(0)).alias("rows"),
        F.count_if(is_group).alias("groups"),
        F.count_if(is_group & F.col("run").isNull()).alias("mixed"),
        F.count_if(is_group & unknown).alias("unknown"),
        F.count_if(is_file).alias("files"),
        F.coalesce(F.sum("size"), F.lit(0)).alias("size"),
        F.count_if(is_file & F.col("checksum").isNotNull()).alias("large"),
        F.min(F.when(F.col("kind") == WRONG, F.col("text"))).alias("wrong"),
        F.min(F.when(F.col("kind") == FOREIGN, F.col("text"))).alias("foreign"),
    )
    sums: dict[str, int] = row.collect()[0].asDict()
    return sums


def plan_files(
    spark: SparkSession, places: Sequence[str], are_files: bool, cores: int, kept: Kept
) -> tuple[DataFrame, dict[str, int]]:
    """Examine Parquet files by tasks, those named or all below folders: rows of EXAMINED, and their sums.

    Raises:
        TraceError: Names a file that can't be read. A ForeignError names one that only Spark may read.
    """
    if are_files:
        rows = ((FILE, 0, 0, "", None, None, None, None, file, None, None, None) for file in places)
        found = spark.createDataFrame(pa.Table.from_batches(batches(rows, LISTED), LISTED))
        count = len(places)
    else:
        found, counts = _listed(spark, places, False, kept, cores)
        for at, of in counts.items():
            if of[UNABLE]:
                raise TraceError(found.where(f"kind = {UNABLE}").select("text").collect()[0]["text"])
            if not of[FILE]:
                raise TraceError(f"{places[at]}: has no Parquet files")
        count = sum(of[FILE] for of in counts.values())
        found = found.where(f"kind = {FILE}")
    looked = found.select("folder", "file", "checksum").repartition(_parts(count, cores))
    groups = kept.add(looked.mapInArrow(_Examine(False), spark_schema(EXAMINED)))
    sums: dict[str, Any] = _sums(groups)
    if sums["wrong"] is not None:
        raise TraceError(sums["wrong"])
    if sums["foreign"] is not None:
        file, _, why = sums["foreign"].partition(": ")
        raise ForeignError(file, why)
    return groups, sums
