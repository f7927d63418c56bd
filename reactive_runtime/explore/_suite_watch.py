"""Finds out what a test does when it runs unexplored: threads, files, and things that no schedule orders.

Functions in place of those that start threads report these, audit events report processes and sockets; a profile
function reports the files, and readings of the clock.
"""

from __future__ import annotations

import _thread
import datetime
import os
import sys
import sysconfig
import threading
import time
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Final, Self

__all__ = ["Watch"]

_PROCESSES: Final = frozenset(
    {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system", "os.exec"}
)
_STARTS: Final = (
    (_thread, "start_new_thread"),
    (_thread, "start_joinable_thread"),
    (threading, "_start_new_thread"),
    (threading, "_start_joinable_thread"),
)
"""Functions that start a thread; a release has some of them. Python 3.11 has no audit event of a start."""
_SOCKETS: Final = frozenset({"socket.__new__"})
_CLOCKS: Final = frozenset(
    {
        time.time, time.time_ns, time.monotonic, time.monotonic_ns, time.perf_counter, time.perf_counter_ns,
        datetime.datetime.now, datetime.datetime.utcnow, datetime.datetime.today, datetime.date.today,
    }
)  # fmt: skip
_LIBRARY: Final = sysconfig.get_path("stdlib") + os.sep
_INSTALLED: Final = os.sep + "site-packages" + os.sep

_watching: Final[list[Watch]] = []
"""The one that watches. The main thread appends and removes; a thread that a test starts only reads."""
_hooked: Final[list[bool]] = []
"""Not empty once the audit hook is there: Python takes none away."""


class Watch:
    """Watches what the process does while the block runs.

    Any thread of the test appends to its lists and sets; the main thread reads them after the block.

    Args:
        file: The file of the test: readings of the clock count there.
        profile: Whether files and readings of the clock are of interest. This makes a test slower.
    """

    def __init__(self, file: str = "", *, profile: bool = False) -> None:
        self.threads: list[str] = []
        """The lines that started threads."""
        self.processes: list[str] = []
        self.sockets: list[str] = []
        self.clocks: list[str] = []
        """The first reading of the clock in the file of the test; two, if two threads read it at once."""
        self.raised: list[str] = []
        """Names of the types of errors that ended threads."""
        self.files: set[str] = set()
        """Of all code that was called."""
        self._file = file
        self._profile = profile
        self._before: tuple[Any, Any] = (None, None)
        self._starts: list[tuple[Any, str, Any]] = []
        self._hook: Any = None

    def __enter__(self) -> Self:
        if not _hooked:
            _hooked.append(True)
            sys.addaudithook(_audited)
        _watching.append(self)
        self._hook = hook = threading.excepthook

        def excepthook(arguments: Any) -> None:
            self.raised.append(arguments.exc_type.__name__)
            hook(arguments)

        threading.excepthook = excepthook
        for owner, name in _STARTS:
            if (begin := getattr(owner, name, None)) is not None:
                self._starts.append((owner, name, begin))
                setattr(owner, name, self._noted(begin))
        if self._profile:
            self._before = (sys.getprofile(), threading.getprofile())
            threading.setprofile(self._profiled)
            sys.setprofile(self._profiled)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._profile:
            sys.setprofile(self._before[0])
            threading.setprofile(self._before[1])
        for owner, name, begin in self._starts:
            setattr(owner, name, begin)
        threading.excepthook = self._hook
        _watching.remove(self)

    def _noted(self, begin: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*arguments: Any, **keywords: Any) -> Any:
            self.threads.append(_place())
            return begin(*arguments, **keywords)

        return noted

    def _profiled(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            self.files.add(frame.f_code.co_filename)
        elif self.clocks or event != "c_call" or frame.f_code.co_filename != self._file:
            return
        elif argument in _CLOCKS:
            self.clocks.append(f"{argument.__name__} at {os.path.basename(self._file)}:{frame.f_lineno}")

    def heard(self, event: str, arguments: tuple[Any, ...]) -> None:
        """An audit event, on the thread that raises it."""
        if event in _PROCESSES:
            self.processes.append(_place())
        elif event in _SOCKETS and not _is_of_event_loop():
            self.sockets.append(_place())


def _audited(event: str, arguments: tuple[Any, ...]) -> None:
    for watch in _watching:
        watch.heard(event, arguments)


def _is_of_event_loop() -> bool:
    """True if asyncio makes the socket for itself: the explorer's loop has none."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        if frame.f_code.co_name == "_make_self_pipe":
            return True
        frame = frame.f_back
    return False


def _place() -> str:
    """The innermost line that is not of the standard library, nor of this module."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if name != __file__ and (not name.startswith(_LIBRARY) or _INSTALLED in name) and not name.startswith("<"):
            return f"{os.path.basename(name)}:{frame.f_lineno}"
        frame = frame.f_back
    return "the standard library"
