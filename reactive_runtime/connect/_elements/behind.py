"""Releases a file or a connection behind its last user, where another thread may write at the end.

The problem: a source with an executor writes on a thread of that, and a cancel comes on any thread. To close a file, or
a connection, while another thread is inside of it breaks both.

The answer: the operator holds it, and so does each step that writes. The last of them to leave releases it. A step
leaves when its subscription has closed: the owner of that is the thread that writes, so that it has come back by then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Self

from reactive_runtime._core.fusion.step import Step
from reactive_runtime._core.runtime import primitives

__all__ = ["Behind", "Writes"]


class Behind:
    """Calls `release` once, behind the last that holds it. The one who makes it holds it.

    Args:
        release: Called by the last one to leave, on its thread, under no lock.
    """

    def __init__(self, release: Callable[[], object]) -> None:
        self._release = release
        self._lock = primitives.Lock()
        self._held = 1  # _lock

    def hold(self) -> None:
        """One more holds it."""
        with self._lock:
            self._held += 1

    def leave(self) -> None:
        """One that held it does no longer."""
        with self._lock:
            self._held -= 1
            last = not self._held
        if last:
            self._release()


class Writes(Step[Any, Any]):
    """A step that writes to what is released behind it: each copy holds it until its subscription has closed."""

    def __init__(self, behind: Behind) -> None:
        self.behind = behind
        self.holding = False  # the subscription of this copy

    def copy(self) -> Self:
        """See `Step.copy`."""
        step = super().copy()
        step.behind.hold()
        step.holding = True
        return step

    def dispose(self) -> Iterable[object]:
        """See `Step.dispose`."""
        holding, self.holding = self.holding, False
        if holding:
            self.behind.leave()
        return ()
