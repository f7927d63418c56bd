"""Several sources to one.

Each source that has an executor, or is a publisher of another library, is asked for at most `prefetch` elements ahead;
the others are pulled by demand, in turn, on the thread that requests. An error of one cancels the others and ends the
flow at once, unless `delay_error`: then it comes when all have ended, several of them as an ExceptionGroup; where that
end does not come, since the flow is cancelled, each goes to the hook.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, overload

from reactive_runtime._core.drains.combinator import END, PENDING, Combinator, Elements, InnerSubscription, ReadySet
from reactive_runtime._core.failures import dropping
from reactive_runtime._core.failures.error_carrier import signalled
from reactive_runtime._core.failures.exits import each
from reactive_runtime._core.fusion.step import Each, Step
from reactive_runtime._core.runtime.arguments import PREFETCH, at_least, check_callable
from reactive_runtime._core.sources.flow_source import CombinatorSource
from reactive_runtime._core.sources.prefix import Prefix
from reactive_runtime._operators.flow_base import FlowBase, as_flow, combinator_flow, flow_of
from reactive_runtime._operators.stateful import stateful
from reactive_runtime._spec import Publisher
from reactive_runtime._support.shown import shown

if TYPE_CHECKING:
    from _typeshed import SupportsRichComparison

    from reactive_runtime._flow import Flow

__all__ = ["CombiningOperators", "Delaying", "InFront", "Several", "as_flows"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
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
                ExceptionGroup. If that end does not come, since the flow is cancelled, each goes to the hook.

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
        flows = as_flows("concat", sources)
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
        return _longer(
            "concat_with", partial(_Concat, delay_error=False), self, as_flows("concat_with", others, "other")
        )

    @stateful
    def start_with(self, *elements: R) -> Flow[T_co | R]:
        """First `elements`, and then the source.

        Args:
            *elements: The elements that come first, in this order. None is not an element (2.13).

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
                come when all sources have ended, several of them as an ExceptionGroup. If that end does not come, since
                the flow is cancelled, each goes to the hook.

        Returns:
            A flow of the elements of all sources. It completes when all have; without sources at once.

        Raises:
            TypeError: One of `sources` is no publisher, or `prefetch` is no int.
            ValueError: `prefetch` is below 1.

        Demand:
            Of each source with an executor, or of another library, `prefetch` elements are requested ahead, and more
            when three quarters of them are through. The others are pulled by demand, in turn.

        Cancellation:
            Passes to all sources. Elements that wait here go to the hook.

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
        flows = as_flows("merge", sources)
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
            Passes to all sources. Elements that wait here go to the hook.

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
        flows = as_flows("merge_with", others, "other")
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
            Passes to all sources. Elements that wait here go to the hook.

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
        flows = as_flows("merge_comparing", sources)
        at_least("merge_comparing", "prefetch", 1, prefetch)
        if key is not None:
            check_callable("merge_comparing", "key", key)
        return combinator_flow("merge_comparing", lambda: _MergeComparing(flows, key, prefetch), *flows, inline=True)

    @stateful
    def end_with(self, *elements: R) -> Flow[T_co | R]:
        """The source, and then `elements`.

        Args:
            *elements: The elements that come after the source, in this order. None of them is None.

        Returns:
            A flow that ends with `elements`. If the source fails, its error comes instead of them.

        Raises:
            TypeError: One of `elements` is None, which is not an element (2.13).

        Demand:
            Passes through. `elements` go on by demand.

        Cancellation:
            Passes through.

        Thread:
            Runs on the thread that signals.

        Example:
            >>> from reactive_runtime import Flow
            >>> list(Flow.range(2).end_with(7, 8))
            [0, 1, 7, 8]

        Origin:
            `endWith` of Rx.
        """
        if builtins.any(element is None for element in elements):
            raise TypeError("end_with: None is not an element (2.13)")
        return self._then(_EndWith(elements))


def as_flows(operator: str, publishers: Sequence[Publisher[Any]], each: str = "source") -> tuple[Flow[Any], ...]:
    """Make flows of an operator's arguments; an error message calls them `each`, with a number."""
    numbered = builtins.enumerate(publishers, start=1)
    return tuple(as_flow(operator, f"{each} {number}", publisher) for number, publisher in numbered)


@dataclass(frozen=True, slots=True)
class Several:
    """Makes the combinator of `concat_with` or `merge_with`, and keeps its sources."""

    kind: partial[Any]
    sources: Prefix[FlowBase[Any]]

    def __call__(self) -> Combinator:
        return self.kind(self.sources)  # type: ignore[no-any-return]

    def like(self, kind: partial[Any]) -> bool:
        """Whether it makes the same combinator, with the same options."""
        return (self.kind.func, self.kind.keywords) == (kind.func, kind.keywords)


def _longer(title: str, kind: partial[Any], source: FlowBase[Any], others: tuple[Flow[Any], ...]) -> Flow[Any]:
    """Make one operator of `a.concat_with(b).concat_with(c)`, however long: nested operators would mean the same."""
    flow_source = source._source
    if isinstance(flow_source, CombinatorSource) and not flow_source.executor and not source._steps and others:
        make = flow_source.make
        if isinstance(make, Several) and make.like(kind):
            sources = make.sources.and_then(others)
            return flow_of(flow_source.longer(Several(kind, sources), sources, others))
    flows = (source, *others)
    return combinator_flow(title, Several(kind, Prefix(flows)), *flows)


class Delaying(Combinator):
    """May keep errors until the end. If the flow is cancelled before the end, they go to the hook."""

    delay_error = False

    def __init__(self) -> None:
        super().__init__()
        self.delayed: list[Exception] = []  # the owner's; as the sources raised them

    def delay(self, error: Exception) -> None:
        """Keep the error for the end, or raise it."""
        if not self.delay_error:
            raise error
        self.delayed.append(error)

    def raise_delayed(self) -> None:
        """Raise the errors that `delay` kept, if there are any. `elements` calls it at its end."""
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


class InFront(Combinator):
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
        """Take an element of each inner subscription that has none in front. Return those that have none to give.

        If one has none, raise the error that another has ended with: the elements that wait before the error go to the
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


class _MergeComparing(InFront):
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


class _EndWith(Step[T, T]):
    name = "end_with"

    def __init__(self, elements: tuple[T, ...]) -> None:
        self.elements = elements

    def on_next(self, element: T) -> Each[T]:
        yield element

    def on_complete(self) -> Iterator[T]:
        for element in self.elements:  # noqa: UP028 - a step writes its loops
            yield element

    def __str__(self) -> str:
        return f"end_with({', '.join(builtins.map(shown, self.elements))})"
