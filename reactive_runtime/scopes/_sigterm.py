"""A graceful shutdown on SIGTERM: the handler writes a byte to a pipe, and a thread reads it and drains the scope.

The handler runs on the main thread, between any two instructions, so that thread may hold any lock. The handler takes
none: it makes one system call, and calls the handler that the program had set before, if that is a function.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from types import FrameType
from typing import Any, Final

from reactive_runtime._core.failures import dropping
from reactive_runtime._core.runtime import primitives
from reactive_runtime._core.runtime.arguments import seconds_of
from reactive_runtime._core.sources.naming import instead
from reactive_runtime.scopes._members import Members
from reactive_runtime.scopes._scope import Scope, members_of

__all__ = ["on_sigterm"]

_DRAIN: Final = b"d"
_END: Final = b"e"


def on_sigterm(scope: Scope, *, within: float) -> None:
    """Drain `scope` when this process gets SIGTERM, from now to the end of the scope.

    `on_sigterm` also calls the handler that was set before, and restores it at the end of the scope's block. Only this
    former handler gets a signal that comes later, or to a forked child.

    Args:
        scope: A scope whose block runs on the main thread.
        within: How many seconds its flows have; 0 or more. See `Scope.drain`.

    Raises:
        TypeError: `scope` is no `Scope`, or `within` is no number.
        ValueError: `within` is negative or not finite; or this is not the main thread, which alone may set a handler.
        RuntimeError: The block of the scope has not been entered, or the scope has ended.

    Thread:
        Call it on the main thread. The drain begins on a daemon thread of its own.

    Example:
        >>> import os, signal
        >>> from concurrent.futures import ThreadPoolExecutor
        >>> from reactive_runtime import Flow
        >>> from reactive_runtime.scopes import on_sigterm, scope
        >>> with ThreadPoolExecutor(1) as pool, scope() as s:
        ...     on_sigterm(s, within=10)
        ...     endless = s.start(Flow.generate(0, lambda n: (n, n + 1)).subscribe_on(pool))
        ...     os.kill(os.getpid(), signal.SIGTERM)  # stands for `docker stop`
        >>> endless.future.done()
        True

    Origin:
        `CoordinatedShutdown` of Akka and Pekko.
    """
    if not isinstance(scope, Scope):
        raise TypeError(f"on_sigterm: a Scope is needed, not {instead(scope)}")
    seconds_of("on_sigterm", "within", within)
    if primitives.current_thread() is not primitives.main_thread():
        raise ValueError("on_sigterm: Python sets handlers of signals on the main thread only: call it there")
    members = members_of(scope)
    handler = _Handler(members, within)
    if refusal := members.at_end(handler.end):
        handler.close()
        raise RuntimeError(f"on_sigterm: {refusal}")
    handler.install()


class _Handler:
    """The handler of SIGTERM for one scope. The main thread owns `over` and `installed`; the rest is set once."""

    def __init__(self, members: Members, within: float) -> None:
        self.members = members
        self.within = within
        self.pid = os.getpid()
        self.over = False
        self.installed = False
        self.former: Any = signal.getsignal(signal.SIGTERM)
        self.reads, self.writes = os.pipe()
        os.set_blocking(self.writes, False)
        self.thread = primitives.Thread(target=self.wait, name="reactive-runtime-sigterm", daemon=True)

    def install(self) -> None:
        """Begin. On the main thread."""
        self.thread.start()
        signal.signal(signal.SIGTERM, self)
        self.installed = True

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """The signal has come: on the main thread, which may hold any lock."""
        ours = not self.over and os.getpid() == self.pid  # a forked child has this pipe too
        if ours:
            self.members.signalled = True
            with suppress(OSError):  # it is full of bytes that say the same; or the scope has ended
                os.write(self.writes, _DRAIN)
        former = self.former
        if callable(former):
            former(number, frame)
        elif not ours and former is not signal.SIG_IGN:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    def wait(self) -> None:
        """Wait for the byte, and drain: on a thread of its own."""
        while os.read(self.reads, 1) == _DRAIN:
            try:
                self.members.drain("on_sigterm", None, self.within, None)
            except Exception as error:
                dropping.error_dropped("a scope could not be drained on SIGTERM", error)
        os.close(self.reads)

    def end(self) -> None:
        """The scope has ended: on the thread that leaves its block."""
        self.over = True  # a handler that was set later may still call this one
        main = primitives.current_thread() is primitives.main_thread()
        current: Any = signal.getsignal(signal.SIGTERM)
        if main and current is self:
            signal.signal(signal.SIGTERM, signal.SIG_DFL if self.former is None else self.former)
        os.write(self.writes, _END)
        self.thread.join()
        if main:  # else the handler may be at work
            os.close(self.writes)

    def close(self) -> None:
        """Release the pipe of a handler that was not installed."""
        os.close(self.reads)
        os.close(self.writes)
