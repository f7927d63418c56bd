"""Values that a column can't hold whole, and that pyarrow would change without an error.

The problem: with a schema, pyarrow writes 1.5 into a column of integers as 1, a time with microseconds into a column of
seconds without them, a time of another zone into a column without zones as one of UTC, a float that is too large as
infinity, and a mapping without the keys that a struct has not. The schema is the user's, or that of the first rows.

The answer: before a batch is made, look at the values of the columns whose type may lose something. Rounding to the
nearest float of a narrower type is no loss: it is what such a column is for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import datetime, time, timedelta
from typing import Any, Final, TypeAlias

from pyarrow import types

__all__ = ["Loses", "loses"]

Loses: TypeAlias = Callable[[Any], bool]
"""Whether a value would be changed."""

LARGEST: Final = {16: 65504.0, 32: 3.4028235677973366e38}
"""By the bits of a float: above it, a value becomes infinity."""

STEPS: Final = {"s": 1_000_000, "ms": 1_000}
"""Microseconds of one unit, of the units that are coarser than a microsecond."""


def loses(kind: Any) -> Loses | None:
    """Says of the values for a column of this type whether they would be changed. None: none of them."""
    if types.is_dictionary(kind):
        return loses(kind.value_type)
    if types.is_integer(kind):
        return _fraction
    if types.is_floating(kind):
        return _too_large(LARGEST[kind.bit_width]) if kind.bit_width in LARGEST else None
    if types.is_date(kind):
        return _time_of_day
    if types.is_timestamp(kind) or types.is_time(kind) or types.is_duration(kind):
        finer = _finer_than(STEPS[kind.unit]) if kind.unit in STEPS else None
        return finer if types.is_duration(kind) or getattr(kind, "tz", None) else _zone_or(finer)
    return _of_parts(kind)


def _of_parts(kind: Any) -> Loses | None:
    if types.is_struct(kind):
        fields: dict[str, Any] = {field.name: field.type for field in kind}
        inner = {name: found for name, of in fields.items() if (found := loses(of)) is not None}
        return lambda value: (
            isinstance(value, Mapping)
            and (
                any(name not in fields for name in value) or any(part(value.get(name)) for name, part in inner.items())
            )
        )
    if types.is_map(kind):
        key, item = loses(kind.key_type), loses(kind.item_type)
        if key is None and item is None:
            return None
        return lambda value: any(
            (key is not None and key(name)) or (item is not None and item(part)) for name, part in _pairs(value)
        )
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        each = loses(kind.value_type)
        return None if each is None else lambda value: value is not None and any(map(each, value))
    return None


def _pairs(value: Any) -> Any:
    return value.items() if isinstance(value, Mapping) else value or ()


def _fraction(value: Any) -> bool:
    if type(value) is int or value is None:
        return False
    try:
        return bool(value != int(value))
    except (TypeError, ValueError, OverflowError):  # no number, which pyarrow refuses
        return False


def _too_large(largest: float) -> Loses:
    def too_large(value: Any) -> bool:
        return isinstance(value, int | float) and largest < abs(value) < math.inf

    return too_large


def _time_of_day(value: Any) -> bool:
    return isinstance(value, datetime) and value.time() != time.min


def _zone_or(finer: Loses | None) -> Loses:
    """Of a column without a time zone: of a time elsewhere pyarrow keeps neither the zone nor the hour."""

    def loses_zone(value: Any) -> bool:
        elsewhere = isinstance(value, datetime | time) and bool(value.utcoffset())
        return elsewhere or (finer is not None and finer(value))

    return loses_zone


def _finer_than(step: int) -> Loses:
    def finer(value: Any) -> bool:
        if isinstance(value, datetime | time):
            return bool(value.microsecond % step)
        return isinstance(value, timedelta) and bool(value.microseconds % step)

    return finer
