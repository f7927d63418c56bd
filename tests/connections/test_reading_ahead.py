"""A hot source behind a boundary: its readers take what has come in pieces, and hear of an element when they rest."""

from __future__ import annotations

import gc
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial
from typing import Any
from weakref import ref

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from searching import holds_with_few_preemptions

from connections.parties import Hand, Here, Listener, OnCall
from reactive_runtime import Flow, hooks
from reactive_runtime._core.drains.drain_context import DrainContext
from reactive_runtime._core.queues.multicaster import Multicaster
from reactive_runtime._spec import MAX_DEMAND
from reactive_runtime.explore import explore
from reactive_runtime.hot import BehaviorProcessor, EmitResult, PublishProcessor, ReplayProcessor


class Counted:
    """A lock that counts how often it is taken."""

    def __init__(self, lock: Any) -> None:
        self.lock = lock
        self.taken = 0

    def __enter__(self) -> None:
        self.lock.acquire()
        self.taken += 1

    def __exit__(self, *_: object) -> None:
        self.lock.release()


def same(element: Any) -> Any:
    return element


# -- what it costs -------------------------------------------------------------------------------------------------


def test_the_lock_of_the_source_is_taken_for_a_piece_and_not_for_each_element() -> None:
    hot: PublishProcessor[int] = PublishProcessor()
    pool, listener = OnCall(), Listener(MAX_DEMAND)
    hot.publish_on(pool, prefetch=64).subscribe(listener)
    for n in range(128):
        assert hot.emit(n) is EmitResult.OK
    multicaster: Multicaster = hot._multicaster
    counted: Any = Counted(multicaster._lock)
    multicaster._lock = counted
    pool.run_all()
    assert listener.elements == list(range(128))
    assert counted.taken <= 128 / 16 + 4


class Element:
    pass


@pytest.mark.parametrize("prefetch", [1, 2, 3, 64, 256])
@pytest.mark.parametrize("n", [1, 2, 50])
def test_what_was_handed_on_is_not_kept_while_the_source_rests(prefetch: int, n: int) -> None:
    hot: PublishProcessor[Element] = PublishProcessor()
    pool, seen = OnCall(), [0]

    def count(_: Element) -> None:
        seen[0] += 1

    handle = hot.publish_on(pool, prefetch=prefetch).subscribe(count)
    kept: list[ref[Element]] = []
    for _ in range(n):
        element = Element()
        kept.append(ref(element))
        assert hot.emit(element) is EmitResult.OK
        del element
    pool.run_all()
    gc.collect()
    assert seen == [n]
    assert [one() for one in kept] == [None] * n
    handle.cancel()


def test_an_emission_costs_nothing_for_a_subscriber_that_has_something_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    hot: PublishProcessor[int] = PublishProcessor()
    pool, listener = OnCall(), Listener(MAX_DEMAND)
    hot.publish_on(pool).subscribe(listener)
    pool.run_all()
    hot.emit(0)
    looks: list[Any] = []
    claim = DrainContext.claim

    def counted(drain: DrainContext) -> Any:
        looks.append(drain)
        return claim(drain)

    monkeypatch.setattr(DrainContext, "claim", counted)
    for n in range(1, 100):
        hot.emit(n)
    assert looks == []
    pool.run_all()
    assert listener.elements == list(range(100))


@pytest.mark.parametrize("taken", range(6))
def test_what_waits_for_one_that_leaves_goes_to_the_hook(taken: int, dropped: list[hooks.Dropped]) -> None:
    hot: PublishProcessor[int] = PublishProcessor()
    pool, listener = OnCall(), Listener(MAX_DEMAND, cancels_in=taken)
    hot.publish_on(pool, prefetch=8).subscribe(listener)  # so pieces have two elements
    for n in range(5):
        hot.emit(n)
    pool.run_all()
    assert listener.elements == list(range(min(taken, 5)))
    assert [item.element for item in dropped] == list(range(taken, 5))


def test_what_is_kept_for_others_is_not_lost_with_one_that_leaves(dropped: list[hooks.Dropped]) -> None:
    hot: ReplayProcessor[int] = ReplayProcessor(2)
    pool, listener = OnCall(), Listener(MAX_DEMAND, cancels_in=1)
    hot.publish_on(pool, prefetch=32).subscribe(listener)  # a piece has all of them
    for n in range(5):
        hot.emit(n)
    pool.run_all()
    assert [item.element for item in dropped] == [1, 2]


# -- what it does: the same as a prefetch queue -------------------------------------------------------------------

KINDS: dict[str, Callable[[int], Any]] = {
    "publish": lambda capacity: PublishProcessor(capacity=capacity),
    "replay 3": lambda capacity: ReplayProcessor(3, capacity=capacity),
    "replay 1": lambda capacity: ReplayProcessor(1, capacity=capacity),
    "behavior": lambda capacity: BehaviorProcessor(-1, capacity=capacity),
}

MOVES = st.one_of(
    st.tuples(st.just("subscribe"), st.integers(0, 3)),
    st.tuples(st.just("request"), st.integers(0, 2), st.integers(1, 5)),
    st.tuples(st.just("cancel"), st.integers(0, 2)),
    st.tuples(st.just("emit"), st.integers(1, 16)),
    st.tuples(st.just("source emits"), st.integers(1, 8)),
    st.tuples(st.just("run")),
    st.tuples(st.just("run all")),
    st.tuples(st.just("end"), st.booleans()),
)


class Moved:
    """One hot source, with subscribers behind a boundary."""

    def __init__(self, kind: str, capacity: int, *, fed: bool, behind: Callable[[Flow[Any], Executor], Any]) -> None:
        self.hot = KINDS[kind](capacity)
        self.hand = Hand()
        if fed:
            self.hand.subscribe(self.hot)
        self.pool = OnCall()
        self.flow = behind(self.hot, self.pool)
        self.listeners: list[Listener] = []
        self.error = OSError("broken")
        self.number = 0
        self.emissions: list[EmitResult] = []

    def move(self, what: str, *arguments: Any) -> None:
        match what, *arguments:
            case "subscribe", demand:
                self.listeners.append(Listener(demand))
                self.flow.subscribe(self.listeners[-1])
            case "request", at, n:
                for listener in self.listeners[at : at + 1]:
                    listener.subscription.request(n)
            case "cancel", at:
                for listener in self.listeners[at : at + 1]:
                    listener.subscription.cancel()
            case "emit", n:
                for _ in range(n):
                    self.number += 1
                    self.emissions.append(self.hot.emit(self.number))
            case "source emits", n:
                for held in self.hand.held:
                    for _ in range(n):
                        self.number += 1
                        held.emit(self.number)
            case ("run",):
                self.pool.run()
            case ("run all",):
                self.pool.run_all()
            case "end", fails:
                if not self.hand.held:
                    self.hot.on_error(self.error) if fails else self.hot.on_complete()

    def seen(self) -> Any:
        """All that a test can see of it, at rest."""
        heard = [(listener.elements, [end == "complete" for end in listener.ends]) for listener in self.listeners]
        return heard, self.emissions, self.demand() is not None, self.hot.subscribers()

    def demand(self) -> int | None:
        """How much the source is asked for; None: it is not there."""
        return next((held.demand for held in self.hand.held if held.live), None)


@given(
    kind=st.sampled_from(sorted(KINDS)),
    capacity=st.integers(1, 6),
    prefetch=st.integers(1, 9),
    fed=st.booleans(),
    moves=st.lists(MOVES, max_size=30),
)
@example(
    kind="behavior", capacity=1, prefetch=1, fed=False, moves=[("subscribe", 0), ("request", 0, 2), ("emit", 3)]
)  # what it holds after it has made room once
def test_it_does_what_a_prefetch_queue_does(
    kind: str, capacity: int, prefetch: int, fed: bool, moves: list[tuple[Any, ...]]
) -> None:
    # A step before the boundary is made on the thread that emits, and a prefetch queue has to stand behind it.
    queued = Moved(kind, capacity, fed=fed, behind=lambda hot, pool: hot.map(same).publish_on(pool, prefetch=prefetch))
    read = Moved(kind, capacity, fed=fed, behind=lambda hot, pool: hot.publish_on(pool, prefetch=prefetch))
    before = hooks.set_handler(lambda dropped: None)
    try:
        for what, *arguments in [*moves, ("run all",), *(("request", at, 99) for at in range(3)), ("run all",)]:
            given = arguments
            if what == "source emits":  # what it was asked for may come in other batches
                given = [min(queued.demand() or 0, read.demand() or 0, *arguments)]
            for moved in (queued, read):
                moved.move(what, *given)
                if what in ("request", "cancel", "emit", "source emits"):
                    moved.pool.run_all()
            if not queued.pool.tasks and not read.pool.tasks:
                assert read.seen() == queued.seen(), (what, *given)
    finally:
        hooks.set_handler(before)


# -- nothing is lost, in any schedule -------------------------------------------------------------------------------


class EmissionBesideTheLastLook:
    """One emits while the reader comes to the end of what there is: it finds the element, or hears of it."""

    def __init__(self) -> None:
        self.hot: PublishProcessor[int] = PublishProcessor(capacity=4)
        self.one = Listener(0)
        self.hot.publish_on(Here(), prefetch=2).subscribe(self.one)
        self.hot.emit(1)

    def actor_a(self) -> None:
        self.hot.emit(2)

    def actor_b(self) -> None:
        self.one.subscription.request(9)

    def at_end(self) -> None:
        assert self.one.elements == [1, 2]


class TwoEmissions(EmissionBesideTheLastLook):
    """Two emit, and the reader is woken by one of them."""

    def __init__(self) -> None:
        super().__init__()
        self.one.subscription.request(9)

    def actor_b(self) -> None:
        self.hot.emit(3)

    def at_end(self) -> None:
        assert sorted(self.one.elements) == [1, 2, 3]


class EmissionBesideCancel(EmissionBesideTheLastLook):
    """One of two goes: the other gets all."""

    def __init__(self) -> None:
        super().__init__()
        self.two = Listener(9)
        self.hot.publish_on(Here(), prefetch=1).subscribe(self.two)
        self.one.subscription.request(1)

    def actor_b(self) -> None:
        self.one.subscription.cancel()

    def at_end(self) -> None:
        assert self.two.elements == [2]
        assert self.hot.subscribers() == 1
        assert [self.hot.emit(n) for n in range(3, 9)] == [EmitResult.OK] * 6


class EmissionBesideTheEnd(EmissionBesideTheLastLook):
    """What was emitted before the end comes before it."""

    def __init__(self) -> None:
        super().__init__()
        self.one.subscription.request(9)
        self.emission: EmitResult | None = None

    def actor_a(self) -> None:
        self.emission = self.hot.emit(2)

    def actor_b(self) -> None:
        self.hot.on_complete()

    def at_end(self) -> None:
        assert self.one.elements == ([1, 2] if self.emission is EmitResult.OK else [1])
        assert self.one.ends == ["complete"]


@pytest.mark.parametrize(
    "scenario", [EmissionBesideTheLastLook, TwoEmissions, EmissionBesideCancel, EmissionBesideTheEnd]
)
def test_in_every_schedule_nothing_is_lost(scenario: type, dropped: list[hooks.Dropped]) -> None:
    holds_with_few_preemptions(partial(explore, scenario))
