"""The last elements, and all but the last ones."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

from reactive_runtime._core.fusion.step import Each, Step
from reactive_runtime._core.runtime.arguments import at_least
from reactive_runtime._operators.flow_base import FlowBase
from reactive_runtime._operators.stateful import stateful
from reactive_runtime._spec import MAX_DEMAND

if TYPE_CHECKING:
    from reactive_runtime._flow import Flow

__all__ = ["LastOperators"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class LastOperators(FlowBase[T_co]):
    """The last elements, and all but the last ones."""

    __slots__ = ()

    @stateful
    def take_last(self, n: int) -> Flow[T_co]:
        """The last `n` elements, when the source completes.

        Args:
            n: How many elements, 0 or more; as many are kept.

        Returns:
            A flow of the last elements, in their order; all elements if the source has fewer than `n`. If the source
            fails, the hook gets the elements that the operator keeps.

        Raises:
            TypeError: `n` is not an int.
            ValueError: `n` is below 0.

        Demand:
            With the first demand, the operator requests all elements upstream. The elements that it keeps wait for
            demand.

        Cancellation:
            Passes through. The hook gets the elements that are kept.

        Thread:
            Runs on the thread that signals; elements that wait for demand come on the thread that requests.

        Example:
            >>> from reactive_runtime import Flow
            >>> list(Flow.range(5).take_last(2))
            [3, 4]

        Origin:
            `takeLast` of Rx.
        """
        return self._then(_TakeLast(at_least("take_last", "n", 0, n)))

    @stateful
    def skip_last(self, n: int) -> Flow[T_co]:
        """All but the last `n` elements: each comes when `n` more have come.

        Args:
            n: How many elements are dropped, 0 or more; as many are kept.

        Returns:
            A flow of the other elements. When the source ends, the hook gets the last elements.

        Raises:
            TypeError: `n` is not an int.
            ValueError: `n` is below 0.

        Demand:
            The operator requests the demanded elements upstream, and once `n` more.

        Cancellation:
            Passes through. The hook gets the elements that are kept.

        Thread:
            Runs on the thread that signals.

        Example:
            >>> from reactive_runtime import Flow
            >>> list(Flow.range(5).skip_last(2))
            [0, 1, 2]

        Origin:
            `skipLast` of Rx.
        """
        return self._then(_SkipLast(at_least("skip_last", "n", 0, n)))


class _OfLast(Step[T, T]):
    """Keeps the last `n`."""

    calls = False

    def __init__(self, n: int) -> None:
        self.n = n

    def reset(self) -> None:
        self.kept: deque[T] = deque()

    def dispose(self) -> Iterable[object]:
        kept, self.kept = self.kept, deque()
        return kept

    def __str__(self) -> str:
        return f"{self.name}({self.n})"


class _TakeLast(_OfLast[T]):
    name = "take_last"

    def on_next(self, element: T) -> None:
        self.kept.append(element)
        if len(self.kept) > self.n:
            self.kept.popleft()

    def on_complete(self) -> Iterator[T]:
        while self.kept:
            yield self.kept.popleft()

    def upstream_demand(self, n: int) -> int:
        return MAX_DEMAND


class _SkipLast(_OfLast[T]):
    name = "skip_last"

    def on_next(self, element: T) -> Each[T]:
        kept = self.kept
        kept.append(element)
        if len(kept) > self.n:
            yield kept.popleft()

    def upstream_demand(self, n: int) -> int:
        return n + self.n - len(self.kept)
