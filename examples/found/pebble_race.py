"""A call runs that was cancelled, and its worker dies."""

from __future__ import annotations

import threading
from importlib import import_module
from typing import Any

from examples.found import Find


class Cancelled:
    """One thread cancels a call while a worker takes it."""

    def __init__(self) -> None:
        threading.excepthook = lambda _: None  # of the worker that dies
        self.ran = self.cancelled = False
        self.pool: Any = import_module("pebble").ThreadPool(max_workers=1)
        self.future: Any = self.pool.schedule(self.call)

    def call(self) -> None:
        self.ran = True

    def actor_cancels(self) -> None:
        self.cancelled = self.future.cancel()
        self.pool.stop()
        self.pool.join()

    def at_end(self) -> None:
        assert not (self.ran and self.cancelled), "a call ran although it was cancelled"


FIND = Find(
    package="Pebble==5.2.3",
    promise="`schedule` of a pool of threads returns a Future of concurrent.futures (its docstring).",
    what=(
        "The worker looks whether the call was cancelled, and does not look at the answer when it marks it as"
        " running, which in between was: it runs the call. Then the future refuses the result, the worker dies,"
        " and a pool that is closed waits for ever for the task to be done."
    ),
    mended="run the call only if `set_running_or_notify_cancel` returns true.",
    program=Cancelled,
    message="a call ran although it was cancelled",
    counted=True,
    gil=True,
)
