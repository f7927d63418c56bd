"""Counts the tasks that flows on a virtual clock have on executors, so that the clock can wait until they are done.

The problem: one thread moves a virtual clock, and what that sets off goes on on other threads. A test that moves the
clock, and looks at once, sees that nothing has come, and takes it for what does not come.

The answer: each task that a flow hands to an executor, and each coroutine, is *under way* from the hand-over until its
last callback has returned. A flow belongs to a clock by its context (`executors.clock_of`, `StepVerifier`), or by an
operator that was given the clock. What a task of a clock hands over belongs to that clock too, on whatever thread. The
clock is *at rest* when none is under way.

Tasks that wait in the queue of a virtual clock are not counted: they run when it is moved. Where no virtual clock was
ever made, nothing here costs anything but a look at `in_use`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextvars import Context, ContextVar
from typing import Any, Final, TypeVar

from reactive_runtime._core import primitives
from reactive_runtime._core.naming import executor_name

__all__ = ["Activity", "UnderWay", "begun", "of_context", "within"]

T = TypeVar("T")
R = TypeVar("R")

in_use: bool = False
"""Whether there was a virtual clock in this process. Set once, before the first of them is used."""

of_context: Final[ContextVar[Activity | None]] = ContextVar("activity", default=None)
"""That of the virtual clock of the context."""

here = primitives.ThreadLocal()
"""What each thread knows of itself: `activity`, that of the task, or of the clock, that it is inside of."""

SHOWN: Final = 3
"""Tasks that an error names."""


class Activity:
    """What is under way for one virtual clock."""

    def __init__(self) -> None:
        global in_use
        in_use = True
        self._changed = primitives.Condition()
        self._under_way: dict[UnderWay, None] = {}  # _changed

    def begin(self, what: object) -> UnderWay:
        """A task is about to be handed to the executor `what`."""
        task = UnderWay(self, what)
        with self._changed:
            self._under_way[task] = None
        return task

    def end(self, task: UnderWay) -> None:
        """It is done, and what hears of that has heard."""
        with self._changed:
            self._under_way.pop(task, None)
            if not self._under_way:
                self._changed.notify_all()

    def wait(self, caller: str, seconds: float) -> None:
        """Wait until nothing is under way.

        TimeoutError when `seconds` of real time have passed; RuntimeError where it would wait for its own thread.
        """
        ident = primitives.get_ident()
        with self._changed:
            own = any(task.thread == ident for task in self._under_way)
            rests = not own and self._changed.wait_for(lambda: not self._under_way, primitives.one_wait(seconds))
            left = list(self._under_way)
        if own:
            raise RuntimeError(
                f"{caller}: this thread, {primitives.current_thread().name}, is inside of a task of a flow on this"
                " clock, which the clock would wait for: move the clock on another thread, or schedule a task on it"
            )
        if not rests:
            shown = "; ".join(task.where() for task in left[:SHOWN])
            more = f"; {len(left) - SHOWN} more" if len(left) > SHOWN else ""
            raise TimeoutError(
                f"{caller}: what the flow has begun on other threads did not come to rest in {seconds:g} s: {shown}"
                f"{more}. Let it end, or let it wait on this clock instead of in real time"
            )


class UnderWay:
    """One task."""

    __slots__ = ("_activity", "_what", "thread")

    def __init__(self, activity: Activity, what: object) -> None:
        self._activity = activity
        self._what = what
        self.thread = 0  # the thread that runs it writes it; 0: none does, or that is not known

    def run(self, task: Callable[..., Any], *arguments: Any) -> Any:
        """The task, on a thread of its executor."""
        self.thread = primitives.get_ident()
        before, here.activity = getattr(here, "activity", None), self._activity
        try:
            return task(*arguments)
        finally:
            here.activity = before
            self.thread = 0

    def last(self, callback: Callable[..., Any]) -> Callable[..., None]:
        """The last callback of its future: what that brings about is under way by itself."""

        def called(*arguments: Any) -> None:
            before, here.activity = getattr(here, "activity", None), self._activity
            try:
                callback(*arguments)
            finally:
                here.activity = before
                self.end()

        return called

    def end(self) -> None:
        """It is done, or was refused."""
        self._activity.end(self)

    def where(self) -> str:
        """In words, where it is."""
        from reactive_runtime._core.waited_for import kept_by  # which stands on what has tasks

        name = self._what if isinstance(self._what, str) else executor_name(self._what)
        thread = self.thread
        return f"a task on {name}: {kept_by(None, thread)}" if thread else f"a task on {name}, which waits there"


def within(resources: Iterable[Any], subscribe: Callable[[T], R], subscriber: T) -> R:
    """`subscribe(subscriber)`, to a flow that needs these: where one is a virtual clock, the flow belongs to it.

    The context comes first: then this changes nothing.
    """
    if of_context.get() is not None:
        return subscribe(subscriber)
    mine = next((found for found in (getattr(item, "activity", None) for item in resources) if found is not None), None)
    if mine is None:
        return subscribe(subscriber)
    token = of_context.set(mine)
    try:
        return subscribe(subscriber)
    finally:
        of_context.reset(token)


def begun(context: Context | None, what: object) -> UnderWay | None:
    """A task that is about to be handed to `what`; None where it belongs to no virtual clock, or waits for one to move.

    Called only where `in_use` says so.
    """
    activity: Activity | None = getattr(here, "activity", None)
    if activity is None:
        activity = of_context.get() if context is None else context.get(of_context)
    if activity is None or getattr(what, "activity", None) is not None:
        return None
    return activity.begin(what)
