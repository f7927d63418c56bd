"""Many elements to one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeVar

from reactive_runtime._core.step import Step
from reactive_runtime.spec import MAX_DEMAND

if TYPE_CHECKING:
    from reactive_runtime.flow import Flow

__all__ = ["to_list"]

T = TypeVar("T")


def to_list(source: Flow[T], /) -> Flow[list[T]]:
    """A flow of one element: the list of all elements, when the source has completed.

    Asks for everything, and holds everything: for finite flows. Cancellation passes through; what was gathered
    is then let go. Origin: `toList` of Rx.

    >>> from reactive_runtime import Flow
    >>> Flow.range(3).to_list().block()
    [0, 1, 2]
    """
    return source._then(_ToList())


class _ToList(Step[T, list[T]]):
    name = "to_list"

    def __init__(self) -> None:
        self.elements: list[T] = []

    def each(self, element: T) -> None:
        self.elements.append(element)

    def end(self) -> Iterator[list[T]]:
        yield self.elements

    def upstream_demand(self, n: int) -> int:
        return MAX_DEMAND

    def fresh(self) -> _ToList[T]:
        return _ToList()

    def __str__(self) -> str:
        return "to_list()"
