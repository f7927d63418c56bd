"""Writes down one run, step by step: which thread did what, where in the source, and what became of the values."""

from __future__ import annotations

import linecache
import sys
import zlib
from collections import Counter, deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from types import (
    BuiltinMethodType,
    CodeType,
    FrameType,
    FunctionType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import TYPE_CHECKING, Any, Final

from reactive_runtime import atomics
from reactive_runtime._spec import MAX_DEMAND
from reactive_runtime._support.thread_frames import thread_frames
from reactive_runtime.explore._instrument.sites import SITES
from reactive_runtime.explore._schedule.scheduler import Scheduler
from reactive_runtime.explore._schedule.task import WAITING, Task
from reactive_runtime.explore._shared_state.kinds import attributes_of
from reactive_runtime.explore._shared_state.locations import reference_to

if TYPE_CHECKING:
    from reactive_runtime.explore._schedule.tokens import Token

__all__ = ["Step", "StepLog"]

_ATOMICS: Final = atomics.__file__
UNSET: Final = object()
_PERIOD: Final = 1_000
"""Steps that may go by before a run that repeats itself begins again."""
_SURE: Final = 60
"""Steps in which a period has to show, where there are so many; and different ones in a run that repeats itself."""
_OFTEN: Final = 10
"""How often each step comes in the last ones of such a run."""
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
    point: bool = True
    """Whether it was a point of choice; else it is shown for its value only."""
    waits: bool = False
    """Whether the thread never came back from it."""
    site: int = -1
    """Where the access stands, where it is one."""
    location: tuple[int, str] | None = field(default=None, repr=False)
    writes: bool = field(default=False, repr=False)
    turn: int = field(default=0, repr=False)
    """The thread that had the turn, as schedules name it: that of a loop, where `thread` is one of its tasks."""


class StepLog:
    """Told by the scheduler of each step, on the thread that is about to do it."""

    def __init__(
        self, scheduler: Scheduler, files: frozenset[str], codes: Collection[CodeType] = (), token: Token | None = None
    ) -> None:
        self._scheduler = scheduler
        self._files = files
        self._codes = codes  # such as have no file
        self._token = token
        self.steps: list[Step] = []
        self.diverged: str | None = None
        """The first step that was another than the token says."""
        self._count = 0
        self._last = 0  # the thread of the step before
        self._numbered: dict[int, tuple[Any, int]] = {}  # by id: what gives it, and its number in the run
        self._given = 0  # the last such number
        self._numbers: dict[str, dict[int, int]] = {}  # objects without a value of their own, by type
        self._pending: tuple[Step, Any, str, str] | None = None
        self.offered: Mapping[int, FrameType | None] = {}
        """Where the tasks of an event loop stood when it asked last, by number."""
        self._inside: dict[int, Task] = {}  # the task that an event loop is in, by the number of its thread

    def about(self, me: Task, item: Any, name: str, writes: bool, value: Any) -> None:
        """Before a step at a load or a store: what it is about."""
        me.said = (item, name, writes, value)

    def say(self, me: Task, text: str) -> None:
        """Before a step: what it is, in words."""
        me.said = text

    def step(self, me: Task, turn: int | None = None) -> None:
        """`me` does its step now; `turn`: its name in the schedule, where that is not the index of `me`."""
        self.settle()
        about, me.said = me.said, None
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
            item, method = atomic
            before = self._text(item._value)
            text, value = method, before
            held = (item, "_value", before)
        elif isinstance(about, str):
            text = about
        elif isinstance(about, tuple) and about[1] != "next":
            item, name, writes, new = about
            if name and item is not None and not writes:
                value = self._held(item, name)
            elif name and item is not None:
                value = self._change(item, name, new)
            elif item is not None:
                value = self._text(item)
                held = (item, "", value)
        if me.early:
            text, value = f"{text}: {me.early}", me.early
        key = f"{me.index}|{text}|{function}|{line}"
        shown = self._inside.get(me.index, me)
        step = Step(
            shown.index, shown.name, text, filename, line, linecache.getline(filename, line).strip(), function, value,
            self._preempts(me), zlib.crc32(key.encode()) & 0xFF, turn=me.index if turn is None else turn,
        )  # fmt: skip
        if self._token is not None and self.diverged is None:
            prints = self._token.prints
            if self._count >= len(prints) or prints[self._count] != step.print:
                self.diverged = f"step {self._count + 1} is {me.name}: {text}, line {line}, and was another"
        step.site = what if site is not None else -1
        self._count += 1
        if me.ident != -1:  # a task of asyncio that its loop goes on with is no other thread than the loop
            self._last = me.index
        if isinstance(about, tuple) and about[0] is not None:
            step.location, step.writes = (self._number(about[0]), about[1]), about[2]
        self.steps.append(step)
        if held is not None:
            self._pending = (step, held[0], held[1], held[2])

    def offers(self, frames: Mapping[int, FrameType | None]) -> None:
        """An event loop is about to ask which of its tasks goes on; where they stand."""
        self.offered = frames

    def enters(self, me: Task, task: Task | None) -> None:
        """The event loop on the thread `me` goes on with that task of its own, or, None, has come back from it."""
        if task is None:
            self._inside.pop(me.index, None)
        else:
            self._inside[me.index] = task

    def shown_as(self, what: str, frame: FrameType | None) -> None:
        """The last step is not where an event loop was begun: it is this, at the line where that frame waits."""
        step = self.steps[-1]
        step.what = what
        step.line = 0 if frame is None else frame.f_lineno
        step.filename = "" if frame is None else frame.f_code.co_filename
        step.source = linecache.getline(step.filename, step.line).strip()

    def access(self, me: Task, item: Any, name: str, site: int, writes: bool, value: Any) -> None:
        """An access that is no point takes place."""
        self.settle()
        shown = self._inside.get(me.index, me)
        where = SITES[site]
        held = None
        if item is None or name == "next":
            text = ""
        elif not name:
            text = self._text(item)
            held = (item, "", text) if writes else None
        elif writes:
            text = self._change(item, name, value)
        else:
            text = self._held(item, name)
        source = linecache.getline(where.filename, where.line).strip()
        step = Step(
            shown.index, shown.name, where.what, where.filename, where.line, source, "", text, False, 0,
            point=False, site=site, location=(self._number(item), name), writes=writes, turn=me.index,
        )  # fmt: skip
        self.steps.append(step)
        if held is not None:
            self._pending = (step, held[0], held[1], held[2])

    def _number(self, item: Any) -> int:
        """A number that no other object of the run has."""
        known = self._numbered.get(id(item))
        if known is None or known[0]() is not item:
            self._given += 1
            self._numbered[id(item)] = known = (reference_to(item), self._given)
        return known[1]

    def _preempts(self, me: Task) -> bool:
        before = self._last
        return bool(me.early) or (
            before != me.index and me.ident != -1 and any(task.index == before for task in self._scheduler.ready)
        )

    def settle(self) -> None:
        """What became of the value of the step before."""
        if self._pending is None:
            return
        step, item, name, before = self._pending
        self._pending = None
        after = self._held(item, name) if name else self._text(item)
        step.value = before if after == before else f"{before} → {after}"

    def finish(self) -> None:
        """The run has ended. What only one thread touched, or none changed, need not be shown."""
        self.settle()
        threads: dict[Any, set[int]] = {}
        changed = set()
        for step in self.steps:
            if step.location is not None:
                threads.setdefault(step.location, set()).add(step.thread)
                if step.writes:
                    changed.add(step.location)
        alone = not any(len(thread) > 1 for thread in threads.values()) and not any(
            item.point and item.line for item in self.steps
        )
        self.steps = [
            item
            for item in self.steps
            if item.point or item.waits or (item.location in changed and (alone or len(threads[item.location]) > 1))
        ]

    def period(self) -> str | None:
        """Whether the run repeats itself: which threads do the same few steps again and again."""
        last = [(item.thread, item.what, item.line) for item in self.steps if item.point][-3 * _PERIOD :]
        for length in range(1, len(last) // 3 + 1):
            size = max(3 * length, min(_SURE, len(last)))  # a few steps may be alike by chance
            if last[-size:-length] == last[length - size :]:
                return self._without_end(last[-length:], f"{length} step{'s'[: length > 1]}")
        counts = Counter(last)
        if len(last) == 3 * _PERIOD and len(counts) <= _SURE and min(counts.values()) >= _OFTEN:
            return self._without_end(last, f"{len(counts)} steps, in changing order,")
        return None

    def _without_end(self, steps: list[tuple[int, str, int]], what: str) -> str:
        names = {item.thread: item.name for item in self.steps}
        who = " and ".join(names[thread] for thread in sorted({thread for thread, _, _ in steps}))
        return f"{who} repeat{'' if ' and ' in who else 's'} the same {what} without end"

    def stuck(self) -> None:
        """No thread can go on: note where each of them waits."""
        self.settle()
        standing = thread_frames()
        for thread in self._scheduler.threads[1:]:
            if thread.ended or not thread.started or thread.daemon:
                continue
            frame = self._frame(sys._getframe(1) if thread is self._scheduler.current else standing.get(thread.ident))
            if frame is not None:
                name, line = frame.f_code.co_filename, frame.f_lineno
                self.steps.append(self._standing(thread, str(thread.what), name, line, waits=True))

    def about_to(self, ready: Collection[Task]) -> list[Step]:
        """What each thread that has begun, and not ended, does next, or waits for. The run stops here."""
        self.settle()
        standing = thread_frames()
        found: list[Step] = []
        for thread in (*self._scheduler.threads[1:], *ready):
            if thread.ended or not thread.started or any(step.thread == thread.index for step in found):
                continue
            site = SITES[thread.what] if isinstance(thread.what, int) else None
            frame = self._frame(standing.get(thread.ident))
            if thread.index in self.offered:
                frame, site = self.offered[thread.index], None
            if site is not None:
                text, name, line = site.what, site.filename, site.line
            elif frame is not None:
                text, name, line = str(thread.what), frame.f_code.co_filename, frame.f_lineno
            else:
                text, name, line = str(thread.what), "", 0
            text = thread.said if isinstance(thread.said, str) else text
            found.append(self._standing(thread, text, name, line, waits=thread.state is WAITING))
        return found

    def _standing(self, thread: Task, what: str, name: str, line: int, *, waits: bool) -> Step:
        source = linecache.getline(name, line).strip()
        return Step(
            thread.index, thread.name, what, name, line, source, "", "", False, 0, point=False, waits=waits
        )  # fmt: skip

    def _frame(self, frame: FrameType | None) -> FrameType | None:
        """The innermost frame of the modules that are looked at."""
        while frame is not None:
            if frame.f_code.co_filename in self._files or frame.f_code in self._codes:
                return frame
            frame = frame.f_back
        return None

    def _atomic(self, frame: FrameType | None) -> tuple[Any, str] | None:
        """The atomic whose method this step is inside of, and the call."""
        for _ in range(4):
            if frame is None:
                return None
            if frame.f_code.co_filename == _ATOMICS:
                names = frame.f_code.co_varnames[1 : frame.f_code.co_argcount]
                arguments = ", ".join(self._text(frame.f_locals.get(name)) for name in names)
                return frame.f_locals["self"], f"{frame.f_code.co_name}({arguments})"
            frame = frame.f_back
        return None

    def _held(self, item: Any, name: str) -> str:
        """What an attribute is; nothing where only the program's code can tell."""
        value = peeked(item, name)
        return "" if value is COMPUTED else self._text(value)

    def _change(self, item: Any, name: str, new: Any) -> str:
        before = self._held(item, name)
        return f"{before} → {self._text(new)}" if before else f"→ {self._text(new)}"

    def _text(self, value: Any) -> str:
        """A value, short, and without the addresses that differ from run to run. No code of the program runs for it."""
        kind = type(value)
        base = next((base for base in _mro(kind) if base in _SHOWN), None)
        if value is UNSET:
            return "(unset)"
        if kind is int and value == MAX_DEMAND:
            return "MAX_DEMAND"
        if base in _PRINTED:
            text = base.__repr__(value)
        elif base in _HOLDING:
            length = base.__len__(value)
            text = f"{_name(base)} of {length}" if length > 5 or base is dict else self._items(base, value)
        elif base is atomics.AtomicReference:
            text = self._text(object.__getattribute__(value, "_value"))
        elif base is BaseException:
            inside = BaseException.args.__get__(value)  # type: ignore[attr-defined]
            said = ", ".join(item if type(item) is str else self._text(item) for item in inside)
            text = f"{_name(kind)}: {said}"
        elif base is MethodType:
            text = self._text(value.__func__)
        elif base is type:
            text = _name(value)
        elif base is not None:
            text = str(value.__qualname__).rpartition(".")[2]
        else:
            name = _name(kind)
            known = self._numbers.setdefault(name, {})
            text = f"{name}#{known.setdefault(self._number(value), len(known) + 1)}"
        return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"

    def _items(self, base: Any, value: Any) -> str:
        inside = ", ".join(map(self._text, base.__iter__(value)))
        return f"[{inside}]" if base in (list, deque) else f"({inside})"


# -- looking without running anything --------------------------------------------------------------------------

COMPUTED: Final = object()
"""What an attribute is of which only its own code can tell: a property, a descriptor, `__getattr__`."""

_PRINTED: Final = (bool, int, float, str, bytes, type(None))
_HOLDING: Final = (list, tuple, set, frozenset, deque, dict)
_FUNCTIONS: Final = (FunctionType, BuiltinMethodType)
_SHOWN: Final = frozenset({*_PRINTED, *_HOLDING, *_FUNCTIONS, MethodType, type, BaseException, atomics.AtomicReference})
_mro: Final = type.__dict__["__mro__"].__get__
_name: Final = type.__dict__["__name__"].__get__
_dict_of: Final = type.__dict__["__dict__"].__get__


def peeked(item: Any, name: str) -> Any:
    """The value of an attribute where it lies; `UNSET` where there is none, `COMPUTED` where code would have to run."""
    kind = type(item)
    of_class = _found(kind, name)
    if type(of_class) is MemberDescriptorType:
        try:
            return of_class.__get__(item)
        except AttributeError:
            return UNSET
    if of_class is not UNSET and _found(type(of_class), "__set__") is not UNSET:
        return COMPUTED
    if issubclass(kind, type):
        held = _found(item, name)
    elif issubclass(kind, ModuleType):
        held = ModuleType.__getattribute__(item, "__dict__").get(name, UNSET)
    else:
        held = dict.get(attributes_of(item, kind), name, UNSET)
    if held is UNSET:
        held = of_class
    if held is not UNSET and held is of_class and _found(type(held), "__get__") is not UNSET:
        return held if type(held) in _FUNCTIONS else COMPUTED
    if held is UNSET and _found(kind, "__getattr__") is not UNSET:
        return COMPUTED
    return held


def _found(cls: type, name: str) -> Any:
    return next((_dict_of(base)[name] for base in _mro(cls) if name in _dict_of(base)), UNSET)
