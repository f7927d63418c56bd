"""The sinks of `files` that write text."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from reactive_runtime._core.runtime.arguments import check_callable
from reactive_runtime._core.sources.naming import instead
from reactive_runtime._flow import Flow
from reactive_runtime._operators.flow_base import as_flow, combinator_flow
from reactive_runtime._spec import Publisher
from reactive_runtime.connect._files.formats import CsvRows, JsonLines, Lines
from reactive_runtime.connect._files.place import Place
from reactive_runtime.connect._files.readers import Options, Url, check_dialect
from reactive_runtime.connect._files.sink import Format, Sink

__all__ = ["sink_of", "write_csv", "write_json_lines", "write_lines"]


def write_lines(
    source: Publisher[str],
    url: Url,
    *,
    encoding: str = "utf-8",
    compression: str | None = "infer",
    options: Options = None,
) -> Flow[int]:
    """Writes each element as a line of a text file, which is in place when all of it is written, or not at all.

    The flow writes to a new file beside it, whose name ends in `.part`. When `source` has completed, the new file
    takes its place: on a local disk in one step, when it is on the disk, with the permissions of the old file; else
    as the file system moves it.

    Args:
        source: A publisher of str.
        url: A path, or a URL of fsspec.
        encoding: The name of a codec of Python.
        compression: "gzip", "bz2", "xz", "zstd", …; "infer": by the ending of the name. None: none.
        options: Further arguments of the file system.

    Returns:
        A flow of one element, the number of lines, which comes when the file is in place. It fails with the error of
        `source`, or with a `FilesError` that names the file and the element; the old file is as it was then.

    Raises:
        TypeError: `source` is no publisher, or an argument has another type.
        ValueError: `encoding` or `compression` is not known.

    Demand:
        The first demand opens the file, and takes all of `source`. A slow file system holds the source back: of a
        source with an executor, at most 256 elements wait here.

    Cancellation:
        Cancels `source`, and removes the new file. A process that is killed leaves it behind.

    Thread:
        Elements are written on the thread that delivers them; with `subscribe_on`, on that executor.

    Example:
        >>> from reactive_runtime.connect.files import lines
        >>> write_lines(Flow.range(3).map(str), "memory://numbers.txt.gz").block()
        3
        >>> list(lines("memory://numbers.txt.gz"))
        ['0', '1', '2']

    Origin:
        `FileIO.toPath` of Pekko, with the usual write and rename.
    """
    return sink_of("write_lines", source, url, "w", _codec("write_lines", encoding), Lines, compression, options)


def write_json_lines(
    source: Publisher[Any],
    url: Url,
    *,
    dumps: Callable[[Any], str] | None = None,
    encoding: str = "utf-8",
    compression: str | None = "infer",
    options: Options = None,
) -> Flow[int]:
    """Writes each element as a line of JSON: otherwise as `write_lines`.

    Args:
        source: A publisher of values that JSON has.
        url: As for `write_lines`.
        dumps: Makes a str without line ends of an element. None: `json.dumps`, for which NaN is an error.
        encoding: As for `write_lines`.
        compression: As for `write_lines`.
        options: As for `write_lines`.

    Returns:
        A flow of one element, the number of lines.

    Raises:
        TypeError: `source` is no publisher, or an argument has another type.
        ValueError: `encoding` or `compression` is not known.

    Example:
        >>> write_json_lines(Flow.just({"n": 1}), "memory://n.jsonl").block()
        1
    """
    if dumps is not None:
        check_callable("write_json_lines", "dumps", dumps)
    into = partial(JsonLines, dumps=dumps or _JSON)
    codec = _codec("write_json_lines", encoding)
    return sink_of("write_json_lines", source, url, "w", codec, into, compression, options)


def write_csv(
    source: Publisher[Any],
    url: Url,
    fields: Sequence[str] = (),
    *,
    dialect: Mapping[str, Any] | None = None,
    encoding: str = "utf-8",
    compression: str | None = "infer",
    options: Options = None,
) -> Flow[int]:
    r"""Writes each element as a row of CSV: otherwise as `write_lines`.

    Args:
        source: A publisher of mappings, or of sequences of values. A None among the values is an empty field.
        url: As for `write_lines`.
        fields: The names for the first row, and all that a mapping has. None given: those of the first mapping;
            before sequences there is no such row then.
        dialect: Arguments of `csv.writer`, as `{"lineterminator": "\n"}`.
        encoding: As for `write_lines`.
        compression: As for `write_lines`.
        options: As for `write_lines`.

    Returns:
        A flow of one element, the number of rows without that of the names.

    Raises:
        TypeError: `source` is no publisher, or an argument has another type.
        ValueError: `encoding` or `compression` is not known.

    Example:
        >>> write_csv(Flow.just((1, "tea")), "memory://o.csv", ["id", "name"]).block()
        1
    """
    names = () if isinstance(fields, str) else tuple(fields)  # it may be an iterator
    if isinstance(fields, str) or not all(isinstance(field, str) for field in names):
        raise TypeError(f"write_csv: fields must be a list of names, not {instead(fields)}")
    into = partial(CsvRows, fields=names, dialect=check_dialect("write_csv", dialect))
    return sink_of("write_csv", source, url, "w", _codec("write_csv", encoding), into, compression, options)


_JSON: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


def _codec(operator: str, encoding: str) -> str:
    if not isinstance(encoding, str):
        raise TypeError(f"{operator}: encoding must be a str, not {type(encoding).__name__}")
    try:
        "".encode(encoding)  # LookupError for a codec of bytes too, as `base64`
    except LookupError:
        raise ValueError(f"{operator}: encoding must be a codec of Python for text, not {encoding!r}") from None
    return encoding


def sink_of(
    operator: str,
    source: Any,
    url: Url,
    mode: str,
    encoding: str | None,
    into: Callable[[Any], Format],
    compression: str | None,
    options: Options,
) -> Flow[int]:
    """The flow of a sink."""
    place = Place(operator, url, options, compression)
    flow = as_flow(operator, "source", source)
    return combinator_flow(f"{operator}({place})", lambda: Sink(place, mode, encoding, into, flow), flow)
