"""What experts try first."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import itertools
import os
import re
import signal
import subprocess
import sys
import threading
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
from sinks import PATIENCE, Numbers, Sink, wait_until

from operators.bounded import BOUNDARIES, HOT, PREFETCH
from reactive_runtime import MAX_DEMAND, Flow, KillSwitch, Valve, hooks
from reactive_runtime._core.runtime import eventloop
from reactive_runtime._core.runtime.primitives import has_gil
from reactive_runtime.errors import RejectedError
from reactive_runtime.executors import ScheduledExecutor, VirtualTimeExecutor, blocking_allowed
from reactive_runtime.hooks import Dropped
from reactive_runtime.hot import EmitResult, PublishProcessor, SubmissionPublisher, UnicastProcessor
from reactive_runtime.testing import Probe, TestPublisher


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4, "pool") as executor:
        yield executor


# -- demand, bounds, stack ------------------------------------------------------------------------------------


def test_take_requests_no_more_than_it_takes_and_cancels_once() -> None:
    probe = Probe(Flow.range(100))
    assert list(Flow.from_publisher(probe).take(2)) == [0, 1]
    assert (probe.requested, probe.cancelled) == (2, 1)


def test_flat_map_bounds_the_source_too(pool: Executor) -> None:
    source = Numbers(20_000)
    held = threading.Event()
    sink = Sink()
    work: Callable[[int], Flow[Any]] = lambda n: Flow.from_callable(lambda: held.wait(PATIENCE)).subscribe_on(pool)  # noqa: E731
    Flow.from_supplier(lambda: source).flat_map(work, concurrency=2).subscribe(sink)
    assert source.pulled == 2
    sink.subscription.cancel()
    held.set()


def test_concat_carries_the_unmet_demand_over() -> None:
    first, second = Probe(Flow.range(2)), Probe(Flow.range(9))
    sink = Sink(demand=5)
    Flow.concat(first, second).subscribe(sink)
    assert sink.elements == [0, 1, 0, 1, 2]
    assert (first.requested, second.requested) == (5, 3)
    sink.subscription.cancel()


def test_retry_carries_the_unmet_demand_over() -> None:
    attempts: list[TestPublisher[int]] = []

    def attempt() -> TestPublisher[int]:
        attempts.append(TestPublisher())
        return attempts[-1]

    sink = Sink(demand=5)
    Flow.defer(attempt).retry(1).subscribe(sink)
    attempts[0].emit(1, 2)
    attempts[0].fail(OSError("busy"))
    assert attempts[1].demand == 3
    sink.subscription.cancel()


@pytest.mark.parametrize("make", [lambda flow: flow.retry(), lambda flow: flow.on_error_resume(lambda e: flow).retry()])
def test_retrying_needs_no_stack_and_no_memory(make: Callable[[Flow[Any]], Flow[Any]]) -> None:
    def left_over(attempts: int) -> tuple[int, int]:
        """Objects, and bytes."""
        left = [attempts]

        def fail() -> int:
            left[0] -= 1
            if left[0] > 0:
                raise OSError("busy")
            return 7

        tracemalloc.start()
        assert make(Flow.from_callable(fail)).block() == 7
        gc.collect()
        memory, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return len(gc.get_objects()), memory

    objects, memory = left_over(2_000)
    more_objects, more_memory = left_over(12_000)
    assert more_objects < objects + 1_000  # one in ten attempts
    # Without a GIL memory is given back late: what is left swings by 550,000 bytes, however many attempts there were.
    bytes_an_attempt = 2 if has_gil() else 100  # an exception and its traceback have more
    assert more_memory < memory + 10_000 * bytes_an_attempt


def test_a_thousand_maps_and_a_long_concat_need_no_stack() -> None:
    flow: Flow[int] = Flow.range(3)
    for _ in range(1_000):
        flow = flow.map(lambda n: n + 1)
    assert list(flow) == [1_000, 1_001, 1_002]
    assert Flow.concat(*(Flow.just(1) for _ in range(20_000))).count().block() == 20_000


BOUND = 20 * PREFETCH + 3 * 256
"""How many elements may be alive: 20 that the sink keeps, or lists of them; what waits at boundaries; and room."""


class Count:
    """How many elements of a test are alive, and the most there have been. `lock` owns both."""

    def __init__(self) -> None:
        self.lock = threading.RLock()  # the collector may come inside of it, and call `__del__`
        self.alive = 0
        self.most = 0

    def one_more(self) -> None:
        """Without a GIL an object that another thread was the last to use is freed when its maker runs again.

        A thread of a pool that waits does not run, but a collection frees it as well.
        """
        with self.lock:
            self.alive += 1
            most = self.alive > self.most
            many = self.alive > BOUND
        if most and many and not has_gil():
            gc.collect()
        with self.lock:
            self.most = max(self.most, self.alive)

    def one_less(self) -> None:
        with self.lock:
            self.alive -= 1


class Thing:
    """An element that is counted."""

    def __init__(self, count: Count, number: int) -> None:
        self.count = count
        self.number = number
        count.one_more()

    def __del__(self) -> None:
        self.count.one_less()


@pytest.mark.parametrize("name", [*BOUNDARIES, *HOT])
def test_an_infinite_source_stays_bounded_behind_a_slow_subscriber(name: str, pool: Executor) -> None:
    """However much the source has made, hardly more is alive than may wait: it is not asked for, or dropped."""
    before = hooks.set_handler(lambda dropped: None)  # which keeps what is dropped no longer than the call
    try:
        made = itertools.count()
        count = Count()
        source = Flow.from_supplier(lambda: map(partial(Thing, count), made)).subscribe_on(pool)
        sink = Sink(demand=0)
        (BOUNDARIES | HOT)[name](source, pool).subscribe(sink)
        for _ in range(20):
            sink.subscription.request(1)
            sink.wait_for(1)
        sink.subscription.cancel()
        assert count.most <= BOUND
    finally:
        hooks.set_handler(before)


@pytest.mark.parametrize("operator", [Flow.concat, Flow.merge])
def test_what_a_step_had_left_over_is_followed_by_the_end_without_demand(operator: Any) -> None:
    sink = Sink(demand=0)
    operator(Flow.empty().default_if_empty(7), Flow.empty()).subscribe(sink)
    sink.subscription.request(1)
    assert sink.signals == [("on_subscribe",), ("on_next", 7), ("on_complete",)]


@pytest.mark.parametrize("name", ["map_parallel", "flat_map"])
def test_a_task_that_wants_to_exit_ends_the_flow_and_not_the_thread(name: str, pool: Executor) -> None:
    def leave(n: int) -> int:
        raise SystemExit(3)

    call: Callable[[int], Flow[int]] = lambda n: Flow.from_callable(lambda: leave(n)).subscribe_on(pool)  # noqa: E731
    flow = (
        Flow.just(1).map_parallel(leave, pool, concurrency=2)
        if name == "map_parallel"
        else Flow.just(1).flat_map(call, concurrency=2)
    )
    sink = Sink()
    flow.subscribe(sink)
    assert isinstance(sink.wait().error.__cause__, SystemExit)


# -- errors ---------------------------------------------------------------------------------------------------


def test_an_error_names_the_operator_and_the_line_that_assembled_it() -> None:
    def broken(n: int) -> int:
        raise OSError("no")

    line = sys._getframe().f_lineno + 1
    for flow in (Flow.range(3).map(str).filter(bool).map(int).map(broken), Flow.range(3).flat_map(broken)):  # type: ignore[arg-type]
        sink = Sink()
        flow.subscribe(sink)
        (note,) = sink.error.__notes__
        assert "broken" in note
        assert note.endswith(f"test_semantics.py:{line}")


def test_a_stop_iteration_of_a_function_is_an_error(pool: Executor) -> None:
    def stop(n: Any) -> Any:
        raise StopIteration

    flows: list[Flow[Any]] = [
        Flow.range(1).map(stop),
        Flow.range(1).flat_map(stop),
        Flow.range(1).scan(lambda a, n: stop(n), 0),
        Flow.range(1).map_parallel(stop, pool),
        Flow.range(1).concat_map(stop),
    ]
    for flow in flows:
        sink = Sink()
        flow.subscribe(sink)
        assert isinstance(sink.wait().error, RuntimeError | StopIteration)


def test_what_a_function_returns_is_checked_and_named(pool: Executor) -> None:
    wrong: list[tuple[Flow[Any], str]] = [
        (Flow.range(1).flat_map(lambda n: n), "flat_map(lambda, 16): lambda must return a publisher, not int"),  # type: ignore[arg-type, return-value]
        (Flow.range(1).concat_map(lambda n: None), "concat_map(lambda): lambda must return a publisher"),  # type: ignore[arg-type, return-value]
        (Flow.range(1).flat_map_iterable(lambda n: n), "flat_map_iterable(lambda): an iterable is needed, not int"),  # type: ignore[arg-type, return-value]
        (Flow.range(1).scan(lambda a, n: None, 0), "scan(lambda): the function returned None"),
        (Flow.range(1).map_parallel(lambda n: None, pool), "map_parallel(lambda, 16): the function returned None"),
        (Flow.from_callable(lambda: None), "from_callable(lambda): the function returned None"),
        (Flow.defer(lambda: 3), "defer(lambda): the function must return a publisher, not int"),  # type: ignore[arg-type, return-value]
        (Flow.error(OSError()).on_error_resume(lambda e: 3), "on_error_resume(lambda): lambda must return a publisher"),  # type: ignore[arg-type, return-value]
        (Flow.error(OSError()).map_error(lambda e: 3), "map_error(lambda): the function must return an exception"),  # type: ignore[arg-type, return-value]
    ]
    for flow, text in wrong:
        sink = Sink()
        flow.subscribe(sink)
        assert isinstance(sink.wait().error, TypeError)
        assert text in str(sink.error)


def test_delayed_errors_come_together() -> None:
    flow = Flow.merge(Flow.error(OSError("a")), Flow.range(2), Flow.error(OSError("b")), delay_error=True)
    sink = Sink()
    flow.subscribe(sink)
    assert sink.elements == [0, 1]
    assert isinstance(sink.error, ExceptionGroup)
    assert {str(error) for error in sink.error.exceptions} == {"a", "b"}


def test_a_group_that_no_subscriber_consumes_is_an_error_and_no_hang() -> None:
    sink = Sink()
    Flow.range(1_000).group_by(lambda n: n % 3, prefetch=8).flat_map(lambda item: item[1], concurrency=2).subscribe(
        sink
    )
    assert isinstance(sink.error, OverflowError)
    assert "it has no subscriber" in str(sink.error)
    sink = Sink()
    Flow.range(1_000).group_by(lambda n: n, groups=4).subscribe(sink)
    assert "as many are open as may be (groups=4)" in str(sink.error)


def test_an_executor_that_refuses_half_way_is_an_error_and_the_source_is_closed(pool: Executor) -> None:
    class Refusing(ThreadPoolExecutor):
        left = 3

        def submit(self, *arguments: Any, **named: Any) -> Any:
            Refusing.left -= 1
            if Refusing.left < 0:
                raise RuntimeError("full")
            return super().submit(*arguments, **named)

    discarded: list[int] = []
    source, sink = Numbers(), Sink()
    with Refusing(1) as executor:
        flow = Flow.from_supplier(lambda: source).map_parallel(lambda n: n, executor, concurrency=1)
        flow.do_on_discard(discarded.append).subscribe(sink)
        assert isinstance(sink.wait().error, RejectedError)
    assert source.closed == 1
    assert sink.elements + discarded == list(range(source.pulled))


def die(n: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return n


def test_a_worker_process_that_dies_is_an_error(dropped: list[Dropped]) -> None:
    sink = Sink()
    with ProcessPoolExecutor(1) as processes:
        Flow.range(9).map_parallel(die, processes, concurrency=1, chunk=2).subscribe(sink)  # a second may be refused
        assert type(sink.wait().error).__name__ == "BrokenProcessPool"


def test_a_late_error_goes_to_the_hook(pool: Executor, dropped: list[Dropped]) -> None:
    held, begun = threading.Event(), threading.Event()

    def fail(n: int) -> int:
        begun.set()
        held.wait(PATIENCE)
        raise OSError("late")

    sink = Sink()
    Flow.range(1).map_parallel(fail, pool).subscribe(sink)
    assert begun.wait(PATIENCE)
    sink.subscription.cancel()
    held.set()
    wait_until(lambda: bool(dropped))
    assert str(dropped[0].error) == "late"


# -- what is accepted and not delivered -----------------------------------------------------------------------


def test_a_batch_that_is_half_full_is_discarded_once() -> None:
    discarded: list[Any] = []
    flow = Flow.range(3).concat_with(Flow.error(OSError())).batch(2).do_on_discard(discarded.append)
    flow.subscribe(Sink())
    assert discarded == [2]


def rows_that_fail(times: int) -> Flow[int]:
    """1 and an error, some times; then 2 and another."""
    turns = iter(range(times + 1))

    def rows() -> Iterator[int]:
        yield 1
        if next(turns) < times:
            raise OSError("busy")
        yield 2
        raise KeyError("final")

    return Flow.from_supplier(rows)


def test_each_attempt_is_heard_of_once() -> None:
    """Also by those further downstream; and nothing of what is discarded there is heard further up."""
    near: list[Any] = []
    far: list[Any] = []
    flow: Flow[Any] = rows_that_fail(3).batch(3).do_on_discard(near.append).retry(3)
    flow.start_with(7).map(str).batch(9).do_on_discard(far.append).subscribe(Sink())
    assert near == [1, 1, 1, 1, 2]
    assert far == [1, 1, 1, 1, 2, "7"]


def test_an_inner_flow_hears_of_its_own_only() -> None:
    heard: dict[int, list[Any]] = {n: [] for n in range(3)}
    outer: list[Any] = []

    def inner(n: int) -> Flow[Any]:
        return Flow.just(n, n + 10).concat_with(Flow.error(OSError())).batch(3).do_on_discard(heard[n].append)

    flow = Flow.range(3).concat_map(lambda n: inner(n).on_error_resume(lambda error: Flow.empty()))
    flow.do_on_discard(outer.append).start_with("outer").batch(9).concat_with(Flow.error(OSError())).subscribe(Sink())
    assert heard == {0: [0, 10], 1: [1, 11], 2: [2, 12]}
    assert outer == [0, 10, 1, 11, 2, 12]


@pytest.mark.parametrize(
    "through", ["nothing", "an executor", "a publisher", "a foreign publisher", "a combinator", "all"]
)
def test_what_is_discarded_upstream_is_heard_of_across_whatever_stands_between(
    through: str, pool: Executor, dropped: list[Dropped]
) -> None:
    """Once by each, the nearest first; and by the hook."""
    heard: list[Any] = []
    flow: Flow[Any] = Flow.range(2).concat_with(Flow.error(OSError())).batch(9)
    flow = flow.do_on_discard(lambda item: heard.append(("near", item)))
    if through in ("an executor", "all"):
        flow = flow.subscribe_on(pool).publish_on(pool, prefetch=1)
    if through in ("a publisher", "all"):
        flow = flow.do_on_request(lambda n: None)
    if through in ("a foreign publisher", "all"):
        flow = Flow.from_publisher(Passing(flow))
    if through in ("a combinator", "all"):
        flow = flow.retry(0)
    sink = Sink()
    flow.do_on_discard(lambda item: heard.append(("far", item))).subscribe(sink)
    sink.wait()
    wait_until(lambda: len(heard) == 4)
    assert heard == [("near", 0), ("far", 0), ("near", 1), ("far", 1)]
    assert [drop.element for drop in dropped] == [0, 1]
    assert not any(drop.wanted for drop in dropped)


@pytest.mark.parametrize("overflow", ["error", "newest", "oldest"])
def test_a_listener_hears_of_each_element_that_found_a_buffer_full(overflow: Any, dropped: list[Dropped]) -> None:
    heard: list[Any] = []

    def push(emitter: Any) -> None:
        for n in range(5):
            emitter.emit(n)

    Flow.create(push, overflow=overflow, capacity=1).do_on_discard(heard.append).subscribe(print, demand=0).cancel()
    assert heard == [drop.element for drop in dropped if drop.error is None]
    assert sorted(heard) == ([0, 1] if overflow == "error" else list(range(5)))  # that ends at the first: 2 is refused


class Passing:
    """Another library's publisher."""

    def __init__(self, flow: Flow[Any]) -> None:
        self.flow = flow

    def subscribe(self, subscriber: Any, /) -> None:
        self.flow.subscribe(subscriber)


def test_what_a_function_subscribes_to_is_another_flow(pool: Executor) -> None:
    heard: list[Any] = []

    def other(n: int) -> int:
        Flow.range(n).concat_with(Flow.error(OSError())).batch(9).subscribe(Sink())
        return n

    flow = Flow.range(3).map(other).subscribe_on(pool).map(other).retry(0).do_on_discard(heard.append)
    assert list(flow) == [0, 1, 2]
    assert heard == []


@pytest.mark.parametrize("attempt", range(10))
def test_what_waits_in_a_boundary_is_discarded_once_at_a_cancel(pool: Executor, attempt: int) -> None:
    discarded: list[int] = []
    source, sink = Numbers(100), Sink(demand=2)
    boundary = Flow.from_supplier(lambda: source).subscribe_on(pool).publish_on(pool, prefetch=8)
    boundary.do_on_discard(discarded.append).subscribe(sink)
    sink.wait_for(2)
    sink.subscription.cancel()
    wait_until(lambda: bool(source.closed))
    wait_until(lambda: len(discarded) + len(sink.elements) == source.pulled)
    assert sorted(sink.elements + discarded) == list(range(source.pulled))


def test_the_results_of_tasks_that_were_running_are_discarded_once(pool: Executor) -> None:
    held = threading.Event()
    begun = threading.Semaphore(0)
    discarded: list[int] = []

    def work(n: int) -> int:
        begun.release()
        held.wait(PATIENCE)
        return n

    sink = Sink()
    Flow.range(9).map_parallel(work, pool, concurrency=2).do_on_discard(discarded.append).subscribe(sink)
    begun.acquire()
    begun.acquire()
    sink.subscription.cancel()
    held.set()
    wait_until(lambda: sorted(discarded) == [0, 1])


# -- context, cancellation, threads ---------------------------------------------------------------------------

REQUEST: contextvars.ContextVar[str] = contextvars.ContextVar("request", default="none")


def test_a_context_variable_of_the_subscriber_is_seen_upstream_on_every_pool(pool: Executor) -> None:
    def seen(n: int) -> str:
        return REQUEST.get()

    def seen_by(flow: Flow[int]) -> Flow[Any]:
        return (
            flow.map(seen)
            .subscribe_on(pool)
            .publish_on(pool, prefetch=2)
            .zip_with(
                Flow.range(3).map_parallel(seen, pool),
                Flow.just(1, 2).flat_map(lambda n: Flow.just(n).map(seen).subscribe_on(pool)),
            )
        )

    flow = seen_by(Flow.range(3))
    for name in ("a", "b"):
        context = contextvars.copy_context()
        context.run(REQUEST.set, name)
        found = context.run(lambda: flow.to_list().block(timeout=PATIENCE))
        assert set(found or []) == {(name, name, name)}


def test_waiting_on_the_pool_that_has_to_feed_is_refused() -> None:
    with ThreadPoolExecutor(1) as one:
        flow = Flow.range(3).subscribe_on(one)
        with pytest.raises(RuntimeError, match="which the flow needs"):
            one.submit(flow.block).result(PATIENCE)
        with pytest.raises(RuntimeError, match="which the flow needs"):
            one.submit(lambda: list(Flow.merge(Flow.never(), flow))).result(PATIENCE)

        def allowed() -> Any:
            with blocking_allowed():
                return flow.block(timeout=0.01)

        with pytest.raises(TimeoutError):
            one.submit(allowed).result(PATIENCE)


def test_async_for_gives_the_elements_and_cancels_when_it_is_left(pool: Executor) -> None:
    source = Numbers()

    async def main() -> list[int]:
        elements = []
        async for n in Flow.from_supplier(lambda: source).subscribe_on(pool):
            elements.append(n)
            if n == 2:
                break
        return elements

    assert asyncio.run(main()) == [0, 1, 2]
    wait_until(lambda: source.closed == 1)


@pytest.mark.usefixtures("no_thread_left")
def test_a_coroutine_that_is_cancelled_before_it_begins_is_never_made(dropped: list[Dropped]) -> None:
    loop, held = eventloop.borrow(), threading.Event()

    async def plus(n: int) -> int:
        return n + 1

    try:
        loop.call_soon_threadsafe(held.wait, PATIENCE)  # what follows runs in one turn of the loop
        sink = Sink()
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            Flow.range(1).flat_map(plus).subscribe(sink)
            sink.subscription.cancel()
            held.set()
            wait_until(lambda: [drop.element for drop in dropped] == [0])
            turned = threading.Event()
            loop.call_soon_threadsafe(turned.set)
            assert turned.wait(PATIENCE)
            gc.collect()
    finally:
        eventloop.give_back(loop)
    assert eventloop.wait_until_ended(PATIENCE)
    assert not warned
    assert sink.elements == []


def test_a_cancel_of_the_flow_cancels_its_coroutines_and_its_async_source() -> None:
    ended = threading.Semaphore(0)
    begun = threading.Semaphore(0)

    async def forever(n: int) -> int:
        begun.release()
        try:
            await asyncio.sleep(3600)
        finally:
            ended.release()
        return n

    async def ticks() -> Any:
        try:
            while True:
                yield 1
        finally:
            ended.release()

    sink = Sink()
    Flow.from_async(ticks).flat_map(forever, concurrency=2).subscribe(sink)
    for _ in range(2):
        assert begun.acquire(timeout=PATIENCE)
    sink.subscription.cancel()
    for _ in range(3):
        assert ended.acquire(timeout=PATIENCE)
    wait_until(lambda: not any(thread.name == "reactive-loop" for thread in threading.enumerate()))


INTERRUPTED = """
import signal, sys, threading, time, os
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for what runs in the background
from concurrent.futures import ThreadPoolExecutor
from reactive_runtime import Flow
closed = threading.Event()
interrupt = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
def numbers():
    interrupt.start()
    try:
        n = 0
        while True:
            yield n
            n += 1
    finally:
        closed.set()
pool = ThreadPoolExecutor(2)
flow = Flow.from_supplier(numbers).subscribe_on(pool).publish_on(pool, prefetch=4)
try:
    {sink}
except KeyboardInterrupt:
    interrupt.join()
    assert closed.wait(10)
    pool.shutdown()
    print("closed", [t.name for t in threading.enumerate() if t is not threading.main_thread()])
"""


@pytest.mark.parametrize(
    "sink", ["flow.run()", "flow.block()", "flow.for_each(int)", "list(flow.filter(lambda n: n < 0))"]
)
def test_an_interrupt_in_a_blocking_sink_closes_the_source_and_leaves_no_thread(sink: str) -> None:
    code = INTERRUPTED.replace("{sink}", sink)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "closed []\n", done.stderr


# -- hot sources ----------------------------------------------------------------------------------------------


def test_an_emission_tells_what_became_of_it() -> None:
    hot: PublishProcessor[int] = PublishProcessor(capacity=1)
    assert hot.emit(0) is EmitResult.NO_SUBSCRIBER
    sink = Sink(demand=0)
    hot.subscribe(sink)
    assert [hot.emit(1), hot.emit(2)] == [EmitResult.OK, EmitResult.OVERFLOW]
    hot.on_complete()
    assert hot.emit(3) is EmitResult.TERMINATED
    one: UnicastProcessor[int] = UnicastProcessor()
    handle = one.subscribe(int)
    handle.cancel()
    assert one.emit(1) is EmitResult.CANCELLED
    refused = Sink()
    one.subscribe(refused)
    assert isinstance(refused.error, RejectedError)


def test_late_subscribers_see_a_common_suffix(pool: Executor) -> None:
    with SubmissionPublisher[int](pool, max_buffer=4) as publisher:
        sinks = []
        for n in range(100):
            if n % 20 == 0:
                sinks.append(Sink())
                publisher.subscribe(sinks[-1])
            publisher.submit(n)
    for number, sink in enumerate(sinks):
        assert sink.wait().elements == list(range(20 * number, 100))


def test_an_offer_that_finds_no_room_is_dropped_and_says_so(pool: Executor, dropped: list[Dropped]) -> None:
    publisher: SubmissionPublisher[int] = SubmissionPublisher(pool, max_buffer=1)
    sink = Sink(demand=0)
    publisher.subscribe(sink)
    assert publisher.offer(1) == 1
    asked: list[int] = []
    assert publisher.offer(2, 0.01, on_drop=asked.append) == -1
    assert asked == [2]
    assert publisher.estimate_minimum_demand() == -1
    publisher.close_exceptionally(OSError("over"))
    sink.subscription.request(MAX_DEMAND)
    assert str(sink.wait().error) == "over"
    assert sink.elements == [1]
    with pytest.raises(RuntimeError, match="closed"):
        publisher.submit(3)


# -- control --------------------------------------------------------------------------------------------------


def test_a_paused_flow_asks_for_nothing() -> None:
    valve, probe, sink = Valve(), Probe(Flow.range(9)), Sink(demand=2)
    Flow.from_publisher(probe).pausable(valve).subscribe(sink)
    valve.pause()
    sink.subscription.request(3)
    assert sink.elements == [0, 1]
    valve.resume()
    assert sink.elements == [0, 1, 2, 3, 4]
    sink.subscription.cancel()


def test_a_kill_switch_drains_and_then_fails_what_takes_too_long(pool: Executor) -> None:
    clock, switch, held = VirtualTimeExecutor(), KillSwitch(), threading.Event()
    sink = Sink()
    flow = Flow.never().kill_switch(switch).start_with(1).flat_map(lambda n: Flow.never())
    flow.subscribe(sink)
    over = switch.throw(within=5, clock=clock)
    assert not over.done()
    clock.advance(5)
    assert isinstance(sink.error, TimeoutError)
    assert over.result(PATIENCE) is None
    held.set()


def test_timers_of_a_flow_end_with_it() -> None:
    with ScheduledExecutor() as clock:
        sink = Sink()
        Flow.never().timeout(3600, clock=clock).subscribe(sink)
        sink.subscription.cancel()


# -- ends that need no demand ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "apply",
    [
        lambda flow: flow.handle(lambda item, emit: None),
        lambda flow: flow.flat_map_iterable(lambda item: ()),
        lambda flow: flow.flatten(),
        lambda flow: flow.flatten().map(str).handle(lambda item, emit: emit(item)),
    ],
)
def test_an_operator_that_expands_and_holds_nothing_lets_the_end_through_without_demand(apply: Any) -> None:
    for source in (Flow.empty(), Flow.just().do_on_error(repr), Flow.create(lambda emitter: emitter.complete())):
        sink = Sink(demand=0)
        apply(source).subscribe(sink)
        assert sink.signals[-1] == ("on_complete",)


def test_what_an_operator_that_expands_holds_comes_before_the_end() -> None:
    def two(item: int, emit: Callable[[int], None]) -> None:
        emit(item)
        emit(item + 1)

    sink = Sink(demand=1)
    Flow.just(1).handle(two).subscribe(sink)
    assert not sink.ended.is_set()
    sink.subscription.request(1)
    assert sink.signals[-3:] == [("on_next", 1), ("on_next", 2), ("on_complete",)]


def test_what_handle_is_given_after_its_call_is_an_error() -> None:
    emits: list[Callable[[object], None]] = []

    def late(item: int, emit: Callable[[object], None]) -> None:
        emits.append(emit)
        emits[0](item)

    sink = Sink()
    Flow.range(3).handle(late).subscribe(sink)
    assert sink.elements == [0]
    said = "emit(1) came after the call for 0, which it was given to: emit before that call returns"
    assert isinstance(sink.error, RuntimeError)
    assert str(sink.error).endswith(said)
    with pytest.raises(RuntimeError, match=re.escape("emit('x') came after the call for 1")):
        emits[1]("x")


HUGE = 10**30


@pytest.mark.parametrize(
    "apply",
    [
        lambda flow, pool: flow.batch(HUGE).flatten(),
        lambda flow, pool: flow.window(HUGE).concat_map(lambda window: window),
        lambda flow, pool: flow.take(HUGE).limit_rate(HUGE).retry(HUGE),
        lambda flow, pool: flow.publish_on(pool, prefetch=HUGE),
        lambda flow, pool: flow.on_overflow_buffer(HUGE),
        lambda flow, pool: flow.flat_map(Flow.just, concurrency=HUGE, prefetch=HUGE),
        lambda flow, pool: flow.map_parallel(lambda n: n, executor=pool, concurrency=HUGE, chunk=HUGE),
        lambda flow, pool: flow.rate_limit(HUGE),
        lambda flow, pool: flow.replay(HUGE).ref_count(),
    ],
)
def test_a_number_beyond_those_of_c_is_as_good_as_any(apply: Any, pool: ThreadPoolExecutor) -> None:
    assert apply(Flow.range(3), pool).to_list().block(timeout=PATIENCE) == [0, 1, 2]


def test_sample_completes_with_its_sampler() -> None:
    sources: list[Callable[[VirtualTimeExecutor], Flow[int]]]
    sources = [lambda clock: Flow.never(), lambda clock: Flow.race(Flow.timer(5, clock=clock))]
    for source in sources:
        clock, sink = VirtualTimeExecutor(), Sink()
        source(clock).sample(Flow.timer(4, clock=clock)).subscribe(sink)
        clock.advance(4)
        assert sink.signals[-1] == ("on_complete",)


def test_a_sample_that_waits_is_not_replaced_before_the_next_one() -> None:
    clock, sink, numbers = VirtualTimeExecutor(), Sink(0), PublishProcessor[int]()
    with hooks.captured() as drops:
        numbers.sample(1, clock=clock).subscribe(sink)
        numbers.emit(0)
        clock.advance(1)
        numbers.emit(1)
        sink.subscription.request(1)
        assert sink.elements == [0]
        clock.advance(1)
        numbers.emit(2)
        clock.advance(1)
        sink.subscription.request(1)
        assert sink.elements == [0, 2]
        numbers.on_complete()
    assert sink.end == ("on_complete",)
    assert [drop.element for drop in drops] == [1]


def test_sample_cancels_its_source_with_the_end_of_its_sampler_though_its_last_element_waits() -> None:
    clock, sink, over = VirtualTimeExecutor(), Sink(demand=0), list[str]()
    source: Flow[int] = Flow.create(lambda emitter: emitter.emit(1) and None)
    source.do_finally(over.append).sample(Flow.timer(4, clock=clock)).subscribe(sink)
    clock.advance(4)
    assert over == ["cancel"]
    sink.subscription.request(1)
    assert sink.signals[1:] == [("on_next", 1), ("on_complete",)]
