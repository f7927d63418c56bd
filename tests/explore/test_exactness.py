"""The reduced search says what brute force says: the same outcomes, for each bound, of every program small enough."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from bugs import classics
from searching import NIGHT, by_day

from examples.hazards.progress.lock_order import Exchange
from explore.programs import BROKEN, FIXED, Named
from reactive_runtime.explore import Verdict, explore
from reactive_runtime.explore._checks.scenario import scenario_of
from reactive_runtime.explore._schedule.session import Session
from reactive_runtime.explore._schedule.task import CUT
from reactive_runtime.explore._search.bounded import Bounded

ENOUGH = 4_000 if NIGHT else 100
"""Schedules after which brute force is not waited for."""


def outcomes(program: Any, bound: int | None, *, reduced: bool, most: int = ENOUGH) -> tuple[set[Any], int] | None:
    """What all schedules up to a bound come to, and how many were run; None: there are too many."""
    scenario = scenario_of(program)
    with Session(scenario, "shared", (), limit=5_000, hang=10) as session:
        search = Bounded(bound, reduced=reduced)
        seen: set[Any] = set()
        count = 0
        version = -1
        while count <= most:
            session.tracks(True)
            if not search.begin(session.scheduler):
                return seen, count
            if session.scheduler.version != version:  # a further race was seen: the search begins anew
                version, seen, count = session.scheduler.version, set(), 0
            stop = session.run(scenario, search)
            if stop is None or stop.kind != CUT:
                count += 1
                seen.add(None if stop is None else (stop.kind, stop.what))
    return None


@pytest.mark.parametrize("entry", by_day(2, BROKEN + FIXED), ids=lambda item: item.name)
def test_the_reduced_search_and_brute_force_come_to_the_same(entry: Named) -> None:
    for bound in (0, 1, 2, None):
        brute = outcomes(entry.program, bound, reduced=False)
        if brute is None:
            return
        reduced = outcomes(entry.program, bound, reduced=True)
        assert reduced is not None
        assert reduced[0] == brute[0], f"bound {bound}"
        assert reduced[1] <= brute[1]


@pytest.mark.parametrize("program", [classics.Bluetooth, classics.TwoStage, Exchange], ids=lambda item: item.__name__)
def test_equivalent_schedules_run_once(program: Any) -> None:
    reduced = outcomes(program, None, reduced=True, most=4_000)
    brute = outcomes(program, None, reduced=False, most=4_000)
    assert reduced is not None
    assert brute is not None
    assert reduced[0] == brute[0]
    assert reduced[1] < brute[1] / 2


def test_a_verdict_is_exhausted_when_there_is_no_schedule_left() -> None:
    result = explore(classics.FixedBluetooth, strategy="bounded")
    assert result.verdict == Verdict("exhausted", result.schedules)
    assert str(result.verdict) == "exhausted"


def test_a_verdict_is_exhausted_within_a_bound_when_there_are_schedules_with_more_preemptions() -> None:
    assert (
        str(explore(classics.PolitePhilosophers, strategy="bounded", bound=1).verdict)
        == "exhausted within 1 preemption"
    )


def test_a_verdict_is_held_when_a_budget_ran_out() -> None:
    verdict = explore(classics.PolitePhilosophers, strategy="random", schedules=10).verdict
    assert (verdict.kind, verdict.schedules) == ("held", 10)
    within = explore(classics.PolitePhilosophers, strategy="brute-force", schedules=8).verdict
    assert within == Verdict("exhausted", 8, 0)
    assert str(within) == "exhausted within 0 preemptions"
    assert str(explore(classics.PolitePhilosophers, strategy="bounded", schedules=1).verdict) == "held (1 schedule)"


def test_an_invariant_of_every_step_is_looked_at_in_every_schedule() -> None:
    """It sees what no operation depends on, so nothing may be left out for it."""

    class Passing:
        def __init__(self) -> None:
            self.a = 0
            self.b = 0

        def actor_a(self) -> None:
            self.a = 1
            self.a = 0

        def actor_b(self) -> None:
            self.b = 1
            self.b = 0

        def actor_both(self) -> None:
            self.a, self.b = self.a, self.b  # makes points of both

        def at_each_step(self) -> None:
            assert not (self.a == 1 and self.b == 1), "both at once"

    failure = explore(Passing, strategy="bounded").failure
    assert failure is not None
    assert failure.message == "both at once"


def test_a_lock_that_is_tried_makes_points_of_releases_before_the_search_goes_on() -> None:
    """The first run finds out that a thread tries; what was put off in it was put off through fewer points."""

    class Tried:
        def __init__(self) -> None:
            self.lock = threading.Lock()
            self.other = threading.Lock()

        def actor_a(self) -> None:
            with self.lock, self.other:
                pass

        def actor_b(self) -> None:
            with self.lock, self.other:
                pass

        def actor_c(self) -> None:
            if self.other.acquire(blocking=False):
                self.other.release()

    assert str(explore(Tried, strategy="bounded", schedules=20_000).assert_holds().verdict) == "exhausted"
    assert (
        str(explore(Tried, strategy="brute-force", bound=1, schedules=20_000).assert_holds().verdict)
        == "exhausted within 1 preemption"
    )
