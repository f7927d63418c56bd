"""Stand-ins for what threads wait at: conditions, semaphores, events. See `instrumented`."""

from __future__ import annotations

import queue
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, Final

from reactive_runtime.explore._schedule.scheduler import Scheduler
from reactive_runtime.explore._schedule.task import Aborted, Task
from reactive_runtime.explore._standins import instrumented
from reactive_runtime.explore._standins.instrumented import ForeignThreadError, Location, Lock, RLock

__all__ = ["BoundedSemaphore", "Condition", "Event", "Semaphore"]

_Condition: Final = threading.Condition
_Semaphore: Final = threading.Semaphore
_REAL_LOCKS: Final = (type(threading.Lock()), type(threading.RLock()))


class Condition(Location):
    """Stands in for `threading.Condition`.

    Wakes in the order of waiting, as the original does, and never spuriously.
    """

    __slots__ = ("__dict__", "_lock", "acquire", "number", "release", "waiting")

    def __new__(cls, *given: Any, **named: Any) -> Any:
        """On a lock that the program has written, the original one: what it waits on is a lock that is controlled."""
        lock = (*given, *named.values(), None)[0] if cls is Condition else None
        own = lock is not None and not isinstance(lock, (Lock, *_REAL_LOCKS))
        return _Condition(*given, **named) if own else super().__new__(cls)

    def __init__(self, lock: Any = None) -> None:
        if lock is not None and not isinstance(lock, Lock):
            raise ForeignThreadError(
                "a condition on a lock that was made outside of the scenario, which is not controlled"
            )
        self.name: int = instrumented.named()
        self.w = self.r = 0
        self.vc: list[int] = []
        self.number: int = 0  # in the order of their making: the same in every run that goes the same way
        if instrumented.active is not None:
            instrumented.active.made += 1
            self.number = instrumented.active.made
        self._lock: Lock = RLock() if lock is None else lock
        self.acquire: Callable[..., bool] = self._lock.acquire
        self.release: Callable[[], None] = self._lock.release
        self.waiting: list[Task] = []

    def __enter__(self) -> bool:
        return self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def wait(self, timeout: float | None = None) -> bool:
        """As `threading.Condition.wait`, in virtual time."""
        me = instrumented.caller()
        scheduler = instrumented.active
        if me is None or scheduler is None:
            raise RuntimeError("no thread can wait here: this is outside of a run")
        if scheduler.aborting:
            raise Aborted
        lock = self._lock
        if not lock._is_owned():
            raise RuntimeError("cannot wait on un-acquired lock")
        if scheduler.tracking:
            scheduler.note(me, self, True)
        state = lock.give_up()
        self.waiting.append(me)
        me.location, me.writes, me.what = lock, True, "wait"
        scheduler.wait(me, instrumented.until(scheduler, timeout))
        # Woken with the lock free, or by the clock, perhaps with the lock taken.
        woken = me not in self.waiting
        if not woken:
            self.waiting.remove(me)
            lock.wanted.append(me)
            if lock.owner is not None:
                if scheduler.tracking:
                    scheduler.note(me, lock, False)
                scheduler.wait(me)
        lock.take_back(scheduler, me, state)
        if scheduler.races and self.vc:
            scheduler.join(me, self.vc)
        if scheduler.tracking:
            scheduler.note(me, self, True)
        return woken

    def wait_for(self, predicate: Callable[[], Any], timeout: float | None = None) -> Any:
        """As `threading.Condition.wait_for`, in virtual time."""
        scheduler = instrumented.active
        end = None if scheduler is None else instrumented.until(scheduler, timeout)
        result = predicate()
        while not result:
            left = None
            if end is not None:
                assert scheduler is not None
                left = end - scheduler.clock
                if left <= 0:
                    break
            self.wait(left)
            result = predicate()
        return result

    def notify(self, n: int = 1) -> None:
        """As `threading.Condition.notify`: the threads that are woken go on when the lock is free."""
        me = instrumented.caller()
        scheduler = instrumented.active
        if me is None or scheduler is None or scheduler.aborting:
            return
        lock = self._lock
        if not lock._is_owned():
            raise RuntimeError("cannot notify on un-acquired lock")
        if scheduler.tracking:
            scheduler.note(me, self, True)
        if not self.waiting:
            return
        instrumented.left(scheduler, me, self)
        me.acts += 1
        for thread in [item for item in self.waiting if not item.timed_out][:n]:
            self.waiting.remove(thread)
            thread.deadline = thread.until = None
            lock.wanted.append(thread)  # ready when the lock is free, which this thread still has

    def notify_all(self) -> None:
        """As `threading.Condition.notify_all`."""
        self.notify(len(self.waiting))


class Semaphore(Location):
    """Stands in for `threading.Semaphore`, and for the bounded one."""

    __slots__ = ("__dict__", "_bound", "_value", "wanted")

    def __init__(self, value: int = 1, *, bound: int | None = None) -> None:
        this: Any = self
        if not isinstance(this, Semaphore):  # of a class that derives from the original bounded one, which calls this
            _Semaphore.__init__(this, value)
            return
        if value < 0:
            raise ValueError("semaphore initial value must be >= 0")
        super().__init__()
        self._value = value
        self._bound = bound
        self.wanted: list[Task] = []  # those that wait for it, or are about to take one

    @property
    def value(self) -> int:
        """How many could be had."""
        return self._value

    @property
    def free(self) -> bool:
        """Whether a thread could have one."""
        return self._value > 0

    def acquire(self, blocking: bool = True, timeout: float | None = None) -> bool:
        """As `threading.Semaphore.acquire`: a point of choice, and a wait in virtual time."""
        if not blocking and timeout is not None:
            raise ValueError("can't specify timeout for non-blocking acquire")
        me = instrumented.caller()
        scheduler = instrumented.active
        if me is None or scheduler is None:
            if self._value:
                self._value -= 1
                return True
            if blocking:
                raise RuntimeError("no thread can wait here: this is outside of a run")
            return False
        if scheduler.aborting:
            scheduler.pass_through(me)
            return True
        me.timed_out = False
        if not blocking or timeout is not None:
            instrumented.point(
                scheduler, me, self, "acquire without waiting" if not blocking else "acquire with a timeout"
            )
            if not self._value and (not blocking or timeout is None or timeout <= 0):
                instrumented.met(scheduler, me, self)
                scheduler.only_looked(me, sys._getframe(1))
                return False
            self.wanted.append(me)
            if not self._value:
                if scheduler.tracking:
                    scheduler.note(me, self, False)
                scheduler.wait(me, instrumented.until(scheduler, timeout))
        else:
            self.wanted.append(me)
            me.location, me.writes, me.what = self, True, "acquire"
            if self._value:
                scheduler.step(me)
            else:
                scheduler.wait(me)
        self.wanted.remove(me)
        instrumented.met(scheduler, me, self)
        if me.timed_out and not self._value:
            return False
        self._value -= 1
        me.acts += 1
        if not self._value:
            for item in self.wanted:
                if not item.timed_out:
                    scheduler.hold_back(item)
        return True

    __enter__ = acquire

    def release(self, n: int = 1) -> None:
        """As `threading.Semaphore.release`: a point of choice; `bound` is kept."""
        if n < 1:
            raise ValueError("n must be one or more")
        me = instrumented.caller()
        scheduler = instrumented.active
        if me is not None and scheduler is not None and not scheduler.aborting:
            instrumented.point(scheduler, me, self, "release")
        if self._bound is not None and self._value + n > self._bound:
            raise ValueError("Semaphore released too many times")
        if me is None or scheduler is None or scheduler.aborting:
            self._value += n
            return
        if scheduler.tracking:
            scheduler.note(me, self, True)
        self._value += n
        instrumented.left(scheduler, me, self)
        me.acts += 1
        for item in self.wanted:
            scheduler.wake(item)

    def __exit__(self, *_: object) -> None:
        self.release()


class BoundedSemaphore(Semaphore):
    """Stands in for `threading.BoundedSemaphore`."""

    __slots__ = ()

    def __init__(self, value: int = 1) -> None:
        super().__init__(value, bound=value)


class Event(Location):
    """Stands in for `threading.Event`."""

    __slots__ = ("__dict__", "_flag", "waiting")

    def __init__(self) -> None:
        super().__init__()
        self._flag = False
        self.waiting: list[Task] = []

    def _at(self, what: str, writes: bool) -> Scheduler | None:
        me = instrumented.caller()
        scheduler = instrumented.active
        if me is None or scheduler is None:
            return None
        if scheduler.aborting:
            scheduler.pass_through(me)
            return None
        instrumented.point(scheduler, me, self, what, writes)
        if writes:
            me.acts += 1
            if scheduler.tracking:
                scheduler.note(me, self, True)
            instrumented.left(scheduler, me, self)
        else:
            instrumented.met(scheduler, me, self, writes=False)
        return scheduler

    def is_set(self) -> bool:
        """As `threading.Event.is_set`: a point of choice."""
        scheduler = self._at("is_set", writes=False)
        flag = self._flag
        if scheduler is not None:
            scheduler.only_looked(scheduler.current, sys._getframe(1))
        return flag

    isSet = is_set  # noqa: N815

    def set(self) -> None:
        """As `threading.Event.set`: a point of choice; all threads that wait are woken."""
        scheduler = self._at("set", writes=True)
        self._flag = True
        if scheduler is not None:
            for item in self.waiting:
                scheduler.wake(item)
            self.waiting.clear()

    def clear(self) -> None:
        """As `threading.Event.clear`: a point of choice."""
        self._at("clear", writes=True)
        self._flag = False

    def wait(self, timeout: float | None = None) -> bool:
        """As `threading.Event.wait`: a point of choice, and a wait in virtual time."""
        scheduler = self._at("wait", writes=False)
        if self._flag:
            return True
        if scheduler is None:
            if instrumented.active is not None and instrumented.active.aborting:
                raise Aborted
            raise RuntimeError("no thread can wait here: this is outside of a run")
        me = scheduler.current
        if timeout is not None and timeout <= 0:
            return False
        self.waiting.append(me)
        scheduler.wait(me, instrumented.until(scheduler, timeout))
        if me in self.waiting:
            self.waiting.remove(me)
        instrumented.met(scheduler, me, self, writes=False)
        return self._flag or not me.timed_out


class SimpleQueue(queue._PySimpleQueue):  # type: ignore[name-defined,misc]
    """Stands in for `queue.SimpleQueue`: the one in Python, of which a look at the length is a point as well."""

    def qsize(self) -> int:
        """As `queue.SimpleQueue.qsize`: a point of choice."""
        return self._size(sys._getframe(1))

    def empty(self) -> bool:
        """As `queue.SimpleQueue.empty`: a point of choice."""
        return self._size(sys._getframe(1)) == 0

    def _size(self, frame: FrameType) -> int:
        count: Semaphore = self._count
        me = instrumented.caller()
        scheduler = instrumented.active
        if me is not None and scheduler is not None:
            instrumented.point(scheduler, me, count, "qsize", writes=False)
            instrumented.met(scheduler, me, count, writes=False)
            scheduler.only_looked(me, frame)
        return count.value  # an element is there for a `get` once the semaphore has been released
