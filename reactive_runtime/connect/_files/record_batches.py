"""Arrow and Parquet: record batches out of a file, and into one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from reactive_runtime._core.sources.naming import kind_of
from reactive_runtime._support.shown import shown
from reactive_runtime.connect._files.place import Place
from reactive_runtime.errors import MissingDependencyError

try:
    import pyarrow as pa
    from pyarrow import parquet as pq
except ImportError as error:
    raise MissingDependencyError("Arrow and Parquet need pyarrow: pip install 'reactive-runtime[files]'") from error

from reactive_runtime.connect._files.lossy_columns import Loses, loses

__all__ = ["BatchWriter", "arrow_batches", "arrow_writer", "parquet_batches", "parquet_writer", "rows_of"]

SLICE: Final = 1_024
"""Rows that are made of a batch at once."""

FILE_MAGIC: Final = b"ARROW1"


def _each(place: Place, batches: Iterator[Any]) -> Iterator[Any]:
    number = 0
    while True:
        with place.named(f"record batch {number} can't be read"):
            batch = next(batches, None)
        if batch is None:
            return
        yield batch
        number += 1


def arrow_batches(place: Place) -> Iterator[Any]:
    """The record batches of an Arrow file (also Feather), or stream."""
    with place.reading() as file:
        with place.named("it is no Arrow file or stream"):
            is_file = file.read(len(FILE_MAGIC)) == FILE_MAGIC
            file.seek(0)
            reader: Any = pa.ipc.open_file(file) if is_file else pa.ipc.open_stream(file)
            batches = map(reader.get_batch, range(reader.num_record_batches)) if is_file else iter(reader)
        yield from _each(place, batches)


def parquet_batches(place: Place, columns: list[str] | None, batch: int) -> Iterator[Any]:
    """The rows of a Parquet file, so many at a time."""
    with place.reading() as file:
        with place.named("it is no Parquet file"):
            opened: Any = pq.ParquetFile(file)
            if columns is not None and (unknown := set(columns) - set(opened.schema_arrow.names)):
                place.fail(f"it has no column {', '.join(sorted(unknown))}, but {', '.join(opened.schema_arrow.names)}")
            batches = opened.iter_batches(batch_size=batch, columns=columns)
        yield from _each(place, batches)


def rows_of(place: Place, batches: Iterator[Any]) -> Iterator[dict[str, Any]]:
    """Each row, as a mapping by the names of the columns."""
    for batch in batches:
        names = batch.schema.names
        if len(set(names)) < len(names):
            place.fail(f"it names a column twice, {shown(names)}; read record batches instead of rows")
        for at in range(0, batch.num_rows, SLICE):
            with place.named("a record batch has a value that Python has not; read record batches instead of rows"):
                rows = batch.slice(at, SLICE).to_pylist()
            yield from rows


class BatchWriter:
    """Writes record batches, tables and mappings; so many mappings become a batch.

    Args:
        make: Makes the writer, when the schema is known.
        schema: The schema; None: that of the first batch.
        batch: Rows.
    """

    def __init__(self, make: Callable[[Any], Any], schema: Any, batch: int) -> None:
        self._make = make
        self._schema = schema
        self._batch = batch
        self._lossy: Mapping[str, Loses] | None = None  # the thread that writes; by columns; None: not yet known
        self._writer: Any = None if schema is None else make(schema)
        self._rows: list[Mapping[str, Any]] = []  # the thread that writes
        self.written = 0  # likewise

    def write(self, element: Any) -> None:
        if isinstance(element, Mapping):
            self._rows.append(element)
            self.written += 1
            if len(self._rows) == self._batch:
                self._flush()
        elif isinstance(element, pa.RecordBatch | pa.Table):
            self._flush()
            self._put(element)
            self.written += element.num_rows
        else:
            raise TypeError(f"each element must be a mapping, a RecordBatch or a Table, not {kind_of(element)}")

    def _flush(self) -> None:
        rows, self._rows = self._rows, []
        if not rows:
            return
        known = list(rows[0]) if self._schema is None else self._schema.names
        for at, row in enumerate(rows, self.written - len(rows)):
            if unknown := [name for name in row if name not in known]:
                raise ValueError(f"row {at} has columns that the file has not: {unknown}; give a schema with them")
        self._refuse_losses(rows)
        try:
            batch = pa.RecordBatch.from_pylist(rows, schema=self._schema)
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise ValueError(f"rows {self.written - len(rows)} to {self.written - 1} are no batch: {error}") from error
        if batch.num_rows < len(rows):
            raise ValueError(f"rows {self.written - len(rows)} to {self.written - 1} have no columns; give a schema")
        self._put(batch)

    def _refuse_losses(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """ValueError for a value that the schema would change."""
        if self._schema is None:
            return
        if self._lossy is None:
            self._lossy = {field.name: found for field in self._schema if (found := loses(field.type)) is not None}
        for name, lost in self._lossy.items():
            for at, row in enumerate(rows, self.written - len(rows)):
                if lost(value := row.get(name)):
                    kind = self._schema.field(name).type
                    raise ValueError(
                        f"row {at}: column {name!r} is {kind}, which can't hold {shown(value)} whole; give a schema"
                    )

    def _put(self, table: Any) -> None:
        if self._writer is None:
            self._schema = table.schema
            self._writer = self._make(table.schema)
        self._writer.write(table)

    def finish(self) -> None:
        self._flush()
        if self._writer is None:
            raise ValueError("a file without rows needs a schema")
        self._writer.close()

    def abandon(self) -> None:
        if self._writer is not None:
            self._writer.close()  # else it would do it when it is freed, with a file that is closed


def arrow_writer(file: Any) -> Callable[[Any], Any]:
    """Makes the writer of an Arrow file."""
    return lambda schema: pa.ipc.new_file(file, schema)


def parquet_writer(file: Any, settings: Mapping[str, Any]) -> Callable[[Any], Any]:
    """Makes the writer of a Parquet file."""
    return lambda schema: pq.ParquetWriter(file, schema, **settings)
