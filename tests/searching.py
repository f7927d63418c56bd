"""The night has more than the day: more schedules in the explorer's searches, and more cases of some tests."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from itertools import product
from typing import Any, TypeVar

import pytest

from reactive_runtime.explore import Result
from reactive_runtime.explore._schedule.carriers import greenlets_run

__all__ = ["ENGINES", "NIGHT", "by_day", "each_of_both_by_day", "holds_with_few_preemptions", "one_pair_each_by_day"]

T = TypeVar("T")
U = TypeVar("U")

NIGHT = "EXPLORE_SCHEDULES" in os.environ
"""Whether this is the nightly run (`make nightly PART=explore`)."""

ALL = 100_000


ENGINES = ["threads", "greenlets"] if greenlets_run() else ["threads"]
"""What can carry the threads of a program on this Python."""


def by_day(step: int, cases: Iterable[T]) -> list[T]:
    """One of each `step` cases, the first among them; at night all."""
    return list(cases)[:: 1 if NIGHT else step]


def each_of_both_by_day(rows: Sequence[T], columns: Sequence[U]) -> list[tuple[T, U]]:
    """The pairs of two lists: by day as few as have each row and each column, at night all."""
    if NIGHT:
        return list(product(rows, columns))
    longest = range(max(len(rows), len(columns)))
    return [(rows[at % len(rows)], columns[at % len(columns)]) for at in longest]


def one_pair_each_by_day(cases: Iterable[Any], others: Sequence[Any]) -> list[Any]:
    """The pairs of a case and another value: by day each case with one of the others in turn, at night all.

    The night is `-m nightly`, in `make nightly PART=kills`.
    """
    pairs = product(enumerate(cases), enumerate(others))
    return [
        pytest.param(case, other, marks=[] if row % len(others) == column else pytest.mark.nightly)
        for (row, case), (column, other) in pairs
    ]


def holds_with_few_preemptions(explored: Callable[..., Result]) -> None:
    """Every schedule with one preemption holds; at night every one with two."""
    bound = 2 if NIGHT else 1
    verdict = explored(strategy="bounded", bound=bound, schedules=ALL).assert_holds().verdict
    assert verdict.kind == "exhausted", verdict
    assert verdict.bound in (None, bound)
