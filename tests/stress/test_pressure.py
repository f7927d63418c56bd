"""Threads that hesitate: how often they give way, and how often they spin, with a GIL and without one."""

from __future__ import annotations

import random

import pytest

from reactive_runtime._core.runtime import primitives
from reactive_runtime.stress import _pressure
from reactive_runtime.stress._pressure import SLEEP_MOST, SPIN, SPIN_MOST, SPINNING, pressure


@pytest.mark.parametrize("gil", [True, False])
def test_a_thread_that_hesitates_gives_way_at_some_lines_and_spins_at_the_others(
    gil: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    given_way: list[float] = []  # seconds
    spun: list[int] = []

    def turns(n: int) -> range:
        spun.append(n)
        return range(0)

    monkeypatch.setattr(primitives, "has_gil", lambda: gil)
    monkeypatch.setattr(primitives, "pause", lambda: given_way.append(0.0))
    monkeypatch.setattr(primitives, "sleep", given_way.append)
    monkeypatch.setattr(_pressure, "range", turns, raising=False)
    with pressure(0.5, random.Random(5)):
        some_lines()
    both = len(given_way) + len(spun)
    assert both == pytest.approx(1_000, rel=0.1)  # every other line
    assert len(spun) / both == pytest.approx(SPINNING[gil], abs=0.05)
    if gil:
        assert (set(spun), set(given_way)) == ({SPIN}, {0.0})
    else:
        assert 0.0 <= min(given_way) < SLEEP_MOST / 10
        assert SLEEP_MOST * 0.9 < max(given_way) < SLEEP_MOST
        assert min(spun) < SPIN_MOST / 10
        assert SPIN_MOST * 0.9 < max(spun) < SPIN_MOST


def some_lines() -> None:
    """Two thousand of them."""
    for _ in range(1_000):
        pass
