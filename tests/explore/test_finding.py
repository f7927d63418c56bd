"""Every bug is found, with every seed, and soon; and nothing is found where nothing is wrong."""

from __future__ import annotations

import os
import statistics
from typing import Any

import pytest
from searching import NIGHT

from examples.hazards.atomicity.lost_update import Counter
from examples.hazards.streams.lost_demand import TextbookSubscription
from explore.programs import BROKEN, CORRECT, FIXED, Named
from reactive_runtime.explore import explore

SEEDS = range(20 if NIGHT else 5)
MOST = int(os.environ.get("EXPLORE_SCHEDULES", "1000"))
"""Schedules for a program that nothing is wrong with; nightly 5,000."""


def test_there_are_fourteen_lessons_thirty_further_bugs_and_fifty_correct_programs() -> None:
    assert len(BROKEN) >= 14 + 30
    assert len(FIXED) == len(BROKEN)
    assert len(CORRECT) == 50


@pytest.mark.parametrize("entry", BROKEN, ids=lambda item: item.name)
def test_a_bug_is_found_with_each_seed(entry: Named) -> None:
    found = [_found_after(entry.program, seed) for seed in SEEDS]
    assert max(found) <= 1_000, found
    if NIGHT:  # of five seeds the median says little
        assert statistics.median(found) <= 40, found


def _found_after(program: Any, seed: int) -> int:
    failure = explore(program, seed=seed, schedules=1_000, shrink=False).failure
    return 1_001 if failure is None else failure.found_after


@pytest.mark.parametrize("entry", FIXED, ids=lambda item: item.name)
def test_a_fixed_twin_is_never_accused(entry: Named) -> None:
    explore(entry.program, seed=1, schedules=MOST).assert_holds()


@pytest.mark.parametrize("entry", CORRECT, ids=lambda item: item.name)
def test_a_correct_program_is_never_accused(entry: Named) -> None:
    explore(entry.program, seed=1, schedules=MOST).assert_holds()


@pytest.mark.parametrize("strategy", ["random", "pct", "pct4", "pos", "urw", "bounded", "brute-force"])
def test_each_strategy_alone_finds_the_lost_demand(strategy: str) -> None:
    lost_demand = TextbookSubscription
    result = explore(lost_demand, strategy=strategy, schedules=20_000, shrink=False)
    assert result.failure is not None
    assert result.failure.rule == "3.8"


@pytest.mark.parametrize("points", ["sync", "shared", "line", "opcode"])
def test_the_lost_demand_is_found_at_all_kinds_of_points(points: Any) -> None:
    result = explore(TextbookSubscription, points=points)
    assert result.failure is not None
    assert result.failure.rule == "3.8"


def test_a_lost_update_of_a_plain_field_needs_more_than_the_points_at_primitives() -> None:
    lost_update = Counter
    assert explore(lost_update, points="sync").holds
    for points in ("shared", "opcode"):
        assert not explore(lost_update, points=points).holds
