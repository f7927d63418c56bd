"""Fused and unfused give the same signals, element for element. What can't be fused: `test_step_classes.py`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sinks import Sink

from reactive_runtime import MAX_DEMAND, Flow
from reactive_runtime._core.fusion import fuse, subscription
from reactive_runtime._core.fusion.step import STOP, Each, Step


class FaultError(Exception):
    """Raised by a function of a pipeline, and equal to any of its kind: both runs raise their own."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FaultError)

    __hash__ = None  # type: ignore[assignment]


def fail_at(limit: int) -> Callable[[int], int]:
    def check(n: int) -> int:
        if n >= limit:
            raise FaultError
        return n

    return check


def stop_at(limit: int) -> Callable[[int], int]:
    def check(n: int) -> int:
        if n >= limit:
            raise StopIteration
        return n

    return check


def none_at(limit: int) -> Callable[[int], Any]:
    return lambda n: None if n == limit else n


class Twice(Step[Any, Any]):
    """Expands: each element two times."""

    name = "twice"
    expands = True

    def on_next(self, element: Any) -> Each[Any]:
        for _ in range(2):
            yield element


class Pairs(Step[Any, Any]):
    """Has an end, yields in two places, and no more than now and then."""

    name = "pairs"

    def __init__(self) -> None:
        self.first: Any = None

    def on_next(self, element: Any) -> Each[Any]:
        if self.first is None:
            self.first = element
        else:
            yield self.first * 100 + element
            self.first = None

    def on_complete(self) -> Iterator[Any]:
        if self.first is not None:
            yield self.first


class UntilNegative(Step[Any, Any]):
    """Ends the stream, with a last word."""

    name = "until"

    def __init__(self, limit: int) -> None:
        self.limit = limit

    def on_next(self, element: Any) -> Each[Any]:
        if element > self.limit:
            yield -1
            return STOP
        yield element


Build = Callable[[Flow[Any]], Flow[Any]]

OPERATORS: dict[str, Callable[[int], Build]] = {
    "map": lambda k: lambda flow: flow.map(lambda n: n + k),
    "map, failing": lambda k: lambda flow: flow.map(fail_at(k)),
    "map, stopping": lambda k: lambda flow: flow.map(stop_at(k)),
    "map, to None": lambda k: lambda flow: flow.map(none_at(k)),
    "filter": lambda k: lambda flow: flow.filter(lambda n: n % (k + 1)),
    "take": lambda k: lambda flow: flow.take(k),
    "twice": lambda k: lambda flow: flow._then(Twice()),
    "pairs": lambda k: lambda flow: flow._then(Pairs()),
    "until": lambda k: lambda flow: flow._then(UntilNegative(k * 3)),
}

CHAINS = st.lists(st.tuples(st.sampled_from(sorted(OPERATORS)), st.integers(0, 12)), max_size=6)
SOURCES: dict[str, Callable[[int], Flow[int]]] = {
    "range": Flow.range,
    "list": lambda n: Flow.from_iterable(list(range(n))),
    "generator": lambda n: Flow.from_supplier(lambda: (i for i in range(n))),
}


def built(source: str, n: int, chain: list[tuple[str, int]]) -> Flow[Any]:
    flow: Flow[Any] = SOURCES[source](n)
    for name, k in chain:
        flow = OPERATORS[name](k)(flow)
    return flow


def signals(flow: Flow[Any], demand: int) -> list[Any]:
    """All signals, errors by type and text; `demand` is asked for again and again."""
    sink = Sink(demand)
    flow.subscribe(sink)
    for _ in range(2_000):  # six times twice 20 elements is 1,280
        if sink.ended.is_set():
            break
        sink.subscription.request(demand)
    told = sink.wait().signals
    return [(kind, *(str(item) if isinstance(item, Exception) else item for item in rest)) for kind, *rest in told]


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    source=st.sampled_from(sorted(SOURCES)),
    n=st.integers(0, 20),
    chain=CHAINS,
    demand=st.sampled_from([1, 2, 7, MAX_DEMAND]),
)
def test_fused_and_unfused_give_the_same_signals(
    monkeypatch: pytest.MonkeyPatch, source: str, n: int, chain: list[tuple[str, int]], demand: int
) -> None:
    fused = signals(built(source, n, chain), demand)
    with monkeypatch.context() as patch:
        reference = fuse.Chain(fuse.unfused, None)
        patch.setattr(fuse, "chain_of", lambda kinds: reference)
        patch.setattr(subscription, "chain_of", lambda kinds: reference)
        assert signals(built(source, n, chain), demand) == fused


@settings(max_examples=150)
@given(
    source=st.sampled_from(sorted(SOURCES)),
    n=st.integers(0, 20),
    chain=CHAINS,
    demand=st.sampled_from([1, 2, 7, MAX_DEMAND]),
    prefetch=st.sampled_from([1, 2, 256]),
    cut=st.integers(0, 6),
)
def test_a_boundary_anywhere_in_the_chain_changes_no_signal(
    source: str, n: int, chain: list[tuple[str, int]], demand: int, prefetch: int, cut: int
) -> None:
    expected = signals(built(source, n, chain), demand)
    flow: Flow[Any] = SOURCES[source](n).subscribe_on(POOL)
    for place, (name, k) in enumerate(chain):
        if place == cut:
            flow = flow.publish_on(POOL, prefetch=prefetch)
        flow = OPERATORS[name](k)(flow)
    if cut >= len(chain):
        flow = flow.publish_on(POOL, prefetch=prefetch)
    assert driven(flow, demand) == expected


def driven(flow: Flow[Any], demand: int) -> list[Any]:
    """As `signals`, for flows that run elsewhere: each batch is asked for when the last has arrived."""

    def again(sink: Sink, element: Any) -> None:
        if demand != MAX_DEMAND and len(sink.elements) % demand == 0:
            sink.subscription.request(demand)

    sink = Sink(demand, again)
    flow.subscribe(sink)
    told = sink.wait().signals
    return [(kind, *(str(item) if isinstance(item, Exception) else item for item in rest)) for kind, *rest in told]


POOL: Executor = ThreadPoolExecutor(3, "fuse")


def test_a_chain_of_a_thousand_maps_needs_no_stack() -> None:
    flow: Flow[int] = Flow.range(3)
    for _ in range(1_000):
        flow = flow.map(lambda n: n + 1)
    assert list(flow) == [1000, 1001, 1002]
    assert flow.to_list().block() == [1000, 1001, 1002]


def test_a_loop_is_made_once_for_all_chains_of_one_shape() -> None:
    kinds = tuple(type(step) for step in Flow.range(1).map(str).filter(bool)._steps)
    assert fuse.chain_of(kinds) is fuse.chain_of(kinds)


def test_the_generated_loop_shows_in_a_traceback() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        list(Flow.range(3).map(lambda n: 1 // n))
    lines = [str(entry.statement).strip() for entry in caught.traceback]
    assert "v0_result = s0_fn(v0_element)" in lines


def test_steps_whose_source_is_not_at_hand_run_unfused(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(*_: object) -> str:
        raise OSError("could not get source code")

    class Hidden(Step[int, int]):
        name = "hidden"

        def on_next(self, element: int) -> Each[int]:
            yield element * 2

    monkeypatch.setattr(inspect, "getsource", nowhere)
    assert list(Flow.range(3)._then(Hidden())) == [0, 2, 4]
    sink = Sink()
    Flow.range(3)._then(Hidden()).subscribe(sink)
    assert sink.elements == [0, 2, 4]


DROPPING: dict[str, Callable[[Flow[int]], Flow[Any]]] = {
    "filter": lambda flow: flow.filter(lambda _: False),
    "sum": lambda flow: flow.sum(),
    "ignore_elements": lambda flow: flow.ignore_elements(),
    "skip": lambda flow: flow.skip(10**9),
    "in the next loop": lambda flow: functools.reduce(lambda item, _: item.map(abs), range(20), flow).filter(
        lambda _: False
    ),
    "flattened again": lambda flow: flow.flat_map_iterable(lambda n: (n,)).filter(lambda _: False),
}


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("demand", [1, MAX_DEMAND])
@pytest.mark.parametrize("flattening", ["flat_map_iterable", "flatten"])
@pytest.mark.parametrize("dropping", DROPPING)
def test_spec312_a_cancel_ends_what_one_element_has_become(
    dropping: str, flattening: str, demand: int, fused: bool
) -> None:
    """All that it becomes is dropped further down, so that nothing else looks."""
    pulled: list[int] = []

    def numbers() -> Iterator[Any]:
        for n in range(1000):
            pulled.append(n)
            if n == 10:
                sink.subscription.cancel()
            yield n

    sink = Sink(demand=0)
    with fuse.fusing(fused):
        if flattening == "flatten":
            flow: Flow[Any] = Flow.just(numbers()).flatten()
        else:
            flow = Flow.just(0).flat_map_iterable(lambda _: numbers())
        DROPPING[dropping](flow).subscribe(sink)
        sink.subscription.request(demand)
    assert len(pulled) <= 12
    assert sink.end is None
