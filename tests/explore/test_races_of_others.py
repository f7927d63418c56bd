"""The races that reactor-core and RxJava have lost elements, requests and errors in, in every schedule here.

Those bugs that need no race are in tests/operators/test_bugs_of_others.py.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
from searching import NIGHT, each_of_both_by_day, holds_with_few_preemptions

from explore.racing import Applied, complete, complete_2, emit, fail, fail_2
from reactive_runtime import Flow, Valve
from reactive_runtime._spec import MAX_DEMAND
from reactive_runtime.explore import cancel, explore_publisher, request
from reactive_runtime.explore._checks.publisher_scenario import Driven


def explored(operator: Callable[..., Any], actors: Any, **options: Any) -> None:
    """Hold in every schedule with few preemptions."""
    holds_with_few_preemptions(
        partial(explore_publisher, partial(Applied, operator), actors, ascending=False, **options)
    )


# -- elements -------------------------------------------------------------------------------------------------

PASSING: dict[str, Callable[..., Any]] = {
    "from_publisher": lambda a: a,
    "merge": lambda a, b: Flow.merge(a, b, prefetch=2),
    "merge_comparing": lambda a, b: Flow.merge_comparing(a, b, prefetch=2),
    "concat": lambda a, b: a.concat_with(b),
    "concat_map": lambda a, b: b.concat_map(lambda n: a),
    "flat_map": lambda a, b: b.start_with(0).flat_map(lambda n: a, concurrency=1, prefetch=2),
    "flat_map_sequential": lambda a, b: b.start_with(0).flat_map_sequential(lambda n: a, concurrency=1, prefetch=2),
    "delay": lambda a, t: a.delay(1, clock=t),
    "buffer_timeout": lambda a, t: a.buffer_timeout(2, 1, clock=t),
    "rate_limit": lambda a, t: a.rate_limit(1, clock=t),
    "timeout": lambda a, b, t: a.timeout(1, clock=t, fallback=b),
    "take_until": lambda a, b: a.take_until(b),
    "retry": lambda a: a.retry(1),
    "repeat": lambda a: a.repeat(2),
    "on_error_resume": lambda a, b: a.on_error_resume(lambda error: b),
    "limit_rate": lambda a: a.limit_rate(2),
    "on_overflow_buffer": lambda a: a.on_overflow_buffer(2),
    "on_overflow_drop": lambda a: a.on_overflow_drop(),
    "on_overflow_latest": lambda a: a.on_overflow_latest(),
    "pausable": lambda a: a.pausable(Valve()),
    "serialize": lambda a: a.serialize(),
    "publish": lambda a: a.publish(capacity=2).ref_count(),
}


def nothing_is_lost(driven: Driven) -> None:
    """What was emitted was delivered, or went to the hook; once."""
    emitted = [n for held in driven.publisher.one.held.get() for n in range(held.number)]
    signals = driven.elements + [drop.element for drop in driven.dropped]
    accounted = [n for signal in signals for n in (signal if isinstance(signal, list) else [signal])]
    assert sorted(accounted) == sorted(emitted), f"emitted {emitted}, delivered or discarded {accounted}"


@pytest.mark.parametrize(("name", "demand"), each_of_both_by_day(list(PASSING), [1, MAX_DEMAND]))
def test_an_element_that_passes_a_cancel_is_delivered_or_discarded_once(name: str, demand: int) -> None:
    """reactor-core#2114, #2589, #4396: elements that leaked, or were discarded twice."""
    explored(PASSING[name], [[emit, emit], cancel()], demand=demand, finish=nothing_is_lost)


class Behind(Applied):
    """A boundary; its pool is shut down when the threads have done their work."""

    def __init__(self) -> None:
        self.pool = ThreadPoolExecutor(1)
        super().__init__(lambda a: a.publish_on(self.pool, prefetch=2))


@pytest.mark.parametrize(
    ("actors", "shutdown"),
    [
        ([[emit, emit], cancel()], {}),
        ([[emit], cancel()], {"cancel_futures": True}),
    ],
    ids=["cancel", "cancel, and the pool is shut down"],
)
def test_a_boundary_discards_what_it_holds_once(actors: Any, shutdown: Any) -> None:
    """reactor-core#4396, #2588: a cancel while the drain waits, or runs, in the pool."""

    def finish(driven: Driven) -> None:
        driven.publisher.pool.shutdown(**shutdown)
        nothing_is_lost(driven)

    ways: dict[str, dict[str, Any]] = {"bounded": {"bound": 1}, "pct3": {}}
    for strategy, options in ways.items():
        result = explore_publisher(
            Behind, actors, demand=MAX_DEMAND, finish=finish, ascending=False,
            strategy=strategy, schedules=100_000 if NIGHT and options else 300, **options,
        )  # fmt: skip
        result.assert_holds()


# -- requests -------------------------------------------------------------------------------------------------

CARRYING: dict[str, tuple[Callable[..., Any], Any]] = {
    "concat": (lambda a, b: a.concat_with(b), complete),
    "concat_map": (lambda a, b: Flow.just(a, b).concat_map(lambda item: item), complete),
    "flat_map, one at a time": (lambda a, b: Flow.just(a, b).flat_map(lambda item: item, concurrency=1), complete),
    "flat_map_sequential": (
        lambda a, b: Flow.just(a, b).flat_map_sequential(lambda item: item, concurrency=1),
        complete,
    ),
    "switch_if_empty": (lambda a, b: a.switch_if_empty(b), complete),
    "repeat": (lambda a: a.repeat(2), complete),
    "retry": (lambda a: a.retry(1), fail),
    "on_error_resume": (lambda a, b: a.on_error_resume(lambda error: b), fail),
}


def the_next_one_emits(driven: Driven) -> None:
    hands = driven.publisher
    for hand in (hands.one, hands.two):
        hand.emit()
    assert driven.elements == [0], f"one element was requested, and there was one: {driven.elements}"


@pytest.mark.parametrize("name", CARRYING)
def test_a_request_that_passes_the_change_to_the_next_publisher_is_not_lost(name: str) -> None:
    """RxJava#2960: the request reached the publisher that had just ended, and no other."""
    operator, end = CARRYING[name]
    explored(operator, [end, request(1)], finish=the_next_one_emits)


# -- ends -----------------------------------------------------------------------------------------------------


def an_error_was_seen(driven: Driven) -> None:
    assert driven.first.error is not None or any(drop.error is not None for drop in driven.dropped)


JOINED: dict[str, Callable[..., Any]] = {
    "merge": lambda a, b: Flow.merge(a, b, prefetch=2),
    "concat_map": lambda a, b: a.start_with(0).concat_map(lambda n: b),
    "flat_map": lambda a, b: a.start_with(0).flat_map(lambda n: b),
    "flat_map_sequential": lambda a, b: a.start_with(0).flat_map_sequential(lambda n: b),
}


@pytest.mark.parametrize("name", JOINED)
def test_an_error_that_passes_a_completion_is_not_swallowed(name: str) -> None:
    """reactor-core#2618: the last publisher failed as the source completed, and the flow completed."""
    explored(JOINED[name], [complete, fail_2], demand=MAX_DEMAND, finish=an_error_was_seen)


@pytest.mark.parametrize("name", JOINED)
def test_two_completions_that_pass_each_other_complete_the_whole_once(name: str) -> None:
    """RxJava#1818, #2647, mutiny#1463: each saw the other one running, and neither completed; or both did."""

    def completed(driven: Driven) -> None:
        assert driven.first.completed, "it never completed"

    explored(JOINED[name], [complete, complete_2], demand=MAX_DEMAND, finish=completed)
