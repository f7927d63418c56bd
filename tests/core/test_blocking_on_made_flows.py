"""Waiting on a thread that a flow needs which an operator makes while it runs: the plan does not know of it."""

from __future__ import annotations

import contextlib
import io
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any

import pytest
from sinks import PATIENCE, Sink, wait_until

from reactive_runtime import Flow, hooks
from reactive_runtime.executors import (
    ScheduledExecutor,
    SerialExecutor,
    TrampolineExecutor,
    VirtualTimeExecutor,
    blocking_allowed,
)
from reactive_runtime.hot import PublishProcessor, SubmissionPublisher
from reactive_runtime.picklable import Threads, Timers

Made = Callable[[], Flow[Any]]


async def plus(n: int) -> int:
    return n + 1


async def numbers() -> AsyncIterator[int]:
    yield 1


def failing() -> Flow[Any]:
    return Flow.error(OSError("gone"))


OPERATORS: dict[str, Callable[[Made, Executor], Flow[Any]]] = {
    "flat_map": lambda made, _: Flow.just(1).flat_map(lambda n: made()),
    "flat_map_sequential": lambda made, _: Flow.just(1).flat_map_sequential(lambda n: made()),
    "concat_map": lambda made, _: Flow.just(1).concat_map(lambda n: made()),
    "switch_map": lambda made, _: Flow.just(1).switch_map(lambda n: made()),
    "expand": lambda made, _: Flow.just(1).expand(lambda n: made()),
    "defer": lambda made, _: Flow.defer(made),
    "using": lambda made, _: Flow.using(io.StringIO, lambda file: made()),
    "on_error_resume": lambda made, _: failing().on_error_resume(lambda error: made()),
    "retry_when": lambda made, _: failing().retry_when(lambda error, attempt: made()),
    "repeat_when": lambda made, _: Flow.just(1).repeat_when(lambda runs: made()),
    "made by a flow that was made": lambda made, _: Flow.just(1).flat_map(
        lambda n: Flow.range(3).concat_map(lambda m: Flow.merge(Flow.never(), made().map(str)))
    ),
    "with an error that is taken for another": lambda made, _: Flow.just(1).flat_map(
        lambda n: made().retry().on_error_return(lambda error: 0), delay_error=True
    ),
    "on another pool": lambda made, other: Flow.just(1).subscribe_on(other).flat_map(lambda n: made()),
    "behind a boundary": lambda made, other: Flow.just(1).flat_map(lambda n: made()).publish_on(other),
    "behind a multicaster": lambda made, _: Flow.just(1).flat_map(lambda n: made()).share(),
    "behind a cache": lambda made, _: Flow.just(1).flat_map(lambda n: made()).cache().map(str),
    "behind groups": lambda made, _: Flow.just(1).flat_map(lambda n: made()).group_by(str).flat_map(lambda g: g[1]),
    "in a window": lambda made, _: Flow.range(3).window(2).flat_map(lambda w: w.concat_map(lambda n: made())),
    "behind what hears from elsewhere": lambda made, _: Flow.defer(made).timeout(99, clock=VirtualTimeExecutor()),
    "on rails": lambda made, other: (
        Flow.range(2).parallel(2).run_on(other).rails(lambda rail: rail.concat_map(lambda n: made())).sequential()
    ),
    "behind do_on_request": lambda made, _: Flow.defer(made).do_on_request(lambda n: None),
}


NEEDS: dict[str, tuple[Callable[[], Executor], Callable[[Any], Flow[Any]]]] = {
    "subscribe_on a pool": (lambda: ThreadPoolExecutor(1, "mine"), lambda pool: Flow.just(1).subscribe_on(pool)),
    "publish_on a pool": (
        lambda: ThreadPoolExecutor(1, "mine"),
        lambda pool: Flow.range(3).map(str).publish_on(pool).map(len),
    ),
    "map_parallel on a pool": (
        lambda: ThreadPoolExecutor(1, "mine"),
        lambda pool: Flow.range(3).map_parallel(str, pool).map(len),
    ),
    "a clock": (lambda: ScheduledExecutor("mine"), lambda clock: Flow.timer(0.001, clock=clock)),
}


OTHERS = 3


@pytest.fixture
def other() -> Iterator[Executor]:
    with ThreadPoolExecutor(OTHERS, "other") as pool:
        yield pool


def all_done(other: Executor) -> None:
    """Wait until its threads have met: each is done with what it had before."""
    meeting = threading.Barrier(OTHERS)
    for item in [other.submit(meeting.wait, PATIENCE) for _ in range(OTHERS)]:
        item.result(PATIENCE)


@pytest.mark.parametrize("operator", list(OPERATORS))
@pytest.mark.parametrize("need", list(NEEDS))
def test_a_wait_for_a_flow_that_is_made_on_this_very_thread_is_refused(
    need: str, operator: str, other: Executor
) -> None:
    make, made = NEEDS[need]
    with make() as executor:
        flow = OPERATORS[operator](lambda: made(executor), other)
        with pytest.raises(RuntimeError, match="which the flow needs for"):
            executor.submit(flow.block, timeout=PATIENCE / 2).result(PATIENCE)
        assert executor.submit(int).result(PATIENCE) == 0, "the thread is free again"
        all_done(other)  # before the executor goes: what is under way may be about to need it


@pytest.mark.parametrize("operator", list(OPERATORS))
@pytest.mark.parametrize("made", [lambda: Flow.just(1).flat_map(plus), lambda: Flow.from_async(numbers)])
def test_a_wait_on_the_event_loop_for_coroutines_that_a_made_flow_has_is_refused(
    made: Made, operator: str, other: Executor
) -> None:
    async def waits(n: int) -> Any:
        return OPERATORS[operator](made, other).block(timeout=PATIENCE / 2)

    with pytest.raises(RuntimeError, match="which the flow needs for"):
        Flow.just(1).flat_map(waits).block(timeout=PATIENCE)


@pytest.mark.parametrize(
    "wait", [list, lambda flow: flow.run(timeout=PATIENCE), lambda flow: flow.for_each(str, timeout=PATIENCE)]
)
def test_so_is_one_of_any_sink(wait: Callable[[Flow[Any]], Any]) -> None:
    with ThreadPoolExecutor(1, "mine") as pool:
        flow = Flow.range(2).concat_map(lambda n: Flow.just(n).subscribe_on(pool))
        with pytest.raises(RuntimeError, match=r"mine_0, belongs to ThreadPoolExecutor\(mine, 1 workers\)"):
            pool.submit(wait, flow).result(PATIENCE)


def serial(pool: Executor) -> Executor:
    return SerialExecutor(SerialExecutor(pool))


@pytest.mark.parametrize(
    ("make", "below"),
    [(lambda: ThreadPoolExecutor(1), serial), (lambda: Threads(1), lambda item: item), (Timers, lambda item: item)],
    ids=["a serial executor", "Threads", "Timers"],
)
def test_it_is_the_thread_that_counts(make: Callable[[], Executor], below: Callable[[Executor], Executor]) -> None:
    with make() as executor:
        flow = Flow.just(1).concat_map(lambda n: Flow.just(n).subscribe_on(below(executor)))
        with pytest.raises(RuntimeError, match="which the flow needs for"):
            executor.submit(flow.block, timeout=PATIENCE / 2).result(PATIENCE)


def test_inside_a_task_of_virtual_time_or_of_a_trampoline_as_well() -> None:
    clock, here = VirtualTimeExecutor(), TrampolineExecutor()
    waiting = clock.submit(Flow.just(1).concat_map(lambda n: Flow.timer(1, clock=clock)).block, timeout=PATIENCE / 2)
    clock.advance(2)
    with pytest.raises(RuntimeError, match="which the flow needs for `timer"):
        waiting.result(PATIENCE)
    with pytest.raises(RuntimeError, match="which the flow needs"):
        here.submit(Flow.defer(lambda: Flow.range(3).subscribe_on(here)).block, timeout=PATIENCE / 2).result(PATIENCE)


def test_what_is_refused_says_which_flow_waits_for_which_thread() -> None:
    with ThreadPoolExecutor(1, "mine") as pool:
        flow = Flow.range(3).concat_map(lambda n: Flow.range(n, 9).map(str).subscribe_on(pool)).map(len)
        with pytest.raises(RuntimeError) as raised:
            pool.submit(flow.block, timeout=PATIENCE / 2).result(PATIENCE)
    for part in (
        "block: this thread, mine_0",
        "ThreadPoolExecutor(mine, 1 workers)",
        "`range(9) map(str)`",
        "a flow that `concat_map(lambda)` has begun",
        f"`{flow}`",
        "blocking_allowed",
    ):
        assert part in str(raised.value)


def test_a_flow_that_is_refused_is_cancelled() -> None:
    cancelled: list[str] = []
    with ThreadPoolExecutor(1, "mine") as pool:
        flow = Flow.merge(
            Flow.never().do_on_cancel(lambda: cancelled.append("beside")),
            Flow.just(1).flat_map(lambda n: Flow.just(n).subscribe_on(pool)),
        )
        with pytest.raises(RuntimeError, match="which the flow needs"):
            pool.submit(flow.block, timeout=PATIENCE / 2).result(PATIENCE)
    assert cancelled == ["beside"]


# -- what may be waited for -----------------------------------------------------------------------------------


def test_on_a_thread_of_none_of_its_executors_it_may(other: Executor) -> None:
    with ThreadPoolExecutor(1, "mine") as pool, ScheduledExecutor() as clock:
        for operator in (
            "flat_map",
            "flat_map_sequential",
            "concat_map",
            "switch_map",
            "defer",
            "behind a multicaster",
        ):
            for made in (lambda: Flow.just(1).subscribe_on(pool), lambda: Flow.timer(0, clock=clock).map(lambda n: 1)):
                flow = OPERATORS[operator](made, other)
                assert flow.count().block(timeout=PATIENCE) == 1
                assert list(flow) == other.submit(list, flow).result(PATIENCE)


def test_a_flow_that_ends_before_it_would_wait_is_not_refused() -> None:
    with ThreadPoolExecutor(1, "mine") as pool:
        busy = Flow.just(1).flat_map(lambda n: Flow.just(n).subscribe_on(pool))
        assert pool.submit(Flow.merge(busy, Flow.just(2)).first().block, timeout=PATIENCE / 2).result(PATIENCE) == 2
        first = pool.submit(lambda: next(iter(Flow.merge(busy, Flow.just(2)))))
        assert first.result(PATIENCE) == 2


def test_what_is_subscribed_to_beside_the_flow_is_not_refused() -> None:
    """It is not waited for: it runs when the thread is free."""
    beside: Future[Any] = Future()
    with ThreadPoolExecutor(1, "mine") as pool:

        def begins(n: int) -> None:
            Flow.defer(lambda: Flow.just(n).subscribe_on(pool)).subscribe(beside.set_result)

        assert pool.submit(Flow.range(4, 5).do_on_next(begins).block, timeout=PATIENCE / 2).result(PATIENCE) == 4
        assert beside.result(PATIENCE) == 4


def test_where_it_is_allowed_a_pool_with_a_thread_to_spare_serves_it() -> None:
    def total(pool: Executor) -> Any:
        with blocking_allowed():
            return Flow.range(4).concat_map(lambda n: Flow.just(n).subscribe_on(pool)).sum().block(timeout=PATIENCE)

    with ThreadPoolExecutor(2) as pool:
        assert pool.submit(total, pool).result(PATIENCE) == 6


@pytest.mark.parametrize("needed", [True, False])
def test_a_wait_behind_a_multicaster_that_feeds_itself_is_refused_too(needed: bool) -> None:
    ring = PublishProcessor[int]()
    ring.concat_map(lambda n: Flow.defer(lambda: Flow.just(n + 1)) if n < 5 else Flow.never()).subscribe(ring)
    with ThreadPoolExecutor(1, "mine") as pool:
        steps = ring.concat_map(lambda n: Flow.just(n).subscribe_on(pool) if needed and n == 4 else Flow.just(n))
        waiting = pool.submit(steps.take_while(lambda n: n < 5).count().block, timeout=PATIENCE / 2)
        wait_until(lambda: ring.subscribers() == 2)
        ring.emit(0)
        if needed:
            with pytest.raises(RuntimeError, match="which the flow needs"):
                waiting.result(PATIENCE)
        else:
            assert waiting.result(PATIENCE) == 5


def test_many_executors_are_looked_at_and_not_kept() -> None:
    """More than a sink remembers, and the one that matters comes last."""
    with ThreadPoolExecutor(1, "mine") as pool, ThreadPoolExecutor(2, "other") as other:
        flow = Flow.range(101).concat_map(
            lambda n: Flow.just(n).subscribe_on(SerialExecutor(other) if n < 100 else SerialExecutor(pool))
        )
        assert flow.take(100).count().block(timeout=PATIENCE) == 100
        with pytest.raises(RuntimeError, match="which the flow needs"):
            pool.submit(flow.block, timeout=PATIENCE / 2).result(PATIENCE)


# -- submit ---------------------------------------------------------------------------------------------------


def held(publisher: SubmissionPublisher[int]) -> Sink:
    sink = Sink(demand=0)
    publisher.subscribe(sink)
    assert sink.subscribed.wait(PATIENCE)
    return sink


@pytest.mark.parametrize("make", [lambda: ThreadPoolExecutor(1, "mine"), lambda: Threads(1), ScheduledExecutor, Timers])
def test_submit_on_the_only_thread_of_the_publishers_executor_does_not_wait_for_room(
    make: Callable[[], Executor], dropped: list[hooks.Dropped]
) -> None:
    with make() as executor:
        publisher = SubmissionPublisher[int](executor, max_buffer=1)
        sink = held(publisher)
        assert executor.submit(publisher.submit, 1).result(PATIENCE) == 1
        with pytest.raises(RuntimeError, match=r"submit: a subscriber has no room \(1 wait for it\).*last one of"):
            executor.submit(publisher.submit, 2).result(PATIENCE)
        assert [drop.element for drop in dropped] == [2]
        sink.subscription.request(2)
        sink.wait_for(1)
        assert executor.submit(publisher.submit, 3).result(PATIENCE) >= 0, "as long as there is room it may"
        publisher.close()
        assert sink.wait().elements == [1, 3]


def test_submit_in_the_signal_of_a_subscriber_does_not_wait_for_itself(dropped: list[hooks.Dropped]) -> None:
    refused: Future[BaseException | None] = Future()

    def again(sink: Sink, n: int) -> None:
        try:
            for m in range(3):
                publisher.submit(m)
        except RuntimeError as error:
            refused.set_result(error)
            publisher.close()

    with ThreadPoolExecutor(1, "mine") as pool:
        publisher = SubmissionPublisher[int](pool, max_buffer=2)
        publisher.subscribe(Sink(then=again))
        publisher.submit(9)
        assert "ThreadPoolExecutor(mine, 1 workers)" in str(refused.result(PATIENCE))


def test_with_two_threads_one_may_wait_and_the_other_may_not(dropped: list[hooks.Dropped]) -> None:
    with ThreadPoolExecutor(2, "mine") as pool:
        publisher = SubmissionPublisher[int](pool, max_buffer=1)
        sink = held(publisher)
        publisher.submit(0)
        both = threading.Barrier(2)

        def submits(n: int) -> object:
            both.wait(PATIENCE)
            try:
                publisher.submit(n)
            except RuntimeError as error:
                sink.subscription.request(9)  # the other one is served on the thread that is free now
                return error
            return None

        ends = [item.result(PATIENCE) for item in [pool.submit(submits, 1), pool.submit(submits, 2)]]
        assert sorted(map(str, map(type, ends))) == ["<class 'NoneType'>", "<class 'RuntimeError'>"]


def test_submit_may_wait_on_other_threads_and_where_it_is_allowed(dropped: list[hooks.Dropped]) -> None:
    def allowed(publisher: SubmissionPublisher[int]) -> int:
        with blocking_allowed(), contextlib.suppress(RuntimeError):
            return publisher.submit(2)
        return -1

    with ThreadPoolExecutor(1, "mine") as pool, ThreadPoolExecutor(1, "producer") as producer:
        publisher = SubmissionPublisher[int](pool, max_buffer=1)
        sink = held(publisher)
        publisher.submit(0)
        waiting = producer.submit(publisher.submit, 1)
        sink.subscription.request(9)
        assert waiting.result(PATIENCE) >= 0
        publisher.close()
        assert sink.wait().elements == [0, 1]
        publisher = SubmissionPublisher[int](pool, max_buffer=1)
        sink = held(publisher)
        publisher.submit(0)
        begun = pool.submit(allowed, publisher)
        wait_until(lambda: any(buffer.waiting for buffer in publisher._present()))
        publisher.close()
        assert begun.result(PATIENCE) == -1, "it waited until it was closed"
        sink.subscription.request(9)
        assert sink.wait().elements == [0]
