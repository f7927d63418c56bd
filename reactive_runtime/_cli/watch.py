"""A process watches `stress` and `explore`, so that there is a status and a verdict however these end.

The load runs foreign code: a scenario may call `os._exit(0)`, crash, or be killed for its memory. So it runs in a
process of its own, which writes its exit status to a pipe at its very end. Without that the process has not finished:
the status is 3, *incomplete*, with a line on standard error.

Ctrl-C and SIGTERM come to the process that watches, which passes them on, as SIGTERM. `Stop` is how the load hears:
the first lets it end after the round under way; another, half a second later or more, does not wait for that.
Where there is no `fork`, nothing watches, and Ctrl-C is heard by the load itself.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
import select
import signal
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, Final

import typer

from reactive_runtime._cli._exits import INCOMPLETE, UNUSABLE
from reactive_runtime._cli.console import fault
from reactive_runtime._core.runtime import primitives
from reactive_runtime._support.this_process import on_sigterm

__all__ = ["Stop", "watched"]

_LOAD: Final = "what was recorded can be judged by `reactive-runtime verify`"

_AGAIN: Final = 0.5
"""Seconds within which two signals are one: a terminal and the process that watches may both send it."""


LEAVING: Final = 5.0
"""Seconds that a process has for its end when all is done and said: a task of a scenario may be stuck on a pool."""

_LOOK: Final = 0.2
"""Seconds between two looks whether the process has ended."""


class Stop:
    """Whether the load is to end before its time. Signals are heard by the main thread."""

    def __init__(self) -> None:
        self.asked: float | None = None  # the main thread; when
        self._then: Callable[[], object] | None = None  # the main thread

    @contextlib.contextmanager
    def heard(self, then: Callable[[], object] = lambda: None) -> Iterator[None]:
        """While the block runs, a signal is noted, and `then` called; outside of all, one is a KeyboardInterrupt.

        `then` is also called where one was noted before: by a block around this one.
        """
        outer, self._then = self._then, then
        try:
            if self.asked is not None:
                then()
            yield
        finally:
            self._then = outer

    def listen(self) -> None:
        """From now on, SIGTERM (and SIGINT, where nothing watches) comes here, and not to children of this process."""
        on_sigterm(self._signalled)
        signal.signal(signal.SIGINT, signal.SIG_IGN if hasattr(os, "fork") else self._signalled)

    def _signalled(self, number: int, frame: FrameType | None) -> None:
        now = primitives.monotonic()
        if self.asked is not None and now - self.asked < _AGAIN:
            return
        again, self.asked = self.asked is not None, now
        if again or self._then is None:
            raise KeyboardInterrupt
        self._then()


def watched(work: Callable[[], object], what: str = "the load", then: str = _LOAD) -> None:
    """Do the work in a process that is watched over, and leave with its status. Before any thread has been started.

    Where the process ends without its status, a line says that `what` did not finish, and what the user can do: `then`.
    """
    if not hasattr(os, "fork"):
        work()
        return
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    parent = os.getpid()
    heard, said = os.pipe()
    child = os.fork()
    if child:
        os.close(said)
        raise typer.Exit(_watch(child, heard, what, then))
    os.close(heard)
    _die_with(parent)
    status = UNUSABLE
    try:
        work()
        status = 0
    except typer.Exit as left:
        status = left.exit_code
        raise
    finally:
        for stream in filter(None, (sys.stdout, sys.stderr)):  # a scenario may have set one to None
            with contextlib.suppress(OSError, ValueError):  # the reader has gone, or a scenario has closed it
                stream.flush()
        os.write(said, bytes([status]))


def _watch(child: int, heard: int, what: str, then: str) -> int:
    def pass_on(number: int, frame: FrameType | None) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGTERM)

    before = {number: signal.signal(number, pass_on) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        ended, received = _end_of(child, heard)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    os.close(heard)
    if received:
        return received[0]
    how = f"signal {os.WTERMSIG(ended)}" if os.WIFSIGNALED(ended) else f"status {os.WEXITSTATUS(ended)}"
    fault(f"{what} did not come to its end, its process ended with {how}; {then}")
    return INCOMPLETE


def _end_of(child: int, heard: int) -> tuple[int, bytes]:
    """How the process ended, and the status that it has said before.

    It is ended where it has said its status and does not end: the interpreter waits without limit for threads that are
    no daemons, and where its memory is used up it can't begin a thread that would end it. A process that a scenario has
    left behind may keep the pipe open, so this function also looks for the end of the process.
    """
    os.set_blocking(heard, False)
    received = None  # b"": the other end is closed
    end = math.inf
    while True:
        gone, ended = os.waitpid(child, os.WNOHANG)
        if received is None:
            select.select([heard], [], [], 0 if gone else _LOOK)
            with contextlib.suppress(BlockingIOError):
                received = os.read(heard, 1)
                end = primitives.monotonic() + LEAVING if received else math.inf
        elif not gone:
            primitives.sleep(_LOOK / 10)
        if gone:
            return ended, received or b""
        if primitives.monotonic() > end:
            os.kill(child, signal.SIGKILL)
            end = math.inf


def _die_with(parent: int) -> None:
    """Let this process be killed when the one that watches is gone: its status would reach no process."""
    if sys.platform == "linux":
        set_parent_death_signal = 1  # PR_SET_PDEATHSIG of prctl(2)
        library: Any = ctypes.CDLL(None)
        library.prctl(set_parent_death_signal, int(signal.SIGKILL), 0, 0, 0)
        if os.getppid() != parent:
            os._exit(INCOMPLETE)
