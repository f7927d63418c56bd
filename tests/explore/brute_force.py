"""Brute force, which counts the classes of equivalent schedules: what the searches are compared with."""

from __future__ import annotations

from typing import Any

from searching import NIGHT

from reactive_runtime.explore._checks.scenario import scenario_of
from reactive_runtime.explore._schedule.scheduler import Scheduler
from reactive_runtime.explore._schedule.session import Session
from reactive_runtime.explore._schedule.task import CUT, Task
from reactive_runtime.explore._search.bounded import Bounded

__all__ = ["ENOUGH", "Traced", "searched"]

ENOUGH = 4_000 if NIGHT else 500
"""Schedules after which brute force is not waited for."""


class Traced:
    """Brute force, which also says of each schedule to which class it belongs: its steps, and what each depends on.

    Written apart from the search: pairs of steps are compared, all with all.
    """

    name = "traced"

    def __init__(self) -> None:
        self._inner = Bounded(reduced=False)
        self._scheduler: Scheduler

    def begin(self, scheduler: Scheduler) -> bool:
        self._scheduler = scheduler
        self._steps: list[tuple[Any, Any, list[tuple[Any, bool]], list[bool]]] = []
        self._idle: list[int] = []
        self._count: dict[Any, int] = {}
        scheduler.observer = self
        return self._inner.begin(scheduler)

    def choose(self, ready: list[Task], me: Task) -> Task:
        chosen = self._inner.choose(ready, me)
        owner = self._path(me if chosen.ident == -1 else chosen)
        self._count[owner] = number = self._count.get(owner, 0) + 1
        choice = chosen.index if chosen.ident == -1 else -1
        self._steps.append(((owner, number, choice), owner, [], [self._scheduler.ranked]))
        return chosen

    def end(self, scheduler: Scheduler) -> None:
        pass

    def _path(self, task: Task) -> tuple[int, ...]:
        """Which thread of which thread it is: its number is another where others were made before it."""
        if task.index == 0:
            return ()
        return (*self._path(self._scheduler.threads[task.parent]), task.number)

    def began(self, thread: Task) -> None:
        pass

    def noted(self, me: Task, location: Any, writes: bool) -> None:
        if self._steps and not self._scheduler.aborting:
            self._steps[-1][2].append((location, writes))

    def concerns_all(self) -> None:
        if self._steps:
            self._steps[-1][3][0] = True

    def idle(self) -> None:
        if not self._scheduler.aborting:
            self._idle.append(len(self._steps))

    def named(self) -> int:
        return 0

    def trace(self) -> Any:
        """The class of the schedule that was run last."""
        stop = self._scheduler.stop
        if stop is not None and stop.thread is not None and self._steps:
            self._steps[-1][3][0] = True  # no other thread came to its next step
        steps = self._steps
        return hash(
            frozenset(
                (label, frozenset(steps[other][0] for other in range(at) if self._dependent(other, at)))
                for at, (label, _, _, _) in enumerate(steps)
            )
        )

    def _dependent(self, first: int, second: int) -> bool:
        _, owner, accesses, alone = self._steps[first]
        _, other, others, also = self._steps[second]
        return (
            owner == other
            or alone[0]
            or also[0]
            or any(first < at <= second for at in self._idle)
            or any(one is two and (writes or wrote) for one, writes in accesses for two, wrote in others)
        )


def searched(program: Any, search: Any, most: int = ENOUGH) -> tuple[set[str], int, int] | None:
    """What a search comes to, in how many runs that were not cut, of how many classes; None: there are too many."""
    scenario = scenario_of(program)
    with Session(scenario, "shared", (), limit=2_000, hang=10) as session:
        outcomes: set[str] = set()
        traces: set[Any] = set()
        runs = 0
        version = -1
        while runs <= most:
            session.tracks(True)
            assert session.scheduler.tracking or scenario.at_each_step
            if not search.begin(session.scheduler):
                return outcomes, runs, len(traces)
            if session.scheduler.version != version:  # a further race was seen: the search begins anew
                version, outcomes, traces, runs = session.scheduler.version, set(), set(), 0
            stop = session.run(scenario, search)
            if stop is None or stop.kind != CUT:
                runs += 1
                outcomes.add(repr(session.observations.last) if stop is None else f"{stop.kind}: {stop.what}")
                if isinstance(search, Traced):
                    traces.add(search.trace())
    return None
