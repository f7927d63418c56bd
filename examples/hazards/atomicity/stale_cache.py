"""A value is put into a cache after it was invalidated, and stays."""

from __future__ import annotations

import threading

from examples.hazards.lesson import AndIf, Lesson, Met


class Cache:
    """A value in a store, and a copy of it in a cache. Each access of either is atomic."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.stored = "old"  # lock
        self.cached: str | None = None  # lock
        self.version = 0  # lock

    def actor_reads(self) -> None:
        self.read()

    def actor_writes(self) -> None:
        self.write("new")

    def read(self) -> str:
        with self.lock:
            if self.cached is not None:
                return self.cached
        with self.lock:
            value = self.stored
        with self.lock:
            self.cached = value
        return value

    def write(self, value: str) -> None:
        with self.lock:
            self.stored = value
        with self.lock:
            self.cached = None

    def at_end(self) -> None:
        assert self.cached in (None, self.stored), f"{self.stored!r} is stored, and {self.cached!r} stays cached"


class Leased(Cache):
    """A value is put into the cache only if nothing was invalidated since it was asked for."""

    def read(self) -> str:
        with self.lock:
            if self.cached is not None:
                return self.cached
            version = self.version
        with self.lock:
            value = self.stored
        with self.lock:
            if self.version == version:
                self.cached = value
        return value

    def write(self, value: str) -> None:
        with self.lock:
            self.stored = value
        with self.lock:
            self.cached = None
            self.version += 1


class InvalidatedFirst(Cache):
    """Invalidates, and then writes."""

    def write(self, value: str) -> None:
        with self.lock:
            self.cached = None
        with self.lock:
            self.stored = value


class WrittenThrough(Cache):
    """The thread that writes puts the new value into the cache."""

    def write(self, value: str) -> None:
        with self.lock:
            self.stored = value
        with self.lock:
            self.cached = value


LESSON = Lesson(
    title="Stale after invalidation",
    terms=("atomicity violation", "stale set", "cache invalidation", "look-aside cache"),
    hazard="""A reader misses the cache, and fetches the value. Before it puts the value there, a writer stores another
    one, and invalidates the cache, where nothing is yet. The reader then caches what was true before, and it stays.""",
    broken=Cache,
    question="The writer invalidates after it has written. Which order leaves the old value in the cache for good?",
    fixed=Leased,
    fix="note a version with the miss, and cache only if it is still the same: invalidating counts it up.",
    and_if=(
        AndIf(
            question="the writer invalidated first, and wrote then?",
            answer="Then there is one more order in which it goes wrong.",
            program=InvalidatedFirst,
            fails=True,
        ),
        AndIf(
            question="the writer put the new value into the cache?",
            answer="The reader overwrites it with the old one.",
            program=WrittenThrough,
            fails=True,
        ),
    ),
    met=(
        Met(
            what="Nishtala and others, Scaling Memcache at Facebook, 2013: leases were added to memcached for this.",
            where="https://www.usenix.org/conference/nsdi13/technical-sessions/presentation/nishtala",
        ),
    ),
    gil="either way",
)

if __name__ == "__main__":
    LESSON.teach()
