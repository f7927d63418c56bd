"""Failures are made small."""

from __future__ import annotations

import pytest

from examples.hazards.exercises import merge
from explore.programs import BROKEN, Named
from reactive_runtime.explore import BrokenRule, explore, publisher_scenario, request


def test_the_minimum_is_certified_for_nearly_all_bugs() -> None:
    certified = [
        item for item in BROKEN if (failure := explore(item.program, seed=1).failure) is not None and failure.minimal
    ]
    assert len(certified) >= 0.95 * len(BROKEN)


@pytest.mark.parametrize("entry", BROKEN, ids=lambda item: item.name)
def test_no_schedule_with_fewer_preemptions_fails(entry: Named) -> None:
    failure = explore(entry.program, seed=2).failure
    assert failure is not None
    if failure.preemptions and failure.minimal:
        fewer = explore(entry.program, strategy="bounded", bound=failure.preemptions - 1, schedules=5_000, shrink=False)
        assert fewer.failure is None or fewer.failure.kind != failure.kind


def test_the_lost_demand_is_two_preemptions_and_few_lines() -> None:
    failure = explore(BROKEN[2].program).failure
    assert failure is not None
    assert failure.preemptions <= 2
    assert len(failure.diagram().splitlines()) <= 25


def test_calls_that_a_failure_does_not_need_are_left_out() -> None:
    failure = explore(merge.SCENARIO, seed=1).failure
    assert failure is not None
    assert failure.program == [("A", [1]), ("B", [1])]  # each feeder's end(), and no element


def test_actors_that_a_failure_does_not_need_are_left_out() -> None:
    lost = BROKEN[-2].program  # forgets the demand that comes while it delivers
    factory = lost.parts[0]
    wide = publisher_scenario(factory, [[request(1), request(1)], request(1), request(2)])
    failure = explore(wide, seed=1, schedules=5_000).failure
    assert failure is not None
    assert isinstance(failure.error, BrokenRule)
    assert sum(len(calls) for _, calls in failure.program) == 2


def test_a_call_that_the_invariant_counts_on_is_kept() -> None:
    failure = explore(BROKEN[0].program).failure  # the count of two additions is 1
    assert failure is not None
    assert [name for name, _ in failure.program] == ["a", "b"]


def test_without_shrinking_the_schedule_is_as_it_was_found() -> None:
    found = explore(BROKEN[2].program, strategy="random", seed=1, shrink=False).failure
    small = explore(BROKEN[2].program, strategy="random", seed=1).failure
    assert found is not None
    assert small is not None
    assert not found.minimal
    assert small.preemptions <= found.preemptions
