"""Measure what a cancel leaves behind under load: in one of each eight rounds all subscribers cancel in its middle.

From the return of the last `cancel`: how long until nothing of the subscriptions is queued or runs on any pool, until
every iterator that was opened is closed (of scenarios that open theirs with `Context.opened`), and whether each
subscriber can then be collected, while the publisher lives on (3.13).
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from reactive_runtime._core.runtime import primitives

__all__ = ["EVERY", "PATIENCE", "CancellationMetrics", "Opened", "collected", "kept_young"]

T = TypeVar("T")

EVERY: Final = 8
"""Of so many rounds of a scenario in succession, the subscribers of one leave in its middle: it is drawn which."""


@dataclass
class CancellationMetrics:
    """The measurements of one scenario, in seconds from the return of the last cancel."""

    idle: list[float] = field(default_factory=list)
    closed: list[float] = field(default_factory=list)
    subscribers: int = 0
    kept: int = 0
    """Subscribers that could not be collected."""

    def facts(self) -> dict[str, Any]:
        """As the metadata of a run have it: milliseconds, median and maximum."""

        def of(seconds: list[float]) -> dict[str, float] | None:
            ordered = sorted(seconds)
            if not ordered:
                return None
            return {"p50": round(1e3 * ordered[len(ordered) // 2], 3), "max": round(1e3 * ordered[-1], 3)}

        return {
            "rounds": len(self.idle),
            "idle_ms": of(self.idle),
            "closed_ms": of(self.closed),
            "subscribers": self.subscribers,
            "kept": self.kept,
        }


class Opened:
    """Counts the iterators that are open."""

    def __init__(self) -> None:
        self._changed = primitives.Condition()
        self._open = 0  # _changed
        self.ever: bool = False  # written before the first is opened

    def counted(self, iterable: Callable[[], Iterable[T]]) -> Callable[[], Iterator[T]]:
        """A function like `iterable`, each iterator of which counts while it is open."""
        self.ever = True

        def opened() -> Iterator[T]:
            with self._changed:
                self._open += 1
            try:
                yield from iterable()
            finally:
                with self._changed:
                    self._open -= 1
                    self._changed.notify_all()

        return opened

    def wait_until_closed(self, seconds: float) -> bool:
        """Until none is open; whether that came about."""
        with self._changed:
            return self._changed.wait_for(lambda: self._open == 0, seconds)


PATIENCE: Final = 10.0
"""Seconds that a thread is given which is not the scenario's: that of the event loop may be about to end."""


@contextmanager
def kept_young() -> Iterator[None]:
    """Keep all objects that the block makes in the youngest generation, where one collection finds them."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def collected(subscribers: list[weakref.ref[Any]]) -> int:
    """How many of them can't be collected. Only the publisher may have them by now.

    Those that were made under `kept_young` are found by a look at what is young. A look at all that the process has
    costs as much as a round, and is for those that it does not find.
    """
    gc.collect(0)
    if not any(subscriber() is not None for subscriber in subscribers):
        return 0
    patience = primitives.monotonic() + PATIENCE
    while True:
        gc.collect()
        kept = sum(subscriber() is not None for subscriber in subscribers)
        if not kept or primitives.monotonic() > patience:
            return kept
        primitives.Event().wait(0.001)  # the interpreter is needed elsewhere, and with a long switch interval not given
