"""Which failures an operator deals with (`when`), its own errors, and one error that is raised many times."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from types import TracebackType
from typing import Any

import pytest
from sinks import Sink

from reactive_runtime import Flow
from reactive_runtime.executors import VirtualTimeExecutor

Dealt = Callable[[Flow[Any], Any], Flow[Any]]

WHEN: dict[str, Dealt] = {
    "retry": lambda flow, when: flow.retry(3, when=when),
    "retry_backoff": lambda flow, when: flow.retry_backoff(3, CLOCK, first=0.1, when=when),
    "on_error_resume": lambda flow, when: flow.on_error_resume(lambda error: Flow.empty(), when=when),
    "on_error_return": lambda flow, when: flow.on_error_return(lambda error: "instead", when=when),
}
CLOCK = VirtualTimeExecutor()


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
        ((), False),
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
        *(lambda flow, it=it: it(flow, OSError) for it in WHEN.values()),
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
    chain = []
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

    assert outcome(Flow.error(error).retry(3_000, when)).error is error
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
