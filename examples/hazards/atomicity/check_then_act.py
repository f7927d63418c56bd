"""What was true when it was looked at is not true any more when it is acted upon."""

from __future__ import annotations

from collections.abc import Callable

from examples.hazards.lesson import Lesson
from reactive_runtime.atomics import AtomicInteger


class Slots:
    """A buffer with one free place; two threads want it. The number itself is atomic, which does not help."""

    def __init__(self) -> None:
        self.free = AtomicInteger(1)
        self.taken = AtomicInteger(0)

    def actor_a(self) -> None:
        self.take()

    def actor_b(self) -> None:
        self.take()

    def take(self) -> None:
        if self.free.get() > 0:
            self.free.add_and_get(-1)
            self.taken.add_and_get(1)

    def at_end(self) -> None:
        assert self.taken.get() <= 1, f"there was one place, and {self.taken.get()} took it"


class ComparedSlots(Slots):
    """Takes a place only if the number is still what it was when it was looked at."""

    def take(self) -> None:
        fewer: Callable[[int], int] = lambda free: max(free - 1, 0)  # noqa: E731
        if self.free.get_and_update(fewer) > 0:
            self.taken.add_and_get(1)


LESSON = Lesson(
    title="Check, then act",
    hazard="""Two atomic steps are not one: between `get` and `add_and_get` another thread may do both. Both saw a free
    place, and both took it.""",
    broken=Slots,
    fixed=ComparedSlots,
    fix="check and act in one atomic step, by compare-and-set or under a lock.",
)

if __name__ == "__main__":
    LESSON.teach()
