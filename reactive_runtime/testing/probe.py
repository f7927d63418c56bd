"""A publisher in between, which counts what was asked of the one behind it."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from reactive_runtime._core import primitives
from reactive_runtime.spec import MAX_DEMAND, Publisher, Subscriber, Subscription

__all__ = ["Probe"]

T = TypeVar("T")


class Probe(Generic[T]):
    """Passes everything through, and notes each subscription, request and cancel, on any thread.

    Args:
        publisher: The publisher behind it.

    Example:
        >>> from reactive_runtime import Flow
        >>> from reactive_runtime.testing import Probe
        >>> probe = Probe(Flow.range(9))
        >>> list(Flow.from_publisher(probe).take(2))
        [0, 1]
        >>> probe.requested, probe.cancelled
        (2, 1)

    Origin:
        `PublisherProbe` of Reactor.
    """

    def __init__(self, publisher: Publisher[T], /) -> None:
        self._publisher = publisher
        self._lock = primitives.Lock()
        self._requests: list[int] = []  # _lock
        self._subscribed = 0  # _lock
        self._cancelled = 0  # _lock

    @property
    def requests(self) -> list[int]:
        """The argument of each request so far, of all subscriptions, in order."""
        with self._lock:
            return list(self._requests)

    @property
    def requested(self) -> int:
        """The sum of all requests so far, at most MAX_DEMAND."""
        return min(sum(self.requests), MAX_DEMAND)

    @property
    def subscribed(self) -> int:
        """How many subscribers there have been."""
        with self._lock:
            return self._subscribed

    @property
    def cancelled(self) -> int:
        """How many calls of `cancel` there have been."""
        with self._lock:
            return self._cancelled

    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        """Subscribe `subscriber` to the publisher behind; see `Publisher.subscribe`.

        Args:
            subscriber: The subscriber. None is passed on, for the publisher to refuse.
        """
        with self._lock:
            self._subscribed += 1
        self._publisher.subscribe(subscriber if subscriber is None else _Between(self, subscriber))


class _Between(Generic[T]):
    """The subscriber that the publisher sees, and the subscription that the subscriber sees."""

    def __init__(self, probe: Probe[T], subscriber: Subscriber[T]) -> None:
        self._probe = probe
        self._subscriber: Any = subscriber
        self._subscription: Subscription

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self._subscription = subscription
        self._subscriber.on_subscribe(self)

    def on_next(self, element: T, /) -> None:
        self._subscriber.on_next(element)

    def on_error(self, error: BaseException, /) -> None:
        self._subscriber.on_error(error)

    def on_complete(self) -> None:
        self._subscriber.on_complete()

    def request(self, n: int, /) -> None:
        with self._probe._lock:
            self._probe._requests.append(n)
        self._subscription.request(n)

    def cancel(self) -> None:
        with self._probe._lock:
            self._probe._cancelled += 1
        self._subscription.cancel()
