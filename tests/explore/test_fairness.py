"""Schedules are fair: a thread that waits in a loop keeps no other from its work, and a livelock is one."""

from __future__ import annotations

import random
import threading
from typing import Any

import pytest
from searching import NIGHT

from explore.programs import BROKEN
from explore.spinning import CORRECT, LIVELOCKS
from reactive_runtime.explore import explore
from reactive_runtime.explore._checks.scenario import scenario_of
from reactive_runtime.explore._schedule.scheduler import Scheduler
from reactive_runtime.explore._schedule.session import Session
from reactive_runtime.explore._schedule.task import ENDED, READY, RESTING, WAITING, Task
from reactive_runtime.explore._search.strategies import PCT, Random

SEEDS = 20 if NIGHT else 3


@pytest.mark.parametrize("program", CORRECT, ids=lambda item: item.__name__)
def test_a_correct_program_that_waits_in_loops_is_not_accused(program: Any) -> None:
    for seed in range(SEEDS):
        explore(program, seed=seed, schedules=60).assert_holds()


@pytest.mark.parametrize("program", CORRECT[:6], ids=lambda item: item.__name__)
@pytest.mark.parametrize("strategy", ["random", "pct3", "pos", "urw"])
def test_nor_by_a_single_strategy(program: Any, strategy: str) -> None:
    explore(program, strategy=strategy, schedules=40).assert_holds()


@pytest.mark.parametrize("program", LIVELOCKS, ids=lambda item: item.__name__)
def test_a_livelock_is_reported_long_before_the_limit_of_steps(program: Any) -> None:
    for seed in range(SEEDS if NIGHT else 1):
        failure = explore(program, seed=seed).failure
        assert failure is not None
        assert failure.kind == "livelock"
        assert len(failure.schedule) < 10_000


def test_a_lock_that_is_held_again_leaves_a_thread_its_timeout() -> None:
    """It was woken, and another was quicker: it still waits no longer than it said."""

    class Quicker:
        def __init__(self) -> None:
            self.lock = threading.Lock()
            self.gave_up = threading.Event()

        def actor_waits(self) -> None:
            if self.lock.acquire(timeout=1):
                self.lock.release()
            self.gave_up.set()

        def actor_holds(self) -> None:
            with self.lock:
                self.gave_up.wait()

        def actor_releases(self) -> None:
            with self.lock:
                pass

    explore(Quicker, schedules=500).assert_holds()


# -- states ---------------------------------------------------------------------------------------------------


def check(scheduler: Scheduler) -> None:
    """What holds of the states of all threads whenever one is chosen."""
    lists = {READY: scheduler.ready, RESTING: scheduler.resting}
    for state, tasks in lists.items():
        assert all(task.state is state for task in tasks)
        assert len(set(tasks)) == len(tasks)
    for task in scheduler.threads:
        assert task.state in (READY, RESTING, WAITING, ENDED)
        assert (task in scheduler.ready) == (task.state is READY)
        assert (task in scheduler.resting) == (task.state is RESTING)
        if task.state is WAITING and task.deadline is not None:
            assert any(entry[0] == task.deadline and entry[3] is task for entry in scheduler.timers)
    able = {task.index: task for task in [*scheduler.ready, *scheduler.resting]}
    for task in scheduler.ready:  # none that is outranked is chosen
        assert not any(task.below >> index & 1 for index in able)
    for task in scheduler.resting:  # and one that rests is outranked
        assert any(task.below >> index & 1 for index in able)


@pytest.mark.parametrize("strategy", [Random, PCT])
@pytest.mark.parametrize(
    "program", [*CORRECT, *(entry.program for entry in BROKEN)], ids=lambda item: scenario_of(item).name
)
def test_the_states_of_threads_hold_together_at_each_choice(program: Any, strategy: Any) -> None:
    scenario = scenario_of(program)
    with Session(scenario, "shared", (), limit=20_000, hang=10) as session:
        inner = strategy(random.Random(1))
        choose = inner.choose

        def checked(ready: list[Task], me: Task) -> Task:
            check(session.scheduler)
            assert len(ready) > 1
            chosen: Task = choose(ready, me)
            return chosen

        inner.choose = checked
        for _ in range(15):
            session.tracks(False)
            inner.begin(session.scheduler)
            session.run(scenario, inner)
            inner.end(session.scheduler)
