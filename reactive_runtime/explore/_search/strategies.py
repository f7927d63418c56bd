"""Which thread goes next: strategies that sample.

The explorer calls a strategy at the beginning and the end of each schedule, and at each point where there is a choice.
All draw from one seeded generator, so the same seed gives the same schedules.

- *random*: any thread, with the same chance. Finds what needs several switches close together.
- *PCT(d)* (Burckhardt and others, 2010): threads have random priorities, and d - 1 times in a schedule the one that
  runs drops to the lowest. Finds a bug that needs d orderings with a chance that is known beforehand, and switches
  rarely.
- *POS* (Yuan and others, 2018): each operation has a random priority, drawn again when a competing one went first.
  Even over the orders of competing operations, not over the switches.
- *URW*: any thread, in proportion to the steps that are left to do. Even over whole schedules.
- *SURW* (Zhao and others, Selectively Uniform Concurrency Testing, 2025): the same for a selection of the operations,
  those on one location, another one each time. Even over the orders in which threads come to that location; what is
  done elsewhere does not count.
- *feedback* (see `feedback`): schedules that showed something new are changed a little, and tried again.
- *early* (`Early`), with each of these: now and then time passes early (`Scheduler`), at a place by chance.
- *portfolio* (see `portfolio`): each in turn, and after each a schedule of the search by preemption bound. One finds
  faults that another misses.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, Protocol

from reactive_runtime.explore._schedule.scheduler import Scheduler
from reactive_runtime.explore._schedule.task import WAITING, Several, Task, parts_of

__all__ = ["PCT", "POS", "SURW", "URW", "Early", "Random", "Replayed", "Strategy"]


class Strategy(Protocol):
    """Chooses which thread goes next."""

    @property
    def name(self) -> str:
        """What it is called."""
        raise NotImplementedError

    def begin(self, scheduler: Scheduler) -> bool:
        """A schedule begins; False: there is none left to try."""
        raise NotImplementedError

    def choose(self, ready: list[Task], me: Task) -> Task:
        """One of `ready`, which are two or more; `me` ran until now, and may not be among them."""
        raise NotImplementedError

    def end(self, scheduler: Scheduler) -> None:
        """The schedule has ended."""


class Random:
    """See `random` above."""

    name = "random"

    def __init__(self, rng: random.Random) -> None:
        self._random = rng.random

    def begin(self, scheduler: Scheduler) -> bool:
        """There is always a schedule left."""
        return True

    def choose(self, ready: list[Task], me: Task) -> Task:
        """Any of them, with the same chance."""
        return ready[int(self._random() * len(ready))]

    def end(self, scheduler: Scheduler) -> None:
        """It learns nothing from a schedule."""


class PCT:
    """See `PCT` above; `depth` is d."""

    def __init__(self, rng: random.Random, depth: int = 3) -> None:
        self.name: str = f"pct{depth}"
        self._rng = rng
        self._depth = depth
        self._longest = 20
        self._scheduler: Scheduler
        self._changes: list[int] = []
        self._next = 0
        self._lowest = 0.0

    def begin(self, scheduler: Scheduler) -> bool:
        """Draw at which steps of the schedule priorities change."""
        self._scheduler = scheduler
        random_ = self._rng.random
        self._changes = sorted((1 + int(random_() * self._longest) for _ in range(self._depth - 1)), reverse=True)
        self._next = self._changes.pop() if self._changes else scheduler.limit + 1
        self._lowest = 0.0
        return True

    def choose(self, ready: list[Task], me: Task) -> Task:
        """The one with the highest priority; where priorities change, the one that ran drops to the lowest first."""
        if self._scheduler.steps >= self._next:
            self._lowest -= 1.0
            me.priority = self._lowest
            self._next = self._changes.pop() if self._changes else self._scheduler.limit + 1
        best = ready[0]
        highest = -1e9
        for task in ready:
            priority = task.priority
            if priority == 0.0:
                priority = task.priority = 1.0 + self._rng.random()
            if priority > highest:
                best, highest = task, priority
        return best

    def end(self, scheduler: Scheduler) -> None:
        """Remember the length: the changes of later schedules are spread over it."""
        self._longest = max(self._longest, scheduler.steps)


class POS:
    """See `POS` above."""

    name = "pos"

    def __init__(self, rng: random.Random) -> None:
        self._random = rng.random

    def begin(self, scheduler: Scheduler) -> bool:
        """There is always a schedule left."""
        return True

    def choose(self, ready: list[Task], me: Task) -> Task:
        """The one whose operation has the highest priority; operations that compete with it get new ones."""
        random_ = self._random
        best, highest = ready[0], -1.0
        for task in ready:
            priority = task.priority
            # A new operation has a new priority: the one that ran has come to another point.
            if priority <= 0.0 or task is me:
                priority = task.priority = random_()
            if priority > highest:
                best, highest = task, priority
        location = best.location
        if location is not None:
            for task in ready:
                if task is not best and (task.writes or best.writes) and _touch_the_same(task.location, location):
                    task.priority = 0.0
        best.priority = 0.0
        return best

    def end(self, scheduler: Scheduler) -> None:
        """It learns nothing from a schedule."""


def _touch_the_same(one: Any, other: Any) -> bool:
    """Whether what two threads are about to touch has a location in common."""
    if type(one) is Several or type(other) is Several:
        return any(part in parts_of(other) for part in parts_of(one))
    return one is other


class URW:
    """See `URW` above. How many steps are left is guessed from how many there were before."""

    name = "urw"

    def __init__(self, rng: random.Random) -> None:
        self._random = rng.random
        self._expected: dict[int, float] = {}
        self._scheduler: Scheduler
        self._done: dict[int, int] = {}  # steps by thread, of
        self._counted = 0  # so many of the schedule

    def begin(self, scheduler: Scheduler) -> bool:
        """There is always a schedule left."""
        self._scheduler = scheduler
        self._done = {}
        self._counted = 0
        return True

    def choose(self, ready: list[Task], me: Task) -> Task:
        """Any of them, in proportion to the steps that it is expected to have left."""
        done, expected = self._count(), self._expected
        weights = [max(1.0, expected.get(task.index, 10.0) - done.get(task.index, 0)) for task in ready]
        at = self._random() * sum(weights)
        for item, weight in zip(ready, weights, strict=True):
            at -= weight
            if at < 0:
                return item
        return ready[-1]

    def end(self, scheduler: Scheduler) -> None:
        """Remember how many steps each thread took: three parts of what was expected, and one of what was seen."""
        done = self._count()
        for thread in scheduler.threads[1:]:
            steps = done.get(thread.index, 0)
            before = self._expected.get(thread.index, float(steps))
            self._expected[thread.index] = before * 0.75 + steps * 0.25

    def _count(self) -> dict[int, int]:
        """The steps that each thread has done, of which those since the last call are added now."""
        schedule, done = self._scheduler.schedule, self._done
        for index in schedule[self._counted :]:
            done[index] = done.get(index, 0) + 1
        self._counted = len(schedule)
        return done


class SURW:
    """See `SURW` above. Which operations are on one location, and how many each thread does, was seen before."""

    name = "surw"

    def __init__(self, rng: random.Random) -> None:
        self._random = rng.random
        self._places: list[dict[tuple[int, Any], int]] = []  # of the schedule before: by location, how often each
        self._selected: dict[tuple[int, Any], int] = {}  # thread, and what it does there: how often
        self._left: dict[int, int] = {}  # by thread, of the selected ones
        self._intended = -1  # the thread whose selected operation comes next
        self._seen: dict[Any, dict[tuple[int, Any], int]] = {}

    def begin(self, scheduler: Scheduler) -> bool:
        """Select a location."""
        places = self._places
        self._selected = places[int(self._random() * len(places))] if places else {}
        self._left = {}
        for (thread, _), count in self._selected.items():
            self._left[thread] = self._left.get(thread, 0) + count
        self._intended = -1
        self._seen = {}
        return True

    def choose(self, ready: list[Task], me: Task) -> Task:
        """Any thread; but of those that come to the location, the intended one, in proportion to what it has left."""
        random_ = self._random
        selected, left = self._selected, self._left
        coming = [task for task in ready if (task.index, task.what) in selected]
        free = ready
        if coming:
            indices = [task.index for task in ready]
            if self._intended not in indices:
                weights = [max(1, left[index]) if index in left else 0 for index in indices]
                at = random_() * sum(weights)
                for index, weight in zip(indices, weights, strict=True):
                    at -= weight
                    if at < 0:
                        self._intended = index
                        break
            free = [task for task in ready if task.index == self._intended or task not in coming]
        chosen = free[int(random_() * len(free))]
        if chosen in coming:
            left[chosen.index] -= 1
            self._intended = -1
        location = chosen.location
        if location is not None:
            key = (chosen.index, chosen.what)
            for part in parts_of(location):
                place = self._seen.setdefault(part, {})
                place[key] = place.get(key, 0) + 1
        return chosen

    def end(self, scheduler: Scheduler) -> None:
        """Remember the locations to which several threads came."""
        places = [place for place in self._seen.values() if len({thread for thread, _ in place}) > 1]
        self._places = places or self._places
        self._seen = {}


class Early:
    """A strategy, in whose schedules time passes early now and then.

    In some of them not at all, so that a fault that needs none is found as soon as before. The others draw where, among
    as many places as a schedule had at most.
    """

    def __init__(self, inner: Strategy, rng: random.Random) -> None:
        self.name: str = inner.name
        self.inner: Strategy = inner
        """The scheduler asks it alone wherever no wait could end early."""
        self._rng = rng  # its own: a program without timeouts has the schedules that it has without this
        self._scheduler: Scheduler
        self._most = 4  # places in a schedule
        self._seen = 0  # of these, in this schedule
        self._at: list[int] = []  # those at which time passes, the last one first

    def begin(self, scheduler: Scheduler) -> bool:
        """Nothing is drawn before there is a place."""
        self._scheduler = scheduler
        self._most = max(self._most, self._seen)
        self._seen = 0
        return self.inner.begin(scheduler)

    def _draw(self) -> None:
        """Draw where time passes, in this schedule."""
        times = self._rng.randrange(self._scheduler.early + 1)
        self._at = sorted((self._rng.randrange(self._most) for _ in range(times)), reverse=True)

    def choose(self, ready: list[Task], me: Task) -> Task:
        """That of the strategy, of those that can go on; or, at the places drawn, one of the others."""
        able = [task for task in ready if task.state is not WAITING]
        if len(able) == len(ready):
            return self.inner.choose(ready, me)
        if not self._seen:
            self._draw()
        place, self._seen = self._seen, self._seen + 1
        if self._at and place >= self._at[-1]:
            self._at.pop()
            early = [task for task in ready if task.state is WAITING]
            return early[self._rng.randrange(len(early))]
        return able[0] if len(able) <= self._scheduler.few else self.inner.choose(able, me)

    def end(self, scheduler: Scheduler) -> None:
        """As the strategy."""
        self.inner.end(scheduler)


class Replayed:
    """Follows a schedule; where that can't be, says so.

    With `exactly`, a thread that can't go on when it should is an end of the run (`diverged` says where). Without, the
    one that ran goes on, else the first: a schedule with pieces cut out is tried for what is left of it.
    """

    name = "replay"

    def __init__(self, schedule: Sequence[int], *, exactly: bool = True) -> None:
        self._schedule = schedule
        self._exactly = exactly
        self._scheduler: Scheduler
        self.diverged: str | None = None
        self.preemptions: int = 0

    def begin(self, scheduler: Scheduler) -> bool:
        """Follow the schedule from its beginning."""
        self._scheduler = scheduler
        self.diverged = None
        self.preemptions = 0
        return True

    def choose(self, ready: list[Task], me: Task) -> Task:
        """The thread that the schedule says; where that can't go on, see the class."""
        at = len(self._scheduler.schedule)
        if at < len(self._schedule):
            wanted = self._schedule[at]
            for entry in ready:
                if entry.index == wanted:
                    self.preemptions += entry.state is WAITING or (entry is not me and me in ready)
                    return entry
            if self._exactly and self.diverged is None:
                names = ", ".join(task.name for task in ready)
                self.diverged = f"step {at + 1}: thread {wanted} should go on, and only {names} can"
        if me in ready:
            return me
        return min(ready, key=lambda item: (item.state is WAITING, item.index))

    def end(self, scheduler: Scheduler) -> None:
        """Nothing is left to do: `diverged` and `preemptions` say how it went."""
