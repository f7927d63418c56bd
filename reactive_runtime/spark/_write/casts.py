"""Batches of Arrow that go into Spark: their columns as the schema has them, value for value.

By itself Arrow's cast changes some without a word: it drops a field that a struct has no room for, the hour of a
timestamp that becomes a date, and a zone; it makes an infinity of a double, and rounds one that becomes a decimal.
"""

from __future__ import annotations

import datetime
import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from reactive_runtime._support.shown import shown
from reactive_runtime.spark._write.arrow_types import twice
from reactive_runtime.spark._write.plain_values import grain_of, too_fine
from reactive_runtime.spark._write.values import DOUBLED, Misfit, doubled, in_range

if TYPE_CHECKING:
    from pyspark.sql.types import DataType

__all__ = ["cast"]


def cast(column: Any, field: Any, kind: DataType) -> Any:
    """The column of a table as the field has it; Misfit where a value would be another, or Arrow has no such cast.

    Args:
        column: A chunked array of Arrow.
        field: Its type, and whether it may be null.
        kind: The same type as Spark has it, which may ask more of its values.
    """
    import pyarrow as pa

    if column.type.equals(field.type):
        made = column
    else:
        try:
            made = column.cast(field.type)
            made.validate()  # of views of lists Arrow makes what it can't read itself
        except (pa.ArrowException, ValueError, TypeError) as error:
            raise Misfit(0, "", str(error).strip().splitlines()[0]) from error
    if made.null_count and not field.nullable:
        raise Misfit(0, "", "None, in a field that is required")
    if made is not column:
        chunks = zip(filter(len, column.chunks), filter(len, made.chunks), strict=True)  # an empty one may be gone
        for given, became in chunks:
            _same(given, became, "")
    if _asks_more(kind):
        for chunk in made.chunks:
            _kept(chunk.drop_null(), kind, "")
    return made


def _asks_more(kind: DataType) -> bool:
    """Whether there are values of the type in Arrow that are none in Spark."""
    from pyspark.sql import types

    if isinstance(kind, types.UserDefinedType):
        return _asks_more(kind.sqlType())
    if isinstance(kind, types.ArrayType):
        return not kind.containsNull or _asks_more(kind.elementType)
    if isinstance(kind, types.StructType):
        return any(not field.nullable or _asks_more(field.dataType) for field in kind)
    if isinstance(kind, types.DayTimeIntervalType):
        return grain_of(kind) > datetime.timedelta.resolution
    return isinstance(kind, types.MapType | types.TimeType)


def _kept(column: Any, kind: DataType, path: str) -> None:
    """Misfit where an array, which has no nulls, has a value that Spark does not keep."""
    from pyspark.sql import types

    if isinstance(kind, types.UserDefinedType):
        _kept(column, kind.sqlType(), path)
    elif isinstance(kind, types.ArrayType):
        _kept_inside(column.flatten(), kind.elementType, f"{path}[]", nullable=kind.containsNull)
    elif isinstance(kind, types.MapType):
        keys = _part(column, column.keys)
        _kept_inside(keys, kind.keyType, path, nullable=False)
        _no_double(column.offsets, keys, path)
        items = _part(column, column.items)
        _kept_inside(items, kind.valueType, f"{path}[]", nullable=kind.valueContainsNull)
    elif isinstance(kind, types.StructType):
        for place, field in enumerate(kind):
            _kept_inside(column.field(place), field.dataType, f"{path}.{field.name}", nullable=field.nullable)
    elif isinstance(kind, types.DayTimeIntervalType | types.TimeType):
        _whole(column, kind, path)


def _kept_inside(column: Any, kind: DataType, path: str, *, nullable: bool) -> None:
    import pyarrow as pa

    if column.null_count and not nullable and not pa.types.is_null(column.type):
        raise Misfit(0, path, "None, in a field that is required")
    if _asks_more(kind):
        _kept(column.drop_null(), kind, path)


def _no_double(offsets: Any, keys: Any, path: str) -> None:
    import pyarrow as pa
    import pyarrow.compute as pc

    bounds = [at - offsets[0].as_py() for at in offsets.to_pylist()] if len(keys) else []
    counts = [last - first for first, last in pairwise(bounds)]
    if max(counts, default=0) < 2:
        return
    if pa.types.is_floating(keys.type):
        keys = pc.add(keys, 0.0)  # -0.0 is 0.0
    rows = pa.array([place for place, count in enumerate(counts) for _ in range(count)])
    try:
        table = pa.table({"row": rows, "key": keys})
        if table.group_by(["row", "key"]).aggregate([]).num_rows == len(keys):
            return
    except pa.ArrowNotImplementedError:
        pass  # of nested keys
    if found := doubled(bounds, keys):
        raise Misfit(0, path, f"a key: {_shown(keys[found[1]])} {DOUBLED}")


def _whole(column: Any, kind: DataType, path: str) -> None:
    import pyarrow as pa
    import pyarrow.compute as pc

    unit = grain_of(kind) // datetime.timedelta.resolution
    if column.type.unit == "ns":
        unit *= 1000
    numbers = column.cast(pa.int64())
    whole: Any = pc.equal(pc.multiply(pc.divide(numbers, unit), unit), numbers)
    if (at := whole.index(False).as_py()) >= 0:
        raise Misfit(0, path, f"{_shown(column[at])}: {too_fine(kind)}")


def _same(given: Any, made: Any, path: str) -> None:
    """Misfit where the two arrays differ in a value."""
    import pyarrow as pa

    kinds, kind = given.type, made.type
    if kinds.equals(kind) or pa.types.is_null(kinds):
        return
    if pa.types.is_dictionary(kinds):
        _same(given.dictionary_decode(), made, path)
    elif pa.types.is_struct(kind) and pa.types.is_struct(kinds):
        _same_fields(given, made, path)
    elif pa.types.is_map(kind) and pa.types.is_map(kinds):
        _same(_part(given, given.keys), _part(made, made.keys), path)
        _same(_part(given, given.items), _part(made, made.items), f"{path}[]")
    elif pa.types.is_list(kind) and hasattr(given, "flatten"):
        _same(given.flatten(), made.flatten(), f"{path}[]")
    else:
        _same_values(given, made, path)


def _part(column: Any, child: Any) -> Any:
    """The part of a child that belongs to the column, which may be a slice."""
    offsets = column.offsets
    if not len(offsets):
        return child.slice(0, 0)
    first, last = offsets[0].as_py(), offsets[-1].as_py()
    return child.slice(first, last - first)


def _same_fields(given: Any, made: Any, path: str) -> None:
    names = [field.name for field in given.type]
    wanted = [field.name for field in made.type]
    if names != wanted and (name := twice(names) or twice(wanted)):
        raise Misfit(0, f"{path}.{name}", "two fields have that name, so a batch has to have all in the schema's order")
    for name in wanted:
        if name not in names:
            raise Misfit(0, f"{path}.{name}", "the batch has no such field")
    for name in names:
        if name not in wanted:
            raise Misfit(0, f"{path}.{name}", "is not in the schema")
    there = given.is_valid()
    for place, name in enumerate(wanted):
        at = place if names == wanted else names.index(name)
        _same(given.field(at).filter(there), made.field(place).filter(there), f"{path}.{name}")


def _same_values(given: Any, made: Any, path: str) -> None:
    import pyarrow as pa

    kinds, kind = given.type, made.type
    if pa.types.is_timestamp(kind) and (not pa.types.is_timestamp(kinds) or (kinds.tz is None) != (kind.tz is None)):
        raise Misfit(0, path, f"{kinds} is no {kind}: cast it, and say of which zone it is (assume_timezone of Arrow)")
    if pa.types.is_floating(kind) and pa.types.is_floating(kinds):
        if pa.types.is_float32(kind) and not pa.types.is_float16(kinds):
            try:
                in_range((one.as_py() for one in given), made)
            except OverflowError as error:
                raise Misfit(0, path, str(error)) from error
        return
    if pa.types.is_floating(kinds) and (pa.types.is_integer(kind) or pa.types.is_decimal(kind)):
        _no_negative_zero(given, kind, path)
    try:
        back = made.cast(kinds, safe=False)
    except pa.ArrowException:
        return  # there is no way back, so nothing to compare
    if not back.equals(given):
        for one, other, became in zip(given, back, made, strict=True):
            if one != other:
                raise Misfit(0, path, f"{_shown(one)} ({kinds}) would be {_shown(became)} ({kind})")


def _no_negative_zero(given: Any, kind: Any, path: str) -> None:
    import pyarrow as pa
    import pyarrow.compute as pc

    inverse = pc.divide(pa.scalar(1.0), given.cast(pa.float64()))
    if pc.any(pc.equal(inverse, pa.scalar(-math.inf))).as_py():
        raise Misfit(0, path, f"-0.0 ({given.type}) would be 0 ({kind})")


def _shown(scalar: Any) -> str:
    try:
        return shown(scalar.as_py())
    except (ValueError, OverflowError):  # Python has no such value
        return str(scalar.cast("string").as_py())
