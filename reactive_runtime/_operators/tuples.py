"""Several sources to tuples, each of which has an element of each source.

Each source that has an executor, or is a publisher of another library, is asked for at most `prefetch` elements ahead;
the others are pulled by demand, in turn, on the thread that requests.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar, overload

from reactive_runtime._core.drains.combinator import END, PENDING, Combinator, Elements, InnerSubscription
from reactive_runtime._core.runtime.arguments import PREFETCH, at_least
from reactive_runtime._operators.combining import InFront, as_flows
from reactive_runtime._operators.flow_base import FlowBase, combinator_flow
from reactive_runtime._operators.stateful import stateful
from reactive_runtime._spec import Publisher

if TYPE_CHECKING:
    from reactive_runtime._flow import Flow

__all__ = ["TupleOperators"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
R = TypeVar("R")


class TupleOperators(FlowBase[T_co]):
    """Several sources to tuples, each of which has an element of each source."""

    __slots__ = ()

    @overload
    @staticmethod
    def zip(first: Publisher[A], second: Publisher[B], /, *, prefetch: int = PREFETCH) -> Flow[tuple[A, B]]: ...

    @overload
    @staticmethod
    def zip(
        first: Publisher[A], second: Publisher[B], third: Publisher[C], /, *, prefetch: int = PREFETCH
    ) -> Flow[tuple[A, B, C]]: ...

    @overload
    @staticmethod
    def zip(
        first: Publisher[A], second: Publisher[B], third: Publisher[C], fourth: Publisher[D], /, *, prefetch: int = ...
    ) -> Flow[tuple[A, B, C, D]]: ...

    @overload
    @staticmethod
    def zip(*sources: Publisher[T], prefetch: int = PREFETCH) -> Flow[tuple[T, ...]]: ...

    @staticmethod
    def zip(*sources: Publisher[Any], prefetch: int = PREFETCH) -> Flow[Any]:
        """Tuples of the first elements of all sources, then of the second ones, and so on.

        Args:
            *sources: Publishers, none or more. All are subscribed to at once.
            prefetch: How many elements of each source wait here, at most; 1 or more.

        Returns:
            A flow of tuples, with one element of each source. It completes as soon as a source that has ended has no
            element left, and cancels the others; without sources at once. It fails with the error of a source as soon
            as a tuple lacks the element of another one. Elements that find no partner go to the hook.

        Raises:
            TypeError: One of `sources` is no publisher, or `prefetch` is no int.
            ValueError: `prefetch` is below 1.

        Demand:
            Of each source with an executor, or of another library, `prefetch` elements are requested ahead. The others
            are pulled by demand, one element for each tuple.

        Cancellation:
            Passes to all sources. Elements that wait here go to the hook.

        Thread:
            A source without an executor runs on the thread that requests. Tuples go on on that thread, or on one of a
            source's; on one thread at a time.

        Example:
            >>> from reactive_runtime import Flow
            >>> list(Flow.zip(Flow.range(1_000_000_000), Flow.just("a", "b")))
            [(0, 'a'), (1, 'b')]

        Origin:
            `zip` of Rx and of Python.
        """
        flows = as_flows("zip", sources)
        at_least("zip", "prefetch", 1, prefetch)
        return combinator_flow("zip", lambda: _Zip(flows, prefetch), *flows, inline=True)

    @overload
    def zip_with(self: FlowBase[A], other: Publisher[B], /, *, prefetch: int = PREFETCH) -> Flow[tuple[A, B]]: ...

    @overload
    def zip_with(
        self: FlowBase[A], other: Publisher[B], third: Publisher[C], /, *, prefetch: int = PREFETCH
    ) -> Flow[tuple[A, B, C]]: ...

    @overload
    def zip_with(
        self: FlowBase[A], other: Publisher[B], third: Publisher[C], fourth: Publisher[D], /, *, prefetch: int = ...
    ) -> Flow[tuple[A, B, C, D]]: ...

    @overload
    def zip_with(self, *others: Publisher[R], prefetch: int = PREFETCH) -> Flow[tuple[T_co | R, ...]]: ...

    @stateful
    def zip_with(self: FlowBase[Any], *others: Publisher[Any], prefetch: int = PREFETCH) -> Flow[Any]:
        """Tuples of the elements of the source and of `others`, as `zip` does.

        Args:
            *others: Publishers, none or more. All are subscribed to at once.
            prefetch: How many elements of each source wait here, at most; 1 or more.

        Returns:
            A flow of tuples, with one element of the source first and one of each of `others`. Its end is that of
            `zip`.

        Raises:
            TypeError: One of `others` is no publisher, or `prefetch` is no int.
            ValueError: `prefetch` is below 1.

        Demand:
            Of each source with an executor, or of another library, `prefetch` elements are requested ahead. The others
            are pulled by demand, one element for each tuple.

        Cancellation:
            Passes to all sources. Elements that wait here go to the hook.

        Thread:
            A source without an executor runs on the thread that requests. Tuples go on on that thread, or on one of a
            source's; on one thread at a time.

        Example:
            >>> from reactive_runtime import Flow
            >>> list(Flow.just("a", "b").zip_with(Flow.range(9)))
            [('a', 0), ('b', 1)]

        Origin:
            `zipWith` of Rx.
        """
        flows = (self, *as_flows("zip_with", others, "other"))
        at_least("zip_with", "prefetch", 1, prefetch)
        return combinator_flow("zip_with", lambda: _Zip(flows, prefetch), *flows)

    @overload
    @staticmethod
    def combine_latest(first: Publisher[A], second: Publisher[B], /, *, prefetch: int = ...) -> Flow[tuple[A, B]]: ...

    @overload
    @staticmethod
    def combine_latest(
        first: Publisher[A], second: Publisher[B], third: Publisher[C], /, *, prefetch: int = ...
    ) -> Flow[tuple[A, B, C]]: ...

    @overload
    @staticmethod
    def combine_latest(
        first: Publisher[A], second: Publisher[B], third: Publisher[C], fourth: Publisher[D], /, *, prefetch: int = ...
    ) -> Flow[tuple[A, B, C, D]]: ...

    @overload
    @staticmethod
    def combine_latest(*sources: Publisher[T], prefetch: int = ...) -> Flow[tuple[T, ...]]: ...

    @staticmethod
    def combine_latest(*sources: Publisher[Any], prefetch: int = PREFETCH) -> Flow[Any]:
        """Tuples of the latest element of each source, one whenever one of them has a new element.

        It begins when each source has had an element, and gives each source its turn. Until then an element of a source
        takes the place of the one before it, which goes to the hook; so does what is left where no tuple has come.

        Args:
            *sources: Publishers, none or more. All are subscribed to at once.
            prefetch: How many elements of each source wait here, at most; 1 or more.

        Returns:
            A flow of tuples, with one element of each source. It completes when all sources have, or when one has
            completed without an element; without sources at once. An error of one ends it, and cancels the others.

        Raises:
            TypeError: One of `sources` is no publisher, or `prefetch` is no int.
            ValueError: `prefetch` is below 1.

        Demand:
            Of each source with an executor, or of another library, `prefetch` elements are requested ahead. The others
            are pulled by demand, in turn. Elements before the first tuple use up no demand.

        Cancellation:
            Passes to all sources. Elements that wait here go to the hook.

        Thread:
            A source without an executor runs on the thread that requests. Tuples go on on that thread, or on one of a
            source's; on one thread at a time.

        Example:
            >>> from reactive_runtime import Flow
            >>> list(Flow.combine_latest(Flow.just("a"), Flow.range(2)))
            [('a', 0), ('a', 1)]

        Origin:
            `combineLatest` of Rx.
        """
        flows = as_flows("combine_latest", sources)
        at_least("combine_latest", "prefetch", 1, prefetch)
        return combinator_flow("combine_latest", lambda: _CombineLatest(flows, prefetch), *flows, inline=True)

    @overload
    def with_latest_from(self: FlowBase[A], other: Publisher[B], /) -> Flow[tuple[A, B]]: ...

    @overload
    def with_latest_from(self: FlowBase[A], other: Publisher[B], third: Publisher[C], /) -> Flow[tuple[A, B, C]]: ...

    @overload
    def with_latest_from(
        self: FlowBase[A], other: Publisher[B], third: Publisher[C], fourth: Publisher[D], /
    ) -> Flow[tuple[A, B, C, D]]: ...

    @overload
    def with_latest_from(self, *others: Publisher[R]) -> Flow[tuple[T_co | R, ...]]: ...

    @stateful
    def with_latest_from(self: FlowBase[Any], *others: Publisher[Any]) -> Flow[Any]:
        """Each element of the source with the latest one of each of `others`.

        Elements of the source that come before each of `others` has had one go to the hook; so do those of `others`
        that no tuple has had when the next one, or the end, comes.

        Args:
            *others: Publishers, one or more. Only the latest element of each is kept; it may be used for any number of
                elements of the source.

        Returns:
            A flow of tuples, with an element of the source first and one of each of `others`. It completes with the
            source, and then cancels `others`. An error of any ends it. If one of `others` completes without an element,
            every element of the source goes to the hook.

        Raises:
            TypeError: One of `others` is no publisher, or there is none.

        Demand:
            Of the source what is demanded is requested, exactly, and one more for each element that is dropped. Of
            each of `others` everything is requested, 256 elements at a time, demand or not.

        Cancellation:
            Passes to all.

        Thread:
            Tuples go on on the thread of the source; without an executor it runs on the thread that requests.

        Example:
            >>> from reactive_runtime import Flow
            >>> list(Flow.just("a", "b").with_latest_from(Flow.just(7)))
            [('a', 7), ('b', 7)]

        Origin:
            `withLatestFrom` of Rx.
        """
        if not others:
            raise TypeError("with_latest_from: needs at least one other publisher; without one it is the source itself")
        flows = as_flows("with_latest_from", others, "other")
        return combinator_flow("with_latest_from", lambda: _WithLatestFrom(self, flows), self, *flows)


class _Zip(InFront):
    calls = False

    def elements(self) -> Elements:
        inners = [self.inner(source, self.prefetch) for source in self.sources]
        while inners:
            while self.behind(inners) and not self._one_is_over(inners):
                yield PENDING
            if self._one_is_over(inners):
                return
            if not self.drain.demanded:
                yield PENDING
                continue
            front, self.front = self.front, {}
            yield tuple(front[inner] for inner in inners)

    def _one_is_over(self, inners: Sequence[InnerSubscription]) -> bool:
        return builtins.any(inner.over and inner not in self.front for inner in inners)


class _CombineLatest(Combinator):
    calls = False

    def __init__(self, sources: Sequence[FlowBase[Any]], prefetch: int) -> None:
        super().__init__()
        self.sources = sources
        self.prefetch = prefetch
        self.alone: dict[InnerSubscription, Any] = {}  # the owner's; until the first tuple: elements that no tuple has

    def elements(self) -> Elements:
        inners = [self.inner(source, self.prefetch) for source in self.sources]
        latest = self.alone
        open_inners = list(inners)
        while open_inners:
            idle = True
            for inner in list(open_inners):
                element = inner.next_if_demanded()
                if element is PENDING:
                    continue
                idle = False
                if element is END:
                    open_inners.remove(inner)
                    self.leave(inner)
                    if inner not in latest:
                        return
                    continue
                if latest is self.alone and inner in latest:
                    self.discard(latest[inner], wanted=True)
                latest[inner] = element
                if len(latest) == len(inners):
                    if latest is self.alone:
                        self.alone = {}
                    yield tuple(latest[item] for item in inners)
            if idle:
                yield PENDING

    def closed(self) -> None:
        self.discard(*self.alone.values())


class _WithLatestFrom(Combinator):
    calls = False

    def __init__(self, source: FlowBase[Any], others: Sequence[FlowBase[Any]]) -> None:
        super().__init__()
        self.source = source
        self.others = others
        self.unused: dict[int, Any] = {}  # the owner's; the latest element of each of `others`, while no tuple has it

    def elements(self) -> Elements:
        others = [self.inner(other, PREFETCH) for other in self.others]
        latest: list[Any] = [PENDING] * len(others)
        unused = self.unused
        latest[-1], main = yield from self.beside(
            others[-1], self.source
        )  # the source begins when all of `others` have begun
        if latest[-1] is END:
            latest[-1] = PENDING
        elif latest[-1] is not PENDING:
            unused[len(others) - 1] = latest[-1]
        complete = False
        while True:
            for at, other in enumerate(others):
                while (news := other.next_signal()) is not PENDING and news is not END:
                    if at in unused:
                        self.discard(unused[at], wanted=True)
                    latest[at] = unused[at] = news
            element = main.next_if_demanded()
            if element is END:
                return
            if element is PENDING:
                yield element
            elif complete or not any(one is PENDING for one in latest):
                complete = True
                unused.clear()
                yield (element, *latest)
            else:
                self.discard(element, wanted=True)

    def closed(self) -> None:
        self.discard(*self.unused.values())
