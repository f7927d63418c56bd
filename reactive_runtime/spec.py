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
    """One subscriber's hold on one publisher: demand goes up through it, and so does the end of interest."""

    def request(self, n: int, /) -> object:
        """Ask for `n` more elements, 1 <= n <= MAX_DEMAND (3.8).

        Returns normally whatever happens (3.16): an `n` below 1, or one that is no int, comes back through
        `on_error` (3.9). May signal before it returns (3.10); does nothing after `cancel` (3.6).
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
        """The first signal (1.9). A second one is answered with `subscription.cancel()` (2.5)."""

    def on_next(self, element: T_in, /) -> object:
        """One element that was asked for (1.1)."""

    def on_error(self, error: BaseException, /) -> object:
        """The end, by failure (1.4). Nothing follows (1.7); may come without demand (2.10)."""

    def on_complete(self) -> object:
        """The end, by success (1.5). Nothing follows (1.7); may come without demand (2.9)."""


@runtime_checkable
class Publisher(Protocol[T_out]):
    """A source of a possibly unbounded number of elements, given out by demand."""

    def subscribe(self, subscriber: Subscriber[T_out], /) -> object:
        """Connect `subscriber`: `on_subscribe` first, before any other signal (1.9).

        Raises `TypeError` for `None`, and nothing else: a refusal is `on_subscribe`, then `on_error`.
        """


@runtime_checkable
class Processor(Subscriber[T_in], Publisher[T_out], Protocol[T_in, T_out]):
    """A stage that is both, and keeps the rules of both (4.1)."""
