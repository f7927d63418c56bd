"""`bottleneck` names the stage that was made slow, wherever it stands, and accuses no stage of a balanced flow."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest
from sinks import PATIENCE, Sink, until

from reactive_runtime import Flow, Subscriber, Subscription
from reactive_runtime._core.runtime import primitives
from reactive_runtime._core.runtime.primitives import has_gil
from reactive_runtime.executors import VirtualTimeExecutor
from reactive_runtime.telemetry import ObservedFlow, _looker, observe
from reactive_runtime.telemetry._looking import stacks
from reactive_runtime.telemetry._observations import observations

pytestmark = pytest.mark.skipif(not has_gil(), reason="without a GIL the stacks of other threads can't be read")

MANY = 10**9
LOOKS = 40


GLANCES: list[ThreadPoolExecutor] = []
"""The thread that looks, in place of the one of the package: a slow stage takes a look, so no time is measured."""


@pytest.fixture(autouse=True)
def looked_at_by_slow_stages(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(_looker, "awake", lambda: None)
    monkeypatch.setattr(_looker, "_live", list)
    with ThreadPoolExecutor(1, "glances") as pool:
        GLANCES.append(pool)
        yield
        GLANCES.clear()


def glance() -> None:
    frames = stacks()
    for observation in observations():
        for run in observation.live():
            _looker.look_at(run, frames, 0.01)


def look() -> None:
    for pool in GLANCES:
        pool.submit(glance).result(PATIENCE)


def slow(element: Any) -> Any:
    look()
    return element


class Together:
    """A function of which two calls are in flight at each look."""

    def __init__(self) -> None:
        self.both = threading.Barrier(2)

    def __call__(self, element: int) -> int:
        with suppress(threading.BrokenBarrierError):  # the flow has ended
            if not self.both.wait(PATIENCE):
                look()
            self.both.wait(PATIENCE)
        return element


def slower(element: Any) -> Any:
    return slow(element)


def fast(element: Any) -> Any:
    return element


async def slow_coroutine(element: int) -> int:
    await asyncio.to_thread(look)
    return element


def slow_numbers() -> Iterator[int]:
    for number in range(MANY):
        yield slow(number)


class OfAnother:
    """A publisher of another library, whose thread takes its time."""

    def __init__(self) -> None:
        self.over = threading.Event()

    def subscribe(self, subscriber: Subscriber[int], /) -> None:
        demand = threading.Semaphore(0)
        subscriber.on_subscribe(_Slowly(self, demand))
        threading.Thread(target=self.push, args=(subscriber, demand), daemon=True).start()

    def push(self, subscriber: Subscriber[int], demand: threading.Semaphore) -> None:
        while not self.over.is_set():
            if demand.acquire(timeout=0.01):
                slow(0)
                subscriber.on_next(0)


class _Slowly(Subscription):
    def __init__(self, publisher: OfAnother, demand: threading.Semaphore) -> None:
        self.publisher = publisher
        self.demand = demand

    def request(self, n: int, /) -> None:
        self.demand.release(min(n, 1_000))

    def cancel(self) -> None:
        self.publisher.over.set()


class Pools:
    def __init__(self, io: ThreadPoolExecutor, cpu: ThreadPoolExecutor, more: ThreadPoolExecutor) -> None:
        self.io, self.cpu, self.more = io, cpu, more
        self.clock = VirtualTimeExecutor()
        self.together = Together()


@pytest.fixture
def pools() -> Iterator[Pools]:
    with ThreadPoolExecutor(2, "io") as io, ThreadPoolExecutor(2, "cpu") as cpu, ThreadPoolExecutor(4, "more") as more:
        pools = Pools(io, cpu, more)
        yield pools
        pools.together.both.abort()


def numbers() -> Flow[int]:
    return Flow.range(MANY)


def chained(flow: Flow[int], number: int) -> Flow[int]:
    for _ in range(number):
        flow = flow.map(fast)
    return flow


PLANTED: dict[str, tuple[str, Callable[[Pools], Flow[Any]]]] = {
    "source": ("from_iterable", lambda on: Flow.from_iterable(slow_numbers()).map(fast).subscribe_on(on.io)),
    "source without steps": ("from_iterable", lambda on: Flow.from_iterable(slow_numbers()).subscribe_on(on.io)),
    "source without steps or a pool": ("from_iterable", lambda on: Flow.from_iterable(slow_numbers())),
    "source before a boundary": (
        "from_iterable",
        lambda on: Flow.from_iterable(slow_numbers()).subscribe_on(on.io).publish_on(on.cpu).map(fast),
    ),
    "publisher of another library": ("from_publisher", lambda on: Flow.from_publisher(OfAnother()).map(fast)),
    "interval": ("interval", lambda on: Flow.interval(1, clock=on.clock).map(fast)),
    "map": ("map(slow)", lambda on: numbers().map(fast).map(slow).map(fast).subscribe_on(on.io)),
    "filter": ("filter(slow)", lambda on: numbers().map(lambda n: n + 1).filter(slow).map(fast).subscribe_on(on.io)),
    "scan": ("scan", lambda on: numbers().map(fast).scan(lambda one, other: slow(other), 0).subscribe_on(on.io)),
    "do_on_next": ("do_on_next(slow)", lambda on: numbers().map(fast).do_on_next(slow).map(fast).subscribe_on(on.io)),
    "one map of forty": ("map(slow)", lambda on: chained(chained(numbers(), 20).map(slow), 20).subscribe_on(on.io)),
    "map before a boundary": (
        "map(slow)",
        lambda on: numbers().map(slow).subscribe_on(on.io).publish_on(on.cpu).map(fast),
    ),
    "map behind a boundary": (
        "map(slow)",
        lambda on: numbers().map(fast).subscribe_on(on.io).publish_on(on.cpu).map(slow),
    ),
    "map between two boundaries": (
        "map(slow)",
        lambda on: numbers().map(fast).subscribe_on(on.io).publish_on(on.cpu).map(slow).publish_on(on.more).map(fast),
    ),
    "map_parallel": (
        "map_parallel",
        lambda on: numbers().subscribe_on(on.io).map_parallel(on.together, on.cpu, concurrency=2),
    ),
    "map_by_key": (
        "map_by_key",
        lambda on: numbers().subscribe_on(on.io).map_by_key(on.together, lambda n: n % 4, on.cpu, concurrency=2),
    ),
    "map_parallel, unordered, before a boundary": (
        "map_parallel",
        lambda on: (
            numbers().subscribe_on(on.io).map_parallel(on.together, on.cpu, concurrency=2, ordered=False)
            .publish_on(on.more).map(fast)
        ),
    ),
    "inner of flat_map": (
        "flat_map",
        lambda on: numbers().subscribe_on(on.io).flat_map(
            lambda n: Flow.just(n).map(slow).subscribe_on(on.cpu), concurrency=1
        ),
    ),
    "inner of concat_map": (
        "concat_map",
        lambda on: numbers().concat_map(lambda n: Flow.just(n).map(slow)).map(fast).subscribe_on(on.io),
    ),
    "inner of flat_map on the thread of its source": (
        "flat_map", lambda on: numbers().subscribe_on(on.io).flat_map(lambda n: Flow.just(n).map(slow))
    ),
    "inner of concat_map on the thread of its source": (
        "concat_map", lambda on: numbers().subscribe_on(on.io).concat_map(lambda n: Flow.just(n).map(slow))
    ),
    "group": (
        "flat_map",
        lambda on: numbers().subscribe_on(on.io).group_by(lambda n: n % 3).flat_map(lambda each: each[1].map(slow)),
    ),
    "window": ("flat_map", lambda on: numbers().subscribe_on(on.io).window(5).flat_map(lambda each: each.map(slow))),
    "coroutine": ("flat_map", lambda on: numbers().subscribe_on(on.io).flat_map(slow_coroutine, concurrency=1)),
    "rate_limit": ("rate_limit", lambda on: numbers().subscribe_on(on.io).rate_limit(1, clock=on.clock).map(fast)),
    "rate_limit before a boundary": (
        "rate_limit",
        lambda on: numbers().subscribe_on(on.io).rate_limit(1, clock=on.clock).publish_on(on.cpu).map(fast),
    ),
    "one source of zip": (
        "map(slow)",
        lambda on: numbers().subscribe_on(on.io).zip_with(numbers().map(slow).subscribe_on(on.cpu)),
    ),
}  # fmt: skip


TIMED = {"interval", "rate_limit", "rate_limit before a boundary"}
"""The test looks, and moves the clock."""


def looked(flow: ObservedFlow[Any]) -> None:
    """Wait until the flow has been looked at so often."""
    until(lambda: flow._observation.looks()[0] >= LOOKS)


def watched(flow: ObservedFlow[Any], sink: Sink) -> None:
    flow.subscribe(sink)
    looked(flow)
    sink.subscription.cancel()
    until(lambda: not flow._observation.live())


@pytest.mark.parametrize("stage", PLANTED)
def test_a_planted_slow_stage_is_named(stage: str, pools: Pools) -> None:
    expected, make = PLANTED[stage]
    flow = observe(make(pools), f"planted: {stage}")
    sink = Sink()
    threading.Thread(target=flow.subscribe, args=(sink,), daemon=True).start()
    assert sink.subscribed.wait(PATIENCE)
    for _ in range(LOOKS if stage in TIMED else 0):
        look()
        pools.clock.advance(1)
    looked(flow)
    sink.subscription.cancel()
    pools.together.both.abort()
    until(lambda: not flow._observation.live())
    found = flow.bottleneck()
    assert found is not None, flow.report()
    assert found.operator.startswith(expected), flow.report()
    assert str(found) in flow.report()


SINKS: dict[str, tuple[Callable[[], Sink], Callable[[Pools], Flow[Any]]]] = {
    "slow on_next": (lambda: Sink(then=lambda sink, n: slow(n)), lambda on: numbers().map(fast).subscribe_on(on.io)),
    "slow on_next behind a boundary": (
        lambda: Sink(then=lambda sink, n: slow(n)),
        lambda on: numbers().map(fast).subscribe_on(on.io).publish_on(on.cpu).map(fast),
    ),
}


@pytest.mark.parametrize("way", SINKS)
def test_a_slow_subscriber_is_named(way: str, pools: Pools) -> None:
    sink, make = SINKS[way]
    flow = observe(make(pools), f"sink: {way}")
    watched(flow, sink())
    found = flow.bottleneck()
    assert found is not None, flow.report()
    assert found.operator == "the subscriber"


def test_late_demand_is_named(pools: Pools) -> None:
    flow = observe(numbers().map(fast).subscribe_on(pools.io).publish_on(pools.cpu).map(fast), "late demand")
    sink = Sink(0)
    flow.subscribe(sink)
    for _ in range(LOOKS):
        sink.subscription.request(1)
        assert sink.arrived.acquire(timeout=PATIENCE)
        until(lambda: all(not run.drain.is_owned() for run in flow._observation.live()))
        look()
    sink.subscription.cancel()
    found = flow.bottleneck()
    assert found is not None, flow.report()
    assert found.operator == "the subscriber"


@pytest.mark.parametrize("where", ["here", "elsewhere"])
def test_a_slow_loop_is_named(where: str, pools: Pools) -> None:
    flow = observe(numbers().map(fast) if where == "here" else numbers().map(fast).subscribe_on(pools.io), where)
    for number in flow:
        slow(number)
        if flow._observation.looks()[0] >= LOOKS:
            break
    found = flow.bottleneck()
    assert found is not None, flow.report()
    assert found.operator == "the subscriber"


def test_the_name_and_the_place_of_a_slow_operator(pools: Pools) -> None:
    flow = observe(numbers().map(fast).map(slow).named("store").map(fast).subscribe_on(pools.io), "with a name")
    watched(flow, Sink())
    found = flow.bottleneck()
    assert found is not None, flow.report()
    assert (found.name, found.kind) == ("store", "map")
    assert found.place is not None
    assert found.place[0] == __file__


BALANCED: dict[str, Callable[[Pools], Flow[Any]]] = {
    "two of one chain": lambda on: numbers().map(slow).map(fast).map(slower).subscribe_on(on.io),
    "three of one chain": lambda on: numbers().map(slow).map(slower).filter(lambda n: slow(n) >= 0).subscribe_on(on.io),
    "both sides of a boundary": lambda on: (
        numbers().map(slow).subscribe_on(on.io).publish_on(on.cpu, prefetch=8).map(slower)
    ),
}


@pytest.mark.parametrize("way", BALANCED)
def test_no_stage_of_a_balanced_flow_is_accused(way: str, pools: Pools) -> None:
    flow = observe(BALANCED[way](pools), f"balanced: {way}")
    watched(flow, Sink())
    assert flow.bottleneck() is None, flow.report()


def test_without_a_gil_no_operator_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(primitives, "has_gil", lambda: False)
    flow = observe(numbers().map(slow), "no GIL")
    for _ in flow:
        if flow._observation.looks()[0] >= LOOKS:
            break
    assert flow.bottleneck() is None
    assert flow.report().endswith("has no GIL: the stacks of other threads can't be read, and no operator is named")


def test_a_few_looks_accuse_no_operator() -> None:
    flow = observe(Flow.range(3).map(fast), "short")
    flow.block()
    assert flow.bottleneck() is None
