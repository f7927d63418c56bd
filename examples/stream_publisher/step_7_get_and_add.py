"""Step 7: look and add in one step, so that no demand is lost. Two large requests make the sum negative (3.17)."""

from __future__ import annotations

from examples.stream_publisher import step_6_demand


class StreamSubscription(step_6_demand.StreamSubscription):
    """One subscriber's way through the elements."""

    def _at_work(self, n: int) -> bool:
        return self._demand.get_and_add(n) > 0


class StreamPublisher(step_6_demand.StreamPublisher):
    """The elements of `supplier()`, to each subscriber from the first one on."""

    subscription = StreamSubscription
