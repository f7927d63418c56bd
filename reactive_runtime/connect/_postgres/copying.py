"""COPY, out and in: the types of its columns, and errors that name the row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set, Sized
from typing import Any, Final, cast

from reactive_runtime._support.shown import shown
from reactive_runtime.connect._postgres.connection import Connection, Server

# isort: split
import psycopg
from psycopg import sql

__all__ = ["Copying", "each_row", "inner_query", "raise_if_of_server", "set_types", "types_of"]

NO_ROWS: Final = (str, bytes, bytearray, Mapping, Set)
"""Of these psycopg would write the characters, the keys, or the members in any order."""


def inner_query(query: Any) -> Any:
    """The query, for a place inside of another."""
    if isinstance(query, bytes):
        return inner_query(query.decode())
    return sql.SQL(cast("Any", query.rstrip("; \t\r\n"))) if isinstance(query, str) else query


def types_of(operator: str, types: Sequence[int | str]) -> Sequence[int | str]:
    """The names of types that a user gives. TypeError for a str."""
    if isinstance(types, str):
        raise TypeError(f"{operator}: types must be a list of names, not {types!r}")
    return tuple(types)  # it may be an iterator, and each subscription needs them


def set_types(server: Server, connection: Connection, copy: psycopg.Copy, types: Sequence[int | str]) -> None:
    """Tell the client the types of the columns; none: it chooses them by the values."""
    if not types:
        return
    try:
        copy.set_types(types)
    except (KeyError, TypeError) as error:
        server.failed(connection, f"types must be names of PostgreSQL's types, not {shown(types)}", error)


def each_row(server: Server, connection: Connection, rows: Iterator[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """The rows of a COPY. A `PostgresError` that names the row, where one can't be read."""
    number = -1
    try:
        for number, row in enumerate(rows):  # noqa: B007  # the error has it
            yield row
    except Exception as error:
        raise_if_of_server(error)
        server.failed(connection, f"row {number + 1} can't be read", error)


def raise_if_of_server(error: Exception) -> None:
    """Raise an error of the server, or of the connection: it is not about a value that the client can't read."""
    if isinstance(error, psycopg.Error) and (error.sqlstate or not isinstance(error, psycopg.DataError)):
        raise error


def _is_empty(row: Any) -> bool:
    """Whether it has no value. TypeError for what is no row, although it has elements."""
    if isinstance(row, NO_ROWS):
        raise TypeError("a row must be a sequence of values, in the order of the columns")
    return isinstance(row, Sized) and len(row) == 0


class Copying:
    """Writes rows. The client collects them, and sends them in portions."""

    def __init__(self, server: Server, connection: Connection, copy: psycopg.Copy) -> None:
        self.server, self.connection = server, connection
        self.write_row = copy.write_row
        self.written = 0  # the thread that writes

    def write(self, element: Any) -> None:
        try:
            kind = type(element)
            if not element if kind is tuple or kind is list else _is_empty(element):
                raise ValueError("a row must have a value for each column, and this one has none")
            self.write_row(element)
        except Exception as error:  # of a value that can't be sent
            self.server.failed(self.connection, f"row {self.written} can't be written, {shown(element)}", error)
        self.written += 1
