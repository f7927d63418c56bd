"""Each sink gives what its model gives: the elements of the source, in order, and its end."""

from __future__ import annotations

import asyncio
import queue
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.running import POOL
from reactive_runtime import Flow

PATIENCE = 30


def _queued(flow: Flow[int]) -> list[int]:
    elements: queue.SimpleQueue[Any] = queue.SimpleQueue()
    future = flow.to_queue(elements, end="end")
    got = list(iter(lambda: elements.get(timeout=PATIENCE), "end"))
    future.result(PATIENCE)
    return got


def _each(flow: Flow[int]) -> list[int]:
    got: list[int] = []
    flow.for_each(got.append, timeout=PATIENCE)
    return got


def _awaited(flow: Flow[int]) -> list[int]:
    async def main() -> list[int]:
        return [n async for n in flow.iterate_async(prefetch=2)]

    return asyncio.run(main())


def _run(flow: Flow[int]) -> list[int]:
    got: list[int] = []
    flow.do_on_next(got.append).run(timeout=PATIENCE)
    return got


WHOLE: dict[str, Callable[[Flow[int]], list[int]]] = {
    "iterate": lambda flow: list(flow.iterate(prefetch=2)),
    "for": list,
    "iterate_async": _awaited,
    "to_queue": _queued,
    "for_each": _each,
    "run": _run,
}
LAST: dict[str, Callable[[Flow[int]], int | None]] = {
    "block": lambda flow: flow.block(timeout=PATIENCE),
    "to_future": lambda flow: flow.to_future().result(PATIENCE),
}

WAYS: list[Callable[[Flow[int]], Flow[int]]] = [
    lambda flow: flow,
    lambda flow: flow.subscribe_on(POOL),
    lambda flow: flow.publish_on(POOL, prefetch=2),
    Flow.from_publisher,
]

SINKS = {*WHOLE, *LAST, "subscribe"}
ELEMENTS = st.lists(st.integers(0, 9), max_size=6)
WAY = st.integers(0, len(WAYS) - 1)


def source(elements: list[int], fails: bool, way: int) -> Flow[int]:
    flow: Flow[int] = Flow.from_iterable(elements)
    return WAYS[way](flow.concat_with(Flow.error(lambda: OSError("broken"))) if fails else flow)


@pytest.mark.parametrize("sink", WHOLE)
@settings(max_examples=15)
@given(elements=ELEMENTS, fails=st.booleans(), way=WAY)
def test_a_sink_gives_all_elements_or_the_error(sink: str, elements: list[int], fails: bool, way: int) -> None:
    flow = source(elements, fails, way)
    if fails:
        with pytest.raises(OSError, match="broken"):
            WHOLE[sink](flow)
    else:
        assert WHOLE[sink](flow) == elements


@pytest.mark.parametrize("sink", LAST)
@settings(max_examples=15)
@given(elements=ELEMENTS, fails=st.booleans(), way=WAY)
def test_a_sink_gives_the_last_element_or_the_error(sink: str, elements: list[int], fails: bool, way: int) -> None:
    flow = source(elements, fails, way)
    if fails:
        with pytest.raises(OSError, match="broken"):
            LAST[sink](flow)
    else:
        assert LAST[sink](flow) == (elements[-1] if elements else None)
