"""Many elements to one: flows of one element, which `block` waits for.

All but `all`, `any` and `contains`, which stop as soon as they know, ask for everything; `to_list` and `to_dict` hold
everything too, and are for finite flows.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from reactive_runtime._core.arguments import check_callable
from reactive_runtime._core.flow_base import FlowBase
from reactive_runtime._core.step import STOP, Each, Step, describe
from reactive_runtime._operators.filtering import MISSING
from reactive_runtime.spec import MAX_DEMAND

if TYPE_CHECKING:
    from reactive_runtime.flow import Flow

__all__ = ["AggregatingOperators"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
S = TypeVar("S")
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
N_co = TypeVar("N_co", covariant=True)


class Summable(Protocol[N_co]):
    """What can be added to 0, and what is the sum then: a number, and no str."""

    def __radd__(self, other: int, /) -> N_co: ...


class AggregatingOperators(FlowBase[T_co]):
    """Many elements to one: flows of one element, which `block` waits for."""

    __slots__ = ()

    def reduce(self, fn: Callable[[S, T_co], S], initial: S = MISSING) -> Flow[S]:
        """`initial` folded with each element by `fn(so_far, element)`; one element, at the end.

        Without `initial` the first element takes its place, and an empty flow gives no element. An error of `fn` ends
        the flow with `on_error`; a result of None is a TypeError, and so is an `initial` of None where the flow is
        empty. Asks for everything; cancellation passes through.
        Origin: `reduce` of Rx, `functools.reduce`.

        >>> from reactive_runtime import Flow
        >>> Flow.range(1, 6).reduce(lambda product, n: product * n, 1).block()
        120
        """
        check_callable("reduce", "fn", fn)
        return self._then(_Reduce(fn, initial))

    def collect(self, supplier: Callable[[], S], accumulate: Callable[[S, T_co], object]) -> Flow[S]:
        """One container: `supplier()` makes it, `accumulate(container, element)` puts each element in.

        Each subscriber gets a container of its own. Errors of either end the flow with `on_error`. Asks for everything;
        cancellation passes through. Origin: `collect` of Rx and of Java's streams.

        >>> from reactive_runtime import Flow
        >>> sorted(Flow.just(3, 1, 3).collect(set, set.add).block())
        [1, 3]
        """
        return self._then(
            _Collect(
                check_callable("collect", "supplier", supplier), check_callable("collect", "accumulate", accumulate)
            )
        )

    def to_list(self) -> Flow[list[T_co]]:
        """A flow of one element: the list of all elements, when the source has completed.

        Asks for everything, and holds everything: for finite flows. Cancellation passes through; what was gathered
        is then let go. Origin: `toList` of Rx.

        >>> from reactive_runtime import Flow
        >>> Flow.range(3).to_list().block()
        [0, 1, 2]
        """
        return self._then(_ToList())

    def to_dict(self, key: Callable[[T_co], K], value: Callable[[T_co], V] | None = None) -> Flow[dict[K, V]]:
        """A dict of all elements: `key(element)` to `value(element)`, or to the element; a later one replaces.

        Errors of either function end the flow with `on_error`. Asks for everything, and holds everything; cancellation
        passes through. Origin: `toMap` of Rx.

        >>> from reactive_runtime import Flow
        >>> Flow.just("a", "bc").to_dict(len).block()
        {1: 'a', 2: 'bc'}
        """
        check_callable("to_dict", "key", key)
        return self._then(_ToDict(key, None if value is None else check_callable("to_dict", "value", value)))

    def count(self) -> Flow[int]:
        """How many elements there were.

        Asks for everything; cancellation passes through. Origin: `count` of Rx.

        >>> from reactive_runtime import Flow
        >>> Flow.just("a", "b").count().block()
        2
        """
        return self._then(_Count())

    def sum(self: FlowBase[Summable[N_co]]) -> Flow[N_co]:
        """The sum of the elements, by `+`; 0 where there are none.

        An error of `+` ends the flow with `on_error`. Asks for everything; cancellation passes through. Origin: `sum`
        of Python.

        >>> from reactive_runtime import Flow
        >>> Flow.range(5).sum().block()
        10
        """
        return self._then(_Sum())

    def min(self, *, key: Callable[[T_co], Any] | None = None) -> Flow[T_co]:
        """The smallest element (by `key`), the first of several; none where there are none.

        Errors of `key` or of the comparison end the flow with `on_error`. Asks for everything; cancellation passes
        through. Origin: `min` of Python.

        >>> from reactive_runtime import Flow
        >>> Flow.just(3, 1, 2).min().block()
        1
        """
        return self._then(_Best("min", _a_key("min", key), lambda item, best: item < best))

    def max(self, *, key: Callable[[T_co], Any] | None = None) -> Flow[T_co]:
        """The largest element (by `key`), the first of several; none where there are none.

        Errors of `key` or of the comparison end the flow with `on_error`. Asks for everything; cancellation passes
        through. Origin: `max` of Python.

        >>> from reactive_runtime import Flow
        >>> Flow.just("a", "ccc", "bb").max(key=len).block()
        'ccc'
        """
        return self._then(_Best("max", _a_key("max", key), lambda item, best: item > best))

    def all(self, predicate: Callable[[T_co], object] = bool) -> Flow[bool]:
        """Whether `predicate(element)` is true for every element: False with the first that fails it, True at the end.

        An error of `predicate` ends the flow with `on_error`. Asks for everything, and cancels the upstream as soon as
        the answer is known. Origin: `all` of Rx and of Python.

        >>> from reactive_runtime import Flow
        >>> Flow.range(5).all(lambda n: n < 5).block()
        True
        """
        return self._then(_Decide("all", check_callable("all", "predicate", predicate), decided=False))

    def any(self, predicate: Callable[[T_co], object] = bool) -> Flow[bool]:
        """Whether `predicate(element)` is true for some element: True with the first one, False at the end.

        An error of `predicate` ends the flow with `on_error`. Asks for everything, and cancels the upstream as soon as
        the answer is known. Origin: `any` of Rx and of Python.

        >>> from reactive_runtime import Flow
        >>> Flow.range(1_000_000_000).any(lambda n: n > 5).block()
        True
        """
        return self._then(_Decide("any", check_callable("any", "predicate", predicate), decided=True))

    def contains(self: FlowBase[T], element: T) -> Flow[bool]:
        """Whether an element equals `element`: True with the first one, False at the end.

        An error of `==` ends the flow with `on_error`. Asks for everything, and cancels the upstream as soon as the
        answer is known. Origin: `contains` of RxJava.

        >>> from reactive_runtime import Flow
        >>> Flow.just("a", "b").contains("b").block()
        True
        """
        return self._then(_Contains(element))


class _Fold(Step[T, S]):
    """Asks for everything."""

    def upstream_demand(self, n: int) -> int:
        return MAX_DEMAND

    def __str__(self) -> str:
        return f"{self.name}()"


class _Reduce(_Fold[T, S]):
    name = "reduce"

    def __init__(self, fn: Callable[[S, T], S], initial: S) -> None:
        self.fn = fn
        self.so_far: Any = initial

    def on_next(self, element: T) -> None:
        self.so_far = element if self.so_far is MISSING else self.fn(self.so_far, element)
        if self.so_far is None:
            raise TypeError(f"{self}: the function returned None for {element!r}, and None is not an element (2.13)")

    def on_complete(self) -> Iterator[S]:
        if self.so_far is not MISSING:
            yield self.so_far

    def __str__(self) -> str:
        return f"reduce({describe(self.fn)})"


class _Collect(_Fold[T, S]):
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

    def __str__(self) -> str:
        return f"collect({describe(self.supplier)}, {describe(self.accumulate)})"


class _ToList(_Fold[T, list[T]]):
    name = "to_list"

    def reset(self) -> None:
        self.elements: list[T] = []

    def on_next(self, element: T) -> None:
        self.elements.append(element)

    def on_complete(self) -> Iterator[list[T]]:
        yield self.elements

    def dispose(self) -> Iterable[object]:
        return () if self.done else self.elements


class _ToDict(_Fold[T, dict[K, V]]):
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


class _Count(_Fold[T, int]):
    name = "count"

    def __init__(self) -> None:
        self.elements = 0

    def on_next(self, element: T) -> None:
        self.elements += 1

    def on_complete(self) -> Iterator[int]:
        yield self.elements


class _Sum(_Fold[T, T]):
    name = "sum"

    def __init__(self) -> None:
        self.total: Any = 0

    def on_next(self, element: T) -> None:
        self.total += element

    def on_complete(self) -> Iterator[T]:
        yield self.total


def _a_key(operator: str, key: Callable[[T], Any] | None) -> Callable[[T], Any] | None:
    return None if key is None else check_callable(operator, "key", key)


class _Best(_Fold[T, T]):
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

    def __str__(self) -> str:
        return f"{self.operator}({'' if self.key is None else describe(self.key)})"


class _Decide(_Fold[T, bool]):
    def __init__(self, name: str, predicate: Callable[[T], object], *, decided: bool) -> None:
        self.operator = name
        self.predicate = predicate
        self.decided = decided

    def on_next(self, element: T) -> Each[bool]:
        if bool(self.predicate(element)) is self.decided:
            self.done = True
            yield self.decided
            return STOP

    def on_complete(self) -> Iterator[bool]:
        yield not self.decided

    def __str__(self) -> str:
        return f"{self.operator}({describe(self.predicate)})"


class _Contains(_Fold[T, bool]):
    name = "contains"

    def __init__(self, wanted: T) -> None:
        self.wanted = wanted

    def on_next(self, element: T) -> Each[bool]:
        if element == self.wanted:
            self.done = True
            yield True
            return STOP

    def on_complete(self) -> Iterator[bool]:
        yield False

    def __str__(self) -> str:
        return f"contains({self.wanted!r})"
