"""Which clock an operator has that was given none, and how the one works that all flows share."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from sinks import PATIENCE, Sink, wait_until

from reactive_runtime import Flow, KillSwitch, hooks
from reactive_runtime._core.runtime import primitives
from reactive_runtime._executors.shared_clock import SharedClock, Workers
from reactive_runtime.executors import (
    ScheduledExecutor,
    VirtualTimeExecutor,
    blocking_allowed,
    clock_in,
    clock_of,
)
from reactive_runtime.hot import PublishProcessor
from reactive_runtime.testing import StepVerifier

TIMED: dict[str, Callable[..., Flow[Any]]] = {
    "timer": lambda **clock: Flow.timer(2, **clock),
    "interval": lambda **clock: Flow.interval(2, **clock).take(3),
    "delay": lambda **clock: Flow.range(3).delay(2, **clock),
    "timeout": lambda **clock: Flow.never().timeout(2, **clock, fallback=Flow.just("late")),
    "debounce": lambda **clock: Flow.range(3).concat_with(Flow.never()).debounce(2, **clock).take(1),
    "throttle": lambda **clock: Flow.range(3).throttle(2, **clock),
    "buffer_time": lambda **clock: Flow.range(3).concat_with(Flow.never()).buffer_time(2, **clock).take(1),
    "buffer_timeout": lambda **clock: Flow.range(3).concat_with(Flow.never()).buffer_timeout(5, 2, **clock).take(1),
    "rate_limit": lambda **clock: Flow.range(3).rate_limit(1, **clock, per=2),
    "retry_backoff": lambda **clock: (
        Flow.error(OSError()).retry_backoff(3, **clock, first=2, jitter=0).on_error_return(repr)
    ),
    "sample": lambda **clock: Flow.never().start_with(7).sample(Flow.interval(2, **clock)).take(1),
    "sample, seconds": lambda **clock: Flow.never().start_with(7).sample(2, **clock).take(1),
    "delay_subscription": lambda **clock: Flow.range(3).delay_subscription(2, **clock),
    "timestamp": lambda **clock: Flow.range(3).timestamp(**clock),
    "elapsed": lambda **clock: Flow.range(3).elapsed(**clock),
    "window_time": lambda **clock: (
        Flow.range(3).concat_with(Flow.never()).window_time(2, **clock).concat_map(lambda item: item.to_list()).take(1)
    ),
    "window_timeout": lambda **clock: (
        Flow.range(3).concat_with(Flow.never()).window_timeout(5, 2, **clock).concat_map(lambda item: item.to_list())
    ).take(1),
}
SHORT: dict[str, Callable[[], Flow[Any]]] = {
    "timer": lambda: Flow.timer(0.01),
    "interval": lambda: Flow.interval(0.01).take(3),
    "delay": lambda: Flow.range(3).delay(0.01),
    "timeout": lambda: Flow.never().timeout(0.01, fallback=Flow.just("late")),
    "debounce": lambda: Flow.range(3).concat_with(Flow.never()).debounce(0.01).take(1),
    "throttle": lambda: Flow.range(3).throttle(100),
    "buffer_time": lambda: Flow.range(3).concat_with(Flow.never()).buffer_time(0.01).take(1),
    "buffer_timeout": lambda: Flow.range(3).concat_with(Flow.never()).buffer_timeout(5, 0.01).take(1),
    "rate_limit": lambda: Flow.range(3).rate_limit(1, per=0.01),
    "retry_backoff": lambda: Flow.error(OSError()).retry_backoff(3, first=0.01).on_error_return(repr),
    "sample": lambda: Flow.never().start_with(7).sample(Flow.interval(0.01)).take(1),
    "sample, seconds": lambda: Flow.never().start_with(7).sample(0.01).take(1),
    "delay_subscription": lambda: Flow.range(3).delay_subscription(0.01),
    "timestamp": lambda: Flow.range(3).timestamp(),
    "elapsed": lambda: Flow.range(3).elapsed(),
    "window_time": lambda: (
        Flow.range(3).concat_with(Flow.never()).window_time(0.01).concat_map(lambda item: item.to_list()).take(1)
    ),
    "window_timeout": lambda: (
        Flow.range(3).concat_with(Flow.never()).window_timeout(5, 0.01).concat_map(lambda item: item.to_list()).take(1)
    ),
}


def seen(sink: Sink) -> list[Any]:
    return [repr(signal) for signal in sink.signals]


@pytest.mark.parametrize("name", TIMED)
def test_without_a_clock_it_is_that_of_the_context_as_if_it_had_been_given(name: str) -> None:
    given, clock = Sink(), VirtualTimeExecutor()
    TIMED[name](clock=clock).subscribe(given)
    clock.advance(60)
    assert given.end is not None

    found = Sink()
    with clock_of(VirtualTimeExecutor()) as clock:
        TIMED[name]().subscribe(found)
    if name not in ("throttle", "timestamp", "elapsed"):  # they only look at the clock
        assert found.end is None
    clock.advance(60)
    assert seen(found) == seen(given)


@pytest.mark.parametrize("name", SHORT)
def test_without_a_clock_and_a_context_time_is_real(name: str) -> None:
    assert SHORT.keys() == TIMED.keys()
    assert SHORT[name]().to_list().block(timeout=PATIENCE)


def test_the_clock_is_that_of_the_one_who_subscribes_and_not_of_the_one_who_assembles() -> None:
    with clock_of(VirtualTimeExecutor()) as assembling:
        flow = Flow.interval(1).take(1)
    sinks = [Sink(), Sink()]
    clocks = [VirtualTimeExecutor(), VirtualTimeExecutor()]
    for sink, clock in zip(sinks, clocks, strict=True):
        with clock_of(clock):
            flow.subscribe(sink)
    assembling.advance(5)
    assert [sink.elements for sink in sinks] == [[], []]
    clocks[1].advance(5)
    assert [sink.elements for sink in sinks] == [[], [0]]
    clocks[0].advance(5)
    assert [sink.elements for sink in sinks] == [[0], [0]]


def test_a_clock_that_is_given_goes_before_that_of_the_context() -> None:
    given, sink = VirtualTimeExecutor(), Sink()
    with clock_of(VirtualTimeExecutor()) as around:
        Flow.timer(1, clock=given).subscribe(sink)
    around.advance(5)
    assert sink.elements == []
    given.advance(5)
    assert sink.elements == [0]


def test_the_innermost_block_counts_and_the_one_around_it_is_there_again() -> None:
    outer, inner = VirtualTimeExecutor(), VirtualTimeExecutor()
    before = clock_in()
    with clock_of(outer):
        with clock_of(inner) as clock:
            assert clock is inner
            assert clock_in() is inner
        assert clock_in() is outer
    assert clock_in() is before
    assert isinstance(before, SharedClock)


def test_the_clock_crosses_boundaries_and_reaches_what_is_made_of_elements() -> None:
    sink = Sink()
    with ThreadPoolExecutor(2) as pool:
        made = threading.Semaphore(0)

        def later(n: int) -> Flow[int]:
            return Flow.timer(60).map(lambda _: n).do_on_subscribe(made.release)

        with clock_of(VirtualTimeExecutor()) as clock:
            flow = Flow.range(3).subscribe_on(pool).publish_on(pool).flat_map(later).publish_on(pool)
            flow.subscribe(sink)
        for _ in range(3):
            assert made.acquire(timeout=PATIENCE)
        while not sink.ended.wait(0.01):  # a timer may not have been set yet when the clock moves
            clock.advance(60)
    assert sorted(sink.elements) == [0, 1, 2]


@pytest.mark.parametrize("clock", [None, 3, VirtualTimeExecutor, ThreadPoolExecutor(1)])
def test_what_is_no_clock_is_refused(clock: Any) -> None:
    with pytest.raises(TypeError, match="clock_of: an executor with a clock is needed"), clock_of(clock):
        pass


@pytest.mark.parametrize("name", [name for name in TIMED if name != "sample"])
def test_what_is_no_clock_is_refused_by_each_operator(name: str) -> None:
    operator = name.partition(",")[0]
    with pytest.raises(TypeError, match=rf"^{operator}: an executor with a clock is needed"):
        TIMED[name](clock=3)


# -- the shared clock ------------------------------------------------------------------------------------------


def test_a_subscriber_that_keeps_its_thread_holds_up_no_other_timer() -> None:
    release, kept = threading.Event(), threading.Event()

    def keep(sink: Sink, element: Any) -> None:
        kept.set()
        release.wait()

    slow, quick = Sink(then=keep), Sink()
    Flow.interval(0.001).take(1).subscribe(slow)
    try:
        assert kept.wait(PATIENCE)
        Flow.interval(0.001).take(5).subscribe(quick)
        assert quick.wait().elements == [0, 1, 2, 3, 4]
    finally:
        release.set()
    assert slow.wait().elements == [0]


def test_no_users_code_runs_on_the_thread_that_waits_for_timers() -> None:
    sink = Sink()
    Flow.interval(0.001).take(5).subscribe(sink)
    assert sink.wait().threads
    assert "reactive-timers" not in sink.threads
    assert all(name.startswith("reactive-timers-") for name in sink.threads)


def test_with_an_executor_it_goes_on_there() -> None:
    sink, behind = Sink(), Sink()
    with ThreadPoolExecutor(1, "mine") as pool:
        Flow.interval(0.001).take(3).subscribe_on(pool).subscribe(sink)
        Flow.range(3).delay(0.001).publish_on(pool).subscribe(behind)
        assert sink.wait().elements == behind.wait().elements == [0, 1, 2]
    assert sink.threads == behind.threads == {"mine_0"}


def test_waiting_on_a_thread_of_the_shared_clock_is_refused_unless_it_is_allowed() -> None:
    waited = Flow.timer(0.001).map(lambda _: Flow.timer(0.001).block(timeout=PATIENCE))
    with pytest.raises(RuntimeError, match=r"belongs to the shared clock, which the flow needs for `timer\(0.001 s\)`"):
        waited.block(timeout=PATIENCE)

    def allowed(_: int) -> Any:
        with blocking_allowed():
            return Flow.timer(0.001).block(timeout=PATIENCE)

    assert Flow.timer(0.001).map(allowed).block(timeout=PATIENCE) == 0


def test_waiting_on_the_thread_of_the_contexts_clock_is_refused() -> None:
    flow = Flow.range(3).delay(0.001)

    def waits() -> Any:
        with clock_of(clock):
            return flow.block(timeout=PATIENCE)

    with ScheduledExecutor() as clock:
        with pytest.raises(RuntimeError, match="which the flow needs for `delay"):
            clock.submit(waits).result(PATIENCE)
        assert clock.submit(flow.block, timeout=PATIENCE).result(PATIENCE) == 2, "here it has the shared clock"


def test_a_kill_switch_has_the_clock_of_the_context_too() -> None:
    switch, sink = KillSwitch(), Sink()
    hold, begun = threading.Event(), threading.Event()

    def slow(n: int) -> int:
        begun.set()
        hold.wait(PATIENCE)
        return n

    with ThreadPoolExecutor(1) as pool:
        Flow.range(2).subscribe_on(pool).kill_switch(switch).map(slow).subscribe(sink)
        assert begun.wait(PATIENCE)
        with clock_of(VirtualTimeExecutor()) as clock:
            over = switch.throw(within=5)
        assert not over.done()
        clock.advance(5)
        hold.set()
        sink.wait()
    assert sink.end is not None
    assert isinstance(sink.end[1], TimeoutError)


def test_a_kill_switch_without_a_clock_has_the_shared_one() -> None:
    switch, sink = KillSwitch(), Sink()
    Flow.range(3).kill_switch(switch).delay(1000).subscribe(sink)
    switch.throw(within=0.001)
    sink.wait()
    assert sink.end is not None
    assert isinstance(sink.end[1], TimeoutError)


# -- the threads behind it -------------------------------------------------------------------------------------


def test_each_thread_is_used_and_calls_that_are_more_than_they_are_all_made() -> None:
    workers, together = Workers("many"), threading.Barrier(Workers.MOST)
    made, threads = threading.Semaphore(0), set[str]()

    def call() -> None:
        threads.add(threading.current_thread().name)
        together.wait(PATIENCE)
        made.release()

    for _ in range(20 * Workers.MOST):
        workers.take(call)
    for _ in range(20 * Workers.MOST):
        assert made.acquire(timeout=PATIENCE)
    assert len(threads) == Workers.MOST
    assert not workers.runs_here()


def test_where_the_machine_gives_no_thread_the_call_is_made_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    class Refused(threading.Thread):
        def start(self) -> None:
            raise RuntimeError("can't start new thread")

    workers, calls = Workers("none"), list[str]()
    monkeypatch.setattr(primitives, "Thread", Refused)
    workers.take(lambda: calls.append(threading.current_thread().name))
    assert calls == [threading.current_thread().name]


def test_a_clock_that_got_no_thread_for_one_task_gets_one_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    class Refused(threading.Thread):
        def start(self) -> None:
            raise RuntimeError("can't start new thread")

    with ScheduledExecutor() as clock:
        sink = Sink()
        with monkeypatch.context() as refusing:
            refusing.setattr(primitives, "Thread", Refused)
            Flow.timer(0, clock=clock).subscribe(sink)
        assert sink.end is not None
        assert "will not run a stream's timer: can't start new thread" in str(sink.end[1])
        assert Flow.timer(0, clock=clock).block(timeout=PATIENCE) == 0


def test_where_there_is_one_thread_and_no_more_it_makes_the_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    workers, release, done = Workers("one"), threading.Event(), threading.Event()
    begun = threading.Event()

    def hold() -> None:
        begun.set()
        release.wait(PATIENCE)

    workers.take(hold)
    assert begun.wait(PATIENCE)
    monkeypatch.setattr(Workers, "_begun", lambda _: False)
    workers.take(done.set)
    assert not done.is_set()
    release.set()
    assert done.wait(PATIENCE)


def test_what_a_call_raises_goes_to_the_hook_and_the_thread_goes_on(dropped: list[hooks.Dropped]) -> None:
    workers, done = Workers("raising"), threading.Event()

    def broken() -> None:
        raise OSError("mine")

    workers.take(broken)
    workers.take(done.set)
    assert done.wait(PATIENCE)
    wait_until(lambda: len(dropped) > 0)  # on another thread, maybe
    assert [repr(drop.error) for drop in dropped] == ["OSError('mine')"]


# -- a timer that begins anew ----------------------------------------------------------------------------------


class Late:
    """A clock whose tasks are on their way, and can't be taken back, when they are due."""

    def __init__(self) -> None:
        self.tasks: list[Callable[[], object]] = []

    def now(self) -> float:
        return 0.0

    def schedule(self, delay: float, fn: Callable[[], object], /) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()
        self.tasks.append(fn)
        return future


def test_a_wake_up_that_was_on_its_way_when_the_timer_began_anew_does_not_count() -> None:
    clock, source, sink = Late(), PublishProcessor[int](), Sink()
    source.debounce(1, clock=clock).subscribe(sink)
    source.emit(1)
    source.emit(2)
    first, second = clock.tasks
    first()
    assert sink.elements == [], "2 has not had its silence"
    second()
    assert sink.elements == [2]


# -- virtual time ----------------------------------------------------------------------------------------------


def test_three_tenths_of_a_second_have_three_ticks_of_a_tenth() -> None:
    verifier = StepVerifier(Flow.interval(0.1).take(3), clock=VirtualTimeExecutor())
    verifier.then_wait(0.3).expect_next(0, 1, 2).expect_complete().verify()


DECIMALS = st.integers(1, 10**6).map(lambda n: Decimal(n) / 1000) | st.decimals("0.000001", 5, places=6)


WAITS = st.lists(st.tuples(st.integers(0, 20), st.just(Decimal(0)) | DECIMALS), max_size=8)
"""Each of so many periods, and a bit: most end where a tick is due."""


@example(Decimal("0.1"), [(3, Decimal(0))], 0)
@given(DECIMALS, WAITS, st.sampled_from([0, 0.1, 1.7e9]))
def test_ticks_are_as_many_as_the_exact_quotient_says(
    period: Decimal, waits: list[tuple[int, Decimal]], start: float
) -> None:
    clock, sink, passed = VirtualTimeExecutor(start), Sink(), Decimal(0)
    assume(sum(periods * period + more for periods, more in waits) / period < 500)
    Flow.interval(float(period), clock=clock).subscribe(sink)
    for periods, more in waits:
        wait = periods * period + more
        clock.advance(float(wait))
        passed += wait
        assert len(sink.elements) == passed // period
    sink.subscription.cancel()


@example([Decimal("0.1"), Decimal("0.2")], 0)
@example([Decimal("0.1")], 1.7e9)
@given(st.lists(DECIMALS, min_size=1, max_size=8), st.sampled_from([0, 0.3, 1.7e9]))
def test_what_is_scheduled_is_due_when_as_many_waits_have_passed(waits: list[Decimal], start: float) -> None:
    clock, ran = VirtualTimeExecutor(start), list[int]()
    clock.schedule(float(sum(waits)), ran.append, 1)
    clock.schedule(float(sum(waits)) + 1e-9, ran.append, 2)
    for wait in waits[:-1]:
        clock.advance(float(wait))
    clock.advance(float(waits[-1]) - 1e-9)
    assert ran == []
    clock.advance(1e-9)
    assert ran == [1]
    clock.advance(1e-9)
    assert ran == [1, 2]


ON_TIME: dict[str, tuple[Callable[[Flow[Any]], Flow[Any]], list[Any]]] = {
    "delay": (lambda flow: flow.delay(0.2), [0]),
    "debounce": (lambda flow: flow.concat_with(Flow.never()).debounce(0.2), [0]),
    "buffer_timeout": (lambda flow: flow.concat_with(Flow.never()).buffer_timeout(9, 0.2), [[0]]),
    "throttle": (lambda flow: flow.concat_with(Flow.timer(0.2)).throttle(0.2), [0, 0]),
    "rate_limit": (lambda flow: flow.concat_with(Flow.just(1)).rate_limit(1, per=0.2), [0, 1]),
    "timeout": (lambda flow: flow.concat_with(Flow.never()).timeout(0.2, fallback=Flow.just("late")), [0, "late"]),
}


@pytest.mark.parametrize("start", [0, 0.7, 1.7e9])
@pytest.mark.parametrize("name", ON_TIME)
def test_two_tenths_after_one_tenth_are_three_tenths(name: str, start: float) -> None:
    """As floats they are more than 0.3, and at a time of day of today they differ from it by more than a nanosecond."""
    operator, expected = ON_TIME[name]
    sink = Sink()
    with clock_of(VirtualTimeExecutor(start)) as clock:
        operator(Flow.timer(0.1)).subscribe(sink)
    clock.advance(0.1)
    clock.advance(0.2)
    assert sink.elements == expected
    if sink.end is None:
        sink.subscription.cancel()


@pytest.mark.parametrize(
    ("seconds", "ns"),
    [(0, 0), (0.0, 0), (1e-12, 1), (1.4e-9, 1), (0.1, 10**8), (2**40, 2**40 * 10**9), (1e15 + 0.5, 10**24 + 5 * 10**8)],
)
def test_seconds_are_the_nearest_nanoseconds_and_a_delay_is_one_at_least(seconds: float, ns: int) -> None:
    clock = VirtualTimeExecutor()
    clock.advance(seconds)
    assert clock.now_ns() == ns


def test_a_clock_of_another_kind_counts_by_its_seconds() -> None:
    class Plain:
        def __init__(self) -> None:
            self.inner = VirtualTimeExecutor()
            self.now, self.schedule = self.inner.now, self.inner.schedule

    clock, sink = Plain(), Sink()
    Flow.interval(0.1, clock=clock).take(3).subscribe(sink)
    clock.inner.advance(0.3)
    assert sink.elements == [0, 1, 2]


@pytest.mark.parametrize(("seconds", "error"), [(-1, ValueError), (float("nan"), ValueError), ("1", TypeError)])
def test_a_clock_is_advanced_by_a_number_of_seconds(seconds: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="advance: seconds must be"):
        VirtualTimeExecutor().advance(seconds)


def test_a_timer_beyond_the_longest_wait_holds_up_no_other() -> None:
    """`threading` refuses to wait for longer than `TIMEOUT_MAX`; the clock's thread ended with that error."""
    clock = ScheduledExecutor()
    try:
        far = clock.schedule(2 * threading.TIMEOUT_MAX, lambda: None)
        clock.schedule(0.001, lambda: None).result(PATIENCE)  # the thread has looked at the far one
        assert clock.schedule(0.001, lambda: 7).result(PATIENCE) == 7
        assert not far.done()
    finally:
        clock.shutdown(cancel_futures=True)


def test_a_block_may_have_a_limit_beyond_the_longest_wait() -> None:
    assert Flow.timer(0.01).block(timeout=2 * threading.TIMEOUT_MAX) == 0
