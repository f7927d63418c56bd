"""A processor made of operators: either side first, one of each, ends that wait for no demand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sinks import Numbers, Sink

from reactive_runtime import Flow, hooks
from reactive_runtime.errors import RejectedError
from reactive_runtime.executors import VirtualTimeExecutor
from reactive_runtime.hot import EmitResult, PublishProcessor
from reactive_runtime.processors import FlowProcessor


def doubling() -> FlowProcessor[int, int]:
    return FlowProcessor(lambda flow: flow.map(lambda n: n * 2))


class Upstream:
    """A subscription that notes what is asked of it."""

    def __init__(self) -> None:
        self.requests: list[int] = []
        self.cancels = 0

    def request(self, n: int, /) -> None:
        self.requests.append(n)

    def cancel(self) -> None:
        self.cancels += 1


def test_the_subscriber_may_come_first() -> None:
    processor, sink = doubling(), Sink()
    processor.subscribe(sink)
    Flow.range(3).subscribe(processor)
    assert sink.elements == [0, 2, 4]
    assert sink.end == ("on_complete",)


def test_the_upstream_may_come_first() -> None:
    processor, sink = doubling(), Sink()
    Flow.range(3).subscribe(processor)
    processor.subscribe(sink)
    assert sink.elements == [0, 2, 4]
    assert sink.end == ("on_complete",)


def test_demand_goes_through_exactly_and_only_when_it_is_there() -> None:
    processor, sink, upstream = doubling(), Sink(demand=0), Upstream()
    processor.on_subscribe(upstream)
    processor.subscribe(sink)
    assert upstream.requests == []
    sink.subscription.request(2)
    processor.on_next(1)
    sink.subscription.request(3)
    assert upstream.requests == [2, 3]
    assert sink.elements == [2]


def test_demand_waits_for_the_upstream() -> None:
    processor, sink, upstream = doubling(), Sink(demand=2), Upstream()
    processor.subscribe(sink)
    processor.on_subscribe(upstream)
    assert upstream.requests == [2]


@pytest.mark.parametrize("error", [None, OSError("broken")])
def test_an_end_that_comes_before_the_subscriber_waits_for_it(error: Exception | None) -> None:
    processor, sink = doubling(), Sink(demand=0)
    processor.on_subscribe(Upstream())
    if error is None:
        processor.on_complete()
    else:
        processor.on_error(error)
    processor.subscribe(sink)
    assert sink.end == (("on_complete",) if error is None else ("on_error", error))


def test_an_error_is_passed_on_at_once() -> None:
    processor, sink, error = doubling(), Sink(demand=0), OSError("broken")
    processor.subscribe(sink)
    processor.on_subscribe(Upstream())
    processor.on_error(error)
    assert sink.error is error


def test_a_cancel_downstream_cancels_upstream() -> None:
    processor, sink, upstream = doubling(), Sink(demand=1), Upstream()
    processor.subscribe(sink)
    processor.on_subscribe(upstream)
    sink.subscription.cancel()
    sink.subscription.cancel()
    assert upstream.cancels == 1


def test_a_cancel_before_the_upstream_came_cancels_it_when_it_comes() -> None:
    processor, sink, upstream = doubling(), Sink(demand=1), Upstream()
    processor.subscribe(sink)
    sink.subscription.cancel()
    processor.on_subscribe(upstream)
    assert (upstream.requests, upstream.cancels) == ([], 1)


def test_a_second_upstream_is_cancelled() -> None:
    processor, second = doubling(), Upstream()
    processor.on_subscribe(Upstream())
    processor.on_subscribe(second)
    assert second.cancels == 1


def test_a_second_subscriber_is_refused_and_the_first_goes_on() -> None:
    processor, first, second = doubling(), Sink(demand=1), Sink()
    processor.subscribe(first)
    processor.subscribe(second)
    assert isinstance(second.error, RejectedError)
    Flow.range(3).subscribe(processor)
    assert first.elements == [0]
    assert first.end is None


def test_the_source_is_closed_when_the_subscriber_leaves() -> None:
    numbers, processor, sink = Numbers(), doubling(), Sink(demand=2)
    processor.subscribe(sink)
    Flow.from_supplier(lambda: numbers).subscribe(processor)
    sink.subscription.cancel()
    assert (sink.elements, numbers.closed) == ([0, 2], 1)


def test_a_boundary_inside_prefetches_and_is_drained_where_it_says() -> None:
    clock = VirtualTimeExecutor()
    processor: FlowProcessor[int, int] = FlowProcessor(lambda flow: flow.publish_on(clock, prefetch=4))
    sink, upstream = Sink(demand=1), Upstream()
    processor.subscribe(sink)
    processor.on_subscribe(upstream)
    clock.advance(0)
    assert upstream.requests == [4]
    processor.on_next(7)
    assert sink.elements == []
    clock.advance(0)
    assert sink.elements == [7]
    sink.subscription.cancel()
    clock.advance(0)


def test_an_element_that_no_subscriber_takes_goes_to_the_hook(dropped: list[hooks.Dropped]) -> None:
    processor = doubling()
    processor.on_subscribe(Upstream())
    processor.on_next(1)
    assert [drop.element for drop in dropped] == [1]


@pytest.mark.parametrize("call", ["on_subscribe", "on_next", "on_error", "subscribe"])
def test_none_is_refused(call: str) -> None:
    with pytest.raises(TypeError, match="None"):
        getattr(doubling(), call)(None)


@pytest.mark.parametrize("wrong", [None, 5])
def test_what_assembles_has_to_be_a_function(wrong: Any) -> None:
    with pytest.raises(TypeError, match="FlowProcessor: assemble must be callable"):
        FlowProcessor(wrong)


def test_an_end_during_on_subscribe_comes_after_it() -> None:
    """The upstream ends while the other thread is still handing over: here, from inside the handing over."""
    processor, sink = doubling(), Sink(demand=1)

    class Ending(Upstream):
        def request(self, n: int, /) -> None:
            processor.on_next(1)
            processor.on_complete()

    processor.on_subscribe(Ending())
    processor.subscribe(sink)
    assert sink.signals == [("on_subscribe",), ("on_next", 2), ("on_complete",)]


WITHOUT_WHAT_COMES_IN: dict[str, Callable[[Flow[int]], Flow[Any]]] = {
    "take 0": lambda flow: flow.take(0),
    "take_until an end": lambda flow: flow.take_until(Flow.empty()),
    "zip with nothing": lambda flow: Flow.zip(flow, Flow.empty()),
    "an error": lambda flow: flow.skip_until(Flow.error(OSError("broken"))),
    "before its turn": lambda flow: flow.start_with(1).take(1),
    "not used": lambda flow: Flow.just(1),
}
"""Flows that end and have not subscribed to what comes in."""


@pytest.mark.parametrize("first", ["upstream", "subscriber"])
@pytest.mark.parametrize("kind", WITHOUT_WHAT_COMES_IN)
def test_an_end_without_what_comes_in_cancels_upstream(kind: str, first: str) -> None:
    processor: FlowProcessor[int, Any] = FlowProcessor(WITHOUT_WHAT_COMES_IN[kind])
    sink, upstream, late = Sink(), Upstream(), Upstream()
    if first == "upstream":
        processor.on_subscribe(upstream)
        processor.subscribe(sink)
    else:
        processor.subscribe(sink)
        processor.on_subscribe(upstream)
    processor.on_subscribe(late)
    assert sink.end is not None
    assert (upstream.requests, upstream.cancels, late.cancels) == ([], 1, 1)


def test_a_processor_that_is_over_holds_up_no_hot_source() -> None:
    numbers, sink = PublishProcessor[int](capacity=2), Sink()
    numbers.subscribe(sink)
    processor: FlowProcessor[int, int] = FlowProcessor(lambda flow: flow.take_until(Flow.empty()))
    processor.subscribe(Sink())
    numbers.subscribe(processor)
    assert [numbers.emit(n) for n in range(5)] == [EmitResult.OK] * 5
    assert sink.elements == [0, 1, 2, 3, 4]


class Leaving(Sink):
    """Cancels in `on_subscribe`."""

    def on_subscribe(self, subscription: Any, /) -> None:
        super().on_subscribe(subscription)
        subscription.cancel()


@pytest.mark.parametrize("sink", [Sink(demand=1), Leaving(demand=0)], ids=["later", "at once"])
def test_a_cancel_before_the_turn_of_what_comes_in_cancels_it(sink: Sink) -> None:
    processor: FlowProcessor[int, int] = FlowProcessor(lambda flow: flow.start_with(1, 2))
    upstream, second = Upstream(), Sink()
    processor.on_subscribe(upstream)
    processor.subscribe(sink)
    sink.subscription.cancel()
    processor.subscribe(second)
    assert upstream.cancels == 1
    assert isinstance(second.error, RejectedError)


@pytest.mark.parametrize("when", ["before", "after"])
def test_an_error_that_no_operator_hears_goes_to_the_hook(when: str, dropped: list[hooks.Dropped]) -> None:
    processor, error, upstream = FlowProcessor[int, int](lambda flow: flow.take(0)), OSError("broken"), Upstream()
    processor.on_subscribe(upstream)
    if when == "before":
        processor.on_error(error)
    processor.subscribe(Sink())
    if when == "after":
        processor.on_error(error)
    assert [drop.error for drop in dropped] == [error]
    assert upstream.cancels == (0 if when == "before" else 1)


def test_a_second_subscriber_that_leaves_leaves_the_first_alone() -> None:
    processor: FlowProcessor[int, int] = FlowProcessor(lambda flow: flow.start_with(1))
    first, second, upstream = Sink(demand=0), Sink(demand=0), Upstream()
    processor.on_subscribe(upstream)
    processor.subscribe(first)
    processor.subscribe(second)
    second.subscription.cancel()
    first.subscription.request(2)
    assert (first.elements, upstream.requests, upstream.cancels) == ([1], [1], 0)


@pytest.mark.parametrize("wrong", [print, Sink, 5])
def test_what_is_no_subscriber_is_refused_and_takes_no_place(wrong: Any) -> None:
    processor, sink = doubling(), Sink()
    with pytest.raises(TypeError, match="a Subscriber is needed"):
        processor.subscribe(wrong)
    processor.subscribe(sink)
    Flow.range(2).subscribe(processor)
    assert sink.elements == [0, 2]
