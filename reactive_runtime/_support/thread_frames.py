"""Where the threads of this process are: `sys._current_frames` without its deadlock on Python 3.11."""

from __future__ import annotations

import _thread
import gc
import os
import sys
from types import FrameType
from typing import Final

__all__ = ["thread_frames"]

_COLLECTS_INSIDE: Final = sys.version_info < (3, 12)
"""On 3.11 any allocation may start a collection; from 3.12 on a collection waits for the next bytecode."""

_LOCK: Final = _thread.RLock()
"""Owns the switch of the collector between the two calls below. The handler of a signal may take it once more."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=getattr(_LOCK, "_at_fork_reinit"))  # noqa: B009 - the stubs do not have it


def thread_frames() -> dict[int, FrameType]:
    """The frame that each thread is in now, by the thread's identity.

    `sys._current_frames` holds a lock of the interpreter while it allocates the frames. On 3.11 that may start a
    collection of garbage, which takes the same lock where it frees a `threading.local`: the process stands still for
    ever (https://github.com/python/cpython/issues/106883). So the collector is off for the length of the call.
    """
    if not _COLLECTS_INSIDE:
        return sys._current_frames()
    with _LOCK:
        collects = gc.isenabled()
        gc.disable()
        try:
            return sys._current_frames()
        finally:
            if collects:
                gc.enable()
