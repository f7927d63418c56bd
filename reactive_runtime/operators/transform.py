"""One element to another."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from reactive_runtime._core.arguments import a_function
from reactive_runtime._core.step import Each, Step, describe

if TYPE_CHECKING:
    from reactive_runtime.flow import Flow

__all__ = ["map"]

T = TypeVar("T")
R = TypeVar("R")


def map(source: Flow[T], fn: Callable[[T], R], /) -> Flow[R]:
    """Each element becomes `fn(element)`.

    An error of `fn` ends the flow with `on_error` after all that came before; a result of None is a TypeError
    (2.13). Runs where the source's part runs, one element for one: demand and cancellation pass through.
    Origin: `map` of Rx and of Python.

    >>> from reactive_runtime import Flow
    >>> list(Flow.range(3).map(lambda n: n * 10))
    [0, 10, 20]
    """
    return source._then(_Map(a_function("map", "fn", fn)))


class _Map(Step[T, R]):
    name = "map"

    def __init__(self, fn: Callable[[T], R]) -> None:
        self.fn = fn

    def each(self, element: T) -> Each[R]:
        result = self.fn(element)
        if result is None:
            raise TypeError(f"{self}: the function returned None for {element!r}, and None is not an element (2.13)")
        yield result

    def __str__(self) -> str:
        return f"map({describe(self.fn)})"
