"""Tables that are there, whose columns have other types than the flow: Spark casts the values, and changes some.

It rounds a decimal to fewer places, and drops the fraction of a double that becomes an int, the hour of a timestamp
that becomes a date, and the seconds of an interval that becomes one of days. With a `storeAssignmentPolicy` of LEGACY
it makes another number, or null, of one that is out of range. A value that Arrow casts, and casts back to itself, is
kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from reactive_runtime.spark._write.arrow_types import arrow_type
from reactive_runtime.spark._write.casts import cast
from reactive_runtime.spark._write.values import Misfit

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

__all__ = ["Changed", "change_of", "columns_for"]

Changed = Callable[[Any], bool]
"""Whether an array of Arrow has a value that would be another in the table."""


def columns_for(schema: StructType, table: StructType, *, by_position: bool) -> dict[str, DataType]:
    """The type of the table's column for each field of a flow that has one, by the name of the field.

    They are in the order of the table.

    Args:
        schema: That of the flow.
        table: That of the table.
        by_position: Whether the sink writes to the columns of the table by their position, and not by their names.
    """
    if by_position:
        return {field.name: column.dataType for field, column in zip(schema, table, strict=False)}
    names = {field.name.lower(): field.name for field in schema}
    return {names[column.name.lower()]: column.dataType for column in table if column.name.lower() in names}


def change_of(kind: DataType, column: DataType, zone: str) -> Changed | None:
    """Finds the values of a type that a column would change; None where it keeps them all.

    Args:
        kind: The type of the values.
        column: The type of the table's column.
        zone: That of the session, in which Spark takes the day of a timestamp.
    """
    from pyspark.sql import types

    if kind == column or isinstance(kind, types.NullType):
        return None
    if isinstance(kind, types.ArrayType) and isinstance(column, types.ArrayType):
        return _inside(change_of(kind.elementType, column.elementType, zone), lambda array: array.flatten())
    if isinstance(kind, types.MapType) and isinstance(column, types.MapType):
        of_keys = _inside(change_of(kind.keyType, column.keyType, zone), lambda array: array.keys)
        return _either(of_keys, _inside(change_of(kind.valueType, column.valueType, zone), lambda array: array.items))
    if isinstance(kind, types.StructType) and isinstance(column, types.StructType):
        return _in_struct(kind, column, zone)
    if isinstance(kind, types.TimestampType | types.TimestampNTZType) and isinstance(column, types.DateType):
        return lambda array: _has_hours(array, zone)
    compared = types.NumericType, types.DayTimeIntervalType, types.TimeType
    if not isinstance(kind, compared) or not isinstance(column, compared) or _is_wider(kind, column):
        return None
    return lambda array: _is_changed(array, column)


def _inside(inner: Changed | None, child: Callable[[Any], Any]) -> Changed | None:
    return None if inner is None else lambda array: inner(child(array.filter(array.is_valid())))


def _either(one: Changed | None, other: Changed | None) -> Changed | None:
    if one is None or other is None:
        return one or other
    return lambda array: one(array) or other(array)


def _in_struct(kind: StructType, column: StructType, zone: str) -> Changed | None:
    by_name = {name.lower() for name in kind.names} == {name.lower() for name in column.names}
    columns = columns_for(kind, column, by_position=not by_name)
    found: Changed | None = None
    for place, field in enumerate(kind):
        if field.name in columns:
            inner = change_of(field.dataType, columns[field.name], zone)
            found = _either(found, _inside(inner, lambda array, place=place: array.field(place)))  # type: ignore[misc]
    return found


def _is_wider(kind: DataType, column: DataType) -> bool:
    """Whether a column of numbers has room for all values of another type of numbers."""
    from pyspark.sql import types

    if isinstance(column, types.DecimalType):
        whole = column.precision - column.scale
        if isinstance(kind, types.DecimalType):
            return kind.scale <= column.scale and kind.precision - kind.scale <= whole
        return whole >= _DIGITS.get(type(kind).__name__, 99)
    sizes = [_DIGITS.get(type(each).__name__, 99) for each in (kind, column)]
    return sizes[0] <= sizes[1] < 99 or (isinstance(kind, types.FloatType) and isinstance(column, types.DoubleType))


_DIGITS: Final = {"ByteType": 3, "ShortType": 5, "IntegerType": 10, "LongType": 19}
"""How many digits a whole number of a type has at the most."""


def _is_changed(array: Any, column: DataType) -> bool:
    """Whether Arrow can't cast one of the values and back."""
    import pyarrow as pa
    from pyspark.sql import types

    made = arrow_type(column)
    try:
        if isinstance(column, types.DecimalType) and pa.types.is_integer(array.type):
            array.cast(pa.string()).cast(made)  # of a number Arrow wants room for all of its type
        else:
            cast(pa.chunked_array([array]), pa.field("", made), column)
    except (Misfit, pa.ArrowInvalid):
        return True
    return False


def _has_hours(array: Any, zone: str) -> bool:
    """Whether a time is not at the beginning of a day."""
    import pyarrow as pa
    import pyarrow.compute as pc

    compute: Any = pc
    try:
        local = array if array.type.tz is None else compute.local_timestamp(array.cast(pa.timestamp("us", zone)))
    except pa.ArrowException:  # it does not know the zone
        return True
    return compute.any(compute.not_equal(local.cast(pa.date32(), safe=False).cast(local.type), local)).as_py() is True
