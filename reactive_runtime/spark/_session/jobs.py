"""The jobs that a flow has Spark do: threads that wait for them, one tag for all, and their end when it is over."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any, Final, TypeVar

from reactive_runtime._core.failures import dropping
from reactive_runtime._core.runtime import primitives
from reactive_runtime.spark._session.spark_errors import is_connected, lost, not_stopped, spark_error

__all__ = ["Jobs"]

T = TypeVar("T")

_AGAIN: Final = 0.05
"""Seconds after which a cancelled tag is cancelled again, as long as a call under it has not come back: it may have
been about to begin its job."""


class Jobs:
    """Calls of Spark on threads of their own, for one subscription.

    `what` names the operator in errors; `most` is how many calls there may be at once. Without a session the calls do
    not go to Spark, and `leave` does not cancel them.
    """

    def __init__(self, session: Any, what: str, most: int) -> None:
        self._session = session
        self._what = what
        self.tag: str = f"reactive-runtime-{uuid.uuid4().hex}"
        # One more for what goes on, on the thread on which a call ended, and one to cancel. They begin when used.
        self.pool: primitives.ThreadPoolExecutor = primitives.ThreadPoolExecutor(most + 2, what)
        self._changed = primitives.Condition()
        self._over = False  # _changed
        self._running = 0  # _changed
        self.lasting = False
        """Whether jobs go on between calls: then they are cancelled also where no call is waiting."""
        self._as_caller = _inherited(session)

    def call(self, otherwise: T, fn: Callable[..., T], *arguments: Any) -> T:
        """`fn(*arguments)`, on a thread of the pool; `otherwise` where it is over.

        An exception becomes a SparkError with Spark's reason first.
        """
        with self._changed:
            if self._over:
                return otherwise
            self._running += 1
        try:
            if self._session is None:
                return fn(*arguments)
            not_stopped(self._what, self._session)
            made: T = self._as_caller(self._tagged)(fn, *arguments)
            return made
        except Exception as error:
            if self.over():  # it was cancelled, and says so
                return otherwise
            ended = None if self._session is None else lost(self._what, self._session)
            raise ended or spark_error(self._what, error) from error
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()

    def _tagged(self, fn: Callable[..., T], *arguments: Any) -> T:
        _begin(self._session, self.tag)
        return fn(*arguments)

    def over(self) -> bool:
        """Whether `leave` was called."""
        with self._changed:
            return self._over

    def submit(self, fn: Callable[..., object], *arguments: Any) -> None:
        """`fn(*arguments)` on a thread of the pool; not where it is over."""
        with self._changed:
            if not self._over:
                self.pool.submit(fn, *arguments)

    def wait(self, ready: Callable[[], bool], seconds: float) -> bool:
        """Wait for what no call reports, looking again every `seconds`; False when it is over."""
        while not ready():
            with self._changed:
                if self._changed.wait_for(lambda: self._over, seconds):
                    return False
        return True

    def leave(self, grace: float = 0.0, then: Callable[[], object] | None = None) -> None:
        """It is over: jobs that run are cancelled, threads end when their calls do. Returns at once.

        Args:
            grace: Seconds in which jobs may come to an end of their own.
            then: Called when no call is left, or where Spark could not cancel them.
        """
        with self._changed:
            if self._over:
                return
            self._over = True
            left = self._running or self.lasting
            self._changed.notify_all()
        if left and self._session is not None:
            self.pool.submit(self._cancel, grace, then)
        elif then is not None:
            then()
        self.pool.shutdown(wait=False)

    def _cancel(self, grace: float, then: Callable[[], object] | None) -> None:
        try:
            over = bool(grace) and self._none_runs(grace)
            while not over:
                _cancel_tag(self._session, self.tag)
                over = self._none_runs(_AGAIN)
        except Exception as error:  # of a session that was stopped, or whose server is gone
            dropping.error_dropped(f"{self._what}: Spark could not cancel the jobs", error)
        finally:
            if then is not None:
                then()

    def _none_runs(self, seconds: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: not self._running, seconds)


def _inherited(session: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Makes of a function one that runs with what this thread has set: job group, description, pool, tags."""
    try:
        from pyspark import inheritable_thread_target

        made: Callable[[Callable[..., Any]], Callable[..., Any]] = inheritable_thread_target(session)
    except Exception:  # there is none, or it was stopped, which the first call says
        return lambda fn: fn
    return made


def _begin(session: Any, tag: str) -> None:
    """Jobs that begin on this thread have the tag, and are interrupted by a cancel.

    Without that a task may go on until Spark kills its Python worker, flow and all, with nothing closed.
    """
    if is_connected(session):
        session.addTag(tag)
    else:
        session.sparkContext.addJobTag(tag)
        session.sparkContext.setInterruptOnCancel(True)


def _cancel_tag(session: Any, tag: str) -> None:
    """Cancel all that has the tag."""
    if is_connected(session):
        session.interruptTag(tag)
    else:
        session.sparkContext.cancelJobsWithTag(tag)
