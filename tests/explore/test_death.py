"""An object dies in an exploration when it does in the program: when the program drops it."""

from __future__ import annotations

import threading
import weakref
from functools import partial
from operator import methodcaller
from typing import Any

import pytest

from reactive_runtime.explore import explore


class Page:
    def __init__(self) -> None:
        self.hits = 0


class Dropped:
    def __init__(self) -> None:
        self.page: Any = Page()
        self.known = weakref.ref(self.page)

    def actor_a(self) -> None:
        self.page.hits += 1
        self.page = None
        assert self.known() is None, "it is still alive"


class DroppedInAList:
    def __init__(self) -> None:
        self.pages: Any = [Page()]
        self.known = weakref.ref(self.pages[0])

    def actor_a(self) -> None:
        self.pages[0].hits += 1
        self.pages.append(3)
        self.pages = None
        assert self.known() is None, "it is still alive"


class Cache:
    """Each thread takes the page and lets go of it, under a lock."""

    def __init__(self) -> None:
        self.pages: Any = weakref.WeakValueDictionary()
        self.lock = threading.Lock()

    def actor_a(self) -> None:
        with self.lock:
            page = self.pages.get("k")
            if page is None:
                page = self.pages["k"] = Page()
            page.hits += 1

    actor_b = actor_a

    def at_end(self) -> None:
        assert not self.pages, "a page outlives its users"


class Finalised:
    def __init__(self) -> None:
        self.closed = 0
        self.lock = threading.Lock()
        self.open = [File(self)]

    def actor_a(self) -> None:
        with self.lock:
            if self.open:
                self.open = []
            assert self.closed == 1, "it is open"

    actor_b = actor_a


class File:
    def __init__(self, of: Finalised) -> None:
        self.of = of

    def __del__(self) -> None:
        self.of.closed += 1


class WithSlots:
    __slots__ = ("known", "page")

    def __init__(self) -> None:
        self.page = Page()
        self.known = weakref.ref(self.page)


class DroppedWithSlots:
    def __init__(self) -> None:
        self.holder: Any = WithSlots()

    def actor_a(self) -> None:
        known = self.holder.known
        self.holder.page.hits += 1
        self.holder = None
        assert known() is None, "it is still alive"


class DroppedInAFunction:
    """Functions that a run makes, and calls, hold a page: none of them lives on where it was called."""

    def __init__(self) -> None:
        self.page: Any = Page()
        self.known = weakref.ref(self.page)

    def made(self) -> Any:
        return partial(id, self.page)

    def actor_a(self) -> None:
        call: Any = self.made()
        call()
        self.page = call = None
        assert self.known() is None, "it is still alive"


class DroppedAsADefault(DroppedInAFunction):
    def made(self) -> Any:
        def call(page: Page = self.page) -> Page:
            return page

        return call


class DroppedInAMethodcaller(DroppedInAFunction):
    def made(self) -> Any:
        return partial(methodcaller("count", self.page), [])


@pytest.mark.parametrize(
    "program",
    [
        *(Dropped, DroppedInAList, Cache, Finalised, DroppedWithSlots),
        *(DroppedInAFunction, DroppedAsADefault, DroppedInAMethodcaller),
    ],
)
def test_a_program_that_drops_an_object_is_not_accused(program: Any) -> None:
    result = explore(program, strategy="bounded")
    assert result.failure is None, result
    assert result.verdict.kind == "exhausted"


class DroppedTooSoon:
    """Another thread asks whether the page is there: both answers are possible."""

    expected = True

    def __init__(self) -> None:
        self.page: Any = Page()
        self.known = weakref.ref(self.page)
        self.seen = True

    def actor_a(self) -> None:
        self.page = None

    def actor_b(self) -> None:
        self.seen = self.known() is not None

    def at_end(self) -> None:
        assert self.seen is self.expected


class DroppedTooLate(DroppedTooSoon):
    expected = False


@pytest.mark.parametrize("program", [DroppedTooSoon, DroppedTooLate])
def test_who_looks_at_a_weak_reference_sees_both(program: Any) -> None:
    result = explore(program)
    assert result.verdict.kind == "failed", result
