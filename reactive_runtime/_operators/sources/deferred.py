"""Sources that a function makes, for each subscriber anew: a value, a coroutine, a file, a flow, a resource."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from inspect import isasyncgenfunction, isawaitable
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from reactive_runtime._core import garbage_collection
from reactive_runtime._core.drains.combinator import Combinator, Elements, InnerSubscription
from reactive_runtime._core.failures.assembly import assembly_location
from reactive_runtime._core.failures.error_carrier import SignalledError
from reactive_runtime._core.failures.exits import each
from reactive_runtime._core.fusion.step import Each, Step, describe
from reactive_runtime._core.runtime import eventloop
from reactive_runtime._core.runtime.arguments import check_callable
from reactive_runtime._core.sources.flow_source import IterableSource
from reactive_runtime._core.sources.naming import instead, is_publisher, no_publisher
from reactive_runtime._operators.flow_base import as_flow, combinator_flow, flow_of
from reactive_runtime._operators.sources.creating import OfAsync
from reactive_runtime._spec import Publisher

if TYPE_CHECKING:
    from reactive_runtime._flow import Flow

__all__ = ["DeferredSources"]

T = TypeVar("T")
R = TypeVar("R")


class DeferredSources:
    """Sources that a function makes, for each subscriber anew: a value, a coroutine, a file, a flow, a resource."""

    __slots__ = ()

    @staticmethod
    def from_callable(fn: Callable[[], T]) -> Flow[T]:
        """One element: what `fn()` returns.

        Args:
            fn: Called once for each subscriber, when the element is demanded.

        Returns:
            A flow of one element. It fails with the error that `fn` raises, and with TypeError where `fn` returns None,
            which is not an element (2.13).

        Raises:
            TypeError: `fn` cannot be called.

        Demand:
            The first demand calls `fn`.

        Cancellation:
            Ends the flow. A call that is under way goes on, and its result is dropped, to the hook.

        Thread:
            `fn` is called on the thread that requests; with `subscribe_on`, or behind `publish_on`, on that executor.

        Example:
            >>> from reactive_runtime import Flow
            >>> Flow.from_callable(lambda: 7).block()
            7

        Origin:
            `fromCallable` of RxJava.
        """
        check_callable("from_callable", "fn", fn)
        once = (fn,)
        called: Flow[T] = flow_of(IterableSource("", lambda: once, single=True, synchronous=True))._then(_Call(fn))
        return called

    @staticmethod
    def from_coroutine(fn: Callable[[], Awaitable[T]]) -> Flow[T]:
        """One element: what `await fn()` returns.

        `from_async` takes many elements, `flat_map` a coroutine function of each element.

        Args:
            fn: A coroutine function, or another function that returns an awaitable. Called once for each subscriber,
                when the element is demanded.

        Returns:
            A flow of one element. It fails with the error that the coroutine raises, and with TypeError where `fn`
            returns no awaitable, or the coroutine returns None, which is not an element (2.13).

        Raises:
            TypeError: `fn` cannot be called: it is a coroutine, which one subscriber could await, and no other. Or it
                is an asynchronous generator function.

        Demand:
            The first demand calls `fn`.

        Cancellation:
            Cancels the coroutine. A result that it returns in spite of that goes to the hook.

        Thread:
            The coroutine runs on one event loop, which has a thread of its own and is shared by all flows. Operators
            behind it run there too, up to the next boundary.

        Example:
            >>> from reactive_runtime import Flow
            >>> async def answer():
            ...     return 42
            >>> Flow.from_coroutine(answer).block()
            42

        Origin:
            The coroutines of Python; `mono` of Kotlin's coroutines for Reactor.
        """
        if isawaitable(fn):
            raise TypeError(
                f"from_coroutine: a coroutine function is needed, not {instead(fn)}, which can be awaited once: give"
                " the function that makes it, without calling it"
            )
        check_callable("from_coroutine", "fn", fn, awaited=True)
        if isasyncgenfunction(fn):
            raise TypeError(f"from_coroutine: {describe(fn)} is an asynchronous generator function: use from_async")
        title = f"from_coroutine({describe(fn)})"

        async def once() -> AsyncIterator[T]:
            awaitable = fn()
            if not isawaitable(awaitable):
                raise TypeError(f"{title}: the function must return an awaitable, not {instead(awaitable)}")
            result = await awaitable
            if result is None:
                raise TypeError(f"{title}: the coroutine returned None, and None is not an element (2.13)")
            yield result

        return combinator_flow(title, lambda: OfAsync(once, 1), uses=(eventloop.OURS,))

    @staticmethod
    def from_file(path: str | os.PathLike[str], *, encoding: str = "utf-8") -> Flow[str]:
        """The lines of a text file, without their ends.

        Args:
            path: The file, which is opened for each subscriber.
            encoding: The name of a codec of Python.

        Returns:
            A flow of lines. It fails with the error of opening, reading or decoding, a LookupError where there is no
            such codec.

        Raises:
            TypeError: `path` is no path, or `encoding` is not a str.

        Demand:
            The first demand opens the file. Lines are read by demand.

        Cancellation:
            Closes the file. So does the end.

        Thread:
            Reading blocks the thread that requests: with `subscribe_on` it is one of an executor.

        Example:
            >>> from reactive_runtime import Flow
            >>> Flow.from_file("LICENSE").first().block()
            'MIT License'

        Origin:
            The text files of Python.
        """
        try:
            name = os.fspath(path)
        except TypeError:
            raise TypeError(f"from_file: path must be a str or an os.PathLike, not {instead(path)}") from None
        if not isinstance(encoding, str):
            raise TypeError(f"from_file: encoding must be a str, not {type(encoding).__name__}")

        def lines() -> Iterator[str]:
            with open(name, encoding=encoding) as file:
                for line in file:
                    yield line.rstrip("\r\n")

        return flow_of(IterableSource(f"from_file({os.path.basename(name)})", lines, location=assembly_location()))

    @staticmethod
    def defer(fn: Callable[[], Publisher[T]]) -> Flow[T]:
        """The publisher that `fn()` returns, made for each subscriber.

        Args:
            fn: Called once for each subscriber, when it subscribes. It returns a publisher.

        Returns:
            A flow of that publisher's signals. It fails with the error that `fn` raises, and with TypeError where the
            result is no publisher.

        Raises:
            TypeError: `fn` cannot be called.

        Demand:
            Passes to the publisher.

        Cancellation:
            Passes to the publisher.

        Thread:
            `fn` is called on the thread that subscribes; with `subscribe_on`, on its executor.

        Example:
            >>> from reactive_runtime import Flow
            >>> list(Flow.defer(lambda: Flow.range(2)))
            [0, 1]

        Origin:
            `defer` of Rx.
        """
        check_callable("defer", "fn", fn)
        return combinator_flow(f"defer({describe(fn)})", lambda: _Defer(fn))

    @staticmethod
    def using(resource: Callable[[], AbstractContextManager[R]], fn: Callable[[R], Publisher[T]]) -> Flow[T]:
        """The publisher `fn(item)`, where `with resource() as item` lasts for the subscription.

        The context manager is left when the publisher has ended, failed or been cancelled, before the subscriber gets
        the end. Its `__exit__` gets the error. At a cancel (also by an operator, as `take`, or by an error further
        downstream) it gets a GeneratorExit: so Python does where a generator is closed inside of a `with`, and a
        transaction rolls back.

        Args:
            resource: Makes the context manager, one for each subscriber.
            fn: Called with what the context manager gives. It returns a publisher.

        Returns:
            A flow of that publisher's signals. It fails with the error that `resource`, `fn` or the context manager
            raises, and with TypeError where the result of `fn` is no publisher.

        Raises:
            TypeError: `resource` or `fn` cannot be called.

        Demand:
            The first demand enters the context manager: in Rx it is the subscription. Demand passes to the publisher.

        Cancellation:
            Passes to the publisher, and leaves the context manager after it. An error that this raises goes to the
            hook.

        Thread:
            The context manager is entered, and `fn` is called, on the thread that requests; with `subscribe_on`, on its
            executor.

        Example:
            >>> import io
            >>> from reactive_runtime import Flow
            >>> list(Flow.using(lambda: io.StringIO("a b"), lambda file: Flow.from_iterable(file.read().split())))
            ['a', 'b']

        Origin:
            `using` of Rx, `with` of Python.
        """
        check_callable("using", "resource", resource)
        check_callable("using", "fn", fn)
        return combinator_flow(f"using({describe(resource)}, {describe(fn)})", lambda: _Using(resource, fn))


class _Call(Step[Callable[[], T], T]):
    name = "from_callable"

    def __init__(self, fn: Callable[[], T]) -> None:
        self.fn = fn

    def on_next(self, element: Callable[[], T]) -> Each[T]:
        result = self.fn()
        if result is None:
            raise TypeError(f"{self}: the function returned None, and None is not an element (2.13)")
        yield result

    def __str__(self) -> str:
        return f"from_callable({describe(self.fn)})"


class _Defer(Combinator):
    begins = True

    def __init__(self, fn: Callable[..., Publisher[Any]]) -> None:
        super().__init__()
        self.fn = fn

    def elements(self) -> Elements:
        yield from self.home()
        yield from self.relay(self.made())

    def made(self, *arguments: Any) -> InnerSubscription:
        """Subscribe to the publisher that the function returns."""
        publisher = self.call(self.fn, *arguments)
        if not is_publisher(publisher):
            kind = no_publisher(publisher)
            raise self.fault(TypeError(f"{self.title}: the function must return a publisher, not {kind}"))
        return self.inner(as_flow(self.title, "the result", publisher), alone=True)


class _Using(_Defer):
    def __init__(
        self, resource: Callable[[], AbstractContextManager[Any]], fn: Callable[[Any], Publisher[Any]]
    ) -> None:
        super().__init__(fn)
        self.resource = resource

    def elements(self) -> Elements:
        yield from self.demand()
        yield from self.home()
        passed: BaseException | None = None
        try:
            resource = _Resource(self.call(self.resource))
            with resource as item:
                inner = self.made(item)
                try:
                    yield from self.relay(inner)
                except BaseException as error:
                    passed = error
                    raise
                finally:  # before `_Using` releases the resource
                    if isinstance(passed, GeneratorExit) and garbage_collection.inside():
                        resource.first = partial(self.leave, inner)
                    else:
                        self.leave(inner)
        except Exception as error:
            if error is not passed:  # an error of `__enter__` or `__exit__`
                self.fault(error)
            raise


class _Resource:
    """A user's context manager: it gets the error that was signalled, without its carrier."""

    def __init__(self, manager: AbstractContextManager[Any]) -> None:
        self.manager = manager
        self.first: Callable[[], object] | None = None
        """Called before the resource is released if the garbage collector ends the flow: both run on another thread."""

    def __enter__(self) -> Any:
        kind = type(self.manager)
        if not (hasattr(kind, "__enter__") and hasattr(kind, "__exit__")):
            raise TypeError(f"'{kind.__name__}' object does not support the context manager protocol")
        return self.manager.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        if self.first is not None:
            garbage_collection.outside(
                partial(each, [self.first, partial(self.manager.__exit__, kind, error, traceback)])
            )
            return None
        if isinstance(error, SignalledError):
            error = error.error
            return self.manager.__exit__(type(error), error, error.__traceback__)
        return self.manager.__exit__(kind, error, traceback)
