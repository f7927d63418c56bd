"""A thread that asks for the statistics of a cache, and one that reads the cache, wait for each other for ever."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from examples.found import Find


class Counted:
    """One thread reads a value, another the statistics."""

    def __init__(self) -> None:
        self.cache: Any = import_module("cacheout").Cache(enable_stats=True)

    def actor_reads(self) -> None:
        self.cache.get("key")

    def actor_counts(self) -> None:
        self.cache.stats.info()


FIND = Find(
    package="cacheout==0.17.0",
    promise="thread safe (its README).",
    what=(
        "`get` takes the lock of the cache, and within it that of the statistics, to count. `info` takes them the"
        " other way round, to see how many entries there are."
    ),
    mended="ask for the number of entries before the lock of the statistics is taken.",
    program=Counted,
    message="no thread can go on: reads (acquire), counts (acquire)",
    counted=True,
    gil=True,
)
