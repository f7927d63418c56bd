"""A queue in a table of PostgreSQL: jobs that several workers share, each of which a worker acknowledges.

How a worker claims and settles a job is said in `_postgres.worker`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial
from typing import Any, Final, Literal

from reactive_runtime._core.drains.combinator import PENDING, Elements
from reactive_runtime._core.runtime import primitives
from reactive_runtime._core.runtime.arguments import (
    PREFETCH,
    at_least,
    check_callable,
    check_executor,
    one_of,
    seconds_of,
)
from reactive_runtime._flow import Flow
from reactive_runtime._operators.flow_base import as_flow, combinator_flow
from reactive_runtime._spec import Publisher
from reactive_runtime._support.public_names import all_at_home as _all_at_home
from reactive_runtime.connect._elements.acked import Acked
from reactive_runtime.connect._elements.acked_flow import AckedFlow
from reactive_runtime.connect._postgres.connection import Connection, Server, identifier
from reactive_runtime.connect._postgres.flows import OfServer, Putting
from reactive_runtime.connect._postgres.worker import CHANNEL, TABLE, Job, Statements, Worker

# isort: split
from psycopg import sql
from psycopg.types.json import Jsonb

__all__ = ["Job", "enqueue", "jobs", "queue_sql"]

LONGEST: Final = 55
"""Bytes of the name of a table, to which "_waiting" is added."""


def queue_sql(table: str, *, body: Literal["jsonb", "json", "text", "bytea"] = "jsonb") -> str:
    """The SQL that makes the table of a queue, with its indexes and the trigger that wakes the workers.

    It leaves a table that is there. Run it with a migration, or with `connection.execute`.

    Args:
        table: The table, as `name` or `schema.name`; the name has 55 bytes at most, as PostgreSQL cuts longer names of
            the indexes off.
        body: The type of what is put in.

    Returns:
        The statements.

    Raises:
        TypeError: `table` is not a str.
        ValueError: `table` is empty or too long, or `body` is another type.

    Example:
        >>> print(queue_sql("jobs").splitlines()[0])
        CREATE TABLE IF NOT EXISTS "jobs" (
    """
    name = identifier("queue_sql", "table", table)
    one_of("queue_sql", "body", ("jsonb", "json", "text", "bytea"), body)
    *schema, last = table.split(".")
    if len(last.encode()) > LONGEST:
        raise ValueError(f"queue_sql: the name of a table must have {LONGEST} bytes at most, and {last!r} has more")
    beside = {
        "waiting": sql.Identifier(f"{last}_waiting"),
        "claimed": sql.Identifier(f"{last}_claimed"),
        "wake": sql.Identifier(*schema, f"{last}_wake"),
    }
    return sql.SQL(TABLE).format(table=name, body=sql.SQL(body), channel=sql.SQL(CHANNEL), **beside).as_string(None)


def enqueue(
    source: Publisher[Any], conninfo: str, table: str, *, adapt: Callable[[Any], Any] | None = Jsonb
) -> Flow[int]:
    """Puts the elements of a flow into a queue, and commits as it goes: workers get them while the flow runs.

    Args:
        source: A publisher of what becomes the body of a job.
        conninfo: A connection string or URL of libpq; what it does not say comes from the environment (PGHOST).
        table: The table, as `name` or `schema.name`; see `queue_sql`.
        adapt: Makes of each element what psycopg can send. None: it can send the elements as they are (str, bytes).

    Returns:
        A flow of one element, the number of jobs, all of which are committed. It fails with the error of `source`, or
        with a `PostgresError` that names the server and the elements; those before are in the queue.

    Raises:
        TypeError: `source` is no publisher, `conninfo` or `table` is not a str, or `adapt` cannot be called.
        ValueError: `conninfo` can't be read, or `table` is empty.

    Demand:
        The first demand connects, and takes all of `source`, up to 256 elements for one commit. A server that is slow
        holds the source back.

    Cancellation:
        Cancels `source`. Jobs that have been committed stay.

    Thread:
        One thread at a time calls the server: the one that delivers an element. If the source has an executor, the
        thread that requests may do so too.

    Example:
        >>> from reactive_runtime import Flow
        >>> print(enqueue(Flow.just({"to": "ann"}), "host=db.example dbname=shop", "mails"))
        just({'to': 'ann'}) enqueue(db.example:5432/shop, mails)
    """
    server = Server("enqueue", conninfo)
    statement = sql.SQL("INSERT INTO {} (body) VALUES (%s)").format(identifier("enqueue", "table", table))
    if adapt is not None:
        check_callable("enqueue", "adapt", adapt)

    flow = as_flow("enqueue", "source", source)
    return combinator_flow(f"enqueue({server}, {table})", lambda: Putting(server, flow, statement, adapt), flow)


def jobs(
    conninfo: str,
    table: str,
    executor: Executor,
    *,
    most: int = PREFETCH,
    poll: float = 5.0,
    keep: bool = False,
) -> AckedFlow[Job]:
    """The jobs of a queue in a table, which several workers may share; it has no end.

    An acknowledged job is deleted (or marked as done), and committed. A refused one is free again at once, for any
    worker. Each is delivered at least once: again, if its worker was killed, or lost its connection, before the commit.

    Args:
        conninfo: A connection string or URL of libpq; what it does not say comes from the environment (PGHOST). A
            pooler between must keep the session: PgBouncer with `pool_mode = session`.
        table: The table, as `name` or `schema.name`; see `queue_sql`.
        executor: A `concurrent.futures.Executor` of threads; calls to the server block one of them at a time.
        most: How many jobs one call claims, at most; 1 or more.
        poll: After how many seconds to look for jobs of workers that are gone, and of inserts without the trigger;
            above 0.
        keep: True: an acknowledged job stays in the table, with the time in `done_at`. False: it is deleted.

    Returns:
        An `AckedFlow` of jobs, the oldest first. It fails with a `PostgresError` that names the server, also where an
        acknowledgement can't be committed; `retry` (in `through`) subscribes anew, as another worker.

    Raises:
        TypeError: `conninfo` or `table` is not a str, `executor` is none of threads, or a number is none.
        ValueError: `conninfo` can't be read, `table` is empty, `most` is below 1, or `poll` is not above 0.

    Demand:
        As many jobs are claimed as are demanded, and no more.

    Cancellation:
        Jobs that were claimed and not delivered are free again, and count no attempt. `cancel` does not wait for the
        server. Jobs that were delivered can still be settled: the connection is closed behind the last of them.

    Thread:
        The server is asked, and told, on `executor`. While the queue is empty a notification wakes the thread, and
        ten times a second it lets others of the executor have their turn. After the end of the flow, who acknowledges
        waits for the commit.

    Example:
        >>> from concurrent.futures import ThreadPoolExecutor
        >>> with ThreadPoolExecutor(1) as pool:
        ...     print(jobs("host=db.example dbname=shop", "mails", pool).elements())
        jobs(db.example:5432/shop, mails) AckedFlow do_on_discard(refuse)

    Origin:
        The queues of Que and River; SmallRye's `@Incoming` with manual acknowledgement.
    """
    server = Server("jobs", conninfo)
    queue = Statements(table, identifier("jobs", "table", table), keep)
    check_executor("jobs", executor)
    at_least("jobs", "most", 1, most)
    seconds_of("jobs", "poll", poll, positive=True)
    flow = combinator_flow(f"jobs({server}, {table})", lambda: _Jobs(server, queue, most, poll))
    return AckedFlow(flow.subscribe_on(executor))


class _Jobs(OfServer):
    def __init__(self, server: Server, queue: Statements, most: int, poll: float) -> None:
        super().__init__(server)
        self.queue, self.most, self.poll = queue, most, poll
        # The drain's owner alone touches these:
        self.asked = 0  # jobs that are demanded, as far as the drain has said
        self.worker: Worker | None = None
        self.claimed: deque[Job] = deque()  # and not delivered

    def request(self, n: int) -> None:
        self.asked = n

    def served(self, connection: Connection) -> Elements:
        worker = self.worker = Worker(self.server, self.queue, connection, self.drain.heard_from)
        worker.join()
        looked = primitives.monotonic() - self.poll  # for jobs of workers that are gone
        while True:
            yield from self.home()
            delivers = self.claimed and self.drain.demanded
            if not delivers or worker.is_overdue():
                worker.tell()
            if delivers:
                job = self.claimed.popleft()
                yield Acked(job, partial(worker.settle, job.id))
            elif self.claimed or not self.asked:
                if self.drain.demanded:
                    self.drain.wake()  # a note, for the owner: the drain says how much is demanded, and comes back
                yield PENDING
            elif worker.may_claim(due := primitives.monotonic() - looked >= self.poll):
                if due:
                    worker.look_for_gone()
                    looked = primitives.monotonic()
                self.claimed.extend(worker.claim(min(self.asked, self.most)))
                self.asked = 0
            else:
                self.drain.spend()  # look again, after the others that need this thread
                yield PENDING

    def release(self, connection: Connection) -> None:
        worker, self.worker = self.worker, None
        if worker is None:
            connection.leave()
        else:
            worker.leave([job.id for job in self.claimed])


_all_at_home(globals())
