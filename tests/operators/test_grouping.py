"""Groups and windows: one that is cancelled is opened anew by a later element, and they outlive the outer flow."""

from __future__ import annotations

import gc
import itertools
import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sinks import PATIENCE, Numbers, Sink, wait_until

from reactive_runtime import Flow, Subscriber, hooks
from reactive_runtime._core.drains.drain_context import DrainContext
from reactive_runtime._core.queues.prefetch_queue import PrefetchQueue
from reactive_runtime.errors import RejectedError
from reactive_runtime.executors import ScheduledExecutor, VirtualTimeExecutor
from reactive_runtime.hooks import Dropped
from reactive_runtime.hot import PublishProcessor
from reactive_runtime.testing import Recorder, TestPublisher, check


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4, "pool") as executor:
        yield executor


def third(n: int) -> int:
    return n % 3


# -- cancelled, and opened anew -------------------------------------------------------------------------------

SHORT: dict[str, Callable[[Flow[int]], Flow[int]]] = {
    "take(1)": lambda group: group.take(1),
    "take(2)": lambda group: group.take(2),
    "first": lambda group: group.first(),
    "map, take": lambda group: group.map(lambda n: n).take(3),
}


@pytest.mark.parametrize("demand", [1, 3, 1_000])
@pytest.mark.parametrize("fused", ["fused", "not fused", "on another thread"])
@pytest.mark.parametrize("name", SHORT)
def test_a_group_that_has_had_enough_is_opened_anew(
    name: str, fused: str, demand: int, pool: ThreadPoolExecutor, dropped: list[Dropped]
) -> None:
    source: Flow[int] = Flow.range(200)
    if fused == "not fused":
        source = Flow.from_publisher(source)
    elif fused == "on another thread":
        source = source.subscribe_on(pool)
    sink = Sink(demand, lambda item, element: item.subscription.request(1))
    source.group_by(third).flat_map(lambda item: SHORT[name](item[1])).subscribe(sink)
    assert sink.wait().end == ("on_complete",)
    gone = [item.element for item in dropped]
    assert sorted([*sink.elements, *gone]) == list(range(200))
    for key in range(3):
        of_one = [n for n in sink.elements if third(n) == key]
        assert of_one == sorted(of_one)
    if fused != "on another thread":  # there a group may hold some when it has had enough
        assert gone == []


def test_an_element_that_ends_a_group_is_the_groups_and_the_next_one_opens_it_anew() -> None:
    groups: list[list[int]] = []
    flow = Flow.range(40).group_by(third).flat_map(lambda item: item[1].take_while(lambda n: n % 4 != 0).to_list())
    flow.subscribe(groups.append)
    assert sorted(n for group in groups for n in group) == [n for n in range(40) if n % 4]


@settings(max_examples=60)
@given(
    elements=st.lists(st.integers(0, 3), max_size=40),
    takes=st.lists(st.integers(1, 4), min_size=1, max_size=5),
    concurrency=st.integers(4, 6),
    prefetch=st.integers(1, 3),
    requests=st.lists(st.integers(1, 5), min_size=1, max_size=4),
)
def test_groups_are_what_a_model_says(
    elements: list[int], takes: list[int], concurrency: int, prefetch: int, requests: list[int]
) -> None:
    """Any demand, any lengths of groups: each key's elements, in order; what a group that is left held is dropped."""
    numbered = list(enumerate(elements))
    lengths = itertools.cycle(takes)
    gone: list[Any] = []
    sink = Sink(0)
    groups = Flow.from_iterable(numbered).group_by(lambda item: item[1]).do_on_discard(gone.append)
    groups.flat_map(lambda item: item[1].take(next(lengths)), concurrency=concurrency, prefetch=prefetch).do_on_discard(
        gone.append
    ).subscribe(sink)
    for n in itertools.islice(itertools.cycle(requests), 80):
        sink.subscription.request(n)
    assert sink.end == ("on_complete",)
    assert sorted([*sink.elements, *gone]) == numbered
    for key in range(4):
        of_one = [number for number, item in sink.elements if item == key]
        assert of_one == sorted(of_one)


def test_on_threads_of_their_own_nothing_is_lost_that_was_not_dropped(
    pool: ThreadPoolExecutor, dropped: list[Dropped]
) -> None:
    for _ in range(20):
        dropped.clear()
        sink = Sink()
        groups = Flow.range(1_000).subscribe_on(pool).group_by(lambda n: n % 4)
        groups.flat_map(lambda item: item[1].publish_on(pool, prefetch=4).take(3)).subscribe(sink)
        assert sink.wait().end == ("on_complete",)
        wait_until(lambda: sorted([*sink.elements, *(item.element for item in dropped)]) == list(range(1_000)))  # noqa: B023


def test_groups_under_demand_by_demand_give_all_their_elements() -> None:
    source: TestPublisher[int] = TestPublisher()
    sink = Sink(1)
    Flow.from_publisher(source).filter(lambda n: True).group_by(third).flat_map(
        lambda item: item[1], concurrency=3, prefetch=1
    ).subscribe(sink)
    source.emit(*range(100))
    assert sink.elements == [0]
    for n in range(1, 100):
        sink.subscription.request(1)
        assert len(sink.elements) == n + 1
    assert sorted(sink.elements) == list(range(100))
    sink.subscription.cancel()


# -- the outer flow is cancelled ------------------------------------------------------------------------------


def test_a_group_that_was_taken_out_lives_on() -> None:
    source, sink = Numbers(10), Sink()
    flow: Flow[int] = Flow.from_supplier(lambda: source)
    flow.group_by(lambda n: n % 2).take(1).flat_map(lambda item: item[1]).subscribe(sink)
    assert sink.elements == [0, 2, 4, 6, 8]
    assert sink.end == ("on_complete",)
    assert source.closed == 1


def test_the_source_is_cancelled_when_the_last_group_has_gone(dropped: list[Dropped]) -> None:
    source: PublishProcessor[int] = PublishProcessor()
    cancelled: list[str] = []
    groups, outer = [Sink(), Sink()], Sink(2, lambda item, group: group[1].subscribe(groups[group[0]]))
    source.do_on_cancel(lambda: cancelled.append("source")).group_by(third).subscribe(outer)
    for n in range(5):
        source.emit(n)
    outer.subscription.cancel()
    source.emit(6)
    groups[0].subscription.cancel()
    source.emit(7)
    assert cancelled == []
    assert groups[0].elements == [0, 3, 6]
    assert groups[1].elements == [1, 4, 7]
    source.emit(9)
    groups[1].subscription.cancel()
    assert cancelled == ["source"]
    assert [item.element for item in dropped] == [2, 9], "of groups that have no subscriber"


def test_a_group_without_a_subscriber_is_discarded_with_the_outer_flow(dropped: list[Dropped]) -> None:
    given: list[Flow[int]] = []
    source: PublishProcessor[int] = PublishProcessor()
    cancelled: list[str] = []
    groups = source.do_on_cancel(lambda: cancelled.append("source")).group_by(third)
    handle = groups.subscribe(lambda item: given.append(item[1]))
    source.emit(0)
    source.emit(3)
    handle.cancel()
    assert cancelled == ["source"]
    assert [item.element for item in dropped] == [0, 3]
    late = Sink()
    given[0].subscribe(late)
    assert isinstance(late.error, RejectedError)
    assert "the outer flow was cancelled" in str(late.error)


def test_a_window_that_was_taken_out_has_all_its_elements() -> None:
    source: PublishProcessor[int] = PublishProcessor()
    cancelled: list[str] = []
    sink = Sink()
    windows = source.do_on_cancel(lambda: cancelled.append("source")).window(3)
    windows.take(1).concat_map(lambda window: window).subscribe(sink)
    for n in range(3):
        assert cancelled == []
        source.emit(n)
    assert cancelled == ["source"]
    assert sink.elements == [0, 1, 2]
    assert sink.end == ("on_complete",)


def test_an_error_of_the_source_reaches_the_groups_that_live_on() -> None:
    source: PublishProcessor[int] = PublishProcessor()
    sink = Sink()
    source.group_by(third).take(1).flat_map(lambda item: item[1]).subscribe(sink)
    source.emit(0)
    source.on_error(OSError("broken"))
    assert sink.elements == [0]
    assert isinstance(sink.error, OSError)


def test_what_is_over_is_released(pool: ThreadPoolExecutor) -> None:
    class Element:
        pass

    sink = Sink(then=lambda item, element: item.signals.clear())
    seen: list[weakref.ref[Element]] = []

    def element(n: int) -> Element:
        made = Element()
        seen.append(weakref.ref(made))
        return made

    Flow.range(50).map(element).group_by(lambda item: 0).flat_map(lambda item: item[1].take(3)).subscribe(sink)
    assert sink.end == ("on_complete",)
    gc.collect()
    assert [item for item in seen if item() is not None] == []


SOURCES: dict[str, Callable[[ThreadPoolExecutor], Flow[int]]] = {
    "windows": lambda pool: Flow.range(60).window(4).concat_map(lambda window: window),
    "groups": lambda pool: Flow.range(60).group_by(lambda n: 0).concat_map(lambda item: item[1]),
    "concat": lambda pool: Flow.from_publisher(Flow.range(30)).concat_with(Flow.from_publisher(Flow.range(30, 60))),
    "concat, with threads": lambda pool: (
        Flow.range(30).subscribe_on(pool).concat_with(Flow.range(30, 60).subscribe_on(pool))
    ),
    "retry": lambda pool: Flow.from_publisher(Flow.range(60)).retry(3),
    "map_parallel": lambda pool: Flow.range(60).map_parallel(lambda n: n, pool),
    "shared": lambda pool: Flow.range(60).share(),
    "a boundary": lambda pool: Flow.range(60).subscribe_on(pool).publish_on(pool, prefetch=4),
}


@pytest.mark.parametrize("demand", [1, 1_000])
@pytest.mark.parametrize("name", SOURCES)
def test_groups_and_windows_of_what_asynchronous_operators_give(
    name: str, demand: int, pool: ThreadPoolExecutor
) -> None:
    for flow in (
        SOURCES[name](pool).group_by(third).flat_map(lambda item: item[1]),
        SOURCES[name](pool).window(7).concat_map(lambda window: window),
        SOURCES[name](pool).window(7).flat_map(lambda window: window.take(9)),
    ):
        sink = Sink(demand, lambda item, element: item.subscription.request(1))
        flow.subscribe(sink)
        assert sink.wait().end == ("on_complete",)
        assert sorted(sink.elements) == list(range(60))


# -- a clock, threads, loops ----------------------------------------------------------------------------------


def test_one_thread_may_loop_over_the_groups_and_over_each_of_them() -> None:
    assert [(key, list(group)) for key, group in Flow.range(6).group_by(lambda n: n % 2)] == [
        (0, [0, 2, 4]),
        (1, [1, 3, 5]),
    ]
    assert [list(window) for window in Flow.range(5).window(2)] == [[0, 1], [2, 3], [4]]


def test_the_source_runs_on_the_executor_it_was_given(pool: ThreadPoolExecutor) -> None:
    threads: set[str] = set()
    source = Flow.range(300).do_on_next(lambda n: threads.add(threading.current_thread().name.partition("_")[0]))
    with ThreadPoolExecutor(2, "groups") as others:
        flow = source.group_by(third).subscribe_on(pool).flat_map(lambda item: item[1].publish_on(others, prefetch=4))
        assert flow.count().block(timeout=PATIENCE) == 300
    assert threads == {"pool"}


def test_a_full_group_is_no_error_while_the_outer_flow_has_not_seen_it(pool: ThreadPoolExecutor) -> None:
    """The source is ahead of the outer flow, which has an executor, and takes its time."""
    for _ in range(10):
        flow = Flow.range(2_000).group_by(third, prefetch=2).flat_map(lambda item: item[1]).subscribe_on(pool)
        assert flow.count().block(timeout=PATIENCE) == 2_000


def test_a_full_group_is_an_error_where_it_will_have_no_subscriber(pool: ThreadPoolExecutor) -> None:
    for source in (Flow.range(2_000), Flow.range(2_000).subscribe_on(pool)):
        sink = Sink()
        source.group_by(third, prefetch=8).flat_map(lambda item: item[1], concurrency=2).subscribe(sink)
        assert isinstance(sink.wait().error, OverflowError)
        assert "group 2" in str(sink.error)


TAKEN_ONE_BY_ONE: dict[str, Callable[[Flow[Any], ThreadPoolExecutor], Flow[Any]]] = {
    "at once": lambda groups, pool: groups,
    "limit_rate": lambda groups, pool: groups.limit_rate(1),
    "retry": lambda groups, pool: groups.retry(1),
    "merge": lambda groups, pool: groups.merge_with(Flow.never()),
    "race": lambda groups, pool: Flow.race(groups, Flow.never()),
    "take_until": lambda groups, pool: groups.take_until(Flow.never()),
    "share": lambda groups, pool: groups.share(),
    "publish_on": lambda groups, pool: groups.publish_on(pool, prefetch=1),
    "subscribe_on": lambda groups, pool: groups.subscribe_on(pool),
}


@pytest.mark.parametrize("way", TAKEN_ONE_BY_ONE)
@pytest.mark.parametrize("sort", ["pulled", "with a thread"])
def test_a_full_group_is_an_error_where_groups_are_taken_one_after_the_other(
    sort: str, way: str, pool: ThreadPoolExecutor
) -> None:
    """Groups that were given and are not asked for have no subscriber either: no hang, and no turn in vain."""
    source = Flow.range(2_000) if sort == "pulled" else Flow.range(2_000).subscribe_on(pool)
    sink = Sink()
    TAKEN_ONE_BY_ONE[way](source.group_by(third), pool).concat_map(lambda item: item[1].count()).subscribe(sink)
    assert isinstance(sink.wait().error, OverflowError)
    assert "it has no subscriber" in str(sink.error)


# -- a boundary in a group ------------------------------------------------------------------------------------------

INTO_GROUPS: dict[str, Callable[[Flow[int]], Flow[Flow[int]]]] = {
    "group_by": lambda flow: flow.group_by(third).map(lambda item: item[1]),
    "window": lambda flow: flow.window(3),
}


@pytest.mark.parametrize("split", INTO_GROUPS)
def test_what_stands_before_a_boundary_in_a_group_runs_on_its_executor(split: str) -> None:
    """It has no executor of its own: neither the thread that deals the elements out runs it, nor the one that asks."""
    clock = VirtualTimeExecutor()
    on_the_clock: list[bool] = []

    def work(n: int) -> int:
        on_the_clock.append(clock.runs_here())
        return n

    sink = Sink(3)
    INTO_GROUPS[split](Flow.range(60)).flat_map(
        lambda group: group.map(work).publish_on(clock, prefetch=2), concurrency=99
    ).subscribe(sink)
    for _ in range(10):
        sink.subscription.request(6)
        clock.advance()
    assert sink.end == ("on_complete",)
    assert sorted(sink.elements) == list(range(60))
    assert on_the_clock == [True] * 60


@pytest.mark.parametrize("split", INTO_GROUPS)
def test_who_waits_with_a_timeout_is_not_kept_by_a_group_with_a_boundary(split: str, pool: ThreadPoolExecutor) -> None:
    go = threading.Event()

    def work(n: int) -> int:
        if threading.current_thread() is threading.main_thread():
            raise AssertionError("on the thread that waits")
        assert go.wait(PATIENCE)
        return n

    groups = INTO_GROUPS[split](Flow.range(60))
    try:
        with pytest.raises(TimeoutError):
            groups.flat_map(lambda group: group.map(work).publish_on(pool)).block(timeout=0.05)
    finally:
        go.set()


# -- a full group, while what could bring it a subscriber is under way on another thread -----------------------

BETWEEN: dict[str, Callable[[Flow[Any]], Flow[Any]]] = {
    "nothing": lambda groups: groups,
    "a filter": lambda groups: groups.filter(lambda item: True),
    "two drains": lambda groups: Flow.from_publisher(groups.map(lambda item: item)).map(lambda item: item),
    "do_on_request": lambda groups: groups.do_on_request(lambda n: None),
}


class Held:
    """A call of the flow that is held on its thread until the test lets it go on."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.go = threading.Event()

    def __call__(self) -> None:
        self.entered.set()
        assert self.go.wait(PATIENCE)


class Beside:
    """Keys 0 and 1 become `inner(group)`; the subscription is made on another thread, which the test holds."""

    def __init__(self, between: str, inner: Callable[[Flow[int]], Flow[int]]) -> None:
        self.source: PublishProcessor[int] = PublishProcessor()
        other: PublishProcessor[int] = PublishProcessor()
        delivering, self.making = Held(), Held()
        self.sink = Sink(then=lambda item, element: delivering() if element == 99 else None)

        def defer(group: Flow[int]) -> Flow[int]:
            self.making()
            return inner(group)

        groups = BETWEEN[between](self.source.group_by(lambda n: n // 10, prefetch=1))
        flow = groups.flat_map(
            lambda item: other if item[0] == 9 else Flow.defer(lambda: defer(item[1])).map(lambda n: n)
        )
        flow.subscribe(self.sink)
        self.source.emit(90)
        self.thread = threading.Thread(target=other.emit, args=(99,))
        self.thread.start()
        assert delivering.entered.wait(PATIENCE)
        self.source.emit(0)  # the other thread owns the drain that will see the new group
        delivering.go.set()
        assert self.making.entered.wait(PATIENCE)

    def go_on(self) -> None:
        self.making.go.set()
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive()


@pytest.mark.parametrize("between", BETWEEN)
def test_a_full_group_is_no_error_while_its_subscription_is_being_made(between: str) -> None:
    beside = Beside(between, lambda group: group)
    for n in (1, 2, 3):
        beside.source.emit(n)
    assert (beside.sink.elements, beside.sink.end) == ([99], None)
    beside.go_on()
    assert beside.sink.elements == [99, 0, 1, 2, 3]
    assert beside.sink.end is None


@pytest.mark.parametrize("between", BETWEEN)
def test_a_full_group_is_an_error_as_soon_as_nothing_is_under_way(between: str, dropped: list[Dropped]) -> None:
    beside = Beside(between, lambda group: Flow.never())
    for n in (1, 2, 3):
        beside.source.emit(n)
    assert (beside.sink.elements, beside.sink.end) == ([99], None)
    beside.go_on()
    assert isinstance(beside.sink.error, OverflowError)
    assert "group 0" in str(beside.sink.error)
    gc.collect()  # without a GIL a group is freed later, and may be closed on another thread
    wait_until(lambda: len(dropped) >= 5)
    assert sorted(item.element for item in dropped) == [0, 1, 2, 3, 90]  # and of group 9, which has no subscriber


def accounted(sink: Sink, dropped: list[Dropped]) -> list[int]:
    """All elements that were delivered, and those that a group, left before its source knew it, gave to the hook."""
    return sorted([*sink.elements, *(item.element for item in dropped)])


def one_at_a_time(
    groups: Flow[tuple[int, Flow[int]]], pool: ThreadPoolExecutor, then: Callable[[], object]
) -> Flow[int]:
    """Room for two groups: key 9, which takes all it gets, and one that takes an element on the pool, and ends."""

    def inner(group: tuple[int, Flow[int]]) -> Flow[int]:
        key, flow = group
        return flow if key == 9 else flow.take(1).subscribe_on(pool).do_on_complete(then).map(lambda n: n)

    return groups.flat_map(inner, concurrency=2)


def test_a_full_group_is_no_error_while_the_end_of_another_is_on_its_way(
    pool: ThreadPoolExecutor, dropped: list[Dropped]
) -> None:
    """The one before has had enough; those behind it, which would then ask for another, do not know it yet."""
    source: PublishProcessor[int] = PublishProcessor()
    ending, sink = Held(), Sink()
    one_at_a_time(source.group_by(lambda n: n // 10, prefetch=1), pool, ending).subscribe(sink)
    source.emit(90)
    source.emit(0)
    assert ending.entered.wait(PATIENCE)
    for n in (1, 2, 91, 3):
        source.emit(n)
    assert sink.end is None
    ending.go.set()
    wait_until(lambda: accounted(sink, dropped) == [0, 1, 2, 3, 90, 91])
    source.on_complete()
    assert sink.wait().end == ("on_complete",)


def test_a_full_group_is_no_error_while_the_demand_for_it_is_on_its_way(
    pool: ThreadPoolExecutor, dropped: list[Dropped]
) -> None:
    source: PublishProcessor[int] = PublishProcessor()
    asking, sink = Held(), Sink()
    calls = itertools.count()
    groups = source.group_by(lambda n: n // 10, prefetch=1)
    groups = groups.do_on_request(lambda n: asking() if next(calls) == 1 else None)
    one_at_a_time(groups, pool, lambda: None).subscribe(sink)
    source.emit(90)
    source.emit(0)
    assert asking.entered.wait(PATIENCE)
    for n in (1, 2, 91, 3):
        source.emit(n)
    assert sink.end is None
    asking.go.set()
    wait_until(lambda: accounted(sink, dropped) == [0, 1, 2, 3, 90, 91])
    source.on_complete()
    assert sink.wait().end == ("on_complete",)


@pytest.mark.parametrize("demand", [1, 2, 7])
@pytest.mark.parametrize("operator", ["group_by", "window"])
def test_groups_keep_the_rules_under_any_demand(operator: str, demand: int, pool: ThreadPoolExecutor) -> None:
    recorder, sink = Recorder(), Sink(demand, lambda item, element: item.subscription.request(demand))
    source: Flow[int] = Flow.range(60).subscribe_on(pool)
    split: Any = source.group_by(third) if operator == "group_by" else source.window(4).map(lambda item: (0, item))
    recorder.wrap(split.flat_map(lambda item: recorder.wrap(item[1]), concurrency=16, prefetch=3)).subscribe(sink)
    assert sorted(sink.wait().elements) == list(range(60))
    wait_until(lambda: check(recorder.records()) == [])


def test_groups_that_are_left_after_a_time_have_had_their_subscriber() -> None:
    with ThreadPoolExecutor(2) as pool, ScheduledExecutor() as clock, hooks.captured():
        groups = Flow.range(20_000).group_by(lambda n: n % 20)
        groups.flat_map(
            lambda group: group[1].publish_on(pool).take_until(Flow.timer(0.005, clock=clock).map(str)),
            concurrency=10_000,
        ).subscribe(sink := Sink())
        assert sink.wait().signals[-1] == ("on_complete",)


class _AtOnce:
    """Gives its element inside of `request`, on a thread of its own."""

    def subscribe(self, subscriber: Any, /) -> None:
        subscriber.on_subscribe(_Once(subscriber))


class _Once:
    def __init__(self, subscriber: Any) -> None:
        self.subscriber = subscriber

    def request(self, n: int, /) -> None:
        subscriber, self.subscriber = self.subscriber, None
        if subscriber is not None:
            thread = threading.Thread(target=subscriber.on_next, args=(1,))
            thread.start()
            thread.join(PATIENCE)

    def cancel(self) -> None:
        self.subscriber = None


@pytest.mark.parametrize("through", ["as it is", "a boundary", "a boundary, and a step"])
def test_a_group_that_is_left_before_it_was_subscribed_to_has_had_its_subscriber(through: str) -> None:
    """`take_until` hears the other publisher while it lets that begin: what the group holds is dropped, no more."""
    others: Iterator[Any] = itertools.chain([_AtOnce()] * 3, itertools.repeat(Flow[int].never()))

    def until_other(pair: tuple[int, Flow[int]]) -> Flow[int]:
        group = pair[1] if through == "as it is" else pair[1].publish_on(workers)
        group = group.map(lambda n: n) if through == "a boundary, and a step" else group
        return group.take_until(Flow.from_publisher(next(others)))

    gone: list[int] = []
    with ThreadPoolExecutor(1) as workers:
        given = Flow.range(1_000).group_by(lambda n: 0, prefetch=64).flat_map(until_other).do_on_discard(gone.append)
        got = given.to_list().block(timeout=30)
    assert got
    assert len(gone) <= 3 * 257
    assert got == list(range(1_000))[-len(got) :]
    assert sorted([*gone, *got]) == list(range(1_000))


@pytest.mark.parametrize("even_closed", [False, True])
def test_a_queue_that_is_closed_before_it_connects_subscribes_and_cancels_where_it_is_to(even_closed: bool) -> None:
    """So a timer that fires between the two, on its own thread, leaves no group without a subscriber."""
    source: TestPublisher[int] = TestPublisher()
    subscribed: list[bool] = []
    drain = DrainContext()

    def subscribe(subscriber: Subscriber[int], /) -> None:
        subscribed.append(True)
        source.subscribe(subscriber)

    queue = PrefetchQueue(subscribe, None)
    queue.heard = ()
    queue.attach(drain)
    queue.even_closed = even_closed
    queue.close()
    assert drain._coming == even_closed  # so that a group knows that its subscriber is still to come
    queue.connect()
    assert subscribed == [True] * even_closed
    assert source.cancelled == even_closed
    assert drain._coming == 0


def test_the_element_that_needs_a_group_too_many_goes_to_the_hook() -> None:
    failed: list[BaseException] = []
    with hooks.captured() as drops:
        grouped = Flow.range(9).group_by(lambda n: n, groups=4)
        grouped.flat_map(lambda pair: pair[1]).subscribe(lambda n: None, on_error=failed.append)
    assert "the new key 4 needs a group, and as many are open as may be (groups=4)" in str(failed[0])
    assert [drop.element for drop in drops] == [4]
