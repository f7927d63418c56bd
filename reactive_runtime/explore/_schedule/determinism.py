"""Checks that a schedule does the same when it runs again, and finds the first step that differs.

A search says something about a program only if each schedule stands for one run of it. So the explorer runs schedules
1, 2, 4, 8 and so on a second time, and each one that fails ten times. It compares the thread, the operation and the
line of each step, and the end of the run, but no values.

If only the first run differs from those that follow, the program has filled a cache: the result has a note of it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, Final

from reactive_runtime.errors import ExploreError
from reactive_runtime.explore._instrument.sites import SITES
from reactive_runtime.explore._schedule.task import Stop, Task

if TYPE_CHECKING:
    from reactive_runtime.explore._checks.scenario import Scenario
    from reactive_runtime.explore._schedule.session import Session

__all__ = [
    "NOT_THE_SAME",
    "REPLAYS",
    "AtTheLast",
    "NotTheSameError",
    "Run",
    "StepRecorder",
    "difference",
    "is_checked",
    "located",
]

NOT_THE_SAME: Final = (
    "does not do the same each time the schedule is the same; look for random numbers, for clocks other than `time`'s,"
    " for the order of a set (PYTHONHASHSEED), or for state that outlives a run"
)
"""Said of a scenario that does something else the second time."""

REPLAYS: Final = 10
"""How often a schedule that fails is run again before it counts as one."""

_LOCATING: Final = 6
"""Runs that `located` compares."""


class NotTheSameError(ExploreError):
    """A schedule did something else when it was run again.

    Args:
        scenario: Its name.
        difference: The first step that differed.
    """

    def __init__(self, scenario: str, difference: str) -> None:
        self.what: str = f"{NOT_THE_SAME}: {difference}"
        super().__init__(f"{scenario} {self.what}")


def is_checked(number: int) -> bool:
    """Whether the schedule of that number is run again: 1, 2, 4, 8 and so on."""
    return number & (number - 1) == 0


_Step = tuple[int, Any, str, int]
"""The thread, the operation or the number of its site, file and line."""


@dataclass(slots=True)
class Run:
    """The steps of one run of a schedule."""

    steps: list[_Step]
    stop: Stop | None
    names: dict[int, str]
    """Of the threads, by number."""

    def same_as(self, other: Run) -> bool:
        """Whether both did the same steps, and ended alike."""
        return self.steps == other.steps and _end(self.stop) == _end(other.stop)


class StepRecorder:
    """Hears of each step from the scheduler, as a `StepLog` does, and keeps the parts that are compared.

    The holder of the turn owns it, as it owns the scheduler.
    """

    def __init__(self, files: frozenset[str], codes: Collection[CodeType]) -> None:
        self._files = files
        self._codes = codes
        self.taken: list[_Step] = []

    def step(self, me: Task, turn: int | None = None) -> None:
        """`me` does its step now; see `StepLog.step`."""
        frame: FrameType | None = sys._getframe(2)
        while frame is not None and frame.f_code.co_filename not in self._files and frame.f_code not in self._codes:
            frame = frame.f_back
        name, line = ("", 0) if frame is None else (frame.f_code.co_filename, frame.f_lineno)
        self.taken.append((me.index if turn is None else turn, me.what, name, line))

    def offers(self, frames: Mapping[int, FrameType | None]) -> None:
        """Does nothing: the places of the other tasks are not compared."""

    def enters(self, me: Task, task: Task | None) -> None:
        """Does nothing."""

    def shown_as(self, what: str, frame: FrameType | None) -> None:
        """The last step was this, where that frame waits."""
        name, line = ("", 0) if frame is None else (frame.f_code.co_filename, frame.f_lineno)
        self.taken[-1] = (self.taken[-1][0], what, name, line)

    def about(self, me: Task, item: Any, name: str, writes: bool, value: Any) -> None:
        """Does nothing: the objects and values of a step are not compared."""

    def access(self, me: Task, item: Any, name: str, site: int, writes: bool, value: Any) -> None:
        """Does nothing: only points are compared."""

    def say(self, me: Task, text: str) -> None:
        """Does nothing."""

    def settle(self) -> None:
        """Does nothing."""

    def stuck(self) -> None:
        """Does nothing."""


def _end(stop: Stop | None) -> tuple[str, type | None]:
    return ("", None) if stop is None else (stop.kind, type(stop.error))


def difference(one: Run, other: Run) -> str | None:
    """The first step that the other run did otherwise, in a line; None: it did the same."""
    for number, (was, now) in enumerate(zip(one.steps, other.steps, strict=False), start=1):
        if was != now:
            return f"step {number} was {_shown(one, was)}, and the next time {_shown(other, now)}"
    at = min(len(one.steps), len(other.steps))
    if len(one.steps) != len(other.steps):
        longer = one if len(one.steps) > at else other
        step = _shown(longer, longer.steps[at])
        first, then = (step, "the run was over") if longer is one else ("the end of the run", step)
        return f"step {at + 1} was {first}, and the next time {then}"
    if _end(one.stop) != _end(other.stop):
        return f"the steps were the same; at the end {_told(one.stop)}, and the next time {_told(other.stop)}"
    return None


def _shown(run: Run, step: _Step) -> str:
    thread, what, filename, line = step
    if isinstance(what, int):
        site = SITES[what]
        what, filename, line = site.what, site.filename, site.line
    where = f" at {os.path.basename(filename)}:{line}" if line else ""
    return f"{run.names.get(thread, thread)}: {what}{where}"


def _told(stop: Stop | None) -> str:
    return "nothing failed" if stop is None else f"it failed ({stop.kind}: {stop.what})"


def located(session: Session, program: Scenario[Any], schedule: Sequence[int]) -> str | None:
    """The first difference between some runs of a schedule; None: they do the same."""
    first = session.again(program, schedule)
    for _ in range(_LOCATING - 1):
        if (found := difference(first, session.again(program, schedule))) is not None:
            return found
    return None


class AtTheLast(StepRecorder):
    """Enters the debugger before the last step, where no line can be found to stop at."""

    def __init__(self, length: int) -> None:
        super().__init__(frozenset(), ())
        self._length = length

    def step(self, me: Task, turn: int | None = None) -> None:
        """`me` does its step now; see `StepLog.step`."""
        super().step(me, turn)
        if len(self.taken) == self._length:
            breakpoint()  # the program's frame is some steps up
