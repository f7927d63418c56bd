"""The drain ends while another thread puts something into its queue."""

from __future__ import annotations

import threading
from collections import deque

from examples.hazards.lesson import Lesson


class HastyDrain:
    """A queue, and a flag that says whether a thread drains it. Each alone is guarded."""

    rule = "3.8"

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.queue: deque[str] = deque()  # lock
        self.busy = False  # lock
        self.delivered: list[str] = []  # owned by who drains

    def actor_a(self) -> None:
        self.put("a")

    def actor_b(self) -> None:
        self.put("b")

    def put(self, element: str) -> None:
        with self.lock:
            self.queue.append(element)
            if self.busy:
                return  # the thread that drains will see it
            self.busy = True
        self.drain()

    def drain(self) -> None:
        while (element := self.taken()) is not None:
            self.delivered.append(element)
        with self.lock:
            self.busy = False

    def taken(self) -> str | None:
        with self.lock:
            return self.queue.popleft() if self.queue else None

    def at_end(self) -> None:
        assert not self.queue, f"{list(self.queue)} waits, and no thread drains"


class CarefulDrain(HastyDrain):
    """Looks for the last time, and leaves, under one lock."""

    def drain(self) -> None:
        while (element := self.taken()) is not None:
            self.delivered.append(element)

    def taken(self) -> str | None:
        with self.lock:
            if self.queue:
                return self.queue.popleft()
            self.busy = False
            return None


LESSON = Lesson(
    title="Missed wake-up in a drain",
    hazard="""The drain finds its queue empty, and is about to say that it leaves. In between another thread adds an
    element, sees that the drain is busy, and relies on it.""",
    broken=HastyDrain,
    fixed=CarefulDrain,
    fix="the last look and the leaving are one step, under the lock that notes are left under.",
)

if __name__ == "__main__":
    LESSON.teach()
