"""A connectable observable is connected twice."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from examples.found import Find


class Connected:
    """Two threads connect."""

    def __init__(self) -> None:
        self.subscribed = 0

        def subscribe(observer: Any, scheduler: Any) -> None:
            self.subscribed += 1

        source: Any = import_module("reactivex").create(subscribe)
        self.shared: Any = source.pipe(import_module("reactivex.operators").publish())

    def actor_a(self) -> None:
        self.shared.connect()

    actor_b = actor_a

    def at_end(self) -> None:
        assert self.subscribed == 1, f"the source was subscribed to {self.subscribed} times"


FIND = Find(
    package="reactivex==6.1.0",
    promise="nothing of threads that connect; without a GIL it is not claimed to work.",
    what=(
        "`connect` looks whether it has a subscription, and then stores that it has: both threads subscribe "
        "to the source."
    ),
    mended="look and store under the lock that subjects have.",
    program=Connected,
    message="the source was subscribed to 2 times",
    counted=False,
    gil=False,
)
