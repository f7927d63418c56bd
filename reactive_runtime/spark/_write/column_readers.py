"""Columns of Arrow as lists of the values that `DataFrame.collect` gives; a nested column goes by its children.

timestamp     datetime, local, no zone
timestamp_ntz datetime, no zone
struct        Row
array, map    list, dict
variant, geometry, a type of the user's    their own classes
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql.types import DataType

__all__ = ["Read", "reader"]

Read = Callable[[Any], list[Any]]
"""The values of a column of Arrow."""


def reader(kind: DataType, binary: Callable[[bytes], Any] = bytes) -> Read:
    """Reads columns of a type. `binary` makes the values of binary ones: bytes, or bytearray.

    PySparkNotImplementedError for a type that PySpark can't collect either.
    """
    from pyspark.sql import types

    if isinstance(kind, types.ArrayType):
        return partial(_lists, reader(kind.elementType, binary))
    if isinstance(kind, types.MapType):
        return partial(_maps, reader(kind.keyType, binary), reader(kind.valueType, binary))
    if isinstance(kind, types.StructType):
        return partial(_rows, kind.names, [reader(field.dataType, binary) for field in kind])
    if isinstance(kind, types.UserDefinedType):
        return partial(_each, kind.deserialize, reader(kind.sqlType(), binary))
    if isinstance(kind, types.TimestampType):
        return partial(_each, _local, _ints)
    if isinstance(kind, types.TimeType):
        return partial(_each, kind.fromInternal, _ints)
    if isinstance(kind, types.BinaryType) and binary is not bytes:
        return partial(_each, binary, _plain)
    if isinstance(kind, types.VariantType):
        return partial(_each, partial(_made, types.VariantVal), partial(_pairs, ("value", "metadata")))
    if isinstance(kind, types.GeometryType):
        return partial(_each, partial(_made, types.Geometry.fromWKB), partial(_pairs, ("wkb", "srid")))
    if isinstance(kind, types.GeographyType):
        return partial(_each, partial(_made, types.Geography.fromWKB), partial(_pairs, ("wkb", "srid")))
    if isinstance(kind, types.YearMonthIntervalType | types.CalendarIntervalType):
        kind.fromInternal(0)  # says that it can't, in PySpark's words
    return _plain


_NUMBERS: Final = {"int64": "q", "int32": "i", "int16": "h", "int8": "b", "double": "d", "float": "f"}


def _plain(column: Any) -> list[Any]:
    """Numbers that are all there straight from memory, in a tenth of the time."""
    code: Any = _NUMBERS.get(str(column.type))
    if code is None or column.null_count or not len(column):
        listed: list[Any] = column.to_pylist()
        return listed
    numbers = memoryview(column.buffers()[1]).cast("B").cast(code)
    return numbers[column.offset : column.offset + len(column)].tolist()


def _ints(column: Any) -> list[Any]:
    return _plain(column.view("int64"))


def _local(microseconds: int) -> datetime.datetime:
    """The local time, without a zone, as PySpark has it."""
    seconds, rest = divmod(microseconds, 1_000_000)
    return datetime.datetime.fromtimestamp(seconds).replace(microsecond=rest)


def _each(made: Callable[[Any], Any], read: Read, column: Any) -> list[Any]:
    return [None if value is None else made(value) for value in read(column)]


def _bounds(column: Any) -> tuple[int, int, list[slice | None]]:
    """Of a column of lists: where their elements begin and end, and the slice of these that each has."""
    offsets = column.offsets.to_pylist()
    first, last = offsets[0], offsets[-1]
    slices: Any = map(slice, (at - first for at in offsets), (at - first for at in offsets[1:]))
    if not column.null_count:
        return first, last, list(slices)
    there = column.is_valid().to_pylist()
    return first, last, [one if valid else None for one, valid in zip(slices, there, strict=True)]


def _lists(read: Read, column: Any) -> list[Any]:
    if not len(column):
        return []
    first, last, slices = _bounds(column)
    elements = read(column.values.slice(first, last - first))
    return [None if one is None else elements[one] for one in slices]


def _maps(read_key: Read, read_value: Read, column: Any) -> list[Any]:
    if not len(column):
        return []
    first, last, slices = _bounds(column)
    keys = read_key(column.keys.slice(first, last - first))
    found = read_value(column.items.slice(first, last - first))
    return [None if one is None else dict(zip(keys[one], found[one], strict=True)) for one in slices]


def _rows(names: list[str], reads: Sequence[Read], column: Any) -> list[Any]:
    from pyspark.sql.types import Row

    def row(values: tuple[Any, ...]) -> Any:
        made: Any = tuple.__new__(Row, values)
        made.__fields__ = names
        return made

    columns = [read(column.field(place)) for place, read in enumerate(reads)]
    rows = zip(*columns, strict=True) if columns else iter([()] * len(column))
    if not column.null_count:
        return [row(values) for values in rows]
    there = column.is_valid().to_pylist()
    return [row(values) if valid else None for values, valid in zip(rows, there, strict=True)]


def _made(make: Callable[[Any, Any], Any], two: tuple[Any, Any]) -> Any:
    """Its bytes are those that PySpark gives: bytearrays."""
    return make(*(bytearray(part) if isinstance(part, bytes) else part for part in two))


def _pairs(names: tuple[str, str], column: Any) -> list[Any]:
    """Of a struct that stands for something else: two of its fields."""
    pairs = zip(*(column.field(name).to_pylist() for name in names), strict=True)
    there = column.is_valid().to_pylist()
    return [pair if valid else None for pair, valid in zip(pairs, there, strict=True)]
