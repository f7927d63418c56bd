"""What is sound, however unusual, is never accused: the whole kit with its default settings; at night under load."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sinks import until

from reactive_runtime.tck import Outcome, Verification
from reactive_runtime.tck._factories import PublisherFactory
from reactive_runtime.tck._running.failures import same
from tck import unusual
from tck.unusual import BLACKBOX, PROCESSORS, PUBLISHERS, WHITEBOX, verification_of

ALL = PUBLISHERS + PROCESSORS + BLACKBOX + WHITEBOX
GROUPS = [ALL[first : first + 8] for first in range(0, len(ALL), 8)]
SIDE_BY_SIDE = 32
RUNS = 5
DECLARED = {
    "max_elements_from_publisher says it never comes",
    "requests_may_be_concurrent is False",
    "max_supported_subscribers is 1",
    "one subscriber at a time",
    "waits for a request of each of its subscribers",
    "cancels, and requests nothing",
    "has cancelled, and may take another subscription",
}
"""Why a check that is not optional may be skipped: what the implementation declares, or is allowed to do."""


@pytest.fixture
def load() -> Iterator[None]:
    """Two busy processes."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    yield
    for process in busy:
        process.kill()
        process.wait()


def named(kinds: list[type[Any]] | type[Any]) -> str:
    kinds = kinds if isinstance(kinds, list) else [kinds]
    return f"{kinds[0].__name__} to {kinds[-1].__name__}" if kinds[1:] else kinds[0].__name__


def accused(outcomes: list[Outcome]) -> list[str]:
    """What failed, and what was skipped without a reason that holds for a sound implementation."""
    return [
        f"{item.check.name}: {item.status}\n{item.why}"
        for item in outcomes
        if item.status == "failed"
        or (
            item.status == "skipped"
            and item.check.kind == "required"
            and not any(words in item.why for words in DECLARED)
        )
    ]


def tried(verification: Verification) -> None:
    """What the checks ask first is found once, before they run side by side."""
    verification.settings()
    if isinstance(verification, PublisherFactory):
        verification._starts_anew()
        verification._ends_a_second()


def judged(kinds: list[type[Any]]) -> dict[str, list[str]]:
    """Of what each is accused; all checks run side by side, since most of them wait."""
    verifications = [verification_of(made) for made in kinds]
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        list(pool.map(tried, verifications))
        outcomes = [pool.map(item.outcome, item.checks()) for item in verifications]
        found = {made.__name__: accused(list(items)) for made, items in zip(kinds, outcomes, strict=True)}
    return {name: items for name, items in found.items() if items}


@pytest.mark.parametrize("kinds", GROUPS, ids=named)
def test_what_is_sound_is_not_accused(kinds: list[type[Any]]) -> None:
    assert not judged(kinds)


@pytest.mark.nightly
@pytest.mark.usefixtures("load")
@pytest.mark.parametrize("kinds", [[made] for made in ALL], ids=named)
def test_what_is_sound_is_not_accused_under_load(kinds: list[type[Any]]) -> None:
    for _ in range(RUNS):
        assert not judged(kinds)


class Array:
    """Compares as an array of numpy does: to an array, which is neither true nor false."""

    def __eq__(self, other: object) -> Any:
        return Array()

    def __bool__(self) -> bool:
        raise ValueError("the truth value of an array is ambiguous")

    __hash__ = None  # type: ignore[assignment]


class Incomparable:
    def __eq__(self, other: object) -> bool:
        raise TypeError("it can't be compared")

    __hash__ = None  # type: ignore[assignment]


ELEMENTS: dict[str, Callable[[int], object]] = {
    "NaN": lambda n: float("nan"),
    "an array": lambda n: Array(),
    "incomparable": lambda n: Incomparable(),
    "all equal": lambda n: 0,
    "false": lambda n: (),
}


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("made", [unusual.Fanout, unusual.Prefetches, unusual.SlowlyTold], ids=named)
def test_elements_that_do_not_compare_are_no_fault(made: type[Any], element: str) -> None:
    verification: Any = verification_of(made)
    verification.create_element = ELEMENTS[element]
    checks = [item for item in verification.checks() if item.original or "processor" in item.name]
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        tried(verification)
        assert accused(list(pool.map(verification.outcome, checks))) == []


def test_an_element_is_the_same_where_it_is_or_is_equal_to_what_was_sent() -> None:
    nan, array, incomparable = float("nan"), Array(), Incomparable()
    assert all(same(item, item) for item in (1, nan, array, incomparable))
    assert same(1000, int("1000"))
    assert same(nan, float("nan"))  # a copy, for all that can be known
    assert same(array, Array())
    assert not same(1, 2)
    assert not same(nan, 2)
    assert not same(array, 2)
    assert not same(incomparable, nan)


def test_there_are_enough_of_each_kind_and_each_says_what_is_unusual() -> None:
    for kind in (PUBLISHERS, PROCESSORS, BLACKBOX + WHITEBOX):
        assert len(kind) >= 20
    assert len({made.__name__ for made in ALL}) == len(ALL)
    assert all(made.__doc__ and made.__doc__.endswith(".") for made in ALL)


def shared(owner: Any) -> Iterator[tuple[str, Any]]:
    """What all have in common: names of the module, and of its classes, and of the classes inside of those."""
    for name, item in vars(owner).items():
        yield name, item
        if isinstance(item, type) and item.__module__ == unusual.__name__:
            yield from shared(item)


def test_what_is_judged_side_by_side_shares_neither_a_lock_nor_a_loop() -> None:
    """The kit holds calls at each of their steps: one held under such a lock makes the others look as if they hang.

    So does a signal that takes its time on such a loop.
    """
    kinds = (
        type(threading.Lock()),
        type(threading.RLock()),
        threading.Condition,
        threading.Semaphore,
        asyncio.AbstractEventLoop,
        unusual.Loop,
    )
    assert not [name for name, item in shared(unusual) if isinstance(item, kinds)]


def test_relays_of_a_thread_share_a_loop_which_ends_with_them() -> None:
    with ThreadPoolExecutor(1) as first, ThreadPoolExecutor(1) as second:
        relays = [pool.submit(unusual.RelayOnALoop).result() for pool in (first, first, second)]
    loops = [relay.home.loop for relay in relays]
    assert loops[0] is loops[1] is not loops[2]
    del relays[1:]
    gc.collect()
    until(loops[2].is_closed)
    assert not loops[0].is_closed()
    relays.clear()
    gc.collect()
    until(loops[0].is_closed)
