"""A dump of the live flows on a signal, also while the main thread is stuck.

The handler is that of `faulthandler`, in C, which runs on any thread, at any moment. It only writes a traceback to a
pipe, which never blocks. A thread that reads the other end takes the snapshot, and writes it.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import sys
from collections.abc import Callable
from typing import Any, Final, Protocol

from reactive_runtime._core.runtime import primitives
from reactive_runtime.live._snapshot import snapshot

__all__ = ["dump_on_signal"]


class Writes(Protocol):
    """A text file, or anything with its `write`."""

    def write(self, text: str, /) -> object:
        """Take the text."""
        ...


_lock = primitives.allocate_lock()
_pipes: Final[dict[int, tuple[int, int]]] = {}  # _lock; by signal


def dump_on_signal(number: int | None = None, *, file: Writes | None = None) -> Callable[[], None]:
    """Write a snapshot to `file` at each signal `number`.

    The handler only wakes a thread, which writes the snapshot. So it works while the main thread, or every pool, is
    stuck.

    Args:
        number: The signal; None: `signal.SIGUSR1`.
        file: An object with `write`; None: standard error, as it is at the time of the signal.

    Returns:
        A function that removes the handler. The signal then has its former effect.

    Raises:
        ValueError: The signal has a Python handler or a dump already, or can't have a handler.
        RuntimeError: The system has no such signals.

    Thread:
        May be called on any thread. In a child of `os.fork` call it again.
    """
    register: Any = getattr(faulthandler, "register", None)
    if register is None:
        raise RuntimeError("dump_on_signal: this system has no signals for it; call live.snapshot() instead")
    number = int(signal.SIGUSR1) if number is None else int(number)
    if callable(signal.getsignal(number)):
        raise ValueError(f"dump_on_signal: signal {number} has a handler already: choose another signal")
    with _lock:
        if number in _pipes:
            raise ValueError(f"dump_on_signal: signal {number} dumps already")
        end, begin = os.pipe()
        os.set_blocking(begin, False)
        try:
            register(number, file=begin, all_threads=False)
        except (OSError, RuntimeError, ValueError) as error:
            os.close(end)
            os.close(begin)
            raise ValueError(f"dump_on_signal: signal {number} can't have a handler: {error}") from error
        _pipes[number] = end, begin
    primitives.begin_thread(_serve, (end, file))
    return lambda: _take_away(number)


def _serve(end: int, file: Writes | None) -> None:
    try:
        while os.read(end, 1 << 16):
            text = f"{snapshot()}\n"
            with contextlib.suppress(Exception):  # a file that was closed: the next signal may find another
                (sys.stderr if file is None else file).write(text)
    finally:
        os.close(end)


def _take_away(number: int) -> None:
    unregister: Any = getattr(faulthandler, "unregister")  # noqa: B009 - not on every system
    with _lock:
        pipe = _pipes.pop(number, None)
    if pipe is not None:
        unregister(number)
        os.close(pipe[1])  # the thread then reads the end of the pipe, and ends


def _begin_anew() -> None:
    """In a child of `os.fork`: the threads are the parent's."""
    global _lock
    _lock = primitives.allocate_lock()
    for number, pipe in list(_pipes.items()):
        getattr(faulthandler, "unregister")(number)  # noqa: B009
        for end in pipe:
            os.close(end)
    _pipes.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)
