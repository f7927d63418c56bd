"""A thread waits for a lock that it has."""

from __future__ import annotations

import threading
from collections.abc import Callable

from examples.hazards.lesson import AndIf, Lesson, Met


class Account:
    """A balance, a method that adds, and one that adds twice."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.balance = 0  # lock

    def actor_a(self) -> None:
        self.add_twice(5)

    def add(self, amount: int) -> None:
        with self.lock:
            self.balance += amount

    def add_twice(self, amount: int) -> None:
        with self.lock:
            self.add(amount)
            self.add(amount)

    def at_end(self) -> None:
        assert self.balance == 10, self.balance


class InnerMethod(Account):
    """What is called with the lock held takes none; what is public takes it, once."""

    def add(self, amount: int) -> None:
        with self.lock:
            self._add(amount)

    def add_twice(self, amount: int) -> None:
        with self.lock:
            self._add(amount)
            self._add(amount)

    def _add(self, amount: int) -> None:
        self.balance += amount


class Reentrant(Account):
    """A thread that has the lock gets it again."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.RLock()  # type: ignore[assignment]


class Listened:
    """A list under a lock that is reentrant, and a listener that comes in while it is changed."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.total = 0  # lock
        self.amounts: list[int] = []  # lock; the total is their sum
        self.listener: Callable[[], None] = self.look

    def actor_adds(self) -> None:
        self.add(5)

    def add(self, amount: int) -> None:
        with self.lock:
            self.amounts.append(amount)
            self.listener()
            self.total += amount

    def look(self) -> None:
        with self.lock:
            assert self.total == sum(self.amounts), "the listener sees the list changed, and the total not yet"


LESSON = Lesson(
    title="Self-deadlock",
    terms=("deadlock", "self-deadlock", "recursive lock", "reentrant lock"),
    hazard="""A method takes a lock, and calls another method that takes the same one. A `threading.Lock` does not know
    who has it. The thread waits for itself, and every other one then waits for that thread.""",
    broken=Account,
    question="`add` works, and so does every test of it. What happens at the first `add_twice`?",
    fixed=InnerMethod,
    fix="public methods take the lock, once, and call inner ones that expect it to be held.",
    and_if=(
        AndIf(
            question="it were an `RLock`?",
            answer="The same thread gets it again, and this program holds.",
            program=Reentrant,
            fails=False,
        ),
        AndIf(
            question="every lock were an `RLock`?",
            answer="Then a call from inside comes into the middle of a change, which a lock is there to prevent.",
            program=Listened,
            fails=True,
        ),
    ),
    met=(
        Met(
            what="loguru: an object whose `__del__` logs is collected while the same thread logs.",
            where="https://github.com/Delgan/loguru/issues/712",
        ),
        Met(
            what="wandb: the same, where a lock that was reentrant had been made one that is not.",
            where="https://github.com/wandb/wandb/pull/11402",
        ),
    ),
    gil="one thread",
)

if __name__ == "__main__":
    LESSON.teach()
