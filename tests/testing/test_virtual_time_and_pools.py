"""Virtual time waits for pools: steps mean the same behind a boundary as on the thread that takes them."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sinks import PATIENCE, Sink, submit_until

from reactive_runtime import Flow
from reactive_runtime._executors import virtual_time
from reactive_runtime.executors import SerialExecutor, VirtualTimeExecutor, clock_of
from reactive_runtime.testing import StepVerifier

EXAMPLES = int(os.environ.get("VIRTUAL_CHAINS", "60"))
"""Random chains; nightly 2,000."""


@pytest.fixture(scope="module")
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(3, "pool") as executor:
        yield executor


@pytest.fixture(scope="module")
def processes() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(1) as executor:
        executor.submit(same, 1).result()
        yield executor


def same(n: int) -> int:
    return n


def slow(n: int) -> int:
    time.sleep(0.01)  # simulated work
    return n


async def awaited(n: int) -> int:
    await asyncio.sleep(0.005)
    return n


async def one_after_another(*numbers: int) -> AsyncIterator[int]:
    for n in numbers:
        await asyncio.sleep(0.002)
        yield n


def called(fn: Callable[[int], int], n: int) -> Flow[int]:
    return Flow.from_callable(lambda: fn(n))


Behind = Callable[[Flow[int], ThreadPoolExecutor], Flow[int]]

BOUNDARIES: dict[str, Behind] = {
    "none": lambda flow, pool: flow,
    "publish_on": lambda flow, pool: flow.publish_on(pool, prefetch=2),
    "publish_on, slow": lambda flow, pool: flow.publish_on(pool).map(slow),
    "two boundaries": lambda flow, pool: flow.publish_on(pool).map(same).publish_on(pool, prefetch=1),
    "a serial executor": lambda flow, pool: flow.publish_on(SerialExecutor(pool)),
    "subscribe_on": lambda flow, pool: flow.subscribe_on(pool),
    "flat_map": lambda flow, pool: flow.flat_map_sequential(lambda n: Flow.just(n).subscribe_on(pool)),
    "flat_map, slow": lambda flow, pool: flow.concat_map(
        lambda n: Flow.from_callable(lambda: slow(n)).subscribe_on(pool)
    ),
    "map_parallel": lambda flow, pool: flow.map_parallel(slow, pool, concurrency=2),
    "map_parallel, chunks": lambda flow, pool: flow.map_parallel(same, pool, concurrency=2, chunk=2),
    "a coroutine": lambda flow, pool: flow.map_parallel(awaited, concurrency=2),
    "from_async": lambda flow, pool: flow.concat_map(lambda n: Flow.from_async(lambda: one_after_another(n))),
    "from_async, no room": lambda flow, pool: flow.concat_map(
        lambda n: Flow.from_async(lambda: one_after_another(n - 1, n), prefetch=1).skip(1)
    ),
    "windows": lambda flow, pool: flow.window(1).concat_map(lambda window: window.publish_on(pool)),
    "groups": lambda flow, pool: flow.group_by(lambda n: 0).flat_map(lambda pair: pair[1].publish_on(pool).map(slow)),
    "rails": lambda flow, pool: flow.parallel(1).run_on(pool).map(same).sequential(),
    "share": lambda flow, pool: flow.share().publish_on(pool),
    "retry": lambda flow, pool: flow.publish_on(pool).retry_backoff(2),
}


@pytest.fixture(params=BOUNDARIES)
def behind(request: pytest.FixtureRequest, pool: ThreadPoolExecutor) -> Callable[[Flow[int]], Flow[int]]:
    return lambda flow: BOUNDARIES[request.param](flow, pool)


def verifier(flow: Flow[int], **options: Any) -> StepVerifier[int]:
    return StepVerifier(flow, clock=VirtualTimeExecutor(), **options)


Through = Callable[[Flow[int]], Flow[int]]


def test_no_event_is_no_event_behind_a_boundary(behind: Through) -> None:
    ticks = behind(Flow.interval(5).take(3))
    with pytest.raises(AssertionError, match=r"step 1, expect_no_event\(10\): on_next\(0\) came"):
        verifier(ticks).expect_no_event(10).then_cancel().verify()
    verifier(ticks).expect_no_event(4.9).then_wait(0.1).expect_next(0).then_cancel().verify()


def test_each_tick_comes_at_its_time_behind_a_boundary(behind: Through) -> None:
    steps = verifier(behind(Flow.interval(5, overflow="buffer").take(3)))
    for n in range(3):
        steps.expect_no_event(4).then_wait(1).expect_next(n)
    steps.expect_complete().verify()


def test_a_wrong_expectation_fails_behind_a_boundary(behind: Through) -> None:
    ticks = behind(Flow.interval(5, overflow="buffer").take(2))
    wrong = [
        verifier(ticks).then_wait(5).expect_next(1),
        verifier(ticks).then_wait(5).expect_next_matches(lambda n: n > 0),
        verifier(ticks).then_wait(5).expect_complete(),
        verifier(ticks).then_wait(5).expect_error(),
        verifier(ticks).then_wait(10).expect_next_count(3),
        verifier(ticks).then_wait(10).expect_next_count(1).expect_no_event(0),
    ]
    for steps in wrong:
        with pytest.raises(AssertionError, match=r"^step "):
            steps.then_cancel().verify()


def test_a_function_of_the_test_sees_what_was_done(behind: Through) -> None:
    seen: list[int] = []
    ticks = behind(Flow.interval(5, overflow="buffer").take(3)).do_on_next(seen.append)

    def saw(*expected: int) -> Callable[[], None]:
        def check() -> None:
            assert seen == list(expected)

        return check

    steps = verifier(ticks).then(saw()).then_wait(5).then(saw(0)).then_wait(10).then(saw(0, 1, 2))
    steps.expect_next(0, 1, 2).expect_complete().verify()


def test_a_request_is_answered_before_the_next_step(behind: Through) -> None:
    steps = verifier(behind(Flow.just(1, 2, 3)), demand=0).expect_no_event(5)
    steps.then_request(2).expect_next(1, 2).expect_no_event(5).then_request(1).expect_next(3).expect_complete().verify()


def test_a_pool_of_processes_is_waited_for(processes: ProcessPoolExecutor) -> None:
    flow = Flow.interval(5).take(1).map_parallel(same, processes)
    with pytest.raises(AssertionError, match=r"on_next\(0\) came"):
        verifier(flow).expect_no_event(5).then_cancel().verify()
    verifier(flow).expect_no_event(4).then_wait(1).expect_next(0).expect_complete().verify()


def test_a_clock_that_is_advanced_by_hand_waits_too(behind: Through) -> None:
    sink = Sink()
    with clock_of(VirtualTimeExecutor()) as clock:
        behind(Flow.interval(5, overflow="buffer").take(2)).subscribe(sink)
    clock.advance(5)
    assert sink.elements == [0]
    clock.advance(5)
    assert sink.elements == [0, 1]


def test_a_clock_that_an_operator_was_given_waits_for_what_it_sets_off(pool: ThreadPoolExecutor) -> None:
    clock, sink = VirtualTimeExecutor(), Sink()
    Flow.interval(5, clock=clock).take(2).publish_on(pool).map(slow).subscribe(sink)
    clock.advance(5)
    assert sink.elements == [0]


# -- what does not come to rest, and where a clock is moved --------------------------------------------------------


def test_work_that_does_not_rest_is_named_with_its_place() -> None:
    go, inside = threading.Event(), threading.Event()

    def stuck(n: int) -> int:
        inside.set()
        assert go.wait(PATIENCE)
        return n

    clock = VirtualTimeExecutor(timeout=0.05)
    with ThreadPoolExecutor(3, "pool") as pool:
        flow = Flow.interval(5).take(1).do_on_next(lambda _: submit_until(pool, inside)).publish_on(pool).map(stuck)
        try:
            with pytest.raises(
                AssertionError, match=r"step 1, expect_no_event\(5\): advance: .* did not come to rest"
            ) as caught:
                StepVerifier(flow, clock=clock).expect_no_event(5).then_cancel().verify()
        finally:
            go.set()
    assert "a task on ThreadPoolExecutor(pool, 3 workers): the thread is in stuck at " in str(caught.value)
    assert f"{__file__}:" in str(caught.value)


def test_a_flow_without_end_does_not_rest(pool: ThreadPoolExecutor) -> None:
    clock = VirtualTimeExecutor(timeout=0.05)
    flow = Flow.just(1).repeat().publish_on(pool)
    with pytest.raises(AssertionError, match=r"did not come to rest in 0\.05 s"):
        StepVerifier(flow, clock=clock).expect_no_event(5).then_cancel().verify()
    StepVerifier(flow, clock=clock).expect_next(1, 1).then_cancel().verify()


def test_a_clock_without_a_limit_does_not_wait(pool: ThreadPoolExecutor) -> None:
    go = threading.Event()
    clock, sink = VirtualTimeExecutor(timeout=0), Sink()
    with clock_of(clock):
        Flow.from_callable(lambda: go.wait(PATIENCE)).subscribe_on(pool).timeout(1).subscribe(sink)
    try:
        clock.advance(1)
        assert isinstance(sink.wait().error, TimeoutError)
    finally:
        go.set()


@pytest.mark.parametrize("place", ["map", "map_parallel", "from_callable"])
def test_a_task_of_the_flow_may_not_move_the_clock(place: str, pool: ThreadPoolExecutor) -> None:
    clock, sink = VirtualTimeExecutor(), Sink()
    errors: list[str] = []

    def moves(n: int = 0) -> int:
        with pytest.raises(RuntimeError) as caught:
            clock.advance(1)
        errors.append(str(caught.value))
        return n

    with clock_of(clock):
        if place == "map":
            flow = Flow.just(0).publish_on(pool).map(moves)
        elif place == "map_parallel":
            flow = Flow.just(0).map_parallel(moves, pool)
        else:
            flow = Flow.from_callable(moves).subscribe_on(pool)
        flow.subscribe(sink)
    assert sink.wait().elements == [0]
    assert len(errors) == 1
    assert "is inside of a task of a flow on this clock" in errors[0]
    clock.advance(1)


def test_another_thread_may_move_the_clock(pool: ThreadPoolExecutor) -> None:
    sink = Sink()
    with clock_of(VirtualTimeExecutor()) as clock:
        Flow.interval(5).take(1).publish_on(pool).subscribe(sink)
    pool.submit(clock.advance, 5).result(PATIENCE)
    assert sink.elements == [0]


def test_a_pool_that_is_shut_down_rests() -> None:
    sink = Sink()
    with clock_of(VirtualTimeExecutor()) as clock, ThreadPoolExecutor(1) as pool:
        Flow.interval(5).publish_on(pool).subscribe(sink)
        clock.advance(5)
        pool.shutdown()
        clock.advance(5)
    assert sink.elements == [0]
    assert sink.end is not None


def test_an_async_source_that_waits_for_demand_rests() -> None:
    begun: list[int] = []

    async def numbers() -> AsyncIterator[int]:
        for n in range(100):
            begun.append(n)
            await asyncio.sleep(0)
            yield n

    steps = verifier(Flow.from_async(numbers, prefetch=4), demand=0)
    steps.then_wait(1).expect_no_event(1).then_request(1).expect_next(0).then_wait(1).expect_no_event(1)
    steps.then_request(2).expect_next(1, 2).then_cancel().verify()
    assert len(begun) < 20


def test_an_async_source_that_is_cancelled_has_closed_its_iterator() -> None:
    closed: list[str] = []

    async def numbers() -> AsyncIterator[int]:
        try:
            yield 1
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.01)
            closed.append("closed")

    verifier(Flow.from_async(numbers).take(1)).expect_next(1).expect_complete().verify()
    assert closed == ["closed"]


def test_an_async_source_that_never_rests_is_named() -> None:
    async def silent() -> AsyncIterator[int]:
        await asyncio.Event().wait()
        yield 1

    clock = VirtualTimeExecutor(timeout=0.05)
    with pytest.raises(AssertionError, match=r"in 0\.05 s: a task on the event loop, of `from_async"):
        StepVerifier(Flow.from_async(silent), clock=clock).expect_no_event(5).then_cancel().verify()


def in_a_task(act: Callable[[], None], outer: VirtualTimeExecutor, pool: ThreadPoolExecutor) -> None:
    outer.schedule(1, act)
    outer.advance(1)


PLACES: dict[str, Callable[[Callable[[], None], VirtualTimeExecutor, ThreadPoolExecutor], None]] = {
    "in a task of the outer clock": in_a_task,
    "in a flow on the outer clock": lambda act, outer, pool: (
        StepVerifier(Flow.timer(1).do_on_next(lambda _: act()), clock=outer)
        .then_wait(1)
        .expect_next_count(1)
        .expect_complete()
        .verify()
    ),
    "on a pool's thread of such a flow": lambda act, outer, pool: (
        StepVerifier(Flow.timer(1).publish_on(pool).do_on_next(lambda _: act()), clock=outer)
        .then_wait(1)
        .expect_next_count(1)
        .expect_complete()
        .verify()
    ),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_clock_inside_of_another_waits_for_its_own_flows(place: str, pool: ThreadPoolExecutor) -> None:
    saw: list[list[int]] = []

    def act() -> None:
        sink = Sink()
        with clock_of(VirtualTimeExecutor()) as inner:
            Flow.just(1).publish_on(pool).map(slow).delay(5).subscribe(sink)
        inner.advance(5)
        saw.append(sink.elements)

    PLACES[place](act, VirtualTimeExecutor(), pool)
    assert saw == [[1]]


TWO: dict[str, Callable[[Flow[int], VirtualTimeExecutor, VirtualTimeExecutor], Flow[int]]] = {
    "the first": lambda flow, mine, other: flow.delay(5, clock=mine).timeout(1000, clock=other),
    "the last": lambda flow, mine, other: flow.timeout(1000, clock=other).delay(5, clock=mine),
    "the only one": lambda flow, mine, other: flow.delay(5, clock=mine),
}


@pytest.mark.parametrize("context", [False, True], ids=["", "in the context of the other"])
@pytest.mark.parametrize("order", TWO)
def test_a_flow_on_two_clocks_is_waited_for_by_both(order: str, context: bool, pool: ThreadPoolExecutor) -> None:
    mine, other = VirtualTimeExecutor(), VirtualTimeExecutor()
    for moved, still in ((mine, other), (other, mine)):
        sink = Sink()
        with clock_of(still) if context else nullcontext():
            TWO[order](Flow.just(1).publish_on(pool).map(slow), moved, still).subscribe(sink)
        moved.advance(5)
        assert sink.elements == [1]


@pytest.mark.parametrize(
    "endless",
    [
        Flow.timer(0).repeat().ignore_elements(),
        Flow.timer(0).repeat().filter(lambda n: False),
        Flow.timer(0).repeat().last(),
    ],
    ids=str,
)
def test_virtual_time_that_stands_still_is_an_error(endless: Flow[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(virtual_time, "AT_ONCE", 200)
    for limit in (0.05, 0):
        monkeypatch.setattr(virtual_time, "STANDS_STILL", 0.05)
        steps = StepVerifier(endless, clock=VirtualTimeExecutor(timeout=limit))
        with pytest.raises(AssertionError, match=r"have run at 0 s of virtual time.*a timer of a flow; it waited"):
            steps.expect_no_event(1).then_cancel().verify()


def test_many_tasks_at_one_time_are_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(virtual_time, "AT_ONCE", 1000)
    clock = VirtualTimeExecutor(timeout=1e-9)
    ran: list[int] = []
    for n in range(900):
        clock.schedule(1, ran.append, n)
        clock.schedule(2, ran.append, n)
    clock.advance(2)
    assert len(ran) == 1800


# -- random chains ---------------------------------------------------------------------------------------------------

STEPS: list[Callable[[Flow[int]], Flow[int]]] = [
    lambda flow: flow.map(lambda n: n + 1),
    lambda flow: flow.filter(lambda n: n % 2 == 0),
    lambda flow: flow.take(3),
    lambda flow: flow.skip(1),
    lambda flow: flow.concat_map(lambda n: Flow.just(n, n)),
    lambda flow: flow.delay(2),
    lambda flow: flow.debounce(3),
    lambda flow: flow.timeout(100),
    lambda flow: flow.scan(lambda a, n: a + n, 0),
    lambda flow: flow.buffer_timeout(2, 7).flatten(),
    lambda flow: flow.distinct_until_changed(),
]

PARTS = st.lists(
    st.tuples(st.sampled_from(STEPS), st.sampled_from([name for name in BOUNDARIES if name != "rails"])),
    min_size=1,
    max_size=4,
)


def answers(flow: Flow[int], waits: list[int]) -> list[tuple[float, list[int], Any]]:
    """What has come after each wait, and whether the flow has ended."""
    sink = Sink()
    came = []
    with clock_of(VirtualTimeExecutor()) as clock:
        flow.subscribe(sink)
    for seconds in waits:
        clock.advance(seconds)
        came.append((clock.now(), sink.elements, sink.end and sink.end[0]))
    if sink.end is None:
        sink.subscription.cancel()
        clock.advance(0)
    return came


@settings(max_examples=EXAMPLES)
@given(parts=PARTS, period=st.integers(1, 6), waits=st.lists(st.integers(0, 20), min_size=1, max_size=6))
def test_a_random_chain_answers_the_same_with_boundaries(
    parts: list[tuple[Callable[[Flow[int]], Flow[int]], str]], period: int, waits: list[int], pool: ThreadPoolExecutor
) -> None:
    """The same chain, as it is, and with a boundary of any kind between its operators."""
    plain = bounded = Flow.interval(period, overflow="buffer").take(5)
    for step, boundary in parts:
        plain = step(plain)
        bounded = BOUNDARIES[boundary](step(bounded), pool)
    assert answers(bounded, waits) == answers(plain, waits)
