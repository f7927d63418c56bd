"""A publisher of numbers that takes its demand in batches, so as not to touch the counter for every element."""

from __future__ import annotations

from typing import Any

from examples.hazards.exercises.exercise import Exercise
from reactive_runtime.atomics import AtomicBoolean, AtomicInteger
from reactive_runtime.explore import Driven, publisher_scenario, request


class BatchSubscription:
    """The thread that moves the demand away from zero drains."""

    def __init__(self, subscriber: Any) -> None:
        self.subscriber = subscriber
        self.demand = AtomicInteger()
        self.cancelled = AtomicBoolean()
        self.next = 0  # owned by who drains

    def request(self, n: int, /) -> None:
        if self.demand.get_and_add(n) == 0:
            self.drain()

    def drain(self) -> None:
        while (batch := self.demand.get()) > 0:
            for _ in range(batch):
                if self.cancelled.get():
                    return
                self.subscriber.on_next(self.next)
                self.next += 1
            self.demand.set(0)

    def cancel(self) -> None:
        self.cancelled.set(True)


class Batches:
    """Endless numbers, one subscriber."""

    subscription: type[Any] = BatchSubscription

    def subscribe(self, subscriber: Any, /) -> None:
        subscriber.on_subscribe(self.subscription(subscriber))


def whole(driven: Driven) -> None:
    """What was requested came."""
    assert driven.elements == [0, 1, 2], f"three elements were requested, and {driven.elements} came"


def scenario(batches: type[Any]) -> Any:
    """The check of a class."""
    return publisher_scenario(batches, [request(1), request(2)], at_end=whole)


EXERCISE = Exercise(
    title="Demand in batches",
    group="F",
    task="""`Batches` delivers what is requested, no more and no less, on one thread at a time. It may go on
    touching the counter once for a batch.""",
    hint="""`set(0)` takes off what was read, and what else?""",
    program=Batches,
    check=scenario,
)
SCENARIO = scenario(Batches)
