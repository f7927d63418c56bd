"""What holds over all schedules: `sometimes`, `reachable`, `unreachable`, and the table of outcomes."""

from __future__ import annotations

import threading
from typing import Any, ClassVar

import pytest

from reactive_runtime import explore as exploring
from reactive_runtime.errors import ScenarioError
from reactive_runtime.explore import (
    NeverObserved,
    Scenario,
    ScheduleFailed,
    explore,
    reachable,
    replay,
    sometimes,
    unreachable,
)


class TwoStores:
    """Each thread stores, then loads what the other stores."""

    outcomes: ClassVar[Any] = {(1, 1): "acceptable", (0, 1): "interesting", (1, 0): "interesting"}

    def __init__(self) -> None:
        self.x = self.y = 0
        self.seen_by_a = self.seen_by_b = -1

    def actor_a(self) -> None:
        self.x = 1
        self.seen_by_a = self.y

    def actor_b(self) -> None:
        self.y = 1
        self.seen_by_b = self.x

    def outcome(self) -> tuple[int, int]:
        return self.seen_by_a, self.seen_by_b


class LoadsFirst(TwoStores):
    """Loads before it stores: both may see nothing."""

    def actor_a(self) -> None:
        self.seen_by_a = self.y
        self.x = 1

    def actor_b(self) -> None:
        self.seen_by_b = self.x
        self.y = 1


def test_outcomes_are_counted_over_all_schedules() -> None:
    result = explore(TwoStores, strategy="brute-force").assert_holds()
    assert str(result.verdict) == "exhausted"
    assert {item.value for item in result.outcomes} == {(1, 1), (0, 1), (1, 0)}
    assert sum(item.schedules for item in result.outcomes) == result.schedules
    assert result.table().splitlines()[0].split() == ["outcome", "schedules", "expectation"]
    assert any(line.split()[-1] == "interesting" for line in result.table().splitlines())


def test_an_interesting_outcome_has_a_token_that_shows_it() -> None:
    result = explore(TwoStores).assert_holds()
    interesting = [item for item in result.outcomes if item.expectation == "interesting"]
    assert len(interesting) == 2
    for item in interesting:
        assert item.token is not None
        again = replay(TwoStores, item.token)
        assert [other.value for other in again.outcomes if other.schedules] == [item.value]
    assert all(item.token is None for item in result.outcomes if item.expectation == "acceptable")


def test_an_outcome_that_is_not_listed_is_forbidden_and_fails() -> None:
    result = explore(LoadsFirst)
    assert result.failure is not None
    assert result.failure.message == "the outcome (0, 0) is forbidden"
    assert len(result.failure.program) == 2
    assert sum(item.schedules for item in result.outcomes) == result.schedules  # none of those that made it small
    with pytest.raises(ScheduleFailed, match=r"the outcome \(0, 0\) is forbidden"):
        result.assert_holds()
    again = replay(LoadsFirst, result.failure.token).failure
    assert again is not None
    assert again.message == result.failure.message


def test_without_a_list_any_outcome_is_acceptable() -> None:
    class Free(LoadsFirst):
        outcomes = None

    result = explore(Free, strategy="brute-force").assert_holds()
    assert {item.value for item in result.outcomes} == {(0, 1), (1, 0), (0, 0)}
    assert {item.expectation for item in result.outcomes} == {"acceptable"}


def test_an_outcome_that_is_listed_and_never_seen_has_a_row() -> None:
    class Locked(LoadsFirst):
        outcomes: ClassVar[Any] = {(0, 1): "acceptable", (1, 0): "acceptable", (0, 0): "forbidden"}

        def __init__(self) -> None:
            super().__init__()
            self.lock = threading.Lock()

        def actor_a(self) -> None:
            with self.lock:
                super().actor_a()

        def actor_b(self) -> None:
            with self.lock:
                super().actor_b()

    rows = {repr(item.value): item for item in explore(Locked).assert_holds().outcomes}
    assert rows["(0, 0)"].schedules == 0
    assert rows["(0, 0)"].expectation == "forbidden"
    assert rows["(0, 1)"].schedules


class Both:
    """`sometimes` in an actor's own method, and `reachable` where few schedules come."""

    def __init__(self) -> None:
        self.inside = 0

    def actor_a(self) -> None:
        self.work()

    def actor_b(self) -> None:
        self.work()

    def work(self) -> None:
        self.inside += 1
        sometimes(self.inside == 2, "both are inside")
        if self.inside == 2:
            reachable("the second is inside")
        self.inside -= 1


class Alone(Both):
    """The same under a lock: neither ever happens."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()

    def work(self) -> None:
        with self.lock:
            self.inside += 1
            sometimes(self.inside == 2, "both are inside")
            if self.inside == 2:
                reachable("the second is inside")
            self.inside -= 1


def test_what_some_schedule_shows_holds() -> None:
    assert explore(Both).assert_holds().never == []


def test_what_no_schedule_shows_does_not_hold_and_is_named_also_where_the_line_was_never_come_to() -> None:
    result = explore(Alone)
    assert result.failure is None
    assert not result.holds
    assert result.never == [
        "'both are inside' was not true in any schedule",
        "'the second is inside' was not true in any schedule",
    ]
    with pytest.raises(NeverObserved, match="Alone shows too little: 'both are inside' was not true in any schedule"):
        result.assert_holds()


def test_of_a_sample_it_says_how_many_schedules_there_were() -> None:
    assert explore(Alone, strategy="random", schedules=30).never[0] == "'both are inside' was not true in 30 schedules"


def test_a_function_of_an_actor_is_looked_through_as_well() -> None:
    def never(state: Any) -> None:
        if state:
            exploring.reachable(message="a state that is true")

    scenario: Scenario[Any] = Scenario(lambda: None, {"a": [never]})
    assert explore(scenario).never == ["'a state that is true' was not true in any schedule"]


def test_a_line_that_is_to_be_unreachable_fails_the_schedule_that_comes_to_it() -> None:
    class Meeting(Both):
        def work(self) -> None:
            self.inside += 1
            if self.inside == 2:
                unreachable("two are inside")
            self.inside -= 1

    failure = explore(Meeting).failure
    assert failure is not None
    assert "two are inside (this line was to be unreachable)" in failure.message


def test_outside_of_an_exploration_they_say_nothing_and_unreachable_raises() -> None:
    sometimes(False, "never")
    reachable("here")
    assert explore(Both).never == []
    with pytest.raises(AssertionError, match="no way"):
        unreachable("no way")


def test_what_is_no_table_of_outcomes_is_reported() -> None:
    class Wrong(TwoStores):
        outcomes: ClassVar[Any] = {(1, 1): "fine"}

    class Without:
        outcomes: ClassVar[Any] = {1: "acceptable"}

        def actor_a(self) -> None:
            pass

    class Endless:
        def actor_a(self) -> None:
            pass

        def outcome(self) -> object:
            return object()

        def actor_b(self) -> None:
            self.at = 1

        def actor_c(self) -> None:
            self.at = 2

    with pytest.raises(ScenarioError, match=r"outcomes: \(1, 1\) must be one of acceptable, interesting, forbidden"):
        explore(Wrong)
    with pytest.raises(ScenarioError, match="has `outcomes`, and no `outcome`"):
        explore(Without)
    with pytest.raises(ScenarioError, match="more than 1000 different outcomes"):
        explore(Endless, strategy="random")
