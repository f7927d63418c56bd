"""A flow gives a thread of its pool back after 10 ms of work, if another task waits for it, and keeps it otherwise.

Time is a number here, which the slow function moves on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

from reactive_runtime import Flow
from reactive_runtime._core.drains import pace
from reactive_runtime._core.drains.pace import FIRST, Pace
from reactive_runtime._core.runtime import primitives

STEP = 0.002
MANY = 2_000


class Slow:
    """A function of 2 ms, on a clock of its own, and how often it was called."""

    def __init__(self) -> None:
        self.now = 100.0
        self.calls = 0

    def __call__(self, element: Any) -> Any:
        self.calls += 1
        self.now += STEP
        return element

    def source(self) -> Iterator[int]:
        return map(self, range(MANY))


class CountedPool(ThreadPoolExecutor):
    """A pool of one thread, which counts what is submitted."""

    def __init__(self) -> None:
        super().__init__(1)
        self.tasks = 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.tasks += 1
        return super().submit(fn, *args, **kwargs)


SHAPES: dict[str, Callable[[Slow, Executor], Flow[Any]]] = {
    "a boundary": lambda slow, pool: Flow.range(MANY).publish_on(pool).do_on_next(slow),
    "a boundary with a buffer": lambda slow, pool: (
        Flow.range(MANY).merge_with(Flow.empty()).publish_on(pool).do_on_next(slow)
    ),
    "a slow source": lambda slow, pool: Flow.from_supplier(slow.source).subscribe_on(pool),
    "a filter that drops": lambda slow, pool: (
        Flow.from_supplier(slow.source).filter(lambda i: i % 100 == 99).subscribe_on(pool)
    ),
    "a filter behind a buffer": lambda slow, pool: (
        Flow.range(MANY).merge_with(Flow.empty()).publish_on(pool).filter(lambda i: slow(i) % 100 == 99)
    ),
    "concat_map": lambda slow, pool: (
        Flow.range(MANY // 100).concat_map(lambda _: Flow.range(100).map(slow)).subscribe_on(pool)
    ),
    "flat_map": lambda slow, pool: (
        Flow.range(MANY // 100).flat_map(lambda _: Flow.range(100).map(slow)).subscribe_on(pool)
    ),
    "timeout": lambda slow, pool: Flow.from_supplier(slow.source).timeout(60).subscribe_on(pool),
}

AT_ONCE = ["a boundary", "a slow source", "a filter that drops", "concat_map"]
"""The whole flow works in its first task."""


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Slow:
    slow = Slow()
    # The pace's clock only: that of the timers is shared with other tests.
    door = SimpleNamespace(monotonic=lambda: slow.now, SimpleQueue=primitives.SimpleQueue)
    monkeypatch.setattr(pace, "primitives", door)
    return slow


@pytest.mark.parametrize("shape", SHAPES)
def test_a_task_waits_ten_milliseconds_for_a_slow_flow(shape: str, slow: Slow) -> None:
    opened, over = Event(), Event()
    before: list[int] = []
    with CountedPool() as pool:
        pool.submit(opened.wait)
        SHAPES[shape](slow, pool).subscribe(lambda _: None, on_complete=over.set)
        other = pool.submit(lambda: before.append(slow.calls))
        opened.set()
        other.result(60)
        assert over.wait(60)
    assert before[0] <= 0.010 / STEP + 2, f"the other task waited for {before[0]} calls"
    if shape in AT_ONCE:
        assert before[0] >= 0.010 / STEP, f"the flow gave way after {before[0]} calls"
    assert slow.calls == MANY


@pytest.mark.parametrize("shape", ["a boundary", "a slow source", "a filter that drops", "concat_map"])  # never waits
def test_a_slow_flow_keeps_its_thread_while_no_task_waits(shape: str, slow: Slow) -> None:
    over = Event()
    with CountedPool() as pool:
        SHAPES[shape](slow, pool).subscribe(lambda _: None, on_complete=over.set)
        assert over.wait(60)
        tasks = pool.tasks
    assert tasks <= MANY / 1024 + 3, f"{MANY} calls of 2 ms took {tasks} tasks"


def test_a_flow_works_on_where_its_pool_is_shut_down(slow: Slow) -> None:
    elements: list[int] = []
    over = Event()
    pool = CountedPool()

    def shut_down(element: int) -> int:
        if element == 0:
            pool.submit(slow, 0)
            pool.shutdown(wait=False)
        return element

    flow = Flow.range(500).map(shut_down).map(slow)
    flow.subscribe_on(pool).subscribe(elements.append, on_complete=over.set, on_error=lambda _: over.set())
    assert over.wait(60)
    assert elements == list(range(500))


def test_the_run_grows_while_elements_are_fast(slow: Slow) -> None:
    flow = Pace(64)
    runs = [flow.next_run()]
    for _ in range(8):
        flow.end_run(None)
        runs.append(flow.next_run())
    assert runs[0] == FIRST
    assert runs[-1] == 64


class Standing(CountedPool):
    """A task that is always in the queue, once, and notes how many calls it has waited for."""

    def __init__(self, slow: Slow) -> None:
        super().__init__()
        self.slow = slow
        self.before = 0
        self.waits: list[int] = []
        self.is_over = Event()

    def stand(self) -> None:
        self.before = self.slow.calls
        self.submit(self.come)

    def come(self) -> None:
        self.waits.append(self.slow.calls - self.before)
        if not self.is_over.is_set():
            self.stand()


@pytest.mark.parametrize("upstreams", [2, 16, 64])
def test_a_task_waits_for_one_upstream_of_a_flow_and_not_for_all(upstreams: int, slow: Slow) -> None:
    flow = Flow.range(upstreams).flat_map(lambda _: Flow.range(20).map(slow), concurrency=upstreams)
    with Standing(slow) as pool:
        opened = Event()
        pool.submit(opened.wait)
        pool.stand()
        counts: list[int] = []
        flow.subscribe_on(pool).count().subscribe(counts.append, on_complete=pool.is_over.set)
        opened.set()
        assert pool.is_over.wait(60)
    assert counts == [20 * upstreams]
    # The operator has a task in the queue, and one upstream has: each gives way after 10 ms, and finishes a call.
    assert max(pool.waits) <= 2 * (0.010 / STEP + 2), pool.waits
