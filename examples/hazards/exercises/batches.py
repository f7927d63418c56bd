"""A publisher of numbers that takes its demand in batches, so as not to touch the counter for every element."""

from __future__ import annotations

from typing import Any

from reactive_runtime.atomics import AtomicBoolean, AtomicInteger
from reactive_runtime.explore import publisher_scenario, request


class Batches:
    """Endless numbers, one subscriber."""

    def subscribe(self, subscriber: Any, /) -> None:
        subscriber.on_subscribe(BatchSubscription(subscriber))


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


SCENARIO = publisher_scenario(Batches, [request(1), request(1)])
