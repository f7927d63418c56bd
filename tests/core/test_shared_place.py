"""The upstreams of a flow share one place in the queue of a pool."""

from __future__ import annotations

from concurrent.futures import BrokenExecutor, CancelledError, Future, ThreadPoolExecutor
from functools import partial
from threading import Barrier, Event
from typing import Any

import pytest

from reactive_runtime._core.drains.shared_place import SharedPlace


def busy(pool: ThreadPoolExecutor, until: Event) -> None:
    """Keep a thread of the pool."""
    begun = Event()

    def wait() -> None:
        begun.set()
        until.wait()

    pool.submit(wait)
    assert begun.wait(60)


def test_one_task_stands_in_the_queue() -> None:
    opened = Event()
    with ThreadPoolExecutor(1) as pool:
        place = SharedPlace(pool)
        busy(pool, opened)
        ran: list[int] = []
        futures = [place.submit(partial(ran.append, i)) for i in range(10)]
        waiting = pool._work_queue.qsize()
        between = pool.submit(ran.copy)
        opened.set()
        for future in futures:
            future.result(60)
        assert waiting == 1
        assert between.result(60) == [0], "another task waits for one of the tasks"
    assert ran == list(range(10))


def test_idle_threads_take_as_many_tasks_as_there_are() -> None:
    met = Barrier(4)
    with ThreadPoolExecutor(4) as pool:
        place = SharedPlace(pool)
        futures = [place.submit(lambda: met.wait(60)) for _ in range(4)]
        assert sorted(future.result(60) for future in futures) == [0, 1, 2, 3]


def test_a_task_that_raises_ends_its_own_future() -> None:
    def fails() -> None:
        raise ValueError("of the first")

    with ThreadPoolExecutor(1) as pool:
        place = SharedPlace(pool)
        first, second = place.submit(fails), place.submit(lambda: 2)
        assert second.result(60) == 2
        with pytest.raises(ValueError, match="of the first"):
            first.result(60)


def test_a_pool_that_is_shut_down_runs_all_that_wait() -> None:
    opened = Event()
    pool = ThreadPoolExecutor(1)
    place = SharedPlace(pool)
    pool.submit(opened.wait)
    futures = [place.submit(partial(int, i)) for i in range(10)]
    pool.shutdown(wait=False)
    opened.set()
    assert [future.result(60) for future in futures] == list(range(10))
    with pytest.raises(RuntimeError, match="shutdown"):
        place.submit(lambda: None)


def test_a_pool_that_drops_its_queue_cancels_all_that_wait() -> None:
    opened = Event()
    pool = ThreadPoolExecutor(1)
    place = SharedPlace(pool)
    busy(pool, opened)
    futures = [place.submit(lambda: None) for _ in range(10)]
    pool.shutdown(wait=False, cancel_futures=True)
    opened.set()
    for future in futures:
        with pytest.raises(CancelledError):
            future.result(60)


def test_a_pool_that_breaks_fails_all_that_wait() -> None:
    opened = Event()

    def breaks() -> None:
        opened.wait()
        raise ValueError("no thread can begin")

    pool = ThreadPoolExecutor(1, initializer=breaks)
    place = SharedPlace(pool)
    futures = [place.submit(lambda: None) for _ in range(10)]
    opened.set()
    for future in futures:
        assert isinstance(future.exception(60), BrokenExecutor)


class Refusing(ThreadPoolExecutor):
    """A pool that lets another task come while it refuses the first."""

    place: SharedPlace
    other: Future[Any]

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.other = self.place.submit(lambda: None)
        raise OSError("no more tasks")


def test_a_task_that_came_during_a_refusal_fails_with_it() -> None:
    with Refusing(1) as pool:
        place = pool.place = SharedPlace(pool)
        with pytest.raises(OSError, match="no more tasks"):
            place.submit(lambda: None)
        assert str(pool.other.exception(60)) == "no more tasks"
