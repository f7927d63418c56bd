"""Step 4: one flag for the end and for cancel, moved once (1.7, 3.6, 3.7, 3.12)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from reactive_runtime import Subscriber
from reactive_runtime.atomics import AtomicBoolean

END = object()


class StreamPublisher:
    """The elements of `supplier()`, to each subscriber from the first one on."""

    def __init__(self, supplier: Callable[[], Iterable[Any]]) -> None:
        self._supplier = supplier

    def subscribe(self, subscriber: Subscriber[Any], /) -> None:
        subscriber.on_subscribe(StreamSubscription(self._supplier, subscriber))


class StreamSubscription:
    """One subscriber's way through the elements."""

    def __init__(self, supplier: Callable[[], Iterable[Any]], subscriber: Subscriber[Any]) -> None:
        self._subscriber = subscriber
        self._iterator = iter(supplier())  # may raise, out of subscribe (1.9)
        self._next = next(self._iterator, END)
        self._terminated = AtomicBoolean(False)

    def request(self, n: int, /) -> None:
        while n > 0 and self._next is not END and not self._terminated.get():
            element, self._next = self._next, next(self._iterator, END)
            self._subscriber.on_next(element)
            n -= 1
        if self._next is END and self._terminate():
            self._subscriber.on_complete()

    def cancel(self) -> None:
        self._terminate()

    def _terminate(self) -> bool:
        """Whether this call is the one that ended it."""
        return not self._terminated.get_and_set(True)
