"""On the stack of a thread: the call that blocks, the user's function that makes it, and the operator that calls it."""

from __future__ import annotations

import ast
import linecache
import re
import sysconfig
from collections.abc import Iterator
from contextlib import suppress
from types import FrameType
from typing import Any, Final, NamedTuple

from reactive_runtime._core.drains.combinator import Combinator
from reactive_runtime._core.fusion.step import Step

__all__ = ["Place", "called", "is_ours", "place_of"]

_PACKAGE: Final = __name__.partition(".")[0]
_LIBRARY: Final = sysconfig.get_path("stdlib")
_OPERATORS: Final = re.compile(r"^\w+Operators\.")
_STEP: Final = re.compile(r"\bs(\d+)_")


class Place(NamedTuple):
    """The place of a call that blocks, in a user's code."""

    user: FrameType
    """The innermost frame of a user's function."""
    callee: str
    """The function of the standard library, or of the package, that it called; empty: the call is its own."""
    operator: str
    """In words, the operator that called the user's function, and its line; empty: none did."""


def is_ours(frame: FrameType) -> bool:
    """Whether the code of this frame is the package's."""
    name: str = frame.f_globals.get("__name__", "")
    return name.partition(".")[0] == _PACKAGE or frame.f_code.co_filename.startswith("<fused ")


def _is_library(frame: FrameType) -> bool:
    file = frame.f_code.co_filename
    return file.startswith("<frozen ") or (file.startswith(_LIBRARY) and "site-packages" not in file)


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def place_of(frame: FrameType | None) -> Place | None:
    """The place of a wait that begins in `frame`. None: no code of a user is on the stack."""
    callee = ""
    for at in _outwards(frame):
        if is_ours(at) or _is_library(at):
            callee = _OPERATORS.sub("Flow.", at.f_code.co_qualname)
            if callee == "Thread.start":  # it waits until the new thread has begun
                return None
            continue
        return Place(at, callee, _operator(at.f_back))
    return None


def _operator(frame: FrameType | None) -> str:
    for at in _outwards(frame):
        if not is_ours(at):
            continue
        with suppress(Exception):  # a look from outside: the frame may change
            found = _step_of(at) or _combinator_of(at)
            if found:
                operator, location = found
                return f"`{operator}`" + (f", put into the flow at {location[0]}:{location[1]}" if location else "")
    return ""


def _step_of(frame: FrameType) -> tuple[object, tuple[str, int] | None] | None:
    """The step that a line of a fused loop belongs to, or a step that is called as it is."""
    step = frame.f_locals.get("step")
    if frame.f_code.co_filename.startswith("<fused ") and frame.f_code.co_name == "loop":
        numbers = _STEP.findall(linecache.getline(frame.f_code.co_filename, frame.f_lineno))
        step = frame.f_locals["steps"][int(numbers[0])] if numbers else None
    own = frame.f_locals.get("self")
    step = own if step is None and isinstance(own, Step) else step
    return (step, step.location) if isinstance(step, Step) else None


def _combinator_of(frame: FrameType) -> tuple[object, tuple[str, int] | None] | None:
    own = frame.f_locals.get("self")
    for candidate in (own, getattr(own, "operator", None), getattr(own, "combinator", None)):
        if isinstance(candidate, Combinator):
            return candidate.title, candidate.location
    return None


def called(frame: FrameType) -> list[Any]:
    """The functions that the frame may be inside of, as a call of C: `lock.acquire` also for `with lock`.

    Only names and attributes are looked up, in what the frame has: nothing is called.
    """
    code, last = frame.f_code, frame.f_lasti // 2
    positions = list(code.co_positions())
    if not 0 <= last < len(positions):
        return []
    node = _parsed(code.co_filename, *positions[last])
    if isinstance(node, ast.Call):
        return [_value(node.func, frame)]
    if isinstance(node, ast.With):  # up to Python 3.12 the position is that of the statement
        return [getattr(_value(item.context_expr, frame), "acquire", None) for item in node.items]
    return [getattr(_value(node, frame), "acquire", None)] if isinstance(node, ast.expr) else []


def _parsed(
    file: str, line: int | None, end_line: int | None, column: int | None, end_column: int | None
) -> ast.AST | None:
    """The expression, or the `with` statement, at this position."""
    if line is None or end_line is None or column is None or end_column is None:
        return None
    lines = [linecache.getline(file, number).encode() for number in range(line, end_line + 1)]
    lines[-1] = lines[-1][:end_column]
    lines[0] = b" " * column + lines[0][column:]
    text = b"".join(lines).decode(errors="replace")
    try:
        statement: ast.AST = ast.parse(f"if 1:\n{text}" if column else text).body[0]
    except (SyntaxError, SystemError, ValueError):
        return None
    if column and isinstance(statement, ast.If):
        statement = statement.body[0]
    return statement.value if isinstance(statement, ast.Expr) else statement


def _value(node: ast.expr, frame: FrameType) -> Any:
    if isinstance(node, ast.Name):
        for names in (frame.f_locals, frame.f_globals, frame.f_builtins):
            if node.id in names:
                return names[node.id]
    if isinstance(node, ast.Attribute):
        owner = _value(node.value, frame)
        with suppress(Exception):
            return None if owner is None else getattr(owner, node.attr)
    return None
