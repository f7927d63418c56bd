"""Between the tasks and the driver, without Spark: who may begin a call and when, what a task hands on, and when."""

from __future__ import annotations

import heapq
import pickle
import threading
from collections.abc import Callable
from contextlib import nullcontext
from contextvars import copy_context
from typing import Any

import pyarrow as pa
import pytest
from sinks import PATIENCE

from reactive_runtime import Flow
from reactive_runtime.errors import SparkError
from reactive_runtime.picklable import Scope, Threads
from reactive_runtime.spark._tasks.coordinator import Permits, _Server
from reactive_runtime.spark._tasks.job_limits import _arrived
from reactive_runtime.spark._tasks.link import Address, Link
from reactive_runtime.spark._tasks.task_output import TaskOutput


class Loop:
    """Time that passes when it is moved."""

    def __init__(self) -> None:
        self.now = 100.0
        self.timers: list[tuple[float, int, Callable[[], object]]] = []

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, fn: Callable[[], object]) -> Any:
        timer = [when, len(self.timers), fn]
        heapq.heappush(self.timers, timer)  # type: ignore[misc]

        class Handle:
            def cancel(self) -> None:
                timer[2] = lambda: None

        return Handle()

    def advance(self, seconds: float, late: float = 0.0) -> None:
        """Timers are called `late` after their time."""
        end = self.now + seconds
        while self.timers and self.timers[0][0] + late <= end:
            when, _, fn = heapq.heappop(self.timers)
            self.now = max(self.now, when + late)
            fn()
        self.now = end


class Task:
    """What the driver has answered, and when."""

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self.granted: list[tuple[int, float]] = []

    def say(self, **words: Any) -> None:
        self.granted.append((words["answered"], round(self.loop.now - 100, 6)))


def permits(rate: float | None, concurrency: int | None) -> tuple[Permits, Loop, list[Task]]:
    loop = Loop()
    made: Any = Permits(rate, 1.0, concurrency, loop=lambda: loop)  # type: ignore[arg-type,return-value]
    return made, loop, [Task(loop), Task(loop)]


def test_calls_of_two_tasks_begin_evenly_and_in_turn() -> None:
    made, loop, (a, b) = permits(10, None)
    for n in range(3):
        made.heard(a, {"ask": n})
        made.heard(b, {"ask": n})
    loop.advance(2)
    assert a.granted == [(0, 0.0), (1, 0.2), (2, 0.4)]
    assert b.granted == [(0, 0.1), (1, 0.3), (2, 0.5)]


def test_late_timers_are_made_up_for_and_idle_time_is_not() -> None:
    made, loop, (a, _) = permits(100, None)
    for n in range(1000):
        made.heard(a, {"ask": n})
    loop.advance(5, late=0.004)
    assert len(a.granted) in (500, 501)
    made, loop, (a, _) = permits(10, None)
    loop.advance(60)
    for n in range(3):
        made.heard(a, {"ask": n})
    loop.advance(1)
    assert [when for _, when in a.granted] == [60.0, 60.1, 60.2]


def test_permits_go_to_those_that_wait_and_come_back_with_a_lost_task() -> None:
    made, _, (a, b) = permits(None, 2)
    for n in range(3):
        made.heard(a, {"ask": n})
    made.heard(b, {"ask": 7})
    assert [n for n, _ in a.granted] == [0, 1]
    made.heard(a, {"done": 2})  # it waits no more
    made.heard(a, {"done": 0})
    assert [n for n, _ in b.granted] == [7]
    made.heard(b, {"ask": 8})
    made.lost(a)
    assert [n for n, _ in b.granted] == [7, 8]
    made.heard(b, {"done": 99})  # of no call: nothing is given back
    made.heard(b, {"ask": 9})
    assert [n for n, _ in b.granted] == [7, 8]


def test_a_link_needs_the_secret_and_its_end_frees_what_waits() -> None:
    server = _Server("127.0.0.1", 0)
    address = server.add("127.0.0.1", Permits(None, 1.0, 1))
    with pytest.raises(SparkError, match=r"JobLimits: the driver can't be reached at 127\.0\.0\.1:"):
        Link("JobLimits", address._replace(secret=b"another"))
    with pytest.raises(SparkError, match="it does not know this task"):
        Link("JobLimits", address._replace(key="another"))
    assert "another" not in repr(address._replace(secret=b"another"))
    first, second = Link("JobLimits", address), Link("JobLimits", address)
    first.ask()[1].result(PATIENCE)
    waiting = second.ask()[1]
    first.close("it is over")
    waiting.result(PATIENCE)
    third = second.ask()[1]
    second.close("the task is over")
    with pytest.raises(SparkError, match="the task is over"):
        third.result(PATIENCE)
    with pytest.raises(SparkError, match="the task is over"):
        second.ask()


def test_a_scope_that_ends_wakes_calls_that_wait_for_their_turn() -> None:
    """Nothing else would: the one permit is held by another task. Its threads have ended then, that of the link too."""
    address = _Server("127.0.0.1", 0).add("127.0.0.1", Permits(None, 1.0, 1))
    holder = Link("JobLimits", address)
    holder.ask()[1].result(PATIENCE)
    limits = pickle.loads(pickle.dumps(_arrived(address)))
    pool = Threads(2)
    before = set(threading.enumerate())
    with Scope():
        waiting = [pool.submit(copy_context().run, limits.limited(str), n) for n in range(2)]
    assert set(threading.enumerate()) - before == set()  # others, of earlier tests, may have ended meanwhile
    for future in waiting:
        assert future.cancelled() or isinstance(future.exception(), SparkError | RuntimeError)
    holder.close("it is over")


# -- what a task hands on ---------------------------------------------------------------------------------------------


class Asked:
    """A subscription that counts."""

    def __init__(self) -> None:
        self.requested = 0
        self.cancelled = False

    def request(self, n: int, /) -> None:
        self.requested += n

    def cancel(self) -> None:
        self.cancelled = True


def test_rows_are_requested_as_they_are_taken() -> None:
    output, asked = TaskOutput(4, 0.0), Asked()
    output.on_subscribe(asked)
    assert asked.requested == 1
    output.on_next("a")
    assert asked.requested == 4
    assert output.take() == ["a"]
    assert asked.requested == 5
    for element in "bcde":
        output.on_next(element)
    assert output.take() == list("bcde")
    assert asked.requested == 9
    output.on_next("f")
    output.on_error(ValueError("not today"))
    assert output.take() == ["f"]
    with pytest.raises(ValueError, match="not today"):
        output.take()


def test_arrow_batches_are_requested_one_by_one_until_there_are_rows_for_a_batch() -> None:
    output, asked = TaskOutput(10, 0.0), Asked()
    batch = pa.RecordBatch.from_pydict({"n": [1, 2, 3, 4, 5, 6]})
    output.on_subscribe(asked)
    output.on_next(batch)
    assert asked.requested == 2
    output.on_next(batch)
    assert asked.requested == 2
    assert len(output.take() or ()) == 2
    assert asked.requested == 3
    output.on_next(batch)
    assert asked.requested == 4
    assert len(output.take() or ()) == 1
    assert asked.requested == 4
    output.on_complete()
    assert output.take() is None


def test_a_full_batch_does_not_wait_and_a_cancel_drops_what_was_not_taken(dropped: list[Any]) -> None:
    output, asked = TaskOutput(2, 3600.0), Asked()
    output.on_subscribe(asked)
    output.on_next(1)
    output.on_next(2)
    assert output.take() == [1, 2]
    output.on_next(3)
    output.cancel()
    output.on_next(4)
    assert asked.cancelled
    assert [drop.element for drop in dropped] == [3, 4]


@pytest.mark.parametrize("delay", [3600.0, 1e300])
def test_a_row_that_is_not_due_lets_its_task_look(delay: float, dropped: list[Any]) -> None:
    """A task finds that Spark has ended it when it sends a batch, and so takes none for no longer than a second."""
    output, asked = TaskOutput(4, delay), Asked()
    output.on_subscribe(asked)
    output.on_next(1)
    assert output.take() == []
    output.on_next(2)
    assert output.take() == []
    assert asked.requested == 4
    output.on_next(3)
    output.on_next(4)
    assert output.take() == [1, 2, 3, 4]
    output.on_next(5)
    assert output.take() == []
    output.on_next(6)
    output.cancel()
    assert [drop.element for drop in dropped] == [5, 6]


@pytest.mark.parametrize("ends", [True, False])
def test_the_end_does_not_wait_for_a_row_to_be_due(ends: bool) -> None:
    output = TaskOutput(4, 3600.0)
    output.on_subscribe(Asked())
    output.on_next(1)
    assert output.take() == []
    output.on_complete() if ends else output.on_error(ValueError("not today"))
    assert output.take() == [1]
    with nullcontext() if ends else pytest.raises(ValueError, match="not today"):
        assert output.take() is None


def test_what_comes_behind_the_error_of_a_task_is_dropped_and_what_was_before_it_is_taken(dropped: list[Any]) -> None:
    output, asked = TaskOutput(10, 0.0), Asked()
    output.on_subscribe(asked)
    output.on_next(1)
    output.fail(ValueError("not today"))
    output.on_next(2)
    assert output.take() == [1]
    assert [drop.element for drop in dropped] == [2]
    for _ in range(2):
        with pytest.raises(ValueError, match="not today"):
            output.take()


@pytest.mark.parametrize("most", [1, 2, 3, 100])
def test_no_more_is_requested_than_may_wait_however_takes_and_rows_alternate(most: int) -> None:
    for taken_at in range(1, 6):
        output, asked = TaskOutput(most, 0.0), Asked()
        output.on_subscribe(asked)
        given, taken = 0, []
        while given < 20:
            for _ in range(min(taken_at, asked.requested - given)):
                output.on_next(given)
                given += 1
            taken += output.take() or []
            assert asked.requested - len(taken) == most
        assert taken == list(range(given))


def test_rows_of_a_flow_on_threads_come_all_and_in_order() -> None:
    output = TaskOutput(100, 0.001)
    with Threads(2) as pool:
        output.begin(Flow.range(5000).map_parallel(lambda n: n, pool).subscribe_on(pool))
        taken: list[int] = []
        while (some := output.take()) is not None:
            assert len(some) <= 100
            taken += some
    assert taken == list(range(5000))


def test_an_address_is_a_tuple_that_travels() -> None:
    address = Address("h", 1, b"s", "k")
    assert pickle.loads(pickle.dumps(address)) == address
