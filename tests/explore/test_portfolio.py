"""The portfolio gives turns to the strategies that pay."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from reactive_runtime.explore import explore
from reactive_runtime.explore._search.bounded import Bounded
from reactive_runtime.explore._search.portfolio import EVEN, Turns
from reactive_runtime.explore._search.strategies import PCT, POS, SURW, Random, Strategy


class PutOff(Bounded):
    """A search that has put off so many schedules."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count

    @property
    def put_off(self) -> int:
        return self.count


def taken(turns: Turns, count: int, left: int = 1_000) -> Counter[Strategy]:
    return Counter(turns.next(left) for _ in range(count))


RNG = random.Random(1)


def test_strategies_joined_by_plus_take_strict_turns() -> None:
    one, two = Random(RNG), PCT(RNG)
    turns = Turns([one, two], learns=False)
    assert [turns.next(10) for _ in range(2 * EVEN)] == [one, two] * EVEN


def test_the_first_turns_of_a_portfolio_are_strict_ones() -> None:
    one, search = Random(RNG), PutOff(1_000_000)
    turns = Turns([one, search], [SURW(RNG)], learns=True)
    assert [turns.next(10) for _ in range(EVEN)] == [one, search] * (EVEN // 2)


@pytest.mark.parametrize(
    ("put_off", "left", "share"), [(4_000, 1_000, 40), (4_001, 1_000, 10), (200, 1, 40), (201, 1, 10)]
)
def test_a_search_that_cannot_end_has_few_turns(put_off: int, left: int, share: int) -> None:
    search = PutOff(put_off)
    turns = Turns([Random(RNG), search], learns=True)
    taken(turns, EVEN)
    assert taken(turns, 80, left)[search] == share


def test_a_strategy_that_shows_new_orders_has_more_turns() -> None:
    idle, busy = Random(RNG), PCT(RNG)
    turns = Turns([idle, busy], learns=True)
    taken(turns, EVEN)
    for _ in range(99):
        turns.saw(idle, fresh=False)
        turns.saw(busy, fresh=True)
    counts = taken(turns, 110)
    assert counts[busy] == pytest.approx(10 * counts[idle], abs=15)


def test_pos_has_twice_the_turns_and_surw_joins_them() -> None:
    pos, other, further = POS(RNG), Random(RNG), SURW(RNG)
    turns = Turns([pos, other], [further], learns=True)
    taken(turns, EVEN)
    counts = taken(turns, 400)
    assert counts[pos] == pytest.approx(200, abs=2)
    assert counts[other] == pytest.approx(100, abs=2)
    assert counts[further] == pytest.approx(100, abs=2)


class Hidden:
    """Three threads of many steps, and a fault in few of their orders."""

    def __init__(self) -> None:
        self.order = ""

    def step(self, name: str) -> None:
        for _ in range(6):
            self.order += name

    def actor_a(self) -> None:
        self.step("a")

    def actor_b(self) -> None:
        self.step("b")

    def at_end(self) -> None:
        assert "abaabbab" not in self.order


def test_a_portfolio_that_learns_is_the_same_with_the_same_seed() -> None:
    found = [explore(Hidden, seed=3, schedules=2_000, shrink=False).failure for _ in range(2)]
    assert found[0] is not None
    assert found[1] is not None
    assert found[0].found_after > EVEN
    assert found[0].schedule == found[1].schedule
