"""Stand-ins for what threads wait at: conditions, semaphores, events. See `standins`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reactive_runtime.explore import standins
from reactive_runtime.explore.logical import Aborted, Logical
from reactive_runtime.explore.machine import Machine
from reactive_runtime.explore.standins import ForeignThreadError, Location, Lock, RLock

__all__ = ["Condition", "Event", "Semaphore", "bounded"]


class Condition(Location):
    """Stands in for `threading.Condition`. Wakes in the order of waiting, as the original does, and never
    spuriously."""

    __slots__ = ("_lock", "acquire", "number", "release", "waiting")

    def __init__(self, lock: Any = None) -> None:
        if lock is not None and not isinstance(lock, Lock):
            raise ForeignThreadError(
                "a condition on a lock that was made outside of the scenario, which nobody controls"
            )
        self.w = self.r = 0
        self.vc: list[int] = []
        self.number: int = 0  # in the order of their making: the same in every run that goes the same way
        if standins._machine is not None:
            standins._machine.made += 1
            self.number = standins._machine.made
        self._lock: Lock = RLock() if lock is None else lock
        self.acquire: Callable[..., bool] = self._lock.acquire
        self.release: Callable[[], None] = self._lock.release
        self.waiting: list[Logical] = []

    def __enter__(self) -> bool:
        return self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def wait(self, timeout: float | None = None) -> bool:
        me = standins.caller()
        machine = standins._machine
        if me is None or machine is None:
            raise RuntimeError("nobody can wait here: this is outside of a run")
        if machine.aborting:
            raise Aborted
        lock = self._lock
        if not lock._is_owned():
            raise RuntimeError("cannot wait on un-acquired lock")
        if machine.tracking:
            machine.note(me, self, True)
        state = lock._give_up()
        self.waiting.append(me)
        me.location, me.writes, me.what = lock, True, "wait"
        machine.ready.remove(me)
        machine.wait(me, standins._until(machine, timeout))
        # Woken with the lock free, or by the clock, perhaps with the lock taken.
        woken = me not in self.waiting
        if not woken:
            self.waiting.remove(me)
            if lock.owner is None:
                lock.wanted.append(me)
            else:
                lock.wanted.append(me)
                machine.ready.remove(me)
                machine.wait(me)
        lock._take_back(machine, me, state)
        if machine.races and self.vc:
            machine.join(me, self.vc)
        if machine.tracking:
            machine.note(me, self, True)
        return woken

    def wait_for(self, predicate: Callable[[], Any], timeout: float | None = None) -> Any:
        machine = standins._machine
        end = None if machine is None else standins._until(machine, timeout)
        result = predicate()
        while not result:
            left = None
            if end is not None:
                assert machine is not None
                left = end - machine.clock
                if left <= 0:
                    break
            self.wait(left)
            result = predicate()
        return result

    def notify(self, n: int = 1) -> None:
        me = standins.caller()
        machine = standins._machine
        if me is None or machine is None or machine.aborting:
            return
        lock = self._lock
        if not lock._is_owned():
            raise RuntimeError("cannot notify on un-acquired lock")
        if machine.tracking:
            machine.note(me, self, True)
        if not self.waiting:
            return
        standins._left(machine, me, self)
        for thread in [it for it in self.waiting if not it.timed_out][:n]:
            self.waiting.remove(thread)
            thread.deadline = None
            lock.wanted.append(thread)  # ready when the lock is free, which this thread still has

    def notify_all(self) -> None:
        self.notify(len(self.waiting))


class Semaphore(Location):
    """Stands in for `threading.Semaphore`, and for the bounded one."""

    __slots__ = ("_bound", "_value", "wanted")

    def __init__(self, value: int = 1, *, bound: int | None = None) -> None:
        if value < 0:
            raise ValueError("semaphore initial value must be >= 0")
        super().__init__()
        self._value = value
        self._bound = bound
        self.wanted: list[Logical] = []  # those that wait for it, or are about to take one

    def acquire(self, blocking: bool = True, timeout: float | None = None) -> bool:
        if not blocking and timeout is not None:
            raise ValueError("can't specify timeout for non-blocking acquire")
        me = standins.caller()
        machine = standins._machine
        if me is None or machine is None:
            if self._value:
                self._value -= 1
                return True
            if blocking:
                raise RuntimeError("nobody can wait here: this is outside of a run")
            return False
        if machine.aborting:
            machine.pass_through(me)
            return True
        me.timed_out = False
        if not blocking or timeout is not None:
            standins._point(machine, me, self, "acquire without waiting" if not blocking else "acquire with a timeout")
            if not self._value and (not blocking or timeout is None or timeout <= 0):
                standins._met(machine, me, self)
                return False
            self.wanted.append(me)
            if not self._value:
                machine.ready.remove(me)
                machine.wait(me, standins._until(machine, timeout))
        else:
            self.wanted.append(me)
            me.location, me.writes, me.what = self, True, "acquire"
            if self._value:
                machine.step(me)
            else:
                machine.ready.remove(me)
                machine.wait(me)
        self.wanted.remove(me)
        standins._met(machine, me, self)
        if me.timed_out and not self._value:
            return False
        self._value -= 1
        if not self._value:
            for it in self.wanted:
                if it in machine.ready and not it.timed_out:
                    machine.ready.remove(it)
        return True

    __enter__ = acquire

    def release(self, n: int = 1) -> None:
        if n < 1:
            raise ValueError("n must be one or more")
        me = standins.caller()
        machine = standins._machine
        if me is not None and machine is not None and not machine.aborting:
            standins._point(machine, me, self, "release")
        if self._bound is not None and self._value + n > self._bound:
            raise ValueError("Semaphore released too many times")
        self._value += n
        if me is None or machine is None or machine.aborting:
            return
        if machine.tracking:
            machine.note(me, self, True)
        standins._left(machine, me, self)
        for it in self.wanted:
            if it not in machine.ready:
                machine.wake(it)

    def __exit__(self, *_: object) -> None:
        self.release()


def bounded(value: int = 1) -> Semaphore:
    """Stands in for `threading.BoundedSemaphore`."""
    return Semaphore(value, bound=value)


class Event(Location):
    """Stands in for `threading.Event`."""

    __slots__ = ("_flag", "waiting")

    def __init__(self) -> None:
        super().__init__()
        self._flag = False
        self.waiting: list[Logical] = []

    def _at(self, what: str, writes: bool) -> Machine | None:
        me = standins.caller()
        machine = standins._machine
        if me is None or machine is None:
            return None
        if machine.aborting:
            machine.pass_through(me)
            return None
        standins._point(machine, me, self, what, writes)
        if writes:
            if machine.tracking:
                machine.note(me, self, True)
            standins._left(machine, me, self)
        else:
            standins._met(machine, me, self, writes=False)
        return machine

    def is_set(self) -> bool:
        self._at("is_set", writes=False)
        return self._flag

    isSet = is_set  # noqa: N815

    def set(self) -> None:
        machine = self._at("set", writes=True)
        self._flag = True
        if machine is not None:
            for it in self.waiting:
                machine.wake(it)
            self.waiting.clear()

    def clear(self) -> None:
        self._at("clear", writes=True)
        self._flag = False

    def wait(self, timeout: float | None = None) -> bool:
        machine = self._at("wait", writes=False)
        if self._flag:
            return True
        if machine is None:
            if standins._machine is not None and standins._machine.aborting:
                raise Aborted
            raise RuntimeError("nobody can wait here: this is outside of a run")
        me = machine.current
        if timeout is not None and timeout <= 0:
            return False
        self.waiting.append(me)
        machine.ready.remove(me)
        machine.wait(me, standins._until(machine, timeout))
        if me in self.waiting:
            self.waiting.remove(me)
        standins._met(machine, me, self, writes=False)
        return self._flag or not me.timed_out
