"""A thread that is woken does not look again."""

from __future__ import annotations

import threading

from examples.hazards.lesson import AndIf, Lesson, Met


class Shelf:
    """Two take an element each; a third puts two there."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.elements: list[int] = []  # changed

    def actor_a(self) -> None:
        self.take()

    def actor_b(self) -> None:
        self.take()

    def actor_puts(self) -> None:
        self.put(1)
        self.put(2)

    def take(self) -> int:
        with self.changed:
            if not self.elements:
                self.changed.wait()
            return self.elements.pop()

    def put(self, element: int) -> None:
        with self.changed:
            self.elements.append(element)
            self.changed.notify_all()


class LooksAgain(Shelf):
    """Looks again each time it is woken."""

    def take(self) -> int:
        with self.changed:
            while not self.elements:
                self.changed.wait()
            return self.elements.pop()


class NotifiesOne(Shelf):
    """Wakes one thread for each element."""

    def put(self, element: int) -> None:
        with self.changed:
            self.elements.append(element)
            self.changed.notify()


class WaitsFor(Shelf):
    """`wait_for` has the loop in it."""

    def take(self) -> int:
        with self.changed:
            self.changed.wait_for(lambda: self.elements)
            return self.elements.pop()


LESSON = Lesson(
    title="`if` instead of `while`",
    terms=("order violation", "spurious wake-up", "stolen wake-up", "barging"),
    hazard="""A thread that is woken from a condition first has to take the lock again. Until it has it, another thread
    may have taken what it was woken for. With `if` it does not look again, and takes what is not there.""",
    broken=Shelf,
    question="Two elements come, and two threads take one each. How does one of them find nothing?",
    fixed=LooksAgain,
    fix="wait in a loop: `while not condition: wait()`, or `wait_for(condition)`.",
    and_if=(
        AndIf(
            question="each element woke one thread only?",
            answer="A thread that comes now, and did not wait, takes the element before the one that was woken.",
            program=NotifiesOne,
            fails=True,
        ),
        AndIf(
            question="`wait_for` were used?",
            answer="It is the same loop.",
            program=WaitsFor,
            fails=False,
        ),
    ),
    met=(
        Met(
            what="Lampson and Redell, Experience with Processes and Monitors in Mesa, 1980: since a notified thread "
            "only competes for the monitor, it has to look again.",
            where="https://doi.org/10.1145/358818.358824",
        ),
    ),
    gil="either way",
)

if __name__ == "__main__":
    LESSON.teach()
