"""A call that does not come back: where its thread is, whether it computes without end, and how to end it."""

from __future__ import annotations

import ctypes
import os
import threading
import time

from reactive_runtime._support.thread_frames import thread_frames

__all__ = ["Place", "raised_in", "stack_of"]

SHARE = 0.05
"""A thread that has had this share of a core's time since a call began computes in it, also beside others on a busy
machine; one that waits has had next to none."""

LEAST = 0.01
"""Seconds that it has had at least."""

FRAMES = 6
"""So many calls are shown of where a thread is, the innermost ones."""


class Place:
    """The thread that is at hand, and how much it had computed by now."""

    __slots__ = ("_cpu", "_native", "thread")

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self._native = threading.get_native_id()
        self._cpu = time.thread_time(), time.process_time()

    def spins(self, seconds: float) -> bool:
        """Whether the thread has computed in the last `seconds`, in which it was in one call, and not only waited."""
        thread, process = self._cpu
        now = _computed(self._native)
        spent = time.process_time() - process if now is None else now - thread
        return spent > max(SHARE * seconds, LEAST)


def _computed(native: int) -> float | None:
    """Seconds that a thread of this process has computed; None where the system does not say."""
    try:
        with open(f"/proc/self/task/{native}/schedstat", encoding="ascii") as file:
            return int(file.read().split()[0]) / 1e9
    except (OSError, ValueError, IndexError):
        return None


def stack_of(thread: int, outside: str) -> list[str]:
    """Where a thread is, a line for each call, the innermost last; none of the files in the folder `outside`."""
    frame = thread_frames().get(thread)
    library = os.path.dirname(threading.__file__) + os.sep
    lines: list[str] = []
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith(outside):
            lines.append(f"{code.co_filename}:{frame.f_lineno}, in {code.co_name}")
        frame = frame.f_back
    while lines and lines[-1].startswith(library):
        del lines[-1]  # what starts a thread
    return lines[:FRAMES][::-1]


def raised_in(thread: int, error: type[BaseException]) -> None:
    """Raise `error` in a thread that runs Python code; one in C gets it when it returns to Python."""
    api = getattr(ctypes, "pythonapi", None)
    if api is not None:
        api.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(error))
