"""What happens to wrong arguments, broken sources, broken subscribers and executors that say no."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from enum import IntEnum
from functools import partial
from typing import Any

import pytest
from sinks import PATIENCE, Numbers, Sink, wait_until

from reactive_runtime import MAX_DEMAND, Flow, hooks
from reactive_runtime.errors import ProtocolError, RejectedError, SubscriberError
from reactive_runtime.executors import ScheduledExecutor
from reactive_runtime.hot import PublishProcessor, SubmissionPublisher
from reactive_runtime.pipeline import Pipeline
from reactive_runtime.processors import FlowProcessor
from reactive_runtime.subscribers import BaseSubscriber

PLACES = ["here", "subscribed on a pool", "behind a boundary", "behind two boundaries"]


def placed(flow: Flow[Any], place: str, pool: Executor) -> Flow[Any]:
    """The flow on this thread, on a pool, or across boundaries: what is shown has to hold in all of them."""
    if place == "here":
        return flow
    flow = flow.subscribe_on(pool)
    for _ in range(PLACES.index(place) - 1):
        flow = flow.publish_on(pool, prefetch=4)
    return flow


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, pool: Executor) -> Callable[[Flow[Any]], Flow[Any]]:
    return lambda flow: placed(flow, request.param, pool)


@pytest.fixture
def pool() -> Any:
    with ThreadPoolExecutor(3) as executor:
        yield executor


Place = Callable[[Flow[Any]], Flow[Any]]


# -- subscribe ------------------------------------------------------------------------------------------------


def test_spec109_subscribing_none_is_a_type_error(place: Place) -> None:
    with pytest.raises(TypeError, match=r"subscribe.*not None"):
        place(Flow.range(3)).subscribe(None)  # type: ignore[arg-type]


def test_spec109_subscribing_what_is_no_subscriber_names_what_it_lacks() -> None:
    class Half:
        def on_next(self, element: int) -> None: ...

    with pytest.raises(TypeError, match="on_subscribe, on_error, on_complete"):
        Flow.range(3).subscribe(Half())  # type: ignore[arg-type]


@pytest.mark.parametrize("demand", [-1, True, "1", 1.5])
def test_subscribing_with_a_wrong_demand_is_reported_to_the_caller(demand: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=r"subscribe: demand must be (an int, not|at least 0, not -1)"):
        Flow.range(3).subscribe(print, demand=demand)


@pytest.mark.parametrize("demand", [MAX_DEMAND, MAX_DEMAND + 1, 2**70])
def test_spec317_more_than_the_most_is_the_most(demand: int) -> None:
    asked: list[int] = []
    Flow.range(3).do_on_request(asked.append).subscribe(lambda _: None, demand=demand)

    class Asking(BaseSubscriber[int]):
        def started(self) -> None:
            self.request(demand)

    upstream = Sink(demand=0)  # as a publisher of another library: no drain of ours in between
    upstream.request = asked.append  # type: ignore[attr-defined]
    Asking().on_subscribe(upstream)  # type: ignore[arg-type]
    assert asked == [MAX_DEMAND, MAX_DEMAND]


@pytest.mark.parametrize("argument", ["on_error", "on_complete"])
def test_subscribing_with_what_is_no_function_is_reported_to_the_caller(argument: str) -> None:
    with pytest.raises(TypeError, match=f"subscribe: {argument} must be callable, not int"):
        Flow.range(3).subscribe(print, **{argument: 3})  # type: ignore[arg-type]


@pytest.mark.parametrize("argument", [{"on_error": print}, {"on_complete": print}, {"demand": 2}])
def test_what_a_subscriber_would_not_hear_of_is_refused(argument: dict[str, Any]) -> None:
    sink = Sink()
    with pytest.raises(TypeError, match="Sink is a Subscriber"):
        Flow.range(3).subscribe(sink, **argument)
    assert sink.signals == []


@pytest.mark.parametrize("wait", [Flow.block, Flow.run, partial(Flow.for_each, fn=print)])
@pytest.mark.parametrize("timeout", ["1", True, -1, float("nan")])
def test_a_wrong_timeout_is_reported_before_anything_runs(timeout: Any, wait: Callable[..., object]) -> None:
    began: list[str] = []
    with pytest.raises((TypeError, ValueError), match="timeout must be a number of seconds"):
        wait(Flow.range(3).do_on_subscribe(lambda: began.append("ran")), timeout=timeout)
    assert began == []


# -- request --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "kind"), [(0, ValueError), (-1, ValueError), ("1", TypeError), (True, TypeError)])
def test_spec309_an_invalid_demand_ends_the_stream_with_the_reason(place: Place, n: Any, kind: type[Exception]) -> None:
    source = Numbers()
    sink = Sink(demand=2)
    place(Flow.from_supplier(lambda: source)).subscribe(sink)
    sink.wait_for(2)
    sink.subscription.request(n)
    assert isinstance(sink.wait().error, kind)
    assert "3.9" in str(sink.error)
    sink.subscription.request(5)
    assert sink.elements == [0, 1]
    wait_until_closed(source)


def test_spec309_an_invalid_demand_from_inside_on_next_lets_nothing_follow(place: Place) -> None:
    sink = Sink(then=lambda sink, element: sink.subscription.request(0) if element == 3 else None)
    place(Flow.range(1_000)).subscribe(sink)
    assert isinstance(sink.wait().error, ValueError)
    assert sink.elements == [0, 1, 2, 3]


def test_spec309_an_invalid_demand_from_inside_on_subscribe_is_answered_before_any_element(place: Place) -> None:
    class Wrong(Sink):
        def on_subscribe(self, subscription: Any, /) -> None:
            super().on_subscribe(subscription)
            subscription.request(-3)

    sink = Wrong()
    place(Flow.range(1_000)).subscribe(sink)
    assert "request(-3)" in str(sink.wait().error)
    assert sink.elements == []


def test_spec308_an_int_of_a_subclass_is_an_int() -> None:
    class Some(IntEnum):
        TWO = 2

    sink = Sink(demand=0)
    Flow.range(3).subscribe(sink)
    sink.subscription.request(Some.TWO)
    assert sink.elements == [0, 1]
    sink.subscription.cancel()


def test_spec306_an_invalid_demand_after_a_cancel_is_not_answered() -> None:
    sink = Sink(demand=0)
    Flow.range(3).subscribe(sink)
    sink.subscription.cancel()
    sink.subscription.request(0)
    assert sink.signals == [("on_subscribe",)]


# -- sources --------------------------------------------------------------------------------------------------


def test_spec109_a_supplier_that_raises_is_an_on_error_after_on_subscribe(place: Place) -> None:
    failure = OSError("no such table")

    def supplier() -> list[int]:
        raise failure

    sink = Sink(demand=0)
    place(Flow.from_supplier(supplier)).subscribe(sink)
    assert sink.wait().error is failure
    assert sink.signals[0] == ("on_subscribe",)


@pytest.mark.parametrize("fail_at", [0, 5, 9])
def test_spec104_an_iterator_that_raises_delivers_what_came_before_and_is_closed(place: Place, fail_at: int) -> None:
    source = Numbers(stop=10, fail_at=fail_at)
    sink = Sink()
    place(Flow.from_supplier(lambda: source)).subscribe(sink)
    assert sink.wait().error is source.failure
    assert sink.elements == list(range(fail_at))
    assert source.closed == 1


@pytest.mark.parametrize("iterable", [42, None])
def test_a_source_that_is_not_iterable_is_a_type_error_that_names_it(place: Place, iterable: Any) -> None:
    sink = Sink()
    place(Flow.from_supplier(lambda: iterable)).subscribe(sink)
    assert isinstance(sink.wait().error, TypeError)
    assert type(iterable).__name__ in str(sink.error)


def test_an_iterable_whose_iter_returns_no_iterator_is_a_type_error_that_says_so(place: Place) -> None:
    class Liar:
        def __iter__(self) -> Any:
            return 42

    sink = Sink()
    place(Flow.from_iterable(Liar())).subscribe(sink)
    assert isinstance(sink.wait().error, TypeError)
    assert "Liar: its __iter__ returns no iterator" in str(sink.error)


@pytest.mark.parametrize("steps", [0, 1])
def test_spec213_none_out_of_a_source_is_a_type_error(place: Place, steps: int) -> None:
    flow: Flow[Any] = Flow.from_iterable([1, 2, None, 4])
    for _ in range(steps):
        flow = flow.map(lambda n: n)
    sink = Sink()
    place(flow).subscribe(sink)
    assert isinstance(sink.wait().error, TypeError)
    assert "None is not an element" in str(sink.error)
    assert sink.elements == [1, 2]


def test_a_function_that_returns_none_is_named(place: Place) -> None:
    def nothing(n: int) -> None: ...

    sink = Sink()
    place(Flow.range(3).map(nothing)).subscribe(sink)
    assert str(sink.wait().error).startswith("map(nothing): the function returned None for 0")


@pytest.mark.parametrize("demand", [MAX_DEMAND, 100])
def test_a_stop_iteration_out_of_a_users_function_is_an_error_and_not_the_end(place: Place, demand: int) -> None:
    def stop(n: int) -> int:
        if n == 3:
            raise StopIteration("mine")
        return n

    sink = Sink(demand)
    place(Flow.range(10).map(stop)).subscribe(sink)
    assert isinstance(sink.wait().error, RuntimeError)
    assert isinstance(sink.error.__cause__, StopIteration)
    assert sink.elements == [0, 1, 2]


@pytest.mark.parametrize("ends", ["by completing", "by failing", "by a cancel"])
def test_an_iterator_whose_close_raises_is_reported_to_the_hook(ends: str, dropped: list[hooks.Dropped]) -> None:
    class Stuck(Numbers):
        def close(self) -> None:
            raise OSError("will not close")

    source = Stuck(stop=2, fail_at=1 if ends == "by failing" else None)
    sink = Sink(demand=1 if ends == "by a cancel" else MAX_DEMAND)
    Flow.from_supplier(lambda: source).subscribe(sink)
    sink.subscription.cancel()
    assert [str(drop.error) for drop in dropped] == ["will not close"]
    assert sink.end is not None or ends == "by a cancel"


# -- subscribers ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["on_subscribe", "on_next", "on_error", "on_complete"])
def test_spec213_a_subscriber_that_raises_is_cancelled_and_reported(
    place: Place, method: str, dropped: list[hooks.Dropped]
) -> None:
    raised = threading.Event()
    failure = OSError(f"out of {method}")

    class Raising(Sink):
        def raise_in(self, name: str) -> None:
            if name == method:
                raised.set()
                raise failure

        def on_subscribe(self, subscription: Any, /) -> None:
            super().on_subscribe(subscription)
            self.raise_in("on_subscribe")

        def on_next(self, element: Any, /) -> None:
            super().on_next(element)
            self.raise_in("on_next")

        def on_error(self, error: BaseException, /) -> None:
            super().on_error(error)
            self.raise_in("on_error")

        def on_complete(self) -> None:
            super().on_complete()
            self.raise_in("on_complete")

    source = Numbers(stop=3, fail_at=2 if method == "on_error" else None)
    sink = Raising()
    place(Flow.from_supplier(lambda: source)).subscribe(sink)
    assert raised.wait(PATIENCE)
    wait_until(lambda: any(drop.error is not None for drop in dropped))
    (report,) = [drop.error for drop in dropped if drop.error is not None]
    assert isinstance(report, SubscriberError)
    assert report.__cause__ is failure
    assert sink.signals[-1][0] == method, "nothing follows a signal that raised"
    if source.pulled:
        wait_until_closed(source)


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit, GeneratorExit])
@pytest.mark.parametrize("where", ["supplier", "iterator", "function", "on_subscribe", "on_next", "on_complete"])
@pytest.mark.parametrize("demand", [MAX_DEMAND, 100])
def test_an_interrupt_in_user_code_propagates_with_the_iterator_closed(
    interrupt: type[BaseException], where: str, demand: int
) -> None:
    source = Numbers(stop=5, fail_at=2 if where == "iterator" else None, failure=interrupt())

    def interrupt_in(name: str) -> None:
        if name == where:
            raise interrupt

    class Interrupted(Sink):
        def on_subscribe(self, subscription: Any, /) -> None:
            super().on_subscribe(subscription)
            interrupt_in("on_subscribe")

        def on_next(self, element: Any, /) -> None:
            super().on_next(element)
            interrupt_in("on_next")

        def on_complete(self) -> None:
            super().on_complete()
            interrupt_in("on_complete")

    def supplier() -> Numbers:
        interrupt_in("supplier")
        return source

    def function(n: int) -> int:
        interrupt_in("function")
        return n

    sink = Interrupted(demand)
    with pytest.raises(interrupt):
        Flow.from_supplier(supplier).map(function).subscribe(sink)
    signals = list(sink.signals)
    assert source.closed == (0 if where in ("supplier", "on_subscribe") else 1)
    sink.subscription.request(5)
    sink.subscription.cancel()
    assert sink.signals == signals, "nothing follows an interrupt"


def test_an_interrupt_on_a_pools_thread_ends_the_flow(pool: Executor) -> None:
    source = Numbers(fail_at=2, failure=KeyboardInterrupt())
    sink = Sink()
    Flow.from_supplier(lambda: source).subscribe_on(pool).subscribe(sink)
    assert isinstance(sink.wait().error.__cause__, KeyboardInterrupt)
    assert source.closed == 1
    assert sink.elements == [0, 1]


def test_an_interrupt_behind_a_boundary_closes_the_source_before_it(
    pool: Executor, dropped: list[hooks.Dropped]
) -> None:
    source = Numbers()

    def interrupted(sink: Sink, element: int) -> None:
        raise KeyboardInterrupt

    Flow.from_supplier(lambda: source).subscribe_on(pool).publish_on(pool, prefetch=4).subscribe(Sink(then=interrupted))
    wait_until_closed(source)
    wait_until(lambda: any(isinstance(drop.error, KeyboardInterrupt) for drop in dropped))


# -- executors ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", ["subscribe_on", "publish_on", "publish_on a pulled source"])
def test_an_executor_shut_down_before_subscribe_is_an_on_error(shape: str, pool: Executor) -> None:
    gone = ThreadPoolExecutor(1)
    gone.shutdown()
    source = Numbers()
    flow: Flow[Any] = Flow.from_supplier(lambda: source)
    if shape == "subscribe_on":
        flow = flow.subscribe_on(gone).map(str)
    elif shape == "publish_on":
        flow = flow.subscribe_on(pool).publish_on(gone)
    else:
        flow = flow.publish_on(gone)
    sink = Sink()
    flow.subscribe(sink)
    assert isinstance(sink.wait().error, RejectedError)
    assert isinstance(sink.error.__cause__, RuntimeError)
    if source.pulled:
        wait_until_closed(source)


@pytest.mark.parametrize("boundaries", [0, 1])
def test_an_executor_shut_down_while_the_stream_runs_is_an_on_error(boundaries: int, pool: Executor) -> None:
    going = ThreadPoolExecutor(1)
    source = Numbers()
    flow = Flow.from_supplier(lambda: source).subscribe_on(pool if boundaries else going)
    for _ in range(boundaries):
        flow = flow.publish_on(going)
    sink = Sink(then=lambda sink, element: going.shutdown(wait=False) if element == 3 else None)
    flow.subscribe(sink)
    assert isinstance(sink.wait().error, RejectedError)
    assert sink.elements == list(range(len(sink.elements)))
    wait_until_closed(source)


def test_an_executor_shut_down_between_two_requests_is_an_on_error_on_the_next() -> None:
    source = Numbers()
    sink = Sink(demand=3)
    with ThreadPoolExecutor(1) as going:
        Flow.from_supplier(lambda: source).subscribe_on(going).subscribe(sink)
        sink.wait_for(3)
    sink.subscription.request(1)
    assert isinstance(sink.wait().error, RejectedError)
    assert source.closed == 1


def test_a_cancel_after_the_executor_was_shut_down_closes_the_iterator_all_the_same() -> None:
    source = Numbers()
    sink = Sink(demand=3)
    with ThreadPoolExecutor(1) as going:
        Flow.from_supplier(lambda: source).subscribe_on(going).subscribe(sink)
        sink.wait_for(3)
    sink.subscription.cancel()
    assert source.closed == 1
    assert sink.end is None


def test_a_drain_dropped_from_the_pools_queue_is_an_on_error() -> None:
    pool = ThreadPoolExecutor(1)
    hold, held = threading.Event(), threading.Event()

    def occupy() -> None:
        held.set()
        hold.wait(PATIENCE)

    pool.submit(occupy)
    held.wait(PATIENCE)
    sink = Sink()
    Flow.range(3).subscribe_on(pool).subscribe(sink)
    pool.shutdown(wait=False, cancel_futures=True)
    assert isinstance(sink.wait().error, RejectedError)
    assert "cancelled in the executor's queue" in str(sink.error)
    hold.set()
    pool.shutdown()


def test_an_executor_that_cannot_run_the_task_is_an_on_error() -> None:
    class Unable(Executor):
        def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
            future: Future[Any] = Future()
            future.set_exception(OSError("can't pickle that"))
            return future

    sink = Sink()
    Flow.range(3).subscribe_on(Unable()).subscribe(sink)
    assert isinstance(sink.wait().error, RejectedError)
    assert "can't pickle that" in str(sink.error)


def test_an_executor_that_runs_tasks_where_they_are_submitted_needs_no_stack() -> None:
    class Inline(Executor):
        def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
            future: Future[Any] = Future()
            future.set_result(fn(*args, **kwargs))
            return future

    sink = Sink()
    Flow.range(1_000_000).subscribe_on(Inline()).subscribe(sink)
    assert len(sink.wait().elements) == 1_000_000


@pytest.mark.parametrize("executor", [None, 3, "pool", ThreadPoolExecutor])
def test_what_is_no_executor_is_refused_where_the_flow_is_assembled(executor: Any) -> None:
    with pytest.raises(TypeError, match=r"publish_on: a concurrent\.futures\.Executor"):
        Flow.range(3).publish_on(executor)
    with pytest.raises(TypeError, match=r"subscribe_on: a concurrent\.futures\.Executor"):
        Flow.range(3).subscribe_on(executor)


def test_a_class_of_clocks_is_no_clock() -> None:
    with pytest.raises(TypeError, match=r"delay: .* not the class ScheduledExecutor: call it"):
        Flow.range(3).delay(1, clock=ScheduledExecutor)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("assemble", "kind", "names"),
    [
        (lambda: Flow.range(3).map(3), TypeError, "map: fn must be callable"),  # type: ignore[arg-type]
        (lambda: Flow.range(3).filter(None), TypeError, "filter: predicate must be callable"),  # type: ignore[arg-type]
        (lambda: Flow.range(3).take(-1), ValueError, "take: n must be at least 0, not -1"),
        (lambda: Flow.range(3).take(1.5), TypeError, "take: n must be an int"),  # type: ignore[arg-type]
        (lambda: Flow.range(3).take(True), TypeError, "take: n must be an int"),
        (lambda: Flow.range(3).publish_on(ThreadPoolExecutor(1), prefetch=0), ValueError, "publish_on: prefetch"),
        (lambda: Flow.just(1, None), TypeError, "just: None is not an element"),
        (lambda: Flow.from_supplier([]), TypeError, "from_supplier: supplier must be callable"),  # type: ignore[arg-type]
        (lambda: Flow.from_iterable(None), TypeError, "from_iterable"),  # type: ignore[arg-type]
        (lambda: Flow.from_publisher(3), TypeError, "from_publisher: an object with `subscribe`"),  # type: ignore[arg-type]
        (lambda: Flow.range(1, 2, 0), ValueError, "arg 3 must not be zero"),
    ],
)
def test_wrong_arguments_are_refused_where_the_flow_is_assembled(
    assemble: Callable[[], object], kind: type[Exception], names: str
) -> None:
    with pytest.raises(kind, match=names):
        assemble()


# -- foreign publishers ---------------------------------------------------------------------------------------


class Foreign:
    """A publisher whose subscriber is driven by the test."""

    def __init__(self) -> None:
        self.requested: list[int] = []
        self.cancelled = 0
        self.subscriber: Any = None

    def subscribe(self, subscriber: Any, /) -> None:
        self.subscriber = subscriber
        subscriber.on_subscribe(self)

    def request(self, n: int, /) -> None:
        self.requested.append(n)

    def cancel(self) -> None:
        self.cancelled += 1


def test_spec101_a_foreign_publisher_that_exceeds_the_demand_is_stopped(dropped: list[hooks.Dropped]) -> None:
    foreign, sink = Foreign(), Sink(demand=1)
    Flow.from_publisher(foreign).subscribe(sink)
    foreign.subscriber.on_next("a")
    foreign.subscriber.on_next("b")
    assert sink.elements == ["a"]
    assert isinstance(sink.error, ProtocolError)
    assert "1.1" in str(sink.error)
    assert foreign.cancelled == 1
    assert [drop.element for drop in dropped] == ["b"]


def test_spec107_what_comes_after_the_end_goes_to_the_hook(dropped: list[hooks.Dropped]) -> None:
    foreign, sink, late = Foreign(), Sink(), OSError("late")
    Flow.from_publisher(foreign).subscribe(sink)
    foreign.subscriber.on_next("a")
    foreign.subscriber.on_complete()
    foreign.subscriber.on_next("b")
    foreign.subscriber.on_error(late)
    assert sink.signals[1:] == [("on_next", "a"), ("on_complete",)]
    assert [(drop.element, drop.error) for drop in dropped] == [("b", None), (None, late)]


def test_spec213_none_as_an_argument_is_a_type_error_to_the_foreign_publisher() -> None:
    foreign, sink = Foreign(), Sink()
    Flow.from_publisher(foreign).subscribe(sink)
    for signal in (foreign.subscriber.on_next, foreign.subscriber.on_error, foreign.subscriber.on_subscribe):
        with pytest.raises(TypeError):
            signal(None)
    sink.subscription.cancel()


def test_spec205_a_second_subscription_is_cancelled() -> None:
    foreign, second, sink = Foreign(), Foreign(), Sink()
    Flow.from_publisher(foreign).subscribe(sink)
    foreign.subscriber.on_subscribe(second)
    assert (foreign.cancelled, second.cancelled) == (0, 1)
    sink.subscription.cancel()


@pytest.mark.parametrize("fault", ["subscribe", "request"])
def test_a_foreign_publisher_that_raises_is_an_on_error_with_its_cause(fault: str) -> None:
    failure = OSError("foreign")

    class Raising(Foreign):
        def subscribe(self, subscriber: Any, /) -> None:
            if fault == "subscribe":
                raise failure
            super().subscribe(subscriber)

        def request(self, n: int, /) -> None:
            raise failure

    sink = Sink()
    Flow.from_publisher(Raising()).subscribe(sink)
    assert isinstance(sink.wait().error, ProtocolError)
    assert sink.error.__cause__ is failure


# -- references -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["cancel", "complete"])
def test_spec313_the_subscriber_can_be_collected_while_the_subscription_is_kept(place: Place, end: str) -> None:
    source = Numbers(stop=3 if end == "complete" else None)
    sink = Sink(demand=3 if end == "cancel" else MAX_DEMAND)
    place(Flow.from_supplier(lambda: source)).subscribe(sink)
    sink.wait_for(3)
    subscription = sink.subscription
    if end == "cancel":
        subscription.cancel()
    else:
        sink.wait()
    wait_until_closed(source)
    gone = weakref.ref(sink)
    del sink
    wait_until(lambda: gc.collect() >= 0 and gone() is None)
    assert subscription is not None


# -- waiting --------------------------------------------------------------------------------------------------


def wait_until_closed(source: Numbers) -> None:
    wait_until(lambda: source.closed == 1)
    assert not source.closed_while_running


class Forgetful(Executor):
    """Its `submit` returns nothing."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        return None


@pytest.mark.parametrize(
    "on",
    [
        lambda flow, executor: flow.subscribe_on(executor),
        lambda flow, executor: flow.publish_on(executor),
        lambda flow, executor: flow.retry().subscribe_on(executor),
        lambda flow, executor: flow.timeout(9).subscribe_on(executor),
        lambda flow, executor: flow.map_parallel(str, executor, concurrency=2),
        lambda flow, executor: Flow.from_callable(int).subscribe_on(executor),
    ],
    ids=["subscribe_on", "publish_on", "retry", "timeout", "map_parallel", "from_callable"],
)
def test_an_executor_that_returns_no_future_is_named(on: Callable[[Flow[int], Executor], Flow[Any]]) -> None:
    on(Flow.range(3), Forgetful()).subscribe(sink := Sink())
    error = sink.wait().error
    assert isinstance(error, RejectedError)
    assert "Forgetful.submit returned None, and must return a Future" in str(error)


class Idle(Executor):
    """It sets each future done, and runs nothing."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(None)
        return future


@pytest.mark.parametrize(
    "on",
    [
        lambda flow, executor: flow.subscribe_on(executor),
        lambda flow, executor: flow.publish_on(executor),
        lambda flow, executor: flow.timeout(9).subscribe_on(executor),
        lambda flow, executor: flow.map_parallel(str, executor, concurrency=2),
        lambda flow, executor: flow.map_parallel(str, executor, chunk=2),
        lambda flow, executor: Flow.from_callable(int).subscribe_on(executor),
        lambda flow, executor: flow.flat_map(lambda n: Flow.from_callable(int).subscribe_on(executor)),
    ],
    ids=["subscribe_on", "publish_on", "timeout", "map_parallel", "chunk", "from_callable", "flat_map"],
)
def test_an_executor_that_runs_nothing_is_an_error(on: Callable[[Flow[int], Executor], Flow[Any]]) -> None:
    on(Flow.range(3), Idle()).subscribe(sink := Sink())
    assert "Idle did not " in str(sink.wait().error)


class Wordy:
    """Fails with what is no exception."""

    def __init__(self, error: Any) -> None:
        self.error = error

    def subscribe(self, subscriber: Any, /) -> None:
        subscriber.on_subscribe(Mute())
        subscriber.on_error(self.error)


class Mute:
    def request(self, n: int, /) -> None: ...

    def cancel(self) -> None: ...


def wordy_kept(publisher: Wordy) -> BaseException:
    class Kept(BaseSubscriber[Any]):
        def failed(self, error: BaseException) -> None:
            errors.append(error)

    errors: list[BaseException] = []
    publisher.subscribe(Kept())
    return errors[0]


def wordy_hot(publisher: Wordy) -> BaseException:
    hot: PublishProcessor[Any] = PublishProcessor()
    hot.subscribe(sink := Sink())
    publisher.subscribe(hot)
    return sink.wait().error


def wordy_processor(publisher: Wordy) -> BaseException:
    processor: FlowProcessor[Any, Any] = FlowProcessor(lambda flow: flow.map(str))
    processor.subscribe(sink := Sink())
    publisher.subscribe(processor)
    return sink.wait().error


def wordy_flow(on: Callable[[Flow[Any]], Flow[Any]]) -> Callable[[Wordy], BaseException]:
    def get(publisher: Wordy) -> BaseException:
        on(Flow.from_publisher(publisher)).subscribe(sink := Sink())
        return sink.wait().error

    return get


WORDY: dict[str, Callable[[Wordy], BaseException]] = {
    "a flow": wordy_flow(lambda flow: flow),
    "a step": wordy_flow(lambda flow: flow.map(str)),
    "an inner one": lambda publisher: wordy_flow(lambda _: Flow.just(1).flat_map(lambda _: publisher))(publisher),
    "share": wordy_flow(lambda flow: flow.share()),
    "a subscriber": wordy_kept,
    "a hot source": wordy_hot,
    "a processor": wordy_processor,
}


@pytest.mark.parametrize("get", WORDY.values(), ids=WORDY)
def test_an_error_that_is_no_exception_is_named(get: Callable[[Wordy], BaseException]) -> None:
    error = get(Wordy("no disk"))
    assert isinstance(error, ProtocolError)
    assert "called on_error('no disk'): an exception is needed, not str" in str(error)
    assert "not the class OSError: call it" in str(get(Wordy(OSError)))


def test_the_publisher_of_an_error_that_is_none_is_named() -> None:
    with pytest.raises(ProtocolError, match=r"^the publisher, a Wordy, called on_error"):
        Flow.from_publisher(Wordy(5)).block()
    with pytest.raises(TypeError, match=r"^error: an exception is needed, not int"):
        Flow.create(lambda emitter: emitter.error(5)).block()  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^close_exceptionally: an exception is needed, not int"):
        SubmissionPublisher(ThreadPoolExecutor(1)).close_exceptionally(5)  # type: ignore[arg-type]


def test_what_stands_in_place_of_a_flow_is_named() -> None:
    with pytest.raises(TypeError, match=r"^FlowProcessor: lambda must return a flow, not None"):
        FlowProcessor(lambda flow: None)  # type: ignore[arg-type, return-value]
    with pytest.raises(TypeError, match=r"^<Pipeline map>: a flow is needed, not list \(Flow.from_iterable makes one"):
        Pipeline().map(str)([1, 2])  # type: ignore[arg-type]


@pytest.mark.parametrize("operator", ["distinct", "group_by", "to_dict"])
def test_a_key_without_a_hash_names_the_operator(operator: str) -> None:
    flow = Flow.just([1])
    made = flow.distinct() if operator == "distinct" else getattr(flow, operator)(lambda element: element)
    with pytest.raises(TypeError, match="unhashable") as raised:
        made.block()
    assert any(note.startswith(f"in {operator}(") for note in raised.value.__notes__)
