"""The race that the textbook draws as two columns: `request` looks whether a thread drains, and then adds."""

from __future__ import annotations

from examples.hazards.lesson import Lesson
from reactive_runtime.atomics import AtomicInteger


class TextbookSubscription:
    """A subscription that drains on the thread which finds no other draining."""

    rule = "3.8"

    def __init__(self) -> None:
        self.demand = AtomicInteger()
        self.delivered = AtomicInteger()

    def actor_a(self) -> None:
        self.request(1)

    def actor_b(self) -> None:
        self.request(1)

    def request(self, n: int) -> None:
        if self.demand.get() > 0:
            self.demand.get_and_add(n)
            return
        self.demand.get_and_add(n)
        self.drain()

    def drain(self) -> None:
        while self.demand.get() > 0:
            self.on_next()
            self.demand.add_and_get(-1)

    def on_next(self) -> None:
        self.delivered.add_and_get(1)

    def at_end(self) -> None:
        assert self.delivered.get() >= 2, f"2 elements were requested, and {self.delivered.get()} delivered"


class AddedAtOnce(TextbookSubscription):
    """Adds, and learns from the value before whether a thread drains."""

    def request(self, n: int) -> None:
        if self.demand.get_and_add(n) == 0:
            self.drain()

    def drain(self) -> None:
        while True:
            self.on_next()
            if self.demand.add_and_get(-1) == 0:
                return


LESSON = Lesson(
    title="Lost demand",
    hazard="""One thread sees that the other drains, and leaves it the demand; but the other has looked for the last
    time. Both return, the demand is there, and no thread delivers.""",
    broken=TextbookSubscription,
    fixed=AddedAtOnce,
    fix="`get_and_add` is one step: who finds the demand at zero drains, and who takes it back to zero stops.",
)

if __name__ == "__main__":
    LESSON.teach()
