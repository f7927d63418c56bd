"""What a collection of garbage ends is ended on a thread of its own.

The problem: a collection comes at any instruction, on whatever thread is at work: while that has a lock of a drain, or
is inside of `submit` of a pool, which has a lock too. A loop over a flow that was left in a cycle of references is
closed there and then. To close it cancels the flow, which takes locks and submits tasks; where it is one of those, the
thread waits for itself for ever, and with it all who need the pool.

The answer: each thread knows whether a collection runs on it, and hands such work to a thread that has no lock.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

from reactive_runtime._core import primitives

__all__ = ["outside"]


class ThisThread(primitives.ThreadLocal):
    """What each thread knows of itself."""

    collects: bool = False
    """Whether a collection of garbage runs on it."""


here = ThisThread()


def _collects(phase: str, info: dict[str, Any], here: ThisThread = here) -> None:
    # Nothing global: at the end of the interpreter, modules are empty.
    here.collects = phase == "start"


gc.callbacks.append(_collects)


def outside(call: Callable[[], object]) -> None:
    """Call, but not inside of a collection: then on a thread of its own, soon."""
    if here.collects:
        try:
            primitives.begin_thread(call, ())
        except RuntimeError:  # the interpreter ends, and begins no thread
            call()
    else:
        call()
