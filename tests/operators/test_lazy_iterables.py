"""A lazy iterable is closed, once, wherever its flow ends: what it has in `finally` runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any

import pytest
from sinks import Sink, wait_until

from reactive_runtime import MAX_DEMAND, Flow


class Lazy:
    """Makes generators, and counts what their `finally` does."""

    def __init__(self, fails_at: int = -1) -> None:
        self.fails_at = fails_at
        self.begun: list[int] = []
        self.closed: list[int] = []
        self.kept: list[Iterator[int]] = []  # so that it is not closed because it is freed

    def numbers(self, of: object = None) -> Iterator[int]:
        self.kept.append(made := self._numbers())
        return made

    def _numbers(self) -> Iterator[int]:
        number = len(self.begun)
        self.begun.append(number)
        try:
            for n in range(6):
                if n == self.fails_at:
                    raise OSError("the iterable fails")
                yield n
        finally:
            self.closed.append(number)


Makes = Callable[[Lazy, Executor], Flow[Any]]

TAKERS: dict[str, Makes] = {
    "from_iterable": lambda lazy, pool: Flow.from_iterable(lazy.numbers()),
    "from_supplier": lambda lazy, pool: Flow.from_supplier(lazy.numbers),
    "flat_map_iterable": lambda lazy, pool: Flow.range(3).flat_map_iterable(lazy.numbers),
    "flatten": lambda lazy, pool: Flow.range(3).map(lazy.numbers).flatten(),
    "flat_map": lambda lazy, pool: Flow.range(3).flat_map(lambda n: Flow.from_iterable(lazy.numbers())),
    "concat_map": lambda lazy, pool: Flow.range(3).concat_map(lambda n: Flow.from_iterable(lazy.numbers())),
    "switch_map": lambda lazy, pool: Flow.range(3).switch_map(lambda n: Flow.from_iterable(lazy.numbers())),
    "flat_map_sequential": lambda lazy, pool: Flow.range(3).flat_map_sequential(
        lambda n: Flow.from_supplier(lazy.numbers)
    ),
    "parallel": lambda lazy, pool: (
        Flow.range(3).parallel(1).run_on(pool).map(lambda n: lazy.numbers()).sequential().flatten()
    ),
    "map_parallel": lambda lazy, pool: Flow.range(3).map_parallel(lambda n: n, pool).flat_map_iterable(lazy.numbers),
    "a source on a pool": lambda lazy, pool: Flow.from_iterable(lazy.numbers()).subscribe_on(pool),
    "inner flows on a pool": lambda lazy, pool: Flow.range(1).flat_map(
        lambda n: Flow.from_iterable(lazy.numbers()).subscribe_on(pool)
    ),
}

BOUNDARIES: dict[str, Callable[[Flow[Any], Executor], Flow[Any]]] = {
    "here": lambda flow, pool: flow,
    "not fused": lambda flow, pool: Flow.from_publisher(flow),
    "publish_on": lambda flow, pool: flow.publish_on(pool, prefetch=2),
    "subscribe_on": lambda flow, pool: flow.subscribe_on(pool),
}


def raising(n: int) -> int:
    if n == 2:
        raise KeyError(n)
    return n


def enough(sink: Sink, element: object) -> None:
    if len(sink.elements) == 2:
        sink.subscription.cancel()
        sink.ended.set()
    elif sink.demand != MAX_DEMAND:
        sink.subscription.request(1)


def ended_by(flow: Flow[Any], sink: Sink) -> None:
    flow.subscribe(sink)
    sink.wait()


def left(flow: Flow[Any]) -> None:
    for n in flow.iterate(prefetch=1):
        if n == 1:
            break


ENDS: dict[str, Callable[[Flow[Any]], object]] = {
    "cancelled": lambda flow: ended_by(flow, Sink(MAX_DEMAND, enough)),
    "cancelled, one by one": lambda flow: ended_by(flow, Sink(1, enough)),
    "limited": lambda flow: ended_by(flow.take(2), Sink()),
    "limited to nothing more": lambda flow: ended_by(flow.take_while(lambda n: n < 2), Sink()),
    "failed below": lambda flow: ended_by(flow.map(raising), Sink()),
    "a loop left": left,
    "to the end": lambda flow: ended_by(flow, Sink()),
}


@pytest.fixture(scope="module")
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2, "lazy") as executor:
        yield executor


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("taker", TAKERS)
def test_a_lazy_iterable_is_closed_once(
    taker: str, boundary: str, end: str, pool: ThreadPoolExecutor, dropped: list[Any]
) -> None:
    lazy = Lazy()
    ENDS[end](BOUNDARIES[boundary](TAKERS[taker](lazy, pool), pool))
    wait_until(lambda: len(lazy.closed) >= len(lazy.begun))
    assert lazy.begun
    assert sorted(lazy.closed) == lazy.begun


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("taker", TAKERS)
def test_a_lazy_iterable_that_fails_is_closed_once(
    taker: str, boundary: str, pool: ThreadPoolExecutor, dropped: list[Any]
) -> None:
    lazy = Lazy(fails_at=2)
    sink = Sink()
    ended_by(BOUNDARIES[boundary](TAKERS[taker](lazy, pool), pool), sink)
    assert isinstance(sink.error, OSError)
    wait_until(lambda: len(lazy.closed) >= len(lazy.begun))
    assert sorted(lazy.closed) == lazy.begun
