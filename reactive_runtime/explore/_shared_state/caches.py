"""`functools.cache`, `lru_cache` and `cached_property`: a look, and, where there is nothing yet, a change."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

from reactive_runtime.explore._instrument.sites import SITES
from reactive_runtime.explore._schedule.scheduler import Scheduler
from reactive_runtime.explore._shared_state.accesses import Accesses
from reactive_runtime.explore._shared_state.kinds import Kinds

__all__ = ["Caches"]


class Caches:
    """The hooks for caches. The holder of the turn owns it."""

    __slots__ = ("_accesses", "_asked", "_kinds", "_scheduler")

    def __init__(self, scheduler: Scheduler, kinds: Kinds, accesses: Accesses) -> None:
        self._scheduler = scheduler
        self._kinds = kinds
        self._accesses = accesses
        self._asked: dict[int, list[Any]] = {}  # by thread: the caches that it asks, in this run

    def forget(self) -> None:
        """A run has ended."""
        self._asked.clear()

    def asking(self, called: Any, site: int) -> Callable[..., Any]:
        """A call of a cache; what it keeps then is said by `filled`."""
        orders = called.cache_parameters()["maxsize"] is not None  # by when each was asked for last

        def asked(*arguments: Any, **keywords: Any) -> Any:
            if not self._scheduler.watching:
                return called(*arguments, **keywords)
            self._accesses.access(called, "", None, site, orders)
            mine = self._asked.setdefault(self._scheduler.current.index, [])
            mine.append(called)
            try:
                return called(*arguments, **keywords)
            finally:
                mine.pop()

        return asked

    def filled(self, value: Any, name: str, owner: Any, line: int, site: int) -> Any:
        """A function returns to a cache, which keeps the value, under the name in its owner or by the arguments."""
        if self._scheduler.watching:
            mine = self._asked.get(self._scheduler.current.index)
            if mine and _stands_at(mine[-1], SITES[site].filename, line):
                self._accesses.access(mine[-1], "", None, site, True)
            elif isinstance(self._kinds.method(type(owner), name), cached_property):
                self._accesses.access(owner, name, value, site, True)
        return value


def _stands_at(cache: Any, filename: str, line: int) -> bool:
    """Whether what a cache asks, or what that wraps, is the function there."""
    while (cache := getattr(cache, "__wrapped__", None)) is not None:
        code = getattr(cache, "__code__", None)
        if code is not None and (code.co_filename, code.co_firstlineno) == (filename, line):
            return True
        cache = getattr(cache, "__func__", cache)
    return False
