"""Writes what recorders hand over to the folder of a run, while the run goes on."""

from __future__ import annotations

import json
import os
import platform
import secrets
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from weakref import ref

from reactive_runtime._core.runtime import primitives
from reactive_runtime.errors import TraceError
from reactive_runtime.testing._buffers import Chunk
from reactive_runtime.testing._recorder import Recorder
from reactive_runtime.testing._records import SubscriptionMetadata
from reactive_runtime.testing._rule_checks import RULES_VERSION
from reactive_runtime.testing._traces.trace_columns import (
    SCHEMA,
    arrow,
    columns_of,
    cut_off,
    split_at,
    with_metadata,
)
from reactive_runtime.testing._traces.trace_files import checksum_of, metadata_of

if TYPE_CHECKING:
    import pyarrow

__all__ = ["Source", "TraceWriter"]

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


def _machine() -> str:
    """The machine, as long as it is the same one: an update of its system does not make it another."""
    return f"{platform.node()}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}"


class Source:
    """The rows of one recorder, of this process or another. Each recorder has tickets of its own.

    Args:
        writer: Where its rows are written.
        subscriptions: What is known of each subscription, by its number. It may grow; what is there does not change.
    """

    def __init__(
        self, writer: TraceWriter, subscriptions: Sequence[SubscriptionMetadata] | Mapping[int, SubscriptionMetadata]
    ) -> None:
        self._writer = writer
        self._subscriptions = subscriptions  # it grows, and what is there does not change
        # The lock of the writer owns these fields:
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
        return with_metadata(self._writer.run, self._subscriptions, table)


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
        arrow()  # what is missing is said here, and not to a publisher in mid-signal
        columns_of(())  # pyarrow imports what it converts with at the first conversion: not in the middle of a load
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
            "rules": RULES_VERSION,
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
        pa, _ = arrow()
        with self._lock:
            taken = [(item, item.chunks, item.later, item.ticket, item.under_way) for item in self._sources]
            for entry in self._sources:
                entry.chunks, entry.later = [], None
        ticket: int | None = None
        whole, under_way = [], []
        for source, chunks, before_it, upto, calls in taken:
            if not chunks and before_it is None and not calls:
                continue
            rows = columns_of(chunks)
            if before_it is not None:
                rows = pa.concat_tables([before_it, rows])
            if upto is not None:
                rows, later = split_at(rows, upto)
                if len(later):
                    with self._lock:
                        source.later = later  # its rows still wait
                under_way.append(source._rows(cut_off(later, calls, upto)))
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
        pa, parquet = arrow()
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
        self._checksums[name.name] = checksum_of(draft)
        draft.replace(name)
        self._files[name.name] = table.num_rows
        pa.default_memory_pool().release_unused()  # what a file took is not needed until the next
        return name.name

    def _name(self, kind: str) -> Path:
        return self.path / f"{kind}-{self._made:05}.parquet"

    def _tell(self, ticket: int | None, complete: bool = False) -> None:
        """Replace the metadata in one rename: what the run is, and what it holds by now."""
        held = {
            "records": sum(self._files.values()),
            "files": self._files,
            "checksums": self._checksums,
            "complete": complete,
        }
        cut_at = {"watermark": ticket} if ticket is not None else {}
        _write(self.path / "_metadata.json", {**self._metadata, **held, **cut_at})


def _written_in_time(writer: ref[TraceWriter], wake: primitives.Event, over: primitives.Event) -> None:
    """Flush a writer while the run goes on: when it has enough rows, or time has gone by."""
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
