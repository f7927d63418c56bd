"""The tasks of an executor: a call with its future, and which of them are unfinished."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any, TypeVar

from reactive_runtime._core.drains.combinator import Clock
from reactive_runtime._core.failures import dropping
from reactive_runtime._core.runtime import primitives
from reactive_runtime._core.runtime.primitives import Future

__all__ = ["Book", "Task", "settle"]

C = TypeVar("C", bound="Clock")


class Task:
    """A call, and the future of its result."""

    __slots__ = ("args", "fn", "future", "kwargs")

    def __init__(self, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.fn = fn
        self.args = args
        self.kwargs = kwargs
        self.future: Future[Any] = Future()

    def run(self) -> BaseException | None:
        """Make the call, unless it was cancelled; return its error, which the future has too."""
        if not self.future.set_running_or_notify_cancel():
            return None
        try:
            result = self.fn(*self.args, **self.kwargs)
        except BaseException as error:  # as in the pools of the standard library, the future has every error
            settle(self.future.set_exception, error)
            return error
        settle(self.future.set_result, result)
        return None

    def run_here(self) -> None:
        """`run` on a thread of the user: raise an error that is no Exception (Ctrl-C) as well."""
        error = self.run()
        if error is not None and not isinstance(error, Exception):
            raise error


def settle(settle: Callable[[Any], object], outcome: Any) -> None:
    """Set the outcome of a future. It logs errors of its callbacks; their exits (`failures.exits`) go to the hook."""
    try:
        settle(outcome)
    except BaseException as error:
        dropping.raised("a callback of a future raised", error)


class Book:
    """The unfinished futures of an executor, and whether it still takes tasks."""

    def __init__(self, executor: Executor) -> None:
        self._name = type(executor).__name__
        self._changed = primitives.Condition()
        self._open = True  # _changed
        self._unfinished: dict[Future[Any], None] = {}  # _changed; in the order of submission

    def enter(self, future: Future[Any]) -> None:
        """Note a new task. Raise RuntimeError after shutdown."""
        with self._changed:
            if not self._open:
                raise RuntimeError(f"cannot schedule new futures after shutdown of this {self._name}")
            self._unfinished[future] = None
        future.add_done_callback(self._leave)

    def _leave(self, future: Future[Any]) -> None:
        with self._changed:
            self._unfinished.pop(future, None)
            self._changed.notify_all()

    def close(self, cancel_futures: bool) -> None:
        """Take no more tasks. `cancel_futures`: cancel those that have not begun."""
        with self._changed:
            self._open = False
            waiting = list(self._unfinished) if cancel_futures else []
        for future in waiting:
            future.cancel()

    def begin_anew(self) -> None:
        """Forget the tasks in a child of `os.fork`: they run in the parent."""
        self._changed = primitives.Condition()
        self._unfinished = {}

    def wait(self) -> None:
        """Return when every task has finished."""
        with self._changed:
            self._changed.wait_for(lambda: not self._unfinished)
