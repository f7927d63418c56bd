"""What can't be explored is refused by name, and nothing is left changed."""

from __future__ import annotations

import functools
import gc
import itertools
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any

import pytest

from reactive_runtime._core.drains import drain
from reactive_runtime._core.runtime import primitives
from reactive_runtime.errors import ExploreError, ScenarioError
from reactive_runtime.explore import Scenario, explore, explore_publisher, publisher_scenario, request
from reactive_runtime.explore._render.step_log import Step, StepLog
from reactive_runtime.explore._schedule import carriers as _carriers
from reactive_runtime.explore._schedule.scheduler import Scheduler

OUTSIDE = ThreadPoolExecutor(1)
_dice = itertools.count()


class Quiet:
    def actor_a(self) -> None:
        pass

    def actor_b(self) -> None:
        pass


@pytest.fixture(autouse=True)
def nothing_is_left_changed(no_thread_left: None) -> Iterator[None]:
    before = (threading.Lock, threading.Thread.start, time.monotonic, primitives.Lock, gc.isenabled())
    cores = os.sched_getaffinity(0)
    code = drain.Drain.add.__code__
    yield
    after = (threading.Lock, threading.Thread.start, time.monotonic, primitives.Lock, gc.isenabled())
    assert after == before
    assert os.sched_getaffinity(0) == cores
    assert drain.Drain.add.__code__ is code
    assert explore(Quiet).holds  # and the next exploration works


def test_dice_are_noticed() -> None:
    class Dice(Quiet):
        def at_end(self) -> None:
            assert next(_dice) % 3, "the dice fell badly"

    result = explore(Dice)
    assert (result.verdict.kind, result.failure, result.holds) == ("incomplete", None, False)
    with pytest.raises(ExploreError, match=r"does not do the same each time.*random numbers"):
        result.assert_holds()


def test_dice_that_decide_who_waits_are_noticed() -> None:
    class Dice:
        def __init__(self) -> None:
            self.lock = threading.Lock()

        def actor_a(self) -> None:
            for _ in range(random.randrange(1, 8)):
                with self.lock:
                    pass

        def actor_b(self) -> None:
            with self.lock:
                pass

        def at_end(self) -> None:
            assert random.random() < 0.9

    def some_seed_meets_them() -> None:
        for seed in range(20):
            explore(Dice, seed=seed).assert_holds()

    with pytest.raises(ExploreError, match="does not do the same each time"):
        some_seed_meets_them()


def test_a_program_that_never_ends_is_a_livelock() -> None:
    class Spinning:
        def __init__(self) -> None:
            self.flag = False

        def actor_waits(self) -> None:
            while not self.flag:
                time.sleep(0)

        def actor_does_not_set_it(self) -> None:
            pass

    failure = explore(Spinning, limit=500).failure
    assert failure is not None
    assert failure.kind == "livelock"
    assert "500 steps" in failure.message
    assert "time.sleep(0)" in failure.diagram()


def test_a_program_that_is_too_long_meets_the_limit_of_steps() -> None:
    class Long:
        def __init__(self) -> None:
            self.lock = threading.Lock()

        def actor_a(self) -> None:
            for n in range(300):
                with self.lock:
                    if n % 7 == 0:
                        time.sleep(n)

        def actor_b(self) -> None:
            with self.lock:
                pass

    failure = explore(Long, limit=200).failure
    assert failure is not None
    assert failure.kind in ("limit", "livelock")


def test_a_loop_without_a_point_gets_one() -> None:
    class Busy:
        def __init__(self) -> None:
            self.flag = False

        def actor_waits(self) -> None:
            while not self.flag:
                pass

        def actor_sets(self) -> None:
            self.flag = True

    assert explore(Busy, schedules=50).holds


def test_two_that_wait_for_each_other_in_a_loop_are_a_livelock() -> None:
    class Polite:
        def __init__(self) -> None:
            self.done = [False, False]

        def after(self, other: int, me: int) -> None:
            while not self.done[other]:
                time.sleep(0)
            self.done[me] = True

        def actor_a(self) -> None:
            self.after(1, 0)

        def actor_b(self) -> None:
            self.after(0, 1)

    failure = explore(Polite, limit=1_000, shrink=False).failure
    assert failure is not None
    assert failure.kind == "livelock"
    assert "a and b repeat" in failure.message


def test_two_that_toggle_flags_for_each_other_are_a_livelock_of_both() -> None:
    """Neither of them comes to rest, and both go round."""

    class Polite:
        def __init__(self) -> None:
            self.wants = [True, True]

        def give_way(self, me: int) -> None:
            while self.wants[1 - me]:
                self.wants[me] = False
                self.wants[me] = True

        def actor_a(self) -> None:
            self.give_way(0)

        def actor_b(self) -> None:
            self.give_way(1)

    failure = explore(Polite, limit=4_000, shrink=False, strategy="random").failure
    assert failure is not None
    assert failure.kind == "livelock"
    assert "a and b repeat the same" in failure.message


def steps_of(order: str) -> StepLog:
    """The log of a run: a letter for each step."""
    log = StepLog(Scheduler(), frozenset())
    log.steps = [Step(ord(who), who, f"does {who}", "", 1, "", "", "", False, 0) for who in order]
    return log


def test_some_steps_alike_at_the_end_are_no_period() -> None:
    assert steps_of("abcd" * 40).period() == "a and b and c and d repeat the same 4 steps without end"
    assert steps_of("a" * 70).period() == "a repeats the same 1 step without end"
    assert steps_of("aaa").period() == "a repeats the same 1 step without end"
    assert steps_of("".join(random.Random(0).choices("abcdefgh", k=200)) + "aaa").period() is None
    changing = "".join(random.Random(0).choices("ab", k=4_000))
    assert steps_of(f"{changing}aaa").period() == "a and b repeat the same 2 steps, in changing order, without end"


def test_an_actor_that_raises_is_a_failure_with_its_name() -> None:
    class Raising(Quiet):
        def actor_c(self) -> None:
            raise OSError("no such luck")

    failure = explore(Raising).failure
    assert failure is not None
    assert (failure.kind, failure.thread) == ("raised", "c")
    assert "OSError: no such luck" in failure.diagram()
    assert isinstance(failure.error, OSError)


def test_a_set_up_that_raises_is_the_scenarios_fault() -> None:
    class Unable(Quiet):
        def __init__(self) -> None:
            raise OSError("no disk")

    with pytest.raises(ScenarioError, match=r"set-up of .*Unable raised OSError: no disk"):
        explore(Unable)


def test_a_set_up_that_waits_for_ever_is_a_deadlock() -> None:
    class Waiting(Quiet):
        def __init__(self) -> None:
            lock = threading.Lock()
            lock.acquire()
            lock.acquire()

    failure = explore(Waiting).failure
    assert failure is not None
    assert failure.kind == "deadlock"


def test_what_blocks_without_control_is_named() -> None:
    reader, writer = os.pipe()

    class Blocked(Quiet):
        def actor_c(self) -> None:
            os.read(reader, 1)

    with pytest.raises(ExploreError, match=r"thread c has come to no point for 1 s.*os\.read.*C extension"):
        explore(Blocked, hang=1)
    os.write(writer, b"x")  # the thread is in C, and goes on when it can
    os.close(writer)


def test_a_lock_from_outside_that_is_held_is_named() -> None:
    locks = [threading.Lock()]  # what holds it by name has a stand-in

    class Held:
        def __init__(self) -> None:
            self.inner = threading.Lock()

        def actor_a(self) -> None:
            with locks[0], self.inner:
                pass

        def actor_b(self) -> None:
            with locks[0], self.inner:
                pass

    with pytest.raises(ExploreError, match="a lock made outside of the scenario"):
        explore(Held, hang=1)


def test_a_pool_from_outside_is_refused() -> None:
    class Outside(Quiet):
        def actor_c(self) -> None:
            OUTSIDE.submit(int).result()

    with pytest.raises(ExploreError, match="actor c: a task was submitted to a pool that was made outside"):
        explore(Outside)


def test_a_pool_of_processes_is_refused() -> None:
    class Processes(Quiet):
        def actor_c(self) -> None:
            with ProcessPoolExecutor(1) as pool:
                pool.submit(int).result()

    with pytest.raises(ExploreError, match="pool of processes"):
        explore(Processes)


def test_a_thread_from_outside_that_comes_in_is_reported() -> None:
    box: dict[str, Any] = {}
    (asked, ask), (answered, answer) = os.pipe(), os.pipe()  # real ones: a pipe is not controlled
    raised: list[BaseException] = []

    def intrude() -> None:
        os.read(asked, 1)
        try:
            box["lock"].acquire()
        except RuntimeError as error:
            raised.append(error)
        os.write(answer, b"x")

    thread = threading.Thread(target=intrude)
    thread.start()

    class Intruded(Quiet):
        def __init__(self) -> None:
            box["lock"] = threading.Lock()

        def actor_c(self) -> None:
            if not raised:
                os.write(ask, b"x")
                os.read(answered, 1)

    explore(Intruded, schedules=1)
    thread.join()
    for end in (asked, ask, answered, answer):
        os.close(end)
    assert "not part of the exploration" in str(raised[0])


def test_the_clock_of_a_thread_from_outside_is_the_real_one() -> None:
    """A driver's thread, a profiler, a test runner: they sleep and look at the clock while something is explored."""
    told: list[tuple[float, threading.Thread]] = []
    begun, stop = threading.Event(), threading.Event()

    def background() -> None:
        while not stop.is_set():
            begin = time.monotonic()
            time.sleep(0.00001)
            told.append((time.monotonic() - begin, threading.current_thread()))
            begun.set()

    thread = threading.Thread(target=background)
    thread.start()
    begun.wait()
    told.clear()
    try:
        while len(told) < 500:  # some of them where the explorer comes, or goes
            explore(Quiet, schedules=5).assert_holds()
    finally:
        stop.set()
        thread.join()
    assert all(seconds > 0 and message is thread for seconds, message in told)


def test_exploring_inside_of_exploring_is_refused() -> None:
    class Inside(Quiet):
        def actor_c(self) -> None:
            explore(Quiet)

    with pytest.raises(ExploreError, match="an exploration inside of an exploration"):
        explore(Inside)


def test_coroutines_are_refused() -> None:
    async def main() -> None:
        pass

    class Coroutine(Quiet):
        async def actor_c(self) -> None:
            pass

    with pytest.raises(ScenarioError, match="coroutine function"):
        explore(main)
    with pytest.raises(ScenarioError, match=r"actor c of .* is a coroutine function"):
        explore(Coroutine)
    with pytest.raises(ExploreError, match="returned a coroutine or a generator"):
        explore(Scenario(int, {"a": [lambda _: main()]}))


def test_generators_are_refused() -> None:
    def numbers(*_: Any) -> Iterator[int]:
        yield 1

    async def many(*_: Any) -> Any:
        yield 1

    class Generator(Quiet):
        def actor_c(self) -> Iterator[int]:
            yield 1

    class AtEnd(Quiet):
        def at_end(self) -> Iterator[int]:
            yield 1

    class Called:
        def __call__(self, *_: Any) -> Iterator[int]:
            yield 1

    refused = {"numbers": numbers, "actor c of .*": Generator, "at_end of .*": AtEnd, "Called": Called()}
    for what, item in refused.items():
        with pytest.raises(ScenarioError, match=f"{what} is a generator function"):
            explore(item)
    with pytest.raises(ScenarioError, match="is a coroutine function"):
        explore(many)
    with pytest.raises(ScenarioError, match=r"actor a of .* is a generator function"):
        explore(Scenario(int, {"a": [functools.partial(numbers, 1)]}))
    with pytest.raises(ExploreError, match="returned a coroutine or a generator"):
        explore(Scenario(int, {"a": [lambda _: numbers()]}))
    with pytest.raises(ScenarioError, match="returned a coroutine or a generator"):
        explore(Scenario(int, {"a": [lambda _: None]}, at_end=lambda _: numbers()))


@pytest.mark.parametrize(
    "name", ["at_ends", "atend", "at_End", "AtEnd", "at_each_steps", "teardown", "tearDown", "outcom"]
)
def test_a_misspelt_name_is_reported(name: str) -> None:
    cls = type("Misspelt", (Quiet,), {name: lambda self: None})
    with pytest.raises(ScenarioError, match=f"Misspelt has `{name}`, which is never called: is it to be `"):
        explore(cls)


@pytest.mark.parametrize("name", ["actor", "actorb", "Actor_b"])
def test_an_actor_that_no_thread_would_run_is_reported(name: str) -> None:
    with pytest.raises(ScenarioError, match=f"has `{name}`, which no thread runs"):
        explore(type("Misspelt", (Quiet,), {name: lambda self: None}))


def test_a_name_that_is_near_one_that_is_there_is_left_alone() -> None:
    explore(type("Both", (Quiet,), {"at_end": lambda self: None, "at_ends": lambda self: None}), schedules=1)


def test_a_scenario_without_actors_is_reported() -> None:
    with pytest.raises(ScenarioError, match="has no actors"):
        explore(Scenario(int, {}))


def test_a_scenario_that_asserts_nothing_says_so() -> None:
    class Asserting(Quiet):
        def actor_c(self) -> None:
            assert type(self) is Asserting

    assert any("nothing is asserted" in note for note in explore(Quiet, schedules=1).notes)
    assert explore(Asserting, schedules=1).notes == []


def test_an_interrupt_ends_the_exploration_and_leaves_nothing_behind() -> None:
    class Interrupted:
        def __init__(self) -> None:
            self.lock = threading.Lock()

        def actor_interrupts(self) -> None:
            signal.raise_signal(signal.SIGINT)
            for _ in range(3_000):
                with self.lock:
                    pass

        def actor_b(self) -> None:
            with self.lock:
                pass

    with pytest.raises(KeyboardInterrupt):
        explore(Interrupted)


@pytest.mark.parametrize("item", [None, 3, "name", object()])
def test_what_is_no_scenario_is_reported(item: object) -> None:
    with pytest.raises(ScenarioError, match="a scenario is a class with methods actor_"):
        explore(item)


def test_a_class_without_actors_is_reported() -> None:
    with pytest.raises(ScenarioError, match="has no actors"):
        explore(Future)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"schedules": 0}, "schedules must be at least 1"),
        ({"strategy": "luck"}, "strategy must be one of portfolio"),
        ({"points": "words"}, "points must be one of sync"),
        ({"points": "line", "engine": "greenlets"}, "greenlets go with points"),
        ({"engine": "steam"}, "engine must be threads or greenlets"),
        ({"bound": -1}, "bound must be at least 0"),
        ({"limit": 0}, "limit must be at least 1"),
        ({"hang": 0}, "hang must be more than 0"),
        ({"hang": float("nan")}, "hang must be more than 0"),
    ],
)
def test_a_wrong_option_is_named(options: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        explore(Quiet, **options)


def test_greenlets_are_refused_where_they_would_end_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_carriers, "greenlets_run", lambda: False)
    with pytest.raises(ExploreError, match=r"before Python 3\.14 where there is no GIL: use engine='threads'"):
        explore(Quiet, engine="greenlets")


def test_a_module_that_is_not_imported_is_named() -> None:
    with pytest.raises(ScenarioError, match=r"no module 'no\.such' is imported"):
        explore(Quiet, modules=["no.such"])


def test_one_module_needs_no_list() -> None:
    assert explore(Quiet, modules="json").holds
    assert explore(Quiet, modules=os).holds
    with pytest.raises(ScenarioError, match=r"no module 'no\.such' is imported"):
        explore(Quiet, modules="no.such")


def test_what_a_thread_raises_is_shown_with_its_line_and_traceback() -> None:
    class Raising(Quiet):
        def fails(self) -> None:
            raise OSError("no such luck")

        def actor_c(self) -> None:
            self.fails()

    failure = explore(Raising).failure
    assert failure is not None
    line = Raising.fails.__code__.co_firstlineno + 1
    assert f"raised in thread c, test_bad_input.py:{line}: " in failure.diagram()
    assert f"line {line}, in fails" in failure.traceback
    assert "in actor_c" in failure.traceback
    assert "scheduler.py" not in failure.traceback
    with pytest.raises(AssertionError, match=r"Traceback[^✗]*in fails"):
        explore(Raising).assert_holds()


def test_a_hook_that_a_program_sets_for_its_threads_is_called() -> None:
    told: list[str] = []

    class Hooked(Quiet):
        def __init__(self) -> None:
            threading.excepthook = lambda item: told.append(
                f"{item.exc_type.__name__} in {item.thread and item.thread.name}"
            )

        def actor_c(self) -> None:
            def fails() -> None:
                raise OSError("no such luck")

            thread = threading.Thread(target=fails, name="own")
            thread.start()
            thread.join()

    before = threading.excepthook
    assert explore(Hooked, schedules=5).holds
    assert set(told) == {"OSError in own"}
    assert threading.excepthook is before


def test_a_thread_may_exit() -> None:
    class Exiting(Quiet):
        def actor_c(self) -> None:
            thread = threading.Thread(target=sys.exit)
            thread.start()
            thread.join()

    assert explore(Exiting, schedules=5).holds


def test_the_picture_of_a_livelock_has_its_period_once() -> None:
    class Waiting:
        def __init__(self) -> None:
            self.flags = [False, False]

        def after(self, other: int, me: int) -> None:
            while not self.flags[other]:
                time.sleep(0)
            self.flags[me] = True

        def actor_a(self) -> None:
            self.after(1, 0)

        def actor_b(self) -> None:
            self.after(0, 1)

    failure = explore(Waiting).failure
    assert failure is not None
    assert failure.kind == "livelock"
    assert len(failure.diagram().splitlines()) <= 20
    assert "and so on" in failure.diagram()


def test_an_invariant_that_returns_false_does_not_hold() -> None:
    failure = explore(Scenario(int, {"a": [lambda _: None]}, lambda _: False)).failure
    assert failure is not None
    assert "does not hold" in failure.message


@pytest.mark.parametrize("make", [publisher_scenario, explore_publisher])
@pytest.mark.parametrize(
    ("option", "value", "error", "told"),
    [
        ("late_signals", 16, ValueError, "must be at most 15, not 16"),
        ("late_signals", -1, ValueError, "must be at least 0, not -1"),
        ("late_signals", True, TypeError, "must be an int, not bool"),
        ("late_signals", None, TypeError, "must be an int, not None"),
        ("elements", -1, ValueError, "must be at least 0, not -1"),
        ("elements", "3", TypeError, "must be an int, not str"),
    ],
)
def test_an_option_of_a_publisher_that_is_out_of_its_range_is_refused_before_anything_runs(
    make: Any, option: str, value: Any, error: type[Exception], told: str
) -> None:
    made: list[object] = []
    with pytest.raises(error, match=f"^{make.__name__}: {option} {told}$"):
        make(lambda: made.append(1), [request(1)], **{option: value})
    assert made == []
