"""The search by preemption bound: every schedule with no preemption, then with one, two, and so on to the end.

A preemption is a switch away from a thread that could have gone on. Most bugs need one or two, so those schedules
come first; what is found first has the fewest there are. Time that passes early (`Scheduler`) counts as one: another
thread was kept from its work for that long.

Equivalent schedules run once. Two schedules are equivalent when each operation comes after the same operations that
it depends on; then every thread has seen the same, and does the same next. `Scheduler.note` keeps for each thread a
number that stands for all that its next operation comes after (its *chain*). The chains of all threads, one of them
moved on by the operation it is about to do, are the key of a step: a step whose key has been seen, with as few
preemptions behind it, leads nowhere new, and is not taken. (The numbers have 64 bits; that two of them should agree by
accident is left out of account.)

Where operations can't be distinguished, at lines and instructions, or where an invariant looks at each state, the key
is the whole schedule so far, and nothing is saved.
"""

from __future__ import annotations

from math import inf

from reactive_runtime.explore._schedule.scheduler import Scheduler
from reactive_runtime.explore._schedule.task import CUT, WAITING, Stop, Task

__all__ = ["Bounded"]

_Step = tuple[list[int], int, int, int, int]
"""The schedule of a run, up to where, then which thread; preemptions by then; the key, for those put off."""


class Bounded:
    """All schedules up to a bound of preemptions, `most` of them at most (None: as many as there are)."""

    name = "bounded"

    bound: int
    exhausted: bool

    def __init__(self, most: int | None = None, *, reduced: bool = True) -> None:
        self._most = most
        self._reduced = reduced
        self._scheduler: Scheduler
        self._prefix: list[int] = []
        self.preemptions: int = 0
        """Of the schedule that is run."""
        self._restart()

    def _restart(self) -> None:
        self.bound = 0
        """The bound that is being searched."""
        self.complete: int | None = None
        """The largest bound that has been searched to its end."""
        self.exhausted = False
        """Whether there is no schedule left, of any bound."""
        self._stack: list[_Step] = [([], 0, -1, 0, 0)]
        self._deferred: list[_Step] = []
        self._beyond = False  # there are schedules with more preemptions than are asked for
        self._seen: dict[int, int] = {}
        self._version = -1

    @property
    def put_off(self) -> int:
        """The steps that are left to try; some of them prove equivalent to others."""
        return len(self._stack) + len(self._deferred)

    def begin(self, scheduler: Scheduler) -> bool:
        """Take the next step that was put off; False when the search has been to its end."""
        self._scheduler = scheduler
        if scheduler.version != self._version:  # there are more points than before: what was seen had fewer
            self._restart()
            self._version = scheduler.version
        while True:
            while not self._stack:
                self.complete = self.bound
                if not self._deferred:
                    self.exhausted = not self._beyond
                    return False
                self.bound += 1
                self._stack, self._deferred = self._deferred, []
            schedule, length, index, self.preemptions, key = self._stack.pop()
            if not key:
                break
            seen = self._seen.get(key)
            if seen is None or seen > self.preemptions:  # else it was reached meanwhile, on another way
                self._seen[key] = self.preemptions
                break
        self._prefix = schedule[:length]
        if index >= 0:
            self._prefix.append(index)
        return True

    def choose(self, ready: list[Task], me: Task) -> Task:
        """Follow the prefix, then take the thread that ran, or the first; the others are put off.

        A run that is equivalent to an earlier one is ended.
        """
        scheduler = self._scheduler
        at = len(scheduler.schedule)
        if at < len(self._prefix):
            wanted = self._prefix[at]
            for task in ready:
                if task.index == wanted:
                    return task
            scheduler.abort(Stop("diverged", f"step {at + 1}: thread {wanted} should go on, and can't"))
        goes_on = me in ready
        here = self._state(scheduler)
        chosen: Task | None = None
        chosen_cost = 0
        for task in ready:
            cost = self.preemptions + (task.state is WAITING or (goes_on and task is not me))
            key = self._key(scheduler, here, task)
            seen = self._seen.get(key)
            if seen is not None and seen <= cost:
                continue
            if cost > self.bound:
                if self._most is None or cost <= self._most:
                    self._deferred.append((scheduler.schedule, at, task.index, cost, key))
                else:
                    self._beyond = True
                continue
            self._seen[key] = cost
            if chosen is None:
                chosen, chosen_cost = task, cost
            elif task is me or (chosen is not me and _comes_before(task, chosen)):  # the one that runs is preferred
                self._stack.append((scheduler.schedule, at, chosen.index, chosen_cost, 0))
                chosen, chosen_cost = task, cost
            else:
                self._stack.append((scheduler.schedule, at, task.index, cost, 0))
        if chosen is None:
            scheduler.abort(Stop(CUT, "equivalent to a schedule that has run"))
        self.preemptions = chosen_cost
        return chosen

    def _state(self, scheduler: Scheduler) -> int:
        """A number for all that has happened so far."""
        if not (self._reduced and scheduler.tracking):
            return hash(tuple(scheduler.schedule))
        state = 0
        for thread in scheduler.threads:
            state ^= hash((thread.index, thread.chain))
        if scheduler.spare != scheduler.early:  # the clock, and the timers, may differ where all else is the same
            state ^= hash((scheduler.spare, scheduler.clock))
            for thread in scheduler.due_by(inf):
                state ^= hash((thread.index, thread.deadline, True))
        if scheduler.ranked:
            for thread in scheduler.threads:
                if thread.below:
                    state ^= hash((thread.index, thread.below, thread.briefly))
        return state

    def _key(self, scheduler: Scheduler, here: int, thread: Task) -> int:
        """A number for the step that `thread` is about to do."""
        if not (self._reduced and scheduler.tracking):
            return hash((here, thread.index))
        index = thread.index
        early = thread.state is WAITING
        return hash((here ^ hash((index, thread.chain)) ^ hash((index, scheduler.ahead(thread))), index, early))

    def end(self, scheduler: Scheduler) -> None:
        """Nothing is left to do: the steps that were put off are kept as they come."""


def _comes_before(one: Task, other: Task) -> bool:
    """Whether `one` is tried before `other`: first those that can go on, and of them the older ones."""
    return (one.state is WAITING, one.index) < (other.state is WAITING, other.index)
