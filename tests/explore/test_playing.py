"""A schedule that is chosen by hand: what can be chosen, what it comes to, and that it can be taken back."""

from __future__ import annotations

import threading

import pytest

from examples.hazards import COURSE, lesson
from examples.hazards.lesson import LIMIT
from reactive_runtime.explore import explore
from reactive_runtime.explore._playing import Play, Position, next_text, step_text


class Counter:
    def __init__(self) -> None:
        self.count = 0

    def actor_a(self) -> None:
        self.count += 1

    def actor_b(self) -> None:
        self.count += 1

    def at_end(self) -> None:
        assert self.count == 2, f"the count is {self.count}"


class Locked(Counter):
    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()

    def actor_a(self) -> None:
        with self.lock:
            self.count += 1

    actor_b = actor_a


class Watched(Locked):
    """A third thread looks without the lock: so the steps under it are points."""

    def actor_c(self) -> None:
        assert self.count < 3


def lines(here: Position) -> list[str]:
    return [f"{step.name} {step_text(step).partition('# ')[2]}" for step in here.steps]


def test_the_threads_are_chosen_step_by_step_until_it_fails() -> None:
    play = Play(Counter)
    assert play.position.choices == (1, 2)
    for thread in (1, 2, 1):
        assert play.choose(thread).outcome == "open"
    here = play.choose(2)
    assert here.outcome == "failed"
    assert here.message == "invariant: the count is 1"
    assert lines(here) == ["a load 0", "b load 0", "a store 1", "b store 1"]
    assert here.choices == ()


def test_a_schedule_that_holds_is_no_find() -> None:
    play = Play(Counter)
    for thread in (1, 1, 2, 2):
        here = play.choose(thread)
    assert here.outcome == "held"
    assert lines(here) == ["a load 0", "a store 1", "b load 1", "b store 2"]


def test_what_is_taken_back_is_as_if_it_had_never_been() -> None:
    play = Play(Counter)
    first = play.position
    second = play.choose(1)
    play.choose(1)
    assert play.undo() == second
    assert play.undo() == first
    assert play.undo() == first
    play.choose(2)
    assert play.restart() == first


def test_what_each_thread_does_next_is_known() -> None:
    play = Play(Counter)
    play.choose(1)
    assert [item.what for item in play.position.threads] == ["store self.count", "load self.count"]
    assert next_text(play.position.threads[0]).endswith(" self.count += 1   (store self.count)")
    play.choose(1)
    assert next_text(play.position.threads[0]) == "has ended"


def test_an_atomic_is_read_and_no_lock_is_spoken_of() -> None:
    """Its lock is a detail: who plays sees `get`."""
    play = Play(lesson("check_then_act").broken)
    assert [next_text(item) for item in play.position.threads] == ["26 if self.free.get() > 0:"] * 2


def test_a_thread_that_waits_for_a_lock_can_not_be_chosen() -> None:
    play = Play(Watched)
    here = play.choose(1)
    assert [item.state for item in here.threads] == ["ready", "waits", "ready"]
    assert next_text(here.threads[1]).startswith("waits at ")
    with pytest.raises(ValueError, match=r"thread 2 can't be chosen here: only 1 \(a\), 3 \(c\) can"):
        play.choose(2)


def test_where_nothing_fails_all_calls_are_played_and_none_fails() -> None:
    play = Play(Locked)
    assert play.explorers == ()
    nodes = play.whole(100)
    assert nodes is not None
    assert {node.position.outcome for node in nodes} == {"open", "held"}


@pytest.mark.parametrize("name", COURSE)
def test_the_explorers_schedule_can_be_played_and_fails_as_it_says(name: str) -> None:
    play = Play(lesson(name).broken, limit=LIMIT)
    failure = play.result.failure
    assert failure is not None
    here = play.at(play.explorers)
    assert here.outcome == "failed"
    assert failure.message in here.message or failure.kind in ("livelock", "limit")
    if play.explorers and "without end" not in here.message:
        assert play.at(play.explorers[:-1]).outcome == "open"


def test_a_livelock_is_known_long_before_the_explorer_gives_up() -> None:
    play = Play(lesson("polite_livelock").broken, limit=LIMIT)
    assert len(play.explorers) < 200
    assert "without end" in play.at(play.explorers).message


@pytest.mark.parametrize("name", ["lost_update", "check_await_act"])
def test_all_positions_are_what_playing_comes_to(name: str) -> None:
    """Each choice of each position, along the way by which it was found first."""
    play = Play(lesson(name).broken, limit=LIMIT)
    nodes = play.whole(200)
    assert nodes is not None
    assert any(node.position.outcome == "failed" for node in nodes)
    for node in nodes:
        here = node.position
        assert play.at(here.moves) == here
        assert set(node.choices) == set(here.choices)
        for thread, (steps, number) in node.choices.items():
            there = play.at((*here.moves, thread))
            assert there.outcome == nodes[number].position.outcome
            assert [step_text(step) for step in there.steps[len(here.steps) :]] == [step_text(step) for step in steps]
            assert there.threads == nodes[number].position.threads


def test_as_many_schedules_fail_as_the_explorer_says() -> None:
    """Of the positions at which a program of two loads and two stores ends, all that fail are found by search too."""
    nodes = Play(Counter).whole(100)
    assert nodes is not None
    ends = [node.position for node in nodes if node.position.outcome != "open"]
    assert {end.message for end in ends if end.outcome == "failed"} == {"invariant: the count is 1"}
    assert not explore(Counter).holds


def test_too_many_positions_are_none() -> None:
    assert Play(Counter).whole(5) is None
