"""What stands in for the primitives of `threading` while a program is explored.

Each does what its original does, on plain fields: exactly one thread runs, so nothing has to be guarded. What can be
noticed by another thread is a point (`Machine.step`); what has to wait waits in the machine, where a deadlock can be
seen and the clock is virtual. A lock that is taken keeps those that want it out of the ready ones, so no schedule is
spent on a thread that would only find it taken.

Letting a lock go is a point only in programs that try a lock without waiting: nobody else can tell the difference.

Outside of a run, or while an invariant looks at the state, a stand-in works as long as it need not wait.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reactive_runtime.explore.carriers import real_ident
from reactive_runtime.explore.machine import Aborted, Logical, Machine

__all__ = [
    "Condition",
    "Event",
    "ForeignThreadError",
    "Location",
    "Lock",
    "RLock",
    "Semaphore",
    "bounded",
    "caller",
    "standing_for",
]

_machine: Machine | None = None
"""The machine that runs; written before and after an exploration, by its thread."""


class ForeignThreadError(RuntimeError):
    """A thread that the explorer does not control uses what it controls."""


def standing_for(machine: Machine | None) -> Machine | None:
    """The machine that stand-ins ask from now on; returns the one before."""
    global _machine
    before, _machine = _machine, machine
    return before


def running() -> Machine:
    """The machine; there is one."""
    assert _machine is not None
    return _machine


def caller() -> Logical | None:
    """The logical thread that calls; None outside of a run, and while an invariant looks."""
    machine = _machine
    if machine is None or not machine.active or machine.quiet:
        return None
    me = machine.current
    if real_ident() != me.ident:
        raise ForeignThreadError(
            "a thread that is not part of the exploration uses a primitive that is: threads and pools have to be"
            " made inside of the scenario"
        )
    return me


class Location:
    """Something that threads share: what was done to it last, for those who come after."""

    __slots__ = ("__weakref__", "r", "vc", "w")

    def __init__(self) -> None:
        self.w = self.r = 0  # chains: of the last that changed it, and of those that have looked since
        self.vc: list[int] = []  # the vector clock of whoever let it go last


def _met(machine: Machine, me: Logical, it: Location, writes: bool = True) -> None:
    """`me` has come after all that was done to `it`."""
    if machine.races and it.vc:
        machine.join(me, it.vc)
    if machine.tracking:
        machine.note(me, it, writes)


def _left(machine: Machine, me: Logical, it: Location) -> None:
    """Whoever meets `it` later comes after what `me` has done so far."""
    if machine.races:
        vc = machine.leave(me)
        if it.vc:  # others have left it as well: a semaphore, an event
            vc = [
                max(a, b)
                for a, b in zip(vc + [0] * (len(it.vc) - len(vc)), it.vc + [0] * (len(vc) - len(it.vc)), strict=True)
            ]
        it.vc = vc


def _point(machine: Machine, me: Logical, it: Location | None, what: str, writes: bool = True) -> None:
    me.location, me.writes, me.what = it, writes, what
    machine.step(me)


def _until(machine: Machine, timeout: float | None) -> float | None:
    return None if timeout is None or timeout < 0 else machine.clock + timeout


class Lock(Location):
    """Stands in for `threading.Lock`."""

    __slots__ = ("left_by", "owner", "wanted")

    def __init__(self) -> None:
        self.w = self.r = 0
        self.vc = []
        self.left_by = -1  # the thread that let it go last
        self.owner: Any = None  # the logical thread that has it, or True where it was taken outside of a run
        self.wanted: list[Logical] = []  # those that wait for it, or are about to take it

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        machine = _machine
        if machine is None or not machine.active or machine.quiet:
            return self._outside(blocking)
        me = machine.current
        if real_ident() != me.ident:
            caller()  # says what is wrong
        if machine.aborting:
            machine.pass_through(me)
            self.owner = me
            return True
        if not blocking or timeout >= 0:
            if not blocking and timeout != -1:
                raise ValueError("can't specify a timeout for a non-blocking call")
            return self._try(machine, me, blocking, timeout)
        me.location, me.writes, me.what = self, True, "acquire"
        wanted = self.wanted
        wanted.append(me)
        me.timed_out = False
        if self.owner is None:
            machine.step(me)
        else:
            machine.ready.remove(me)
            machine.wait(me)
        if len(wanted) > 1 or machine.aborting:
            self._taken(machine, me)
            return True
        wanted.clear()  # `_taken`, written out for a lock that nobody else wants
        self.owner = me
        if machine.races and self.left_by != me.index and self.vc:
            machine.join(me, self.vc)
        if machine.tracking:
            machine.note(me, self, True)
        return True

    __enter__ = acquire

    def forget(self) -> None:
        """A new run begins."""
        self.w = self.r = 0
        self.vc = []
        self.left_by = -1
        self.owner = None
        self.wanted.clear()

    def _taken(self, machine: Machine, me: Logical) -> None:
        wanted = self.wanted
        if machine.aborting:
            self.owner = me
            return
        wanted.remove(me)
        self.owner = me
        for it in wanted:
            if not it.timed_out:
                machine.ready.remove(it)
        if machine.races and self.left_by != me.index and self.vc:
            machine.join(me, self.vc)
        if machine.tracking:
            machine.note(me, self, True)

    def _try(self, machine: Machine, me: Logical, blocking: bool, timeout: float) -> bool:
        machine.tried = True
        _point(machine, me, self, "acquire without waiting" if not blocking else "acquire with a timeout")
        if self.owner is None:
            self.wanted.append(me)
            for it in self.wanted:
                if it is not me and not it.timed_out:
                    machine.ready.remove(it)
            self.wanted.remove(me)
            self.owner = me
            _met(machine, me, self)
            return True
        if not blocking or timeout == 0:
            _met(machine, me, self)
            return False
        self.wanted.append(me)
        machine.ready.remove(me)
        machine.wait(me, _until(machine, timeout))
        if me.timed_out and self.owner is not None:
            self.wanted.remove(me)
            _met(machine, me, self)
            return False
        self._taken(machine, me)
        return True

    def _outside(self, blocking: bool) -> bool:
        if self.owner is None:
            self.owner = True
            return True
        if _machine is not None and _machine.quiet:
            return True  # an invariant looks at what a thread is in the middle of
        if not blocking:
            return False
        raise RuntimeError("this lock was left locked by a run that has ended")

    def release(self, *_: object) -> None:
        machine = _machine
        if machine is None or not machine.active or machine.quiet:
            if machine is None or not machine.quiet:
                self.owner = None
            return
        me = machine.current
        if machine.aborting:
            self.owner = None
            return
        if self.owner is None:
            raise RuntimeError("release unlocked lock")
        if machine.releases:
            _point(machine, me, self, "release")
        self.owner = None
        if self.wanted:
            for it in self.wanted:
                machine.wake(it)
        if machine.races:
            self.left_by = index = me.index
            self.vc = vc = me.vc
            me.vc = vc = vc.copy()
            vc[index] += 1
        if machine.tracking:
            machine.note(me, self, True)

    def locked(self) -> bool:
        me = caller()
        if me is not None and _machine is not None:
            _machine.tried = True
            _point(_machine, me, self, "locked", writes=False)
            _met(_machine, me, self, writes=False)
        return self.owner is not None

    __exit__ = release

    # For conditions: give it up whole, and the way back.

    def _is_owned(self) -> bool:
        return self.owner is not None

    def _give_up(self) -> Any:
        self.release()

    def _take_back(self, machine: Machine, me: Logical, state: Any) -> None:
        """`me` was woken, and wants the lock again; it is among the ready ones, or not if the lock is taken."""
        self._taken(machine, me)


class RLock(Lock):
    """Stands in for `threading.RLock`."""

    __slots__ = ("depth",)

    def __init__(self) -> None:
        super().__init__()
        self.depth = 0

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
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
        me = caller()
        if me is None:
            return
        assert _machine is not None
        if self.owner is not me:
            if _machine.aborting:
                return
            raise RuntimeError("cannot release un-acquired lock")
        self.depth -= 1
        if self.depth == 0:
            super().release()

    __enter__ = acquire
    __exit__ = release

    def _is_owned(self) -> bool:
        machine = _machine
        return machine is not None and self.owner is machine.current

    def _give_up(self) -> Any:
        depth, self.depth = self.depth, 1
        self.release()
        return depth

    def _take_back(self, machine: Machine, me: Logical, state: Any) -> None:
        super()._take_back(machine, me, state)
        self.depth = state


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
        self.vc = []
        self.number = 0  # in the order of their making: the same in every run that goes the same way
        if _machine is not None:
            _machine.made += 1
            self.number = _machine.made
        self._lock: Lock = RLock() if lock is None else lock
        self.acquire: Callable[..., bool] = self._lock.acquire
        self.release: Callable[[], None] = self._lock.release
        self.waiting: list[Logical] = []

    def __enter__(self) -> bool:
        return self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def wait(self, timeout: float | None = None) -> bool:
        me = caller()
        machine = _machine
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
        machine.wait(me, _until(machine, timeout))
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
        machine = _machine
        end = None if machine is None else _until(machine, timeout)
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
        me = caller()
        machine = _machine
        if me is None or machine is None or machine.aborting:
            return
        lock = self._lock
        if not lock._is_owned():
            raise RuntimeError("cannot notify on un-acquired lock")
        if machine.tracking:
            machine.note(me, self, True)
        if not self.waiting:
            return
        _left(machine, me, self)
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
        me = caller()
        machine = _machine
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
            _point(machine, me, self, "acquire without waiting" if not blocking else "acquire with a timeout")
            if not self._value and (not blocking or timeout is None or timeout <= 0):
                _met(machine, me, self)
                return False
            self.wanted.append(me)
            if not self._value:
                machine.ready.remove(me)
                machine.wait(me, _until(machine, timeout))
        else:
            self.wanted.append(me)
            me.location, me.writes, me.what = self, True, "acquire"
            if self._value:
                machine.step(me)
            else:
                machine.ready.remove(me)
                machine.wait(me)
        self.wanted.remove(me)
        _met(machine, me, self)
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
        me = caller()
        machine = _machine
        if me is not None and machine is not None and not machine.aborting:
            _point(machine, me, self, "release")
        if self._bound is not None and self._value + n > self._bound:
            raise ValueError("Semaphore released too many times")
        self._value += n
        if me is None or machine is None or machine.aborting:
            return
        if machine.tracking:
            machine.note(me, self, True)
        _left(machine, me, self)
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
        me = caller()
        machine = _machine
        if me is None or machine is None:
            return None
        if machine.aborting:
            machine.pass_through(me)
            return None
        _point(machine, me, self, what, writes)
        if writes:
            if machine.tracking:
                machine.note(me, self, True)
            _left(machine, me, self)
        else:
            _met(machine, me, self, writes=False)
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
            if _machine is not None and _machine.aborting:
                raise Aborted
            raise RuntimeError("nobody can wait here: this is outside of a run")
        me = machine.current
        if timeout is not None and timeout <= 0:
            return False
        self.waiting.append(me)
        machine.ready.remove(me)
        machine.wait(me, _until(machine, timeout))
        if me in self.waiting:
            self.waiting.remove(me)
        _met(machine, me, self, writes=False)
        return self._flag or not me.timed_out
