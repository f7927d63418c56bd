"""Asserts which thread may call which method: a switch for tests and for debugging.

Most of the core needs no lock, since it runs as the owner of a drain (`drains.drain`). Marks show the methods that rely
on that: `@owner_only`, and `@with_lock` for those called with the lock of the drain held. The marks cost nothing. While
`checked` is on, it looks at each call of a marked method:

- the drain is owned;
- no other thread is inside a method that is for the owner of the same drain;
- the lock is held, where it has to be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, Final, TypeVar

from reactive_runtime._core.runtime import primitives

__all__ = ["checked", "owner_only", "with_lock"]

F = TypeVar("F", bound=Callable[..., Any])

OWNER: Final = "owner"
LOCK: Final = "lock"

_marked: Final[dict[tuple[str, str], dict[str, str]]] = {}  # written by imports: the mark by method, by class


def owner_only(method: F) -> F:
    """Mark a method that only the owner of the drain calls; those that override it are marked as well."""
    return _mark(method, OWNER)


def with_lock(method: F) -> F:
    """Mark a method that is called with the lock held; those that override it are marked as well."""
    return _mark(method, LOCK)


def _mark(method: F, mark: str) -> F:
    of, _, name = method.__qualname__.rpartition(".")
    _marked.setdefault((method.__module__, of), {})[name] = mark
    return method


@contextmanager
def checked(drain_of: Callable[[Any], Any], *classes: type) -> Iterator[list[str]]:
    """Look at each call of a marked method of `classes` and their subclasses; gives the list of the faults.

    `drain_of` finds the drain of an object. Each fault raises an AssertionError as well. For one thread, which turns it
    on while nothing runs.
    """
    inside = _Inside()
    replaced = [
        (cls, name, method, mark)
        for cls in dict.fromkeys(below for each in classes for below in _below(each))
        for name, method in vars(cls).items()
        if (mark := _mark_of(cls, name)) is not None
    ]
    for cls, name, method, mark in replaced:
        setattr(cls, name, _watched(method, mark, drain_of, inside))
    try:
        yield inside.wrong
    finally:
        for cls, name, method, _ in replaced:
            setattr(cls, name, method)


def _mark_of(cls: type, name: str) -> str | None:
    """The mark of a method of this name in the class, or in one above it."""
    marks = (_marked.get((base.__module__, base.__qualname__), {}).get(name) for base in cls.__mro__)
    return next(filter(None, marks), None)


def _below(cls: type[Any]) -> Iterator[type[Any]]:
    yield cls
    for subclass in cls.__subclasses__():
        yield from _below(subclass)


class _Inside:
    """The threads that are inside methods for an owner, by drain; and the faults."""

    def __init__(self) -> None:
        # The garbage collector may run while a thread holds it, and close the generator of a flow that was left, on
        # this very thread.
        self._lock = primitives.RLock()
        self.wrong: list[str] = []  # _lock; read when the flows have ended
        self._threads: dict[int, tuple[int, int]] = {}  # _lock; thread and depth, by the id of a drain that is alive

    def note(self, line: str) -> None:
        """Add a fault."""
        with self._lock:
            self.wrong.append(line)

    def enter(self, drain: object) -> bool:
        """One more call; False: another thread is inside."""
        me = primitives.get_ident()
        with self._lock:
            thread, depth = self._threads.get(id(drain), (me, 0))
            if thread == me:
                self._threads[id(drain)] = me, depth + 1
            return thread == me

    def leave(self, drain: object) -> None:
        """The call has returned."""
        with self._lock:
            thread, depth = self._threads.pop(id(drain))
            if depth > 1:
                self._threads[id(drain)] = thread, depth - 1


def _watched(
    method: Callable[..., Any], mark: str, drain_of: Callable[[Any], Any], inside: _Inside
) -> Callable[..., Any]:
    def fail(what: str) -> AssertionError:
        line = f"{method.__qualname__} {what}"
        inside.note(line)
        return AssertionError(line)

    if mark == LOCK:

        @wraps(method)
        def with_the_lock(self: Any, *args: Any, **named: Any) -> Any:
            lock = getattr(self, "lock", None) or self._lock
            if not lock.locked():
                raise fail("was called without the lock")
            return method(self, *args, **named)

        return with_the_lock

    @wraps(method)
    def by_the_owner(self: Any, *args: Any, **named: Any) -> Any:
        drain = drain_of(self)
        if drain is None:
            return method(self, *args, **named)
        if not drain.is_owned():
            raise fail("was called while no thread owned the drain")
        if not inside.enter(drain):
            raise fail("was called while another thread was inside")
        try:
            return method(self, *args, **named)
        finally:
            inside.leave(drain)

    return by_the_owner
