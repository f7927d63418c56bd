"""Waking the drains of many subscribers, for a source that has news for all of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from reactive_runtime._core.drains.drain_context import DrainContext
from reactive_runtime._core.failures import dropping

__all__ = ["Parked", "wake_all"]


class Parked(NamedTuple):
    """An inner subscription that waits for news; see `Pollable.notify_when_ready`."""

    drain: DrainContext
    ready: list[Any]
    """The inner subscriptions with news; the lock of the drain owns it."""
    who: Any


def wake_all(drains: Iterable[DrainContext], parked: Iterable[Parked] = (), *, ended: bool = False) -> None:
    """Wake all of them, also where one raises an exit. Without a lock. `ended`: the source has ended."""
    for drain, ready, who in parked:
        with drain.lock:
            ready.append(who)
    raised: BaseException | None = None
    for drain in drains:
        try:
            if ended:
                drain.end_came()
            else:
                drain.wake()
        except BaseException as error:
            if raised is not None:
                dropping.error_dropped("a second subscriber raised out of the same emission", raised)
            raised = error
    if raised is not None:
        raise raised
