"""A lock on a folder, which is free when its process is gone: what holds it is an open file.

A process that is forked from one that holds a lock has the open file too, and would hold the lock for as long as it
lives. So a child closes what it has of those files, first of all; and no process forks while a file is opened or
closed, when it is not yet, or no more, known as one of them.
"""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path
from typing import Final

from reactive_runtime._core.runtime import primitives

__all__ = ["FolderLock", "HeldError"]


class HeldError(Exception):
    """Another holds the lock; its text says who."""


_no_fork = primitives.RLock()
"""Held while this process forks, and while a file is opened or closed; twice where garbage has a lock."""

_open: Final[set[int]] = set()
"""The files of this process that hold locks, or may; `_no_fork`."""


class FolderLock:
    """The lock on a folder: taken when it is made, given back by `close`, or when it is collected."""

    def __init__(self, file: Path) -> None:
        """Take the lock, and write down who has it.

        Args:
            file: It is made if there is none, and stays.

        Raises:
            HeldError: Another has it, in this process or in any.
            OSError: The file can't be written.
        """
        self._file: int | None = None
        self._process: int = os.getpid()  # a child has no lock to give back
        with _no_fork:
            self._file = os.open(file, os.O_RDWR | os.O_CREAT, 0o666)
            _open.add(self._file)
        try:
            self._take(self._file)
        except BaseException:
            self.close()
            raise

    def _take(self, file: int) -> None:
        try:
            _lock(file)
        except OSError as error:
            raise HeldError(os.read(file, 1_000).decode(errors="replace").strip() or "another process") from error
        os.ftruncate(file, 0)
        os.write(file, f"process {os.getpid()} on {platform.node()}".encode())

    def close(self) -> None:
        """Give it back; once more does nothing, and in a child of its process, neither."""
        with _no_fork:
            file, self._file = self._file, None
            if file is not None and self._process == os.getpid():
                _open.discard(file)
                _unlock(file)
                os.close(file)

    def __del__(self) -> None:
        self.close()


def _lock(file: int) -> None:
    if sys.platform != "win32":  # there, the caller has to see that there is one
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _unlock(file: int) -> None:
    """At once, also where a child was forked and has not closed its own yet."""
    if sys.platform != "win32":
        import fcntl

        fcntl.flock(file, fcntl.LOCK_UN)


def _close_in_child() -> None:
    """Of a fork: its parent alone has the locks. The numbers stay taken, since objects of the parent have them."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for file in _open:
        os.dup2(nothing, file, inheritable=False)
    os.close(nothing)
    _open.clear()  # what has those numbers later is another's
    _no_fork.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_no_fork.acquire, after_in_parent=_no_fork.release, after_in_child=_close_in_child)
