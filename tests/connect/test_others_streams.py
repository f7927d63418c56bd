"""Observables, async iterators and pipes of other processes, both ways."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import aiostream
import pytest
import reactivex
from reactivex import operators
from reactivex.scheduler import NewThreadScheduler
from reactivex.subject import Subject
from sinks import PATIENCE, Sink, until

from reactive_runtime import Flow
from reactive_runtime.connect.pipes import from_connection, to_connection
from reactive_runtime.connect.rx import from_observable, to_observable
from reactive_runtime.hooks import Dropped

SPAWNED = multiprocessing.get_context("spawn")


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1, thread_name_prefix="pool") as pool:
        yield pool


def got(flow: Flow[Any]) -> list[Any]:
    return flow.to_list().block(timeout=PATIENCE) or []


# -- reactivex -----------------------------------------------------------------------------------------------------


def test_an_observable_is_a_flow(pool: ThreadPoolExecutor) -> None:
    assert got(from_observable(reactivex.of(1, 2, 3))) == [1, 2, 3]
    assert got(from_observable(reactivex.empty())) == []
    elsewhere = reactivex.range(100).pipe(operators.observe_on(NewThreadScheduler()))
    assert got(from_observable(elsewhere).publish_on(pool)) == list(range(100))


def test_an_error_of_an_observable_goes_on() -> None:
    with pytest.raises(ZeroDivisionError):
        got(from_observable(reactivex.throw(ZeroDivisionError())))
    with pytest.raises(TypeError, match="None is not an element"):
        got(from_observable(reactivex.of(1, None)))


def test_elements_of_an_observable_wait_for_demand() -> None:
    subject = Subject[int]()
    sink = Sink(demand=1)
    from_observable(subject, capacity=2).subscribe(sink)
    for n in range(3):
        subject.on_next(n)
    assert sink.elements == [0]
    sink.subscription.request(5)
    assert sink.elements == [0, 1, 2]
    subject.on_completed()
    assert sink.end == ("on_complete",)


@pytest.mark.parametrize(("overflow", "expected"), [("newest", [0, 1, 2]), ("oldest", [0, 2, 3]), ("error", [0, 1, 2])])
def test_an_observable_that_is_too_fast(dropped: list[Dropped], overflow: Any, expected: list[int]) -> None:
    subject = Subject[int]()
    sink = Sink(demand=1)
    from_observable(subject, overflow=overflow, capacity=2).subscribe(sink)
    for n in range(4):
        subject.on_next(n)
    assert (len(subject.observers) == 0) == (overflow == "error")
    sink.subscription.request(5)
    assert sink.elements == expected
    assert isinstance(sink.end[1], OverflowError) if overflow == "error" and sink.end else sink.end is None
    assert [drop.element for drop in dropped if drop.element is not None] == [1 if overflow == "oldest" else 3]
    sink.subscription.cancel()


def test_a_cancel_disposes_of_the_subscription() -> None:
    subject = Subject[int]()
    sink = Sink()
    from_observable(subject).subscribe(sink)
    assert len(subject.observers) == 1
    sink.subscription.cancel()
    assert subject.observers == []
    subject.on_next(1)
    assert sink.signals == [("on_subscribe",)]


def observed(observable: reactivex.Observable[Any]) -> list[Any]:
    signals: list[Any] = []
    over = threading.Event()

    def on_error(error: Exception) -> None:
        signals.append(type(error))
        over.set()

    def on_completed() -> None:
        signals.append("over")
        over.set()

    observable.subscribe(signals.append, on_error, on_completed)
    assert over.wait(PATIENCE)
    return signals


def test_a_flow_is_an_observable(pool: ThreadPoolExecutor) -> None:
    assert observed(to_observable(Flow.range(3))) == [0, 1, 2, "over"]
    assert observed(to_observable(Flow.empty())) == ["over"]
    assert observed(to_observable(Flow.range(3).publish_on(pool))) == [0, 1, 2, "over"]
    assert observed(to_observable(Flow.concat(Flow.just(1), Flow.error(KeyError())))) == [1, KeyError]
    assert observed(reactivex.merge(to_observable(Flow.just(1)), to_observable(Flow.just(2)))) == [1, 2, "over"]


@pytest.mark.parametrize("scheduler", [None, NewThreadScheduler()], ids=["here", "elsewhere"])
def test_an_operator_of_reactivex_that_ends_cancels_the_flow(scheduler: Any) -> None:
    ended = threading.Event()
    endless = Flow.range(10**12).do_on_cancel(ended.set)
    signals: list[Any] = []
    to_observable(endless).pipe(operators.take(2)).subscribe(signals.append, scheduler=scheduler)
    assert ended.wait(PATIENCE)
    assert signals == [0, 1]


def test_a_dispose_cancels_the_flow(pool: ThreadPoolExecutor) -> None:
    ended = threading.Event()
    subscription = to_observable(Flow.never().do_on_cancel(ended.set)).subscribe(print)
    subscription.dispose()
    assert ended.is_set()


def test_there_and_back() -> None:
    assert got(from_observable(to_observable(Flow.range(200)))) == list(range(200))


# -- async iterators -----------------------------------------------------------------------------------------------


def test_a_stream_of_aiostream_is_a_flow_and_a_flow_is_one() -> None:
    async def squares() -> AsyncIterator[int]:
        stream: Any = aiostream.stream
        async with stream.map(stream.range(5), lambda n: n * n).stream() as numbers:
            async for number in numbers:
                yield number

    assert got(Flow.from_async(squares)) == [0, 1, 4, 9, 16]

    async def back() -> list[int]:
        stream: Any = aiostream.stream
        numbers: list[int] = await stream.list(stream.take(stream.iterate(Flow.range(100)), 3))
        return numbers

    assert asyncio.run(back()) == [0, 1, 2]


def test_an_async_iterator_is_closed_by_a_cancel() -> None:
    closed = threading.Event()

    async def ticks() -> AsyncIterator[int]:
        try:
            for n in range(10**9):
                yield n
        finally:
            closed.set()

    assert got(Flow.from_async(ticks).take(3)) == [0, 1, 2]
    assert closed.wait(PATIENCE)


# -- pipes ---------------------------------------------------------------------------------------------------------


def relay(connection: Any, count: int) -> None:
    to_connection(Flow.range(count).map(lambda n: (n, "x" * 1_000)), connection).run()


def die(connection: Any) -> None:
    connection.send(1)
    os._exit(9)


def double(theirs: Any, back: Any) -> None:
    to_connection(from_connection(theirs).map(lambda n: 2 * n), back).run()


def child(function: Callable[..., object], *arguments: Any) -> Any:
    """A process, to which the ends of pipes among the arguments go."""
    process = SPAWNED.Process(target=function, args=arguments)
    process.start()
    for argument in arguments:
        if hasattr(argument, "close"):
            argument.close()
    return process


def test_the_objects_of_another_process_come_in_order(pool: ThreadPoolExecutor) -> None:
    ours, theirs = SPAWNED.Pipe(duplex=False)
    process = child(relay, theirs, 2_000)
    flow = from_connection(ours).map(lambda pair: pair[0]).subscribe_on(pool)
    assert got(flow) == list(range(2_000))
    process.join(PATIENCE)
    assert process.exitcode == 0
    assert ours.closed


def test_objects_go_to_another_process_and_back(pool: ThreadPoolExecutor) -> None:
    theirs, ours = SPAWNED.Pipe(duplex=False)
    back, there = SPAWNED.Pipe(duplex=False)
    process = child(double, theirs, there)
    with ThreadPoolExecutor(1) as other:
        sent = to_connection(Flow.range(1_000), ours).subscribe_on(other).to_future()
        assert got(from_connection(back).subscribe_on(pool)) == list(range(0, 2_000, 2))
        assert sent.result(PATIENCE) == 1_000
    process.join(PATIENCE)
    assert process.exitcode == 0


def test_a_pipe_that_is_full_holds_the_source_back(pool: ThreadPoolExecutor) -> None:
    ours, theirs = SPAWNED.Pipe(duplex=False)
    made: list[int] = []
    flow = Flow.range(1_000).do_on_next(made.append).map(lambda _: b"x" * 10_000)
    sent = to_connection(flow, theirs).subscribe_on(pool).to_future()
    sink = Sink(demand=3)
    from_connection(ours).subscribe(sink)
    assert len(sink.elements) == 3
    assert len(made) < 500  # of 10 MB
    sink.subscription.request(10_000)
    assert sink.wait().end == ("on_complete",)
    assert sent.result(PATIENCE) == len(sink.elements) == 1_000


def test_a_process_that_dies_fails_the_flow() -> None:
    ours, theirs = SPAWNED.Pipe(duplex=False)
    process = child(die, theirs)
    sink = Sink()
    from_connection(ours).subscribe(sink)
    assert sink.elements == [1]
    assert sink.end is not None
    assert isinstance(sink.end[1], ConnectionError)
    assert "the other end was closed before None came" in str(sink.end[1])
    process.join(PATIENCE)
    assert ours.closed


def test_an_end_that_is_closed_may_be_the_end() -> None:
    ours, theirs = SPAWNED.Pipe()
    theirs.send("a")
    theirs.close()
    assert got(from_connection(ours, closed="end")) == ["a"]


def test_an_end_of_its_own() -> None:
    ours, theirs = SPAWNED.Pipe()
    assert got(to_connection(Flow.just(1, 2), theirs, end="over")) == [2]
    assert got(from_connection(ours, end="over")) == [1, 2]


def test_a_flow_that_fails_sends_no_end() -> None:
    ours, theirs = SPAWNED.Pipe()
    with pytest.raises(ZeroDivisionError):
        got(to_connection(Flow.concat(Flow.just(1), Flow.error(ZeroDivisionError())), theirs))
    assert theirs.closed
    with pytest.raises(ConnectionError, match="the other end was closed"):
        got(from_connection(ours))


def test_a_cancel_closes_the_pipe_and_ends_the_other_side(pool: ThreadPoolExecutor) -> None:
    ours, theirs = SPAWNED.Pipe(duplex=False)
    sink = Sink()
    from_connection(ours).subscribe_on(pool).subscribe(sink)
    assert sink.subscribed.wait(PATIENCE)
    sink.subscription.cancel()
    until(lambda: ours.closed)
    with pytest.raises(BrokenPipeError):
        got(to_connection(Flow.range(10), theirs))
    assert theirs.closed


def test_a_cancel_does_not_wait_for_a_full_pipe(pool: ThreadPoolExecutor) -> None:
    ours, theirs = SPAWNED.Pipe(duplex=False)
    begun = threading.Event()
    sink = Sink()
    flow = Flow.just(b"x" * 10_000_000).do_on_next(lambda _: begun.set())
    to_connection(flow, theirs).subscribe_on(pool).subscribe(sink)
    assert begun.wait(PATIENCE)
    sink.subscription.cancel()
    assert len(ours.recv()) == 10_000_000  # what was being sent comes whole, or the pipe is closed
    until(lambda: theirs.closed)
    with pytest.raises(EOFError):
        ours.recv()
    ours.close()


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (lambda: from_observable([1]), TypeError),  # type: ignore[arg-type]
        (lambda: from_observable(reactivex.empty(), capacity=0), ValueError),
        (lambda: from_observable(reactivex.empty(), overflow="all"), ValueError),  # type: ignore[arg-type]
        (lambda: to_observable([1]), TypeError),  # type: ignore[arg-type]
        (lambda: from_connection(7), TypeError),  # type: ignore[arg-type]
        (lambda: from_connection(SPAWNED.Pipe()[0], closed="no"), ValueError),  # type: ignore[arg-type]
        (lambda: to_connection(Flow.empty(), 7), TypeError),  # type: ignore[arg-type]
    ],
)
def test_bad_arguments_are_refused_at_once(call: Callable[[], object], kind: type[Exception]) -> None:
    with pytest.raises(kind):
        call()
