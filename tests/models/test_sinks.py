"""Each sink gives what its model gives: the elements of the source, in order, and its end."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from declared.kinds import SinkModel
from declared.table import parts
from hypothesis import given, settings
from hypothesis import strategies as st

from models.running import POOL
from reactive_runtime import Flow

SINKS = parts(SinkModel)
WHOLE: dict[str, Callable[[Flow[int]], list[int]]] = {
    "for": list,
    **{name: sink.run for name, sink in SINKS.items() if not sink.last},
}
LAST = {name: sink.run for name, sink in SINKS.items() if sink.last}

WAYS: list[Callable[[Flow[int]], Flow[int]]] = [
    lambda flow: flow,
    lambda flow: flow.subscribe_on(POOL),
    lambda flow: flow.publish_on(POOL, prefetch=2),
    Flow.from_publisher,
]

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
