"""A flow of flows to one: each element becomes a publisher, or a coroutine.

`concurrency` bounds how many are in flight, and thereby the source: no more elements of it are asked for than can be
worked on, and the next one when one that is in flight has ended. An error of one, or of the function, cancels the
others and ends the flow; what had been delivered before stays delivered. Cancellation passes to the source and to all
that is in flight.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, overload

from reactive_runtime._core import eventloop
from reactive_runtime._core.arguments import PREFETCH, at_least, check_callable, is_coroutine_function
from reactive_runtime._core.combinator import END, PENDING, Elements, InnerSubscription, ReadySet
from reactive_runtime._core.flow_base import FlowBase
from reactive_runtime._core.flow_source import as_flow, combinator_flow
from reactive_runtime._core.step import describe
from reactive_runtime._operators._concurrency import Bounded
from reactive_runtime._operators._coroutines import Coroutines
from reactive_runtime.spec import Publisher

if TYPE_CHECKING:
    from reactive_runtime.flow import Flow

__all__ = ["FlatteningOperators"]

T_co = TypeVar("T_co", covariant=True)
R = TypeVar("R")

AT_HAND = 32
"""How many elements `switch_map` takes from a publisher, at most, before it looks at its source again."""


class FlatteningOperators(FlowBase[T_co]):
    """A flow of flows to one: each element becomes a publisher, or a coroutine."""

    __slots__ = ()

    @overload
    def flat_map(
        self,
        fn: Callable[[T_co], Coroutine[Any, Any, R]],
        concurrency: int = ...,
        *,
        prefetch: int = ...,
        delay_error: bool = ...,
    ) -> Flow[R]: ...

    @overload
    def flat_map(
        self,
        fn: Callable[[T_co], Publisher[R]],
        concurrency: int = ...,
        *,
        prefetch: int = ...,
        delay_error: bool = ...,
    ) -> Flow[R]: ...

    def flat_map(
        self,
        fn: Callable[[T_co], Any],
        concurrency: int = 16,
        *,
        prefetch: int = PREFETCH,
        delay_error: bool = False,
    ) -> Flow[Any]:
        """Each element becomes the publisher `fn(element)`; the elements of up to `concurrency` of them, as they come.

        Holds at most `concurrency` x `prefetch` elements (both 1 or more): that much is asked for ahead of publishers
        that have an executor, or are somebody else's; the others are pulled by demand, in turn, on the thread that
        asks. The source begins with the first demand. Between two turns of one publisher each other that has an element
        has its turn.

        With `delay_error`, errors of the source, of `fn` and of the publishers come when all publishers have ended,
        several of them as an ExceptionGroup; where that end does not come, they go to the hook.

        `fn` may be a coroutine function: its result is the one element. Coroutines run on one event loop thread, where
        what follows goes on, up to the next boundary; cancelling the flow cancels them.
        Origin: `flatMap` of Rx.

        >>> from reactive_runtime import Flow
        >>> sorted(Flow.range(3).flat_map(lambda n: Flow.just(n, n * 10)))
        [0, 0, 1, 2, 10, 20]
        """
        check_callable("flat_map", "fn", fn, awaited=True)
        at_least("flat_map", "concurrency", 1, concurrency)
        at_least("flat_map", "prefetch", 1, prefetch)
        title = f"flat_map({describe(fn)}, {concurrency})"
        if is_coroutine_function(fn):
            return combinator_flow(
                title,
                lambda: Coroutines(self, fn, concurrency, ordered=False, delay_error=delay_error, after=delay_error),
                self,
                uses=(eventloop.OURS,),
            )
        return combinator_flow(title, lambda: _FlatMap(self, fn, concurrency, prefetch, delay_error=delay_error), self)

    def flat_map_sequential(
        self,
        fn: Callable[[T_co], Publisher[R]],
        *,
        concurrency: int = 16,
        prefetch: int = PREFETCH,
        delay_error: bool = False,
    ) -> Flow[R]:
        """Each element becomes the publisher `fn(element)`; up to `concurrency` are under way, their elements in order.

        The elements of one come when all before it have completed; meanwhile at most `prefetch` of each wait. A
        publisher whose last operator is an asynchronous one goes on too, and is asked for `prefetch` elements.
        Otherwise as `flat_map`. Origin: `flatMapSequential` of Reactor, `concatMapEager` of RxJava.

        >>> from reactive_runtime import Flow
        >>> list(Flow.range(3).flat_map_sequential(lambda n: Flow.just(n, n * 10)))
        [0, 0, 1, 10, 2, 20]
        """
        check_callable("flat_map_sequential", "fn", fn)
        at_least("flat_map_sequential", "concurrency", 1, concurrency)
        at_least("flat_map_sequential", "prefetch", 1, prefetch)
        title = f"flat_map_sequential({describe(fn)}, {concurrency})"
        return combinator_flow(
            title, lambda: _Sequential(self, fn, concurrency, prefetch, delay_error=delay_error), self
        )

    def concat_map(self, fn: Callable[[T_co], Publisher[R]], *, delay_error: bool = False) -> Flow[R]:
        """Each element becomes the publisher `fn(element)`; the elements of one after the other.

        One at a time is subscribed to, and asked for what is demanded, no more. Otherwise as `flat_map`.
        Origin: `concatMap` of Rx.

        >>> from reactive_runtime import Flow
        >>> list(Flow.range(3).concat_map(lambda n: Flow.just(n, n * 10)))
        [0, 0, 1, 10, 2, 20]
        """
        check_callable("concat_map", "fn", fn)
        title = f"concat_map({describe(fn)})"
        return combinator_flow(title, lambda: _ConcatMap(self, fn, delay_error=delay_error), self)

    def switch_map(self, fn: Callable[[T_co], Publisher[R]], *, prefetch: int = PREFETCH) -> Flow[R]:
        """Each element becomes the publisher `fn(element)`, which takes the place of the one before: that is cancelled.

        The source is asked for everything, and a new element switches at once, demand or not. At most `prefetch`
        elements of the current publisher (1 or more) wait, and are dropped with it. A source that is pulled is asked
        for its next element when the current publisher has nothing. Completes when the source and the current publisher
        have.
        Origin: `switchMap` of Rx.

        >>> from reactive_runtime import Flow
        >>> list(Flow.range(3).switch_map(lambda n: Flow.just(n, n * 10)))
        [0, 0, 1, 10, 2, 20]
        """
        check_callable("switch_map", "fn", fn)
        at_least("switch_map", "prefetch", 1, prefetch)
        return combinator_flow(f"switch_map({describe(fn)})", lambda: _SwitchMap(self, fn, prefetch), self)

    def expand(self, fn: Callable[[T_co], Publisher[T_co]], *, concurrency: int = 16) -> Flow[T_co]:
        """Each element, then those of the publisher `fn(element)`, each of which is expanded in turn: a tree.

        The next element is expanded when no publisher under way has anything to give: so sources that are pulled give
        the tree level by level. Up to `concurrency` publishers (1 or more) are under way, in turn; elements that wait
        to be expanded are kept, and their number has no other bound than the tree's breadth. Errors and cancellation
        are those of `flat_map`. Origin: `expand` of Reactor.

        >>> from reactive_runtime import Flow
        >>> list(Flow.just(1).expand(lambda n: Flow.just(2 * n, 2 * n + 1) if n < 4 else Flow.empty()))
        [1, 2, 3, 4, 5, 6, 7]
        """
        check_callable("expand", "fn", fn)
        at_least("expand", "concurrency", 1, concurrency)
        return combinator_flow(f"expand({describe(fn)})", lambda: _Expand(self, fn, concurrency), self)


class _OfPublishers(Bounded):
    """Each element becomes a publisher."""

    ahead = False
    """What a publisher does goes on while its elements are not polled."""

    asked = False
    """Whether one was asked for what it has at hand, since an error has to come after that."""

    def __init__(self, source: FlowBase[Any], fn: Callable[[Any], Publisher[Any]], prefetch: int | None) -> None:
        super().__init__()
        self.source = source
        self.fn = fn
        self.prefetch = prefetch

    def after(self, inner: InnerSubscription) -> bool:
        """Whether an error of the source, or of the function, has to wait yet: for what `inner` has at hand.

        What is pulled waits for demand, if the source is pulled as well. What has a drain of its own is asked once.
        """
        if inner.over:
            return False
        if not self.drain.demanded:
            plan = self.source._source.plan()
            return not inner.waits() and plan.pulls and plan.executor is None
        if self.asked or not inner.waits():
            return False
        self.asked = True
        inner.request(1)
        self.drain._later(partial(self.drain._add, 0))
        return True

    def inner_of(self, element: Any) -> InnerSubscription:
        """Subscribe to what the function makes of `element`."""
        publisher = self.call(self.fn, element)
        if not callable(getattr(publisher, "subscribe", None)):
            raise self.fault(
                TypeError(
                    f"{self.title}: {describe(self.fn)} must return a publisher, not {type(publisher).__name__},"
                    f" for {element!r}"
                )
            )
        flow = as_flow(self.title, "the result", publisher)
        # As long as all of them are pulled on this thread, there is nothing to hear from elsewhere.
        return self.inner(flow, self.prefetch, apart=self.apart and self.elsewhere, ahead=self.ahead, made=True)


class _FlatMap(_OfPublishers):
    def __init__(
        self,
        source: FlowBase[Any],
        fn: Callable[[Any], Publisher[Any]],
        concurrency: int,
        prefetch: int,
        *,
        delay_error: bool,
    ) -> None:
        super().__init__(source, fn, prefetch)
        self.concurrency = concurrency
        self.delay_error = delay_error

    def elements(self) -> Elements:
        ready_set = ReadySet(self)
        outer = self.outer()
        while True:
            try:
                ready_set.settle()
                news = self.news(outer, len(ready_set))
                if news is not PENDING and news is not END:
                    ready_set.add(inner := self.inner_of(news))
                    inner.begin()
                room = news is not PENDING and news is not END
                # The others first: another one may raise when it begins.
                while (element := ready_set.next_if_demanded()) is END:
                    room = True
            except Exception as error:
                self.delay(error)
                continue
            if element is PENDING and room:
                continue  # for another one
            if element is PENDING and outer.over and not len(ready_set):
                break
            yield element
        self.raise_delayed()


class _Sequential(_FlatMap):
    ahead = True

    def elements(self) -> Elements:
        line: deque[InnerSubscription] = deque()
        outer = self.outer()
        failing = False  # the function, or the source, has failed: what is at hand comes before the error
        while True:
            element: Any = PENDING
            news: Any = PENDING
            try:
                if line and line[0].spent() and line[0].peek_end() is END:
                    # It is cancelled before the source is asked for more.
                    self.leave(line.popleft())
                if not failing:
                    try:
                        news = self.news(outer, len(line))
                        if news is not PENDING and news is not END:
                            line.append(self.inner_of(news))
                    except Exception as error:
                        if self.delay_error:
                            self.delayed.append(error)
                        else:
                            failing = True
                            self.put_off(error)
                if line:
                    element = line[0].next_if_demanded()
            except Exception as error:
                self.delay(error)
                if line and line[0].over:
                    self.leave(line.popleft())
                continue
            if element is END:
                self.leave(line.popleft())
            elif element is not PENDING:
                yield element
            elif failing and not (line and self.after(line[0])):
                return
            elif outer.over and not line:
                break
            elif news is PENDING or news is END:
                yield PENDING
        self.raise_delayed()


class _ConcatMap(_OfPublishers):
    hears = False  # but for its source, only one is under way
    makes = True

    def __init__(self, source: FlowBase[Any], fn: Callable[[Any], Publisher[Any]], *, delay_error: bool) -> None:
        super().__init__(source, fn, None)  # exactly what is demanded
        self.delay_error = delay_error

    def elements(self) -> Elements:
        outer = self.inner(self.source, 2)
        inner: InnerSubscription | None = None
        failing = False  # the source has failed: what is at hand comes before its error
        while True:
            try:
                element = outer.next_if_demanded() if inner is None else inner.next_if_demanded()
                if inner is None:
                    if element is END:
                        break
                    if element is not PENDING:
                        inner = self.inner_of(element)
                        continue
                elif element is PENDING and not failing:
                    try:
                        outer.peek_end()
                    except Exception as error:
                        if self.delay_error:
                            self.delayed.append(error)
                        else:
                            failing = True
                            self.put_off(error)
                        continue  # the look may have brought something to the publisher: a window, a group
            except Exception as error:
                self.delay(error)
                if inner is not None and inner.over:
                    self.leave(inner)
                    inner = None
                continue
            if inner is not None and element is END:
                self.leave(inner)
                inner = None
            if failing and (inner is None or (element is PENDING and not self.after(inner))):
                return
            if element is not END:
                yield element
        self.raise_delayed()


class _SwitchMap(_OfPublishers):
    def elements(self) -> Elements:
        outer = self.inner(self.source, PREFETCH)
        current: InnerSubscription | None = None
        first = 0  # of the current one, at most: what it has at hand goes on before the source is looked at again
        while True:
            element: Any = PENDING
            news: Any = PENDING
            if first and current is not None:
                element = current.next_if_demanded()
                first = 0 if element is PENDING or element is END else first - 1
            if element is PENDING and (outer.pushes() or current is None):
                news = outer.next_signal() if outer.pushes() else outer.next_if_demanded()
            if element is PENDING and (news is PENDING or news is END):
                element = PENDING if current is None else current.next_if_demanded()
                if element is PENDING and not outer.pushes() and self.drain.demanded:
                    news = outer.next_if_demanded()
            if news is not PENDING and news is not END:
                if current is not None:
                    self.leave(current)
                current = self.inner_of(news)
                first = AT_HAND
                continue
            if element is END:
                assert current is not None
                self.leave(current)
                current = None
                element = PENDING
                if not outer.over:
                    continue
            if current is None and outer.over:
                return
            yield element


class _Expand(_OfPublishers):
    def __init__(self, source: FlowBase[Any], fn: Callable[[Any], Publisher[Any]], concurrency: int) -> None:
        super().__init__(source, fn, PREFETCH)
        self.concurrency = concurrency

    def elements(self) -> Elements:
        ready_set = ReadySet(self)
        ready_set.add(self.inner(self.source, PREFETCH))
        waiting: deque[Any] = deque()
        while len(ready_set) or waiting:
            element = ready_set.next_if_demanded() if len(ready_set) else PENDING
            if element is END:
                continue
            if element is PENDING:
                if waiting and len(ready_set) < self.concurrency and self.drain.demanded:
                    ready_set.add(self.inner_of(waiting.popleft()))
                    continue
                yield PENDING
                continue
            waiting.append(element)
            yield element
