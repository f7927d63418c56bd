"""How far searches of the explorer go: some hundred schedules by day, all that they are for in the nightly run."""

from __future__ import annotations

import os
from collections.abc import Callable

from reactive_runtime.explore import Result

__all__ = ["NIGHT", "holds_with_few_preemptions"]

NIGHT = "EXPLORE_SCHEDULES" in os.environ
"""Whether this is the nightly run (`make explore-nightly`)."""

ALL = 100_000
SOME = 200


def holds_with_few_preemptions(explored: Callable[..., Result]) -> None:
    """Every schedule with two preemptions holds; by day every one with one, and two as far as some schedules go.

    The search goes from few preemptions to more.
    """
    result = explored(strategy="bounded", bound=2, schedules=ALL if NIGHT else SOME).assert_holds()
    if result.verdict.kind == "exhausted" and result.verdict.bound in (None, 2):
        return
    assert not NIGHT, result.verdict
    if result.verdict.bound != 1:
        verdict = explored(strategy="bounded", bound=1, schedules=ALL).assert_holds().verdict
        assert (verdict.kind, verdict.bound) == ("exhausted", 1)
