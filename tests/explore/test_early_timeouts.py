"""Time that passes early: each strategy finds faults that only a busy machine shows, and accuses no twin."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from searching import NIGHT

from explore.drawn_waits import drawn
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


def outcomes(program: Any, search: Any, early: int, most: int = BRUTE) -> set[Any] | None:
    """The ends of all schedules; None: there are too many."""
    scenario = scenario_of(program)
    with Session(scenario, "shared", (), limit=2_000, hang=10, early=early) as session:
        seen: set[Any] = set()
        runs, version = 0, -1
        while runs <= most:
            session.tracks(True)
            if not search.begin(session.scheduler):
                return seen
            if session.scheduler.version != version:  # a further race was seen: the search begins anew
                version, seen, runs = session.scheduler.version, set(), 0
            stop = session.run(scenario, search)
            if stop is None or stop.kind != CUT:
                runs += 1
                last = repr(session.observations.last)
                seen.add(last if stop is None else (stop.kind, stop.what.partition(" at 0x")[0]))
    return None


@pytest.mark.parametrize("early", [1, 2])
@pytest.mark.parametrize("pair", PROGRAMS.items(), ids=names)
def test_searches_to_the_end_say_what_brute_force_says(pair: tuple[Any, Any], early: int) -> None:
    for program in pair:
        brute = outcomes(program, Bounded(reduced=False), early)
        if brute is not None:
            assert outcomes(program, Bounded(), early) == brute
            assert outcomes(program, DPOR(), early) == brute


@pytest.mark.parametrize("early", [0, 1, 2])
@pytest.mark.parametrize("tens", range(100 if NIGHT else 3))
def test_of_drawn_waits_the_searches_say_what_brute_force_says(tens: int, early: int) -> None:
    for seed in range(10 * tens, 10 * tens + 10):
        program = drawn(seed)
        brute = outcomes(program, Bounded(reduced=False), early, 150)
        if brute is not None:
            for search in (Bounded(), DPOR()):
                assert outcomes(program, search, early, 3_000) == brute, f"seed {seed}, {search.name}"


class Alike:
    """Two threads are woken for one lock, with the same deadline, in one step."""

    def __init__(self) -> None:
        self.lock = threading.Lock()

    def take(self) -> None:
        if self.lock.acquire(timeout=1):
            self.lock.release()

    def actor_a(self) -> None:
        self.take()

    def actor_b(self) -> None:
        self.take()

    def actor_twice(self) -> None:
        for _ in range(2):
            with self.lock:
                pass


class BesideSleepers:
    """Two threads sleep, and two others lose an update."""

    def __init__(self) -> None:
        self.n = 0

    def actor_a(self) -> None:
        time.sleep(0.3)

    def actor_b(self) -> None:
        time.sleep(0.3)

    def actor_c(self) -> None:
        self.n += 1

    def actor_d(self) -> None:
        self.n += 1

    def outcome(self) -> int:
        return self.n


class ReadsLate:
    """The clock is at one only if it is read late before the other sleeps."""

    def actor_reads(self) -> None:
        time.monotonic()

    def actor_sleeps(self) -> None:
        time.sleep(0.3)

    def outcome(self) -> float:
        return time.monotonic()


class LongAndShort:
    """The longer sleep can end early only when the shorter one has."""

    def __init__(self) -> None:
        self.event = threading.Event()

    def actor_long(self) -> None:
        time.sleep(2)

    def actor_short(self) -> None:
        time.sleep(1)

    def actor_sets(self) -> None:
        self.event.set()


class TriesItsOwn:
    """A thread tries the lock that it has: the other one could have had it before."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.event = threading.Event()

    def actor_tries(self) -> None:
        with self.lock:
            self.lock.acquire(blocking=False)
            self.event.wait(1)

    def actor_sleeps(self) -> None:
        with self.lock:
            pass
        time.sleep(2)

    def outcome(self) -> float:
        return time.monotonic()


class JoinsWhatBegins:
    """A thread is joined while another one starts it."""

    def __init__(self) -> None:
        self.thread: threading.Thread | None = None
        self.said = ""

    def actor_starts(self) -> None:
        self.thread = threading.Thread(target=int)
        self.thread.start()

    def actor_joins(self) -> None:
        if self.thread is not None:
            try:
                self.thread.join(1)
                self.said = "joined"
            except RuntimeError as error:
                self.said = str(error)

    def outcome(self) -> str:
        return self.said


@pytest.mark.parametrize("early", [0, 1, 2])
@pytest.mark.parametrize(
    "program",
    [Alike, BesideSleepers, ReadsLate, LongAndShort, TriesItsOwn, JoinsWhatBegins],
    ids=lambda of: of.__name__,
)
def test_the_searches_agree_on_waits_that_are_close_together(program: type[Any], early: int) -> None:
    found = [outcomes(program, search, early, 5_000) for search in (Bounded(), DPOR())]
    brute = outcomes(program, Bounded(reduced=False), early, 5_000)
    assert found[0] == found[1] is not None
    assert brute in (None, found[0])
    assert all(type(end) is str for end in found[0] or ()), "none of them fails"


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
    with pytest.raises(ValueError, match="seconds must be more than 0, not 0"):
        explore(CacheLooksTwice, seconds=0)
