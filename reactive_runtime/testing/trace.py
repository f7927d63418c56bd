"""Traces on disk: one folder a run, with Parquet files of its signals and a metadata.json.

    <folder>/date=<day>/run=<run>/signals-00000.parquet   a row for each `Record`, by subscription and `begin`
    <folder>/date=<day>/run=<run>/metadata.json           version, commit, Python, machine, seed; files and their rows

What a run holds is what its metadata counts. Every two seconds at the latest the writer asks the recorder up to which
ticket nothing is missing, and writes one file of all that there is up to there. A call that had not returned is in a
file of such calls, `open-00000.parquet`, which the next one replaces. Then `_metadata.json`, which counts them,
is replaced, in one rename. So a run that is killed is a prefix of what happened, whatever its threads were at: what
the metadata does not count is not judged. When the run is complete, the metadata is `metadata.json`.

A call that had not returned where a run was cut off has an `end` beyond all tickets (`CUT` - `begin`): it may have
returned later, and is not accused of what it did not do. An `end` of None says that the run came to its end without it.

Each page of a file has a checksum, which its footer and the heads of its pages have not: so the metadata has one of
each file, which is compared before the file is judged.

A file is written under a name that begins with `_`, which readers pass over, and gets its own name when it is whole.
Each file says which schema it has: 1 had no `depth` and no `late_signals`, 2 no `large_value`, 3 no `none`, 4 is what
is written here; docs/traces.md has the columns. Needs pyarrow, which is imported on first use.
"""

from __future__ import annotations

import json
import os
import platform
import re
import secrets
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import file_digest, sha256
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from weakref import ref

from reactive_runtime._core.runtime import primitives
from reactive_runtime.errors import MissingDependencyError, TraceError
from reactive_runtime.testing._recorder import NONE, ON_NEXT, PACKED, REQUEST, SIGNALS, Chunk, Recorder
from reactive_runtime.testing._records import (
    COLUMNS,
    CUT,
    LARGE,
    Record,
    SubscriptionMetadata,
    fitting,
    from_large,
    to_large,
)

if TYPE_CHECKING:
    import pyarrow

__all__ = [
    "SCHEMA",
    "Held",
    "Source",
    "TraceWriter",
    "arrived",
    "check_files",
    "checked",
    "different_runs",
    "holds",
    "metadata_of",
    "read_through",
    "read_trace",
    "records_of",
    "run_folders",
    "schema",
    "table_of",
]

SCHEMA: Final = 4
"""The version of the columns; files of an older one can be read."""

_VERSION: Final = b"reactive_runtime.trace"
"""Where a file says its version."""

_SINCE: Final = {"depth": 2, "late_signals": 2, LARGE: 3, "none": 4}
"""Columns that older files have not."""

FILE_ROWS: Final = 100_000
"""Rows that wait for a file, at which it is written; at twice as many, the threads that record wait for it."""

GROUP_ROWS: Final = 100_000

FLUSH_SECONDS: Final = 1.0
"""After which a file is written however few its rows are. With the time that takes, no more than two are lost."""

REPEATED: Final = ["run", "scenario", "subscription", "thread", "signal", "n", "elements", "error"]
"""Columns with few values, which files hold as a dictionary."""

RISING: Final = dict.fromkeys(("begin", "end", "begin_ns", "end_ns", "value"), "DELTA_BINARY_PACKED")
"""Columns that files hold as differences: a third of the bytes, and of a dictionary's time."""

PLANNED: Final = ["run", "scenario", "subscription", "begin"]
"""Columns by whose least and largest values, in the footers, readers choose what to read."""

_BLOCK: Final = 2_000
"""Records that are turned into columns in one go: more would not stay in the cache from one column to the next."""


def _arrow() -> tuple[Any, Any]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise MissingDependencyError("traces need pyarrow: pip install 'reactive-runtime[cli]'") from error
    return pa, parquet


def _compute() -> Any:
    import pyarrow.compute

    return pyarrow.compute


def schema() -> pyarrow.Schema:
    """The columns of a trace: the fields of `Record`, and `large_value`, in which ints beyond 64 bits are.

    Returns:
        The Arrow schema, with the version of the columns in its metadata.

    Raises:
        MissingDependencyError: There is no pyarrow.
    """
    pa, _ = _arrow()
    fields = [
        ("run", pa.string(), False),
        ("scenario", pa.string(), False),
        ("subscription", pa.int64(), False),
        ("shared_callers", pa.bool_(), False),
        ("ascending", pa.bool_(), False),
        ("elements", pa.int64(), True),
        ("thread", pa.int64(), False),
        ("signal", pa.string(), False),
        ("n", pa.int64(), True),
        ("begin", pa.int64(), False),
        ("end", pa.int64(), True),
        ("begin_ns", pa.int64(), False),
        ("end_ns", pa.int64(), True),
        ("value", pa.int64(), True),
        ("error", pa.string(), True),
        ("depth", pa.int32(), True),
        ("late_signals", pa.int32(), True),
        ("none", pa.bool_(), False),
        (LARGE, pa.string(), True),
    ]
    columns = [pa.field(name, kind, nullable=nullable) for name, kind, nullable in fields]
    made: pyarrow.Schema = pa.schema(columns, metadata={_VERSION: str(SCHEMA).encode()})
    return made


def table_of(records: Sequence[Record]) -> pyarrow.Table:
    """Records as an Arrow table.

    Args:
        records: The records, whose order is kept.

    Returns:
        A table of the columns of `schema`.

    Raises:
        MissingDependencyError: There is no pyarrow.
    """
    pa, _ = _arrow()
    known_as = schema()
    blocks = []
    for at in range(0, len(records), _BLOCK):
        some = records[at : at + _BLOCK]
        # Not zip(*some): its iterators, one a record, would each count for the garbage collection.
        cells: list[Any] = [list(map(itemgetter(place), some)) for place in range(_FIELDS)]
        value, large = _values(cells[_VALUE])
        cells[_VALUE] = value
        arrays = [pa.array(of, field.type) for of, field in zip([*cells, large], known_as, strict=True)]
        blocks.append(pa.record_batch(arrays, schema=known_as))
    table: pyarrow.Table = pa.Table.from_batches(blocks, schema=known_as)
    return table


_FIELDS: Final = len(COLUMNS) - 1
"""Fields of a record that are columns: the first of them."""

_VALUE: Final = Record._fields.index("value")


def _values(values: list[Any]) -> tuple[Any, list[Any]]:
    """The cells of `value` and of `large_value`."""
    pa, _ = _arrow()
    try:
        return pa.array(values, pa.int64()), [None] * len(values)
    except OverflowError:  # some are beyond 64 bits
        large = [to_large(value) if type(value) is int else None for value in values]
        return [value if beyond is None else None for value, beyond in zip(values, large, strict=True)], large


def _machine() -> str:
    """The machine, as long as it is the same one: an update of its system does not make it another."""
    return f"{platform.node()}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}"


class Source:
    """What one recorder hands over: that of this process, or of another. Each has tickets of its own.

    Args:
        writer: Where its rows are written.
        subscriptions: What is known of each subscription, by its number. It may grow; what is there does not change.
    """

    def __init__(
        self, writer: TraceWriter, subscriptions: Sequence[SubscriptionMetadata] | Mapping[int, SubscriptionMetadata]
    ) -> None:
        self._writer = writer
        self._subscriptions = subscriptions  # it grows, and what is there does not change
        # What follows is owned by the lock of the writer:
        self.chunks: list[Chunk] = []  # as they came
        self.later: Any = None  # a table of rows that had not ended, or begun, at the ticket of the last file
        self.ticket: int | None = 0  # of all that began before, there is a row here; None: that is all there will be
        self.under_way: list[tuple[int, tuple[Any, ...]]] = []  # calls that had not returned at that ticket

    def write(self, chunk: Chunk) -> None:
        """Take a chunk, and no time: the caller is a publisher in mid-signal.

        Args:
            chunk: Rows of one thread.

        Thread:
            Any.
        """
        self._writer._take(self, chunk)

    def passed(self, ticket: int, under_way: Sequence[tuple[int, tuple[Any, ...]]]) -> None:
        """All that began up to this ticket has been written here, but for the calls under way. Waits for room.

        Args:
            ticket: A ticket of this source's recorder.
            under_way: The calls that had not returned: thread and row of each.
        """
        self._writer._pass(self, ticket, under_way)
        self._writer._make_room()

    def end(self) -> None:
        """All has been written here."""
        self._writer._pass(self, None, ())

    def _rows(self, table: Any) -> pyarrow.Table:
        return _table(self._writer.run, self._subscriptions, table)


class TraceWriter:
    """Writes what recorders hand over to the folder of a run, on a thread of its own.

    The folder is made at once, with what is known of the run at its beginning.

    Args:
        folder: Where folders of runs are; that of this run is `date=<day>/run=<run>` below it.
        run: The name of the run.
        metadata: What is known of the run, for its metadata. None: nothing.

    Raises:
        TraceError: The folder can't be made, or has a trace already.
        MissingDependencyError: There is no pyarrow.
    """

    def __init__(self, folder: Path | str, run: str, metadata: Mapping[str, Any] | None = None) -> None:
        _arrow()  # what is missing is said here, and not to a publisher in mid-signal
        _columns(())  # pyarrow imports what it converts with at the first conversion: not in the middle of a load
        now = datetime.now(UTC)
        self.path: Path = Path(folder) / f"date={now:%Y-%m-%d}" / f"run={run}"
        self.run = run
        self.rows: int = 0  # _lock; that were handed over
        self.waited: float = 0.0  # _lock; seconds that the threads which record waited for the files
        self._changed = primitives.Condition()
        self._lock = self._changed  # its lock
        self._sources: list[Source] = []  # _lock
        self._waiting = 0  # _lock; rows that are in no file
        self._failure: Exception | None = None  # _lock; the first: nothing is written after it
        self._wake = primitives.Event()  # set: there is something to do for the thread that writes
        self._over = primitives.Event()  # set: the run is
        self._writing = primitives.Lock()  # held while a file is written, with no other: files come one after another
        self._files: dict[str, int] = {}  # _writing; their rows, by name
        self._checksums: dict[str, str] = {}  # _writing; likewise
        self._open: str | None = None  # _writing; the file of calls under way
        self._made = 0  # _writing; files so far
        self._recorder: Recorder | None = None  # _writing; set once
        self._own: Source | None = None  # _writing; likewise, with it
        self._metadata = {  # _writing
            "run": run,
            "identity": {"host": platform.node(), "process": os.getpid(), "random": secrets.token_hex(8)},
            "schema": SCHEMA,
            "started": now.isoformat(timespec="seconds"),
            "python": platform.python_version(),
            "machine": _machine(),
            **(metadata or {}),
        }
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            taken = any(self.path.glob("*signals-*.parquet")) or metadata_of(self.path) is not None
        except OSError as error:
            raise TraceError(f"{self.path}: can't be made: {error.strerror}") from error
        if taken:
            raise TraceError(f"{self.path}: has a trace already, which is not written over")
        self._tell(0)
        # It ends with the writer.
        primitives.Thread(
            target=_written_in_time, args=(ref(self), self._wake, self._over), name="trace writer", daemon=True
        ).start()

    def recorder(self) -> Recorder:
        """The recorder of this process, which writes here.

        Returns:
            The same recorder each time.
        """
        with self._writing:
            if self._recorder is None:
                subscriptions: list[SubscriptionMetadata] = []
                self._own = self.source(subscriptions)
                self._recorder = Recorder(self.run, self._own.write, pace=self._make_room, subscriptions=subscriptions)
            return self._recorder

    def source(self, subscriptions: Sequence[SubscriptionMetadata] | Mapping[int, SubscriptionMetadata]) -> Source:
        """A source for what is recorded elsewhere, in another process.

        Args:
            subscriptions: What is known of each subscription in it, by its number. It may grow.

        Returns:
            A new source, whose rows are written here.
        """
        made = Source(self, subscriptions)
        with self._lock:
            self._sources.append(made)
        return made

    @property
    def failed(self) -> bool:
        """Whether something could not be written: `close` says what. Nothing has been since."""
        return self._failure is not None  # it is written once

    def flush(self) -> bool:
        """Write all that is known to have no gap; what can't be written is kept for `close`.

        Returns:
            False where a thread stayed in the middle of a row, so that nothing is known; it should be tried again.

        Thread:
            Any.
        """
        with self._writing:
            if self._recorder is not None and self._own is not None:
                seen = self._recorder.checkpoint()
                if seen is None:
                    return False
                self._pass(self._own, seen.ticket, seen.under_way)
            self._attempt(self._write_file)
        return True

    def close(self, metadata: Mapping[str, Any] | None = None) -> None:
        """Finish the last file, and write the metadata.

        Args:
            metadata: What is known of the run at its end, for its metadata. None: nothing more.

        Raises:
            TraceError: Something could not be written, now or before.
        """
        self._over.set()
        self._wake.set()
        with self._writing:
            if self._recorder is not None and self._own is not None:
                self._recorder.flush()
                self._own.end()
            self._attempt(self._write_file)
            with self._lock:
                failure = self._failure
                at_end = {
                    "finished": datetime.now(UTC).isoformat(timespec="seconds"),
                    "recorder_waited": round(self.waited, 3),
                    **(metadata or {}),
                }
            if failure is not None:
                raise _unwritten(self._name("_signals"), failure)
            self._metadata |= at_end
            self._tell(None, complete=True)
            try:
                (self.path / "_metadata.json").replace(self.path / "metadata.json")  # it is whole
            except OSError as error:
                raise _unwritten(self.path / "metadata.json", error) from error

    def _take(self, source: Source, chunk: Chunk) -> None:
        size = len(chunk.packed)
        with self._lock:
            source.chunks.append(chunk)
            self.rows += size
            self._waiting += size
            enough = self._waiting >= FILE_ROWS
        if enough:
            self._wake.set()

    def _pass(self, source: Source, ticket: int | None, under_way: Sequence[tuple[int, tuple[Any, ...]]]) -> None:
        with self._lock:
            source.ticket, source.under_way = ticket, list(under_way)

    def _make_room(self) -> None:
        """Wait while more is to be written than should be in memory: what records is slowed down, and drops nothing."""
        if self._waiting < 2 * FILE_ROWS:  # a stale number costs one more chunk
            return
        begin = primitives.monotonic()
        with self._changed:
            self._changed.wait_for(lambda: self._waiting < 2 * FILE_ROWS or self._failure is not None)
            self.waited += primitives.monotonic() - begin

    def _failed(self, error: Exception) -> None:
        with self._changed:
            self._failure = self._failure or error
            self._changed.notify_all()

    def _attempt(self, action: Callable[[], None]) -> None:
        if self._failure is None:
            try:
                action()
            except Exception as error:
                self._failed(error)

    def _write_file(self) -> None:
        """Under `_writing`: a file of what is known to have no gap, one of the calls under way, and the metadata."""
        pa, _ = _arrow()
        with self._lock:
            taken = [(item, item.chunks, item.later, item.ticket, item.under_way) for item in self._sources]
            for entry in self._sources:
                entry.chunks, entry.later = [], None
        ticket: int | None = None
        whole, under_way = [], []
        for source, chunks, before_it, upto, calls in taken:
            if not chunks and before_it is None and not calls:
                continue
            rows = _columns(chunks)
            if before_it is not None:
                rows = pa.concat_tables([before_it, rows])
            if upto is not None:
                rows, later = _split(rows, upto)
                if len(later):
                    with self._lock:
                        source.later = later  # its rows still wait
                under_way.append(source._rows(_cut_off(later, calls, upto)))
                ticket = upto
            whole.append(source._rows(rows))
        written = sum(item.num_rows for item in whole)
        before, opened = self._open, sum(item.num_rows for item in under_way)
        if written:
            self._file("signals", whole)
        self._open = self._file("open", under_way) if opened else None
        if written or opened or before is not None:
            self._made += 1
            if before is not None:
                del self._files[before], self._checksums[before]
            self._tell(ticket)
            if before is not None:
                (self.path / before).unlink(missing_ok=True)
        with self._changed:
            self._waiting -= written
            self._changed.notify_all()

    def _file(self, kind: str, tables: Sequence[Any]) -> str:
        """Write a file, sorted, its rows of one subscription close together."""
        pa, parquet = _arrow()
        together = pa.concat_tables(tables).unify_dictionaries()
        table = together.sort_by([("subscription", "ascending"), ("begin", "ascending")])
        names = table.schema.names
        draft, name = self._name(f"_{kind}"), self._name(kind)
        parquet.write_table(
            table,
            draft,
            row_group_size=GROUP_ROWS,
            compression="zstd",
            use_dictionary=REPEATED,
            column_encoding=RISING,
            write_statistics=PLANNED,
            store_schema=False,  # its columns are what `schema` says, and no dictionaries
            sorting_columns=[parquet.SortingColumn(names.index(item)) for item in ("subscription", "begin")],
            write_page_checksum=True,
        )
        self._checksums[name.name] = _checksum(draft)
        draft.replace(name)
        self._files[name.name] = table.num_rows
        pa.default_memory_pool().release_unused()  # what a file took is not needed until the next
        return name.name

    def _name(self, kind: str) -> Path:
        return self.path / f"{kind}-{self._made:05}.parquet"

    def _tell(self, ticket: int | None, complete: bool = False) -> None:
        """What the run is, and what it holds by now, in one rename."""
        held = {
            "records": sum(self._files.values()),
            "files": self._files,
            "checksums": self._checksums,
            "complete": complete,
        }
        cut_at = {"watermark": ticket} if ticket is not None else {}
        _write(self.path / "_metadata.json", {**self._metadata, **held, **cut_at})


def _written_in_time(writer: ref[TraceWriter], wake: primitives.Event, over: primitives.Event) -> None:
    """What a writer holds goes to its folder while the run goes on: when there is enough, or time has gone by."""
    while not over.is_set():
        wake.wait(FLUSH_SECONDS)
        wake.clear()
        there = writer()
        if there is None:
            return
        if not over.is_set() and not there.flush():
            wake.set()  # and again at once: it has waited already
        del there


def _unwritten(path: Path, failure: Exception) -> TraceError:
    why = getattr(failure, "strerror", None) or str(failure) or type(failure).__name__
    error = TraceError(f"{path}: can't be written: {why.splitlines()[0]}")
    error.__cause__ = failure
    return error


def _write(path: Path, metadata: Mapping[str, Any]) -> None:
    draft = path.with_name("_metadata.next")
    try:
        draft.write_text(json.dumps(metadata, indent=2, default=str) + "\n", encoding="utf-8")
        draft.replace(path)
    except OSError as error:
        raise _unwritten(path, error) from error


def _columns(chunks: Sequence[Chunk]) -> pyarrow.Table:
    """Rows as they were recorded, by columns; in any order."""
    pa, _ = _arrow()
    numbers, threads = array("q"), array("q")
    others: list[tuple[int, tuple[Any, ...]]] = []
    for chunk in chunks:
        packed_rows = [row for row in chunk.packed if type(row) is bytes]
        numbers.frombytes(b"".join(packed_rows))
        threads.extend(array("q", [chunk.thread]) * len(packed_rows))
        if len(packed_rows) < len(chunk.packed):
            others += [(chunk.thread, row) for row in chunk.packed if type(row) is tuple]
    packed = _of_packed(numbers, threads)
    table: pyarrow.Table = pa.concat_tables([packed, _of_tuples(others)]) if others else packed
    return table


def _of_packed(numbers: array[int], threads: array[int]) -> pyarrow.Table:
    pa, _ = _arrow()
    pc = _compute()

    def column(cells: array[int]) -> Any:
        return pa.Array.from_buffers(pa.int64(), len(cells), [None, pa.py_buffer(cells)])

    subscriptions, signals, arguments, begin, end, begin_ns, end_ns, depth = (
        column(numbers[at::PACKED]) for at in range(PACKED)
    )
    none = pa.scalar(None, pa.int64())
    columns = [
        subscriptions,
        column(threads),
        signals.cast(pa.int8()),
        pc.if_else(pc.equal(signals, REQUEST), arguments, none),
        *(begin, end, begin_ns, end_ns),
        pc.if_else(pc.equal(signals, ON_NEXT), arguments, none),
        pa.nulls(len(threads), pa.string()),
        depth.cast(pa.int32()),
        pa.repeat(pa.scalar(False), len(threads)),
        pa.nulls(len(threads), pa.string()),
    ]
    table: pyarrow.Table = pa.table(columns, schema=_recorded())
    return table


def _of_tuples(rows: Sequence[tuple[int, tuple[Any, ...]]]) -> pyarrow.Table:
    pa, _ = _arrow()
    kinds = _recorded()
    cells = [
        (row[0], thread, *row[1:7], fitting(row[7]), *row[8:], row[7] is NONE, to_large(row[7])) for thread, row in rows
    ]
    columns = [pa.array(of, field.type) for of, field in zip(zip(*cells, strict=True), kinds, strict=True)]
    table: pyarrow.Table = pa.table(columns, schema=kinds)
    return table


def _recorded() -> pyarrow.Schema:
    """The columns of rows as they were recorded."""
    pa, _ = _arrow()
    kinds = {"signal": pa.int8(), "error": pa.string(), "depth": pa.int32(), "none": pa.bool_(), LARGE: pa.string()}
    numbers = ["subscription", "thread", "signal", "n", "begin", "end", "begin_ns", "end_ns", "value"]
    names = [*numbers, "error", "depth", "none", LARGE]
    made: pyarrow.Schema = pa.schema([(name, kinds.get(name, pa.int64())) for name in names])
    return made


def _split(rows: Any, ticket: int) -> tuple[Any, Any]:
    """The rows that had begun and ended by that ticket, and the others."""
    pc = _compute()
    ended = pc.or_kleene(pc.is_null(rows["end"]), pc.less_equal(rows["end"], ticket))
    whole = pc.and_(pc.less_equal(rows["begin"], ticket), ended)
    return rows.filter(whole), rows.filter(pc.invert(whole))


def _cut_off(later: Any, under_way: Sequence[tuple[int, tuple[Any, ...]]], ticket: int) -> pyarrow.Table:
    """The calls that had begun by that ticket and not ended: those that have by now, and those that have not."""
    pa, _ = _arrow()
    pc = _compute()
    since = later.filter(pc.less_equal(later["begin"], ticket))
    known = set(since["begin"].to_pylist())
    missing = [Chunk(thread, [row]) for thread, row in under_way if row[3] not in known]
    calls = pa.concat_tables([since, _columns(missing)])
    ends = pc.subtract(pa.scalar(CUT, pa.int64()), calls["begin"])
    calls = calls.set_column(calls.schema.names.index("end"), "end", ends)
    calls = calls.set_column(calls.schema.names.index("end_ns"), "end_ns", pa.nulls(len(calls), pa.int64()))
    # What it raised, it raised later; what an on_error carries was there at its beginning.
    later_raised = pc.starts_with(pc.fill_null(calls["error"], ""), "raised ")
    errors = pc.if_else(later_raised, pa.scalar(None, pa.string()), calls["error"])
    table: pyarrow.Table = calls.set_column(calls.schema.names.index("error"), "error", errors)
    return table


def _table(
    run: str, known: Sequence[SubscriptionMetadata] | Mapping[int, SubscriptionMetadata], rows: Any
) -> pyarrow.Table:
    """Rows as they were recorded, with all that is known of them; texts as dictionaries, of which there are few."""
    pa, _ = _arrow()
    size = len(rows)
    # What is known of a subscription is looked up once, and repeated by Arrow: there are many rows of few.
    subscriptions = rows["subscription"].combine_chunks().dictionary_encode()
    metadata = [known[number] for number in subscriptions.dictionary.to_pylist()]

    def repeated(of_each: list[Any], kind: Any) -> Any:
        return pa.array(of_each, kind).take(subscriptions.indices)

    def texts(indices: Any, values: list[str]) -> Any:
        return pa.DictionaryArray.from_arrays(indices, pa.array(values, pa.string()))

    scenarios = {name: at for at, name in enumerate(dict.fromkeys(entry.scenario for entry in metadata))}
    columns = {
        **{name: rows[name] for name in rows.schema.names},
        "run": texts(pa.repeat(pa.scalar(0, pa.int32()), size), [run]),
        "scenario": texts(repeated([scenarios[entry.scenario] for entry in metadata], pa.int32()), list(scenarios)),
        "shared_callers": repeated([entry.shared_callers for entry in metadata], pa.bool_()),
        "ascending": repeated([entry.ascending for entry in metadata], pa.bool_()),
        "elements": repeated([entry.elements for entry in metadata], pa.int64()),
        "signal": texts(rows["signal"].combine_chunks().cast(pa.int32()), [signal.value for signal in SIGNALS]),
        "late_signals": repeated([entry.late_signals for entry in metadata], pa.int32()),
    }
    known_as = schema()
    made = {name: columns[name] for name in known_as.names}
    table: pyarrow.Table = pa.table(made).replace_schema_metadata(known_as.metadata)
    return table


def run_folders(folder: Path | str) -> list[Path]:
    """The folders of runs below `folder`, which may be one itself.

    Args:
        folder: A folder of a run, or one that has some directly below it or in `date=<day>/run=<run>`.

    Returns:
        The folders, in order.

    Raises:
        TraceError: There is no run.
    """
    folder = Path(folder)
    below = (folder, *sorted(folder.glob("*/")), *sorted(folder.glob("date=*/run=*/")))
    found = [path for path in below if any(path.glob("signals-*.parquet")) or _metadata_file(path) is not None]
    if not found:
        what = "is no folder" if not folder.is_dir() else "has no runs: no date=<day>/run=<run>/signals-*.parquet in it"
        raise TraceError(f"{folder}: {what}")
    return found


def _metadata_file(run: Path) -> Path | None:
    """The metadata of the run in that folder: of all of it, where there are such."""
    for name in ("metadata.json", "_metadata.json"):
        if (run / name).is_file():
            return run / name
    return None


def metadata_of(run: Path | str) -> dict[str, Any] | None:
    """What is known of the run in that folder.

    Args:
        run: The folder of the run.

    Returns:
        Its metadata; that of a run that was killed is not `complete`. None where there is none, or none that can be
        read.
    """
    for name in ("metadata.json", "_metadata.json"):
        try:
            metadata = json.loads((Path(run) / name).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):  # not there, cut off, or nested without end
            continue
        if isinstance(metadata, dict):
            return metadata
    return None


@dataclass(frozen=True)
class Held:
    """What a run says that it holds: that is judged, and nothing else."""

    folder: Path
    run: str
    """Its name."""
    identity: str
    """The same for two folders only where they hold the same run."""
    files: list[Path]
    rows: int | None
    """In all files; None where that is not known."""
    complete: bool | None
    """Whether it came to its end; None where it does not say."""
    watermark: int | None
    """A run that was cut off: all threads had passed this ticket, and the files hold what there was up to there. None
    for one that is complete, and where its records come from several processes, each cut off by itself."""
    checksums: Mapping[str, str] = field(default_factory=dict)
    """Of each file, by its name. Of older traces there are none."""


_FILE: Final = re.compile(r"(signals|open)-\d+\.parquet")


def holds(run: Path | str) -> Held:
    """What the run in that folder holds.

    A trace without metadata, from elsewhere, holds the files that there are. Files are counted, and not read: what is
    in them is compared with `rows` by `check_files`.

    Args:
        run: The folder of the run.

    Returns:
        What its metadata counts.

    Raises:
        TraceError: The metadata is wrong, or files are not there; in one line.
    """
    folder = Path(run)
    there = sorted(folder.glob("signals-*.parquet"))
    path = _metadata_file(folder)
    if path is None:
        return Held(folder, _name_within(there) or _name_of(folder), _footprint(there), there, None, None, None)
    try:
        metadata = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise TraceError(f"{path}: is no JSON ({next(iter(str(error).splitlines()), '')})") from error
    if not isinstance(metadata, dict):
        raise TraceError(f"{path}: is no metadata of a run: should be an object, not {type(metadata).__name__}")
    name = _of(path, metadata, "run", str) or _name_of(folder)
    version = _of(path, metadata, "schema", int)
    if version is not None and not 1 <= version <= SCHEMA:
        raise TraceError(
            f"{path}: has schema {version}, and this version reads 1 to {SCHEMA}: judge the run with the version of"
            " reactive_runtime that has recorded it, or a newer one"
        )
    complete = _of(path, metadata, "complete", bool)
    watermark = _of(path, metadata, "watermark", int)
    identity = _of(path, metadata, "identity", dict)
    files = _of(path, metadata, "files", dict)
    checksums = _of(path, metadata, "checksums", dict)
    named = json.dumps(identity, sort_keys=True) if identity else ""
    if files is None:  # an earlier version has written it
        if complete is False:
            what = "was cut off, and does not say up to where its threads had come: it can't be judged"
            raise TraceError(f"{folder}: {what}")
        rows = _of(path, metadata, "records", int)
        return Held(folder, name, named or _footprint(there), there, rows, complete, None)
    for file, rows in files.items():
        if not _FILE.fullmatch(file) or type(rows) is not int or rows < 0:
            raise TraceError(
                f"{path}: 'files' should be names of files, each with its rows, and has {file!r}: {rows!r}"
            )
        if checksums is not None and not isinstance(checksums.get(file), str):
            raise TraceError(f"{path}: 'checksums' should have a text of {file!r}")
        if not (folder / file).is_file():
            raise TraceError(f"{folder / file}: is not there, and the run says that it holds {rows:,} records")
    records, counted = _of(path, metadata, "records", int), sum(files.values())
    if records not in (None, counted):
        what = "a file was taken out or added"
        raise TraceError(f"{path}: 'records' is {records:,}, and 'files' count {counted:,}: {what}")
    surplus = [item.name for item in there if item.name not in files]
    # Of a run that was killed: the last file may be there, and not yet be counted.
    if surplus and (
        complete or len(surplus) > 1 or any(surplus[0] < item for item in files if item.startswith("signals"))
    ):
        raise TraceError(f"{folder / surplus[0]}: is not among the files that the run says it holds")
    there = [folder / item for item in sorted(files)]
    return Held(folder, name, named, there, counted, complete, watermark, checksums or {})


def _of(path: Path, metadata: Mapping[str, Any], name: str, kind: type) -> Any:
    value = metadata.get(name)
    if value is not None and type(value) is not kind:
        raise TraceError(f"{path}: {name!r} should be {_KINDS[kind]}, and is {str(value)[:80]!r}")
    return value


_KINDS: Final = {str: "a text", bool: "true or false", int: "a whole number", dict: "an object"}


def _name_of(folder: Path) -> str:
    return folder.name.removeprefix("run=")


def _name_within(files: Sequence[Path]) -> str | None:
    """The name that the records have, where the footers say one."""
    pa, parquet = _arrow()
    names: set[str] = set()
    for file in files:
        try:
            footer = parquet.read_metadata(file)
            at = footer.schema.names.index("run")
            for n in range(footer.num_row_groups):
                within = footer.row_group(n).column(at).statistics
                names |= {within.min, within.max}
        except (OSError, ValueError, AttributeError, pa.ArrowException):  # it is for others to say what is wrong
            return None
    return names.pop() if len(names) == 1 and all(isinstance(name, str) for name in names) else None


def _footprint(files: Iterable[Path]) -> str:
    """Of a trace that says nothing of itself: its footers, which have sizes and statistics of all there is."""
    digest = sha256()
    for file in files:
        with file.open("rb") as opened:
            opened.seek(0, os.SEEK_END)
            opened.seek(-min(opened.tell(), 1 << 16), os.SEEK_END)
            digest.update(file.name.encode() + opened.read())
    return digest.hexdigest()


def different_runs(folders: Iterable[Path], skipped: Callable[[TraceError], object]) -> list[Held]:
    """What the runs in these folders hold, each run once, however many of the folders are copies of it.

    Of copies, one that is whole is taken before one that is damaged or was cut off.

    Args:
        folders: The folders of the runs.
        skipped: Called for each run that can't be judged: its metadata is wrong, or another run has its name.

    Returns:
        What each run holds.
    """
    copies: dict[str, list[Held]] = {}
    for folder in dict.fromkeys(item.resolve() for item in folders):
        try:
            held = holds(folder)
        except TraceError as error:
            skipped(error)
        else:
            copies.setdefault(held.identity, []).append(held)
    names: dict[str, Held] = {}
    for held in [_best(of, skipped) for of in copies.values()]:
        other = names.setdefault(held.run, held)
        if other is not held:
            skipped(TraceError(f"{held.folder}: another run of that name is in {other.folder}: judge them one by one"))
    return list(names.values())


def _best(copies: list[Held], skipped: Callable[[TraceError], object]) -> Held:
    """The copy that holds most and is undamaged; where all are damaged, the one that says that it holds most."""
    most = sorted(copies, key=_claim, reverse=True)
    if len(most) == 1:
        return most[0]
    damaged: list[TraceError] = []
    for held in most:
        try:
            checked(held)
        except TraceError as error:
            damaged.append(error)
            continue
        for worse, why in zip(most, damaged, strict=False):
            if _claim(worse) > _claim(held):
                skipped(why)
        return held
    return most[0]


def _claim(held: Held) -> tuple[bool, int]:
    """How much a run says that it holds."""
    return held.complete or False, held.rows or 0


def check_files(folder: Path | str) -> list[Path]:
    """The trace files that the runs below `folder` hold.

    Args:
        folder: As `run_folders` takes it.

    Returns:
        The files of all runs.

    Raises:
        TraceError: Names the first run that does not hold what its metadata says, or the first file that can't be read
            or has another schema.
    """
    return [file for run in run_folders(folder) for file in checked(holds(run))]


def checked(held: Held) -> list[Path]:
    """The files of that run, as they were written: their checksums have been compared, and their footers read.

    Args:
        held: What the run holds, as `holds` says.

    Returns:
        Its files.

    Raises:
        TraceError: Names the first file that can't be read, has changed, or has another schema; or the run, where it
            has a record too few or too many.
    """
    rows = 0
    for file in held.files:
        _same(file, held.checksums.get(file.name))  # first: what has changed may be anything
        rows += _check(file)
    if held.rows is not None and rows != held.rows:
        what = f"its files have {rows:,} records, and it says that it holds {held.rows:,}: it can't be judged"
        raise TraceError(f"{held.folder}: {what}")
    return held.files


def read_through(held: Held) -> None:
    """Read all that a run holds, and keep nothing.

    Args:
        held: What the run holds, as `holds` says.

    Raises:
        TraceError: Names a file whose bytes have changed.
    """
    pa, parquet = _arrow()
    for file in held.files:
        try:
            for _ in parquet.ParquetFile(file, page_checksum_verification=True).iter_batches():
                pass
        except (OSError, pa.ArrowException) as error:
            raise _unread(file, error) from error


def _same(file: Path, checksum: str | None) -> None:
    """TraceError where the file has not that checksum, if one is known."""
    if checksum is None:
        return
    if not _is_whole(file):
        raise TraceError(f"{file}: is no whole Parquet file (it has no mark at its end)")
    try:
        found = _checksum(file)
    except OSError as error:
        raise _unread(file, error) from error
    if found != checksum:
        raise TraceError(f"{file}: has changed since it was written: its checksum is another")


def _checksum(file: Path) -> str:
    with file.open("rb") as opened:
        return file_digest(opened, "sha256").hexdigest()


def arrived(run: Path) -> bool:
    """Whether all files are there, in their size, that the run says it holds: a run may be copied, last things first.

    Args:
        run: The folder of the run.

    Returns:
        True as well where it says nothing, or something that can't be so, since waiting would not help.
    """
    metadata = metadata_of(run)
    files = (metadata or {}).get("files")
    if metadata is not None and files is None and metadata.get("records"):
        return any(run.glob("signals-*.parquet"))
    if not isinstance(files, dict):
        return True
    return all(not _FILE.fullmatch(name) or _is_whole(run / name) for name in files)


def _is_whole(file: Path) -> bool:
    """Whether it has its end: Parquet files have a mark there."""
    try:
        with file.open("rb") as opened:
            opened.seek(-4, os.SEEK_END)
            return opened.read() == b"PAR1"
    except OSError:
        return False


def _check(file: Path) -> int:
    """How many records it has."""
    pa, parquet = _arrow()
    try:
        footer = parquet.read_metadata(file)
        found = footer.schema.to_arrow_schema()
    except (OSError, pa.ArrowException) as error:
        raise _unread(file, error) from error
    version = (found.metadata or {}).get(_VERSION, b"1").decode(errors="replace")
    if not version.isdecimal() or int(version) > SCHEMA:
        raise TraceError(f"{file}: has schema {version}, and this version reads up to {SCHEMA}: a newer one is needed")
    kinds = {column.name: column.type for column in found}
    for column in schema():
        if column.name not in kinds and int(version) < _SINCE.get(column.name, 1):
            continue
        if kinds.get(column.name) != column.type:
            has = kinds.get(column.name, "none")
            raise TraceError(f"{file}: is no trace: column {column.name!r} should be {column.type}, and is {has}")
    rows: int = footer.num_rows
    return rows


def read_trace(folder: Path | str) -> list[Record]:
    """All records below `folder`, in order of run and `begin`; for traces that fit into memory.

    Args:
        folder: As `run_folders` takes it.

    Returns:
        The records.

    Raises:
        TraceError: Names a file that can't be read, or is no trace.
    """
    records = [record for file in check_files(folder) for record in _records(file)]
    return sorted(records, key=lambda record: (record.run, record.begin))


def _records(file: Path) -> list[Record]:
    pa, parquet = _arrow()
    try:
        opened = parquet.ParquetFile(file, page_checksum_verification=True)
        table = opened.read(columns=list(COLUMNS))  # those that there are
    except (OSError, pa.ArrowException) as error:
        raise _unread(file, error) from error
    try:
        return records_of(table)
    except TraceError as error:
        raise TraceError(f"{file}: {error}") from error


def records_of(table: pyarrow.Table) -> list[Record]:
    """The inverse of `table_of`.

    Args:
        table: A table with the columns of a trace; those that older traces lack may be missing.

    Returns:
        The records, whose order is kept.

    Raises:
        TraceError: `large_value` has what is no int.
    """
    return [_record(row) for row in table.to_pylist()]


def _record(row: dict[str, Any]) -> Record:
    fields = {**dict.fromkeys(_SINCE), **row}
    fields["none"] = bool(fields["none"])
    large = fields.pop(LARGE)
    if large is not None and fields["value"] is None:
        fields["value"] = from_large(large)
    return Record(**fields)


def _unread(file: Path, error: Exception) -> TraceError:
    return TraceError(f"{file}: is no whole Parquet file ({next(iter(str(error).splitlines()), '')})")
