"""Batches of Arrow that go into Spark: their columns as the schema has them, value for value.

By itself Arrow's cast changes some without a word: it drops a field that a struct has no room for, the hour of a
timestamp that becomes a date, and a zone; it makes an infinity of a double, and rounds one that becomes a decimal.
"""

from __future__ import annotations

from typing import Any

from reactive_runtime._texts import shown
from reactive_runtime.spark._values import Misfit, in_range

__all__ = ["cast"]


def cast(column: Any, field: Any) -> Any:
    """The column of a table as the field has it; Misfit where a value would be another, or Arrow has no such cast.

    Args:
        column: A chunked array of Arrow.
        field: Its type, and whether it may be null.
    """
    import pyarrow as pa

    if column.type.equals(field.type):
        made = column
    else:
        try:
            made = column.cast(field.type)
        except (pa.ArrowException, ValueError, TypeError) as error:
            raise Misfit(0, "", str(error).strip().splitlines()[0]) from error
    if made.null_count and not field.nullable:
        raise Misfit(0, "", "None, in a field that is required")
    if made is not column:
        chunks = zip(filter(len, column.chunks), filter(len, made.chunks), strict=True)  # an empty one may be gone
        for given, became in chunks:
            _same(given, became, "")
    return made


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
        _same(_part(given, given.items), _inside(_part(made, made.items), kind.item_field, path), f"{path}[]")
    elif pa.types.is_list(kind) and hasattr(given, "flatten"):
        _same(given.flatten(), _inside(made.flatten(), kind.value_field, path), f"{path}[]")
    else:
        _same_values(given, made, path)


def _part(column: Any, child: Any) -> Any:
    """The part of a child that belongs to the column, which may be a slice."""
    offsets = column.offsets
    if not len(offsets):
        return child.slice(0, 0)
    first, last = offsets[0].as_py(), offsets[-1].as_py()
    return child.slice(first, last - first)


def _inside(column: Any, field: Any, path: str) -> Any:
    if column.null_count and not field.nullable:
        raise Misfit(0, f"{path}[]", "None, in a field that is required")
    return column


def _same_fields(given: Any, made: Any, path: str) -> None:
    names = [field.name for field in given.type]
    wanted = [field.name for field in made.type]
    for name in wanted:
        if name not in names:
            raise Misfit(0, f"{path}.{name}", "the batch has no such field")
    for name in names:
        if name not in wanted:
            raise Misfit(0, f"{path}.{name}", "is not in the schema")
    there = given.is_valid()
    for name in wanted:
        _same(given.field(name).filter(there), made.field(name).filter(there), f"{path}.{name}")


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
    try:
        back = made.cast(kinds, safe=False)
    except pa.ArrowException:
        return  # there is no way back, so nothing to compare
    if not back.equals(given):
        for one, other, became in zip(given, back, made, strict=True):
            if one != other:
                raise Misfit(0, path, f"{shown(one.as_py())} ({kinds}) would be {shown(became.as_py())} ({kind})")
