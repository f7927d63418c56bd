"""Step 3: a subscription, and elements only when they are asked for (3.10). It does not know when it has ended."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from reactive_runtime import Subscriber

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
        self._iterator = iter(supplier())
        self._next = next(self._iterator, END)  # one element ahead, to see the end

    def request(self, n: int, /) -> None:
        while n > 0 and self._next is not END:
            element, self._next = self._next, next(self._iterator, END)
            self._subscriber.on_next(element)
            n -= 1
        if self._next is END:
            self._subscriber.on_complete()  # at every further request once more (1.7)

    def cancel(self) -> None:
        pass  # and goes on (1.8, 3.12)
