"""A cache counts one miss where there were two."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from examples.found import Find


class Missed:
    """Two threads look for what is not there."""

    def __init__(self) -> None:
        self.cache: Any = import_module("boltons.cacheutils").LRU()

    def actor_a(self) -> None:
        self.cache.get("missing")

    actor_b = actor_a

    def at_end(self) -> None:
        count = self.cache.soft_miss_count
        assert count == 2, f"2 misses, and {count} counted"


FIND = Find(
    package="boltons==26.2.0",
    promise="its caches take a lock for each operation.",
    what="`get` adds to `soft_miss_count` after the lock was released.",
    mended="count while the lock is held.",
    program=Missed,
    message="2 misses, and 1 counted",
    counted=True,
    gil=False,
)
