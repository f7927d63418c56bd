"""asyncio beside threads: a loop's thread is an actor, and which of its tasks goes on is a choice."""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import inspect
import threading
import time
import warnings
from collections.abc import Callable, Coroutine
from typing import Any, ClassVar

import pytest

from examples.hazards import lesson
from explore.test_exactness import outcomes
from reactive_runtime.errors import ExploreError
from reactive_runtime.explore import explore, replay
from reactive_runtime.explore._schedule.carriers import greenlets_run

# -- from a thread to a loop ----------------------------------------------------------------------------------


class HandedOver:
    """A thread hands an element to a loop, as it should not: the loop is not woken."""

    loop: asyncio.AbstractEventLoop
    queue: asyncio.Queue[int]

    def __init__(self) -> None:
        self.up = threading.Event()
        self.taken: list[int] = []

    def actor_loop(self) -> None:
        async def main() -> None:
            self.loop = asyncio.get_running_loop()
            self.queue = asyncio.Queue()
            self.up.set()
            self.taken.append(await self.queue.get())

        asyncio.run(main())

    def actor_thread(self) -> None:
        self.up.wait()
        self.put()

    def put(self) -> None:
        self.queue.put_nowait(1)

    def at_end(self) -> None:
        assert self.taken == [1]


class WithCallSoon(HandedOver):
    def put(self) -> None:
        self.loop.call_soon_threadsafe(self.queue.put_nowait, 1)


class WithCoroutine(HandedOver):
    def put(self) -> None:
        asyncio.run_coroutine_threadsafe(self.queue.put(1), self.loop).result()


def test_an_element_that_is_handed_over_without_waking_the_loop_is_a_deadlock() -> None:
    for seed in range(20):
        failure = explore(HandedOver, seed=seed, shrink=False).failure
        assert failure is not None
        assert failure.kind == "deadlock"
        assert failure.message == "no thread can go on: loop (wait for an event)"


@pytest.mark.parametrize("sound", [WithCallSoon, WithCoroutine])
def test_one_that_is_handed_over_as_asyncio_asks_arrives(sound: type[HandedOver]) -> None:
    assert explore(sound).assert_holds().schedules > 5


HANDING: dict[str, Callable[[Any, Any], object]] = {
    "run": lambda coroutine, loop: asyncio.run_coroutine_threadsafe(coroutine, loop).result(),
    "argument": lambda coroutine, loop: loop.call_soon_threadsafe(loop.create_task, coroutine),
    "partial": lambda coroutine, loop: loop.call_soon_threadsafe(functools.partial(loop.create_task, coroutine)),
    "closure": lambda coroutine, loop: loop.call_soon_threadsafe(lambda: loop.create_task(coroutine)),
    "timer": lambda coroutine, loop: loop.call_soon_threadsafe(loop.call_later, 1, loop.create_task, coroutine),
}


@pytest.mark.parametrize("strategy", ["portfolio", "dpor"])
@pytest.mark.parametrize("handing", HANDING)
def test_a_run_that_is_taken_down_leaves_no_coroutine_that_was_not_begun(handing: str, strategy: Any) -> None:
    made: list[Any] = []

    class Fails(HandedOver):
        def put(self) -> None:
            made.append(self.queue.put(1))
            HANDING[handing](made[-1], self.loop)

        def actor_raises(self) -> None:
            self.up.wait()
            raise ValueError

    for seed in range(10):
        assert explore(Fails, strategy=strategy, seed=seed).failure is not None
    assert made
    assert {inspect.getcoroutinestate(coroutine) for coroutine in made} == {inspect.CORO_CLOSED}


def test_a_field_that_a_task_and_a_thread_share_races() -> None:
    class Counted:
        def __init__(self) -> None:
            self.count = 0

        def add(self) -> None:
            self.count += 1

        def actor_loop(self) -> None:
            async def main() -> None:
                await asyncio.sleep(0)
                self.add()

            asyncio.run(main())

        def actor_thread(self) -> None:
            self.add()

        def at_end(self) -> None:
            assert self.count == 2

    for seed in range(20):
        failure = explore(Counted, seed=seed).failure
        assert failure is not None
        assert failure.preemptions <= 1


@pytest.mark.parametrize("name", ["check_await_act", "lost_by_cancelling"])
def test_a_loop_that_goes_on_with_another_task_is_not_preempted(name: str) -> None:
    """Tasks change at an `await`, where the search by bound counts nothing either."""
    failure = explore(lesson(name).broken).failure
    assert failure is not None
    assert failure.minimal
    assert failure.preemptions == 0
    without = explore(lesson(name).broken, strategy="bounded", bound=0, shrink=False).failure
    assert without is not None
    assert without.preemptions == 0


class ToThread:
    def __init__(self) -> None:
        self.count = 0
        self.lock = threading.Lock()

    def add(self) -> None:
        self.count += 1

    def actor_loop(self) -> None:
        async def main() -> None:
            await asyncio.gather(asyncio.to_thread(self.add), asyncio.to_thread(self.add))

        asyncio.run(main())

    def at_end(self) -> None:
        assert self.count == 2


class ToThreadLocked(ToThread):
    def add(self) -> None:
        with self.lock:
            super().add()


def test_calls_that_a_loop_hands_to_threads_race() -> None:
    for seed in range(20):
        assert explore(ToThread, seed=seed, shrink=False).failure is not None
    explore(ToThreadLocked, schedules=300).assert_holds()


def test_a_loop_in_each_of_two_threads_and_a_pool_that_is_given() -> None:
    class Two:
        def __init__(self) -> None:
            self.seen: list[int] = []
            self.lock = threading.Lock()

        def run(self, number: int) -> None:
            def work() -> int:
                return number

            async def main() -> None:
                with concurrent.futures.ThreadPoolExecutor(1) as pool:
                    found = await asyncio.get_running_loop().run_in_executor(pool, work)
                with self.lock:
                    self.seen.append(found)

            asyncio.run(main())

        def actor_a(self) -> None:
            self.run(1)

        def actor_b(self) -> None:
            self.run(2)

        def at_end(self) -> None:
            assert sorted(self.seen) == [1, 2]

    explore(Two, schedules=200).assert_holds()


# -- tasks of one loop ----------------------------------------------------------------------------------------


class OneSeat:
    """Check, await, act: two tasks look at the same free seat."""

    def __init__(self) -> None:
        self.taken = 0
        self.seen: list[int] = []

    def actor_loop(self) -> None:
        self.lock = asyncio.Lock()
        asyncio.run(self.main())

    async def main(self) -> None:
        await asyncio.gather(self.take(), self.take())

    async def take(self) -> None:
        if not self.taken:
            await asyncio.sleep(0)  # asks the payment, say
            self.taken += 1

    def at_end(self) -> None:
        assert self.taken == 1, f"{self.taken} have the one seat"


class OneSeatLocked(OneSeat):
    async def take(self) -> None:
        async with self.lock:
            await super().take()


def test_check_await_act_is_found_and_a_lock_of_asyncio_mends_it() -> None:
    for seed in range(20):
        failure = explore(OneSeat, seed=seed).failure
        assert failure is not None
        assert failure.message == "2 have the one seat"
    assert str(explore(OneSeatLocked).assert_holds().verdict) == "exhausted"


class Orders:
    def __init__(self) -> None:
        self.seen: list[int] = []

    async def one(self, number: int) -> None:
        await asyncio.sleep(0)
        self.seen.append(number)

    def actor_loop(self) -> None:
        async def main() -> None:
            await asyncio.gather(*map(self.one, range(3)))

        asyncio.run(main())

    def outcome(self) -> tuple[int, ...]:
        return tuple(self.seen)


def test_tasks_that_are_ready_go_on_in_each_order() -> None:
    result = explore(Orders, strategy="bounded")
    assert len(result.outcomes) == 6
    assert str(result.verdict) == "exhausted"


def test_callbacks_that_belong_to_no_task_keep_their_order() -> None:
    class Callbacks(Orders):
        def actor_loop(self) -> None:
            async def main() -> None:
                loop = asyncio.get_running_loop()
                for number in range(3):
                    loop.call_soon(self.seen.append, number)
                await asyncio.sleep(1)

            asyncio.run(main())

    assert [item.value for item in explore(Callbacks, strategy="bounded").outcomes] == [(0, 1, 2)]


def test_the_clock_of_a_loop_is_virtual() -> None:
    class Timed:
        outcomes: ClassVar[Any] = {(5.0, "late"): "acceptable"}

        def __init__(self) -> None:
            self.result: Any = None

        def actor_loop(self) -> None:
            async def main() -> None:
                began = time.monotonic()
                try:
                    async with asyncio.timeout(5):
                        await asyncio.sleep(1_000_000)
                except TimeoutError:
                    self.result = (time.monotonic() - began, "late")

            asyncio.run(main())

        def outcome(self) -> Any:
            return self.result

    began = time.monotonic()
    explore(Timed, schedules=50, early_timeouts=0).assert_holds()
    assert time.monotonic() - began < 1_000


def test_a_task_that_looks_at_the_clock_until_it_is_time_comes_to_its_end() -> None:
    class Spinning(Orders):
        def actor_loop(self) -> None:
            async def main() -> None:
                loop = asyncio.get_running_loop()
                end = loop.time() + 2
                while loop.time() < end:
                    await asyncio.sleep(0)
                self.seen.append(1)

            asyncio.run(main())

        def outcome(self) -> tuple[int, ...]:
            return tuple(self.seen)

    assert [item.value for item in explore(Spinning, schedules=10).assert_holds().outcomes] == [(1,)]


def test_a_task_that_goes_round_until_a_thread_has_stored_is_no_livelock() -> None:
    class Waiting:
        def __init__(self) -> None:
            self.ready = False

        def actor_loop(self) -> None:
            async def main() -> None:
                while not self.ready:
                    await asyncio.sleep(0)

            asyncio.run(main())

        def actor_thread(self) -> None:
            self.ready = True

    for seed in range(5):
        explore(Waiting, schedules=200, seed=seed).assert_holds()


def test_the_search_sees_what_brute_force_sees() -> None:
    for program in (OneSeat, OneSeatLocked, WithCallSoon):
        brute = outcomes(program, None, reduced=False, most=20_000)
        reduced = outcomes(program, None, reduced=True, most=20_000)
        assert brute is not None
        assert reduced is not None
        assert reduced[0] == brute[0]
        assert reduced[1] <= brute[1]


def test_a_schedule_with_a_loop_is_replayed_and_drawn_with_a_column_for_each_task() -> None:
    failure = explore(OneSeat).failure
    assert failure is not None
    for _ in range(10):
        again = replay(OneSeat, failure.token).failure
        assert again is not None
        assert again.message == failure.message
        assert again.schedule == failure.schedule
    assert "task 1" in failure.diagram().splitlines()[0]
    assert "await asyncio.sleep(0)" in failure.diagram()
    assert "asyncio.run" not in failure.diagram()


# -- ends -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("program", [HandedOver, OneSeat, ToThread])
def test_a_run_that_is_taken_down_says_nothing(program: Any, capfd: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings(record=True) as kept:
        for seed in range(5):
            assert explore(program, seed=seed).failure is not None
    assert [str(item.message) for item in kept] == []
    assert capfd.readouterr() == ("", "")


def test_what_a_task_raises_comes_out_of_the_loop() -> None:
    class Raising(Orders):
        async def one(self, number: int) -> None:
            raise OSError("no seat")

    failure = explore(Raising).failure
    assert failure is not None
    assert failure.message == "loop raised OSError: no seat"


def asked(loop: asyncio.AbstractEventLoop) -> list[Callable[[], Coroutine[Any, Any, Any]]]:
    return [
        lambda: asyncio.open_connection("localhost", 1),
        lambda: asyncio.create_subprocess_exec("true"),
        lambda: loop.getaddrinfo("localhost", 1),
    ]


@pytest.mark.parametrize("number", range(3))
def test_what_waits_for_the_world_is_refused(number: int) -> None:
    class Outside:
        def actor_loop(self) -> None:
            async def main() -> None:
                await asked(asyncio.get_running_loop())[number]()

            asyncio.run(main())

    with pytest.raises(ExploreError, match="wait for a socket, a process or a signal"):
        explore(Outside)


def test_with_greenlets_a_loop_is_refused() -> None:
    why = "goes with the engine of threads" if greenlets_run() else "before Python 3.14"
    with pytest.raises(ExploreError, match=why):
        explore(Orders, engine="greenlets")


# -- what is shown --------------------------------------------------------------------------------------------


class Seats:
    """Two tasks look, await, and act; a thread besides may take away what they look at."""

    def __init__(self) -> None:
        self.free = 1
        self.taken = 0

    def actor_loop(self) -> None:
        asyncio.run(self.main())

    async def main(self) -> None:
        await asyncio.gather(self.take(), self.take())

    async def take(self) -> None:
        if self.free > 0:
            await asyncio.sleep(0)
            self.free -= 1
            self.taken += 1

    def at_end(self) -> None:
        assert self.taken <= 1, f"{self.taken} took one seat"


class Cleared(Seats):
    """The race is one of the thread and a task."""

    async def main(self) -> None:
        await asyncio.gather(self.take(), self.wait())

    async def wait(self) -> None:
        await asyncio.sleep(0)

    def actor_clears(self) -> None:
        self.free = 0

    def at_end(self) -> None:
        assert self.free >= 0, f"{self.free} are free"


def test_what_a_task_looks_at_and_changes_stands_in_its_column() -> None:
    failure = explore(Seats).failure
    assert failure is not None
    seen = [(step.name, step.what, step.value) for step in failure.steps if not step.point]
    tasks = {name for name, _, _ in seen}
    assert len(tasks) == 2
    assert "loop" not in tasks
    for name in tasks:
        assert [what for who, what, _ in seen if who == name] == [
            "load self.free", "load self.free", "store self.free", "load self.taken", "store self.taken"
        ]  # fmt: skip


@pytest.mark.parametrize("program", [Seats, Cleared])
@pytest.mark.parametrize("seed", range(5))
def test_what_stands_in_the_column_of_a_task_is_done_in_a_turn_of_the_loops_thread(program: Any, seed: int) -> None:
    """A schedule names that thread, or the task where the loop chose it. A point is shown where others are."""
    failure = explore(program, seed=seed).failure
    assert failure is not None
    assert failure.minimal
    assert [step.turn for step in failure.steps if step.point and not step.waits] == list(failure.schedule)
    assert {step.name for step in failure.steps if step.what.endswith(" self.free")} == (
        {"task 1", "task 2"} if program is Seats else {"task 1", "clears"}
    )
    again = replay(program, failure.token).failure
    assert again is not None
    assert again.message == failure.message
