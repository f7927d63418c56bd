"""Time that passes early: each strategy finds faults that only a busy machine shows, and accuses no twin."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from searching import NIGHT

from explore.early_programs import PROGRAMS, AcquireUnasked, CacheLooksTwice, EventUnasked, TwoReadings
from reactive_runtime.explore import Failure, explore, replay
from reactive_runtime.explore._checks.scenario import scenario_of
from reactive_runtime.explore._schedule.session import Session
from reactive_runtime.explore._schedule.task import CUT
from reactive_runtime.explore._search.bounded import Bounded
from reactive_runtime.explore._search.dpor import DPOR

STRATEGIES = ("portfolio", "random", "pct", "pos", "urw", "surw", "feedback", "bounded", "dpor", "brute-force")
SEEDS = range(20) if NIGHT else range(2)
BRUTE = 4_000 if NIGHT else 300
"""Schedules after which brute force is not waited for."""

names = [program.__name__ for program in PROGRAMS]


def failure_of(program: Any, **options: Any) -> Failure:
    failure = explore(program, **options).failure
    assert failure is not None
    return failure


@pytest.mark.parametrize("program", PROGRAMS, ids=names)
def test_a_fault_is_found_with_each_seed_and_by_each_strategy(program: type[Any]) -> None:
    for seed in SEEDS:
        assert explore(program, seed=seed, shrink=False).failure is not None, f"seed {seed}"
    for strategy in STRATEGIES:
        assert explore(program, strategy=strategy, shrink=False).failure is not None, strategy


@pytest.mark.parametrize("program", PROGRAMS, ids=names)
def test_a_fault_needs_time_that_passes_early(program: type[Any]) -> None:
    assert explore(program, early_timeouts=0).verdict.kind == "exhausted"


@pytest.mark.parametrize("twin", PROGRAMS.values(), ids=names)
def test_a_twin_is_not_accused(twin: type[Any]) -> None:
    for early in (1, 2):
        assert explore(twin, early_timeouts=early).verdict.kind == "exhausted", f"{early}"
    for strategy in STRATEGIES:
        assert explore(twin, strategy=strategy, schedules=200).failure is None, strategy


def outcomes(program: Any, search: Any, early: int) -> set[Any] | None:
    """The ends of all schedules; None: there are too many."""
    scenario = scenario_of(program)
    with Session(scenario, "shared", (), limit=2_000, hang=10, early=early) as session:
        seen: set[Any] = set()
        runs, version = 0, -1
        while runs <= BRUTE:
            session.tracks(True)
            if not search.begin(session.scheduler):
                return seen
            if session.scheduler.version != version:  # a further race was seen: the search begins anew
                version, seen, runs = session.scheduler.version, set(), 0
            stop = session.run(scenario, search)
            if stop is None or stop.kind != CUT:
                runs += 1
                seen.add(None if stop is None else (stop.kind, stop.what.partition(" at 0x")[0]))
    return None


@pytest.mark.parametrize("early", [1, 2])
@pytest.mark.parametrize("pair", PROGRAMS.items(), ids=names)
def test_searches_to_the_end_say_what_brute_force_says(pair: tuple[Any, Any], early: int) -> None:
    for program in pair:
        brute = outcomes(program, Bounded(reduced=False), early)
        if brute is not None:
            assert outcomes(program, Bounded(), early) == brute
            assert outcomes(program, DPOR(), early) == brute


def test_the_failure_is_small_shows_the_timeout_and_is_replayed() -> None:
    failure = failure_of(EventUnasked)
    assert failure.preemptions == 1
    assert failure.minimal
    assert "# its time is over" in failure.diagram()
    again = replay(EventUnasked, failure.token).failure
    assert again is not None
    assert again.schedule == failure.schedule
    assert "# 1 s later" in failure_of(TwoReadings).diagram()


def test_a_preemption_is_counted_beside_the_early_timeout() -> None:
    assert failure_of(AcquireUnasked).preemptions == 2


def test_the_verdict_says_how_many_early_timeouts_it_allowed() -> None:
    twin = PROGRAMS[AcquireUnasked]
    assert str(explore(twin).verdict) == "exhausted, with at most 1 early timeout"
    assert str(explore(twin, early_timeouts=2).verdict) == "exhausted, with at most 2 early timeouts"
    assert str(explore(twin, early_timeouts=0).verdict) == "exhausted"
    assert str(explore(twin, strategy="random", schedules=10).verdict).endswith("%), with at most 1 early timeout")


class NoClock:
    def __init__(self) -> None:
        self.event = threading.Event()

    def actor_sets(self) -> None:
        self.event.set()

    def actor_waits(self) -> None:
        self.event.wait()


def test_a_program_that_waits_for_no_clock_has_the_schedules_of_before() -> None:
    for strategy in STRATEGIES:
        with_early = explore(NoClock, strategy=strategy, schedules=50)
        without = explore(NoClock, strategy=strategy, schedules=50, early_timeouts=0)
        assert str(with_early) == str(without)
        assert with_early.verdict.early_timeouts is None


class TwoTimes:
    """Two waits have to end early before it fails."""

    def __init__(self) -> None:
        self.event = threading.Event()

    def actor_works(self) -> None:
        self.event.set()

    def actor_waits(self) -> None:
        assert self.event.wait(1) or self.event.wait(1), "not in time"


def test_a_fault_that_needs_two_early_timeouts_needs_two() -> None:
    assert explore(TwoTimes).verdict.kind == "exhausted"
    assert failure_of(TwoTimes, early_timeouts=2).preemptions == 2


class LaterFirst:
    """One sleeps for a second and one for ten, so that the clock is at ten, or at eleven where that one began late."""

    def actor_short(self) -> None:
        time.sleep(1)

    def actor_long(self) -> None:
        time.sleep(10)

    def actor_works(self) -> None:
        pass

    def outcome(self) -> float:
        return time.monotonic()


def test_the_clock_passes_all_deadlines_on_its_way() -> None:
    assert {outcome.value for outcome in explore(LaterFirst, pause=10).outcomes} == {10.0, 11.0}


class Patient:
    """A wait for ten seconds, which is meant never to end but by a fault."""

    def __init__(self) -> None:
        self.event = threading.Event()

    def actor_sets(self) -> None:
        self.event.set()

    def actor_waits(self) -> None:
        assert self.event.wait(10), "not in time"


def test_a_wait_that_is_longer_than_a_pause_does_not_end_early() -> None:
    assert str(explore(Patient).verdict) == "exhausted"
    failure = failure_of(Patient, pause=10)
    assert replay(Patient, failure.token).failure is not None


@pytest.mark.parametrize("pause", [0, -1.0, float("nan"), float("inf")])
def test_arguments_out_of_range_are_refused(pause: float) -> None:
    with pytest.raises(ValueError, match="early_timeouts must be at least 0, not -1"):
        explore(CacheLooksTwice, early_timeouts=-1)
    with pytest.raises(ValueError, match="pause must be above 0, and finite"):
        explore(CacheLooksTwice, pause=pause)
