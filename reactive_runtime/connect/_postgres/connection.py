"""A connection to a PostgreSQL server for one subscription: it can be stopped, its errors name the server.

The problem: a call of the client waits for the server, for as long as the server likes, and the thread that waits hears
of no cancel. And a connection string has a password in it, which no message may show.

The answer: psycopg waits in a loop of its own, which wakes every now and then (`Connection.wait`). There the connection
looks for a cancel, and leaves the call by `Stopped`. A `Server` keeps the connection string, and shows host, port and
database only.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from contextlib import suppress
from typing import Any, Final, NoReturn, TypeVar

from reactive_runtime._core.runtime import primitives
from reactive_runtime._core.sources.naming import instead
from reactive_runtime.connect._elements.hiding import LEAST_SECRET
from reactive_runtime.errors import MissingDependencyError, ReactiveError

try:
    import psycopg
    from psycopg import capabilities, conninfo, sql
    from psycopg.pq import TransactionStatus
except ImportError as error:
    raise MissingDependencyError("PostgreSQL needs psycopg: pip install 'reactive-runtime[postgres]'") from error

__all__ = ["Connection", "PostgresError", "Server", "Stopped", "identifier"]

R = TypeVar("R")

LEAST_VERSION: Final = 12
"""Of the server: the queue's statement says MATERIALIZED."""

CONNECTING: Final = 10
"""Seconds for connecting, where the connection string does not say `connect_timeout`."""


TICK: Final = 0.05
"""Seconds between two looks for a cancel, while a call waits."""

ENDING: Final = 1.0
"""Seconds for telling the server to end a query, when its flow was cancelled."""


class PostgresError(ReactiveError):
    """A PostgreSQL server is not there, went away, or refused something.

    The message names the operator, the server and the element, where there is one. The error of psycopg is the
    `__cause__`.
    """


class Stopped(BaseException):
    """The flow was cancelled while a call waited for the server. It never leaves the package."""


def identifier(operator: str, argument: str, name: str) -> sql.Identifier:
    """A name as SQL writes it; `schema.table` has two parts."""
    if not isinstance(name, str):
        raise TypeError(f"{operator}: {argument} must be a str, not {instead(name)}")
    if not all(name.split(".")):
        raise ValueError(f"{operator}: {argument} must be a name, or schema.name, not {name!r}")
    return sql.Identifier(*name.split("."))


class Server:
    """The server that an operator connects to.

    Args:
        operator: Its name, for messages.
        connection: A connection string or URL of libpq.

    Raises:
        TypeError: `connection` is not a str.
        ValueError: It is no connection string.
    """

    def __init__(self, operator: str, connection: str) -> None:
        if not isinstance(connection, str):
            raise TypeError(f"{operator}: conninfo must be a str, not {instead(connection)}")
        try:
            parts = conninfo.conninfo_to_dict(connection)
        except psycopg.Error:
            parts = None
        if parts is None:  # its message, and its traceback, would show the password
            raise ValueError(
                f"{operator}: conninfo can't be read: it must be 'host=… port=… dbname=… user=…',"
                " or postgresql://user@host:port/dbname"
            )
        environment = os.environ.get
        host = parts.get("host") or parts.get("hostaddr") or environment("PGHOST") or "a local socket"
        port = parts.get("port") or environment("PGPORT") or 5432
        database = parts.get("dbname") or environment("PGDATABASE") or parts.get("user") or "the user's database"
        self.operator = operator
        self.name = f"{host}:{port}/{database}"
        self._secret = str(parts.get("password") or environment("PGPASSWORD") or "")
        self._parts: dict[str, Any] = {"connect_timeout": CONNECTING, "application_name": "reactive_runtime", **parts}

    def __repr__(self) -> str:
        return self.name

    def fail(self, what: str, cause: BaseException | None = None) -> NoReturn:
        """Raise an error that names the server, and hides the password."""
        said = what if cause is None else f"{what}: {str(cause).strip() or type(cause).__name__}"
        server = f"{self.operator}: PostgreSQL at {self.name}: "  # the same as in the name of the flow
        if len(self._secret) >= LEAST_SECRET and self._secret in said:
            raise PostgresError(server + said.replace(self._secret, "***")) from None
        raise PostgresError(server + said) from cause

    def connect(self, stopped: Callable[[], object], *, autocommit: bool = False) -> Connection:
        """Open a connection, whose calls `stopped` ends."""
        try:
            connection = Connection.connect(**self._parts, autocommit=autocommit)
        except psycopg.Error as cause:
            self.fail("can't connect; start the server, or mend host, port, database, user or password", cause)
        connection.stopped, connection.process = stopped, os.getpid()
        if (version := connection.info.server_version // 10000) < LEAST_VERSION:
            connection.leave()
            self.fail(f"it is of version {version}, and {LEAST_VERSION} or newer is needed")
        return connection

    def failed(self, connection: Connection, what: str, cause: BaseException) -> NoReturn:
        """Raise what an error of psycopg means: `Stopped` where it is only that the flow was cancelled."""
        if connection.was_stopped:
            raise Stopped
        self.fail(
            f"the connection is lost, {what}; subscribe anew, as retry does" if connection.closed else what, cause
        )


class Connection(psycopg.Connection[Any]):
    """A connection whose calls end when the flow is cancelled."""

    stopped: Callable[[], object] = staticmethod(lambda: False)
    """Whether to leave a call that waits. For the one who uses the connection."""

    process: int = 0
    """The one that has opened it."""

    was_stopped: bool = False
    """Whether a call has been left: its transaction, or pipeline, is no use any more."""

    def wait(self, gen: Generator[Any, Any, R], *arguments: Any, **named: Any) -> R:
        """See `psycopg.Connection.wait`."""
        try:
            wanted = next(gen)
        except StopIteration as end:  # it need not wait, as for most rows of a COPY
            result: R = end.value
            return result
        return super().wait(_watched(gen, wanted, self), *arguments, **{"interval": TICK, **named})

    def leave(self) -> None:
        """Close it. If a call was left, have the server end its query. A COPY ends with the connection."""
        if self.closed:
            return
        if self.process != os.getpid():
            _cut_off(self.pgconn.socket)
        try:
            if self.was_stopped and self.pgconn.transaction_status == TransactionStatus.ACTIVE:
                with suppress(psycopg.Error):
                    self._end_query()
        finally:
            self.close()

    def _end_query(self) -> None:
        if capabilities.has_cancel_safe():
            self.cancel_safe(timeout=ENDING)
            return
        # Before libpq 17 this call waits for the server for as long as it likes, so that it has a thread of its own.
        thread = primitives.Thread(target=_quietly, args=(self.pgconn.get_cancel().cancel,), daemon=True)
        thread.start()
        thread.join(ENDING)


def _cut_off(socket: int) -> None:
    """Have what a forked child says on its parent's connection go nowhere: the server would end the session."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, socket)
    os.close(nowhere)


def _quietly(call: Callable[[], object]) -> None:
    with suppress(psycopg.Error):
        call()


def _watched(gen: Generator[Any, Any, R], wanted: Any, connection: Connection) -> Generator[Any, Any, R]:
    """The client's own generator: it yields what it waits for, and gets what is ready; nothing, after each interval."""
    try:
        while True:
            ready = yield wanted
            if not ready and connection.stopped():
                connection.was_stopped = True
                raise Stopped
            wanted = gen.send(ready)
    except StopIteration as end:
        result: R = end.value
        return result
