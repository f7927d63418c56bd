"""Step 7: look and add in one step, so that no demand is lost. Two large requests make the sum negative (3.17)."""

from __future__ import annotations

from typing import Any

from examples.stream_publisher import step_6_demand
from reactive_runtime import Subscriber


class StreamPublisher(step_6_demand.StreamPublisher):
    """The elements of `supplier()`, to each subscriber from the first one on."""

    def subscribe(self, subscriber: Subscriber[Any], /) -> None:
        if subscriber is None:
            raise TypeError("subscribe(None): a subscriber is needed (1.9)")
        subscription = StreamSubscription(self._supplier, subscriber)
        subscriber.on_subscribe(subscription)
        subscription.subscribed()


class StreamSubscription(step_6_demand.StreamSubscription):
    """One subscriber's way through the elements."""

    def _at_work(self, n: int) -> bool:
        return self._demand.get_and_add(n) > 0
