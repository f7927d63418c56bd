"""Tasks that run when they are due: the base of executors with a clock, and the executor of real time."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any, ParamSpec, TypeVar
from weakref import WeakSet

from reactive_runtime._core.failures.exits import contained
from reactive_runtime._core.runtime import primitives
from reactive_runtime._core.runtime.primitives import Future
from reactive_runtime._executors.task_book import Book, Task

__all__ = ["ScheduledExecutor", "TimedExecutor", "with_threads"]

T = TypeVar("T")
P = ParamSpec("P")


with_threads: WeakSet[Any] = WeakSet()
"""Executors and workers that begin anew in a child of `os.fork`: `shared_clock` makes them do so."""


class _Timers:
    """Tasks in the order of the time at which they are due, then of their coming. The lock of the executor owns it."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Task]] = []
        self._count = 0

    def add(self, due: float, task: Task) -> None:
        self._count += 1
        heapq.heappush(self._heap, (due, self._count, task))

    def next_due(self) -> float | None:
        """The time at which the next task is due that was not cancelled."""
        while self._heap and self._heap[0][2].future.cancelled():
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def pop(self) -> Task:
        return heapq.heappop(self._heap)[2]

    def purge(self) -> None:
        """Forget the cancelled tasks, so that they do not pile up until they would have been due."""
        self._heap = [entry for entry in self._heap if not entry[2].future.cancelled()]
        heapq.heapify(self._heap)

    def __len__(self) -> int:
        return len(self._heap)


class TimedExecutor(Executor):
    """The base of the two executors with a clock."""

    def __init__(self) -> None:
        self._book = Book(self)
        self._changed = primitives.Condition()
        self._timers = _Timers()  # _changed
        self._cancelled = 0  # _changed; how many were cancelled since the last purge

    def now(self) -> float:
        """The time, in seconds from some beginning."""
        raise NotImplementedError

    def _due(self, delay: float) -> float:
        """The time at which a task is due that is scheduled now, in the unit of the timers."""
        return self.now() + delay

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run `fn` as soon as can be, after what is due already.

        Args:
            fn: The call to make.
            *args: Its arguments.
            **kwargs: Its named arguments.

        Returns:
            The future of its result. An error of `fn` goes to the future.

        Raises:
            RuntimeError: After `shutdown`.
        """
        return self.schedule(0, fn, *args, **kwargs)

    def schedule(self, delay: float, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
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
            RuntimeError: After `shutdown`.

        Thread:
            May be called on any thread. `fn` runs on the thread that advances the clock.
        """
        if isinstance(delay, bool) or not isinstance(delay, int | float):
            raise TypeError(f"schedule: delay must be a number of seconds, not {type(delay).__name__}")
        if not (0 <= delay < math.inf):
            raise ValueError(f"schedule: delay must be a number of seconds from 0, not {delay}")
        task = Task(fn, args, kwargs)
        self._book.enter(task.future)
        with self._changed:
            self._timers.add(self._due(delay), task)
            self._changed.notify_all()
        task.future.add_done_callback(self._forget)
        return task.future

    def _forget(self, future: Future[Any]) -> None:
        if not future.cancelled():
            return
        with self._changed:
            self._cancelled += 1
            if self._cancelled * 2 > len(self._timers):
                self._timers.purge()
                self._cancelled = 0
            self._changed.notify_all()


class ScheduledExecutor(TimedExecutor):
    """Timers: runs tasks when they are due, one at a time, on one thread of its own.

    The thread starts with the first task, is a daemon, and ends with `shutdown`, when nothing is left to wait
    for: tasks that are not yet due are waited for as well, unless they are cancelled. In a child of `os.fork` it begins
    anew, without the tasks that wait in the parent.

    Args:
        name: The name of the thread.

    Example:
        >>> with ScheduledExecutor() as timers:
        ...     timer = timers.schedule(0.01, print, "ten milliseconds later")
        ten milliseconds later
    """

    def __init__(self, name: str = "timers") -> None:
        super().__init__()
        self._name = name
        self._thread: primitives.Thread | None = None  # _changed
        self._ending = False  # _changed
        with_threads.add(self)

    def _begin_anew(self) -> None:
        """Begin anew in a child of `os.fork`: the threads are gone, and they may have held the locks."""
        self._changed = primitives.Condition()
        if self._thread is not None and self._thread is not primitives.current_thread():
            self._thread = None
            self._timers = _Timers()
            self._book.begin_anew()

    def now(self) -> float:
        """Monotonic seconds.

        Returns:
            The time of `time.monotonic`.
        """
        return primitives.monotonic()

    def schedule(self, delay: float, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run `fn` in `delay` seconds, on the thread of this executor.

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
            RuntimeError: After `shutdown`, or where the machine gives no thread.

        Thread:
            May be called on any thread. `fn` runs on the timers' thread.
        """
        future = super().schedule(delay, fn, *args, **kwargs)
        try:
            with self._changed:
                if self._thread is None:
                    thread = primitives.Thread(target=contained, args=(self._run,), name=self._name, daemon=True)
                    thread.start()
                    self._thread = thread
        except RuntimeError:  # the machine gives no thread: the next task may get one
            future.cancel()
            raise
        return future

    def runs_here(self) -> bool:
        """Whether this is the timers' thread.

        Returns:
            True inside a task.
        """
        with self._changed:
            return self._thread is primitives.current_thread()

    def threads(self) -> int:
        """How many threads it has.

        Returns:
            Always one.
        """
        return 1

    def _run(self) -> None:
        while (task := self._wait_for_one()) is not None:
            task.run()

    def _wait_for_one(self) -> Task | None:
        with self._changed:
            while True:
                due = self._timers.next_due()
                if due is None and self._ending:
                    return None
                left = None if due is None else due - self.now()
                if left is not None and left <= 0:
                    return self._timers.pop()
                self._changed.wait(primitives.one_wait(left))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more tasks; wait for those there are, unless called by one of them.

        Args:
            wait: Whether to return only when every task has finished, those that are not yet due as well.
            cancel_futures: Whether to cancel the tasks that have not begun.
        """
        self._book.close(cancel_futures)
        with self._changed:
            self._ending = True
            thread = self._thread
            self._changed.notify_all()
        if wait and thread is not None and thread.ident != primitives.get_ident():
            thread.join()
