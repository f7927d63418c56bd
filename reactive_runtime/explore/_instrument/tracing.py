"""Makes points of lines, or of instructions, by watching the interpreter.

For programs whose accesses can't be made calls (`rewriting`), and to see what happens between them. On CPython 3.11 a
thread is traced by `sys.settrace`; from 3.12 on `sys.monitoring` serves, since there `settrace` misses the instructions
of a function's first call.

An instruction that touches its own frame only, a local name, a constant, a jump, is no point: no other thread sees it.
"""

from __future__ import annotations

import contextlib
import dis
import sys
from collections.abc import Callable, Iterable
from functools import cache
from types import CodeType, FrameType, FunctionType
from typing import Any, Final

from reactive_runtime.errors import ExploreError
from reactive_runtime.explore._schedule.carriers import real_ident
from reactive_runtime.explore._schedule.scheduler import Scheduler

__all__ = ["Tracer"]

_ON_THE_FRAME: Final = (
    "LOAD_FAST", "STORE_FAST", "DELETE_FAST", "LOAD_CONST", "LOAD_SMALL", "LOAD_CLOSURE", "RESUME", "POP_", "PUSH_",
    "COPY", "SWAP", "NOP", "CACHE", "JUMP", "RETURN", "PRECALL", "KW_NAMES", "MAKE_", "EXTENDED_ARG", "BUILD_TUPLE",
    "END_", "SETUP", "CHECK_", "RERAISE", "IS_OP", "UNARY_NOT", "TO_BOOL", "NOT_TAKEN", "LOAD_ASSERTION",
    "INTERPRETER_EXIT",
)  # fmt: skip


@cache
def _touching(code: CodeType) -> dict[int, str]:
    """The instructions that can touch what is shared, in words, by their offset."""
    return {
        item.offset: f"{item.opname} {item.argrepr}".strip()
        for item in dis.get_instructions(code)
        if not item.opname.startswith(_ON_THE_FRAME)
    }


class Tracer:
    """Stops threads before each line or instruction of `files`, and of the code of `functions`, which need no file."""

    def __init__(
        self, scheduler: Scheduler, files: Iterable[str], functions: Iterable[FunctionType], points: str
    ) -> None:
        self._scheduler = scheduler
        self._files = frozenset(files)
        self._codes: dict[int, CodeType] = {}  # by identity: equal codes of two functions are not the same
        stack = [function.__code__ for function in functions]
        while stack:
            code = stack.pop()
            self._codes[id(code)] = code
            stack.extend(constant for constant in code.co_consts if isinstance(constant, CodeType))
        self._lines = points == "line"
        self._tool: int | None = None

    def _watched(self, code: CodeType) -> bool:
        return code.co_filename in self._files or id(code) in self._codes

    def _point(self, what: str) -> None:
        scheduler = self._scheduler
        me = scheduler.current
        if not scheduler.watching or scheduler.quiet or real_ident() != me.ident:
            return
        me.location, me.writes, me.what = None, True, what
        scheduler.step(me)

    if sys.version_info >= (3, 12):
        _TOOLS = (4, 3, 5)  # of the six that may watch at a time: none that a debugger, profiler or coverage takes

        def __enter__(self) -> Tracer:
            monitoring = sys.monitoring
            for tool in self._TOOLS:
                with contextlib.suppress(ValueError):
                    monitoring.use_tool_id(tool, "reactive_runtime.explore")
                    self._tool = tool
                    break
            if self._tool is None:
                raise ExploreError("points at lines and instructions need a tool of sys.monitoring, and all are taken")
            event = monitoring.events.LINE if self._lines else monitoring.events.INSTRUCTION
            monitoring.register_callback(self._tool, event, self._line if self._lines else self._instruction)
            monitoring.restart_events()
            monitoring.set_events(self._tool, event)
            return self

        def __exit__(self, *_: object) -> None:
            monitoring = sys.monitoring
            assert self._tool is not None
            monitoring.set_events(self._tool, monitoring.events.NO_EVENTS)
            event = monitoring.events.LINE if self._lines else monitoring.events.INSTRUCTION
            monitoring.register_callback(self._tool, event, None)
            monitoring.free_tool_id(self._tool)

        def _line(self, code: CodeType, line: int) -> Any:
            if not self._watched(code):
                return sys.monitoring.DISABLE
            self._point("line")
            return None

        def _instruction(self, code: CodeType, offset: int) -> Any:
            what = _touching(code).get(offset) if self._watched(code) else None
            if what is None:
                return sys.monitoring.DISABLE
            self._point(what)
            return None

        def traced(self, target: Callable[[], object]) -> Callable[[], object]:
            """`target`, for a thread that is watched."""
            return target

    else:

        def __enter__(self) -> Tracer:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def traced(self, target: Callable[[], object]) -> Callable[[], object]:
            """`target`, for a thread that is watched."""
            watched, point = self._watched, self._point

            def enter(frame: FrameType, event: str, argument: Any) -> Any:
                if not watched(frame.f_code):
                    return None
                if self._lines:
                    return line
                frame.f_trace_opcodes, frame.f_trace_lines = True, False
                return instruction

            def line(frame: FrameType, event: str, argument: Any) -> Any:
                if event == "line":
                    point("line")
                return line

            def instruction(frame: FrameType, event: str, argument: Any) -> Any:
                if event == "opcode" and (what := _touching(frame.f_code).get(frame.f_lasti)) is not None:
                    point(what)
                return instruction

            def run() -> None:
                before = sys.gettrace()
                sys.settrace(enter)
                try:
                    target()
                finally:
                    sys.settrace(before)

            return run
