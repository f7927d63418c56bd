"""Checks in the functions of the standard library that block, while a detector is at work."""

from __future__ import annotations

import builtins
import functools
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, Final

from reactive_runtime._core.runtime import primitives

__all__ = ["patched"]

Check = Callable[[str], object]
"""Raises where the thread must not block. Its argument says what was called."""

Blocks = Callable[..., bool]
"""Whether a call with these arguments blocks."""


def _seconds(_: object, timeout: float | None = None, *__: Any, **___: Any) -> bool:
    return timeout is None or timeout > 0


def _sleeps(seconds: float) -> bool:
    return seconds > 0


def _joins(thread: Any, timeout: float | None = None) -> bool:
    return bool(thread.is_alive()) and (timeout is None or timeout > 0)


def _runs(process: Any, *arguments: Any, **named: Any) -> bool:
    timeout = named.get("timeout", arguments[-1] if arguments else None)
    return bool(process.poll() is None and (timeout is None or timeout > 0))


def _reads(sock: Any, *_: Any, **__: Any) -> bool:
    return bool(sock.gettimeout() != 0)


def _always(*_: Any, **__: Any) -> bool:
    return True


def _points() -> list[tuple[Any, str, str, Blocks]]:
    """The functions to patch: the owner, the name, the words for it, and when it blocks."""
    return [
        (sys.modules["time"], "sleep", "time.sleep", _sleeps),
        (primitives.Condition, "wait", "a condition's wait", _seconds),
        (primitives.Thread, "join", "Thread.join", _joins),
        (subprocess.Popen, "wait", "Popen.wait", _runs),
        (subprocess.Popen, "communicate", "Popen.communicate", _runs),
        (builtins, "input", "input", _always),
        *((socket.socket, name, f"socket.{name}", _reads) for name in _READS),
    ]


_READS: Final = ("recv", "recv_into", "recvfrom", "recvfrom_into", "recvmsg", "accept", "connect")


def patched(check: Check) -> ExitStack:
    """Put the checks in; closing what this returns takes them out."""
    stack = ExitStack()
    for owner, name, what, blocks in _points():
        _patch(owner, name, _checked(getattr(owner, name), what, blocks, check), stack)
    return stack


def _patch(owner: Any, name: str, checked: Any, stack: ExitStack) -> None:
    own = vars(owner).get(name)  # None: a class below has it

    def restore() -> None:
        if vars(owner).get(name) is not checked:  # another program has put its own in since, over this one
            return
        if own is None:
            delattr(owner, name)
        else:
            setattr(owner, name, own)

    setattr(owner, name, checked)
    stack.callback(restore)


def _checked(function: Any, what: str, blocks: Blocks, check: Check) -> Any:
    @functools.wraps(function)
    def checked(*arguments: Any, **named: Any) -> Any:
        try:
            waits = blocks(*arguments, **named)
        except Exception:  # the function itself refuses such arguments
            waits = False
        if waits:
            check(what)
        return function(*arguments, **named)

    return checked
