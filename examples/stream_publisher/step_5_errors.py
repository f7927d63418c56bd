"""Step 5: an invalid request is answered (3.9), and what the supplier raises comes through on_error (1.4)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from reactive_runtime import Subscriber
from reactive_runtime.atomics import AtomicBoolean

END = object()


class StreamSubscription:
    """One subscriber's way through the elements."""

    def __init__(self, supplier: Callable[[], Iterable[Any]], subscriber: Subscriber[Any]) -> None:
        self._subscriber = subscriber
        self._terminated = AtomicBoolean(False)
        self._error: Exception | None = None  # told once on_subscribe has been called
        self._iterator: Iterator[Any] = iter(())
        self._next: Any = END
        try:
            self._iterator = iter(supplier())
            self._next = next(self._iterator, END)
        except Exception as error:
            self._error = error

    def subscribed(self) -> None:
        if self._error is not None:
            self._fail(self._error)

    def request(self, n: int, /) -> None:
        if n <= 0:
            self._fail(ValueError(f"request({n}): demand is at least 1 (3.9)"))
            return
        while n > 0 and self._next is not END and not self._terminated.get():
            self._emit()  # a request from inside on_next comes by here again, and again (3.3)
            n -= 1
        if self._next is END and self._terminate():
            self._subscriber.on_complete()

    def _emit(self) -> None:
        element = self._next
        try:
            self._next = next(self._iterator, END)
        except Exception as error:
            self._subscriber.on_next(element)
            self._fail(error)
        else:
            self._subscriber.on_next(element)

    def cancel(self) -> None:
        self._terminate()

    def _fail(self, error: Exception) -> None:
        if self._terminate():
            self._subscriber.on_error(error)

    def _terminate(self) -> bool:
        """Whether this call is the one that ended it."""
        return not self._terminated.get_and_set(True)


class StreamPublisher:
    """The elements of `supplier()`, to each subscriber from the first one on."""

    subscription: type[StreamSubscription] = StreamSubscription

    def __init__(self, supplier: Callable[[], Iterable[Any]]) -> None:
        self._supplier = supplier

    def subscribe(self, subscriber: Subscriber[Any], /) -> None:
        if subscriber is None:
            raise TypeError("subscribe(None): a subscriber is needed (1.9)")
        subscription = self.subscription(self._supplier, subscriber)
        subscriber.on_subscribe(subscription)
        subscription.subscribed()
