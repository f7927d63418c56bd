"""The sources of `files` that read tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from reactive_runtime._core.runtime.arguments import at_least
from reactive_runtime._flow import Flow
from reactive_runtime.connect._files.place import Place
from reactive_runtime.connect._files.readers import Options, Url, source_of
from reactive_runtime.connect._files.record_batches import arrow_batches, parquet_batches, rows_of

__all__ = ["arrow", "parquet"]


def arrow(url: Url, *, rows: bool = False, options: Options = None) -> Flow[Any]:
    """The record batches, or rows, of an Arrow file or stream.

    Args:
        url: As for `lines`.
        rows: False: the elements are record batches of pyarrow. True: they are rows, as dicts.
        options: As for `lines`.

    Returns:
        A flow of batches or dicts. It fails with a `FilesError` that names the file and the batch.

    Raises:
        TypeError: An argument has another type.

    Demand:
        The first demand opens the file. The flow reads one record batch at a time.

    Cancellation:
        As with `lines`.

    Thread:
        As with `lines`.

    Example:
        >>> from reactive_runtime.connect.files import write_arrow
        >>> write_arrow(Flow.range(3).map(lambda n: {"n": n}), "memory://numbers.arrow").block()
        3
        >>> list(arrow("memory://numbers.arrow", rows=True))
        [{'n': 0}, {'n': 1}, {'n': 2}]

    Origin:
        The readers of `pyarrow.ipc`.
    """
    place = Place("arrow", url, options, None)
    return source_of(place, lambda: rows_of(place, arrow_batches(place)) if rows else arrow_batches(place))


def parquet(
    url: Url, *, columns: Sequence[str] | None = None, batch: int = 1_024, rows: bool = False, options: Options = None
) -> Flow[Any]:
    """The rows of a Parquet file, in record batches or one by one.

    Args:
        url: As for `lines`.
        columns: The names of the columns to read; None: all.
        batch: How many rows a record batch has, at most; 1 or more.
        rows: False: the elements are record batches of pyarrow. True: they are rows, as dicts.
        options: As for `lines`.

    Returns:
        A flow of batches or dicts. It fails with a `FilesError` that names the file and the batch.

    Raises:
        TypeError: An argument has another type.
        ValueError: `batch` is below 1.

    Demand:
        The first demand opens the file. The flow reads a batch when a row of it is demanded; pyarrow reads the pages
        of one row group for that.

    Cancellation:
        As with `lines`.

    Thread:
        As with `lines`. pyarrow decodes columns on threads of its own.

    Example:
        >>> from reactive_runtime.connect.files import write_parquet
        >>> write_parquet(Flow.range(3).map(lambda n: {"n": n}), "memory://numbers.parquet").block()
        3
        >>> [batch.num_rows for batch in parquet("memory://numbers.parquet", batch=2)]
        [2, 1]

    Origin:
        `ParquetFile.iter_batches` of pyarrow.
    """
    place = Place("parquet", url, options, None)
    at_least("parquet", "batch", 1, batch)
    if isinstance(columns, str) or not (columns is None or isinstance(columns, Iterable)):
        raise TypeError(f"parquet: columns must be a list of names, not {columns!r}")
    names = None if columns is None else list(columns)  # it may be an iterator

    def batches() -> Iterator[Any]:
        return parquet_batches(place, names, batch)

    return source_of(place, lambda: rows_of(place, batches()) if rows else batches())
