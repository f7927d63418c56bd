"""Can a schedule happen where there is a GIL?

CPython with a GIL lets another thread in only at certain places: when it enters a function or has called one, and when
a loop goes round. It does not between a load and the store that follows it in the same line, so a race that needs a
switch there is one of builds without a GIL. A schedule can happen under a GIL if each of its preemptions has such a
place between the last step of its thread and the next one.
"""

from __future__ import annotations

import dis
from collections.abc import Callable, Sequence
from types import CodeType
from typing import Final

from reactive_runtime.explore._instrument.sites import SITES, Site
from reactive_runtime.explore._render.step_log import Step
from reactive_runtime.explore._schedule.carriers import ThreadCarriers
from reactive_runtime.explore._schedule.scheduler import Scheduler
from reactive_runtime.explore._schedule.task import Task

__all__ = ["UnderAGil", "happens_under_a_gil", "lets_in"]

_LOOKS: Final = (
    "CALL",
    "JUMP_BACKWARD",
    "SEND",
    "FOR_ITER",
    "BEFORE_WITH",
    "YIELD",
    "RESUME",
    "LOAD_SPECIAL",
    "INSTRUMENTED",
)
"""Instructions after which another thread may be let in, or that enter code which does."""


def happens_under_a_gil(steps: Sequence[Step], code_of: Callable[[Site], CodeType | None]) -> bool:
    """Whether every preemption of these steps is possible with a GIL; `code_of` finds the code that has a site."""
    last: dict[int, Step] = {}
    before: Step | None = None
    for step in (item for item in steps if item.point):
        if step.preempts and before is not None:
            left = before.thread
            coming = next((item for item in _after(steps, step) if item.thread == left), None)
            if coming is not None and not _lets_in(last[left], coming, code_of):
                return False
        last[step.thread] = before = step
    return True


def _after(steps: Sequence[Step], step: Step) -> Sequence[Step]:
    return [item for item in steps[steps.index(step) :] if item.point]


def lets_in(done: int, coming: int, code_of: Callable[[Site], CodeType | None]) -> bool:
    """Whether the interpreter may let another thread in between two accesses of one thread, by their sites."""
    one, other = SITES[done], SITES[coming]
    return _looks_up(one, other, code_of, called=_is_call(one), calls=_is_call(other))


def _lets_in(done: Step, coming: Step, code_of: Callable[[Site], CodeType | None]) -> bool:
    """The same, between two steps of one thread."""
    if done.site < 0 or coming.site < 0:
        return True  # a primitive is a call, and a thread begins by entering a function
    return _looks_up(SITES[done.site], SITES[coming.site], code_of, called=_by_call(done), calls=_by_call(coming))


def _looks_up(one: Site, other: Site, code_of: Callable[[Site], CodeType | None], *, called: bool, calls: bool) -> bool:
    """The same, between two accesses; `called`: a call makes the first, `calls`: a call makes the second."""
    code = code_of(one)
    if code is None or code is not code_of(other):
        return True  # from one function to another
    if called:
        return True
    first, last = _offset(code, one, at_call=False), _offset(code, other, at_call=calls)
    if first is None or last is None or last <= first:
        return True  # round a loop
    between = (instruction for instruction in dis.get_instructions(code) if first < instruction.offset < last)
    return any(item.opname.startswith(_LOOKS) for item in between)


def _is_call(site: Site) -> bool:
    return site.what.startswith(("call ", "next of "))


def _by_call(step: Step) -> bool:
    """Whether the access was made by a call: of a method of a container, or of a function that was handed one."""
    site = SITES[step.site]
    if _is_call(site):
        return True
    return site.called is not None and step.location is not None and step.location[1] in ("", "next")


def _offset(code: CodeType, site: Site, *, at_call: bool) -> int | None:
    """The place of the access in the code: the last instruction of its expression, or the call that makes it."""
    stores = site.what.startswith(("store", "delete"))
    found = None
    for instruction in dis.get_instructions(code):
        place = instruction.positions
        if place is None:
            continue
        if at_call:
            if instruction.opname.startswith("CALL") and (place.end_lineno, place.end_col_offset) == site.called:
                return instruction.offset
            continue
        here = (place.lineno, place.col_offset) == (site.line, site.column)
        if here and instruction.opname.startswith(("STORE_", "DELETE_")) == stores:
            found = instruction.offset
            if not stores:
                break
    return found


class UnderAGil(Scheduler):
    """A scheduler that changes threads only at places at which an interpreter with a GIL lets another one in."""

    __slots__ = ("_lets_in",)

    def __init__(self, carriers: ThreadCarriers | None, limit: int, lets_in: Callable[[int, int], bool]) -> None:
        super().__init__(carriers, limit)
        self._lets_in = lets_in  # between the sites of two accesses

    def step(self, me: Task) -> None:
        """As `Scheduler.step`, but `me` goes on if a GIL lets no other thread in between its last access and this."""
        done, me.done = me.done, me.what
        if not self.aborting and type(done) is int and type(me.what) is int and not self._lets_in(done, me.what):
            self._count(me)
            self._goes_on(me)
        else:
            super().step(me)
