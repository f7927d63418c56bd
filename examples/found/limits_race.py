"""A fixed window of one hit an hour: two hits at once, and neither is let through."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from examples.found import Find


class Hits:
    """Two threads, one hit each."""

    def __init__(self) -> None:
        storage = import_module("limits.storage").MemoryStorage()
        self.limiter: Any = import_module("limits.strategies").FixedWindowRateLimiter(storage)
        self.limit: Any = import_module("limits").RateLimitItemPerHour(1)
        self.let_through: list[bool] = []

    def actor_a(self) -> None:
        self.let_through.append(self.limiter.hit(self.limit, "user"))

    actor_b = actor_a

    def at_end(self) -> None:
        count = self.let_through.count(True)
        assert count == 1, f"{count} of 2 hits were let through, and 1 an hour is allowed"


FIND = Find(
    package="limits==5.8.0",
    promise="its storage in memory keeps a lock for each key.",
    what=(
        "`MemoryStorage.incr` adds under the lock, and reads what it returns after it: both hits see 2, where"
        " the second alone should."
    ),
    mended="return the value that was read while the lock was held.",
    program=Hits,
    message="0 of 2 hits were let through, and 1 an hour is allowed",
    counted=True,
    gil=True,
)
