"""Atomics, emulated: one value each, behind a lock of its own.

Every method is one atomic step, and what a thread wrote before a `set` is seen by the thread that `get`s what
was set. Reading takes the lock too: a plain read would promise neither. A function that is handed in runs
without the lock, and may run again if another thread was quicker: it should have no effect but its result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from reactive_runtime._core.runtime import primitives

__all__ = ["AtomicBoolean", "AtomicInteger", "AtomicReference"]

T = TypeVar("T")


class AtomicReference(Generic[T]):
    """A value that threads share; compared by identity.

    Args:
        value: The value at the beginning.

    Thread:
        Each method may be called on any thread, by many at once.

    Example:
        >>> state = AtomicReference("new")
        >>> state.compare_and_set("new", "running"), state.get()
        (True, 'running')

    Origin:
        `AtomicReference` of `java.util.concurrent.atomic`.
    """

    __slots__ = ("_lock", "_value")

    def __init__(self, value: T) -> None:
        self._lock = primitives.Lock()
        self._value = value  # _lock

    def get(self) -> T:
        """The value.

        Returns:
            What was set last.
        """
        with self._lock:
            return self._value

    def set(self, value: T) -> None:
        """Replace the value.

        Args:
            value: The value from now on.
        """
        with self._lock:
            self._value = value

    def get_and_set(self, value: T) -> T:
        """Replace the value; return the one before.

        Args:
            value: The value from now on.

        Returns:
            The value before.
        """
        with self._lock:
            before, self._value = self._value, value
        return before

    def compare_and_set(self, expected: T, value: T) -> bool:
        """Replace the value if it is `expected`; return whether it was.

        Args:
            expected: The value that is replaced: the same object, or for `AtomicInteger` an equal number.
            value: The value from then on.

        Returns:
            Whether the value was `expected`, and was replaced.
        """
        with self._lock:
            if not self._same(self._value, expected):
                return False
            self._value = value
            return True

    def update_and_get(self, update: Callable[[T], T]) -> T:
        """Replace the value by `update(value)`, and return that.

        Args:
            update: Makes the new value of the one before. It is called again each time that another thread was quicker.

        Returns:
            The new value.

        Raises:
            Exception: What `update` raises. The value is as it was.

        Thread:
            `update` is called on this thread, without the lock.
        """
        while True:
            before = self.get()
            after = update(before)
            if self.compare_and_set(before, after):
                return after

    def get_and_update(self, update: Callable[[T], T]) -> T:
        """Replace the value by `update(value)`; return the one before.

        Args:
            update: Makes the new value of the one before. It is called again each time that another thread was quicker.

        Returns:
            The value before.

        Raises:
            Exception: What `update` raises. The value is as it was.

        Thread:
            `update` is called on this thread, without the lock.
        """
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

    Args:
        value: The value at the beginning.

    Thread:
        Each method may be called on any thread, by many at once.

    Example:
        >>> done = AtomicBoolean()
        >>> done.get_and_set(True), done.get_and_set(True)
        (False, True)

    Origin:
        `AtomicBoolean` of `java.util.concurrent.atomic`.
    """

    __slots__ = ()

    def __init__(self, value: bool = False) -> None:
        super().__init__(value)


class AtomicInteger(AtomicReference[int]):
    """A number that threads share; compared by value. It is an int of Python, and does not wrap.

    Args:
        value: The value at the beginning.

    Thread:
        Each method may be called on any thread, by many at once.

    Example:
        >>> count = AtomicInteger()
        >>> count.get_and_add(2), count.add_and_get(-1), count.get()
        (0, 1, 1)

    Origin:
        `AtomicInteger` of `java.util.concurrent.atomic`, without the wrap-around.
    """

    __slots__ = ()

    def __init__(self, value: int = 0) -> None:
        super().__init__(value)

    def get_and_add(self, n: int) -> int:
        """Add `n`; return the value before.

        Args:
            n: The number to add; it may be negative.

        Returns:
            The value before.
        """
        with self._lock:
            before = self._value
            self._value = before + n
        return before

    def add_and_get(self, n: int) -> int:
        """Add `n`; return the value after.

        Args:
            n: The number to add; it may be negative.

        Returns:
            The value after.
        """
        with self._lock:
            self._value = after = self._value + n
        return after

    @staticmethod
    def _same(one: int, other: int) -> bool:
        return one == other
