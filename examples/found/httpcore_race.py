"""A request loses its connection to a request for another host."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from examples.found import Find

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


class Requested:
    """A pool for one connection, which is idle: one thread asks its host again, another thread another host."""

    def __init__(self) -> None:
        httpcore: Any = import_module("httpcore")
        backend = httpcore.MockBackend([ANSWER, ANSWER])
        self.pool: Any = httpcore.ConnectionPool(max_connections=1, network_backend=backend)
        self.pool.request("GET", "http://a")

    def actor_a(self) -> None:
        with self.pool.stream("GET", "http://a"):
            pass

    def actor_b(self) -> None:
        with self.pool.stream("GET", "http://b"):
            pass


FIND = Find(
    package="httpcore==1.0.9",
    promise="thread-safe connection pooling (its README).",
    what=(
        "The pool hands the idle connection to `a`, but it counts as idle until `a` sends its request. Meanwhile"
        " `b` needs room, and closes it. `a` reads from a connection that is closed."
    ),
    mended="take a connection that was handed to a request for one that is in use.",
    program=Requested,
    message="a raised ReadError: Connection closed",
    counted=True,
    gil=True,
    strategy="random",
)
