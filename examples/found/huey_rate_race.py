"""A limit of one call a minute lets two through when a minute begins."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from typing import Any

from examples.found import Find


class Limited:
    """Two threads call, and one call a minute is allowed."""

    def __init__(self) -> None:
        huey: Any = import_module("huey")
        self.refused: Any = (import_module("huey.exceptions").RateLimitExceeded, KeyError)
        self.limit: Any = huey.MemoryHuey().rate_limit("one", limit=1, per=60)
        self.through: list[str] = []

    def call(self, name: str) -> None:
        with suppress(*self.refused), self.limit:
            self.through.append(name)

    def actor_a(self) -> None:
        self.call("a")

    def actor_b(self) -> None:
        self.call("b")

    def at_end(self) -> None:
        assert len(self.through) <= 1, "both calls are let through"


FIND = Find(
    package="huey==3.5.4",
    promise="`rate_limit` allows so many invocations in a window.",
    what=(
        "The first call of a window sets the counter to zero, and then notes the window. Two threads see that the"
        " window is new. One resets and counts its call; then the other resets the counter once more, and counts from"
        " zero."
    ),
    mended="put the number of the window into the name of the counter, so that no call has to reset it.",
    program=Limited,
    message="both calls are let through",
    counted=True,
    gil=True,
)
