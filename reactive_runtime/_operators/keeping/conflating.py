"""One element that stands for several: those that come without demand."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from reactive_runtime._core.drains.combinator import END, PENDING, Elements, InnerSubscription
from reactive_runtime._core.fusion.step import describe
from reactive_runtime._core.runtime.arguments import check_callable
from reactive_runtime._core.runtime.sentinels import sentinel
from reactive_runtime._operators.backpressure import Passing
from reactive_runtime._operators.flow_base import FlowBase, combinator_flow
from reactive_runtime._operators.stateful import stateful
from reactive_runtime._support.shown import shown

if TYPE_CHECKING:
    from reactive_runtime._flow import Flow

__all__ = ["ConflatingOperators"]

T_co = TypeVar("T_co", covariant=True)
S = TypeVar("S")

BUSY = 256
"""How many elements wait, beyond demand, while the subscriber is at work."""

NOTHING: Any = sentinel("NOTHING", __name__)


class ConflatingOperators(FlowBase[T_co]):
    """One element that stands for several: those that come without demand."""

    __slots__ = ()

    @stateful
    def conflate(self, seed: Callable[[T_co], S], fn: Callable[[S, T_co], S]) -> Flow[S]:
        """A summary of the elements that come between two demands: it drops no element, and holds no source back.

        Use `conflate` for a source that pushes, such as a hot source. From an iterator, which a flow pulls, each
        element has its own summary.

        Args:
            seed: Called as `seed(element)` for the first element after each delivered summary; its result is a new
                summary.
            fn: Called as `fn(summary, element)` for each further element that comes without demand; its result is the
                next summary.

        Returns:
            A flow of summaries. If the source completes or fails, the waiting summary comes first. The flow fails with
            the error that a function raises, and with TypeError if a function returns None, which is not an element
            (2.13).

        Raises:
            TypeError: `seed` or `fn` cannot be called.

        Demand:
            From a source that pushes, the operator requests everything, 256 elements at a time, also without demand. It
            pulls an iterator only on demand. While the subscriber is at work, up to 256 elements wait.

        Cancellation:
            Passes through. The hook gets the summary that waits.

        Thread:
            The functions run on the thread of the source. A summary comes on that thread; one that waited, on the
            thread that requests.

        Example:
            >>> from reactive_runtime import Flow
            >>> from reactive_runtime.hot import PublishProcessor
            >>> numbers = PublishProcessor()
            >>> totals = numbers.conflate(lambda n: n, lambda total, n: total + n)
            >>> handle = totals.subscribe(print, demand=0)
            >>> for n in range(5):
            ...     _ = numbers.emit(n)
            >>> handle.request(1)
            10

        Origin:
            `conflateWithSeed` of Akka and Pekko Streams.
        """
        check_callable("conflate", "seed", seed)
        check_callable("conflate", "fn", fn)
        title = f"conflate({describe(seed)}, {describe(fn)})"
        return combinator_flow(title, lambda: _Conflate(self, seed, fn), self)


class _Conflate(Passing):
    def __init__(self, source: FlowBase[Any], seed: Callable[[Any], Any], fn: Callable[[Any, Any], Any]) -> None:
        super().__init__(source)
        self.seed = seed
        self.fn = fn
        self.summary: Any = NOTHING

    def elements(self) -> Elements:
        # As the operators for overflow: a source that pushes is requested through a drain of its own.
        pulled = self.source._source.free()
        inner = self.inner(self.source, BUSY, apart=not pulled)
        while True:
            waits = self.summary is not NOTHING
            try:
                element = PENDING if waits and self.drain.demanded else self._next(inner)
            except Exception as error:
                element = END
                self.put_off(error)
            if element is END and not waits:
                return
            if element is not PENDING and element is not END:
                self._add(element)
            elif waits and self.drain.demanded:
                yield self._take()
            else:
                yield PENDING

    def _next(self, inner: InnerSubscription) -> Any:
        """Take the next element. Without demand, take it only from a source that pushes."""
        return inner.next_signal() if inner.pushes() or inner.over else inner.next_if_demanded()

    def _add(self, element: Any) -> None:
        if self.summary is NOTHING:
            summary = self.call(self.seed, element)
        else:
            summary = self.call(self.fn, self.summary, element)
        if summary is None:
            message = (
                f"{self.title}: the function returned None for {shown(element)}, and None is not an element (2.13)"
            )
            raise self.fault(TypeError(message))
        self.summary = summary

    def _take(self) -> Any:
        summary, self.summary = self.summary, NOTHING
        return summary

    def closed(self) -> None:
        if self.summary is not NOTHING:
            self.discard(self._take())
