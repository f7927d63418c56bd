"""The one door to threading.

The rest of the package takes from here whatever blocks, starts a thread, hands work to one or reads a clock, as
`primitives.Lock()` and never as `from ... import Lock`. So one page shows what the package asks of the machine, and a
schedule explorer can stand behind the door.
"""

from __future__ import annotations

import _thread
import itertools
import os
import queue
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from types import FrameType
from typing import Final

from reactive_runtime._support.thread_frames import thread_frames

__all__ = [
    "LONGEST_WAIT",
    "SHUT_DOWN",
    "SPINS",
    "Barrier",
    "BrokenBarrierError",
    "Condition",
    "Empty",
    "Event",
    "Future",
    "Lock",
    "RLock",
    "Semaphore",
    "SimpleQueue",
    "Thread",
    "ThreadLocal",
    "ThreadPoolExecutor",
    "allocate_lock",
    "begin_thread",
    "current_thread",
    "frame_of",
    "get_ident",
    "has_gil",
    "main_thread",
    "monotonic",
    "now_ns",
    "one_wait",
    "pause",
    "process_time",
    "running_threads",
    "sleep",
    "tickets",
]

SPINS: Final = 30
"""How often a drain on an executor gives way before it leaves."""

LONGEST_WAIT: Final = threading.TIMEOUT_MAX
"""Seconds that one wait may take, at most: `threading` refuses a longer one. Wait again after it."""

Barrier = threading.Barrier
BrokenBarrierError = threading.BrokenBarrierError
Lock = threading.Lock
RLock = threading.RLock
Condition = threading.Condition
Event = threading.Event
Semaphore = threading.Semaphore
SimpleQueue = queue.SimpleQueue
Empty = queue.Empty
SHUT_DOWN: Final[tuple[type[Exception], ...]] = tuple(filter(None, [getattr(queue, "ShutDown", None)]))
"""The error of a queue that is shut down, from Python 3.13 on."""
Thread = threading.Thread
ThreadLocal = threading.local
"""The core derives nothing from it: on 3.13 without a GIL, access to a derived class takes a lock of all threads."""
begin_thread = _thread.start_new_thread  # takes no lock of `threading`: where a thread may have it already
allocate_lock = _thread.allocate_lock  # for such a thread: `Lock`, where no explorer stands behind the door
get_ident = threading.get_ident
current_thread = threading.current_thread
main_thread = threading.main_thread
running_threads = threading.enumerate

monotonic = time.monotonic
process_time = time.process_time
now_ns = time.perf_counter_ns
sleep = time.sleep


def frame_of(ident: int) -> FrameType | None:
    """The frame that a thread is in: a look from outside. None: it has ended."""
    return thread_frames().get(ident)


def one_wait(seconds: float | None) -> float | None:
    """How long one wait may take, where the caller would wait so long; None: for ever."""
    return None if seconds is None else min(seconds, LONGEST_WAIT)


def has_gil() -> bool:
    """Whether this interpreter runs one thread at a time (free-threaded builds do not)."""
    enabled: Callable[[], bool] | None = getattr(sys, "_is_gil_enabled", None)
    return True if enabled is None else enabled()


_YIELD: Final[Callable[[], object]] = os.sched_yield if hasattr(os, "sched_yield") else partial(time.sleep, 0)


def pause() -> None:
    """Let another thread go first, where there is one: a point of choice, not a wait."""
    _YIELD()


def tickets(start: int = 1) -> Callable[[], int]:
    """A dispenser of consecutive ints: thread-safe, and a ticket drawn later is larger.

    `itertools.count` is one C call, atomic under the GIL. Without a GIL it promises nothing, and a lock guards it. A
    thread may take that lock twice: the garbage collector may run while the thread holds it, and end a generator, which
    draws too.
    """
    count = itertools.count(start)
    if has_gil():
        return count.__next__
    lock = RLock()

    def draw() -> int:
        with lock:
            return next(count)

    return draw
