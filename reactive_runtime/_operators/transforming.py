"""One element to one, or to several."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sized
from operator import length_hint
from typing import TYPE_CHECKING, Any, Final, TypeVar, TypeVarTuple, overload

from reactive_runtime._core.fusion.step import Each, Step, describe
from reactive_runtime._core.runtime.arguments import check_callable
from reactive_runtime._operators.flow_base import FlowBase, flow_type
from reactive_runtime._operators.stateful import stateful
from reactive_runtime._support.shown import shown

if TYPE_CHECKING:
    from reactive_runtime._flow import Flow

__all__ = ["TransformingOperators"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
R = TypeVar("R")
Ts = TypeVarTuple("Ts")


class TransformingOperators(FlowBase[T_co]):
    """One element to one, or to several."""

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
        return self._then(Map(check_callable("map", "fn", fn)))

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
            A flow of the emitted elements. It fails with the error that `fn` raises. Elements that this call has
            emitted are then dropped, to the hook.

        Raises:
            TypeError: `fn` cannot be called.

        Demand:
            Emitted elements go on when `fn` has returned, by demand. If it emits nothing, one more element is requested
            upstream.

        Cancellation:
            Passes through. Emitted elements that have not gone on are dropped, to the hook.

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

    def transform(self, fn: Callable[[Flow[T_co]], Flow[R]]) -> Flow[R]:
        """The flow `fn(source)`: a name for several operators.

        Args:
            fn: Takes this flow and returns a flow. It is called at once, and only once.

        Returns:
            The flow that `fn` returns.

        Raises:
            TypeError: `fn` cannot be called, or returns no `Flow`. An error that `fn` raises goes to the caller as
                well.

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


class _OfFunction(Step[T, R]):
    """A step with one function, drawn as `name(function)`."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        self.fn = fn

    def __str__(self) -> str:
        return f"{self.name}({describe(self.fn)})"


class Map(_OfFunction[T, R]):
    """The results of a function."""

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
"""Iterators over elements that exist already; any other makes an element when it is asked for one."""


class _Many(Step[T, R]):
    """An element becomes those of an iterator. At the end the step drops the rest, or closes a lazy iterator."""

    expands = True
    iterator: Iterator[Any] | None = None
    """The iterator that gives elements now."""

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
        self.emitted: list[R] = []  # in reverse order once the function has returned: the next element is the last one

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
    """The `emit` of one call of `handle`'s function: a call of it after that is an error."""

    __slots__ = ("_element", "_step", "over")

    def __init__(self, step: _Handle[Any, Any], element: object) -> None:
        self._step = step
        self._element = element
        self.over = False  # owned by the thread of the call

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
    """The error for a None in an iterable, with its place, if the length of both the iterable and its rest is known."""
    left = length_hint(iterator, -1)
    there = isinstance(items, Sized) and iterator is not items and left >= 0
    at = f" at index {len(items) - left - 1}" if there else ""
    return TypeError(f"{step}: None came out{at} for {shown(element)}, and None is not an element (2.13)")


def _not_iterable(step: str, value: object, error: TypeError) -> TypeError:
    return TypeError(f"{step}: an iterable is needed, not {type(value).__name__} ({error})")


class _Enumerate(Step[T, tuple[int, T]]):
    name = "enumerate"
    calls = False

    def __init__(self, start: int) -> None:
        self.number = start - 1

    def on_next(self, element: T) -> Each[tuple[int, T]]:
        number = self.number + 1
        self.number = number
        yield number, element

    def __str__(self) -> str:
        return "enumerate()"
