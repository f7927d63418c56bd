"""The thread that requests drains, whether or not another one does already."""

from __future__ import annotations

import threading

from examples.hazards.lesson import AndIf, Lesson, Met
from reactive_runtime.atomics import AtomicBoolean, AtomicInteger


class EachThreadDrains:
    """Delivers on every thread that requests."""

    rule = "1.3"

    def __init__(self) -> None:
        self.demand = AtomicInteger()
        self.inside = AtomicBoolean()  # the subscriber is inside of on_next
        self.overlapped = AtomicBoolean()

    def actor_a(self) -> None:
        self.request(1)

    def actor_b(self) -> None:
        self.request(1)

    def request(self, n: int) -> None:
        self.demand.get_and_add(n)
        while self.demand.get_and_update(lambda demand: max(demand - 1, 0)) > 0:
            self.on_next()

    def on_next(self) -> None:
        if self.inside.get_and_set(True):
            self.overlapped.set(True)
        self.inside.set(False)

    def at_end(self) -> None:
        assert not self.overlapped.get(), "on_next began while another was under way"


class OneDrains(EachThreadDrains):
    """The thread that moves the demand away from zero drains, until it is zero again."""

    def request(self, n: int) -> None:
        if self.demand.get_and_add(n) > 0:
            return
        while True:
            self.on_next()
            if self.demand.add_and_get(-1) == 0:
                return


class LockedDelivery(EachThreadDrains):
    """Delivers under a lock."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()

    def on_next(self) -> None:
        with self.lock:
            super().on_next()


class RequestsFromInside(LockedDelivery):
    """The same, and the subscriber requests one more inside of the first `on_next`."""

    def __init__(self) -> None:
        super().__init__()
        self.requested = AtomicBoolean()

    def on_next(self) -> None:
        with self.lock:
            EachThreadDrains.on_next(self)
            if not self.requested.get_and_set(True):
                self.request(1)


LESSON = Lesson(
    title="Two drains at once",
    terms=("atomicity violation", "mutual exclusion", "serial signals"),
    hazard="""Each request takes its part of the demand, and delivers it, on its own thread. The counting is right, and
    nothing is lost. But a subscriber, which never has to be thread-safe, is called by two threads at the same time.""",
    broken=EachThreadDrains,
    question="No element is delivered twice and none is lost. What is wrong all the same?",
    fixed=OneDrains,
    fix="one owner: the thread that finds the drain idle has it, and every other leaves demand and goes.",
    and_if=(
        AndIf(
            question="each delivered under a lock?",
            answer="That is serial, as long as the subscriber calls nothing.",
            program=LockedDelivery,
            fails=False,
        ),
        AndIf(
            question="the subscriber requested one more inside of `on_next`?",
            answer="The thread waits for the lock that it has. An owner that leaves notes has no such lock.",
            program=RequestsFromInside,
            fails=True,
        ),
    ),
    met=(
        Met(
            what="Step 8 of the textbook's publisher (`examples/stream_publisher`), its last, runs two drains at once.",
            where="https://github.com/reactive-streams/reactive-streams-jvm/tree/v1.0.4/tck",
        ),
    ),
    gil="either way",
)

if __name__ == "__main__":
    LESSON.teach()
