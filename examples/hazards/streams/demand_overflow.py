"""Demand is added up until it is negative."""

from __future__ import annotations

from examples.hazards.lesson import Lesson
from reactive_runtime.atomics import AtomicInteger
from reactive_runtime.spec import MAX_DEMAND


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


LESSON = Lesson(
    title="Demand overflow",
    hazard="""Twice the largest number is a negative one, where numbers have 64 bits. A second unbounded request, while
    the first is being served, ends the stream without a word.""",
    broken=WrappingSubscription,
    fixed=CappedSubscription,
    fix="cap the sum at MAX_DEMAND, inside of the compare-and-set; and take nothing off from unbounded demand.",
)

if __name__ == "__main__":
    LESSON.teach()
