"""`partition` and `balance`: when the source begins, who gets which element, and what becomes of it at a cancel."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sinks import PATIENCE, Numbers, Sink, wait_until

from reactive_runtime import Flow, KillSwitch, hooks
from reactive_runtime.hot import PublishProcessor
from reactive_runtime.scopes import scope
from reactive_runtime.testing import TestPublisher


def odd(n: int) -> bool:
    return n % 2 == 1


def subscribed(flows: tuple[Flow[int], ...], *demands: int) -> list[Sink]:
    sinks = [Sink(demand) for demand in demands]
    for flow, sink in zip(flows, sinks, strict=True):
        flow.subscribe(sink)
    return sinks


# -- the subscribers, and the source ------------------------------------------------------------------------------


@pytest.mark.parametrize("deal", [lambda f: f.partition(odd), lambda f: f.balance(2)], ids=["partition", "balance"])
def test_the_source_begins_once_when_each_flow_has_a_subscriber(deal: Any) -> None:
    begun: list[int] = []
    first, second = deal(Flow.defer(lambda: begun.append(1) or Flow.range(4)))  # type: ignore[func-returns-value]
    one, other = Sink(), Sink()
    first.subscribe(one)
    assert (begun, one.signals) == ([], [("on_subscribe",)])
    second.subscribe(other)
    assert begun == [1]
    assert sorted(one.elements + other.elements) == [0, 1, 2, 3]
    assert one.end == other.end == ("on_complete",)


def test_the_next_subscribers_of_the_flows_share_a_run() -> None:
    odds, evens = Flow.range(4).partition(odd)
    sinks = [Sink() for _ in range(4)]
    for flow, sink in zip((odds, odds, evens, evens), sinks, strict=True):
        flow.subscribe(sink)
    assert [sink.elements for sink in sinks] == [[1, 3], [1, 3], [0, 2], [0, 2]]


def test_a_subscriber_that_has_left_before_counts_as_one() -> None:
    odds, evens = Flow.range(4).partition(odd)
    gone, sink = Sink(0), Sink()
    with hooks.captured() as drops:
        evens.subscribe(sink)
        odds.subscribe(gone)
        gone.subscription.cancel()
    assert sink.elements == [0, 2]
    assert [drop.element for drop in drops] == [1, 3]


def test_subscribers_that_have_all_left_wait_for_no_other() -> None:
    odds, evens = Flow.range(4).partition(odd)
    gone = Sink(0)
    odds.subscribe(gone)
    gone.subscription.cancel()
    assert sorted(odds.merge_with(evens)) == [0, 1, 2, 3]


def test_a_cancel_inside_on_subscribe_begins_nothing() -> None:
    numbers = Numbers(4)
    flows = Flow.from_supplier(lambda: numbers).balance(2)

    class Leaves(Sink):
        def on_subscribe(self, subscription: Any, /) -> None:
            subscription.cancel()

    for flow in flows:
        flow.subscribe(Leaves())
    assert numbers.pulled == 0


def test_a_wait_for_one_flow_alone_names_what_is_missing() -> None:
    odds, _ = Flow.range(4).partition(odd)
    with pytest.raises(TimeoutError, match=r"`partition\(odd\)`, another flow of which has had no subscriber"):
        odds.block(timeout=0.01)


# -- demand -------------------------------------------------------------------------------------------------------


def test_the_slower_of_two_partitions_holds_up_the_faster() -> None:
    numbers = Numbers()
    odds, evens = subscribed(Flow.from_supplier(lambda: numbers).partition(odd, prefetch=2), 0, 100)
    assert (numbers.pulled, evens.elements) == (4, [0, 2])
    odds.subscription.request(1)
    assert (numbers.pulled, evens.elements, odds.elements) == (6, [0, 2, 4], [1])
    odds.subscription.cancel()
    evens.subscription.cancel()
    assert numbers.closed == 1


def test_elements_go_to_workers_with_demand_in_turn() -> None:
    source = TestPublisher[int]()
    first, second, third = subscribed(Flow.from_publisher(source).balance(3, prefetch=2), 2, 0, 3)
    source.emit(0, 1, 2, 3, 4)
    assert (first.elements, second.elements, third.elements) == ([0, 2], [], [1, 3, 4])
    source.emit(5, 6)
    second.subscription.request(1)
    assert second.elements == [5]


def test_a_worker_that_lost_its_demand_passes_the_element_on() -> None:
    source, beside = TestPublisher[int](), PublishProcessor[int]()
    workers = Flow.from_publisher(source).balance(2)
    first, second = Sink(1), Sink()
    workers[0].merge_with(beside).subscribe(first)
    workers[1].subscribe(second)
    beside.emit(7)  # meets the demand that the first worker waited with
    source.emit(1)
    assert (first.elements, second.elements) == ([7], [1])
    source.emit(2)
    assert (first.elements, second.elements) == ([7], [1, 2])
    first.subscription.request(1)
    source.emit(3, 4)
    assert (first.elements, second.elements) == ([7, 4], [1, 2, 3])


# -- cancel, end, error -------------------------------------------------------------------------------------------


def test_a_worker_that_cancels_leaves_its_elements_to_the_others() -> None:
    with hooks.captured() as drops:
        first, second = subscribed(Flow.range(8).balance(2, prefetch=4), 2, 0)
        assert first.elements == [0, 1]
        first.subscription.cancel()
        second.subscription.request(99)
        assert second.elements == [2, 3, 4, 5, 6, 7]
    assert list(drops) == []


def test_the_last_worker_that_cancels_drops_what_waits_and_ends_the_source() -> None:
    numbers = Numbers()
    with hooks.captured() as drops:
        first, second = subscribed(Flow.from_supplier(lambda: numbers).balance(2, prefetch=3), 1, 0)
        first.subscription.cancel()
        assert numbers.closed == 0
        second.subscription.cancel()
    assert numbers.closed == 1
    assert first.elements + [drop.element for drop in drops] == list(range(numbers.pulled))


def left(flow: Flow[int]) -> list[int]:
    elements = []
    for element in flow:
        elements.append(element)
        if element == 2:
            break
    return elements


@pytest.mark.parametrize(
    "three",
    [
        left,
        lambda flow: list(flow.take(3)),
        lambda flow: list(flow.take(3).concat_with(Flow.empty())),
        lambda flow: flow.take(3).to_list().block(),
    ],
    ids=["break", "take", "take, concat", "block"],
)
def test_a_cancel_of_both_parts_at_once_pulls_no_more_of_the_source(three: Any) -> None:
    numbers = Numbers(5_000)
    with hooks.captured() as drops:
        parts = Flow.from_supplier(lambda: numbers).partition(lambda n: True, prefetch=2)
        assert three(Flow.merge(*parts)) == [0, 1, 2]
    assert numbers.pulled <= 3 + 2
    assert [drop.element for drop in drops] == list(range(3, numbers.pulled))


def test_an_error_comes_behind_the_elements_that_wait() -> None:
    first, second = subscribed(Flow.range(3).concat_with(Flow.error(OSError("gone"))).balance(2), 1, 0)
    assert (first.elements, first.end, second.end) == ([0], None, None)
    first.subscription.request(2)
    assert first.elements == [0, 1, 2]
    assert str(first.error) == str(second.error) == "gone"


def test_an_error_that_no_flow_delivers_goes_to_the_hook_once() -> None:
    with hooks.captured() as drops:
        for sink in subscribed(Flow.just(1).concat_with(Flow.error(OSError("gone"))).balance(2), 0, 0):
            sink.subscription.cancel()
    assert [drop.element for drop in drops if drop.error is None] == [1]
    assert [str(drop.error) for drop in drops if drop.error is not None] == ["gone"]


def test_a_predicate_that_raises_fails_both_and_cancels_the_source() -> None:
    numbers = Numbers()
    odds, evens = subscribed(Flow.from_supplier(lambda: numbers).partition(lambda n: 1 // (2 - n)), 9, 9)
    assert (odds.elements, evens.elements) == ([1], [0])
    for sink in (odds, evens):
        assert isinstance(sink.error, ZeroDivisionError)
        assert any(note.startswith("in partition(lambda), ") for note in sink.error.__notes__)
    assert numbers.closed == 1


def test_a_switched_off_worker_leaves_what_waits_to_the_other() -> None:
    switch = KillSwitch()
    first, second = Flow.range(8).balance(2, prefetch=4)
    sinks = subscribed((first.kill_switch(switch), second), 1, 0)
    switch.throw()
    assert sinks[0].end == ("on_complete",)
    sinks[1].subscription.request(99)
    assert sinks[0].elements + sinks[1].elements == list(range(8))


@pytest.mark.parametrize("deal", [lambda f: f.partition(odd), lambda f: f.balance(2)], ids=["partition", "balance"])
def test_a_scope_that_drains_delivers_what_waits(deal: Any) -> None:
    source, sinks = TestPublisher[int](), [Sink(1), Sink(1)]
    with hooks.captured() as drops, scope() as flows:
        for flow, sink in zip(deal(Flow.from_publisher(source)), sinks, strict=True):
            flows.start(flow, sink)
        source.emit(0, 1, 2, 3)
        drained = flows.drain(within=PATIENCE)
        for sink in sinks:
            sink.subscription.request(99)
        drained.result(PATIENCE)
    assert sorted(sinks[0].elements + sinks[1].elements) == [0, 1, 2, 3]
    assert list(drops) == []


@pytest.mark.parametrize(
    "deal",
    [
        lambda f: f.partition(odd),
        lambda f: f.balance(2),
        lambda f: tuple(worker for part in f.partition(odd) for worker in part.balance(2)),
    ],
    ids=["partition", "balance", "balance of partition"],
)
def test_a_scope_that_drains_delivers_all_that_the_source_made(deal: Any) -> None:
    def one() -> None:
        made: list[int] = []
        got: list[int] = []
        with ThreadPoolExecutor(5) as pool, scope() as flows:
            endless = Flow.generate(0, lambda n: (made.append(n) or n, n + 1))  # type: ignore[func-returns-value]
            for flow in deal(endless.subscribe_on(pool)):
                flows.start(flow.publish_on(pool), got.append)
            wait_until(lambda: len(got) > 500)
            flows.drain(within=PATIENCE)
        assert sorted(got) == made

    for _ in range(20):
        one()


def test_a_worker_whose_scope_drains_leaves_what_waits_to_another() -> None:
    source, inside, outside = TestPublisher[int](), Sink(0), Sink(0)
    with scope() as flows:
        first, second = Flow.from_publisher(source).balance(2)
        flows.start(first, inside)
        second.subscribe(outside)
        source.emit(0, 1)
        drained = flows.drain(within=PATIENCE)
        assert inside.end == ("on_complete",)
        drained.result(PATIENCE)
        outside.subscription.request(2)
        assert outside.elements == [0, 1]
        source.complete()


# -- threads ------------------------------------------------------------------------------------------------------


def test_workers_that_leave_at_random_lose_nothing() -> None:
    chance = random.Random(4)
    for _ in range(30):
        with hooks.captured() as drops, ThreadPoolExecutor(4) as pool:
            workers = Flow.range(300).balance(4, prefetch=chance.choice((1, 3, 64)))
            taken = [chance.randrange(1, 120) for _ in range(3)]
            parts = [worker.subscribe_on(pool).take(n).to_list() for worker, n in zip(workers, taken, strict=False)]
            lists = [part.to_future() for part in (*parts, workers[3].subscribe_on(pool).to_list())]
            got = [n for future in lists for n in future.result(PATIENCE) or ()]
        assert sorted(got) == list(range(300))
        assert list(drops) == []
