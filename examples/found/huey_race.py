"""A worker that finishes the last task but one of a chord fails, or the callback of the chord runs twice."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from examples.found import Find


class Finished:
    """Two workers execute the two tasks of a chord."""

    def __init__(self) -> None:
        huey: Any = import_module("huey")
        self.huey: Any = huey.MemoryHuey()
        half = self.huey.task()(lambda: 1)
        both = self.huey.task(name="both")(lambda results: results)
        self.huey.enqueue(huey.chord([half.s(), half.s()], both.s()))
        self.failed = False

    def work(self) -> None:
        try:
            self.huey.execute(self.huey.dequeue())
        except KeyError:
            self.failed = True

    def actor_one(self) -> None:
        self.work()

    def actor_two(self) -> None:
        self.work()

    def at_end(self) -> None:
        if self.failed or self.huey.pending_count() != 1:
            raise AssertionError("a worker failed, or the callback is there twice")


FIND = Find(
    package="huey==3.5.4",
    promise="a chord always completes, with one call of its callback; workers may be threads.",
    what=(
        "Each worker counts its task with `MemoryStorage.incr`, which adds one under a lock, and reads the sum after it"
        " has released the lock. In between the other worker counts as well. Then both read two, and both enqueue the"
        " callback; or the other has deleted the counter, and the read raises a KeyError."
    ),
    mended="return the sum from within the lock.",
    program=Finished,
    message="a worker failed, or the callback is there twice",
    counted=True,
    gil=True,
)
