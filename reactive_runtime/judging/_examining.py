"""Whether files are as they were written, and what their footers say: cheap checks first, each file on its own.

A file is opened once. The mark at its end, its footer and its columns are looked at; of a small file, which is read as
a whole for that, the checksum as well. The bytes of larger files are read only when everything else is right.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as parquet

from reactive_runtime.errors import TraceError
from reactive_runtime.judging._files import groups_of, places_of
from reactive_runtime.judging._rows import unfit
from reactive_runtime.judging._stores import below, opened, pages
from reactive_runtime.testing._traces.trace_files import check_footer, contents

__all__ = ["EXAMINED", "Examined", "changed", "check_run", "examined"]

GROUP, HELD, WRONG, FOREIGN = range(4)
"""Kinds of rows of EXAMINED."""

_COLUMNS: Final[dict[str, pa.DataType]] = {
    "kind": pa.int8(),
    "folder": pa.string(),
    "file": pa.string(),
    "number": pa.int32(),
    "rows": pa.int64(),
    "run": pa.string(),
    "low": pa.int64(),
    "high": pa.int64(),
    "size": pa.int64(),
    "checksum": pa.string(),
    "text": pa.string(),
    "least": pa.int64(),
}

EXAMINED: Final = pa.schema(_COLUMNS)
"""A row group with its statistics; a file with its bytes, and the checksum if it is still to be compared; why a file
can't be judged; why only Spark may read it."""

_WHOLE: Final = 256 << 10
"""Bytes of a file that is read as a whole, however little of it is needed."""

_PIECE: Final = 4 << 20

_MARK: Final = b"PAR1"


class Examined(NamedTuple):
    """A row of EXAMINED."""

    kind: int
    folder: str
    file: str
    number: int | None = None
    rows: int | None = None
    run: str | None = None
    low: int | None = None
    high: int | None = None
    size: int | None = None
    checksum: str | None = None
    text: str | None = None
    least: int | None = None
    """No record of a row group begins before this ticket."""


class _Known:
    """The last footer whose columns were right: those of the next file are most likely the same."""

    def __init__(self) -> None:
        self.last: Any = None
        self.columns: dict[str, int] | None = None

    def check(self, path: str, footer: Any) -> None:
        if self.last is None or self.last.metadata != footer.metadata or not self.last.schema.equals(footer.schema):
            check_footer(path, footer)
            self.last, self.columns = footer, places_of(footer)


def examined(folder: str, file: str, checksum: str | None, is_run: bool, known: _Known | None = None) -> list[Examined]:
    """The row groups of a file, and the file; or the one row that says what is wrong with it.

    Args:
        folder: The folder that it is in.
        file: Its name.
        checksum: As it was written; None if that is not known.
        is_run: Whether its columns must be those of a run. Else columns that only Spark can take make it FOREIGN.
        known: Passed from one file to the next.
    """
    path = below(folder, file) if folder else file
    try:
        return _examined(path, folder, file, checksum, is_run, known or _Known())
    except TraceError as error:
        return [Examined(WRONG, folder, file, text=str(error))]
    except (OSError, pa.ArrowException) as error:
        what = next(iter(str(error).splitlines()), "")
        return [Examined(WRONG, folder, file, text=f"{path}: is no whole Parquet file ({what})")]


def _examined(path: str, folder: str, file: str, checksum: str | None, is_run: bool, known: _Known) -> list[Examined]:
    with opened(path) as data:
        data.seek(0, 2)
        size = data.tell()
        data.seek(max(size - len(_MARK), 0) if size > _WHOLE else 0)
        end = data.read()
        if not end.endswith(_MARK):
            raise TraceError(f"{path}: is no whole Parquet file (it has no mark at its end)")
        if size <= _WHOLE:
            if checksum is not None and sha256(end).hexdigest() != checksum:
                raise changed_since(path)
            checksum = None
            footer = parquet.read_metadata(pa.BufferReader(end))
        else:
            data.seek(0)
            footer = parquet.read_metadata(data)
    if is_run:
        known.check(path, footer)
    else:
        why = unfit(footer.schema.to_arrow_schema())
        if why is not None:
            return [Examined(FOREIGN, folder, file, text=f"{path}: {why}")]
    groups = [
        Examined(GROUP, folder, file, group.number, group.rows, group.run, group.low, group.high, least=group.least)
        for group in groups_of(path, footer, known.columns if is_run else None)
    ]
    return [*groups, Examined(HELD, folder, file, rows=footer.num_rows, size=size, checksum=checksum)]


def known_footers() -> _Known:
    """To be passed to `examined` from one file to the next."""
    return _Known()


def changed_since(path: str) -> TraceError:
    return TraceError(f"{path}: has changed since it was written: its checksum is another")


def changed(folder: str, file: str, checksum: str) -> list[Examined]:
    """Whether the bytes of a large file are those that were written: a row that says so where they are not."""
    path = below(folder, file)
    digest = sha256()
    try:
        with opened(path) as data:
            while piece := data.read(_PIECE):
                digest.update(piece)
    except OSError as error:
        return [Examined(WRONG, folder, file, text=f"{path}: can't be read: {error.strerror or error}")]
    return [] if digest.hexdigest() == checksum else [Examined(WRONG, folder, file, text=str(changed_since(path)))]


def unread(folder: str, file: str) -> str | None:
    """Why a file can't be read to its end; None where it can."""
    path = below(folder, file)
    try:
        with opened(path) as data, parquet.ParquetFile(data, page_checksum_verification=True) as whole:
            for _ in whole.iter_batches():
                pass
    except (OSError, pa.ArrowException) as error:
        return f"{path}: is no whole Parquet file ({next(iter(str(error).splitlines()), '')})"
    return None


def check_run(folder: str) -> None:
    """TraceError names the first thing that is wrong with the run in that folder, as `checked` does."""
    names = [entry.name for page in pages(folder) for entry in page if entry.is_file]
    held = contents(folder, names, lambda name: opened(below(folder, name)))
    rows = 0
    known = _Known()
    for file in held.files:
        for row in _with_bytes(folder, file, held.checksums.get(file), known):
            if row.kind == WRONG:
                raise TraceError(row.text)
            rows += (row.rows or 0) if row.kind == HELD else 0
    if held.rows is not None and rows != held.rows:
        raise TraceError(another_count(folder, rows, held.rows))


def _with_bytes(folder: str, file: str, checksum: str | None, known: _Known) -> Iterator[Examined]:
    for row in examined(folder, file, checksum, True, known):
        yield row
        if row.kind == HELD and row.checksum is not None:
            yield from changed(folder, file, row.checksum)


def another_count(folder: str, rows: int, said: int) -> str:
    """The line on a run that has a record too few or too many."""
    return f"{folder}: its files have {rows:,} records, and it says that it holds {said:,}: it can't be judged"
