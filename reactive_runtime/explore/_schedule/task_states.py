"""The states of the task threads, and their ranks.

    READY ──blocked──▶ WAITING ──woken──▶ READY
      │ ▲
      ▼ │ outranked, and no longer
    RESTING                                any ──▶ KILLED ──▶ ENDED

A thread is in the list `ready` when its state is READY, in the list `resting` when it is RESTING, and in neither
otherwise. Only this module changes a state, so a thread that rests can be blocked, and a thread that was held back
keeps its deadline.

*Fairness*, as in CHESS (Musuvathi and Qadeer, 2008). A thread that gives way ranks below all that can go on then. It
rests as long as one of those can go on and has not done a step. A thread that gives way for the first time rests until
any other one has done a step. So no thread that loops keeps another one from its work for ever. The scheduler can
always choose a thread: a choice ends all ranks below the chosen thread, so no two threads rank below each other.

Ownership: the holder of the turn, as for all of the scheduler.
"""

from __future__ import annotations

import heapq

from reactive_runtime.explore._schedule.task import ENDED, KILLED, READY, RESTING, WAITING, Task

__all__ = ["TaskStates"]


class TaskStates:
    """The states of the task threads of one run."""

    __slots__ = ("ranked", "ready", "resting", "steps", "threads", "timers")

    def __init__(self) -> None:
        self.threads: list[Task] = []
        self.ready: list[Task] = []
        self.resting: list[Task] = []
        self.ranked: bool = False  # whether any thread ranks below another
        self.timers: list[tuple[float, int, int, Task]] = []
        self.steps: int = 0  # watch

    def forget_states(self) -> None:
        """Before a run, and after the last: there are no threads."""
        self.threads, self.ready, self.resting, self.timers = [], [], [], []
        self.ranked = False

    def enter(self, task: Task) -> None:
        """Add a thread that can go on."""
        self.threads.append(task)
        self.ready.append(task)

    def block(self, task: Task) -> None:
        """`task` can't go on until it is woken."""
        if task.state is READY:
            self.ready.remove(task)
        elif task.state is RESTING:
            self.resting.remove(task)
        else:
            return
        task.state = WAITING

    def hold_back(self, task: Task) -> None:
        """Another thread took the thing that `task` was woken for: `task` waits on, until its former deadline."""
        if task.state is READY:
            self.ready.remove(task)
            task.state = WAITING
        else:
            self.block(task)
        if task.until is not None and task.deadline is None:
            self.arm(task, task.until)

    def arm(self, task: Task, deadline: float) -> None:
        """The clock wakes `task` then, if nothing does before."""
        task.deadline = task.until = deadline
        heapq.heappush(self.timers, (deadline, self.steps, task.index, task))  # tasks have no order

    def wake(self, task: Task) -> None:
        """`task`, which waits, can go on; if the clock has not woken it already."""
        task.deadline = None
        if task.state is WAITING:
            task.state = READY
            self.ready.append(task)

    def due_by(self, time: float) -> list[Task]:
        """The threads that wait, and that the clock wakes by then if nothing does before; the oldest first."""
        return [
            task
            for task in self.threads
            if task.state is WAITING and task.deadline is not None and task.deadline <= time
        ]

    def kill(self, task: Task) -> None:
        """`task` does no further step, whatever wakes it. No thread waits for its end."""
        self.block(task)
        task.state = KILLED
        task.deadline = task.until = None
        task.daemon = True

    def finish(self, task: Task) -> None:
        """`task` has ended."""
        self.block(task)
        task.state = ENDED

    # -- ranks -------------------------------------------------------------------------------------------------

    def outranked(self, me: Task, *, briefly: bool) -> None:
        """`me` ranks below all that can go on, until each has done a step; `briefly`: until any has."""
        below = 0
        for task in self.ready:
            below |= 1 << task.index
        for task in self.resting:
            below |= 1 << task.index
        me.below = below & ~(1 << me.index)
        me.briefly = briefly
        self.ranked = True

    def prefer(self, starved: list[Task]) -> None:
        """All others rank below `starved`: threads that can go on and have done no step for long."""
        above = 0
        for task in starved:
            task.below = 0
            above |= 1 << task.index
        for task in [*self.ready, *self.resting]:
            if task not in starved:
                task.below |= above
                task.briefly = False
        self.ranked = True

    def rank(self) -> None:
        """Before a choice: a thread that is outranked rests, and all others that can go on are ready."""
        able = 0
        for task in self.ready:
            able |= 1 << task.index
        for task in self.resting:
            able |= 1 << task.index
        for task in [item for item in self.ready if item.below & able]:
            self.ready.remove(task)
            self.resting.append(task)
            task.state = RESTING
        for task in [item for item in self.resting if not item.below & able]:
            self.resting.remove(task)
            self.ready.append(task)
            task.state = READY

    def chosen(self, task: Task) -> None:
        """After a choice: no thread ranks below `task` any more."""
        others = ~(1 << task.index)
        ranked = False
        for item in self.threads:
            if item.below:
                item.below = 0 if item.briefly else item.below & others
                ranked = ranked or item.below != 0
        self.ranked = ranked or bool(self.resting)
