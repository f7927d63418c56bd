"""Looks from outside at the threads of pools: which of them waits in a call that no check can be put into.

`with lock`, `lock.acquire()`, `SimpleQueue.get` and a `time.sleep` that was imported by name are calls of C. A thread
that is seen at the same call for PATIENCE seconds waits there: a lock that is free, or is soon, is not reported.
"""

from __future__ import annotations

import select
import sys
from collections.abc import Callable
from concurrent.futures import Executor
from types import FrameType
from typing import Any, Final

from reactive_runtime._core.runtime import primitives
from reactive_runtime._support.thread_frames import thread_frames
from reactive_runtime.testing._blocking.places import called, is_ours

__all__ = ["Watcher"]

PATIENCE: Final = 0.05
LOOKS: Final = 5
"""A thread has to be seen so often at one call, also where the watcher itself was late."""

PERIOD: Final = 0.005

_SLEEP: Final = primitives.sleep  # as the module had it when this was imported
_LOCKS: Final = (type(primitives.allocate_lock()), type(primitives.RLock()))


def _in_words(function: Any) -> str:
    """The name of a call that blocks. Empty: it does not."""
    owner, name = getattr(function, "__self__", None), getattr(function, "__name__", "")
    if isinstance(owner, _LOCKS) and name == "acquire":
        locked = getattr(owner, "locked", None)  # an RLock has it from Python 3.14
        return "a lock's wait" if locked is None or locked() else ""
    if isinstance(owner, primitives.SimpleQueue) and name == "get":
        return "SimpleQueue.get"
    if function is _SLEEP:
        return "time.sleep"
    if function is select.select:
        return "select.select"
    return ""


class Watcher:
    """Watches threads until it is closed, on a thread of its own, which alone uses `_seen`."""

    def __init__(
        self, watched: Callable[[], dict[int, Executor]], report: Callable[[str, Executor, FrameType], object]
    ) -> None:
        self._watched = watched
        self._report = report
        self._over = primitives.allocate_lock()  # held until `close`; no check is in its wait
        self._over.acquire()
        self._seen: dict[int, tuple[tuple[int, int], float, int]] = {}  # the call, since when, and how often
        self._thread = primitives.Thread(target=self._run, name="reactive-runtime-no-blocking", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End it."""
        self._over.release()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.acquire(timeout=PERIOD):
            frames, watched = thread_frames(), self._watched()
            for ident, executor in watched.items():
                frame = frames.get(ident)
                if frame is not None:
                    self._look(ident, executor, frame)
            frames.clear()
            frame = None

    def _look(self, ident: int, executor: Executor, frame: FrameType) -> None:
        call = id(frame), frame.f_lasti
        before = self._seen.get(ident)
        now = primitives.monotonic()
        if before is None or before[0] != call:
            self._seen[ident] = call, now, 1
            return
        looks = before[2] + 1
        self._seen[ident] = call, before[1], looks
        if looks < LOOKS or now - before[1] < PATIENCE or is_ours(frame):
            return
        what = next(filter(None, map(_in_words, called(frame))), "")
        if what:
            self._seen[ident] = call, sys.float_info.max, 0  # once for each wait
            self._report(what, executor, frame)
