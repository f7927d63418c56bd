"""A key that is set for a minute is seen as one that is kept for ever."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from examples.found import Find


class Asked:
    """One thread sets a key for a minute, another asks for how long it is still kept."""

    def __init__(self) -> None:
        self.store: Any = import_module("throttled.store").MemoryStore()
        self.seconds = 0

    def actor_sets(self) -> None:
        self.store.set("key", 1, 60)

    def actor_asks(self) -> None:
        self.seconds = self.store.ttl("key")

    def at_end(self) -> None:
        assert self.seconds != -1, "a key that is set for a minute is kept for ever"


FIND = Find(
    package="throttled-py==3.5.0",
    promise="thread-safe (the docstring of MemoryStore).",
    what=(
        "`set` stores the value, and when it expires, under a lock. `ttl` looks for the one and the other without"
        " it, and sees the value alone. `exists` and `expire` do not take it, either."
    ),
    mended="take the lock in `ttl`, `exists` and `expire`, too.",
    program=Asked,
    message="a key that is set for a minute is kept for ever",
    counted=True,
    gil=True,
)
