"""Stand-ins for connections of `sqlite3`.

Databases are real; each execute, commit and rollback is a point on the database. SQLite itself never waits: where it
answers that the database is locked, the thread waits for a change by another connection, in virtual time, until the
timeout of its connection. It does not wait where SQLite would not: a transaction that has read, and wants to write
while another one does, gets the error at once.

A script is one step. Disk writes are not synchronised, since no run loses power.

Ownership: the holder of the turn owns it all.
"""

from __future__ import annotations

import os
import re
import sqlite3
import sqlite3.dbapi2 as dbapi
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, partial
from typing import Any, Final

from reactive_runtime.explore._schedule.carriers import real_ident
from reactive_runtime.explore._schedule.scheduler import Scheduler
from reactive_runtime.explore._schedule.task import Task
from reactive_runtime.explore._standins import instrumented
from reactive_runtime.explore._standins.process_pipes import Waited, changed
from reactive_runtime.explore._standins.process_world import world

__all__ = ["changes"]

_real_connect: Final[Any] = sqlite3.connect
_PARAMETERS: Final = (
    *("timeout", "detect_types", "isolation_level", "check_same_thread", "factory", "cached_statements", "uri"),
)
"""Those of `sqlite3.connect` that may be given by their place."""
_TIMEOUT: Final = re.compile(r"\s*pragma\s+busy_timeout\s*[=(]\s*(\d+)", re.IGNORECASE)
_FIRST: Final = re.compile(r"(?:\s|--[^\n]*\n|/\*.*?\*/)*(\w+)\s*(\w*)", re.DOTALL)
_BUSY: Final = 5


class _State:
    """The explorer's knowledge of a connection."""

    def __init__(self, database: str, timeout: float, checked: bool) -> None:
        databases = world().databases
        if database not in databases:
            databases[database] = Waited()
        self.database: Waited = databases[database]
        self.timeout = timeout
        self.thread = real_ident() if checked else None
        self.reads = False  # its transaction has read: SQLite does not wait for more
        self.writes = False  # it has written, or is about to
        self.synchronises = True  # it still waits for the disk when it commits

    def check(self) -> None:
        """As `check_same_thread`."""
        if self.thread not in (None, real_ident()):
            raise sqlite3.ProgrammingError(
                "SQLite objects created in a thread can only be used in that same thread: the explorer has another one"
                " for each actor and each process"
            )

    def hurry(self, connection: Any) -> None:
        """Do not wait for the disk, from now on. It can't be set in a transaction, nor while the database is locked."""
        if self.synchronises and not connection.in_transaction:
            with suppress(sqlite3.Error):
                self.synchronises = False

    def use(self, sql: str, inside: bool) -> bool | None:
        """Whether a statement may change the database; None: it does not come to it."""
        found = _FIRST.match(sql)
        first, second = (word.upper() for word in found.groups()) if found is not None else ("", "")
        if first == "BEGIN":
            return True if second in ("IMMEDIATE", "EXCLUSIVE") else None
        if first in ("COMMIT", "END", "ROLLBACK"):
            return self.writes if inside else None
        if first == "PRAGMA":
            return "=" in sql or "(" in sql
        return first not in ("SELECT", "VALUES", "EXPLAIN")


def _perform(connection: Any, what: str, sql: str, operation: Callable[[], Any], *, once: bool = False) -> Any:
    """A point of choice, and a wait as long as the database is locked."""
    state: _State | None = connection.__dict__.get("_explored")
    if state is None:
        return operation()
    state.check()
    me = instrumented.caller()
    scheduler = instrumented.active
    use = state.use(sql, connection.in_transaction)
    if me is None or scheduler is None or scheduler.aborting or use is None:
        return operation()
    database = state.database
    ends = what in ("commit", "rollback", "close") or sql[:6].strip().upper() in ("COMMIT", "END", "ROLLBA")
    instrumented.point(scheduler, me, database, what, use)
    state.hurry(connection)
    deadline = scheduler.clock + state.timeout
    try:
        while True:
            try:
                result = operation()
                break
            except sqlite3.OperationalError as error:
                at_once = once or (state.reads and not ends) or scheduler.clock >= deadline
                if error.sqlite_errorcode & 0xFF != _BUSY or at_once:
                    raise
            instrumented.met(scheduler, me, database, use)
            database.wait(scheduler, me, what, deadline)
    finally:
        if not scheduler.aborting:
            _after(connection, state, use, scheduler, me)
    return result


def _after(connection: Any, state: _State, use: bool, scheduler: Scheduler, me: Task) -> None:
    inside = _is_open(connection) and connection.in_transaction
    state.writes = inside and (state.writes or use)
    state.reads = inside and (state.reads or not use or state.writes)
    if use:
        changed(scheduler, me, state.database)
    else:
        instrumented.met(scheduler, me, state.database, writes=False)
    state.database.wake(scheduler)


def _is_open(connection: Any) -> bool:
    try:
        connection.total_changes  # noqa: B018
    except sqlite3.ProgrammingError:
        return False
    return True


def _shut(connection: Any) -> None:
    """Close a connection. A cursor that the traceback of an error refers to would keep the transaction open."""
    if connection.in_transaction:
        sqlite3.Connection.rollback(connection)
    sqlite3.Connection.close(connection)


class _Connection:
    """The methods of a connection that differ; `_connection_of` derives from it and from the program's class."""

    _explored: _State

    def cursor(self, factory: Any = sqlite3.Cursor) -> Any:
        """As `Connection.cursor`."""
        return super().cursor(_cursor_of(factory))  # type: ignore[misc]

    def execute(self, *given: Any) -> Any:
        """As `Connection.execute`."""
        return self.cursor().execute(*given)

    def executemany(self, *given: Any) -> Any:
        """As `Connection.executemany`."""
        return self.cursor().executemany(*given)

    def executescript(self, *given: Any) -> Any:
        """As `Connection.executescript`."""
        return self.cursor().executescript(*given)

    def commit(self) -> None:
        """As `Connection.commit`."""
        _perform(self, "commit", "COMMIT", super().commit)  # type: ignore[misc]

    def rollback(self) -> None:
        """As `Connection.rollback`."""
        _perform(self, "rollback", "ROLLBACK", super().rollback)  # type: ignore[misc]

    def close(self) -> None:
        """As `Connection.close`: what is not committed is rolled back."""
        if "_explored" in self.__dict__ and _is_open(self):
            world().inside.leaving.pop(id(self), None)
            _perform(self, "close", "ROLLBACK", lambda: _shut(self))
        else:
            super().close()  # type: ignore[misc]

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is None:
            try:
                self.commit()
            except BaseException:
                self.rollback()
                raise
        else:
            self.rollback()


class _Cursor:
    """The same of a cursor."""

    connection: Any

    def execute(self, sql: str, *given: Any) -> Any:
        """As `Cursor.execute`: a point of choice, and a wait in virtual time."""
        state: _State | None = self.connection.__dict__.get("_explored")
        if state is not None and isinstance(sql, str) and (found := _TIMEOUT.match(sql)) is not None:
            state.timeout, sql = int(found[1]) / 1000, "PRAGMA busy_timeout = 0"
        operation = super().execute  # type: ignore[misc]
        return _perform(self.connection, "execute", sql, lambda: operation(sql, *given))

    def executemany(self, sql: str, given: Any) -> Any:
        """As `Cursor.executemany`: one step."""
        operation = super().executemany  # type: ignore[misc]
        given = list(given)
        return _perform(self.connection, "executemany", sql, lambda: operation(sql, given))

    def executescript(self, script: str) -> Any:
        """As `Cursor.executescript`: one step; where the database is locked it does not wait."""
        operation = super().executescript  # type: ignore[misc]
        return _perform(self.connection, "executescript", "script", lambda: operation(script), once=True)

    def fetchone(self) -> Any:
        """As `Cursor.fetchone`."""
        return self._fetched(super().fetchone())  # type: ignore[misc]

    def fetchmany(self, *given: Any, **named: Any) -> Any:
        """As `Cursor.fetchmany`."""
        return self._fetched(super().fetchmany(*given, **named))  # type: ignore[misc]

    def fetchall(self) -> Any:
        """As `Cursor.fetchall`."""
        return self._fetched(super().fetchall())  # type: ignore[misc]

    def _fetched(self, result: Any) -> Any:
        """The last row may have been read: what waits for that looks again."""
        state: _State | None = self.connection.__dict__.get("_explored")
        me = None if state is None or instrumented.foreign() else instrumented.caller()
        if state is not None and me is not None and state.database.waiting:
            scheduler = instrumented.running()
            instrumented.met(scheduler, me, state.database, writes=False)
            state.database.wake(scheduler)
        return result


@cache
def _connection_of(kind: type) -> type:
    return type(kind.__name__, (_Connection, kind), {"__module__": __name__})


@cache
def _cursor_of(kind: type) -> type:
    return kind if issubclass(kind, _Cursor) else type(kind.__name__, (_Cursor, kind), {"__module__": __name__})


def connect(database: Any, *given: Any, **named: Any) -> Any:
    """Stands in for `sqlite3.connect`."""
    if instrumented.foreign():
        return _real_connect(database, *given, **named)
    named = dict(zip(_PARAMETERS, given, strict=False)) | named
    timeout = named.pop("timeout", 5.0)
    checked = named.pop("check_same_thread", True)
    kind = _connection_of(named.pop("factory", sqlite3.Connection))
    connection = _real_connect(database, timeout=0, check_same_thread=False, factory=kind, **named)
    path = os.fsdecode(database)
    alone = path in (":memory:", "") or (named.get("uri") and "memory" in path)
    place = f"·{id(connection)}" if alone else path if named.get("uri") else os.path.realpath(path)
    state = _State(place, timeout, checked)
    state.hurry(connection)
    connection.__dict__["_explored"] = state
    process = world().inside
    if process is not world().here:
        process.leaving[id(connection)] = _leaving(connection)
        world().unclosed.append(partial(_close_left, connection))
    return connection


def _close_left(connection: Any) -> None:
    """Close the connection of a process that a run has cut off."""
    if _is_open(connection):
        _shut(connection)


def _leaving(connection: Any) -> Callable[[Scheduler, Task], None]:
    """A function that closes a connection whose process has ended."""

    def left(scheduler: Scheduler, me: Task) -> None:
        state: _State = connection.__dict__["_explored"]
        if _is_open(connection):
            _shut(connection)
            changed(scheduler, me, state.database)
            state.database.wake(scheduler)

    return left


def changes() -> Iterator[tuple[Any, str, Any]]:
    """Yields modules, a name of each, and the stand-in for that name."""
    yield sqlite3, "connect", connect
    yield dbapi, "connect", connect
