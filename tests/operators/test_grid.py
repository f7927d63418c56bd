"""Every operator, behind every kind of source, at every demand, keeps the rules and gives what it is for."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any, ClassVar

import pytest
from searching import one_pair_each_by_day
from sinks import PATIENCE, Numbers, Sink

from operators.catalogue import CASES, FAILED, SINKS, SOURCES, Case, Place, failing, numbers
from reactive_runtime import MAX_DEMAND, Flow
from reactive_runtime.executors import VirtualTimeExecutor
from reactive_runtime.hooks import Dropped
from reactive_runtime.testing import Recorder, check

DEMANDS = [1, 2, 7, MAX_DEMAND]

ORIGINS: dict[str, Callable[[Callable[[], Any], Executor], Flow[Any]]] = {
    "fused": lambda supplier, pool: Flow.from_supplier(supplier),
    "not fused": lambda supplier, pool: Flow.from_publisher(Flow.from_supplier(supplier)),
    "on another thread": lambda supplier, pool: Flow.from_supplier(supplier).subscribe_on(pool),
}


WORKERS = 4


@pytest.fixture(scope="module")
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(WORKERS, "grid") as executor:
        yield executor


@pytest.fixture
def place(pool: ThreadPoolExecutor) -> Place:
    return Place(pool, VirtualTimeExecutor())


class Demanding(Sink):
    """Asks for `demand` elements, again and again."""

    def __init__(self, demand: int, most: int | None = None) -> None:
        super().__init__(demand, Demanding.again)
        self.owed = demand
        self.most = most
        self.got = threading.Event()

    def again(self, element: Any) -> None:
        self.owed -= 1
        if self.most is not None and len(self.elements) >= self.most:
            self.subscription.cancel()
            self.got.set()
        elif not self.owed:
            self.owed = self.demand
            self.subscription.request(self.demand)


def run(flow: Any, sink: Demanding, clock: VirtualTimeExecutor, over: threading.Event) -> list[Any]:
    """Subscribe, let time pass until it is over, and judge what was recorded."""
    recorder = Recorder()
    recorder.wrap(flow).subscribe(sink)
    for _ in range(int(PATIENCE * 200)):
        if over.wait(0.0 if over.is_set() else 0.001):
            break
        clock.advance(0.25)
    else:
        raise AssertionError(f"no end after {sink.signals[-3:]}")
    return check(recorder.records())


@pytest.mark.parametrize("demand", DEMANDS, ids=["1", "2", "7", "unbounded"])
@pytest.mark.parametrize("origin", ORIGINS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_an_operator_gives_what_it_is_for_and_keeps_the_rules(
    case: Case, origin: str, demand: int, place: Place, dropped: list[Dropped]
) -> None:
    flow = case.apply(ORIGINS[origin](numbers, place.pool), place)
    sink = Demanding(demand)
    assert run(flow, sink, place.clock, sink.ended) == []
    assert sink.end == ("on_complete",)
    if not case.ordered:
        assert sorted(sink.elements) == sorted(case.expected)
    elif origin == "fused" or not case.lossy:
        assert sink.elements == case.expected
    assert [drop for drop in dropped if drop.error is not None] == []


@pytest.mark.parametrize("demand", [1, MAX_DEMAND], ids=["1", "unbounded"])
@pytest.mark.parametrize("origin", ORIGINS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_an_error_of_the_source_comes_out_once(
    case: Case, origin: str, demand: int, place: Place, dropped: list[Dropped]
) -> None:
    flow = case.apply(ORIGINS[origin](failing, place.pool), place)
    sink = Demanding(demand)
    assert run(flow, sink, place.clock, sink.ended) == []
    if case.survives is None and not (case.lossy and sink.end == ("on_complete",)):
        assert sink.error is FAILED
    elif not case.lossy:
        assert sink.elements == case.survives
    assert [drop for drop in dropped if drop.error is not None and drop.error is not FAILED] == []


@pytest.mark.parametrize("origin", ORIGINS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_cancel_from_inside_on_next_closes_the_source_once_and_nothing_follows(
    case: Case, origin: str, place: Place, dropped: list[Dropped]
) -> None:
    source = Numbers(10)
    flow = case.apply(ORIGINS[origin](lambda: source, place.pool), place)
    sink = Demanding(MAX_DEMAND, most=1)
    assert run(flow, sink, place.clock, sink.got if case.expected else sink.ended) == []
    assert len(sink.elements) <= 1
    for _ in range(int(PATIENCE * 1000)):
        if source.closed or source.pulled == 0:
            break
        place.clock.advance(0.25)
        threading.Event().wait(0.001)
    assert not source.closed_while_running
    assert source.closed == (1 if source.pulled else 0)
    assert [drop for drop in dropped if drop.error is not None] == []


class Counted(int):
    """A number that is known to the test, however it was made."""

    lock = threading.Lock()
    made: ClassVar[list[Counted]] = []  # lock

    def __new__(cls, n: int) -> Counted:
        made = super().__new__(cls, n)
        with cls.lock:
            cls.made.append(made)
        return made

    def __add__(self, n: int) -> Counted:
        return Counted(int(self) + n)


def held() -> int:
    """How many of them anything but the list refers to."""
    alone = [object()]
    return sum(sys.getrefcount(Counted.made[n]) > sys.getrefcount(alone[0]) for n in range(len(Counted.made)))


class Forgetful(Sink):
    """Keeps nothing but the most that were held at once, beside those that were dropped, which the test keeps."""

    def __init__(self, dropped: list[Dropped], demand: int) -> None:
        super().__init__(demand)
        self.dropped = dropped
        self.seen = self.peak = 0
        self.had_all = threading.Event()

    def on_next(self, element: Any, /) -> None:
        self.seen += 1
        if self.seen < 20 or (self.demand == MAX_DEMAND and self.seen % 100 == 0):  # what is kept adds up
            self.look()
        if self.seen % self.demand == 0:
            self.had_all.set()

    def look(self) -> None:
        self.peak = max(self.peak, held() - len(self.dropped))


def each_runs(pool: Executor) -> None:
    """Let each thread of the pool do something.

    Without a GIL, what a thread has made, and another was the last to use, is there until the first runs again.
    """
    barrier = threading.Barrier(WORKERS)
    for done in [pool.submit(barrier.wait, PATIENCE) for _ in range(WORKERS)]:
        done.result()


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


MANY = 2500
KEPT = {"to_list", "collect", "cache", "expand", "buffer_time", "buffer_time (overlapping)", "buffer_when"}
KEPT |= {"sort", "window_time", "window_time (overlapping)", "window_when"}
"""What is there to keep them."""


def most_held(case: Case, origin: str, place: Place, dropped: list[Dropped]) -> int:
    """How many elements there were at the most that anything referred to."""
    Counted.made.clear()
    # A thread may run ahead of another one by as much as was asked for; a buffer may not wait for the next request.
    at_once = origin == "fused" or case.name in ("on_overflow_buffer", "conflate")
    sink = Forgetful(dropped, MAX_DEMAND if at_once else 256)
    case.apply(ORIGINS[origin](lambda: map(Counted, range(MANY)), place.pool), place).subscribe(sink)
    for _ in range(int(PATIENCE * 200)):
        if sink.ended.wait(0.001):
            break
        place.clock.advance(5)
        if sink.had_all.is_set():
            sink.had_all.clear()
            each_runs(place.pool)
            sink.look()
            sink.subscription.request(sink.demand)
    Counted.made.clear()
    assert sink.end == ("on_complete",)
    return sink.peak


@pytest.mark.parametrize(
    ("case", "origin"),
    one_pair_each_by_day([item for item in CASES if item.name not in KEPT], list(ORIGINS)),
    ids=lambda item: getattr(item, "name", item),
)
def test_an_operator_releases_what_it_has_given_without_the_collectors_help(
    case: Case, origin: str, place: Place, dropped: list[Dropped], no_collector: None
) -> None:
    """Elements may be large, and few: the collector counts objects, and would come late."""
    assert most_held(case, origin, place, dropped) <= MANY // 2, "prefetched, at the most"


@pytest.mark.parametrize("origin", ORIGINS)
@pytest.mark.parametrize("case", [item for item in CASES if item.name in KEPT - {"expand"}], ids=lambda case: case.name)
def test_what_keeps_its_elements_is_seen_to(
    case: Case, origin: str, place: Place, dropped: list[Dropped], no_collector: None
) -> None:
    assert most_held(case, origin, place, dropped) > MANY // 2


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("demand", DEMANDS, ids=["1", "2", "7", "unbounded"])
def test_a_source_gives_what_it_is_for_and_keeps_the_rules(name: str, demand: int, place: Place) -> None:
    source = SOURCES[name]
    sink = Demanding(demand)
    assert run(source.make(place), sink, place.clock, sink.ended) == []
    assert sink.end == ("on_complete",)
    assert sink.elements == source.expected


@pytest.mark.parametrize("name", SINKS)
def test_a_sink_runs_a_flow_to_its_end(name: str, pool: ThreadPoolExecutor) -> None:
    ended = threading.Event()
    SINKS[name].run(Flow.range(10).subscribe_on(pool).finalize(ended.set))
    assert name == "explain" or ended.wait(PATIENCE)
