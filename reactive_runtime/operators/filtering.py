"""Which elements pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from reactive_runtime._core.arguments import a_function, at_least
from reactive_runtime._core.step import STOP, Each, Step, describe

if TYPE_CHECKING:
    from reactive_runtime.flow import Flow

__all__ = ["filter", "take"]

T = TypeVar("T")


def filter(source: Flow[T], predicate: Callable[[T], object], /) -> Flow[T]:
    """Only the elements for which `predicate(element)` is true.

    An error of `predicate` ends the flow with `on_error`. For each element it drops, one more is asked for
    upstream, within the demand that is still owed. Cancellation passes through, also while everything is being
    dropped. Origin: `filter` of Rx and of Python.

    >>> from reactive_runtime import Flow
    >>> list(Flow.range(6).filter(lambda n: n % 2))
    [1, 3, 5]
    """
    return source._then(_Filter(a_function("filter", "predicate", predicate)))


class _Filter(Step[T, T]):
    name = "filter"

    def __init__(self, predicate: Callable[[T], object]) -> None:
        self.predicate = predicate

    def each(self, element: T) -> Each[T]:
        if self.predicate(element):
            yield element

    def __str__(self) -> str:
        return f"filter({describe(self.predicate)})"


def take(source: Flow[T], n: int, /) -> Flow[T]:
    """The first `n` elements, 0 <= n.

    No more than `n` are requested upstream. The flow completes with the n-th, without further demand, and the
    upstream is cancelled once. `take(0)` completes at once and does not subscribe upstream.
    Origin: `take` of Rx, `itertools.islice`.

    >>> from reactive_runtime import Flow
    >>> list(Flow.range(1_000_000_000).take(2))
    [0, 1]
    """
    at_least("take", "n", 0, n)
    return source._then(_Take(n)) if n else source._none()


class _Take(Step[T, T]):
    name = "take"

    def __init__(self, n: int) -> None:
        self.n = n
        self.left = n

    def each(self, element: T) -> Each[T]:
        self.left -= 1
        if not self.left:
            self.done = True
        yield element
        if not self.left:
            return STOP

    def upstream_demand(self, n: int) -> int:
        return min(n, self.left)

    def __str__(self) -> str:
        return f"take({self.n})"
