"""`with_context`: functions run in the context (`contextvars`) of the code that emitted their element.

The problem: many elements share a thread. If a step set context variables on the thread before it passed an element on,
it could not reset them afterwards: it may continue on another thread. The first thread, perhaps one of the user's
program, would keep the values of another request.

The answer: in the region of `with_context` each element is a pair with its context. The operators of the region, a
`ContextFlow`, call each function of a user with `Context.run`, which restores the thread's own values, also if the
function raises. So there is no shared state. A flow without `with_context` runs none of this code.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from contextvars import Context, copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Literal, NamedTuple, TypeVar, overload

from reactive_runtime._core.fusion.step import Each, Step, describe
from reactive_runtime._core.runtime.arguments import (
    PREFETCH,
    check_callable,
    is_coroutine_function,
    works_apart,
)
from reactive_runtime._operators.flow_base import FlowBase, as_flow, flow_type
from reactive_runtime._spec import Publisher, Subscriber, Subscription
from reactive_runtime._support.shown import shown

if TYPE_CHECKING:
    from reactive_runtime._flow import Flow

__all__ = ["ContextFlow", "ContextOperators", "InContext", "in_context"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
R = TypeVar("R")


class InContext(NamedTuple, Generic[T]):
    """An element, and the context of the code that emitted it; see `in_context`."""

    element: T
    """The element."""
    context: Context
    """The context: never entered itself, only its copies, since two threads may need it."""


def in_context(element: T) -> InContext[T]:
    """The element together with the context of the caller, to emit to a hot source.

    A hot source may deliver an element on another thread than the one that emits it. So call `in_context` on the
    emitting thread: it copies the context there, and `with_context` uses the copy.

    Args:
        element: An element to emit.

    Returns:
        An `InContext`. A subscriber to a flow without `with_context` gets the `InContext` as its element.

    Example:
        >>> from contextvars import ContextVar
        >>> from reactive_runtime.context import in_context
        >>> request = ContextVar("request", default="none")
        >>> in_context("order").context.get(request, "none")
        'none'
    """
    return InContext(element, copy_context())


class ContextOperators(FlowBase[T_co]):
    """`with_context`: functions run in the context of their element."""

    __slots__ = ()

    @overload
    def with_context(self: FlowBase[InContext[T]], fn: Callable[[ContextFlow[T]], ContextFlow[R]]) -> Flow[R]: ...

    @overload
    def with_context(self, fn: Callable[[ContextFlow[T_co]], ContextFlow[R]]) -> Flow[R]: ...

    def with_context(self: FlowBase[Any], fn: Callable[[ContextFlow[Any]], ContextFlow[R]]) -> Flow[R]:
        """The flow `fn(source)`, whose functions run in the context of the code that emitted the element.

        `with_context` copies the context of the thread on which an element reaches it, unless the element was emitted
        as `in_context(element)`, with its own context. The operators in `fn` call their functions in a copy of the
        element's context, on any thread. Operators after `with_context` run in the context of the subscription, as in
        any flow.

        Args:
            fn: Takes a `ContextFlow` and returns one. It is called at once, and only once.

        Returns:
            A flow of the elements of the `ContextFlow` that `fn` returns.

        Raises:
            TypeError: `fn` cannot be called, or returns no `ContextFlow`. An error that `fn` raises goes to the caller
                as well.

        Demand:
            That of the operators in `fn`.

        Cancellation:
            That of the operators in `fn`. If the region drops an element, the hook gets the pair `(element, context)`.

        Thread:
            `fn` is called on the thread that calls `with_context`; its operators run on the same threads as in any
            flow.

        Example:
            >>> from concurrent.futures import ThreadPoolExecutor
            >>> from contextvars import ContextVar
            >>> from reactive_runtime import Flow
            >>> request = ContextVar("request", default="none")
            >>> numbers = Flow.range(3).do_on_next(request.set)
            >>> with ThreadPoolExecutor(2) as pool:
            ...     seen = numbers.with_context(lambda flow: flow.publish_on(pool).map(lambda n: (n, request.get())))
            ...     seen.to_list().block()
            [(0, 0), (1, 1), (2, 2)]

        Origin:
            `contextWrite` and automatic context propagation of Reactor, for each element.
        """
        region = check_callable("with_context", "fn", fn)(ContextFlow(self._then(_Take())))
        if not isinstance(region, ContextFlow):
            raise TypeError(f"with_context: {describe(fn)} must return a ContextFlow, not {type(region).__name__}")
        return region._flow._then(_Leave())


class ContextFlow(Generic[T_co]):
    """A flow whose functions run in the context of their element; see `Flow.with_context`.

    It is immutable: each method returns another one.
    """

    __slots__ = ("_flow",)

    def __init__(self, flow: Flow[Any]) -> None:
        """For `with_context`; the elements of `flow` are pairs."""
        self._flow = flow

    def map(self, fn: Callable[[T_co], R]) -> ContextFlow[R]:
        """`Flow.map`: `fn` is called in the element's context.

        Args:
            fn: Called once for each element.

        Returns:
            The results, each in the context of its element.

        Raises:
            TypeError: `fn` cannot be called.
        """
        return ContextFlow(self._flow._then(_MapIn(check_callable("map", "fn", fn))))

    def filter(self, predicate: Callable[[T_co], object]) -> ContextFlow[T_co]:
        """`Flow.filter`: `predicate` is called in the element's context.

        Args:
            predicate: Called once for each element. A false answer drops the element.

        Returns:
            The elements that pass.

        Raises:
            TypeError: `predicate` cannot be called.
        """
        return ContextFlow(self._flow._then(_FilterIn(check_callable("filter", "predicate", predicate))))

    def do_on_next(self, fn: Callable[[T_co], object]) -> ContextFlow[T_co]:
        """`Flow.do_on_next`: `fn` is called in the element's context.

        Args:
            fn: Called once for each element. Its result is not used.

        Returns:
            The same elements.

        Raises:
            TypeError: `fn` cannot be called.
        """
        return ContextFlow(self._flow._then(_DoIn(check_callable("do_on_next", "fn", fn))))

    def publish_on(self, executor: Executor, *, prefetch: int = PREFETCH) -> ContextFlow[T_co]:
        """`Flow.publish_on`: the elements keep their contexts over the boundary.

        Args:
            executor: Any `concurrent.futures.Executor` of threads.
            prefetch: How many elements may wait in the boundary, 1 or more.

        Returns:
            The same elements, on `executor`.

        Raises:
            TypeError: `executor` is no executor, or one of processes, or `prefetch` is not an int.
            ValueError: `prefetch` is below 1.
        """
        return ContextFlow(self._flow.publish_on(executor, prefetch=prefetch))

    @overload
    def flat_map(self, fn: Callable[[T_co], Coroutine[Any, Any, R]], *, concurrency: int = ...) -> ContextFlow[R]: ...

    @overload
    def flat_map(self, fn: Callable[[T_co], Publisher[R]], *, concurrency: int = ...) -> ContextFlow[R]: ...

    def flat_map(self, fn: Callable[[T_co], Any], *, concurrency: int = 16) -> ContextFlow[Any]:
        """`Flow.flat_map`: `fn`, and the publisher or coroutine that it returns, run in the element's context.

        Args:
            fn: Called once for each element. Returns a publisher; or a coroutine function.
            concurrency: How many publishers, or coroutines, are under way, at most; 1 or more.

        Returns:
            The elements of all publishers, each in the context of the element that its publisher was made for.

        Raises:
            TypeError: `fn` cannot be called, or `concurrency` is no int.
            ValueError: `concurrency` is below 1.
        """
        check_callable("flat_map", "fn", fn, awaited=True)
        if is_coroutine_function(fn):
            return ContextFlow(self._flow.flat_map(_awaited(fn), concurrency=concurrency))
        return ContextFlow(self._flow.flat_map(partial(_inner, fn), concurrency=concurrency))

    def map_parallel(
        self,
        fn: Callable[[T_co], Any],
        executor: Executor | None = None,
        *,
        concurrency: int | Literal["auto"] = 16,
        ordered: bool = True,
    ) -> ContextFlow[Any]:
        """`Flow.map_parallel`: `fn` runs on `executor`, or as a coroutine, in the element's context.

        Args:
            fn: Called once for each element. A result of None is a TypeError (2.13).
            executor: A `concurrent.futures.Executor` of threads: a context can't be pickled. None: for a coroutine
                function, and for nothing else.
            concurrency: How many calls are in flight, or done and waiting to be delivered, at most; 1 or more.
                "auto" as in `Flow.map_parallel`.
            ordered: True: results come in the order of the source. False: as they are done.

        Returns:
            The results, each in the context of its element.

        Raises:
            TypeError: `fn` cannot be called, `executor` is none of threads, or `concurrency` is no int.
            ValueError: `concurrency` is below 1, or another string than "auto".
        """
        check_callable("map_parallel", "fn", fn, awaited=True)
        if is_coroutine_function(fn):
            call: Any = _awaited(fn)
        else:
            call = partial(_called, fn)
        if executor is not None and works_apart(executor):
            raise TypeError(
                f"map_parallel: {shown(executor)} is no pool of threads, and a context can't go to another process:"
                " leave the region of with_context before"
            )
        return ContextFlow(self._flow.map_parallel(call, executor, concurrency=concurrency, ordered=ordered))

    def through(self, fn: Callable[[Flow[tuple[T_co, Context]]], Flow[tuple[R, Context]]]) -> ContextFlow[R]:
        """Any other operators, on a flow of pairs `(element, context)`: `delay`, `retry`, `rate_limit`.

        Functions in `fn` get pairs, and run in the context of the subscription. An operator that makes one element of
        several gives a list or a tuple of pairs: let `fn` make one pair of it, with one of their contexts.

        Args:
            fn: Takes a flow of pairs, and returns one. It is called at once, and only once.

        Returns:
            The elements of the flow that `fn` returns. The flow fails with TypeError at an element that is no pair.

        Raises:
            TypeError: `fn` cannot be called, or returns no `Flow`.
        """
        flow = check_callable("through", "fn", fn)(self._flow)
        if not isinstance(flow, flow_type()):
            raise TypeError(f"through: {describe(fn)} must return a Flow, not {type(flow).__name__}")
        return ContextFlow(flow._then(_StillIn(fn)))


Pair = tuple[T, Context]
"""A plain tuple in the region: it is made for each element, in a third of the time of an `InContext`."""


class _Take(Step[Any, Pair[Any]]):
    name = "with_context"

    def __init__(self) -> None:
        self.given: Final = InContext
        self.current: Final = copy_context

    def on_next(self, element: Any) -> Each[Pair[Any]]:
        if type(element) is self.given:
            yield element
        else:
            yield (element, self.current())


class _Leave(Step[Pair[T], T]):
    name = "end of with_context"

    def on_next(self, element: Pair[T]) -> Each[T]:
        yield element[0]


class _OfFunction(Step[Any, Any]):
    def __init__(self, fn: Callable[..., Any]) -> None:
        self.fn = fn

    def __str__(self) -> str:
        return f"{self.name}({describe(self.fn)})"


class _MapIn(_OfFunction):
    name = "map"

    def on_next(self, element: Pair[Any]) -> Each[Pair[Any]]:
        result = element[1].copy().run(self.fn, element[0])
        if result is None:
            raise TypeError(
                f"{self}: the function returned None for {shown(element[0])}, and None is not an element (2.13)"
            )
        yield (result, element[1])


class _FilterIn(_OfFunction):
    name = "filter"

    def on_next(self, element: Pair[Any]) -> Each[Pair[Any]]:
        if element[1].copy().run(self.fn, element[0]):
            yield element


class _DoIn(_OfFunction):
    name = "do_on_next"

    def on_next(self, element: Pair[Any]) -> Each[Pair[Any]]:
        element[1].copy().run(self.fn, element[0])
        yield element


class _StillIn(_OfFunction):
    name = "through"

    def on_next(self, element: Any) -> Each[Pair[Any]]:
        if not (isinstance(element, tuple) and len(element) == 2 and type(element[1]) is Context):
            raise TypeError(f"{self}: {shown(element)} came out, and is no pair (element, context): let pairs through")
        yield element


def _called(fn: Callable[[Any], Any], given: Pair[Any]) -> Pair[Any]:
    """Call `fn` in a copy of the element's context, on any thread."""
    element, context = given
    result = context.copy().run(fn, element)
    if result is None:
        raise TypeError(f"map_parallel({describe(fn)}): it returned None, and None is not an element (2.13)")
    return result, context


def _awaited(fn: Callable[[Any], Coroutine[Any, Any, Any]]) -> Callable[[Pair[Any]], Any]:
    """The coroutine function `fn` in the element's context: it runs as its own task, so that a cancel reaches it."""

    async def call(given: Pair[Any]) -> Pair[Any]:
        element, context = given
        own = context.copy()
        result = await asyncio.create_task(own.run(fn, element), context=own)
        if result is None:
            raise TypeError(f"{describe(fn)}: it returned None, and None is not an element (2.13)")
        return result, context

    return call


def _inner(fn: Callable[[Any], Publisher[Any]], given: Pair[Any]) -> Flow[Pair[Any]]:
    """The publisher of an element, which runs in the element's context."""
    element, context = given
    flow = as_flow("flat_map", "what fn returns", context.copy().run(fn, element))
    return as_flow("flat_map", "fn", _Inside(flow, context)).map(partial(_with, context))


def _with(context: Context, element: Any) -> Pair[Any]:
    return element, context


class _Inside:
    """Subscribes to a flow in a context; the drains of the flow run in that context."""

    def __init__(self, flow: Flow[Any], context: Context) -> None:
        self._flow = flow
        self._context = context

    def subscribe(self, subscriber: Subscriber[Any], /) -> None:
        entering = _Entering(subscriber, self._context, copy_context())
        self._context.copy().run(self._flow.subscribe, entering)


class _Entering:
    """A subscriber between two contexts: that of the flow above it, and that of the flow of its subscriber.

    A source may run inside of `request` and `cancel`, and the drain of the flow below inside of a signal: each goes
    through a function of the other side on this thread.
    """

    shown_as: ClassVar[str] = "subscriber in the context of an element"

    def __init__(self, subscriber: Subscriber[Any], context: Context, below: Context) -> None:
        self._subscriber = subscriber
        self._context = context
        self._below = below
        self._subscription: Subscription | None = None  # set once, before the subscriber gets its subscription

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self._subscription = subscription
        self._below.copy().run(self._subscriber.on_subscribe, self)

    def on_next(self, element: Any, /) -> None:
        self._below.copy().run(self._subscriber.on_next, element)

    def on_error(self, error: BaseException, /) -> None:
        self._below.copy().run(self._subscriber.on_error, error)

    def on_complete(self) -> None:
        self._below.copy().run(self._subscriber.on_complete)

    def request(self, n: int, /) -> None:
        assert self._subscription is not None
        self._context.copy().run(self._subscription.request, n)

    def cancel(self) -> None:
        assert self._subscription is not None
        self._context.copy().run(self._subscription.cancel)
