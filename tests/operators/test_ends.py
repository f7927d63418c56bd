"""Ends and errors come when they are known, demand or not; nothing is asked for that an operator has no use for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import nullcontext
from types import TracebackType
from typing import Any

import pytest
from sinks import Sink

from reactive_runtime import Flow, Subscription, hooks
from reactive_runtime._core.fusion.fuse import fusing
from reactive_runtime.executors import VirtualTimeExecutor
from reactive_runtime.hot import PublishProcessor
from reactive_runtime.testing import TestPublisher


def test_race_asks_each_source_for_one_element() -> None:
    asked: list[int] = []
    sink = Sink(demand=0)
    Flow.race(Flow.never(), Flow.from_publisher(Flow.range(1000)).do_on_request(asked.append)).subscribe(sink)
    assert asked == [1]
    sink.subscription.request(3)
    assert sink.elements == [0, 1, 2]
    sink.subscription.cancel()


@pytest.mark.parametrize("error", [None, OSError("gone")])
def test_batch_by_shows_an_end_that_needs_no_demand(error: OSError | None) -> None:
    source, sink = PublishProcessor[int](), Sink(demand=0)
    source.buffer_timeout(3, 1, clock=VirtualTimeExecutor()).subscribe(sink)
    source.on_complete() if error is None else source.on_error(error)
    assert sink.end == (("on_complete",) if error is None else ("on_error", error))


def test_the_end_of_an_empty_flow_is_delayed_without_demand() -> None:
    clock, sink = VirtualTimeExecutor(), Sink(demand=0)
    Flow.empty().delay(5, clock=clock).subscribe(sink)
    assert sink.end is None
    clock.advance(5)
    assert sink.end == ("on_complete",)


def test_delayed_elements_that_are_overdue_come_with_their_demand() -> None:
    clock, sink = VirtualTimeExecutor(), Sink(demand=1)
    Flow.range(4).delay(5, clock=clock).subscribe(sink)
    clock.advance(20)
    sink.subscription.request(9)
    assert sink.elements == [0, 1, 2, 3], "without another tick of the clock"
    assert sink.end == ("on_complete",)


def test_throttle_counts_from_its_first_element_whatever_the_clock_says() -> None:
    sink = Sink()
    Flow.range(5).throttle(10, clock=VirtualTimeExecutor(-100.0)).subscribe(sink)
    assert sink.elements == [0]


@pytest.mark.parametrize("operator", [Flow.zip, Flow.merge_comparing], ids=["zip", "merge_comparing"])
def test_an_error_does_not_wait_for_the_elements_before_it_to_find_partners(operator: Callable[..., Flow[Any]]) -> None:
    source, sink = PublishProcessor[int](), Sink()
    with hooks.captured() as dropped:
        operator(Flow.never(), Flow.from_publisher(source)).subscribe(sink)
        source.emit(1)
        source.on_error(OSError("gone"))
    assert isinstance(sink.error, OSError)
    assert [item.element for item in dropped] == [1]


def test_with_latest_from_several_needs_an_element_of_each(dropped: list[hooks.Dropped]) -> None:
    source, first, second = (PublishProcessor[int]() for _ in range(3))
    sink = Sink()
    source.with_latest_from(first, second).subscribe(sink)
    first.on_next(1)
    source.on_next(10)
    second.on_next(2)
    source.on_next(20)
    first.on_next(3)
    first.on_complete()
    source.on_next(30)
    second.on_complete()
    source.on_next(40)
    assert sink.elements == [(20, 1, 2), (30, 3, 2), (40, 3, 2)]
    source.on_complete()
    assert sink.end == ("on_complete",)
    assert [drop.element for drop in dropped] == [10]


def test_with_latest_from_nothing_is_refused() -> None:
    with pytest.raises(TypeError, match="with_latest_from: needs at least one other publisher"):
        Flow.just(1).with_latest_from()


def test_with_latest_from_takes_all_that_a_pulled_source_has() -> None:
    assert list(Flow.just(1, 2).with_latest_from(Flow.just(7, 8))) == [(1, 8), (2, 8)]


def test_a_sampler_that_is_pulled_is_heard_to_its_end() -> None:
    clock, sink = VirtualTimeExecutor(), Sink()
    Flow.timer(1, clock=clock).sample(Flow.range(6)).subscribe(sink)
    assert sink.end == ("on_complete",)


def test_one_error_that_a_function_raises_again_and_again_keeps_one_traceback() -> None:
    error = OSError("busy")

    def fail() -> int:
        raise error

    def depth(failure: BaseException) -> int:
        frames, trace = 0, failure.__traceback__
        while isinstance(trace, TracebackType):
            frames, trace = frames + 1, trace.tb_next
        depths.append(frames)
        return True

    depths: list[int] = []
    sink = Sink()
    Flow.from_callable(fail).retry(3000, when=depth).subscribe(sink)
    assert sink.error is error
    assert max(depths) == depths[0]


def test_a_demand_is_that_of_the_operator_that_asks_and_not_of_those_behind_it() -> None:
    """`debounce` asks for everything, though an operator stands between it and the source, and nothing is demanded."""
    clock, source, sink = VirtualTimeExecutor(), PublishProcessor[int](), Sink(demand=0)
    Flow.from_publisher(source).map_error(lambda error: error).debounce(3, clock=clock).subscribe(sink)
    source.emit(1)
    clock.advance(3)
    sink.subscription.request(1)
    assert sink.elements == [1]
    sink.subscription.cancel()


def test_two_sources_that_never_end_take_turns_on_one_thread() -> None:
    """Each has a drain of its own, since a third publisher may be heard; neither keeps the thread for ever."""
    seen: set[str] = set()
    stop = PublishProcessor[int]()

    def note(name: str) -> str:
        seen.add(name)
        if len(seen) == 2:
            stop.on_complete()
        return name

    def rows(name: str) -> Flow[str]:
        return Flow.generate(0, lambda n: (n, n)).map(lambda n: note(name))

    sink = Sink()
    Flow.merge(rows("a"), rows("b"), stop).take_until(stop.ignore_elements()).ignore_elements().subscribe(sink)
    assert sink.end == ("on_complete",)


AT_THE_END: dict[str, tuple[Callable[[], Flow[Any]], list[Any]]] = {
    "end_with": (lambda: Flow.just(1).end_with(8, 9), [1, 8, 9]),
    "end_with twice": (lambda: Flow.just(1).take(1).end_with(8).end_with(9), [1, 8, 9]),
    "default_if_empty": (lambda: Flow.empty().default_if_empty(7), [7]),
    "to_list": (lambda: Flow.empty().to_list(), [[]]),
    "count": (lambda: Flow.empty().count(), [0]),
    "reduce": (lambda: Flow.empty().reduce(max, 4), [4]),
    "batch": (lambda: Flow.just(1, 2).batch(2).end_with([3]), [[1, 2], [3]]),
    "materialize": (
        lambda: Flow.just(1).end_with(2).materialize().map(lambda item: item.signal),
        ["on_next", "on_next"],
    ),
}


@pytest.mark.parametrize("fused", [True, False], ids=["fused", "unfused"])
@pytest.mark.parametrize("behind", [lambda f: f, lambda f: f.limit_rate(2)], ids=["alone", "limit_rate"])
@pytest.mark.parametrize("name", list(AT_THE_END))
def test_what_is_given_at_the_end_goes_through_the_functions_behind_it_with_its_demand(
    name: str, behind: Callable[[Flow[Any]], Flow[Any]], fused: bool
) -> None:
    make, elements = AT_THE_END[name]
    heard: list[Any] = []
    sink = Sink(demand=0)
    with fusing(fused):
        behind(make().do_on_next(heard.append)).subscribe(sink)
        for n in range(len(elements)):
            assert heard == sink.elements == elements[:n]
            sink.subscription.request(1)
    assert heard == sink.elements == elements
    sink.subscription.cancel()


@pytest.mark.parametrize("fused", [True, False], ids=["fused", "unfused"])
def test_what_is_given_at_the_end_and_not_wanted_goes_to_the_hook_once(fused: bool) -> None:
    sink = Sink(demand=0)
    with hooks.captured() as dropped, fusing(fused):
        Flow.empty().default_if_empty(7).map(str).subscribe(sink)
        sink.subscription.cancel()
    assert [item.element for item in dropped] == [7]


def test_an_error_of_a_function_does_not_come_before_the_demand_for_its_element() -> None:
    sink = Sink(demand=1)
    Flow.just(1).end_with(0).map(lambda n: 1 // n).subscribe(sink)
    assert (sink.elements, sink.end) == ([1], None)
    sink.subscription.request(1)
    assert isinstance(sink.error, ZeroDivisionError)


@pytest.mark.parametrize("drop", ["error", "oldest", "newest"])
def test_a_buffer_drops_nothing_that_is_demanded(drop: Any) -> None:
    """The elements of a list change hands in one go; not where no more than two of them may wait."""
    sink = Sink()
    with hooks.captured() as dropped:
        Flow.from_publisher(Flow.range(100)).on_overflow_buffer(2, drop=drop).subscribe(sink)
    assert sink.elements == list(range(100))
    assert not dropped


@pytest.mark.parametrize("concurrency", [1, 2, 3, 16])
@pytest.mark.parametrize("each", [1, 2, 5])
def test_an_error_of_the_function_comes_after_what_is_at_hand(concurrency: int, each: int) -> None:
    def some(n: int) -> Flow[int]:
        if n == 5:
            raise OSError("gone")
        return Flow.just(*[n] * each)

    sink = Sink()
    Flow.range(9).flat_map_sequential(some, concurrency=concurrency).subscribe(sink)
    assert sink.elements == [n for n in range(5) for _ in range(each)]
    assert isinstance(sink.error, OSError)


@pytest.mark.parametrize("concurrency", [1, 2, 3, 16])
def test_flat_map_begins_with_an_element_when_those_before_it_have_had_a_turn(concurrency: int) -> None:
    def one(n: int) -> Flow[int]:
        if n == 5:
            raise OSError("gone")
        return Flow.just(n)

    sink = Sink()
    Flow.range(9).flat_map(one, concurrency=concurrency).subscribe(sink)
    assert sink.elements == [0, 1, 2, 3, 4]
    assert isinstance(sink.error, OSError)


@pytest.mark.parametrize(
    ("operator", "together"),
    [(Flow.zip, [(0, 0), (1, 1), (2, 2)]), (Flow.merge_comparing, [0, 0, 1, 1, 2])],
    ids=["zip", "merge_comparing"],
)
def test_an_error_of_create_waits_for_partners_that_are_at_hand_and_for_no_others(
    operator: Callable[..., Flow[Any]], together: list[Any]
) -> None:
    def push(emitter: Any) -> None:
        for n in range(3):
            emitter.emit(n)
        emitter.error(OSError("gone"))

    for other, elements in ((Flow.just(0, 1, 2, 3), together), (Flow.never(), [])):
        sink = Sink()
        operator(Flow.create(push), other).subscribe(sink)
        assert sink.elements == elements
        assert isinstance(sink.error, OSError)


def failing(n: int) -> Iterator[int]:
    yield from range(n)
    raise OSError("gone")


@pytest.mark.parametrize(
    "split",
    [
        lambda f: f.window(1).concat_map(lambda item: item.to_list()),
        lambda f: f.flat_map_sequential(lambda n: Flow.just([n]), concurrency=2),
        lambda f: f.concat_map(lambda n: Flow.just([n])),
    ],
    ids=["window", "flat_map_sequential", "concat_map"],
)
def test_an_error_of_a_source_that_is_pulled_comes_after_what_is_at_hand_demand_by_demand(
    split: Callable[[Flow[Any]], Flow[Any]],
) -> None:
    sink = Sink(demand=1)
    split(Flow.from_supplier(lambda: failing(3))).subscribe(sink)
    for _ in range(3):
        sink.subscription.request(1)
    assert sink.elements == [[0], [1], [2]]
    assert isinstance(sink.error, OSError)


def test_an_error_of_a_source_that_is_pulled_waits_for_the_elements_of_a_publisher_that_is_pulled() -> None:
    sink = Sink(demand=1, then=lambda sink, _: sink.subscription.request(1))
    Flow.from_supplier(lambda: failing(1)).flat_map_sequential(
        lambda n: Flow.just(1, 2, 3, 4), concurrency=2
    ).subscribe(sink)
    assert sink.elements == [1, 2, 3, 4]
    assert isinstance(sink.error, OSError)


def test_an_error_from_elsewhere_waits_for_no_demand() -> None:
    source, sink = PublishProcessor[int](), Sink(demand=1)
    source.flat_map_sequential(lambda n: Flow.just(1, 2, 3, 4), concurrency=2).subscribe(sink)
    source.emit(0)
    source.on_error(OSError("gone"))
    assert sink.elements == [1]
    assert isinstance(sink.error, OSError)


def test_one_that_had_its_silence_waits_for_demand_beside_one_that_has_not() -> None:
    clock, source, sink = VirtualTimeExecutor(), PublishProcessor[int](), Sink(demand=0)
    source.debounce(3, clock=clock).subscribe(sink)
    source.emit(1)
    clock.advance(3)  # 1 is due
    source.emit(2)
    sink.subscription.request(2)
    assert sink.elements == [1]
    clock.advance(3)
    assert sink.elements == [1, 2]


@pytest.mark.parametrize("ends", [True, False])
def test_one_that_is_due_makes_room_for_the_next_one_and_for_the_last(ends: bool) -> None:
    clock, source, sink = VirtualTimeExecutor(), PublishProcessor[int](), Sink(demand=0)
    dropped: list[object] = []
    before = hooks.set_handler(lambda item: dropped.append(item.element))
    try:
        source.debounce(3, clock=clock).subscribe(sink)
        source.emit(1)
        clock.advance(3)
        source.emit(2)
        source.on_complete() if ends else clock.advance(3)
        sink.subscription.request(2)
        assert sink.elements == [2]
        sink.subscription.cancel()
    finally:
        hooks.set_handler(before)
    assert dropped == [1]


@pytest.mark.parametrize("waiting", [1, 2])
def test_what_is_due_and_what_is_not_go_to_the_hook_at_a_cancel(waiting: int) -> None:
    clock, source, sink = VirtualTimeExecutor(), PublishProcessor[int](), Sink(demand=0)
    dropped: list[object] = []
    before = hooks.set_handler(lambda item: dropped.append(item.element))
    try:
        source.debounce(3, clock=clock).subscribe(sink)
        for element in range(waiting):
            source.emit(element)
            clock.advance(3 if element == 0 else 0)
        sink.subscription.cancel()
    finally:
        hooks.set_handler(before)
    assert dropped == [*range(waiting)]


class Leaves(Sink):
    """Cancels in `on_subscribe`."""

    def on_subscribe(self, subscription: Subscription, /) -> None:
        super().on_subscribe(subscription)
        subscription.cancel()


class Waits(Executor):
    """Runs what was submitted when it is let."""

    def __init__(self) -> None:
        self.tasks: list[Callable[[], object]] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.tasks.append(lambda: fn(*args, **kwargs))
        return Future()

    def run(self) -> None:
        while self.tasks:
            self.tasks.pop(0)()


BEGUN: dict[str, Callable[[Callable[[], Any]], Flow[Any]]] = {
    "create": lambda begun: Flow.create(lambda emitter: begun()),
    "defer": lambda begun: Flow.defer(lambda: begun() or Flow.never()),
    "using": lambda begun: Flow.using(lambda: begun() or nullcontext(), lambda _: Flow.never()),
    "share": lambda begun: Flow.create(lambda emitter: begun()).share(),
    "from_publisher": lambda begun: Flow.from_publisher(Flow.create(lambda emitter: begun())),
}


@pytest.mark.parametrize("source", BEGUN)
def test_nothing_is_begun_behind_a_boundary_for_one_who_cancels_in_on_subscribe(source: str) -> None:
    """The drain closes on a thread of the pool, which comes later than the call of the upstream's `subscribe` would."""
    begun: list[str] = []
    pool = Waits()
    BEGUN[source](lambda: begun.append(source)).publish_on(pool).subscribe(Leaves())
    pool.run()
    assert begun == []


@pytest.mark.parametrize("end", ["complete", "fail", "cancel"])
def test_what_no_combination_has_had_goes_to_the_hook(end: str) -> None:
    first: TestPublisher[int] = TestPublisher()
    second: TestPublisher[int] = TestPublisher()
    discarded: list[int] = []
    flow = Flow.combine_latest(first, second).do_on_discard(discarded.append)
    flow.subscribe(sink := Sink())
    first.emit(1, 2)
    assert discarded == [1]
    if end == "cancel":
        sink.subscription.cancel()
    else:
        second.complete() if end == "complete" else second.fail(OSError())
    assert discarded == [1, 2]


def test_what_a_combination_has_had_is_replaced_silently() -> None:
    first: TestPublisher[int] = TestPublisher()
    second: TestPublisher[int] = TestPublisher()
    discarded: list[int] = []
    Flow.combine_latest(first, second).do_on_discard(discarded.append).subscribe(sink := Sink())
    first.emit(1)
    second.emit(5, 6)
    first.emit(2, 3)
    sink.subscription.cancel()
    assert (sink.elements, discarded) == ([(1, 5), (1, 6), (2, 6), (3, 6)], [])


@pytest.mark.parametrize("end", ["complete", "fail", "cancel"])
def test_the_latest_that_no_element_came_for_goes_to_the_hook(end: str) -> None:
    source: TestPublisher[int] = TestPublisher()
    other: TestPublisher[int] = TestPublisher()
    discarded: list[int] = []
    source_flow = Flow.from_publisher(source)
    source_flow.with_latest_from(other).do_on_discard(discarded.append).subscribe(sink := Sink())
    other.emit(1, 2)
    assert discarded == [1]
    source.emit(7, 8)
    other.emit(3, 4)
    assert discarded == [1, 3]
    if end == "cancel":
        sink.subscription.cancel()
    else:
        source.complete() if end == "complete" else source.fail(OSError())
    assert (sink.elements, discarded) == ([(7, 2), (8, 2)], [1, 3, 4])
