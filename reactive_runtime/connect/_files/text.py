"""Lines, JSON lines and CSV out of a file: read by portions, each line bounded, each error with the line's number."""

from __future__ import annotations

import codecs
import csv
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from reactive_runtime._support.shown import shown
from reactive_runtime.connect._files.place import FilesError, Place

__all__ = ["csv_rows", "json_values", "plain_lines"]

PORTION: Final = 1 << 18
"""Bytes that are read at once."""


class Text:
    """The text of a file.

    Args:
        place: The file.
        encoding: Of the text: one that writes a line end as one byte.
        at_most: Bytes that a line may have.
    """

    def __init__(self, place: Place, encoding: str, at_most: int) -> None:
        self.place = place
        self.encoding = encoding
        self.at_most = at_most

    def portions(self) -> Iterator[tuple[int, str]]:
        """Whole lines with their ends, as many as are read at once; and the number of the first of them."""
        place, number, encoding = self.place, 1, self.encoding
        held: list[bytes] = []  # of a line whose end is not yet read
        with self.place.reading() as file:
            while True:
                with place.named(f"line {number} can't be read"):
                    block: bytes = file.read(PORTION)
                end = block.rfind(b"\n") + 1
                if block and not end:
                    held.append(block)
                    if sum(map(len, held)) > self.at_most:
                        place.fail(self.too_long(number))
                    continue
                whole = b"".join([*held, block[:end]])
                held = [block[end:]] if len(block) > end else []
                if whole:
                    good, wrong = self.decoded(whole, encoding, number)
                    yield number, good
                    if wrong:
                        place.fail(wrong)
                    encoding = "utf-8" if encoding == "utf-8-sig" else encoding  # the mark is at the beginning only
                    number += whole.count(b"\n")
                if not block:
                    return

    def decoded(self, whole: bytes, encoding: str, number: int) -> tuple[str, str]:
        """The text of the lines before one that is malformed, and what is wrong with that one."""
        wrong = ""
        if len(whole) > self.at_most:
            begin = 0
            for at, line in enumerate(whole.split(b"\n"), number):
                if len(line) > self.at_most:
                    whole, wrong = whole[:begin], self.too_long(at)
                    break
                begin += len(line) + 1
        try:
            return whole.decode(encoding), wrong
        except UnicodeDecodeError as error:
            begin = whole.rfind(b"\n", 0, error.start) + 1
            number += whole.count(b"\n", 0, begin)
            wrong = f"line {number} is no {self.encoding}, at its byte {error.start - begin + 1} ({error.reason})"
            return whole[:begin].decode(encoding), wrong

    def too_long(self, number: int) -> str:
        """The message for a line that is too long."""
        return f"line {number} has more than {self.at_most} bytes; give at_most for longer ones"

    def lines(self) -> Iterator[tuple[int, str]]:
        """Each line without its end, and its number."""
        for number, text in self.portions():
            lines = (text.replace("\r\n", "\n") if "\r" in text else text).split("\n")
            if not lines[-1]:  # behind the last line's end
                del lines[-1]
            yield from enumerate(lines, number)


def one_byte_ends(operator: str, encoding: str) -> str:
    """The codec's own name. ValueError if it is none, or if it writes a line end as several bytes."""
    if not isinstance(encoding, str):
        raise TypeError(f"{operator}: encoding must be a str, not {type(encoding).__name__}")
    try:
        found = codecs.lookup(encoding).name
        one = found == "utf-8-sig" or "\n".encode(found) == b"\n"
    except LookupError:
        raise ValueError(f"{operator}: encoding must be a codec of Python for text, not {encoding!r}") from None
    if not one:
        raise ValueError(f"{operator}: encoding must write a line end as one byte, which {encoding} does not")
    return found


def plain_lines(text: Text) -> Iterator[str]:
    """Each line."""
    for _, line in text.lines():
        yield line


def json_values(text: Text, loads: Callable[[str], Any]) -> Iterator[Any]:
    """The value of each line that is not blank."""
    for number, line in text.lines():
        if not line or line.isspace():
            continue
        try:
            value = loads(line)
        except Exception as error:
            text.place.fail(f"line {number} is malformed, {shown(line)}", error)
        if value is None:
            text.place.fail(f"line {number} is null, and None is not an element (2.13)")
        yield value


class _Rows:
    """The lines for the csv module; it takes several where a quoted field has line ends in it."""

    def __init__(self, text: Text) -> None:
        self.text = text
        self.number = 0  # of the line that was taken last
        self.begin = 1  # of the row
        self.size = 0  # characters of the row's lines
        self._lines = self._each()

    def _each(self) -> Iterator[str]:
        for _, lines in self.text.portions():
            yield from _split(lines)

    def __iter__(self) -> _Rows:
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        self.number += 1
        self.size += len(line)
        if self.size > self.text.at_most and self.number > self.begin:
            most = self.text.at_most
            self.text.place.fail(
                f"the row that begins in line {self.begin} has more than {most} characters: is a quote left open?"
            )
        return line


def _split(text: str) -> Iterator[str]:
    """The lines with their ends; `str.splitlines` knows other ends too."""
    lines = text.split("\n")
    yield from (f"{line}\n" for line in lines[:-1])
    if lines[-1]:
        yield lines[-1]


def csv_rows(text: Text, header: bool, dialect: Mapping[str, Any]) -> Iterator[Any]:
    """The rows that are not empty: mappings by the names in the first row, or lists."""
    place, feed = text.place, _Rows(text)
    reader = csv.reader(feed, **{"strict": True, **dialect})
    names: list[str] | None = None
    while True:
        feed.begin, feed.size = feed.number + 1, 0
        try:
            row = next(reader)
        except StopIteration:
            return
        except FilesError:
            raise
        except Exception as error:
            more = "" if feed.number <= feed.begin else f", of a row that begins in line {feed.begin}"
            place.fail(f"line {max(feed.number, 1)} is malformed{more}", error)
        if not row:
            continue
        if not header:
            yield row
        elif names is None:
            names = row
            if len(set(names)) < len(names):
                place.fail(f"line {feed.begin} names a field twice, {shown(names)}; read it with header=False")
        elif len(row) != len(names):
            place.fail(f"line {feed.begin} has {len(row)} fields, and there are {len(names)} names, {shown(row)}")
        else:
            yield dict(zip(names, row, strict=True))
