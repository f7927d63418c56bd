"""Makes a failure small: fewer calls, then fewer preemptions, then fewer steps; and says whether fewer are possible.

Before and after, what raced meanwhile becomes a point, so that the last word is about all points there are.

1. *Calls.* Actors are left out, then single calls, if the program still fails in the same way without them: first
   under the schedule that was found, with their steps cut out, then under others. What is left has to be a program that
   ends well under some schedule, else it lacks what would have woken the one that waits, or made what the other needs.
   And a program that fails already when no thread is ever preempted is another failure, if that was not so before.
2. *Preemptions.* First greedily: a piece of the schedule is moved up to where its thread went on before. Then every
   schedule with fewer preemptions is tried, in order; where that comes to an end within the time, the result is the
   minimum, and certified.
3. *Steps.* Of the schedules with that many preemptions, the shortest that is met.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from reactive_runtime._core.runtime import primitives
from reactive_runtime.explore._checks.scenario import Scenario
from reactive_runtime.explore._schedule.task import CUT, Stop
from reactive_runtime.explore._search.bounded import Bounded
from reactive_runtime.explore._search.strategies import Random, Replayed

if TYPE_CHECKING:
    from reactive_runtime.explore._schedule.session import Session

__all__ = ["ENDLESS", "shrunk"]

ENDLESS: Final = frozenset({"limit", "livelock"})
"""Kinds of failures of which one may turn out to be the other."""

SECONDS: Final = 0.9
"""For all of it: seconds of the processor, so that a machine with other work shows the same."""

_seconds: Final = primitives.process_time
_Program = list[tuple[str, list[int]]]
_Found = tuple[list[int], int, list[tuple[int, str]]]
"""A schedule that fails, its preemptions, and of each thread the one that made it and its name."""

_ENOUGH: Final = 24
"""Schedules of a kind that are tried before it is taken that there is none."""


def shrunk(
    session: Session, program: Scenario[Any], stop: Stop, schedule: list[int]
) -> tuple[_Program, list[int], bool]:
    """The calls that are left, a schedule of theirs, and whether no schedule of them with fewer preemptions fails."""
    item = _Shrinking(session, program, stop, schedule)
    item.learn()
    item.fewer_calls(_seconds() + SECONDS / 3 + 0.2 * len(program.actors))
    item.fewer_switches(_seconds() + SECONDS / 4)
    end = _seconds() + SECONDS / 2
    minimal = item.certify(end)
    while item.learn():
        minimal = item.certify(end)
    return item.calls, item.schedule, minimal


class _Shrinking:
    def __init__(self, session: Session, program: Scenario[Any], stop: Stop, schedule: list[int]) -> None:
        self._session = session
        self._whole = program
        self._stop = stop
        self.calls: _Program = program.program
        self.schedule = schedule
        self._threads: list[tuple[int, str]] = []
        found = self._try(program, schedule)
        self._preemptions = len(schedule)
        if found is not None:
            self._keep(found)

    def _keep(self, found: _Found) -> None:
        self.schedule, self._preemptions, self._threads = found

    def _of_run(self, preemptions: int) -> _Found:
        scheduler = self._session.scheduler
        return list(scheduler.schedule), preemptions, [(task.parent, task.name) for task in scheduler.threads]

    def _same(self, stop: Stop | None) -> bool:
        return (
            stop is not None
            and (stop.kind == self._stop.kind or {stop.kind, self._stop.kind} <= ENDLESS)
            and getattr(stop.error, "rule", None) == getattr(self._stop.error, "rule", None)
            and type(stop.error) is type(self._stop.error)
        )

    @property
    def _program(self) -> Scenario[Any]:
        return self._whole.reduced(self.calls)

    def _try(self, program: Scenario[Any], schedule: Sequence[int]) -> _Found | None:
        """What became of `schedule`, followed as far as it can be, if it fails in the same way."""
        strategy = Replayed(schedule, exactly=False)
        self._session.tracks(False)
        strategy.begin(self._session.scheduler)
        if not self._same(self._session.run(program, strategy)):
            return None
        return self._of_run(strategy.preemptions)

    def _failures(self, program: Scenario[Any], most: int, until: float) -> Iterator[_Found | None]:
        """Of all schedules with at most so many preemptions those that fail in the same way; None: the time is up."""
        search = Bounded(most)
        while True:
            if _seconds() > until:
                yield None
                return
            self._session.tracks(True)
            if not search.begin(self._session.scheduler):
                return
            stop = self._session.run(program, search)
            if (stop is None or stop.kind != CUT) and self._same(stop):
                yield self._of_run(search.preemptions)

    def learn(self) -> bool:
        """Make points of the races that were seen meanwhile; the schedule is the same, with more steps. False: none."""
        watcher = self._session.watcher
        watcher.begin()
        if not watcher.has_more:
            return False
        self._session.show(self._program, self.schedule)
        accesses = self._session.accesses
        before = watcher.points()
        watcher.learn()
        steps = [thread for thread, point, site in accesses if point or (site >= 0 and watcher.racing[site])]
        found = self._try(self._program, steps)
        if found is None:  # a loop's turn became a point, say, and the schedule has no step for it
            watcher.go_back(before)
            return False
        self._keep(found)
        return True

    # -- calls -------------------------------------------------------------------------------------------------

    def fewer_calls(self, until: float) -> None:
        """Leave out what the failure does not need: actors first, since most calls go with them."""
        error, kind = self._stop.error, self._stop.kind
        rule = getattr(error, "rule", None) is not None
        ends, fails = self._without_preemptions(self._program, until)
        raced = self._preemptions > 0 and not fails
        if not raced and kind == "invariant" and not rule:
            return  # it counts on its calls
        # A rule holds for every program. What is raised under every schedule needs no other thread.
        anyhow = rule or (kind == "raised" and not ends and not self._ends(self._program, until))

        def accepted(fewer: _Program, schedule: Sequence[int] | None) -> bool:
            program = self._whole.reduced(fewer)
            found = None if schedule is None else self._try(program, schedule)
            if found is None:
                soon = min(until, _seconds() + SECONDS / 9)
                most = min(self._preemptions, 2) if raced else 0
                found = next(self._failures(program, most, soon), None)
            if found is None or (raced and found[1] == 0):
                return False
            ends, fails = self._without_preemptions(program, until)
            if (raced and fails) or not (anyhow or ends or self._ends(program, until)):
                return False
            self.calls = fewer
            self._keep(found)
            return True

        for name, _ in reversed(list(self.calls)):
            fewer = [(actor, calls) for actor, calls in self.calls if actor != name]
            if fewer and _seconds() < until:
                accepted(fewer, self._cut(name))
        again = True
        while again:
            again = False
            for name, call in [(name, call) for name, calls in self.calls for call in reversed(calls)]:
                fewer = [(actor, [one for one in calls if (actor, one) != (name, call)]) for actor, calls in self.calls]
                fewer = [(actor, calls) for actor, calls in fewer if calls]
                if _seconds() > until:
                    return
                if fewer and accepted(fewer, self._cut(name) if len(fewer) < len(self.calls) else None):
                    again = True
                    break

    def _cut(self, actor: str) -> list[int]:
        """The schedule without the steps of an actor, and of the threads that it makes; the others move up."""
        own = max((number for number, thread in enumerate(self._threads) if thread == (0, actor)), default=-1)
        left: dict[int, int] = {}
        for number, (parent, _) in enumerate(self._threads):
            if number == 0 or (number != own and parent in left):
                left[number] = len(left)
        return [left[thread] for thread in self.schedule if thread in left]

    def _without_preemptions(self, program: Scenario[Any], until: float) -> tuple[bool, bool]:
        """Of the schedules without a preemption, as far as they are tried: whether one ends well, and one fails so."""
        search = Bounded(0)
        ends = fails = False
        for _ in range(_ENOUGH):
            self._session.tracks(True)
            if (ends and fails) or _seconds() > until or not search.begin(self._session.scheduler):
                break
            stop = self._session.run(program, search)
            ends = ends or stop is None
            fails = fails or (stop is not None and stop.kind != CUT and self._same(stop))
        return ends, fails

    def _ends(self, program: Scenario[Any], until: float) -> bool:
        """Whether the program ends well under some schedule."""
        search = Random(random.Random(0))
        for _ in range(_ENOUGH):
            self._session.tracks(False)
            if _seconds() > until:
                break
            if self._session.run(program, search) is None:
                return True
        return False

    # -- preemptions and steps ---------------------------------------------------------------------------------

    def fewer_switches(self, until: float) -> None:
        """Greedily: what a thread does later it does at once."""
        program = self._program
        at = 0
        while _seconds() < until:
            pieces = [(item, len(list(run))) for item, run in groupby(self.schedule)]
            if at >= len(pieces):
                return
            thread = pieces[at][0]
            later = next((n for n in range(at + 1, len(pieces)) if pieces[n][0] == thread), None)
            if later is not None:
                moved = [*pieces[: at + 1], pieces[later], *pieces[at + 1 : later], *pieces[later + 1 :]]
                found = self._try(program, [item for item, n in moved for _ in range(n)])
                if found is not None and found[1] < self._preemptions:
                    self._keep(found)
                    at = 0
                    continue
            at += 1

    def certify(self, until: float) -> bool:
        """Look at all schedules with fewer preemptions, then for a shorter one; whether the first came to an end."""
        program = self._program
        if self._preemptions:
            for found in self._failures(program, self._preemptions - 1, until):
                if found is None:
                    return False
                self._keep(found)
                break  # bounds are searched in order: this has the fewest there are
        for number, found in enumerate(
            self._failures(program, self._preemptions, min(until, _seconds() + SECONDS / 5))
        ):
            if found is None or number > 200:
                break
            if found[1] == self._preemptions and self._size(found[0]) < self._size(self.schedule):
                self.schedule = found[0]
        return True

    @staticmethod
    def _size(schedule: Sequence[int]) -> tuple[int, int]:
        return len(schedule), len(list(groupby(schedule)))
