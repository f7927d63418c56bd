"""Bytes of a body, in chunks as they come, to lines and to events; each with a bound."""

from __future__ import annotations

import codecs
import re
from typing import Final

from reactive_runtime.connect._http.sse import LINES, Event

__all__ = ["LONGEST_RETRY", "EventParser", "LineParser", "known_encoding"]

LONGEST_RETRY: Final = 3600.0
"""Seconds that a server may have a client wait, at most."""

_new: Final = tuple.__new__
"""Makes an `Event` in a third of the time of a call of the class."""

_LINE_FEED: Final = re.compile("\n")


_NO_CHARSETS: Final = frozenset({"idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape"})
"""Encodings of text that only Python has, or that no decoder reads in pieces."""


def known_encoding(name: str | None) -> str:
    """That of text that an answer names. UTF-8 where it names none, or one that isn't known or isn't of text."""
    try:
        found = codecs.lookup(name or "utf-8")
        "a".encode(found.name)  # a LookupError if it is not of text
    except (LookupError, ValueError):
        return "utf-8"
    known = found.name.replace("_", "-") not in _NO_CHARSETS
    return found.name if known and found.incrementaldecoder is not None else "utf-8"


class LineParser:
    """Text in chunks to lines. One task uses it.

    Args:
        encoding: That of the bytes; those that it has not become U+FFFD.
        most: How many characters a line has, at most.
        cr: A CR ends a line, and does not wait for an LF behind it. Otherwise a CR before an LF is a part of the end.
    """

    def __init__(self, encoding: str, most: int, *, cr: bool) -> None:
        self.failed = ""
        """Says that a line or an event was too long: no more is read."""
        self._decode = codecs.getincrementaldecoder(encoding)("replace").decode
        self._cr = cr
        self._split = (LINES if cr else _LINE_FEED).split
        self._most = most
        self._too_long = f"a line has more than {most:,} characters"
        self._rest: list[str] = []  # of a line that has not ended
        self._length = 0
        self._after_cr = False

    def feed(self, chunk: bytes, *, last: bool = False) -> list[str]:
        """The lines that end in this chunk, up to one that is too long."""
        text = self._decode(chunk, last)
        if not text:
            return []
        if self._after_cr:
            text = text.removeprefix("\n")
        self._after_cr = self._cr and text.endswith("\r")
        first, *others = self._split(text)
        self._rest.append(first)
        self._length += len(first)
        lines: list[str] = []
        if others:
            lines = ["".join(self._rest), *others]
            self._rest, self._length = [lines.pop()], len(others[-1])
            if not self._cr:
                lines = [line.removesuffix("\r") for line in lines]
        may_end = not self._cr and not last and self._rest[-1].endswith("\r")
        if self._length - may_end > self._most or any(len(line) > self._most for line in lines):
            self.failed = self._too_long
            too_long = (at for at, line in enumerate(lines) if len(line) > self._most)
            return lines[: next(too_long, len(lines))]
        return lines

    def left(self) -> str:
        """A last line without an end."""
        self.feed(b"", last=True)
        rest = "".join(self._rest)
        if len(rest) > self._most:
            self.failed = self._too_long
        return rest


class EventParser:
    """Server-Sent Events, as the specification says. One task uses it.

    Args:
        most: How many characters a line, and the data of an event, have, at most.
        last_id: The id of the last event that came over another connection.
    """

    def __init__(self, most: int, last_id: str = "") -> None:
        self.last_id = last_id
        """Of the last record that has ended: what to send as `Last-Event-ID`."""
        self.retry: float | None = None
        """Seconds to wait before connecting anew, if the server has said so."""
        self.failed = ""
        """Says that a line or an event was too long: no more is read."""
        self._lines = LineParser("utf-8", most, cr=True)
        self._most = most
        self._begins = True
        self._id = last_id
        self._type = ""
        self._data: list[str] = []
        self._length = 0  # of the data, with its line feeds

    def feed(self, chunk: bytes) -> list[Event]:
        """The events that end in this chunk, up to one that is too long."""
        lines = self._lines.feed(chunk)
        if self._begins and lines:
            self._begins = False
            lines[0] = lines[0].removeprefix("\ufeff")
        events: list[Event] = []
        for line in lines:
            if not line:
                self._end(events)
            elif not self._field(line):
                self.failed = f"the data of an event has more than {self._most:,} characters"
                return events
        self.failed = self._lines.failed
        return events

    def _field(self, line: str) -> bool:
        """Whether there is room."""
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
            self._length += len(value) + 1
        elif name == "event":
            self._type = value
        elif name == "id" and "\0" not in value:
            self._id = value
        elif name == "retry" and value.isascii() and value.isdigit():
            self.retry = min(int(value) / 1000, LONGEST_RETRY) if len(value) < 10 else LONGEST_RETRY
        return self._length <= self._most + 1

    def _end(self, events: list[Event]) -> None:
        """The record has ended; without data it is no event."""
        self.last_id = self._id
        if self._data:
            events.append(_new(Event, ("\n".join(self._data), self._type or "message", self._id or None)))
        self._data, self._length, self._type = [], 0, ""
