"""What can happen under a GIL is distinguished from what can't."""

from __future__ import annotations

from typing import Any

import pytest
from bugs import data

from examples.hazards.lost_demand import TextbookSubscription
from examples.hazards.lost_update import Counter
from reactive_runtime.explore import explore


class _CallBetween:
    """A lost update with a call between load and store."""

    def __init__(self) -> None:
        self.count = 0

    def actor_a(self) -> None:
        before = self.count
        self.count = int(before) + 1

    actor_b = actor_a

    def at_end(self) -> None:
        assert self.count == 2


class _NoCallBetween(_CallBetween):
    def actor_a(self) -> None:
        before = self.count
        self.count = before + 1

    actor_b = actor_a


class _LoopBetween(_CallBetween):
    def actor_a(self) -> None:
        before = self.count
        for _ in (1,):
            before += 1
        self.count = before

    actor_b = actor_a


@pytest.mark.parametrize(
    ("program", "possible"),
    [
        (Counter, False),
        (_NoCallBetween, False),
        (_CallBetween, True),
        (_LoopBetween, True),
        (data.Histogram, False),
        (data.LazyValue, True),
        (TextbookSubscription, True),
    ],
    ids=lambda item: getattr(item, "__name__", str(item)),
)
def test_a_switch_under_a_gil_needs_a_call_or_a_loop(program: Any, possible: bool) -> None:
    failure = explore(program).failure
    assert failure is not None
    assert failure.gil is possible
