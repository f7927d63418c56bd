"""The jobs that a flow has Spark do: threads that wait for them, one tag for all, and their end when it is over."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

from reactive_runtime._core import dropping, primitives
from reactive_runtime.spark.spark_errors import is_connected, lost, not_stopped, spark_error

__all__ = ["Jobs"]

T = TypeVar("T")

_AGAIN: Final = 0.05
"""Seconds after which a cancelled tag is cancelled again, as long as a call under it has not come back: it may have
been about to begin its job."""


class Jobs:
    """Calls of Spark on threads of their own, for one subscription.

    `what` names the operator in errors; `most` is how many calls there may be at once. Without a session the calls are
    of something else, and end by themselves.
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
        self._held = 0  # _changed
        self._arrived = False  # _changed; whether any result has

    def call(self, otherwise: T, fn: Callable[..., T], *arguments: Any) -> T:
        """`fn(*arguments)`, on a thread of the pool; `otherwise` where it is over.

        What it raises becomes a SparkError with Spark's reason first.
        """
        with self._changed:
            if self._over:
                return otherwise
            self._running += 1
        try:
            if self._session is not None:
                not_stopped(self._what, self._session)
                _begin(self._session, self.tag)
            return fn(*arguments)
        except Exception as error:
            if self.over():  # it was cancelled, and says so
                return otherwise
            ended = None if self._session is None else lost(self._what, self._session)
            raise ended or spark_error(self._what, error) from error
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()

    def over(self) -> bool:
        """Whether `leave` was called."""
        with self._changed:
            return self._over

    def hold(self, most: int, *, first: bool) -> bool:
        """Wait until fewer than `most` results are there that are still in use, and add one. False: it is over.

        The `first` is fetched alone, to be there sooner. (`map_parallel`, which calls this, takes a result for done
        when it is delivered; here it is in use until its last row was taken.) For a thread of the pool that may wait.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._over or (self._held < most and (first or self._arrived)))
            self._held += 1
            return not self._over

    def arrived(self) -> None:
        """A result is there."""
        with self._changed:
            if not self._arrived:
                self._arrived = True
                self._changed.notify_all()

    def done_with(self) -> Iterator[Any]:
        """An iterator without elements, to chain to those of a result: at its end, the result is released."""
        return _End(self)

    def release(self) -> None:
        """A result is not in use any more."""
        with self._changed:
            self._held -= 1
            self._changed.notify_all()

    def wait(self, ready: Callable[[], bool], seconds: float) -> bool:
        """Wait for what no call reports, looking again every `seconds`; False when it is over."""
        while not ready():
            with self._changed:
                if self._changed.wait_for(lambda: self._over, seconds):
                    return False
        return True

    def leave(self) -> None:
        """It is over: jobs that run are cancelled, threads end when their calls do. Returns at once."""
        with self._changed:
            if self._over:
                return
            self._over = True
            running = self._running
            self._changed.notify_all()
        if running and self._session is not None:
            self.pool.submit(self._cancel)
        self.pool.shutdown(wait=False)

    def _cancel(self) -> None:
        while True:
            try:
                _cancel_tag(self._session, self.tag)
            except Exception as error:  # of a session that was stopped, or whose server is gone
                dropping.error_dropped(f"{self._what}: Spark could not cancel the jobs", error)
                return
            with self._changed:
                if self._changed.wait_for(lambda: not self._running, _AGAIN):
                    return


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


class _End:
    """No generator: one would cost a call for each element before it."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        self._jobs.release()
        raise StopIteration
