"""What an async iterable or a coroutine awaits in its `finally` is awaited to the end, whichever way its flow ends."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any

import pytest
from sinks import PATIENCE, Sink, wait_until

from reactive_runtime import Flow


class Source:
    """An async generator without end, whose `finally` takes several turns of the loop."""

    def __init__(self, *, pause: bool, end: int | None = None) -> None:
        self.pause = pause
        self.end = end
        self.begun: list[str] = []
        self.closed: list[str] = []

    async def __call__(self) -> AsyncIterator[int]:
        self.begun.append(threading.current_thread().name)
        try:
            n = 0
            while n != self.end:
                yield n
                n += 1
                if self.pause:
                    await asyncio.sleep(0)
        finally:
            for _ in range(5):
                await asyncio.sleep(0)
            self.closed.append(threading.current_thread().name)


def error_downstream(flow: Flow[int]) -> None:
    with suppress(ZeroDivisionError):
        flow.map(lambda n: 1 // (n - 3)).run(timeout=PATIENCE)


def cancel_elsewhere(flow: Flow[int]) -> None:
    sink = Sink(3)
    flow.subscribe(sink)
    sink.wait_for(3)
    sink.subscription.cancel()


def cancel_inside(flow: Flow[int]) -> None:
    sink = Sink(then=lambda item, n: item.subscription.cancel() if n == 2 else None)
    flow.subscribe(sink)
    sink.wait_for(3)


def broken_loop(flow: Flow[int]) -> None:
    for n in flow:
        if n == 2:
            break


WAYS: dict[str, Callable[[Flow[int]], Any]] = {
    "take, on the loop": lambda flow: flow.take(3).run(timeout=PATIENCE),
    "take, on the caller": lambda flow: list(flow.take(3)),
    "a broken for loop": broken_loop,
    "an error downstream": error_downstream,
    "a cancel on another thread": cancel_elsewhere,
    "a cancel inside on_next": cancel_inside,
    "take_until": lambda flow: flow.take_until(Flow.from_async(Source(pause=True, end=3)).last()).run(timeout=PATIENCE),
    "zip": lambda flow: flow.zip_with(Flow.range(3)).run(timeout=PATIENCE),
    "a small prefetch": lambda flow: flow.limit_rate(1).take(3).run(timeout=PATIENCE),
}


@pytest.mark.parametrize("pause", [True, False])
@pytest.mark.parametrize("way", WAYS)
def test_an_async_generator_is_closed_to_the_end(way: str, pause: bool) -> None:
    for _ in range(5):
        source = Source(pause=pause)
        WAYS[way](Flow.from_async(source))
        wait_until(lambda source=source: len(source.closed) == len(source.begun))  # type: ignore[misc]
        assert source.begun == source.closed
        not_begun = way == "take_until" and not source.begun  # the other one has ended before this had begun
        assert not_begun or source.begun == ["reactive-loop"]


@pytest.mark.parametrize("pause", [True, False])
def test_an_async_generator_that_came_to_its_end_is_closed_once(pause: bool) -> None:
    source = Source(pause=pause, end=40)
    assert list(Flow.from_async(source)) == list(range(40))
    wait_until(lambda: source.closed == ["reactive-loop"])


def test_an_async_generator_that_never_gives_anything_is_cancelled_inside() -> None:
    entered, closed = threading.Event(), threading.Event()

    async def waiting() -> AsyncIterator[int]:
        try:
            entered.set()
            await asyncio.sleep(3600)
            yield 0
        finally:
            await asyncio.sleep(0)
            closed.set()

    sink = Sink()
    Flow.from_async(waiting).subscribe(sink)
    assert entered.wait(PATIENCE)
    sink.subscription.cancel()
    assert closed.wait(PATIENCE)


MAPS: dict[str, Callable[[Flow[int], Callable[[int], Any]], Flow[Any]]] = {
    "flat_map": lambda flow, fn: flow.flat_map(fn, concurrency=8),
    "map_parallel": lambda flow, fn: flow.map_parallel(fn, concurrency=8, ordered=False),
    "flat_map of map_parallel": lambda flow, fn: flow.flat_map(lambda n: Flow.just(n).map_parallel(fn), concurrency=8),
}


@pytest.mark.parametrize("way", MAPS)
@pytest.mark.parametrize("turns", [1, 2, 3, 9])
def test_a_coroutine_that_is_cancelled_runs_its_finally_to_the_end(turns: int, way: str) -> None:
    begun: list[int] = []
    ended: list[int] = []

    async def call(n: int) -> int:
        begun.append(n)
        try:
            if n == 7:
                for _ in range(turns):
                    await asyncio.sleep(0)
                raise OSError
            await asyncio.sleep(3600)
        finally:
            for _ in range(5):
                await asyncio.sleep(0)
            ended.append(n)
        return n

    sink = Sink()
    MAPS[way](Flow.range(1_000), call).subscribe(sink)
    assert isinstance(sink.wait().error, OSError)
    wait_until(lambda: sorted(ended) == sorted(begun) == list(range(8)))
