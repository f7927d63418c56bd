"""The end of the process waits for connections that are being closed: they send the last acknowledgements.

The problem: the thread of the event loop is a daemon, which the end of the process stops wherever it is. Messages that
were handled a moment before would come again.
"""

from __future__ import annotations

import atexit
import os
from typing import Final

from reactive_runtime._core.failures.exits import GRACE
from reactive_runtime._core.runtime import primitives

__all__ = ["begin", "end"]

_lock = primitives.Condition()
_closing: Final[set[object]] = set()  # _lock


def begin(connection: object) -> None:
    """The connection is being closed."""
    with _lock:
        _closing.add(connection)


def end(connection: object) -> None:
    """It is closed."""
    with _lock:
        _closing.discard(connection)
        _lock.notify_all()


def _wait() -> None:
    with _lock:
        _lock.wait_for(lambda: not _closing, GRACE)


def _begin_anew() -> None:
    """In a child of `os.fork`: the connections are the parent's."""
    global _lock
    _lock = primitives.Condition()
    _closing.clear()


atexit.register(_wait)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)
