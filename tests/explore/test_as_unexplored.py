"""Sound programs that look closely at the standard library: an exploration accuses none of them."""

from __future__ import annotations

import copy
import datetime
import inspect
import logging
import pickle
import threading
import time
import types
import weakref
from collections import UserDict
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, ThreadPoolExecutor
from typing import Any

import pytest

from reactive_runtime.errors import ExploreError, ScenarioError
from reactive_runtime.explore import explore, replay, unreachable

pytest_plugins = ["pytester"]


def together(*functions: Callable[[], object]) -> None:
    threads = [threading.Thread(target=function) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def methods_that_are_taken() -> None:
    items: list[int] = []
    known: UserDict[str, int] = UserDict()

    def look() -> None:
        append, get = items.append, known.get
        assert isinstance(append, types.BuiltinFunctionType)
        assert inspect.isbuiltin(append)
        assert inspect.ismethod(get)
        assert repr(append).startswith("<built-in method append")
        assert weakref.ref(append)() == append
        copy.copy(append)(1)
        assert pickle.loads(pickle.dumps(append))(2) is None

    together(look, look)
    assert items == [1, 1]


def threads_that_live() -> None:
    before = threading.enumerate()  # unexplored, also threads of other tests
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    assert None not in (thread.ident, thread.native_id)
    assert threading.current_thread() is threading.main_thread()
    assert threading.current_thread().name == "MainThread"
    assert threading.main_thread() in before
    assert {*threading.enumerate()} - {*before} == {thread}
    done.set()
    for other in threading.enumerate():
        if other not in before:
            other.join()
    assert thread not in threading.enumerate()


def attributes_of_primitives() -> None:
    for made in (threading.Condition(), threading.Event(), threading.Semaphore(), threading.BoundedSemaphore()):
        made.owner = "me"  # type: ignore[union-attr]
        assert made.owner == "me"  # type: ignore[union-attr]


class Turns(threading.Condition):
    def __init__(self, name: str, turns: int) -> None:
        super().__init__()
        self.name, self.turns = name, turns


class Slots(threading.BoundedSemaphore):
    def __init__(self) -> None:
        super().__init__(1)
        self.taken = 0

    def acquire(self, *given: Any, **named: Any) -> bool:
        self.taken += super().acquire(*given, **named)
        return True


def classes_of_the_program() -> None:
    assert Turns("a", 2).turns == 2
    slots = Slots()
    slots.acquire()
    slots.release()
    assert slots.taken == 1
    with pytest.raises(ValueError, match="released too many times"):
        slots.release()


class Owned:
    """A lock of the program's own."""

    def __init__(self) -> None:
        self.lock = threading.Lock()

    def acquire(self, *given: Any) -> bool:
        return self.lock.acquire(*given)

    def release(self) -> None:
        self.lock.release()

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


def a_condition_on_a_lock_of_the_program() -> None:
    woken: list[object] = []
    turn = threading.Condition(Owned())  # type: ignore[arg-type]

    def wait() -> None:
        with turn:
            woken.append(turn.wait_for(lambda: woken, 1) if woken else turn.wait(5))

    def wake() -> None:
        time.sleep(1)
        with turn:
            turn.notify()

    together(wait, wake)
    assert woken == [True]


def an_initializer_that_fails() -> None:
    logging.disable()
    pool = ThreadPoolExecutor(1, initializer=int, initargs=("none",))
    for _ in range(2):
        with pytest.raises(BrokenExecutor):
            pool.submit(int).result()
    logging.disable(logging.NOTSET)


def names_of_workers() -> None:
    with ThreadPoolExecutor(1, thread_name_prefix="ours") as pool:
        assert pool.submit(lambda: threading.current_thread().name).result() == "ours_0"


def locks_as_they_are() -> None:
    for lock in (threading.Lock(), threading.RLock()):
        for refused in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match="cannot pickle"):
                refused(lock)
        with pytest.raises(ValueError, match="timeout value must be"):
            lock.acquire(timeout=-2)
    lock = threading.Lock()
    with lock as held:
        assert held
    assert repr(lock).startswith("<unlocked _thread.lock")
    lock.acquire_lock()
    assert repr(lock).startswith("<locked _thread.lock")


def dates_that_are_pickled() -> None:
    now = datetime.datetime.now()
    kept = pickle.dumps([now, datetime.date.today()])
    assert b"explore" not in kept
    assert pickle.loads(kept) == [now, now.date()]


@pytest.mark.parametrize(
    "program",
    [
        methods_that_are_taken, threads_that_live, attributes_of_primitives, classes_of_the_program,
        a_condition_on_a_lock_of_the_program, an_initializer_that_fails, names_of_workers, locks_as_they_are,
        dates_that_are_pickled,
    ],
)  # fmt: skip
def test_what_holds_unexplored_holds_explored(program: Callable[[], None]) -> None:
    program()
    for strategy in ("dpor", "portfolio"):
        result = explore(program, strategy=strategy, schedules=200, early_timeouts=0)
        assert result.failure is None, result.failure.message


def test_a_thread_that_ends_is_seen_to_by_enumerate() -> None:
    def program() -> None:
        thread = threading.Thread(target=int)
        thread.start()
        assert threading.active_count() == threading.active_count(), "it has ended meanwhile"
        thread.join()

    for strategy in ("dpor", "portfolio"):
        assert explore(program, strategy=strategy, schedules=200).failure is not None


# -- what a scenario says --------------------------------------------------------------------------------------


class Caught:
    def __init__(self) -> None:
        self.ready = False

    def actor_a(self) -> None:
        self.ready = True

    def look(self) -> None:
        if self.ready:
            unreachable("it is ready")

    def actor_b(self) -> None:
        try:
            self.look()
        except Exception:
            self.ready = False


class Kept(Caught):
    def actor_b(self) -> None:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(self.look)


@pytest.mark.parametrize("program", [Caught, Kept])
def test_an_unreachable_line_fails_though_its_error_is_caught(program: Any) -> None:
    failure = explore(program, strategy="dpor", schedules=200).failure
    assert failure is not None
    assert failure.message == "it is ready (this line was to be unreachable)"
    assert replay(program, failure.token).failure is not None


class BeginsAThread:
    def actor_a(self) -> None:
        pass

    def at_end(self) -> None:
        together(int)


class HandsOn:
    def __init__(self) -> None:
        self.pool = ThreadPoolExecutor(1)

    def actor_a(self) -> None:
        pass

    def at_end(self) -> None:
        assert self.pool.submit(int).result() == 0


@pytest.mark.parametrize("program", [BeginsAThread, HandsOn])
def test_an_invariant_that_begins_a_thread_is_refused(program: Any) -> None:
    with pytest.raises(ExploreError, match="it must only look; do it in an actor"):
        explore(program)


class Static:
    @staticmethod
    def actor_a() -> None:
        pass


def test_an_actor_without_the_state_is_refused() -> None:
    with pytest.raises(ScenarioError, match="leave out the decorator"):
        explore(Static)


# -- fixtures of pytest ----------------------------------------------------------------------------------------

COLLECTING = """
import logging, threading, warnings
import pytest

def prints():
    print("a")
    print("b")

def logs():
    logging.warning("a")
    logging.warning("b")

def run(function, locks):
    lock = threading.Lock()
    def locked():
        with lock:
            function()
    threads = [threading.Thread(target=locked if locks else function) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

@pytest.mark.explore(schedules=20)
@pytest.mark.parametrize("locks", [True, False])
def test_printed(capsys, locks):
    run(prints, locks)
    assert capsys.readouterr().out == "a\\nb\\n" * 2

@pytest.mark.explore(schedules=20)
@pytest.mark.parametrize("locks", [True, False])
def test_logged(caplog, locks):
    run(logs, locks)
    assert [record.message for record in caplog.records] == ["a", "b"] * 2

@pytest.mark.explore(schedules=20)
def test_warned(recwarn, capfd):
    warnings.warn("once")
    print("once")
    assert len(recwarn) == 1
    assert capfd.readouterr().out == "once\\n"
"""


def test_what_collects_begins_anew_in_each_schedule(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_collecting=COLLECTING)
    ran = pytester.runpytest_subprocess("-rf")
    ran.assert_outcomes(passed=3, failed=2)
    ran.stdout.fnmatch_lines_random(["FAILED *test_printed?False?*", "FAILED *test_logged?False?*"])
