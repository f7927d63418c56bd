"""Many elements to one: flows of one element, which `block` waits for.

All request every element. `scan` gives each result on the way. `to_list` and `to_dict` hold every element as well, and
are for finite flows.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, overload

from reactive_runtime._core.fusion.step import Each, Step, describe
from reactive_runtime._core.runtime.arguments import check_callable
from reactive_runtime._operators.filtering import MISSING
from reactive_runtime._operators.flow_base import FlowBase
from reactive_runtime._operators.stateful import stateful
from reactive_runtime._spec import MAX_DEMAND
from reactive_runtime._support.shown import shown

if TYPE_CHECKING:
    from _typeshed import SupportsRichComparison

    from reactive_runtime._flow import Flow

__all__ = ["AggregatingOperators", "Fold"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
S = TypeVar("S")
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
N_co = TypeVar("N_co", covariant=True)


class Summable(Protocol[N_co]):
    """A value that can be added to 0, and the type of that sum: a number, and not a str."""

    def __radd__(self, other: int, /) -> N_co: ...


class Dividable(Protocol[N_co]):
    """A value that can be divided by an int, and the type of the result: a number, a timedelta."""

    def __truediv__(self, other: int, /) -> N_co: ...


class AggregatingOperators(FlowBase[T_co]):
    """Many elements to one: flows of one element, which `block` waits for."""

    __slots__ = ()

    @overload
    def reduce(self: FlowBase[T], fn: Callable[[T, T], T]) -> Flow[T]: ...

    @overload
    def reduce(self, fn: Callable[[S, T_co], S], initial: S) -> Flow[S]: ...

    @stateful
    def reduce(self: FlowBase[Any], fn: Callable[[Any, Any], Any], initial: Any = MISSING) -> Flow[Any]:
        """All elements, folded into one by `fn(so_far, element)`.

        Args:
            fn: Called for each element; its result is the next `so_far`.
            initial: The first `so_far`. Without it the first element takes its place.

        Returns:
            A flow of one element, at the end of the source. If the source is empty, that is `initial`, and without one
            the flow is empty. It fails with the error that `fn` raises, and with TypeError where `fn` returns None, or
            the source is empty and `initial` is None: None is not an element (2.13).

        Raises:
            TypeError: `fn` cannot be called.

        Demand:
            All elements are requested upstream.

        Cancellation:
            Passes through. The result so far is dropped, to the hook.

        Thread:
            `fn` is called on the thread that signals.

        Example:
            >>> from reactive_runtime import Flow
            >>> Flow.range(1, 6).reduce(lambda product, n: product * n, 1).block()
            120

        Origin:
            `reduce` of Rx, `functools.reduce`.
        """
        check_callable("reduce", "fn", fn)
        return self._then(_Reduce(fn, initial))

    @stateful
    def collect(self, supplier: Callable[[], S], accumulate: Callable[[S, T_co], object]) -> Flow[S]:
        """All elements, put into one container.

        Args:
            supplier: Makes the container, one for each subscriber, when the first element is there, or at the end.
            accumulate: Called as `accumulate(container, element)` for each element. Its result is not used.

        Returns:
            A flow of one element, the container, at the end of the source. It fails with the error that `supplier` or
            `accumulate` raises, and with TypeError where the container is None, which is not an element (2.13).

        Raises:
            TypeError: `supplier` or `accumulate` cannot be called.

        Demand:
            All elements are requested upstream.

        Cancellation:
            Passes through. The container is dropped, to the hook.

        Thread:
            `supplier` and `accumulate` are called on the thread that signals.

        Example:
            >>> from reactive_runtime import Flow
            >>> sorted(Flow.just(3, 1, 3).collect(set, set.add).block())
            [1, 3]

        Origin:
            `collect` of Rx and of Java's streams.
        """
        return self._then(
            _Collect(
                check_callable("collect", "supplier", supplier), check_callable("collect", "accumulate", accumulate)
            )
        )

    @stateful
    def to_list(self) -> Flow[list[T_co]]:
        """The list of all elements.

        It holds every element: for finite flows.

        Returns:
            A flow of one element, the list, when the source has completed. If the source fails, the elements gathered
            so far are dropped, to the hook.

        Demand:
            All elements are requested upstream.

        Cancellation:
            Passes through. The elements gathered so far are dropped, to the hook.

        Thread:
            Runs on the thread that signals.

        Example:
            >>> from reactive_runtime import Flow
            >>> Flow.range(3).to_list().block()
            [0, 1, 2]

        Origin:
            `toList` of Rx.
        """
        return self._then(_ToList())

    @overload
    def to_dict(self: FlowBase[T], key: Callable[[T], K], value: None = None) -> Flow[dict[K, T]]: ...

    @overload
    def to_dict(self, key: Callable[[T_co], K], value: Callable[[T_co], V]) -> Flow[dict[K, V]]: ...

    @stateful
    def to_dict(
        self: FlowBase[Any], key: Callable[[Any], Any], value: Callable[[Any], Any] | None = None
    ) -> Flow[dict[Any, Any]]:
        """The dict of all elements, by their keys.

        It holds every element: for finite flows. Of several elements with one key, the last one is kept.

        Args:
            key: Makes the key of an element, which is hashable.
            value: Makes the value of an element. None: the element is the value.

        Returns:
            A flow of one element, the dict, when the source has completed. It fails with the error that `key`, `value`,
            or the hash of a key raises.

        Raises:
            TypeError: `key` or `value` cannot be called.

        Demand:
            All elements are requested upstream.

        Cancellation:
            Passes through. The entries so far are dropped, to the hook, as one dict.

        Thread:
            `key` and `value` are called on the thread that signals.

        Example:
            >>> from reactive_runtime import Flow
            >>> Flow.just("a", "bc").to_dict(len).block()
            {1: 'a', 2: 'bc'}

        Origin:
            `toMap` of Rx.
        """
        check_callable("to_dict", "key", key)
        return self._then(_ToDict(key, None if value is None else check_callable("to_dict", "value", value)))

    @stateful
    def count(self) -> Flow[int]:
        """How many elements there were.

        Returns:
            A flow of one int, when the source has completed.

        Demand:
            All elements are requested upstream.

        Cancellation:
            Passes through.

        Thread:
            Runs on the thread that signals.

        Example:
            >>> from reactive_runtime import Flow
            >>> Flow.just("a", "b").count().block()
            2

        Origin:
            `count` of Rx.
        """
        return self._then(_Count())

    @stateful
    def sum(self: FlowBase[Summable[N_co]]) -> Flow[N_co]:
        """The sum of the elements, by `+`.

        Returns:
            A flow of one element, when the source has completed; it is 0 where the source is empty. It fails with the
            error that `+` raises.

        Demand:
            All elements are requested upstream.

        Cancellation:
            Passes through. The elements that were added up have been handled.

        Thread:
            Runs on the thread that signals.

        Example:
            >>> from reactive_runtime import Flow
            >>> Flow.range(5).sum().block()
            10

        Origin:
            `sum` of Python.
        """
        return self._then(_Sum())

    @stateful
    def average(self: FlowBase[Dividable[N_co]]) -> Flow[N_co]:
        """The mean of the elements: their sum, by `+`, divided by their number, by `/`.

        Returns:
            A flow of one element, when the source has completed. It is empty where the source is. It fails with the
            error that `+` or `/` raises.

        Demand:
            All elements are requested upstream.

        Cancellation:
            Passes through. The elements that were added up have been handled.

        Thread:
            Runs on the thread that signals.

        Example:
            >>> from reactive_runtime import Flow
            >>> Flow.just(1, 2, 6).average().block()
            3.0

        Origin:
            `average` of RxPY, `statistics.mean` of Python.
        """
        return self._then(_Average())

    @overload
    def min(self: FlowBase[SupportsRichComparison], *, key: None = None) -> Flow[T_co]: ...

    @overload
    def min(self, *, key: Callable[[T_co], SupportsRichComparison]) -> Flow[T_co]: ...

    @stateful
    def min(self: FlowBase[Any], *, key: Callable[[Any], Any] | None = None) -> Flow[Any]:
        """The smallest element.

        Args:
            key: Makes what is compared, by `<`. None: the elements are compared.

        Returns:
            A flow of one element, the first of several that are as small, when the source has completed. It is empty
            where the source is. It fails with the error that `key` or the comparison raises.

        Raises:
            TypeError: `key` cannot be called.

        Demand:
            All elements are requested upstream.

        Cancellation:
            Passes through. The smallest so far is dropped, to the hook.

        Thread:
            `key` is called on the thread that signals.

        Example:
            >>> from reactive_runtime import Flow
            >>> Flow.just(3, 1, 2).min().block()
            1

        Origin:
            `min` of Python.
        """
        return self._then(_Best("min", _a_key("min", key), lambda item, best: item < best))

    @overload
    def max(self: FlowBase[SupportsRichComparison], *, key: None = None) -> Flow[T_co]: ...

    @overload
    def max(self, *, key: Callable[[T_co], SupportsRichComparison]) -> Flow[T_co]: ...

    @stateful
    def max(self: FlowBase[Any], *, key: Callable[[Any], Any] | None = None) -> Flow[Any]:
        """The largest element.

        Args:
            key: Makes what is compared, by `>`. None: the elements are compared.

        Returns:
            A flow of one element, the first of several that are as large, when the source has completed. It is empty
            where the source is. It fails with the error that `key` or the comparison raises.

        Raises:
            TypeError: `key` cannot be called.

        Demand:
            All elements are requested upstream.

        Cancellation:
            Passes through. The largest so far is dropped, to the hook.

        Thread:
            `key` is called on the thread that signals.

        Example:
            >>> from reactive_runtime import Flow
            >>> Flow.just("a", "ccc", "bb").max(key=len).block()
            'ccc'

        Origin:
            `max` of Python.
        """
        return self._then(_Best("max", _a_key("max", key), lambda item, best: item > best))

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


class Fold(Step[T, S]):
    """Requests all elements."""

    def upstream_demand(self, n: int) -> int:
        return MAX_DEMAND

    def so_far(self) -> object:
        """The result so far, or the elements that the step keeps; MISSING: nothing."""
        return MISSING

    def dispose(self) -> Iterable[object]:
        so_far = MISSING if self.done else self.so_far()
        return () if so_far is MISSING or so_far is None else (so_far,)

    def __str__(self) -> str:
        return f"{self.name}()"


class _Reduce(Fold[T, S]):
    name = "reduce"

    def __init__(self, fn: Callable[[S, T], S], initial: S) -> None:
        self.fn = fn
        self.initial: Any = initial
        self.result: Any = initial

    def on_next(self, element: T) -> None:
        self.result = element if self.result is MISSING else self.fn(self.result, element)
        if self.result is None:
            raise TypeError(
                f"{self}: the function returned None for {shown(element)}, and None is not an element (2.13)"
            )

    def on_complete(self) -> Iterator[S]:
        if self.result is not MISSING:
            yield self.result

    def so_far(self) -> object:
        return MISSING if self.result is self.initial else self.result

    def __str__(self) -> str:
        return f"reduce({describe(self.fn)})"


class _Collect(Fold[T, S]):
    name = "collect"

    def __init__(self, supplier: Callable[[], S], accumulate: Callable[[S, T], object]) -> None:
        self.supplier = supplier
        self.accumulate = accumulate
        self.container: Any = MISSING

    def on_next(self, element: T) -> None:
        if self.container is MISSING:
            self.container = self.supplier()
        self.accumulate(self.container, element)

    def on_complete(self) -> Iterator[S]:
        if self.container is MISSING:
            self.container = self.supplier()
        if self.container is None:
            raise TypeError(f"{self}: the supplier returned None, and None is not an element (2.13)")
        yield self.container

    def so_far(self) -> object:
        return self.container

    def __str__(self) -> str:
        return f"collect({describe(self.supplier)}, {describe(self.accumulate)})"


class _ToList(Fold[T, list[T]]):
    name = "to_list"
    calls = False

    def reset(self) -> None:
        self.elements: list[T] = []

    def on_next(self, element: T) -> None:
        self.elements.append(element)

    def on_complete(self) -> Iterator[list[T]]:
        yield self.elements

    def dispose(self) -> Iterable[object]:
        return () if self.done else self.elements


class _ToDict(Fold[T, dict[K, V]]):
    name = "to_dict"

    def __init__(self, key: Callable[[T], K], value: Callable[[T], V] | None) -> None:
        self.key = key
        self.value = value

    def reset(self) -> None:
        self.entries: dict[Any, Any] = {}

    def on_next(self, element: T) -> None:
        key = self.key(element)
        self.entries[key] = element if self.value is None else self.value(element)

    def on_complete(self) -> Iterator[dict[K, V]]:
        yield self.entries

    def so_far(self) -> object:
        return self.entries or MISSING


class _Count(Fold[T, int]):
    name = "count"
    calls = False

    def __init__(self) -> None:
        self.elements = 0

    def on_next(self, element: T) -> None:
        self.elements += 1

    def on_complete(self) -> Iterator[int]:
        yield self.elements


class _Sum(Fold[T, T]):
    name = "sum"

    def __init__(self) -> None:
        self.total: Any = 0

    def on_next(self, element: T) -> None:
        self.total = self.total + element  # `+=` might change an element: `0 + x` may be x

    def on_complete(self) -> Iterator[T]:
        yield self.total


class _Average(Fold[T, T]):
    name = "average"

    def __init__(self) -> None:
        self.total: Any = MISSING
        self.number = 0

    def on_next(self, element: T) -> None:
        self.number += 1
        self.total = element if self.total is MISSING else self.total + element

    def on_complete(self) -> Iterator[T]:
        if self.number:
            yield self.total / self.number


def _a_key(operator: str, key: Callable[[T], Any] | None) -> Callable[[T], Any] | None:
    return None if key is None else check_callable(operator, "key", key)


class _Best(Fold[T, T]):
    def __init__(self, name: str, key: Callable[[T], Any] | None, better: Callable[[Any, Any], bool]) -> None:
        self.operator = name
        self.key = key
        self.better = better
        self.element: Any = MISSING
        self.best: Any = None

    def on_next(self, element: T) -> None:
        key = element if self.key is None else self.key(element)
        if self.element is MISSING or self.better(key, self.best):
            self.element, self.best = element, key

    def on_complete(self) -> Iterator[T]:
        if self.element is not MISSING:
            yield self.element

    def so_far(self) -> object:
        return self.element

    def __str__(self) -> str:
        return f"{self.operator}({'' if self.key is None else describe(self.key)})"


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
