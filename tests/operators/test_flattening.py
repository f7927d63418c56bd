"""Flows of flows and of tasks: whose turn it is, how much is asked for, and what becomes of errors."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any

import pytest
from sinks import PATIENCE, Sink, wait_until

from reactive_runtime import Flow, hooks
from reactive_runtime.executors import VirtualTimeExecutor
from reactive_runtime.hooks import Dropped
from reactive_runtime.hot import PublishProcessor, UnicastProcessor
from reactive_runtime.testing import Probe, TestPublisher


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4, "pool") as executor:
        yield executor


# -- turns ----------------------------------------------------------------------------------------------------


def named(name: int) -> Flow[int]:
    """Gives its name, without end."""
    return Flow.generate(0, lambda n: (name, n))


FAIR: dict[str, Callable[[int], Flow[Any]]] = {
    "flat_map": lambda n: Flow.from_supplier(itertools.count).flat_map(named, concurrency=n),
    "merge": lambda n: Flow.merge(*map(named, range(n))),
    "merge_with": lambda n: named(0).merge_with(*map(named, range(1, n))),
    "expand": lambda n: Flow.merge(*map(named, range(n))).expand(lambda name: Flow.never(), concurrency=1),
}


@pytest.mark.parametrize("demand", [1, 3])
@pytest.mark.parametrize("name", FAIR)
def test_between_two_turns_of_one_publisher_each_other_has_had_its_turn(name: str, demand: int) -> None:
    sink = Sink(0)
    FAIR[name](8).subscribe(sink)
    for _ in range(80):
        sink.subscription.request(demand)
    sink.subscription.cancel()
    late = sink.elements[16 * demand :]
    turns = [0] * 8
    for name_of_one in late:
        turns[name_of_one] += 1
        # One may have had its next element at hand, while those of the others had been asked for: no further apart.
        assert max(turns) - min(turns) <= (1 if demand == 1 else 2)


def always(name: int) -> Flow[int]:
    """Gives its name, without end, and has a drain of its own where others may be heard from elsewhere."""
    return Flow.just(name).repeat()


BESIDE: dict[str, Callable[[], Flow[Any]]] = {
    "flat_map": lambda: Flow.range(1_000_000_000).flat_map(always, concurrency=4),
    "merge": lambda: Flow.merge(Flow.generate(0, lambda n: (n, n)), Flow.never(), *map(always, (1, 2, 3))),
    "merge, at hand": lambda: Flow.merge(
        Flow.from_iterable([0] * 1_000), Flow.never(), *map(always, (1, 2)), named(3).map(lambda n: n)
    ),
}


@pytest.mark.parametrize("name", BESIDE)
def test_one_that_always_has_an_element_does_not_keep_others_from_being_asked(name: str) -> None:
    """Some hang on the operator's own drain, where it never runs dry; the others have one of their own."""
    sink = Sink(0)
    BESIDE[name]().subscribe(sink)
    for _ in range(200):
        sink.subscription.request(1)
    sink.subscription.cancel()
    late = sink.elements[100:]
    assert all(late.count(item) >= 10 for item in range(4)), late


@pytest.mark.parametrize("length", [1, 2, 5])
def test_a_publisher_waits_no_longer_than_one_turn_of_those_that_come_after_it(length: int) -> None:
    """Those that have ended make room for new ones, which do not push in."""
    sink = Sink(0)
    Flow.from_supplier(itertools.count).flat_map(lambda n: Flow.just(*[n] * length), concurrency=4).subscribe(sink)
    for _ in range(200):
        sink.subscription.request(1)
    sink.subscription.cancel()
    begun = {n: sink.elements.index(n) for n in sink.elements}
    assert sorted(begun) == list(range(len(begun)))
    for n, at in begun.items():
        if at + 8 * length < len(sink.elements):
            assert sink.elements.count(n) == length, f"{n} began at {at} and never had its turn again"


def test_a_publisher_that_ends_takes_no_turn_from_another() -> None:
    """While there is no demand they are only looked at, and keep their places."""
    ending = [PublishProcessor[str]() for _ in range(40)]
    sink = Sink(0)
    flows = [named(0), *ending[:20], named(1), *ending[20:]]
    Flow.merge(*flows).subscribe(sink)
    for one, other in zip(ending[:20], ending[20:], strict=True):
        sink.subscription.request(1)
        one.on_complete()
        other.on_complete()
    sink.subscription.cancel()
    assert sink.elements == [0, 1] * 10


def test_every_publisher_of_flat_map_is_subscribed_to_when_its_element_is_taken() -> None:
    subscribed: list[int] = []
    sink = Sink(1)
    inner: Callable[[int], Flow[int]] = lambda n: (  # noqa: E731
        Flow.merge(Flow.never().do_on_subscribe(lambda: subscribed.append(n)), Flow.just(n))
    )
    Flow.range(9).flat_map(inner, concurrency=4).subscribe(sink)
    assert subscribed == [0, 1, 2, 3]
    sink.subscription.cancel()


@pytest.mark.parametrize(
    "asynchronous",
    [
        lambda flow, pool: flow.subscribe_on(pool).retry(3),
        lambda flow, pool: flow.subscribe_on(pool).concat_with(Flow.empty()),
        lambda flow, pool: flow.subscribe_on(pool).map_parallel(lambda n: n, pool),
        lambda flow, pool: Flow.just(0).concat_map(lambda _: flow.subscribe_on(pool)),
    ],
    ids=["retry", "concat", "map_parallel", "concat_map"],
)
def test_all_of_flat_map_sequential_are_under_way_whatever_operator_comes_last(
    asynchronous: Callable[[Flow[int], Executor], Flow[int]], pool: Executor
) -> None:
    together = threading.Barrier(3)

    def meet(n: int) -> int:
        together.wait(PATIENCE)  # broken, if they come one after the other
        return n

    flow = Flow.range(3).flat_map_sequential(
        lambda n: asynchronous(Flow.from_callable(lambda: meet(n)), pool), concurrency=3
    )
    assert flow.to_list().block(timeout=PATIENCE) == [0, 1, 2]


def test_timers_in_flat_map_sequential_run_side_by_side() -> None:
    clock, sink = VirtualTimeExecutor(), Sink()
    Flow.range(4).flat_map_sequential(lambda n: Flow.just(n).delay(4 - n, clock=clock), concurrency=4).subscribe(sink)
    clock.advance(4)
    assert sink.elements == [0, 1, 2, 3]
    assert sink.end == ("on_complete",)


# -- demand ---------------------------------------------------------------------------------------------------

BOUNDED: dict[str, Callable[[Flow[int], ThreadPoolExecutor, Callable[[int], int]], Flow[Any]]] = {
    "flat_map": lambda f, p, work: f.flat_map(
        lambda n: Flow.from_callable(lambda: work(n)).subscribe_on(p), concurrency=4
    ),
    "flat_map_sequential": lambda f, p, work: f.flat_map_sequential(
        lambda n: Flow.from_callable(lambda: work(n)).subscribe_on(p), concurrency=4
    ),
    "map_parallel": lambda f, p, work: f.map_parallel(work, p, concurrency=4),
    "map_parallel, as they are done": lambda f, p, work: f.map_parallel(work, p, concurrency=4, ordered=False),
}


@pytest.mark.parametrize("name", BOUNDED)
def test_an_element_is_asked_for_when_one_has_ended_and_no_sooner(name: str, pool: ThreadPoolExecutor) -> None:
    source: TestPublisher[int] = TestPublisher()
    gates = [threading.Event() for _ in range(8)]
    sink = Sink()

    def work(n: int) -> int:
        gates[n].wait(PATIENCE)
        return n

    BOUNDED[name](Flow.from_publisher(source), pool, work).subscribe(sink)
    try:
        assert source.demand == 4
        source.emit(0, 1, 2, 3)
        for done in range(4):
            assert source.demand == 0 if not done else source.demand <= done
            gates[done].set()
            wait_until(lambda done=done: source.demand == done + 1)  # type: ignore[misc]
    finally:
        for gate in gates:
            gate.set()
    sink.subscription.cancel()


@pytest.mark.parametrize("concurrency", [1, 2, 5])
def test_what_a_filter_drops_is_asked_for_again(concurrency: int) -> None:
    source: TestPublisher[int] = TestPublisher()
    sink = Sink()
    numbers = Flow.from_publisher(source).filter(lambda n: n % 3 == 0)
    numbers.flat_map(Flow.just, concurrency=concurrency).subscribe(sink)
    for n in range(30):
        assert 0 < source.demand <= concurrency
        source.emit(n)
    source.complete()
    assert sink.elements == list(range(0, 30, 3))
    assert sink.end == ("on_complete",)


def test_chunks_ask_for_as_many_as_their_tasks_take(pool: ThreadPoolExecutor) -> None:
    source: TestPublisher[int] = TestPublisher()
    gate = threading.Event()
    sink = Sink()
    flow = Flow.from_publisher(source).map_parallel(lambda n: gate.wait(PATIENCE) and n, pool, concurrency=2, chunk=3)
    flow.subscribe(sink)
    asked = source.demand
    source.emit(*range(1, 7))
    still = source.demand
    gate.set()
    assert (asked, still) == (6, 0)
    wait_until(lambda: source.demand > 0)
    source.complete()
    assert sink.ended.wait(PATIENCE)
    assert sink.elements == list(range(1, 7))


# -- errors ---------------------------------------------------------------------------------------------------


def failing(n: int) -> Iterator[int]:
    yield from range(n)
    raise OSError("the source")


def three_and_an_error(n: int) -> Flow[int]:
    return Flow.range(10 * n, 10 * n + 3).concat_with(Flow.error(KeyError(n)))


async def one_or_an_error(n: int) -> int:
    if n % 2:
        raise KeyError(n)
    return n


def errors_of(sink: Sink) -> list[str]:
    error = sink.error
    return sorted(repr(item) for item in (error.exceptions if isinstance(error, ExceptionGroup) else [error]))


DELAYING = ["flat_map", "flat_map_sequential", "concat_map"]


@pytest.mark.parametrize("demand", [1, 100])
@pytest.mark.parametrize("on", ["the caller", "a pool"])
@pytest.mark.parametrize("operator", DELAYING)
def test_delayed_errors_all_come_and_no_element_is_lost(
    operator: str, on: str, demand: int, pool: ThreadPoolExecutor
) -> None:
    def inner(n: int) -> Flow[int]:
        if n == 2:
            raise ValueError("the function")
        return three_and_an_error(n)

    source: Flow[int] = Flow.from_supplier(lambda: failing(4))
    source = source.subscribe_on(pool) if on == "a pool" else source
    sink = Sink(demand, lambda item, element: item.subscription.request(demand))
    getattr(source, operator)(inner, delay_error=True).subscribe(sink)
    assert sink.ended.wait(PATIENCE)
    assert sorted(sink.elements) == [0, 1, 2, 10, 11, 12, 30, 31, 32]
    assert errors_of(sink) == [
        "KeyError(0)",
        "KeyError(1)",
        "KeyError(3)",
        "OSError('the source')",
        "ValueError('the function')",
    ]


@pytest.mark.parametrize("operator", DELAYING)
def test_an_error_of_the_source_waits_for_what_is_under_way(operator: str) -> None:
    outer, inner, sink = PublishProcessor[int](), UnicastProcessor[str](), Sink()
    getattr(outer, operator)(lambda n: inner, delay_error=True).subscribe(sink)
    outer.emit(1)
    inner.emit("a")
    outer.on_error(OSError("outer"))
    assert sink.end is None
    inner.emit("b")
    inner.on_complete()
    assert sink.elements == ["a", "b"]
    assert isinstance(sink.error, OSError)


def test_delayed_errors_of_coroutines_all_come() -> None:
    sink = Sink()
    source: Flow[int] = Flow.from_supplier(lambda: failing(6))
    source.flat_map(one_or_an_error, concurrency=3, delay_error=True).subscribe(sink)
    assert sink.ended.wait(PATIENCE)
    assert sorted(sink.elements) == [0, 2, 4]
    assert errors_of(sink) == ["KeyError(1)", "KeyError(3)", "KeyError(5)", "OSError('the source')"]


def two_that_fail(n: int) -> Flow[int]:
    """0 and 1 fail, 2 has an element, 3 does not end."""
    return Flow.error(KeyError(n)) if n < 2 else Flow.just(n) if n == 2 else Flow.never()


async def a_task_of_two_that_fail(n: int) -> int:
    if n < 2:
        raise KeyError(n)
    if n > 2:
        await asyncio.Event().wait()
    return n


KEEPING: dict[str, Callable[[], Flow[Any]]] = {
    "concat": lambda: Flow.concat(*map(two_that_fail, range(4)), delay_error=True),
    "merge": lambda: Flow.merge(*map(two_that_fail, range(4)), delay_error=True),
    "merge_with": lambda: two_that_fail(0).merge_with(*map(two_that_fail, range(1, 4)), delay_error=True),
    "flat_map": lambda: Flow.range(4).flat_map(two_that_fail, delay_error=True),
    "flat_map (coroutines)": lambda: Flow.range(4).flat_map(a_task_of_two_that_fail, delay_error=True),
    "flat_map_sequential": lambda: Flow.range(4).flat_map_sequential(two_that_fail, delay_error=True),
    "concat_map": lambda: Flow.range(4).concat_map(two_that_fail, delay_error=True),
}
BEHIND: dict[str, Callable[[Flow[Any]], Flow[Any]]] = {
    "nothing": lambda flow: flow,
    "a step": lambda flow: flow.map(lambda n: n),
    "an operator": lambda flow: flow.do_on_error(lambda error: None),
    "a drain": Flow.from_publisher,
}


def test_every_operator_that_delays_errors_is_among_those_below() -> None:
    methods = {name: getattr(Flow, name) for name in dir(Flow) if not name.startswith("_")}
    delaying = {name for name, method in methods.items() if "delay_error" in inspect.signature(method).parameters}
    assert delaying == {name.partition(" ")[0] for name in KEEPING}


@pytest.mark.parametrize("behind", BEHIND)
@pytest.mark.parametrize("name", KEEPING)
def test_errors_that_are_kept_go_to_the_hook_once_each_when_the_end_does_not_come(
    name: str, behind: str, dropped: list[Dropped]
) -> None:
    sink = Sink()
    BEHIND[behind](KEEPING[name]()).subscribe(sink)
    sink.wait_for(1)
    sink.subscription.cancel()
    wait_until(lambda: sum(item.error is not None for item in dropped) >= 2)
    assert sorted(repr(item.error) for item in dropped if item.error is not None) == ["KeyError(0)", "KeyError(1)"]
    assert (sink.elements, sink.end) == ([2], None)


def test_an_error_that_waits_for_demand_behind_elements_goes_to_the_hook(dropped: list[Dropped]) -> None:
    sink = Sink(0)
    source: PublishProcessor[int] = PublishProcessor()
    flow = Flow.merge(source, Flow.error(KeyError(0)), delay_error=True).flat_map_iterable(lambda n: [n, n])
    flow.subscribe(sink)
    sink.subscription.request(1)
    source.emit(1)
    source.on_complete()
    assert (sink.elements, sink.end) == ([1], None)
    sink.subscription.cancel()
    assert [repr(item.error) for item in dropped if item.error is not None] == ["KeyError(0)"]


@pytest.mark.parametrize("chunk", [1, 2, 3])
@pytest.mark.parametrize("ordered", [True, False])
def test_the_calls_in_flight_come_before_an_error_of_the_source(
    ordered: bool, chunk: int, pool: ThreadPoolExecutor
) -> None:
    failed, sink = threading.Event(), Sink()

    def numbers() -> Iterator[int]:
        yield from range(5)
        failed.set()
        raise OSError("the source")

    flow: Flow[int] = Flow.from_supplier(numbers)
    flow.map_parallel(
        lambda n: failed.wait(PATIENCE) and n, pool, concurrency=8, ordered=ordered, chunk=chunk
    ).subscribe(sink)
    assert sink.ended.wait(PATIENCE)
    assert sorted(sink.elements) == [0, 1, 2, 3, 4]
    assert isinstance(sink.error, OSError)


def test_an_error_of_a_call_in_flight_comes_first_and_the_sources_goes_to_the_hook(
    pool: ThreadPoolExecutor, dropped: list[Dropped]
) -> None:
    failed, sink = threading.Event(), Sink()

    def numbers() -> Iterator[int]:
        yield 0
        failed.set()
        raise OSError("the source")

    def work(n: int) -> int:
        failed.wait(PATIENCE)
        raise KeyError(n)

    Flow.from_supplier(numbers).map_parallel(work, pool, concurrency=8).subscribe(sink)
    assert sink.ended.wait(PATIENCE)
    assert isinstance(sink.error, KeyError)
    wait_until(lambda: [repr(item.error) for item in dropped] == ["OSError('the source')"])


@pytest.mark.parametrize("ordered", [True, False])
def test_an_error_within_a_chunk_comes_after_what_came_before_it_and_names_its_element(
    ordered: bool, pool: ThreadPoolExecutor
) -> None:
    sink = Sink()
    Flow.range(7).map_parallel(lambda n: 60 // (5 - n), pool, ordered=ordered, chunk=7).subscribe(sink)
    assert sink.ended.wait(PATIENCE)
    assert sink.elements == [12, 15, 20, 30, 60]
    assert isinstance(sink.error, ZeroDivisionError)
    assert "for element 6 of a chunk of 7: 5" in sink.error.__notes__


# -- rails ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("short", [0, 1])
def test_rails_end_though_one_of_them_has_cancelled(short: int, pool: ThreadPoolExecutor) -> None:
    takes, sink = iter([*[100][:short], 1, 100]), Sink()
    flow = Flow.range(40).parallel(2, prefetch=4).run_on(pool).rails(lambda rail: rail.take(next(takes)))
    flow.sequential().subscribe(sink)
    assert sink.ended.wait(PATIENCE)
    assert sink.end == ("on_complete",)


def test_the_source_is_cancelled_when_every_rail_has_cancelled(pool: ThreadPoolExecutor) -> None:
    cancelled, sink = threading.Event(), Sink()
    source = Flow.from_supplier(itertools.count).do_on_cancel(cancelled.set)
    rails = source.parallel(2, prefetch=4).run_on(pool).rails(lambda rail: rail.take(1).concat_with(Flow.never()))
    rails.sequential().subscribe(sink)
    assert cancelled.wait(PATIENCE)
    assert sink.end is None
    sink.subscription.cancel()


def test_an_element_for_a_rail_that_has_just_cancelled_goes_to_another(pool: ThreadPoolExecutor) -> None:
    with hooks.captured() as drops:
        for _ in range(20):
            takes, sink = iter([3, 10_000]), Sink()

            def some(rail: Flow[int], takes: Iterator[int] = takes) -> Flow[int]:
                return rail.take(next(takes))

            flow = Flow.range(500).parallel(2, prefetch=1).run_on(pool).rails(some)
            flow.sequential().subscribe(sink)
            assert sink.ended.wait(PATIENCE)
            got = [*sink.elements, *(drop.element for drop in drops)]
            assert sorted(got) == list(range(500))
            drops.clear()


# -- recursive flows ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lazy", [False, True], ids=["itself", "deferred"])
@pytest.mark.parametrize("operator", ["flat_map", "concat_map", "switch_map"])
def test_a_recursive_flow_goes_as_deep_as_is_demanded(operator: str, lazy: bool) -> None:
    calls: list[int] = []

    def again(n: int) -> Flow[int]:
        assert len(calls) < 100, "it is called ahead of demand"
        calls.append(n)
        return Flow.just(n).concat_with(Flow.defer(lambda: flow) if lazy else flow)

    flow: Flow[int] = getattr(Flow.just(1), operator)(again)
    assert flow.take(5).to_list().block() == [1] * 5
    assert len(calls) == 5
    assert list(itertools.islice(flow, 5)) == [1] * 5
    assert len(calls) == 10
    flow.subscribe(sink := Sink(demand=1))
    assert len(calls) == 11
    sink.subscription.request(2)
    assert len(calls) == 13
    sink.subscription.cancel()


@pytest.mark.parametrize(
    "over",
    [
        lambda inner: Flow.just(0).flat_map(lambda _: inner, prefetch=8),
        lambda inner: Flow.just(0).switch_map(lambda _: inner, prefetch=8),
        lambda inner: Flow.just(0).expand(lambda n: inner if n == 0 else Flow.empty()).skip(1),
        lambda inner: Flow.merge(inner, Flow.never(), prefetch=8),
    ],
    ids=["flat_map", "switch_map", "expand", "merge"],
)
def test_no_more_is_asked_of_what_is_pulled_than_demanded(over: Callable[[Flow[int]], Flow[int]]) -> None:
    probe = Probe(Flow.range(1, 100))
    over(Flow.empty().concat_with(Flow.from_publisher(probe))).subscribe(sink := Sink(demand=3))
    assert (sink.elements, probe.requested) == ([1, 2, 3], 3)
    sink.subscription.request(50)
    assert len(sink.elements) == 53
    assert probe.requested <= 53 + 8
    sink.subscription.cancel()
