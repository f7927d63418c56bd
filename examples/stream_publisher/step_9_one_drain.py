"""Step 9: one drain. Step 8 is where the textbook ends; it passes every check of the original kit.

The explorer breaks it:

    reactive-runtime explore examples.stream_publisher.step_8_capped:SCENARIO

After the last element it owes, the loop of step 8 takes the demand to zero, and then looks at it once more. In between
another thread may have found the zero, added to it, and begun a loop of its own: now there are two (1.3, 1.1). So the
step that takes the demand to zero has to be the loop's last; and whatever ends the stream is the loop's business too.

So is on_subscribe: while it runs, a request of another thread would find the demand at zero, and signal beside it.
Therefore the demand begins at 1 (1.3), which is taken back when on_subscribe has returned.
"""

from __future__ import annotations

from typing import Any

from examples.stream_publisher import step_8_capped
from examples.stream_publisher.step_5_errors import END
from reactive_runtime.atomics import AtomicReference
from reactive_runtime.explore import publisher_scenario, request


class StreamSubscription(step_8_capped.StreamSubscription):
    """One subscriber's way through the elements."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._fault: AtomicReference[Exception | None] = AtomicReference(None)
        self._demand.get_and_add(1)  # the loop is at work: on_subscribe comes first (1.3)

    def subscribed(self) -> None:
        super().subscribed()
        if self._demand.get_and_add(-1) > 1:
            self._drain()

    def request(self, n: int, /) -> None:
        if n <= 0:
            self._fault.compare_and_set(None, ValueError(f"request({n}): demand is at least 1 (3.9)"))
            n = 1  # wakes the loop, which looks for a fault first
        if not self._at_work(n):
            self._drain()

    def _drain(self) -> None:
        """Called by the one who moved the demand away from zero; returns with the step that takes it back."""
        while not self._terminated.get():
            fault = self._fault.get()
            if fault is not None:
                self._fail(fault)
            elif self._next is END:
                if self._terminate():
                    self._subscriber.on_complete()
            else:
                self._emit()
                if self._next is not END and self._demand.get_and_add(-1) == 1:
                    return


class StreamPublisher(step_8_capped.StreamPublisher):
    """The elements of `supplier()`, to each subscriber from the first one on."""

    subscription = StreamSubscription


SCENARIO = publisher_scenario(lambda: StreamPublisher(lambda: range(4)), [request(1), request(1)], elements=4)
