"""What can happen under a GIL is distinguished from what can't."""

from __future__ import annotations

from typing import Any

import pytest
from bugs import data

from examples.hazards.atomicity.lost_update import Counter
from examples.hazards.streams.lost_demand import TextbookSubscription
from reactive_runtime.explore import explore, replay


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


class _Table(_CallBetween):
    def __init__(self) -> None:
        self.table: dict[str, int] = {}

    def actor_a(self) -> None:
        get, put = self.table.get, self.table.__setitem__
        put("k", get("k", 0) + 1)

    actor_b = actor_a

    def at_end(self) -> None:
        assert self.table["k"] == 2


class _Update(_Table):
    def actor_a(self) -> None:
        self.table.update(k=self.table.get("k", 0) + 1)

    actor_b = actor_a


class _Item(_Table):
    def __init__(self) -> None:
        self.table = {"k": 0}

    def actor_a(self) -> None:
        self.table["k"] = self.table["k"] + 1

    actor_b = actor_a


class _CallAfter(_CallBetween):
    def actor_a(self) -> None:
        convert = int
        self.count = self.count + 1
        convert(1)

    actor_b = actor_a


@pytest.mark.parametrize(
    ("program", "possible"),
    [
        (_Table, True),
        (_Update, True),
        (_Item, False),
        (_CallAfter, False),
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


@pytest.mark.parametrize("program", [Counter, _NoCallBetween, data.Histogram], ids=lambda item: item.__name__)
@pytest.mark.parametrize("strategy", ["portfolio", "bounded", "brute-force"])
def test_what_needs_no_gil_is_not_found_where_one_is_assumed(program: Any, strategy: str) -> None:
    explore(program, strategy=strategy, gil="assumed", schedules=300).assert_holds()


@pytest.mark.parametrize("program", [_CallBetween, _LoopBetween, data.LazyValue], ids=lambda item: item.__name__)
def test_what_a_gil_allows_is_found_where_one_is_assumed_and_replays(program: Any) -> None:
    failure = explore(program, gil="assumed").failure
    assert failure is not None
    assert failure.gil
    again = replay(program, failure.token).failure
    assert again is not None
    assert again.schedule == failure.schedule


def test_a_gil_is_assumed_where_accesses_are_known() -> None:
    with pytest.raises(ValueError, match="a GIL is assumed at the points"):
        explore(Counter, gil="assumed", points="line")
    with pytest.raises(ValueError, match="gil must be"):
        explore(Counter, gil="none")  # type: ignore[arg-type]
