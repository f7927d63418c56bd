"""Carriers of the task threads: OS threads that hand each other the turn.

A thread that waits sleeps on a lock of its own, and the thread that hands it the turn releases that lock. The carriers
are kept from run to run, since to start a thread costs more than a whole short schedule. All are pinned to one core,
since a turn that goes from core to core costs several times as much. On Linux they are batch threads (`SCHED_BATCH`,
sched(7)): one that is woken does not interrupt the one that woke it, which still has the GIL. That saves two of three
changes between threads of the system.
"""

from __future__ import annotations

import _thread
import contextlib
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from reactive_runtime._core.runtime import primitives
from reactive_runtime.errors import ExploreError, MissingDependencyError

if TYPE_CHECKING:
    from reactive_runtime.explore._schedule.scheduler import Scheduler
    from reactive_runtime.explore._schedule.task import Task

__all__ = ["Carrier", "GreenletCarriers", "Pinned", "ThreadCarriers", "greenlets_run", "made"]

start_new_thread: Callable[..., int] = _thread.start_new_thread
"""The real one, whatever stands in for it meanwhile."""

real_ident: Callable[[], int] = _thread.get_ident
"""Of the OS thread, whatever stands in for the threads of a program meanwhile."""


class Carrier:
    """One OS thread, which waits for the turn, and for the next task thread to carry."""

    def __init__(self) -> None:
        self._turn = _thread.allocate_lock()
        self._turn.acquire()
        self.go: Callable[[], object] = self._turn.release
        """Hand it the turn."""
        self.wait: Callable[[], object] = self._turn.acquire
        """Called on the thread itself: sleep until it has the turn."""
        self.ident: int = real_ident()
        self.native_id: int = _thread.get_native_id()
        self.thread: Task | None = None
        self.lost = False  # written by `give_up`: it hangs in something that is not controlled


class ThreadCarriers:
    """The kept threads of one exploration."""

    greenlets: ClassVar[bool] = False

    def __init__(self, core: int | None = None) -> None:
        self._core = core
        self._kept: list[Carrier] = []
        self._main = Carrier()
        self._ended = False

    def main(self) -> Carrier:
        """The carrier of the thread that explores."""
        return self._main

    def carrier(self, number: int, scheduler: Scheduler) -> Carrier:
        """The one with that number, in the order of its thread's creation."""
        while number >= len(self._kept):
            self._kept.append(self._start(scheduler))
        return self._kept[number]

    def _start(self, scheduler: Scheduler) -> Carrier:
        carrier = Carrier()
        up = _thread.allocate_lock()
        up.acquire()

        def live() -> None:
            pin(self._core)
            carrier.ident = real_ident()
            carrier.native_id = _thread.get_native_id()
            up.release()
            self._live(carrier, scheduler)

        start_new_thread(live, ())
        up.acquire()
        return carrier

    def _live(self, carrier: Carrier, scheduler: Scheduler) -> None:
        """The life of a carrier."""
        while True:
            carrier.wait()
            thread = carrier.thread
            if self._ended or thread is None:
                return
            carrier.thread = None
            successor = scheduler.body(thread)
            del thread
            if carrier.lost:
                return
            successor.go()
            del successor

    def give_up(self) -> None:
        """Leave all the threads to themselves: one of them hangs."""
        for carrier in self._kept:
            carrier.lost = True
        self._kept = []

    def close(self) -> None:
        """Let the threads end."""
        self._ended = True
        for carrier in self._kept:
            carrier.thread = None
            carrier.go()
        self._kept = []


class _Hub:
    """Which greenlet gets the turn next."""

    def __init__(self) -> None:
        self.next: Any = None


class _GreenletCarrier(Carrier):
    """One greenlet. All share an OS thread: handing the turn on costs next to nothing."""

    def __init__(self, hub: _Hub, greenlet: Any) -> None:
        super().__init__()
        self._hub = hub
        self.wait = lambda: hub.next.switch()  # noqa: PLW0108  # `next` is another one each time
        self.carry(greenlet)

    def carry(self, greenlet: Any) -> None:
        """Be carried by `greenlet`."""
        self.greenlet = greenlet
        self.go = lambda: setattr(self._hub, "next", greenlet)


class GreenletCarriers(ThreadCarriers):
    """The same with greenlets: thread-locals and thread identity are then stand-ins, and a hang can't be undone."""

    greenlets: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__()
        self._greenlet = _greenlet()
        self._hub = _Hub()
        self._main = _GreenletCarrier(self._hub, self._greenlet.getcurrent())

    def _start(self, scheduler: Scheduler) -> Carrier:
        carrier = _GreenletCarrier(self._hub, None)
        carrier.carry(self._greenlet.greenlet(lambda: self._live(carrier, scheduler)))
        return carrier

    def close(self) -> None:
        """End the greenlets that are kept."""
        for carrier in self._kept:
            carrier.greenlet.throw()  # type: ignore[attr-defined]
        self._kept = []


def _greenlet() -> Any:
    if not greenlets_run():
        raise ExploreError(
            "greenlets end the process before Python 3.14 where there is no GIL: use engine='threads', or PYTHON_GIL=1"
        )
    try:
        import greenlet
    except ImportError as error:
        raise MissingDependencyError(
            "the engine of greenlets needs greenlet: pip install 'reactive-runtime[greenlet]'"
        ) from error
    return greenlet


def greenlets_run() -> bool:
    """Whether they can, if they are installed: a switch of stacks crashes CPython 3.13 without a GIL."""
    return primitives.has_gil() or sys.version_info >= (3, 14)


def made(engine: str, core: int | None) -> ThreadCarriers:
    """The carriers of that kind."""
    return GreenletCarriers() if engine == "greenlets" else ThreadCarriers(core)


def pin(core: int | None) -> bool:
    """Keep the calling thread on one core, and have it interrupt no other when it wakes, where the system knows how.

    Returns:
        Whether it could have interrupted others.
    """
    if core is not None and hasattr(os, "sched_setaffinity"):
        with contextlib.suppress(OSError):  # not allowed here: slower, and no worse
            os.sched_setaffinity(0, {core})
        return _change_policy("SCHED_OTHER", "SCHED_BATCH")
    return False


def _change_policy(before: str, after: str) -> bool:
    """Change how the system schedules the calling thread; False: it was not `before`, or may not be changed."""
    policy = getattr(os, after, None)
    if policy is None:
        return False
    try:
        if os.sched_getscheduler(0) != getattr(os, before):
            return False
        os.sched_setscheduler(0, policy, os.sched_param(0))
    except OSError:
        return False
    return True


class Pinned:
    """Pins the calling thread to one core while the block runs; gives that core.

    `number` distinguishes explorations that run side by side, so that each gets a core of its own. None: the number of
    the worker of pytest-xdist, or else of the process.
    """

    def __init__(self, number: int | None = None) -> None:
        self._number = _number_of_the_process() if number is None else number

    def __enter__(self) -> int | None:
        self._before: Any = None
        self._batch = False
        if not hasattr(os, "sched_getaffinity"):
            return None
        self._before = os.sched_getaffinity(0)
        core: int = sorted(self._before)[self._number % len(self._before)]
        self._batch = pin(core)
        return core

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            os.sched_setaffinity(0, self._before)
        if self._batch:
            _change_policy("SCHED_BATCH", "SCHED_OTHER")


def _number_of_the_process() -> int:
    """Workers of pytest-xdist are gw0, gw1 …: numbers of processes may all be odd, and then all have the same core."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "").removeprefix("gw")
    return int(worker) if worker.isdecimal() else os.getpid()
