"""Executors that can be pickled: where they arrive they begin anew, with threads of their own when they are first used.

For pipelines that run elsewhere, in the tasks of Spark. A `Scope` ends what was begun in it.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from contextvars import ContextVar
from typing import Any, Final, ParamSpec, TypeVar

from reactive_runtime._core.runtime import primitives
from reactive_runtime._core.runtime.arguments import at_least
from reactive_runtime.executors import ScheduledExecutor, runs_here

__all__ = ["Scope", "Threads", "Timers"]

T = TypeVar("T")
P = ParamSpec("P")

_scope: Final[ContextVar[Scope | None]] = ContextVar("scope", default=None)


class Scope:
    """`with Scope():` the threads that picklable executors begin in this context and its copies end with the block."""

    def __init__(self) -> None:
        self._lock = primitives.Lock()
        self._begun: list[Executor] = []  # _lock
        self.most: int = 0  # _lock; at most so many calls are in flight on Threads
        self._flying = 0  # _lock
        self._over = False  # _lock

    @staticmethod
    def current() -> Scope | None:
        """The scope that this runs in.

        Returns:
            The innermost one of this context, or None.
        """
        return _scope.get()

    def __enter__(self) -> Scope:
        self._token = _scope.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        _scope.reset(self._token)
        with self._lock:
            self._over = True
            begun, self._begun = self._begun, []
        for executor in begun:
            executor.shutdown(wait=True, cancel_futures=True)

    def enter(self, executor: Executor, *, first: bool = False) -> None:
        """Shut `executor` down when the scope ends. A picklable executor calls it when it begins.

        Args:
            executor: Is shut down at the end of the scope, once.
            first: Whether to shut it down before the others: their calls may wait for it, and wake then.

        Raises:
            RuntimeError: The scope is over, as of a pool after its shutdown.
        """
        with self._lock:
            self._refuse_late()
            if executor not in self._begun:
                self._begun.insert(0 if first else len(self._begun), executor)

    def flies(self) -> None:
        """One more call is in flight.

        Raises:
            RuntimeError: The scope is over.
        """
        with self._lock:
            self._refuse_late()
            self._flying += 1
            self.most = max(self.most, self._flying)

    def _refuse_late(self) -> None:
        if self._over:
            raise RuntimeError("the scope that this executor began in is over: nothing would end what began now")

    def landed(self) -> None:
        """One call less is in flight."""
        with self._lock:
            self._flying -= 1


class Threads(Executor):
    """A pool of `n` threads, which can be pickled.

    The threads begin with the first task. `shutdown` ends them; a task that comes later begins new ones. They also end
    when the last reference to it is gone.

    Args:
        n: How many threads, 1 or more.

    Raises:
        TypeError: `n` is no int.
        ValueError: `n` is below 1.

    Example:
        >>> from reactive_runtime import Flow
        >>> with Threads(2) as pool:
        ...     list(Flow.range(3).map_parallel(lambda n: -n, pool))
        [0, -1, -2]
    """

    def __init__(self, n: int) -> None:
        self._n = at_least("Threads", "n", 1, n)
        self._lock = primitives.Lock()
        self._pool: primitives.ThreadPoolExecutor | None = None  # _lock

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> primitives.Future[T]:
        """Run `fn` on one of the threads.

        Args:
            fn: The call to make.
            *args: Its arguments.
            **kwargs: Its named arguments.

        Returns:
            The future of its result.

        Raises:
            RuntimeError: The `Scope` that this runs in is over.
        """
        scope = _scope.get()
        if scope is not None:
            scope.enter(self)
        with self._lock:
            if self._pool is None:
                self._pool = primitives.ThreadPoolExecutor(self._n, "Threads")
            pool = self._pool
        if scope is None:
            return pool.submit(fn, *args, **kwargs)
        scope.flies()
        future = pool.submit(fn, *args, **kwargs)
        future.add_done_callback(lambda _: scope.landed())
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the threads, when their tasks are done.

        Args:
            wait: Whether to return only when they have ended.
            cancel_futures: Whether to cancel the tasks that have not begun.
        """
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=wait, cancel_futures=cancel_futures)

    def runs_here(self) -> bool:
        """Whether this is one of its threads.

        Returns:
            True inside a task.
        """
        with self._lock:
            pool = self._pool
        return pool is not None and runs_here(pool)

    def threads(self) -> int:
        """How many threads it has.

        Returns:
            `n`.
        """
        return self._n

    def __reduce__(self) -> tuple[Any, ...]:
        return Threads, (self._n,)


class Timers(Executor):
    """A clock, which can be pickled: `ScheduledExecutor`, begun with the first timer."""

    def __init__(self) -> None:
        self._lock = primitives.Lock()
        self._clock: ScheduledExecutor | None = None  # _lock

    def now(self) -> float:
        """Monotonic seconds.

        Returns:
            The time of `time.monotonic`.
        """
        return primitives.monotonic()

    def schedule(self, delay: float, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> primitives.Future[T]:
        """Run `fn` in `delay` seconds.

        Args:
            delay: Seconds, from 0.
            fn: The call to make.
            *args: Its arguments.
            **kwargs: Its named arguments.

        Returns:
            The future of its result. Its `cancel()` takes the call back, until it runs.

        Raises:
            TypeError: `delay` is no number.
            ValueError: `delay` is below 0, or not finite.
            RuntimeError: The `Scope` that this runs in is over.

        Thread:
            `fn` runs on the one thread of the timers.
        """
        return self._begun().schedule(delay, fn, *args, **kwargs)

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> primitives.Future[T]:
        """Run `fn` as soon as can be, on the thread of the timers.

        Args:
            fn: The call to make.
            *args: Its arguments.
            **kwargs: Its named arguments.

        Returns:
            The future of its result.

        Raises:
            RuntimeError: The `Scope` that this runs in is over.
        """
        return self._begun().submit(fn, *args, **kwargs)

    def _begun(self) -> ScheduledExecutor:
        scope = _scope.get()
        if scope is not None:
            scope.enter(self)
        with self._lock:
            if self._clock is None:
                self._clock = ScheduledExecutor()
            return self._clock

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End its thread; a timer that comes later begins a new one.

        Args:
            wait: Whether to return only when it has ended.
            cancel_futures: Whether to cancel the timers that are not yet due; else they are waited for.
        """
        with self._lock:
            clock, self._clock = self._clock, None
        if clock is not None:
            clock.shutdown(wait=wait, cancel_futures=cancel_futures)

    def runs_here(self) -> bool:
        """Whether this is its thread.

        Returns:
            True inside a timer.
        """
        with self._lock:
            clock = self._clock
        return clock is not None and clock.runs_here()

    def threads(self) -> int:
        """How many threads it has.

        Returns:
            Always one.
        """
        return 1

    def __reduce__(self) -> tuple[Any, ...]:
        return Timers, ()
