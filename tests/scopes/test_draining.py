"""Draining: no more demand, the elements in flight go on to the subscriber, and a deadline ends what is late."""

# ruff: noqa: PT012  # leaving the block of a scope, or of `no_blocking`, raises

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from sinks import PATIENCE, Numbers, Sink, wait_until
from small_publisher import Publisher

from reactive_runtime import Flow
from reactive_runtime.executors import VirtualTimeExecutor
from reactive_runtime.hot import EmitResult, PublishProcessor, SubmissionPublisher, UnicastProcessor
from reactive_runtime.scopes import scope


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4, thread_name_prefix="io") as made:
        yield made


class Held:
    """A function that holds each call until `go_on`, and notes the calls that have begun and ended."""

    def __init__(self) -> None:
        self.began = threading.Semaphore(0)
        self.go_on = threading.Event()
        self.given: list[Any] = []

    def __call__(self, element: Any) -> Any:
        self.given.append(element)
        self.began.release()
        assert self.go_on.wait(PATIENCE)
        return element

    def held(self, element: Any) -> Any:
        return self(element)

    def wait(self, n: int = 1) -> None:
        for _ in range(n):
            assert self.began.acquire(timeout=PATIENCE)


Build = Callable[[Flow[Any], ThreadPoolExecutor, Held], Flow[Any]]

WAYS: dict[str, Build] = {
    "a boundary": lambda source, pool, held: source.subscribe_on(pool).publish_on(pool, prefetch=4).map(held),
    "two boundaries": lambda source, pool, held: source.publish_on(pool).map(str).publish_on(pool).map(held),
    "map_parallel": lambda source, pool, held: source.map_parallel(held, pool, concurrency=2),
    "flat_map": lambda source, pool, held: source.flat_map(
        lambda n: Flow.just(n, n).subscribe_on(pool).map(held), concurrency=2
    ),
    "group_by": lambda source, pool, held: (
        source.subscribe_on(pool)
        .group_by(lambda n: n % 2, prefetch=4)
        .flat_map(lambda group: group[1].publish_on(pool).map(held))
    ),
    "rails": lambda source, pool, held: source.parallel(2, prefetch=4).run_on(pool).map(held).sequential(),
    "batches": lambda source, pool, held: source.subscribe_on(pool).buffer(3).map(held).flat_map(Flow.from_iterable),
    "retry": lambda source, pool, held: source.subscribe_on(pool).retry(3).map(held),
    "do_on_request": lambda source, pool, held: source.subscribe_on(pool).map(held).do_on_request(int),
    "using": lambda source, pool, held: Flow.using(threading.Lock, lambda _: source.subscribe_on(pool).map(held)),
    "defer": lambda source, pool, held: Flow.defer(lambda: source.subscribe_on(pool).map(held)),
    "from_publisher": lambda source, pool, held: Flow.from_publisher(source.subscribe_on(pool).map(held)).map(str),
    "merge": lambda source, pool, held: Flow.merge(source.subscribe_on(pool), Flow.never()).publish_on(pool).map(held),
    "a long chain": lambda source, pool, held: _chain(source.subscribe_on(pool).map(held), 300),
}


def _chain(flow: Flow[Any], n: int) -> Flow[Any]:
    for _ in range(n):
        flow = flow.filter(lambda _: True)
    return flow


@pytest.mark.parametrize("way", WAYS)
def test_elements_that_have_left_the_source_come_to_the_end(way: str, pool: ThreadPoolExecutor) -> None:
    numbers, held, elements = Numbers(), Held(), list[Any]()
    flow = WAYS[way](Flow.from_iterable(numbers), pool, held)
    with scope() as s:
        s.start(flow, elements.append)
        held.wait()
        drained = s.drain(within=PATIENCE)
        assert not drained.done()
        held.go_on.set()
        drained.result(PATIENCE)
    given = [int(n) for item in held.given for n in (item if isinstance(item, list) else [item])]
    came = [int(element) for element in elements]
    assert sorted(came) == sorted(given)
    assert len(set(came)) == numbers.pulled, "an element that has left the source was lost"
    assert numbers.closed == 1


HOT: dict[str, Callable[[ThreadPoolExecutor], Any]] = {
    "PublishProcessor": lambda pool: PublishProcessor(capacity=8),
    "UnicastProcessor": lambda pool: UnicastProcessor(capacity=8),
    "SubmissionPublisher": lambda pool: SubmissionPublisher(pool, max_buffer=8),
}


@pytest.mark.parametrize("boundary", [False, True], ids=["here", "publish_on"])
@pytest.mark.parametrize("kind", HOT)
def test_a_hot_source_gives_what_waits_for_the_flow(kind: str, boundary: bool, pool: ThreadPoolExecutor) -> None:
    hot, held, elements, taken = HOT[kind](pool), Held(), list[int](), list[int]()
    emit = hot.offer if kind == "SubmissionPublisher" else hot.emit
    flow = hot.publish_on(pool, prefetch=2) if boundary else hot
    with scope() as s:
        s.start(flow.map_parallel(held, pool, concurrency=1), elements.append)
        for n in range(30):
            result = emit(n)
            if result is EmitResult.OK or (isinstance(result, int) and result >= 0):
                taken.append(n)
        held.wait()
        assert len(taken) >= 8
        s.drain(within=PATIENCE)
        after = emit(99)
        assert after is not EmitResult.OK
        held.go_on.set()
    assert elements == taken


def test_another_subscriber_of_a_hot_source_goes_on(pool: ThreadPoolExecutor) -> None:
    hot: PublishProcessor[int] = PublishProcessor(capacity=4)
    outside, elements = Sink(), list[int]()
    hot.subscribe(outside)
    with scope() as s:
        s.start(hot, elements.append)
        hot.emit(0)
        s.drain(within=PATIENCE)
        assert hot.emit(1) is EmitResult.OK
    assert elements == [0]
    assert outside.elements == [0, 1]
    assert [hot.emit(n) for n in range(2, 12)] == [EmitResult.OK] * 10, "the reader that has left holds it up"


def test_a_drained_reader_leaves_what_comes_later(pool: ThreadPoolExecutor) -> None:
    hot: PublishProcessor[int] = PublishProcessor(capacity=4)
    sink, other = Sink(demand=0), Sink()
    with scope() as s:
        s.start(hot, sink)
        hot.subscribe(other)
        hot.emit(0)
        hot.emit(1)
        drained = s.drain(within=PATIENCE)
        hot.emit(2)
        assert not drained.done()
        sink.subscription.request(1)
        assert sink.elements == [0]
        sink.subscription.request(9)
    assert sink.elements == [0, 1]
    assert sink.end == ("on_complete",)
    assert other.elements == [0, 1, 2]
    assert [hot.emit(n) for n in range(3, 13)] == [EmitResult.OK] * 10, "the reader that has left holds it up"


def test_a_drained_reader_gives_no_room_that_another_one_needs() -> None:
    hot: PublishProcessor[int] = PublishProcessor(capacity=2)
    sink, slow = Sink(demand=0), Sink(demand=0)
    with scope() as s:
        s.start(hot, sink)
        hot.subscribe(slow)
        assert [hot.emit(0), hot.emit(1)] == [EmitResult.OK] * 2
        s.drain(within=PATIENCE)
        sink.subscription.request(9)
    assert sink.elements == [0, 1]
    assert hot.emit(2) is EmitResult.OVERFLOW
    slow.subscription.cancel()


def test_another_librarys_publisher_is_cancelled(pool: ThreadPoolExecutor) -> None:
    held, elements = Held(), list[int]()
    with scope() as s:
        running = s.start(Flow.from_publisher(Publisher(10**9)).publish_on(pool, prefetch=4).map(held), elements.append)
        held.wait()
        s.drain(within=PATIENCE)
        held.go_on.set()
    assert elements == list(range(len(elements)))
    assert running.future.result(0) == held.given[-1] == elements[-1]


def test_a_source_that_repeats_begins_no_more(pool: ThreadPoolExecutor) -> None:
    held, elements = Held(), list[int]()
    with scope() as s:
        s.start(Flow.from_callable(lambda: 1).repeat().subscribe_on(pool).map(held), elements.append)
        held.wait()
        s.drain(within=PATIENCE)
        held.go_on.set()
    assert elements == held.given


AGAIN: dict[str, Callable[[Flow[int], VirtualTimeExecutor], Flow[int]]] = {
    "retry": lambda flow, _: flow.retry(3),
    "retry_when": lambda flow, _: flow.retry_when(lambda error, attempt: Flow.just(attempt)),
    "retry_backoff": lambda flow, clock: flow.retry_backoff(3, first=1, clock=clock),
    "on_error_resume": lambda flow, _: flow.on_error_resume(lambda error: Flow.just(7)),
}


@pytest.mark.parametrize("way", AGAIN)
def test_an_error_that_meets_a_drain_is_passed_on(way: str) -> None:
    """The source is stopped, so another attempt would have no element: the error is all that is left of one."""
    clock, sink = VirtualTimeExecutor(), Sink()

    def fails(n: int) -> int:
        s.drain(within=PATIENCE)
        raise OSError(f"element {n}")

    with pytest.raises(ExceptionGroup) as caught, scope() as s:
        s.start(AGAIN[way](Flow.range(3).map(fails), clock), sink)
    assert isinstance(sink.error, OSError)
    assert caught.group_contains(OSError, match="element 0")


@pytest.mark.parametrize("way", ["retry_when", "retry_backoff"])
def test_a_pause_before_an_attempt_that_meets_a_drain_fails(way: str) -> None:
    clock, source, sink = VirtualTimeExecutor(), PublishProcessor[int](), Sink()

    def waits(error: Exception, attempt: int) -> Flow[int]:
        return Flow.just(attempt).delay(1, clock=clock)

    def fails(n: int) -> int:
        raise OSError(f"element {n}")

    failing = source.map(fails)
    flow = failing.retry_when(waits) if way == "retry_when" else failing.retry_backoff(3, first=1, clock=clock)
    with pytest.raises(ExceptionGroup), scope() as s:
        s.start(flow, sink)
        source.on_next(0)
        s.drain(within=PATIENCE)
        clock.advance(10)
    assert isinstance(sink.error, OSError)


def test_drain_of_one_flow_leaves_the_others(pool: ThreadPoolExecutor) -> None:
    with scope() as s:
        one = s.start(Flow.generate(0, lambda n: (n, n + 1)).subscribe_on(pool))
        other = s.start(Flow.never())
        one.drain(within=PATIENCE).result(PATIENCE)
        assert one.future.done()
        assert not other.future.done()
        s.cancel()


def test_a_drain_goes_on_through_a_pause(pool: ThreadPoolExecutor) -> None:
    hot: UnicastProcessor[int] = UnicastProcessor(capacity=4)
    elements: list[int] = []
    with scope() as s:
        s.pause()
        s.start(hot.publish_on(pool), elements.append)
        s.start(Flow.range(3).subscribe_on(pool))
        hot.emit(7)
        s.drain(within=PATIENCE)
    assert elements == [7]


def test_a_flow_that_starts_while_it_drains_completes_empty(pool: ThreadPoolExecutor) -> None:
    with scope() as s:
        s.drain(within=PATIENCE).result(PATIENCE)
        sink = Sink()
        s.start(Flow.generate(0, lambda n: (n, n + 1)).subscribe_on(pool), sink)
        sink.wait()
    assert sink.signals[1:] == [("on_complete",)]


# -- late ------------------------------------------------------------------------------------------------------------


def test_a_flow_that_is_late_is_named_with_operator_and_line(pool: ThreadPoolExecutor) -> None:
    clock, held = VirtualTimeExecutor(timeout=PATIENCE), Held()
    others = Flow.never()
    futures: list[Future[Any]] = []
    with pytest.raises(ExceptionGroup) as raised, scope() as s:
        running = s.start(Flow.range(3).subscribe_on(pool).map(held.held))
        s.start(others)
        held.wait()
        futures += [running.future, s.drain(within=5, clock=clock)]
        clock.advance(5)
    (late,) = raised.value.exceptions
    assert isinstance(late, TimeoutError)
    text = str(late)
    assert text.startswith("Scope.drain: `range(3) map(Held.held)` had not ended in 5 s: it waited for")
    assert "map(Held.held), under way on ThreadPoolExecutor(io" in text
    assert f"the thread is in held at {__file__}:" in text
    assert [type(future.exception(0)) for future in futures] == [TimeoutError, TimeoutError]
    held.go_on.set()


def test_each_late_flow_has_its_error(pool: ThreadPoolExecutor) -> None:
    clock, held = VirtualTimeExecutor(timeout=PATIENCE), Held()
    with pytest.raises(ExceptionGroup) as raised, scope() as s:
        s.start(Flow.range(3).subscribe_on(pool).map(held))
        s.start(Flow.range(3).map_parallel(held, pool, concurrency=1))
        held.wait(2)
        s.drain(within=5, clock=clock)
        clock.advance(5)
    assert [type(error) for error in raised.value.exceptions] == [TimeoutError, TimeoutError]
    held.go_on.set()


def test_the_subscriber_of_a_late_flow_gets_the_error(pool: ThreadPoolExecutor) -> None:
    clock, sink = VirtualTimeExecutor(), Sink(demand=0)
    hot: UnicastProcessor[int] = UnicastProcessor()
    with pytest.raises(ExceptionGroup), scope() as s:
        s.start(hot, sink)
        hot.emit(1)
        s.drain(within=5, clock=clock)
        clock.advance(5)
    assert "it waited for demand" in str(sink.error)


def test_a_deadline_of_0_lets_end_what_can_end_at_once() -> None:
    elements: list[int] = []
    hot: PublishProcessor[int] = PublishProcessor()
    with scope() as s:
        s.start(hot, elements.append)
        hot.emit(1)
        s.drain(within=0, clock=VirtualTimeExecutor())
    assert elements == [1]


def test_a_deadline_of_0_ends_a_flow_that_is_at_work(pool: ThreadPoolExecutor) -> None:
    held = Held()
    with pytest.raises(ExceptionGroup, match="1 flow failed"), scope() as s:
        s.start(Flow.range(3).subscribe_on(pool).map(held))
        held.wait()
        s.drain(within=0)
    held.go_on.set()


# -- bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("within", [-1, float("nan"), float("inf")])
def test_a_deadline_below_0_is_refused(within: float) -> None:
    with scope() as s:
        running = s.start(Flow.never())
        with pytest.raises(ValueError, match=r"Scope.drain: within must be a number of seconds from 0"):
            s.drain(within)
        with pytest.raises(ValueError, match=r"Running.drain: within must be a number of seconds from 0"):
            running.drain(within)
        s.cancel()


@pytest.mark.parametrize("within", [None, "10", True])
def test_a_deadline_is_a_number(within: Any) -> None:
    with scope() as s, pytest.raises(TypeError, match=r"Scope.drain: within must be a number"):
        s.drain(within)


def test_drain_before_the_block_says_why() -> None:
    with pytest.raises(RuntimeError, match="has not been entered"):
        scope().drain(1)


def test_drain_twice_and_after_the_end_does_nothing(pool: ThreadPoolExecutor) -> None:
    with scope() as s:
        s.start(Flow.never())
        s.drain(PATIENCE).result(PATIENCE)
        s.drain(PATIENCE).result(PATIENCE)
    assert s.drain(PATIENCE).done()


@pytest.mark.parametrize("on_pool", [False, True], ids=["here", "pool"])
def test_a_drain_inside_its_own_flow_begins_and_is_not_waited_for(on_pool: bool, pool: ThreadPoolExecutor) -> None:
    refused: list[BaseException] = []
    elements: list[int] = []

    def stops(n: int) -> int:
        if n == 3:
            drained = s.drain(within=PATIENCE)
            for wait in (drained.result, drained.exception):
                with pytest.raises(RuntimeError, match="this code runs in a flow of the scope") as raised:
                    wait()
                refused.append(raised.value)
        return n

    endless = Flow.generate(0, lambda n: (n, n + 1))
    with scope() as s:
        s.start((endless.subscribe_on(pool) if on_pool else endless).map(stops), elements.append)
    assert elements == [0, 1, 2, 3]
    assert len(refused) == 2


def test_leaving_the_block_inside_its_own_flow_is_refused(pool: ThreadPoolExecutor) -> None:
    def leaves(_: int) -> None:
        with pytest.raises(RuntimeError, match="leaving its block waits for the flow"):
            s.__exit__(None, None, None)

    with scope() as s:
        s.start(Flow.range(1).subscribe_on(pool), leaves)
    wait_until(lambda: not s._members.there)
