"""Sources of values that are at hand, of iterables and of publishers.

Each source is cold: every subscriber gets the elements from the first one on.
"""

from __future__ import annotations

import builtins
from collections.abc import AsyncIterable, Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Never, TypeVar, overload

from reactive_runtime._core.failures.assembly import AssemblyLocation, assembly_location, note_assembly
from reactive_runtime._core.fusion.step import describe
from reactive_runtime._core.runtime.arguments import check_callable, is_coroutine_function
from reactive_runtime._core.sources.flow_source import IterableSource, PublisherSource
from reactive_runtime._core.sources.naming import instead, is_publisher, kind_of, no_publisher
from reactive_runtime._operators.flow_base import flow_of, foreign
from reactive_runtime._spec import Publisher, Subscriber, Subscription
from reactive_runtime._support.shown import shown

if TYPE_CHECKING:
    from reactive_runtime._flow import Flow

__all__ = ["Sources"]

T = TypeVar("T")
S = TypeVar("S")

_AT_HAND = (list, tuple, builtins.range, str, bytes, bytearray, dict, set, frozenset)
"""Types whose iterators run no code of the user."""


class Sources:
    """Sources of values that are at hand, of iterables and of publishers."""

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
            A flow that fails with the error. If the function raises, it fails with that; where the result is no
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

        The flow keeps the rules even if the publisher breaks them: late elements go to the hook.

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
        """The error that the function returns, or raises."""
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
        """Its name in the message of a wait."""
        return "a source that has no element"

    def request(self, n: int, /) -> None:
        pass

    def cancel(self) -> None:
        pass


class _Silent:
    def subscribe(self, subscriber: Subscriber[Any], /) -> None:
        subscriber.on_subscribe(_Nothing())


_: type[Subscription] = _Nothing  # mypy checks it against the protocol
