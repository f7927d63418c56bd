"""A circuit breaker for two failures stays closed after two."""

from __future__ import annotations

import contextlib
from importlib import import_module
from typing import Any

from examples.found import Find


class Failed:
    """Two threads, one failure each."""

    def __init__(self) -> None:
        kind: Any = import_module("circuitbreaker").CircuitBreaker
        self.breaker: Any = kind(failure_threshold=2, recovery_timeout=100)

    def actor_a(self) -> None:
        def fails() -> None:
            raise OSError("no answer")

        with contextlib.suppress(OSError):
            self.breaker.call(fails)

    actor_b = actor_a

    def at_end(self) -> None:
        assert self.breaker.opened, "2 failures, and the breaker for 2 is closed"


FIND = Find(
    package="circuitbreaker==2.1.3",
    promise="nothing of threads.",
    what="The number of failures is read, added to and stored: one of two is lost.",
    mended="count under a lock.",
    program=Failed,
    message="2 failures, and the breaker for 2 is closed",
    counted=False,
    gil=False,
)
