"""Several sources to one.

Each source that has an executor, or is somebody else's, is asked for at most `prefetch` elements ahead; the others are
pulled by demand, in turn, on the thread that asks. An error of one cancels the others and ends the flow at once, unless
`delay_error`: then it comes when all have ended, several of them as an ExceptionGroup; where that end does not come,
since the flow is cancelled, each goes to the hook.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, overload

from reactive_runtime._core import hooks
from reactive_runtime._core.arguments import PREFETCH, at_least, check_callable
from reactive_runtime._core.combinator import END, PENDING, Combinator, Elements, InnerSubscription, ReadySet
from reactive_runtime._core.exits import each
from reactive_runtime._core.flow_base import FlowBase
from reactive_runtime._core.flow_source import CombinatorSource, as_flow, combinator_flow
from reactive_runtime.spec import Publisher

if TYPE_CHECKING:
    from reactive_runtime.flow import Flow

__all__ = ["CombiningOperators"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")


class CombiningOperators(FlowBase[T_co]):
    """Several sources to one."""

    __slots__ = ()

    @staticmethod
    def concat(*sources: Publisher[T], delay_error: bool = False) -> Flow[T]:
        """The elements of the first source, then those of the second, and so on.

        Each is subscribed to when the one before has completed, and is asked for what is still demanded; nothing is
        asked for ahead. Cancellation passes to the one that is under way. Needs no stack, however many there are.
        Origin: `concat` of Rx, `itertools.chain`.

        >>> from reactive_runtime import Flow
        >>> list(Flow.concat(Flow.range(2), Flow.just(7)))
        [0, 1, 7]
        """
        flows = _flows("concat", sources)
        return combinator_flow("concat", lambda: _Concat(flows, delay_error=delay_error), *flows, inline=True)

    def concat_with(self, *others: Publisher[T_co]) -> Flow[T_co]:
        """The source, then `others`, as `concat` does. Origin: `concatWith` of Rx.

        >>> from reactive_runtime import Flow
        >>> list(Flow.range(2).concat_with(Flow.just(7)))
        [0, 1, 7]
        """
        return _longer("concat_with", partial(_Concat, delay_error=False), self, _flows("concat_with", others))

    def start_with(self: FlowBase[T], *elements: T) -> Flow[T]:
        """`elements`, and then the source, by demand.

        The source is subscribed to when they are through. Cancellation passes through. Origin: `startWith` of Rx.

        >>> from reactive_runtime import Flow
        >>> list(Flow.range(2).start_with(7, 8))
        [7, 8, 0, 1]
        """
        if builtins.any(element is None for element in elements):
            raise TypeError("start_with: None is not an element (2.13)")
        title = f"start_with({', '.join(builtins.map(repr, elements))})"
        return combinator_flow(title, lambda: _StartWith(elements, self), self)

    @staticmethod
    def merge(*sources: Publisher[T], prefetch: int = PREFETCH, delay_error: bool = False) -> Flow[T]:
        """The elements of all sources, each as soon as it is there.

        The order within a source is kept. Completes when all have. At most `prefetch` elements of each source (1 or
        more) wait here. Cancellation passes to all. Origin: `merge` of Rx.

        >>> from reactive_runtime import Flow
        >>> sorted(Flow.merge(Flow.range(2), Flow.just(7)))
        [0, 1, 7]
        """
        flows = _flows("merge", sources)
        at_least("merge", "prefetch", 1, prefetch)
        return combinator_flow("merge", lambda: _Merge(flows, prefetch, delay_error=delay_error), *flows, inline=True)

    def merge_with(self, *others: Publisher[T_co], prefetch: int = PREFETCH, delay_error: bool = False) -> Flow[T_co]:
        """The source and `others`, as `merge` does. Origin: `mergeWith` of Rx.

        >>> from reactive_runtime import Flow
        >>> sorted(Flow.range(2).merge_with(Flow.just(7)))
        [0, 1, 7]
        """
        flows = _flows("merge_with", others)
        at_least("merge_with", "prefetch", 1, prefetch)
        return _longer("merge_with", partial(_Merge, prefetch=prefetch, delay_error=delay_error), self, flows)

    @staticmethod
    def merge_comparing(
        *sources: Publisher[T], key: Callable[[T], Any] | None = None, prefetch: int = PREFETCH
    ) -> Flow[T]:
        """The elements of sources that are sorted, sorted: always the smallest (by `key`) of those in front.

        Waits until each source has an element in front, or has ended; holds that one and at most `prefetch` behind it.
        Errors of `key` or of the comparison end the flow. Cancellation passes to all.
        Origin: `mergeComparing` of Reactor, `heapq.merge`.

        >>> from reactive_runtime import Flow
        >>> list(Flow.merge_comparing(Flow.just(1, 4), Flow.just(2, 3, 9)))
        [1, 2, 3, 4, 9]
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

        Completes as soon as one that has ended has no element left, and cancels the others. Holds at most `prefetch`
        elements of each (1 or more); those that find no partner go to the hook. Origin: `zip` of Rx and of Python.

        >>> from reactive_runtime import Flow
        >>> list(Flow.zip(Flow.range(1_000_000_000), Flow.just("a", "b")))
        [(0, 'a'), (1, 'b')]
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
    def zip_with(self: FlowBase[Any], *others: Publisher[Any], prefetch: int = PREFETCH) -> Flow[tuple[Any, ...]]: ...

    def zip_with(self: FlowBase[Any], *others: Publisher[Any], prefetch: int = PREFETCH) -> Flow[Any]:
        """The source and `others`, as `zip` does. Origin: `zipWith` of Rx.

        >>> from reactive_runtime import Flow
        >>> list(Flow.just("a", "b").zip_with(Flow.range(9)))
        [('a', 0), ('b', 1)]
        """
        flows = (self, *_flows("zip_with", others))
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

        Begins when each has had one. Completes when all have, or when one has completed without an element. Holds at
        most `prefetch` elements of each (1 or more), and gives each its turn. Cancellation passes to all.
        Origin: `combineLatest` of Rx.

        >>> from reactive_runtime import Flow
        >>> list(Flow.combine_latest(Flow.just("a"), Flow.range(2)))
        [('a', 0), ('a', 1)]
        """
        flows = _flows("combine_latest", sources)
        at_least("combine_latest", "prefetch", 1, prefetch)
        return combinator_flow("combine_latest", lambda: _CombineLatest(flows, prefetch), *flows, inline=True)

    @staticmethod
    def race(*sources: Publisher[T]) -> Flow[T]:
        """The source that signals first, an element or its end; the others are cancelled.

        Those with an executor are asked for one element ahead, to see; sources that are pulled are asked in turn, so
        that the first of them wins. Origin: `amb` of Rx, `firstWithSignal` of Reactor.

        >>> from reactive_runtime import Flow
        >>> list(Flow.race(Flow.never(), Flow.range(2)))
        [0, 1]
        """
        flows = _flows("race", sources)
        return combinator_flow("race", lambda: _Race(flows), *flows, inline=True)

    def with_latest_from(self: FlowBase[A], other: Publisher[B]) -> Flow[tuple[A, B]]:
        """Each element of the source with the latest one of `other`; those before there is one go to the hook.

        Completes with the source. `other` is asked for everything, and only its latest element is kept. For each
        element dropped one more is asked for. Cancellation passes to both. Origin: `withLatestFrom` of Rx.

        >>> from reactive_runtime import Flow
        >>> list(Flow.just("a", "b").with_latest_from(Flow.just(7)))
        [('a', 7), ('b', 7)]
        """
        flow = as_flow("with_latest_from", "other", other)
        return combinator_flow("with_latest_from", lambda: _WithLatestFrom(self, flow), self, flow)

    def switch_if_empty(self, other: Publisher[T_co]) -> Flow[T_co]:
        """The source, or `other` where it completes without an element.

        `other` is subscribed to only then, and asked for what is demanded. Cancellation passes to the one under way.
        Origin: `switchIfEmpty` of Rx.

        >>> from reactive_runtime import Flow
        >>> list(Flow.empty().switch_if_empty(Flow.range(2)))
        [0, 1]
        """
        flow = as_flow("switch_if_empty", "other", other)
        return combinator_flow("switch_if_empty", lambda: _SwitchIfEmpty(self, flow), self, flow)

    def take_until(self, other: Publisher[object]) -> Flow[T_co]:
        """The source, until `other` signals an element or completes: the flow then completes, and cancels the source.

        No demand is needed for that. `other` is asked for one element; its error ends the flow. Demand and cancellation
        pass to the source. Origin: `takeUntil` of Rx.

        >>> from reactive_runtime import Flow
        >>> list(Flow.range(3).take_until(Flow.never()))
        [0, 1, 2]
        """
        flow = as_flow("take_until", "other", other)
        return combinator_flow("take_until", lambda: _TakeUntil(self, flow), self, flow)

    def skip_until(self, other: Publisher[object]) -> Flow[T_co]:
        """The source from when `other` has signalled an element; what comes before is dropped.

        `other` is asked for one element; if it completes without, nothing ever passes; its error ends the flow. For
        each element dropped one more is asked for; cancellation passes to both. Origin: `skipUntil` of Rx.

        >>> from reactive_runtime import Flow
        >>> list(Flow.range(3).skip_until(Flow.just("now")))
        [0, 1, 2]
        """
        flow = as_flow("skip_until", "other", other)
        return combinator_flow("skip_until", lambda: _SkipUntil(self, flow), self, flow)


def _flows(operator: str, publishers: Sequence[Publisher[Any]]) -> tuple[Flow[Any], ...]:
    numbered = builtins.enumerate(publishers, start=1)
    return tuple(as_flow(operator, f"source {number}", publisher) for number, publisher in numbered)


@dataclass(frozen=True, slots=True)
class _Several:
    """Makes `concat_with` or `merge_with` of several sources, and knows which they are."""

    kind: partial[Any]
    sources: tuple[FlowBase[Any], ...]

    def __call__(self) -> Combinator:
        return self.kind(self.sources)  # type: ignore[no-any-return]

    def like(self, kind: partial[Any]) -> bool:
        """Whether it means the same, but for its sources."""
        return (self.kind.func, self.kind.keywords) == (kind.func, kind.keywords)


def _longer(title: str, kind: partial[Any], source: FlowBase[Any], others: tuple[Flow[Any], ...]) -> Flow[Any]:
    """One operator for `a.concat_with(b).concat_with(c)`, however long: it means the same as one inside the other."""
    flow_source = source._source
    if isinstance(flow_source, CombinatorSource) and not flow_source.executor and not source._steps and others:
        make = flow_source.make
        if isinstance(make, _Several) and make.like(kind):
            return flow_source.longer(_Several(kind, (*make.sources, *others)), others)
    flows = (source, *others)
    return combinator_flow(title, _Several(kind, flows), *flows)


class Delaying(Combinator):
    """May keep errors for the end. Where that does not come, they go to the hook."""

    delay_error = False

    def __init__(self) -> None:
        super().__init__()
        self.delayed: list[Exception] = []  # the owner's

    def delay(self, error: Exception) -> None:
        """Keep the error for the end, or raise it."""
        if not self.delay_error:
            raise error
        self.delayed.append(error)

    def raise_delayed(self) -> None:
        """This is the end: raise what was kept, if anything."""
        errors, self.delayed = self.delayed, []
        if len(errors) == 1:
            raise errors[0]
        if errors:
            raise ExceptionGroup(f"{len(errors)} sources failed", errors)

    def closed(self) -> None:
        errors, self.delayed = self.delayed, []
        reason = f"{self.title}: it was kept for the end, which did not come"
        each([partial(hooks.error_dropped, reason, error) for error in errors])


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
        """Take an element of each inner subscription that has none in front; those that have none to give.

        Where one has none, raises the error that another has ended with: what waits before it goes to the hook.
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

    def elements(self) -> Elements:
        inners = [self.inner(source, self.prefetch) for source in self.sources]
        latest: dict[InnerSubscription, Any] = {}
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
                latest[inner] = element
                if len(latest) == len(inners):
                    yield tuple(latest[item] for item in inners)
            if idle:
                yield PENDING


class _Race(Combinator):
    calls = False

    def __init__(self, sources: Sequence[FlowBase[Any]]) -> None:
        super().__init__()
        self.sources = sources

    def elements(self) -> Elements:
        inners = [self.inner(source, 1) for source in self.sources]  # no more than it takes to see who is first
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
    """Has a source, and another one beside it."""

    calls = False

    def __init__(self, source: FlowBase[Any], other: FlowBase[Any]) -> None:
        super().__init__()
        self.source = source
        self.other = other


class _WithLatestFrom(_WithOther):
    def elements(self) -> Elements:
        other = self.inner(self.other, PREFETCH)
        latest, main = yield from self.beside(other, self.source)
        if latest is END:
            latest = PENDING
        while True:
            while (news := other.next_signal()) is not PENDING and news is not END:
                latest = news
            element = main.next_if_demanded()
            if element is END:
                return
            if element is PENDING or latest is not PENDING:
                yield element if element is PENDING else (element, latest)
            else:
                self.discard(element, wanted=True)


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
