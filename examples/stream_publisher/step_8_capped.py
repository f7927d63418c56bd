"""Step 8: a compare-and-set loop, capped at the most that 64 bits hold. The original kit passes it; see step 9."""

from __future__ import annotations

from examples.stream_publisher import step_7_get_and_add
from reactive_runtime import MAX_DEMAND
from reactive_runtime.explore import publisher_scenario, request


class StreamSubscription(step_7_get_and_add.StreamSubscription):
    """One subscriber's way through the elements."""

    def _at_work(self, n: int) -> bool:
        while True:
            before = self._demand.get()
            if self._demand.compare_and_set(before, min(before + n, MAX_DEMAND)):
                return before > 0


class StreamPublisher(step_7_get_and_add.StreamPublisher):
    """The elements of `supplier()`, to each subscriber from the first one on."""

    subscription = StreamSubscription


SCENARIO = publisher_scenario(lambda: StreamPublisher(lambda: range(4)), [request(1), request(1)], elements=4)
