"""Where flows come from. Each source is cold: every subscriber gets the elements from the first one on."""

from __future__ import annotations

import builtins
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, TypeVar, overload

from reactive_runtime._core.arguments import check_callable
from reactive_runtime._core.assembly import AssemblyLocation, assembly_location, note_assembly
from reactive_runtime._core.combinator import Combinator, Elements, InnerSubscription
from reactive_runtime._core.flow_source import (
    IterableSource,
    PublisherSource,
    as_flow,
    combinator_flow,
    flow_of,
    foreign,
)
from reactive_runtime._core.step import Each, Step, describe
from reactive_runtime.spec import Publisher, Subscriber, Subscription

if TYPE_CHECKING:
    from reactive_runtime.flow import Flow

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
    def range(start: int, stop: int, step: int = ..., /) -> Flow[int]: ...

    @staticmethod
    def range(*arguments: int) -> Flow[int]:
        """The integers of `range(*arguments)`.

        Completes with the last one, without further demand.

        >>> from reactive_runtime import Flow
        >>> list(Flow.range(2, 10, 3))
        [2, 5, 8]
        """
        numbers = builtins.range(*arguments)
        return flow_of(IterableSource(repr(numbers).replace("range(0, ", "range("), lambda: numbers, synchronous=True))

    @staticmethod
    def just(*elements: T) -> Flow[T]:
        """The `elements`, none of which may be None (TypeError, 2.13).

        >>> from reactive_runtime import Flow
        >>> list(Flow.just("a", "b"))
        ['a', 'b']
        """
        if any(element is None for element in elements):
            raise TypeError("just: None is not an element (2.13)")
        title = f"just({', '.join(builtins.map(repr, elements))})"
        return flow_of(IterableSource(title, lambda: elements, single=len(elements) == 1, synchronous=True))

    @staticmethod
    def empty() -> Flow[Any]:
        """No element: completes as soon as it is subscribed to, without demand (2.9).

        >>> from reactive_runtime import Flow
        >>> list(Flow.empty())
        []
        """
        return flow_of(IterableSource("empty()", tuple, synchronous=True))

    @staticmethod
    def error(failure: BaseException | Callable[[], BaseException]) -> Flow[Any]:
        """No element: fails with `failure` (or what it returns, if it is a function) as soon as it is subscribed to.

        Where the function raises, the flow fails with that; a result that is no exception is a TypeError. An error that
        is given as it is serves all subscriptions; each begins with the traceback that it had here.

        >>> from reactive_runtime import Flow
        >>> Flow.error(OSError("no disk")).subscribe(print, on_error=repr).cancel()
        """
        if not isinstance(failure, BaseException):
            check_callable("error", "failure", failure)
        title = type(failure).__name__ if isinstance(failure, BaseException) else describe(failure)
        return flow_of(PublisherSource(f"error({title})", _Failing(failure, assembly_location())))

    @staticmethod
    def never() -> Flow[Any]:
        """No element and no end, until it is cancelled.

        >>> from reactive_runtime import Flow
        >>> Flow.never().subscribe(print).cancel()
        """
        return flow_of(PublisherSource("never()", _Silent()))

    @staticmethod
    def from_iterable(iterable: Iterable[T]) -> Flow[T]:
        """The elements of `iterable`, which each subscriber iterates anew.

        An iterator that can be read once only (a generator) is shared by those who read it: use `from_supplier` for
        one iterator a subscriber. Errors of `__iter__` and `__next__` arrive through `on_error`; the iterator is
        closed, if it can be, when the flow ends or is cancelled.

        >>> from reactive_runtime import Flow
        >>> list(Flow.from_iterable("ab"))
        ['a', 'b']
        """
        if iterable is None:
            raise TypeError("from_iterable: an iterable is needed, not None")
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
        """The elements of `supplier()`, called once for each subscriber, when its flow first runs.

        The way to make a flow of a generator function. It is pulled by demand, element by element; an error of the
        supplier or the iterator arrives through `on_error`; the iterator is closed when the flow ends or is
        cancelled, on the thread that pulls it and never while it runs.
        Origin: the `StreamPublisher` of `Mastering Reactive Streams`, with its pitfalls solved.

        >>> from reactive_runtime import Flow
        >>> def countdown():
        ...     yield from (3, 2, 1)
        >>> flow = Flow.from_supplier(countdown)
        >>> list(flow), list(flow)
        ([3, 2, 1], [3, 2, 1])
        """
        check_callable("from_supplier", "supplier", supplier)
        return flow_of(IterableSource(f"from_supplier({describe(supplier)})", supplier, location=assembly_location()))

    @staticmethod
    def from_publisher(publisher: Publisher[T]) -> Flow[T]:
        """The elements of any object that has `subscribe(subscriber)`.

        Demand is passed on exactly, by serial calls (2.7). What the publisher does against the rules is caught
        here: elements beyond the demand end the flow with `on_error(ProtocolError)`, late ones go to the hook.

        >>> from reactive_runtime import Flow
        >>> list(Flow.from_publisher(Flow.just(1)))
        [1]
        """
        if not callable(getattr(publisher, "subscribe", None)):
            raise TypeError(f"from_publisher: an object with `subscribe` is needed, not {type(publisher).__name__}")
        return foreign(publisher)

    @staticmethod
    def from_callable(fn: Callable[[], T]) -> Flow[T]:
        """One element, `fn()`, called for each subscriber when it is asked for.

        An error of `fn` ends the flow; a result of None is a TypeError (2.13). Origin: `fromCallable` of RxJava.

        >>> from reactive_runtime import Flow
        >>> Flow.from_callable(lambda: 7).block()
        7
        """
        check_callable("from_callable", "fn", fn)
        once = (fn,)
        called: Flow[T] = flow_of(IterableSource("", lambda: once, single=True, synchronous=True))._then(_Call(fn))
        return called

    @staticmethod
    def from_file(path: str | os.PathLike[str], *, encoding: str = "utf-8") -> Flow[str]:
        """The lines of a text file, without their ends; opened for each subscriber, when it is asked for the first.

        Reading blocks the thread that asks: give it one with `subscribe_on`. The file is closed when the flow ends or
        is cancelled. Errors of opening, reading and decoding end the flow.

        >>> from reactive_runtime import Flow
        >>> Flow.from_file("LICENSE").first().block()
        'MIT License'
        """
        name = os.fspath(path)
        if not isinstance(encoding, str):
            raise TypeError(f"from_file: encoding must be a str, not {type(encoding).__name__}")

        def lines() -> Iterator[str]:
            with open(name, encoding=encoding) as file:
                for line in file:
                    yield line.rstrip("\r\n")

        return flow_of(IterableSource(f"from_file({os.path.basename(name)})", lines, location=assembly_location()))

    @staticmethod
    def generate(initial: S, fn: Callable[[S], tuple[T, S] | None]) -> Flow[T]:
        """Elements made of a state: `fn(state)` returns an element and the next state, or None at the end.

        Called once for each element that is asked for, beginning with `initial`, for each subscriber anew. An error of
        `fn` ends the flow; what is no pair is a TypeError. Origin: `generate` of Rx.

        >>> from reactive_runtime import Flow
        >>> list(Flow.generate((0, 1), lambda s: (s[0], (s[1], s[0] + s[1])) if s[0] < 10 else None))
        [0, 1, 1, 2, 3, 5, 8]
        """
        check_callable("generate", "fn", fn)

        def states() -> Iterator[T]:
            state = initial
            while (made := fn(state)) is not None:
                if not (isinstance(made, tuple) and len(made) == 2):
                    raise TypeError(f"generate: {describe(fn)} must return a pair or None, not {made!r}")
                element, state = made
                yield element

        return flow_of(IterableSource(f"generate({describe(fn)})", states, location=assembly_location()))

    @staticmethod
    def defer(fn: Callable[[], Publisher[T]]) -> Flow[T]:
        """The publisher that `fn()` returns, called for each subscriber.

        An error of `fn` ends the flow; what is no publisher is a TypeError. Demand and cancellation pass to it. Origin:
        `defer` of Rx.

        >>> from reactive_runtime import Flow
        >>> list(Flow.defer(lambda: Flow.range(2)))
        [0, 1]
        """
        check_callable("defer", "fn", fn)
        return combinator_flow(f"defer({describe(fn)})", lambda: _Defer(fn))

    @staticmethod
    def using(resource: Callable[[], AbstractContextManager[R]], fn: Callable[[R], Publisher[T]]) -> Flow[T]:
        """The publisher `fn(it)`, where `with resource() as it` is entered for each subscriber, and left at its end.

        Entered with the subscriber's first demand, on the thread that asks: in Rx with the subscription. Left when the
        publisher has ended, failed or been cancelled; before the subscriber is told. `__exit__` is shown the error, and
        of a cancel (also by an operator, as `take`, or by an error further downstream) a GeneratorExit: so Python does
        where a generator is closed inside of a `with`, and a transaction rolls back. Errors of any of them end the
        flow. Origin: `using` of Rx, `with` of Python.

        >>> import io
        >>> from reactive_runtime import Flow
        >>> list(Flow.using(lambda: io.StringIO("a b"), lambda file: Flow.from_iterable(file.read().split())))
        ['a', 'b']
        """
        check_callable("using", "resource", resource)
        check_callable("using", "fn", fn)
        return combinator_flow(f"using({describe(resource)}, {describe(fn)})", lambda: _Using(resource, fn))


class _Failing:
    """Fails each of its subscribers."""

    def __init__(self, failure: BaseException | Callable[[], BaseException], location: AssemblyLocation | None) -> None:
        self.failure = failure
        self.location = location
        self.traceback = failure.__traceback__ if isinstance(failure, BaseException) else None

    def subscribe(self, subscriber: Subscriber[Any], /) -> None:
        subscriber.on_subscribe(_Nothing())
        if isinstance(self.failure, BaseException):  # one for all: without the frames of those who had it before
            subscriber.on_error(self.failure.with_traceback(self.traceback))
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
        """As what is waited for."""
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
        if not callable(getattr(publisher, "subscribe", None)):
            kind = type(publisher).__name__
            raise self.fault(TypeError(f"{self.title}: the function must return a publisher, not {kind}"))
        return self.inner(as_flow(self.title, "the result", publisher))


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
            with self.call(self.resource) as item:
                inner = self.made(item)
                try:
                    yield from self.relay(inner)
                except BaseException as error:
                    passed = error
                    raise
                finally:  # before the resource goes
                    self.leave(inner)
        except Exception as error:
            if error is not passed:  # of `__enter__` or `__exit__`
                self.fault(error)
            raise


_: type[Subscription] = _Nothing  # mypy holds it to the protocol
