"""A chain of 1,000 of any operator: it is assembled, drawn, given an executor and run without a stack to match."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sinks import PATIENCE, Sink

from operators.catalogue import CASES, Case, Place
from reactive_runtime import Flow
from reactive_runtime.executors import VirtualTimeExecutor

LENGTH = 1_000


@pytest.fixture
def place() -> Iterator[Place]:
    with ThreadPoolExecutor(2, "depth") as pool:
        yield Place(pool, VirtualTimeExecutor())


def chain(operator: Callable[[Flow[Any]], Flow[Any]], source: Flow[Any]) -> Flow[Any]:
    for _ in range(LENGTH):
        source = operator(source)
    return source


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_chain_of_a_thousand_is_assembled_and_drawn(case: Case, place: Place) -> None:
    flow = chain(lambda it: case.apply(it, place), Flow.range(3))
    assert str(flow)
    assert flow.explain()
    assert "ThreadPoolExecutor" in flow.subscribe_on(place.pool).explain()
    assert flow.subscribe_on(place.pool).publish_on(place.pool).explain()


@pytest.mark.parametrize("join", ["concat_with", "merge_with"])
def test_a_long_concatenation_is_one_operator(join: str) -> None:
    flow: Flow[int] = Flow.just(0)
    for n in range(1, LENGTH):
        flow = getattr(flow, join)(Flow.just(n))
    assert list(flow) == list(range(LENGTH))
    assert str(flow).startswith(f"just(0) {join}(just(1), just(2), just(3)")


def test_what_comes_in_between_keeps_its_place(place: Place) -> None:
    """Only what means the same is made one."""
    two = Flow.just(1).concat_with(Flow.just(2))
    assert list(two.map(lambda n: -n).concat_with(Flow.just(3))) == [-1, -2, 3]
    assert str(Flow.just(1).concat_with().concat_with(Flow.just(2), Flow.just(3))).endswith("(just(2), just(3))")
    other = Flow.just(1).merge_with(Flow.just(2), delay_error=True).merge_with(Flow.just(3))
    assert str(other) == "just(1) merge_with(just(2)) ¦ merge_with(just(3))"
    elsewhere = two.subscribe_on(place.pool).concat_with(Flow.just(3))
    assert str(elsewhere) == "just(1) concat_with(just(2)) concat_with(just(3))"
    assert str(two) == "just(1) concat_with(just(2))", "a flow is not changed by what is made of it"
    assert list(elsewhere) == [1, 2, 3]


def test_the_executors_of_all_that_comes_in_are_known(place: Place) -> None:
    """Waiting on one of their threads is refused, however deep they are."""
    flow = Flow.just(0)
    for n in range(50):
        flow = Flow.concat(Flow.just(n).subscribe_on(place.pool) if n == 7 else Flow.just(n), flow)
    refused = place.pool.submit(lambda: Flow.zip(flow, Flow.just(1)).block())
    assert isinstance(refused.exception(PATIENCE), RuntimeError)
    longer = Flow.just(1).concat_with(Flow.just(2)).concat_with(Flow.just(3).subscribe_on(place.pool))
    refused = place.pool.submit(longer.block)
    assert isinstance(refused.exception(PATIENCE), RuntimeError)


def test_work_on_rails_may_be_long(place: Place) -> None:
    rails = Flow.range(3).parallel(2).run_on(place.pool)
    for _ in range(2 * sys.getrecursionlimit()):
        rails = rails.rails(lambda rail: rail)
    assert sorted(rails.sequential()) == [0, 1, 2]


MULTIPLY = {
    "repeat",
    "repeat_when",
    "flat_map (on a pool)",
    "flat_map_sequential (on a pool)",
    "flat_map",
    "concat_map",
}
MULTIPLY |= {"flat_map_sequential", "handle", "flat_map_iterable", "expand", "starmap"}
"""What makes two of one, or takes other things than it gives: a thousand of them would never end, or mean nothing."""


@pytest.mark.parametrize("case", [it for it in CASES if it.name not in MULTIPLY], ids=lambda case: case.name)
def test_a_chain_of_a_thousand_runs(case: Case, place: Place) -> None:
    """To its end, whichever that is for what has been through so many of them."""
    sink = Sink()
    chain(lambda it: case.apply(it, place), Flow.range(3)).subscribe(sink)
    for _ in range(int(PATIENCE * 100)):
        if sink.ended.wait(0.0 if sink.ended.is_set() else 0.001):
            break
        place.clock.advance(1)
    assert sink.end is not None
    reason: BaseException | None = sink.end[1] if sink.end[0] == "on_error" else None
    while reason is not None:
        assert not isinstance(reason, RecursionError)
        reason = reason.__cause__ or reason.__context__
