"""Counts the tasks that flows on a virtual clock have on executors, so that the clock can wait until they are done.

The problem: one thread moves a virtual clock, and other threads do the work that this sets off. A test that moves the
clock, and looks at once, sees no element, and concludes that none comes.

The answer: each task that a flow hands to an executor, and each coroutine, is *under way* from the hand-over until its
last callback has returned. A flow belongs to a clock by its context (`executors.clock_of`, `StepVerifier`), and by each
operator that was given the clock. A task of a clock hands its clock on to all tasks that it starts, on any thread. So a
task may belong to several clocks. A clock is *at rest* when none of its tasks is under way.

Tasks that wait in the queue of a virtual clock do not count: they run when it moves. In a process without a virtual
clock this module costs a look at `in_use`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar
from typing import Any, ClassVar, Final, TypeVar

from reactive_runtime._core.failures.assembly import place_of_thread
from reactive_runtime._core.runtime import primitives
from reactive_runtime._core.sources.naming import executor_name

__all__ = ["Activity", "UnderWay", "begun", "inside", "of_context", "spreading", "within"]

T = TypeVar("T")
R = TypeVar("R")

in_use: bool = False
"""Whether there was a virtual clock in this process. Set once, before the first of them is used."""

of_context: Final[ContextVar[tuple[Activity, ...]]] = ContextVar("activities", default=())
"""The activities of the virtual clocks of the context."""

here = primitives.ThreadLocal()
"""The state of each thread: `activities`, of the tasks and the clocks that it is inside of."""

SHOWN: Final = 3
"""Tasks that an error names."""


class Activity:
    """The tasks under way for one virtual clock, or for one flow of a scope."""

    spreads: ClassVar[bool] = True
    """A task hands it on to all tasks that it starts; False: to those of the flows that it subscribes to only."""

    def __init__(self) -> None:
        global in_use
        in_use = True
        self._changed = primitives.Condition()
        self._under_way: dict[UnderWay, None] = {}  # _changed

    def add(self, task: UnderWay) -> None:
        """A task is about to be handed to its executor."""
        with self._changed:
            self._under_way[task] = None

    def end(self, task: UnderWay) -> None:
        """The task is done, and its callbacks have returned."""
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

    __slots__ = ("_activities", "_what", "thread")

    def __init__(self, activities: tuple[Activity, ...], what: object) -> None:
        self._activities = activities
        self._what = what
        self.thread: int = 0  # the thread that runs it writes it; 0: none does, or that is not known
        for activity in activities:
            activity.add(self)

    def run(self, task: Callable[..., Any], *arguments: Any) -> Any:
        """The task, on a thread of its executor."""
        self.thread = primitives.get_ident()
        try:
            with inside(self._activities):
                return task(*arguments)
        finally:
            self.thread = 0

    def last(self, callback: Callable[..., Any]) -> Callable[..., None]:
        """The last callback of its future: tasks that this starts are under way on their own account."""

        def called(*arguments: Any) -> None:
            try:
                with inside(self._activities):
                    callback(*arguments)
            finally:
                self.end()

        return called

    def end(self) -> None:
        """It is done, or was refused."""
        for activity in self._activities:
            activity.end(self)

    def where(self) -> str:
        """In words, where it is."""
        name = self._what if isinstance(self._what, str) else executor_name(self._what)
        thread = self.thread
        if not thread:
            return f"a task on {name}"
        return f"a task on {name}: {place_of_thread(thread) or 'what keeps it had just changed'}"


@contextmanager
def inside(activities: tuple[Activity, ...]) -> Iterator[None]:
    """Within the block, this thread is inside of a task of these, too."""
    before: tuple[Activity, ...] = getattr(here, "activities", ())
    here.activities = _both(before, tuple(activity for activity in activities if activity.spreads))
    try:
        yield
    finally:
        here.activities = before


def _both(some: tuple[Activity, ...], others: tuple[Activity, ...]) -> tuple[Activity, ...]:
    """All of them, each once."""
    return some + tuple(other for other in others if other not in some)


def spreading(call: Callable[[T], R], argument: T) -> R:
    """`call(argument)`, which begins work for more than one flow: it belongs to virtual clocks only."""
    mine = of_context.get()
    token = of_context.set(tuple(activity for activity in mine if activity.spreads))
    try:
        return call(argument)
    finally:
        of_context.reset(token)


def within(resources: Iterable[Any], subscribe: Callable[[T], R], subscriber: T) -> R:
    """`subscribe(subscriber)`, to a flow that needs these: it belongs to each of them that is a virtual clock."""
    context = of_context.get()
    found = (getattr(item, "activity", None) for item in resources)
    mine = _both(context, tuple(dict.fromkeys(item for item in found if item is not None)))
    if mine == context:
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
    of_flow = of_context.get() if context is None else context.get(of_context, ())
    activities = _both(getattr(here, "activities", ()), of_flow)
    if not activities or getattr(what, "activity", None) is not None:
        return None
    return UnderWay(activities, what)
