"""What one run is made of: a source that notes what it gives, and a subscriber with a plan of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from hypothesis import strategies as st

from reactive_runtime import MAX_DEMAND, Flow, Notification, Subscriber, Subscription
from reactive_runtime.executors import VirtualTimeExecutor

__all__ = ["FailedError", "Given", "Item", "Keeping", "Made", "Script", "numbers", "scripts"]


class FailedError(OSError):
    """What a source fails with."""


class Item(NamedTuple):
    """An element of a source; no two in a run have one number. Below 0: from elsewhere."""

    number: int
    value: int


class Made(NamedTuple):
    """What a function has made of an element."""

    number: int
    value: int


def numbers(entry: Any) -> list[int]:
    """The numbers of the source's elements in something that was made of them."""
    if isinstance(entry, Item | Made):
        return [entry.number] if entry.number >= 0 else []
    if isinstance(entry, Notification):
        return numbers(entry.element)
    if isinstance(entry, list | tuple | set):
        return [number for part in entry for number in numbers(part)]
    return []


@dataclass(frozen=True)
class Script:
    """One run."""

    values: list[int]
    end: str = "complete"
    """Or error, or never."""
    kind: str = "pulled"
    """By which way the elements come: see `Given.flow`."""
    demand: tuple[int, ...] = (MAX_DEMAND,)
    """What is asked for, step by step, the first time inside `on_subscribe`."""
    cancel_at: int | None = None
    """The subscriber cancels inside the `on_next` of so many elements; 0: after the steps."""
    heard: bool = False
    """There is a `do_on_discard` at the end of the chain."""

    def items(self, first: int = 0) -> list[Item]:
        return [Item(number, value) for number, value in enumerate(self.values, first)]


KINDS = ("pulled", "publisher", "later", "on an executor")


@st.composite
def scripts(draw: st.DrawFn, most: int = 9) -> Script:
    steps = draw(st.lists(st.sampled_from([1, 1, 2, 3, 7]), max_size=5))
    first = draw(st.sampled_from([0, 1, 2, 5, MAX_DEMAND]))
    rest = draw(st.booleans())
    return Script(
        draw(st.lists(st.integers(0, 9), max_size=most)),
        draw(st.sampled_from(["complete", "complete", "error", "never"])),
        draw(st.sampled_from(KINDS)),
        (first, *(steps if first != MAX_DEMAND else ()), *([MAX_DEMAND] if rest else [])),
        draw(st.sampled_from([None, None, None, 0, 1, 2, 4])),
        draw(st.booleans()),
    )


@dataclass
class Given:
    """Makes flows of a script, and notes the elements that they have given."""

    script: Script
    clock: VirtualTimeExecutor
    items: list[Item] = field(default_factory=list)
    subscribed: int = 0
    under_way: int = 0

    def item(self, value: int) -> Item:
        item = Item(len(self.items), value)
        self.items.append(item)
        return item

    def flow(self) -> Flow[Any]:
        script = self.script
        if script.kind in ("publisher", "later"):
            return Flow.from_publisher(_Publisher(self, later=script.kind == "later"))
        flow: Flow[Any] = Flow.from_supplier(self._iterate)
        if script.end == "never":
            flow = flow.concat_with(Flow.never())
        return flow if script.kind == "pulled" else flow.subscribe_on(self.clock)

    def _iterate(self) -> Iterator[Item]:
        self.subscribed += 1
        self.under_way += 1
        try:
            for value in self.script.values:
                yield self.item(value)
            if self.script.end == "error":
                raise FailedError("the source is broken")
        finally:
            self.under_way -= 1


class _Publisher:
    """Another library's: gives its elements inside `request`, or a little later, one at a time."""

    def __init__(self, given: Given, *, later: bool) -> None:
        self.given = given
        self.later = later

    def subscribe(self, subscriber: Subscriber[Any], /) -> None:
        self.given.subscribed += 1
        self.given.under_way += 1
        subscription = _Giving(self.given, subscriber, later=self.later)
        subscriber.on_subscribe(subscription)
        subscription.go_on()


class _Giving:
    """One subscription, on the thread of the test."""

    def __init__(self, given: Given, subscriber: Subscriber[Any], *, later: bool) -> None:
        self.given = given
        self.subscriber = subscriber
        self.values = list(given.script.values)
        self.later = later
        self.demand = 0
        self.inside = True  # until on_subscribe has returned
        self.over = False

    def request(self, n: int, /) -> None:
        assert n > 0
        self.demand += n
        if not self.inside:
            self._work()

    def go_on(self) -> None:
        self.inside = False
        self._work()

    def _work(self) -> None:
        if self.later:
            self.inside = True
            self.given.clock.submit(self._one)
            return
        self.inside = True
        while self._step():
            pass
        self.inside = False

    def _one(self) -> None:
        if self._step():
            self.given.clock.submit(self._one)
        else:
            self.inside = False

    def _step(self) -> bool:
        if self.over:
            return False
        if not self.values:
            if self.given.script.end == "never":
                return False
            self._leave()
            if self.given.script.end == "error":
                self.subscriber.on_error(FailedError("the source is broken"))
            else:
                self.subscriber.on_complete()
            return False
        if not self.demand:
            return False
        self.demand -= 1
        self.subscriber.on_next(self.given.item(self.values.pop(0)))
        return True

    def _leave(self) -> None:
        if not self.over:
            self.over = True
            self.given.under_way -= 1

    def cancel(self) -> None:
        self._leave()


class Keeping:
    """Keeps what it gets, and holds the flow to its demand, and to one end."""

    def __init__(self, first: int, cancel_at: int | None = None) -> None:
        self.first = first
        self.cancel_at = cancel_at
        self.asked = 0
        self.elements: list[Any] = []
        self.end = ""
        self.error: BaseException | None = None
        self.wrong = ""
        self.cancelled = False
        self.subscription: Subscription

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self.subscription = subscription
        if self.first:
            self.request(self.first)

    def request(self, n: int) -> None:
        self.asked = min(self.asked + n, MAX_DEMAND)
        self.subscription.request(n)

    def cancel(self) -> None:
        self.cancelled = True
        self.subscription.cancel()

    def on_next(self, element: Any, /) -> None:
        self.elements.append(element)
        if self.end or self.cancelled:
            self.wrong = self.wrong or f"{element} after the end, or a cancel on the same thread"
        if len(self.elements) > self.asked:
            self.wrong = self.wrong or f"{element} was not asked for"
        if len(self.elements) == self.cancel_at:
            self.cancel()

    def on_error(self, error: BaseException, /) -> None:
        self._ended("error")
        self.error = error

    def on_complete(self) -> None:
        self._ended("complete")

    def _ended(self, end: str) -> None:
        if self.end or self.cancelled:
            self.wrong = self.wrong or f"{end} after {self.end or 'cancel'}"
        self.end = end
