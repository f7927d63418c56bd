"""The judge in Spark's tasks: `reactive_runtime.judging`, given its records in one of three ways.

    ranges   a task reads the row groups that hold its range of subscriptions, by itself, and judges them: nothing moves
    moved    tasks read each record once, and send it packed to the task that judges its subscription
    frame    the same with the rows of any DataFrame, which Spark reads

The first two are for files that this process and the tasks see at one path, with columns as they are judged; the plan
(`reactive_runtime.judging._files`) says by its cost which it is. Other files are left to Spark to read: those of a file
system of Spark's, those the tasks do not see, columns of other types, in other letters, or in the names of folders.
`explain` says which way it is, and why. All are plain DataFrames, of
descriptions of tasks or of packed columns, and so work with Spark Connect too. A task holds a bounded number of
records, and keeps others on its disk. A subscription that is larger is judged in pieces: by one task, or where that
task would take much longer than all others, by many (`long_subscriptions`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import unquote, urlsplit

import pyarrow as pa

from reactive_runtime._support.public_names import at_home
from reactive_runtime.errors import TraceError
from reactive_runtime.judging._files import RANGE, ForeignError, Plan, plan
from reactive_runtime.judging._gathering import MOST
from reactive_runtime.judging._kernel import SUBSCRIPTIONS, VIOLATIONS
from reactive_runtime.judging._stores import FewFiles, few, is_remote, local
from reactive_runtime.spark._session.spark_errors import is_connected, reason
from reactive_runtime.spark._session.spark_session import literal, local_path
from reactive_runtime.spark._verdict.judge_tasks import (
    ALL,
    SENT,
    JudgeRanges,
    JudgeSent,
    SendGroups,
    SendRows,
    Settings,
    described,
    packed,
)
from reactive_runtime.spark._verdict.long_subscriptions import find_long, judge_with_long, parts_of_long
from reactive_runtime.spark._verdict.planning import (
    Kept,
    PlannedInTasks,
    plan_groups,
    spark_schema,
)
from reactive_runtime.spark._verdict.run_planning import RunsInTasks, plan_files, plan_runs
from reactive_runtime.testing.trace import checked, holds, run_folders, schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Found", "LeftToSpark", "Way", "explain", "judge_files", "judge_frame", "planned"]

Way = Literal["ranges", "moved", "frame"]

_LITTLE: Final = 100_000
"""Records that are not worth a task of their own."""

_PARTS: Final = 4
"""For each core, the tasks that judge what was moved, where it was not counted."""

_SAMPLE: Final = 64
"""Files that a task on each core looks for, to see whether all machines see the same."""

_MOST_PARTS: Final = 10_000
"""Tasks that judge what was moved, at most."""

_OPENED: Final = ("s3://", "gs://")
"""File systems whose files tasks open without Spark."""

_MOST_CORES: Final = 100_000
"""Cores that Spark Connect counts, at most."""

FEW = FewFiles()
"""So little is planned by this process; more by tasks."""


@dataclass(frozen=True)
class Found:
    """What was found, as DataFrames with the columns of `reactive_runtime.judging._kernel`.

    Each is computed anew by each action, unless it was kept.
    """

    frame: DataFrame
    plan: str
    """How, in a line."""
    _held: Kept = field(default_factory=Kept, repr=False, compare=False)

    def kept(self, to: Path | None = None) -> Found:
        """Computed once, now; what was kept of the plan is released.

        Without a folder, the findings are on the disks of the executors until `release`; if an executor is lost, Spark
        computes its part again. With a folder, tasks write them there, each its own files, and nothing has to be
        computed again.

        Args:
            to: A folder that this process and all tasks see; it must not exist.

        Returns:
            The same findings.
        """
        if to is None:
            held = Kept()
            frame = held.add(self.frame)
            frame.count()
            self._held.release()
            return Found(frame, self.plan, held)
        self.frame.write.parquet(local_path(to))
        self._held.release()
        return Found(self.frame.sparkSession.read.schema(spark_schema(ALL)).parquet(literal(to)), self.plan)

    def release(self) -> None:
        """Remove from the executors' disks what was kept there; the findings are computed again if they are used."""
        self._held.release()

    @cached_property
    def subscriptions(self) -> DataFrame:
        """A row for each subscription: what it amounted to, and how many rules it broke."""
        return self.frame.where("part = 0").select(*SUBSCRIPTIONS.names)

    @cached_property
    def violations(self) -> DataFrame:
        """A row for each rule broken in each subscription: rule, count, first."""
        return self.frame.where("part = 1").select(*VIOLATIONS.names)

    @cached_property
    def waits(self) -> DataFrame:
        """A row for each bucket of what was measured in each scenario of each run: count and largest."""
        from pyspark.sql import functions as F

        rows = self.frame.where("part = 2").groupBy("run", "scenario", "what", "bucket")
        return rows.agg(F.sum("count").alias("count"), F.max("largest").alias("largest"))


@dataclass(frozen=True)
class LeftToSpark:
    """Files of which there is no plan: Spark reads them."""

    files: tuple[str, ...]
    why: str
    way: Literal["frame"] = "frame"

    def explain(self) -> str:
        """How and why, in a line."""
        return f"frame: Spark reads, packed rows are moved: {self.why}"


def judge_files(
    spark: SparkSession,
    files: Sequence[Path | str],
    *,
    late_signals: int = 1,
    upto: Mapping[str, int] | None = None,
    way: Way | None = None,
    most: int = MOST,
) -> Found:
    """Judge all records of these trace files, or of the Parquet files in these folders.

    What this process or the tasks can't read as it lies, Spark reads: `s3a://…`, columns of other types, partitions of
    folders (docs/traces.md).

    Args:
        spark: The session.
        files: Parquet files, or folders of such; paths or URIs.
        late_signals: How many signals may follow a cancel from outside, where the trace does not say.
        upto: The ticket of each run that is judged as it was at that ticket. None: all runs are judged whole.
        way: "ranges", "moved" or "frame", whatever it costs. None: the way that costs least.
        most: How many records a task holds at once.

    Returns:
        What was found, as DataFrames; Spark computes them at an action.

    Raises:
        TraceError: Names what is no trace, or can't be read in any way.
    """
    held = Kept()
    how = planned(spark, files, way, most, held)
    if isinstance(how, LeftToSpark):
        found = judge_frame(_read(spark, how), late_signals=late_signals, upto=upto, most=most)
        return Found(found.frame, how.explain())
    with_settings = Settings(late_signals, dict(upto or {}), most)
    if isinstance(how, PlannedInTasks):
        return _judged_as_planned(how, with_settings, held)
    if how.way == "ranges":
        frame = _tasks(spark, _of_ranges(how)).mapInArrow(JudgeRanges(with_settings), spark_schema(ALL))
        return Found(frame, how.explain())
    parts = parts_of_moved(len(how.ranges), how.rows)
    return _judged_when_moved(_tasks(spark, _of_groups(how)), how, parts, with_settings, held)


def judge_runs(spark: SparkSession, runs: RunsInTasks, late_signals: int, most: int = MOST) -> Found:
    """Judge runs whose files tasks have examined."""
    how = plan_runs_found(spark, runs, most)
    return _judged_as_planned(how, Settings(late_signals, {}, most), Kept())


def plan_runs_found(spark: SparkSession, runs: RunsInTasks, most: int = MOST) -> PlannedInTasks:
    """How `judge_runs` judges them."""
    return plan_groups(runs.groups, runs.sums, cores_of(spark), None, _LITTLE, _range(most))


def _judged_as_planned(how: PlannedInTasks, settings: Settings, held: Kept) -> Found:
    if how.way == "ranges":
        frame = how.packs.mapInArrow(JudgeRanges(settings), spark_schema(ALL))
        return Found(frame, how.explain(), held)
    parts = parts_of_moved(how.ranges, how.rows)
    return _judged_when_moved(how.packs, how, parts, settings, held)


def parts_of_moved(ranges: int, rows: int) -> int:
    """How many tasks judge what was moved: the driver keeps some of each, and each mapper of each."""
    return min(max(ranges, -(-rows // RANGE), 1), _MOST_PARTS)


def _judged_when_moved(
    groups: DataFrame, how: Plan | PlannedInTasks, parts: int, settings: Settings, held: Kept
) -> Found:
    """Send each row group to the tasks that judge it; a long subscription is judged now, by several tasks."""
    long = find_long(groups, how.rows, cores_of(groups.sparkSession))
    if not long:
        sent = groups.mapInArrow(SendGroups(parts), spark_schema(SENT))
        return Found(_judged_where_sent(sent, parts, settings), how.explain(), held)
    sent = groups.mapInArrow(SendGroups(parts, long, parts_of_long(long)), spark_schema(SENT))
    which = "1 long subscription is" if len(long) == 1 else f"{len(long)} long subscriptions are"
    cut = f"{which} cut into {sum(item.pieces for item in long)} pieces"
    return Found(judge_with_long(sent, parts, settings, long, held), f"{how.explain()}; {cut}", held)


def _range(most: int) -> int:
    """Records of a range."""
    return min(RANGE, max(most // 2, 1))


def judge_frame(
    signals: DataFrame, *, late_signals: int = 1, upto: Mapping[str, int] | None = None, most: int = MOST
) -> Found:
    """Judge the rows of any DataFrame with the columns of a trace; docs/traces.md has the columns.

    Args:
        signals: The records; columns of newer schemas may be missing.
        late_signals: As for `judge_files`.
        upto: As for `judge_files`.
        most: How many records a task holds at once.

    Returns:
        What was found, as DataFrames. An action on them fails where a column has nulls that must not have some, by
        name.

    Raises:
        TraceError: Names the columns that are missing.
    """
    parts = _PARTS * cores_of(signals.sparkSession)
    sent = packed(signals).mapInArrow(SendRows(parts), spark_schema(SENT))
    how = f"frame: Spark reads, packed rows are moved to {parts} tasks"
    return Found(_judged_where_sent(sent, parts, Settings(late_signals, dict(upto or {}), most)), how)


def planned(
    spark: SparkSession,
    files: Sequence[Path | str],
    way: Way | None = None,
    most: int = MOST,
    held: Kept | None = None,
) -> Plan | PlannedInTasks | LeftToSpark:
    """How `judge_files` judges these files. TraceError names one that is there, and is no whole Parquet file."""
    named = tuple(map(local, map(str, files)))
    if way == "frame":
        return LeftToSpark(named, "it was asked for")
    for entry in named:
        if not entry.startswith(_OPENED) and not Path(entry).exists():
            return LeftToSpark(named, f"{entry}: is not there for this process")
    cores = cores_of(spark)
    try:
        if not few(named, FEW, lambda name: name.endswith(".parquet")):
            are_files = all(
                entry.endswith(".parquet") if is_remote(entry) else Path(entry).is_file() for entry in named
            )
            places = [entry if is_remote(entry) else str(Path(entry).resolve()) for entry in named]
            examined, sums = plan_files(spark, places, are_files, cores, Kept() if held is None else held)
            return plan_groups(examined, sums, cores, way, _LITTLE, _range(most))
        found = [file for item in named for file in _below(Path(item).resolve())]
        unseen = _unseen(spark, found)
        if unseen is not None:
            return LeftToSpark(named, f"{unseen}: is not there, or another file, for a task")
        return plan(found, cores=cores, most=_range(most), way=way, little=_LITTLE, apart=True)
    except ForeignError as error:
        return LeftToSpark(named, error.why)


def explain(spark: SparkSession, folders: Sequence[Path | str]) -> str:
    """How what is in these folders is judged, and why, in a line.

    Args:
        spark: The session.
        folders: Folders of runs, or else of Parquet files; paths or URIs.

    Returns:
        The line.

    Raises:
        TraceError: As of `judge_files`, and where a run does not hold what its metadata says.
    """
    named = [local(str(folder)) for folder in folders]
    if not few(named, FEW) and all(map(_has_runs, named)):
        runs = plan_runs(spark, [str(Path(item).resolve()) for item in named], _refused, cores_of(spark))
        try:
            return plan_runs_found(spark, runs).explain()
        finally:
            runs.kept.release()
    files: list[Path | str] = []
    for item in named:
        files += _held(Path(item)) or [item]
    how = planned(spark, files)
    if isinstance(how, LeftToSpark):
        _read(spark, how)
    return how.explain()


# -- where files are ------------------------------------------------------------------------------------------


def _refused(error: TraceError) -> None:
    raise error


def _has_runs(folder: str) -> bool:
    """Whether a folder has runs: the first file of one that is found says so."""
    try:
        next(Path(folder).rglob("signals-*.parquet"))
    except StopIteration:
        return False
    return True


def _held(folder: Path) -> list[Path | str]:
    """The files of the runs in that folder; none where it has no runs."""
    try:
        runs = run_folders(folder)
    except TraceError:
        return []
    found = map(holds, runs)
    return [file for finding in found for file in (finding.files if finding.rows is None else checked(finding))]


def _below(there: Path) -> list[Path]:
    """The file, or the Parquet files below the folder, but for those that readers pass over."""
    if there.is_file():
        return [there]
    found = [item for item in sorted(there.glob("**/*.parquet")) if item.is_file()]
    found = [finding for finding in found if not any(part[0] in "._" for part in finding.relative_to(there).parts)]
    if not found:
        raise TraceError(f"{there}: has no Parquet files")
    return found


def _size(file: Path) -> int:
    return file.stat().st_size


def is_shared(spark: SparkSession, folder: Path) -> bool:
    """Whether tasks see that folder as this process does."""
    if _on_one_machine(spark):
        return True
    token = folder / "_seen"
    token.write_text("by this process")
    try:
        return _unseen(spark, [token]) is None
    finally:
        token.unlink()


def _on_one_machine(spark: SparkSession) -> bool:
    """Whether tasks are known to see what this process sees."""
    return not is_connected(spark) and str(spark.sparkContext.master).startswith("local")


def _unseen(spark: SparkSession, files: Sequence[Path]) -> str | None:
    """A file that a task does not see as this process does, of _SAMPLE at most; None where there is none."""
    if _on_one_machine(spark) or not files:
        return None
    each = -(-len(files) // _SAMPLE)
    sizes = [(str(file), _size(file)) for file in files[::each]]
    looked = _tasks(spark, [sizes] * cores_of(spark)).mapInArrow(_unseen_there, "file string").limit(1).collect()
    return looked[0]["file"] if looked else None


def _unseen_there(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """In a task: the first file that is not there, or not in that size."""
    for sizes in described(batches):
        for file, size in sizes:
            if not Path(file).is_file() or _size(Path(file)) != size:
                yield pa.RecordBatch.from_pydict({"file": [file]})
                break


def _read(spark: SparkSession, left: LeftToSpark) -> DataFrame:
    """What Spark reads there: the columns of all files, and those that are in the names of folders."""
    try:
        everything = spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(list(left.files))
        # A file that was named may be called anything.
        endings = (".parquet", *(urlsplit(item).path for item in left.files))
        files = [file for item in everything.inputFiles() if (file := unquote(item)).endswith(endings)]
        # Bytes that have changed since they were written are no trace, even where they can be read as values.
        reader = spark.read.option("parquet.page.verify-checksum.enabled", "true").option("mergeSchema", "true")
        frame = reader.parquet(*files)
        known = {column.lower() for column in frame.columns}
        parts = dict.fromkeys(part.partition("=")[0] for file in files for part in file.split("/")[:-1] if "=" in part)
        inside = [item for item in spark_schema(schema()) if item.name in parts and item.name not in known]
        if inside:
            columns = frame.schema
            for entry in inside:
                columns = columns.add(entry)
            roots: dict[str, list[str]] = {}
            for file in files:
                roots.setdefault(file.partition("=")[0].rpartition("/")[0], []).append(file)
            reader = reader.schema(columns)
            frames = [reader.option("basePath", root).parquet(*of) for root, of in roots.items()]
            frame = reduce(type(frame).unionByName, frames)
    except Exception as error:
        raise TraceError(f"{left.files[0]}: can't be read: {left.why}; and Spark says: {reason(error)}") from error
    return frame


def cores_of(spark: SparkSession) -> int:
    """How many tasks run side by side: Spark cuts a range into so many parts, also with Spark Connect."""
    if not is_connected(spark):
        return int(spark.sparkContext.defaultParallelism)
    from pyspark.sql import functions as F

    parts = spark.range(_MOST_CORES).select(F.spark_partition_id().alias("part"))
    return int(parts.agg(F.max("part")).collect()[0][0]) + 1


# -- descriptions of tasks ------------------------------------------------------------------------------------


def _tasks(spark: SparkSession, described: Sequence[Any]) -> DataFrame:
    """A DataFrame with one row a partition, which describes what a task has to do."""
    texts = [json.dumps(item) for item in described]
    table = pa.table({"task": pa.array(range(len(texts)), pa.int32()), "what": pa.array(texts, pa.string())})
    return spark.createDataFrame(table).repartitionById(max(len(texts), 1), "task")


def _of_ranges(how: Plan) -> list[list[dict[str, Any]]]:
    """Ranges by task: small ones together."""
    size = max(-(-how.rows // max(how.tasks, 1)), 1)
    tasks: list[list[dict[str, Any]]] = []
    left = 0
    for span in how.ranges:
        if left <= 0 or span.rows > left + size // 4:
            tasks.append([])
            left = size
        tasks[-1].append(asdict(span))
        left -= span.rows
    return tasks


def _of_groups(how: Plan) -> list[list[tuple[str, int]]]:
    """Row groups by task, each once."""
    size = max(-(-how.rows // max(how.tasks, 1)), 1)
    tasks: list[list[tuple[str, int]]] = []
    left = 0
    for group in how.groups:
        if left <= 0:
            tasks.append([])
            left = size
        tasks[-1].append((group.file, group.number))
        left -= group.rows
    return tasks


def _judged_where_sent(sent: DataFrame, parts: int, settings: Settings) -> DataFrame:
    return sent.repartitionById(parts, "place").select("blob").mapInArrow(JudgeSent(settings), spark_schema(ALL))


at_home("reactive_runtime.spark", Found, explain, judge_files, judge_frame)
