"""Step 6: the demand is kept in one place, and a request that finds the loop at work leaves its n there (3.3).

Every check of the original kit passes. But between the look at the demand and the adding to it there is room for the
loop to end, and then no thread serves what was added: demand is lost (3.8).
"""

from __future__ import annotations

from typing import Any

from examples.stream_publisher import step_5_errors
from examples.stream_publisher.atomic_long import AtomicLong
from examples.stream_publisher.step_5_errors import END


class StreamSubscription(step_5_errors.StreamSubscription):
    """One subscriber's way through the elements."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._demand = AtomicLong()

    def request(self, n: int, /) -> None:
        if n <= 0:
            self._fail(ValueError(f"request({n}): demand is at least 1 (3.9)"))
            return
        if self._at_work(n):
            return
        while self._demand.get() > 0 and self._next is not END and not self._terminated.get():
            self._emit()
            self._demand.get_and_add(-1)
        if self._next is END and self._terminate():
            self._subscriber.on_complete()

    def _at_work(self, n: int) -> bool:
        """Add `n` to the demand; whether a loop is running that will serve it."""
        if self._demand.get() > 0:
            self._demand.get_and_add(n)  # by now the loop may have ended
            return True
        self._demand.get_and_add(n)
        return False


class StreamPublisher(step_5_errors.StreamPublisher):
    """The elements of `supplier()`, to each subscriber from the first one on."""

    subscription = StreamSubscription
