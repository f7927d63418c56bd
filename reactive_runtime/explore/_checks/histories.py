"""Histories of concurrent operations, and whether a model that runs one at a time explains them.

A history says of each operation which thread made it, when it was called, when it returned, and what came of it. It is
explained by an order of all its operations in which the model answers what was seen, if that order keeps what the
consistency asks for:

linearizable               an operation that returned before another was called comes first (Herlihy and Wing, 1990)
sequentially consistent    each thread's own operations keep their order (Lamport, 1979)
quiescent                  operations keep their order where none was running in between (Aspnes and others, 1994)

The search is that of Wing and Gong (1993): it takes an operation that nothing has to precede, lets the model do it, and
goes on as long as the answers agree; a set of operations with a state of the model that led nowhere is not entered
again (Lowe, 2017).
"""

from __future__ import annotations

import copy
import copyreg
import pickle
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from reactive_runtime._support.shown import shown

__all__ = ["CONSISTENCIES", "Consistency", "Entry", "Explanation", "Invocation", "Outcome", "drawn", "explanation"]

Consistency = Literal["linearizable", "sequentially consistent", "quiescent"]

CONSISTENCIES: Final[tuple[Consistency, ...]] = get_args(Consistency)


@dataclass(frozen=True)
class Invocation:
    """One call of an operation.

    Args:
        name: The method's name, on what is checked and on the model; or how the call is shown.
        arguments: Its arguments.
        call: Called with the object, then the arguments, in place of the method. None: the method is called.
    """

    name: str
    arguments: tuple[Any, ...] = ()
    call: Callable[..., Any] | None = None

    def on(self, item: Any) -> Any:
        """Make the call on an object.

        Args:
            item: What is checked, or the model.

        Returns:
            What the call returns.
        """
        if self.call is not None:
            return self.call(item, *self.arguments)
        return getattr(item, self.name)(*self.arguments)

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(map(shown, self.arguments))})"


@dataclass(frozen=True, eq=False, slots=True)
class Outcome:
    """What came of a call: a value, or an exception."""

    value: Any = None
    error: Exception | None = None

    @classmethod
    def of(cls, invocation: Invocation, item: Any) -> Outcome:
        """Make the call, and keep what comes of it."""
        try:
            return cls(_kept(invocation.on(item)))
        except Exception as error:
            return cls(error=error)

    def same_as(self, other: Outcome) -> bool:
        """Whether both are equal values, or exceptions of one class."""
        if self.error is not None or other.error is not None:
            return type(self.error) is type(other.error)
        one, two = self.value, other.value
        return bool(one is two or one == two or (one != one and two != two))

    def __str__(self) -> str:
        if self.error is None:
            return shown(self.value)
        text = shown(self.error.args[0]) if len(self.error.args) == 1 else ""
        return f"raises {type(self.error).__name__}{f'({text})' if text else ''}"


def _kept(value: Any) -> Any:
    """The value as it is now: a container that an operation returned may be changed by the next."""
    return copy.copy(value) if isinstance(value, list | dict | set | deque | bytearray) else value


@dataclass(frozen=True, eq=False, slots=True)
class Entry:
    """An operation of a history."""

    thread: str
    invocation: Invocation
    called: int
    """The number of the event, among all calls and returns."""
    returned: int
    outcome: Outcome

    def __str__(self) -> str:
        return f"{self.invocation!r} → {self.outcome}"


@dataclass(frozen=True, slots=True)
class Explanation:
    """The longest order that the model agrees with, and why it goes no further."""

    order: list[Entry]
    complete: bool
    """Whether all operations are in it: then the history is explained."""
    refused: Entry | None = None
    """The operation that could come next, where the model answers something else."""
    instead: Outcome | None = None
    """What the model answers."""


def explanation(history: Sequence[Entry], model: Callable[[], Any], consistency: Consistency) -> Explanation:
    """Look for an order that explains the history.

    Args:
        history: The operations, all of which have returned.
        model: Makes the model in its first state. It answers each operation as one thread alone would see it.
        consistency: What the order has to keep.

    Returns:
        An order of all operations, or the longest that was found.
    """
    entries = sorted(history, key=lambda entry: entry.returned)
    before = _predecessors(entries, consistency)
    everything = (1 << len(entries)) - 1
    dead: set[tuple[int, bytes]] = set()
    best = Explanation([], complete=not entries)

    def at(order: Sequence[int]) -> Any:
        item = model()
        for number in order:
            Outcome.of(entries[number].invocation, item)
        return item

    def search(order: list[int], done: int, item: Any) -> bool:
        nonlocal best
        if done == everything:
            best = Explanation([entries[number] for number in order], complete=True)
            return True
        key = _state_of(item)
        if key is not None and (done, key) in dead:
            return False
        for number, entry in enumerate(entries):
            if done >> number & 1 or before[number] & ~done:
                continue
            item = at(order) if item is None else item
            outcome = Outcome.of(entry.invocation, item)
            if entry.outcome.same_as(outcome):
                order.append(number)
                if search(order, done | 1 << number, item):
                    return True
                order.pop()
            elif best.refused is None or len(order) > len(best.order):
                best = Explanation([entries[other] for other in order], False, entry, outcome)
            item = None  # the call has changed it
        if key is not None:
            dead.add((done, key))
        return False

    search([], 0, model())
    return best


def _predecessors(entries: Sequence[Entry], consistency: Consistency) -> list[int]:
    """For each operation those that have to come first, as a set of bits."""
    if consistency == "linearizable":
        return [sum(1 << n for n, other in enumerate(entries) if other.returned < entry.called) for entry in entries]
    if consistency == "sequentially consistent":
        return [
            sum(1 << n for n, o in enumerate(entries) if o.thread == entry.thread and o.returned < entry.called)
            for entry in entries
        ]
    period: dict[int, int] = {}  # the number of the busy period that an operation is in, by when it was called
    number = latest = -1
    for entry in sorted(entries, key=lambda item: item.called):
        number += entry.called > latest
        latest = max(latest, entry.returned)
        period[entry.called] = number
    return [
        sum(1 << n for n, other in enumerate(entries) if period[other.called] < period[entry.called])
        for entry in entries
    ]


def _state_of(item: Any) -> bytes | None:
    """The state of the model, to tell it from others; None where it can't be written down."""
    try:
        made, arguments, *rest = item.__reduce_ex__(pickle.HIGHEST_PROTOCOL)
        # The class itself is left out: pickle knows only those that a module has under their name.
        values = arguments[1:] if made is copyreg.__newobj__ else arguments  # type: ignore[attr-defined]
        state, elements, items = (*rest, None, None, None)[:3]
        return pickle.dumps((values, state, list(elements or ()), list(items or ())))
    except Exception:
        return None


def drawn(history: Sequence[Entry]) -> str:
    """The history as text: an operation a line, time to the right."""
    if not history:
        return ""
    entries = sorted(history, key=lambda entry: entry.called)
    moments = sorted({moment for entry in entries for moment in (entry.called, entry.returned)})
    column = {moment: 3 * n for n, moment in enumerate(moments)}
    names = max(len(entry.thread) for entry in entries)
    calls = max(len(str(entry)) for entry in entries)
    return "\n".join(
        f"{entry.thread:{names}}  {entry!s:{calls}}  "
        + " " * column[entry.called]
        + f"├{'─' * (column[entry.returned] - column[entry.called] - 1)}┤"
        for entry in entries
    )
