"""Two locks, taken in two orders: a deadlock."""

from __future__ import annotations

import threading

from examples.hazards.lesson import AndIf, Lesson, Met


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
        with source.lock:  # noqa: SIM117  # two lines, for the picture
            with target.lock:
                target.elements.append(source.elements.pop())

    def at_end(self) -> None:
        assert len(self.one.elements) + len(self.other.elements) == 6


class OrderedExchange(Exchange):
    """Takes the lock with the lower number first, whichever way the element goes; and none where it stays."""

    def move(self, source: Buffer, target: Buffer) -> None:
        if source is target:
            return
        first, second = sorted((source, target), key=lambda buffer: buffer.number)
        with first.lock, second.lock:
            target.elements.append(source.elements.pop())


class OrderedOnly(Exchange):
    """Takes the locks in order, and does not ask whether they are one."""

    def actor_stays(self) -> None:
        self.move(self.one, self.one)

    def move(self, source: Buffer, target: Buffer) -> None:
        first, second = sorted((source, target), key=lambda buffer: buffer.number)
        with first.lock, second.lock:
            target.elements.append(source.elements.pop())


class OrderedAndStays(OrderedExchange):
    """The one that is put right, and a third thread that moves an element to where it is."""

    def actor_stays(self) -> None:
        self.move(self.one, self.one)


class OneLock(Exchange):
    """One lock for all buffers."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()

    def move(self, source: Buffer, target: Buffer) -> None:
        with self.lock:
            target.elements.append(source.elements.pop())


LESSON = Lesson(
    title="Lock order: a deadlock",
    terms=("deadlock", "circular wait", "lock-order inversion", "Coffman's conditions"),
    hazard="""Each thread has the lock that the other one wants next. Neither is wrong by itself, and neither will ever
    go on. Four things make a deadlock, after Coffman: locks that exclude, threads that hold one and wait for another,
    locks that are not taken away, and a circle of such threads.""",
    broken=Exchange,
    question="Each thread takes two locks. After which step can neither go on?",
    fixed=OrderedExchange,
    fix="break the circle: one order for all locks, by a number that does not change; or one lock.",
    and_if=(
        AndIf(
            question="an element were moved to where it is, `move(x, x)`, with locks that are only put in order?",
            answer="Then a thread waits for a lock that it has itself.",
            program=OrderedOnly,
            fails=True,
        ),
        AndIf(
            question="the one that is put right did that?",
            answer="It asks first, and takes no lock.",
            program=OrderedAndStays,
            fails=False,
        ),
        AndIf(
            question="there were one lock for all?",
            answer="No circle has one member. Moves then wait for each other that need not.",
            program=OneLock,
            fails=False,
        ),
    ),
    met=(
        Met(
            what="cacheout 0.17.0: two locks are taken in both orders (`python -m examples.found cacheout`).",
            where="https://pypi.org/project/cacheout/0.17.0/",
        ),
        Met(
            what="Coffman, Elphick and Shoshani, System Deadlocks, 1971.",
            where="https://doi.org/10.1145/356586.356588",
        ),
    ),
    gil="either way",
)

if __name__ == "__main__":
    LESSON.teach()
