"""Server-Sent Events as bytes, both ways: the records of a stream, and a parser of them.

https://html.spec.whatwg.org/multipage/server-sent-events.html says what a stream is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from reactive_runtime._core.sources.naming import instead
from reactive_runtime._support.shown import shown

__all__ = ["HEARTBEAT", "LINES", "OPENING", "Event", "fits_header", "json_line", "record", "retry_record", "text_of"]

OPENING: Final = b":\n\n"
"""A comment: a server sends the headers of an answer together with its first bytes."""

HEARTBEAT: Final = b": heartbeat\n\n"

LINES: Final = re.compile("\r\n|\r|\n")
"""The ends of lines in a stream; `str.splitlines` knows more."""


class Event(NamedTuple):
    """A record of Server-Sent Events.

    Args:
        data: The text. `EventStream` takes any element here, and makes text of it.
        event: The type, for which a page listens; one line.
        id: A page that connects anew sends the last one, as `Last-Event-ID`; one line, which a header can have: without
            a space or a tab at its ends, and without VT and FF. None: it stays as it was.

    Example:
        >>> Event("tea", id="7")
        Event(data='tea', event='message', id='7')
    """

    data: Any
    event: str = "message"
    id: str | None = None


def json_line(element: Any) -> str:
    r"""A line of JSON: the function for `encode` of a `StreamBody` of JSON lines.

    Args:
        element: Anything that `json.dumps` takes.

    Returns:
        Its JSON, without spaces, and a line break.

    Raises:
        TypeError: It is of a type that JSON has not.
        ValueError: It has a number that JSON has not, as NaN.

    Example:
        >>> json_line({"name": "tea"})
        '{"name":"tea"}\n'
    """
    return f"{_json(element)}\n"


def _json(element: Any) -> str:
    return json.dumps(element, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def text_of(element: Any) -> str | bytes:
    """Text and bytes as they are, and JSON of all else."""
    return element if isinstance(element, str | bytes) else _json(element)


def record(element: Any, encode: Callable[[Any], str | bytes]) -> bytes:
    """The record of an element: of an event, or of data."""
    if isinstance(element, Event):
        data, kind, id = element
        head = "" if kind == "message" else f"event: {_one_line('event', kind)}\n"
        if id is not None:
            head = f"{head}id: {_an_id(id)}\n"
    else:
        data, head = element, ""
    encoded = encode(data)
    if isinstance(encoded, bytes):
        text = encoded.decode()
    elif isinstance(encoded, str):
        text = encoded
    else:
        raise TypeError(f"encode must return a str or bytes, not {instead(encoded)}")
    if "\n" in text or "\r" in text:
        text = "\ndata: ".join(LINES.split(text))
    return f"{head}data: {text}\n\n".encode()


def _one_line(name: str, value: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} of an Event must be a str, not {instead(value)}")
    if "\n" in value or "\r" in value or "\0" in value:
        raise ValueError(f"{name} of an Event must be one line without a NUL, not {shown(value)}")
    return value


def fits_header(value: str) -> bool:
    """Whether `Last-Event-ID` can say this id as it is."""
    return value == value.strip(" \t") and "\v" not in value and "\f" not in value


def _an_id(value: str) -> str:
    if not fits_header(_one_line("id", value)):
        raise ValueError(
            f"id of an Event must have no space or tab at its ends, no VT and no FF, not {shown(value)}: the header"
            " `Last-Event-ID`, which brings it back, can't have them"
        )
    return value


def retry_record(seconds: float) -> bytes:
    """How long a page waits before it connects anew."""
    return f"retry: {round(seconds * 1000)}\n\n".encode()
