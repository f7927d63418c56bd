"""The hangs and lost elements that reactor-core and RxJava have had, tried on every operator they could be in here.

Each test names the issues of its kind. The races between two threads are in tests/explore/test_races_of_others.py.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any

import pytest
from sinks import PATIENCE, Numbers, Sink, wait_until

from reactive_runtime import Flow
from reactive_runtime.errors import RejectedError
from reactive_runtime.executors import VirtualTimeExecutor
from reactive_runtime.hooks import Dropped
from reactive_runtime.hot import UnicastProcessor

COUNT = 9


class Refusing(Executor):
    """Runs `left` tasks where they are submitted, one after the other, and refuses all others."""

    def __init__(self, left: int) -> None:
        self.left = left
        self.waiting: list[tuple[Future[Any], Callable[[], Any]]] = []
        self.busy = False

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        if not self.left:
            raise RuntimeError("full")
        self.left -= 1
        future: Future[Any] = Future()
        self.waiting.append((future, lambda: fn(*args, **kwargs)))
        if not self.busy:
            self.busy = True
            while self.waiting:
                future, task = self.waiting.pop(0)
                future.set_running_or_notify_cancel()
                future.set_result(task())
            self.busy = False
        return future


ON_A_POOL: dict[str, Callable[[Flow[int], Executor], Flow[Any]]] = {
    "publish_on": lambda source, pool: source.publish_on(pool, prefetch=4),
    "publish_on, twice": lambda source, pool: source.publish_on(pool, prefetch=4).map(abs).publish_on(pool, prefetch=2),
    "subscribe_on": lambda source, pool: source.subscribe_on(pool),
    "subscribe_on and publish_on": lambda source, pool: source.subscribe_on(pool).publish_on(pool, prefetch=4),
    "flat_map, published": lambda source, pool: source.flat_map(lambda n: Flow.just(n).publish_on(pool), concurrency=2),
    "flat_map, subscribed": lambda source, pool: source.flat_map(
        lambda n: Flow.just(n).subscribe_on(pool), concurrency=2
    ),
    "flat_map_sequential": lambda source, pool: source.flat_map_sequential(
        lambda n: Flow.just(n).subscribe_on(pool), concurrency=2
    ),
    "concat_map": lambda source, pool: source.concat_map(lambda n: Flow.just(n).subscribe_on(pool)),
    "map_parallel": lambda source, pool: source.map_parallel(abs, pool, concurrency=2),
    "map_parallel, as they are done": lambda source, pool: source.map_parallel(abs, pool, concurrency=2, ordered=False),
    "parallel": lambda source, pool: source.parallel(2).run_on(pool).map(abs).sequential(),
    "merge": lambda source, pool: Flow.merge(source.subscribe_on(pool), Flow.empty().subscribe_on(pool)),
    "concat": lambda source, pool: Flow.concat(source.subscribe_on(pool), Flow.empty().subscribe_on(pool)),
}


def nothing_is_lost(name: str, source: Numbers, delivered: list[int], discarded: list[int]) -> None:
    """What was pulled was delivered or discarded, once; or it was handed to a function, whose publisher never began."""
    accounted = sorted(delivered + discarded)
    if "_map" in name and "parallel" not in name:
        assert len(set(accounted)) == len(accounted)
        assert set(accounted) <= set(range(source.pulled))
    else:
        assert accounted == list(range(source.pulled))


@pytest.mark.parametrize("name", ON_A_POOL)
@pytest.mark.parametrize("left", [0, 1, 2, 3, 5, 8])
def test_an_executor_that_refuses_ends_the_flow_once_and_loses_nothing(name: str, left: int) -> None:
    """reactor-core#265, #274, #275, #347: hangs, and elements that were dropped in silence."""
    discarded: list[int] = []
    source, sink, executor = Numbers(COUNT), Sink(), Refusing(left)
    flow = ON_A_POOL[name](Flow.from_supplier(lambda: source), executor)
    flow.do_on_discard(discarded.append).subscribe(sink)
    assert sink.end is not None
    if sink.end[0] == "on_complete":
        assert sorted(sink.elements) == list(range(COUNT))
    else:
        assert isinstance(sink.error, RejectedError)
        nothing_is_lost(name, source, sink.elements, discarded)
    assert source.closed == 1 or not source.pulled


@pytest.mark.parametrize("name", ON_A_POOL)
def test_to_block_on_an_executor_that_refuses_raises(name: str) -> None:
    """reactor-core#274: `block` waited for ever."""
    with pytest.raises(RejectedError, match="full"):
        list(ON_A_POOL[name](Flow.range(COUNT), Refusing(0)))


@pytest.mark.parametrize("name", ON_A_POOL)
def test_what_was_refused_once_works_when_there_is_room_again(name: str) -> None:
    """reactor-core#1080: one refusal ended the scheduler, for all that shared it."""
    executor = Refusing(0)
    flow = ON_A_POOL[name](Flow.range(COUNT), executor)
    with pytest.raises(RejectedError):
        list(flow)
    executor.left = 1_000
    assert sorted(flow) == list(range(COUNT))


@pytest.fixture
def occupied() -> Iterator[tuple[ThreadPoolExecutor, threading.Event]]:
    """A pool of one thread, which works on something else until the event is set."""
    release, begun = threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        release.wait(PATIENCE)

    with ThreadPoolExecutor(1) as pool:
        pool.submit(work)
        assert begun.wait(PATIENCE)
        yield pool, release
        release.set()


@pytest.mark.parametrize("name", ON_A_POOL)
def test_a_task_that_a_shutdown_cancels_in_the_queue_ends_the_flow_once(
    name: str, occupied: tuple[ThreadPoolExecutor, threading.Event]
) -> None:
    """reactor-core#4379, #324: the drain is scheduled, and never runs."""
    pool, release = occupied
    discarded: list[int] = []
    source, sink = Numbers(COUNT), Sink()
    ON_A_POOL[name](Flow.from_supplier(lambda: source), pool).do_on_discard(discarded.append).subscribe(sink)
    pool.shutdown(wait=False, cancel_futures=True)
    release.set()
    assert isinstance(sink.wait().error, RejectedError)
    nothing_is_lost(name, source, sink.elements, discarded)


AGAIN_ON_IT: dict[str, Callable[[Flow[int], Executor], Flow[Any]]] = {
    "map_parallel, auto": lambda source, pool: source.map_parallel(abs, pool, concurrency="auto"),
    "map_parallel, retry": lambda source, pool: source.map_parallel(abs, pool, concurrency=2).retry(2),
    "map_by_key, retry": lambda source, pool: source.map_by_key(abs, abs, pool).retry(2),
    "from_callable": lambda source, pool: (
        Flow.from_callable(int).subscribe_on(pool).on_error_resume(lambda _: source.map_parallel(abs, pool))
    ),
}


@pytest.mark.parametrize("name", AGAIN_ON_IT)
def test_a_shutdown_that_cancels_tasks_does_not_wait_for_itself(name: str) -> None:
    """The pool holds its lock while it cancels, and the flow hears of it and submits a task there."""
    begun, release, done = threading.Barrier(3), threading.Event(), threading.Event()
    pool, sink = ThreadPoolExecutor(2), Sink()

    def work() -> None:
        begun.wait(PATIENCE)
        release.wait(PATIENCE)

    def shut_down() -> None:
        pool.shutdown(wait=False, cancel_futures=True)
        done.set()

    pool.submit(work)
    pool.submit(work)
    begun.wait(PATIENCE)
    AGAIN_ON_IT[name](Flow.range(COUNT), pool).subscribe(sink)
    threading.Thread(target=shut_down, daemon=True).start()
    ended = done.wait(PATIENCE)
    release.set()
    assert ended
    assert isinstance(sink.wait().error, RejectedError)


PUSHED: dict[str, Callable[[Flow[int], Executor], Flow[Any]]] = {
    "publish_on": ON_A_POOL["publish_on"],
    "publish_on, twice": ON_A_POOL["publish_on, twice"],
    "map_parallel": lambda source, pool: source.map_parallel(abs, pool, concurrency=8),
    "parallel": ON_A_POOL["parallel"],
    "on_overflow_buffer": lambda source, pool: source.on_overflow_buffer(8).publish_on(pool, prefetch=1),
}


@pytest.mark.parametrize("name", PUSHED)
def test_what_waits_for_a_drain_that_has_not_begun_is_discarded_by_a_cancel(
    name: str, occupied: tuple[ThreadPoolExecutor, threading.Event]
) -> None:
    """reactor-core#4396: the thread that cancels leaves the queue to a task that will not run."""
    pool, release = occupied
    discarded: list[int] = []
    source = UnicastProcessor[int](capacity=8)
    sink = Sink()
    PUSHED[name](source, pool).do_on_discard(discarded.append).subscribe(sink)
    for n in range(5):
        source.emit(n)
    sink.subscription.cancel()
    release.set()
    wait_until(lambda: len(discarded) == 5)
    pool.shutdown()
    assert sorted(discarded) == list(range(5))
    assert not sink.elements


def test_an_element_that_comes_after_the_cancel_is_discarded(dropped: list[Dropped]) -> None:
    """reactor-core#4396, its second half, and #2114: `on_next` and `cancel` pass each other."""

    class Late:
        def subscribe(self, subscriber: Any, /) -> None:
            self.subscriber = subscriber
            subscriber.on_subscribe(self)

        def request(self, n: int, /) -> None: ...

        def cancel(self) -> None:
            self.subscriber.on_next(7)

    operators: list[Callable[[Flow[int], Executor], Flow[Any]]] = [
        lambda source, pool: source,
        *PUSHED.values(),
        lambda source, pool: source.concat_map(Flow.just),
        lambda source, pool: Flow.merge(source, Flow.never()),
        lambda source, pool: source.buffer_timeout(2, 1, clock=VirtualTimeExecutor()),
    ]
    for operator in operators:
        dropped.clear()
        sink = Sink()
        with ThreadPoolExecutor(1) as pool:
            operator(Flow.from_publisher(Late()), pool).subscribe(sink)
            sink.subscription.cancel()
        assert [drop.element for drop in dropped] == [7]
        assert not sink.elements


def test_flat_map_of_single_elements_goes_on_when_one_at_a_time_is_let_in() -> None:
    """RxJava#6945: queued single elements were not counted as completed."""
    for concurrency in (1, 2, 3):
        sink = Sink(demand=0)
        Flow.range(COUNT).flat_map(Flow.just, concurrency=concurrency).subscribe(sink)
        for _ in range(COUNT + 1):
            sink.subscription.request(1)
        assert sorted(sink.elements) == list(range(COUNT))
        assert sink.end == ("on_complete",)


def test_flat_map_of_delayed_elements_does_not_hang() -> None:
    """reactor-core#3535: an element that arrives while its timer runs was lost."""
    clock = VirtualTimeExecutor()
    sink = Sink()
    Flow.range(100).flat_map(lambda n: Flow.just(n).delay(n % 4 / 4, clock=clock), concurrency=16).subscribe(sink)
    clock.advance(60)
    assert sorted(sink.elements) == list(range(100))
    assert sink.end == ("on_complete",)


@pytest.mark.parametrize("operator", [Flow.flat_map, Flow.flat_map_sequential, Flow.concat_map])
def test_errors_that_are_delayed_arrive_when_the_rest_has_been_delivered(operator: Any) -> None:
    """reactor-core#3336, #2618: the error of a callable was swallowed, and the flow never ended."""

    def work(n: int) -> int:
        if n == 2:
            raise OSError("broken")
        return n

    sink = Sink()
    operator(Flow.range(5), lambda n: Flow.from_callable(lambda: work(n)), delay_error=True).subscribe(sink)
    assert sink.elements == [0, 1, 3, 4]
    assert str(sink.error) == "broken"


@pytest.mark.parametrize("operator", [Flow.flat_map, Flow.flat_map_sequential, Flow.concat_map])
def test_what_has_completed_is_not_cancelled(operator: Any) -> None:
    """RxJava#6259: concat_map cancelled each inner publisher after it had completed."""
    cancelled: list[int] = []
    flow = operator(Flow.range(3), lambda n: Flow.just(n).do_on_cancel(lambda: cancelled.append(n)))
    assert list(flow) == [0, 1, 2]
    assert not cancelled


def test_a_concat_that_ends_completes_once() -> None:
    """RxJava#1818: the last one's end and the whole's both signalled `on_complete`."""
    for flow in (
        Flow.concat(Flow.empty(), Flow.just(1), Flow.empty()),
        Flow.just(1).concat_map(lambda n: Flow.concat(Flow.just(n), Flow.empty())),
    ):
        sink = Sink()
        flow.subscribe(sink)
        assert sink.signals == [("on_subscribe",), ("on_next", 1), ("on_complete",)]
