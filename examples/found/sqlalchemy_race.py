"""A thread waits for a connection although one more is allowed."""

from __future__ import annotations

import time
from importlib import import_module
from threading import Barrier
from typing import Any

from examples.found import Find


class Connection:
    """No database is needed."""

    def rollback(self) -> None:
        pass

    def close(self) -> None:
        pass


class Waited:
    """Two connections are allowed at once: two threads give theirs back, two others take one each."""

    def __init__(self) -> None:
        pool: Any = import_module("sqlalchemy.pool")
        self.pool: Any = pool.QueuePool(Connection, pool_size=1, max_overflow=1)
        self.first, self.second = self.pool.connect(), self.pool.connect()
        self.both = Barrier(2)
        self.waited: list[float] = []

    def actor_a(self) -> None:
        self.first.close()

    def actor_b(self) -> None:
        self.second.close()

    def actor_c(self) -> None:
        begun = time.monotonic()
        connection = self.pool.connect()
        self.waited.append(time.monotonic() - begun)
        self.both.wait()
        connection.close()

    actor_d = actor_c

    def at_end(self) -> None:
        longest = max(self.waited)
        assert longest < 1, f"one waited {longest:.0f} s for a connection, while one of two was taken"


FIND = Find(
    package="SQLAlchemy==2.1.9",
    promise="pool_size + max_overflow connections may be taken at once (the docstring of QueuePool).",
    what=(
        "Both threads wait at the queue. `a` puts its connection there, which wakes one of them; before that one"
        " has taken it, `b` finds the queue full, and closes its own. Now one may be opened, but the thread that"
        " still waits is not told: it waits until its 30 s are over, or another gives one back."
    ),
    mended="wake one that waits when a connection is closed, too.",
    program=Waited,
    message="one waited 30 s for a connection, while one of two was taken",
    counted=True,
    gil=True,
)
