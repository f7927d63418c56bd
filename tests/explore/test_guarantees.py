"""Each of the four verdicts promises what docs/guarantees.md says."""

from __future__ import annotations

import _thread
import functools
import itertools
import os
import random
import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from bugs import classics
from searching import by_day

from examples.hazards.streams.lost_demand import TextbookSubscription
from explore.programs import BROKEN, Named
from reactive_runtime.errors import ExploreError
from reactive_runtime.explore import Result, Scenario, check_linearizable, explore, replay
from reactive_runtime.explore._checks.scenario import scenario_of
from reactive_runtime.explore._schedule.session import Session
from reactive_runtime.explore._search.coverage import Coverage
from reactive_runtime.explore._search.strategies import Random

FILE: Final = os.path.basename(__file__)

# -- failed ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("entry", by_day(3, BROKEN), ids=lambda item: item.name)
def test_what_failed_fails_again_ten_of_ten_times(entry: Named) -> None:
    result = explore(entry.program, seed=1)
    assert result.verdict.kind == "failed"
    assert result.failure is not None
    again = [replay(entry.program, result.failure.token).failure for _ in range(10)]
    assert all(one is not None and one.schedule == result.failure.schedule for one in again)


def test_what_fails_once_in_a_while_under_one_schedule_is_not_failed() -> None:
    """It fails in runs that come after a multiple of three: so does the first replay, and not all ten."""
    runs = 0

    def at_end(_: object) -> None:
        nonlocal runs
        runs += 1
        assert runs % 3, "every third time"

    result = explore(Scenario(object, {"a": [lambda _: None]}, at_end=at_end))
    assert (result.verdict.kind, result.failure) == ("incomplete", None)
    assert "nothing failed" in result.uncontrolled
    with pytest.raises(ExploreError, match="does not do the same each time"):
        result.assert_holds()


# -- exhausted ---------------------------------------------------------------------------------------------------


def test_exhausted_is_said_of_a_search_only_that_came_to_its_end() -> None:
    assert explore(classics.FixedBluetooth, strategy="bounded").verdict.kind == "exhausted"
    few = explore(classics.FixedBluetooth, strategy="random", schedules=500)
    assert few.verdict.kind == "held"


# -- held --------------------------------------------------------------------------------------------------------


def test_the_estimated_coverage_is_no_more_than_what_is_met_again() -> None:
    """Of 2,000 further draws at least so many do what one of the first 300 did: less three standard deviations."""
    scenario = scenario_of(classics.PolitePhilosophers)
    for seed in range(5):
        with Session(scenario, "shared", (), limit=5_000, hang=10) as session:
            strategy = Random(random.Random(seed))

            def draw(session: Session = session, strategy: Random = strategy) -> int:
                session.tracks(True)
                strategy.begin(session.scheduler)
                session.run(scenario, strategy)
                return session.fingerprint(scenario)

            for _ in range(20):  # until the points are known
                draw()
            seen: set[int] = set()
            coverage = Coverage()
            for _ in range(300):
                trace = draw()
                seen.add(trace)
                coverage.add(trace, session.scheduler.version)
            known = sum(draw() in seen for _ in range(2_000)) / 2_000
        estimate = coverage.estimate()
        assert estimate is not None
        assert abs(estimate - known) < 3 * (0.25 / 300) ** 0.5
        assert 0 < estimate < 1


def test_the_estimate_is_never_all_and_begins_anew_with_other_points() -> None:
    coverage = Coverage()
    assert coverage.estimate() is None
    for _ in range(99):
        coverage.add(7, 0)
    assert coverage.estimate() == pytest.approx(0.99)
    coverage.add(8, 1)
    assert coverage.estimate() == 0


def test_schedules_that_do_the_same_are_one_trace() -> None:
    """Two threads that share nothing: every order of theirs is the same."""

    class Apart:
        def __init__(self) -> None:
            self.one, self.other = threading.Lock(), threading.Lock()

        def actor_a(self) -> None:
            for _ in range(5):
                with self.one:
                    pass

        def actor_b(self) -> None:
            for _ in range(5):
                with self.other:
                    pass

    verdict = explore(Apart, strategy="random", schedules=99).verdict
    assert verdict.kind == "held"
    assert verdict.coverage == pytest.approx(0.99)
    assert str(verdict) == "held (99 schedules, estimated coverage 99%)"


# -- incomplete: what is not controlled is named -------------------------------------------------------------------


class Forking:
    """64 times it goes one of two ways, as a bit says that is not controlled: two runs are never the same."""

    def __init__(self) -> None:
        self.left = self.right = 0

    def bits(self) -> int:
        raise NotImplementedError

    def actor_a(self) -> None:
        bits = self.bits()
        for n in range(64):
            if bits >> n & 1:
                self.left += 1
            else:
                self.right += 1

    def actor_b(self) -> None:
        self.left += 1
        self.right += 1


class Rolling(Forking):
    def bits(self) -> int:
        return sum((random.random() < 0.5) << n for n in range(64))


class FromTheSystem(Forking):
    def bits(self) -> int:
        return int.from_bytes(os.urandom(8), "big")


class Timed(Forking):
    def bits(self) -> int:
        return time.clock_gettime_ns(time.CLOCK_MONOTONIC) * 0x9E3779B97F4A7C15


kept: list[Any] = []
"""What was made in earlier runs, so that later ones are at other addresses."""


class Thing:
    pass


def things() -> dict[int, Any]:
    """64 objects, by number, of which the numbers say nothing about the addresses."""
    made = [Thing() for _ in range(640)]
    random.shuffle(made)
    kept.append(made[:320])
    return dict(enumerate(made[:64]))


class ByAddress(Forking):
    def bits(self) -> int:
        numbered = things()
        order = sorted(numbered, key=lambda n: id(numbered[n]))
        return sum(1 << n for n, (one, other) in enumerate(itertools.pairwise(order)) if one < other)


class InASet(Forking):
    def bits(self) -> int:
        numbered = {thing: n for n, thing in things().items()}
        order = [numbered[thing] for thing in set(numbered)]
        return sum(1 << n for n, (one, other) in enumerate(itertools.pairwise(order)) if one < other)


@pytest.mark.parametrize("program", [Rolling, FromTheSystem, Timed, ByAddress, InASet], ids=lambda cls: cls.__name__)
@pytest.mark.parametrize("strategy", ["portfolio", "random", "bounded"])
def test_what_is_not_controlled_is_named_where_it_shows_first(program: type[Forking], strategy: str) -> None:
    result = explore(program, strategy=strategy)
    assert (result.verdict.kind, result.failure, result.holds) == ("incomplete", None, False)
    assert "does not do the same each time" in str(result)
    lines = re.search(rf"step \d+ was a: .*{FILE}:(\d+), and the next time a: .*{FILE}:(\d+)", result.uncontrolled)
    assert lines is not None, result.uncontrolled
    source = Path(__file__).read_text().splitlines()
    for line in lines.groups():
        assert re.search(r"self\.(left|right) \+= 1", source[int(line) - 1])
    kept.clear()


@pytest.mark.parametrize("points", ["sync", "line", "opcode"])
def test_it_is_noticed_at_all_points(points: Any) -> None:
    class Locking(Rolling):
        def __init__(self) -> None:
            super().__init__()
            self.lock = threading.Lock()

        def actor_c(self) -> None:
            bits = self.bits()
            for n in range(64):
                if bits >> n & 1:
                    with self.lock:
                        pass

    result = explore(Locking, points=points, strategy="random", schedules=20)
    assert result.verdict.kind == "incomplete"
    assert FILE in result.uncontrolled


class Shared:
    def __init__(self) -> None:
        self.done = 0

    def work(self) -> None:
        self.done += 1


def test_a_thread_that_escapes_is_named() -> None:
    """It was started outside, and hears through pipes, which are not controlled, when to come in."""
    box: list[Shared | None] = []
    (asked, ask), (answered, answer) = os.pipe(), os.pipe()

    def intrude() -> None:
        while os.read(asked, 1) == b"x":
            item = box[-1]
            assert item is not None
            item.work()
            os.write(answer, b"x")

    class Escaping(Shared):
        def __init__(self) -> None:
            super().__init__()
            box.append(self)

        def actor_a(self) -> None:
            self.work()
            os.write(ask, b"x")
            os.read(answered, 1)

        def actor_b(self) -> None:
            self.work()

    thread = threading.Thread(target=intrude, name="the intruder")
    thread.start()
    result = explore(Escaping, schedules=20)
    os.write(ask, b"!")
    thread.join()
    for end in (asked, ask, answered, answer):
        os.close(end)
    assert (result.verdict.kind, result.failure) == ("incomplete", None)
    assert re.search(rf"the intruder came to `.*self\.done` at {FILE}:\d+", result.uncontrolled)


def test_a_thread_without_an_object_is_controlled() -> None:
    class Starting(Shared):
        def actor_a(self) -> None:
            _thread.start_new_thread(self.work, ())

        def actor_b(self) -> None:
            self.work()

        def at_end(self) -> None:
            assert self.done == 2

    result = explore(Starting)
    assert (result.verdict.kind, result.uncontrolled) == ("failed", "")


def test_a_random_number_is_noticed_while_a_failure_is_made_small() -> None:
    class Failing(Rolling):
        def at_end(self) -> None:
            raise AssertionError("always")

    result = explore(Failing)
    assert (result.verdict.kind, result.failure) == ("incomplete", None)
    assert FILE in result.uncontrolled


def test_an_object_that_goes_its_own_way_is_noticed_by_the_check_against_a_model() -> None:
    class Number(Rolling):
        def add(self) -> int:
            self.actor_a()
            return 0

    class Model:
        def add(self) -> int:
            return 0

    result = check_linearizable(Number, {"add": ()}, Model)
    assert (result.verdict.kind, result.holds) == ("incomplete", False)


@functools.cache
def squared(number: int) -> int:
    with cold:
        return number * number


cold = threading.Lock()


def test_a_cache_that_outlives_a_run_is_a_note_and_no_accusation() -> None:
    class Cached:
        def actor_a(self) -> None:
            squared(3)

        def actor_b(self) -> None:
            squared(4)

    squared.cache_clear()
    result = explore(Cached, strategy="bounded")
    assert result.verdict.kind == "exhausted"
    assert any("schedule 1 did something else when it was run again" in note for note in result.notes)


def test_a_replay_costs_a_search_a_logarithm() -> None:
    runs = 0

    def set_up() -> object:
        nonlocal runs
        runs += 1
        return object()

    explore(Scenario(set_up, {"a": [lambda _: None]}), strategy="random", schedules=1_000)
    assert runs <= 1_000 + 10 + 2  # 1, 2, 4, … 512; and twice for what it is made of


def test_an_error_that_says_something_of_its_own_adds_no_step() -> None:
    class SayingError(Exception):
        def __init__(self, lock: Any) -> None:
            self.lock = lock

        def __str__(self) -> str:
            with self.lock:
                return "said"

    class Raising:
        def __init__(self) -> None:
            self.lock = threading.Lock()

        def actor_a(self) -> None:
            raise SayingError(self.lock)

        def actor_b(self) -> None:
            with self.lock:
                pass

    failure = explore(Raising).failure
    assert failure is not None
    assert failure.message == "a raised SayingError: said"
    assert not any("return" in step.source for step in failure.steps)


def test_an_error_that_can_not_say_what_it_is_is_a_failure_all_the_same() -> None:
    class MuteError(Exception):
        def __str__(self) -> str:
            raise ValueError

    def fail(_: object) -> None:
        raise MuteError

    failure = explore(Scenario(object, {"a": [fail]})).failure
    assert failure is not None
    assert failure.message == "a raised MuteError: (its __str__ raised ValueError)"


# -- the words -------------------------------------------------------------------------------------------------------


def test_the_page_names_tests_that_there_are() -> None:
    page = Path("docs/guarantees.md").read_text()
    named = set(re.findall(r"`(test_\w+)`", page))
    there = {
        name for file in Path("tests/explore").glob("*.py") for name in re.findall(r"def (test_\w+)", file.read_text())
    }
    assert named
    assert named <= there, named - there


def said(make: Callable[[], Result]) -> str:
    return str(make().verdict)


def test_a_verdict_is_one_of_four_words() -> None:
    assert said(lambda: explore(TextbookSubscription)) == "failed"
    assert said(lambda: explore(classics.FixedBluetooth, strategy="bounded")) == "exhausted"
    assert said(lambda: explore(classics.FixedBluetooth, strategy="pct", schedules=50)).startswith("held (50 schedules")
    assert said(lambda: explore(Rolling)) == "incomplete (2 schedules)"
