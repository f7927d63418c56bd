"""How far searches of the explorer go: some hundred schedules by day, all that they are for in the nightly run."""

from __future__ import annotations

import os
from collections.abc import Callable

from reactive_runtime.explore import Result

__all__ = ["NIGHT", "holds_with_few_preemptions"]

NIGHT = "EXPLORE_SCHEDULES" in os.environ
"""Whether this is the nightly run (`make explore-nightly`)."""

ALL = 100_000


def holds_with_few_preemptions(explored: Callable[..., Result]) -> None:
    """Every schedule with one preemption holds; at night every one with two."""
    bound = 2 if NIGHT else 1
    verdict = explored(strategy="bounded", bound=bound, schedules=ALL).assert_holds().verdict
    assert verdict.kind == "exhausted", verdict
    assert verdict.bound in (None, bound)
