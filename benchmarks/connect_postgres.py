"""PostgreSQL by this package, and by hand with psycopg and equal guarantees, in pairs.

    python benchmarks/connect_postgres.py [--rows 1000000] [--jobs 20000] [--rounds 5]

A ratio is that of a pair: the time by hand to the time of the flow; printed are the median, the least and the
greatest. Both run against the same server, which the program starts on loopback. The times are those of a wall clock,
since the server's part counts.

By hand, with equal guarantees, a job is claimed and its attempt counted in one transaction, handled, and deleted in
another, 256 jobs at a time. The last line is the loop with less: one transaction deletes 256 jobs, has them handled,
and is committed; a job that fails frees them all, and nothing counts attempts.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
from side_by_side import console, pairs

sys.path[:0] = [str(Path(__file__).resolve().parent.parent / "tests")]

from connect.postgres_server import PostgresServer  # noqa: E402

from reactive_runtime.connect.postgres import copy_in, rows  # noqa: E402
from reactive_runtime.connect.postgres_queue import jobs, queue_sql  # noqa: E402

FETCH = 1000
CLAIM = 256
BODY = "SELECT to_jsonb(n) FROM generate_series(1, {count}) n"


def changed(row: tuple[int, str]) -> tuple[int, str]:
    """The work on a row."""
    return row[0] + 1, row[1]


class Copying:
    """Cursor, map, COPY."""

    def __init__(self, server: PostgresServer, count: int) -> None:
        self.server, self.count = server, count
        self.query = f"SELECT n, 'name of ' || n FROM generate_series(1, {count}) n"
        with server.connect() as connection:
            connection.execute("CREATE UNLOGGED TABLE copied (n bigint, name text)")

    def emptied(self) -> None:
        """Before a run."""
        with self.server.connect() as connection:
            connection.execute("TRUNCATE copied")

    def flow(self) -> None:
        """This package."""
        source = rows(self.server.conninfo, self.query, fetch=FETCH).map(changed)
        assert copy_in(source, self.server.conninfo, "copied").block() == self.count

    def by_hand(self) -> None:
        """The loop with psycopg."""
        with psycopg.connect(self.server.conninfo) as source, psycopg.connect(self.server.conninfo) as target:
            with source.cursor("rows") as cursor, target.cursor() as into, into.copy("COPY copied FROM STDIN") as copy:
                cursor.itersize = FETCH
                cursor.execute(self.query)
                for row in cursor:
                    copy.write_row(changed(row))
            target.commit()


class Queue:
    """The jobs of a table, each acknowledged."""

    def __init__(self, server: PostgresServer, count: int, pool: ThreadPoolExecutor) -> None:
        self.server, self.count, self.pool = server, count, pool
        with server.connect() as connection:
            connection.execute(queue_sql("jobs"))

    def filled(self) -> None:
        """Before a run."""
        with self.server.connect() as connection:
            connection.execute("TRUNCATE jobs")
            connection.execute(f"INSERT INTO jobs (body) {BODY.format(count=self.count)}")
            connection.execute("VACUUM ANALYZE jobs")

    def flow(self) -> None:
        """This package."""
        total = jobs(self.server.conninfo, "jobs", self.pool).map(lambda job: job.body).acknowledge()
        assert total.take(self.count).count().block() == self.count

    def by_hand(self) -> None:
        """The loop with psycopg."""
        waiting = f"SELECT id FROM jobs WHERE claimed_by IS NULL ORDER BY id LIMIT {CLAIM} FOR UPDATE SKIP LOCKED"
        claim: Any = f"""WITH next AS MATERIALIZED ({waiting}) UPDATE jobs SET claimed_by = 1, attempts = attempts + 1
            FROM next WHERE jobs.id = next.id RETURNING jobs.id, body, attempts"""
        handled = 0
        with psycopg.connect(self.server.conninfo, autocommit=True) as connection:
            while claimed := sorted(connection.execute(claim).fetchall()):
                handled += len([body for _, body, _ in claimed])
                connection.execute("DELETE FROM jobs WHERE id = ANY(%s)", [[id for id, _, _ in claimed]])
        assert handled == self.count

    def with_less(self) -> None:
        """The loop in one transaction for each portion."""
        waiting = f"SELECT id FROM jobs ORDER BY id LIMIT {CLAIM} FOR UPDATE SKIP LOCKED"
        claim: Any = f"DELETE FROM jobs WHERE id IN ({waiting}) RETURNING id, body"
        handled = 0
        with psycopg.connect(self.server.conninfo) as connection:
            while claimed := sorted(connection.execute(claim).fetchall()):
                handled += len([body for _, body in claimed])
                connection.commit()
        assert handled == self.count


def timed(before: Callable[[], object], run: Callable[[], object], seconds: list[float]) -> Callable[[], object]:
    """`run`, whose time without that of `before` is added to the list."""

    def call() -> None:
        before()
        begin = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - begin)

    return call


def shown(title: str, count: int, hand: list[float], flow: list[float]) -> None:
    """Print a line."""
    ratios = sorted(one / other for one, other in zip(hand[1:], flow[1:], strict=True))
    median = ratios[len(ratios) // 2]
    rate = count / sorted(flow[1:])[len(ratios) // 2]
    line = f"{title}: {median:.2f} of the loop by hand ({ratios[0]:.2f} to {ratios[-1]:.2f}), {rate:,.0f} a second"
    console.print(line, soft_wrap=True)


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    server = PostgresServer()
    try:
        server.start()
        with ThreadPoolExecutor(1) as pool:
            copying, queue = Copying(server, options.rows), Queue(server, options.jobs, pool)
            for title, count, ours, theirs, before in (
                ("cursor, map, COPY", options.rows, copying.flow, copying.by_hand, copying.emptied),
                ("queue, acknowledged", options.jobs, queue.flow, queue.by_hand, queue.filled),
                ("queue, beside a loop with less", options.jobs, queue.flow, queue.with_less, queue.filled),
            ):
                hand: list[float] = []
                flow: list[float] = []
                runs = timed(before, theirs, hand), timed(before, ours, flow)
                pairs(*runs, options.rounds, time.perf_counter)
                shown(title, count, hand, flow)
    finally:
        server.close()


if __name__ == "__main__":
    main()
