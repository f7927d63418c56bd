"""Races on purpose: a call is held at each of its steps in turn, while another one runs.

A race that is lost once in a million runs is lost every time if the thread is stopped in the right place. So a
call under test runs on a thread that is traced, instruction by instruction, and is held before the n-th one that
touches an object or calls something, for n = 1, 2, 3, … to its last. What it does with locks is its own affair: a
thread that is held inside of one makes the other wait, for as long as the kit has patience, and goes on.

Only Python code outside the standard library and outside of the kit is stepped through. A publisher in C, or
behind a bridge, has no steps, and is raced by chance.
"""

from __future__ import annotations

import dis
import os
import sys
import threading
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

__all__ = ["HeldCall"]

_TOUCHES = (
    "LOAD_ATTR", "STORE_ATTR", "DELETE_ATTR", "LOAD_METHOD", "BINARY_SUBSCR", "STORE_SUBSCR", "DELETE_SUBSCR", "CALL",
    "LOAD_DEREF", "STORE_DEREF", "LOAD_GLOBAL", "STORE_GLOBAL", "BEFORE_WITH",
)  # fmt: skip
_LIBRARY = os.path.dirname(os.__file__) + os.sep
_SITE = ("site-packages", "dist-packages")
_KIT = os.path.dirname(__file__) + os.sep


class HeldCall:
    """`function()` on a thread of its own, held before step `at` (0 is the first) until it is let go; None: never.

    `wake` is called when it is held, and when it has come to its end.
    """

    def __init__(self, function: Callable[[], object], at: int | None, wake: Callable[[], None], name: str) -> None:
        self._function = function
        self._at = at
        self._wake = wake
        self._step = 0  # the traced thread's
        self._codes: dict[CodeType, frozenset[int]] = {}  # the traced thread's
        self._go = threading.Event()
        # Written by the traced thread before it calls `wake`, read by who was woken:
        self.reached = False
        self.ended = False
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Set it going."""
        self._thread.start()

    def let_go(self) -> None:
        """Go on; also where it is not held yet, or was never started."""
        self._go.set()

    @property
    def thread(self) -> int | None:
        """The ident of its thread, once it has started."""
        return self._thread.ident

    def _run(self) -> None:
        if self._at is not None:
            sys.settrace(self._enter)
        try:
            self._function()
        except BaseException as error:
            self.error = error
        finally:
            sys.settrace(None)
            self.ended = True
            self._wake()

    def _enter(self, frame: FrameType, event: str, argument: Any) -> Any:
        file = frame.f_code.co_filename
        if file.startswith(_LIBRARY) and not any(part in file for part in _SITE):
            return None
        outer: FrameType | None = frame
        while outer is not None and outer.f_code is not HeldCall._run.__code__:
            if outer.f_code.co_filename.startswith(_KIT):
                return None  # the kit's own signals, and whatever they call: they hold the kit's lock
            outer = outer.f_back
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        return self._trace

    def _trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "opcode" and frame.f_lasti in self._touching(frame.f_code):
            if self._step == self._at:
                self.reached = True
                self._wake()
                self._go.wait()
            self._step += 1
        return self._trace

    def _touching(self, code: CodeType) -> frozenset[int]:
        offsets = self._codes.get(code)
        if offsets is None:
            instructions = dis.get_instructions(code)
            offsets = frozenset(it.offset for it in instructions if it.opname.startswith(_TOUCHES))
            self._codes[code] = offsets
        return offsets
