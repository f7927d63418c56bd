"""Rails are dealt to in portions, and woken when they have found nothing; each element goes to one rail, and comes."""

from __future__ import annotations

import random
from collections import Counter
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from searching import holds_with_few_preemptions

from connections.parties import Hand, Listener, OnCall
from reactive_runtime import Flow, hooks
from reactive_runtime._core.drains.drain_context import DrainContext
from reactive_runtime._core.queues.subscriber_buffer import SubscriberBuffer
from reactive_runtime._spec import MAX_DEMAND
from reactive_runtime.explore import explore

# -- what it costs -------------------------------------------------------------------------------------------------


def test_the_room_of_a_rail_is_looked_at_for_a_portion_and_not_for_each_element(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pool, listener, counted = OnCall(), Listener(MAX_DEMAND), Counter[str]()
    for name in ("room", "room_left", "has_cancelled"):
        look = getattr(SubscriberBuffer, name)

        def counting(buffer: SubscriberBuffer, look: object = look, name: str = name) -> object:
            counted[name] += 1
            return look(buffer)  # type: ignore[operator]

        monkeypatch.setattr(SubscriberBuffer, name, counting)
    Flow.range(1_000).parallel(2, prefetch=64).run_on(pool).sequential().subscribe(listener)
    pool.run_all()
    assert sorted(listener.elements) == list(range(1_000))
    assert sum(counted.values()) <= 1_000 / 4


def test_a_rail_that_has_something_to_do_is_not_woken(monkeypatch: pytest.MonkeyPatch) -> None:
    source, pool, listener = Hand(), OnCall(), Listener(MAX_DEMAND)
    flow = Flow.from_publisher(source).parallel(1).run_on(pool).sequential()
    flow.subscribe(listener)
    pool.run_all()
    source.held[0].emit(0)
    woken: list[DrainContext] = []
    wake = DrainContext.wake

    def waking(drain: DrainContext) -> None:
        woken.append(drain)
        wake(drain)

    monkeypatch.setattr(DrainContext, "wake", waking)
    for n in range(1, 100):
        source.held[0].emit(n)
    assert woken == []
    pool.run_all()
    assert listener.elements == list(range(100))


# -- what it does ----------------------------------------------------------------------------------------------------


@given(
    rails=st.integers(1, 4),
    prefetch=st.integers(1, 9),
    elements=st.integers(0, 40),
    leaving=st.lists(st.integers(1, 8), max_size=3),
    seed=st.integers(0, 2**32),
)
def test_each_element_comes_once_whichever_rail_works_next(
    rails: int, prefetch: int, elements: int, leaving: list[int], seed: int
) -> None:
    """Some rails take so many, and leave; tasks run, demand and elements come, in any order."""
    chance, source, pool, listener = random.Random(seed), Hand(), OnCall(), Listener(0)
    takes = iter(leaving[: rails - 1])
    seen: list[list[int]] = []

    def kept(rail: Flow[int]) -> Flow[int]:
        mine: list[int] = []
        seen.append(mine)
        rail = rail.do_on_next(mine.append)
        most = next(takes, None)
        return rail if most is None else rail.take(most)

    dropped: list[hooks.Dropped] = []
    before = hooks.set_handler(dropped.append)
    try:
        flow = Flow.from_publisher(source).parallel(rails, prefetch=prefetch).run_on(pool).rails(kept).sequential()
        flow.subscribe(listener)
        given = 0
        for _ in range(60 * (elements + 1)):
            if given == elements and not pool.tasks:
                break
            for held in source.held:
                for _ in range(min(chance.randrange(4), held.demand, elements - given)):
                    held.emit(given)
                    given += 1
            pool.tasks.rotate(chance.randrange(3))
            for _ in range(chance.randrange(4)):
                pool.run()
            listener.subscription.request(chance.randrange(1, 4))
            assert len(listener.elements) <= given
        for held in source.held:
            held.end(None)
        listener.subscription.request(MAX_DEMAND)
        pool.run_all()
    finally:
        hooks.set_handler(before)
    assert [end == "complete" for end in listener.ends] == [True]
    # What was dealt to a rail that has left before it took it goes to the hook.
    assert sorted([*listener.elements, *(item.element for item in dropped)]) == list(range(elements))
    assert sorted(listener.elements) == sorted(element for mine in seen for element in mine)


# -- nothing is lost, in any schedule ------------------------------------------------------------------------------


class ElementBesideTheLastLook:
    """An element comes while a rail, on another thread, comes to the end of what there is."""

    def __init__(self) -> None:
        self.source, self.one, self.pool = Hand(), Listener(MAX_DEMAND), OnCall()
        flow = Flow.from_publisher(self.source).parallel(1, prefetch=4).run_on(self.pool).sequential()
        flow.subscribe(self.one)
        self.pool.run_all()
        self.source.held[0].emit(1)

    def actor_a(self) -> None:
        self.source.held[0].emit(2)

    def actor_b(self) -> None:
        self.pool.run()

    def at_end(self) -> None:
        self.pool.run_all()
        assert self.one.elements == [1, 2]


class TheEndBesideTheLastLook(ElementBesideTheLastLook):
    """The source ends instead."""

    def actor_a(self) -> None:
        self.source.held[0].end(None)

    def at_end(self) -> None:
        self.pool.run_all()
        assert self.one.elements == [1]
        assert len(self.one.ends) == 1


@pytest.mark.parametrize("scenario", [ElementBesideTheLastLook, TheEndBesideTheLastLook])
def test_nothing_is_lost_with_few_preemptions(scenario: type) -> None:
    holds_with_few_preemptions(partial(explore, scenario))
