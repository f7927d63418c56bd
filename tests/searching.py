"""How far searches of the explorer go: some hundred schedules by day, all that they are for in the nightly run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TypeVar

from reactive_runtime.explore import Result
from reactive_runtime.explore._schedule.carriers import greenlets_run

__all__ = ["ENGINES", "NIGHT", "by_day", "holds_with_few_preemptions"]

T = TypeVar("T")

NIGHT = "EXPLORE_SCHEDULES" in os.environ
"""Whether this is the nightly run (`make nightly PART=explore`)."""

ALL = 100_000


ENGINES = ["threads", "greenlets"] if greenlets_run() else ["threads"]
"""What can carry the threads of a program on this Python."""


def by_day(step: int, cases: Iterable[T]) -> list[T]:
    """One of each `step` cases, the first among them; at night all."""
    return list(cases)[:: 1 if NIGHT else step]


def holds_with_few_preemptions(explored: Callable[..., Result]) -> None:
    """Every schedule with one preemption holds; at night every one with two."""
    bound = 2 if NIGHT else 1
    verdict = explored(strategy="bounded", bound=bound, schedules=ALL).assert_holds().verdict
    assert verdict.kind == "exhausted", verdict
    assert verdict.bound in (None, bound)
