"""Notices a thread that neither comes to a point nor ends: something uncontrolled blocks it, or it is in a loop."""

from __future__ import annotations

import _thread
import contextlib
import faulthandler
import traceback
from collections.abc import Iterator
from types import FrameType

from reactive_runtime._support.thread_frames import thread_frames
from reactive_runtime.errors import ExploreError
from reactive_runtime.explore._schedule.carriers import ThreadCarriers, start_new_thread
from reactive_runtime.explore._schedule.scheduler import Scheduler
from reactive_runtime.explore._schedule.task import Stop
from reactive_runtime.explore._shared_state.watching import HOOK_FILES

__all__ = ["Watchdog", "ends_where_no_thread_runs"]


class Watchdog:
    """A real thread that looks now and then whether the scheduler has moved."""

    def __init__(self, scheduler: Scheduler, kept: ThreadCarriers, seconds: float) -> None:
        self._scheduler = scheduler
        self._kept = kept
        self._seconds = seconds
        self._running = _thread.allocate_lock()  # held while there is something to watch
        self._running.acquire()
        self._complaint: str | None = None  # written before the main thread is woken, read by it

    def __enter__(self) -> Watchdog:
        start_new_thread(self._watch, ())
        return self

    def __exit__(self, *_: object) -> None:
        self._running.release()

    def _watch(self) -> None:
        scheduler = self._scheduler
        before = (-1, -1)
        while not self._running.acquire(timeout=self._seconds):
            now = (scheduler.run, scheduler.steps)
            current = scheduler.current
            if now == before and scheduler.active and current is not scheduler.main and current is not None:
                frame = thread_frames().get(current.ident)
                stack = [item for item in _stack(frame) if item.filename not in HOOK_FILES]
                where = f"at {_told(stack[0])}" if stack else "somewhere"
                own = next((item for item in stack if item.filename in scheduler.hooked), None)
                if own is not None and own is not stack[0]:
                    where += f", for {_told(own)}"
                self._complaint = (
                    f"thread {current.name} has come to no point for {self._seconds:g} s, {where}. It is blocked by"
                    " something the explorer does not control (a lock made outside of the scenario, a C extension, a"
                    " socket), or in a loop without a point"
                )
                self._kept.give_up()
                scheduler.stop = Stop("stuck", self._complaint, current)
                scheduler.aborting = True
                for thread in scheduler.threads:
                    if thread is not scheduler.main:
                        scheduler.finish(thread)
                scheduler.main.go()
                return
            before = now

    def complain(self) -> None:
        """On the main thread, after a run."""
        if self._complaint is not None:
            raise ExploreError(self._complaint)


@contextlib.contextmanager
def ends_where_no_thread_runs(seconds: float) -> Iterator[None]:
    """End the process if no thread of it can run for so long: one is in a loop in C, and keeps the GIL.

    Then the thread of `Watchdog` can't run either. So a thread sets a timer in C again as long as it runs; the timer
    writes the stacks of all threads to standard error, and ends the process with status 1.
    """
    over = _thread.allocate_lock()  # held as long as the timer is to be set again
    ended = _thread.allocate_lock()  # held as long as the thread may set it
    over.acquire()
    ended.acquire()

    def set_again() -> None:
        while not over.acquire(timeout=seconds / 4):
            faulthandler.dump_traceback_later(seconds, exit=True, file=2)
        ended.release()

    faulthandler.dump_traceback_later(seconds, exit=True, file=2)
    start_new_thread(set_again, ())
    try:
        yield
    finally:
        over.release()
        ended.acquire()
        faulthandler.cancel_dump_traceback_later()


def _told(frame: traceback.FrameSummary) -> str:
    return f"{frame.filename}:{frame.lineno}, in {frame.name}: {frame.line}"


def _stack(frame: FrameType | None) -> list[traceback.FrameSummary]:
    """The stack of a thread, innermost first."""
    return [] if frame is None else traceback.extract_stack(frame)[::-1]
