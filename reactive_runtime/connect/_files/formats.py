"""The formats of text that a flow is written in."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

__all__ = ["CsvRows", "JsonLines", "Lines"]

BOTH: Final = "\r\n"
"""The line end of which the csv module quotes each part."""


class Lines:
    """Each element is a line.

    Args:
        file: Opened for text.
    """

    def __init__(self, file: Any) -> None:
        self._write = file.write
        self.written = 0  # the thread that writes

    def write(self, element: Any) -> None:
        if not isinstance(element, str):
            raise TypeError("each element must be a str: put map(str) before it")
        if "\n" in element or "\r" in element:
            raise ValueError("each element is a line, and this one has a line end in it")
        self._write(element + "\n")
        self.written += 1

    def finish(self) -> None:
        """The file is whole."""

    def abandon(self) -> None:
        """The file is closed elsewhere."""


class JsonLines(Lines):
    """Each element is a line of JSON.

    Args:
        file: Opened for text.
        dumps: Makes the text of an element.
    """

    def __init__(self, file: Any, dumps: Callable[[Any], str]) -> None:
        super().__init__(file)
        self._dumps = dumps

    def write(self, element: Any) -> None:
        text = self._dumps(element)
        if "\n" in text or "\r" in text:
            raise ValueError("dumps must make one line of it, and this one has a line end in it")
        self._write(text + "\n")
        self.written += 1


class _OtherEnds:
    """Takes rows that end in `BOTH`, and writes them with another end."""

    def __init__(self, file: Any, end: str) -> None:
        self._write = file.write
        self._end = end

    def write(self, row: str) -> None:
        self._write(row.removesuffix(BOTH) + self._end)


class CsvRows(Lines):
    """Each element is a row: a mapping by the names of the fields, or a sequence of values.

    Args:
        file: Opened for text.
        fields: The names; none: those of the first mapping.
        dialect: As of `csv.writer`.
    """

    def __init__(self, file: Any, fields: Sequence[str], dialect: Mapping[str, Any]) -> None:
        super().__init__(file)
        writer = csv.writer(file, **dialect)
        if (end := writer.dialect.lineterminator) in ("\r", "\n"):
            # Before Python 3.13 it quotes those line ends only that are in its own.
            writer = csv.writer(_OtherEnds(file, end), **{**dialect, "lineterminator": BOTH})
        self._row = writer.writerow
        self._fields = list(fields)
        if fields:
            self._row(self._fields)

    def write(self, element: Any) -> None:
        if isinstance(element, Mapping):
            row = self._of_mapping(element)
        elif isinstance(element, str | bytes) or not isinstance(element, Sequence):
            raise TypeError("each element must be a mapping or a sequence of values")
        elif self._fields and len(element) != len(self._fields):
            raise ValueError(f"it has {len(element)} values, and the fields are {self._fields}")
        else:
            row = element
        if not row:
            raise ValueError("it has no values, and an empty line is no row")
        self._row(row)
        self.written += 1

    def _of_mapping(self, element: Mapping[Any, Any]) -> Sequence[Any]:
        if not self._fields:
            if self.written and element:
                raise ValueError("the elements before it were sequences, and there are no names of fields")
            self._fields = list(element)
            if element:
                self._row(self._fields)
        if len(element) != len(self._fields) or not all(name in element for name in self._fields):
            raise ValueError(f"its fields are {list(element)}, and not {self._fields}")
        return [element[name] for name in self._fields]
