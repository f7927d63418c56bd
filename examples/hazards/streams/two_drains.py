"""The thread that requests drains, whether or not another one does already."""

from __future__ import annotations

from examples.hazards.lesson import Lesson
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


LESSON = Lesson(
    title="Two drains at once",
    hazard="""Each request takes its part of the demand, and delivers it, on its own thread. A subscriber, which never
    has to be thread-safe, is called by two threads at the same time.""",
    broken=EachThreadDrains,
    fixed=OneDrains,
    fix="one owner: the thread that finds the drain idle has it, and every other leaves demand and goes.",
)

if __name__ == "__main__":
    LESSON.teach()
