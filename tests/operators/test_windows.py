"""Windows and buffers by time, number, publisher and predicate: what is in each, when it comes, and what it holds back.

The models of `declared` say the same of buffers under any demand; here are windows, bounds and bad input.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import pytest
from sinks import Sink

from reactive_runtime import Flow, hooks
from reactive_runtime._operators.groups.group_flow import Handle
from reactive_runtime.executors import VirtualTimeExecutor, clock_of
from reactive_runtime.hot import PublishProcessor, UnicastProcessor
from reactive_runtime.testing import TestPublisher


def listed(windows: Flow[Flow[Any]]) -> Flow[list[Any]]:
    return windows.flat_map(lambda window: window.to_list())


def ticks(n: int) -> Flow[int]:
    return Flow.interval(1).take(n)


LISTS: dict[str, tuple[Callable[[], Flow[Any]], list[tuple[float, list[int]]]]] = {
    "window_time, tumbling": (
        lambda: listed(ticks(6).window_time(2.5)),
        [(2.5, [0, 1]), (5.0, [2, 3]), (6.0, [4, 5])],
    ),
    "window_time, sliding": (
        lambda: listed(ticks(3).window_time(2.5, every=1.25)),
        [(2.5, [0, 1]), (3.0, [1, 2]), (3.0, [2])],
    ),
    "window_time, with gaps": (
        lambda: listed(ticks(6).window_time(1.5, every=3)),
        [(1.5, [0]), (4.5, [2, 3]), (6.0, [5])],
    ),
    "buffer_time, tumbling": (
        lambda: ticks(6).buffer_time(2.5),
        [(2.5, [0, 1]), (5.0, [2, 3]), (6.0, [4, 5])],
    ),
    "buffer_time, sliding": (
        lambda: ticks(3).buffer_time(2.5, every=1.25),
        [(2.5, [0, 1]), (3.0, [1, 2]), (3.0, [2])],
    ),
    "window_timeout, full": (lambda: listed(ticks(3).window_timeout(2, 9)), [(2.0, [0, 1]), (3.0, [2])]),
    "window_timeout, late": (lambda: listed(ticks(4).window_timeout(9, 1.5)), [(2.5, [0, 1]), (4.0, [2, 3])]),
    "window_when": (
        lambda: listed(ticks(5).window_when(Flow.interval(2.25))),
        [(2.25, [0, 1]), (4.5, [2, 3]), (5.0, [4])],
    ),
    "buffer_when": (
        lambda: ticks(6).buffer_when(Flow.interval(2.25)),
        [(2.25, [0, 1]), (4.5, [2, 3]), (6.0, [4, 5])],
    ),
}


@pytest.mark.parametrize("name", LISTS)
def test_a_list_has_its_elements_and_comes_at_its_time(name: str) -> None:
    make, expected = LISTS[name]
    clock = VirtualTimeExecutor()
    seen: list[tuple[float, list[int]]] = []
    with clock_of(clock):
        make().subscribe(lambda made: seen.append((clock.now(), made)))
    for _ in range(100):
        clock.advance(0.25)
    assert seen == expected


def test_the_end_of_a_boundary_ends_the_flow_and_cancels_the_source() -> None:
    for make in (
        lambda flow, boundary: flow.buffer_when(boundary),
        lambda flow, boundary: listed(flow.window_when(boundary)),
    ):
        source, boundary, sink = TestPublisher[int](), TestPublisher[int](), Sink()
        make(Flow.from_publisher(source), boundary).subscribe(sink)
        source.emit(1)
        boundary.complete()
        assert (sink.elements, sink.end) == ([[1]], ("on_complete",))
        assert source.cancelled == 1


BY_BOUNDARY: dict[str, Callable[[Flow[Any], Flow[Any]], Flow[list[Any]]]] = {
    "buffer_when": lambda flow, boundary: flow.buffer_when(boundary),
    "window_when": lambda flow, boundary: listed(flow.window_when(boundary)),
}


@pytest.mark.parametrize("name", BY_BOUNDARY)
def test_boundary_elements_before_a_list_do_not_cut_it(name: str) -> None:
    numbers, boundary, sink = PublishProcessor[int](), UnicastProcessor[int](), Sink()
    for n in range(5):
        boundary.emit(n)
    BY_BOUNDARY[name](numbers, boundary).subscribe(sink)
    numbers.emit(0)
    numbers.emit(1)
    numbers.on_complete()
    assert (sink.elements, sink.end) == ([[0, 1]], ("on_complete",))


@pytest.mark.parametrize("name", BY_BOUNDARY)
@pytest.mark.parametrize("n", [0, 1, 5, 256, 1000])
def test_a_boundary_that_is_over_ends_the_flow_at_once(name: str, n: int) -> None:
    sink = Sink()
    BY_BOUNDARY[name](Flow.never(), Flow.range(n)).subscribe(sink)
    assert (sink.elements, sink.end) == ([], ("on_complete",))


@pytest.mark.parametrize("name", BY_BOUNDARY)
def test_a_source_runs_beside_a_boundary_without_end(name: str) -> None:
    endless = Flow.generate(0, lambda n: (n, n + 1))
    assert [n for made in BY_BOUNDARY[name](Flow.range(3), endless) for n in made] == [0, 1, 2]


def test_a_full_buffer_by_time_holds_the_source_back_until_its_time() -> None:
    made: list[int] = []
    clock, sink = VirtualTimeExecutor(), Sink()
    Flow.range(100).do_on_next(made.append).buffer_time(1, clock=clock, capacity=3).subscribe(sink)
    clock.advance(0.5)
    assert (len(made), sink.elements) == (6, [])  # three are kept, and three were requested ahead
    clock.advance(0.5)
    assert (len(made), sink.elements) == (9, [[0, 1, 2]])
    sink.subscription.cancel()


def test_lists_by_time_without_demand_wait_and_keep_their_elements() -> None:
    numbers, clock, sink = PublishProcessor[int](), VirtualTimeExecutor(), Sink(1)
    numbers.buffer_time(1, clock=clock).subscribe(sink)
    for n in range(4):
        numbers.emit(n)
        clock.advance(1)
    assert sink.elements == [[0]]
    sink.subscription.request(2)
    assert sink.elements == [[0], [1], [2]]
    sink.subscription.cancel()


def test_a_window_whose_subscriber_is_slow_holds_the_source_back() -> None:
    made: list[int] = []
    clock, inner = VirtualTimeExecutor(), Sink(0)
    windows = Flow.range(100).do_on_next(made.append).window_time(1, clock=clock, prefetch=2)
    windows.subscribe(lambda window: window.subscribe(inner), demand=1)
    inner.subscription.request(1)
    held = len(made)
    clock.advance(5)
    assert inner.elements == [0]
    assert len(made) == held <= 4
    inner.subscription.request(9)
    # The element that waited for room is in the window, although its time is over.
    assert inner.elements == list(range(held))
    assert inner.end == ("on_complete",)


def test_a_full_window_without_a_subscriber_fails_the_flow() -> None:
    sink = Sink()
    Flow.range(9).window_until(lambda n: False, prefetch=2).subscribe(sink)
    assert sink.end is not None
    assert "2 elements wait in window 1, and it has no subscriber" in str(sink.end[1])


def test_a_cancelled_window_keeps_its_place_and_drops_its_further_elements() -> None:
    seen: list[list[int]] = []
    with hooks.captured() as drops:
        windows = Flow.range(6).window(3).enumerate()
        windows.concat_map(lambda item: item[1].take(1) if item[0] == 0 else item[1]).to_list().subscribe(seen.append)
    assert seen == [[0, 3, 4, 5]]
    assert [drop.element for drop in drops] == [1, 2]


def test_an_element_that_another_window_takes_is_not_reported() -> None:
    seen: list[Any] = []
    with hooks.captured() as drops:
        windows = Flow.range(4).window(2, skip=1).enumerate()
        windows.flat_map(lambda item: item[1].take(1) if item[0] == 1 else item[1].to_list()).subscribe(seen.append)
    assert seen == [[0, 1], 1, [2, 3], [3]]
    assert drops == []


def test_elements_between_lists_are_dropped_as_wanted() -> None:
    clock = VirtualTimeExecutor()
    with hooks.captured() as drops:
        Flow.interval(1, clock=clock).take(3).buffer_time(1.5, every=9, clock=clock).subscribe(lambda made: None)
        clock.advance(9)
    assert [(drop.element, drop.wanted) for drop in drops] == [(1, True), (2, True)]


def test_a_handle_whose_making_an_exit_ended_is_freed_quietly() -> None:
    """Pytest makes an error of one that `__del__` raises."""
    Handle.__new__(Handle)
    gc.collect()


BAD: dict[str, tuple[Callable[[Flow[int]], object], type[Exception], str]] = {
    "a window of 0 s": (
        lambda f: f.window_time(0),
        ValueError,
        "window_time: seconds must be a number",
    ),
    "a buffer of 0 s": (
        lambda f: f.buffer_time(0),
        ValueError,
        "buffer_time: seconds must be a number",
    ),
    "every 0 s": (
        lambda f: f.buffer_time(1, every=0),
        ValueError,
        "buffer_time: every must be a number",
    ),
    "0 s, or a number": (
        lambda f: f.window_timeout(3, 0),
        ValueError,
        "window_timeout: seconds must be a number",
    ),
    "a skip of 0": (lambda f: f.window(3, skip=0), ValueError, "window: skip must be"),
    "a buffer's skip of 0": (lambda f: f.buffer(3, skip=0), ValueError, "buffer: skip must be"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bound_without_meaning_is_refused_when_the_flow_is_made(name: str) -> None:
    make, kind, says = BAD[name]
    with pytest.raises(kind) as raised:
        make(Flow.range(3))
    assert says in str(raised.value)


def test_a_list_that_the_predicate_never_ends_fails_at_its_bound() -> None:
    with hooks.captured() as drops, pytest.raises(OverflowError, match="more than 3 elements"):
        Flow.range(9).buffer_until(lambda n: False, capacity=3).run()
    assert [drop.element for drop in drops] == [0, 1, 2, 3]
