"""The sinks of `files` that write tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from reactive_runtime._core.runtime.arguments import at_least
from reactive_runtime._core.sources.naming import instead
from reactive_runtime._flow import Flow
from reactive_runtime._spec import Publisher
from reactive_runtime.connect._files.readers import Options, Url
from reactive_runtime.connect._files.record_batches import BatchWriter, arrow_writer, parquet_writer
from reactive_runtime.connect._files.writers import sink_of

# isort: split
import pyarrow as pa

__all__ = ["write_arrow", "write_parquet"]


def write_arrow(
    source: Publisher[Any], url: Url, *, schema: Any = None, batch: int = 65_536, options: Options = None
) -> Flow[int]:
    """Writes record batches, or rows, into an Arrow file: otherwise as `write_lines`.

    Args:
        source: A publisher of record batches or tables of pyarrow, or of mappings, which are rows.
        url: As for `write_lines`.
        schema: A `pyarrow.Schema`. None: that of the first batch; of rows, what pyarrow makes of the first `batch`.
        batch: How many rows become a record batch, and wait here for that, at most; 1 or more.
        options: As for `write_lines`.

    Returns:
        A flow of one element, the number of rows.

    Raises:
        TypeError: `source` is no publisher, or an argument has another type.
        ValueError: `batch` is below 1.

    Example:
        >>> write_arrow(Flow.just({"n": 1}, {"n": 2}), "memory://n.arrow").block()
        2
    """
    return _tables("write_arrow", source, url, schema, batch, options, arrow_writer)


def write_parquet(
    source: Publisher[Any],
    url: Url,
    *,
    schema: Any = None,
    batch: int = 65_536,
    settings: Mapping[str, Any] | None = None,
    options: Options = None,
) -> Flow[int]:
    """Writes record batches, or rows, into a Parquet file: otherwise as `write_lines`.

    Args:
        source: As for `write_arrow`.
        url: As for `write_lines`.
        schema: As for `write_arrow`.
        batch: How many rows become a row group, and wait here for that, at most; 1 or more. A record batch becomes one.
        settings: Arguments of `pyarrow.parquet.ParquetWriter`, as `{"compression": "zstd"}`.
        options: As for `write_lines`.

    Returns:
        A flow of one element, the number of rows.

    Raises:
        TypeError: `source` is no publisher, or an argument has another type.
        ValueError: `batch` is below 1.

    Example:
        >>> write_parquet(Flow.just({"n": 1}, {"n": 2}), "memory://n.parquet").block()
        2
    """
    arguments = dict(settings or {})
    return _tables("write_parquet", source, url, schema, batch, options, partial(parquet_writer, settings=arguments))


def _tables(
    operator: str, source: Any, url: Url, schema: Any, batch: int, options: Options, writer: Callable[[Any], Any]
) -> Flow[int]:
    at_least(operator, "batch", 1, batch)
    if schema is not None and not isinstance(schema, pa.Schema):
        raise TypeError(f"{operator}: schema must be a pyarrow.Schema, not {instead(schema)}")
    return sink_of(
        operator, source, url, "wb", None, lambda file: BatchWriter(writer(file), schema, batch), None, options
    )
