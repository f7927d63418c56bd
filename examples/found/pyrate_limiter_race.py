"""A bucket is never emptied, since the thread that should is about to end."""

from __future__ import annotations

import time
from importlib import import_module
from typing import Any

from examples.found import Find


class Leaked:
    """The last bucket of a factory is disposed of, and another is scheduled while the factory's thread notices."""

    def __init__(self) -> None:
        pyrate_limiter: Any = import_module("pyrate_limiter")
        rates = [pyrate_limiter.Rate(1, pyrate_limiter.Duration.SECOND)]
        self.first: Any = pyrate_limiter.InMemoryBucket(rates)
        self.second: Any = pyrate_limiter.InMemoryBucket(rates)
        self.second.put(pyrate_limiter.RateItem("one", self.second.now()))
        self.factory: Any = pyrate_limiter.SingleBucketFactory(self.first)
        self.left = 0

    def actor_replaces(self) -> None:
        time.sleep(1)
        self.factory.dispose(self.first)
        time.sleep(9)
        self.factory.schedule_leak(self.second)
        time.sleep(60)
        self.left = self.second.count()
        self.factory.close()

    def at_end(self) -> None:
        assert self.left == 0, "what expires after a second is there after a minute"


FIND = Find(
    package="pyrate-limiter==4.5.1",
    promise="`schedule_leak` has what expired dropped in the background, every 10 s (its README).",
    what=(
        "Every 10 s a thread drops what expired, and ends when it finds no bucket. `schedule_leak` starts another"
        " only where that one is not alive: between its last look and its end it is, and the bucket has no thread."
    ),
    mended="note under a lock that the thread ends, where it looks for the last time.",
    program=Leaked,
    message="what expires after a second is there after a minute",
    counted=True,
    gil=True,
)
