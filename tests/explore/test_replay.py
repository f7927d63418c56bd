"""The same schedule, again and again."""

from __future__ import annotations

import pickle
import random
from typing import Any

import pytest

from examples.hazards.streams.lost_demand import TextbookSubscription
from examples.hazards.streams.recycled_subscription import FreeList
from examples.hazards.streams.signal_after_completion import UnguardedEnd
from explore.programs import BROKEN, Named
from reactive_runtime.errors import ExploreError
from reactive_runtime.explore import Failure, explore, replay
from reactive_runtime.explore._checks.scenario import scenario_of
from reactive_runtime.explore._schedule.session import Session
from reactive_runtime.explore._schedule.tokens import Token
from reactive_runtime.explore._search.strategies import Random, Replayed


def failure_of(program: Any, **options: Any) -> Failure:
    failure = explore(program, **options).failure
    assert failure is not None
    return failure


@pytest.mark.parametrize("entry", BROKEN, ids=lambda item: item.name)
def test_a_token_has_the_failure_again(entry: Named) -> None:
    failure = failure_of(entry.program, seed=3)
    again = replay(entry.program, failure.token).failure
    assert again is not None
    assert (again.kind, again.message, again.schedule) == (failure.kind, failure.message, failure.schedule)
    assert again.diagram() == failure.diagram()
    assert again.token == failure.token


@pytest.mark.parametrize("points", ["sync", "shared", "line", "opcode"])
def test_a_thousand_replays_of_a_thousand_go_the_same_way(points: Any) -> None:
    scenario = scenario_of(TextbookSubscription)
    with Session(scenario, points, (), limit=5_000, hang=10) as session:
        sampled = Random(random.Random(5))
        for _ in range(10):
            session.tracks(False)
            session.run(scenario, sampled)
        session.watcher.frozen = True
        for _ in range(100):
            session.run(scenario, sampled)
            schedule = list(session.scheduler.schedule)
            for _ in range(10):
                follow = Replayed(schedule)
                follow.begin(session.scheduler)
                session.run(scenario, follow)
                assert follow.diverged is None
                assert session.scheduler.schedule == schedule


def test_the_same_seed_gives_the_same_schedules() -> None:
    for strategy in ("portfolio", "random", "pct", "pos", "urw", "bounded"):
        one, other = (failure_of(FreeList, seed=4, strategy=strategy, shrink=False) for _ in range(2))
        assert (one.found_after, one.schedule) == (other.found_after, other.schedule)


def test_different_seeds_give_different_schedules() -> None:
    schedules = {
        tuple(failure_of(TextbookSubscription, seed=seed, strategy="random", shrink=False).schedule)
        for seed in range(8)
    }
    assert len(schedules) > 1


def test_a_token_is_text_that_holds_nothing_to_run() -> None:
    token = failure_of(TextbookSubscription).token
    assert token.isascii()
    assert token.replace("-", "").replace("_", "").isalnum()
    said = Token.parse(token)
    assert said.scenario == "TextbookSubscription"
    assert len(said.prints) == len(said.schedule)


@pytest.mark.parametrize(
    ("token", "why"),
    [
        ("nonsense", "no token"),
        ("rr2-!!!!", "damaged"),
        ("rr2-AAAA", "damaged"),
        (f"rr2-{pickle.dumps(print).hex()}", "damaged"),
    ],
)
def test_what_is_no_token_is_reported(token: str, why: str) -> None:
    with pytest.raises(ExploreError, match=why):
        replay(TextbookSubscription, token)


def test_a_damaged_token_is_reported() -> None:
    token = failure_of(TextbookSubscription).token
    with pytest.raises(ExploreError, match="damaged"):
        replay(TextbookSubscription, token[:-12])


def test_a_token_for_another_interpreter_is_refused() -> None:
    said = Token.parse(failure_of(TextbookSubscription).token)
    other = Token(**{**vars(said), "python": "3.99"}).text()
    with pytest.raises(ExploreError, match=r"Python 3\.99"):
        replay(TextbookSubscription, other)


def test_a_token_for_another_source_is_refused() -> None:
    said = Token.parse(failure_of(TextbookSubscription).token)
    other = Token(**{**vars(said), "source": "000000000000"}).text()
    with pytest.raises(ExploreError, match="source"):
        replay(TextbookSubscription, other)


def test_a_token_for_another_scenario_is_refused() -> None:
    token = failure_of(TextbookSubscription).token
    with pytest.raises(ExploreError, match="actor"):
        replay(UnguardedEnd, token)


def test_a_replay_that_goes_another_way_names_the_step() -> None:
    said = Token.parse(failure_of(TextbookSubscription).token)
    prints = [*said.prints]
    prints[4] ^= 0xFF
    with pytest.raises(ExploreError, match="step 5"):
        replay(TextbookSubscription, Token(**{**vars(said), "prints": prints}).text())


class _ByName:
    """Adds to an attribute whose name no source tells."""

    name = "_".join(("in", "all"))

    def __init__(self) -> None:
        setattr(self, self.name, 0)

    def actor_a(self) -> None:
        setattr(self, self.name, getattr(self, self.name) + 1)

    actor_b = actor_a

    def at_end(self) -> None:
        assert getattr(self, self.name) == 2


def test_what_is_stored_by_its_name_is_replayed() -> None:
    failure = failure_of(_ByName)
    again = replay(_ByName, failure.token).failure
    assert again is not None
    assert again.schedule == failure.schedule
