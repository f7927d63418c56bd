"""Checks of arguments. They run where a flow is assembled, so that the traceback points at the line at fault."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any, Final, TypeVar

from reactive_runtime._core.sources.naming import instead
from reactive_runtime._support.shown import shown
from reactive_runtime.errors import ProtocolError

__all__ = [
    "PREFETCH",
    "When",
    "a_value",
    "an_error",
    "at_least",
    "check_callable",
    "check_clock",
    "check_executor",
    "failures",
    "is_coroutine_function",
    "not_none",
    "one_of",
    "seconds_of",
    "signalled_error",
    "works_apart",
]

F = TypeVar("F", bound=Callable[..., Any])
E = TypeVar("E")
C = TypeVar("C")
S = TypeVar("S", bound=str)
V = TypeVar("V")

PREFETCH: Final = 256
"""Elements to ask for ahead of demand: the default wherever there is a `prefetch`.

It is the default of Reactor for a boundary. Publishers inside an operator have the same: each has its own bound, and
`concurrency` says how many there are. An argument that counts anything else has another name and another default.
"""

_WITHOUT_CALL: Final = frozenset({FunctionType, BuiltinFunctionType, MethodType, type})
"""Kinds of callables without a user's `__call__`: most functions are of these."""

When = type[BaseException] | tuple[type[BaseException], ...] | Callable[[Exception], object]
"""Which failures: a class of exceptions, a tuple of classes, or a function that says so of each."""


def check_callable(operator: str, argument: str, value: F, *, awaited: bool = False) -> F:
    """`value`, or TypeError where it can't be called, or is a coroutine function, unless those are `awaited`."""
    if not callable(value):
        raise TypeError(f"{operator}: {argument} must be callable, not {instead(value)}")
    if not awaited and is_coroutine_function(value):
        raise TypeError(
            f"{operator}: {argument} is a coroutine function, which {operator} does not await:"
            " flat_map, map_parallel and Flow.from_coroutine do"
        )
    return value


def is_coroutine_function(value: object) -> bool:
    """Whether it is an `async def` function, or an object that is called as one."""
    if inspect.iscoroutinefunction(value):
        return True
    kind = type(value)
    return kind not in _WITHOUT_CALL and inspect.iscoroutinefunction(getattr(kind, "__call__", None))  # noqa: B004


def a_value(operator: str, argument: str, value: V) -> V:
    """`value`, or TypeError where it is None: it may come to be an element (2.13)."""
    if value is None:
        raise TypeError(f"{operator}: None is not an element (2.13), and {argument} may become one")
    return value


def failures(operator: str, when: When) -> Callable[[Exception], object]:
    """`when` as a function of the failure.

    TypeError where it is neither a class, nor a tuple of them, or function, ValueError where the tuple is empty.
    """
    if isinstance(when, tuple) and not when:
        raise ValueError(
            f"{operator}: when is an empty tuple, which no error is an instance of: name the classes of exceptions,"
            f" or leave out {operator}"
        )
    classes = when if isinstance(when, tuple) else (when,)
    if all(isinstance(kind, type) and issubclass(kind, BaseException) for kind in classes):
        return lambda failure: isinstance(failure, classes)  # type: ignore[arg-type]  # they are classes
    if isinstance(when, type | tuple) or not callable(when):
        raise TypeError(
            f"{operator}: when must be a class of exceptions, a tuple of them, or a function of the error,"
            f" not {shown(when)}"
        )
    return check_callable(operator, "when", when)


def works_apart(executor: object) -> bool:
    """Whether it pickles what it is given, for a process or an interpreter of its own."""
    kinds = {kind.__name__ for kind in type(executor).__mro__}
    return bool(kinds & {"ProcessPoolExecutor", "InterpreterPoolExecutor"})


def check_executor(operator: str, value: E, *, apart: bool = False) -> E:
    """`value`, or TypeError where it has no `submit`, or works apart, unless that may be (`apart`)."""
    if isinstance(value, type) or not callable(getattr(value, "submit", None)):
        raise TypeError(f"{operator}: a concurrent.futures.Executor is needed, not {instead(value)}")
    if not apart and works_apart(value):
        raise TypeError(
            f"{operator}: an executor whose threads share memory is needed, not {instead(value)}: map_parallel takes it"
        )
    return value


def at_least(operator: str, argument: str, least: int, value: int) -> int:
    """`value`, or TypeError where it is no int, or ValueError where it is below `least`."""
    if type(value) is not int:
        raise TypeError(f"{operator}: {argument} must be an int, not {instead(value)}")
    if value < least:
        raise ValueError(f"{operator}: {argument} must be at least {least}, not {value}")
    return value


def seconds_of(operator: str, argument: str, value: float, *, positive: bool = False) -> float:
    """`value`, or TypeError where it is no number, or ValueError where it is below 0 or not finite (0: `positive`)."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{operator}: {argument} must be a number of seconds, not {instead(value)}")
    if not (0 <= value <= sys.float_info.max) or (positive and not value):
        least = "above 0" if positive else "from 0"
        raise ValueError(f"{operator}: {argument} must be a number of seconds {least}, not {value}")
    return value


def check_clock(operator: str, value: C) -> C:
    """`value`, or TypeError where it is no executor with a clock; None is that of the subscription's context."""
    if value is None:
        return value
    made = not isinstance(value, type)
    if not (made and callable(getattr(value, "schedule", None)) and callable(getattr(value, "now", None))):
        raise TypeError(
            f"{operator}: an executor with a clock is needed (ScheduledExecutor, VirtualTimeExecutor),"
            f" not {instead(value)}"
        )
    return value


def one_of(operator: str, argument: str, choices: tuple[str, ...], value: S) -> S:
    """`value`, or ValueError where it is none of `choices`."""
    if value not in choices:
        raise ValueError(f"{operator}: {argument} must be one of {', '.join(choices)}, not {shown(value)}")
    return value


def not_none(signal: str, argument: object) -> None:
    """TypeError where the argument of a signal, or of `subscribe`, is None (2.13, 1.9)."""
    if argument is None:
        raise TypeError(f"{signal}(None): None is not allowed here (2.13, 1.9)")


def an_error(signal: str, error: object) -> None:
    """TypeError where the user's own code fails a flow with an object that is no exception."""
    not_none(signal, error)
    if not isinstance(error, BaseException):
        raise TypeError(f"{signal}: an exception is needed, not {instead(error)} ({shown(error)})")


def signalled_error(error: Any, publisher: str) -> BaseException:
    """The error that a publisher has signalled; a ProtocolError, to end with, where it signals no exception.

    TypeError where it is None (2.13).
    """
    if isinstance(error, BaseException):
        return error
    not_none("on_error", error)
    return ProtocolError(f"{publisher} called on_error({shown(error)}): an exception is needed, not {instead(error)}")
