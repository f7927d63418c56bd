"""Several sources to one.

Each source that has an executor, or is a publisher of another library, is asked for at most `prefetch` elements ahead;
the others are pulled by demand, in turn, on the thread that requests. An error of one cancels the others and ends the
flow at once, unless `delay_error`: then it comes when all have ended, several of them as an ExceptionGroup; where that
end does not come, since the flow is cancelled, each goes to the hook.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, overload

from reactive_runtime._core.drains.combinator import END, PENDING, Combinator, Elements, InnerSubscription, ReadySet
from reactive_runtime._core.failures import dropping
from reactive_runtime._core.failures.exits import each
from reactive_runtime._core.failures.passing import signalled
from reactive_runtime._core.runtime.arguments import PREFETCH, at_least, check_callable
from reactive_runtime._core.sources.flow_base import FlowBase
from reactive_runtime._core.sources.flow_source import CombinatorSource, as_flow, combinator_flow
from reactive_runtime._operators.stateful import stateful
from reactive_runtime._spec import Publisher
from reactive_runtime._support.shown import shown

if TYPE_CHECKING:
    from _typeshed import SupportsRichComparison

    from reactive_runtime._flow import Flow

__all__ = ["CombiningOperators"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
R = TypeVar("R")
L = TypeVar("L", bound="SupportsRichComparison")


class CombiningOperators(FlowBase[T_co]):
    """Several sources to one."""

    __slots__ = ()

    @overload
    @staticmethod
    def concat(first: Publisher[A], second: Publisher[B], /, *, delay_error: bool = False) -> Flow[A | B]: ...

    @overload
    @staticmethod
    def concat(
        first: Publisher[A], second: Publisher[B], third: Publisher[C], /, *, delay_error: bool = False
    ) -> Flow[A | B | C]: ...

    @overload
    @staticmethod
    def concat(*sources: Publisher[T], delay_error: bool = False) -> Flow[T]: ...

    @staticmethod
    def concat(*sources: Publisher[Any], delay_error: bool = False) -> Flow[Any]:
        """The elements of the first source, then those of the second, and so on.

        It needs no stack, however many sources there are.

        Args:
            *sources: Publishers, none or more. Each is subscribed to when the one before it has completed.
            delay_error: False: the error of a source ends the flow at once, and the sources behind it are not
                subscribed to. True: the next source follows, and the errors come at the end, several of them as an
                ExceptionGroup. Where that end does not come, since the flow is cancelled, each goes to the hook.

        Returns:
            A flow of the elements of all sources. It completes with the last one; without sources at once.

        Raises:
            TypeError: One of `sources` is no publisher.

        Demand:
            Of each source what is still demanded is requested, exactly; nothing is requested ahead.

        Cancellation:
            Passes to the source that is under way. The sources behind it are not subscribed to.

        Thread:
            A source without an executor runs on the thread that requests, or on which the source before it completed.

        Example:
            >>> from reactive_runtime import Flow
            >>> list(Flow.concat(Flow.range(2), Flow.just(7)))
            [0, 1, 7]

        Origin:
            `concat` of Rx, `itertools.chain`.
        """
        flows = _flows("concat", sources)
        return combinator_flow("concat", lambda: _Concat(flows, delay_error=delay_error), *flows, inline=True)

    @stateful
    def concat_with(self, *others: Publisher[R]) -> Flow[T_co | R]:
        """The elements of the source, then those of each of `others`, as `concat` does.

        Args:
            *others: Publishers, none or more. Each is subscribed to when the one before it has completed.

        Returns:
            A flow of the elements of the source and of `others`. An error of one ends it at once. A row of
            `concat_with` is one operator, however long, and needs no stack.

        Raises:
            TypeError: One of `others` is no publisher.

        Demand:
            Of each source what is still demanded is requested, exactly; nothing is requested ahead.

        Cancellation:
            Passes to the source that is under way. Those behind it are not subscribed to.

        Thread:
            A source without an executor runs on the thread that requests, or on which the source before it completed.

        Example:
            >>> from reactive_runtime import Flow
            >>> list(Flow.range(2).concat_with(Flow.just(7)))
            [0, 1, 7]

        Origin:
            `concatWith` of Rx.
        """
        return _longer("concat_with", partial(_Concat, delay_error=False), self, _flows("concat_with", others, "other"))

    @stateful
    def start_with(self, *elements: R) -> Flow[T_co | R]:
        """First `elements`, and then the source.

        Args:
            *elements: What comes first, in this order. None is not an element (2.13).

        Returns:
            A flow of `elements` and those of the source, to which it subscribes when `elements` are through.

        Raises:
            TypeError: One of `elements` is None.

        Demand:
            `elements` wait for demand. Of the source what is still demanded is requested, exactly.

        Cancellation:
            Passes through. While `elements` are under way, the source is not subscribed to.

        Thread:
            `elements` come on the thread that requests; a source without an executor follows on the same thread.

        Example:
            >>> from reactive_runtime import Flow
            >>> list(Flow.range(2).start_with(7, 8))
            [7, 8, 0, 1]

        Origin:
            `startWith` of Rx.
        """
        if builtins.any(element is None for element in elements):
            raise TypeError("start_with: None is not an element (2.13)")
        title = f"start_with({', '.join(builtins.map(shown, elements))})"
        return combinator_flow(title, lambda: _StartWith(elements, self), self)

    @overload
    @staticmethod
    def merge(
        first: Publisher[A], second: Publisher[B], /, *, prefetch: int = PREFETCH, delay_error: bool = False
    ) -> Flow[A | B]: ...

    @overload
    @staticmethod
    def merge(
        first: Publisher[A],
        second: Publisher[B],
        third: Publisher[C],
        /,
        *,
        prefetch: int = ...,
        delay_error: bool = ...,
    ) -> Flow[A | B | C]: ...

    @overload
    @staticmethod
    def merge(*sources: Publisher[T], prefetch: int = PREFETCH, delay_error: bool = False) -> Flow[T]: ...

    @staticmethod
    def merge(*sources: Publisher[Any], prefetch: int = PREFETCH, delay_error: bool = False) -> Flow[Any]:
        """The elements of all sources, each as soon as it is there.

        The order within a source is kept. Sources that have elements take turns.

        Args:
            *sources: Publishers, none or more. All are subscribed to at once.
            prefetch: How many elements of each source wait here, at most; 1 or more.
            delay_error: False: the error of a source cancels the others, and ends the flow at once. True: the errors
                come when all sources have ended, several of them as an ExceptionGroup. Where that end does not come,
                since the flow is cancelled, each goes to the hook.

        Returns:
            A flow of the elements of all sources. It completes when all have; without sources at once.

        Raises:
            TypeError: One of `sources` is no publisher, or `prefetch` is no int.
            ValueError: `prefetch` is below 1.

        Demand:
            Of each source with an executor, or of another library, `prefetch` elements are requested ahead, and more
            when three quarters of them are through. The others are pulled by demand, in turn.

        Cancellation:
            Passes to all sources. What waits here goes to the hook.

        Thread:
            A source without an executor runs on the thread that requests. Elements go on on that thread, or on one of a
            source's; on one thread at a time.

        Example:
            >>> from reactive_runtime import Flow
            >>> sorted(Flow.merge(Flow.range(2), Flow.just(7)))
            [0, 1, 7]

        Origin:
            `merge` of Rx.
        """
        flows = _flows("merge", sources)
        at_least("merge", "prefetch", 1, prefetch)
        return combinator_flow("merge", lambda: _Merge(flows, prefetch, delay_error=delay_error), *flows, inline=True)

    @stateful
    def merge_with(self, *others: Publisher[R], prefetch: int = PREFETCH, delay_error: bool = False) -> Flow[T_co | R]:
        """The elements of the source and of `others`, each as soon as it is there, as `merge` does.

        Args:
            *others: Publishers, none or more. All are subscribed to at once.
            prefetch: How many elements of each source wait here, at most; 1 or more.
            delay_error: Whether an error waits until all sources have ended. See `merge`.

        Returns:
            A flow of the elements of the source and of `others`. It completes when all have. A row of `merge_with` with
            the same options is one operator, however long.

        Raises:
            TypeError: One of `others` is no publisher, or `prefetch` is no int.
            ValueError: `prefetch` is below 1.

        Demand:
            Of each source with an executor, or of another library, `prefetch` elements are requested ahead. The others
            are pulled by demand, in turn.

        Cancellation:
            Passes to all sources. What waits here goes to the hook.

        Thread:
            A source without an executor runs on the thread that requests. Elements go on on that thread, or on one of a
            source's; on one thread at a time.

        Example:
            >>> from reactive_runtime import Flow
            >>> sorted(Flow.range(2).merge_with(Flow.just(7)))
            [0, 1, 7]

        Origin:
            `mergeWith` of Rx.
        """
        flows = _flows("merge_with", others, "other")
        at_least("merge_with", "prefetch", 1, prefetch)
        return _longer("merge_with", partial(_Merge, prefetch=prefetch, delay_error=delay_error), self, flows)

    @overload
    @staticmethod
    def merge_comparing(*sources: Publisher[L], key: None = None, prefetch: int = PREFETCH) -> Flow[L]: ...

    @overload
    @staticmethod
    def merge_comparing(
        *sources: Publisher[T], key: Callable[[T], SupportsRichComparison], prefetch: int = PREFETCH
    ) -> Flow[T]: ...

    @staticmethod
    def merge_comparing(
        *sources: Publisher[Any], key: Callable[[Any], Any] | None = None, prefetch: int = PREFETCH
    ) -> Flow[Any]:
        """The elements of sources that are sorted, sorted: always the smallest of those in front.

        It waits until each source has an element in front, or has ended. Of equal elements, that of the first source
        comes first.

        Args:
            *sources: Publishers, none or more, each of which gives its elements in ascending order.
            key: Called once for each element; its results are compared by `<`. None: the elements themselves are
                compared.
            prefetch: How many elements of each source wait behind the one in front, at most; 1 or more.

        Returns:
            A flow of the elements of all sources. It completes when all have. It fails with an error of `key`, or of
            the comparison; and with that of a source as soon as another one has no element in front, at the latest when
            its own elements are through.

        Raises:
            TypeError: One of `sources` is no publisher, `key` cannot be called, or `prefetch` is no int.
            ValueError: `prefetch` is below 1.

        Demand:
            Of each source with an executor, or of another library, `prefetch` elements are requested ahead. The others
            are pulled by demand.

        Cancellation:
            Passes to all sources. What waits here goes to the hook.

        Thread:
            A source without an executor runs on the thread that requests. `key` and the comparison run on that thread,
            or on one of a source's; on one thread at a time.

        Example:
            >>> from reactive_runtime import Flow
            >>> list(Flow.merge_comparing(Flow.just(1, 4), Flow.just(2, 3, 9)))
            [1, 2, 3, 4, 9]

        Origin:
            `mergeComparing` of Reactor, `heapq.merge`.
        """
        flows = _flows("merge_comparing", sources)
        at_least("merge_comparing", "prefetch", 1, prefetch)
        if key is not None:
            check_callable("merge_comparing", "key", key)
        return combinator_flow("merge_comparing", lambda: _MergeComparing(flows, key, prefetch), *flows, inline=True)

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
            Passes to all sources. What waits here goes to the hook.

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
        flows = _flows("zip", sources)
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
            Passes to all sources. What waits here goes to the hook.

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
        flows = (self, *_flows("zip_with", others, "other"))
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

        It begins when each source has had an element, and gives each source its turn. What a source gives before that
        takes the place of its element before, which goes to the hook; so does what is left where no tuple has come.

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
            Passes to all sources. What waits here goes to the hook.

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
        flows = _flows("combine_latest", sources)
        at_least("combine_latest", "prefetch", 1, prefetch)
        return combinator_flow("combine_latest", lambda: _CombineLatest(flows, prefetch), *flows, inline=True)

    @overload
    @staticmethod
    def race(first: Publisher[A], second: Publisher[B], /) -> Flow[A | B]: ...

    @overload
    @staticmethod
    def race(first: Publisher[A], second: Publisher[B], third: Publisher[C], /) -> Flow[A | B | C]: ...

    @overload
    @staticmethod
    def race(*sources: Publisher[T]) -> Flow[T]: ...

    @staticmethod
    def race(*sources: Publisher[Any]) -> Flow[Any]:
        """The source that signals first, an element or its end; the others are cancelled.

        Args:
            *sources: Publishers, none or more. Sources that are pulled are asked in turn, so that the first of them
                wins.

        Returns:
            A flow of the elements of one source, with its end. Without sources it completes at once. The element that
            another source has given by then goes to the hook.

        Raises:
            TypeError: One of `sources` is no publisher.

        Demand:
            Of each source with an executor, or of another library, one element is requested ahead, to see which is
            first. Of the winner, then, what is demanded, exactly.

        Cancellation:
            Passes to all sources that are still under way.

        Thread:
            A source without an executor runs on the thread that requests. Elements go on on the thread of the winner.

        Example:
            >>> from reactive_runtime import Flow
            >>> list(Flow.race(Flow.never(), Flow.range(2)))
            [0, 1]

        Origin:
            `amb` of Rx, `firstWithSignal` of Reactor.
        """
        flows = _flows("race", sources)
        return combinator_flow("race", lambda: _Race(flows), *flows, inline=True)

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
            source, and then cancels `others`. An error of any ends it. Where one of `others` completes without an
            element, every element of the source goes to the hook.

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
        flows = _flows("with_latest_from", others, "other")
        return combinator_flow("with_latest_from", lambda: _WithLatestFrom(self, flows), self, *flows)

    @stateful
    def switch_if_empty(self, other: Publisher[R]) -> Flow[T_co | R]:
        """The source, or `other` where the source completes without an element.

        Args:
            other: A publisher. It is subscribed to only where the source completes without an element.

        Returns:
            A flow of the elements of the source, or of those of `other`. An error of the source ends it, without
            `other`.

        Raises:
            TypeError: `other` is no publisher.

        Demand:
            Passes to the source, exactly. All that was demanded is then requested of `other`.

        Cancellation:
            Passes to the one that is under way.

        Thread:
            Without an executor, `other` runs on the thread on which the source completed, or on the one that requests.

        Example:
            >>> from reactive_runtime import Flow
            >>> list(Flow.empty().switch_if_empty(Flow.range(2)))
            [0, 1]

        Origin:
            `switchIfEmpty` of Rx.
        """
        flow = as_flow("switch_if_empty", "other", other)
        return combinator_flow("switch_if_empty", lambda: _SwitchIfEmpty(self, flow), self, flow)

    @stateful
    def take_until(self, other: Publisher[object]) -> Flow[T_co]:
        """The source, until `other` signals an element or completes: the flow then completes, and cancels the source.

        No demand is needed for that.

        Args:
            other: A publisher. It is subscribed to before the source, and cancelled with its first element.

        Returns:
            A flow of the elements of the source. It ends with the source, and completes with the first element or the
            completion of `other`. An error of `other` ends it.

        Raises:
            TypeError: `other` is no publisher.

        Demand:
            Passes to the source, exactly. Of `other` one element is requested, demand or not.

        Cancellation:
            Passes to both.

        Thread:
            A source without an executor runs on the thread that requests; it does not hold up what `other` signals. The
            end by `other` comes on the thread of `other`, or on the one that is at work for the flow.

        Example:
            >>> from reactive_runtime import Flow
            >>> list(Flow.range(3).take_until(Flow.never()))
            [0, 1, 2]

        Origin:
            `takeUntil` of Rx.
        """
        flow = as_flow("take_until", "other", other)
        return combinator_flow("take_until", lambda: _TakeUntil(self, flow), self, flow)

    @stateful
    def skip_until(self, other: Publisher[object]) -> Flow[T_co]:
        """The source from when `other` has signalled an element; what comes before is dropped, to the hook.

        Args:
            other: A publisher. It is subscribed to before the source, and cancelled with its first element.

        Returns:
            A flow of the later elements of the source, with its end. Where `other` completes without an element, none
            ever passes. An error of `other` that comes before its first element ends it.

        Raises:
            TypeError: `other` is no publisher.

        Demand:
            Of the source what is demanded is requested, exactly, and one more for each element that is dropped. Of
            `other` one element is requested, demand or not.

        Cancellation:
            Passes to both.

        Thread:
            Elements go on on the thread of the source; without an executor it runs on the thread that requests.

        Example:
            >>> from reactive_runtime import Flow
            >>> list(Flow.range(3).skip_until(Flow.just("now")))
            [0, 1, 2]

        Origin:
            `skipUntil` of Rx.
        """
        flow = as_flow("skip_until", "other", other)
        return combinator_flow("skip_until", lambda: _SkipUntil(self, flow), self, flow)


def _flows(operator: str, publishers: Sequence[Publisher[Any]], each: str = "source") -> tuple[Flow[Any], ...]:
    """Flows of an operator's arguments; a message calls them `each`, by number."""
    numbered = builtins.enumerate(publishers, start=1)
    return tuple(as_flow(operator, f"{each} {number}", publisher) for number, publisher in numbered)


@dataclass(frozen=True, slots=True)
class _Several:
    """Makes the combinator of `concat_with` or `merge_with`, and keeps its sources."""

    kind: partial[Any]
    sources: tuple[FlowBase[Any], ...]

    def __call__(self) -> Combinator:
        return self.kind(self.sources)  # type: ignore[no-any-return]

    def like(self, kind: partial[Any]) -> bool:
        """Whether it makes the same combinator, with the same options."""
        return (self.kind.func, self.kind.keywords) == (kind.func, kind.keywords)


def _longer(title: str, kind: partial[Any], source: FlowBase[Any], others: tuple[Flow[Any], ...]) -> Flow[Any]:
    """One operator for `a.concat_with(b).concat_with(c)`, however long: one inside the other would mean the same."""
    flow_source = source._source
    if isinstance(flow_source, CombinatorSource) and not flow_source.executor and not source._steps and others:
        make = flow_source.make
        if isinstance(make, _Several) and make.like(kind):
            return flow_source.longer(_Several(kind, (*make.sources, *others)), others)
    flows = (source, *others)
    return combinator_flow(title, _Several(kind, flows), *flows)


class Delaying(Combinator):
    """May keep errors for the end. Where the end does not come, they go to the hook."""

    delay_error = False

    def __init__(self) -> None:
        super().__init__()
        self.delayed: list[Exception] = []  # the owner's; as they were raised

    def delay(self, error: Exception) -> None:
        """Keep the error for the end, or raise it."""
        if not self.delay_error:
            raise error
        self.delayed.append(error)

    def raise_delayed(self) -> None:
        """Raise the errors that were kept, if there are any. At the end of `elements`."""
        errors, self.delayed = self.delayed, []
        if len(errors) == 1:
            raise errors[0]
        if errors:
            raise ExceptionGroup(f"{len(errors)} sources failed", [signalled(error) for error in errors])

    def closed(self) -> None:
        errors, self.delayed = self.delayed, []
        reason = f"{self.title}: it was kept for the end, which did not come"
        each([partial(dropping.error_dropped, reason, signalled(error)) for error in errors])


class _StartWith(Combinator):
    def __init__(self, elements: tuple[Any, ...], source: FlowBase[Any]) -> None:
        super().__init__()
        self.first = elements
        self.source = source

    def elements(self) -> Elements:
        for element in self.first:
            yield from self.demand()
            yield element
        yield from self.relay(self.inner(self.source))


class _Concat(Delaying):
    def __init__(self, sources: Sequence[FlowBase[Any]], *, delay_error: bool) -> None:
        super().__init__()
        self.sources = sources
        self.delay_error = delay_error

    def elements(self) -> Elements:
        for source in self.sources:
            inner = self.inner(source)
            try:
                while (element := inner.next_if_demanded()) is not END:
                    yield element
            except Exception as error:
                self.delay(error)
            self.leave(inner)
        self.raise_delayed()


class _Merge(Delaying):
    calls = False

    def __init__(self, sources: Sequence[FlowBase[Any]], prefetch: int, *, delay_error: bool) -> None:
        super().__init__()
        self.sources = sources
        self.prefetch = prefetch
        self.delay_error = delay_error

    def elements(self) -> Elements:
        ready_set = ReadySet(self)
        for source in self.sources:
            ready_set.add(self.inner(source, self.prefetch))
        while len(ready_set):
            try:
                element = ready_set.next_if_demanded()
            except Exception as error:
                self.delay(error)
            else:
                if element is not END:
                    yield element
        self.raise_delayed()


class _InFront(Combinator):
    """Waits until each inner subscription has an element in front."""

    def __init__(self, sources: Sequence[FlowBase[Any]], prefetch: int) -> None:
        super().__init__()
        self.sources = sources
        self.prefetch = prefetch
        self.front: dict[InnerSubscription, Any] = {}

    def closed(self) -> None:
        front, self.front = self.front, {}
        self.discard(*front.values())

    def behind(self, inners: Sequence[InnerSubscription]) -> list[InnerSubscription]:
        """Take an element of each inner subscription that has none in front. Returns those that have none to give.

        Where one has none, it raises the error that another has ended with: what waits before the error goes to the
        hook.
        """
        waiting = []
        for inner in inners:
            if inner not in self.front:
                element = inner.next_if_demanded()
                if element is PENDING:
                    waiting.append(inner)
                elif element is not END:
                    self.front[inner] = element
        if waiting and self.drain.demanded:
            for inner in inners:
                inner.raise_failure()
        return waiting


class _MergeComparing(_InFront):
    def __init__(self, sources: Sequence[FlowBase[Any]], key: Callable[[Any], Any] | None, prefetch: int) -> None:
        super().__init__(sources, prefetch)
        self.key = key

    def elements(self) -> Elements:
        inners = [self.inner(source, self.prefetch) for source in self.sources]
        keys: dict[InnerSubscription, Any] = {}
        while True:
            while self.behind(inners):
                yield PENDING
            inners = [inner for inner in inners if inner in self.front]
            if not inners:
                return
            for inner in inners:
                if inner not in keys:
                    front = self.front[inner]
                    keys[inner] = front if self.key is None else self.call(self.key, front)
            best = self._least(inners, keys)
            if not self.drain.demanded:
                yield PENDING
                continue
            del keys[best]
            yield self.front.pop(best)

    def _least(self, inners: list[InnerSubscription], keys: dict[InnerSubscription, Any]) -> InnerSubscription:
        return self.call(lambda: builtins.min(inners, key=keys.__getitem__))  # type: ignore[no-any-return]


class _Zip(_InFront):
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
        self.alone: dict[InnerSubscription, Any] = {}  # the owner's; until the first tuple: no tuple has them

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


class _Race(Combinator):
    calls = False

    def __init__(self, sources: Sequence[FlowBase[Any]]) -> None:
        super().__init__()
        self.sources = sources

    def elements(self) -> Elements:
        inners = [self.inner(source, 1) for source in self.sources]  # no more than it takes to see which is first
        if not inners:
            return
        while True:
            for inner in inners:
                element = inner.next_if_demanded()
                if element is PENDING:
                    continue
                for other in inners:
                    if other is not inner:
                        self.leave(other)
                if element is END:
                    return
                self.widen(inner)
                yield element
                yield from self.relay(inner)
                return
            yield PENDING


class _WithOther(Combinator):
    """Has a source, and another publisher beside it."""

    calls = False

    def __init__(self, source: FlowBase[Any], other: FlowBase[Any]) -> None:
        super().__init__()
        self.source = source
        self.other = other


class _WithLatestFrom(Combinator):
    calls = False

    def __init__(self, source: FlowBase[Any], others: Sequence[FlowBase[Any]]) -> None:
        super().__init__()
        self.source = source
        self.others = others
        self.unused: dict[int, Any] = {}  # the owner's; the latest of each of `others`, while no tuple has it

    def elements(self) -> Elements:
        others = [self.inner(other, PREFETCH) for other in self.others]
        latest: list[Any] = [PENDING] * len(others)
        unused = self.unused
        latest[-1], main = yield from self.beside(others[-1], self.source)  # it begins when all of them have begun
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


class _SwitchIfEmpty(_WithOther):
    def elements(self) -> Elements:
        empty = True
        for element in self.relay(self.inner(self.source)):
            if element is not PENDING:
                empty = False
            yield element
        if empty:
            yield from self.relay(self.inner(self.other))


class _TakeUntil(_WithOther):
    def elements(self) -> Elements:
        other = self.inner(self.other, 1)
        news, main = yield from self.beside(other, self.source, unless=True)
        if news is not PENDING:
            if main is not None:
                main.connect_even_closed()
            return
        while other.next_signal() is PENDING:
            element = main.next_if_demanded()
            if element is END:
                return
            yield element


class _SkipUntil(_WithOther):
    def elements(self) -> Elements:
        other = self.inner(self.other, 1)
        news, main = yield from self.beside(other, self.source)
        shut = news is PENDING or news is END
        if not shut:
            self.leave(other)
        while True:
            if shut and not other.over:
                news = other.next_signal()
                shut = news is PENDING or news is END
                if not shut:
                    self.leave(other)
            element = main.next_if_demanded()
            if element is END:
                return
            if element is PENDING or not shut:
                yield element
            else:
                self.discard(element, wanted=True)
