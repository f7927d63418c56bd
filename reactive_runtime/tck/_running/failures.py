"""How a check ends that does not pass, and the words for it."""

from __future__ import annotations

import os
from types import TracebackType
from typing import TypeVar
from unittest import SkipTest

from reactive_runtime._support import shown as _texts
from reactive_runtime.rules import RULES
from reactive_runtime.tck._adapters.meanings import MEANINGS

__all__ = [
    "COROUTINE", "FACTORY", "KIT", "ConformanceError", "FactoryError", "NotVerified", "Over", "asked", "described",
    "outside", "same", "shown",
]  # fmt: skip

E = TypeVar("E", bound=BaseException)

KIT = os.path.dirname(os.path.dirname(__file__)) + os.sep
"""The folder of the kit."""

FACTORY = "factory"
"""In place of a rule: the factory failed, and not the implementation."""


class FactoryError(Exception):
    """A factory that another factory calls has failed; the text names it, and says what it did."""


class ConformanceError(AssertionError):
    """A check has failed: `rule` is the rule that was broken, `seen` how; the text has the signals in order.

    `rule` is empty if a factory failed: then there was nothing to judge.

    `observed`: the implementation broke a MUST, whatever the check is about; an optional check fails by it too.
    `missing`: a signal or a call that was due did not come, or another one came.
    """

    def __init__(self, rule: str, seen: str, signals: str, *, observed: bool = False, missing: bool = False) -> None:
        self.rule = rule
        self.seen = seen
        self.signals = signals
        self.observed = observed
        self.missing = missing
        super().__init__(f"{asked(rule)}\n  seen: {seen}\n{signals}".rstrip())


def asked(rule: str | None) -> str:
    """The head of a failure: the rule, and what it says."""
    says = RULES.get(rule or "") or MEANINGS.get(rule or "")
    return f"rule {rule}{f': {says}' if says else ''}" if rule else "there is nothing to judge"


class NotVerified(SkipTest):
    """A check does not apply, or the implementation lacks something optional; test runners show it as skipped."""


class Over(BaseException):
    """The kit raises it in a thread that signals without end after its check is over, to end the thread."""


def outside(error: E) -> E:
    """Remove the lines of the kit from the traceback of `error`: a test runner shows those of the code under test."""
    entries: list[TracebackType] = []
    entry = error.__traceback__
    while entry is not None:
        if not entry.tb_frame.f_code.co_filename.startswith(KIT):
            entries.append(entry)
        entry = entry.tb_next
    kept: TracebackType | None = None
    for item in reversed(entries):
        kept = TracebackType(kept, item.tb_frame, item.tb_lasti, item.tb_lineno)
    return error.with_traceback(kept)


def shown(value: object) -> str:
    """`value` in a few characters; never raises."""
    return _texts.shown(value, 60, BaseException)


COROUTINE = "returned a coroutine, and nothing awaits it: define it with def, not async def"


def described(error: BaseException) -> str:
    """The class and the text of `error`, at most 300 characters; never raises."""
    try:
        words = str(error)
    except BaseException as failure:
        words = f"<its words: str raised {type(failure).__name__}>"
    return _cut(f"{type(error).__name__}: {words}" if words else type(error).__name__, 300)


def same(sent: object, got: object) -> bool:
    """Whether `got` is the element that was sent, or equal to it.

    Some elements do not equal themselves: NaN, arrays of numpy, objects whose `==` raises. For these the class
    decides, since a copy of one looks like another one.
    """
    return got is sent or _equal(sent, got) or (not _equal(sent, sent) and type(got) is type(sent))


def _equal(one: object, other: object) -> bool:
    try:
        return bool(one == other)
    except Exception:
        return False


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."
