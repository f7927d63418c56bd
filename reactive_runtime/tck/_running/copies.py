"""A copy of the process, which the code under test makes by a fork, must not go on in the kit.

The copy has one thread, and locks that none of its threads will release. So it ends when it comes back into the kit,
and marks that in memory that it shares with the original, whose check fails by it.
"""

from __future__ import annotations

import os
import time
from typing import Any

__all__ = ["CAME_BACK", "Original", "forks"]

CAME_BACK = "forked the process, and the copy came back into the kit"

WAIT = 1.0
"""Seconds that the original waits for its copy."""

IN_VAIN = 2
"""After so many waits in vain the original waits no more: its copies do work of their own, as they may."""


class Original:
    """The process in which a trial began."""

    _in_vain = 0  # any thread; a lost count costs one more wait

    def __init__(self) -> None:
        self._process = os.getpid()
        self._came_back = _shared_byte()

    def only(self) -> None:
        """End this process if it is a copy. Any thread, with or without locks."""
        if os.getpid() != self._process:
            self._came_back[0] = 1
            os._exit(0)

    @property
    def copied(self) -> bool:
        """Whether a copy has come back."""
        return bool(self._came_back[0])

    def copied_since(self, forks: int) -> bool:
        """Whether a copy comes back, if the process has forked since there were so many forks."""
        if _forks == forks or Original._in_vain >= IN_VAIN:
            return self.copied
        until = time.monotonic() + WAIT
        while not self.copied and time.monotonic() < until:
            time.sleep(WAIT / 100)
        Original._in_vain += not self.copied
        return self.copied


def _shared_byte() -> Any:
    """A byte of memory that a copy shares with its original."""
    if not hasattr(os, "fork"):
        return bytearray(1)
    import mmap  # a system without forks may lack it

    return mmap.mmap(-1, 1)


_forks = 0  # of this process; each thread that forks writes it: a lost count leaves out a wait


def forks() -> int:
    """The number of forks of this process."""
    return _forks


def _count() -> None:
    global _forks
    _forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_parent=_count)
