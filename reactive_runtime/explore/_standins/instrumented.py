"""What stands in for the primitives of `threading` while a program is explored.

Each does what its original does, on plain fields: exactly one thread runs, so nothing has to be guarded. What can be
noticed by another thread is a point (`Scheduler.step`); what has to wait waits in the scheduler, where a deadlock can
be seen and the clock is virtual. A lock that is taken keeps those that want it out of the ready ones, so no schedule is
spent on a thread that would only find it taken.

Releasing a lock is a point only in programs that try a lock without waiting: in others it makes no difference.

Outside of a run, or while an invariant looks at the state, a stand-in works as long as it need not wait.
"""

from __future__ import annotations

import sys
from typing import Any, NoReturn

from reactive_runtime.explore._schedule.carriers import real_ident
from reactive_runtime.explore._schedule.scheduler import Scheduler
from reactive_runtime.explore._schedule.task import Task

__all__ = ["ForeignThreadError", "Location", "Lock", "RLock", "caller", "running", "standing_for"]

active: Scheduler | None = None
"""The scheduler that runs; written before and after an exploration, by its thread."""


class ForeignThreadError(RuntimeError):
    """A thread that the explorer does not control uses what it controls."""


def standing_for(scheduler: Scheduler | None) -> Scheduler | None:
    """The scheduler that stand-ins ask from now on; returns the one before."""
    global active
    before, active = active, scheduler
    return before


def running() -> Scheduler:
    """The scheduler; there is one."""
    assert active is not None
    return active


def caller() -> Task | None:
    """The task thread that calls; None outside of a run, and while an invariant looks."""
    scheduler = active
    if scheduler is None or not scheduler.active or scheduler.quiet:
        return None
    me = scheduler.current
    if real_ident() != me.ident:
        raise ForeignThreadError(
            "a thread that is not part of the exploration uses a primitive that is: threads and pools have to be"
            " made inside of the scenario"
        )
    return me


def foreign() -> bool:
    """Whether the caller is a thread that is not explored, while something is: its clock is the real one.

    The answer can't change while it is given: of the exploration's threads only the main and the current one run.
    """
    scheduler = active
    return scheduler is None or all(
        item is None or real_ident() != item.ident for item in (scheduler.main, scheduler.current)
    )


def named() -> int:
    """A number for what is made now, where a search has to know it again in other runs; else 0."""
    scheduler = active
    return 0 if scheduler is None or scheduler.observer is None else scheduler.observer.named()


class Location:
    """Something that threads share: what was done to it last, for the threads that come after."""

    __slots__ = ("__weakref__", "name", "r", "vc", "w")

    name: int
    r: int
    w: int

    def __init__(self) -> None:
        self.name = named()
        self.w = self.r = 0  # chains: of the last that changed it, and of those that have looked since
        self.vc: list[int] = []  # the vector clock of the thread that left it last


def met(scheduler: Scheduler, me: Task, item: Location, writes: bool = True) -> None:
    """`me` has come after all that was done to `item`."""
    if scheduler.races and item.vc:
        scheduler.join(me, item.vc)
    if scheduler.tracking:
        scheduler.note(me, item, writes)


def left(scheduler: Scheduler, me: Task, item: Location) -> None:
    """A thread that meets `item` later comes after what `me` has done so far."""
    if scheduler.races:
        vc = scheduler.leave(me)
        if item.vc:  # others have left it as well: a semaphore, an event
            vc = [
                max(a, b)
                for a, b in zip(
                    vc + [0] * (len(item.vc) - len(vc)), item.vc + [0] * (len(vc) - len(item.vc)), strict=True
                )
            ]
        item.vc = vc


def point(scheduler: Scheduler, me: Task, item: Location | None, what: str, writes: bool = True) -> None:
    me.location, me.writes, me.what = item, writes, what
    scheduler.step(me)


def until(scheduler: Scheduler, timeout: float | None) -> float | None:
    return None if timeout is None or timeout < 0 else scheduler.clock + timeout


class Lock(Location):
    """Stands in for `threading.Lock`."""

    __slots__ = ("left_by", "owner", "wanted")

    w: int
    r: int
    vc: list[int]

    def __init__(self) -> None:
        self.name: int = named()
        self.w = self.r = 0
        self.vc = []
        self.left_by: int = -1  # the thread that released it last
        self.owner: Any = None  # the task thread that has it, or True where it was taken outside of a run
        self.wanted: list[Task] = []  # those that wait for it, or are about to take it

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """As `threading.Lock.acquire`: a point of choice, and a wait where another thread has it."""
        scheduler = active
        if scheduler is None or not scheduler.active or scheduler.quiet:
            return self._outside(blocking)
        me = scheduler.current
        if real_ident() != me.ident:
            caller()  # says what is wrong
        if scheduler.aborting:
            scheduler.pass_through(me)
            self.owner = me
            return True
        if not blocking or timeout != -1:
            if not blocking and timeout != -1:
                raise ValueError("can't specify a timeout for a non-blocking call")
            if timeout < 0 and timeout != -1:
                raise ValueError("timeout value must be a non-negative number")
            return self._try(scheduler, me, blocking, timeout)
        me.location, me.writes, me.what = self, True, "acquire"
        wanted = self.wanted
        wanted.append(me)
        me.timed_out = False
        if self.owner is None:
            scheduler.step(me)
        else:
            scheduler.wait(me)
        if len(wanted) > 1 or scheduler.aborting:
            self._taken(scheduler, me)
            return True
        wanted.clear()  # `_taken`, written out for a lock that no other thread wants
        self.owner = me
        if scheduler.races and self.left_by != me.index and self.vc:
            scheduler.join(me, self.vc)
        if scheduler.tracking:  # `Scheduler.note`, written out
            self.w = me.chain = hash((me.chain, self.w, self.r))
            self.r = 0
            if scheduler.observer is not None:
                scheduler.observer.noted(me, self, True)
        return True

    __enter__ = acquire

    def forget(self) -> None:
        """Be as new, for a new run."""
        self.w = self.r = 0
        self.vc = []
        self.left_by = -1
        self.owner = None
        self.wanted.clear()

    def _taken(self, scheduler: Scheduler, me: Task) -> None:
        wanted = self.wanted
        if scheduler.aborting:
            self.owner = me
            return
        wanted.remove(me)
        self.owner = me
        for item in wanted:
            if not item.timed_out:
                scheduler.hold_back(item)
        if scheduler.races and self.left_by != me.index and self.vc:
            scheduler.join(me, self.vc)
        if scheduler.tracking:  # `Scheduler.note`, written out
            self.w = me.chain = hash((me.chain, self.w, self.r))
            self.r = 0
            if scheduler.observer is not None:
                scheduler.observer.noted(me, self, True)

    def _try(self, scheduler: Scheduler, me: Task, blocking: bool, timeout: float) -> bool:
        scheduler.tried = True
        point(scheduler, me, self, "acquire without waiting" if not blocking else "acquire with a timeout")
        if self.owner is None:
            self.wanted.append(me)
            for item in self.wanted:
                if item is not me and not item.timed_out:
                    scheduler.hold_back(item)
            self.wanted.remove(me)
            self.owner = me
            met(scheduler, me, self)
            return True
        if not blocking or timeout == 0:
            met(scheduler, me, self)
            scheduler.only_looked(me, sys._getframe(2))
            return False
        self.wanted.append(me)
        if scheduler.tracking:
            scheduler.note(me, self, False)
        scheduler.wait(me, until(scheduler, timeout))
        if me.timed_out and self.owner is not None:
            self.wanted.remove(me)
            met(scheduler, me, self)
            return False
        self._taken(scheduler, me)
        return True

    def _outside(self, blocking: bool) -> bool:
        if self.owner is None:
            self.owner = True
            return True
        if active is not None and active.quiet:
            return True  # an invariant looks at what a thread is in the middle of
        if not blocking:
            return False
        raise RuntimeError("this lock was left locked by a run that has ended")

    def release(self, *_: object) -> None:
        """As `threading.Lock.release`: the threads that want it are ready."""
        scheduler = active
        if scheduler is None or not scheduler.active or scheduler.quiet:
            if scheduler is None or not scheduler.quiet:
                self.owner = None
            return
        me = scheduler.current
        if scheduler.aborting:
            self.owner = None
            return
        if self.owner is None:
            raise RuntimeError("release unlocked lock")
        if scheduler.releases:
            point(scheduler, me, self, "release")
        self.owner = None
        me.locks += 1
        if self.wanted:
            for item in self.wanted:
                scheduler.wake(item)
        if scheduler.races:
            self.left_by = index = me.index
            self.vc = vc = me.vc
            me.vc = vc = vc.copy()
            vc[index] += 1
        if scheduler.tracking:  # `Scheduler.note`, written out
            self.w = me.chain = hash((me.chain, self.w, self.r))
            self.r = 0
            if scheduler.observer is not None:
                scheduler.observer.noted(me, self, True)

    def locked(self) -> bool:
        """As `threading.Lock.locked`: a point of choice."""
        me = caller()
        if me is not None and active is not None:
            active.tried = True
            point(active, me, self, "locked", writes=False)
            met(active, me, self, writes=False)
            owned = self.owner is not None
            active.only_looked(me, sys._getframe(1))
            return owned
        return self.owner is not None

    __exit__ = release
    acquire_lock, release_lock, locked_lock = acquire, release, locked  # names of before, which the original has

    def __repr__(self) -> str:
        return f"<{'unlocked' if self.owner is None else 'locked'} _thread.{type(self).__name__.lower()} object>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"cannot pickle '_thread.{type(self).__name__.lower()}' object")

    # For conditions: give it up whole, and the way back.

    def _is_owned(self) -> bool:
        return self.owner is not None

    def give_up(self) -> Any:
        """Release it whole; returns what `take_back` is to be given."""
        self.release()

    def take_back(self, scheduler: Scheduler, me: Task, state: Any) -> None:
        """`me` was woken, and wants the lock again; it is among the ready ones, or not if the lock is taken."""
        self._taken(scheduler, me)


class RLock(Lock):
    """Stands in for `threading.RLock`."""

    __slots__ = ("depth",)

    def __init__(self) -> None:
        super().__init__()
        self.depth: int = 0

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """As `threading.RLock.acquire`: no point of choice where this thread has it already."""
        me = caller()
        if me is None:
            return True
        if self.owner is me:
            self.depth += 1
            return True
        if super().acquire(blocking, timeout):
            self.depth = 1
            return True
        return False

    def release(self, *_: object) -> None:
        """As `threading.RLock.release`: no point of choice before the last one."""
        me = caller()
        if me is None:
            return
        assert active is not None
        if self.owner is not me:
            if active.aborting:
                return
            raise RuntimeError("cannot release un-acquired lock")
        self.depth -= 1
        if self.depth == 0:
            super().release()

    __enter__ = acquire
    __exit__ = release

    def _is_owned(self) -> bool:
        scheduler = active
        return scheduler is not None and self.owner is scheduler.current

    def give_up(self) -> Any:
        """Release it whole; returns how often it was taken."""
        depth, self.depth = self.depth, 1
        self.release()
        return depth

    def take_back(self, scheduler: Scheduler, me: Task, state: Any) -> None:
        """As often as it was taken before."""
        super().take_back(scheduler, me, state)
        self.depth = state
