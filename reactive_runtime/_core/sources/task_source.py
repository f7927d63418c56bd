"""The pollable source of a source that has one element and an executor: a task, with no subscription behind it.

`flat_map(lambda n: Flow.from_callable(...).subscribe_on(pool))` makes thousands of them. A subscription with a drain,
and a prefetch queue for its elements, would cost each of them more than the task does.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future
from functools import partial
from itertools import chain
from typing import Any

from reactive_runtime._core.failures import dropping
from reactive_runtime._core.failures.exits import (
    cancelled_in_queue,
    contained,
    goes_up,
    not_run_by,
    refused_by,
    submitted,
    taken_back,
)
from reactive_runtime._core.failures.failure import Failure
from reactive_runtime._core.fusion.fuse import PENDING, Unstopped, pulled
from reactive_runtime._core.fusion.step import Step, note_end, release_held, show_watching
from reactive_runtime._core.queues.ready_queue import DrainQueue
from reactive_runtime._core.runtime import activity
from reactive_runtime._core.sources.naming import executor_name
from reactive_runtime.errors import RejectedError

__all__ = ["TaskSource"]


Outcome = tuple[list[Any], BaseException | None]


class TaskSource(DrainQueue):
    """Runs the source and its steps, none of which expands, as one task. Begins at once, or with the first demand."""

    __slots__ = (
        "_at_once",
        "_begun",
        "_executor",
        "_future",
        "_given",
        "_steps",
        "_supplier",
    )  # fmt: skip

    def __init__(
        self,
        supplier: Callable[[], Iterable[Any]],
        steps: Sequence[Step[Any, Any]],
        executor: Executor,
        *,
        at_once: bool,
    ) -> None:
        super().__init__()  # it is over when the task is done
        self._supplier = supplier
        self._steps = [step.copy() for step in steps]  # the task's
        self._executor = executor
        self._at_once = at_once
        self._begun = False  # the owner's
        self._future: Future[Outcome] | None = None  # lock
        self._given = 0  # the task's; a look from any thread

    # -- the pollable source -------------------------------------------------------------------------------------------

    def what(self) -> str:
        return f"a task on {executor_name(self._executor)}"

    def count_given(self) -> int:
        return self._given

    def connect(self) -> None:
        if self._at_once:
            self._submit()

    def relays(self) -> bool:
        return not self._at_once

    def request(self, n: int) -> None:
        if not (self._at_once or self._begun):
            self._begun = True
            self._drain.later(self._submit, light=True)

    def open(self) -> Iterator[Any]:
        return chain.from_iterable(self._chunks())

    def _chunks(self) -> Generator[Iterator[Any], None, None]:
        while True:
            with self._lock:
                over, failure = self._over, self._failure
                items, self._items = self._items, []
            if not over:
                yield iter((PENDING,))
                continue
            self._chunk = iter(items)
            yield self._chunk
            if failure is not None:
                raise self._at_end(failure)
            return

    def close(self) -> None:
        with self._lock:
            self._closed = True
            items, self._items = self._items, []
            future, failure = self._future, self._failure
            self._future = None  # a reference cycle, which has the elements and is not needed any more
        left, self._chunk = chain(self._chunk, items), iter(())
        try:
            if future is not None:
                taken_back(self._executor, future)
        finally:
            self._dropped(left, failure)

    # -- the task ----------------------------------------------------------------------------------------------

    def _submit(self) -> None:
        """On the thread that subscribes, or asks; no lock is held."""
        if self._gone():
            return
        run: Callable[..., Any] = self._drain.context.copy().run
        under_way = activity.begun(self._drain.context, self._executor) if activity.in_use else None
        work = self._work if under_way is None else partial(under_way.run, self._work)
        try:
            future = submitted(self._executor, partial(run, contained, work))
        except BaseException as error:
            if under_way is not None:
                under_way.end()
            self._settle([], refused_by(self._executor, error))
            if goes_up(error):
                raise
            return
        with self._lock:
            closed = self._closed  # `close` has not seen it
            if not closed:
                self._future = future
        if closed:
            taken_back(self._executor, future)
        done = partial(contained, self._done)
        future.add_done_callback(done if under_way is None else under_way.last(done))

    def _gone(self) -> bool:
        with self._lock:
            return self._closed

    def _work(self) -> Outcome:
        """The task: the elements, and the error that came after them."""
        made: list[Any] = []
        failure: BaseException | None = None
        if self._gone():  # it could not be taken back (`taken_back`)
            return made, failure
        show_watching(None, self, self._steps)
        try:
            made.extend(pulled(iter(self._supplier()), self._steps, Unstopped()))
            self._given = 1
            note_end(self._steps, "complete")
        except BaseException as error:
            if goes_up(error):
                raise
            failure = error
            note_end(self._steps, error)
        finally:
            if self._steps:
                dropping.held_dropped(release_held(self._steps, self.heard))
        return made, failure

    def _done(self, future: Future[Any]) -> None:
        if future.cancelled():
            self._settle([], cancelled_in_queue())
        elif (error := future.exception()) is not None:
            self._settle([], error)
        elif isinstance(outcome := future.result(), tuple):
            self._settle(*outcome)
        else:
            self._settle([], not_run_by(self._executor))

    def _settle(self, items: list[Any], error: BaseException | None) -> None:
        drain = self._drain
        kept = error is not None and drain.is_too_late(error)
        with self._lock:
            ended = self._end(None if error is None else Failure(error, kept=kept))
            if ended:
                self._items = items
                self._arrived()
        if ended:
            drain.heard_from()
            return
        if error is not None and not isinstance(error, RejectedError):
            dropping.error_dropped("an error after its stream had ended", error)
        dropping.elements_dropped(dropping.UNDELIVERED, items, self.heard)
