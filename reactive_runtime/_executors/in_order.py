"""Executors that run tasks in the order of submission: on another executor, or on the thread that submits."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any, ClassVar, ParamSpec, TypeVar

from reactive_runtime._core.drains.drain import Drain
from reactive_runtime._core.runtime import primitives
from reactive_runtime._core.runtime.primitives import Future
from reactive_runtime._executors.executor_threads import runs_here, threads_of
from reactive_runtime._executors.task_book import Book, Task, settle
from reactive_runtime.errors import RejectedError

__all__ = ["SerialExecutor", "TrampolineExecutor"]

T = TypeVar("T")
P = ParamSpec("P")


class SerialExecutor(Executor):
    """Runs tasks one at a time, in the order of submission, on the threads of another executor.

    At most one task of the other executor is under way; it gives its thread back after 64 of ours, so that many serial
    executors on a small pool progress together. A task sees all writes of the task before. If the other executor
    refuses, or drops what was queued there, all waiting futures fail with RejectedError, and `submit` raises it from
    then on. `shutdown` waits for our tasks, and does not shut the other executor down.

    Args:
        executor: The executor that runs the tasks, one at a time.

    Example:
        >>> from concurrent.futures import ThreadPoolExecutor
        >>> with ThreadPoolExecutor(4) as pool, SerialExecutor(pool) as serial:
        ...     list(serial.map(str, range(3)))
        ['0', '1', '2']
    """

    def __init__(self, executor: Executor) -> None:
        self._book = Book(self)
        self._serial = _SerialTasks(executor)
        self.activity: Any = getattr(
            executor, "activity", None
        )  # its tasks wait for the clock that those of `executor` do

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run `fn` after all that was submitted before.

        Args:
            fn: The call to make.
            *args: Its arguments.
            **kwargs: Its named arguments.

        Returns:
            The future of its result. An error of `fn` goes to the future.

        Raises:
            RejectedError: The executor below refuses, or refused before.
            RuntimeError: After `shutdown`.

        Thread:
            May be called on any thread. `fn` runs on a thread of the executor below.
        """
        task = Task(fn, args, kwargs)
        self._book.enter(task.future)
        self._serial.join(task)
        return task.future

    def runs_here(self) -> bool:
        """Whether this thread is one of the other executor's.

        Returns:
            True or False, as `runs_here` of the module says of the executor below.
        """
        return runs_here(self._serial.executor)

    def threads(self) -> int | None:
        """How many threads can run the next task: inside of one, this thread only.

        Returns:
            1 inside a task; else as many as the executor below has, or None where that cannot be known.
        """
        return 1 if self._serial.runner == primitives.get_ident() else threads_of(self._serial.executor)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more tasks; wait for those there are, unless called by one of them.

        Args:
            wait: Whether to return only when every task has finished.
            cancel_futures: Whether to cancel the tasks that have not begun.
        """
        self._book.close(cancel_futures)
        if wait and self._serial.runner != primitives.get_ident():
            self._book.wait()


class _SerialTasks(Drain):
    """The tasks of a serial executor: their number is the demand of the drain."""

    __slots__ = ("_refused", "_tasks", "runner")

    batch: ClassVar[int] = 64

    def __init__(self, executor: Executor) -> None:
        super().__init__(executor)
        self._tasks: deque[Task] = deque()  # lock
        self._refused: RejectedError | None = None  # lock; final
        self.runner = 0  # the thread inside a task; the owner of the drain writes it, which is that thread

    def join(self, task: Task) -> None:
        with self.lock:
            refused = self._refused
            self._tasks.append(task)
        if refused is None:
            self.add(1)
            with self.lock:
                refused = self._refused
        if refused is not None:
            self.rejected(refused)
            raise refused

    def _turn(self, allowance: int) -> int:
        self.runner = primitives.get_ident()
        for _ in range(allowance):
            with self.lock:
                task = self._tasks.popleft()
            task.run()
        self.runner = 0
        return allowance

    def rejected(self, error: RejectedError) -> None:
        with self.lock:
            self._refused = error
            tasks, self._tasks = self._tasks, deque()
        for task in tasks:
            if task.future.set_running_or_notify_cancel():
                settle(task.future.set_exception, error)


class TrampolineExecutor(Executor):
    """Runs tasks on the thread that submits them; a task submitted from inside a task runs after it.

    So tasks that submit tasks need no stack, and each thread's run in order. An interrupt in a task goes on up
    through `submit`; what was still waiting on that thread is cancelled.

    Example:
        >>> with TrampolineExecutor() as here:
        ...     def task():
        ...         here.submit(print, "inner")
        ...         print("outer")
        ...     _ = here.submit(task)
        outer
        inner
    """

    def __init__(self) -> None:
        self._book = Book(self)
        self._here = primitives.ThreadLocal()

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run `fn` now, or after the task that this thread is inside of.

        Args:
            fn: The call to make.
            *args: Its arguments.
            **kwargs: Its named arguments.

        Returns:
            The future of its result. An error of `fn` goes to the future.

        Raises:
            RuntimeError: After `shutdown`.

        Thread:
            May be called on any thread, and `fn` runs on it.
        """
        task = Task(fn, args, kwargs)
        self._book.enter(task.future)
        waiting: deque[Task] | None = getattr(self._here, "waiting", None)
        if waiting is not None:
            waiting.append(task)
        else:
            self._bounce(task)
        return task.future

    def _bounce(self, task: Task) -> None:
        waiting: deque[Task] = deque([task])
        self._here.waiting = waiting
        try:
            while waiting:
                waiting.popleft().run_here()
        finally:
            self._here.waiting = None
            for left in waiting:
                left.future.cancel()

    def runs_here(self) -> bool:
        """Whether this thread is inside a task: what is submitted now begins when that has ended.

        Returns:
            True inside a task of this executor.
        """
        return getattr(self._here, "waiting", None) is not None

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more tasks; wait for those of other threads, unless called by a task.

        Args:
            wait: Whether to return only when every task has finished.
            cancel_futures: Whether to cancel the tasks that have not begun.
        """
        self._book.close(cancel_futures)
        if wait and getattr(self._here, "waiting", None) is None:
            self._book.wait()
