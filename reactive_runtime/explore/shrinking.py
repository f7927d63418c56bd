"""Makes a failure small: fewer calls, then fewer preemptions, then fewer steps; and says whether fewer are possible.

Before and after, what raced meanwhile becomes a point, so that the last word is about all points there are.

1. *Calls.* A call is left out if the program still fails in the same way without it. A program that fails already when
   no thread is ever preempted is another failure: its invariant counts on the call that was left out.
2. *Preemptions.* First greedily: a piece of the schedule is moved up to where its thread went on before. Then every
   schedule with fewer preemptions is tried, in order; where that comes to an end within the time, the result is the
   minimum, and certified.
3. *Steps.* Of the schedules with that many preemptions, the shortest that is met.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from reactive_runtime._core import primitives
from reactive_runtime.errors import ExploreError
from reactive_runtime.explore.bounded import Bounded
from reactive_runtime.explore.scenario import Scenario
from reactive_runtime.explore.strategies import Replayed
from reactive_runtime.explore.task import CUT, Stop

if TYPE_CHECKING:
    from reactive_runtime.explore.session import Session

__all__ = ["shrunk"]

SECONDS: Final = 0.9
"""For all of it."""

_seconds: Final = primitives.monotonic
_Program = list[tuple[str, list[int]]]


def shrunk(
    session: Session, program: Scenario[Any], stop: Stop, schedule: list[int]
) -> tuple[_Program, list[int], bool]:
    """The calls that are left, a schedule of theirs, and whether no schedule of them with fewer preemptions fails."""
    item = _Shrinking(session, program, stop, schedule)
    item.learn()
    item.fewer_calls(_seconds() + SECONDS / 3)
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
        found = self._try(program, schedule)
        self._preemptions = len(schedule) if found is None else found[1]

    def _same(self, stop: Stop | None) -> bool:
        return (
            stop is not None
            and stop.kind == self._stop.kind
            and getattr(stop.error, "rule", None) == getattr(self._stop.error, "rule", None)
            and type(stop.error) is type(self._stop.error)
        )

    @property
    def _program(self) -> Scenario[Any]:
        return self._whole.reduced(self.calls)

    def _try(self, program: Scenario[Any], schedule: Sequence[int]) -> tuple[list[int], int] | None:
        """What became of `schedule`, followed as far as it can be, if it fails in the same way."""
        strategy = Replayed(schedule, exactly=False)
        self._session.tracks(False)
        strategy.begin(self._session.scheduler)
        if not self._same(self._session.run(program, strategy)):
            return None
        return list(self._session.scheduler.schedule), strategy.preemptions

    def _failures(self, program: Scenario[Any], most: int, until: float) -> Iterator[tuple[list[int], int] | None]:
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
                yield list(self._session.scheduler.schedule), search.preemptions

    def learn(self) -> bool:
        """Make points of the races that were seen meanwhile; the schedule is the same, with more steps. False: none."""
        watcher = self._session.watcher
        watcher.begin()
        if not watcher.has_more:
            return False
        self._session.show(self._program, self.schedule)
        accesses = self._session.accesses
        watcher.learn()
        steps = [thread for thread, point, site in accesses if point or (site >= 0 and watcher.racing[site])]
        found = self._try(self._program, steps)
        if found is None:
            raise ExploreError(
                f"{self._whole.name} does not do the same each time: a schedule failed, and does not again"
            )
        self.schedule, self._preemptions = found
        return True

    # -- calls -------------------------------------------------------------------------------------------------

    def fewer_calls(self, until: float) -> None:
        """Leave out what the failure does not need."""
        raced = self._preemptions > 0 and not any(self._failures(self._program, 0, until))
        again = True
        while again:
            again = False
            for name, kept in [(name, call) for name, calls in self.calls for call in reversed(calls)]:
                fewer = [
                    (actor, [call for call in calls if (actor, call) != (name, kept)]) for actor, calls in self.calls
                ]
                fewer = [(actor, calls) for actor, calls in fewer if calls]
                if fewer and (found := self._fails(self._whole.reduced(fewer), raced, until)) is not None:
                    self.calls = fewer
                    self.schedule, self._preemptions = found
                    again = True
                    break
                if _seconds() > until:
                    return

    def _fails(self, program: Scenario[Any], raced: bool, until: float) -> tuple[list[int], int] | None:
        if not raced and self._stop.kind == "invariant" and getattr(self._stop.error, "rule", None) is None:
            return None  # it counts on its calls
        most = min(self._preemptions, 2) if raced else 0
        for found in self._failures(program, most, until):
            return None if found is None or (raced and found[1] == 0) else found
        return None

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
                    self.schedule, self._preemptions = found
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
                self.schedule, self._preemptions = found
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
