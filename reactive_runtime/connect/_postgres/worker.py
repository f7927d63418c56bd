"""A queue in a table of PostgreSQL: jobs that several workers share, each of which a worker acknowledges.

The problem: a row that is locked is safe from other workers, but a lock lasts until its transaction ends, and then all
locks of that transaction end. So one transaction can't hold jobs that are handled side by side, and become ready in any
order. A lease, which ends at some time, needs a clock, and a worker that renews it.

The answer: a worker has a number, and holds an advisory lock of that number for as long as its connection lasts. It
claims a job by writing its number into the row (`FOR UPDATE SKIP LOCKED`: two workers don't wait for each other), and
commits at once. A job whose worker holds no lock is free again: its worker has left, or was killed, and the server has
noticed. No clock has a part in it.

    waiting ──claim──▶ claimed ──acknowledge──▶ gone, or done
       ▲                  │ refuse, or the worker's connection ends
       └──────────────────┘

A thread that settles a job leaves a note, and wakes the flow. The flow tells the server of all notes at once. When the
flow has ended, the thread that settles a job tells the server, and the last one closes the connection.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Any, Final, NoReturn

from reactive_runtime._core import garbage_collection
from reactive_runtime._core.runtime import primitives
from reactive_runtime._support.shown import shown
from reactive_runtime.connect._postgres.connection import Connection, Server, Stopped

# isort: split
import psycopg
from psycopg import sql
from psycopg.adapt import Loader
from psycopg.pq import Format, TransactionStatus

__all__ = ["CHANNEL", "TABLE", "Job", "Statements", "Worker"]

ONE_WAIT: Final = 0.1
"""Seconds that a thread waits for a notification, after which it looks for notes, and lets others have their turn."""

UNSEEN: Final = "unseen"
"""The note of a job that was not delivered."""

LINGERING: Final = 0.01
"""Seconds that notes wait for others, to be committed together, while the flow delivers jobs that it has claimed."""

LEAVING: Final = 10.0
"""Seconds for the server to answer when a flow has been cancelled; then its jobs are left to other workers."""

CHANNEL: Final = "reactive_runtime_"

TABLE: Final = """\
CREATE TABLE IF NOT EXISTS {table} (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    body {body} NOT NULL,
    attempts integer NOT NULL DEFAULT 0,
    claimed_by bigint,
    done_at timestamptz,
    added_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX IF NOT EXISTS {waiting} ON {table} (id) WHERE claimed_by IS NULL AND done_at IS NULL;
CREATE INDEX IF NOT EXISTS {claimed} ON {table} (claimed_by) WHERE claimed_by IS NOT NULL;
CREATE OR REPLACE FUNCTION {wake}() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN PERFORM pg_notify('{channel}' || TG_RELID, ''); RETURN NULL; END $$;
DROP TRIGGER IF EXISTS wake ON {table};
CREATE TRIGGER wake AFTER INSERT ON {table} FOR EACH STATEMENT EXECUTE FUNCTION {wake}();
"""

_CLAIM: Final = """
WITH next AS MATERIALIZED (
    SELECT id FROM {table} WHERE claimed_by IS NULL AND done_at IS NULL ORDER BY id LIMIT %s FOR UPDATE SKIP LOCKED
)
UPDATE {table} AS job SET claimed_by = %s, attempts = attempts + 1 FROM next WHERE job.id = next.id
RETURNING job.id, job.body, job.attempts
"""

_FREE: Final = """
WITH freed AS (
    UPDATE {table} SET claimed_by = NULL, attempts = attempts - %s WHERE id = ANY(%s) AND claimed_by = %s RETURNING id
)
SELECT pg_notify(%s, '') FROM freed LIMIT 1
"""

_GONE: Final = """
SELECT DISTINCT claimed_by FROM {table} WHERE claimed_by IS NOT NULL AND claimed_by NOT IN (
    SELECT (classid::bigint << 32) | objid::bigint FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
)
"""


@dataclass(frozen=True, slots=True)
class Job:
    """An element of a queue.

    Args:
        id: Its number in the table.
        body: The element that was put in. To ask for one that the client can't read, as a number of 5,000 digits,
            raises a `PostgresError` that names the job.
        attempts: How often a worker has claimed it, this time included.
    """

    id: int
    body: Any
    attempts: int


class _Unreadable(Job):
    """A job whose body the client can't read: who asks for the body gets the error, and the other jobs go on."""

    __slots__ = ("_fail",)

    _fail: Callable[[], NoReturn]

    def __init__(self, id: int, attempts: int, fail: Callable[[], NoReturn]) -> None:
        for name, value in (("id", id), ("attempts", attempts), ("_fail", fail)):
            object.__setattr__(self, name, value)

    @property
    def body(self) -> NoReturn:
        """A PostgresError that names the job."""
        raise self._fail()

    def __repr__(self) -> str:
        return f"Job(id={self.id!r}, body=unreadable, attempts={self.attempts!r})"


class _Reader(Loader):
    """Reads a body as the client does; one that it can't read becomes the error."""

    reads: Callable[[int, Any], Any]
    """The class of the client's loader."""

    def __init__(self, oid: int, context: Any = None) -> None:
        super().__init__(oid, context)
        self._load = type(self).reads(oid, context).load

    def load(self, data: Any) -> Any:
        """See `psycopg.adapt.Loader.load`."""
        try:
            return self._load(data)
        except Exception as error:  # a number with too many digits, or too many brackets
            return _BodyError(error)


class _BodyError:
    """In the place of a body: why it can't be read."""

    def __init__(self, error: Exception) -> None:
        self.error = error


class Statements:
    """The statements for one table."""

    def __init__(self, table: str, name: sql.Identifier, keep: bool) -> None:
        self.table, self.quoted = table, name.as_string(None)
        done = "UPDATE {table} SET claimed_by = NULL, done_at = now()" if keep else "DELETE FROM {table}"
        self.claim = sql.SQL(_CLAIM).format(table=name)
        self.free = sql.SQL(_FREE).format(table=name)
        self.gone = sql.SQL(_GONE).format(table=name)
        self.freed = sql.SQL("UPDATE {table} SET claimed_by = NULL WHERE claimed_by = ANY(%s)").format(table=name)
        self.done = sql.SQL(f"{done} WHERE id = ANY(%s) AND claimed_by = %s").format(table=name)


class Worker:
    """The one who claims jobs over a connection, and tells the server what became of them.

    It is used by the drain's owner. When that has left, the threads that settle jobs use it, one at a time.
    """

    def __init__(self, server: Server, queue: Statements, connection: Connection, wake: Callable[[], object]) -> None:
        self.server, self.queue, self.connection = server, queue, connection
        self._cancelled = connection.stopped  # written by `leave` alone
        self._number = 0  # set once, by `join`
        self._channel = ""  # likewise
        self._dry = False  # the drain's owner; there was no job, and no notification since
        self._lock = primitives.Lock()
        self._wake: Callable[[], object] | None = wake  # _lock; None: the flow has left
        self._notes: list[tuple[int, BaseException | str | None]] = []  # _lock; not told yet
        self._since = 0.0  # _lock; when the first of them was left
        self._open = 0  # _lock; jobs that were claimed, and of which the server does not know the end
        self._telling = False  # _lock; a thread tells the server

    def join(self) -> None:
        """Become a worker."""
        connection = self.connection
        connection.autocommit = True
        for name in ("json", "jsonb"):
            known = connection.adapters.types[name]
            reads = connection.adapters.get_loader(known.oid, Format.TEXT)
            connection.adapters.register_loader(known.oid, type("_Reader", (_Reader,), {"reads": reads}))
        found = connection.execute("SELECT to_regclass(%s)::oid", [self.queue.quoted]).fetchone()
        if found is None or found[0] is None:
            self.server.fail(f"there is no table {self.queue.table}; make it with queue_sql")
        self._channel = f"{CHANNEL}{found[0]}"
        connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(self._channel)))
        self._number = random.SystemRandom().getrandbits(62)
        connection.execute("SELECT pg_advisory_lock(%s)", [self._number])

    def look_for_gone(self) -> None:
        """Free the jobs of workers that are gone. A number is not used again, so none of them comes back."""
        gone = [number for (number,) in self.connection.execute(self.queue.gone)]
        if gone:
            self.connection.execute(self.queue.freed, [gone])

    def claim(self, n: int) -> list[Job]:
        """Claim up to `n` jobs."""
        claimed = [self._job(*row) for row in self.connection.execute(self.queue.claim, [n, self._number])]
        self._dry = not claimed
        with self._lock:
            self._open += len(claimed)
        return sorted(claimed, key=attrgetter("id"))

    def _job(self, id: int, body: Any, attempts: int) -> Job:
        if isinstance(body, _BodyError):
            what = f"the body of job {id} can't be read"
            return _Unreadable(id, attempts, partial(self.server.fail, what, body.error))
        return Job(id, body, attempts)

    def may_claim(self, due: bool) -> bool:
        """Whether there may be a job: if there was none, wait a little while for a notification, unless one is due."""
        if self._dry and not due:
            for _ in self.connection.notifies(timeout=ONE_WAIT, stop_after=1):
                self._dry = False
        return due or not self._dry

    def settle(self, job: int, error: BaseException | None) -> None:
        """Leave a note. Any thread; where the flow has left, it tells the server."""
        with self._lock:
            if not self._notes:
                self._since = primitives.monotonic()
            self._notes.append((job, error))
            wake = self._wake
        if wake is None:
            self.tell()
        else:
            wake()

    def is_overdue(self) -> bool:
        """Whether a note has waited for long enough, although jobs are at hand."""
        with self._lock:
            return bool(self._notes) and primitives.monotonic() - self._since > LINGERING

    def tell(self) -> None:
        """Tell the server of all notes, unless another thread does, and leave behind the last job."""
        while True:
            with self._lock:
                if self._telling:
                    return  # the thread that tells looks again
                notes, self._notes = self._notes, []
                self._telling = bool(notes)
                over = not notes and self._wake is None and not self._open
            if not notes:
                if over:
                    self.connection.leave()
                return
            try:
                self._tell(notes)
            finally:
                with self._lock:
                    self._telling = False
                    self._open -= len(notes)

    def _tell(self, notes: Sequence[tuple[int, BaseException | str | None]]) -> None:
        done = [job for job, error in notes if error is None]
        again = [job for job, error in notes if isinstance(error, BaseException)]
        unseen = [job for job, error in notes if error is UNSEEN]
        connection, begun = self.connection, primitives.monotonic()
        connection.stopped = lambda: (
            (self._wake is None or self._cancelled()) and primitives.monotonic() - begun > LEAVING
        )
        try:
            if done:
                connection.execute(self.queue.done, [done, self._number])
            for jobs, attempts in ((again, 0), (unseen, 1)):
                if jobs:
                    connection.execute(self.queue.free, [attempts, jobs, self._number, self._channel])
        except (psycopg.Error, Stopped) as error:
            connection.leave()  # which frees all jobs of this worker
            if done:
                what = f"the connection is lost, and {_named(done)} may be handled once more; subscribe anew"
                self.server.fail(what, error)
            if self._wake is not None:
                raise
        finally:
            connection.stopped = self._cancelled  # no one else uses the connection now

    def leave(self, unseen: Sequence[int]) -> None:
        """The flow has ended; these jobs were not delivered."""
        with self._lock:
            self._wake, self._cancelled = None, bool  # what settles a job keeps no flow alive
            self._notes += [(job, UNSEEN) for job in unseen]
        if garbage_collection.inside() or self.connection.pgconn.transaction_status != TransactionStatus.IDLE:
            self.connection.leave()
        self.tell()

    def __del__(self) -> None:
        self.connection.leave()  # jobs that are not settled, and that no code has any more


def _named(jobs: Sequence[int]) -> str:
    return f"job{'s' if len(jobs) > 1 else ''} {shown(jobs)[1:-1]}"
