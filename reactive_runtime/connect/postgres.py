"""PostgreSQL: the rows of a query, COPY out as a source, and COPY in as a sink.

The queue in a table is `postgres_queue`. The operators are in `_postgres.flows`, the connection in
`_postgres.connection`.

Each subscription has a connection of its own. It is opened with the first demand, and closed once: at the end, at an
error, at a cancel, or when the garbage collector frees the subscription.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from reactive_runtime._core.runtime.arguments import PREFETCH, at_least
from reactive_runtime._flow import Flow
from reactive_runtime._operators.flow_base import as_flow, combinator_flow
from reactive_runtime._spec import Publisher
from reactive_runtime._support.public_names import all_at_home as _all_at_home
from reactive_runtime.connect._postgres.connection import Connection, PostgresError, Server, identifier
from reactive_runtime.connect._postgres.copying import (
    Copying,
    each_row,
    inner_query,
    raise_if_of_server,
    set_types,
    types_of,
)
from reactive_runtime.connect._postgres.flows import Sink, Source

# isort: split
import psycopg
from psycopg import sql
from psycopg.rows import tuple_row

if TYPE_CHECKING:
    from psycopg.abc import Params, Query

__all__ = ["PostgresError", "copy_in", "copy_out", "rows"]


def rows(
    conninfo: str,
    query: Query,
    parameters: Params | None = None,
    *,
    fetch: int = PREFETCH,
    row_factory: Any = tuple_row,
) -> Flow[Any]:
    """The rows of a query, out of a server-side cursor: the server gives `fetch` rows whenever those before are used.

    Args:
        conninfo: A connection string or URL of libpq; what it does not say comes from the environment (PGHOST).
        query: A SELECT or VALUES: text with `%s` for the parameters, or a `psycopg.sql` object.
        parameters: The values for the `%s`.
        fetch: How many rows one call to the server brings; 1 or more.
        row_factory: One of `psycopg.rows`, which makes the elements; tuples by default.

    Returns:
        A flow of rows. It fails with a `PostgresError` that names the server.

    Raises:
        TypeError: `conninfo` is not a str, or `fetch` is no int.
        ValueError: `conninfo` can't be read, or `fetch` is below 1.

    Demand:
        The first demand connects and opens the cursor. At most `fetch` - 1 rows are fetched ahead of demand.

    Cancellation:
        Ends the query at the server within about a tenth of a second, and closes the connection. `cancel` does not wait
        for that where the flow has an executor.

    Thread:
        Calls to the server block the thread that requests: with `subscribe_on` it is one of an executor.

    Example:
        >>> flow = rows("host=db.example dbname=shop", "SELECT id, total FROM orders WHERE total > %s", [100])
        >>> print(flow)
        rows(db.example:5432/shop)

    Origin:
        `ConnectorIO` of R2DBC with a fetch size; named cursors of psycopg.
    """
    server = Server("rows", conninfo)
    at_least("rows", "fetch", 1, fetch)

    def of(connection: Connection) -> Generator[Iterable[Any]]:
        with connection.cursor("reactive_runtime", row_factory=row_factory) as cursor:
            cursor.execute(query, parameters)
            given = 0
            while True:
                try:
                    fetched = cursor.fetchmany(fetch)
                except Exception as error:  # of `row_factory`, or of a value that the type has not
                    raise_if_of_server(error)
                    server.failed(connection, f"a row can't be read, of those from row {given} on", error)
                given += len(fetched)
                yield fetched
                if len(fetched) < fetch:
                    break
        connection.commit()  # of functions that the query has called

    return combinator_flow(f"rows({server})", lambda: Source(server, of))


def copy_out(
    conninfo: str, query: Query, parameters: Params | None = None, *, types: Sequence[int | str] = ()
) -> Flow[tuple[Any, ...]]:
    """The rows of a query, out of a COPY: the fastest way to many rows.

    Args:
        conninfo: A connection string or URL of libpq; what it does not say comes from the environment (PGHOST).
        query: A SELECT or VALUES, or `TABLE name`: text with `%s` for the parameters, or a `psycopg.sql` object.
        parameters: The values for the `%s`.
        types: The names of the columns' types in PostgreSQL, as `["int8", "text"]`. Without them each value is a str,
            or None.

    Returns:
        A flow of tuples. It fails with a `PostgresError` that names the server.

    Raises:
        TypeError: `conninfo` is not a str.
        ValueError: `conninfo` can't be read.

    Demand:
        The first demand connects. The server sends as much as the buffers of the two sockets and the client take, some
        megabytes at most, and waits for demand then.

    Cancellation:
        As with `rows`.

    Thread:
        As with `rows`.

    Example:
        >>> print(copy_out("host=db.example dbname=shop", "TABLE orders", types=["int8", "numeric"]))
        copy_out(db.example:5432/shop)

    Origin:
        `CopyManager` of the JDBC driver; `copy` of psycopg.
    """
    server = Server("copy_out", conninfo)
    names = types_of("copy_out", types)
    statement = sql.SQL("COPY ({}\n) TO STDOUT").format(inner_query(query))  # it may end in a comment

    def of(connection: Connection) -> Generator[Iterable[Any]]:
        with connection.cursor() as cursor, cursor.copy(statement, parameters) as copy:
            set_types(server, connection, copy, names)
            yield each_row(server, connection, copy.rows())
        connection.commit()

    return combinator_flow(f"copy_out({server})", lambda: Source(server, of))


def copy_in(
    source: Publisher[Sequence[Any]],
    conninfo: str,
    table: str,
    columns: Sequence[str] = (),
    *,
    types: Sequence[int | str] = (),
) -> Flow[int]:
    """Writes the rows of a flow into a table by COPY, in one transaction: all of them, or none.

    Args:
        source: A publisher of rows: sequences of values.
        conninfo: A connection string or URL of libpq; what it does not say comes from the environment (PGHOST).
        table: The table, as `name` or `schema.name`, just as it is spelt there.
        columns: The columns that a row has values for; none: all columns of the table.
        types: The names of the columns' types in PostgreSQL: needed where psycopg chooses another than the column's.

    Returns:
        A flow of one element, the number of rows, which comes when they are committed. It fails with the error of
        `source`, or with a `PostgresError` that names the server and the row; the server has rolled back then. If the
        connection is lost during the commit, the error says that all rows are there, or none.

    Raises:
        TypeError: `source` is no publisher, or `conninfo`, `table` or a column is not a str.
        ValueError: `conninfo` can't be read, or a name is empty.

    Demand:
        The first demand connects, and takes all of `source`. A server that is slow holds the source back: of a source
        with an executor, at most 256 rows wait here.

    Cancellation:
        Cancels `source`, and rolls back.

    Thread:
        Rows are written on the thread that delivers them; with `subscribe_on`, on that executor.

    Example:
        >>> from reactive_runtime import Flow
        >>> print(copy_in(Flow.just((1, "a")), "host=db.example dbname=shop", "orders", ["id", "name"]))
        just((1, 'a')) copy_in(db.example:5432/shop, orders)

    Origin:
        `CopyManager` of the JDBC driver; `copy` of psycopg.
    """
    server = Server("copy_in", conninfo)
    if isinstance(columns, str):
        raise TypeError(f"copy_in: columns must be a list of names, not {columns!r}")
    types = types_of("copy_in", types)
    names = sql.SQL(", ").join([identifier("copy_in", "a column", column) for column in columns])
    statement = sql.SQL("COPY {} {} FROM STDIN").format(
        identifier("copy_in", "table", table), sql.SQL("({})").format(names) if columns else sql.SQL("")
    )

    @contextmanager
    def into(connection: Connection) -> Iterator[Copying]:
        with connection.cursor() as cursor, cursor.copy(statement) as copy:
            set_types(server, connection, copy, types)
            yield Copying(server, connection, copy)
        try:
            connection.commit()
        except psycopg.Error as error:
            if not connection.closed:
                raise
            server.failed(connection, "its answer to COMMIT is missing: all rows are in the table, or none", error)

    flow = as_flow("copy_in", "source", source)
    return combinator_flow(f"copy_in({server}, {table})", lambda: Sink(server, into, flow), flow)


_all_at_home(globals())
