"""The kit's own publisher: small, conformant, on the thread that requests."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from reactive_runtime._spec import MAX_DEMAND, Subscriber
from reactive_runtime._support.shown import shown

__all__ = ["HelperPublisher"]

T = TypeVar("T")


class HelperPublisher(Generic[T]):
    """A publisher of `create_element(0)`, `create_element(1)`, and so on.

    Args:
        elements: How many elements; MAX_DEMAND: the stream is infinite.
        create_element: Makes an element of its number.
        failure: The error at the end of the stream. None: the stream completes.

    Thread:
        Signals come on the thread that requests.
    """

    def __init__(
        self, elements: int, create_element: Callable[[int], T], *, failure: BaseException | None = None
    ) -> None:
        self._elements = elements
        self._create_element = create_element
        self._failure = failure

    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        """Connect `subscriber`; each has a stream of its own.

        Args:
            subscriber: The subscriber to connect.

        Raises:
            TypeError: `subscriber` is None (1.9).
        """
        if subscriber is None:
            raise TypeError("subscribe(None): a subscriber is needed (1.9)")
        subscription = _Counting(self, subscriber)
        subscriber.on_subscribe(subscription)
        subscription.drain()  # signal what on_subscribe requested


class _Counting:
    """One thread at a time owns it and signals; the others note their request or cancel and return (1.3, 3.3)."""

    def __init__(self, publisher: HelperPublisher[Any], subscriber: Subscriber[Any]) -> None:
        self._publisher = publisher
        self._subscriber = subscriber
        self._lock = threading.Lock()
        self._demand = 0  # _lock; 0 <= _demand <= MAX_DEMAND
        self._owned = True  # _lock; at first by `subscribe`
        self._ended = False  # _lock; final
        self._fault: Exception | None = None  # _lock
        self._sent = 0  # the owner

    def request(self, n: int, /) -> None:
        valid = isinstance(n, int) and not isinstance(n, bool) and n >= 1
        fault = None if valid else ValueError(f"request({shown(n)}): demand is an int of at least 1 (3.9)")
        with self._lock:
            if fault is not None:
                self._fault = fault
            else:
                self._demand = min(self._demand + n, MAX_DEMAND)  # 3.17
            if self._owned:
                return
            self._owned = True
        self.drain()

    def cancel(self) -> None:
        with self._lock:
            self._ended = True

    def drain(self) -> None:
        """Signal everything that is due. The owner calls it."""
        while (signal := self._due()) is not None:
            signal()

    def _due(self) -> Callable[[], object] | None:
        """The next signal; None if none is due, and then the thread is no longer the owner."""
        with self._lock:
            due = None if self._ended else self._end()
            if due is not None:
                self._ended = True
                return due
            if self._ended or not self._demand:
                self._owned = False
                return None
            if self._demand != MAX_DEMAND:
                self._demand -= 1
        element = self._publisher._create_element(self._sent)
        self._sent += 1
        return lambda: self._subscriber.on_next(element)

    def _end(self) -> Callable[[], object] | None:
        ended = self._sent == self._publisher._elements
        error = self._fault or (self._publisher._failure if ended else None)
        if error is not None:
            return lambda: self._subscriber.on_error(error)
        return self._subscriber.on_complete if ended else None
