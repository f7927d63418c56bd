"""An element that was made is delivered, discarded, or refused by the operator's own rule, wherever a cancel comes.

Elements remember what they were made of. An operator's rule, to filter, to add up, is known from a run to the end of a
source that has just the elements that were made before the cancel: an element that is missing there may be missing
after the cancel too. Each other has to be delivered, or has to come to the hook.

Where a function makes inner flows, or lists, the balance is exact (`EXACT`): the function has used its element up, and
each element of an inner flow counts from when the flow is asked for it, each of a list from when the list is made.
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
from reactive_runtime._core.runtime import eventloop
from reactive_runtime.executors import VirtualTimeExecutor

BY_DAY, BY_NIGHT = 40, 1_000
"""Cancels of each operator."""

ELEMENTS = 10


WORKERS = 4
OF_EACH = 3
"""Elements in each inner flow, and in each list."""


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


class Summand(Traced):
    """A number that is used up when it is added."""

    source: Source

    def __add__(self, other: int) -> Traced:
        self.source.spend(self)
        return super().__add__(other)

    def __radd__(self, other: int) -> Traced:
        return self + other


class Source:
    """Makes numbers, and does something when it makes the n-th."""

    def __init__(self, at: int = -1, then: Callable[[], object] = int, elements: int = ELEMENTS) -> None:
        self.at = at
        self.then = then
        self.elements = elements
        self.lock = threading.Lock()
        self.made: list[Traced] = []  # lock; the numbers, and the elements of inner flows and of lists
        self.spent: set[int] = set()  # lock; what the functions have used up, by its serial
        self.opened = self.closed = 0  # lock; its own iterator, and those of inner flows
        self.numbered = 0  # the thread that pulls
        self.left = 0  # lock; how many inner flows were left in the middle

    def make(self, number: int) -> Traced:
        """A new element, made of no other."""
        traced = Traced(number)
        with self.lock:
            traced.origins = (len(self.made),)
            self.made.append(traced)
        return traced

    def spend(self, element: Traced) -> None:
        with self.lock:
            self.spent.update(element.origins)

    def summand(self, element: Traced) -> Summand:
        made = Summand(element)
        made.origins, made.source = element.origins, self
        return made

    def numbers(self) -> Iterator[Traced]:
        with self.lock:
            self.opened += 1
        try:
            for number in range(self.elements):
                traced = self.make(number)
                self.numbered += 1
                if self.numbered == self.at:
                    self.then()
                yield traced
        finally:
            with self.lock:
                self.closed += 1

    def inner(self, element: Traced, *, spent: bool = True) -> Flow[Traced]:
        """A cold flow, which makes its elements when it is asked for them. `spent`: the function used up its own."""
        if spent:
            self.spend(element)
        return Flow.from_supplier(self.pulled)

    def pulled(self) -> Iterator[Traced]:
        ended = False
        with self.lock:
            self.opened += 1
        try:
            for number in range(OF_EACH):
                yield self.make(100 + number)
            ended = True
        finally:
            with self.lock:
                self.closed += 1
                self.left += not ended

    def several(self, element: Traced) -> list[Traced]:
        self.spend(element)
        return [self.make(100 + number) for number in range(OF_EACH)]


Exact = Callable[[Flow[Any], Place, Source], Flow[Any]]

EXACT: dict[str, Exact] = {
    "flat_map_iterable": lambda f, p, s: f.flat_map_iterable(s.several),
    "flatten": lambda f, p, s: f.map(s.several).flatten(),
    "flat_map": lambda f, p, s: f.flat_map(s.inner),
    "flat_map (on a pool)": lambda f, p, s: f.flat_map(
        lambda n: s.inner(n).subscribe_on(p.pool), concurrency=3, prefetch=1
    ),
    "flat_map_sequential": lambda f, p, s: f.flat_map_sequential(s.inner),
    "flat_map_sequential (on a pool)": lambda f, p, s: f.flat_map_sequential(
        lambda n: s.inner(n).subscribe_on(p.pool), concurrency=3, prefetch=2
    ),
    "concat_map": lambda f, p, s: f.concat_map(s.inner),
    "switch_map": lambda f, p, s: f.switch_map(s.inner),
    "expand": lambda f, p, s: f.expand(lambda n: s.inner(n, spent=False) if n < ELEMENTS else Flow.empty()),
    "sum": lambda f, p, s: f.map(s.summand).sum(),
}
"""The operators whose functions make elements, or use them up: where one is made, and where it is used up, is known."""

EXACT_AS_THEY_ARE = {
    "flat_map (coroutines)",
    "map_parallel (coroutines)",
    "map_parallel",
    "publish_on",
    "cache",
    "replay",
}
"""Those of the catalogue that use up nothing."""

HOLDING = {"flat_map_iterable", "flatten", "flat_map (on a pool)", "flat_map_sequential (on a pool)"}
"""Those that have elements of a function in hand, of which some cancels have to find one."""

KEEPING = {"cache", "replay"}
"""These keep what they have for later subscribers, by contract, `replay` only after the end."""


ORIGINS: dict[str, Callable[[Source, ThreadPoolExecutor], Flow[Any]]] = {
    "fused": lambda source, pool: Flow.from_supplier(source.numbers),
    "not fused": lambda source, pool: Flow.from_publisher(Flow.from_supplier(source.numbers)),
    "on another thread": lambda source, pool: Flow.from_supplier(source.numbers).subscribe_on(pool),
}


class Cancelling(Sink):
    """Asks for `demand` again and again, and cancels at the n-th element, or when it is called to.

    `waits`: it asks for so many once, and cancels when what was made ahead waits for more demand.
    """

    def __init__(self, demand: int, at: int, *, waits: bool = False) -> None:
        super().__init__(demand, Cancelling.look)
        self.at = at
        self.waits = waits
        self.had_enough = threading.Event()
        self.left = threading.Event()

    def look(self, element: object) -> None:
        if self.waits:
            if len(self.elements) == self.demand:
                self.had_enough.set()
        elif len(self.elements) == self.at:
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
            apply: Exact = EXACT.get(case.name, lambda flow, place, source: case.apply(flow, place))
            flow = apply(ORIGINS[origin](source, pool), Place(pool, self.clock), source)
            flow.subscribe(sink)
            if sink.waits:
                self.comes(lambda: sink.had_enough.is_set() or sink.ended.is_set(), 1.0)  # debounce gives it nothing
                self.settle(pool)
                sink.cancel()
            over = sink.ended if sink.at < 0 and source.at < 0 and not sink.waits else sink.left
            assert self.comes(lambda: over.is_set() or sink.ended.is_set()), "no end"
            self.settle(pool)
            assert self.comes(lambda: eventloop.wait_until_ended(0.0)), "a coroutine still runs"  # it drops the rest
            self.kept: list[Any] = []
            if case.name in KEEPING:
                later = Sink()
                flow.subscribe(later)
                assert self.comes(later.ended.is_set), "no end for one who came later"
                self.kept = later.elements
            assert self.comes(lambda: source.opened == source.closed), "an iterator was left open"
            if case.name in EXACT or case.name in EXACT_AS_THEY_ARE:
                self.comes(lambda: not self.lost())  # a pool drops what it has

    def settle(self, pool: ThreadPoolExecutor) -> None:
        """What it left to the pool is done when each of its threads has done something else."""
        for _ in range(3):
            barrier = threading.Barrier(WORKERS)
            for done in [pool.submit(barrier.wait, PATIENCE) for _ in range(WORKERS)]:
                done.result()
            self.clock.advance(0.25)

    def comes(self, what: Callable[[], bool], patience: float = PATIENCE) -> bool:
        """Let time pass until that holds."""
        for _ in range(int(patience * 500)):
            if what():
                return True
            self.clock.advance(0.25)
            threading.Event().wait(0.0005)
        return False

    def lost(self) -> Counter[int]:
        """What was made, and was neither delivered, nor discarded, nor used up, nor kept, by its number."""
        known = {serial for element in self.sink.elements + self.kept for serial in serials(element)}
        known.update(serial for drop in list(self.drops) for serial in serials(drop.element))
        with self.source.lock:
            known |= self.source.spent
            return Counter(int(one) for serial, one in enumerate(self.source.made) if serial not in known)

    def found_in_hand(self) -> bool:
        """Whether an element of an inner flow, or of a list, was dropped."""
        return any(isinstance(drop.element, Traced) and drop.element >= 100 for drop in list(self.drops))

    def in_the_middle(self) -> bool:
        """Whether something was in hand at the cancel: an element that was dropped, or an inner flow that was left."""
        if self.sink.ended.is_set():
            return False
        dropped = any(True for drop in list(self.drops) for _ in serials(drop.element))
        return dropped or self.source.left > 0 or (bool(self.source.spent) and not self.sink.elements)


@pytest.fixture(scope="module")
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(WORKERS, "conservation") as executor:
        yield executor


def a_cancel(case: Case, chance: random.Random, pool: ThreadPoolExecutor) -> tuple[Run, str, str]:
    """A run with a cancel at random; its origin, and what it was."""
    origin, demand = chance.choice(list(ORIGINS)), chance.choice([1, 2, 3, 7, MAX_DEMAND])
    at, by = chance.randrange(1, ELEMENTS + 1), chance.choice(["subscriber", "source", "another thread"])
    waits = chance.random() < (0.5 if case.name in HOLDING else 0.2)
    sink = Cancelling(at if waits else demand, at if by == "subscriber" else -1, waits=waits)
    source = Source(at, sink.cancel if by == "source" else sink.cancel_elsewhere)
    if by == "subscriber" or waits:
        source.at = -1
    return Run(case, origin, pool, source, sink), origin, f"{origin}, demand {demand}, cancelled by {by} at {at}"


def cancels(case: Case, number: int, pool: ThreadPoolExecutor) -> Iterator[str]:
    """What does not hold of so many random cancels."""
    chance = random.Random(case.name)
    by_rule: dict[tuple[str, int], Counter[int]] = {}
    middles = in_hand = 0
    exact = case.name in EXACT or case.name in EXACT_AS_THEY_ARE
    for _ in range(number):
        run, origin, what = a_cancel(case, chance, pool)
        middles += run.in_the_middle()
        in_hand += run.found_in_hand()
        lost = run.lost()
        key = origin, min(run.source.numbered, ELEMENTS)
        if lost and not exact and key not in by_rule:  # what the operator drops, or uses up, of so many elements
            by_rule[key] = Run(case, origin, pool, Source(elements=key[1]), Cancelling(MAX_DEMAND, -1)).lost()
        lost -= by_rule.get(key, Counter())
        if lost:
            yield f"{what}: lost {dict(lost)}, got {run.sink.elements}"
    if case.name in EXACT and middles < number // 20:
        yield f"{middles} of {number} cancels came in the middle"
    if case.name in HOLDING and in_hand < number // 20:
        yield f"{in_hand} of {number} cancels found an element in hand"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_was_made_is_delivered_or_discarded(case: Case, pool: ThreadPoolExecutor, dropped: list[Any]) -> None:
    assert list(cancels(case, BY_DAY, pool)) == []


@pytest.mark.nightly
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_thousand_cancels_lose_nothing(case: Case, pool: ThreadPoolExecutor, dropped: list[Any]) -> None:
    assert list(cancels(case, BY_NIGHT, pool)) == []


def test_each_exact_balance_is_of_the_catalogue() -> None:
    assert {case.name for case in CASES} >= EXACT.keys() | EXACT_AS_THEY_ARE | KEEPING
