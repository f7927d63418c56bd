"""Stand-ins for what says which threads there are: `threading.enumerate`, `active_count`, `main_thread`."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Final

from reactive_runtime._core.runtime import primitives
from reactive_runtime.explore._schedule.task import Aborted, Task
from reactive_runtime.explore._standins import instrumented

__all__ = ["active_count", "current_thread", "living", "main_thread", "real_current_thread"]

real_current_thread: Callable[[], threading.Thread] = threading.current_thread
_real_enumerate: Callable[[], list[threading.Thread]] = threading.enumerate
_real_main_thread: Callable[[], threading.Thread] = threading.main_thread
_ALONE: Final = ("main", "test")
"""Names of the one actor that a scenario has which is a function: it stands for the main thread."""


def current_thread() -> primitives.Thread:
    """`threading.current_thread`: the thread the program has made, or one that stands for an actor."""
    if instrumented.foreign():
        return real_current_thread()
    me = instrumented.caller()
    if me is None or me is instrumented.running().main:
        return real_current_thread()
    return _object_of(me)


def _object_of(task: Task) -> primitives.Thread:
    if task.object is None:
        name = "MainThread" if _is_main(task) else task.name
        task.object = primitives.Thread(name=name, daemon=task.daemon)
        task.object.__dict__.update(_explored_task=task, _ident=task.ident)
    thread: primitives.Thread = task.object
    return thread


def _is_main(task: Task) -> bool:
    return task.index == 1 and task.name in _ALONE


def main_thread() -> primitives.Thread:
    """`threading.main_thread`: the thread that runs the function which is explored, if one is."""
    if not instrumented.foreign():
        for task in instrumented.running().threads[1:2]:
            if _is_main(task):
                return _object_of(task)
    return _real_main_thread()


def living() -> list[primitives.Thread]:
    """`threading.enumerate`: a point of choice, of which each step of another thread may change the result."""
    return _living(sys._getframe(1))


def active_count() -> int:
    """`threading.active_count`: as many as `living`."""
    return len(_living(sys._getframe(1)))


def _living(frame: FrameType) -> list[primitives.Thread]:
    me = None if instrumented.foreign() else instrumented.caller()
    if me is None:
        return _real_enumerate()
    scheduler = instrumented.running()
    if scheduler.aborting:
        raise Aborted
    instrumented.point(scheduler, me, None, "enumerate", writes=False)
    there = [task for task in scheduler.threads if task is not scheduler.main and not task.ended]
    if scheduler.tracking:
        me.chain = hash((me.chain, *(task.chain for task in scheduler.threads if task is not me)))
        if scheduler.observer is not None:
            scheduler.observer.concerns_all()
    scheduler.only_looked(me, frame)
    main = _real_main_thread()
    return [*([] if any(map(_is_main, there)) else [main]), *map(_object_of, there)]
