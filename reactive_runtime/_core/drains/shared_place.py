"""One place in a pool's queue for all the upstreams of one flow.

The problem: an operator such as `flat_map` may have sixteen upstreams with a drain of their own, each of which gives
its thread back and submits a task. With eight such flows on one pool, 128 tasks stand in its queue. Each flow waits for
all of them, and so does whatever else the pool is for.

The answer: where tasks wait for the pool, the upstreams of a flow share one place in its queue. Their tasks stand in a
queue of the flow, in the order of coming. The task in the shared place submits the next one of its kind before it runs
the first of those that wait: so a pool with idle threads works on as many upstreams at once as without a shared place.

Guarantees: each task runs once, on a thread of the pool; or, where the pool has dropped the one in the shared place,
its future ends as that one's did. If the pool takes no further task, the last one runs all that wait. No thread holds
the lock while it calls out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

from reactive_runtime._core.failures.exits import handed_over
from reactive_runtime._core.runtime import primitives

__all__ = ["SharedPlace"]

Waiting = tuple["Future[Any]", Callable[[], Any]]


class SharedPlace:
    """The tasks of one flow that wait for a thread of one pool."""

    __slots__ = ("_lock", "_submitted", "_waiting", "pool")

    def __init__(self, pool: Executor) -> None:
        self.pool: Executor = pool
        self._lock = primitives.Lock()
        self._waiting: deque[Waiting] = deque()  # _lock
        self._submitted = False  # _lock; a task in the place waits in the pool's queue, or is being submitted

    def submit(self, task: Callable[[], Any], /) -> Future[Any]:
        """Have a thread of the pool run `task`, behind those that wait here. Raises what the pool raises."""
        future: Future[Any] = Future()
        with self._lock:
            self._waiting.append((future, task))
            first = not self._submitted
            self._submitted = True
        if first:
            try:
                self._submit()
            except BaseException as error:
                self._fail(error, but=future)
                raise
        return future

    def _submit(self) -> None:
        turn = _Turn(self)
        handed_over(self.pool, turn).add_done_callback(turn.settled)

    def take_turn(self) -> None:
        """Run the first task that waits. A thread of the pool calls it."""
        while (taken := self._next()) is not None:
            (future, task), more = taken
            refused = False
            if more:
                try:
                    self._submit()
                except BaseException:  # the pool is shut down: the rest runs here, as it would run in its queue
                    refused = True
            _run(future, task)
            if not refused:
                return

    def _next(self) -> tuple[Waiting, bool] | None:
        """The first one, and whether others wait behind it."""
        with self._lock:
            first = self._waiting.popleft() if self._waiting else None
            more = self._submitted = bool(self._waiting)
        return None if first is None else (first, more)

    def _take_all(self) -> deque[Waiting]:
        with self._lock:
            waiting, self._waiting = self._waiting, deque()
            self._submitted = False
        return waiting

    def _fail(self, error: BaseException, but: Future[Any] | None = None) -> None:
        for future, _ in self._take_all():
            if future is not but:
                future.set_exception(error)

    def dropped(self, turn: Future[Any]) -> None:
        """The pool has dropped the task in the place. Any thread calls it, perhaps with the pool's lock held."""
        if not turn.cancelled():
            error = turn.exception()
            self._fail(RuntimeError("the pool did not run a task") if error is None else error)
            return
        for future, _ in self._take_all():
            future.cancel()


class _Turn:
    """The task in the pool's queue."""

    __slots__ = ("_place", "_started")

    def __init__(self, place: SharedPlace) -> None:
        self._place = place
        self._started = False  # written by the thread that runs it, read once the future is done

    def __call__(self) -> None:
        self._started = True
        self._place.take_turn()

    def settled(self, future: Future[Any]) -> None:
        """The pool is done with it."""
        if not self._started:
            self._place.dropped(future)


def _run(future: Future[Any], task: Callable[[], Any]) -> None:
    """Run `task`, as a pool does."""
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = task()
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(result)
