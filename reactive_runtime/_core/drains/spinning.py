"""Before a drain gives a thread of its executor back, it looks for a note a few times more.

The other side of a boundary is often about to leave one, and to come back costs a submission and the waking of a
thread. To spin takes microseconds, and waits for nothing. It decides only when the drain leaves; the owner decides
after it, under the drain's lock, whether the drain may leave.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from reactive_runtime._core.runtime import primitives

__all__ = ["Spinning"]

FIRST: Final = 2
"""How many times a new drain leaves at once: most have one thing to do."""

VAIN: Final = 8
"""How many times it leaves at once after it has spun in vain: on a pool with much to do, others need the thread."""


class Spinning:
    """Decides when to spin, and spins. For the owner of one drain."""

    __slots__ = ("_skip",)

    def __init__(self) -> None:
        self._skip = FIRST  # how many times more to leave at once

    def spin(self, has_note: Callable[[], bool]) -> None:
        """Give way a few times, until there is a note."""
        if self._skip:
            self._skip -= 1
            return
        for _ in range(primitives.SPINS):
            primitives.pause()
            if has_note():
                return
        self._skip = VAIN
