"""Settings of Spark with which it writes other values into Parquet than it was given, without a word.

`TIMESTAMP_MILLIS` drops microseconds; the `LEGACY` calendar has no days from 1582-10-05 to 1582-10-14, and writes later
ones.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from reactive_runtime.spark._write.values import Misfit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Check", "kept_in_parquet"]

Check = Callable[[Any], None]
"""Is given a column of Arrow; Misfit where Spark would write another value."""

_TYPE: Final = "spark.sql.parquet.outputTimestampType"
_CALENDAR: Final = "spark.sql.parquet.datetimeRebaseModeInWrite"
_CALENDAR_96: Final = "spark.sql.parquet.int96RebaseModeInWrite"

_OTHERS: Final = ("orc", "json", "csv", "text", "xml", "avro", "jdbc", "kafka", "noop", "console")
"""Formats whose files are not Parquet."""

_FIRST, _LAST = datetime.date(1582, 10, 5), datetime.date(1582, 10, 14)
_DAY: Final = datetime.timedelta(1)  # of which zone Spark takes the day of a timestamp is for another setting to say


def kept_in_parquet(spark: SparkSession, format: str | None) -> list[Check]:
    """The checks of each column before it is written.

    Args:
        spark: The session that writes.
        format: Of the sink. None: that of the session.
    """
    conf = spark.conf
    if (format or conf.get("spark.sql.sources.default") or "").lower() in _OTHERS:
        return []
    checks: list[Check] = []
    as_type = (conf.get(_TYPE) or "").upper()
    if as_type == "TIMESTAMP_MILLIS":
        why = f"{_TYPE} is TIMESTAMP_MILLIS, which drops its microseconds: set TIMESTAMP_MICROS"
        checks.append(_check(_has_microseconds, why))
    calendars = [_CALENDAR, _CALENDAR_96] if as_type == "INT96" else [_CALENDAR]
    for name in calendars:
        if (conf.get(name) or "").upper() == "LEGACY":
            checks.append(_check(_is_left_out, f"{name} is LEGACY, which has no such day: set CORRECTED"))
    return checks


def _check(changes: Callable[[Any], bool], why: str) -> Check:
    def check(column: Any) -> None:
        if any(map(changes, _leaves(column))):
            place = next(at for at in range(len(column)) if any(map(changes, _leaves(column.slice(at, 1)))))
            raise Misfit(place, "", f"{column[place].as_py()}: {why}")

    return check


def _leaves(column: Any) -> Iterator[Any]:
    """The columns in a column that have no others in them, without what is null outside of them."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_struct(kind):
        there = column.filter(column.is_valid())
        for place in range(kind.num_fields):
            yield from _leaves(there.field(place))
    elif pa.types.is_map(kind):
        there = column.filter(column.is_valid())
        for child in (there.keys, there.items):
            yield from _leaves(child)
    elif pa.types.is_list(kind):
        yield from _leaves(column.flatten())
    else:
        yield column


def _has_microseconds(leaf: Any) -> bool:
    import pyarrow as pa

    if not pa.types.is_timestamp(leaf.type) or leaf.type.tz is None:
        return False
    try:
        leaf.cast(pa.timestamp("ms", leaf.type.tz))
    except pa.ArrowInvalid:
        return True
    return False


def _is_left_out(leaf: Any) -> bool:
    import pyarrow as pa
    import pyarrow.compute as pc

    first: datetime.date = _FIRST
    last: datetime.date = _LAST
    if pa.types.is_timestamp(leaf.type) and leaf.type.tz is not None:
        midnight = datetime.time(tzinfo=datetime.UTC)
        first = datetime.datetime.combine(_FIRST - _DAY, midnight)
        last = datetime.datetime.combine(_LAST + 2 * _DAY, midnight)
    elif not pa.types.is_date(leaf.type):
        return False
    compute: Any = pc
    later = compute.greater_equal(leaf, pa.scalar(first, leaf.type))
    return bool(compute.any(compute.and_(later, compute.less_equal(leaf, pa.scalar(last, leaf.type)))).as_py())
