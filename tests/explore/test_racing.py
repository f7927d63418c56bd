"""Every asynchronous operator and hot source holds in every schedule with few preemptions, whatever races whatever."""

from __future__ import annotations

import os
from functools import partial

import pytest
from searching import ENGINES, NIGHT, holds_with_few_preemptions

from explore.racing import OPERATORS, RACES, Applied, finished, races
from reactive_runtime.explore import explore_publisher

BEYOND = int(os.environ.get("EXPLORE_SCHEDULES", "40"))
"""Schedules of PCT for each race; nightly 5,000."""

LONG = ("balance", "bulkhead, shared", "window_timeout")
"""Their race in turn takes thousands of schedules; by day they have the one after it."""

SAMPLED = set() if NIGHT else {"on_error_continue", *list(OPERATORS)[::2]}
"""By day a sample of the schedules of these; the others, and at night all, have every one with few preemptions."""

CASES = [
    (name, race)
    for at, (name, operator) in enumerate(OPERATORS.items())
    for number, race in enumerate(races(operator))
    if NIGHT or number == (at + (name in LONG)) % len(races(operator))  # by day a race of each operator, in turn
]


def test_each_operator_and_each_race_is_among_them() -> None:
    assert {name for name, _ in CASES} == set(OPERATORS)
    assert {race for _, race in CASES} == set(RACES)


@pytest.mark.parametrize(("name", "race"), CASES, ids=[f"{name}-{race}" for name, race in CASES])
def test_each_schedule_keeps_the_rules_and_comes_to_an_end(name: str, race: str) -> None:
    _, demand, actors = RACES[race]
    explored = partial(
        explore_publisher,
        partial(Applied, OPERATORS[name]),
        actors,
        demand=demand,
        ascending=False,
        finish=finished,
    )
    if name not in SAMPLED:
        holds_with_few_preemptions(explored)
    explored(strategy="pct3", schedules=BEYOND).assert_holds()


@pytest.mark.parametrize(("name", "race"), CASES[::16], ids=[f"{name}-{race}" for name, race in CASES[::16]])
def test_greenlets_run_the_schedules_that_threads_run(name: str, race: str) -> None:
    _, demand, actors = RACES[race]
    found = [
        explore_publisher(
            partial(Applied, OPERATORS[name]),
            actors,
            demand=demand,
            ascending=False,
            finish=finished,
            strategy="bounded",
            bound=1,
            engine=engine,
        ).assert_holds()
        for engine in ENGINES
    ]
    assert {result.verdict.kind for result in found} == {"exhausted"}
    assert len({result.schedules for result in found}) == 1
