"""Waits that end before the element comes: nothing is lost, and the flow goes on."""

from __future__ import annotations

import asyncio
import gc
import itertools
import logging
import math
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest
from sinks import PATIENCE, wait_until

from reactive_runtime import AsyncIteration, Flow, Iteration
from reactive_runtime._operators.sinks import waiting as _waiting
from reactive_runtime.executors import VirtualTimeExecutor, clock_of
from reactive_runtime.hooks import Dropped
from reactive_runtime.hot import SubmissionPublisher
from reactive_runtime.subscribers import BufferedSubscriber
from reactive_runtime.testing import StepVerifier, TestPublisher


@pytest.fixture
def source() -> TestPublisher[int]:
    return TestPublisher()


def loop_over(source: TestPublisher[int], prefetch: int = 4) -> Iteration[int]:
    return Flow.from_publisher(source).iterate(prefetch=prefetch)


# -- `next` of a loop -----------------------------------------------------------------------------------------------


def test_a_late_element_comes_at_the_next_call(source: TestPublisher[int]) -> None:
    elements = loop_over(source)
    for n in range(3):
        with pytest.raises(TimeoutError, match=r"^next: no element came in 0.01 s; it waited for .*The flow goes on$"):
            elements.next(timeout=0.01)
        source.emit(n)
        assert elements.next(timeout=PATIENCE) == n
    source.complete()
    with pytest.raises(StopIteration):
        elements.next(timeout=PATIENCE)
    with pytest.raises(StopIteration):
        elements.next(timeout=0)


def test_a_late_call_asks_for_no_further_element(source: TestPublisher[int]) -> None:
    elements = loop_over(source, prefetch=1)
    for _ in range(5):
        with pytest.raises(TimeoutError):
            elements.next(timeout=0)
    assert source.demand == 1
    elements.close()


def test_what_is_there_is_taken_without_a_wait(source: TestPublisher[int]) -> None:
    elements = loop_over(source)
    with pytest.raises(TimeoutError):
        elements.next(timeout=0)  # subscribes
    source.emit(1, 2)
    assert [elements.next(timeout=0), elements.next(timeout=0)] == [1, 2]
    elements.close()


def test_a_loop_and_next_take_turns(source: TestPublisher[int]) -> None:
    elements = loop_over(source)
    with pytest.raises(TimeoutError):
        elements.next(timeout=0)
    source.emit(1, 2, 3, 4)
    assert elements.next(timeout=0) == 1
    for n in elements:
        assert n == 2
        break
    assert next(elements) == 3
    source.complete()
    assert list(elements) == [4]


def test_an_error_ends_the_loop_once(source: TestPublisher[int]) -> None:
    elements = loop_over(source)
    with pytest.raises(TimeoutError):
        elements.next(timeout=0)
    source.fail(OSError("broken"))
    with pytest.raises(OSError, match="broken"):
        elements.next(timeout=PATIENCE)
    with pytest.raises(StopIteration):
        elements.next(timeout=0)


def test_a_loop_that_is_closed_while_late_cancels(source: TestPublisher[int], dropped: list[Dropped]) -> None:
    elements = loop_over(source)
    with pytest.raises(TimeoutError):
        elements.next(timeout=0)
    source.emit(1, 2)
    elements.close()
    assert source.cancelled
    assert [drop.element for drop in dropped] == [1, 2]


def test_a_loop_that_is_freed_while_late_cancels(source: TestPublisher[int], dropped: list[Dropped]) -> None:
    elements = loop_over(source)
    with pytest.raises(TimeoutError):
        elements.next(timeout=0)
    del elements
    gc.collect()
    wait_until(lambda: source.cancelled == 1)


def test_a_flow_that_runs_here_is_never_late() -> None:
    elements = Flow.range(2).map(lambda n: n).iterate()
    assert [elements.next(timeout=0), elements.next(timeout=0)] == [0, 1]
    with pytest.raises(StopIteration):
        elements.next(timeout=0)


@pytest.mark.parametrize(("wrong", "error"), [(-1, ValueError), (float("nan"), ValueError), ("1", TypeError)])
def test_a_wrong_limit_is_refused(wrong: Any, error: type[Exception], source: TestPublisher[int]) -> None:
    with pytest.raises(error, match=r"^next: timeout must be a number of seconds"):
        loop_over(source).next(timeout=wrong)


# -- `anext` of an asynchronous loop --------------------------------------------------------------------------------


async def cancelled_before(element: AsyncIteration[int], source: TestPublisher[int]) -> None:
    """While it waits, long before the element."""
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(anext(element), 0.005)
    source.emit(7)


async def cancelled_with(element: AsyncIteration[int], source: TestPublisher[int]) -> None:
    """The element has come, and has woken the task, which has not run since."""
    task = asyncio.ensure_future(anext(element))
    await asyncio.sleep(0.005)
    source.emit(7)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def cancelled_after_wake_up(element: AsyncIteration[int], source: TestPublisher[int]) -> None:
    """The event loop has set the event; the task would run next."""
    task = asyncio.ensure_future(anext(element))
    await asyncio.sleep(0.005)
    source.emit(7)
    loop = asyncio.get_running_loop()
    loop.call_soon(task.cancel)
    await asyncio.gather(task, return_exceptions=True)
    if not task.cancelled():  # it had taken the element already: then it has returned it
        assert task.result() == 7
        source.emit(7)


async def cancelled_twice(element: AsyncIteration[int], source: TestPublisher[int]) -> None:
    for _ in range(2):
        await cancelled_before_emission(element)
    source.emit(7)


async def cancelled_before_emission(element: AsyncIteration[int]) -> None:
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(anext(element), 0.001)


async def cancelled_before_it_began(element: AsyncIteration[int], source: TestPublisher[int]) -> None:
    await cancelled_before_emission(element)  # subscribes
    task = asyncio.ensure_future(anext(element))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    source.emit(7)


MOMENTS: list[Callable[[AsyncIteration[int], TestPublisher[int]], Any]] = [
    cancelled_before,
    cancelled_with,
    cancelled_after_wake_up,
    cancelled_twice,
    cancelled_before_it_began,
]


@pytest.mark.parametrize("moment", MOMENTS, ids=lambda moment: moment.__name__)
def test_a_cancelled_anext_loses_nothing(moment: Any, source: TestPublisher[int]) -> None:
    async def main() -> list[int]:
        elements = Flow.from_publisher(source).iterate_async(prefetch=4)
        await moment(elements, source)
        source.emit(8)
        source.complete()
        return [n async for n in elements]

    assert asyncio.run(main()) == [7, 8]
    assert not source.cancelled


def test_cancels_that_race_with_elements_lose_nothing() -> None:
    async def main() -> list[int]:
        got: list[int] = []
        elements = Flow.interval(0.0005, overflow="buffer").take(300).iterate_async()
        while True:
            try:
                got.append(await asyncio.wait_for(anext(elements), 0.0005))
            except TimeoutError:
                continue
            except StopAsyncIteration:
                return got

    assert asyncio.run(main()) == list(range(300))


def test_aclose_ends_the_flow_and_may_be_called_again(source: TestPublisher[int], dropped: list[Dropped]) -> None:
    async def main() -> None:
        elements = Flow.from_publisher(source).iterate_async(prefetch=4)
        await cancelled_before_emission(elements)
        source.emit(1, 2)
        await elements.aclose()
        await elements.aclose()
        with pytest.raises(StopAsyncIteration):
            await anext(elements)

    asyncio.run(main())
    assert source.cancelled
    assert [drop.element for drop in dropped] == [1, 2]


def test_two_waits_at_once_are_an_error_and_lose_nothing(source: TestPublisher[int]) -> None:
    async def main() -> list[int]:
        elements = Flow.from_publisher(source).iterate_async()
        first = asyncio.ensure_future(anext(elements))
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="another task waits for the next element already"):
            await anext(elements)
        with pytest.raises(RuntimeError, match="aclose: a task waits for the next element"):
            await elements.aclose()
        source.emit(1, 2)
        source.complete()
        return [await first, *[n async for n in elements]]

    assert asyncio.run(main()) == [1, 2]


def test_another_event_loop_is_an_error_and_loses_nothing(source: TestPublisher[int]) -> None:
    elements = Flow.from_publisher(source).iterate_async()
    loop = asyncio.new_event_loop()
    try:
        loop.run_until_complete(cancelled_before_emission(elements))
        with pytest.raises(RuntimeError, match="began on another event loop"):
            asyncio.run(anext(elements))
        source.emit(1)
        assert loop.run_until_complete(anext(elements)) == 1
        loop.run_until_complete(elements.aclose())
    finally:
        loop.close()


@pytest.mark.parametrize("loop_is", ["open", "closed"])
def test_an_async_loop_that_is_freed_cancels(loop_is: str, source: TestPublisher[int]) -> None:
    kept: list[Any] = []

    async def main() -> None:
        elements = Flow.from_publisher(source).iterate_async()
        await cancelled_before_emission(elements)
        if loop_is == "closed":
            kept.append(elements)

    asyncio.run(main())
    kept.clear()
    gc.collect()
    wait_until(lambda: source.cancelled == 1)


def test_an_async_loop_that_is_left_cancels_at_once(source: TestPublisher[int], dropped: list[Dropped]) -> None:
    async def main() -> bool:
        async def emits() -> None:
            await asyncio.sleep(0.005)
            source.emit(1, 2)

        task = asyncio.ensure_future(emits())
        async for n in Flow.from_publisher(source):
            assert n == 1
            break
        await task
        return source.cancelled == 1

    assert asyncio.run(main())


def test_an_error_ends_an_async_loop_once(source: TestPublisher[int]) -> None:
    async def main() -> None:
        elements = Flow.from_publisher(source).iterate_async()
        await cancelled_before_emission(elements)
        source.fail(OSError("broken"))
        with pytest.raises(OSError, match="broken"):
            await anext(elements)
        with pytest.raises(StopAsyncIteration):
            await anext(elements)

    asyncio.run(main())


# -- `block` of a flow that keeps its thread ------------------------------------------------------------------------


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Iterator[threading.Event]:
    """Set when a warning has been logged."""
    came = threading.Event()
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: came.set()  # type: ignore[method-assign]
    root = logging.getLogger()  # behind the handler of `caplog`
    root.addHandler(handler)
    yield came
    root.removeHandler(handler)


class ClockByHand:
    """Stands for the shared clock: the time of what waits is over when `end` says so."""

    def __init__(self) -> None:
        self.act: Callable[[], object] = lambda: None

    def schedule(self, seconds: float, act: Callable[[], object]) -> Future[Any]:
        self.act = act
        return Future()

    def end(self) -> None:
        threading.Thread(target=self.act).start()


@pytest.mark.parametrize("sink", ["block", "run", "for_each"])
def test_a_kept_thread_is_named_when_the_time_is_over(
    sink: str, logged: threading.Event, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = ClockByHand()
    monkeypatch.setattr(_waiting, "shared_clock", lambda: clock)

    def waits(n: int) -> int:
        if not n:
            clock.end()
            assert logged.wait(PATIENCE)
        return n

    flow = Flow.range(2).map(waits)
    arguments = (lambda n: None,) if sink == "for_each" else ()
    with caplog.at_level(logging.WARNING, "reactive_runtime"):
        getattr(flow, sink)(*arguments, timeout=0.02)
    [record] = caplog.records
    message = record.getMessage()
    assert message.startswith(f"{sink}: `range(2) map(waits)")
    assert "has kept the thread that waits for it" in message
    assert f"{__file__}:" in message


def test_a_loop_without_result_is_named_with_its_line(
    logged: threading.Event, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The documented wait that does not end by itself: something else has to end the flow."""
    clock = ClockByHand()
    monkeypatch.setattr(_waiting, "shared_clock", lambda: clock)
    tries = itertools.count()

    def attempt() -> Flow[int]:
        if next(tries) == 0:
            clock.end()
        return Flow.empty() if logged.wait(0.001) else Flow.error(OSError())

    flow = Flow.defer(attempt).retry()
    with caplog.at_level(logging.WARNING, "reactive_runtime"):
        flow.block(timeout=0.02)
    [record] = caplog.records
    assert "retry" in record.getMessage()
    assert f"which was put into the flow at {__file__}:" in record.getMessage()


def test_nothing_is_logged_of_a_flow_that_ends_in_time(caplog: pytest.LogCaptureFixture) -> None:
    with ThreadPoolExecutor(1) as pool, caplog.at_level(logging.WARNING, "reactive_runtime"):
        assert Flow.range(3).block(timeout=PATIENCE) == 2
        assert Flow.range(3).subscribe_on(pool).block(timeout=PATIENCE) == 2
        with pytest.raises(TimeoutError):
            Flow.never().block(timeout=0.01)
    assert caplog.records == []


# -- what a limit may be --------------------------------------------------------------------------------------------


def taken(timeout: Any) -> Any:
    Flow.just(7).subscribe(buffered := BufferedSubscriber[int]())
    return buffered.take(timeout)


def late(wait: Callable[[Flow[int], Any], Any]) -> Callable[[Any], Any]:
    """The element comes from another thread, later: there is something to wait for."""

    def run(timeout: Any) -> Any:
        with ThreadPoolExecutor(1) as pool:
            return wait(Flow.just(7).delay(0.01).publish_on(pool), timeout)

    return run


def ran(flow: Flow[int], timeout: Any) -> int:
    flow.run(timeout=timeout)
    return 7


def called_with_each(flow: Flow[int], timeout: Any) -> int:
    elements: list[int] = []
    flow.for_each(elements.append, timeout=timeout)
    return elements[0]


def offered(timeout: Any) -> Any:
    with ThreadPoolExecutor(1) as pool:
        publisher: SubmissionPublisher[int] = SubmissionPublisher(pool)
        publisher.subscribe(buffered := BufferedSubscriber[int]())
        publisher.offer(7, timeout)
        return buffered.take(PATIENCE)


def advanced(timeout: Any) -> Any:
    clock = VirtualTimeExecutor(timeout=timeout)
    with ThreadPoolExecutor(1) as pool, clock_of(clock):
        Flow.just(7).publish_on(pool).subscribe(buffered := BufferedSubscriber[int]())
        clock.advance(1)
        return buffered.take(PATIENCE)


def verified(timeout: Any) -> Any:
    with ThreadPoolExecutor(1) as pool:
        StepVerifier(Flow.just(7).publish_on(pool)).expect_next(7).expect_complete().verify(timeout=timeout)
    return 7


WAITS: dict[str, Callable[[Any], Any]] = {
    "take": taken,
    "block": late(lambda flow, timeout: flow.block(timeout=timeout)),
    "run": late(ran),
    "for_each": late(called_with_each),
    "next": late(lambda flow, timeout: flow.iterate().next(timeout=timeout)),
    "offer": offered,
    "VirtualTimeExecutor": advanced,
    "verify": verified,
}


@pytest.mark.parametrize("name", WAITS)
def test_a_limit_of_centuries_is_a_limit(name: str) -> None:
    for timeout in (10_000_000_000, 1e10, 1e300):
        assert WAITS[name](timeout) == 7


@pytest.mark.parametrize("timeout", [math.inf, math.nan, -1, -0.5, 10**400], ids=str)
@pytest.mark.parametrize("name", WAITS)
def test_a_limit_that_is_no_time_is_refused(name: str, timeout: float) -> None:
    with pytest.raises(ValueError, match=f"^{name}: timeout must be a number of seconds from 0, not "):
        WAITS[name](timeout)


@pytest.mark.parametrize("timeout", [True, "1", b"", [1]], ids=repr)
@pytest.mark.parametrize("name", WAITS)
def test_a_limit_that_is_no_number_is_refused(name: str, timeout: Any) -> None:
    with pytest.raises(TypeError, match=f"^{name}: timeout must be a number of seconds, not "):
        WAITS[name](timeout)


def test_no_time_at_all_is_a_look() -> None:
    assert taken(0) == 7
    with pytest.raises(TimeoutError, match=r"no element in 0 s"):
        BufferedSubscriber[int]().take(0)


def test_a_test_without_events_may_be_long() -> None:
    with pytest.raises(AssertionError):
        StepVerifier(Flow.just(7)).expect_no_event(1e10).expect_next(7).expect_complete().verify()


@pytest.mark.parametrize("timeout", [None, PATIENCE])
def test_a_second_thread_in_the_same_loop_is_an_error(source: TestPublisher[int], timeout: float | None) -> None:
    elements = loop_over(source)
    got: list[int] = []
    other = threading.Thread(target=lambda: got.append(elements.next(timeout=timeout)))
    other.start()
    wait_until(lambda: source.demand > 0)  # it is inside, and waits or is about to
    takes: list[Callable[[], int]] = [lambda: elements.next(timeout=1), elements.next, lambda: next(elements)]
    for take in takes:
        with pytest.raises(ValueError, match=r"^iterate: another call waits for the next element already"):
            take()
    source.emit(7)
    other.join(PATIENCE)
    assert got == [7]
    elements.close()


@pytest.mark.parametrize("timeout", [None, PATIENCE])
def test_another_thread_ends_a_loop_that_waits(
    timeout: float | None, source: TestPublisher[int], dropped: list[Dropped]
) -> None:
    elements = loop_over(source)
    got: list[object] = []

    def reader() -> None:
        try:
            got.append(elements.next(timeout=timeout))
        except StopIteration as error:
            got.append(error)

    other = threading.Thread(target=reader)
    other.start()
    wait_until(lambda: source.demand > 0)  # it is inside, and waits or is about to
    elements.close()
    other.join(PATIENCE)
    assert [type(each) for each in got] == [StopIteration]
    wait_until(lambda: source.cancelled == 1)
    elements.close()
    with pytest.raises(StopIteration):
        elements.next(timeout=0)
    assert not dropped


def test_a_loop_that_runs_its_flow_is_not_closed_by_others() -> None:
    inside, go_on = threading.Event(), threading.Event()

    def slow(n: int) -> int:
        inside.set()
        assert go_on.wait(PATIENCE)
        return n

    elements = Flow.range(3).map(slow).iterate()
    got: list[int] = []
    other = threading.Thread(target=lambda: got.extend(elements))
    other.start()
    assert inside.wait(PATIENCE)
    with pytest.raises(ValueError, match=r"^iterate: another call runs this flow inside of its loop"):
        elements.close()
    go_on.set()
    other.join(PATIENCE)
    assert got == [0, 1, 2]


def test_a_with_block_closes_its_loop(source: TestPublisher[int]) -> None:
    with loop_over(source) as elements:
        with pytest.raises(TimeoutError):
            elements.next(timeout=0)
        assert not source.cancelled
    assert source.cancelled


def test_an_async_loop_is_not_ended_by_an_error_of_that_name() -> None:
    def fn(n: int) -> int:
        if n == 2:
            raise StopAsyncIteration
        return n

    async def main() -> None:
        elements = Flow.range(5).map(fn).iterate_async()
        assert [await anext(elements), await anext(elements)] == [0, 1]
        with pytest.raises(RuntimeError, match="StopAsyncIteration") as raised:
            await anext(elements)
        assert isinstance(raised.value.__cause__, StopAsyncIteration)

    asyncio.run(main())


def test_closes_that_race_with_a_loop_end_it_once() -> None:
    with ThreadPoolExecutor(1) as pool, ThreadPoolExecutor(1) as other:
        for round in range(200):
            elements = Flow.range(round % 8).publish_on(pool).iterate(prefetch=1)
            closing = other.submit(elements.close)
            got: list[int] = []
            with suppress(ValueError):  # the other thread is inside, which ends it
                got.extend(elements)
            closing.result(PATIENCE)
            elements.close()
            assert got == list(range(len(got)))
