"""How long a drain keeps a thread of a pool for which other tasks wait.

A drain looks at the clock between two runs of elements. A run is as long as took a millisecond so far: one element of a
slow function, hundreds of a fast one. So no element pays for a look, and the thread is given back in time.
"""

from __future__ import annotations

from typing import Any, Final

from reactive_runtime._core.runtime import primitives

__all__ = ["QUANTUM", "Pace", "is_kept_long", "task_begins", "task_ends", "tasks_wait"]

QUANTUM: Final = 0.010
"""Seconds of work after which a drain gives its thread back, where another task waits for it."""

SHORT: Final = 0.001
"""Seconds: the next run is twice as long as one that took less, and half as long as one that took twice as much."""

FIRST: Final = 2
"""Elements of the first run."""


on_thread = primitives.ThreadLocal()
"""The state of each thread: `began`, when the task began that it runs for a drain (`drains.drain`).

None outside of such a task, or not there. Drains that work on the thread of a task share its 10 ms.
"""


class Pace:
    """The length of a run, and what has been worked since a task began. For the owner of one drain."""

    __slots__ = ("_began", "_left", "_longest", "_now", "_run_began", "run")

    def __init__(self, longest: int) -> None:
        """`longest`: no run has more elements, and after so many the thread is given back."""
        self.run: int = min(FIRST, longest)
        self._longest = longest
        self._left = longest
        self._now = 0  # the length of the run under way
        self._began = self._run_began = 0.0

    def begin(self) -> None:
        """A task begins."""
        self._began = primitives.monotonic()
        self._left = self._longest

    def next_run(self) -> int:
        """A run begins: the number of its elements."""
        self._run_began = primitives.monotonic()
        self._now = min(self.run, self._left)
        return self._now

    def end_run(self, executor: Any, task: Pace | None = None) -> bool:
        """A whole run was worked. Whether the thread is to be given back. `task`: the pace that knows its beginning."""
        seconds = primitives.monotonic() - self._run_began
        self._left -= self._now
        if seconds < SHORT:
            self.run = min(2 * self.run, self._longest)
        elif seconds > 2 * SHORT:
            self.run = max(1, int(self.run * SHORT / seconds))
        if self._left > 0 and not (task or self).is_over(executor):
            return False
        self._left = self._longest
        return True

    def is_over(self, executor: Any) -> bool:
        """Whether the task has had its time, and another one waits for the thread."""
        now = primitives.monotonic()
        if now - self._began < QUANTUM:
            return False
        if tasks_wait(executor):
            return True
        self._began = now - QUANTUM + SHORT  # look again in a millisecond
        return False


def task_begins() -> None:
    """This thread runs a task of a drain from now on."""
    on_thread.began = primitives.monotonic()


def task_ends() -> None:
    """This thread runs no task of a drain any more."""
    on_thread.began = None


def is_kept_long(executor: Any) -> bool:
    """Whether this thread has worked on its task for 10 ms, and another one waits for a thread of the executor."""
    since: float | None = getattr(on_thread, "began", None)
    return since is not None and primitives.monotonic() - since >= QUANTUM and tasks_wait(executor)


def tasks_wait(executor: Any) -> bool:
    """Whether tasks wait for a thread of the executor, where that can be seen: in a pool of the standard library.

    False where the pool is shut down: it would reject the drain that gives its thread back.
    """
    queue = getattr(executor, "_work_queue", None)  # of ThreadPoolExecutor, which has no method to ask
    return isinstance(queue, primitives.SimpleQueue) and not queue.empty() and not getattr(executor, "_shutdown", False)
