"""Which failures an operator deals with (`when`), its own errors, and one error that is raised many times."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import AsyncIterator, Callable, Iterator
from types import TracebackType
from typing import Any

import pytest
from sinks import PATIENCE, Sink

from reactive_runtime import Flow, hooks
from reactive_runtime.executors import VirtualTimeExecutor
from reactive_runtime.hot import BehaviorProcessor, PublishProcessor, ReplayProcessor, UnicastProcessor
from reactive_runtime.processors import FlowProcessor
from reactive_runtime.subscribers import BufferedSubscriber

Dealt = Callable[[Flow[Any], Any], Flow[Any]]

CLOCK = VirtualTimeExecutor()

WHEN: dict[str, Dealt] = {
    "retry": lambda flow, when: flow.retry(3, when=when),
    "retry_backoff": lambda flow, when: flow.retry_backoff(3, clock=CLOCK, first=0.1, when=when),
    "on_error_resume": lambda flow, when: flow.on_error_resume(lambda error: Flow.empty(), when=when),
    "on_error_return": lambda flow, when: flow.on_error_return(lambda error: "instead", when=when),
}


def outcome(flow: Flow[Any]) -> Sink:
    sink = Sink()
    flow.subscribe(sink)
    CLOCK.advance(100)
    return sink.wait()


def failing_once(error: Exception) -> Flow[int]:
    """Fails at the first subscription: an operator that deals with it completes."""
    turns = itertools.count()

    def rows() -> Any:
        if next(turns) == 0:
            raise error
        yield 1

    return Flow.from_supplier(rows)


@pytest.mark.parametrize(
    ("when", "takes"),
    [
        (ConnectionError, True),
        (OSError, True),
        (ValueError, False),
        ((ValueError, ConnectionError), True),
        ((ValueError, KeyError), False),
        (lambda error: "busy" in str(error), True),
        (lambda error: "late" in str(error), False),
    ],
)
@pytest.mark.parametrize("name", WHEN)
def test_when_is_a_class_a_tuple_of_classes_or_a_function(name: str, when: Any, takes: bool) -> None:
    sink = outcome(WHEN[name](failing_once(ConnectionError("busy")), when))
    assert (sink.end == ("on_complete",)) is takes


@pytest.mark.parametrize("when", [int, (OSError, int), (OSError, str), "OSError", 3, [OSError]])
@pytest.mark.parametrize("name", WHEN)
def test_when_is_nothing_else(name: str, when: Any) -> None:
    with pytest.raises(TypeError, match=f"^{name}: when must be a class of exceptions, a tuple of them, or a function"):
        WHEN[name](Flow.empty(), when)


class AwkwardError(OSError):
    """Is false."""

    def __bool__(self) -> bool:
        return False


@pytest.mark.parametrize(
    "dealt",
    [
        *(lambda flow, when=entry: when(flow, OSError) for entry in WHEN.values()),
        lambda f: f.retry(1),
        lambda f: f.retry_when(again),
    ],
)
def test_an_error_that_is_false_is_an_error(dealt: Callable[[Flow[Any]], Flow[Any]]) -> None:
    assert outcome(dealt(failing_once(AwkwardError()))).end == ("on_complete",)


def again(error: Exception, attempt: int) -> Flow[int]:
    return Flow.just(1)


def raises(*_: Any) -> Any:
    raise LookupError("of the function")


def raises_out_of_another(*_: Any) -> Any:
    try:
        raise KeyError
    except KeyError as error:
        raise LookupError("of the function") from error


ASKED: dict[str, Callable[[Flow[Any], Any], Flow[Any]]] = {
    **WHEN,
    "on_error_resume, its fn": lambda flow, fn: flow.on_error_resume(fn),
    "on_error_return, its fn": lambda flow, fn: flow.on_error_return(fn),
    "map_error": lambda flow, fn: flow.map_error(fn),
    "retry_when": lambda flow, fn: flow.retry_when(fn),
}


@pytest.mark.parametrize("function", [raises, raises_out_of_another])
@pytest.mark.parametrize("name", ASKED)
def test_an_error_of_the_function_keeps_the_failure_it_was_asked_about(name: str, function: Any) -> None:
    error: BaseException | None = outcome(ASKED[name](failing_once(ConnectionError("busy")), function)).error
    assert isinstance(error, LookupError)
    assert any("assembled at" in note for note in error.__notes__)
    chain: list[type[BaseException]] = []
    while error is not None:
        chain.append(type(error))
        error = error.__cause__ or error.__context__
    assert chain[-1] is ConnectionError


@pytest.mark.parametrize("name", ASKED)
def test_a_function_may_raise_the_failure_itself(name: str) -> None:
    def again(error: Exception, *_: Any) -> Any:
        raise error

    error = outcome(ASKED[name](failing_once(ConnectionError("busy")), again)).error
    assert str(error) == "busy"
    assert error.__context__ is None
    assert error.__cause__ is None


# -- error -------------------------------------------------------------------------------------------------------------


def test_an_error_of_its_function_is_the_flows() -> None:
    error = outcome(Flow.error(raises)).error
    assert isinstance(error, LookupError)
    assert "error(raises), assembled at" in error.__notes__[0]


def test_what_its_function_returns_is_an_exception() -> None:
    error = outcome(Flow.error(lambda: "gone")).error  # type: ignore[arg-type, return-value]
    assert isinstance(error, TypeError)
    assert str(error) == "error(lambda): the function must return an exception, not str"


def test_a_class_is_a_function_that_makes_one() -> None:
    assert isinstance(outcome(Flow.error(OSError)).error, OSError)


def frames(traceback: TracebackType | None) -> int:
    n = 0
    while traceback is not None:
        n, traceback = n + 1, traceback.tb_next
    return n


def test_one_error_that_is_retried_keeps_no_tracebacks() -> None:
    error = OSError("busy")
    most = 0

    def when(failure: Exception) -> bool:
        nonlocal most
        most = max(most, frames(failure.__traceback__))
        return True

    assert outcome(Flow.error(error).retry(3_000, when=when)).error is error
    assert most < 50
    assert frames(error.__traceback__) < 50


def test_one_error_keeps_the_traceback_it_came_with() -> None:
    try:
        raises()
    except LookupError as caught:
        error = caught
    outcome(Flow.error(error).retry(3))
    outcome(Flow.error(error).map(str).retry(3))
    names = []
    traceback = error.__traceback__
    while traceback is not None:
        names.append(traceback.tb_frame.f_code.co_name)
        traceback = traceback.tb_next
    assert names[-1] == "raises"
    assert names.count("raises") == 1


# -- where an error came from ---------------------------------------------------------------------------------


def broken(*_: Any) -> Any:
    raise KeyError("mine")


def stopping(*_: Any) -> Any:
    return next(iter(()))


async def broken_coroutine(_: int) -> int:
    raise KeyError("mine")


async def broken_ticks() -> AsyncIterator[int]:
    yield 0
    raise KeyError("mine")


def broken_rows() -> Iterator[int]:
    yield 0
    raise KeyError("mine")


class Broken(contextlib.AbstractContextManager[int]):
    def __init__(self, where: str) -> None:
        self.where = where

    def __enter__(self) -> int:
        return broken() if self.where == "enter" else 0

    def __exit__(self, *_: object) -> None:
        if self.where == "exit":
            broken()


FUNCTIONS: dict[str, Callable[[Any], Flow[Any]]] = {
    "create(": Flow.create,
    "generate(": lambda fn: Flow.generate(0, fn),
    "from_supplier(": Flow.from_supplier,
    "from_callable(": Flow.from_callable,
    "error(": Flow.error,
    "defer(": Flow.defer,
    "using(": lambda fn: Flow.using(fn, lambda item: Flow.empty()),
    "map(": lambda fn: Flow.range(3).map(fn),
    "filter(": lambda fn: Flow.range(3).filter(fn),
    "scan(": lambda fn: Flow.range(3).scan(fn, 0),
    "reduce(": lambda fn: Flow.range(3).reduce(fn),
    "handle(": lambda fn: Flow.range(3).handle(fn),
    "distinct(": lambda fn: Flow.range(3).distinct(key=fn),
    "do_on_next(": lambda fn: Flow.range(3).do_on_next(fn),
    "do_on_complete(": lambda fn: Flow.range(3).do_on_complete(fn),
    "flat_map(": lambda fn: Flow.range(3).flat_map(fn),
    "flat_map_sequential(": lambda fn: Flow.range(3).flat_map_sequential(fn),
    "flat_map_iterable(": lambda fn: Flow.range(3).flat_map_iterable(fn),
    "concat_map(": lambda fn: Flow.range(3).concat_map(fn),
    "switch_map(": lambda fn: Flow.range(3).switch_map(fn),
    "expand(": lambda fn: Flow.range(3).expand(fn),
    "group_by(": lambda fn: Flow.range(3).group_by(fn),
    "merge_comparing(": lambda fn: Flow.merge_comparing(Flow.range(3), Flow.range(3), key=fn),
    "on_error_resume(": lambda fn: Flow.error(OSError()).on_error_resume(fn),
    "retry_when(": lambda fn: Flow.error(OSError()).retry_when(fn),
    "repeat_when(": lambda fn: Flow.range(1).repeat_when(fn),
}
SOURCES: dict[str, Callable[[], Flow[Any]]] = {
    "from_supplier(": lambda: Flow.from_supplier(broken_rows),
    "from_iterable(": lambda: Flow.from_iterable(broken_rows()),
    "from_file(": lambda: Flow.from_file("/there/is/no/such/file"),
    "from_async(": lambda: Flow.from_async(broken_ticks),
    "from_coroutine(": lambda: Flow.from_coroutine(lambda: broken_coroutine(0)),
    "flat_map(": lambda: Flow.just(0).flat_map(broken_coroutine),
    "using(": lambda: Flow.using(lambda: Broken("exit"), lambda item: Flow.range(3)),
    "using(lambda": lambda: Flow.using(lambda: Broken("enter"), lambda item: Flow.range(3)),
    "flat_map_iterable(": lambda: Flow.range(3).flat_map_iterable(lambda n: broken_rows()),
}
CONSUMERS: dict[str, Callable[[Flow[Any]], object]] = {
    "block": lambda flow: flow.block(timeout=PATIENCE),
    "a loop": list,
    "steps": lambda flow: flow.materialize().dematerialize().map(str).block(timeout=PATIENCE),
    "an operator": lambda flow: flow.merge_with(Flow.empty()).block(timeout=PATIENCE),
    "a loop over an operator": lambda flow: list(flow.merge_with(Flow.empty())),
}


def is_named(error: BaseException, operator: str) -> None:
    notes = getattr(error, "__notes__", [])
    assert [note for note in notes if note.startswith(f"in {operator}") and "test_failures.py" in note], notes


@pytest.mark.parametrize("consumer", CONSUMERS)
@pytest.mark.parametrize("operator", FUNCTIONS)
def test_an_error_out_of_a_function_names_the_operator_and_the_line(operator: str, consumer: str) -> None:
    with pytest.raises(KeyError) as raised:
        CONSUMERS[consumer](FUNCTIONS[operator](broken))
    is_named(raised.value, operator)


@pytest.mark.parametrize("consumer", CONSUMERS)
@pytest.mark.parametrize("operator", SOURCES)
def test_an_error_out_of_a_source_names_it_and_the_line(operator: str, consumer: str) -> None:
    with pytest.raises((KeyError, OSError)) as raised:
        CONSUMERS[consumer](SOURCES[operator]())
    is_named(raised.value, operator)


@pytest.mark.parametrize("consumer", CONSUMERS)
@pytest.mark.parametrize("operator", FUNCTIONS)
def test_a_stop_iteration_is_an_error_that_names_the_operator_and_never_the_end(operator: str, consumer: str) -> None:
    with pytest.raises(RuntimeError, match="raised StopIteration, which is an error and not its end") as raised:
        CONSUMERS[consumer](FUNCTIONS[operator](stopping))
    assert isinstance(raised.value.__cause__, StopIteration)
    is_named(raised.value, operator)


def test_a_users_own_error_that_came_of_a_stop_iteration_stays_as_it_is() -> None:
    def first(_: int) -> int:
        try:
            return next(iter(()))
        except StopIteration as end:
            raise RuntimeError("no row") from end

    for consumer in CONSUMERS.values():
        with pytest.raises(RuntimeError, match=r"^no row"):
            consumer(Flow.range(3).map(first))


HOT: dict[str, Callable[[], Any]] = {
    "PublishProcessor": PublishProcessor,
    "ReplayProcessor": lambda: ReplayProcessor(3),
    "BehaviorProcessor": lambda: BehaviorProcessor(0),
    "UnicastProcessor": UnicastProcessor,
    "FlowProcessor": lambda: FlowProcessor(lambda flow: flow.map(str)),
}


@pytest.mark.parametrize("kind", HOT)
def test_a_stop_iteration_that_is_signalled_is_an_error_and_not_the_end(kind: str) -> None:
    processor, sink = HOT[kind](), Sink()
    processor.subscribe(sink)
    if kind == "FlowProcessor":
        Flow.error(StopIteration()).subscribe(processor)
    else:
        processor.on_error(StopIteration())
    assert isinstance(sink.wait().error, RuntimeError)
    assert isinstance(sink.error.__cause__, StopIteration)


def test_a_stop_iteration_by_an_emitter_or_into_a_buffer_is_no_end() -> None:
    sink, buffer = Sink(), BufferedSubscriber[int](capacity=4)
    Flow.create(lambda emitter: emitter.error(StopIteration())).subscribe(sink)
    assert isinstance(sink.wait().error, RuntimeError)
    buffer.on_subscribe(_Nothing())
    buffer.on_error(StopIteration())
    with pytest.raises(RuntimeError):
        list(buffer)


class _Nothing:
    def request(self, n: int, /) -> None: ...

    def cancel(self) -> None: ...


def test_what_on_error_return_made_and_could_not_deliver_goes_to_the_hook() -> None:
    sink = Sink(demand=0)
    with hooks.captured() as dropped:
        Flow.error(OSError("gone")).on_error_return(lambda error: 7).subscribe(sink)
        sink.subscription.cancel()
    assert [item.element for item in dropped] == [7]
    assert sink.signals == [("on_subscribe",)]
