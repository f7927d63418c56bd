"""The textbook's publisher: what its last version still gets wrong, and that the step after it does not."""

from __future__ import annotations

from typing import Any

import pytest

from examples.stream_publisher import step_6_demand, step_7_get_and_add, step_8_capped, step_9_one_drain
from reactive_runtime._spec import MAX_DEMAND
from reactive_runtime.explore import Result, cancel, explore, explore_publisher, request


def explored(step: Any, actors: list[Any], **options: Any) -> Result:
    return explore_publisher(
        lambda: step.StreamPublisher(lambda: range(4)), actors, elements=4, modules=[step], **options
    )


def test_the_last_version_of_the_textbook_runs_two_loops_at_once() -> None:
    failure = explore(step_8_capped.SCENARIO).failure
    assert failure is not None
    assert failure.rule in ("1.1", "1.3")
    assert failure.preemptions == 2
    assert failure.minimal


def test_with_one_preemption_it_holds_which_is_why_no_kit_breaks_it() -> None:
    assert explore(step_8_capped.SCENARIO, strategy="bounded", bound=1).assert_holds().verdict.bound == 1


@pytest.mark.parametrize("step", [step_6_demand, step_7_get_and_add], ids=lambda item: item.__name__.rpartition(".")[2])
def test_demand_that_wraps_is_found_before_that(step: Any) -> None:
    failure = explored(step, [request(MAX_DEMAND), request(MAX_DEMAND)]).failure
    assert failure is not None
    assert failure.rule == "3.17"


@pytest.mark.parametrize(
    "actors",
    [
        [request(1), request(1)],
        [request(MAX_DEMAND), request(MAX_DEMAND)],
        [request(2), request(0)],
        [request(3), cancel()],
        [[request(1), request(1)], [request(2)], [cancel()]],
        [[request(4)], [request(0)], [request(1)]],
    ],
    ids=str,
)
def test_the_step_after_it_holds_in_every_schedule_with_two_preemptions(actors: list[Any]) -> None:
    result = explored(step_9_one_drain, actors, strategy="bounded", bound=2, schedules=20_000).assert_holds()
    assert (result.verdict.kind, result.verdict.bound) in (("exhausted", 2), ("exhausted", None))
