"""Four executors: in order, on this very thread, at a time, and in virtual time; and which clock a flow has.

All are `concurrent.futures.Executor`s: what a task raises is its future's, `submit` after `shutdown` raises
RuntimeError, and `shutdown(cancel_futures=True)` cancels what has not begun. No lock is held while a task, a
future's callback or another executor is called.
"""

from __future__ import annotations

from reactive_runtime._core.drains.combinator import Clock
from reactive_runtime._executors.executor_threads import blocking_allowed, blocking_is_allowed, runs_here, threads_of
from reactive_runtime._executors.in_order import SerialExecutor, TrampolineExecutor
from reactive_runtime._executors.shared_clock import clock_in, clock_of
from reactive_runtime._executors.timers import ScheduledExecutor
from reactive_runtime._executors.virtual_time import VirtualTimeExecutor
from reactive_runtime._support.public_names import all_at_home

__all__ = [
    "Clock",
    "ScheduledExecutor",
    "SerialExecutor",
    "TrampolineExecutor",
    "VirtualTimeExecutor",
    "blocking_allowed",
    "blocking_is_allowed",
    "clock_in",
    "clock_of",
    "runs_here",
    "threads_of",
]

all_at_home(globals())
