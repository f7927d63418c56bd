"""The rules that one subscriber sees of its publisher, checked while the signals come.

`StepVerifier` and `Probe` have one of these for each subscription. What can be seen there breaks a rule for good:
nothing that comes later takes it back. Rules that accuse of what is missing are for the recorder.
"""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeGuard

from reactive_runtime import rules
from reactive_runtime._core.runtime import primitives
from reactive_runtime._spec import MAX_DEMAND
from reactive_runtime._support import shown as _texts

__all__ = [
    "NOT_AWAITED",
    "Breach",
    "SubscriptionCheck",
    "check_publisher",
    "described",
    "is_valid",
    "meeting",
    "not_awaited",
    "shown",
    "unawaited",
]

HISTORY: Final = 100
"""Signals that are kept to be shown, the last of all."""

TEXT: Final = 200
"""Characters that are shown of a value."""


NOT_AWAITED: Final = "nothing awaits it; define it with def, not async def"


class Breach(NamedTuple):
    """A rule that a publisher broke, and how."""

    rule: str
    seen: str

    def __str__(self) -> str:
        return f"rule {self.rule}: {self.seen} ({rules.RULES[self.rule]})"


def shown(value: object) -> str:
    """The value as a text, in bounds."""
    return _texts.shown(value, TEXT)


def check_publisher(where: str, publisher: object) -> None:
    """TypeError where that is no publisher: it has no `subscribe`, or is a class of publishers."""
    if isinstance(publisher, type) or not callable(getattr(publisher, "subscribe", None)):
        raise TypeError(f"{where}: a publisher is needed, not {shown(publisher)}")


def described(signal: str, value: object) -> str:
    """A signal as it is shown."""
    has_one = value is not None or signal in ("on_next", "on_error")
    return f"{signal}({shown(value)})" if has_one else signal


def is_valid(n: object) -> TypeGuard[int]:
    """Whether a request asks for something: its argument is an int, no bool, from 1 (3.9)."""
    return isinstance(n, int) and not isinstance(n, bool) and n > 0


def not_awaited(rule: str, text: str, answer: object) -> Breach | None:
    """The breach where a call of the publisher's returned a coroutine or a generator: nothing has happened."""
    wrong = unawaited(text, answer)
    return None if wrong is None else Breach(rule, wrong)


def unawaited(text: str, answer: object) -> str | None:
    """A text that says that a call returned a coroutine or a generator, which has not run; None where it did not."""
    if inspect.iscoroutine(answer):
        answer.close()
        return f"{text} returned a coroutine: {NOT_AWAITED}"
    if inspect.isgenerator(answer) or inspect.isasyncgen(answer):
        return f"{text} returned a generator: nothing iterates it; its function must not yield"
    return None


def meeting(subscriber: Any, both: primitives.Barrier) -> Callable[[Any], object]:
    """An `on_next` of `subscriber` in which two threads meet: a recorder or a probe has noted that both have begun."""
    noted = getattr(type(subscriber), "meeting_in_on_next", None)
    if noted is not None:
        inside: Callable[[Any], object] = noted(subscriber, both)
        return inside

    def on_next(element: Any) -> None:
        both.wait()
        subscriber.on_next(element)

    return on_next


class SubscriptionCheck:
    """Checks the signals and calls between a publisher and one subscriber; it finds a breach when it begins."""

    def __init__(self) -> None:
        self._lock = primitives.Lock()
        self._under_way: list[tuple[int, str]] = []  # _lock; thread and signal, in the order of beginning
        self._subscribed = False  # _lock
        self._end = ""  # _lock; the signal that was the end
        self._requested = 0  # _lock; the sum of valid demand, capped
        self._delivered = 0  # _lock
        self._signals: deque[tuple[str, Any]] = deque(maxlen=HISTORY)  # _lock
        self._count = 0  # _lock; of signals

    def request(self, n: object) -> None:
        """Demand is about to go up."""
        with self._lock:
            if is_valid(n):
                self._requested = min(self._requested + n, MAX_DEMAND)

    def begin(self, signal: str, value: object = None) -> Breach | None:
        """A signal begins: the rule that it breaks, if any; of several the one that the others follow from."""
        thread = primitives.get_ident()
        with self._lock:
            found = self._breach(signal, value, thread)
            self._under_way.append((thread, signal))
            if signal != "on_subscribe" or self._subscribed:  # the first is shown by what is not broken
                self._signals.append((signal, None if signal == "on_subscribe" else value))
                self._count += 1
            if signal == "on_subscribe":
                self._subscribed = True
            elif signal == "on_next":
                self._delivered += 1
            else:
                self._end = self._end or signal
        return None if found is None else Breach(found[0], found[1]())

    def _breach(self, signal: str, value: object, thread: int) -> tuple[str, Callable[[], str]] | None:
        """Under `_lock`: the rule, and what says how it was broken, which is called without the lock."""
        delivered, requested, end = self._delivered, self._requested, self._end
        if signal == "on_subscribe" and self._subscribed:
            return "2.12", lambda: "a second on_subscribe came"
        if signal != "on_subscribe" and not self._subscribed:
            return "1.9", lambda: f"{described(signal, value)} came before on_subscribe"
        beside = [(of, other) for of, other in self._under_way if other != "on_subscribe" or of != thread]
        if beside:
            other = beside[-1][1]
            where = "from inside it" if beside[-1][0] == thread else "on another thread"
            return "1.3", lambda: f"{described(signal, value)} began while {other} was under way, {where}"
        if end:
            return "1.7", lambda: f"{described(signal, value)} came after {end}"
        if value is None and signal != "on_complete":
            return "2.13", lambda: f"{signal}(None) came: None is never an argument"
        if signal == "on_next" and delivered >= requested:
            return "1.1", lambda: f"{described(signal, value)} came: element {delivered + 1}, of {requested} requested"
        return None

    def end(self, signal: str) -> None:
        """The signal of this thread that began last has returned."""
        with self._lock:
            at = (primitives.get_ident(), signal)
            for place in range(len(self._under_way) - 1, -1, -1):
                if self._under_way[place] == at:
                    del self._under_way[place]
                    return

    @property
    def subscribed(self) -> bool:
        """Whether `on_subscribe` has begun."""
        with self._lock:
            return self._subscribed

    @property
    def over(self) -> bool:
        """Whether the end has begun."""
        with self._lock:
            return bool(self._end)

    def history(self) -> str:
        """The signals so far, the last hundred of them, as a text."""
        with self._lock:
            signals, count = list(self._signals), self._count
        before = f"{count - len(signals):,} more, " if count > len(signals) else ""
        return f"all signals: {before}{', '.join(described(*item) for item in signals) or 'none'}"
