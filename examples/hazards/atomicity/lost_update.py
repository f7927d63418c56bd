"""Two threads add to one number, and one addition is lost."""

from __future__ import annotations

import threading
from typing import Any

from examples.hazards.lesson import AndIf, Lesson, Met
from reactive_runtime.atomics import AtomicInteger


class Counter:
    """A number that two threads add to."""

    def __init__(self) -> None:
        self.count = 0

    def actor_a(self) -> None:
        self.add()

    def actor_b(self) -> None:
        self.add()

    def add(self) -> None:
        self.count += 1

    def at_end(self) -> None:
        assert self.count == 2, f"two were added, and the count is {self.count}"


class LockedCounter(Counter):
    """Reads and writes under one lock."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()

    def add(self) -> None:
        with self.lock:
            self.count += 1


class AtomicCounter:
    """Adds in one step."""

    def __init__(self) -> None:
        self.count = AtomicInteger()

    def actor_a(self) -> None:
        self.add()

    def actor_b(self) -> None:
        self.add()

    def add(self) -> None:
        self.count.add_and_get(1)

    def at_end(self) -> None:
        assert self.count.get() == 2, f"two were added, and the count is {self.count.get()}"


class GetAndSet(AtomicCounter):
    """Reads an atomic, and sets it: two steps."""

    def add(self) -> None:
        self.count.set(self.count.get() + 1)


class OwnLocks(Counter):
    """Each thread locks, and not the same lock."""

    def __init__(self) -> None:
        super().__init__()
        self.locks = {"a": threading.Lock(), "b": threading.Lock()}

    def actor_a(self) -> None:
        self.add_under(self.locks["a"])

    def actor_b(self) -> None:
        self.add_under(self.locks["b"])

    def add_under(self, lock: Any) -> None:
        with lock:
            self.count += 1


LESSON = Lesson(
    title="Lost update",
    terms=("atomicity violation", "lost update", "read-modify-write", "data race"),
    hazard="""`count += 1` is a load, an addition and a store. Where another thread stores between the load and the
    store, its addition is overwritten. No thread sees an error, and the number is too small.""",
    broken=Counter,
    question="Two threads add 1 to 0, each once. Which numbers can come out, after which orders of loads and stores?",
    fixed=LockedCounter,
    fix="make load and store one step: under a lock, or with `AtomicInteger.add_and_get`.",
    and_if=(
        AndIf(
            question="it were an `AtomicInteger` and `add_and_get`?",
            answer="That is one step, and no lock is needed.",
            program=AtomicCounter,
            fails=False,
        ),
        AndIf(
            question="it were an `AtomicInteger`, read with `get` and written with `set`?",
            answer="Each of the two is atomic, and the pair is not: the update is lost as before.",
            program=GetAndSet,
            fails=True,
        ),
        AndIf(
            question="each thread had a lock of its own?",
            answer="A lock keeps out only the threads that take the same one.",
            program=OwnLocks,
            fails=True,
        ),
    ),
    met=(
        Met(
            what="tqdm 4.69.0: a bar counts one update of two (`python -m examples.found tqdm`).",
            where="https://pypi.org/project/tqdm/4.69.0/",
        ),
    ),
    gil="only without",
    gil_note="In one line with a call in it, `self.count = self.count + f()`, it happens with a GIL, too.",
)

if __name__ == "__main__":
    LESSON.teach()
