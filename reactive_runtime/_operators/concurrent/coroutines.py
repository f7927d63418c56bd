"""Tasks that are coroutines, on the event loop: `flat_map` and `map_parallel` of a coroutine function."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from reactive_runtime._core.failures.assembly import an_exception
from reactive_runtime._core.runtime import activity, eventloop
from reactive_runtime._operators.concurrent.tasks import Flight, Tasks
from reactive_runtime.errors import RejectedError

if TYPE_CHECKING:
    import asyncio

    from reactive_runtime._operators.flow_base import FlowBase

__all__ = ["Coroutines"]


class Coroutines(Tasks):
    """The calls are coroutines on the event loop."""

    def __init__(
        self,
        source: FlowBase[Any],
        fn: Callable[[Any], Awaitable[Any]],
        concurrency: int,
        *,
        ordered: bool,
        delay_error: bool = False,
        after: bool = True,
    ) -> None:
        super().__init__(source, fn, concurrency, ordered=ordered, delay_error=delay_error, after=after)
        self.loop: asyncio.AbstractEventLoop | None = None
        self.woken = False  # the loop's thread; `wake` is about to run
        self.ended: list[
            activity.UnderWay
        ] = []  # the loop's thread; the tasks that are done, which the drain has not looked at

    def launch(self, flight: Flight) -> None:
        if self.loop is None:
            self.loop = eventloop.borrow()
        flight.task = _Task(flight, self)
        if activity.in_use:
            flight.task.under_way = activity.begun(self.drain.context, f"the event loop, of `{self.title}`")
        eventloop.call(self.loop, flight.task.begin)

    def wake(self) -> None:
        """Wake the drain once for all coroutines that ended in one turn of the loop. The loop's thread calls it."""
        self.woken = False
        ended, self.ended = self.ended, []
        try:
            self.drain.heard_from()
        finally:
            for under_way in ended:
                under_way.end()

    def closed(self) -> None:
        super().closed()
        loop, self.loop = self.loop, None
        if loop is not None:
            eventloop.give_back(loop)


class _Task:
    """One coroutine. Its fields belong to the loop's thread."""

    __slots__ = ("cancelled", "combinator", "flight", "loop", "task", "under_way")

    def __init__(self, flight: Flight, combinator: Coroutines) -> None:
        self.flight = flight
        self.combinator = combinator
        assert combinator.loop is not None
        self.loop = combinator.loop
        self.task: asyncio.Task[Any] | None = None
        self.cancelled = False
        self.under_way: activity.UnderWay | None = None  # set once, before it begins

    def begin(self) -> None:
        combinator = self.combinator
        if self.cancelled:
            combinator.discard(self.flight.element)
            self._ended()
            return
        try:
            coroutine = eventloop.outcome(combinator.fn, self.flight.element)
            self.task = self.loop.create_task(coroutine, context=combinator.drain.context.copy())
        except BaseException as error:
            self._land(None, an_exception(error))
        else:
            self.task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[Any]) -> None:
        self.task = None
        if task.cancelled():
            error: BaseException | None = RejectedError(f"{self.combinator.title}: the coroutine was cancelled")
        else:
            raised = task.exception()
            error = None if raised is None else an_exception(raised)
        self._land(deque((task.result(),)) if error is None else None, error)

    def _land(self, results: deque[Any] | None, error: BaseException | None) -> None:
        combinator = self.combinator
        if isinstance(error, Exception):
            combinator.fault(error)
        if not combinator.land(self.flight, results, error):
            if results is None:
                combinator.discard(self.flight.element)
            self._ended()
            return
        if self.under_way is not None:
            combinator.ended.append(self.under_way)
        if not combinator.woken:
            combinator.woken = True
            self.loop.call_soon(combinator.wake)

    def _ended(self) -> None:
        if self.under_way is not None:
            self.under_way.end()

    def cancel(self) -> None:
        """Cancel the coroutine. Any thread may call it."""
        eventloop.call(self.loop, self._cancel)

    def _cancel(self) -> None:
        self.cancelled = True
        if self.task is not None:
            self.task.cancel()
