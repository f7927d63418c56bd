"""What was true when it was looked at is not true any more when it is acted upon."""

from __future__ import annotations

import threading
from collections.abc import Callable

from examples.hazards.lesson import AndIf, Lesson, Met
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


class LockedLook(Slots):
    """Looks under a lock, and acts under it: but not in one go."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()

    def take(self) -> None:
        with self.lock:
            is_free = self.free.get() > 0
        if is_free:
            with self.lock:
                self.free.add_and_get(-1)
                self.taken.add_and_get(1)


class LockedSlots(LockedLook):
    """Looks and acts under one lock, without a break."""

    def take(self) -> None:
        with self.lock:
            if self.free.get() > 0:
                self.free.add_and_get(-1)
                self.taken.add_and_get(1)


LESSON = Lesson(
    title="Check, then act",
    terms=("atomicity violation", "check-then-act", "time of check to time of use (TOCTOU)"),
    hazard="""A thread looks, decides, and acts. Each of its steps is atomic, and together they are not: in between
    another thread may do the same. Both saw a free place, and both took it.""",
    broken=Slots,
    question="There is one free place, and both threads ask for it. How do both get it, though each call is atomic?",
    fixed=ComparedSlots,
    fix="check and act in one atomic step, by compare-and-set or under a lock.",
    and_if=(
        AndIf(
            question="the look and the act were each under a lock?",
            answer="The lock is released in between, and the other thread comes in there.",
            program=LockedLook,
            fails=True,
        ),
        AndIf(
            question="they were under a lock together?",
            answer="Then no thread sees the place as free that another one is about to take.",
            program=LockedSlots,
            fails=False,
        ),
    ),
    met=(
        Met(
            what="The Therac-25 gave overdoses; races between tasks that shared variables without synchronisation were "
            "among the causes. Leveson and Turner, An Investigation of the Therac-25 Accidents, 1993.",
            where="https://doi.org/10.1109/MC.1993.274940",
        ),
        Met(
            what="token-bucket 0.4.0: a bucket of one token gives two (`python -m examples.found token_bucket`).",
            where="https://pypi.org/project/token-bucket/0.4.0/",
        ),
        Met(
            what="Bishop and Dilger, Checking for Race Conditions in File Accesses: a file is checked, and "
            "another one is opened.",
            where="Computing Systems 9(2), 1996",
        ),
    ),
    gil="either way",
)

if __name__ == "__main__":
    LESSON.teach()
