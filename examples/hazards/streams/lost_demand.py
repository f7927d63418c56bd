"""The race that the textbook draws as two columns: `request` looks whether a thread drains, and then adds."""

from __future__ import annotations

from examples.hazards.lesson import AndIf, Lesson, Met
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


class LooksTwice(TextbookSubscription):
    """Adds first, and then looks whether it was the first to add; the drain is as it was."""

    def request(self, n: int) -> None:
        self.demand.get_and_add(n)
        if self.demand.get() == n:
            self.drain()


class AlwaysDrains(TextbookSubscription):
    """Adds, and drains in any case: then nothing is lost, and two drain at once."""

    def __init__(self) -> None:
        super().__init__()
        self.inside = AtomicInteger()
        self.most = AtomicInteger()

    def request(self, n: int) -> None:
        self.demand.get_and_add(n)
        self.drain()

    def on_next(self) -> None:
        inside = self.inside.add_and_get(1)
        self.most.get_and_update(lambda most: max(most, inside))
        super().on_next()
        self.inside.add_and_get(-1)

    def at_end(self) -> None:
        assert self.most.get() <= 1, "two threads were inside of on_next"


LESSON = Lesson(
    title="Lost demand",
    terms=("atomicity violation", "lost wake-up", "check-then-act"),
    hazard="""One thread sees that the other drains, and leaves it the demand. But the other has looked for the last
    time. Both return, the demand is there, and no thread delivers.""",
    broken=TextbookSubscription,
    question="Both threads request 1. Which look comes too early, and which too late?",
    fixed=AddedAtOnce,
    fix="`get_and_add` is one step: the thread that finds the demand at zero drains, and the one that takes it back to "
    "zero stops.",
    and_if=(
        AndIf(
            question="the demand were added first, and looked at then?",
            answer="Both may see 2, and neither drains.",
            program=LooksTwice,
            fails=True,
        ),
        AndIf(
            question="each thread drained, in any case?",
            answer="Then two of them call `on_next` at the same time (rule 1.3): the lesson *Two drains at once*.",
            program=AlwaysDrains,
            fails=True,
        ),
    ),
    met=(
        Met(
            what="Step 6 of the textbook's publisher (`examples/stream_publisher`) has it, and passes its kit.",
            where="https://github.com/reactive-streams/reactive-streams-jvm/tree/v1.0.4/tck",
        ),
        Met(
            what="pyrate-limiter 4.5.1: a bucket is never emptied, since the thread that should is about to end "
            "(`python -m examples.found pyrate_limiter`).",
            where="https://pypi.org/project/pyrate-limiter/4.5.1/",
        ),
    ),
    gil="either way",
)

if __name__ == "__main__":
    LESSON.teach()
