"""Where flows come from. Each source is cold: every subscriber gets the elements from the first one on."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from reactive_runtime._core.arguments import a_function
from reactive_runtime._core.origin import Cold, Foreign, flow_of
from reactive_runtime._core.step import describe
from reactive_runtime.spec import Publisher, Subscriber, Subscription

if TYPE_CHECKING:
    from reactive_runtime.flow import Flow

__all__ = ["empty", "error", "from_iterable", "from_publisher", "from_supplier", "just", "never", "range"]

T = TypeVar("T")


def range(*arguments: int) -> Flow[int]:
    """The integers of `range(*arguments)`.

    Completes with the last one, without further demand.

    >>> from reactive_runtime import Flow
    >>> list(Flow.range(2, 10, 3))
    [2, 5, 8]
    """
    numbers = builtins.range(*arguments)
    return flow_of(Cold(repr(numbers).replace("range(0, ", "range("), lambda: numbers))


def just(*elements: T) -> Flow[T]:
    """The `elements`, none of which may be None (TypeError, 2.13).

    >>> from reactive_runtime import Flow
    >>> list(Flow.just("a", "b"))
    ['a', 'b']
    """
    if any(element is None for element in elements):
        raise TypeError("just: None is not an element (2.13)")
    return flow_of(Cold(f"just({', '.join(builtins.map(repr, elements))})", lambda: elements))


def empty() -> Flow[Any]:
    """No element: completes as soon as it is subscribed to, without demand (2.9).

    >>> from reactive_runtime import Flow
    >>> list(Flow.empty())
    []
    """
    return flow_of(Cold("empty()", tuple))


def error(failure: BaseException | Callable[[], BaseException], /) -> Flow[Any]:
    """No element: fails with `failure` (or what it returns, if it is a function) as soon as it is subscribed to.

    >>> from reactive_runtime import Flow
    >>> Flow.error(OSError("no disk")).subscribe(print, on_error=repr).cancel()
    """
    if not isinstance(failure, BaseException):
        a_function("error", "failure", failure)
    title = type(failure).__name__ if isinstance(failure, BaseException) else describe(failure)
    return flow_of(Foreign(f"error({title})", _Failing(failure)))


class _Failing:
    """Fails each of its subscribers."""

    def __init__(self, failure: BaseException | Callable[[], BaseException]) -> None:
        self.failure = failure

    def subscribe(self, subscriber: Subscriber[Any], /) -> None:
        subscriber.on_subscribe(_Nothing())
        subscriber.on_error(self.failure if isinstance(self.failure, BaseException) else self.failure())


class _Nothing:
    """The subscription of a publisher that never has an element."""

    def request(self, n: int, /) -> None:
        pass

    def cancel(self) -> None:
        pass


def never() -> Flow[Any]:
    """No element and no end, until it is cancelled.

    >>> from reactive_runtime import Flow
    >>> Flow.never().subscribe(print).cancel()
    """
    return flow_of(Foreign("never()", _Silent()))


class _Silent:
    def subscribe(self, subscriber: Subscriber[Any], /) -> None:
        subscriber.on_subscribe(_Nothing())


def from_iterable(iterable: Iterable[T], /) -> Flow[T]:
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
    return flow_of(Cold(f"from_iterable({type(iterable).__name__})", lambda: iterable))


def from_supplier(supplier: Callable[[], Iterable[T]], /) -> Flow[T]:
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
    a_function("from_supplier", "supplier", supplier)
    return flow_of(Cold(f"from_supplier({describe(supplier)})", supplier))


def from_publisher(publisher: Publisher[T], /) -> Flow[T]:
    """The elements of any object that has `subscribe(subscriber)`.

    Demand is passed on exactly, by serial calls (2.7). What the publisher does against the rules is caught
    here: elements beyond the demand end the flow with `on_error(ProtocolError)`, late ones go to the hook.

    >>> from reactive_runtime import Flow
    >>> list(Flow.from_publisher(Flow.just(1)))
    [1]
    """
    if not callable(getattr(publisher, "subscribe", None)):
        raise TypeError(f"from_publisher: an object with `subscribe` is needed, not {type(publisher).__name__}")
    return flow_of(Foreign(f"from_publisher({type(publisher).__name__})", publisher))


_: type[Subscription] = _Nothing  # mypy holds it to the protocol
