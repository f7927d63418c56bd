"""A pool keeps its lock for ever, and the next thread that needs it waits for ever."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

from examples.found import Find


class Connection:
    """No server is needed."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        self.pid = os.getpid()

    def connect(self) -> None:
        pass

    def can_read(self) -> bool:
        return False

    def should_reconnect(self) -> bool:
        return False


class Borrowed:
    """Two threads take a connection each while the server is maintained, and one gives it back."""

    def __init__(self) -> None:
        redis: Any = import_module("redis")
        self.pool: Any = redis.BlockingConnectionPool(max_connections=2, connection_class=Connection)
        for connection in [self.pool.get_connection(), self.pool.get_connection()]:
            self.pool.release(connection)
        self.pool.set_in_maintenance(True)

    def actor_a(self) -> None:
        self.pool.get_connection()

    def actor_b(self) -> None:
        self.pool.release(self.pool.get_connection())


FIND = Find(
    package="redis==8.1.0",
    promise="a thread-safe blocking pool (the docstring of BlockingConnectionPool).",
    what=(
        "In maintenance each call takes the lock, and notes that in a field of the pool, which all threads share:"
        " one gives the lock back, another takes it and notes so, the first deletes the note, and the other finds"
        " none, and keeps the lock."
    ),
    mended="keep the note in a local variable, or take the lock in a `with` statement.",
    program=Borrowed,
    message="no thread can go on: b (acquire)",
    counted=True,
    gil=True,
)
