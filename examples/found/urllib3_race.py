"""A connection that is given back while its pool is closed raises an AttributeError."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from examples.found import Find


class Connection:
    """No socket is needed."""

    is_closed = False
    is_connected = True

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        self.proxy_is_verified = None

    def close(self) -> None:
        pass


class GivenBack:
    """One thread gives a connection back that the pool has no room for, another closes the pool."""

    def __init__(self) -> None:
        self.pool: Any = import_module("urllib3").HTTPConnectionPool("localhost")
        self.pool.ConnectionCls = Connection
        self.connection = self.pool._new_conn()

    def actor_gives_back(self) -> None:
        self.pool._put_conn(self.connection)

    def actor_closes(self) -> None:
        self.pool.close()


FIND = Find(
    package="urllib3==2.8.0",
    promise="thread-safe connection pooling.",
    what=(
        "`_put_conn` finds the pool full, and asks for its size, to warn; another thread has closed it "
        "meanwhile, and there is no pool."
    ),
    mended="read `self.pool` once, into a local name.",
    program=GivenBack,
    message="gives_back raised AttributeError: 'NoneType' object has no attribute 'qsize'",
    counted=True,
    gil=True,
)
