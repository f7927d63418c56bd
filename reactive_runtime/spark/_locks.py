"""A lock on a folder, which is free when its process is gone: what holds it is an open file.

A process that is forked from one that holds a lock has the open file too, and would hold the lock for as long as it
lives. So a child closes what it has of those files, first of all.
"""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path
from typing import Final

__all__ = ["FolderLock", "HeldError"]


class HeldError(Exception):
    """Another holds the lock; its text says who."""


class FolderLock:
    """The lock on a folder: taken when it is made, given back by `close`."""

    def __init__(self, file: Path) -> None:
        """Take the lock, and write down who has it.

        Args:
            file: It is made if there is none, and stays.

        Raises:
            HeldError: Another has it, in this process or in any.
            OSError: The file can't be written.
        """
        self._file: int | None = os.open(file, os.O_RDWR | os.O_CREAT, 0o666)  # its user's
        _open[self._file] = None
        try:
            _lock(self._file)
        except OSError as error:
            who = os.read(self._file, 1_000).decode(errors="replace").strip() or "another process"
            self.close()
            raise HeldError(who) from error
        os.ftruncate(self._file, 0)
        os.write(self._file, f"process {os.getpid()} on {platform.node()}".encode())

    def close(self) -> None:
        """Give it back; once more does nothing."""
        file, self._file = self._file, None
        if file is not None:
            _open.pop(file, None)
            os.close(file)


_open: Final[dict[int, None]] = {}
"""The files of this process that hold locks, or may; each written by the thread that takes or gives back its lock."""


def _lock(file: int) -> None:
    if sys.platform != "win32":  # there, the caller has to see that there is one
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _close_in_child() -> None:
    """Of a fork: its parent alone has the locks. What closes such a file later closes the one that took its place."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for file in list(_open):
        os.dup2(nothing, file, inheritable=False)
    os.close(nothing)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_in_child)
