"""For one process alone: its answer to SIGTERM, and a block of code. Children of `os.fork` have neither."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType
from typing import Any, Final

__all__ = ["on_sigterm", "only_here"]

_OURS: Final[list[Callable[[int, FrameType | None], Any]]] = []
"""The handlers that `on_sigterm` has set. The main thread owns it."""

_BLOCKED: Final[ContextVar[Any]] = ContextVar("blocked")
"""Of the thread that forks: the signals that it blocked before."""


def on_sigterm(handler: Callable[[int, FrameType | None], Any]) -> None:
    """Call `handler` on SIGTERM in this process; a child of it ends by the signal, as a call of `terminate` means it.

    The main thread calls this.
    """
    if handler not in _OURS:
        _OURS.append(handler)
    signal.signal(signal.SIGTERM, handler)


@contextmanager
def only_here() -> Iterator[None]:
    """End a child that is forked inside of the block where it leaves the block: it would do the work of its parent."""
    here = os.getpid()
    try:
        yield
    finally:
        if os.getpid() != here:
            os._exit(0)


def _before() -> None:
    """Block it: one that comes before the child has its own answer would be lost."""
    _BLOCKED.set(signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM]))


def _after_in_parent() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, _BLOCKED.get())


def _after_in_child() -> None:
    if signal.getsignal(signal.SIGTERM) in _OURS:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _after_in_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
