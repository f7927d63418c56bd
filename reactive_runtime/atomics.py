"""Atomics, emulated: one value each, behind a lock of its own.

Every method is one atomic step, and what a thread wrote before a `set` is seen by the thread that `get`s what
was set. Reading takes the lock too: a plain read would promise neither. A function that is handed in runs
without the lock, and may run again if another thread was quicker: it should have no effect but its result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from reactive_runtime._core import primitives

__all__ = ["AtomicBoolean", "AtomicInteger", "AtomicReference"]

T = TypeVar("T")


class AtomicReference(Generic[T]):
    """A value that threads share; compared by identity.

    >>> state = AtomicReference("new")
    >>> state.compare_and_set("new", "running"), state.get()
    (True, 'running')
    """

    __slots__ = ("_lock", "_value")

    def __init__(self, value: T) -> None:
        self._lock = primitives.Lock()
        self._value = value  # _lock

    def get(self) -> T:
        """The value."""
        with self._lock:
            return self._value

    def set(self, value: T) -> None:
        """Replace the value."""
        with self._lock:
            self._value = value

    def get_and_set(self, value: T) -> T:
        """Replace the value; return the one before."""
        with self._lock:
            before, self._value = self._value, value
        return before

    def compare_and_set(self, expected: T, value: T) -> bool:
        """Replace the value if it is `expected`; return whether it was."""
        with self._lock:
            if not self._same(self._value, expected):
                return False
            self._value = value
            return True

    def update_and_get(self, update: Callable[[T], T]) -> T:
        """Replace the value by `update(value)`, and return that."""
        while True:
            before = self.get()
            after = update(before)
            if self.compare_and_set(before, after):
                return after

    def get_and_update(self, update: Callable[[T], T]) -> T:
        """Replace the value by `update(value)`; return the one before."""
        while True:
            before = self.get()
            if self.compare_and_set(before, update(before)):
                return before

    @staticmethod
    def _same(one: T, other: T) -> bool:
        return one is other

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.get()!r})"


class AtomicBoolean(AtomicReference[bool]):
    """A flag that threads share.

    >>> done = AtomicBoolean()
    >>> done.get_and_set(True), done.get_and_set(True)
    (False, True)
    """

    __slots__ = ()

    def __init__(self, value: bool = False) -> None:
        super().__init__(value)


class AtomicInteger(AtomicReference[int]):
    """A number that threads share; compared by value. It is an int of Python, and does not wrap.

    >>> count = AtomicInteger()
    >>> count.get_and_add(2), count.add_and_get(-1), count.get()
    (0, 1, 1)
    """

    __slots__ = ()

    def __init__(self, value: int = 0) -> None:
        super().__init__(value)

    def get_and_add(self, n: int) -> int:
        """Add `n`; return the value before."""
        with self._lock:
            before = self._value
            self._value = before + n
        return before

    def add_and_get(self, n: int) -> int:
        """Add `n`; return the value after."""
        with self._lock:
            self._value = after = self._value + n
        return after

    @staticmethod
    def _same(one: int, other: int) -> bool:
        return one == other
