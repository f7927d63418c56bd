"""The search by races runs each class of equivalent schedules once, and comes to all that brute force comes to."""

from __future__ import annotations

import queue
import threading
from concurrent.futures import Future, ThreadPoolExecutor, wait
from time import sleep
from typing import Any

import pytest
from bugs import classics
from searching import NIGHT

from explore.brute_force import ENOUGH, Traced, searched
from explore.drawn_programs import drawn, drawn_looks
from explore.programs import BROKEN, FIXED, Named
from reactive_runtime.errors import ReactiveError
from reactive_runtime.explore import explore
from reactive_runtime.explore._explore_command import Asked, explored
from reactive_runtime.explore._search.bounded import Bounded
from reactive_runtime.explore._search.dpor import DPOR

PROGRAMS = range(400 if NIGHT else 40)


def exact(program: Any, most: int = ENOUGH) -> bool:
    """Compare with brute force; False where that does not come to its end."""
    brute = searched(program, Traced(), most)
    if brute is None:
        return False
    outcomes, _, traces = brute
    assert searched(program, DPOR()) == (outcomes, traces, 0)
    reduced = searched(program, Bounded())
    assert reduced is not None
    assert reduced[0] == outcomes
    return True


@pytest.mark.parametrize("entry", BROKEN + FIXED, ids=lambda item: item.name)
def test_each_class_of_schedules_runs_once(entry: Named) -> None:
    exact(entry.program)


@pytest.mark.parametrize("tens", range(PROGRAMS.start, PROGRAMS.stop, 10))
def test_each_class_of_schedules_of_a_drawn_program_runs_once(tens: int) -> None:
    assert sum(exact(drawn(seed)) for seed in range(tens, tens + 10)) >= 5


@pytest.mark.parametrize("tens", range(PROGRAMS.start, PROGRAMS.stop, 10))
def test_each_class_of_schedules_of_a_program_that_looks_into_several_things_at_once_runs_once(tens: int) -> None:
    assert sum(exact(drawn_looks(seed)) for seed in range(tens, tens + 10)) >= 5


class Empty:
    """A loop over what another thread makes larger: what an iterator was made of may change before its first entry."""

    def __init__(self) -> None:
        self.entries: dict[int, int] = {}
        self.seen: list[Any] = []

    def actor_goes_through(self) -> None:
        for entry in self.entries:
            self.seen.append(entry)

    def actor_adds(self) -> None:
        self.entries[1] = 1


class EmptyView(Empty):
    def actor_goes_through(self) -> None:
        for entry in self.entries.items():
            self.seen.append(entry)


class EmptyInside(Empty):
    def actor_goes_through(self) -> None:
        self.seen = [entry for entry in self.entries]  # noqa: C416 - a loop, not a copy in one step


class One(Empty):
    def __init__(self) -> None:
        super().__init__()
        self.entries[0] = 0


@pytest.mark.parametrize("program", [Empty, EmptyView, EmptyInside, One], ids=lambda item: item.__name__)
def test_an_iterator_is_made_before_or_after_a_change(program: Any) -> None:
    assert exact(program)
    failure = explore(program, strategy="dpor").failure
    assert failure is not None
    assert "changed size during iteration" in failure.message


class Shade:
    colour = 0


class Loses:
    """An object has an attribute of its own, then the one of its class: which of them is known when the look is due."""

    def __init__(self) -> None:
        Shade.colour = 0
        self.item = Shade()
        self.item.colour = 5
        self.seen: list[int] = []

    def actor_looks(self) -> None:
        self.seen.append(self.item.colour)
        self.seen.append(self.item.colour)

    def actor_changes(self) -> None:
        Shade.colour = 1

    def actor_deletes(self) -> None:
        del self.item.colour

    def outcome(self) -> list[int]:
        return self.seen


class Gains(Loses):
    def __init__(self) -> None:
        super().__init__()
        del self.item.colour

    def actor_deletes(self) -> None:
        self.item.colour = 7


@pytest.mark.parametrize("program", [Loses, Gains], ids=lambda item: item.__name__)
def test_an_attribute_is_one_of_the_object_or_of_its_class(program: Any) -> None:
    assert exact(program)


class Increments:
    """Three threads with two locked increments each: 6! / (2! 2! 2!) orders."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.count = 0

    def increment(self) -> None:
        for _ in range(2):
            with self.lock:
                self.count += 1

    actor_a = actor_b = actor_c = increment

    def at_end(self) -> None:
        assert self.count == 6


def test_three_threads_of_two_locked_increments_have_ninety_schedules() -> None:
    search = DPOR()
    assert searched(Increments, search) == ({"None"}, 90, 0)
    assert search.cut == 0
    result = explore(Increments, strategy="dpor")
    assert (str(result.verdict), result.schedules) == ("exhausted", 90)
    assert searched(Increments, Bounded()) == ({"None"}, 90, 0)


class Independent:
    """Threads that have nothing to do with each other have one schedule, however long they are."""

    def __init__(self) -> None:
        self.locks = [threading.Lock() for _ in range(3)]

    def work(self, number: int) -> None:
        for _ in range(10):
            with self.locks[number]:
                pass

    def actor_a(self) -> None:
        self.work(0)

    def actor_b(self) -> None:
        self.work(1)

    def actor_c(self) -> None:
        self.work(2)


def test_independent_threads_have_one_schedule() -> None:
    result = explore(Independent, strategy="dpor")
    assert (str(result.verdict), result.schedules) == ("exhausted", 1)


class Alive:
    """One thread looks whether another lives. Both answers are found."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.thread = threading.Thread(target=self.work)
        self.lives: list[bool] = []

    def work(self) -> None:
        with self.lock:
            pass

    def actor_a(self) -> None:
        self.thread.start()

    def actor_b(self) -> None:
        self.lives.append(self.thread.is_alive())

    def outcome(self) -> bool:
        return self.lives[0]


class FirstLook:
    """Two workers of a pool begin by taking a task, one of them perhaps none."""

    def __init__(self) -> None:
        self.pool = ThreadPoolExecutor(2)

    def actor_a(self) -> None:
        self.pool.submit(int)

    actor_b = actor_a


class TwoTimeouts:
    """Both are due at the same time, and want the same lock then."""

    def __init__(self) -> None:
        self.condition = threading.Condition()
        self.order: list[str] = []

    def actor_a(self) -> None:
        with self.condition:
            self.condition.wait(1)
            self.order.append("a")

    def actor_b(self) -> None:
        with self.condition:
            self.condition.wait(1)
            self.order.append("b")

    def outcome(self) -> str:
        return "".join(self.order)


class SleepsInside:
    """A lock is held over a sleep: the other thread waits for it while the clock moves."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.order: list[str] = []

    def actor_a(self) -> None:
        with self.lock:
            sleep(1)
            self.order.append("a")

    def actor_b(self) -> None:
        with self.lock:
            self.order.append("b")

    def outcome(self) -> str:
        return "".join(self.order)


class Both:
    """Two futures, waited for by `wait`, which goes through a set of them."""

    def __init__(self) -> None:
        self.futures: list[Future[int]] = [Future(), Future()]

    def actor_a(self) -> None:
        self.futures[0].set_result(1)

    def actor_b(self) -> None:
        self.futures[1].set_result(2)

    def actor_c(self) -> None:
        wait(self.futures)


class IsEmpty:
    """Two look whether there is something left, and take it."""

    def __init__(self) -> None:
        self.left: queue.SimpleQueue[int] = queue.SimpleQueue()
        self.left.put(1)
        self.missed = 0

    def take(self) -> None:
        if not self.left.empty():
            try:
                self.left.get_nowait()
            except queue.Empty:
                self.missed += 1

    actor_a = actor_b = take

    def outcome(self) -> int:
        return self.missed


@pytest.mark.parametrize(
    "program", [Alive, FirstLook, TwoTimeouts, SleepsInside, IsEmpty], ids=lambda item: item.__name__
)
def test_what_is_no_operation_of_a_lock_is_ordered_too(program: Any) -> None:
    assert exact(program, 5_000)


@pytest.mark.parametrize("strategy", ["dpor", "bounded", "pct2"])
def test_a_look_at_the_length_of_a_simple_queue_is_ordered_too(strategy: str) -> None:
    result = explore(IsEmpty, strategy=strategy, schedules=200)
    assert {row.value for row in result.outcomes} == {0, 1}


class Spins:
    """One goes round until there is an element, and takes it."""

    def __init__(self) -> None:
        self.left: queue.SimpleQueue[int] = queue.SimpleQueue()

    def actor_a(self) -> None:
        while self.left.empty():
            pass
        self.left.get_nowait()

    def actor_b(self) -> None:
        self.left.put(1)

    def at_end(self) -> None:
        assert self.left.qsize() == 0


@pytest.mark.parametrize("strategy", ["dpor", "bounded", "portfolio"])
def test_an_element_of_a_simple_queue_that_is_seen_can_be_taken(strategy: str) -> None:
    assert explore(Spins, strategy=strategy, schedules=200).holds


def test_a_set_of_futures_has_the_same_order_in_every_run() -> None:
    first = searched(Both, DPOR(), 5_000)
    kept = [object() for _ in range(1_001)]  # what is made next lies elsewhere
    assert first == searched(Both, DPOR(), 5_000)
    assert kept


def test_an_invariant_of_every_step_is_looked_at_in_every_schedule() -> None:
    class Apart:
        def __init__(self) -> None:
            self.a, self.b = threading.Lock(), threading.Lock()

        def actor_a(self) -> None:
            with self.a:
                pass
            with self.a:
                pass

        def actor_b(self) -> None:
            with self.b:
                pass
            with self.b:
                pass

        def at_each_step(self) -> None:
            pass

    for strategy in ("dpor", "bounded"):
        assert explore(Apart, strategy=strategy).schedules == explore(Apart, strategy="brute-force").schedules


def test_what_an_invariant_of_every_step_forbids_is_found() -> None:
    class Passing:
        def __init__(self) -> None:
            self.a = self.b = 0

        def actor_a(self) -> None:
            self.a = 1
            self.a = 0

        def actor_b(self) -> None:
            self.b = 1
            self.b = 0

        def actor_both(self) -> None:
            self.a, self.b = self.a, self.b  # makes points of both

        def at_each_step(self) -> None:
            assert not (self.a == 1 and self.b == 1), "both at once"

    failure = explore(Passing, strategy="dpor", schedules=20_000).failure
    assert failure is not None
    assert failure.message == "both at once"


def test_a_verdict_says_exhausted_only_at_the_end() -> None:
    assert str(explore(classics.PolitePhilosophers, strategy="dpor").verdict) == "exhausted"
    assert str(explore(classics.PolitePhilosophers, strategy="dpor", schedules=3).verdict) == "held (3 schedules)"


def test_a_bound_is_refused() -> None:
    with pytest.raises(ValueError, match="dpor has no bound"):
        explore(classics.Account, strategy="dpor", bound=2)


def test_several_processes_are_refused() -> None:
    asked = Asked("bugs.classics:Account", 10, 0, "dpor", "shared", (), None, 100, "threads", "any", 1, 1.0, 10.0)
    with pytest.raises(ReactiveError, match="has no parts to share"):
        explored(asked, jobs=2)
