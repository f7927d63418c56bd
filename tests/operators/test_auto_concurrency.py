"""`map_parallel(concurrency="auto")`: the limiter, and the operator, before simulated services in virtual time."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import random
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sinks import PATIENCE, Sink

from reactive_runtime import Flow, live
from reactive_runtime._core.runtime import primitives
from reactive_runtime._core.runtime.arguments import PREFETCH
from reactive_runtime._operators.concurrent.adaptive import HELD
from reactive_runtime._operators.concurrent.limiter import FIRST, Limiter

MOST = 64
FIXED = (1, 2, 4, 8, 16, 32, 64)
CALLS = 4000
"""The calls of a phase: the limiter has found its limit after half of them."""


class Phase(NamedTuple):
    """A service for a time: so many calls at once run for `latency` seconds, the others wait for one of them."""

    capacity: int
    latency: float
    spread: float = 0.0
    """The latency varies by this part of it."""
    thrash: float = 0.0
    """Each call beyond the capacity makes all of them slower by this part."""


class Service:
    """A service in virtual time. A call that is sent comes back from `next_done`."""

    def __init__(self, seed: int = 0) -> None:
        self.now = 0.0
        self.phase = Phase(1, 1.0)
        self._random = random.Random(seed)
        self._running: list[tuple[float, int, Any]] = []
        self._waiting: deque[Any] = deque()
        self._number = itertools.count()

    def send(self, call: Any) -> None:
        self._waiting.append(call)
        self._serve()

    def next_done(self) -> Any:
        self.now, _, call = heapq.heappop(self._running)
        self._serve()
        return call

    def _serve(self) -> None:
        phase = self.phase
        while self._waiting and len(self._running) < phase.capacity:
            beyond = len(self._waiting) + len(self._running) - phase.capacity
            latency = phase.latency * (1 + phase.thrash * max(0, beyond))
            latency *= self._random.uniform(1 - phase.spread, 1 + phase.spread)
            heapq.heappush(self._running, (self.now + latency, next(self._number), self._waiting.popleft()))


class Fixed:
    """A fixed limit, in the place of a `Limiter`."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.running = 0

    def began(self, now: float) -> None:
        self.running += 1

    def ended(self, begun: float, now: float) -> None:
        self.running -= 1


def seconds_of(limiter: Limiter | Fixed, phases: list[Phase], seed: int = 0) -> list[float]:
    """How long the second half of the calls of each phase takes."""
    service = Service(seed)
    seconds = []
    for phase in phases:
        service.phase = phase
        half = 0.0
        for number in range(CALLS):
            while limiter.running < limiter.limit:
                limiter.began(service.now)
                service.send(service.now)
            limiter.ended(service.next_done(), service.now)
            if number == CALLS // 2:
                half = service.now
        seconds.append(service.now - half)
    return seconds


def assert_near_the_best(phases: list[Phase], seed: int = 0, fixed: tuple[int, ...] = FIXED) -> Limiter:
    """In each phase the throughput is within a tenth of that of the best fixed limit."""
    limiter = Limiter(MOST)
    found = seconds_of(limiter, phases, seed)
    best = [min(each) for each in zip(*(seconds_of(Fixed(n), phases, seed) for n in fixed), strict=True)]
    for phase, auto, least in zip(phases, found, best, strict=True):
        assert least >= 0.9 * auto, f"{phase}: {least / auto:.2f} of the best; the limit is {limiter.limit}"
    return limiter


@pytest.mark.parametrize("capacity", [1, 2, 3, 5, 8, 16, 40, 64, 200])
@pytest.mark.parametrize("latencies", [(0.002, 0.02, 0.002), (0.02, 0.002, 0.02)], ids=["up, down", "down, up"])
def test_throughput_stays_over_a_tenfold_step_of_latency(capacity: int, latencies: tuple[float, ...]) -> None:
    assert_near_the_best([Phase(capacity, latency) for latency in latencies])


@settings(max_examples=25, deadline=None)
@given(
    st.integers(1, 100),
    st.floats(0.02, 0.2),
    st.sampled_from([0.1, 0.5, 2.0, 10.0]),
    st.floats(0, 0.3),
    st.integers(0, 1000),
)
def test_throughput_stays_over_any_step(capacity: int, before: float, step: float, spread: float, seed: int) -> None:
    phases = [Phase(capacity, before, spread), Phase(capacity, before * step, spread)]
    assert_near_the_best(phases, seed, fixed=(MOST,))  # where calls don't slow each other down, no limit is better


@pytest.mark.parametrize("other", [(4, 0.02), (32, 0.002), (3, 0.0002), (64, 0.02)])
def test_limit_follows_the_capacity(other: tuple[int, float]) -> None:
    limiter = assert_near_the_best([Phase(12, 0.002), Phase(*other)])
    assert other[0] / 2 <= limiter.limit <= other[0] * 2


def test_limit_goes_down_before_a_service_that_serialises() -> None:
    limiter = assert_near_the_best([Phase(1, 0.002), Phase(1, 0.02)])
    assert limiter.limit <= 2


def test_limit_stays_low_where_more_calls_slow_each_other_down() -> None:
    """With 64 in flight this service has a seventh of its throughput."""
    limiter = assert_near_the_best([Phase(4, 0.002, 0, 0.1), Phase(4, 0.02, 0, 0.1)])
    assert 3 <= limiter.limit <= 6


def test_limit_does_not_move_while_the_source_is_slow() -> None:
    limiter = Limiter(MOST)
    now = 0.0
    for _ in range(CALLS):
        limiter.began(now)
        limiter.starves(now)
        limiter.ended(now, now + 0.002)
        now += 0.003
    assert limiter.limit == FIRST


events = st.lists(st.tuples(st.sampled_from("bbbeeew"), st.sampled_from([0.0, 1e-9, 0.001, 0.1, 1e6])), max_size=400)


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 300), events)
def test_limit_has_bounds_whatever_happens(most: int, events: list[tuple[str, float]]) -> None:
    limiter = Limiter(most)
    now, running = 0.0, deque[float]()
    for kind, seconds in events * 4:
        now += seconds
        if kind == "b":
            running.append(now)
            limiter.began(now)
        elif kind == "w":
            limiter.starves(now)
        elif running:
            limiter.ended(running.popleft(), now)
        assert 1 <= limiter.limit <= most
        assert limiter.running == len(running)


def test_limiter_survives_a_thread_that_is_late() -> None:
    """A thread has read the clock, and waits for the lock for so long that others come first."""
    limiter = Limiter(MOST)
    for now in range(CALLS):
        limiter.began(now)
        limiter.began(now if limiter.limit == FIRST else now + 100)
        limiter.ended(now, now + 0.01)
        limiter.ended(now, now + 0.01)
    assert 1 <= limiter.limit <= MOST


# -- the operator ------------------------------------------------------------------------------------------------------


class VirtualPool(Executor):
    """An executor in virtual time. Its calls are those to a service, and the test runs it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, workers: int = MOST) -> None:
        self.service = Service()
        self._max_workers = workers
        self.in_flight = 0
        self.most = 0
        monkeypatch.setattr(primitives, "monotonic", lambda: self.service.now)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.in_flight += 1
        self.most = max(self.most, self.in_flight)
        self.service.send((future, fn))
        return future

    def run_one(self) -> None:
        future, fn = self.service.next_done()
        self.in_flight -= 1
        future.set_result(fn())


@pytest.mark.parametrize("ordered", [True, False], ids=["in order", "as they are done"])
@pytest.mark.parametrize("capacity", [1, 5, 30])
def test_operator_keeps_its_throughput(capacity: int, ordered: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 1500
    pool = VirtualPool(monkeypatch)
    sink = Sink(10 * calls)
    flow = Flow.from_supplier(itertools.count)
    flow.map_parallel(lambda n: n, pool, concurrency="auto", ordered=ordered).subscribe(sink)
    for latency in (0.002, 0.02):
        pool.service.phase = Phase(capacity, latency, 0.1)
        for _ in range(calls // 2):
            pool.run_one()
        begun = pool.service.now
        for _ in range(calls // 2):
            pool.run_one()
        best = calls // 2 * latency / capacity
        assert pool.service.now - begun <= best / 0.9
    sink.subscription.cancel()
    assert len(sink.elements) >= 2 * calls - MOST
    assert sorted(sink.elements)[:calls] == list(range(calls))
    assert not ordered or sink.elements == sorted(sink.elements)


@pytest.mark.parametrize("workers", [1, 3, 20])
def test_no_more_calls_are_in_flight_than_workers(workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    pool = VirtualPool(monkeypatch, workers)
    pool.service.phase = Phase(1000, 0.002)
    sink = Sink(CALLS)
    Flow.from_supplier(itertools.count).map_parallel(lambda n: n, pool, concurrency="auto").subscribe(sink)
    for _ in range(500):
        pool.run_one()
    sink.subscription.cancel()
    assert pool.most == workers
    assert sink.elements == list(range(500))


@pytest.mark.parametrize("ordered", [True, False], ids=["in order", "as they are done"])
def test_no_more_than_so_many_results_wait(ordered: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    pool = VirtualPool(monkeypatch)
    pool.service.phase = Phase(1000, 0.002)
    called: list[int] = []
    sink = Sink(1)
    flow = Flow.from_supplier(itertools.count).do_on_next(called.append)
    flow.map_parallel(lambda n: n, pool, concurrency="auto", ordered=ordered).subscribe(sink)
    while pool.in_flight:
        pool.run_one()
    assert len(sink.elements) == 1
    assert FIRST * HELD <= len(called) <= 1 + PREFETCH
    sink.subscription.cancel()


def test_one_slow_call_does_not_stop_the_others() -> None:
    """In order, the results behind it wait beside the calls in flight, and do not count for the limit."""
    others = threading.Event()

    def call(n: int) -> int:
        if n == HELD:
            others.set()
        assert n or others.wait(PATIENCE), "the call waits for the first one"
        return n

    with ThreadPoolExecutor(2) as pool:
        flow = Flow.range(100).map_parallel(call, pool, concurrency="auto")
        assert flow.to_list().block(timeout=2 * PATIENCE) == list(range(100))


def test_coroutines_find_their_limit_too() -> None:
    inside, most = 0, 0

    async def call(n: int) -> int:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        await asyncio.sleep(0)
        inside -= 1
        return n

    flow = Flow.range(5000).map_parallel(call, concurrency="auto")
    assert flow.to_list().block(timeout=PATIENCE) == list(range(5000))
    assert 1 < most <= PREFETCH


def test_timeout_and_ps_name_the_limit() -> None:
    go_on = threading.Event()

    def call(n: int) -> int:
        assert go_on.wait(PATIENCE)
        return n

    with ThreadPoolExecutor(3) as pool:
        flow = Flow.range(10).map_parallel(call, pool, concurrency="auto")
        with pytest.raises(TimeoutError, match=r"3 calls on .*, of which 3 may be in flight"):
            flow.to_list().block(timeout=0.05)
        running = flow.to_list().to_future()
        assert "map_parallel(call, auto), 3 at once" in str(live.snapshot())
        go_on.set()
        assert running.result(PATIENCE) == list(range(10))
