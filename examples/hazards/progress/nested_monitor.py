"""A thread waits on an inner condition, and keeps the outer lock, which the one that would wake it needs."""

from __future__ import annotations

import threading

from examples.hazards.lesson import AndIf, Lesson, Met


class Store:
    """A register under a lock, and in it a queue with a condition of its own."""

    def __init__(self) -> None:
        self.register = threading.Lock()
        self.changed = threading.Condition()
        self.elements: list[int] = []  # changed
        self.taken: list[int] = []

    def actor_takes(self) -> None:
        self.take()

    def actor_puts(self) -> None:
        self.put(1)

    def take(self) -> None:
        with self.register, self.changed:
            while not self.elements:
                self.changed.wait()  # releases `changed`, and not `register`
            self.taken.append(self.elements.pop())

    def put(self, element: int) -> None:
        with self.register, self.changed:
            self.elements.append(element)
            self.changed.notify()


class OneLock(Store):
    """One lock for both; the condition releases it."""

    def __init__(self) -> None:
        super().__init__()
        self.changed = threading.Condition(self.register)

    def take(self) -> None:
        with self.register:
            while not self.elements:
                self.changed.wait()
            self.taken.append(self.elements.pop())

    def put(self, element: int) -> None:
        with self.register:
            self.elements.append(element)
            self.changed.notify()


class WaitsOutside(Store):
    """Waits without the outer lock."""

    def take(self) -> None:
        with self.changed:
            while not self.elements:
                self.changed.wait()
            element = self.elements.pop()
        with self.register:
            self.taken.append(element)


class WithATimeout(Store):
    """Waits for a second, and tries again, with the outer lock all the time."""

    def take(self) -> None:
        with self.register, self.changed:
            for _ in range(3):
                if self.changed.wait_for(lambda: self.elements, timeout=1):
                    break
            assert self.elements, "it waited three times, and nothing came"
            self.taken.append(self.elements.pop())


LESSON = Lesson(
    title="Nested monitor",
    terms=("deadlock", "nested monitor lockout", "hold and wait"),
    hazard="""`wait` releases the lock of its condition, and no other. A thread that has a second one keeps it while it
    waits. The thread that would wake it needs that one first.""",
    broken=Store,
    question="The lock of the condition is released by `wait`. Which lock is not, and who needs it?",
    fixed=OneLock,
    fix="wait with one lock only: that of the condition. Put both under it, or wait before the outer one is taken.",
    and_if=(
        AndIf(
            question="it waited before it takes the outer lock?",
            answer="Then the other thread gets in.",
            program=WaitsOutside,
            fails=False,
        ),
        AndIf(
            question="it waited with a timeout, and tried again?",
            answer="The outer lock is held all the time, and each try fails.",
            program=WithATimeout,
            fails=True,
        ),
    ),
    met=(
        Met(
            what="Lister, The Problem of Nested Monitor Calls, 1977.",
            where="https://doi.org/10.1145/850644.850645",
        ),
    ),
    gil="either way",
)

if __name__ == "__main__":
    LESSON.teach()
