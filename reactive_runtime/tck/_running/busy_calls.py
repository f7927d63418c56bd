"""A call that does not return: where its thread is, whether it computes without end, and how to end it."""

from __future__ import annotations

import ctypes
import os
import threading
import time

from reactive_runtime._support.thread_frames import thread_frames

__all__ = ["Place", "raised_in", "stack_of"]

SHARE = 0.05
"""A thread that has used this share of a core since its call began computes, also on a busy machine; a thread that
waits has used nearly nothing."""

LEAST = 0.01
"""The least seconds of such a thread."""

FRAMES = 6
"""The number of calls that a stack shows, the innermost ones."""


class Place:
    """The current thread, and the seconds that it has computed until now."""

    __slots__ = ("_cpu", "_native", "thread")

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self._native = threading.get_native_id()
        self._cpu = time.thread_time(), time.process_time()

    def spins(self, seconds: float) -> bool:
        """Whether the thread has computed, and not only waited, in the last `seconds`, which it spent in one call."""
        thread, process = self._cpu
        now = _computed(self._native)
        spent = time.process_time() - process if now is None else now - thread
        return spent > max(SHARE * seconds, LEAST)


def _computed(native: int) -> float | None:
    """Seconds that a thread of this process has computed; None if the system does not report it."""
    try:
        with open(f"/proc/self/task/{native}/schedstat", encoding="ascii") as file:
            return int(file.read().split()[0]) / 1e9
    except (OSError, ValueError, IndexError):
        return None


def stack_of(thread: int, outside: str) -> list[str]:
    """The stack of a thread, a line for each call, the innermost last, without the files in the folder `outside`."""
    frame = thread_frames().get(thread)
    library = os.path.dirname(threading.__file__) + os.sep
    lines: list[str] = []
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith(outside):
            lines.append(f"{code.co_filename}:{frame.f_lineno}, in {code.co_name}")
        frame = frame.f_back
    while lines and lines[-1].startswith(library):
        del lines[-1]  # the code that starts a thread
    return lines[:FRAMES][::-1]


def raised_in(thread: int, error: type[BaseException]) -> None:
    """Raise `error` in a thread; a thread that runs C gets it when it returns to Python."""
    api = getattr(ctypes, "pythonapi", None)
    if api is not None:
        api.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(error))
