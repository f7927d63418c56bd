"""A worker: takes jobs from the queue, asks the slow service, writes the results, and acknowledges the jobs.

A job is acknowledged when its result is in the table and in the stream. A worker that is killed before that leaves the
job to another worker, which writes the same row again: the table keeps the first. So each job has one row, and the
stream may have a result twice.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx
import psycopg
import redis

from examples.service import metrics
from examples.service.settings import QUEUE, RESULTS, Settings
from reactive_runtime import CircuitBreaker, DeadLetter, Flow
from reactive_runtime.connect import AckedFlow
from reactive_runtime.connect.postgres import PostgresError
from reactive_runtime.connect.postgres_queue import Job, jobs
from reactive_runtime.connect.redis_streams import Writer
from reactive_runtime.errors import CircuitOpenError
from reactive_runtime.scopes import on_sigterm, scope
from reactive_runtime.telemetry import observe

CALLS = 16
"""How many calls to the slow service a worker has under way, at most."""
SERVERS_AWAY = (PostgresError, psycopg.OperationalError, redis.ConnectionError, redis.TimeoutError)


@dataclass(frozen=True)
class Parcel:
    """A job with the place that the slow service has found."""

    id: str
    city: str
    lat: float
    lon: float


class Worker:
    """The flow of a worker, and what its functions need.

    Args:
        settings: The addresses of the servers.
        pool: Calls to the slow service block its threads, `CALLS` at a time, and those to the queue one more.
    """

    def __init__(self, settings: Settings, pool: ThreadPoolExecutor, http: httpx.Client, results: Writer) -> None:
        self.settings = settings
        self.pool = pool
        self.http = http
        self.results = results
        self.breaker = CircuitBreaker(failures=10, window=5, reset_after=1, when=is_out_of_order)

    def run(self) -> Flow[list[Parcel]]:
        """The parcels that have been written. It goes on when a server has gone away and come back."""
        todo: AckedFlow[Job] = jobs(self.settings.database, QUEUE, self.pool)
        found = todo.on_error_continue(lambda one: one.flat_map(self.place_of), self.set_aside, concurrency=CALLS)
        written = found.buffer_timeout(64, 0.05).map(self.write)
        return written.acknowledge().retry_backoff(1_000_000, first=0.1, most=2.0, when=SERVERS_AWAY)

    def place_of(self, job: Job) -> Flow[Parcel]:
        """Ask the slow service, as often as it takes. While the breaker is open no call is made."""
        call = Flow.from_callable(lambda: self.ask(job)).subscribe_on(self.pool).circuit_breaker(self.breaker)
        return call.retry_backoff(1_000_000, first=0.05, most=2.0, when=is_worth_another_call)

    def ask(self, job: Job) -> Parcel:
        """One call."""
        city = job.body["city"]
        answer = self.http.get(f"/places/{quote(city, safe='')}").raise_for_status().json()
        return Parcel(job.body["id"], city, answer["lat"], answer["lon"])

    def write(self, parcels: list[Parcel]) -> list[Parcel]:
        """Into the table first: a result that live clients see is there."""
        with self.database() as cursor:
            cursor.executemany(
                "INSERT INTO parcels VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING",
                [(parcel.id, parcel.city, parcel.lat, parcel.lon) for parcel in parcels],
            )
        self.results.append([vars(parcel) for parcel in parcels])
        return parcels

    def set_aside(self, letter: DeadLetter) -> None:
        """A job that no retry helps."""
        job = letter.element.body
        with self.database() as cursor:
            cursor.execute("INSERT INTO failed VALUES (%s, %s) ON CONFLICT DO NOTHING", (job["id"], str(letter.error)))
        self.results.append([{"id": job["id"], "city": job["city"], "failed": str(letter.error)}])

    @contextmanager
    def database(self) -> Iterator[psycopg.Cursor[Any]]:
        """One transaction. A busy worker would keep the connection, in a pool of psycopg."""
        with psycopg.connect(self.settings.database, connect_timeout=10) as connection, connection.cursor() as cursor:
            yield cursor


def is_out_of_order(error: Exception) -> bool:
    """Whether the slow service has failed, and not the job."""
    return isinstance(error, httpx.TransportError) or status_of(error) >= 500


def is_worth_another_call(error: Exception) -> bool:
    """Also where it has had too many calls, and where the breaker has refused the call."""
    return is_out_of_order(error) or isinstance(error, CircuitOpenError) or status_of(error) == 429


def status_of(error: Exception) -> int:
    """The status of the answer; 0: there is none."""
    return error.response.status_code if isinstance(error, httpx.HTTPStatusError) else 0


def main() -> None:
    """Work until SIGTERM; then finish the jobs that have begun."""
    settings = Settings.from_environment()
    metrics.serve()
    with (
        ThreadPoolExecutor(CALLS + 2, "worker") as pool,
        httpx.Client(base_url=settings.places, timeout=5) as http,
        Writer(settings.redis, RESULTS, maxlen=100_000) as results,
        scope() as s,
    ):
        on_sigterm(s, within=20)
        s.start(observe(Worker(settings, pool, http, results).run(), "parcels"))
    print(f"worker {os.getpid()} has finished its jobs", flush=True)


if __name__ == "__main__":
    main()
