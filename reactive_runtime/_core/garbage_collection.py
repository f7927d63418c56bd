"""Defers closing when the garbage collector runs: the thread may hold a lock.

The problem: the garbage collector runs at any instruction, on whatever thread is at work. That thread may hold the lock
of a drain, or be inside `submit` of a pool, which has a lock too. A loop over a flow, left in a cycle of references, is
closed there and then. To close it cancels the flow, which takes locks and submits tasks. Where the thread holds one of
these locks already, it waits for itself for ever, and with it every thread that needs the pool.

The answer: each thread knows whether the garbage collector runs on it, and hands such calls to a thread that holds no
lock.

Without a GIL there is one more way. An object that one thread made, and another one was the last to use, is freed by
the first, also at any instruction, and Python does not report that. There the frame that was interrupted is looked at.

The end of the interpreter stops such a thread wherever it is, with the locks that it holds. The main thread, if it
needs one of them after that, waits for ever. So the end waits for such threads, up to `GRACE` seconds.
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
from reactive_runtime._core.queues import multicaster, prefetch_queue, subscriber_buffer, upstream
from reactive_runtime._core.runtime import primitives
from reactive_runtime._core.sources import task_source

__all__ = ["inside", "outside", "released"]

_LOCKED: Final = frozenset(
    str(module.__file__)
    for module in (
        *(concurrent.futures._base, concurrent.futures.thread, sys.modules[primitives.Thread.__module__], weakref),
        *(drain, drain_context, multicaster, prefetch_queue, subscriber_buffer, subscription, task_source, upstream),
    )
)
"""The files whose code holds locks of pools and of drains. They close no loop of a user's."""

_FREES: Final = frozenset({str(multicaster.__file__)})
"""Those of them that free elements while they hold a lock: a hot source frees what it has replayed often enough."""

_has_gil: Final = primitives.has_gil()


here = primitives.ThreadLocal()
"""The state of each thread: `collects`, whether the garbage collector runs on it, once it has run there."""


def _collects(phase: str, info: dict[str, Any], here: Any = here) -> None:
    # Nothing global: at the end of the interpreter, modules are empty.
    here.collects = phase == "start"


gc.callbacks.append(_collects)


def inside() -> bool:
    """Whether the garbage collector runs on this thread."""
    return getattr(here, "collects", False)


def _where_it_is_locked(files: frozenset[str]) -> bool:
    """Whether the code that was interrupted, by this call or by others that were freed meanwhile, may hold a lock."""
    frame: FrameType | None = sys._getframe(2)
    own = {__file__, sys._getframe(2).f_code.co_filename}
    while frame is not None and frame.f_code.co_filename in own:
        frame = frame.f_back
    return frame is not None and frame.f_code.co_filename in files


def outside(call: Callable[[], object]) -> None:
    """For a generator that ends: call; on another thread, soon, where it was freed and this thread may hold a lock."""
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
in one operation, and all are copied in one: the garbage collector runs at any instruction, so no lock guards them."""


def released(call: Callable[[], object]) -> None:
    """As `outside`, for elements that are freed: the calls of one collection, perhaps thousands, share a thread."""
    if inside() or _where_it_is_locked(_FREES if _has_gil else _LOCKED):
        _waiting.append(call)
        if _working.acquire(blocking=False):
            _apart(_work_off)
    else:
        call()


_waiting: Final[deque[Callable[[], object]]] = deque()
"""Calls for that thread. Each is added, or taken, in one operation."""

_working: Final = primitives.allocate_lock()
"""Held from when a thread is begun for `_waiting` until it has found nothing more. No thread waits for it."""


def _work_off() -> None:
    while True:
        try:
            while _waiting:  # this thread alone takes from it
                try:
                    _waiting.popleft()()
                except BaseException as error:
                    dropping.raised("what was released raised when it was closed", error)
        finally:
            _working.release()
        if not (_waiting and _working.acquire(blocking=False)):
            return


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
    """Wait until each call that is under way has ended: before the interpreter stops its threads."""
    until = primitives.monotonic() + GRACE
    for ended in list(_under_way):
        ended.acquire(timeout=max(0.0, until - primitives.monotonic()))


atexit.register(_wait)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)  # its threads are the parent's
