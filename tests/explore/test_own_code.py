"""The package's own code holds: searched to the end for few preemptions, and sampled beyond."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from searching import NIGHT, each_of_both_by_day, holds_with_few_preemptions
from sinks import Sink

from explore.own_code import LARGE, PAIRS, PROGRAMS, PUBLISHERS, SCENARIOS, Own, Reach
from reactive_runtime import Flow
from reactive_runtime._spec import MAX_DEMAND
from reactive_runtime.explore import cancel, explore, explore_publisher, programs, request

BEYOND = int(os.environ.get("EXPLORE_SCHEDULES", "60"))
"""Schedules of PCT with three threads and more; nightly 5,000."""

ALL = {**PROGRAMS, **PAIRS}
CASES = [
    (own, name)
    for own in PUBLISHERS
    if own.reach is not Reach.SAMPLED
    for name in (ALL if own.reach is Reach.WIDE else PROGRAMS)
]
if not NIGHT:
    CASES = CASES[::4]  # a fourth of the programs of each publisher, and of the publishers of each program


def test_each_publisher_and_each_program_is_among_them() -> None:
    assert {own for own, _ in CASES} == {own for own in PUBLISHERS if own.reach is not Reach.SAMPLED}
    assert {name for _, name in CASES} == set(ALL)


@pytest.mark.parametrize(("own", "name"), CASES, ids=[f"{own.name}-{name}" for own, name in CASES])
def test_every_schedule_with_few_preemptions_keeps_the_rules(own: Own, name: str) -> None:
    holds_with_few_preemptions(
        partial(
            explore_publisher,
            own.factory,
            ALL[name],
            elements=own.elements,
            ascending=own.ascending and own.elements != 1,
            demand=1 if name in PROGRAMS else 0,
        )
    )


SAMPLES = each_of_both_by_day([own for own in PUBLISHERS if own.reach is Reach.SAMPLED], list(PROGRAMS))


@pytest.mark.parametrize(("own", "name"), SAMPLES, ids=[f"{own.name}-{name}" for own, name in SAMPLES])
def test_a_sample_of_schedules_with_three_threads_and_more_keeps_the_rules(own: Own, name: str) -> None:
    explore_publisher(
        own.factory,
        PROGRAMS[name],
        elements=own.elements,
        ascending=own.ascending and own.elements != 1,
        demand=1,
        schedules=BEYOND,
    ).assert_holds()


MANY_THREADS: list[Any] = [[request(1), request(2)], [request(MAX_DEMAND)], [request(0)], [cancel(), cancel()]]


@pytest.mark.parametrize("own", PUBLISHERS, ids=lambda own: own.name)
def test_many_threads_keep_the_rules(own: Own) -> None:
    for inside in ({}, {1: request(1)}, {2: cancel()}):
        explore_publisher(
            own.factory,
            MANY_THREADS,
            elements=own.elements,
            ascending=own.ascending and own.elements != 1,
            inside=inside,
            strategy="pct3",
            schedules=BEYOND,
        ).assert_holds()


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda item: item.__name__)
def test_executors_timers_and_sinks_hold_in_every_schedule_with_few_preemptions(scenario: Any) -> None:
    holds_with_few_preemptions(partial(explore, scenario))
    explore(scenario, strategy="pct3", schedules=BEYOND).assert_holds()


@pytest.mark.parametrize("scenario", LARGE, ids=lambda item: item.__name__)
def test_larger_programs_hold_in_a_sample_of_their_schedules(scenario: Any) -> None:
    explore(scenario, schedules=(5 if NIGHT else 2) * BEYOND).assert_holds()


@settings(max_examples=100 if NIGHT else 10, suppress_health_check=[HealthCheck.too_slow])
@given(programs(actors=3, length=2))
def test_generated_programs_keep_the_rules(actors: list[Any]) -> None:
    for own in (PUBLISHERS[1], PUBLISHERS[6]):
        explore_publisher(own.factory, actors, elements=own.elements, schedules=60).assert_holds()


class HandedOver:
    """A boundary, in whose pool the first task of a run is the first of its thread, or of one that outlived a run."""

    def __init__(self) -> None:
        self.pool = ThreadPoolExecutor(1)
        self.sink = Sink(demand=1)
        Flow.range(0, 3).publish_on(self.pool).subscribe(self.sink)

    def actor_one(self) -> None:
        self.sink.subscription.request(5)

    def actor_two(self) -> None:
        self.seen = list(self.sink.elements)

    def at_end(self) -> None:
        assert self.sink.elements == [0, 1, 2]


@pytest.mark.parametrize("points", ["line", "opcode"])
def test_a_run_does_the_same_whatever_its_threads_have_done_before(points: Any) -> None:
    assert explore(HandedOver, points=points, strategy="bounded", bound=0, schedules=30).verdict.kind == "exhausted"
