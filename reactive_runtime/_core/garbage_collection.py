"""What is freed at any instruction is not closed there, where its thread may have a lock.

The problem: a collection of garbage comes at any instruction, on whatever thread is at work: while that has a lock of a
drain, or is inside of `submit` of a pool, which has a lock too. A loop over a flow that was left in a cycle of
references is closed there and then. To close it cancels the flow, which takes locks and submits tasks; where the thread
has one of these locks already, it waits for itself for ever, and with it all who need the pool.

The answer: each thread knows whether a collection runs on it, and hands such work to a thread that has no lock.

Without a GIL there is one more way: what one thread made, and another one was the last to use, is freed by the first,
at any instruction too, and nothing says so. For a loop, the frame that was interrupted is looked at there.

The end of the interpreter stops such a thread wherever it is, with the locks that it has, and the main thread, if it
needs one of them after that, waits for ever. So it is waited for, up to `GRACE` seconds.
"""

from __future__ import annotations

import atexit
import concurrent.futures._base
import concurrent.futures.thread
import gc
import os
import sys
import weakref
from collections import deque
from collections.abc import Callable
from types import FrameType
from typing import Any, Final

from reactive_runtime._core.drains import drain, drain_context
from reactive_runtime._core.failures import dropping
from reactive_runtime._core.failures.exits import GRACE
from reactive_runtime._core.fusion import subscription
from reactive_runtime._core.queues import multicaster, prefetch_queue, subscriber_buffer
from reactive_runtime._core.runtime import primitives
from reactive_runtime._core.sources import task_source

__all__ = ["inside", "outside", "released"]

_LOCKED: Final = frozenset(
    str(module.__file__)
    for module in (
        *(concurrent.futures._base, concurrent.futures.thread, sys.modules[primitives.Thread.__module__], weakref),
        *(drain, drain_context, multicaster, prefetch_queue, subscriber_buffer, subscription, task_source),
    )
)
"""The files whose code has locks of pools and of drains. They close no loop of a user's."""

_FREES: Final = frozenset({str(multicaster.__file__)})
"""Of these, those that free elements while they have a lock: what a hot source has replayed often enough."""

_has_gil: Final = primitives.has_gil()


here = primitives.ThreadLocal()
"""What each thread knows of itself: `collects`, whether a collection of garbage runs on it, once there was one."""


def _collects(phase: str, info: dict[str, Any], here: Any = here) -> None:
    # Nothing global: at the end of the interpreter, modules are empty.
    here.collects = phase == "start"


gc.callbacks.append(_collects)


def inside() -> bool:
    """Whether this thread is inside of a collection of garbage."""
    return getattr(here, "collects", False)


def _where_it_is_locked(files: frozenset[str]) -> bool:
    """Whether the code that was interrupted, by this or by others that were freed meanwhile, may have a lock."""
    frame: FrameType | None = sys._getframe(2)
    own = {__file__, sys._getframe(2).f_code.co_filename}
    while frame is not None and frame.f_code.co_filename in own:
        frame = frame.f_back
    return frame is not None and frame.f_code.co_filename in files


def outside(call: Callable[[], object]) -> None:
    """For a generator that ends: call, or, where it was freed and the thread may have a lock, on another one, soon."""
    if inside() or (not _has_gil and _where_it_is_locked(_LOCKED)):
        _apart(call)
    else:
        call()


def _apart(call: Callable[[], object]) -> None:
    ended = primitives.allocate_lock()
    ended.acquire()
    _under_way[ended] = None
    try:
        primitives.begin_thread(_to_its_end, (call, ended))
    except RuntimeError:  # the interpreter ends, or has no room for one more
        _to_its_end(call, ended)


_under_way: Final[dict[Any, None]] = {}
"""A lock for each call that is made on a thread of its own, which is released at its end. A key is written or removed
in one operation, and all are copied in one: a collection may come at any instruction, so that no lock guards them."""


def released(call: Callable[[], object]) -> None:
    """As `outside`, for elements that are freed: the calls of one collection, perhaps thousands, share a thread."""
    if inside() or _where_it_is_locked(_FREES if _has_gil else _LOCKED):
        _waiting.append(call)
        if _working.acquire(blocking=False):
            _apart(_work_off)
    else:
        call()


_waiting: Final[deque[Callable[[], object]]] = deque()
"""Calls for that thread. One is added, or taken, in one operation."""

_working: Final = primitives.allocate_lock()
"""Held from when a thread is begun for `_waiting` until it has found nothing more. No thread waits for it."""


def _work_off() -> None:
    while True:
        try:
            while _waiting:  # this thread alone takes from it
                _quietly(_waiting.popleft())
        finally:
            _working.release()
        if not (_waiting and _working.acquire(blocking=False)):
            return


def _quietly(call: Callable[[], object]) -> None:
    try:
        call()
    except BaseException as error:
        dropping.raised("what was released raised when it was closed", error)


def _to_its_end(call: Callable[[], object], ended: Any) -> None:
    try:
        call()
    finally:
        _under_way.pop(ended, None)
        ended.release()


def _begin_anew() -> None:
    _under_way.clear()
    _waiting.clear()
    if _working.locked():
        _working.release()


def _wait() -> None:
    """Until what is under way has ended: before the interpreter stops its threads."""
    until = primitives.monotonic() + GRACE
    for ended in list(_under_way):
        ended.acquire(timeout=max(0.0, until - primitives.monotonic()))


atexit.register(_wait)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)  # its threads are the parent's
