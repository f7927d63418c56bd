"""Two locks, taken in two orders."""

from __future__ import annotations

import threading

from examples.hazards.lesson import Lesson


class Buffer:
    """Elements, and the lock that guards them."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.lock = threading.Lock()
        self.elements = [1, 2, 3]  # lock


class Exchange:
    """Two threads move an element, in opposite directions."""

    def __init__(self) -> None:
        self.one = Buffer(1)
        self.other = Buffer(2)

    def actor_there(self) -> None:
        self.move(self.one, self.other)

    def actor_back(self) -> None:
        self.move(self.other, self.one)

    def move(self, source: Buffer, target: Buffer) -> None:
        with source.lock:  # noqa: SIM117  # one after the other, as they are taken
            with target.lock:
                target.elements.append(source.elements.pop())

    def at_end(self) -> None:
        assert len(self.one.elements) + len(self.other.elements) == 6


class OrderedExchange(Exchange):
    """Takes the lock with the lower number first, whichever way the element goes."""

    def move(self, source: Buffer, target: Buffer) -> None:
        first, second = sorted((source, target), key=lambda buffer: buffer.number)
        with first.lock:  # noqa: SIM117
            with second.lock:
                target.elements.append(source.elements.pop())


LESSON = Lesson(
    title="Lock order",
    hazard="""Each thread has the lock that the other one wants next. Neither is wrong by itself, and neither will ever
    go on.""",
    broken=Exchange,
    fixed=OrderedExchange,
    fix="one order for all locks, by a number that does not change; or one lock.",
)

if __name__ == "__main__":
    LESSON.teach()
