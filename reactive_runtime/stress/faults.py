"""Broken subscriptions, to show that the harness finds what is broken.

`planted(name)` swaps one of them in for the subscription of every cold source, for as long as the block runs.
All are the subscription that `Mastering Reactive Streams` arrives at, with one step of it left out or wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any, ClassVar, Final

from reactive_runtime import flow
from reactive_runtime._core.feed import ColdFeed, Feed
from reactive_runtime._core.fuse import Unstopped, pulled
from reactive_runtime._core.step import Step
from reactive_runtime._core.subscription import PulledSubscription, invalid_demand
from reactive_runtime.atomics import AtomicBoolean, AtomicInteger
from reactive_runtime.errors import ScenarioError
from reactive_runtime.spec import MAX_DEMAND, Subscriber

__all__ = ["FAULTS", "planted"]

_END: Final = object()


class TextbookSubscription:
    """The textbook's last version, which is right; each fault below replaces one of its steps."""

    summary: ClassVar[str] = "nothing is wrong"

    def __init__(
        self, subscriber: Subscriber[Any], feed: Feed, steps: Sequence[Step[Any, Any]], executor: Executor | None
    ) -> None:
        self._subscriber = subscriber
        self._feed = feed
        self._steps = [step.fresh() for step in steps]
        self._executor = executor
        self._elements: Iterator[Any] | None = None  # owned by whoever drains
        self._demand = AtomicInteger(1)  # held until on_subscribe has returned, so that nothing is signalled before
        self._ended = AtomicBoolean()
        self._cancelled = AtomicBoolean()

    def start(self) -> None:
        self._subscriber.on_subscribe(self)
        if self._demand.add_and_get(-1) > 0:
            self._drain_somewhere()

    def request(self, n: int, /) -> None:
        if type(n) is not int or n < 1:
            if not self._ended.get_and_set(True):
                self._subscriber.on_error(invalid_demand(n))
            return
        if self._add(n):
            self._drain_somewhere()

    def cancel(self) -> None:
        self._ended.set(True)
        self._cancelled.set(True)

    def _add(self, n: int) -> bool:
        """Add to the demand; whether it is for the caller to drain."""
        return self._demand.get_and_update(lambda demand: min(demand + n, MAX_DEMAND)) == 0

    def _drain_somewhere(self) -> None:
        if self._executor is None:
            self._drain()
        else:
            self._executor.submit(self._drain)

    def _drain(self) -> None:
        if self._elements is None:
            self._elements = pulled(self._feed.open(), self._steps, Unstopped())
        while not self._ended.get():
            element = next(self._elements, _END)
            if element is _END:
                self._complete()
                return
            self._subscriber.on_next(element)
            if self._demand.update_and_get(lambda demand: demand if demand == MAX_DEMAND else demand - 1) <= 0:
                return

    def _complete(self) -> None:
        if not self._ended.get_and_set(True):
            self._subscriber.on_complete()


class LostDemand(TextbookSubscription):
    summary = "request looks whether somebody drains, and then adds: the drain may have ended in between"

    def _add(self, n: int) -> bool:
        if self._demand.get() > 0:
            self._demand.get_and_add(n)
            return False
        return super()._add(n)


class Overflow(TextbookSubscription):
    summary = "the demand is added up in 64 bits that wrap: twice MAX_DEMAND is -2"

    def _add(self, n: int) -> bool:
        before = self._demand.get_and_update(lambda demand: (demand + n + 2**63) % 2**64 - 2**63)
        return before == 0


class TwoDrains(TextbookSubscription):
    summary = "whoever requests drains, whether or not somebody does already"

    def _add(self, n: int) -> bool:
        super()._add(n)
        return True

    def _drain(self) -> None:
        try:
            super()._drain()
        except ValueError:  # "generator already executing": the other drain is inside it
            return


class SignalAfterCompletion(TextbookSubscription):
    summary = "whoever requests after the end is told of the end again"

    def request(self, n: int, /) -> None:
        if self._ended.get() and not self._cancelled.get():
            self._subscriber.on_complete()
        else:
            super().request(n)


class ForgottenCancel(TextbookSubscription):
    summary = "cancel does nothing"

    def cancel(self) -> None:
        self._cancelled.set(True)


FAULTS: Final[dict[str, type[TextbookSubscription]]] = {
    "lost-demand": LostDemand,
    "overflow": Overflow,
    "two-drains": TwoDrains,
    "signal-after-completion": SignalAfterCompletion,
    "forgotten-cancel": ForgottenCancel,
}


@contextmanager
def planted(name: str) -> Iterator[None]:
    """Let every cold source have the subscription of that name; ScenarioError if there is none."""
    fault = FAULTS.get(name)
    if fault is None:
        raise ScenarioError(f"no fault {name!r}; there are: {', '.join(FAULTS)}")

    def subscription(
        subscriber: Subscriber[Any], feed: Feed, steps: Sequence[Step[Any, Any]], executor: Executor | None
    ) -> Any:
        kind: Callable[..., Any] = fault if isinstance(feed, ColdFeed) else PulledSubscription
        return kind(subscriber, feed, steps, executor)

    seam: Any = flow  # the one place where subscriptions are made
    seam.PulledSubscription = subscription
    try:
        yield
    finally:
        seam.PulledSubscription = PulledSubscription
