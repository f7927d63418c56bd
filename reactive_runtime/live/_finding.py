"""Finds the live drains of this process through the garbage collector, at no cost to the flows.

Each drain of a subscription, or of a `for` loop, is an object that CPython's collector tracks. A look goes through all
tracked objects in C, so no thread runs in between, and none of the objects is called: some 60 ms for a million of them.
`gc.freeze` takes objects off its list: a look misses a flow that was subscribed before such a call.
"""

from __future__ import annotations

import gc
from itertools import compress
from typing import Any, Final

from reactive_runtime._core.drains.drain_context import DrainContext
from reactive_runtime._core.fusion.subscription import PulledSubscription
from reactive_runtime._operators.sinks.loops import _Awaiting, _Waiting

__all__ = ["live_drains"]

KINDS: Final = frozenset(map(id, (PulledSubscription, _Waiting, _Awaiting)))
"""By identity: to hash a class may call code of its metaclass."""


def live_drains() -> list[DrainContext]:
    """The drains that are not over, in the order in which they were made, roughly."""
    objects = gc.get_objects()
    found: list[Any] = list(compress(objects, map(KINDS.__contains__, map(id, map(type, objects)))))
    del objects
    return [drain for drain in found if not _is_over(drain)]


def _is_over(drain: Any) -> bool:
    """Whether it has ended, or has only been allocated: its fields may be unset."""
    return bool(getattr(drain, "_over", True))
