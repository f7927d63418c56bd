"""The four interfaces of Reactive Streams 1.0.4, and the one constant.

They are structural: any object with the right methods is a publisher or a subscriber, from any library; what
the methods return is ignored. Inheriting from them works too. This module imports nothing of ours, so that a kit
or a bridge can be built on it alone.

Carried over from `org.reactivestreams`: `None` stands for `null`, `TypeError` for `NullPointerException`
and `ValueError` for `IllegalArgumentException`.
"""

from __future__ import annotations

from typing import Final, Protocol, TypeVar, runtime_checkable

__all__ = ["MAX_DEMAND", "Processor", "Publisher", "Subscriber", "Subscription"]

MAX_DEMAND: Final = 2**63 - 1
"""The largest demand there is (3.17). Sums are capped here, and it reads as "unbounded"."""

T_in = TypeVar("T_in", contravariant=True)
T_out = TypeVar("T_out", covariant=True)


@runtime_checkable
class Subscription(Protocol):
    """One subscriber's link to its publisher: demand and the cancel go up through it."""

    def request(self, n: int, /) -> object:
        """Ask for `n` more elements.

        It returns normally whatever happens (3.16). It may signal before it returns (3.10), and does nothing after
        `cancel` (3.6).

        Args:
            n: 1 <= n <= MAX_DEMAND (3.8). One below 1, or one that is no int, is answered with `on_error` (3.9).

        Thread:
            Any: the calls of one subscriber are serial (2.7). It may be called from within `on_subscribe` and `on_next`
            (3.2).
        """

    def cancel(self) -> object:
        """Ask the publisher to stop, eventually (3.12). Idempotent, thread-safe, returns normally (3.5, 3.15)."""


@runtime_checkable
class Subscriber(Protocol[T_in]):
    """Receives `on_subscribe`, then `on_next` as often as it asked for, then at most one of the two ends.

    The calls are serial (1.3), each may come on another thread, and none may raise, but for `TypeError`
    when an argument is `None` (2.13).
    """

    def on_subscribe(self, subscription: Subscription, /) -> object:
        """The first signal (1.9).

        Args:
            subscription: The link to the publisher. A second one is answered with `subscription.cancel()` (2.5).

        Raises:
            TypeError: `subscription` is None (2.13).
        """

    def on_next(self, element: T_in, /) -> object:
        """One element that was asked for (1.1).

        Args:
            element: Anything but None.

        Raises:
            TypeError: `element` is None (2.13).
        """

    def on_error(self, error: BaseException, /) -> object:
        """The end, by failure (1.4). Nothing follows (1.7).

        Args:
            error: What went wrong. It may come without demand (2.10).

        Raises:
            TypeError: `error` is None (2.13).
        """

    def on_complete(self) -> object:
        """The end, by success (1.5). Nothing follows (1.7); may come without demand (2.9)."""


@runtime_checkable
class Publisher(Protocol[T_out]):
    """A source of a possibly unbounded number of elements, given out by demand."""

    def subscribe(self, subscriber: Subscriber[T_out], /) -> object:
        """Connect `subscriber`: `on_subscribe` first, before any other signal (1.9).

        Args:
            subscriber: The subscriber to connect. A refusal reaches it as `on_subscribe`, then `on_error`.

        Raises:
            TypeError: `subscriber` is None. Nothing else is raised (1.9).
        """


@runtime_checkable
class Processor(Subscriber[T_in], Publisher[T_out], Protocol[T_in, T_out]):
    """A stage that is both, and keeps the rules of both (4.1)."""
