"""Virtual time waits for pools: steps mean the same behind a boundary as on the thread that takes them."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sinks import PATIENCE, Sink

from reactive_runtime import Flow
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


def test_work_that_does_not_rest_is_named_with_its_place(pool: ThreadPoolExecutor) -> None:
    go = threading.Event()

    def stuck(n: int) -> int:
        assert go.wait(PATIENCE)
        return n

    clock = VirtualTimeExecutor(timeout=0.05)
    flow = Flow.interval(5).take(1).publish_on(pool).map(stuck)
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
