"""One recorded signal, and what the checkers know of the subscription it belongs to.

A record is written when a signal has returned; it carries the ticket and the nanosecond of its beginning and
of its end. Tickets are drawn from one dispenser for the whole run: they order all beginnings and ends of all
threads in one line, and no two are equal. Demand is counted from the *beginning* of `request` and an element
from the *beginning* of `on_next`, so that a publisher is never accused of what the clock could not see.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from enum import StrEnum
from typing import Any, Final, NamedTuple

from reactive_runtime._core.runtime.arguments import at_least
from reactive_runtime.errors import TraceError
from reactive_runtime.testing._rule_checks import RECURSION

__all__ = [
    "COLUMNS",
    "CUT",
    "LARGE",
    "LATER",
    "UNDER_WAY",
    "Record",
    "Signal",
    "SubscriptionMetadata",
    "allowed_late",
    "cut",
    "end_of",
    "fitting",
    "from_large",
    "in_order",
    "raised",
    "rank",
    "returned",
    "to_large",
    "value_as_text",
]

CUT: Final = 2**62
"""A call that had not returned where its record was cut off ends at `CUT - begin`: later than any ticket, and not
never. Of two such, that of the first to begin is the later."""

UNDER_WAY: Final = 2**61
"""Beyond all tickets: a call with such an `end`, or a later one, was under way where its record was cut off."""


class Signal(StrEnum):
    """The call that was recorded. The first four go down, the next two up; the last two frame a subscription."""

    ON_SUBSCRIBE = "on_subscribe"
    ON_NEXT = "on_next"
    ON_ERROR = "on_error"
    ON_COMPLETE = "on_complete"
    REQUEST = "request"
    CANCEL = "cancel"
    SUBSCRIBE = "subscribe"
    """`publisher.subscribe` itself: `error` is set if it raised."""
    SETTLED = "settled"
    """Written by what drives the run: nothing that could still signal this subscription is running."""


@dataclass(frozen=True, slots=True)
class SubscriptionMetadata:
    """The fields of a subscription beside its signals."""

    subscription: int
    """Unique within the run."""
    scenario: str = ""
    _: KW_ONLY
    shared_callers: bool = False
    """Many threads call `request` and `cancel` on purpose: 2.7 is not judged."""
    ascending: bool = False
    """Values are ints, of any size, and each is larger than the one before: a repeat breaks conservation, a smaller one
    the order. What is no int is not compared."""
    elements: int | None = None
    """How many elements the publisher has for this subscription, where that is known."""
    late_signals: int | None = None
    """How many signals may begin after a cancel from outside has returned, 0 to 15; None: as the judge has it."""


class Record(NamedTuple):
    """One signal of one subscription, from its beginning to its end. The fields are columns of a trace."""

    run: str
    scenario: str
    subscription: int
    shared_callers: bool
    ascending: bool
    elements: int | None
    thread: int
    signal: str
    n: int | None
    """`request`: its argument, MAX_DEMAND where it was more; None where it was no int (a bool is none)."""
    begin: int
    end: int | None
    """Tickets. An `end` of None: the call had not returned when the run ended; one beyond all tickets (`CUT`): it had
    not returned where the record was cut off, and whether it did later is not known."""
    begin_ns: int
    end_ns: int | None
    value: int | None
    """`on_next`: the element where it is an int, of any size, else its hash (0 where it has none).
    None: it was None, or no int in an ascending subscription."""
    error: str | None
    """`on_error`: the error; any signal: what it raised to its caller."""
    depth: int | None = 0
    """How many recorded calls of its subscription, on its thread, it began inside of (3.3); None where that was not
    recorded."""
    late_signals: int | None = None
    """As in `SubscriptionMetadata`."""
    none: bool = False
    """A signal that has returned, or raised: its argument was None (2.13)."""


LATE: Final = 15
"""The most late signals that can be allowed."""


def allowed_late(where: str, late_signals: int) -> None:
    """TypeError or ValueError where it is not how many signals may be late."""
    if at_least(where, "late_signals", 0, late_signals) > LATE:
        raise ValueError(f"{where}: late_signals must be at most {LATE}, not {late_signals}")


LARGE: Final = "large_value"
"""The column of a trace that has the elements which are ints beyond 64 bits; `value` has none for them."""

COLUMNS: Final = (*Record._fields, LARGE)
"""The columns of a trace."""

_LONG: Final = 1_000
"""Bits of the largest int that messages show in decimal: to write those of more takes time, or is refused."""

_SHOWN: Final = 100
"""Characters that messages show of a larger one."""


def fitting(value: Any) -> int | None:
    """An int of 64 bits; None for a larger one, and for what is no int."""
    return value if type(value) is int and -(2**63) <= value < 2**63 else None


def to_large(value: Any) -> str | None:
    """An int beyond 64 bits, as `large_value` has it: in hexadecimal. None for what is none; a text stays as it is."""
    if type(value) is not int:
        return value if type(value) is str else None
    return None if fitting(value) is not None else hex(value)


def from_large(text: str) -> int:
    """The int that is written there.

    Args:
        text: What `to_large` gave.

    Returns:
        The int.

    Raises:
        TraceError: It is none in hexadecimal.
    """
    try:
        return int(text, 16)
    except ValueError as error:
        raise TraceError(f"is no trace: column {LARGE!r} has {text[:80]!r}, which is no int in hexadecimal") from error


def value_as_text(value: int | None) -> str:
    """A value in a message: a very large one in hexadecimal, its beginning."""
    if value is None or value.bit_length() <= _LONG:
        return str(value)
    text = hex(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


# -- the order of records ----------------------------------------------------------------------------------------

LATER: Final = 2**65
"""Beyond all tickets, also when one is subtracted."""
_KINDS: Final = frozenset(Signal)


def raised(record: Record) -> bool:
    """Whether the call raised to its caller. The error of an `on_error` is not that."""
    return record.error is not None and (record.signal != Signal.ON_ERROR or record.error.startswith("raised "))


def end_of(record: Record) -> int:
    """An end of none is later than every other; of two such, the one of the first to begin."""
    end = record.end
    return LATER - record.begin if end is None or end >= UNDER_WAY else end


def returned(record: Record) -> bool:
    return record.end is not None and record.end < UNDER_WAY


def in_order(records: Iterable[Record]) -> list[Record]:
    """The records by `begin`.

    Two of a subscription never begin at one ticket; in a trace that says so, what else they say decides, so that the
    verdict does not depend on the order in which they were found.
    """
    return sorted(records, key=rank)


def rank(record: Record) -> tuple[object, ...]:
    """The place of a record in the order of its subscription."""
    counts = (None if item is None else max(item, 0) for item in (record.elements, record.late_signals))
    return (
        record.begin,
        end_of(record),
        record.end is None,
        record.signal if record.signal in _KINDS else "",
        raised(record),
        record.thread,
        max(record.n or 0, 0),
        *((number is not None, number or 0) for number in (record.value, *counts, _ns(record))),
        (record.depth or 0) > RECURSION,
        record.shared_callers,
        record.ascending,
        record.none,
        record.scenario,
    )


def _ns(record: Record) -> int | None:
    """The moment that counts: a cancel has an effect when it has returned, other signals when they begin."""
    return record.end_ns if record.signal == Signal.CANCEL else record.begin_ns


def cut(records: Iterable[Record], upto: int) -> list[Record]:
    """The trace as it was at ticket `upto`, of a run that is known no further.

    What began later is not there. A call that had not returned by then is under way: its end is later than every
    ticket, what it raised is not known, and it is not accused of never returning (3.2, 3.7), not even where the trace
    has no end of it. Rules that accuse of what is missing (1.2, 1.4, 1.5, 2.5, 3.8, 3.9, 3.17) do so at a `settled`,
    and so only where that is there.
    """
    return [_as_of(record, upto) for record in records if record.begin <= upto]


def _as_of(record: Record, upto: int) -> Record:
    if record.end is not None and record.end <= min(upto, UNDER_WAY - 1):
        return record
    return record._replace(end=CUT, end_ns=None, error=None if raised(record) else record.error)
