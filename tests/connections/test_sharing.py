"""One source for several: who holds whom back, when it is connected, and what an element costs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from connections.parties import Hand, Listener
from reactive_runtime import Flow, hooks
from reactive_runtime._core.runtime import primitives
from reactive_runtime._spec import MAX_DEMAND
from reactive_runtime.executors import VirtualTimeExecutor
from reactive_runtime.explore import call, explore_publisher
from reactive_runtime.explore._checks.publisher_scenario import Driven, subscribe
from reactive_runtime.hot import BehaviorProcessor, EmitResult, PublishProcessor, ReplayProcessor

# -- each at its own pace ------------------------------------------------------------------------------------------


def test_a_subscriber_of_a_cache_that_stops_asking_holds_up_no_other() -> None:
    flow = Flow.range(1000).cache()
    slow, fast = Listener(1), Listener(MAX_DEMAND)
    flow.subscribe(slow)
    flow.subscribe(fast)
    assert (slow.elements, fast.elements, fast.ends) == ([0], list(range(1000)), ["complete"])
    slow.subscription.request(MAX_DEMAND)
    assert (slow.elements, slow.ends) == (list(range(1000)), ["complete"])


def test_a_cache_of_many_elements_is_released_without_a_deep_stack() -> None:
    flow = Flow.range(100_000).cache()
    assert flow.count().block() == 100_000
    del flow


def test_what_is_kept_for_others_is_not_dropped_with_a_subscriber(dropped: list[hooks.Dropped]) -> None:
    flow = Flow.range(10).cache()
    with flow.subscribe(print, demand=0):
        pass
    assert not dropped


# -- an upstream is asked for what there is room for ----------------------------------------------------------------


class Published:
    """A source that never gives more than it was asked for, behind `publish` with room for one."""

    def __init__(self) -> None:
        self.hand = Hand()
        self.flow = Flow.from_publisher(self.hand).publish(capacity=1)
        self.flow.subscribe(Listener(0))
        self.flow.connect()

    def subscribe(self, subscriber: Any, /) -> None:
        self.flow.subscribe(subscriber)

    def emit(self) -> None:
        held = self.hand.held[0]
        if held.live and held.demand:
            held.demand -= 1
            held.subscriber.on_next(7)


def conforms(driven: Driven) -> None:
    published: Published = driven.publisher
    for _ in range(4):
        published.emit()
    for subscriber in driven.subscribers:
        subscriber.request(MAX_DEMAND)
        assert subscriber.error is None, "a source that conforms is accused"
        subscriber.cancel()


def test_a_source_that_conforms_is_never_accused_of_an_overflow() -> None:
    """Between the count of what is under way and the element itself, another thread saw room that was not there."""
    emit = call("emit", lambda item: item.publisher.emit())
    result = explore_publisher(
        Published, [emit, subscribe(0)], ascending=False, finish=conforms, strategy="bounded", bound=1
    )
    result.assert_holds()


def test_replayed_elements_take_no_room_and_leave_none() -> None:
    hot: ReplayProcessor[int] = ReplayProcessor(100, capacity=1)
    for n in range(100):
        hot.emit(n)
    listener = Listener(50)
    hot.subscribe(listener)
    assert [hot.emit(n) for n in (100, 101)] == [EmitResult.OK, EmitResult.OVERFLOW]
    listener.subscription.request(51)
    assert listener.elements == list(range(101))
    assert [hot.emit(n) for n in (102, 103)] == [EmitResult.OK, EmitResult.OVERFLOW]


def test_the_element_in_hand_goes_before_the_source_is_asked_for_the_next() -> None:
    made: list[Any] = []
    listener = Listener(0, then=lambda n: made.append(("had", n)))
    flow = Flow.range(9).do_on_next(lambda n: made.append(("made", n))).share(capacity=1)
    flow.subscribe(listener)
    for _ in range(3):
        listener.subscription.request(1)
    assert made == [("made", 0), ("had", 0), ("made", 1), ("had", 1), ("made", 2), ("had", 2), ("made", 3)]


# -- what an element costs -----------------------------------------------------------------------------------------


class Counted:
    """A lock that counts."""

    taken = 0

    def __init__(self) -> None:
        self.lock = threading.Lock()

    def __enter__(self) -> None:
        Counted.taken += 1
        self.lock.acquire()

    def __exit__(self, *_: object) -> None:
        self.lock.release()


def hot_source(make: Callable[[], Any]) -> Callable[[], tuple[Any, Callable[[int], object]]]:
    def made() -> tuple[Any, Callable[[int], object]]:
        hot = make()
        return hot, hot.emit

    return made


def behind(share: Callable[[Flow[int]], Flow[int]]) -> Callable[[], tuple[Any, Callable[[int], object]]]:
    def made() -> tuple[Any, Callable[[int], object]]:
        hand = Hand()

        def emit(n: int) -> None:
            hand.held[0].emit(n)

        return share(Flow.from_publisher(hand)), emit

    return made


@pytest.mark.parametrize(
    "make",
    [
        hot_source(lambda: PublishProcessor(capacity=4)),
        hot_source(lambda: ReplayProcessor(2, capacity=4)),
        hot_source(lambda: BehaviorProcessor(0, capacity=4)),
        behind(lambda flow: flow.share(capacity=4)),
        behind(lambda flow: flow.replay(2, capacity=4).ref_count()),
        behind(lambda flow: flow.cache()),
    ],
    ids=["PublishProcessor", "ReplayProcessor", "BehaviorProcessor", "share", "replay", "cache"],
)
def test_what_an_element_costs_grows_as_the_number_of_subscribers(
    make: Callable[[], tuple[Any, Callable[[int], object]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(primitives, "Lock", Counted)

    def cost(subscribers: int) -> float:
        flow, emit = make()
        listeners = [Listener(MAX_DEMAND) for _ in range(subscribers)]
        for listener in listeners:
            flow.subscribe(listener)
        emit(1)
        before = Counted.taken
        for n in range(8):
            emit(n)
        assert all(len(listener.elements) >= 9 for listener in listeners)
        return (Counted.taken - before) / 8

    few, many = cost(10), cost(100)
    assert many <= 10 * few + 10, f"{few} locks for 10 subscribers, {many} for 100"


@pytest.mark.parametrize("leaving", [True, False])
def test_coming_and_going_costs_the_same_however_many_there_are(leaving: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(primitives, "Lock", Counted)

    def cost(subscribers: int) -> int:
        hot: PublishProcessor[int] = PublishProcessor(capacity=4)
        listeners = [Listener(MAX_DEMAND) for _ in range(subscribers + 1)]
        for listener in listeners[:-1]:
            hot.subscribe(listener)
        before = Counted.taken
        if leaving:
            listeners[0].subscription.cancel()
        else:
            hot.subscribe(listeners[-1])
        return Counted.taken - before

    assert cost(10) == cost(200)


# -- connections ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "share",
    [
        lambda flow: flow.share(),
        lambda flow: flow.replay(1).ref_count(),
        lambda flow: flow.publish().ref_count(1),
        lambda flow: flow.cache(),
    ],
    ids=["share", "replay", "ref_count", "cache"],
)
@pytest.mark.parametrize("on_pool", [False, True])
def test_one_that_cancels_inside_on_subscribe_connects_nothing(share: Any, on_pool: bool) -> None:
    hand, clock = Hand(), VirtualTimeExecutor()
    flow = share(Flow.from_publisher(hand))
    if on_pool:
        flow = flow.subscribe_on(clock)
    flow.subscribe(Listener(1, cancels_in=0))
    clock.advance(0)
    assert not hand.held
    listener = Listener(1)
    flow.subscribe(listener)
    clock.advance(0)
    assert len(hand.live()) == 1


def test_a_replay_begins_anew_after_its_connection_was_cancelled() -> None:
    hand = Hand()
    flow = Flow.from_publisher(hand).replay(1)
    with flow.connect():
        hand.held[0].emit(1)
    listener = Listener(9)
    flow.subscribe(listener)
    flow.connect()
    hand.held[1].emit(2)
    assert listener.elements == [2]


@pytest.mark.parametrize("demand", [0, 1, 5])
@pytest.mark.parametrize("n", [0, 1, 3, 99])
def test_the_last_cancel_of_a_replay_drops_all_that_was_not_had(n: int, demand: int) -> None:
    made: list[int] = []
    got: list[int] = []
    flow = Flow.range(1_000).do_on_next(made.append).replay(n, capacity=4).ref_count()
    with hooks.captured() as drops:
        handle = flow.subscribe(got.append, demand=demand)
        before = len(made)
        handle.cancel()
    assert len(made) == before  # the source was not asked for more
    assert got == made[:demand]
    assert [drop.element for drop in drops] == made[demand:]


@pytest.mark.parametrize("anew", [False, True])
def test_a_replay_that_is_kept_for_no_one_any_more_is_dropped(anew: bool) -> None:
    hand = Hand()
    flow = Flow.from_publisher(hand).replay(2, capacity=3)
    handle = flow.connect()
    with hooks.captured() as drops:
        hand.held[0].emit(1)
        listener = Listener(9)
        flow.subscribe(listener)
        listener.subscription.cancel()
        hand.held[0].emit(2)
        if anew:
            hand.held[0].subscriber.on_complete()
            flow.connect()
        else:
            handle.cancel()
    assert listener.elements == [1]
    assert [drop.element for drop in drops] == [2]


def test_a_subscriber_of_a_cancelled_replay_has_what_waits_for_it() -> None:
    hand = Hand()
    flow = Flow.from_publisher(hand).replay(2, capacity=3)
    listener = Listener(1)
    with hooks.captured() as drops:
        flow.subscribe(listener)
        handle = flow.connect()
        for n in (1, 2, 3):
            hand.held[0].emit(n)
        handle.cancel()
        assert not drops
        listener.subscription.request(1)
        listener.subscription.cancel()
    assert listener.elements == [1, 2]
    assert [drop.element for drop in drops] == [3]


@pytest.mark.parametrize("reads", [False, True])
def test_a_connect_anew_leaves_a_present_subscriber_its_replay(reads: bool) -> None:
    hand = Hand()
    flow = Flow.from_publisher(hand).replay(2, capacity=3)
    flow.connect()
    listener = Listener()
    with hooks.captured() as drops:
        for n in (1, 2):
            hand.held[0].emit(n)
        hand.held[0].end(None)
        flow.subscribe(listener)
        flow.connect()
        assert not drops
        if reads:
            listener.subscription.request(9)
        listener.subscription.cancel()
    assert listener.elements == ([1, 2] if reads else [])
    assert [drop.element for drop in drops] == ([] if reads else [1, 2])


def test_a_cancel_after_the_end_leaves_what_is_replayed() -> None:
    flow = Flow.range(3).replay(2)
    flow.connect().cancel()
    assert list(flow) == [1, 2]


@pytest.mark.parametrize("share", ["share", "cache", "ref_count"])
def test_subscribe_on_behind_a_shared_source_subscribes_to_it_there(share: str) -> None:
    where: list[str] = []

    def one() -> int:
        where.append(threading.current_thread().name)
        return 1

    source = Flow.from_callable(one)
    flow = {"share": source.share(), "cache": source.cache(), "ref_count": source.publish().ref_count()}[share]
    with ThreadPoolExecutor(1, "theirs") as pool:
        assert flow.subscribe_on(pool).block(timeout=30) == 1
    assert where == ["theirs_0"]


class Stops(BaseException):
    """What is never swallowed."""


def test_a_subscriber_that_stops_the_sources_thread_ends_the_source_for_the_others() -> None:
    def stop(element: Any) -> None:
        raise Stops

    hand = Hand()
    flow = Flow.from_publisher(hand).share()
    first, other = Listener(9, then=stop), Listener(9)
    flow.subscribe(first)
    flow.subscribe(other)
    with pytest.raises(Stops):
        hand.held[0].emit(1)
    assert other.elements == [1]
    assert "Stops" in str(other.ends[0])
    assert not hand.live()
    flow.subscribe(Listener())
    assert len(hand.live()) == 1


# -- processors ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [PublishProcessor, lambda: ReplayProcessor(1), lambda: BehaviorProcessor(0)])
def test_one_that_comes_after_the_upstream_was_released_gets_the_end(make: Callable[[], Any]) -> None:
    hot, hand = make(), Hand()
    hand.subscribe(hot)
    hot.subscribe(Listener(1, cancels_in=0))
    assert not hand.live()
    late = Listener(9)
    hot.subscribe(late)
    assert late.ends == ["complete"]


def test_a_behavior_whose_upstream_overflowed_replays_nothing(dropped: list[hooks.Dropped]) -> None:
    hot: BehaviorProcessor[int] = BehaviorProcessor(0, capacity=1)
    hand = Hand()
    hot.subscribe(Listener(0))
    hand.subscribe(hot)
    for n in range(3):
        hand.held[0].subscriber.on_next(n)
    late = Listener(9)
    hot.subscribe(late)
    assert late.elements == []
    assert "1.1" in str(late.ends[0])
    assert [item.element for item in dropped] == [1, 2]


def test_what_an_upstream_was_asked_for_finds_room_though_others_emit_by_hand() -> None:
    hot: PublishProcessor[int] = PublishProcessor(capacity=1)
    hand, listener = Hand(), Listener(0)
    hot.subscribe(listener)
    hand.subscribe(hot)
    assert hot.emit(1) is EmitResult.OK
    hand.held[0].emit(2)
    assert hot.emit(3) is EmitResult.OVERFLOW
    listener.subscription.request(9)
    assert (listener.elements, listener.ends) == ([1, 2], [])
