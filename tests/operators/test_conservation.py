"""An element that was made is delivered, discarded, or refused by the operator's own rule, wherever a cancel comes.

Elements remember what they were made of. An operator's rule, to filter, to add up, is known from a run to the end of a
source that has just the elements that were made before the cancel: an element that is missing there may be missing
after the cancel too. Each other has to be delivered, or has to come to the hook.
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sinks import PATIENCE, Sink

from operators.catalogue import CASES, Case, Place
from reactive_runtime import MAX_DEMAND, Flow, Notification, hooks
from reactive_runtime.executors import VirtualTimeExecutor

BY_DAY, BY_NIGHT = 40, 1_000
"""Cancels of each operator."""

ELEMENTS = 10


WORKERS = 4
KEPT = {
    "flat_map": 16,
    "flat_map (on a pool)": 3,
    "flat_map_sequential": 16,
    "flat_map_sequential (on a pool)": 3,
    "concat_map": 1,
    "switch_map": 1,
    "flat_map (coroutines)": 3,
    "map_parallel (coroutines)": 3,
    "cache": ELEMENTS,
    "sum": ELEMENTS,
}
"""How many elements a function of the case may have put into cold flows that were not pulled, or may have in coroutines
that were cancelled; and how many an operator keeps for later subscribers, or has added up."""


class Traced(int):
    """A number that remembers which elements of the source it was made of."""

    origins: tuple[int, ...] = ()

    @classmethod
    def of(cls, number: int, *made_of: object) -> Traced:
        made = cls(number)
        made.origins = tuple(serial for one in made_of for serial in serials(one))
        return made

    def __add__(self, other: int) -> Traced:
        return Traced.of(int(self) + int(other), self, other)

    __radd__ = __add__

    def __mod__(self, other: int) -> Traced:
        return Traced.of(int(self) % other, self)

    def __floordiv__(self, other: int) -> Traced:
        return Traced.of(int(self) // other, self)


def serials(value: object) -> Iterator[int]:
    """What a value was made of."""
    if isinstance(value, Traced):
        yield from value.origins
    elif isinstance(value, dict):
        for one in value.values():
            yield from serials(one)
    elif isinstance(value, list | tuple | set):
        for one in value:
            yield from serials(one)
    elif isinstance(value, Notification):
        yield from serials(value.element)


class Source:
    """Makes numbers, and does something when it makes the n-th."""

    def __init__(self, at: int = -1, then: Callable[[], object] = int, elements: int = ELEMENTS) -> None:
        self.at = at
        self.then = then
        self.elements = elements
        self.made: list[Traced] = []  # the thread that pulls
        self.opened = self.closed = 0

    def numbers(self) -> Iterator[Traced]:
        self.opened += 1
        try:
            for number in range(self.elements):
                traced = Traced(number)
                traced.origins = (len(self.made),)
                self.made.append(traced)
                if len(self.made) == self.at:
                    self.then()
                yield traced
        finally:
            self.closed += 1


ORIGINS: dict[str, Callable[[Source, ThreadPoolExecutor], Flow[Any]]] = {
    "fused": lambda source, pool: Flow.from_supplier(source.numbers),
    "not fused": lambda source, pool: Flow.from_publisher(Flow.from_supplier(source.numbers)),
    "on another thread": lambda source, pool: Flow.from_supplier(source.numbers).subscribe_on(pool),
}


class Cancelling(Sink):
    """Asks for `demand` again and again, and cancels at the n-th element, or when it is called to."""

    def __init__(self, demand: int, at: int) -> None:
        super().__init__(demand, Cancelling.look)
        self.at = at
        self.left = threading.Event()

    def look(self, element: object) -> None:
        if len(self.elements) == self.at:
            self.cancel()
        elif self.demand != MAX_DEMAND and len(self.elements) % self.demand == 0:
            self.subscription.request(self.demand)

    def cancel(self) -> None:
        self.left.set()
        self.subscription.cancel()

    def cancel_elsewhere(self) -> None:
        """On another thread, which is waited for."""
        thread = threading.Thread(target=self.cancel)
        thread.start()
        thread.join()


class Run:
    """One run of a case, to its end or to a cancel."""

    def __init__(self, case: Case, origin: str, pool: ThreadPoolExecutor, source: Source, sink: Cancelling) -> None:
        self.source, self.sink = source, sink
        self.clock = VirtualTimeExecutor()
        self.drops: list[hooks.Dropped] = []
        with hooks.captured() as self.drops:
            case.apply(ORIGINS[origin](source, pool), Place(pool, self.clock)).subscribe(sink)
            over = sink.ended if sink.at < 0 and source.at < 0 else sink.left
            assert self.comes(lambda: over.is_set() or sink.ended.is_set()), "no end"
            for _ in range(3):  # what it left to the pool is done when each of its threads has done something else
                barrier = threading.Barrier(WORKERS)
                for done in [pool.submit(barrier.wait, PATIENCE) for _ in range(WORKERS)]:
                    done.result()
                self.clock.advance(0.25)
            assert self.comes(lambda: source.opened == source.closed), "an iterator was left open"

    def comes(self, what: Callable[[], bool], patience: float = PATIENCE) -> bool:
        """Let time pass until that holds."""
        for _ in range(int(patience * 500)):
            if what():
                return True
            self.clock.advance(0.25)
            threading.Event().wait(0.0005)
        return False

    def lost(self) -> Counter[int]:
        """What the source made that was neither delivered nor discarded, by its number."""
        known = {serial for element in self.sink.elements for serial in serials(element)}
        known.update(serial for drop in list(self.drops) for serial in serials(drop.element))
        return Counter(int(one) for serial, one in enumerate(self.source.made) if serial not in known)


@pytest.fixture(scope="module")
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(WORKERS, "conservation") as executor:
        yield executor


def cancels(case: Case, number: int, pool: ThreadPoolExecutor) -> Iterator[str]:
    """What does not hold of so many random cancels."""
    chance = random.Random(case.name)
    by_rule: dict[tuple[str, int], Counter[int]] = {}
    for _ in range(number):
        origin, demand = chance.choice(list(ORIGINS)), chance.choice([1, 2, 3, 7, MAX_DEMAND])
        at, by = chance.randrange(1, ELEMENTS + 1), chance.choice(["subscriber", "source", "another thread"])
        sink = Cancelling(demand, at if by == "subscriber" else -1)
        source = Source(at, sink.cancel if by == "source" else sink.cancel_elsewhere)
        if by == "subscriber":
            source.at = -1
        run = Run(case, origin, pool, source, sink)
        key = origin, min(len(source.made), ELEMENTS)
        if run.lost() and key not in by_rule:  # what the operator drops, or uses up, of so many elements
            by_rule[key] = Run(case, origin, pool, Source(elements=key[1]), Cancelling(MAX_DEMAND, -1)).lost()
        lost = run.lost() - by_rule.get(key, Counter())
        if lost.total() > KEPT.get(case.name, 0):
            yield f"{origin}, demand {demand}, cancelled by {by} at {at}: lost {dict(lost)}, got {sink.elements}"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_was_made_is_delivered_or_discarded(case: Case, pool: ThreadPoolExecutor, dropped: list[Any]) -> None:
    assert list(cancels(case, BY_DAY, pool)) == []


@pytest.mark.nightly
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_thousand_cancels_lose_nothing(case: Case, pool: ThreadPoolExecutor, dropped: list[Any]) -> None:
    assert list(cancels(case, BY_NIGHT, pool)) == []
