"""An error that waits behind elements when its stream ends: it is delivered or goes to the hook, once, as elements do.

All on one thread: tasks and timers run when the test moves the clock. So the source has failed, and its elements and
its error wait, before the subscriber takes the first and cancels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sinks import Sink

from operators.catalogue import CASES, FAILED, Case, Place
from reactive_runtime import MAX_DEMAND, Flow
from reactive_runtime.errors import RejectedError
from reactive_runtime.executors import TrampolineExecutor, VirtualTimeExecutor
from reactive_runtime.hooks import Dropped
from reactive_runtime.hot import PublishProcessor, ReplayProcessor, SubmissionPublisher, UnicastProcessor

KEPT = {"replay", "cache"}
"""What is left is there for those who come later."""

USED_UP = {"switch_map"}
"""Elements are arguments of a function, whose publishers are replaced."""

ON_A_LOOP = {case.name for case in CASES if "(coroutines)" in case.name}
"""Needs a thread of its own. `map_parallel` and `flat_map` keep their errors as these do."""


class Source:
    """Gives 0, 1, 2 and fails; notes how often it came to what."""

    def __init__(self) -> None:
        self.given: list[int] = []
        self.raised = 0

    def __call__(self) -> Iterator[int]:
        for n in range(3):
            self.given.append(n)
            yield n
        self.raised += 1
        raise FAILED


ORIGINS: dict[str, Callable[[Callable[[], Any], VirtualTimeExecutor], Flow[Any]]] = {
    "pulled": lambda source, clock: Flow.from_supplier(source),
    "not ours": lambda source, clock: Flow.from_publisher(Flow.from_supplier(source)),
    "with a thread": lambda source, clock: Flow.from_supplier(source).subscribe_on(clock),
    "behind a boundary": lambda source, clock: Flow.from_supplier(source).publish_on(clock),
}


@pytest.fixture
def clock() -> VirtualTimeExecutor:
    return VirtualTimeExecutor()


def pass_time(clock: VirtualTimeExecutor) -> None:
    """All that is due, and what follows from it."""
    for _ in range(40):
        clock.advance(0.25)


def take_one(flow: Any, clock: VirtualTimeExecutor, *, inside: bool) -> Sink:
    """Let all of it come that comes without demand, take one element, and cancel, `inside` its signal or after it."""
    sink = Sink(0, (lambda sink, element: sink.subscription.cancel()) if inside else None)
    flow.subscribe(sink)
    pass_time(clock)
    sink.subscription.request(1)
    pass_time(clock)
    sink.subscription.cancel()
    pass_time(clock)
    return sink


def errors_of(dropped: list[Dropped]) -> list[BaseException]:
    return [drop.error for drop in dropped if drop.error is not None]


def times(error: BaseException, sink: Sink, dropped: list[Dropped]) -> int:
    """How often the error was delivered, by itself or in a group, or dropped."""
    end = sink.end
    delivered = [] if end is None or end[0] != "on_error" else getattr(end[1], "exceptions", [end[1]])
    return (error in delivered) + errors_of(dropped).count(error)


@pytest.mark.parametrize("inside", [True, False], ids=["inside on_next", "after it"])
@pytest.mark.parametrize("origin", ORIGINS)
@pytest.mark.parametrize("case", [item for item in CASES if item.name not in ON_A_LOOP], ids=lambda case: case.name)
def test_elements_and_the_error_behind_them_are_delivered_or_dropped_once(
    case: Case, origin: str, inside: bool, clock: VirtualTimeExecutor, dropped: list[Dropped]
) -> None:
    source = Source()
    flow = case.apply(ORIGINS[origin](source, clock), Place(clock, clock))
    sink = take_one(flow, clock, inside=inside)
    assert [drop for drop in dropped if drop.error not in (None, FAILED)] == []
    if case.name in KEPT and source.raised:
        assert dropped == []
        late = Sink(MAX_DEMAND)
        flow.subscribe(late)
        assert late.elements == [0, 1, 2]
        assert late.error is FAILED
        return
    assert times(FAILED, sink, dropped) == source.raised
    if case.expected == list(range(10)) and case.name not in USED_UP:
        there = [getattr(drop.element, "element", drop.element) for drop in dropped if drop.element is not None]
        assert Counter(sink.elements + there) == Counter(source.given)


# -- one by one --------------------------------------------------------------------------------------------------------


class Failures:
    """Makes flows of 0, 1, 2 that fail, each run with an error of its own."""

    def __init__(self, clock: VirtualTimeExecutor, make: Callable[[], BaseException] = lambda: OSError("one of many")):
        self.clock = clock
        self.make = make
        self.raised: list[BaseException] = []

    def three(self) -> Flow[int]:
        """On the thread that asks."""
        return Flow.from_supplier(self._elements)

    def behind(self) -> Flow[int]:
        """Behind a boundary."""
        return self.three().publish_on(self.clock)

    def _elements(self) -> Iterator[int]:
        yield from range(3)
        self.raised.append(self.make())
        raise self.raised[-1]


FLOWS: dict[str, Callable[[Failures], Flow[Any]]] = {
    "merge": lambda item: Flow.merge(item.behind(), item.behind()),
    "merge, errors at the end": lambda item: Flow.merge(item.behind(), item.behind(), delay_error=True),
    "zip": lambda item: Flow.zip(item.behind(), Flow.range(99)),
    "zip, of which one ends": lambda item: Flow.zip(item.behind(), Flow.just(1)),
    "zip, of which both fail": lambda item: Flow.zip(item.behind(), item.behind().concat_with(item.three())),
    "merge_comparing": lambda item: Flow.merge_comparing(item.behind(), item.behind()),
    "combine_latest": lambda item: Flow.combine_latest(item.behind(), Flow.just(1)),
    "with_latest_from": lambda item: item.behind().with_latest_from(Flow.just(1)),
    "race": lambda item: Flow.race(item.behind(), item.behind()),
    "take_until": lambda item: Flow.never().merge_with(item.behind()).take_until(Flow.timer(15, clock=item.clock)),
    "sample": lambda item: item.behind().sample(Flow.timer(1, clock=item.clock)),
    "flat_map": lambda item: Flow.just(1).flat_map(lambda n: item.behind()),
    "flat_map, of its source": lambda item: item.behind().flat_map(lambda n: Flow.range(9), concurrency=1),
    "flat_map_sequential": lambda item: Flow.range(2).flat_map_sequential(lambda n: item.behind()),
    "flat_map_sequential, of its source": lambda item: item.three().flat_map_sequential(lambda n: Flow.range(9)),
    "concat_map, of its source": lambda item: item.behind().concat_map(
        lambda n: Flow.just(n).concat_with(Flow.never())
    ),
    "switch_map": lambda item: item.behind().switch_map(lambda n: item.behind()),
    "two boundaries": lambda item: item.behind().map(int).publish_on(item.clock),
    "a task": lambda item: Flow.merge(
        item.three().take(1).concat_with(item.three()).subscribe_on(item.clock), Flow.just(1)
    ),
    "take": lambda item: item.behind().limit_rate(9).take(1),
    "groups": lambda item: (
        item.behind().group_by(lambda n: n % 2).flat_map(lambda group: group[1].publish_on(item.clock))
    ),
    "groups that are cancelled": lambda item: (
        item.behind().group_by(lambda n: n % 2).flat_map(lambda group: group[1].take(1))
    ),
    "groups on a pool": lambda item: (
        item.behind().group_by(lambda n: n % 2).publish_on(item.clock).concat_map(lambda g: g[1])
    ),
    "shared by two": lambda item: item.behind().share().transform(lambda f: f.zip_with(f)),
    "shared by two boundaries": lambda item: (
        item.behind().share().transform(lambda f: Flow.zip(f.publish_on(item.clock), f.map(int).publish_on(item.clock)))
    ),
    "published to two boundaries": lambda item: (
        item.behind()
        .publish(capacity=2)
        .ref_count(2)
        .transform(
            lambda f: Flow.merge(f.publish_on(item.clock), f.limit_rate(1).publish_on(item.clock), delay_error=True)
        )
    ),
}


@pytest.mark.parametrize("takes", [1, 2, MAX_DEMAND])
@pytest.mark.parametrize("name", FLOWS)
def test_each_error_that_was_raised_is_accounted_for_once(
    name: str, takes: int, clock: VirtualTimeExecutor, dropped: list[Dropped]
) -> None:
    failures = Failures(clock)
    sink = Sink(0)
    FLOWS[name](failures).subscribe(sink)
    pass_time(clock)
    sink.subscription.request(takes)
    pass_time(clock)
    sink.subscription.cancel()
    pass_time(clock)
    assert [times(error, sink, dropped) for error in failures.raised] == [1] * len(failures.raised)
    assert len(errors_of(dropped)) <= len(failures.raised)


def test_what_closing_a_resource_raises_is_not_lost_behind_the_elements(
    clock: VirtualTimeExecutor, dropped: list[Dropped]
) -> None:
    @contextmanager
    def resource() -> Iterator[None]:
        yield
        raise FAILED

    sink = Sink()
    Flow.using(resource, lambda _: Flow.just(1, 2)).publish_on(clock).take(2).subscribe(sink)
    pass_time(clock)
    assert sink.elements == [1, 2]
    assert sink.end == ("on_complete",)
    assert errors_of(dropped) == [FAILED]


def test_a_loop_that_is_left_drops_the_error_behind_the_elements(dropped: list[Dropped]) -> None:
    def begin(emitter: Any) -> None:
        emitter.emit(1)
        emitter.error(FAILED)

    for _ in Flow.create(begin).publish_on(TrampolineExecutor()):
        break
    assert errors_of(dropped) == [FAILED]


def test_an_error_that_one_of_many_readers_has_dealt_with_is_not_dropped(
    clock: VirtualTimeExecutor, dropped: list[Dropped]
) -> None:
    shared = Flow.from_supplier(Source()).publish_on(clock).share()
    dealt = shared.ignore_elements().on_error_resume(lambda error: Flow.never())
    sink = Sink(2)
    Flow.merge(shared.publish_on(clock), dealt).subscribe(sink)
    pass_time(clock)
    sink.subscription.cancel()
    pass_time(clock)
    assert sink.elements == [0, 1]
    assert errors_of(dropped) == []


def test_the_last_reader_to_leave_a_hot_source_drops_its_error(dropped: list[Dropped]) -> None:
    source = PublishProcessor[int]()
    sinks = [Sink(0), Sink(0)]
    for sink in sinks:
        source.subscribe(sink)
    source.emit(1)
    source.on_error(FAILED)
    sinks[0].subscription.cancel()
    assert errors_of(dropped) == []
    sinks[1].subscription.cancel()
    assert errors_of(dropped) == [FAILED]


def test_a_reader_of_a_hot_source_that_has_had_the_error_answers_for_it(dropped: list[Dropped]) -> None:
    source = PublishProcessor[int]()
    slow, quick = Sink(0), Sink()
    source.subscribe(slow)
    source.subscribe(quick)
    source.emit(1)
    source.on_error(FAILED)
    slow.subscription.cancel()
    assert quick.error is FAILED
    assert errors_of(dropped) == []


@pytest.mark.parametrize("join", [Flow.zip, Flow.merge_comparing])
@pytest.mark.parametrize("make", [PublishProcessor, lambda: ReplayProcessor(9), UnicastProcessor])
def test_a_failed_hot_source_does_not_wait_for_a_partner(
    make: Callable[[], Any], join: Callable[..., Flow[Any]], dropped: list[Dropped]
) -> None:
    hot, sink = make(), Sink()
    join(hot, Flow.never()).subscribe(sink)
    hot.emit(1)
    hot.on_error(FAILED)
    assert (sink.elements, sink.end) == ([], ("on_error", FAILED))
    assert [item.element for item in dropped] == [1]


def test_the_error_of_a_submission_publisher_is_dropped_by_the_last_of_its_subscribers(
    clock: VirtualTimeExecutor, dropped: list[Dropped]
) -> None:
    publisher = SubmissionPublisher[int](clock)
    sinks = [Sink(0), Sink(0)]
    for sink in sinks:
        publisher.subscribe(sink)
    publisher.submit(1)
    publisher.close_exceptionally(FAILED)
    for sink in sinks:
        assert errors_of(dropped) == []
        sink.subscription.cancel()
        pass_time(clock)
    assert errors_of(dropped) == [FAILED]


def test_the_error_of_create_is_dropped_behind_its_elements(dropped: list[Dropped]) -> None:
    def begin(emitter: Any) -> None:
        emitter.emit(1)
        emitter.error(FAILED)

    sink = Sink(0)
    Flow.create(begin).subscribe(sink)
    sink.subscription.cancel()
    assert errors_of(dropped) == [FAILED]


def test_a_published_source_that_fails_without_a_subscriber_tells_the_hook(dropped: list[Dropped]) -> None:
    """Those who come later begin anew, and never hear of it."""
    Flow.error(FAILED).publish().connect()
    assert errors_of(dropped) == [FAILED]


def test_what_a_failed_source_keeps_for_late_subscribers_is_not_dropped(dropped: list[Dropped]) -> None:
    source = PublishProcessor[int]()
    source.on_error(FAILED)
    gone, late = Sink(0, None), Sink(0)
    source.subscribe(gone)
    source.subscribe(late)
    assert gone.error is late.error is FAILED
    assert errors_of(dropped) == []


def test_where_the_pool_of_both_sides_refuses_the_subscriber_hears_of_it_once(
    clock: VirtualTimeExecutor, dropped: list[Dropped]
) -> None:
    sink = Sink(1)
    clock.shutdown()
    Flow.range(9).subscribe_on(clock).map(int).publish_on(clock).subscribe(sink)
    assert isinstance(sink.error, RejectedError)
    assert errors_of(dropped) == []


@pytest.mark.parametrize("refused_first", [True, False])
def test_a_refusal_is_news_only_to_a_stream_that_goes_on(
    refused_first: bool, clock: VirtualTimeExecutor, dropped: list[Dropped]
) -> None:
    """It means that work will not be done, which one that is cancelled has no use for."""
    sink, other = Sink(0), VirtualTimeExecutor()
    Flow.range(9).subscribe_on(other).publish_on(clock).subscribe(sink)
    if not refused_first:
        sink.subscription.cancel()
    other.shutdown(cancel_futures=True)
    if refused_first:
        sink.subscription.cancel()
    pass_time(clock)
    assert sink.end is None
    assert [type(error) for error in errors_of(dropped)] == [RejectedError] * refused_first


def test_a_refusal_that_meets_the_cancel_is_no_news(dropped: list[Dropped]) -> None:
    sink = Sink()

    def refused() -> Iterator[int]:
        yield 1
        sink.subscription.cancel()
        raise RejectedError("the pool is shut down")

    Flow.from_supplier(refused).subscribe(sink)
    assert sink.elements == [1]
    assert errors_of(dropped) == []


def test_a_refusal_downstream_drops_the_error_that_waits_once(
    clock: VirtualTimeExecutor, dropped: list[Dropped]
) -> None:
    sink, other = Sink(0), VirtualTimeExecutor()
    Flow.from_supplier(Source()).subscribe_on(other).publish_on(clock).subscribe(sink)
    pass_time(clock)
    pass_time(other)
    pass_time(clock)
    clock.shutdown()
    sink.subscription.request(1)
    assert isinstance(sink.error, RejectedError)
    assert errors_of(dropped) == [FAILED]


def leave(n: int) -> int:
    if n == 2:
        raise SystemExit(3)
    return n


@pytest.mark.parametrize("way", ["a boundary", "a hot source"])
def test_an_exit_that_has_gone_up_to_the_caller_is_not_dropped_as_well(way: str, dropped: list[Dropped]) -> None:
    flow = Flow.range(9).map(leave)
    flow = Flow.from_publisher(flow).limit_rate(9) if way == "a boundary" else flow.share(capacity=9)
    sink = Sink(0)
    with pytest.raises(SystemExit):  # noqa: PT012  # whichever of the two asks the source
        flow.subscribe(sink)
        sink.subscription.request(1)
    sink.subscription.cancel()
    assert errors_of(dropped) == []


def test_an_exit_on_a_pool_is_dropped_behind_the_elements(clock: VirtualTimeExecutor, dropped: list[Dropped]) -> None:
    sink = Sink(0)
    Flow.range(9).map(leave).subscribe_on(clock).publish_on(clock).subscribe(sink)
    pass_time(clock)
    sink.subscription.cancel()
    pass_time(clock)
    (error,) = errors_of(dropped)
    assert isinstance(error.__cause__, SystemExit)
