"""The set radbench: faults of SpiderMonkey and NSPR, at a reduced size."""

from __future__ import annotations

from threading import Condition, Lock

from explore.sctbench._program import Program, entry

__all__ = ["PROGRAMS"]


class ScriptNames(Program, destroy=1, compile=2):
    """Bug 1: the last context drops the empty table of script names, between another one's look and its use of it."""

    def set_up(self) -> None:
        self.lock = Lock()
        self.table: dict[str, int] | None = {}
        self.contexts = 3

    def leave(self) -> None:
        with self.lock:
            self.contexts -= 1

    def destroy(self) -> None:
        self.leave()
        if self.fixed:
            with self.lock:
                if self.table is not None and not self.table:
                    self.table = None
        elif self.table is not None and not self.table:
            self.table = None

    def compile(self, number: int) -> None:
        for turn in range(2):
            if self.fixed:
                with self.lock:
                    self.save(f"{number}.{turn}")
            else:
                with self.lock:
                    if self.table is None:
                        self.table = {}
                with self.lock:
                    assert self.table is not None, "the table has been dropped"
                    self.table[f"{number}.{turn}"] = turn
        self.leave()

    def save(self, name: str) -> None:
        if self.table is None:
            self.table = {}
        self.table[name] = 1


class ContextThread(Program, collect=1, use=3):
    """Bug 2: a context leaves its thread between the collector's look at that thread and its use of it."""

    def set_up(self) -> None:
        self.lock = Lock()
        self.owners: list[list[int] | None] = [None] * 3

    def set_owner(self, number: int, owner: list[int] | None) -> None:
        if self.fixed:
            with self.lock:
                self.owners[number] = owner
        else:
            self.owners[number] = owner

    def use(self, number: int) -> None:
        self.set_owner(number, [number])
        self.set_owner(number, None)

    def collect(self) -> None:
        with self.lock:
            for number in range(3):
                if self.owners[number] is not None:
                    owner = self.owners[number]
                    assert owner is not None, "the thread of a context is gone"
                    owner.clear()


class FirstContext(Program, use=2):
    """Bug 3: a thread asks whether it has the first context, and then waits for the collector, which ends the last."""

    def set_up(self) -> None:
        self.state = Condition()
        self.contexts = 0
        self.up = self.collecting = False

    def use(self) -> None:
        with self.state:
            first = self.contexts == 0
            while self.collecting:
                self.state.wait()
            if self.fixed:
                first = self.contexts == 0
            self.contexts += 1
            if first:
                assert not self.up, "launched twice"
                self.up = True
            else:
                assert self.up, "the runtime is down"
        with self.state:
            assert self.up, "the runtime is down"
            last = self.contexts == 1
            self.collecting = self.collecting or last
        if last:
            with self.state:
                self.contexts -= 1
                self.up = self.contexts > 0
                self.collecting = False
                self.state.notify_all()
        else:
            with self.state:
                self.contexts -= 1


class LocalTime(Program, explode=2):
    """Bug 4: two threads make the lock that guards the library's one buffer."""

    def set_up(self) -> None:
        self.guard = Lock()
        self.monitor: Lock | None = Lock() if self.fixed else None
        self.buffer = -1

    def explode(self, number: int) -> None:
        if self.monitor is None:
            self.monitor = Lock()
        with self.monitor:
            self.buffer = number
            assert self.buffer == number, "the buffer is another thread's"


class Interrupt(Program, wait=1, interrupt=1):
    """Bug 5: a thread is interrupted after it has looked for that, and before it has said at what it waits."""

    def set_up(self) -> None:
        self.changed = Condition()
        self.interrupted = False
        self.waits_at: Condition | None = None

    def is_interrupted(self) -> bool:
        return self.interrupted

    def wait(self) -> None:
        with self.changed:
            if self.is_interrupted():
                return
            self.waits_at = self.changed
            if self.fixed and self.is_interrupted():
                return
            self.changed.wait()

    def interrupt(self) -> None:
        self.interrupted = True
        waits_at = self.waits_at
        if waits_at is not None:
            with waits_at:
                waits_at.notify_all()


class ReadWriteLock(Program, read=1, write=1):
    """Bug 6: a reader that asks for the lock again waits for a writer, which waits for the reader."""

    def set_up(self) -> None:
        self.changed = Condition()
        self.readers = 0
        self.writers_waiting = 0

    def acquire_read(self, *, again: bool = False) -> None:
        with self.changed:
            while self.writers_waiting and not (again and self.fixed):
                self.changed.wait()
            self.readers += 1

    def release_read(self) -> None:
        with self.changed:
            self.readers -= 1
            self.changed.notify_all()

    def read(self) -> None:
        self.acquire_read()
        self.acquire_read(again=True)
        self.release_read()
        self.release_read()

    def write(self) -> None:
        with self.changed:
            self.writers_waiting += 1
            while self.readers:
                self.changed.wait()
            self.writers_waiting -= 1
            self.changed.notify_all()


PROGRAMS = [
    entry("radbench.bug1", ScriptNames),
    entry("radbench.bug2", ContextThread),
    entry("radbench.bug3", FirstContext),
    entry("radbench.bug4", LocalTime),
    entry("radbench.bug5", Interrupt),
    entry("radbench.bug6", ReadWriteLock),
]
