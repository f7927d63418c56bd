"""Finds for each thread the drain that it runs, the user's function that it is in, and the lock that it waits for.

The frames of other threads run on while this reads them. Of a frame of the package only `self` is read, of a user's
frame only the names in the expression of a lock, and only once the thread has stood still.
"""

from __future__ import annotations

import inspect
import linecache
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

from reactive_runtime._core.drains.drain import Drain
from reactive_runtime._core.drains.drain_context import DrainContext
from reactive_runtime._core.failures.assembly import _STEP, _is_ours
from reactive_runtime._core.runtime import primitives
from reactive_runtime._core.sources.task_source import TaskSource
from reactive_runtime._operators.concurrent.by_key import _Worker
from reactive_runtime._operators.concurrent.calling import _Calls
from reactive_runtime._operators.sinks.loops import _Puller
from reactive_runtime._operators.sinks.queueing import Putting
from reactive_runtime._operators.sinks.waiting import Wait
from reactive_runtime._support.thread_frames import thread_frames

__all__ = ["ThreadLook", "look_at_threads"]

OWNERS: Final[frozenset[CodeType]] = frozenset(
    method.__code__
    for method in (
        Drain.run,
        DrainContext._visit,
        TaskSource._work,
        _Calls._work,
        _Worker.run,
        _Puller.next_if_demanded,
        _Puller.close,
        Putting.on_next,
        Putting._put_end,
    )
)
"""The methods whose `self` a thread works for."""

SINKS: Final[frozenset[CodeType]] = frozenset((Wait.a_moment.__code__,))
LOCKS: Final = (type(primitives.Lock()), type(primitives.RLock()))
_THREADING: Final = primitives.Thread.run.__code__.co_filename
_WAITING: Final = (
    _THREADING,
    str(Path(_THREADING).with_name("queue.py")),
    primitives.Future.result.__code__.co_filename,
)
"""The files of the standard library in which a thread waits for another one."""

_POOL: Final = primitives.ThreadPoolExecutor.submit.__code__.co_filename
_NAMES: Final = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_OWNER: Final = re.compile(r"owner=(\d+)")
DEPTH: Final = 1000
"""Frames of a thread that are read."""


@dataclass(slots=True)
class ThreadLook:
    """One thread at one moment."""

    ident: int
    name: str
    frame: FrameType | None
    """The innermost frame."""
    called: FrameType | None = None
    """The function that the flow has called; None: the thread is in the package."""
    loop: FrameType | None = None
    """The frame of the package that has called it."""
    works_for: list[Any] = field(default_factory=list)
    """Drains and operators, the innermost first."""
    waits_in_sink: bool = False
    """It waits in `block`, `run`, `for_each` or a `for` loop."""
    seconds: float = 0.0
    """For how long it has been in this call. Set by the history."""
    queued_by: Putting | None = None
    """It puts into the queue of a `to_queue`."""

    def mark(self) -> tuple[Any, ...]:
        """A value that stays the same while the thread does not move."""
        frame = self.frame
        return (0,) if frame is None else (id(frame), id(frame.f_code), frame.f_lasti)

    def call(self) -> tuple[Any, ...]:
        """A value that stays the same while the thread is in one call of a user's function, or in one place here."""
        called = self.called
        return (*map(id, self.works_for), *(self.mark() if called is None else (id(called), id(called.f_code))))

    def place(self) -> str:
        """A text: the function that the flow has called, and its current line."""
        frame = self.called or self.frame
        if frame is None:
            return "a thread that has ended"
        text = f"{frame.f_code.co_name} at {frame.f_code.co_filename}:{frame.f_lineno}"
        inner = self.frame
        if inner is not None and inner is not frame:
            text += f" (now in {inner.f_code.co_name} at {inner.f_code.co_filename}:{inner.f_lineno})"
        return text

    def operator(self, steps: Any) -> str:
        """The operator whose function the thread is in; the fused loop that called the function knows it."""
        loop = self.loop
        if loop is None:
            return ""
        if not loop.f_code.co_filename.startswith("<fused "):
            return next((str(step) for step in steps[:1] if len(steps) == 1), "")
        numbers = _STEP.findall(linecache.getline(loop.f_code.co_filename, loop.f_lineno))
        number = int(numbers[0]) if numbers else -1
        return str(steps[number]) if 0 <= number < len(steps) else ""

    def lock(self) -> str | None:
        """A text: the lock that the thread waits for. None: it is not inside `acquire`, or the lock is free."""
        frame = self.frame
        if frame is None:
            return None
        if frame.f_code.co_filename == _THREADING:
            while frame.f_back is not None and frame.f_back.f_code.co_filename in _WAITING:
                frame = frame.f_back
            return f"{_qualified(frame.f_code)} of the standard library to return"
        name = _expression(frame).partition(".acquire(")[0].removeprefix("with ").strip()
        if not _NAMES.fullmatch(name):
            return None
        lock = _value(frame, name.split("."))
        if not isinstance(lock, LOCKS):
            return None
        text = repr(lock)
        if not text.startswith("<locked"):
            return None
        owner = _OWNER.search(text)
        held = "" if owner is None else f", which the thread {_name_of(int(owner[1]))} holds"
        return f"the lock `{name}`{held}"


def look_at_threads() -> dict[int, ThreadLook]:
    """Every thread that runs Python, by its identity, except the one that asks."""
    me = primitives.get_ident()
    frames = thread_frames()
    looks = {}
    for ident, frame in frames.items():
        if ident != me:
            looks[ident] = _look(ident, frame)
    return looks


def _look(ident: int, innermost: FrameType) -> ThreadLook:
    look = ThreadLook(ident, _name_of(ident), innermost)
    frames = list(_outwards(innermost))
    at = 0
    while at < len(frames) and frames[at].f_code.co_filename == _THREADING:
        at += 1
    look.waits_in_sink = at < len(frames) and frames[at].f_code in SINKS
    if not look.waits_in_sink:
        at = 0
    while look.waits_in_sink and at < len(frames) and _is_ours(frames[at]):
        at += 1
    begin = at
    while at < len(frames) and not _is_ours(frames[at]):
        at += 1
    if begin < at < len(frames):
        look.called, look.loop = frames[at - 1], frames[at]
    elif begin < at and look.waits_in_sink:
        look.called = frames[begin]
    elif at == len(frames):  # the task of a pool that is no flow's
        task = next((n for n, frame in enumerate(frames) if frame.f_code.co_filename == _POOL), 0)
        look.called = frames[task - 1] if task else None
    for frame in frames[at:]:
        if frame.f_code in OWNERS:
            found = frame.f_locals.get("self")
            if isinstance(found, Putting):
                look.queued_by = look.queued_by or found
            elif isinstance(found, _Worker):
                look.works_for.append(found._by_key)
            elif found is not None:
                look.works_for.append(found)
    return look


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    for _ in range(DEPTH):
        if frame is None:
            return
        yield frame
        frame = frame.f_back


def _name_of(ident: int) -> str:
    # Not `enumerate`: that takes a lock which a stuck thread may hold.
    threads: dict[int, Any] = getattr(sys.modules.get("threading"), "_active", {})
    thread = threads.get(ident)
    return str(ident) if thread is None else str(thread._name)


def _expression(frame: FrameType) -> str:
    """The source text of the current instruction of a frame, as far as it is on the first line."""
    at = frame.f_lasti // 2
    line, end_line, column, end_column = next(islice(frame.f_code.co_positions(), at, None), (None,) * 4)
    if line is None or column is None:
        return ""
    text = linecache.getline(frame.f_code.co_filename, line).encode()
    # Python 3.11 names all of a `with` statement, and later versions what stands behind the word.
    part = text[column : end_column if line == end_line else None].decode(errors="replace")
    return part.partition(":")[0].strip() if part.startswith("with ") else part.strip()


def _qualified(code: CodeType) -> str:
    return f"{Path(code.co_filename).stem}.{code.co_qualname}"


def _value(frame: FrameType, names: list[str]) -> Any:
    """The value of a dotted name in a frame. It calls no property, and no `__getattr__`."""
    try:
        variables = frame.f_locals
        value = variables[names[0]] if names[0] in variables else frame.f_globals[names[0]]
        for name in names[1:]:
            found = inspect.getattr_static(value, name)
            value = found.__get__(value) if inspect.ismemberdescriptor(found) else found
    except (AttributeError, KeyError):
        return None
    return value
