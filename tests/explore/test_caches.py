"""A cache of `functools` keeps what a function returns, and asks it twice where two threads miss at once."""

from __future__ import annotations

import functools
import sys
import threading
from functools import cache, cached_property, lru_cache
from itertools import product
from typing import Any

import pytest
from searching import ENGINES, each_of_both_by_day

from explore.brute_force import Traced, searched
from reactive_runtime.explore import explore, replay
from reactive_runtime.explore._search.bounded import Bounded
from reactive_runtime.explore._search.dpor import DPOR


class Made:
    """Something of which there is to be one."""


@cache
def only() -> Made:
    return Made()


@lru_cache(maxsize=1)
def last(number: int) -> Made:
    if number:
        return Made()
    raise ValueError(number)


def bare() -> Any:
    calls.append(1)


calls: list[int] = []
once = functools.lru_cache(bare)


class Asking:
    """Two threads ask, with a lock or without; what they get is the same."""

    guarded = False

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.got: list[Any] = []

    def ask(self) -> Any:
        raise NotImplementedError

    def actor_a(self) -> None:
        if self.guarded:
            with self.lock:
                self.got.append(self.ask())
        else:
            found = self.ask()
            with self.lock:
                self.got.append(found)

    actor_b = actor_a

    def at_end(self) -> None:
        assert len(self.got) == 2
        assert self.got[0] is self.got[1]


class OfTheModule(Asking):
    def __init__(self) -> None:
        super().__init__()
        only.cache_clear()

    def ask(self) -> Any:
        return only()


class WithABound(Asking):
    def __init__(self) -> None:
        super().__init__()
        last.cache_clear()

    def ask(self) -> Any:
        return last(1)


class ByACall(Asking):
    """The function is no decorated one, and returns nothing."""

    def __init__(self) -> None:
        super().__init__()
        once.cache_clear()
        calls.clear()

    def ask(self) -> Any:
        return once()

    def at_end(self) -> None:
        assert calls == [1]


class OfAMethod(Asking):
    def __init__(self) -> None:
        super().__init__()
        type(self).made.cache_clear()

    @functools.lru_cache  # noqa: B019
    def made(self) -> Any:
        return Made()

    def ask(self) -> Any:
        return self.made()


class OfABoundMethod(Asking):
    def __init__(self) -> None:
        super().__init__()
        self.get = cache(self.made)

    def made(self) -> Any:
        return Made()

    def ask(self) -> Any:
        return self.get()


class OfTheObject(Asking):
    def __init__(self) -> None:
        super().__init__()

        @cache
        def made(number: int) -> Any:
            return Made()

        self.get = made

    def ask(self) -> Any:
        return self.get(1)


class InC(OfTheObject):
    """A function in C asks the cache."""

    def ask(self) -> Any:
        return next(iter(map(self.get, [1])))


class Cleared(Asking):
    """A thread clears the cache between two looks of another."""

    def __init__(self) -> None:
        super().__init__()
        only.cache_clear()

    def actor_a(self) -> None:
        with self.lock if self.guarded else threading.Lock():
            self.got += [only(), only()]

    def actor_b(self) -> None:
        with self.lock if self.guarded else threading.Lock():
            only.cache_clear()


class Property(Asking):
    @cached_property
    def made(self) -> Any:
        return Made()

    def ask(self) -> Any:
        return self.made


class PropertyByName(Property):
    def ask(self) -> Any:
        return getattr(self, "made")  # noqa: B009


class PropertyOfALocalClass(Asking):
    def __init__(self) -> None:
        super().__init__()

        class Local:
            @cached_property
            def made(self) -> Any:
                return Made()

        self.local = Local()

    def ask(self) -> Any:
        return self.local.made


def of_a_class_made_before() -> Any:
    class Local:
        @cached_property
        def made(self) -> Any:
            return Made()

    class PropertyOfAClassMadeBefore(Asking):
        def __init__(self) -> None:
            super().__init__()
            self.local = Local()

        def ask(self) -> Any:
            return self.local.made

    return PropertyOfAClassMadeBefore


def sample() -> Any:
    class Local:
        @cached_property
        def made(self) -> Any:
            return Made()

    return Local()


SAMPLE = sample()


class PropertyOfTheClassOfAnObject(Asking):
    def __init__(self) -> None:
        super().__init__()
        self.local = type(SAMPLE)()

    def ask(self) -> Any:
        return self.local.made


CACHES = [OfTheModule, WithABound, ByACall, OfAMethod, OfABoundMethod, OfTheObject, InC, Cleared]
PROPERTIES = [Property, PropertyByName, PropertyOfALocalClass, of_a_class_made_before(), PropertyOfTheClassOfAnObject]
GUARDED = [type(item.__name__, (item,), {"guarded": True}) for item in [*CACHES, *PROPERTIES]]
HAS_A_LOCK = sys.version_info < (3, 12)
"""Whether a `cached_property` has one."""


HOW = list(product(["portfolio", "bounded", "dpor"], ENGINES))


@pytest.mark.parametrize(
    ("program", "how"),
    each_of_both_by_day(CACHES, HOW) + each_of_both_by_day(PROPERTIES, HOW),
    ids=lambda item: getattr(item, "__name__", None) or "-".join(item),
)
def test_two_threads_that_miss_at_once_are_found(program: Any, how: tuple[str, Any]) -> None:
    strategy, engine = how
    result = explore(program, strategy=strategy, engine=engine, hang=2)
    if HAS_A_LOCK and program in PROPERTIES:
        result.assert_holds()
        assert strategy == "portfolio" or str(result.verdict) == "exhausted"
        return
    failure = result.failure
    assert failure is not None
    again = replay(program, failure.token).failure
    assert again is not None
    assert again.kind == failure.kind


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("program", GUARDED, ids=lambda item: item.__name__)
def test_threads_that_ask_with_a_lock_are_not_accused(program: Any, engine: Any) -> None:
    for strategy in ("bounded", "dpor"):
        result = explore(program, strategy=strategy, engine=engine, hang=2).assert_holds()
        assert str(result.verdict) == "exhausted"


@pytest.mark.parametrize("program", [*CACHES, *PROPERTIES, *GUARDED], ids=lambda item: item.__name__)
def test_all_searches_come_to_the_same(program: Any) -> None:
    brute = searched(program, Traced(), 4_000)
    assert brute is not None
    outcomes, _, traces = brute
    assert searched(program, DPOR()) == (outcomes, traces, 0)
    reduced = searched(program, Bounded())
    assert reduced is not None
    assert reduced[0] == outcomes


def test_what_a_cache_does_is_what_it_did() -> None:
    seen: list[Any] = []

    def program() -> None:
        last.cache_clear()
        first = last(1)
        with pytest.raises(ValueError, match="0"):
            last(0)
        seen.append((last(1) is first, last(2) is first, last(1) is first, last.cache_info()))

    program()
    explore(program, schedules=2).assert_holds()
    assert len(seen) > 2
    assert all(item == seen[0] for item in seen), seen
