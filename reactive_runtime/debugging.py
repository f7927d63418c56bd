"""For a debugger and for tests: operators that run as they are written; and who may call what, asserted.

A chain of synchronous operators runs as one generated loop (`docs/design.md`), where a breakpoint in the source of an
operator is not hit. With fusing turned off each operator's method is called for each element. A user's functions are
called either way, and breakpoints in them are hit.

    REACTIVE_RUNTIME_FUSE=0 python -m pdb program.py       # for a whole process

    with fusing(False):                                    # for what begins to run in the block
        flow.run()

Operators need no locks, since they run as the owner of a drain. `ownership_checked` asserts that they do, for those
who write an operator.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from reactive_runtime._core.drains.combinator import InnerSubscription, ReadySet
from reactive_runtime._core.drains.drain import Drain
from reactive_runtime._core.drains.ownership import checked
from reactive_runtime._core.fusion.fuse import fusing
from reactive_runtime._core.queues.ready_queue import ReadyQueue
from reactive_runtime._core.sources.pollable import Pollable
from reactive_runtime._support.public_names import at_home

__all__ = ["fusing", "ownership_checked"]

at_home(__name__, fusing)


@contextmanager
def ownership_checked() -> Iterator[list[str]]:
    """Assert, in the block, that the core's methods are called by the threads that may call them.

    A call that breaks this raises an AssertionError, and is written into the list that the block gets: a flow may
    have turned the error into its end. Each call takes some microseconds more.

    Returns:
        A context manager, which gives the list of what was wrong.

    Thread:
        Turned on and off by one thread, while no flow runs.

    Example:
        >>> from reactive_runtime import Flow
        >>> with ownership_checked() as wrong:
        ...     Flow.range(3).concat_map(Flow.just).to_list().block()
        [0, 1, 2]
        >>> wrong
        []
    """
    with checked(_drain_of, Drain, InnerSubscription, Pollable, ReadySet) as wrong:
        yield wrong


def _drain_of(part: Any) -> Drain | None:
    """The drain that a part of a flow belongs to; None: it has none yet, or does not know."""
    if isinstance(part, Drain):
        return part
    drain = part.reader() if isinstance(part, ReadyQueue) else getattr(part, "drain", None)
    return drain if isinstance(drain, Drain) else None
