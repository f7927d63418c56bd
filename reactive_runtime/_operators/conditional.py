"""Operators that decide whether elements pass, or of which source, and those that answer yes or no.

`all`, `any` and `contains` request every element, and cancel the upstream as soon as they know the answer. `take_until`
and `skip_until` subscribe to the other publisher first, since the source may keep the thread that subscribes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, overload

from reactive_runtime._core.drains.combinator import END, PENDING, Combinator, Elements
from reactive_runtime._core.fusion.step import STOP, Each, Step, describe
from reactive_runtime._core.runtime.arguments import a_value, check_callable
from reactive_runtime._operators.aggregating import Fold
from reactive_runtime._operators.combining import as_flows
from reactive_runtime._operators.filtering import ByPredicate
from reactive_runtime._operators.flow_base import FlowBase, as_flow, combinator_flow
from reactive_runtime._operators.stateful import stateful
from reactive_runtime._spec import Publisher
from reactive_runtime._support.shown import shown

if TYPE_CHECKING:
    from reactive_runtime._flow import Flow

__all__ = ["ConditionalOperators"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
R = TypeVar("R")


class ConditionalOperators(FlowBase[T_co]):
    """Operators that decide whether elements pass, or of which source, and those that answer yes or no."""

    __slots__ = ()

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
        flows = as_flows("race", sources)
        return combinator_flow("race", lambda: _Race(flows), *flows, inline=True)

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

    @stateful
    def take_while(self, predicate: Callable[[T_co], object]) -> Flow[T_co]:
        """The elements before the first one for which `predicate(element)` is false.

        Args:
            predicate: Called once for each element, up to the first false answer. That element is dropped.

        Returns:
            A flow that completes where `predicate` is false first, or with the source. It fails with the error that
            `predicate` raises.

        Raises:
            TypeError: `predicate` cannot be called.

        Demand:
            Passes through.

        Cancellation:
            Passes through. The first false answer cancels the upstream.

        Thread:
            `predicate` is called on the thread that signals.

        Example:
            >>> from reactive_runtime import Flow
            >>> list(Flow.just(1, 4, 9, 2).take_while(lambda n: n < 5))
            [1, 4]

        Origin:
            `takeWhile` of Rx, `itertools.takewhile`.
        """
        return self._then(_TakeWhile(check_callable("take_while", "predicate", predicate)))

    @stateful
    def skip_while(self, predicate: Callable[[T_co], object]) -> Flow[T_co]:
        """The elements from the first one on for which `predicate(element)` is false.

        Args:
            predicate: Called once for each element, up to the first false answer, and not after that.

        Returns:
            A flow that begins with the element for which `predicate` is false first. It fails with the error that
            `predicate` raises.

        Raises:
            TypeError: `predicate` cannot be called.

        Demand:
            For each element that is dropped, one more is requested upstream.

        Cancellation:
            Passes through.

        Thread:
            `predicate` is called on the thread that signals.

        Example:
            >>> from reactive_runtime import Flow
            >>> list(Flow.just(1, 4, 9, 2).skip_while(lambda n: n < 5))
            [9, 2]

        Origin:
            `skipWhile` of Rx, `itertools.dropwhile`.
        """
        return self._then(_SkipWhile(check_callable("skip_while", "predicate", predicate)))

    @stateful
    def default_if_empty(self, default: R) -> Flow[T_co | R]:
        """The source, or `default` where it completes without an element.

        `switch_if_empty` has a flow in place of the element.

        Args:
            default: The element that an empty source becomes.

        Returns:
            A flow with at least one element, unless the source fails.

        Raises:
            TypeError: `default` is None, which is not an element (2.13).

        Demand:
            Passes through.

        Cancellation:
            Passes through.

        Thread:
            Runs on the thread that signals.

        Example:
            >>> from reactive_runtime import Flow
            >>> list(Flow.empty().default_if_empty(1))
            [1]

        Origin:
            `defaultIfEmpty` of Rx.
        """
        return self._then(_DefaultIfEmpty(a_value("default_if_empty", "default", default)))

    @stateful
    def all(self, predicate: Callable[[T_co], object] = bool) -> Flow[bool]:
        """Whether `predicate(element)` is true for every element.

        Args:
            predicate: Called for each element, up to the first false answer. By default the element itself is the
                answer.

        Returns:
            A flow of one bool, which is False with the first element that fails, or True at the end of the source. It
            fails with the error that `predicate` raises.

        Raises:
            TypeError: `predicate` cannot be called.

        Demand:
            All elements are requested upstream.

        Cancellation:
            Passes through. The upstream is cancelled as soon as the answer is known.

        Thread:
            `predicate` is called on the thread that signals.

        Example:
            >>> from reactive_runtime import Flow
            >>> Flow.range(5).all(lambda n: n < 5).block()
            True

        Origin:
            `all` of Rx and of Python.
        """
        return self._then(_Decide("all", check_callable("all", "predicate", predicate), decided=False))

    @stateful
    def any(self, predicate: Callable[[T_co], object] = bool) -> Flow[bool]:
        """Whether `predicate(element)` is true for some element.

        Args:
            predicate: Called for each element, up to the first true answer. By default the element itself is the
                answer.

        Returns:
            A flow of one bool, which is True with the first element that passes, or False at the end of the source. It
            fails with the error that `predicate` raises.

        Raises:
            TypeError: `predicate` cannot be called.

        Demand:
            All elements are requested upstream.

        Cancellation:
            Passes through. The upstream is cancelled as soon as the answer is known.

        Thread:
            `predicate` is called on the thread that signals.

        Example:
            >>> from reactive_runtime import Flow
            >>> Flow.range(1_000_000_000).any(lambda n: n > 5).block()
            True

        Origin:
            `any` of Rx and of Python.
        """
        return self._then(_Decide("any", check_callable("any", "predicate", predicate), decided=True))

    @stateful
    def contains(self: FlowBase[T], element: T) -> Flow[bool]:
        """Whether an element equals `element`.

        Args:
            element: The value that each element is compared with, by `==`.

        Returns:
            A flow of one bool, which is True with the first element that is equal, or False at the end of the source.
            It fails with the error that `==` raises.

        Demand:
            All elements are requested upstream.

        Cancellation:
            Passes through. The upstream is cancelled as soon as the answer is known.

        Thread:
            The elements are compared on the thread that signals.

        Example:
            >>> from reactive_runtime import Flow
            >>> Flow.just("a", "b").contains("b").block()
            True

        Origin:
            `contains` of RxJava.
        """
        return self._then(_Contains(element))


class _Race(Combinator):
    calls = False

    def __init__(self, sources: Sequence[FlowBase[Any]]) -> None:
        super().__init__()
        self.sources = sources

    def elements(self) -> Elements:
        inners = [self.inner(source, 1) for source in self.sources]  # one element of each shows which is first
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


class _TakeWhile(ByPredicate[T]):
    name = "take_while"

    def on_next(self, element: T) -> Each[T]:
        if not self.predicate(element):
            self.done = True
            return STOP
        yield element


class _SkipWhile(ByPredicate[T]):
    name = "skip_while"
    passing = False

    def on_next(self, element: T) -> Each[T]:
        if not self.passing:
            self.passing = not self.predicate(element)
        if self.passing:
            yield element


class _DefaultIfEmpty(Step[T, T]):
    name = "default_if_empty"
    calls = False
    empty = True

    def __init__(self, default: T) -> None:
        self.default = default

    def on_next(self, element: T) -> Each[T]:
        self.empty = False
        yield element

    def on_complete(self) -> Iterator[T]:
        if self.empty:
            yield self.default

    def __str__(self) -> str:
        return f"default_if_empty({shown(self.default)})"


class _Decide(Fold[T, bool]):
    def __init__(self, name: str, predicate: Callable[[T], object], *, decided: bool) -> None:
        self.operator = name
        self.predicate = predicate
        self.decided = decided

    def on_next(self, element: T) -> Each[bool]:
        if bool(self.predicate(element)) is self.decided:
            self.done = True
            yield self.decided
            return STOP

    def on_complete(self) -> Iterator[bool]:
        yield not self.decided

    def __str__(self) -> str:
        return f"{self.operator}({describe(self.predicate)})"


class _Contains(Fold[T, bool]):
    name = "contains"

    def __init__(self, wanted: T) -> None:
        self.wanted = wanted

    def on_next(self, element: T) -> Each[bool]:
        if element == self.wanted:
            self.done = True
            yield True
            return STOP

    def on_complete(self) -> Iterator[bool]:
        yield False

    def __str__(self) -> str:
        return f"contains({shown(self.wanted)})"
