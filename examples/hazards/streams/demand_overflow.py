"""Demand is added up until it is negative."""

from __future__ import annotations

from examples.hazards.lesson import AndIf, Lesson, Met
from reactive_runtime._spec import MAX_DEMAND
from reactive_runtime.atomics import AtomicInteger


class WrappingSubscription:
    """Adds up demand in 64 bits, as a `long` of Java is added up. It has three elements."""

    rule = "3.17"

    def __init__(self) -> None:
        self.demand = AtomicInteger()
        self.delivered = 0  # owned by who drains

    def actor_a(self) -> None:
        self.request(MAX_DEMAND)

    def actor_b(self) -> None:
        self.request(MAX_DEMAND)

    def request(self, n: int) -> None:
        if self.demand.get_and_update(lambda demand: self.added(demand, n)) == 0:
            self.drain()

    def added(self, demand: int, n: int) -> int:
        return (demand + n + 2**63) % 2**64 - 2**63

    def drain(self) -> None:
        while self.demand.get() > 0 and self.delivered < 3:
            self.delivered += 1
            self.demand.update_and_get(lambda demand: self.added(demand, -1))

    def at_end(self) -> None:
        assert self.delivered == 3, f"all 3 elements were requested, twice, and {self.delivered} delivered"


class CappedSubscription(WrappingSubscription):
    """Stops at MAX_DEMAND, which means: without end."""

    def added(self, demand: int, n: int) -> int:
        return demand if demand == MAX_DEMAND else min(demand + n, MAX_DEMAND)


class CappedAndTakenOff(WrappingSubscription):
    """Caps the sum, and takes each element off, from unbounded demand too."""

    def added(self, demand: int, n: int) -> int:
        return min(demand + n, MAX_DEMAND)


class OneThread(WrappingSubscription):
    """The subscriber requests everything again, inside of `on_next`."""

    def actor_b(self) -> None:
        pass

    def drain(self) -> None:
        while self.demand.get() > 0 and self.delivered < 3:
            self.delivered += 1
            self.demand.update_and_get(lambda demand: self.added(demand, -1))
            self.request(MAX_DEMAND)


class SaturatedLate(WrappingSubscription):
    """Looks for the wrap after it has added."""

    def request(self, n: int) -> None:
        before = self.demand.get_and_update(lambda demand: self.added(demand, n))
        if self.demand.get() < 0:
            self.demand.set(MAX_DEMAND)
        if before == 0:
            self.drain()


LESSON = Lesson(
    title="Demand overflow",
    terms=("no race", "integer overflow", "saturating addition"),
    hazard="""Twice the largest number is a negative one, where numbers have 64 bits. A second unbounded request, while
    the first is being served, ends the stream without a word. This is no race: any order of the two fails in which
    both come before the end.""",
    broken=WrappingSubscription,
    question="Both request everything there is. What is the demand then, as a number of 64 bits?",
    fixed=CappedSubscription,
    fix="cap the sum at MAX_DEMAND, inside of the compare-and-set; and take nothing off from unbounded demand.",
    and_if=(
        AndIf(
            question="each element were taken off from unbounded demand, too?",
            answer="Then it ends after 2^63 elements, which none lives to see: the three of this program come.",
            program=CappedAndTakenOff,
            fails=False,
        ),
        AndIf(
            question="one thread made both requests, the second inside of `on_next`?",
            answer="It wraps as well: no second thread is needed.",
            program=OneThread,
            fails=True,
        ),
        AndIf(
            question="the sum were looked at after it was added?",
            answer="In between the drain sees a negative number, and stops. This is a race.",
            program=SaturatedLate,
            fails=True,
        ),
    ),
    met=(
        Met(
            what="Rule 3.17 of Reactive Streams: demand goes up to 2^63-1, and from there on may count as unbounded.",
            where="https://github.com/reactive-streams/reactive-streams-jvm/blob/v1.0.4/README.md",
        ),
    ),
    gil="either way",
    gil_note="Numbers of Python do not wrap; those of NumPy, of C and of a JVM do.",
)

if __name__ == "__main__":
    LESSON.teach()
