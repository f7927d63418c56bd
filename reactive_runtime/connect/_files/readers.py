"""The sources of `files` that read text."""

from __future__ import annotations

import csv as csv_module
import json
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from reactive_runtime._core.failures.assembly import assembly_location
from reactive_runtime._core.runtime.arguments import at_least, check_callable
from reactive_runtime._core.sources.flow_source import IterableSource
from reactive_runtime._flow import Flow
from reactive_runtime._operators.flow_base import flow_of
from reactive_runtime.connect._files.place import Place
from reactive_runtime.connect._files.text import Text, csv_rows, json_values, one_byte_ends, plain_lines

__all__ = ["AT_MOST", "Options", "Url", "check_dialect", "csv", "json_lines", "lines", "source_of"]

Url: TypeAlias = str | os.PathLike[str]

Options: TypeAlias = Mapping[str, Any] | None

AT_MOST = 1 << 20
"""Bytes of a line: the default."""


def lines(
    url: Url,
    *,
    encoding: str = "utf-8",
    at_most: int = AT_MOST,
    compression: str | None = "infer",
    options: Options = None,
) -> Flow[str]:
    r"""The lines of a text file that fsspec opens, without their ends (`\n` or `\r\n`).

    Args:
        url: A path, or a URL of fsspec: `s3://bucket/key`, `memory://name`, `zip://inner.txt::https://…`.
        encoding: A codec of Python that writes a line end as one byte, as all do but UTF-16 and UTF-32.
        at_most: How many bytes a line may have, 1 or more.
        compression: "gzip", "bz2", "xz", "zstd", …; "infer": by the ending of the name. None: none.
        options: Further arguments of the file system, as `{"anon": True}` for S3.

    Returns:
        A flow of lines. It fails with a `FilesError` that names the file, and the line that is too long, or is not in
        the encoding.

    Raises:
        TypeError: An argument has another type.
        ValueError: `encoding` or `compression` is not known, or `at_most` is below 1.

    Demand:
        The first demand opens the file. The flow reads 256 KiB when a line is demanded that is not at hand.

    Cancellation:
        Closes the file, once. So does the end. `cancel` does not wait for a read that is under way.

    Thread:
        Reading blocks the thread that requests: with `subscribe_on` it is one of an executor.

    Example:
        >>> from reactive_runtime.connect.files import write_lines
        >>> write_lines(Flow.just("a", "b"), "memory://lines.txt").block()
        2
        >>> list(lines("memory://lines.txt"))
        ['a', 'b']

    Origin:
        `FileIO` and `Framing.delimiter` of Pekko, over the file systems of fsspec.
    """
    text = _text("lines", url, encoding, at_most, compression, options)
    return source_of(text.place, lambda: plain_lines(text))


def json_lines(
    url: Url,
    *,
    loads: Callable[[str], Any] = json.loads,
    encoding: str = "utf-8",
    at_most: int = AT_MOST,
    compression: str | None = "infer",
    options: Options = None,
) -> Flow[Any]:
    """The values of a file with one JSON value a line; blank lines are left out.

    Args:
        url: As for `lines`.
        loads: Makes a value of a line.
        encoding: As for `lines`.
        at_most: How many bytes a line may have, 1 or more.
        compression: As for `lines`.
        options: As for `lines`.

    Returns:
        A flow of values. It fails with a `FilesError` that names the file and the line, also where the value is null,
        which is no element. `lines` and `on_error_continue` with `map(json.loads)` set malformed lines aside instead.

    Raises:
        TypeError: An argument has another type.
        ValueError: `encoding` or `compression` is not known, or `at_most` is below 1.

    Demand:
        As with `lines`.

    Cancellation:
        As with `lines`.

    Thread:
        As with `lines`. `loads` is called there too.

    Example:
        >>> from reactive_runtime.connect.files import write_json_lines
        >>> write_json_lines(Flow.just({"n": 1}, [2]), "memory://values.jsonl").block()
        2
        >>> list(json_lines("memory://values.jsonl"))
        [{'n': 1}, [2]]

    Origin:
        `JsonFraming` of Pekko.
    """
    text = _text("json_lines", url, encoding, at_most, compression, options)
    check_callable("json_lines", "loads", loads)
    return source_of(text.place, lambda: json_values(text, loads))


def csv(
    url: Url,
    *,
    header: bool = True,
    dialect: Mapping[str, Any] | None = None,
    encoding: str = "utf-8",
    at_most: int = AT_MOST,
    compression: str | None = "infer",
    options: Options = None,
) -> Flow[Any]:
    """The rows of a CSV file, whose values are str; empty lines are left out.

    Args:
        url: As for `lines`.
        header: True: the first row has the names, and each further one becomes a dict. False: each row is a list.
        dialect: Arguments of `csv.reader`, as `{"delimiter": ";"}`.
        encoding: As for `lines`; "utf-8-sig" for what Excel writes.
        at_most: How many bytes a line may have, and how many characters a row of several lines; 1 or more.
        compression: As for `lines`.
        options: As for `lines`.

    Returns:
        A flow of dicts or lists. It fails with a `FilesError` that names the file and the line where a quote is wrong,
        a row has more or fewer fields than there are names, or a field is longer than `csv.field_size_limit()`.

    Raises:
        TypeError: An argument has another type.
        ValueError: `encoding` or `compression` is not known, or `at_most` is below 1.

    Demand:
        As with `lines`.

    Cancellation:
        As with `lines`.

    Thread:
        As with `lines`.

    Example:
        >>> from reactive_runtime.connect.files import write_csv
        >>> write_csv(Flow.just({"id": 1, "name": "tea"}), "memory://orders.csv").block()
        1
        >>> list(csv("memory://orders.csv"))
        [{'id': '1', 'name': 'tea'}]

    Origin:
        `CsvParsing` of Pekko Connectors, with the reader of Python.
    """
    text = _text("csv", url, encoding, at_most, compression, options)
    arguments = check_dialect("csv", dialect)
    return source_of(text.place, lambda: csv_rows(text, header, arguments))


def check_dialect(operator: str, dialect: Mapping[str, Any] | None) -> dict[str, Any]:
    """The arguments for the csv module. TypeError if it would refuse them."""
    arguments = dict(dialect or {})
    try:
        csv_module.reader([], **{"strict": True, **arguments})
    except (TypeError, ValueError, csv_module.Error) as error:
        raise TypeError(f"{operator}: dialect must be arguments of the csv module: {error}") from None
    return arguments


def _text(operator: str, url: Url, encoding: str, at_most: int, compression: str | None, options: Options) -> Text:
    place = Place(operator, url, options, compression)
    return Text(place, one_byte_ends(operator, encoding), at_least(operator, "at_most", 1, at_most))


def source_of(place: Place, each: Callable[[], Iterator[Any]]) -> Flow[Any]:
    """The flow of a generator function."""
    return flow_of(IterableSource(f"{place.operator}({place})", each, location=assembly_location()))
