"""A cache for one element throws out both."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from examples.found import Find


class Evicted:
    """Two threads, one element each."""

    def __init__(self) -> None:
        self.cache: Any = import_module("zict").LRU(1, {})

    def actor_a(self) -> None:
        self.cache["a"] = 1

    def actor_b(self) -> None:
        self.cache["b"] = 2

    def at_end(self) -> None:
        assert len(self.cache) == 1, f"an LRU for 1 element has {len(self.cache)} after 2 were added"


FIND = Find(
    package="zict==3.0.0",
    promise="its LRU is thread-safe.",
    what=(
        "Two threads add an element each to an LRU for one. Both see that it is too full before either has "
        "evicted, and each evicts one: nothing is left."
    ),
    mended="look at the weight again when the lock is held.",
    program=Evicted,
    message="an LRU for 1 element has 0 after 2 were added",
    counted=True,
    gil=True,
)
