"""One element to one, or to several: what an element becomes."""

from __future__ import annotations

import builtins
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sized
from dataclasses import dataclass
from operator import length_hint
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeVar, TypeVarTuple, overload

from reactive_runtime._core.failures.passing import passing
from reactive_runtime._core.fusion.step import STOP, Each, Step, describe
from reactive_runtime._core.runtime.arguments import at_least, check_callable
from reactive_runtime._core.runtime.sentinels import sentinel
from reactive_runtime._core.sources.flow_base import FlowBase
from reactive_runtime._core.sources.flow_source import flow_type
from reactive_runtime._operators.stateful import stateful
from reactive_runtime._spec import MAX_DEMAND
from reactive_runtime._support.shown import shown

if TYPE_CHECKING:
    from reactive_runtime._flow import Flow

__all__ = ["Notification", "TransformingOperators"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
R = TypeVar("R")
S = TypeVar("S")
Ts = TypeVarTuple("Ts")


class TransformingOperators(FlowBase[T_co]):
    """One element to one, or to several: what an element becomes."""

    __slots__ = ()

    def map(self, fn: Callable[[T_co], R]) -> Flow[R]:
        """Each element becomes `fn(element)`.

        Args:
            fn: Called once for each element. Its result is the element that goes on.

        Returns:
            A flow with one element for each of the source. It fails with the error that `fn` raises, and with TypeError
            where `fn` returns None, which is not an element (2.13). The elements before that go on first.

        Raises:
            TypeError: `fn` cannot be called.

        Demand:
            Passes through, one element for one.

        Cancellation:
            Passes through.

        Thread:
            `fn` is called on the thread that signals: where this part of the source runs.

        Example:
            >>> from reactive_runtime import Flow
            >>> list(Flow.range(3).map(lambda n: n * 10))
            [0, 10, 20]

        Origin:
            `map` of Rx and of Python.
        """
        return self._then(_Map(check_callable("map", "fn", fn)))

    @overload
    def starmap(self: FlowBase[tuple[*Ts]], fn: Callable[[*Ts], R]) -> Flow[R]: ...

    @overload
    def starmap(self: FlowBase[tuple[Any, ...]], fn: Callable[..., R]) -> Flow[R]: ...

    def starmap(self: FlowBase[tuple[Any, ...]], fn: Callable[..., R]) -> Flow[R]:
        """Each element, a tuple, becomes `fn(*element)`.

        Args:
            fn: Called once for each element, with its parts as arguments. Its result is the element that goes on.

        Returns:
            A flow with one element for each of the source. It fails with the error that `fn` raises, and with TypeError
            where an element cannot be unpacked, or `fn` returns None, which is not an element (2.13).

        Raises:
            TypeError: `fn` cannot be called.

        Demand:
            Passes through, one element for one.

        Cancellation:
            Passes through.

        Thread:
            `fn` is called on the thread that signals.

        Example:
            >>> from reactive_runtime import Flow
            >>> list(Flow.just((2, 5), (3, 2)).starmap(pow))
            [32, 9]

        Origin:
            `itertools.starmap`.
        """
        return self._then(_StarMap(check_callable("starmap", "fn", fn)))

    def map_not_none(self, fn: Callable[[T_co], R | None]) -> Flow[R]:
        """Each element becomes `fn(element)`, and is dropped where that is None.

        Args:
            fn: Called once for each element. A result of None drops the element.

        Returns:
            A flow of the results that are not None. It fails with the error that `fn` raises.

        Raises:
            TypeError: `fn` cannot be called.

        Demand:
            For each element that is dropped, one more is requested upstream, within the demand that is still owed.

        Cancellation:
            Passes through.

        Thread:
            `fn` is called on the thread that signals.

        Example:
            >>> from reactive_runtime import Flow
            >>> list(Flow.just("a", "b", "c").map_not_none({"a": 1, "c": 3}.get))
            [1, 3]

        Origin:
            `mapNotNull` of Reactor and Kotlin.
        """
        return self._then(_MapNotNone(check_callable("map_not_none", "fn", fn)))

    def handle(self, fn: Callable[[T_co, Callable[[R], None]], object]) -> Flow[R]:
        """Each element becomes any number of elements: those that `fn(element, emit)` gives to `emit`.

        Args:
            fn: Called once for each element. It calls `emit(result)` for each result that is to go on. `emit(None)`
                raises TypeError. `emit` is for this call and its thread: after the call it raises RuntimeError.

        Returns:
            A flow of what was emitted. It fails with the error that `fn` raises. What that call had emitted is then
            dropped, to the hook.

        Raises:
            TypeError: `fn` cannot be called.

        Demand:
            What `fn` has emitted goes on when `fn` has returned, by demand. Where it emits nothing, one more element is
            requested upstream.

        Cancellation:
            Passes through. What was emitted and has not gone on is dropped, to the hook.

        Thread:
            `fn` is called on the thread that signals.

        Example:
            >>> from reactive_runtime import Flow
            >>> def halves(n, emit):
            ...     if n % 2 == 0:
            ...         emit(n // 2)
            >>> list(Flow.range(6).handle(halves))
            [0, 1, 2]

        Origin:
            `handle` of Reactor.
        """
        return self._then(_Handle(check_callable("handle", "fn", fn)))

    def flat_map_iterable(self, fn: Callable[[T_co], Iterable[R]]) -> Flow[R]:
        """Each element becomes the elements of `fn(element)`, in order.

        Args:
            fn: Called once for each element. It returns an iterable.

        Returns:
            A flow of the elements of the iterables. It fails with the error that `fn` or an iterator raises. It fails
            with TypeError, which names the function, where the result is not iterable, or has None in it.

        Raises:
            TypeError: `fn` cannot be called.

        Demand:
            The iterators are pulled by demand, one element at a time. An empty iterable requests one more element
            upstream.

        Cancellation:
            Passes through. Of an iterable at hand (a list, a tuple, a set, a dict, a deque), the hook and
            `do_on_discard` get each element that is left. The iterator of any other is closed, if it can be.

        Thread:
            `fn` is called, and its iterator runs, on the thread that signals.

        Example:
            >>> from reactive_runtime import Flow
            >>> list(Flow.just("ab", "c").flat_map_iterable(str.upper))
            ['A', 'B', 'C']

        Origin:
            `flatMapIterable` of RxJava and Reactor.
        """
        return self._then(_FlatMapIterable(check_callable("flat_map_iterable", "fn", fn)))

    def flatten(self: FlowBase[Iterable[R]]) -> Flow[R]:
        """The elements of each element, which is an iterable.

        Returns:
            A flow of the elements of the iterables, in order. It fails with the error that an iterator raises, and with
            TypeError where an element is not iterable, or has None in it.

        Demand:
            The iterators are pulled by demand, one element at a time, as `flat_map_iterable` does.

        Cancellation:
            Passes through. Of an iterable at hand (a list, a tuple, a set, a dict, a deque), the hook and
            `do_on_discard` get each element that is left. The iterator of any other is closed, if it can be.

        Thread:
            The iterators run on the thread that signals.

        Example:
            >>> from reactive_runtime import Flow
            >>> list(Flow.just([1, 2], (3,), []).flatten())
            [1, 2, 3]

        Origin:
            `itertools.chain.from_iterable`.
        """
        return self._then(_Flatten())

    @stateful
    def enumerate(self, start: int = 0) -> Flow[tuple[int, T_co]]:
        """Each element with its number, counted from `start`.

        Args:
            start: The number of the first element.

        Returns:
            A flow of pairs `(number, element)`.

        Raises:
            TypeError: `start` is not an int.

        Demand:
            Passes through, one element for one.

        Cancellation:
            Passes through.

        Thread:
            Runs on the thread that signals.

        Example:
            >>> from reactive_runtime import Flow
            >>> list(Flow.just("a", "b").enumerate(1))
            [(1, 'a'), (2, 'b')]

        Origin:
            `enumerate` of Python.
        """
        if type(start) is not int:
            raise TypeError(f"enumerate: start must be an int, not {type(start).__name__}")
        return self._then(_Enumerate(start))

    @stateful
    def pairwise(self) -> Flow[tuple[T_co, T_co]]:
        """Each element with the one before it.

        Returns:
            A flow of pairs `(before, element)`. It is empty where the source has fewer than two elements.

        Demand:
            One more element than is demanded is requested upstream, once.

        Cancellation:
            Passes through. A first element that has no pair is dropped, to the hook; so is one that is alone.

        Thread:
            Runs on the thread that signals.

        Example:
            >>> from reactive_runtime import Flow
            >>> list(Flow.just(1, 4, 9).pairwise())
            [(1, 4), (4, 9)]

        Origin:
            `itertools.pairwise`.
        """
        return self._then(_Pairwise())

    @stateful
    def scan(self, fn: Callable[[S, T_co], S], initial: S) -> Flow[S]:
        """The running fold: `initial` is folded with each element, and each result goes on.

        Args:
            fn: Called as `fn(so_far, element)`, once for each element. Its result goes on, and is the next `so_far`.
            initial: The first `so_far`. It does not go on itself.

        Returns:
            A flow with one element for each of the source. It fails with the error that `fn` raises, and with TypeError
            where `fn` returns None, which is not an element (2.13).

        Raises:
            TypeError: `fn` cannot be called.

        Demand:
            Passes through, one element for one.

        Cancellation:
            Passes through.

        Thread:
            `fn` is called on the thread that signals.

        Example:
            >>> from reactive_runtime import Flow
            >>> list(Flow.range(1, 5).scan(lambda total, n: total + n, 0))
            [1, 3, 6, 10]

        Origin:
            `scan` of Rx, `itertools.accumulate`.
        """
        return self._then(_Scan(check_callable("scan", "fn", fn), initial))

    @stateful
    def batch(self, n: int) -> Flow[list[T_co]]:
        """Lists of `n` elements.

        `buffer_timeout` also gives a list when a time has passed.

        Args:
            n: Elements in a list, 1 or more.

        Returns:
            A flow of lists. The last one may be shorter. Where the source fails, a list that is not full is dropped, to
            the hook.

        Raises:
            TypeError: `n` is not an int.
            ValueError: `n` is below 1.

        Demand:
            For each list that is demanded, `n` elements are requested upstream.

        Cancellation:
            Passes through. A list that is not full is dropped, to the hook.

        Thread:
            Runs on the thread that signals.

        Example:
            >>> from reactive_runtime import Flow
            >>> list(Flow.range(5).batch(2))
            [[0, 1], [2, 3], [4]]

        Origin:
            `itertools.batched`, `buffer` of Rx.
        """
        return self._then(_Batch(at_least("batch", "n", 1, n), "batch"))

    @stateful
    def end_with(self, *elements: R) -> Flow[T_co | R]:
        """The source, and then `elements`.

        Args:
            *elements: What comes after the source, in this order. None of them is None.

        Returns:
            A flow that ends with `elements`. Where the source fails, its error comes instead of them.

        Raises:
            TypeError: One of `elements` is None, which is not an element (2.13).

        Demand:
            Passes through. `elements` go on by demand.

        Cancellation:
            Passes through.

        Thread:
            Runs on the thread that signals.

        Example:
            >>> from reactive_runtime import Flow
            >>> list(Flow.range(2).end_with(7, 8))
            [0, 1, 7, 8]

        Origin:
            `endWith` of Rx.
        """
        if builtins.any(element is None for element in elements):
            raise TypeError("end_with: None is not an element (2.13)")
        return self._then(_EndWith(elements))

    @stateful
    def materialize(self) -> Flow[Notification[T_co]]:
        """Each signal as a `Notification`, the end included.

        Returns:
            A flow of notifications. It completes after that of the end, also where the source failed.

        Demand:
            Passes through. The notification of the end goes on by demand, like an element.

        Cancellation:
            Passes through.

        Thread:
            Runs on the thread that signals.

        Example:
            >>> from reactive_runtime import Flow
            >>> [notice.signal for notice in Flow.just(1).materialize()]
            ['on_next', 'on_complete']

        Origin:
            `materialize` of Rx.
        """
        return self._then(_Noticed()).on_error_return(lambda error: Notification("on_error", error=error))

    def dematerialize(self: FlowBase[Notification[T]]) -> Flow[T]:
        """Each `Notification` as the signal that it stands for: the opposite of `materialize`.

        Returns:
            A flow that ends with the first notification of an end, or with the source. It fails with TypeError where an
            element is not a notification, or is one of `on_next` without an element.

        Demand:
            One more element than is demanded is requested upstream: the end is an element there.

        Cancellation:
            Passes through. The first notification of an end cancels the upstream.

        Thread:
            Runs on the thread that signals.

        Example:
            >>> from reactive_runtime import Flow
            >>> list(Flow.just(1, 2).materialize().dematerialize())
            [1, 2]

        Origin:
            `dematerialize` of Rx.
        """
        return self._then(_Denoticed())

    def transform(self, fn: Callable[[Flow[T_co]], Flow[R]]) -> Flow[R]:
        """The flow `fn(source)`: a name for several operators.

        Args:
            fn: Takes this flow and returns a flow. It is called at once, and only once.

        Returns:
            The flow that `fn` returns.

        Raises:
            TypeError: `fn` cannot be called, or returns no `Flow`. What `fn` raises goes to the caller as well.

        Demand:
            That of the flow that `fn` returns.

        Cancellation:
            That of the flow that `fn` returns.

        Thread:
            `fn` is called on the thread that calls `transform`.

        Example:
            >>> from reactive_runtime import Flow
            >>> def squares_of_odd(numbers):
            ...     return numbers.filter(lambda n: n % 2).map(lambda n: n * n)
            >>> list(Flow.range(6).transform(squares_of_odd))
            [1, 9, 25]

        Origin:
            `transform` of Reactor, `pipe` of Rx.
        """
        flow = check_callable("transform", "fn", fn)(self._flow())
        if not isinstance(flow, flow_type()):
            raise TypeError(f"transform: {describe(fn)} must return a Flow, not {type(flow).__name__}")
        return flow

    @stateful
    def buffer(self, n: int) -> Flow[list[T_co]]:  # that of `batch`
        return self._then(_Batch(at_least("buffer", "n", 1, n), "buffer"))

    buffer.__doc__ = batch.__doc__


class _OfFunction(Step[T, R]):
    """A step with one function, drawn as `name(function)`."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        self.fn = fn

    def __str__(self) -> str:
        return f"{self.name}({describe(self.fn)})"


class _Map(_OfFunction[T, R]):
    name = "map"

    def on_next(self, element: T) -> Each[R]:
        result = self.fn(element)
        if result is None:
            raise TypeError(
                f"{self}: the function returned None for {shown(element)}, and None is not an element (2.13)"
            )
        yield result


class _StarMap(_OfFunction[tuple[Any, ...], R]):
    name = "starmap"

    def on_next(self, element: tuple[Any, ...]) -> Each[R]:
        result = self.fn(*element)
        if result is None:
            raise TypeError(
                f"{self}: the function returned None for {shown(element)}, and None is not an element (2.13)"
            )
        yield result


class _MapNotNone(_OfFunction[T, R]):
    name = "map_not_none"

    def on_next(self, element: T) -> Each[R]:
        result = self.fn(element)
        if result is not None:
            yield result


_HELD: Final[tuple[Iterable[Any], ...]] = ([], (), deque(), set(), {}, {}.values(), {}.items())
_IN_HAND: Final[tuple[type[Any], ...]] = tuple(type(iter(held)) for held in _HELD)
"""Iterators over what has been made already; any other makes its elements as they are asked for."""


class _Many(Step[T, R]):
    """An element becomes those of an iterator. What is left at the end of the stream is dropped, or closed if lazy."""

    expands = True
    iterator: Iterator[Any] | None = None
    """The one under way."""

    def holds(self) -> bool:
        return self.iterator is not None

    def dispose(self) -> Iterable[object]:
        iterator, self.iterator = self.iterator, None
        if iterator is None:
            return ()
        if isinstance(iterator, _IN_HAND):
            left: Iterable[object] = iterator
            return left
        close = getattr(iterator, "close", None)
        if close is not None:
            close()
        return ()


class _Handle(Step[T, R]):
    name = "handle"
    expands = True

    def __init__(self, fn: Callable[[T, Callable[[R], None]], object]) -> None:
        self.fn = fn

    def reset(self) -> None:
        self.emitted: list[R] = []  # in reverse once the function has returned: the next one is the last

    def on_next(self, element: T) -> Each[R]:
        self.call(element)
        self.emitted.reverse()
        while self.emitted:
            yield self.emitted.pop()

    def call(self, element: T) -> None:
        emit = _Emit(self, element)
        try:
            self.fn(element, emit)
        finally:
            emit.over = True

    def holds(self) -> bool:
        return bool(self.emitted)

    def dispose(self) -> Iterable[object]:
        emitted, self.emitted = self.emitted, []
        return reversed(emitted)

    def __str__(self) -> str:
        return f"handle({describe(self.fn)})"


class _Emit:
    """The `emit` of one call of `handle`'s function: what comes after that call has no place, and is an error."""

    __slots__ = ("_element", "_step", "over")

    def __init__(self, step: _Handle[Any, Any], element: object) -> None:
        self._step = step
        self._element = element
        self.over = False  # of the thread of the call

    def __call__(self, result: Any) -> None:
        if self.over:
            late = f"emit({shown(result)}) came after the call for {shown(self._element)}, which it was given to"
            raise RuntimeError(f"{self._step}: {late}: emit before that call returns")
        if result is None:
            raise TypeError(f"{self._step}: emit(None): None is not an element (2.13)")
        self._step.emitted.append(result)


class _FlatMapIterable(_Many[T, R]):
    name = "flat_map_iterable"

    def __init__(self, fn: Callable[[T], Iterable[R]]) -> None:
        self.fn = fn

    def on_next(self, element: T) -> Each[R]:
        items = self.fn(element)
        try:
            self.iterator = iter(items)
        except TypeError as error:
            raise _not_iterable(f"{self}", items, error) from error
        for item in self.iterator:
            if item is None:
                raise _none_among(f"{self}", items, self.iterator, element)
            yield item
        self.iterator = None

    def __str__(self) -> str:
        return f"flat_map_iterable({describe(self.fn)})"


class _Flatten(_Many[Iterable[R], R]):
    name = "flatten"

    def on_next(self, element: Iterable[R]) -> Each[R]:
        try:
            self.iterator = iter(element)
        except TypeError as error:
            raise _not_iterable(f"{self}", element, error) from error
        for item in self.iterator:
            if item is None:
                raise _none_among(f"{self}", element, self.iterator, element)
            yield item
        self.iterator = None

    def __str__(self) -> str:
        return "flatten()"


def _none_among(step: str, items: Any, iterator: Iterator[Any], element: object) -> TypeError:
    """The error of an iterable that has None; where it has a length, and its iterator knows how much is left: where."""
    left = length_hint(iterator, -1)
    there = isinstance(items, Sized) and iterator is not items and left >= 0
    at = f" at index {len(items) - left - 1}" if there else ""
    return TypeError(f"{step}: None came out{at} for {shown(element)}, and None is not an element (2.13)")


def _not_iterable(step: str, value: object, error: TypeError) -> TypeError:
    return TypeError(f"{step}: an iterable is needed, not {type(value).__name__} ({error})")


class _Enumerate(Step[T, tuple[int, T]]):
    name = "enumerate"

    def __init__(self, start: int) -> None:
        self.number = start - 1

    def on_next(self, element: T) -> Each[tuple[int, T]]:
        number = self.number + 1
        self.number = number
        yield number, element

    def __str__(self) -> str:
        return "enumerate()"


NO_ELEMENT: Any = sentinel("NO_ELEMENT", __name__)


class _Pairwise(Step[T, tuple[T, T]]):
    name = "pairwise"

    def __init__(self) -> None:
        self.before: Any = NO_ELEMENT
        self.paired = False

    def on_next(self, element: T) -> Each[tuple[T, T]]:
        before = self.before
        self.before = element
        if before is not NO_ELEMENT:
            self.paired = True
            yield before, element

    def dispose(self) -> Iterable[object]:
        return () if self.paired or self.before is NO_ELEMENT else (self.before,)

    def upstream_demand(self, n: int) -> int:
        return n + 1 if self.before is NO_ELEMENT else n

    def __str__(self) -> str:
        return "pairwise()"


class _Scan(Step[T, S]):
    name = "scan"

    def __init__(self, fn: Callable[[S, T], S], initial: S) -> None:
        self.fn = fn
        self.so_far = initial

    def on_next(self, element: T) -> Each[S]:
        so_far = self.fn(self.so_far, element)
        if so_far is None:
            raise TypeError(
                f"{self}: the function returned None for {shown(element)}, and None is not an element (2.13)"
            )
        self.so_far = so_far
        yield so_far

    def __str__(self) -> str:
        return f"scan({describe(self.fn)})"


class _Batch(Step[T, list[T]]):
    name = "batch"

    def __init__(self, n: int, operator: str) -> None:
        self.n = n
        self.operator = operator  # what was called

    def reset(self) -> None:
        self.elements: list[T] = []

    def on_next(self, element: T) -> Each[list[T]]:
        elements = self.elements
        elements.append(element)
        if len(elements) == self.n:
            self.elements = []
            yield elements

    def on_complete(self) -> Iterator[list[T]]:
        elements = self.elements
        self.elements = []
        if elements:
            yield elements

    def upstream_demand(self, n: int) -> int:
        return n * self.n - len(self.elements)

    def dispose(self) -> Iterable[object]:
        elements, self.elements = self.elements, []
        return elements

    def __str__(self) -> str:
        return f"{self.operator}({self.n})"


class _EndWith(Step[T, T]):
    name = "end_with"

    def __init__(self, elements: tuple[T, ...]) -> None:
        self.elements = elements

    def on_next(self, element: T) -> Each[T]:
        yield element

    def on_complete(self) -> Iterator[T]:
        for element in self.elements:  # noqa: UP028 - a step writes its loops
            yield element

    def __str__(self) -> str:
        return f"end_with({', '.join(builtins.map(shown, self.elements))})"


@dataclass(frozen=True, slots=True)
class Notification(Generic[T]):
    """A signal as an element; see `materialize`."""

    signal: Literal["on_next", "on_error", "on_complete"]
    element: T | None = None
    error: BaseException | None = None


class _Noticed(Step[T, Notification[T]]):
    name = "materialize"

    def on_next(self, element: T) -> Each[Notification[T]]:
        yield Notification("on_next", element)

    def on_complete(self) -> Iterator[Notification[T]]:
        yield Notification("on_complete")

    def __str__(self) -> str:
        return "materialize()"


class _Denoticed(Step[Notification[T], T]):
    name = "dematerialize"

    def on_next(self, element: Notification[T]) -> Each[T]:
        if not isinstance(element, Notification):
            raise TypeError(f"{self}: a Notification is needed, not {type(element).__name__}")
        if element.signal == "on_complete":
            return STOP
        if element.error is not None:
            raise passing(element.error) if isinstance(element.error, Exception) else element.error
        if element.element is None:
            raise TypeError(f"{self}: {shown(element)} has no element")
        yield element.element

    def upstream_demand(self, n: int) -> int:
        return min(n + 1, MAX_DEMAND)  # the end is an element there

    def __str__(self) -> str:
        return "dematerialize()"
