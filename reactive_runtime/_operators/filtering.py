"""Operators that let some elements pass, by their value, their key or their place."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, TypeVar, overload

from reactive_runtime._core.fusion.step import STOP, Each, Step, describe
from reactive_runtime._core.runtime.arguments import at_least, check_callable
from reactive_runtime._core.runtime.sentinels import sentinel
from reactive_runtime._operators.flow_base import FlowBase
from reactive_runtime._operators.stateful import stateful
from reactive_runtime._spec import MAX_DEMAND

if TYPE_CHECKING:
    from reactive_runtime._flow import Flow

__all__ = ["MISSING", "ByPredicate", "FilteringOperators"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
R = TypeVar("R")


MISSING: Final[Any] = sentinel("MISSING", __name__)
"""No element, or no default."""


class FilteringOperators(FlowBase[T_co]):
    """Operators that let some elements pass, by their value, their key or their place."""

    __slots__ = ()

    def filter(self, predicate: Callable[[T_co], object]) -> Flow[T_co]:
        """Only the elements for which `predicate(element)` is true.

        Args:
            predicate: Called once for each element. A false answer drops the element.

        Returns:
            A flow of the elements that pass. It fails with the error that `predicate` raises.

        Raises:
            TypeError: `predicate` cannot be called.

        Demand:
            For each element that is dropped, one more is requested upstream, within the demand that is still owed.

        Cancellation:
            Passes through, also while every element is dropped.

        Thread:
            `predicate` is called on the thread that signals.

        Example:
            >>> from reactive_runtime import Flow
            >>> list(Flow.range(6).filter(lambda n: n % 2))
            [1, 3, 5]

        Origin:
            `filter` of Rx and of Python.
        """
        return self._then(Filter(check_callable("filter", "predicate", predicate)))

    @stateful
    def take(self, n: int) -> Flow[T_co]:
        """The first `n` elements.

        Args:
            n: How many elements, 0 or more. `take(0)` completes at once and does not subscribe upstream.

        Returns:
            A flow that completes with the n-th element, without further demand, or with the source.

        Raises:
            TypeError: `n` is not an int.
            ValueError: `n` is below 0.

        Demand:
            Passes through, but no more than `n` are requested upstream.

        Cancellation:
            Passes through. The n-th element cancels the upstream, once.

        Thread:
            Runs on the thread that signals.

        Example:
            >>> from reactive_runtime import Flow
            >>> list(Flow.range(1_000_000_000).take(2))
            [0, 1]

        Origin:
            `take` of Rx, `itertools.islice`.
        """
        at_least("take", "n", 0, n)
        return self._then(_Take(n)) if n else self._none()

    @stateful
    def skip(self, n: int) -> Flow[T_co]:
        """All but the first `n` elements.

        Args:
            n: How many elements are dropped, 0 or more.

        Returns:
            A flow of the elements that come after them.

        Raises:
            TypeError: `n` is not an int.
            ValueError: `n` is below 0.

        Demand:
            The elements that are dropped are requested upstream in addition to what is demanded.

        Cancellation:
            Passes through.

        Thread:
            Runs on the thread that signals.

        Example:
            >>> from reactive_runtime import Flow
            >>> list(Flow.range(5).skip(3))
            [3, 4]

        Origin:
            `skip` of Rx, `drop` of others.
        """
        return self._then(_Skip(at_least("skip", "n", 0, n)))

    @stateful
    def distinct(self, *, key: Callable[[T_co], Hashable] | None = None) -> Flow[T_co]:
        """The elements whose key has not been there before.

        All keys are kept until the flow ends: for flows with few keys.

        Args:
            key: Makes the key of an element, which is hashable. None: the element is its own key.

        Returns:
            A flow of the first element of each key. It fails with the error that `key`, or the hash of a key, raises.

        Raises:
            TypeError: `key` cannot be called.

        Demand:
            For each element that is dropped, one more is requested upstream.

        Cancellation:
            Passes through.

        Thread:
            `key` is called on the thread that signals.

        Example:
            >>> from reactive_runtime import Flow
            >>> list(Flow.just(1, 2, 1, 3, 2).distinct())
            [1, 2, 3]

        Origin:
            `distinct` of Rx.
        """
        return self._then(_Distinct(_a_key("distinct", key)))

    @stateful
    def distinct_until_changed(self, *, key: Callable[[T_co], object] | None = None) -> Flow[T_co]:
        """The elements whose key is not that of the element before.

        Args:
            key: Makes the key of an element. Keys are compared by `!=`. None: the element is its own key.

        Returns:
            A flow of the first element of each run of equal keys. It fails with the error that `key`, or the
            comparison, raises.

        Raises:
            TypeError: `key` cannot be called.

        Demand:
            For each element that is dropped, one more is requested upstream.

        Cancellation:
            Passes through.

        Thread:
            `key` is called on the thread that signals.

        Example:
            >>> from reactive_runtime import Flow
            >>> list(Flow.just(1, 1, 2, 2, 1).distinct_until_changed())
            [1, 2, 1]

        Origin:
            `distinctUntilChanged` of Rx.
        """
        return self._then(_Changed() if key is None else _DistinctUntilChanged(_a_key("distinct_until_changed", key)))

    @overload
    def first(self) -> Flow[T_co]: ...

    @overload
    def first(self, default: R) -> Flow[T_co | R]: ...

    @stateful
    def first(self, default: Any = MISSING) -> Flow[Any]:
        """The first element.

        Args:
            default: Takes the place of the element where the source is empty.

        Returns:
            A flow of one element. If the source is empty, it fails with LookupError if there is no `default`, and with
            TypeError if that is None, which is not an element (2.13).

        Demand:
            One element is requested upstream.

        Cancellation:
            Passes through. The first element completes the flow and cancels the upstream.

        Thread:
            Runs on the thread that signals.

        Example:
            >>> from reactive_runtime import Flow
            >>> Flow.just(7, 8).first().block(), Flow.empty().first(0).block()
            (7, 0)

        Origin:
            `first` of Rx.
        """
        return self._then(_ElementAt("first", 0, default))

    @overload
    def element_at(self, index: int) -> Flow[T_co]: ...

    @overload
    def element_at(self, index: int, default: R) -> Flow[T_co | R]: ...

    @stateful
    def element_at(self, index: int, default: Any = MISSING) -> Flow[Any]:
        """The element with number `index`, counted from 0.

        Args:
            index: The number of the element, 0 or more.
            default: Takes the place of the element where the source is too short.

        Returns:
            A flow of one element. If the source is too short, it fails with LookupError if there is no `default`, and
            with TypeError if that is None, which is not an element (2.13).

        Raises:
            TypeError: `index` is not an int.
            ValueError: `index` is below 0.

        Demand:
            No more than the elements up to that one, `index` + 1, are requested upstream.

        Cancellation:
            Passes through. The element completes the flow and cancels the upstream.

        Thread:
            Runs on the thread that signals.

        Example:
            >>> from reactive_runtime import Flow
            >>> Flow.just("a", "b", "c").element_at(1).block()
            'b'

        Origin:
            `elementAt` of Rx.
        """
        at_least("element_at", "index", 0, index)
        return self._then(_ElementAt("element_at", index, default))

    @overload
    def last(self) -> Flow[T_co]: ...

    @overload
    def last(self, default: R) -> Flow[T_co | R]: ...

    @stateful
    def last(self, default: Any = MISSING) -> Flow[Any]:
        """The last element.

        Args:
            default: Takes the place of the element where the source is empty.

        Returns:
            A flow of one element, at the end of the source. If the source is empty, it fails with LookupError if there
            is no `default`, and with TypeError if that is None, which is not an element (2.13).

        Demand:
            All elements are requested upstream.

        Cancellation:
            Passes through. The last element so far is dropped, to the hook.

        Thread:
            Runs on the thread that signals.

        Example:
            >>> from reactive_runtime import Flow
            >>> Flow.range(5).last().block()
            4

        Origin:
            `last` of Rx.
        """
        return self._then(_Last(default))

    @overload
    def single(self) -> Flow[T_co]: ...

    @overload
    def single(self, default: R) -> Flow[T_co | R]: ...

    @stateful
    def single(self, default: Any = MISSING) -> Flow[Any]:
        """The only element; an error where there are several.

        Args:
            default: Takes the place of the element where the source is empty.

        Returns:
            A flow of one element, at the end of the source. It fails with ValueError if there are several. If the
            source is empty, it fails with LookupError if there is no `default`, and with TypeError if that is None,
            which is not an element (2.13).

        Demand:
            Two elements are requested upstream: the second one is the error.

        Cancellation:
            Passes through. The hook gets the element; if there are two, both.

        Thread:
            Runs on the thread that signals.

        Example:
            >>> from reactive_runtime import Flow
            >>> Flow.just(7).single().block(), Flow.empty().single(0).block()
            (7, 0)

        Origin:
            `single` of RxJava and Reactor.
        """
        return self._then(_Single(default))

    def ignore_elements(self) -> Flow[T_co]:
        """No element, only the end.

        Returns:
            A flow that completes, or fails, with the source.

        Demand:
            All elements are requested upstream, as soon as any is demanded.

        Cancellation:
            Passes through.

        Thread:
            Runs on the thread that signals.

        Example:
            >>> from reactive_runtime import Flow
            >>> list(Flow.range(5).ignore_elements())
            []

        Origin:
            `ignoreElements` of Rx.
        """
        return self._then(_IgnoreElements())


class ByPredicate(Step[T, T]):
    """A step with a predicate, drawn as `name(predicate)`."""

    def __init__(self, predicate: Callable[[T], object]) -> None:
        self.predicate = predicate

    def __str__(self) -> str:
        return f"{self.name}({describe(self.predicate)})"


class Filter(ByPredicate[T]):
    """The elements that pass."""

    name = "filter"

    def on_next(self, element: T) -> Each[T]:
        if self.predicate(element):
            yield element


class _Take(Step[T, T]):
    name = "take"
    calls = False

    def __init__(self, n: int) -> None:
        self.n = n
        self.left = n

    def on_next(self, element: T) -> Each[T]:
        self.left -= 1
        if not self.left:
            self.done = True
        yield element
        if not self.left:
            return STOP

    def upstream_demand(self, n: int) -> int:
        return min(n, self.left)

    def __str__(self) -> str:
        return f"take({self.n})"


class _Skip(Step[T, T]):
    name = "skip"
    calls = False

    def __init__(self, n: int) -> None:
        self.left = n

    def on_next(self, element: T) -> Each[T]:
        if self.left:
            self.left -= 1
        else:
            yield element

    def upstream_demand(self, n: int) -> int:
        return n + self.left

    def __str__(self) -> str:
        return f"skip({self.left})"


def _a_key(operator: str, key: Callable[[T], Any] | None) -> Callable[[T], Any]:
    return _itself if key is None else check_callable(operator, "key", key)


def _itself(element: Any) -> Any:
    return element


class _Keyed(Step[T, T]):
    """A step with a key, drawn as `name(key)`."""

    def __init__(self, key: Callable[[T], Any]) -> None:
        self.key = key

    def __str__(self) -> str:
        return f"{self.name}({'' if self.key is _itself else describe(self.key)})"


class _Distinct(_Keyed[T]):
    name = "distinct"

    def reset(self) -> None:
        self.seen: set[Hashable] = set()

    def on_next(self, element: T) -> Each[T]:
        key = self.key(element)
        if key not in self.seen:
            self.seen.add(key)
            yield element


class _Changed(Step[T, T]):
    name = "distinct_until_changed"
    before: Any = MISSING

    def on_next(self, element: T) -> Each[T]:
        before = self.before
        if before is MISSING or before != element:
            self.before = element
            yield element

    def __str__(self) -> str:
        return "distinct_until_changed()"


class _DistinctUntilChanged(_Keyed[T]):
    name = "distinct_until_changed"
    before: Any = MISSING

    def on_next(self, element: T) -> Each[T]:
        key = self.key(element)
        if self.before is MISSING or self.before != key:
            self.before = key
            yield element


class _ElementAt(Step[T, T]):
    calls = False

    def __init__(self, name: str, index: int, default: T) -> None:
        self.operator = name
        self.index = index
        self.left = index
        self.default = default

    def on_next(self, element: T) -> Each[T]:
        if self.left:
            self.left -= 1
        else:
            self.done = True
            yield element
            return STOP

    def on_complete(self) -> Iterator[T]:
        if self.default is MISSING:
            raise LookupError(f"{self}: the flow had no such element, and there is no default")
        yield self.default

    def upstream_demand(self, n: int) -> int:
        return self.left + 1

    def __str__(self) -> str:
        return "first()" if self.operator == "first" else f"element_at({self.index})"


class _Last(Step[T, T]):
    name = "last"
    calls = False

    def __init__(self, default: T) -> None:
        self.default = default
        self.element = default

    def on_next(self, element: T) -> None:
        self.element = element

    def on_complete(self) -> Iterator[T]:
        if self.element is MISSING:
            raise LookupError(f"{self}: the flow had no such element, and there is no default")
        yield self.element

    def upstream_demand(self, n: int) -> int:
        return MAX_DEMAND

    def dispose(self) -> Iterable[object]:
        return () if self.done or self.element is self.default else (self.element,)

    def __str__(self) -> str:
        return "last()"


class _Single(Step[T, T]):
    name = "single"
    calls = False

    def __init__(self, default: T) -> None:
        self.default = default

    def reset(self) -> None:
        self.elements: list[T] = []

    def on_next(self, element: T) -> None:
        self.elements.append(element)
        if len(self.elements) > 1:
            raise ValueError(f"{self}: the flow has more than one element (take the one that you need with first)")

    def on_complete(self) -> Iterator[T]:
        if self.elements:
            yield self.elements.pop()
        elif self.default is MISSING:
            raise LookupError(f"{self}: the flow had no element, and there is no default")
        else:
            yield self.default

    def upstream_demand(self, n: int) -> int:
        return 2 - len(self.elements)

    def dispose(self) -> Iterable[object]:
        elements, self.elements = self.elements, []
        return elements

    def __str__(self) -> str:
        return "single()"


class _IgnoreElements(Step[T, T]):
    name = "ignore_elements"
    calls = False

    def on_next(self, element: T) -> None:
        """Nothing."""

    def on_complete(self) -> Iterator[T]:
        none: Iterable[T] = ()
        for element in none:  # noqa: UP028 - a step writes its loops
            yield element

    def upstream_demand(self, n: int) -> int:
        return MAX_DEMAND

    def __str__(self) -> str:
        return "ignore_elements()"
