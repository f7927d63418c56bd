"""Every way to read a flow."""

from __future__ import annotations

import asyncio
import itertools
import queue
from collections.abc import AsyncIterator, Callable, Iterable
from concurrent.futures import Executor
from contextlib import aclosing, closing
from typing import Any

from sinks import PATIENCE, Sink

from reactive_runtime import MAX_DEMAND, Flow

__all__ = ["LEAVING", "READERS", "Reader"]

Reader = Callable[[Flow[Any], Executor, list[Any]], object]
"""Reads the flow to its end, or until it has had enough, and puts the elements into the list. Raises its error."""


def ended(sink: Sink, got: list[Any]) -> None:
    """Wait until the flow has ended."""
    end = sink.wait().end
    got.extend(sink.elements)
    assert end is not None
    if end[0] == "on_error":
        raise end[1]


def in_portions(portions: Iterable[int]) -> Reader:
    """Ask for a portion; when all of it has come, for the next."""

    def read(flow: Flow[Any], pool: Executor, got: list[Any]) -> None:
        sizes = itertools.cycle(portions)
        owed = [next(sizes)]

        def again(sink: Sink, element: Any) -> None:
            owed[0] -= 1
            if not owed[0]:
                owed[0] = next(sizes)
                sink.subscription.request(owed[0])

        sink = Sink(owed[0], again)
        flow.subscribe(sink)
        ended(sink, got)

    return read


def unbounded(flow: Flow[Any], pool: Executor, got: list[Any]) -> None:
    sink = Sink(MAX_DEMAND)
    flow.subscribe(sink)
    ended(sink, got)


def asked_from_outside(flow: Flow[Any], pool: Executor, got: list[Any]) -> None:
    """One element at a time, asked for by this thread: not inside of `on_next`."""
    sink = Sink(0)
    flow.subscribe(sink)
    while not sink.ended.is_set():
        sink.subscription.request(1)
        sink.arrived.acquire(timeout=0.002)
    ended(sink, got)


def put(flow: Flow[Any], pool: Executor, got: list[Any]) -> None:
    elements: queue.Queue[Any] = queue.Queue()
    future = flow.to_queue(elements)
    got.extend(iter(elements.get, None))
    future.result(PATIENCE)


def looped(prefetch: int, most: int | None = None) -> Reader:
    """A loop; with `most`, one that is left in the middle."""

    def read(flow: Flow[Any], pool: Executor, got: list[Any]) -> None:
        with closing(flow.iterate(prefetch=prefetch)) as elements:
            got.extend(itertools.islice(elements, most))

    return read


def awaited(prefetch: int, most: int | None = None) -> Reader:
    """An asynchronous loop; with `most`, one that is left in the middle."""

    async def loop(elements: AsyncIterator[Any], got: list[Any]) -> None:
        async with aclosing(elements):  # type: ignore[type-var]
            async for element in elements:
                got.append(element)
                if len(got) == most:
                    break

    return lambda flow, pool, got: asyncio.run(loop(flow.iterate_async(prefetch=prefetch), got))


def cancelled_after(most: int, demand: int) -> Reader:
    """A subscriber that cancels inside of `on_next`."""

    def read(flow: Flow[Any], pool: Executor, got: list[Any]) -> None:
        def enough(sink: Sink, element: Any) -> None:
            if len(sink.elements) == most:
                sink.subscription.cancel()
                sink.ended.set()
            elif demand != MAX_DEMAND:
                sink.subscription.request(1)

        sink = Sink(demand, enough)
        flow.subscribe(sink)
        assert sink.ended.wait(PATIENCE)
        if sink.end is None:
            got.extend(sink.elements)
        else:
            ended(sink, got)

    return read


def on_each(flow: Flow[Any], got: list[Any]) -> Flow[Any]:
    """For sinks that give one result for all elements."""
    return flow.do_on_next(got.append).ignore_elements()


READERS: dict[str, Reader] = {
    "for": lambda flow, pool, got: got.extend(flow),
    "iterate(prefetch=1)": looped(1),
    "iterate(prefetch=2)": looped(2),
    "iterate(prefetch=3)": looped(3),
    "async for": awaited(256),
    "async for, prefetch 1": awaited(1),
    "block": lambda flow, pool, got: on_each(flow, got).block(timeout=PATIENCE),
    "to_future": lambda flow, pool, got: on_each(flow, got).to_future().result(PATIENCE),
    "to_queue": put,
    "unbounded": unbounded,
    "one by one": in_portions([1]),
    "one by one, from outside": asked_from_outside,
    "in odd portions": in_portions([2, 3, 1, 5]),
    "publish_on": lambda flow, pool, got: unbounded(flow.publish_on(pool, prefetch=4), pool, got),
    "publish_on, one by one": lambda flow, pool, got: in_portions([1])(flow.publish_on(pool, prefetch=1), pool, got),
}

LEAVING: dict[str, Reader] = {
    "a loop left after 1": looped(1, 1),
    "a loop left after 3": looped(256, 3),
    "an async loop left after 3": awaited(256, 3),
    "cancelled after 2": cancelled_after(2, 1),
    "cancelled after 3, unbounded": cancelled_after(3, MAX_DEMAND),
    "take(3)": lambda flow, pool, got: unbounded(flow.take(3), pool, got),
}
"""Those that stop in the middle."""
