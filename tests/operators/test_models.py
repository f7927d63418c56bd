"""Each synchronous operator is held to a plain-Python model: fused, not fused, and across a boundary."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from declared.kinds import Plain
from declared.table import parts
from hypothesis import given, settings
from hypothesis import strategies as st

from reactive_runtime import Flow

POOL = ThreadPoolExecutor(2, "models")


def through_demand(flow: Flow[Any], demand: int) -> list[Any]:
    """The elements of a flow that is asked for `demand` at a time, on this thread."""
    elements: list[Any] = []
    ended: list[Any] = []
    handle = flow.subscribe(elements.append, ended.append, lambda: ended.append(None), demand=demand)
    for _ in range(1_000):
        if ended:
            break
        handle.request(demand)
    assert ended == [None]
    return elements


MODELS = parts(Plain)


@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=25)
@given(xs=st.lists(st.integers(0, 5), max_size=12), k=st.integers(0, 5), demand=st.sampled_from([1, 2, 7, 1000]))
def test_an_operator_gives_what_its_model_gives(name: str, xs: list[int], k: int, demand: int) -> None:
    operator = MODELS[name].apply
    expected = MODELS[name].model(xs, k)
    assert list(operator(Flow.from_iterable(xs), k)) == expected
    assert through_demand(operator(Flow.from_iterable(xs), k), demand) == expected
    assert through_demand(operator(Flow.from_publisher(Flow.from_iterable(xs)), k), demand) == expected
    assert list(operator(Flow.from_iterable(xs).subscribe_on(POOL).publish_on(POOL, prefetch=2), k)) == expected
