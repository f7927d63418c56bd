"""A publisher of one value that is set later, by another thread than the one that asks for it."""

from __future__ import annotations

from typing import Any

from reactive_runtime.explore import call, publisher_scenario, request


class Promise:
    """One value, one subscriber. Either may come first: the value, or the demand for it."""

    def __init__(self) -> None:
        self.subscriber: Any = None
        self.value: int | None = None
        self.requested = False

    def subscribe(self, subscriber: Any, /) -> None:
        self.subscriber = subscriber
        subscriber.on_subscribe(self)

    def request(self, n: int, /) -> None:
        self.requested = True
        if self.value is not None:
            self.emit(self.value)

    def cancel(self) -> None:
        self.subscriber = None

    def set(self, value: int) -> None:
        self.value = value
        if self.requested:
            self.emit(value)

    def emit(self, value: int) -> None:
        subscriber = self.subscriber
        if subscriber is not None:
            subscriber.on_next(value)
            subscriber.on_complete()


SCENARIO = publisher_scenario(Promise, [request(1), call("set(7)", lambda driven: driven.publisher.set(7))])
