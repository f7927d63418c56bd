"""`deadline`, `circuit_breaker` and `bulkhead`: what the models do not show."""

from __future__ import annotations

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from sinks import PATIENCE, Sink

from reactive_runtime import Bulkhead, CircuitBreaker, Flow, hooks
from reactive_runtime.errors import BulkheadFullError, CircuitOpenError
from reactive_runtime.executors import VirtualTimeExecutor
from reactive_runtime.testing import TestPublisher


def over(flow: Flow[Any]) -> Any:
    """The end of a run: an error, or the elements."""
    sink = Sink()
    flow.subscribe(sink)
    assert sink.end is not None
    return sink.error if sink.end[0] == "on_error" else sink.elements


def state(breaker: CircuitBreaker) -> str:
    return breaker.state


def calls(breaker: CircuitBreaker, errors: list[Exception | None]) -> Flow[int]:
    """Each run takes the next of the errors; None: an answer."""

    def call() -> int:
        error = errors.pop(0)
        if error is not None:
            raise error
        return 1

    return Flow.from_callable(call).circuit_breaker(breaker)


def test_a_deadline_comes_although_elements_do() -> None:
    clock, sink = VirtualTimeExecutor(), Sink()
    Flow.interval(1, clock=clock).deadline(3.5, clock=clock).subscribe(sink)
    clock.advance(100)
    assert sink.elements == [0, 1, 2]
    assert isinstance(sink.error, TimeoutError)
    assert "deadline(3.5 s)" in str(sink.error)


def test_a_deadline_comes_without_demand_and_cancels() -> None:
    clock, sink, source = VirtualTimeExecutor(), Sink(0), TestPublisher[int]()
    Flow.from_publisher(source).deadline(2, clock=clock).subscribe(sink)
    clock.advance(1.9)
    assert sink.signals == [("on_subscribe",)]
    clock.advance(0.1)
    assert isinstance(sink.error, TimeoutError)
    assert source.cancelled == 1


def test_a_circuit_opens_tries_once_and_closes() -> None:
    clock = VirtualTimeExecutor()
    breaker = CircuitBreaker(failures=2, window=10, reset_after=5, clock=clock)
    flow = calls(breaker, [OSError(), OSError(), OSError(), None, OSError()])
    assert isinstance(over(flow), OSError)
    assert state(breaker) == "closed"
    assert isinstance(over(flow), OSError)
    assert state(breaker) == "open"
    assert isinstance(over(flow), CircuitOpenError), "and no call"
    clock.advance(5)
    assert state(breaker) == "half-open"
    assert isinstance(over(flow), OSError)
    assert state(breaker) == "open"
    clock.advance(5)
    assert over(flow) == [1]
    assert state(breaker) == "closed"
    assert isinstance(over(flow), OSError)
    assert state(breaker) == "closed", "the failures before it closed count no more"


def test_failures_out_of_the_window_do_not_count() -> None:
    clock = VirtualTimeExecutor()
    breaker = CircuitBreaker(failures=2, window=10, clock=clock)
    flow = calls(breaker, [OSError(), OSError(), OSError()])
    over(flow)
    clock.advance(10)
    over(flow)
    assert state(breaker) == "closed"
    clock.advance(9)
    over(flow)
    assert state(breaker) == "open"


def test_errors_that_are_no_failures_do_not_open_a_circuit() -> None:
    breaker = CircuitBreaker(failures=1, when=OSError)
    assert isinstance(over(calls(breaker, [KeyError()])), KeyError)
    assert state(breaker) == "closed"


def test_one_subscription_at_a_time_tries_a_half_open_circuit() -> None:
    clock, source = VirtualTimeExecutor(), TestPublisher[int]()
    breaker = CircuitBreaker(failures=1, reset_after=5, clock=clock)
    over(calls(breaker, [OSError()]))
    clock.advance(5)
    trying = Sink()
    Flow.from_publisher(source).circuit_breaker(breaker).subscribe(trying)
    assert isinstance(over(calls(breaker, [])), CircuitOpenError)
    trying.subscription.cancel()
    assert state(breaker) == "half-open", "a cancel without an element is no answer: the next one tries"
    assert over(calls(breaker, [None])) == [1]
    assert state(breaker) == "closed"


def test_a_cancel_after_an_element_is_an_answer() -> None:
    clock = VirtualTimeExecutor()
    breaker = CircuitBreaker(failures=1, reset_after=5, clock=clock)
    over(calls(breaker, [OSError()]))
    clock.advance(5)
    assert over(Flow.range(9).circuit_breaker(breaker).take(1)) == [0]
    assert state(breaker) == "closed"


def test_a_subscription_from_before_the_circuit_opened_counts_no_more() -> None:
    clock, old = VirtualTimeExecutor(), TestPublisher[int]()
    breaker = CircuitBreaker(failures=1, reset_after=5, clock=clock)
    sink = Sink()
    Flow.from_publisher(old).circuit_breaker(breaker).subscribe(sink)
    over(calls(breaker, [OSError()]))
    clock.advance(5)
    assert over(calls(breaker, [None])) == [1]
    old.fail(OSError("late"))
    assert isinstance(sink.error, OSError)
    assert state(breaker) == "closed"


def test_an_error_of_when_lets_the_next_one_try() -> None:
    clock, broken = VirtualTimeExecutor(), [False]

    def when(error: Exception) -> bool:
        if broken[0]:
            raise LookupError("when is broken")
        return True

    breaker = CircuitBreaker(failures=1, reset_after=5, when=when, clock=clock)
    over(calls(breaker, [OSError()]))
    clock.advance(5)
    broken[0] = True
    assert isinstance(over(calls(breaker, [OSError()])), LookupError)
    assert over(calls(breaker, [None])) == [1]


def test_a_bulkhead_bounds_what_several_flows_do_at_once() -> None:
    lock, inside, most = threading.Lock(), [0], [0]
    turn, tries, together = threading.Event(), itertools.count(), threading.Barrier(2)

    def call(n: int) -> int:
        with lock:
            inside[0] += 1
            most[0] = max(most[0], inside[0])
            meets = next(tries) < 2
        if meets:
            together.wait(PATIENCE)
        turn.wait(0.001)
        with lock:
            inside[0] -= 1
        return n

    limit = Bulkhead(2)
    with ThreadPoolExecutor(8) as pool:

        def one(n: int) -> Flow[int]:
            return Flow.from_callable(lambda: call(n)).subscribe_on(pool).bulkhead(limit)

        flows = [Flow.range(50).flat_map(one, concurrency=8) for _ in range(2)]
        assert sorted(Flow.merge(*flows)) == sorted([*range(50)] * 2)
    assert most[0] == 2
    assert repr(limit) == "<Bulkhead 0 of 2 under way, 0 waiting>"


def test_subscriptions_begin_in_the_order_in_which_they_came() -> None:
    limit = Bulkhead(1, waiting=2)
    sources = [TestPublisher[int]() for _ in range(3)]
    sinks = [Sink() for _ in sources]
    for source, sink in zip(sources, sinks, strict=True):
        Flow.from_publisher(source).bulkhead(limit).subscribe(sink)
    assert [source.subscribers for source in sources] == [1, 0, 0]
    assert isinstance(over(Flow.just(1).bulkhead(limit)), BulkheadFullError)
    sinks[1].subscription.cancel()
    assert repr(limit) == "<Bulkhead 1 of 1 under way, 1 waiting>"
    sources[0].complete()
    assert [source.subscribers for source in sources] == [1, 0, 1]
    sinks[2].subscription.cancel()
    assert over(Flow.just(1).bulkhead(limit)) == [1]


def test_two_thousand_wait_without_a_deep_stack() -> None:
    limit, gate = Bulkhead(1, waiting=2_000), TestPublisher[int]()
    Flow.from_publisher(gate).bulkhead(limit).subscribe(Sink())
    sinks = [Sink() for _ in range(2_000)]
    for sink in sinks:
        Flow.just(1).bulkhead(limit).subscribe(sink)
    with hooks.captured() as drops:
        gate.complete()
    assert all(sink.wait().elements == [1] for sink in sinks)
    assert drops == []


def test_a_subscription_without_demand_takes_no_room() -> None:
    limit, sink = Bulkhead(1), Sink(0)
    Flow.just(1).bulkhead(limit).subscribe(sink)
    assert over(Flow.just(2).bulkhead(limit)) == [2]
    sink.subscription.request(1)
    assert sink.ended.wait(PATIENCE)
