"""A thread waits for ever for a connection although one more is allowed, since another could not connect."""

from __future__ import annotations

import contextlib
import time
from importlib import import_module
from typing import Any

from examples.found import Find


class DownError(Exception):
    """The database is not there."""


class Connection:
    """No database is needed."""

    def rollback(self) -> None:
        pass

    def close(self) -> None:
        pass


class Driver:
    """The database is there for two connections, and then no more."""

    threadsafety = 1
    dbapi = None

    def __init__(self) -> None:
        self.connected = 0

    def connect(self) -> Connection:
        self.connected += 1
        if self.connected > 2:
            raise DownError
        return Connection()


class Waited:
    """Two connections are allowed at once: one thread gives both back, three others wait for one each."""

    def __init__(self) -> None:
        pooled: Any = import_module("dbutils.pooled_db")
        self.pool: Any = pooled.PooledDB(
            Driver(), maxcached=1, maxconnections=2, blocking=True, ping=0, failures=DownError
        )
        self.first, self.second = self.pool.connection(), self.pool.connection()
        self.taken: list[Any] = []
        self.answered = 0
        self.in_time = 0

    def actor_a(self) -> None:
        self.first.close()
        self.second.close()

    def actor_b(self) -> None:
        with contextlib.suppress(DownError):
            self.taken.append(self.pool.connection())
        self.answered += 1

    actor_c = actor_d = actor_b

    def actor_looks(self) -> None:
        time.sleep(60)
        self.in_time = self.answered
        for connection in self.taken:
            connection.close()

    def at_end(self) -> None:
        assert self.in_time == 3, "one waited for a minute, while one of two connections was taken"


FIND = Find(
    package="DBUtils==3.2.0",
    promise="with `blocking`, one waits until the number of connections decreases (the docstring of PooledDB).",
    what=(
        "Two connections are given back, and two of three are woken. One takes what is cached, the other fails to"
        " connect, and wakes no other thread for its place: the third waits until the first gives its own back."
    ),
    mended="wake the next one when no connection could be made.",
    program=Waited,
    message="one waited for a minute, while one of two connections was taken",
    counted=True,
    gil=True,
)
