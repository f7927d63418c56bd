"""The drain ends while another thread puts something into its queue."""

from __future__ import annotations

import threading
from collections import deque

from examples.hazards.lesson import AndIf, Lesson, Met


class HastyDrain:
    """A queue, and a flag that says whether a thread drains it. Each alone is guarded."""

    rule = "3.8"

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.queue: deque[str] = deque()  # lock
        self.busy = False  # lock
        self.delivered: list[str] = []  # owned by who drains
        self.inside = 0  # lock: threads that deliver
        self.most = 0  # lock

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
            self.deliver(element)
        with self.lock:
            self.busy = False

    def deliver(self, element: str) -> None:
        """Delivers, and notes how many threads are in here."""
        with self.lock:
            self.inside += 1
            self.most = max(self.most, self.inside)
        self.delivered.append(element)
        with self.lock:
            self.inside -= 1

    def taken(self) -> str | None:
        with self.lock:
            return self.queue.popleft() if self.queue else None

    def at_end(self) -> None:
        assert not self.queue, f"{list(self.queue)} waits, and no thread drains"
        assert self.most == 1, f"{self.most} threads delivered at once"


class CarefulDrain(HastyDrain):
    """Looks for the last time, and leaves, under one lock."""

    def drain(self) -> None:
        while (element := self.taken()) is not None:
            self.deliver(element)

    def taken(self) -> str | None:
        with self.lock:
            if self.queue:
                return self.queue.popleft()
            self.busy = False
            return None


class LooksOnceMore(HastyDrain):
    """Says that it leaves, and then looks once more, as the owner that it is no longer. Three elements come."""

    def actor_b(self) -> None:
        self.put("b")
        self.put("c")

    def drain(self) -> None:
        super().drain()
        while (element := self.taken()) is not None:
            self.deliver(element)


class ClaimsAgain(LooksOnceMore):
    """Says that it leaves, looks once more, and has to claim the drain again before it goes on."""

    def drain(self) -> None:
        while True:
            HastyDrain.drain(self)
            with self.lock:
                if self.busy or not self.queue:
                    return
                self.busy = True


LESSON = Lesson(
    title="Missed wake-up in a drain",
    terms=("atomicity violation", "lost wake-up", "missed signal"),
    hazard="""The drain finds its queue empty, and is about to say that it leaves. In between another thread adds an
    element, sees that the drain is busy, and relies on it. The element waits for the next one to come.""",
    broken=HastyDrain,
    question="Queue and flag are both guarded. Between which two steps of the drain does the element have to come?",
    fixed=CarefulDrain,
    fix="the last look and the leaving are one step, under the lock that elements are left under.",
    and_if=(
        AndIf(
            question="the drain looked once more after it has left?",
            answer="Nothing is lost then, but another thread may drain already, and two deliver at once: the usual "
            "wrong fix.",
            program=LooksOnceMore,
            fails=True,
        ),
        AndIf(
            question="it claimed the drain again for that look?",
            answer="That holds: there is one owner at any time.",
            program=ClaimsAgain,
            fails=False,
        ),
    ),
    met=(
        Met(
            what="usersim of Microsoft: a wait that misses its wake-up, since what it waits for was changed without "
            "the lock.",
            where="https://github.com/microsoft/usersim/pull/61",
        ),
    ),
    gil="either way",
)

if __name__ == "__main__":
    LESSON.teach()
