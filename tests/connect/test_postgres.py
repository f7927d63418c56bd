"""The adapter for PostgreSQL, against a real server."""

from __future__ import annotations

import gc
import logging
import os
import queue
import signal
import subprocess
import sys
import threading
import traceback
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from psycopg.rows import class_row
from sinks import PATIENCE, Sink, until

from connect.postgres_server import PASSWORD, ROOT, USER, PostgresServer, free_port
from examples.connect import orders_in_postgres
from reactive_runtime import Flow
from reactive_runtime.connect.postgres import PostgresError, copy_in, copy_out, rows
from reactive_runtime.connect.postgres_queue import Job, enqueue, jobs, queue_sql
from reactive_runtime.hooks import captured

pytestmark = [pytest.mark.xdist_group("postgres"), pytest.mark.timeout(300)]

Admin = psycopg.Connection[Any]


@pytest.fixture(scope="session")
def started() -> Iterator[PostgresServer]:
    server = PostgresServer()
    try:
        server.start()
        yield server
    finally:
        server.close()


@pytest.fixture
def server(started: PostgresServer) -> PostgresServer:
    """A server that runs, also after a test that has killed it."""
    assert started.process is not None
    if started.process.poll() is not None:
        started.start()
    return started


@pytest.fixture
def admin(server: PostgresServer) -> Iterator[Admin]:
    """A connection of the test's own, with empty tables, and a sequence that counts what the server has made."""
    with server.connect() as connection:
        connection.execute("DROP TABLE IF EXISTS numbers, jobs; DROP SEQUENCE IF EXISTS made")
        connection.execute("CREATE TABLE numbers (n bigint PRIMARY KEY, name text); CREATE SEQUENCE made")
        connection.execute(queue_sql("jobs"))
        yield connection
        until(lambda: not connections(connection))  # each flow has closed its own


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as pool:
        yield pool


def one(connection: Admin, query: str) -> Any:
    row = connection.execute(query).fetchone()
    assert row is not None
    return row[0]


def connections(connection: Admin, state: str = "%") -> int:
    query = f"application_name = 'reactive_runtime' AND state LIKE '{state}'"
    found: int = one(connection, f"SELECT count(*) FROM pg_stat_activity WHERE {query}")
    return found


def made(connection: Admin) -> int:
    """How many rows the server has made."""
    number: int = one(connection, "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM made")
    return number


COUNTED = "SELECT nextval('made'), repeat('x', 1000) FROM generate_series(1, 100000)"


def texts(error: BaseException) -> str:
    """All that a log would show of it."""
    notes = "\n".join(getattr(error, "__notes__", []))
    causes = "".join(repr(cause) for cause in (error.__cause__, error.__context__))
    return "\n".join([str(error), repr(error), notes, causes, "".join(traceback.format_exception(error))])


# -- rows ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fetch", [1, 3, 10, 256])
def test_rows_come_in_order(server: PostgresServer, admin: Admin, fetch: int) -> None:
    query = "SELECT n, NULL, 'a' || n FROM generate_series(%s::int, 10) n"
    flow = rows(server.conninfo, query, [1], fetch=fetch)
    assert list(flow) == [(n, None, f"a{n}") for n in range(1, 11)]
    assert list(flow.take(4)) == [(n, None, f"a{n}") for n in range(1, 5)]
    assert list(rows(server.conninfo, "SELECT 1 WHERE false", fetch=fetch)) == []


def test_rows_are_what_the_row_factory_makes(server: PostgresServer, admin: Admin) -> None:
    assert list(rows(server.conninfo, "SELECT 1 AS a", row_factory=psycopg.rows.dict_row)) == [{"a": 1}]


def test_rows_are_fetched_by_demand(server: PostgresServer, admin: Admin) -> None:
    sink = Sink(0)
    rows(server.conninfo, COUNTED, fetch=4).subscribe(sink)
    assert connections(admin) == 0
    for demand, there in [(1, 4), (3, 4), (1, 8), (4, 12)]:
        sink.subscription.request(demand)
        assert made(admin) == there
    assert [n for n, _ in sink.elements] == list(range(1, 10))
    sink.subscription.cancel()
    assert sink.end is None


@pytest.mark.parametrize("fetch", [1, 300])
def test_rows_on_a_pool_come_all(server: PostgresServer, admin: Admin, pool: ThreadPoolExecutor, fetch: int) -> None:
    source = rows(server.conninfo, "SELECT n FROM generate_series(1, 1000) n", fetch=fetch)
    flow = source.subscribe_on(pool).publish_on(pool, prefetch=7)
    assert [n for (n,) in flow] == list(range(1, 1001))


def all_free(pool: ThreadPoolExecutor) -> None:
    """Both of its threads are free."""
    meeting = threading.Barrier(2)
    for future in [pool.submit(meeting.wait, PATIENCE) for _ in range(2)]:
        future.result(PATIENCE)


STUCK: dict[str, Callable[[str], Flow[Any]]] = {
    "rows": lambda c: rows(c, "SELECT pg_sleep(1000)"),
    "rows, later": lambda c: rows(c, "SELECT pg_sleep((n - 1) * 1000) FROM generate_series(1, 2) n", fetch=1),
    "copy_out": lambda c: copy_out(c, "SELECT pg_sleep(1000)"),
    "copy_in": lambda c: copy_in(Flow.range(3).map(lambda n: (n, "")), c, "numbers"),
    "enqueue": lambda c: enqueue(Flow.range(3), c, "jobs"),
}


@pytest.mark.parametrize("name", STUCK)
def test_a_cancel_ends_a_call_that_waits(
    server: PostgresServer, admin: Admin, pool: ThreadPoolExecutor, name: str
) -> None:
    """The query ends at the server too, and the pool has its thread back."""
    sink = Sink()
    with server.connect() as other:
        other.autocommit = False
        other.execute("LOCK TABLE numbers, jobs")
        STUCK[name](server.conninfo).subscribe_on(pool).subscribe(sink)
        until(lambda: connections(admin, "active") == 1)
        before = len(sink.signals)
        sink.subscription.cancel()
        until(lambda: connections(admin) == 0)
        assert len(sink.signals) in (before, before + 1)
    assert sink.end is None
    assert one(admin, "SELECT (SELECT count(*) FROM numbers) + (SELECT count(*) FROM jobs)") == 0
    all_free(pool)


HUNG: dict[str, Callable[[str, ThreadPoolExecutor], Flow[Any]]] = {
    "rows": lambda c, p: rows(c, COUNTED, fetch=1).subscribe_on(p),
    "copy_out": lambda c, p: copy_out(c, COUNTED).subscribe_on(p),
    "copy_in": lambda c, p: copy_in(endless(), c, "numbers").subscribe_on(p),
    "enqueue": lambda c, p: enqueue(endless(), c, "jobs").subscribe_on(p),
    "jobs": lambda c, p: jobs(c, "jobs", p).acknowledge(),
}


def endless() -> Flow[Any]:
    return Flow.generate(0, lambda n: ((n, "x" * 1000), n + 1))


@pytest.mark.parametrize("name", HUNG)
def test_a_cancel_does_not_wait_for_a_server_that_hangs(
    server: PostgresServer, admin: Admin, pool: ThreadPoolExecutor, name: str
) -> None:
    sink = Sink()
    HUNG[name](server.conninfo, pool).subscribe(sink)
    until(lambda: connections(admin) == 1)
    server.signal(signal.SIGSTOP)
    try:
        sink.subscription.cancel()
        all_free(pool)
    finally:
        server.signal(signal.SIGCONT)
    assert sink.end is None


def test_an_idle_flow_that_is_cancelled_or_dropped_closes_its_connection(server: PostgresServer, admin: Admin) -> None:
    flows = [rows(server.conninfo, COUNTED), copy_out(server.conninfo, COUNTED)]
    for flow in flows:
        sink = Sink(1)
        flow.subscribe(sink)
        assert connections(admin) == 1
        sink.subscription.cancel()
        until(lambda: connections(admin) == 0)
    for flow in flows:
        sink = Sink(1)
        flow.subscribe(sink)
        assert connections(admin) == 1
        del sink
        gc.collect()
        until(lambda: connections(admin) == 0)


FORKS = """
import os, sys
from sinks import Sink
from reactive_runtime.connect.postgres import rows

sink = Sink(demand=1)
rows(sys.argv[1], "SELECT generate_series(1, 9)", fetch=2).subscribe(sink)
child = os.fork()
if not child:
    sink.subscription.cancel()
    os._exit(0)
os.waitpid(child, 0)
sink.subscription.request(9)
print(len(sink.elements), sink.end)
"""


def test_a_forked_child_leaves_the_connection_to_its_parent(server: PostgresServer, admin: Admin) -> None:
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    command = [sys.executable, "-c", FORKS, server.conninfo]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}, check=False)
    assert done.stdout == "9 ('on_complete',)\n", done.stderr


def test_a_loop_that_is_left_closes_its_connection(server: PostgresServer, admin: Admin) -> None:
    for _ in rows(server.conninfo, COUNTED):
        break
    gc.collect()
    until(lambda: connections(admin) == 0)


@pytest.mark.parametrize("source", ["rows", "copy_out"])
def test_many_rows_take_no_more_memory_than_few(server: PostgresServer, admin: Admin, source: str) -> None:
    def peak(n: int) -> int:
        query = f"SELECT repeat('x', 1000) FROM generate_series(1, {n})"
        flow: Flow[Any] = rows(server.conninfo, query) if source == "rows" else copy_out(server.conninfo, query)
        tracemalloc.start()
        try:
            assert flow.count().block(timeout=PATIENCE) == n
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak(10_000) < 2 * peak(1_000) + 100_000


# -- errors ----------------------------------------------------------------------------------------------------------


FLOWS: dict[str, Callable[[str, ThreadPoolExecutor], Flow[Any]]] = {
    "rows": lambda c, p: rows(c, "SELECT 1"),
    "copy_out": lambda c, p: copy_out(c, "SELECT 1"),
    "copy_in": lambda c, p: copy_in(Flow.just((1, "a")), c, "numbers"),
    "enqueue": lambda c, p: enqueue(Flow.just(1), c, "jobs"),
    "jobs": lambda c, p: jobs(c, "jobs", p).acknowledge(),
}


@pytest.mark.parametrize("name", FLOWS)
def test_a_server_that_is_not_there_is_named(pool: ThreadPoolExecutor, name: str) -> None:
    port = free_port()
    flow = FLOWS[name](f"postgresql://{USER}:{PASSWORD}@127.0.0.1:{port}/shop", pool)
    with pytest.raises(PostgresError, match=rf"^{name}: PostgreSQL at 127.0.0.1:{port}/shop: can't connect") as raised:
        flow.run(timeout=PATIENCE)
    assert isinstance(raised.value.__cause__, psycopg.OperationalError)
    assert PASSWORD not in texts(raised.value) + repr(flow) + str(flow) + flow.explain()


@pytest.mark.parametrize("name", FLOWS)
def test_a_wrong_password_is_in_no_message(
    server: PostgresServer, admin: Admin, pool: ThreadPoolExecutor, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    wrong = "wr0ng-w0rd"
    flow = FLOWS[name](server.conninfo.replace(PASSWORD, wrong), pool)
    with pytest.raises(PostgresError, match="password authentication failed") as raised:
        flow.run(timeout=PATIENCE)
    shown = texts(raised.value) + repr(flow) + str(flow) + flow.explain() + caplog.text
    assert wrong not in shown
    assert f"127.0.0.1:{server.port}/postgres" in shown


def test_a_connection_string_that_cannot_be_read_is_not_shown() -> None:
    for text in (f"host=a password={PASSWORD} what", f"postgresql://u:{PASSWORD}@[::1/shop", f"pass {PASSWORD}"):
        with pytest.raises(ValueError, match="conninfo can't be read") as raised:
            rows(text, "SELECT 1")
        assert PASSWORD not in texts(raised.value)


def test_a_password_that_is_a_common_word_hides_no_server(server: PostgresServer, admin: Admin) -> None:
    admin.execute("DROP ROLE IF EXISTS ann; CREATE ROLE ann LOGIN")
    for password in ("postgres", "e"):
        admin.execute(f"ALTER ROLE ann PASSWORD '{password}'")
        conninfo = f"postgresql://ann:{password}@127.0.0.1:{server.port}/postgres"
        with pytest.raises(PostgresError) as raised:
            list(rows(conninfo, "SELECT 1 / 0"))
        assert str(raised.value) == (
            f"rows: PostgreSQL at 127.0.0.1:{server.port}/postgres: the call failed: division by zero"
        )


def test_a_password_that_the_server_repeats_is_hidden(server: PostgresServer, admin: Admin) -> None:
    with pytest.raises(PostgresError, match=r'relation "\*\*\*" does not exist') as raised:
        list(rows(server.conninfo, f'TABLE "{PASSWORD}"'))
    assert PASSWORD not in str(raised.value) + repr(raised.value) + repr(raised.value.__cause__)


@pytest.mark.parametrize("name", ["rows", "copy_out"])
def test_a_query_that_the_server_refuses(server: PostgresServer, admin: Admin, name: str) -> None:
    query = "SELECT 10 / (5 - n) FROM generate_series(1, 10) n"
    flow: Flow[Any] = rows(server.conninfo, query, fetch=1) if name == "rows" else copy_out(server.conninfo, query)
    sink = Sink()
    flow.subscribe(sink)
    assert len(sink.wait().elements) <= 4
    assert isinstance(sink.error, PostgresError)
    assert isinstance(sink.error.__cause__, psycopg.errors.DivisionByZero)
    assert f"{name}: PostgreSQL at 127.0.0.1:{server.port}/postgres: the call failed: division by zero" in str(
        sink.error
    )


class _Row:
    def __init__(self, n: int) -> None:
        self.n = n


def test_errors_of_the_client_name_the_server_and_the_row(server: PostgresServer, admin: Admin) -> None:
    conninfo = server.conninfo
    text = "SELECT CASE n WHEN 3 THEN 'x' ELSE n::text END FROM generate_series(1, 9) n"
    infinite = "SELECT CASE n WHEN 3 THEN 'infinity' ELSE now() END FROM generate_series(1, 9) n"
    flows: list[tuple[Flow[Any], str]] = [
        (rows(conninfo, "SELECT 1 AS m", row_factory=class_row(_Row)), "a row can't be read, of those from row 0 on"),
        (rows(f"{conninfo}?client_encoding=latin1", "SELECT '€'"), "the call failed: 'latin-1' codec can't encode"),
        (rows(conninfo, infinite, fetch=2), "a row can't be read, of those from row 2 on: .*'infinity"),
        (copy_out(conninfo, text, types=["int8"]), "row 2 can't be read: invalid literal for int"),
        (copy_out(conninfo, infinite, types=["timestamptz"]), "row 2 can't be read: .*'infinity"),
        (copy_out(conninfo, "SELECT 1", types=["nonsense"]), r"types must be names of .*, not \('nonsense',\)"),
        (copy_in(Flow.just((1, "")), conninfo, "numbers", types=["nonsense", "text"]), "types must be names of"),
        (enqueue(Flow.just({}), conninfo, "jobs", adapt=lambda job: job["id"]), "1 elements from index 0 on can't"),
    ]
    for flow, message in flows:
        with pytest.raises(PostgresError, match=f"PostgreSQL at 127.0.0.1:{server.port}/postgres: {message}") as raised:
            flow.run(timeout=PATIENCE)
        assert PASSWORD not in texts(raised.value)
        until(lambda: not connections(admin))


def test_wrong_arguments(pool: ThreadPoolExecutor) -> None:
    conninfo = "host=localhost"
    calls: list[tuple[type[Exception], str, Callable[[], object]]] = [
        (TypeError, "rows: conninfo must be a str", lambda: rows(None, "SELECT 1")),  # type: ignore[arg-type]
        (ValueError, "rows: fetch must be at least 1", lambda: rows(conninfo, "SELECT 1", fetch=0)),
        (TypeError, "copy_in: source must be a publisher", lambda: copy_in([(1,)], conninfo, "t")),  # type: ignore[arg-type]
        (ValueError, "copy_in: table must be a name", lambda: copy_in(Flow.empty(), conninfo, "a..b")),
        (TypeError, "copy_in: a column must be a str", lambda: copy_in(Flow.empty(), conninfo, "t", [1])),  # type: ignore[list-item]
        (TypeError, "enqueue: adapt must be callable", lambda: enqueue(Flow.empty(), conninfo, "t", adapt=1)),  # type: ignore[arg-type]
        (TypeError, "jobs: a concurrent.futures.Executor", lambda: jobs(conninfo, "t", None)),  # type: ignore[arg-type]
        (ValueError, "jobs: most must be at least 1", lambda: jobs(conninfo, "t", pool, most=0)),
        (ValueError, "jobs: poll must be a number of seconds above 0", lambda: jobs(conninfo, "t", pool, poll=0)),
        (TypeError, "copy_in: columns must be a list", lambda: copy_in(Flow.empty(), conninfo, "t", "ab")),
        (TypeError, "copy_in: types must be a list", lambda: copy_in(Flow.empty(), conninfo, "t", types="int8")),
        (TypeError, "copy_out: types must be a list", lambda: copy_out(conninfo, "TABLE t", types="int8")),
        (ValueError, "queue_sql: .* 55 bytes at most", lambda: queue_sql("public." + "t" * 56)),
        (ValueError, "queue_sql: body must be one of", lambda: queue_sql("t", body="xml")),  # type: ignore[arg-type]
    ]
    for kind, message, call in calls:
        with pytest.raises(kind, match=message):
            call()


# -- COPY ------------------------------------------------------------------------------------------------------------


def test_a_copy_gives_the_rows_in_order(server: PostgresServer, admin: Admin, pool: ThreadPoolExecutor) -> None:
    admin.execute("INSERT INTO numbers SELECT n, nullif('a' || n, 'a3') FROM generate_series(1, 3000) n")
    wanted = [(n, None if n == 3 else f"a{n}") for n in range(1, 3001)]
    assert list(copy_out(server.conninfo, "SELECT * FROM numbers ORDER BY n", types=["int8", "text"])) == wanted
    some = copy_out(server.conninfo, "SELECT n FROM numbers WHERE n < %s ORDER BY n", [4]).subscribe_on(pool)
    assert list(some) == [("1",), ("2",), ("3",)]
    assert list(copy_out(server.conninfo, "TABLE numbers").take(1)) != []


@pytest.mark.parametrize("query", ["SELECT 1 -- one", "SELECT 1;", "SELECT 1 ;\n", b"SELECT 1"])
def test_a_copy_takes_the_queries_that_rows_takes(server: PostgresServer, admin: Admin, query: Any) -> None:
    assert list(rows(server.conninfo, query)) == [(1,)]
    types: Any = iter(["int4"])
    flow = copy_out(server.conninfo, query, types=types)
    assert list(flow) == list(flow) == [(1,)]  # the second subscription has the types too


def test_a_server_waits_for_the_demand_of_a_copy(server: PostgresServer, admin: Admin) -> None:
    sink = Sink(1)
    copy_out(server.conninfo, COUNTED.replace("1000)", "10000)"), types=["int8", "text"]).subscribe(sink)
    waits = "wait_event = 'ClientWrite' AND application_name = 'reactive_runtime'"
    until(lambda: bool(one(admin, f"SELECT count(*) FROM pg_stat_activity WHERE {waits}")))
    assert made(admin) < 50_000
    assert [n for n, _ in sink.elements] == [1]
    sink.subscription.cancel()


def test_a_copy_is_committed_at_its_end(server: PostgresServer, admin: Admin, pool: ThreadPoolExecutor) -> None:
    source = Flow.range(3000).map(lambda n: (f"a{n}", n))
    assert copy_in(source, server.conninfo, "public.numbers", ["name", "n"]).block() == 3000
    assert one(admin, "SELECT count(*) FROM numbers WHERE name = 'a' || n") == 3000
    more = Flow.range(3000, 3100).map(lambda n: (n, None)).subscribe_on(pool)
    assert copy_in(more, server.conninfo, "numbers", types=["int8", "text"]).block(timeout=PATIENCE) == 100
    assert copy_in(Flow.empty(), server.conninfo, "numbers").block() == 0
    assert one(admin, "SELECT count(*) FROM numbers") == 3100


def test_rows_go_into_a_copy(server: PostgresServer, admin: Admin, pool: ThreadPoolExecutor) -> None:
    source = rows(server.conninfo, "SELECT n, 'a' || n FROM generate_series(1, 5000) n").subscribe_on(pool)
    copied = copy_in(source.filter(lambda row: row[0] % 2), server.conninfo, "numbers").subscribe_on(pool)
    assert copied.block(timeout=PATIENCE) == 2500
    assert one(admin, "SELECT sum(n) FROM numbers") == 2500**2


def test_a_source_that_fails_rolls_the_copy_back(
    server: PostgresServer, admin: Admin, pool: ThreadPoolExecutor
) -> None:
    for error in (OSError("no more"), psycopg.DataError("of the user"), PostgresError("of another")):
        source = Flow.range(10).map(lambda n: (n, "")).concat_with(Flow.error(error))
        for flow in (source, source.subscribe_on(pool)):
            with pytest.raises(type(error), match=f"^{error}$"):
                copy_in(flow, server.conninfo, "numbers").block(timeout=PATIENCE)
    assert one(admin, "SELECT count(*) FROM numbers") == 0


def test_a_connection_that_is_lost_at_the_commit_says_so(server: PostgresServer, admin: Admin) -> None:
    admin.execute(
        "CREATE OR REPLACE FUNCTION leave() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$;"
        "CREATE CONSTRAINT TRIGGER leave AFTER INSERT ON numbers DEFERRABLE INITIALLY DEFERRED"
        " FOR EACH ROW EXECUTE FUNCTION leave()"
    )
    with pytest.raises(PostgresError, match="connection is lost, its answer to COMMIT is missing: all rows are in"):
        copy_in(Flow.just((1, "")), server.conninfo, "numbers").block()
    admin.execute("ALTER TABLE numbers ADD CHECK (n > 0)")
    with pytest.raises(PostgresError, match=r"the call failed: new row .* violates check constraint"):
        copy_in(Flow.just((0, "")), server.conninfo, "numbers").block()


def test_a_copy_that_is_cancelled_is_rolled_back(server: PostgresServer, admin: Admin) -> None:
    sink = Sink()
    rows_ = Flow.range(10).map(lambda n: (n, "")).concat_with(Flow.never())
    copy_in(rows_, server.conninfo, "numbers").subscribe(sink)
    until(lambda: connections(admin, "active") == 1)
    sink.subscription.cancel()
    until(lambda: connections(admin) == 0)
    assert sink.end is None
    assert one(admin, "SELECT count(*) FROM numbers") == 0


@pytest.mark.parametrize(
    ("bad", "message", "cause"),
    [
        (("x", ""), r"invalid input syntax for type bigint.*line 301", psycopg.errors.InvalidTextRepresentation),
        ((1, ""), r"duplicate key.*line 301", psycopg.errors.UniqueViolation),
        ((object(), ""), r"row 300 can't be written, \(<object", psycopg.ProgrammingError),
        (7, "row 300 can't be written, 7", TypeError),
        ({"n": 300, "name": ""}, "row 300 can't be written, {.*}: a row must be a sequence of values", TypeError),
        ("1x", "row 300 can't be written, '1x': a row must be a sequence of values", TypeError),
        (b"1x", "row 300 can't be written, b'1x': a row must be a sequence of values", TypeError),
        ({1, 2}, "row 300 can't be written, {1, 2}: a row must be a sequence of values", TypeError),
        ((), r"row 300 can't be written, \(\): a row must have a value for each column", ValueError),
        ([], r"row 300 can't be written, \[\]: a row must have a value for each column", ValueError),
    ],
)
def test_a_bad_row_among_good_ones_is_named(
    server: PostgresServer, admin: Admin, bad: Any, message: str, cause: type[Exception]
) -> None:
    source = Flow.range(600).map(lambda n: bad if n == 300 else (n, ""))
    with pytest.raises(PostgresError, match=f"(?s)^copy_in: PostgreSQL at 127.*{message}") as raised:
        copy_in(source, server.conninfo, "numbers").block()
    assert isinstance(raised.value.__cause__, cause)
    assert one(admin, "SELECT count(*) FROM numbers") == 0


def test_a_server_that_is_killed_ends_the_flows(server: PostgresServer, pool: ThreadPoolExecutor) -> None:
    """And they can be subscribed to anew when it is back; nothing of a copy is in the table."""
    with server.connect() as connection:
        connection.execute("DROP TABLE IF EXISTS numbers; CREATE SEQUENCE IF NOT EXISTS made")
        connection.execute("CREATE TABLE numbers (n bigint PRIMARY KEY, name text)")
    reading, copying, writing, end = Sink(1), Sink(1), Sink(), threading.Event()
    rows(server.conninfo, COUNTED, fetch=1).subscribe(reading)
    copy_out(server.conninfo, COUNTED).subscribe(copying)

    def waits(n: int) -> tuple[int, str]:
        if n == 5000:
            end.wait(PATIENCE)
        return n, "x" * 100

    sink = copy_in(Flow.range(10_000).map(waits), server.conninfo, "numbers")
    sink.subscribe_on(pool).subscribe(writing)
    server.kill()
    end.set()
    for subscriber in (reading, copying):
        subscriber.subscription.request(1_000_000)
    for subscriber, name in ((reading, "rows"), (copying, "copy_out"), (writing, "copy_in")):
        error = subscriber.wait().error
        assert isinstance(error, PostgresError), error
        assert f"{name}: PostgreSQL at 127.0.0.1:{server.port}/postgres: " in str(error)
        assert "the connection is lost" in str(error) or "can't connect" in str(error)
        assert PASSWORD not in texts(error)
    server.start()
    assert list(rows(server.conninfo, "SELECT count(*) FROM numbers")) == [(0,)]
    assert sink.block(timeout=PATIENCE) == 10_000


# -- the queue -------------------------------------------------------------------------------------------------------


def put(connection: Admin, count: int) -> None:
    connection.execute(f"INSERT INTO jobs (body) SELECT to_jsonb(n) FROM generate_series(1, {count}) n")


def left(connection: Admin) -> list[tuple[Any, ...]]:
    return connection.execute("SELECT body, attempts, claimed_by IS NOT NULL FROM jobs ORDER BY id").fetchall()


def bodies(sink: Sink) -> list[Any]:
    return [element.value.body for element in sink.elements]


def test_what_is_put_into_a_queue_comes_out_in_order(
    server: PostgresServer, admin: Admin, pool: ThreadPoolExecutor
) -> None:
    elements = [{"to": "ann", "n": n} for n in range(700)]
    assert enqueue(Flow.from_iterable(elements), server.conninfo, "jobs").block() == 700
    flow = jobs(server.conninfo, "public.jobs", pool).acknowledge().take(700)
    assert [job.body for job in flow] == elements
    until(lambda: connections(admin) == 0)
    assert left(admin) == []


def test_elements_are_put_in_up_to_the_error(server: PostgresServer, admin: Admin) -> None:
    source = Flow.range(300).concat_with(Flow.error(OSError("no more")))
    with pytest.raises(OSError, match=r"^no more$"):
        enqueue(source, server.conninfo, "jobs").block()
    assert len(left(admin)) == 300
    with pytest.raises(PostgresError, match="1 elements from index 0 on can't be put in, the first is <object"):
        enqueue(Flow.just(object()), server.conninfo, "jobs").block()


def test_few_elements_are_put_in_while_the_source_waits(
    server: PostgresServer, admin: Admin, pool: ThreadPoolExecutor
) -> None:
    waiting: queue.Queue[int | None] = queue.Queue()
    sink = Sink()
    enqueue(Flow.from_queue(waiting).subscribe_on(pool), server.conninfo, "jobs").subscribe(sink)
    for n in range(3):
        waiting.put(n)
        until(lambda: len(left(admin)) == n + 1)  # noqa: B023  # called in this turn
    waiting.put(None)
    sink.wait()
    assert sink.elements == [3]


def test_a_cancel_leaves_the_connection_behind_a_write(
    server: PostgresServer, admin: Admin, pool: ThreadPoolExecutor
) -> None:
    """The source has an executor, whose thread writes; the thread that cancels does not wait for it."""
    maps, goes_on, there = threading.Event(), threading.Event(), []

    def held(n: int) -> Any:
        if n == 1_000:
            maps.set()
            assert goes_on.wait(PATIENCE)
            there.append(connections(admin))
        return n, "x" * 100

    source = Flow.range(1_000_000).subscribe_on(pool).map(held)
    sink = Sink()
    with captured() as dropped:
        copy_in(source, server.conninfo, "numbers").subscribe(sink)
        assert maps.wait(PATIENCE)
        sink.subscription.cancel()
        goes_on.set()
        pool.submit(int).result(PATIENCE)
        until(lambda: connections(admin) == 0)
    assert there == [1]
    assert [each for each in dropped if each.error is not None] == []
    assert one(admin, "SELECT count(*) FROM numbers") == 0


def test_bytes_in_a_queue(server: PostgresServer, admin: Admin, pool: ThreadPoolExecutor) -> None:
    admin.execute("DROP TABLE jobs")
    admin.execute(queue_sql("jobs", body="bytea"))
    assert enqueue(Flow.just(b"\0a"), server.conninfo, "jobs", adapt=None).block() == 1
    assert [job.body for job in jobs(server.conninfo, "jobs", pool).acknowledge().take(1)] == [b"\0a"]


def test_as_many_jobs_are_claimed_as_are_demanded(
    server: PostgresServer, admin: Admin, pool: ThreadPoolExecutor
) -> None:
    put(admin, 20)
    sink = Sink(0)
    jobs(server.conninfo, "jobs", pool, most=3).elements().subscribe(sink)
    for demand, there in [(1, 1), (2, 3), (5, 8)]:
        sink.subscription.request(demand)
        sink.wait_for(demand)
        assert [claimed for *_, claimed in left(admin)].count(True) == there
    assert bodies(sink) == list(range(1, 9))
    sink.subscription.cancel()
    for element in sink.elements:
        element.acknowledge()
    until(lambda: connections(admin) == 0)
    assert left(admin) == [(n, 0, False) for n in range(9, 21)]


def test_jobs_are_settled_in_any_order(server: PostgresServer, admin: Admin, pool: ThreadPoolExecutor) -> None:
    put(admin, 4)
    sink = Sink(4)
    jobs(server.conninfo, "jobs", pool).elements().subscribe(sink)
    sink.wait_for(4)
    sink.elements[2].acknowledge()
    until(lambda: [body for body, *_ in left(admin)] == [1, 2, 4])  # without further demand
    sink.elements[1].refuse(OSError("not now"))
    until(lambda: left(admin) == [(1, 1, True), (2, 1, False), (4, 1, True)])
    sink.subscription.request(1)
    sink.wait_for(1)
    assert sink.elements[-1].value == Job(2, 2, 2)
    sink.subscription.cancel()
    for element in sink.elements:
        element.acknowledge()
    until(lambda: connections(admin) == 0)
    assert left(admin) == []


def test_jobs_that_are_kept_say_when_they_were_done(
    server: PostgresServer, admin: Admin, pool: ThreadPoolExecutor
) -> None:
    put(admin, 2)
    assert len(list(jobs(server.conninfo, "jobs", pool, keep=True).acknowledge().take(2))) == 2
    until(lambda: one(admin, "SELECT count(*) FROM jobs WHERE done_at IS NOT NULL AND claimed_by IS NULL") == 2)


def test_a_worker_that_waits_is_woken(server: PostgresServer, admin: Admin, pool: ThreadPoolExecutor) -> None:
    sink = Sink()
    jobs(server.conninfo, "jobs", pool, poll=10_000).acknowledge().subscribe(sink)
    until(lambda: connections(admin, "idle") == 1)
    put(admin, 1)
    sink.wait_for(1)
    put(admin, 1)
    sink.wait_for(1)
    until(lambda: left(admin) == [])
    sink.subscription.cancel()


def test_a_cancel_ends_a_worker_that_waits(server: PostgresServer, admin: Admin, pool: ThreadPoolExecutor) -> None:
    sink = Sink()
    jobs(server.conninfo, "jobs", pool).acknowledge().subscribe(sink)
    until(lambda: connections(admin, "idle") == 1)
    sink.subscription.cancel()
    until(lambda: connections(admin) == 0)
    all_free(pool)
    assert sink.end is None


def test_workers_share_a_queue(server: PostgresServer, admin: Admin) -> None:
    put(admin, 600)
    with ThreadPoolExecutor(3) as pool:
        sinks = [Sink() for _ in range(3)]
        for sink in sinks:
            jobs(server.conninfo, "jobs", pool, most=7).map(lambda job: job.body).acknowledge().subscribe(sink)
        until(lambda: left(admin) == [])
        for sink in sinks:
            sink.subscription.cancel()
        until(lambda: connections(admin) == 0)
    assert sorted(body for sink in sinks for body in sink.elements) == list(range(1, 601))


def test_a_poison_message_goes_to_the_dead_letters(
    server: PostgresServer, admin: Admin, pool: ThreadPoolExecutor
) -> None:
    put(admin, 30)
    letters: list[Any] = []

    def work(job: Job) -> int:
        if job.body == 13:
            raise ValueError("poison")
        result: int = job.body
        return result

    flow = jobs(server.conninfo, "jobs", pool).on_error_continue(lambda one: one.map(work), letters.append)
    assert list(flow.acknowledge().take(29)) == [n for n in range(1, 31) if n != 13]
    assert [(letter.element.body, str(letter.error)) for letter in letters] == [(13, "poison")]
    until(lambda: left(admin) == [])


@pytest.mark.parametrize(
    "body", ["'1' || repeat('0', 5000)", "repeat('[', 3000) || repeat(']', 3000)"], ids=["digits", "brackets"]
)
def test_a_body_that_cannot_be_read_is_a_dead_letter(
    server: PostgresServer, admin: Admin, pool: ThreadPoolExecutor, body: str
) -> None:
    """The jobs that were claimed with it go on; without a place for letters, the error names server and job."""
    admin.execute(f"INSERT INTO jobs (body) VALUES ('1'), (({body})::jsonb), ('3')")
    with pytest.raises(PostgresError, match=rf"at 127.0.0.1:{server.port}/postgres: the body of job 2 can't be read: "):
        jobs(server.conninfo, "jobs", pool).map(lambda job: job.body).acknowledge().run(timeout=PATIENCE)
    letters: list[Any] = []
    flow = jobs(server.conninfo, "jobs", pool)
    done = flow.on_error_continue(lambda one: one.map(lambda job: job.body), letters.append).acknowledge()
    assert list(done.take(1)) == [3]
    assert [str(letter.element) for letter in letters] == ["Job(id=2, body=unreadable, attempts=2)"]
    until(lambda: one(admin, "SELECT count(*) FROM jobs") == 0)


def test_a_job_that_fails_is_free_again(server: PostgresServer, admin: Admin, pool: ThreadPoolExecutor) -> None:
    """Also those that were claimed with it; what was acknowledged before is gone."""
    put(admin, 10)

    def work(job: Job) -> int:
        if job.body == 4 and job.attempts < 3:
            raise OSError("not yet")
        result: int = job.body
        return result

    flow = jobs(server.conninfo, "jobs", pool).map(work).acknowledge()
    for attempt in (1, 2):
        with pytest.raises(OSError, match="not yet"):
            flow.run(timeout=PATIENCE)
        until(lambda: connections(admin) == 0)
        assert left(admin) == [(4, attempt, False)] + [(n, 0, False) for n in range(5, 11)]
    assert list(flow.take(7)) == list(range(4, 11))


def test_jobs_can_be_settled_after_a_cancel(server: PostgresServer, admin: Admin, pool: ThreadPoolExecutor) -> None:
    put(admin, 3)
    sink = Sink(3)
    jobs(server.conninfo, "jobs", pool).elements().subscribe(sink)
    sink.wait_for(3)
    sink.subscription.cancel()
    first, second, third = sink.elements
    until(lambda: pool.submit(lambda: True).result(PATIENCE))
    first.acknowledge()
    second.refuse()
    until(lambda: left(admin) == [(2, 1, False), (3, 1, True)])
    assert connections(admin) == 1
    third.acknowledge()
    until(lambda: connections(admin) == 0)
    assert left(admin) == [(2, 1, False)]


def test_jobs_that_are_garbage_are_free_again(server: PostgresServer, admin: Admin, pool: ThreadPoolExecutor) -> None:
    put(admin, 2)
    sink = Sink(2)
    jobs(server.conninfo, "jobs", pool).elements().subscribe(sink)
    sink.wait_for(2)
    sink.subscription.cancel()
    del sink
    until(lambda: bool(gc.collect() or True) and connections(admin) == 0)
    flow = jobs(server.conninfo, "jobs", pool).acknowledge().take(2)
    assert [job.attempts for job in flow] == [2, 2]


WORKER = """
import sys, threading
from concurrent.futures import ThreadPoolExecutor
from reactive_runtime.connect.postgres_queue import jobs

def work(job):
    if job.body == 3:
        print("stuck", flush=True)
        threading.Event().wait()
    return job

pool = ThreadPoolExecutor(2)
jobs(sys.argv[1], "jobs", pool, most=5).map(work).acknowledge().run()
"""


def test_a_worker_that_is_killed_loses_nothing(server: PostgresServer, admin: Admin, pool: ThreadPoolExecutor) -> None:
    put(admin, 8)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", WORKER, server.conninfo]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) as worker:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "stuck\n"
        worker.kill()
    flow = jobs(server.conninfo, "jobs", pool, poll=0.1).acknowledge()
    got = list(flow.take(len(left(admin))))
    assert {job.body for job in got} >= set(range(3, 9))
    assert {job.body: job.attempts for job in got if job.body in (3, 8)} == {3: 2, 8: 1}
    until(lambda: left(admin) == [])


def test_a_server_that_comes_back_is_found_again(server: PostgresServer, pool: ThreadPoolExecutor) -> None:
    """The flow fails; a retry goes on. No job is lost."""
    with server.connect() as connection:
        connection.execute("DROP TABLE IF EXISTS jobs")
        connection.execute(queue_sql("jobs"))
        put(connection, 1000)
    handled: set[int] = set()
    reached, on = threading.Event(), threading.Event()
    errors: list[Exception] = []

    def work(job: Job) -> int:
        handled.add(job.body)
        if job.body == 500 and not on.is_set():
            reached.set()
            on.wait(PATIENCE)
        return job.id

    source = jobs(server.conninfo, "jobs", pool, most=50)
    lasting = source.through(lambda flow: flow.do_on_error(errors.append).retry(100_000, when=PostgresError))
    sink = Sink()
    lasting.map(work).acknowledge().subscribe(sink)
    assert reached.wait(PATIENCE)
    server.kill()
    on.set()
    until(lambda: bool(errors))
    server.start()
    with server.connect() as connection:
        until(lambda: left(connection) == [])
        sink.subscription.cancel()
        until(lambda: connections(connection) == 0)
    assert handled == set(range(1, 1001))
    assert all(f"jobs: PostgreSQL at 127.0.0.1:{server.port}/postgres: " in str(error) for error in errors)


def test_an_acknowledgement_that_is_lost_is_reported(server: PostgresServer, pool: ThreadPoolExecutor) -> None:
    with server.connect() as connection:
        connection.execute("DROP TABLE IF EXISTS jobs")
        connection.execute(queue_sql("jobs"))
        put(connection, 2)
    sink = Sink(2)
    jobs(server.conninfo, "jobs", pool).elements().subscribe(sink)
    sink.wait_for(2)
    sink.subscription.cancel()
    until(lambda: pool.submit(lambda: True).result(PATIENCE))
    server.kill()
    first, second = sink.elements
    with pytest.raises(PostgresError, match=r"job 1 may be handled once more") as raised:
        first.acknowledge()
    assert PASSWORD not in texts(raised.value)
    second.refuse()  # the server has it free already
    server.start()
    flow = jobs(server.conninfo, "jobs", pool).acknowledge().take(2)
    assert [job.attempts for job in flow] == [2, 2]


def test_a_queue_that_is_not_there_is_named(server: PostgresServer, admin: Admin, pool: ThreadPoolExecutor) -> None:
    with pytest.raises(PostgresError, match="there is no table nowhere; make it with queue_sql"):
        jobs(server.conninfo, "nowhere", pool).acknowledge().run(timeout=PATIENCE)


def test_a_long_backlog_takes_no_memory(server: PostgresServer, admin: Admin, pool: ThreadPoolExecutor) -> None:
    put(admin, 100_000)

    def peak(n: int) -> int:
        tracemalloc.start()
        try:
            assert jobs(server.conninfo, "jobs", pool).acknowledge().take(n).count().block(timeout=PATIENCE) == n
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak(2_000) < 2 * peak(500) + 100_000


def test_a_batch_of_jobs_is_acknowledged_in_one_go(
    server: PostgresServer, admin: Admin, pool: ThreadPoolExecutor
) -> None:
    put(admin, 100)
    flow = jobs(server.conninfo, "jobs", pool).batch(10).map(lambda batch: [job.body for job in batch])
    assert list(flow.acknowledge().take(10)) == [list(range(n, n + 10)) for n in range(1, 101, 10)]
    until(lambda: left(admin) == [])


def test_the_example_of_the_docs(server: PostgresServer, admin: Admin) -> None:
    admin.execute("DROP TABLE IF EXISTS orders, priced, mails")
    try:
        priced, sent, dead = orders_in_postgres.main(server.conninfo)
        assert (priced, sorted(sent)) == (1000, ["ann@shop.example", "cy@shop.example"])
        assert [(letter.element.body, str(letter.error)) for letter in dead] == [({"to": "bob"}, "'bob' is no address")]
        assert one(admin, "SELECT sum(price) FROM priced") == sum(n % 7 * 250 for n in range(1, 1001))
    finally:
        until(lambda: not connections(admin))
        admin.execute("DROP TABLE IF EXISTS orders, priced, mails")
