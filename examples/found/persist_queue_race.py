"""A thread waits ten seconds for an item that is in the queue."""

from __future__ import annotations

import time
from importlib import import_module
from typing import Any

from examples.found import Find


class Late:
    """One thread puts an item, another gets it."""

    def __init__(self) -> None:
        self.queue: Any = import_module("persistqueue").SQLiteQueue(":memory:", multithreading=True)
        self.seconds = 0.0

    def actor_puts(self) -> None:
        self.queue.put("item")

    def actor_gets(self) -> None:
        began = time.monotonic()
        assert self.queue.get() == "item"
        self.seconds = time.monotonic() - began

    def at_end(self) -> None:
        assert self.seconds < 10, "the item was there, and was waited for"


FIND = Find(
    package="persist-queue==1.1.0",
    promise="queues with `multithreading=True` are thread-safe; `get` waits until there is an item.",
    what=(
        "`get` finds no item, clears the event of a put, and waits for it. Between the look and the clearing another"
        " thread puts an item, and sets the event. `get` clears that too, and sleeps until it looks again, ten seconds"
        " later."
    ),
    mended="clear the event before the look, or use a condition.",
    program=Late,
    message="the item was there, and was waited for",
    counted=True,
    gil=True,
)
