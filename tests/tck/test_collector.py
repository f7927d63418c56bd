"""One collection serves all checks that wait for one, and there is a pause after it."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from sinks import PATIENCE, until

from reactive_runtime.tck._running.collector import PAUSE, Collector


class ByHand:
    """A collection that takes as long as the test says."""

    def __init__(self) -> None:
        self.begun = threading.Semaphore(0)
        self.may_end = threading.Semaphore(0)
        self.count = 0  # of one thread at a time, which the collector sees to
        self.inside = 0

    def __call__(self) -> None:
        self.inside += 1
        assert self.inside == 1, "two collections at once"
        self.count += 1
        self.begun.release()
        assert self.may_end.acquire(timeout=PATIENCE)
        self.inside -= 1


def test_those_that_ask_while_one_runs_share_the_next() -> None:
    collection = ByHand()
    collector = Collector(collection, clock=lambda: 0.0)
    with ThreadPoolExecutor(9) as pool:
        first = pool.submit(collector.collect)
        assert collection.begun.acquire(timeout=PATIENCE)
        others = [pool.submit(collector.collect) for _ in range(8)]
        until(lambda: len(collector._changed._waiters) == 8)  # type: ignore[attr-defined]
        collection.may_end.release()
        first.result(PATIENCE)
        assert not any(other.done() for other in others), "that one began before they asked"
        assert collection.begun.acquire(timeout=PATIENCE)
        collection.may_end.release()
        for other in others:
            other.result(PATIENCE)
    assert collection.count == 2


def test_the_pause_is_as_many_times_as_long_as_the_collection() -> None:
    now = [10.0]

    def collection() -> None:
        now[0] += 0.5

    collector = Collector(collection, clock=lambda: now[0])
    assert collector.pause() <= 0
    collector.collect()
    assert collector.pause() == PAUSE * 0.5
    now[0] += PAUSE * 0.5
    collector.collect()
    assert now == [10.0 + 0.5 + PAUSE * 0.5 + 0.5]


def test_one_that_raises_is_over_all_the_same() -> None:
    outcomes = iter([KeyboardInterrupt, None])

    def collection() -> None:
        if (raised := next(outcomes)) is not None:
            raise raised

    collector = Collector(collection, clock=lambda: 0.0)
    with pytest.raises(KeyboardInterrupt):
        collector.collect()
    collector.collect()
    assert next(outcomes, "both were made") == "both were made"
