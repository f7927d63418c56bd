"""The steps of the state machines on two threads, in every schedule with few preemptions.

A new kind is one line in `KINDS`, a new race one in `RACES`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from explore.racing import Hand
from searching import each_of_both_by_day, holds_with_few_preemptions

from connections.parties import Here
from reactive_runtime import Disposable, Flow
from reactive_runtime._flow import ConnectableFlow
from reactive_runtime._spec import MAX_DEMAND, Subscription
from reactive_runtime.explore import call, cancel, explore_publisher
from reactive_runtime.explore._checks.publisher_scenario import Driven, subscribe
from reactive_runtime.hot import (
    BehaviorProcessor,
    PublishProcessor,
    ReplayProcessor,
    UnicastProcessor,
)


class Leaver:
    """A subscriber that cancels inside `on_subscribe`."""

    def on_subscribe(self, subscription: Subscription, /) -> None:
        subscription.cancel()

    def on_next(self, element: Any, /) -> None:
        raise AssertionError("an element for one that has gone before it began")

    def on_error(self, error: BaseException, /) -> None:
        raise AssertionError("an end for one that has gone before it began") from error

    def on_complete(self) -> None:
        raise AssertionError("an end for one that has gone before it began")


class Shared:
    """Something that several subscribe to, over a source that is moved by hand."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.hand = Hand()
        self.flow = KINDS[kind](self.hand)
        self.by_hand = isinstance(self.flow, ConnectableFlow)
        self.disconnected = False
        self.handle: Disposable | None = None
        if self.by_hand:
            self.connect()

    def subscribe(self, subscriber: Any, /) -> None:
        self.flow.subscribe(subscriber)

    def connect(self) -> None:
        self.handle = self.flow.connect()

    def disconnect(self) -> None:
        self.disconnected = True
        assert self.handle is not None
        self.handle.cancel()

    def live(self) -> int:
        """How many subscriptions of the source go on."""
        return sum(not held.over.get() for held in self.hand.held.get())


def processing(make: Callable[[], Any]) -> Callable[[Hand], Any]:
    def made(hand: Hand) -> Any:
        processor = make()
        hand.subscribe(processor)
        return processor

    return made


KINDS: dict[str, Callable[[Hand], Any]] = {
    "publish": lambda hand: Flow.from_publisher(hand).publish(capacity=1),
    "replay": lambda hand: Flow.from_publisher(hand).replay(1, capacity=1),
    "share": lambda hand: Flow.from_publisher(hand).share(capacity=1),
    "ref_count(2)": lambda hand: Flow.from_publisher(hand).publish(capacity=1).ref_count(2),
    "replay, ref_count": lambda hand: Flow.from_publisher(hand).replay(1, capacity=1).ref_count(),
    "cache": lambda hand: Flow.from_publisher(hand).cache(),
    "PublishProcessor": processing(lambda: PublishProcessor(capacity=1)),
    "ReplayProcessor": processing(lambda: ReplayProcessor(1, capacity=1)),
    "BehaviorProcessor": processing(lambda: BehaviorProcessor(-1, capacity=1)),
    "UnicastProcessor": processing(lambda: UnicastProcessor(capacity=1)),
    "share, publish_on": lambda hand: Flow.from_publisher(hand).share(capacity=1).publish_on(Here(), prefetch=1),
    "replay, publish_on": lambda hand: (
        Flow.from_publisher(hand).replay(1, capacity=1).ref_count().publish_on(Here(), prefetch=1)
    ),
    "create": lambda hand: Flow.create(lambda emitter: hand.subscribe(Emitting(emitter)), overflow="error", capacity=2),
}


class Emitting:
    """What a source signals, into an emitter."""

    def __init__(self, emitter: Any) -> None:
        self.emitter = emitter
        self.on_next, self.on_error, self.on_complete = emitter.emit, emitter.error, emitter.complete

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self.emitter.on_cancel(subscription.cancel)
        subscription.request(2)


emit = call("emit", lambda item: item.publisher.hand.emit())
complete = call("complete", lambda item: item.publisher.hand.complete())
leave = call("one that leaves at once", lambda item: item.publisher.subscribe(Leaver()))
connect = call("connect", lambda item: item.publisher.connect())
disconnect = call("disconnect", lambda item: item.publisher.disconnect())

RACES: dict[str, tuple[int, list[Any]]] = {
    "subscribe | emit": (1, [subscribe(1), emit]),
    "subscribe | cancel": (1, [subscribe(1), cancel()]),
    "subscribe | complete": (0, [subscribe(1), complete]),
    "subscribe | subscribe": (0, [subscribe(1), subscribe(1)]),
    "subscribe | leave": (0, [subscribe(1), leave]),
    "cancel | leave": (1, [cancel(), leave]),
    "cancel | complete": (0, [cancel(), complete]),
}
"""The demand at first, and the two threads. Those with one subscriber are in tests/explore/racing.py."""

BY_HAND: dict[str, tuple[int, list[Any]]] = {
    "connect | connect": (1, [connect, connect]),
    "connect | disconnect": (1, [connect, disconnect]),
    "disconnect | emit": (1, [disconnect, emit]),
    "disconnect | complete": (1, [disconnect, complete]),
    "disconnect | subscribe": (1, [[disconnect, connect], subscribe(1)]),
}


def finish(driven: Driven) -> None:
    """Whatever is still running comes to its end, and nothing is left."""
    shared: Shared = driven.publisher
    assert shared.kind == "create" or shared.live() <= 1, "the source is subscribed to twice"
    for item in driven.subscribers:
        item.request(MAX_DEMAND)
    shared.hand.emit()
    shared.hand.emit()
    cancelled = {record.subscription for record in driven.records if record.signal == "cancel"}
    here = [
        subscriber
        for n, subscriber in enumerate(driven.subscribers)
        if n not in cancelled and not (subscriber.completed or subscriber.error is not None)
    ]
    keeps = shared.by_hand or shared.kind == "cache"
    assert here or keeps or not shared.live(), "the source is left subscribed, and none is there"
    if here and shared.kind != "ref_count(2)" and not shared.by_hand:
        assert shared.live(), "the source is not subscribed, and one waits"
    waits = not shared.live()
    shared.hand.complete()
    for item in driven.subscribers:
        whole = (
            item.elements == list(range(item.elements[0], item.elements[0] + len(item.elements)))
            if item.elements
            else True
        )
        assert whole, f"{item.elements}: one was lost, or came twice"
    for item in here:
        if waits or shared.disconnected:
            item.cancel()  # it would wait for ever: nothing is connected, or it belongs to a connection that is not
        else:
            assert item.completed or item.error is not None, "neither an end, nor a cancel"


CASES = each_of_both_by_day(list(KINDS), list(RACES))
CASES += each_of_both_by_day(["publish", "replay"], list(BY_HAND))


def test_each_kind_and_each_race_is_among_them() -> None:
    assert {kind for kind, _ in CASES} == set(KINDS)
    assert {race for _, race in CASES} == set(RACES | BY_HAND)


@pytest.mark.parametrize(("kind", "race"), CASES, ids=[f"{kind}-{race}" for kind, race in CASES])
def test_every_schedule_with_few_preemptions_holds(kind: str, race: str) -> None:
    demand, actors = (RACES | BY_HAND)[race]
    holds_with_few_preemptions(
        partial(explore_publisher, partial(Shared, kind), actors, demand=demand, ascending=False, finish=finish)
    )
