"""A sequence that grows by copies, at the cost of what is added.

`a.concat_with(b).concat_with(c)` is one operator, and so is each flow on the way to it. With a tuple for each of them,
a chain of n operators would copy n x n / 2 sources.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar, overload

from reactive_runtime._core.runtime import primitives

__all__ = ["Prefix"]

T_co = TypeVar("T_co", covariant=True)


class Prefix(Sequence[T_co]):
    """The first items of a list, which longer prefixes share. Immutable."""

    __slots__ = ("_items", "_lock", "_n")

    def __init__(self, items: Iterable[T_co]) -> None:
        self._items: list[T_co] = list(items)  # _lock; it only grows, and what is below `_n` never changes
        self._n = len(self._items)
        self._lock = primitives.Lock()  # of all prefixes of the list

    def and_then(self, items: Sequence[Any]) -> Prefix[Any]:
        """The same items, with `items` behind them."""
        longer = object.__new__(Prefix)
        with self._lock:
            if len(self._items) > self._n:  # another flow goes on with other items
                return Prefix((*self, *items))
            self._items.extend(items)
        longer._items, longer._lock, longer._n = self._items, self._lock, self._n + len(items)
        return longer

    def __reduce__(self) -> tuple[type[Prefix[T_co]], tuple[list[T_co]]]:
        """A copy, also by way of pickle, has a list of its own: locks are not copied."""
        return Prefix, (list(self),)

    def __len__(self) -> int:
        return self._n

    def __iter__(self) -> Iterator[T_co]:
        return islice(self._items, self._n)

    @overload
    def __getitem__(self, at: int) -> T_co: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[T_co]: ...

    def __getitem__(self, at: int | slice) -> T_co | Sequence[T_co]:
        if isinstance(at, slice):
            return [self._items[i] for i in range(*at.indices(self._n))]
        return self._items[range(self._n)[at]]
