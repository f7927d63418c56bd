"""Stands in for asyncio's event loop: its thread is an actor like any other, and what is ready in it is a choice.

The thread that runs the loop waits in the scheduler where the loop has nothing to do, until a callback is handed over
from another thread or the virtual clock comes to a timer. Before each callback there is a point, so that other threads
can come in between.

Which of the tasks that are ready goes on is chosen as threads are chosen: the order in which their waits end is, in
earnest, that of sockets and timers. Callbacks that belong to no task run in the order in which they were handed over,
as asyncio promises.

What hands work to the loop from another thread without `call_soon_threadsafe` does not wake it, as it does not in
earnest: where nothing else does, that is a deadlock.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import heapq
import inspect
import os
import sys
import warnings
from collections.abc import Callable
from types import FrameType, FunctionType
from typing import Any, Final, NoReturn

from reactive_runtime.errors import ExploreError
from reactive_runtime.explore._schedule.scheduler import Scheduler
from reactive_runtime.explore._schedule.task import Aborted, Task, choice
from reactive_runtime.explore._standins import instrumented

__all__ = ["ExploredEventLoop", "refused"]

TASKS: Final = 10_000
"""What is added to the number of an asyncio task, in a schedule, to tell it from a thread."""

_LIBRARY: Final = os.path.dirname(os.__file__) + os.sep

_REFUSED: Final = (
    "add_reader",
    "add_writer",
    "create_connection",
    "create_datagram_endpoint",
    "create_server",
    "create_unix_connection",
    "create_unix_server",
    "connect_read_pipe",
    "connect_write_pipe",
    "getaddrinfo",
    "getnameinfo",
    "sendfile",
    "sock_accept",
    "sock_connect",
    "sock_recv",
    "sock_recv_into",
    "sock_sendall",
    "start_tls",
    "subprocess_exec",
    "subprocess_shell",
    "add_signal_handler",
)
"""What waits for something outside of the program."""


def refused(*_: object, **__: object) -> NoReturn:
    """What an event loop does that waits for the world."""
    raise ExploreError(
        "an event loop of asyncio was to wait for a socket, a process or a signal, which is not controlled: explore"
        " the code around it, with a coroutine of your own in place of that call"
    )


class ExploredEventLoop(asyncio.BaseEventLoop):
    """An event loop of the program under exploration."""

    # Of the base, which says nothing of their types:
    _ready: Any
    _scheduled: list[Any]
    _stopping: bool
    _timer_cancelled_count: int

    def __init__(self) -> None:
        super().__init__()
        # Owned by the holder of the turn:
        self._handed = instrumented.Location()  # what was handed over, to the loop's thread
        self._asleep: Task | None = None  # the loop's thread, while it waits
        self._choices: dict[asyncio.Task[Any], Task] = {}  # what stands for a task where one is chosen
        self._callbacks = choice(TASKS, "callbacks")

    def time(self) -> float:
        """Virtual seconds since the run began. Reading it in a loop of one's own moves it, as for every clock."""
        scheduler = instrumented.active
        frame = sys._getframe(1)
        if scheduler is None or instrumented.foreign() or frame.f_code.co_filename.startswith(_LIBRARY):
            return 0.0 if scheduler is None else scheduler.clock
        return scheduler.time(frame, early=False)

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Any = None
    ) -> Any:
        """As in asyncio: a point of choice; the loop is woken."""
        me = instrumented.caller()
        scheduler = instrumented.active
        try:
            if me is None or scheduler is None or scheduler.aborting:
                return super().call_soon_threadsafe(callback, *args, context=context)
            instrumented.point(scheduler, me, self._handed, "call_soon_threadsafe")
            handle = super().call_soon_threadsafe(callback, *args, context=context)
        except BaseException:
            if scheduler is not None and scheduler.aborting:
                _close_coroutines([callback, *args])
            raise
        me.acts += 1
        if scheduler.tracking:
            scheduler.note(me, self._handed, True)
        instrumented.left(scheduler, me, self._handed)
        return handle

    def _write_to_self(self) -> None:
        scheduler = instrumented.active
        if self._asleep is not None and scheduler is not None:
            scheduler.wake(self._asleep)
            self._asleep = None

    def _process_events(self, event_list: Any) -> None:
        """There are none: nothing comes from outside."""

    def _run_once(self) -> None:
        """One turn. Of a run that is taken down in it no task says anything."""
        try:
            self._turn()
        except Aborted:
            self._quieten()
            raise

    def _turn(self) -> None:
        """The timers that are due, then the callbacks that are ready by then."""
        me = instrumented.caller()
        scheduler = instrumented.active
        if me is None or scheduler is None:
            raise RuntimeError("this event loop belongs to a run that has ended")
        if scheduler.aborting:
            raise Aborted
        if scheduler.carriers.greenlets:
            self._quieten()
            raise ExploreError(
                "an event loop of asyncio was asked for: it goes with the engine of threads, since asyncio keeps the"
                " loop that runs by OS thread"
            )
        self._due()
        if not self._ready and not self._stopping:
            self._asleep = me
            me.location, me.writes, me.what = self._handed, True, "wait for an event"
            scheduler.wait(me, self._scheduled[0].when() if self._scheduled else None)
            self._asleep = None
            if scheduler.step_log is not None:
                scheduler.step_log.shown_as("wakes", None)
            self._due()
        instrumented.met(scheduler, me, self._handed)
        for _ in range(len(self._ready)):
            if not self._ready:
                break
            instrumented.point(scheduler, me, self._handed, "next callback")
            if scheduler.step_log is not None:
                scheduler.step_log.shown_as("callback", None)
            instrumented.met(scheduler, me, self._handed)
            handle = self._next(scheduler, me)
            me.acts += 1
            if not handle.cancelled():
                self._run(handle, scheduler, me)
            if scheduler.aborting:
                raise Aborted  # what a task raises asyncio keeps

    def _run(self, handle: Any, scheduler: Scheduler, me: Task) -> None:
        """Run a callback. Where it is a task that was one of several, what it accesses is shown in its column."""
        log, task = scheduler.step_log, _task_of(handle)
        stands = None if task is None else self._choices.get(task)
        if log is None or stands is None:
            handle._run()
            return
        log.enters(me, stands)
        try:
            handle._run()
        finally:
            log.enters(me, None)

    def _quieten(self) -> None:
        """No task that is left says that it was never awaited, or not ended, and no coroutine that would become one."""
        for task in asyncio.all_tasks(self):
            quiet: Any = task
            quiet._log_destroy_pending = False
            _close_coroutines([task.get_coro()])
        for handle in [*self._ready, *self._scheduled]:
            _close_coroutines([handle._callback, *(handle._args or ())])

    def _due(self) -> None:
        """Move the timers that are due to what is ready, in their order."""
        now = self.time()
        while self._scheduled:
            handle = self._scheduled[0]
            if not handle.cancelled() and handle.when() > now:
                return
            handle = heapq.heappop(self._scheduled)
            handle._scheduled = False
            if handle.cancelled():
                self._timer_cancelled_count = max(0, self._timer_cancelled_count - 1)
            else:
                self._ready.append(handle)

    def _next(self, scheduler: Scheduler, me: Task) -> Any:
        """Take one of those that are ready: the first of a task, or the first that belongs to none."""
        ready = self._ready
        first: dict[Any, int] = {}
        for at, handle in enumerate(ready):
            if not handle.cancelled():
                first.setdefault(_task_of(handle), at)
        if len(first) < 2:
            at = next(iter(first.values()), 0)
        else:
            choices = {self._stands_for(task): at for task, at in first.items()}
            if scheduler.step_log is not None:
                frames = {self._stands_for(task).index: _frame_of(task) for task in first}
                scheduler.step_log.offers(frames)
            chosen = scheduler.choose(list(choices), me)
            at = choices[chosen]
            chosen.what = "goes on"
            scheduler.schedule.append(chosen.index)
            if scheduler.step_log is not None:
                scheduler.step_log.step(chosen)
                scheduler.step_log.shown_as("goes on", _frame_of(_task_of(ready[at])))
            if scheduler.tracking:
                me.chain = hash((me.chain, chosen.index))
        handle = ready[at]
        del ready[at]
        return handle

    def _stands_for(self, task: asyncio.Task[Any] | None) -> Task:
        if task is None:
            return self._callbacks
        found = self._choices.get(task)
        if found is None:
            number = len(self._choices) + 1
            name = task.get_name()
            if name.startswith("Task-"):  # numbered by a counter that goes on from run to run
                name = f"task {number}"
            found = self._choices[task] = choice(TASKS + number, name)
        return found

    def close(self) -> None:
        """As in asyncio. Of a run that is taken down no coroutine says that it was never awaited."""
        self._choices.clear()
        scheduler = instrumented.active
        if scheduler is None or not scheduler.aborting:
            super().close()
            return
        self._quieten()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            super().close()


for _name in _REFUSED:
    setattr(ExploredEventLoop, _name, refused)


def _close_coroutines(entries: list[Any]) -> None:
    """Of a run that is taken down: what was not begun, in these or in functions that were to be called, never is.

    It is not left to the end of the last reference to it, which may come late, and on another thread.
    """
    while entries:
        entry = entries.pop()
        if inspect.iscoroutine(entry):
            if inspect.getcoroutinestate(entry) == inspect.CORO_CREATED:
                entry.close()
        elif type(entry) is functools.partial:
            entries += [entry.func, *entry.args, *entry.keywords.values()]
        elif type(entry) is FunctionType:
            for cell in entry.__closure__ or ():
                with contextlib.suppress(ValueError):  # it is empty
                    entries += [held for held in [cell.cell_contents] if inspect.iscoroutine(held)]


def _frame_of(task: asyncio.Task[Any] | None) -> FrameType | None:
    """Where the task waits: of the coroutines that await each other the last that is not of the standard library."""
    coroutine: Any = None if task is None else task.get_coro()
    found: FrameType | None = None
    while (frame := getattr(coroutine, "cr_frame", None)) is not None:
        if found is None or not frame.f_code.co_filename.startswith(_LIBRARY):
            found = frame
        coroutine = coroutine.cr_await
    return found


def _task_of(handle: Any) -> asyncio.Task[Any] | None:
    """The task whose next step this callback is."""
    owner = getattr(handle._callback, "__self__", None)
    return owner if isinstance(owner, asyncio.Task) else None
