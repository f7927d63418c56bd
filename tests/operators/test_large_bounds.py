"""Bounds of a million cost nothing until elements come: an operator keeps what it has, not what it might have."""

from __future__ import annotations

import asyncio
import inspect
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sinks import Sink

from reactive_runtime import Flow
from reactive_runtime.executors import VirtualTimeExecutor
from reactive_runtime.testing import TestPublisher

MILLION = 1_000_000
BOUNDS = {"groups", "concurrency", "prefetch", "capacity"}
PEAK = 512 * 1024
"""Bytes; the flows have ten elements."""

TEN: Any = Flow.range(10)


async def numbers() -> Any:
    for n in range(10):
        yield n


async def slowly(n: int) -> int:
    return n


def shared(flow: Any) -> list[int]:
    seen: list[int] = []
    flow.subscribe(seen.append)
    flow.connect()
    return seen


def emitted(bound: dict[str, int]) -> list[int]:
    def emit(emitter: Any) -> None:
        for n in range(10):
            emitter.emit(n)
        emitter.complete()

    return list(Flow.create(emit, overflow="error", **bound))


def delayed(bound: dict[str, int]) -> list[int]:
    clock, seen = VirtualTimeExecutor(), list[int]()
    TEN.delay(1, clock=clock, **bound).subscribe(seen.append)
    clock.advance(2)
    return seen


def ticked(bound: Any) -> list[int]:
    clock, seen = VirtualTimeExecutor(), list[int]()
    Flow.interval(1, clock=clock, **bound).take(10).subscribe(seen.append)
    clock.advance(20)
    return seen


def on_a_pool(bound: dict[str, int], made: Callable[[Any, dict[str, int]], Flow[int]]) -> list[int]:
    with ThreadPoolExecutor(1) as pool:
        return list(made(pool, bound))


async def read(bound: dict[str, int]) -> list[int]:
    return [n async for n in TEN.iterate_async(**bound)]


USES: dict[str, Callable[[Any], Any]] = {
    "balance": lambda bound: list(Flow.merge(*TEN.balance(2, **bound))),
    "buffer_time": lambda bound: list(TEN.buffer_time(1, clock=VirtualTimeExecutor(), **bound)),
    "buffer_until": lambda bound: list(TEN.buffer_until(lambda n: n % 3 == 0, **bound)),
    "buffer_when": lambda bound: list(TEN.buffer_when(Flow.never(), **bound)),
    "combine_latest": lambda bound: sorted(Flow.combine_latest(TEN, Flow.just(1), **bound))[-1:],
    "create": emitted,
    "delay": delayed,
    "expand": lambda bound: list(TEN.expand(lambda n: Flow.empty(), **bound)),
    "flat_map": lambda bound: sorted(TEN.flat_map(Flow.just, **bound)),
    "flat_map_sequential": lambda bound: list(TEN.flat_map_sequential(Flow.just, **bound)),
    "from_async": lambda bound: list(Flow.from_async(numbers, **bound)),
    "group_by": lambda bound: sorted(TEN.group_by(lambda n: n, **bound).flat_map(lambda group: group[1])),
    "interval": ticked,
    "iterate": lambda bound: list(TEN.iterate(**bound)),
    "iterate_async": lambda bound: asyncio.run(read(bound)),
    "map_by_key": lambda bound: on_a_pool(
        bound, lambda pool, b: TEN.map_by_key(lambda n: n, lambda n: 0, executor=pool, **b)
    ),
    "map_parallel": lambda bound: on_a_pool(bound, lambda pool, b: TEN.map_parallel(lambda n: n, executor=pool, **b)),
    "merge": lambda bound: sorted(Flow.merge(TEN, TEN, **bound)),
    "merge_comparing": lambda bound: list(Flow.merge_comparing(TEN, TEN, **bound)),
    "merge_with": lambda bound: sorted(TEN.merge_with(TEN, **bound)),
    "on_error_continue": lambda bound: sorted(TEN.on_error_continue(lambda flow: flow, repr, **bound)),
    "parallel": lambda bound: on_a_pool(bound, lambda pool, b: TEN.parallel(1, **b).run_on(pool).sequential()),
    "partition": lambda bound: sorted(Flow.merge(*TEN.partition(lambda n: n % 2, **bound))),
    "publish": lambda bound: shared(TEN.publish(**bound)),
    "publish_on": lambda bound: on_a_pool(bound, lambda pool, b: TEN.publish_on(pool, **b)),
    "replay": lambda bound: shared(TEN.replay(2, **bound)),
    "share": lambda bound: list(TEN.share(**bound)),
    "sort": lambda bound: list(TEN.sort(**bound)),
    "switch_map": lambda bound: list(Flow.just(1).switch_map(lambda n: TEN, **bound)),
    "window_time": lambda bound: list(
        TEN.window_time(1, clock=VirtualTimeExecutor(), **bound).concat_map(lambda item: item)
    ),
    "window_until": lambda bound: list(TEN.window_until(lambda n: n == 3, **bound).concat_map(lambda item: item)),
    "window_when": lambda bound: list(TEN.window_when(Flow.never(), **bound).concat_map(lambda item: item)),
    "zip": lambda bound: list(Flow.zip(TEN, TEN, **bound)),
    "zip_with": lambda bound: list(TEN.zip_with(TEN, **bound)),
}


def bounded() -> Iterator[tuple[str, str]]:
    """The methods of a flow that have a bound, with the name of that."""
    for name, method in inspect.getmembers(Flow, callable):
        if not name.startswith("_"):
            yield from ((name, bound) for bound in inspect.signature(method).parameters if bound in BOUNDS)


@pytest.mark.parametrize(("name", "bound"), list(bounded()))
def test_a_bound_of_a_million_takes_no_memory(name: str, bound: str) -> None:
    use = USES[name]
    expected = use({})  # what is made once has been made
    tracemalloc.start()
    try:
        seen = use({bound: MILLION})
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert seen == expected
    assert peak < PEAK


def test_a_demand_of_a_million_takes_no_memory_as_it_falls() -> None:
    sources: list[TestPublisher[int]] = [TestPublisher(), TestPublisher(), TestPublisher()]
    sink = Sink(MILLION)
    Flow.merge(*[Flow.from_publisher(source).map(abs) for source in sources]).subscribe(sink)
    tracemalloc.start()
    try:
        for source in sources * 1000:
            source.emit(1)
            sink.signals.clear()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after < PEAK / 4
