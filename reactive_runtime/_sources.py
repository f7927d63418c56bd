"""Where flows come from. Each source is cold: every subscriber gets the elements from the first one on."""

from __future__ import annotations

import builtins
import os
from collections.abc import AsyncIterable, Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Never, TypeVar, overload

from reactive_runtime._core import garbage_collection
from reactive_runtime._core.drains.combinator import Combinator, Elements, InnerSubscription
from reactive_runtime._core.failures.assembly import AssemblyLocation, assembly_location, note_assembly
from reactive_runtime._core.failures.error_carrier import SignalledError
from reactive_runtime._core.failures.exits import each
from reactive_runtime._core.fusion.step import Each, Step, describe
from reactive_runtime._core.runtime.arguments import check_callable, is_coroutine_function
from reactive_runtime._core.sources.flow_source import IterableSource, PublisherSource
from reactive_runtime._core.sources.naming import instead, is_publisher, kind_of, no_publisher
from reactive_runtime._operators.flow_base import as_flow, combinator_flow, flow_of, foreign
from reactive_runtime._spec import Publisher, Subscriber, Subscription
from reactive_runtime._support.shown import shown

if TYPE_CHECKING:
    from reactive_runtime._flow import Flow

__all__ = ["Sources"]

T = TypeVar("T")
R = TypeVar("R")
S = TypeVar("S")

_AT_HAND = (list, tuple, builtins.range, str, bytes, bytearray, dict, set, frozenset)
"""What is iterated without a user's code."""


class Sources:
    """Where flows come from. Each source is cold: every subscriber gets the elements from the first one on."""

    __slots__ = ()

    @overload
    @staticmethod
    def range(stop: int, /) -> Flow[int]: ...

    @overload
    @staticmethod
    def range(start: int, stop: int, step: int = 1, /) -> Flow[int]: ...

    @staticmethod
    def range(*arguments: int) -> Flow[int]:
        """The integers of Python's `range(*arguments)`.

        Args:
            *arguments: `stop`, or `start`, `stop` and `step`, as Python takes them: ints, and a step that is not 0.

        Returns:
            A flow of ints. It completes with the last one, without further demand.

        Raises:
            TypeError: There are none or more than three arguments, or one is no integer.
            ValueError: The step is 0.

        Demand:
            The integers are made by demand.

        Cancellation:
            Ends the flow.

        Thread:
            Runs on the thread that requests; with `subscribe_on`, or behind `publish_on`, on that executor.

        Example:
            >>> from reactive_runtime import Flow
            >>> list(Flow.range(2, 10, 3))
            [2, 5, 8]

        Origin:
            `range` of Python. That of Rx takes a start and a count.
        """
        try:
            numbers = builtins.range(*arguments)
        except (TypeError, ValueError) as error:
            raise type(error)(f"range: {error}") from None
        return flow_of(IterableSource(repr(numbers).replace("range(0, ", "range("), lambda: numbers, synchronous=True))

    @staticmethod
    def just(*elements: T) -> Flow[T]:
        """The `elements`, in this order.

        Args:
            *elements: Any number of them, none of which is None.

        Returns:
            A flow of the elements. It completes with the last one, without further demand.

        Raises:
            TypeError: One of the elements is None, which is not an element (2.13).

        Demand:
            The elements are delivered by demand.

        Cancellation:
            Ends the flow.

        Thread:
            Runs on the thread that requests; with `subscribe_on`, or behind `publish_on`, on that executor.

        Example:
            >>> from reactive_runtime import Flow
            >>> list(Flow.just("a", "b"))
            ['a', 'b']

        Origin:
            `just` of Rx.
        """
        if any(element is None for element in elements):
            raise TypeError("just: None is not an element (2.13)")
        title = f"just({', '.join(builtins.map(shown, elements))})"
        return flow_of(IterableSource(title, lambda: elements, single=len(elements) == 1, synchronous=True))

    @staticmethod
    def empty() -> Flow[Never]:
        """No element, only the end.

        Returns:
            A flow that completes as soon as it is subscribed to.

        Demand:
            Completes without demand (2.9).

        Cancellation:
            Ends the flow.

        Thread:
            Completes on the thread that subscribes; with `subscribe_on`, or behind `publish_on`, on that executor.

        Example:
            >>> from reactive_runtime import Flow
            >>> list(Flow.empty())
            []

        Origin:
            `empty` of Rx.
        """
        return flow_of(IterableSource("empty()", tuple, synchronous=True))

    @staticmethod
    def error(failure: BaseException | Callable[[], BaseException]) -> Flow[Never]:
        """No element: fails as soon as it is subscribed to.

        Args:
            failure: The error, or a function that makes one for each subscriber. An error that is given as it is serves
                all subscriptions; each begins with the traceback that it had here.

        Returns:
            A flow that fails with the error. Where the function raises, it fails with that; where the result is no
            exception, with TypeError.

        Raises:
            TypeError: `failure` is no exception, and cannot be called.

        Demand:
            Fails without demand.

        Cancellation:
            Ends the flow.

        Thread:
            The function is called on the thread that subscribes; with `subscribe_on`, on its executor. The flow fails
            there; behind `publish_on`, on that executor.

        Example:
            >>> from reactive_runtime import Flow
            >>> Flow.error(OSError("no disk")).subscribe(print, on_error=repr).cancel()

        Origin:
            `error` of Rx.
        """
        if not isinstance(failure, BaseException):
            if not callable(failure):
                raise TypeError(f"error: an exception, or a function that makes one, is needed, not {instead(failure)}")
            check_callable("error", "failure", failure)
        title = type(failure).__name__ if isinstance(failure, BaseException) else describe(failure)
        return flow_of(PublisherSource(f"error({title})", _Failing(failure, assembly_location())))

    @staticmethod
    def never() -> Flow[Never]:
        """No element and no end.

        Returns:
            A flow that goes on until it is cancelled.

        Demand:
            Has no effect.

        Cancellation:
            Ends the flow.

        Thread:
            Only `on_subscribe` is signalled, on the thread that subscribes.

        Example:
            >>> from reactive_runtime import Flow
            >>> Flow.never().subscribe(print).cancel()

        Origin:
            `never` of Rx.
        """
        return flow_of(PublisherSource("never()", _Silent()))

    @staticmethod
    def from_iterable(iterable: Iterable[T]) -> Flow[T]:
        """The elements of `iterable`, which each subscriber iterates anew.

        An iterator that can be read once only (a generator) is shared by its subscribers: `from_supplier` makes one for
        each.

        Args:
            iterable: Its elements are not None.

        Returns:
            A flow of the elements. It fails with the error that `__iter__` or `__next__` raises, and with TypeError
            where `__iter__` returns no iterator, or None is among the elements (2.13).

        Raises:
            TypeError: `iterable` cannot be iterated.

        Demand:
            The iterator is pulled by demand. Of a list, tuple, range, str, bytes or dict, the last element completes
            the flow; of another iterable, the demand after it.

        Cancellation:
            Closes the iterator, if it can be closed. So does the end.

        Thread:
            The iterator runs on the thread that requests; with `subscribe_on`, or behind `publish_on`, on that
            executor.

        Example:
            >>> from reactive_runtime import Flow
            >>> list(Flow.from_iterable("ab"))
            ['a', 'b']

        Origin:
            `fromIterable` of RxJava and Reactor.
        """
        if not any(getattr(type(iterable), name, None) for name in ("__iter__", "__getitem__")):
            asynchronous = " (Flow.from_async takes it)" if isinstance(iterable, AsyncIterable) else ""
            raise TypeError(f"from_iterable: an iterable is needed, not {instead(iterable)}{asynchronous}")
        synchronous = type(iterable) in _AT_HAND
        return flow_of(
            IterableSource(
                f"from_iterable({type(iterable).__name__})",
                lambda: iterable,
                synchronous=synchronous,
                location=assembly_location(),
            )
        )

    @staticmethod
    def from_supplier(supplier: Callable[[], Iterable[T]]) -> Flow[T]:
        """The elements of the iterable that `supplier()` makes for each subscriber.

        This is the way to make a flow of a generator function.

        Args:
            supplier: Called once for each subscriber, when its flow first runs. It returns an iterable.

        Returns:
            A flow of the elements. It fails with the error that `supplier` or the iterator raises, and with TypeError
            where the result cannot be iterated, or has None in it (2.13).

        Raises:
            TypeError: `supplier` cannot be called.

        Demand:
            The iterator is pulled by demand, element by element.

        Cancellation:
            Closes the iterator, if it can be closed, and never while it runs: on its executor, else on the thread that
            cancels, or that pulls it just then. The end closes it as well.

        Thread:
            `supplier` is called on the thread that subscribes, and its iterator runs on the thread that requests; with
            `subscribe_on`, or behind `publish_on`, both on that executor.

        Example:
            >>> from reactive_runtime import Flow
            >>> def countdown():
            ...     yield from (3, 2, 1)
            >>> flow = Flow.from_supplier(countdown)
            >>> list(flow), list(flow)
            ([3, 2, 1], [3, 2, 1])

        Origin:
            The `StreamPublisher` of `Mastering Reactive Streams`, with its pitfalls solved.
        """
        check_callable("from_supplier", "supplier", supplier)
        return flow_of(IterableSource(f"from_supplier({describe(supplier)})", supplier, location=assembly_location()))

    @staticmethod
    def from_publisher(publisher: Publisher[T]) -> Flow[T]:
        """The elements of any object that has `subscribe(subscriber)`.

        What the publisher does against the rules is caught here: late elements go to the hook.

        Args:
            publisher: A publisher of any library.

        Returns:
            A flow of the publisher's signals. It fails with ProtocolError where an element comes beyond the demand or
            is None, or `subscribe` raises.

        Raises:
            TypeError: `publisher` has no `subscribe`, or it is a coroutine function.

        Demand:
            Is passed on exactly, by serial calls (2.7).

        Cancellation:
            Is passed on, by the same serial calls.

        Thread:
            The publisher is subscribed to on the thread that subscribes; with `subscribe_on`, on its executor. Elements
            are signalled on the publisher's thread; with an executor, on that.

        Example:
            >>> from reactive_runtime import Flow
            >>> list(Flow.from_publisher(Flow.just(1)))
            [1]

        Origin:
            `fromPublisher` of RxJava, `from` of Reactor.
        """
        if not is_publisher(publisher):
            raise TypeError(f"from_publisher: an object with `subscribe` is needed, not {no_publisher(publisher)}")
        if is_coroutine_function(publisher.subscribe):
            raise TypeError(
                f"from_publisher: subscribe of {kind_of(publisher)} is a coroutine function, which no thread awaits:"
                " make it a plain function, or use from_async"
            )
        return foreign(publisher)

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
    def generate(initial: S, fn: Callable[[S], tuple[T, S] | None]) -> Flow[T]:
        """Elements made of a state, one after the other.

        Args:
            initial: The first state, for each subscriber anew.
            fn: Called as `fn(state)` for each element. It returns a pair, the element and the next state, or None at
                the end.

        Returns:
            A flow of the elements. It fails with the error that `fn` raises, and with TypeError where `fn` returns no
            pair, or an element is None (2.13).

        Raises:
            TypeError: `fn` cannot be called.

        Demand:
            `fn` is called once for each element that is demanded. The end is found with the next demand.

        Cancellation:
            Ends the flow: `fn` is not called again.

        Thread:
            `fn` is called on the thread that requests; with `subscribe_on`, or behind `publish_on`, on that executor.

        Example:
            >>> from reactive_runtime import Flow
            >>> list(Flow.generate((0, 1), lambda s: (s[0], (s[1], s[0] + s[1])) if s[0] < 10 else None))
            [0, 1, 1, 2, 3, 5, 8]

        Origin:
            `generate` of Rx.
        """
        check_callable("generate", "fn", fn)

        def states() -> Iterator[T]:
            state = initial
            while (made := fn(state)) is not None:
                if not (isinstance(made, tuple) and len(made) == 2):
                    raise TypeError(f"generate: {describe(fn)} must return a pair or None, not {shown(made)}")
                element, state = made
                yield element

        return flow_of(IterableSource(f"generate({describe(fn)})", states, location=assembly_location()))

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


class _Failing:
    """Fails each of its subscribers."""

    def __init__(self, failure: BaseException | Callable[[], BaseException], location: AssemblyLocation | None) -> None:
        self.failure = failure
        self.location = location

    def subscribe(self, subscriber: Subscriber[Any], /) -> None:
        subscriber.on_subscribe(_Nothing())
        if isinstance(self.failure, BaseException):
            subscriber.on_error(self.failure)
        else:
            subscriber.on_error(self.made(self.failure))

    def made(self, function: Callable[[], Any]) -> BaseException:
        """What the function returns; where it raises, what it raises."""
        title = f"error({describe(function)})"
        try:
            failure = function()
        except Exception as error:
            note_assembly(error, title, self.location)
            return error
        if not isinstance(failure, BaseException):
            wrong = TypeError(f"{title}: the function must return an exception, not {type(failure).__name__}")
            note_assembly(wrong, title, self.location)
            return wrong
        return failure


class _Nothing:
    """The subscription of a publisher that never has an element."""

    def __repr__(self) -> str:
        """How it is named where it is waited for."""
        return "a source that has no element"

    def request(self, n: int, /) -> None:
        pass

    def cancel(self) -> None:
        pass


class _Silent:
    def subscribe(self, subscriber: Subscriber[Any], /) -> None:
        subscriber.on_subscribe(_Nothing())


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
    def __init__(self, fn: Callable[..., Publisher[Any]]) -> None:
        super().__init__()
        self.fn = fn

    def elements(self) -> Elements:
        yield from self.home()
        yield from self.relay(self.made())

    def made(self, *arguments: Any) -> InnerSubscription:
        """Subscribe to what the function returns."""
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
                finally:  # before the resource goes
                    if isinstance(passed, GeneratorExit) and garbage_collection.inside():
                        resource.first = partial(self.leave, inner)
                    else:
                        self.leave(inner)
        except Exception as error:
            if error is not passed:  # of `__enter__` or `__exit__`
                self.fault(error)
            raise


class _Resource:
    """A user's context manager: it hears of the error that was signalled, without the carrier."""

    def __init__(self, manager: AbstractContextManager[Any]) -> None:
        self.manager = manager
        self.first: Callable[[], object] | None = None
        """What comes before it goes, where a collection of garbage ends it: both on another thread."""

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


_: type[Subscription] = _Nothing  # mypy holds it to the protocol
