"""Pools and a clock that count their unfinished tasks: at zero, a round of a scenario has settled."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from reactive_runtime._core.runtime import primitives
from reactive_runtime.executors import ScheduledExecutor

__all__ = ["Count", "CountingClock", "CountingPool"]

T = TypeVar("T")


class Count:
    """Counts the unfinished tasks of all pools. A task counts until it has submitted the tasks that it submits."""

    def __init__(self) -> None:
        self._n = 0  # _changed
        self._changed = primitives.Condition()

    def add(self, n: int) -> None:
        with self._changed:
            self._n += n
            self._changed.notify_all()

    def wait_for_zero(self, seconds: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self._n == 0, seconds)


class CountingPool(ThreadPoolExecutor):
    """A thread pool that counts its unfinished tasks; a task is finished when the callbacks of its future have run."""

    def __init__(self, workers: int, name: str, running: Count) -> None:
        super().__init__(workers, thread_name_prefix=name)
        self._running = running

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()

        def work() -> None:
            try:
                if future.set_running_or_notify_cancel():
                    try:
                        result = fn(*args, **kwargs)
                    except BaseException as error:
                        future.set_exception(error)
                    else:
                        future.set_result(result)
            finally:
                self._running.add(-1)

        def settled(inner: Future[None]) -> None:
            if inner.cancelled():  # in the queue, by `shutdown`
                if future.cancel():
                    future.set_running_or_notify_cancel()
                self._running.add(-1)

        self._running.add(1)
        try:
            inner = super().submit(work)
        except BaseException:
            self._running.add(-1)
            raise
        inner.add_done_callback(settled)
        return future


class CountingClock(ScheduledExecutor):
    """A clock that counts its unfinished timers; a timer is finished when the callbacks of its future have run."""

    def __init__(self, running: Count) -> None:
        super().__init__()
        self._running = running

    def schedule(self, delay: float, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        self._running.add(1)
        try:
            future = super().schedule(delay, fn, *args, **kwargs)
        except BaseException:
            self._running.add(-1)
            raise
        future.add_done_callback(self._cancelled_one)
        return future

    def _cancelled_one(self, future: Future[Any]) -> None:
        if future.cancelled():  # its callbacks run inside of that `cancel`
            self._running.add(-1)

    def _run(self) -> None:
        while (task := self._wait_for_one()) is not None:
            task.run()  # with the callbacks
            if not task.future.cancelled():
                self._running.add(-1)
