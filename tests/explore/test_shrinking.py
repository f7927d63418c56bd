"""Failures are made small."""

from __future__ import annotations

import sys
import threading
from typing import Any

import pytest

from examples.hazards.atomicity.lost_update import Counter
from examples.hazards.exercises import merge
from examples.hazards.streams.lost_demand import TextbookSubscription
from explore.programs import BROKEN, Named
from explore.spinning import BothWait
from reactive_runtime._spec import MAX_DEMAND
from reactive_runtime.explore import BrokenRule, Scenario, explore, publisher_scenario, replay, request
from reactive_runtime.explore._checks.scenario import scenario_of
from reactive_runtime.explore._schedule.session import Session
from reactive_runtime.explore._search.shrinking import _Shrinking
from reactive_runtime.explore._shared_state.watching import Watcher


def test_the_minimum_is_certified_for_nearly_all_bugs() -> None:
    certified = [
        item for item in BROKEN if (failure := explore(item.program, seed=1).failure) is not None and failure.minimal
    ]
    assert len(certified) >= 0.95 * len(BROKEN)


@pytest.mark.parametrize("entry", BROKEN, ids=lambda item: item.name)
def test_no_schedule_with_fewer_preemptions_fails(entry: Named) -> None:
    failure = explore(entry.program, seed=2).failure
    assert failure is not None
    if failure.preemptions and failure.minimal:
        fewer = explore(entry.program, strategy="bounded", bound=failure.preemptions - 1, schedules=5_000, shrink=False)
        assert fewer.failure is None or fewer.failure.kind != failure.kind


def test_the_lost_demand_is_two_preemptions_and_few_lines() -> None:
    failure = explore(TextbookSubscription).failure
    assert failure is not None
    assert failure.preemptions <= 2
    assert len(failure.diagram().splitlines()) <= 25


def test_calls_that_a_failure_does_not_need_are_left_out() -> None:
    feeders = [merge.feeder(1), merge.feeder(2)]
    failure = explore(publisher_scenario(merge.Merge, feeders, demand=MAX_DEMAND, ascending=False), seed=1).failure
    assert failure is not None
    assert failure.program == [("A", [1]), ("B", [1])]  # each feeder's end(), and no element


def test_actors_that_a_failure_does_not_need_are_left_out() -> None:
    lost = BROKEN[-2].program  # forgets the demand that comes while it delivers
    factory = lost.parts[0]
    wide = publisher_scenario(factory, [[request(1), request(1)], request(1), request(2)])
    failure = explore(wide, seed=1, schedules=5_000).failure
    assert failure is not None
    assert isinstance(failure.error, BrokenRule)
    assert sum(len(calls) for _, calls in failure.program) == 2


def test_a_call_that_the_invariant_counts_on_is_kept() -> None:
    failure = explore(Counter).failure  # the count of two additions is 1
    assert failure is not None
    assert [name for name, _ in failure.program] == ["a", "b"]


def test_without_shrinking_the_schedule_is_as_it_was_found() -> None:
    found = explore(TextbookSubscription, strategy="random", seed=1, shrink=False).failure
    small = explore(TextbookSubscription, strategy="random", seed=1).failure
    assert found is not None
    assert small is not None
    assert not found.minimal
    assert small.preemptions <= found.preemptions


class Notified:
    """Two wait, and one of them is woken."""

    def __init__(self) -> None:
        self.condition = threading.Condition()
        self.ready = False

    def wake(self) -> None:
        self.condition.notify()

    def actor_a(self) -> None:
        with self.condition:
            while not self.ready:
                self.condition.wait()

    actor_b = actor_a

    def actor_wakes(self) -> None:
        with self.condition:
            self.ready = True
            self.wake()


class AllNotified(Notified):
    def wake(self) -> None:
        self.condition.notify_all()


class Made:
    """One needs what another makes."""

    def __init__(self) -> None:
        self.made: list[int] | None = None

    def actor_uses(self) -> None:
        assert self.made is not None

    def actor_makes(self) -> None:
        self.made = []

    def actor_idles(self) -> None:
        pass


@pytest.mark.parametrize("seed", range(5))
def test_who_would_have_woken_the_one_that_waits_is_not_left_out(seed: int) -> None:
    failure = explore(Notified, seed=seed).failure
    assert failure is not None
    assert failure.kind == "deadlock"
    assert [name for name, _ in failure.program] == ["a", "b", "wakes"]


def test_under_the_token_of_a_deadlock_the_corrected_program_holds() -> None:
    failure = explore(Notified).failure
    assert failure is not None
    left = [name for name, _ in failure.program]
    calls = {name: [getattr(AllNotified, f"actor_{name}")] for name in left}
    explore(Scenario(AllNotified, calls)).assert_holds()


def test_who_makes_what_another_needs_is_not_left_out() -> None:
    failure = explore(Made).failure
    assert failure is not None
    assert [name for name, _ in failure.program] == ["uses", "makes"]


def test_both_who_wait_for_each_other_are_shown() -> None:
    failure = explore(BothWait).failure
    assert failure is not None
    assert [name for name, _ in failure.program] == ["a", "b"]
    assert "a and b" in failure.message


class Reordered:
    """Nine store two fields, and one looks at them in between; two of the ten do."""

    def __init__(self) -> None:
        self.one = self.other = 0

    def store(self) -> None:
        self.one = 1
        self.other = -1

    actor_1 = actor_2 = actor_3 = actor_4 = actor_5 = actor_6 = actor_7 = actor_8 = actor_9 = store

    def actor_looks(self) -> None:
        one, other = self.one, self.other
        assert one + other <= 0, f"{one} and {other}"


@pytest.mark.parametrize("seed", range(5))
def test_of_ten_threads_the_two_are_left_that_matter(seed: int) -> None:
    failure = explore(Reordered, seed=seed).failure
    assert failure is not None
    assert len(failure.program) == 2
    assert failure.preemptions == 1
    assert failure.minimal
    assert replay(Reordered, failure.token).failure is not None


def test_points_under_which_a_schedule_does_not_fail_again_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """What raced while a failure was made small becomes a point; the schedule may have no steps for it."""
    tried = _Shrinking._try

    def not_while_learning(self: Any, program: Any, schedule: Any) -> Any:
        return None if sys._getframe(1).f_code.co_name == "learn" else tried(self, program, schedule)

    monkeypatch.setattr(Watcher, "has_more", True)
    monkeypatch.setattr(_Shrinking, "_try", not_while_learning)
    result = explore(TextbookSubscription)
    assert result.verdict.kind == "failed"
    assert result.failure is not None
    assert replay(TextbookSubscription, result.failure.token).failure is not None


def test_points_can_be_gone_back_to() -> None:
    with Session(scenario_of(TextbookSubscription), "shared", (), limit=5_000, hang=10) as session:
        watcher = session.watcher
        watcher.begin()
        before = watcher.points()
        watcher.write("a name")
        watcher.mark([0, 1, 2])
        watcher.learn()
        assert watcher.points() != before
        watcher.go_back(before)
        assert watcher.points() == before
        assert not watcher.has_more
