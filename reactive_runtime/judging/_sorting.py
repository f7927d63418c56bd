"""The records of trace files in order of subscription and begin, a table at a time; memory holds a bounded part.

files ──▶ held, sorted ──▶ in order, where all fit
           │ too many
           ▼
     sorted stretches on disk ──▶ merged, a row group of each at a time
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

from reactive_runtime.errors import TraceError
from reactive_runtime.judging._rows import Array
from reactive_runtime.testing._traces.trace_writer import GROUP_ROWS, PLANNED, REPEATED, RISING
from reactive_runtime.testing.trace import schema

__all__ = ["AT_ONCE", "HELD", "Sorting", "Written", "known_as", "unwritten"]

HELD: Final = 500_000
"""Records that memory holds before they are sorted and put away, some 150 bytes each, and twice that meanwhile."""

_HELD_BYTES: Final = 256 << 20
"""Likewise in bytes: long texts of errors fill memory sooner."""

_BLOCK: Final = 20_000
"""Records of each stretch that are held while stretches are merged."""

_WRITTEN_AT_ONCE: Final = 1 << 20
"""Bytes."""

_SMALL: Final = 256
"""Tables that are put together."""

AT_ONCE: Final = 48
"""Stretches that are merged at once."""

_WORDS: Final = ["run", "scenario", "signal"]
"""Columns that are read, kept and written as the dictionaries that they are."""

_ORDER: Final = ("subscription", "begin")

Key = tuple[int, int]
"""Subscription and begin."""


def known_as() -> pa.Schema:
    """The columns of a trace, some of them as dictionaries."""
    fields = [
        field.with_type(pa.dictionary(pa.int32(), pa.string())) if field.name in _WORDS else field for field in schema()
    ]
    made: pa.Schema = pa.schema(fields).with_metadata(schema().metadata)
    return made


def unwritten(file: Path, error: OSError) -> TraceError:
    """The error that names a file which can't be written."""
    made = TraceError(f"{file}: can't be written: {error.strerror or error}")
    made.__cause__ = error
    return made


class _Sink:
    """A file that Arrow writes to. The system has everything when `finish` returns."""

    def __init__(self, file: Path) -> None:
        self._file = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        self._held = bytearray()  # not written yet
        self.size = 0
        self.closed = False

    def write(self, data: Any) -> int:
        if not self.closed:  # Arrow writes a footer when a writer is dropped: there is no file then
            self._held += data
            if len(self._held) >= _WRITTEN_AT_ONCE:
                self._write()
        self.size += len(data)
        return len(data)

    def _write(self) -> None:
        held, self._held = memoryview(self._held), bytearray()
        while held:
            held = held[os.write(self._file, held) :]

    def tell(self) -> int:
        return self.size

    def flush(self) -> None:
        """`finish` does."""

    def finish(self, lasting: bool) -> None:
        """Write the rest; and wait until the disk has all of it, if that is to last."""
        self._write()
        if lasting:
            os.fsync(self._file)

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            os.close(self._file)


class Written:
    """A trace file that is written in the layout of `TraceWriter`, a row group at a time. A context manager.

    Args:
        file: The path of the file.
        rows_at_once: Records of each row group.
        lasting: Whether `close` waits until the disk has it.
    """

    def __init__(self, file: Path, rows_at_once: int = GROUP_ROWS, *, lasting: bool = True) -> None:
        self.file = file
        self._lasting = lasting
        self.rows: int = 0
        self._rows_at_once = rows_at_once
        self._held: list[pa.Table] = []
        self._size = 0  # records in `_held`
        self.first: Key | None = None
        self.last: Key | None = None
        columns = known_as()
        try:
            self._sink = _Sink(file)
        except OSError as error:
            raise unwritten(file, error) from error
        try:
            layout: dict[str, Any] = {"use_dictionary": REPEATED, "column_encoding": RISING}
            sink: Any = self._sink
            self._writer = parquet.ParquetWriter(
                sink,
                columns,
                **layout,
                compression="zstd",
                write_statistics=PLANNED,
                store_schema=False,  # its columns are what `schema` says, and no dictionaries
                sorting_columns=[parquet.SortingColumn(columns.names.index(item)) for item in _ORDER],
                write_page_checksum=True,
            )
        except OSError as error:
            self._sink.close()
            raise unwritten(file, error) from error

    @property
    def size(self) -> int:
        """Bytes so far."""
        return self._sink.size

    def add(self, table: pa.Table) -> None:
        """Add records, which come after those that were added before; TraceError names the file."""
        if not len(table):
            return
        if self.first is None:
            self.first = _key(table, 0)
        self.last = _key(table, len(table) - 1)
        self.rows += len(table)
        self._held.append(table)
        self._size += len(table)
        if self._size >= self._rows_at_once:
            self._write(self._size // self._rows_at_once * self._rows_at_once)

    def _write(self, rows: int) -> None:
        held = pa.concat_tables(self._held)
        self._held, self._size = [held.slice(rows)] if rows < len(held) else [], len(held) - rows
        try:
            self._writer.write_table(held.slice(0, rows).unify_dictionaries(), self._rows_at_once)
        except OSError as error:
            raise unwritten(self.file, error) from error

    def close(self) -> None:
        """Write the rest and the footer; once more does nothing."""
        if self._sink.closed:
            return
        try:
            if self._size:
                self._write(self._size)
            self._writer.close()
            self._sink.finish(self._lasting)
        except OSError as error:
            raise unwritten(self.file, error) from error
        finally:
            self._leave()

    def _leave(self) -> None:
        self._sink.close()
        with contextlib.suppress(Exception):  # it has raised before
            self._writer.close()

    def __enter__(self) -> Written:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if kind is None:
            self.close()
        else:
            self._leave()  # without a footer: it is no whole file


def _key(table: pa.Table, at: int) -> Key:
    return table["subscription"][at].as_py(), table["begin"][at].as_py()


# -- reading --------------------------------------------------------------------------------------------------


def _tables(file: Path, rows: int = GROUP_ROWS) -> Iterator[pa.Table]:
    """The records of a trace file in its order, so many at a time; TraceError names it."""
    columns = known_as()
    try:
        with parquet.ParquetFile(file, read_dictionary=_WORDS, page_checksum_verification=True) as opened:
            more = [name for name in opened.schema_arrow.names if name not in columns.names]
            if more:
                raise TraceError(f"{file}: has a column {more[0]!r}, which a trace has not: it would be lost")
            for batch in opened.iter_batches(rows, use_threads=False):
                if batch.num_rows:
                    yield _fitted(file, pa.table(batch), columns)
    except (OSError, pa.ArrowException) as error:
        raise TraceError(f"{file}: is no whole Parquet file ({str(error).splitlines()[0]})") from error


def _fitted(file: Path, table: pa.Table, columns: pa.Schema) -> pa.Table:
    """The table with all columns of a trace: none of those that its version lacks has a value."""
    arrays = []
    for field in columns:
        if field.name not in table.column_names:
            nothing = pa.scalar(None, field.type) if field.nullable else pa.scalar(False, field.type)
            arrays.append(pa.chunked_array([pa.repeat(nothing, len(table))]))
            continue
        column = table.column(field.name)
        if column.null_count and not field.nullable:
            raise TraceError(f"{file}: column {field.name!r} has nulls; docs/traces.md says which may have some")
        arrays.append(column)
    return pa.table(arrays, schema=columns)


def _in_order(tables: Sequence[pa.Table]) -> pa.Table:
    """The records of all tables, sorted."""
    together = pa.concat_tables(tables)
    subscription, begin = (together[name].to_numpy() for name in _ORDER)
    later = subscription[1:] > subscription[:-1]
    if (later | ((subscription[1:] == subscription[:-1]) & (begin[1:] >= begin[:-1]))).all():
        return together
    return together.unify_dictionaries().take(np.lexsort((begin, subscription)))


class _Held:
    """Records in memory. Small tables are put together: a table takes some kilobytes however few its rows are."""

    def __init__(self) -> None:
        self._tables: list[pa.Table] = []
        self._small: list[pa.Table] = []
        self.rows: int = 0
        self.bytes: int = 0

    def add(self, table: pa.Table) -> None:
        self.rows += len(table)
        self.bytes += table.nbytes
        self._small.append(table)
        if len(self._small) == _SMALL:
            self._tables.append(pa.concat_tables(self._small).unify_dictionaries().combine_chunks())
            self._small = []

    def taken(self) -> pa.Table:
        """All of them, sorted; nothing is held then."""
        tables = [*self._tables, *self._small]
        self._tables, self._small, self.rows, self.bytes = [], [], 0, 0
        return _in_order(tables)


# -- merging --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Stretch:
    """Sorted records in a file."""

    file: Path
    first: Key
    last: Key


class _Head:
    """The next records of a stretch."""

    def __init__(self, stretch: _Stretch) -> None:
        self._tables = _tables(stretch.file, _BLOCK)
        self._table = pa.table({})
        self._subscription: Array = np.zeros(0, np.int64)
        self._begin: Array = np.zeros(0, np.int64)
        self._at = 0
        self.over = False
        self._next()

    def _next(self) -> None:
        table = next(self._tables, None)
        if table is None:
            self.over = True
            return
        self._table, self._at = table, 0
        self._subscription, self._begin = (table[name].to_numpy() for name in _ORDER)

    @property
    def last(self) -> Key:
        """The key of the last record that is in memory."""
        return int(self._subscription[-1]), int(self._begin[-1])

    def upto(self, key: Key) -> pa.Table:
        """Take the records in memory up to that key."""
        low, high = (int(np.searchsorted(self._subscription, key[0], side)) for side in ("left", "right"))
        end = max(low + int(np.searchsorted(self._begin[low:high], key[1], "right")), self._at)
        taken = self._table.slice(self._at, end - self._at)
        self._at = end
        if end == len(self._table):
            self._next()
        return taken


def _merged(stretches: Sequence[_Stretch]) -> Iterator[pa.Table]:
    """The records of all stretches in order. A stretch is opened when its first record may be the next."""
    waiting = sorted(stretches, key=lambda stretch: stretch.first, reverse=True)
    heads: list[_Head] = []
    while heads or waiting:
        if not heads:
            heads.append(_Head(waiting.pop()))
        key = min(head.last for head in heads)
        while waiting and waiting[-1].first <= key:
            heads.append(_Head(waiting.pop()))
            key = min(key, heads[-1].last)
        taken = [table for head in heads if len(table := head.upto(key))]
        yield _in_order(taken)
        heads = [head for head in heads if not head.over]


def _most_at_once(stretches: Iterable[_Stretch]) -> int:
    """How many stretches are open at once, at most, where they are merged."""
    edges = sorted(edge for item in stretches for edge in ((item.first, 0), (item.last, 1)))  # opened before closed
    most = now = 0
    for _, is_end in edges:
        now += -1 if is_end else 1
        most = max(most, now)
    return most


class Sorting:
    """Sorts the records of files, by way of a folder.

    Args:
        folder: The folder of the files that hold stretches.
        name: The names of their files begin with it.
        held: How many records memory holds before they are put away.
        at_once: How many stretches are merged at once.
    """

    def __init__(self, folder: Path, name: str, held: int = HELD, at_once: int = AT_ONCE) -> None:
        self._folder = folder
        self._name = name
        self._held = held
        self._at_once = at_once
        self._made = 0

    def sorted(self, files: Iterable[Path]) -> Iterator[pa.Table]:
        """The records of the files in order of subscription and begin.

        Args:
            files: Trace files of one run, each in any order.

        Yields:
            Tables of the columns of a trace.

        Raises:
            TraceError: Names a file that can't be read, or written.
        """
        stretches: list[_Stretch] = []
        held = _Held()
        for file in files:
            for table in _tables(file):
                if held.rows and (held.rows + len(table) > self._held or held.bytes + table.nbytes > _HELD_BYTES):
                    stretches.append(self._put_away([held.taken()]))
                held.add(table)
        if not stretches:
            if held.rows:
                yield held.taken()
            return
        stretches.append(self._put_away([held.taken()]))
        while _most_at_once(stretches) > self._at_once:
            stretches.sort(key=lambda stretch: stretch.first)
            parts = [stretches[at : at + self._at_once] for at in range(0, len(stretches), self._at_once)]
            stretches = [self._put_together(part) for part in parts]
        yield from _merged(stretches)
        self._remove(stretches)

    def _put_away(self, tables: Iterable[pa.Table]) -> _Stretch:
        with Written(self._folder / f"{self._name}{self._made:05}.parquet", _BLOCK, lasting=False) as file:
            self._made += 1
            for table in tables:
                file.add(table)
        assert file.first is not None
        assert file.last is not None
        return _Stretch(file.file, file.first, file.last)

    def _put_together(self, stretches: Sequence[_Stretch]) -> _Stretch:
        made = self._put_away(_merged(stretches))
        self._remove(stretches)
        return made

    def _remove(self, stretches: Iterable[_Stretch]) -> None:
        for stretch in stretches:
            try:
                os.unlink(stretch.file)
            except OSError as error:
                raise unwritten(stretch.file, error) from error
