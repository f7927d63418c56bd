"""A look at what is cached fails, since another thread caches something."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from examples.found import Find


class Removed:
    """One thread calls a function, another removes what was cached of it."""

    def __init__(self) -> None:
        cached: Any = import_module("memoization").cached

        self.double: Any = cached(lambda number: 2 * number)
        self.double(1)

    def actor_calls(self) -> None:
        self.double(2)

    def actor_removes(self) -> None:
        try:
            self.double.cache_remove_if(lambda arguments, result, is_alive: result == 2)
        except (KeyError, RuntimeError) as error:
            raise AssertionError("what is cached changed while it was gone over") from error


FIND = Find(
    package="memoization==0.4.0",
    promise="`thread_safe=True` is the default (its README).",
    what=(
        "A cache without a limit stores a result outside of its lock. `cache_remove_if` holds the lock, goes over"
        " the dictionary, and meets one that grows, or a result without its arguments: a RuntimeError or a KeyError."
    ),
    mended="store the result while the lock is held, as the caches with a limit do.",
    program=Removed,
    message="removes raised AssertionError: what is cached changed while it was gone over",
    counted=True,
    gil=True,
)
