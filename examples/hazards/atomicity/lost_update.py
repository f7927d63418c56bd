"""Two threads add to one number, and one addition disappears."""

from __future__ import annotations

import threading

from examples.hazards.lesson import Lesson


class Counter:
    """Counts requests, in a plain field."""

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


LESSON = Lesson(
    title="Lost update",
    hazard="""`count += 1` is a load, an addition and a store. Where another thread stores in between, its addition is
    overwritten.""",
    broken=Counter,
    fixed=LockedCounter,
    fix="make load and store one step: under a lock, or with `AtomicInteger.add_and_get`.",
)

if __name__ == "__main__":
    LESSON.teach()
