"""Values of Python on their way into Spark, one at a time: which types a column takes, and what is done to each.

A value of a class derived from one of these, or of NumPy, is made one of the class itself. Nanoseconds, a zone, and all
else that a column can't keep, are a ValueError.
"""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable
from functools import partial
from operator import index
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql.types import DataType

__all__ = ["PLAIN", "grain_of", "of_python", "prepared", "taken_types", "too_fine"]


def taken_types(kind: DataType) -> tuple[type, ...]:
    """The classes that a column of a type takes, which has no other type in it."""
    from pyspark.sql import types

    known: dict[type[DataType], tuple[type, ...]] = {
        types.BooleanType: (bool,),
        types.ByteType: (int,),
        types.ShortType: (int,),
        types.IntegerType: (int,),
        types.LongType: (int,),
        types.FloatType: (float,),
        types.DoubleType: (float,),
        types.DecimalType: (decimal.Decimal,),
        types.StringType: (str,),
        types.BinaryType: (bytes, bytearray, memoryview),
        types.DateType: (datetime.date, datetime.datetime),
        types.TimeType: (datetime.time,),
        types.TimestampType: (datetime.datetime,),
        types.TimestampNTZType: (datetime.datetime,),
        types.DayTimeIntervalType: (datetime.timedelta,),
        types.VariantType: (types.VariantVal,),
        types.GeometryType: (types.Geometry,),
        types.GeographyType: (types.Geography,),
        types.NullType: (),
    }
    return known[type(kind)]


def prepared(kind: DataType) -> Callable[[list[Any]], list[Any]] | None:
    """A function that changes, or refuses, values before Arrow converts them; None where Arrow does it all."""
    from pyspark.sql import types

    each: Callable[[Any], Any]
    if isinstance(kind, types.TimestampType):
        each = _instant
    elif isinstance(kind, types.TimestampNTZType):
        each = _without_zone
    elif isinstance(kind, types.TimeType):
        each = partial(_time_of_day, grain_of(kind), too_fine(kind))
    elif isinstance(kind, types.DateType):
        each = _day
    elif isinstance(kind, types.DayTimeIntervalType):
        each = partial(_microseconds, grain_of(kind), too_fine(kind))
    elif isinstance(kind, types.DecimalType):
        each = _finite
    elif isinstance(kind, types.GeometryType | types.GeographyType):
        each = partial(_place, kind)
    elif isinstance(kind, types.VariantType):
        each = partial(_internal, kind)
    else:
        return None
    return lambda values: [None if value is None else each(value) for value in values]


_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)

_MICROSECOND: Final = datetime.timedelta(microseconds=1)

_LAST_FIELDS: Final[dict[int | None, datetime.timedelta]] = {
    0: datetime.timedelta(days=1),
    1: datetime.timedelta(hours=1),
    2: datetime.timedelta(minutes=1),
}
"""The unit of the last field of an interval, by its number in Spark; seconds have parts."""


def grain_of(kind: DataType) -> datetime.timedelta:
    """The smallest part that an interval or a time of this type keeps; a column keeps multiples of it."""
    from pyspark.sql import types

    if isinstance(kind, types.DayTimeIntervalType):
        return _LAST_FIELDS.get(kind.endField, _MICROSECOND)
    if isinstance(kind, types.TimeType):
        return _MICROSECOND * int(10 ** (6 - kind.precision))
    return _MICROSECOND


def too_fine(kind: DataType) -> str:
    """Why a value with a smaller part than `grain_of` does not fit."""
    from pyspark.sql import types

    if isinstance(kind, types.TimeType):
        return f"the column keeps {kind.precision} places of a second: take the type time, which keeps 6"
    return "the column keeps whole ones only: take the type interval day to second"


def _instant(value: datetime.datetime) -> datetime.datetime:
    """In UTC. Where it has no zone, it is of the local one."""
    if value.tzinfo is not None:
        return value.astimezone(datetime.UTC)
    try:
        seconds = value.timestamp()
        local = datetime.datetime.fromtimestamp(seconds)
    except (ValueError, OverflowError):  # Python looks a day further, and the first and the last have no neighbour
        inwards = datetime.timedelta(7 if value.year == datetime.MINYEAR else -7)
        offset = (value + inwards).astimezone().utcoffset() or datetime.timedelta()
        return (value - offset).replace(tzinfo=datetime.UTC)
    # Else the clock was put forward over it, by a day in Samoa once, or what is left of a second was rounded up.
    if (local.minute, local.hour, local.day) != (value.minute, value.hour, value.day):
        back = value.astimezone(datetime.UTC).astimezone()
        if back.replace(tzinfo=None) != value:
            raise ValueError("the local clock leaves that time out: give it with its zone")
    # Whole seconds: a float has no room for microseconds in all years.
    return _EPOCH + datetime.timedelta(0, round(seconds - value.microsecond / 1e6), value.microsecond)


def _without_zone(value: Any) -> Any:
    if value.tzinfo is not None:
        raise ValueError("the column keeps no zone: call .replace(tzinfo=None), or take the type timestamp")
    return value


def _time_of_day(grain: datetime.timedelta, why: str, value: datetime.time) -> datetime.time:
    if value.microsecond % (grain // _MICROSECOND):
        raise ValueError(why)
    return _without_zone(value)  # type: ignore[no-any-return]


def _day(value: datetime.date) -> datetime.date:
    if not isinstance(value, datetime.datetime):
        return value
    if value.time() != datetime.time() or value.tzinfo is not None:
        raise ValueError("the column keeps neither its time nor its zone: call .date(), or take the type timestamp")
    return value.date()


def _microseconds(grain: datetime.timedelta, why: str, value: datetime.timedelta) -> int:
    """The number that Arrow keeps: Arrow refuses the smallest `timedelta` that 64 bits can hold."""
    if grain != _MICROSECOND and value % grain:
        raise ValueError(why)
    count = value // _MICROSECOND
    if not -(2**63) <= count < 2**63:
        raise OverflowError("it is too large for 64 bits of microseconds")
    return count


def _finite(value: decimal.Decimal) -> decimal.Decimal:
    """Arrow has neither NaN nor infinity among its decimals, and would make a null of the first."""
    if not value.is_finite():
        raise ValueError("Spark's decimals have neither NaN nor infinity: give None, or take the type double")
    return value


def _place(kind: Any, value: Any) -> dict[str, Any]:
    made = _internal(kind, value)
    if kind.srid not in (made["srid"], kind.MIXED_SRID):
        raise ValueError(f"its SRID is {made['srid']}, and that of the column {kind.srid}")
    return made


def _internal(kind: Any, value: Any) -> dict[str, Any]:
    return {name: _bytes(part) for name, part in kind.toInternal(value).items()}


def _bytes(part: Any) -> Any:
    return bytes(part) if isinstance(part, bytearray | memoryview) else part


def _datetime(value: datetime.datetime) -> datetime.datetime:
    _no_nanoseconds(value, "nanosecond")
    return datetime.datetime(
        *(value.year, value.month, value.day, value.hour, value.minute, value.second, value.microsecond),
        tzinfo=value.tzinfo,
        fold=value.fold,
    )


def _date(value: datetime.date) -> datetime.date:
    if isinstance(value, datetime.datetime):
        return _datetime(value)
    return datetime.date(value.year, value.month, value.day)


def _time(value: datetime.time) -> datetime.time:
    parts = (value.hour, value.minute, value.second, value.microsecond)
    return datetime.time(*parts, tzinfo=value.tzinfo, fold=value.fold)


def _timedelta(value: datetime.timedelta) -> datetime.timedelta:
    _no_nanoseconds(value, "nanoseconds")
    return datetime.timedelta(value.days, value.seconds, value.microseconds)


def _no_nanoseconds(value: Any, name: str) -> None:
    """Those of pandas have them, beside what they have of Python's classes."""
    if value != value:
        raise ValueError("it is no time: give None")
    if getattr(value, name, 0):
        raise ValueError("Spark keeps microseconds, and it has nanoseconds: call .floor('us') or .round('us')")


def _view(value: memoryview) -> bytes:
    if value.itemsize != 1:
        raise ValueError("its items are not bytes: call .tobytes()")
    return value.tobytes()


PLAIN: Final[dict[type, Callable[[Any], Any]]] = {
    int: index,
    float: float.__pos__,
    decimal.Decimal: decimal.Decimal,
    str: lambda value: str.__getitem__(value, slice(None)),
    bytes: lambda value: bytes.__getitem__(value, slice(None)),
    bytearray: bytes,
    memoryview: _view,
    datetime.datetime: _datetime,
    datetime.date: _date,
    datetime.time: _time,
    datetime.timedelta: _timedelta,
}
"""The value of a class derived from each, as one of the class itself."""


_FINER: Final = {"ns": 10**3, "ps": 10**6, "fs": 10**9, "as": 10**12}
"""How many of a unit of NumPy are a microsecond."""


def of_python(value: Any) -> Any:
    """A value of NumPy as one of Python's."""
    if type(value).__module__ != "numpy" or not hasattr(value, "dtype"):
        return value
    if value.dtype.kind not in "mM":
        return value.tolist()
    if value.ndim:
        return list(value)  # `tolist` makes None of what is no time, and a number of nanoseconds
    value = value[()]
    if value != value:
        raise ValueError("it is no time: give None")
    made, (unit, many) = value.item(), _numpy().datetime_data(value.dtype)
    if not isinstance(made, int):
        return made
    if unit not in _FINER:
        return value  # years and months, numbers without a unit, what is beyond the years of Python
    microseconds, rest = divmod(made * many, _FINER[unit])
    if rest:
        raise ValueError("Spark keeps microseconds: call .astype('datetime64[us]'), or of timedelta64 likewise")
    lasts = datetime.timedelta(microseconds=microseconds)
    return lasts if value.dtype.kind == "m" else _EPOCH.replace(tzinfo=None) + lasts


def _numpy() -> Any:
    import numpy

    return numpy
