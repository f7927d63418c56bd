"""A copy of the process, made by a fork in the code under test: it must not go on in the kit.

The copy has one thread, and locks that no thread of it will release. So it ends where it comes back into the kit, and
tells its original, which says in its verdict that there was a fork.
"""

from __future__ import annotations

import mmap
import os
import time

__all__ = ["CAME_BACK", "Original", "forks"]

CAME_BACK = "forked the process, and the copy came back into the kit"

WAIT = 0.2
"""Seconds that the original waits for its copy."""

IN_VAIN = 2
"""After so many waits in vain the original waits no more: the copies do work of their own, and that is allowed."""


class Original:
    """The process in which a trial began."""

    _in_vain = 0  # any thread; a lost count costs one more wait

    def __init__(self) -> None:
        self._process = os.getpid()
        self._came_back = mmap.mmap(-1, 1)  # memory that a copy shares with its original

    def only(self) -> None:
        """End this process if it is a copy. Any thread, with or without locks."""
        if os.getpid() != self._process:
            self._came_back[0] = 1
            os._exit(0)

    @property
    def copied(self) -> bool:
        """Whether a copy has come back."""
        return self._came_back[0] != 0

    def copied_since(self, forks: int) -> bool:
        """Whether a copy comes back, of a fork after so many."""
        if _forks == forks or Original._in_vain >= IN_VAIN:
            return self.copied
        until = time.monotonic() + WAIT
        while not self.copied and time.monotonic() < until:
            time.sleep(WAIT / 20)
        Original._in_vain += not self.copied
        return self.copied


_forks = 0  # of this process so far; the thread that forks, and a lost count costs a wait that is not made


def forks() -> int:
    """How often this process has forked."""
    return _forks


def _count() -> None:
    global _forks
    _forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_parent=_count)
