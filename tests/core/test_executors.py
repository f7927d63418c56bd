"""The four executors: what they share, and what each is for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor
from typing import Any

import pytest
from sinks import PATIENCE, Sink

from reactive_runtime import Flow
from reactive_runtime.errors import RejectedError
from reactive_runtime.executors import ScheduledExecutor, SerialExecutor, TrampolineExecutor, VirtualTimeExecutor

KINDS = ["serial", "trampoline", "scheduled", "virtual time"]


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as executor:
        yield executor


class Subject:
    """An executor, and how to let its tasks run."""

    def __init__(self, kind: str, pool: Executor) -> None:
        self.kind = kind
        self.executor: Executor
        self.settle: Callable[[], object] = lambda: None
        if kind == "serial":
            self.executor = SerialExecutor(pool)
        elif kind == "trampoline":
            self.executor = TrampolineExecutor()
        elif kind == "scheduled":
            self.executor = ScheduledExecutor()
        else:
            clock = VirtualTimeExecutor()
            self.executor = clock
            self.settle = clock.advance


@pytest.fixture(params=KINDS)
def subject(request: pytest.FixtureRequest, pool: Executor) -> Iterator[Subject]:
    subject = Subject(request.param, pool)
    yield subject
    subject.executor.shutdown(wait=False, cancel_futures=True)


# -- what all four share --------------------------------------------------------------------------------------


def test_a_result_is_the_futures(subject: Subject) -> None:
    future = subject.executor.submit(divmod, 7, 2)
    subject.settle()
    assert future.result(PATIENCE) == (3, 1)


def test_what_a_task_raises_is_the_futures_and_the_next_task_runs(subject: Subject) -> None:
    broken, sound = subject.executor.submit(int, "x"), subject.executor.submit(int, "1")
    subject.settle()
    assert isinstance(broken.exception(PATIENCE), ValueError)
    assert sound.result(PATIENCE) == 1


def test_tasks_run_in_the_order_of_submission(subject: Subject) -> None:
    ran: list[int] = []
    futures = [subject.executor.submit(ran.append, n) for n in range(500)]
    subject.settle()
    futures[-1].result(PATIENCE)
    assert ran == list(range(500))


def test_a_task_submitted_by_a_task_runs_after_it(subject: Subject) -> None:
    ran: list[str] = []
    inner: list[Future[None]] = []

    def outer() -> None:
        inner.append(subject.executor.submit(ran.append, "inner"))
        ran.append("outer")

    future = subject.executor.submit(outer)
    subject.settle()
    future.result(PATIENCE)
    inner[0].result(PATIENCE)
    assert ran == ["outer", "inner"]


def test_submit_after_shutdown_is_a_runtime_error(subject: Subject) -> None:
    subject.executor.shutdown()
    with pytest.raises(RuntimeError, match="after shutdown"):
        subject.executor.submit(int)


def test_shutdown_twice_does_nothing_more(subject: Subject) -> None:
    subject.executor.shutdown()
    subject.executor.shutdown(wait=True, cancel_futures=True)


def test_shutdown_from_inside_a_task_does_not_wait_for_itself(subject: Subject) -> None:
    future = subject.executor.submit(subject.executor.shutdown)
    subject.settle()
    assert future.result(PATIENCE) is None


def test_a_cancelled_future_does_not_run(subject: Subject) -> None:
    ran: list[str] = []
    held = hold(subject)
    future = subject.executor.submit(ran.append, "cancelled")
    if subject.kind == "trampoline":  # has run before submit returned
        assert not future.cancel()
        return
    assert future.cancel()
    held.set()
    last = subject.executor.submit(ran.append, "last")
    subject.settle()
    last.result(PATIENCE)
    assert ran == ["last"]


def test_shutdown_can_cancel_what_has_not_begun(subject: Subject) -> None:
    held = hold(subject)
    if subject.kind == "trampoline":
        waiting: list[Future[int]] = []

        def task() -> None:
            waiting.append(subject.executor.submit(int))
            subject.executor.shutdown(cancel_futures=True)

        subject.executor.submit(task).result(PATIENCE)
        assert waiting[0].cancelled()
        return
    futures = [subject.executor.submit(int) for _ in range(3)]
    subject.executor.shutdown(wait=False, cancel_futures=True)
    held.set()
    assert all(future.cancelled() for future in futures)


def test_shutdown_waits_for_the_tasks_there_are(subject: Subject) -> None:
    futures = [subject.executor.submit(int, n) for n in range(100)]
    subject.settle()
    subject.executor.shutdown(wait=True)
    assert [future.done() for future in futures] == [True] * 100


def hold(subject: Subject) -> threading.Event:
    """Keep the executor's thread busy until the event is set."""
    held, busy = threading.Event(), threading.Event()
    if subject.kind in ("serial", "scheduled"):

        def keep() -> None:
            busy.set()
            held.wait(PATIENCE)

        subject.executor.submit(keep)
        busy.wait(PATIENCE)
    return held


# -- serial ---------------------------------------------------------------------------------------------------


def test_serial_tasks_never_overlap_on_a_pool_of_many_threads() -> None:
    inside = threading.Lock()
    overlaps: list[int] = []

    def task(n: int) -> None:
        if not inside.acquire(blocking=False):
            overlaps.append(n)
        else:
            inside.release()

    with ThreadPoolExecutor(8) as pool, SerialExecutor(pool) as serial:
        barrier = threading.Barrier(4)

        def submit() -> None:
            barrier.wait(PATIENCE)
            for n in range(500):
                serial.submit(task, n)

        threads = [threading.Thread(target=submit) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
    assert overlaps == []


def test_serial_executors_give_the_thread_back_after_a_batch() -> None:
    """On a pool of one, the second serial executor gets its turn while the first has work left."""
    ran: list[str] = []
    with ThreadPoolExecutor(1) as pool:
        held = threading.Event()
        pool.submit(held.wait, PATIENCE)
        one, two = SerialExecutor(pool), SerialExecutor(pool)
        for _ in range(200):
            one.submit(ran.append, "one")
        two.submit(ran.append, "two")
        held.set()
        one.shutdown()
        two.shutdown()
    assert len(ran) == 201
    assert ran.index("two") < 200


def test_serial_submit_to_a_pool_that_was_shut_down_is_rejected() -> None:
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    serial = SerialExecutor(pool)
    for _ in range(2):
        with pytest.raises(RejectedError):
            serial.submit(int)
    serial.shutdown()


def test_serial_tasks_that_wait_when_the_pool_goes_fail_and_do_not_hang() -> None:
    pool = ThreadPoolExecutor(1)
    serial = SerialExecutor(pool)
    held, busy = threading.Event(), threading.Event()

    def keep() -> None:
        busy.set()
        held.wait(PATIENCE)

    pool.submit(keep)
    busy.wait(PATIENCE)
    waiting = [serial.submit(int) for _ in range(3)]
    pool.shutdown(wait=False, cancel_futures=True)
    held.set()
    assert all(isinstance(future.exception(PATIENCE), RejectedError) for future in waiting)
    serial.shutdown()
    pool.shutdown()


def test_serial_tasks_left_after_a_batch_fail_when_the_pool_takes_no_more() -> None:
    pool = ThreadPoolExecutor(1)
    serial = SerialExecutor(pool)
    held, busy = threading.Event(), threading.Event()

    def keep() -> None:
        busy.set()
        held.wait(PATIENCE)

    serial.submit(keep)
    busy.wait(PATIENCE)
    futures = [serial.submit(int) for _ in range(200)]
    pool.shutdown(wait=False)
    held.set()
    ends = [future.exception(PATIENCE) for future in futures]
    assert ends[0] is None
    assert isinstance(ends[-1], RejectedError)
    serial.shutdown()


def test_serial_over_an_executor_that_runs_tasks_where_they_are_submitted_needs_no_stack() -> None:
    class Inline(Executor):
        def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
            future: Future[Any] = Future()
            future.set_result(fn(*args, **kwargs))
            return future

    serial = SerialExecutor(Inline())
    ran: list[int] = []

    def task(n: int) -> None:
        ran.append(n)
        if n:
            serial.submit(task, n - 1)

    serial.submit(task, 100_000)
    assert len(ran) == 100_001


# -- trampoline -----------------------------------------------------------------------------------------------


def test_trampoline_needs_no_stack() -> None:
    here, ran = TrampolineExecutor(), []

    def task(n: int) -> None:
        ran.append(n)
        if n:
            here.submit(task, n - 1)

    here.submit(task, 100_000)
    assert len(ran) == 100_001


def test_trampoline_of_another_thread_is_another_trampoline() -> None:
    here = TrampolineExecutor()
    names: list[str] = []

    def outer() -> None:
        thread = threading.Thread(
            name="other", target=lambda: here.submit(lambda: names.append(threading.current_thread().name))
        )
        thread.start()
        thread.join(PATIENCE)
        names.append("outer")

    here.submit(outer)
    assert names == ["other", "outer"]


def test_trampoline_lets_an_interrupt_through_and_cancels_what_waits() -> None:
    here = TrampolineExecutor()
    waiting: list[Future[int]] = []

    def task() -> None:
        waiting.append(here.submit(int))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        here.submit(task)
    with pytest.raises(CancelledError):
        waiting[0].result(PATIENCE)
    assert here.submit(int).result(PATIENCE) == 0


# -- timers ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delay", [-1, float("nan"), float("inf")])
@pytest.mark.parametrize("kind", [ScheduledExecutor, VirtualTimeExecutor])
def test_a_delay_out_of_range_is_a_value_error(kind: Callable[[], Any], delay: float) -> None:
    with pytest.raises(ValueError, match="delay must be a number of seconds from 0"):
        kind().schedule(delay, int)


@pytest.mark.parametrize("delay", ["1", None, True])
@pytest.mark.parametrize("kind", [ScheduledExecutor, VirtualTimeExecutor])
def test_a_delay_that_is_no_number_is_a_type_error(kind: Callable[[], Any], delay: Any) -> None:
    with pytest.raises(TypeError, match="delay must be a number"):
        kind().schedule(delay, int)


class Held(ScheduledExecutor):
    """Its time stands still until it is let run."""

    begin = time.monotonic()
    runs = False

    def now(self) -> float:
        return super().now() if self.runs else self.begin


def test_timers_run_when_due_whatever_the_order_of_scheduling() -> None:
    ran: list[str] = []
    with Held() as timers:
        timers.schedule(0.05, ran.append, "third")
        timers.schedule(0.03, ran.append, "second")
        timers.schedule(0.01, ran.append, "first")
        timers.runs = True
    assert ran == ["first", "second", "third"]


def test_a_timer_that_is_due_earlier_wakes_a_thread_that_waits_for_a_later_one() -> None:
    with ScheduledExecutor() as timers:
        late = timers.schedule(3600, int)
        assert timers.schedule(0, int, "7").result(PATIENCE) == 7
        late.cancel()


def test_cancelled_timers_are_forgotten() -> None:
    clock = VirtualTimeExecutor()
    kept = clock.schedule(7200, int)
    for _ in range(10_000):
        clock.schedule(3600, int).cancel()
    assert len(clock._timers) < 10
    clock.advance(7200)
    assert kept.done()


def test_the_timer_thread_ends_with_shutdown(no_thread_left: None) -> None:
    timers = ScheduledExecutor()
    timers.schedule(3600, int)
    timers.submit(int).result(PATIENCE)
    timers.shutdown(cancel_futures=True)


def test_virtual_time_stands_still_unless_it_is_advanced() -> None:
    clock, ran = VirtualTimeExecutor(start=100), []
    clock.schedule(10, lambda: ran.append(clock.now()))
    clock.advance(9.5)
    assert (ran, clock.now()) == ([], 109.5)
    clock.advance(0.5)
    assert ran == [110]


def test_virtual_time_runs_what_is_scheduled_on_the_way() -> None:
    clock, ran = VirtualTimeExecutor(), []

    def tick(n: int) -> None:
        ran.append((n, clock.now()))
        clock.schedule(2, tick, n + 1)

    clock.schedule(2, tick, 0)
    clock.advance(7)
    assert ran == [(0, 2), (1, 4), (2, 6)]
    assert clock.now() == 7


def test_virtual_time_runs_ties_in_order_of_submission() -> None:
    clock = VirtualTimeExecutor()
    ran: list[int] = []
    for n in range(5):
        clock.schedule(1, ran.append, n)
    clock.advance(1)
    assert ran == [0, 1, 2, 3, 4]


def test_virtual_time_cannot_be_advanced_from_inside_a_task() -> None:
    clock = VirtualTimeExecutor()
    future = clock.schedule(1, clock.advance, 1)
    clock.advance(1)
    assert "moving already" in str(future.exception(PATIENCE))
    clock.advance(1)


@pytest.mark.parametrize("how", ["cancel", "shutdown"])
def test_a_task_that_is_cancelled_in_its_queue_logs_nothing(
    how: str, caplog: pytest.LogCaptureFixture, dropped: list[Any]
) -> None:
    """The callback of a future may not raise: `concurrent.futures` only logs it."""
    go = threading.Event()
    pool = ThreadPoolExecutor(1)
    pool.submit(go.wait)
    sink = Sink()
    Flow.just(1).flat_map(lambda n: Flow.from_callable(lambda: n).subscribe_on(pool)).subscribe(sink)
    try:
        if how == "cancel":
            sink.subscription.cancel()
        pool.shutdown(wait=False, cancel_futures=True)
        if how == "shutdown":
            assert isinstance(sink.wait().error, RejectedError)
    finally:
        go.set()
        pool.shutdown()
    assert caplog.records == []
