"""A publisher of Python that knows what was asked of it."""

from __future__ import annotations

import threading
from typing import Any

from reactive_runtime.tck import HelperPublisher

__all__ = ["Asked"]


class Asked:
    """A publisher that notes what is requested of it, and when it is cancelled."""

    def __init__(self, elements: int, failure: BaseException | None = None) -> None:
        self.publisher = HelperPublisher(elements, lambda n: n, failure=failure)
        self.requests: list[int] = []
        self.cancelled = threading.Event()

    def subscribe(self, subscriber: Any, /) -> None:
        self.publisher.subscribe(_Between(self, subscriber))


class _Between:
    def __init__(self, asked: Asked, subscriber: Any) -> None:
        self.asked = asked
        self.subscriber = subscriber
        self.on_next, self.on_error, self.on_complete = subscriber.on_next, subscriber.on_error, subscriber.on_complete

    def on_subscribe(self, subscription: Any, /) -> None:
        self.subscription = subscription
        self.subscriber.on_subscribe(self)

    def request(self, n: int, /) -> None:
        self.asked.requests.append(n)
        self.subscription.request(n)

    def cancel(self) -> None:
        self.asked.cancelled.set()
        self.subscription.cancel()
