"""Writes down one run, step by step: who did what, where in the source, and what became of the values."""

from __future__ import annotations

import linecache
import sys
import zlib
from dataclasses import dataclass, field
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

from reactive_runtime import atomics
from reactive_runtime.explore.machine import Logical, Machine
from reactive_runtime.explore.rewriting import SITES

if TYPE_CHECKING:
    from reactive_runtime.explore.tokens import Token

__all__ = ["Details", "Step"]

_ATOMICS: Final = atomics.__file__
_LONGEST: Final = 40
"""Characters that are shown of a value."""


@dataclass(slots=True)
class Step:
    """One step of a schedule."""

    thread: int
    name: str
    what: str
    """The operation: `acquire`, `load self.demand`, a signal."""
    filename: str
    line: int
    source: str
    """The line, as it stands there."""
    function: str
    value: str
    """What is read, or what it was and is."""
    preempts: bool
    """Whether the thread of the step before could have gone on."""
    print: int
    """A byte, by which a replay knows the step again."""
    location: str = ""
    after: str = field(default="", repr=False)


class Details:
    """Told by the machine of each step, on the thread that is about to do it."""

    def __init__(self, machine: Machine, files: frozenset[str], token: Token | None = None) -> None:
        self._machine = machine
        self._files = files
        self._token = token
        self.steps: list[Step] = []
        self.diverged: str | None = None
        """The first step that was another than the token says."""
        self._about: tuple[Any, str, bool, Any] | None = None
        self._pending: tuple[Step, Any, str, str] | None = None

    def about(self, me: Logical, it: Any, name: str, writes: bool, value: Any) -> None:
        """Before a step at a load or a store: what it is about."""
        me.frame = (it, name, writes, value)

    def say(self, me: Logical, text: str) -> None:
        """Before a step: what it is, in words."""
        me.frame = text

    def step(self, me: Logical) -> None:
        """`me` does its step now."""
        self._settle()
        about, me.frame = me.frame, None
        what = me.what
        site = SITES[what] if isinstance(what, int) else None
        frame = self._frame(sys._getframe(2))
        atomic = self._atomic(sys._getframe(2))
        if site is not None:
            filename, line, text = site.filename, site.line, site.what
        elif frame is not None:
            filename, line, text = frame.f_code.co_filename, frame.f_lineno, str(what)
        else:
            filename, line, text = "", 0, str(what)
        function = "" if frame is None else frame.f_code.co_qualname
        value = ""
        held: tuple[Any, str, str] | None = None
        if atomic is not None:
            it, method = atomic
            before = _text(it._value)
            text, value = method, before
            held = (it, "_value", before)
        elif isinstance(about, str):
            text = about
        elif isinstance(about, tuple):
            it, name, writes, new = about
            if name == "next":
                value = ""
            elif name and it is not None and not writes:
                value = _text(getattr(it, name, "(unset)"))
            elif name and it is not None:
                value = f"{_text(getattr(it, name, '(unset)'))} → {_text(new)}"
            elif it is not None:
                value = _text(it)
                held = (it, "", value)
        index = len(self.steps)
        key = f"{me.index}|{text}|{function}|{line}"
        step = Step(
            me.index, me.name, text, filename, line, linecache.getline(filename, line).strip(), function, value,
            self._preempts(me), zlib.crc32(key.encode()) & 0xFF,
        )  # fmt: skip
        if self._token is not None and self.diverged is None:
            prints = self._token.prints
            if index >= len(prints) or prints[index] != step.print:
                self.diverged = f"step {index + 1} is {me.name}: {text}, line {line}, and was another"
        self.steps.append(step)
        if held is not None:
            self._pending = (step, *held)

    def _preempts(self, me: Logical) -> bool:
        if not self.steps:
            return False
        before = self.steps[-1].thread
        if before == me.index:
            return False
        return any(it.index == before for it in self._machine.ready)

    def _settle(self) -> None:
        """What became of the value of the step before."""
        if self._pending is None:
            return
        step, it, name, before = self._pending
        self._pending = None
        after = _text(getattr(it, name) if name else it)
        step.value = before if after == before else f"{before} → {after}"

    def finish(self) -> None:
        """The run has ended."""
        self._settle()

    def _frame(self, frame: FrameType | None) -> FrameType | None:
        """The innermost frame of the modules that are looked at."""
        while frame is not None:
            if frame.f_code.co_filename in self._files:
                return frame
            frame = frame.f_back
        return None

    @staticmethod
    def _atomic(frame: FrameType | None) -> tuple[Any, str] | None:
        """The atomic whose method this step is inside of, and the call."""
        for _ in range(4):
            if frame is None:
                return None
            if frame.f_code.co_filename == _ATOMICS:
                names = frame.f_code.co_varnames[1 : frame.f_code.co_argcount]
                arguments = ", ".join(_text(frame.f_locals.get(it)) for it in names)
                return frame.f_locals["self"], f"{frame.f_code.co_name}({arguments})"
            frame = frame.f_back
        return None


def _text(value: Any) -> str:
    """A value, short, and without the addresses that differ from run to run."""
    if isinstance(value, bool | int | float | str | bytes | type(None) | list | tuple | dict | set | frozenset):
        text = repr(value)
        if " at 0x" in text:
            text = f"{type(value).__name__} of {len(value)}" if hasattr(value, "__len__") else type(value).__name__
    elif isinstance(value, atomics.AtomicReference):
        text = _text(value._value)
    else:
        text = type(value).__name__
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
