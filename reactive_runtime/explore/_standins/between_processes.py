"""Stand-ins for what `multiprocessing` makes for processes to share: locks, values, arrays.

They are those of threads, with the signatures and errors of `multiprocessing`. A process gets them as it is started,
and in no other way.
"""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Callable, Iterator
from multiprocessing.context import BaseContext
from typing import Any, Final, NoReturn

from reactive_runtime._core.runtime import primitives
from reactive_runtime.errors import ExploreError
from reactive_runtime.explore._standins import conditions, explored_processes, instrumented, process_pipes
from reactive_runtime.explore._standins.process_world import Shared, world

__all__ = ["LOCKS", "changes"]


class Lock(Shared, instrumented.Lock):
    """Stands in for `multiprocessing.Lock`: any process may release it."""

    __slots__ = ()

    def acquire(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, block: bool = True, timeout: float | None = None
    ) -> bool:
        """As `multiprocessing.Lock.acquire`, in virtual time."""
        return instrumented.Lock.acquire(self, block, _seconds(block, timeout))

    def release(self, *_: object) -> None:
        """As `multiprocessing.Lock.release`."""
        if self.owner is None and instrumented.caller() is not None and not instrumented.running().aborting:
            raise ValueError("semaphore or lock released too many times")
        super().release()

    __exit__ = release


class RLock(Shared, instrumented.RLock):
    """Stands in for `multiprocessing.RLock`."""

    __slots__ = ()

    def acquire(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, block: bool = True, timeout: float | None = None
    ) -> bool:
        """As `multiprocessing.RLock.acquire`, in virtual time."""
        return instrumented.RLock.acquire(self, block, _seconds(block, timeout))

    def release(self, *_: object) -> None:
        """As `multiprocessing.RLock.release`."""
        me = instrumented.caller()
        if me is not None and self.owner is not me and not instrumented.running().aborting:
            raise AssertionError("attempt to release recursive lock not owned by thread")
        super().release()

    __exit__ = release


def _seconds(block: bool, timeout: float | None) -> float:
    return -1 if timeout is None or not block else max(0.0, timeout)


class Semaphore(Shared, conditions.Semaphore):
    """Stands in for `multiprocessing.Semaphore`."""

    __slots__ = ()

    def acquire(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, block: bool = True, timeout: float | None = None
    ) -> bool:
        """As `multiprocessing.Semaphore.acquire`, in virtual time."""
        return super().acquire(block, None if timeout is None or not block else max(0.0, timeout))

    def get_value(self) -> int:
        """As `multiprocessing.Semaphore.get_value`: a point of choice."""
        process_pipes.looked(self, "get_value", sys._getframe(1))
        return self._value


class BoundedSemaphore(Semaphore):
    """Stands in for `multiprocessing.BoundedSemaphore`."""

    __slots__ = ()

    def __init__(self, value: int = 1) -> None:
        super().__init__(value, bound=value)


class Condition(Shared, conditions.Condition):
    """Stands in for `multiprocessing.Condition`."""

    __slots__ = ()

    def __init__(self, lock: Any = None) -> None:
        super().__init__(RLock() if lock is None else lock)


class Event(Shared, conditions.Event):
    """Stands in for `multiprocessing.Event`."""

    __slots__ = ()


class Barrier(Shared, primitives.Barrier):
    """Stands in for `multiprocessing.Barrier`: the one of threads, whose condition is a stand-in."""


class Synchronized(Shared):
    """Stands in for what `multiprocessing.Value` gives: each load and each store holds the lock, and no more."""

    def __init__(self, raw: Any, lock: Any) -> None:
        self._raw = raw
        self._lock = lock
        self.acquire = lock.acquire
        self.release = lock.release

    def __enter__(self) -> Any:
        return self._lock.__enter__()

    def __exit__(self, *error: object) -> None:
        self._lock.__exit__(*error)

    def get_obj(self) -> Any:
        """The memory itself."""
        return self._raw

    def get_lock(self) -> Any:
        """The lock."""
        return self._lock

    @property
    def value(self) -> Any:
        """The value in the memory."""
        with self._lock:
            return self._raw.value

    @value.setter
    def value(self, value: Any) -> None:
        with self._lock:
            self._raw.value = value


class SynchronizedArray(Synchronized):
    """Stands in for what `multiprocessing.Array` gives; likewise."""

    def __len__(self) -> int:
        return len(self._raw)

    def __getitem__(self, at: Any) -> Any:
        with self._lock:
            return self._raw[at]

    def __setitem__(self, at: Any, value: Any) -> None:
        with self._lock:
            self._raw[at] = value

    def __iter__(self) -> Iterator[Any]:
        for at in range(len(self)):
            yield self[at]


def _value(kind: Any, *given: Any) -> Any:
    import ctypes

    kind = _type(kind)
    if issubclass(kind, ctypes.Structure):
        raise ExploreError("multiprocessing.Value of a Structure is not modelled: use a Value for each field")
    return _kept(kind(*given))


def _array(kind: Any, given: Any) -> Any:
    kind = _type(kind)
    raw = (kind * given)() if isinstance(given, int) else (kind * len(given))(*given)
    return _kept(raw)


def _type(kind: Any) -> Any:
    from multiprocessing import sharedctypes

    return vars(sharedctypes)["typecode_to_type"].get(kind, kind)


def _kept(raw: Any) -> Any:
    world().raw[id(raw)] = raw
    return raw


def Value(typecode_or_type: Any, *args: Any, lock: Any = True) -> Any:  # noqa: N802
    """Stands in for `multiprocessing.Value`."""
    raw = _value(typecode_or_type, *args)
    return raw if lock is False else Synchronized(raw, RLock() if lock in (True, None) else lock)


def Array(typecode_or_type: Any, size_or_initializer: Any, *, lock: Any = True) -> Any:  # noqa: N802
    """Stands in for `multiprocessing.Array`."""
    raw = _array(typecode_or_type, size_or_initializer)
    return raw if lock is False else SynchronizedArray(raw, RLock() if lock in (True, None) else lock)


def _refused(name: str) -> Callable[..., NoReturn]:
    def refused(*_: Any, **__: Any) -> NoReturn:
        raise ExploreError(
            f"multiprocessing.{name} is not modelled: explored processes share queues, pipes, locks, Value and Array"
        )

    return refused


LOCKS: Final[dict[tuple[Any, str], Any]] = {
    ("multiprocessing.synchronize", "Lock"): Lock,
    ("multiprocessing.synchronize", "RLock"): RLock,
}
"""Stand-ins for locks that were made before, by the module and the name of their class."""

_MADE: Final[dict[str, Callable[..., Any]]] = {
    "Lock": Lock,
    "RLock": RLock,
    "Condition": Condition,
    "Semaphore": Semaphore,
    "BoundedSemaphore": BoundedSemaphore,
    "Event": Event,
    "Barrier": Barrier,
    "Queue": process_pipes.Queue,
    "JoinableQueue": process_pipes.JoinableQueue,
    "SimpleQueue": process_pipes.SimpleQueue,
    "Pipe": process_pipes.Pipe,
    "Value": Value,
    "Array": Array,
    "RawValue": _value,
    "RawArray": _array,
    "Pool": _refused("Pool"),
    "Manager": _refused("Manager"),
}


def changes() -> Iterator[tuple[Any, str, Any]]:
    """Yields modules or classes, a name of each, and the stand-in for that name."""
    yield from explored_processes.changes()
    for name, made in _MADE.items():
        yield BaseContext, name, _method(made, vars(BaseContext)[name])
        yield multiprocessing, name, _function(made, getattr(multiprocessing, name))
    for module, name in (
        ("multiprocessing.connection", "Listener"),
        ("multiprocessing.connection", "Client"),
        ("multiprocessing.connection", "wait"),
        ("multiprocessing.shared_memory", "SharedMemory"),
    ):
        if (there := sys.modules.get(module)) is not None:
            yield there, name, _function(_refused(f"{module.rpartition('.')[2]}.{name}"), getattr(there, name))


def _function(made: Callable[..., Any], real: Callable[..., Any]) -> Callable[..., Any]:
    """`made` in a run, and `real` on a thread that is not explored."""

    def chosen(*given: Any, **named: Any) -> Any:
        return (real if instrumented.foreign() else made)(*given, **named)

    return chosen


def _method(made: Callable[..., Any], real: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, *given, **named: (
        real(self, *given, **named) if instrumented.foreign() else made(*given, **named)
    )
