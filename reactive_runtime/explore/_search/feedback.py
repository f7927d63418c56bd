"""Schedules that showed something new are kept, changed a little, and tried again.

New is a pair of operations that no schedule has shown before: one on a location, and the one of another thread that
comes next there (which store a load reads from, which thread takes a lock after which); or one thread's operation, and
another's right after it. A schedule that shows such a pair joins the *corpus*. Most schedules begin as one of the
corpus does, up to a place by chance; there another thread goes on, once, or several do from there on. Some begin with
nothing.

Origin: fuzzing by coverage; for schedules, with what reads from what, Wolff and others (Greybox Fuzzing for Concurrency
Testing, 2024).
"""

from __future__ import annotations

import random
from typing import Any, Final

from reactive_runtime.explore._schedule.scheduler import Scheduler
from reactive_runtime.explore._schedule.task import Task, parts_of

__all__ = ["Feedback"]

AFRESH: Final = 0.2
"""How often a schedule begins with nothing."""

MOST: Final = 200
"""Schedules of the corpus; the oldest one goes."""

_Operation = tuple[int, Any]
"""Which thread, and what it does."""


class Feedback:
    """Changes the schedules that showed something new."""

    name = "feedback"

    def __init__(self, rng: random.Random) -> None:
        self._random = rng.random
        self._corpus: list[list[int]] = []
        self._known: set[tuple[_Operation, _Operation, bool]] = set()
        self._found = False
        self._scheduler: Scheduler
        self._schedule: list[int] = []  # what is followed
        self._until = 0  # to there
        self._resumes = False  # and again after another thread has gone on
        self._switches = 0.0  # how often others go on from there
        self._last: dict[Any, _Operation] = {}  # by location
        self._before: _Operation | None = None

    def begin(self, scheduler: Scheduler) -> bool:
        """Take a schedule of the corpus, and draw where it is left."""
        random_ = self._random
        self._scheduler = scheduler
        self._found = False
        self._last = {}
        self._before = None
        self._switches = (0.05, 0.2, 0.5, 1.0)[int(random_() * 4)]
        if self._corpus and random_() > AFRESH:
            # The newest ones are taken more often.
            self._schedule = self._corpus[-1 - int(random_() * random_() * len(self._corpus))]
            self._until = int(random_() * len(self._schedule))
            self._resumes = random_() < 0.5
        else:
            self._schedule, self._until, self._resumes = [], 0, False
        return True

    def choose(self, ready: list[Task], me: Task) -> Task:
        """The thread of the schedule; another one where it is left; then the one that runs, or any."""
        at = len(self._scheduler.schedule)
        chosen: Task | None = None
        if at < self._until or (self._resumes and self._until < at < len(self._schedule)):
            wanted = self._schedule[at if at < self._until else at - 1]
            chosen = next((task for task in ready if task.index == wanted), None)
        elif at == self._until and self._schedule:
            wanted = self._schedule[at]
            others = [task for task in ready if task.index != wanted]
            chosen = others[int(self._random() * len(others))] if others else None
        if chosen is None:
            stays = me in ready and self._random() >= self._switches
            chosen = me if stays else ready[int(self._random() * len(ready))]
        self._look(chosen)
        return chosen

    def _look(self, chosen: Task) -> None:
        """Whether this operation after that one is new."""
        operation = (chosen.index, chosen.what)
        before, self._before = self._before, operation
        known = self._known
        if before is not None and before[0] != chosen.index and (pair := (before, operation, False)) not in known:
            known.add(pair)
            self._found = True
        location = chosen.location
        if location is None:
            return
        for part in parts_of(location):
            last = self._last.get(part)
            if last is not None and last[0] != chosen.index and (pair := (last, operation, True)) not in known:
                known.add(pair)
                self._found = True
            if chosen.writes:
                self._last[part] = operation

    def end(self, scheduler: Scheduler) -> None:
        """Keep a schedule that showed something new."""
        self._last = {}
        if self._found:
            self._corpus.append(scheduler.schedule)
            if len(self._corpus) > MOST:
                del self._corpus[0]
