"""Programs of other collections that have no counterpart in SCTBench."""

from __future__ import annotations

from threading import Condition, Event, Lock

from explore.sctbench._program import Program, entry
from explore.sctbench.cs import Reorder, Wronglock

__all__ = ["PROGRAMS"]


class NotifyOrder(Program, first=1, second=1, notify=1):
    """Fray: of two threads that one call wakes, the one that waited first is taken to go on first."""

    def set_up(self) -> None:
        self.changed = Condition()
        self.waiting = 0
        self.go = self.first_went = False

    def enter(self) -> None:
        self.waiting += 1
        self.changed.notify_all()
        while not self.go:
            self.changed.wait()

    def first(self) -> None:
        with self.changed:
            self.enter()
            self.first_went = True
            self.changed.notify_all()

    def second(self) -> None:
        with self.changed:
            self.enter()
            while self.fixed and not self.first_went:
                self.changed.wait()
            assert self.first_went, "the second went first"

    def notify(self) -> None:
        with self.changed:
            while self.waiting < 2:
                self.changed.wait()
            self.go = True
            self.changed.notify_all()


class BeforeReacquire(Program, wait=1, wake=1):
    """Fray: a thread that has been woken is taken to have the lock before the one that woke it takes it again."""

    def set_up(self) -> None:
        self.changed = Condition()
        self.waits = Event()
        self.woken = False

    def wait(self) -> None:
        with self.changed:
            self.waits.set()
            self.changed.wait()
            self.woken = True
            self.changed.notify_all()

    def wake(self) -> None:
        self.waits.wait()
        with self.changed:
            self.changed.notify()
        with self.changed:
            while self.fixed and not self.woken:
                self.changed.wait()
            assert self.woken, "not yet woken"


class MonitorDeadlock(Program, wait=1, wake=1):
    """Fray: a thread waits at one condition and keeps the lock of another."""

    def set_up(self) -> None:
        self.outer = Lock()
        self.inner = Condition()
        self.go = False

    def wait(self) -> None:
        if self.fixed:
            with self.inner:
                self.inner.wait_for(lambda: self.go)
        else:
            with self.outer, self.inner:
                self.inner.wait_for(lambda: self.go)

    def wake(self) -> None:
        with self.outer, self.inner:
            self.go = True
            self.inner.notify()


class BoundedBuffer(Program, read=2, write=1):
    """Shuttle, Coyote: readers and writers of a full buffer wait at one condition, and one call wakes one of them."""

    def set_up(self) -> None:
        self.changed = Condition()
        self.buffer: list[int] = []

    def wake(self) -> None:
        if self.fixed:
            self.changed.notify_all()
        else:
            self.changed.notify()

    def read(self) -> None:
        for _ in range(2):
            with self.changed:
                while not self.buffer:
                    self.changed.wait()
                self.buffer.pop()
                self.wake()

    def write(self) -> None:
        for number in range(4):
            with self.changed:
                while len(self.buffer) == 1:
                    self.changed.wait()
                self.buffer.append(number)
                self.wake()


class Uneven(Program, short=1, long=1):
    """Shuttle, after the paper on SURW: a thread of one step has to come behind nearly all of a long one's."""

    def set_up(self) -> None:
        self.lock = Lock()
        self.steps = 0

    def short(self) -> None:
        with self.lock:
            assert self.steps < (26 if self.fixed else 25), "behind all of the other"

    def long(self) -> None:
        for _ in range(25):
            with self.lock:
                self.steps += 1


class Publication(Program, write=2):
    """RADBench (Apache): a buffer's length is raised before its text is in it."""

    def set_up(self) -> None:
        self.lock = Lock()
        self.length = 0
        self.buffer = [""] * 4

    def put(self, text: str) -> None:
        at = self.length
        self.buffer[at] = text
        self.length = at + 1

    def write(self, number: int) -> None:
        for turn in range(2):
            if self.fixed:
                with self.lock:
                    self.put(f"{number}.{turn}")
            else:
                self.put(f"{number}.{turn}")

    def at_end(self) -> None:
        assert all(self.buffer), f"a line is lost: {self.buffer}"


class Increment(Program, increment=2):
    """RADBench (memcached): a value is read under a lock, and written under it again later."""

    def set_up(self) -> None:
        self.cache = Lock()
        self.both = Lock()
        self.value = 0

    def once(self) -> None:
        with self.cache:
            value = self.value
        with self.cache:
            self.value = value + 1

    def increment(self) -> None:
        if self.fixed:
            with self.both:
                self.once()
        else:
            self.once()

    def at_end(self) -> None:
        assert self.value == 2, "an increment is lost"


class ThreadPool(Program, work=2, stop=1):
    """Inspect: the stop of a pool comes between the look of a worker at a flag and its wait."""

    def set_up(self) -> None:
        self.changed = Condition()
        self.stopped = False

    def work(self) -> None:
        with self.changed:
            while not self.stopped:
                self.changed.wait()

    def stop(self) -> None:
        if self.fixed:
            with self.changed:
                self.stopped = True
                self.changed.notify_all()
        else:
            self.stopped = True
            with self.changed:
                self.changed.notify()


PROGRAMS = [
    entry("Fray, Reorder50", Reorder, set=49),
    entry("Fray, Reorder100", Reorder, set=99),
    entry("Fray, Wronglock1", Wronglock, other=1),
    entry("Fray, NotifyOrder", NotifyOrder),
    entry("Fray, RescheduleBeforeWait", BeforeReacquire),
    entry("Fray, MonitorDeadlock", MonitorDeadlock),
    entry("Shuttle, bounded buffer", BoundedBuffer),
    entry("Shuttle, uneven threads", Uneven),
    entry("RADBench, Apache log", Publication),
    entry("RADBench, memcached incr", Increment),
    entry("Inspect, thread pool", ThreadPool),
]
