"""The judge in Spark's tasks: `reactive_runtime.judging`, given its records in one of three ways.

    ranges   a task reads the row groups that hold its range of subscriptions, by itself, and judges them: nothing moves
    moved    tasks read each record once, and send it packed to the task that judges its subscription
    frame    the same with the rows of any DataFrame, which Spark reads

The first two are for files that this process and the tasks see at one path, with columns as they are judged; the plan
(`reactive_runtime.judging._files`) says by its cost which it is. Other files are left to Spark to read: those of a file
system of Spark's, those the tasks do not see, columns of other types, in other letters, or in the names of folders.
`explain` says which way it is, and why. All are plain DataFrames, of
descriptions of tasks or of packed columns, and so work with Spark Connect too. A task holds a bounded number of
records, and keeps others on its disk; a subscription that is larger is judged a record at a time, slowly and exactly.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import unquote, urlsplit

import numpy as np
import pyarrow as pa

from reactive_runtime._support.public_names import at_home
from reactive_runtime.errors import TraceError
from reactive_runtime.judging._files import RANGE, ForeignError, Plan, Range, plan, read, read_range
from reactive_runtime.judging._gathering import MOST, Gathered, scattered
from reactive_runtime.judging._kernel import SUBSCRIPTIONS, VIOLATIONS, WAITS, Judged, schema_of
from reactive_runtime.judging._rows import NEEDED, PACKED, REQUIRED, Rows, flags_in_sql
from reactive_runtime.spark._session.spark_errors import is_connected, reason
from reactive_runtime.testing._records import CUT, LARGE
from reactive_runtime.testing.trace import checked, holds, run_folders, schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Found", "LeftToSpark", "Way", "explain", "judge_files", "judge_frame", "planned"]

Way = Literal["ranges", "moved", "frame"]

_LITTLE: Final = 100_000
"""Records that are not worth a task of their own."""

_PARTS: Final = 4
"""For each core, the tasks that judge what was moved, where it was not counted."""

_BLOB: Final = 500_000
"""Records that are read before they are sorted to their tasks."""

_LEVEL: Final = 99
"""Rows are scattered over tasks by other numbers than over the files of one task."""

_COLUMNS: Final[dict[str, pa.DataType]] = {
    field.name: field.type for schema in (SUBSCRIPTIONS, VIOLATIONS, WAITS) for field in schema
}

_ALL: Final = schema_of(part=pa.int8(), **_COLUMNS)
"""What tasks give: the rows of all tables, one below the other; `part` says of which."""

_SENT: Final = schema_of(place=pa.int32(), blob=pa.binary())


@dataclass(frozen=True)
class Found:
    """What was found, as DataFrames with the columns of `reactive_runtime.judging._kernel`.

    Each is computed anew by each action, unless it was kept.
    """

    frame: DataFrame
    plan: str
    """How, in a line."""

    def kept(self) -> Found:
        """Computed once, now, and planned from here on without how it came about.

        Returns:
            The same findings.
        """
        return Found(self.frame.localCheckpoint(), self.plan)

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
    how = planned(spark, files, way, most)
    if isinstance(how, LeftToSpark):
        found = judge_frame(_read(spark, how), late_signals=late_signals, upto=upto, most=most)
        return Found(found.frame, how.explain())
    with_settings = _Settings(late_signals, dict(upto or {}), most)
    if how.way == "ranges":
        frame = _tasks(spark, _of_ranges(how)).mapInArrow(_JudgeRanges(with_settings), _schema(_ALL))
        return Found(frame, how.explain())
    parts = max(len(how.ranges), -(-how.rows // RANGE), 1)
    sent = _tasks(spark, _of_groups(how)).mapInArrow(_SendGroups(parts), _schema(_SENT))
    return Found(_judged_where_sent(sent, parts, with_settings), how.explain())


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
    parts = _PARTS * _cores(signals.sparkSession)
    sent = _packed(signals).mapInArrow(_SendRows(parts), _schema(_SENT))
    how = f"frame: Spark reads, packed rows are moved to {parts} tasks"
    return Found(_judged_where_sent(sent, parts, _Settings(late_signals, dict(upto or {}), most)), how)


def planned(
    spark: SparkSession, files: Sequence[Path | str], way: Way | None = None, most: int = MOST
) -> Plan | LeftToSpark:
    """How `judge_files` judges these files. TraceError names one that is there, and is no whole Parquet file."""
    named = tuple(map(_local, map(str, files)))
    if way == "frame":
        return LeftToSpark(named, "it was asked for")
    for entry in named:
        if not Path(entry).exists():
            return LeftToSpark(named, f"{entry}: is not there for this process")
    found = [file for item in named for file in _below(Path(item).resolve())]
    unseen = _unseen(spark, found)
    if unseen is not None:
        return LeftToSpark(named, f"{unseen}: is not there, or another file, for a task")
    try:
        return plan(found, cores=_cores(spark), most=min(RANGE, max(most // 2, 1)), way=way, little=_LITTLE)
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
    files: list[Path | str] = []
    for item in map(_local, map(str, folders)):
        files += _held(Path(item)) or [item]
    how = planned(spark, files)
    if isinstance(how, LeftToSpark):
        _read(spark, how)
    return how.explain()


# -- where files are ------------------------------------------------------------------------------------------


def _local(file: str) -> str:
    """The path of a file of this machine that is named by its URI."""
    return unquote(urlsplit(file).path) if file.startswith("file:/") else file


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


def _on_one_machine(spark: SparkSession) -> bool:
    """Whether tasks are known to see what this process sees."""
    return not is_connected(spark) and str(spark.sparkContext.master).startswith("local")


def _unseen(spark: SparkSession, files: Sequence[Path]) -> str | None:
    """A file that a task does not see as this process does; None where there is none."""
    if _on_one_machine(spark) or not files:
        return None
    sizes = [(str(file), _size(file)) for file in files]
    looked = _tasks(spark, [sizes] * _cores(spark)).mapInArrow(_unseen_there, "file string").limit(1).collect()
    return looked[0]["file"] if looked else None


def _unseen_there(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """In a task: the first file that is not there, or not in that size."""
    for sizes in _described(batches):
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
        inside = [item for item in _schema(schema()) if item.name in parts and item.name not in known]
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


def _cores(spark: SparkSession) -> int:
    """How many tasks run side by side, where Spark says so."""
    return 8 if is_connected(spark) else int(spark.sparkContext.defaultParallelism)


def _schema(schema: pa.Schema) -> Any:
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema)


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


def _described(batches: Iterable[pa.RecordBatch]) -> Iterator[Any]:
    for batch in batches:
        yield from (json.loads(str(text)) for text in batch.column("what").to_pylist())


# -- what tasks do --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Settings:
    late_signals: int
    upto: dict[str, int]
    most: int

    def gathered(self) -> Gathered:
        return Gathered(late_signals=self.late_signals, upto=self.upto, most=self.most)


@dataclass(frozen=True)
class _JudgeRanges:
    settings: _Settings

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for ranges in _described(batches):
            for span in ranges:
                groups = tuple((file, tuple(numbers)) for file, numbers in span.pop("groups"))
                with self.settings.gathered() as gathered:
                    for rows in read_range(Range(groups=groups, **span)):
                        gathered.add(rows)
                    yield from _given(gathered.judged())


@dataclass(frozen=True)
class _SendGroups:
    parts: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = (rows for groups in _described(batches) for file, number in groups for rows in read(file, [number]))
        yield from _sent(rows, self.parts)


@dataclass(frozen=True)
class _SendRows:
    parts: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from _sent(map(_of_frame, _chunks(batches)), self.parts)


@dataclass(frozen=True)
class _JudgeSent:
    settings: _Settings

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with self.settings.gathered() as gathered:
            for batch in batches:
                for blob in batch.column("blob"):
                    with pa.ipc.open_stream(blob.as_buffer()) as stream:
                        for packed in stream:
                            gathered.add(Rows.of_packed(packed))
            yield from _given(gathered.judged())


def _given(parts: Iterable[Judged]) -> Iterator[pa.RecordBatch]:
    for judged in parts:
        for part, table in enumerate(judged):
            if len(table):
                columns: dict[str, Any] = {name: table.column(name) for name in table.column_names}
                columns["part"] = pa.array(np.full(len(table), part, np.int8))
                full = [columns.get(item.name, pa.nulls(len(table), item.type)) for item in _ALL]
                yield from pa.Table.from_arrays(full, schema=_ALL).combine_chunks().to_batches(max_chunksize=100_000)


def _judged_where_sent(sent: DataFrame, parts: int, settings: _Settings) -> DataFrame:
    return sent.repartitionById(parts, "place").select("blob").mapInArrow(_JudgeSent(settings), _schema(_ALL))


def _sent(some: Iterable[Rows], parts: int) -> Iterator[pa.RecordBatch]:
    """Packed rows, by the number of the task that judges their subscription."""
    held: list[Rows] = []
    size = 0
    for rows in some:
        held.append(rows)
        size += len(rows)
        if size >= _BLOB:
            yield _blobs(Rows.together(held), parts)
            held, size = [], 0
    if size:
        yield _blobs(Rows.together(held), parts)


def _blobs(rows: Rows, parts: int) -> pa.RecordBatch:
    places = (scattered(rows, _LEVEL) % np.uint64(parts)).astype(np.int32)
    order = np.argsort(places.astype(np.uint16) if parts < 2**16 else places, kind="stable")
    bounds = np.searchsorted(places[order], np.arange(parts + 1))
    rows = rows.where(order)
    filled = [place for place in range(parts) if bounds[place] < bounds[place + 1]]
    blobs = [_blob(rows.where(slice(bounds[place], bounds[place + 1]))) for place in filled]
    return pa.RecordBatch.from_arrays([pa.array(filled, pa.int32()), pa.array(blobs, pa.binary())], schema=_SENT)


def _blob(rows: Rows) -> bytes:
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, PACKED, options=pa.ipc.IpcWriteOptions(compression="lz4")) as stream:
        stream.write_batch(rows.packed())
    blob: bytes = out.getvalue().to_pybytes()
    return blob


# -- any DataFrame --------------------------------------------------------------------------------------------


def _packed(signals: DataFrame) -> DataFrame:
    """The columns of PACKED, by Spark: numbers and flags, and the names of run and scenario."""
    from pyspark.sql import functions as F

    exact = signals.sparkSession.conf.get("spark.sql.caseSensitive") == "true"
    known = set(signals.columns) if exact else {name.lower() for name in signals.columns}
    missing = [name for name in NEEDED if name not in known]
    if missing:
        raise TraceError(
            f"the DataFrame is no trace: it has no column {', '.join(map(repr, missing))}; see docs/traces.md"
        )

    kinds = {name.lower(): kind for name, kind in signals.dtypes}

    def whole(name: str) -> str:
        """Its numbers, as SQL; what is none of 64 bits fails the job, and is not cut."""
        kind = kinds[name.lower()]
        if kind in ("tinyint", "smallint", "int", "bigint", "void"):
            return f"cast({name} as bigint)"
        if not (kind.startswith("decimal(") and kind.endswith(",0)")):
            raise TraceError(f"the DataFrame is no trace: column {name!r} should be of integers, and is {kind}")
        beyond = f"raise_error('the DataFrame is no trace: column {name} has what is beyond 64 bits')"
        return f"if({name} is null, null, coalesce(try_cast({name} as bigint), cast({beyond} as bigint)))"

    def number(name: str, missing: int) -> Any:
        return F.expr(f"coalesce({whole(name)}, {missing}L)").alias(name)

    def least(name: str, kind: str) -> Any:
        if name not in known:
            return F.lit(-1).cast(kind).alias(name)
        counted = f"greatest({whole(name)}, 0L)"
        counted = counted if kind == "bigint" else f"least({counted}, {2**31 - 1}L)"
        return F.expr(f"cast(if({name} is null, -1L, {counted}) as {kind})").alias(name)

    beyond = kinds.get(LARGE, "string")
    if beyond not in ("string", "void"):
        raise TraceError(f"the DataFrame is no trace: column {LARGE!r} should be of strings, and is {beyond}")
    return signals.select(
        *(F.col(name).cast("string").alias(name) for name in ("run", "scenario")),
        number("subscription", 0),
        F.expr(flags_in_sql(known)).alias("flags"),
        least("elements", "bigint"),
        number("thread", 0),
        F.expr(f"greatest(coalesce({whole('n')}, 0L), 0L)").alias("n"),
        number("begin", 0),
        number("end", CUT),
        F.expr(f"coalesce(if(signal <=> 'cancel', {whole('end_ns')}, {whole('begin_ns')}), 0L)").alias("ns"),
        number("value", 0),
        least("late_signals", "int"),
        *([F.col(LARGE).cast("string").alias(LARGE)] if LARGE in known else []),
    )


def _chunks(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Batches together: each has its cost."""
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        held.append(batch)
        size += len(batch)
        if size >= _BLOB // 4:
            yield pa.Table.from_batches(held)
            held, size = [], 0
    if size:
        yield pa.Table.from_batches(held)


def _of_frame(table: pa.Table) -> Rows:
    """Rows of what `_packed` gives; TraceError names a column with nulls."""
    flags = table.column("flags").to_numpy()
    wrong = -int(flags.min()) if len(flags) else 0
    if wrong > 0:
        raise TraceError(
            f"the DataFrame is no trace: column {REQUIRED[wrong - 1]!r} has nulls; docs/traces.md says which may"
        )
    return Rows.of_packed(table)


at_home("reactive_runtime.spark", Found, explain, judge_files, judge_frame)
