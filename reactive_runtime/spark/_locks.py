"""A lock on a folder, which is free when its process is gone: what holds it is an open file."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path
from typing import TextIO

__all__ = ["HeldError", "locked"]


class HeldError(Exception):
    """Another holds the lock; its text says who."""


def locked(file: Path) -> TextIO:
    """Take the lock, and write down who has it. It is given back by closing what is returned.

    Args:
        file: It is made if there is none, and stays.

    Raises:
        HeldError: Another has it, in this process or in any.
        OSError: The file can't be written.
    """
    lock = file.open("a+", encoding="utf-8")
    try:
        _lock(lock.fileno())
    except OSError as error:
        lock.seek(0)
        who = lock.read().strip() or "another process"
        lock.close()
        raise HeldError(who) from error
    lock.truncate(0)
    lock.write(f"process {os.getpid()} on {platform.node()}")
    lock.flush()
    return lock


def _lock(file: int) -> None:
    if sys.platform != "win32":  # there, the caller has to see that there is one
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
