"""A lock is held while other code runs."""

from __future__ import annotations

import threading

from examples.hazards.lesson import Lesson


class Downstream:
    """A subscriber with a lock of its own, under which it cancels."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.upstream: Upstream | None = None
        self.seen = 0  # lock

    def on_next(self) -> None:
        with self.lock:
            self.seen += 1

    def stop(self) -> None:
        assert self.upstream is not None
        with self.lock:
            self.upstream.cancel()


class Upstream:
    """A subscription that signals under its own lock."""

    def __init__(self, downstream: Downstream) -> None:
        self.lock = threading.Lock()
        self.cancelled = False  # lock
        self.downstream = downstream

    def emit(self) -> None:
        with self.lock:
            if not self.cancelled:
                self.downstream.on_next()

    def cancel(self) -> None:
        with self.lock:
            self.cancelled = True


class CallingOut:
    """One thread emits, another one stops."""

    upstream: type[Upstream] = Upstream

    def __init__(self) -> None:
        self.downstream = Downstream()
        self.downstream.upstream = self.upstream(self.downstream)

    def actor_emits(self) -> None:
        assert self.downstream.upstream is not None
        self.downstream.upstream.emit()

    def actor_stops(self) -> None:
        self.downstream.stop()


class Outside(Upstream):
    """Decides under the lock, and calls without it."""

    def emit(self) -> None:
        with self.lock:
            cancelled = self.cancelled
        if not cancelled:
            self.downstream.on_next()


class CallingFree(CallingOut):
    """The same, with a subscription that holds no lock while it calls."""

    upstream = Outside


LESSON = Lesson(
    title="A lock held while calling out",
    hazard="""A subscription that signals under its lock takes whatever locks its subscriber takes, after its own. The
    subscriber, which calls back under its lock, takes them the other way round, and both wait for ever.""",
    broken=CallingOut,
    fixed=CallingFree,
    fix="hold a lock to read and to write, never to call: decide inside, call outside.",
)

if __name__ == "__main__":
    LESSON.teach()
