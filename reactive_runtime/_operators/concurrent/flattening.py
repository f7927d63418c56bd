"""A flow of flows to one: each element becomes a publisher, or a coroutine.

`concurrency` bounds how many are in flight, and thereby the source: no more elements of it are requested than can be
worked on, and the next one when one that is in flight has ended. An error of one, or of the function, cancels the
others and ends the flow; what had been delivered before stays delivered. Cancellation passes to the source and to all
that is in flight.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar, overload

from reactive_runtime._core.drains.combinator import END, PENDING, Elements, InnerSubscription, ReadySet
from reactive_runtime._core.fusion.step import describe
from reactive_runtime._core.runtime import eventloop
from reactive_runtime._core.runtime.arguments import PREFETCH, at_least, check_callable, is_coroutine_function
from reactive_runtime._core.sources.naming import is_publisher, no_publisher
from reactive_runtime._operators.concurrent.concurrency import Bounded
from reactive_runtime._operators.concurrent.coroutines import Coroutines
from reactive_runtime._operators.flow_base import FlowBase, combinator_flow, foreign
from reactive_runtime._operators.stateful import stateful
from reactive_runtime._spec import Publisher
from reactive_runtime._support.shown import shown

if TYPE_CHECKING:
    from reactive_runtime._flow import Flow

__all__ = ["ConcatMap", "FlatMap", "FlatteningOperators"]

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
        *,
        concurrency: int = ...,
        prefetch: int = ...,
        delay_error: bool = ...,
    ) -> Flow[R]: ...

    @overload
    def flat_map(
        self,
        fn: Callable[[T_co], Publisher[R]],
        *,
        concurrency: int = ...,
        prefetch: int = ...,
        delay_error: bool = ...,
    ) -> Flow[R]: ...

    def flat_map(
        self,
        fn: Callable[[T_co], Any],
        *,
        concurrency: int = 16,
        prefetch: int = PREFETCH,
        delay_error: bool = False,
    ) -> Flow[Any]:
        """Each element becomes the publisher `fn(element)`; the elements of up to `concurrency` of them, as they come.

        `fn` may be a coroutine function: its result is the one element. Coroutines run on one event loop thread.

        Args:
            fn: Called once for each element. Returns a publisher; or a coroutine function, whose results are the
                elements.
            concurrency: How many publishers, or coroutines, are under way, at most; 1 or more.
            prefetch: How many elements of each publisher wait here, at most; 1 or more. So at most `concurrency` x
                `prefetch` elements are held.
            delay_error: False: an error cancels the others and ends the flow. True: errors of the source, of `fn` and
                of the publishers come when all publishers have ended, several of them as an ExceptionGroup; where that
                end does not come, they go to the hook.

        Returns:
            A flow of the elements of all publishers, the order within each kept. Between two turns of one publisher
            each other that has an element has its turn. It completes when the source and all publishers have. It fails
            with an error of the source, of `fn`, or of a publisher, and with a TypeError where `fn` returns no
            publisher; what was delivered before stays delivered.

        Raises:
            TypeError: `fn` cannot be called, or `concurrency` or `prefetch` is no int.
            ValueError: `concurrency` or `prefetch` is below 1.

        Demand:
            The source begins with the first demand. No more elements of it are requested than can be worked on, and the
            next one when a publisher has ended. Of publishers with an executor, or of another library, `prefetch`
            elements are requested ahead; the others are pulled by demand, in turn.

        Cancellation:
            Passes to the source and to all publishers under way; coroutines are cancelled. Elements that wait here go
            to the hook.

        Thread:
            `fn` is called on the thread of the source, of a publisher, or on the one that requests, one at a time.
            Publishers without an executor run on the thread that requests. Coroutines run on the event loop's thread,
            where what follows goes on, up to the next boundary.

        Example:
            >>> from reactive_runtime import Flow
            >>> sorted(Flow.range(3).flat_map(lambda n: Flow.just(n, n * 10)))
            [0, 0, 1, 2, 10, 20]

        Origin:
            `flatMap` of Rx.
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
        return combinator_flow(title, lambda: FlatMap(self, fn, concurrency, prefetch, delay_error=delay_error), self)

    def flat_map_sequential(
        self,
        fn: Callable[[T_co], Publisher[R]],
        *,
        concurrency: int = 16,
        prefetch: int = PREFETCH,
        delay_error: bool = False,
    ) -> Flow[R]:
        """Each element becomes the publisher `fn(element)`; up to `concurrency` are under way, their elements in order.

        The elements of one come when all publishers before it have completed; meanwhile at most `prefetch` of each
        wait. A publisher whose last operator is an asynchronous one, and a group, goes on too while it waits.

        Args:
            fn: Called once for each element. Returns a publisher.
            concurrency: How many publishers are under way, at most; 1 or more.
            prefetch: How many elements of each publisher wait here, at most; 1 or more.
            delay_error: False: an error cancels the others and ends the flow. True: errors of the source, of `fn` and
                of the publishers come when all publishers have ended, several of them as an ExceptionGroup; where that
                end does not come, they go to the hook.

        Returns:
            A flow of the elements of all publishers, in the order of the source. It completes when the source and all
            publishers have. It fails with an error of a publisher when its turn has come; and with one of the source or
            of `fn`, or a TypeError where `fn` returns no publisher, after what the publishers under way have at hand.

        Raises:
            TypeError: `fn` cannot be called, or `concurrency` or `prefetch` is no int.
            ValueError: `concurrency` or `prefetch` is below 1.

        Demand:
            The source begins with the first demand. No more elements of it are requested than can be worked on, and the
            next one when a publisher has ended. `prefetch` elements are requested ahead of publishers with an executor,
            of another library, or with an asynchronous operator as their last; the others are pulled by demand, when
            their turn has come.

        Cancellation:
            Passes to the source and to all publishers under way. Elements that wait here go to the hook.

        Thread:
            `fn` is called on the thread of the source, of a publisher, or on the one that requests, one at a time.
            Publishers without an executor run on the thread that requests.

        Example:
            >>> from reactive_runtime import Flow
            >>> list(Flow.range(3).flat_map_sequential(lambda n: Flow.just(n, n * 10)))
            [0, 0, 1, 10, 2, 20]

        Origin:
            `flatMapSequential` of Reactor, `concatMapEager` of RxJava.
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

        One publisher at a time is subscribed to, when the one before it has completed.

        Args:
            fn: Called once for each element, when its turn has come. Returns a publisher.
            delay_error: False: an error ends the flow. True: errors of the source, of `fn` and of the publishers come
                when all publishers have ended, several of them as an ExceptionGroup; where that end does not come, they
                go to the hook.

        Returns:
            A flow of the elements of all publishers, in the order of the source. It completes when the source and its
            last publisher have. It fails with an error of `fn`, or of a publisher, or a TypeError where `fn` returns no
            publisher; with one of the source after what the publisher under way has at hand.

        Raises:
            TypeError: `fn` cannot be called.

        Demand:
            Of the publisher under way what is demanded is requested, exactly. A source without an executor is pulled by
            demand; of any other two elements are requested ahead.

        Cancellation:
            Passes to the source and to the publisher under way.

        Thread:
            `fn` is called on the thread of the source, or on which the publisher before completed. A publisher without
            an executor runs there, or on the thread that requests.

        Example:
            >>> from reactive_runtime import Flow
            >>> list(Flow.range(3).concat_map(lambda n: Flow.just(n, n * 10)))
            [0, 0, 1, 10, 2, 20]

        Origin:
            `concatMap` of Rx.
        """
        check_callable("concat_map", "fn", fn)
        title = f"concat_map({describe(fn)})"
        return combinator_flow(title, lambda: ConcatMap(self, fn, delay_error=delay_error), self)

    @stateful
    def switch_map(self, fn: Callable[[T_co], Publisher[R]], *, prefetch: int = PREFETCH) -> Flow[R]:
        """Each element becomes the publisher `fn(element)`, which takes the place of the one before: that is cancelled.

        Args:
            fn: Called once for each element. Returns a publisher.
            prefetch: How many elements of the current publisher wait here, at most; 1 or more. They are dropped with
                it, to the hook.

        Returns:
            A flow of the elements of the current publisher. It completes when the source and the current publisher
            have. It fails with an error of either, or of `fn`, and with a TypeError where `fn` returns no publisher.

        Raises:
            TypeError: `fn` cannot be called, or `prefetch` is no int.
            ValueError: `prefetch` is below 1.

        Demand:
            Of the source everything is requested, 256 elements at a time, and a new element switches at once, demand or
            not. A source that is pulled is asked for its next element when the current publisher has nothing. Of a
            publisher with an executor, or of another library, `prefetch` elements are requested ahead; any other is
            pulled by demand.

        Cancellation:
            Passes to the source and to the current publisher.

        Thread:
            `fn` is called on the thread of the source, of a publisher, or on the one that requests, one at a time. A
            publisher without an executor runs there, or on the thread that requests.

        Example:
            >>> from reactive_runtime import Flow
            >>> list(Flow.range(3).switch_map(lambda n: Flow.just(n, n * 10)))
            [0, 0, 1, 10, 2, 20]

        Origin:
            `switchMap` of Rx.
        """
        check_callable("switch_map", "fn", fn)
        at_least("switch_map", "prefetch", 1, prefetch)
        return combinator_flow(f"switch_map({describe(fn)})", lambda: _SwitchMap(self, fn, prefetch), self)

    def expand(self, fn: Callable[[T_co], Publisher[T_co]], *, concurrency: int = 16) -> Flow[T_co]:
        """Each element, then those of the publisher `fn(element)`, each of which is expanded in turn: a tree.

        The next element is expanded when no publisher under way has anything to give: so sources that are pulled give
        the tree level by level.

        Args:
            fn: Called once for each element. Returns a publisher; one without elements ends a branch.
            concurrency: How many publishers are under way, in turn, at most; 1 or more. Elements that wait to be
                expanded are kept, and their number has no other bound than the tree's breadth.

        Returns:
            A flow of the elements of the source and of all publishers. It completes when all have. It fails with an
            error of one, or of `fn`, and with a TypeError where `fn` returns no publisher; the others are cancelled.

        Raises:
            TypeError: `fn` cannot be called, or `concurrency` is no int.
            ValueError: `concurrency` is below 1.

        Demand:
            An element is expanded by demand. Of a source or publisher with an executor, or of another library, 256
            elements are requested ahead; the others are pulled by demand, in turn.

        Cancellation:
            Passes to the source and to all publishers under way.

        Thread:
            `fn` is called on the thread of the source, of a publisher, or on the one that requests, one at a time.
            Publishers without an executor run on the thread that requests.

        Example:
            >>> from reactive_runtime import Flow
            >>> list(Flow.just(1).expand(lambda n: Flow.just(2 * n, 2 * n + 1) if n < 4 else Flow.empty()))
            [1, 2, 3, 4, 5, 6, 7]

        Origin:
            `expand` of Reactor.
        """
        check_callable("expand", "fn", fn)
        at_least("expand", "concurrency", 1, concurrency)
        return combinator_flow(f"expand({describe(fn)})", lambda: _Expand(self, fn, concurrency), self)


class _OfPublishers(Bounded):
    """Each element becomes a publisher."""

    ahead = False
    """Whether a publisher goes on while the operator polls another one."""

    asked = False
    """Whether the operator has asked a publisher for the elements at hand, which come before an error."""

    def __init__(self, source: FlowBase[Any], fn: Callable[[Any], Publisher[Any]], prefetch: int | None) -> None:
        super().__init__()
        self.source = source
        self.fn = fn
        self.prefetch = prefetch

    def after(self, inner: InnerSubscription) -> bool:
        """Whether an error of the source, or of the function, still has to wait for the elements `inner` has at hand.

        A publisher that is pulled waits for demand, if the source is pulled as well. The operator asks a publisher with
        a drain of its own once.
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
        self.drain.later(self.drain.wake)
        return True

    def inner_of(self, element: Any) -> InnerSubscription:
        """Subscribe to the publisher that the function returns for `element`."""
        publisher = self.call(self.fn, element)
        flow = publisher if isinstance(publisher, FlowBase) else self._foreign(publisher, element)
        # While this thread pulls all of them, no other thread wakes the operator.
        return self.inner(
            flow, self.prefetch, apart=self.apart and self.elsewhere, ahead=self.ahead, made=True, alone=True
        )

    def _foreign(self, publisher: Any, element: Any) -> Flow[Any]:
        if not is_publisher(publisher):
            raise self.fault(
                TypeError(
                    f"{self.title}: {describe(self.fn)} must return a publisher, not {no_publisher(publisher)},"
                    f" for {shown(element)}"
                )
            )
        return foreign(publisher)


class FlatMap(_OfPublishers):
    """The elements of several publishers, as they come."""

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
                # Poll the publishers under way first: the next one may raise when it begins.
                while (element := ready_set.next_if_demanded()) is END:
                    room = True
            except Exception as error:
                self.delay(error)
                continue
            if element is PENDING and room:
                continue  # there is room for another publisher
            if element is PENDING and outer.over and not len(ready_set):
                break
            yield element
        self.raise_delayed()


class _Sequential(FlatMap):
    ahead = True

    def elements(self) -> Elements:
        inners: deque[InnerSubscription] = deque()
        outer = self.outer()
        failing = False  # the function, or the source, has failed: the elements at hand come before the error
        while True:
            element: Any = PENDING
            news: Any = PENDING
            try:
                if inners and inners[0].spent() and inners[0].peek_end() is END:
                    # Cancel it before the source gets a request for more.
                    self.leave(inners.popleft())
                if not failing:
                    try:
                        news = self.news(outer, len(inners))
                        if news is not PENDING and news is not END:
                            inners.append(self.inner_of(news))
                    except Exception as error:
                        if self.delay_error:
                            self.delayed.append(error)
                        else:
                            failing = True
                            self.put_off(error)
                if inners:
                    element = inners[0].next_if_demanded()
            except Exception as error:
                self.delay(error)
                if inners and inners[0].over:
                    self.leave(inners.popleft())
                continue
            if element is END:
                self.leave(inners.popleft())
            elif element is not PENDING:
                yield element
            elif failing and not (inners and self.after(inners[0])):
                return
            elif outer.over and not inners:
                break
            elif news is PENDING or news is END:
                yield PENDING
        self.raise_delayed()


class ConcatMap(_OfPublishers):
    """The elements of one publisher after the other."""

    hears = False  # one publisher at a time is under way beside the source
    makes = True

    def __init__(self, source: FlowBase[Any], fn: Callable[[Any], Publisher[Any]], *, delay_error: bool) -> None:
        super().__init__(source, fn, None)  # request what is demanded, exactly
        self.delay_error = delay_error

    def elements(self) -> Elements:
        outer = self.inner(self.source, 2)
        inner: InnerSubscription | None = None
        failing = False  # the source has failed: the elements at hand come before its error
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
                        continue  # the source may have given an element to the publisher: a window, a group
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
        first = 0  # elements of the current publisher that go on, at most, before the next look at the source
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
