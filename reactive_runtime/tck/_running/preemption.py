"""Races on purpose: the kit holds a call at each of its steps in turn, while another call runs.

A thread that loses a race once in a million runs loses it every time if the kit stops it in the right place. So the
kit traces the thread of a call, instruction by instruction, and holds it before the n-th one that touches an object or
calls something, for n = 0, 1, 2, … to its last. If the held thread has a lock, the other one waits for it, up to a
time limit; then the held thread goes on until it has released the lock.

The kit steps only through Python code outside of the standard library and of the kit. A publisher in C, or behind a
bridge, has no steps: the kit races it by chance.
"""

from __future__ import annotations

import atexit
import contextlib
import dis
import inspect
import os
import sys
import threading
from collections.abc import Callable, Iterator
from functools import cache
from types import CodeType, FrameType
from typing import Any

from reactive_runtime.tck._running.failures import COROUTINE, KIT, described

__all__ = ["NEVER", "HeldCall"]

NEVER = -1
"""The step of a call that the kit does not hold."""

_TOUCHES = (
    "LOAD_ATTR", "STORE_ATTR", "DELETE_ATTR", "LOAD_METHOD", "BINARY_SUBSCR", "STORE_SUBSCR", "DELETE_SUBSCR", "CALL",
    "LOAD_DEREF", "STORE_DEREF", "LOAD_GLOBAL", "STORE_GLOBAL", "BEFORE_WITH",
)  # fmt: skip
Before = Callable[[FrameType | None], None]
"""The hook of a traced thread: called with its frame before an instruction that touches something."""

_LIBRARY = os.path.dirname(os.__file__) + os.sep
_SITE = ("site-packages", "dist-packages")


class HeldCall:
    """`function()` on a thread of its own, held before step `at` (0 is the first) until `release`, or `NEVER`.

    It calls `wake` when it is held, and when it has ended.
    """

    def __init__(self, function: Callable[[], object], at: int, wake: Callable[[], None], name: str) -> None:
        self._function = function
        self._wake = wake
        self._step = 0  # the traced thread's
        # The thread writes them, and others look now and then:
        self.begun = False
        self.inside: CodeType | None = None
        """The function of its last step; None if it has had none, or is never held."""
        # Written before it starts, and while it is held:
        self.at = at
        self._go = threading.Event()
        self._left = False  # written by the thread that races; its own reads it when it begins to trace its steps
        # Written by the traced thread before it calls `wake`, read by the thread that was woken; `reached` also by
        # `advance`, while it is held:
        self.reached: bool = False
        self.ended: bool = False
        self.wrong: str | None = None
        """How it ended, if it did not return normally."""
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Set it going."""
        self._thread.start()

    def advance(self, steps: int) -> None:
        """Go on by so many steps from the one where it is held; then it is held again."""
        go, self._go = self._go, threading.Event()
        self.reached = False
        self.at += steps
        go.set()

    def release(self) -> None:
        """Go on; also if it is not held yet, or was never started."""
        self._go.set()

    def leave(self) -> None:
        """Hold it never again, and trace it no more: it may never end, and a trace slows down other threads."""
        self._left = True
        _watch.leave(self._before)

    @property
    def steps(self) -> int:
        """The number of its steps, once it has ended."""
        return self._step

    @property
    def thread(self) -> int | None:
        """The ident of its thread, once it has started."""
        return self._thread.ident

    def _run(self) -> None:
        self.begun = True
        try:
            with contextlib.nullcontext() if self.at == NEVER else _watch.stepping(self._before):
                if self._left:
                    _watch.leave(self._before)
                result = self._function()
            if inspect.iscoroutine(result):
                result.close()
                self.wrong = COROUTINE
        except BaseException as error:
            self.wrong = f"raised {described(error)}"
        finally:
            self.ended = True
            self._wake()

    def _before(self, frame: FrameType | None) -> None:
        """The hook on the traced thread."""
        inside = None if frame is None else frame.f_code
        while frame is not None and frame.f_code is not HeldCall._run.__code__:
            if frame.f_code.co_filename.startswith(KIT):
                return  # the kit's own signals, and whatever they call: they hold the kit's lock
            frame = frame.f_back
        self.inside = inside
        if self._step == self.at:
            go = self._go
            self.reached = True
            self._wake()
            go.wait()
        self._step += 1


@cache
def _touching(code: CodeType) -> frozenset[int]:
    """The offsets of the instructions to step through; none if the code is not under test."""
    file = code.co_filename
    if file.startswith(KIT) or (file.startswith(_LIBRARY) and not any(part in file for part in _SITE)):
        return frozenset()
    return frozenset(item.offset for item in dis.get_instructions(code) if item.opname.startswith(_TOUCHES))


if sys.version_info >= (3, 12):  # there sys.settrace sees the instructions of a code only from its second call on
    _TOOLS = (4, 3, 5)  # of the six that may watch at a time: none that a debugger, profiler or coverage takes

    class _Watch:
        """One tool of `sys.monitoring` for all traced threads: a process has six tools.

        While it is in use, each thread of the process calls it at each instruction, and is ten times as slow.
        """

        def __init__(self) -> None:
            self._own = threading.local()  # `before`: of each thread, which alone reads it
            self._lock = threading.Lock()
            self._watched: set[Before] = set()  # _lock; of the traced threads
            self._tool: int | None = None  # _lock

        @contextlib.contextmanager
        def stepping(self, before: Before) -> Iterator[None]:
            """Inside, call `before` on this thread, ahead of each instruction that touches something."""
            self._begin(before)
            self._own.before = before
            try:
                yield
            finally:
                del self._own.before
                self.leave(before)

        def _begin(self, before: Before) -> None:
            """Take a tool, unless other users have all of them: then the race is left to chance."""
            with self._lock:
                if not self._watched:
                    self._tool = self._taken()
                if self._tool is not None:
                    self._watched.add(before)

        def leave(self, before: Before) -> None:
            """That thread needs the tool no more. Any thread may call it, also twice."""
            with self._lock:
                self._watched.discard(before)
                if not self._watched:
                    self._free()

        def stop(self) -> None:
            """At the end of the process: a thread that is left behind goes on while Python clears its modules."""
            with self._lock:
                self._free()

        def _free(self) -> None:
            """Give the tool back. With the lock."""
            if self._tool is not None:
                sys.monitoring.set_events(self._tool, sys.monitoring.events.NO_EVENTS)
                sys.monitoring.register_callback(self._tool, sys.monitoring.events.INSTRUCTION, None)
                sys.monitoring.free_tool_id(self._tool)
                self._tool = None

        def _taken(self) -> int | None:
            for tool in _TOOLS:
                with contextlib.suppress(ValueError):
                    sys.monitoring.use_tool_id(tool, "reactive_runtime.tck")
                    sys.monitoring.register_callback(tool, sys.monitoring.events.INSTRUCTION, self._instruction)
                    sys.monitoring.set_events(tool, sys.monitoring.events.INSTRUCTION)
                    return tool
            return None

        def _instruction(self, code: CodeType, offset: int) -> Any:
            if offset not in _touching(code):
                return sys.monitoring.DISABLE
            before = getattr(self._own, "before", None)
            if before is not None:
                before(sys._getframe(1))
            return None

    _watch = _Watch()
    atexit.register(_watch.stop)

else:

    class _Watch:
        """A trace function for each traced thread; the other threads stay quick."""

        @contextlib.contextmanager
        def stepping(self, before: Before) -> Iterator[None]:
            """Inside, call `before` on this thread, ahead of each instruction that touches something."""

            def enter(frame: FrameType, event: str, argument: Any) -> Any:
                if not _touching(frame.f_code):
                    return None
                frame.f_trace_opcodes, frame.f_trace_lines = True, False
                return step

            def step(frame: FrameType, event: str, argument: Any) -> Any:
                if event == "opcode" and frame.f_lasti in _touching(frame.f_code):
                    before(frame)
                return step

            previous = sys.gettrace()
            sys.settrace(enter)
            try:
                yield
            finally:
                sys.settrace(previous)

        def leave(self, before: Before) -> None:
            """Do nothing: the trace ends with the thread."""

    _watch = _Watch()
