"""Our adapters, described for the kit. To add one: a description, a function that starts its server, a row below."""

from __future__ import annotations

import itertools
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import psycopg
import redis

from connect import adapter_workers
from connect.jetstream_adapter import jetstream
from connect.kafka_adapter import kafka
from connect.postgres_server import PASSWORD, PostgresServer
from connect.redis_server import RedisServer
from connect.sse_adapter import sse, sse_kept
from reactive_runtime.connect import AckedFlow
from reactive_runtime.connect.postgres_queue import Job, jobs, queue_sql
from reactive_runtime.connect.redis_streams import Message, read
from reactive_runtime.tck._adapters.demanding_reader import until
from reactive_runtime.tck.adapters import Adapter, AdapterVerification

names = itertools.count()


class Described(AdapterVerification):
    """The verification of a description that `create` makes."""

    def __init__(self, create: Callable[[], Adapter]) -> None:
        self._create = create

    def create_adapter(self) -> Adapter:
        return self._create()


# -- Redis Streams -----------------------------------------------------------------------------------------------------


class RedisStreams(Adapter):
    """A stream of its own, and the group "g"."""

    name = "redis_streams"

    def __init__(self, server: RedisServer) -> None:
        self.server, self.client = server, server.client
        self.address = f"127.0.0.1:{server.port}"
        self.stream = f"kit-{next(names)}"
        self.acknowledged: list[int] | None = None  # one entry for each XACK: its ids

    def url(self, password: str) -> str:
        return f"redis://:{quote(password, safe='')}@{self.address}/0"

    def put(self, numbers: Sequence[int]) -> None:
        with self.client.pipeline(transaction=False) as pipe:
            for n in numbers:
                pipe.xadd(self.stream, {"n": n})
            pipe.execute()

    def open(self, consumer: str, executor: Executor, password: str = "right") -> AckedFlow[Message]:
        options = {"client_name": self.stream}
        return read(self.url(password), self.stream, "g", consumer, executor=executor, options=options)

    def open_with(self, password: str) -> AckedFlow[Message]:
        return self.open("reader", ThreadPoolExecutor(1), password)

    def number(self, value: Message) -> int:
        return int(value.fields[b"n"])

    def group(self) -> dict[str, Any]:
        with suppress(redis.ResponseError):  # there is no such stream yet
            for group in self.client.xinfo_groups(self.stream):
                return cast(dict[str, Any], group)
        return {"pending": 0, "lag": self.client.xlen(self.stream)}

    def left(self) -> int:
        group = self.group()
        lag = group["lag"]
        if lag is None:  # the server does not know it, for a group that is older than the first entry
            lag = len(self.client.xrange(self.stream, f"({group['last-delivered-id'].decode()}"))
        return int(group["pending"]) + int(lag)

    def handed_out(self) -> int:
        return int(self.group()["pending"])

    def acknowledgements(self) -> int:
        if self.acknowledged is None:
            self.acknowledged = []
            began = threading.Event()
            threading.Thread(target=self.watch, args=(began,), daemon=True).start()
            began.wait(30)
        return sum(self.acknowledged)

    def watch(self, began: threading.Event) -> None:
        """Note the ids of each XACK that the server gets."""
        client = redis.Redis.from_url(self.url("right"))
        with suppress(redis.RedisError), client.monitor() as monitor:  # type: ignore[no-untyped-call]
            began.set()
            for command in monitor.listen():
                words = command["command"].split(" ")
                if words[:2] == ["XACK", self.stream] and self.acknowledged is not None:
                    self.acknowledged.append(len(words) - 3)

    def connections(self) -> int:
        return sum(entry["name"] == self.stream for entry in self.client.client_list())

    def bury(self, letter: Any) -> None:
        self.client.xadd(f"{self.stream}-dead", letter.element.fields)

    def dead(self) -> int:
        return int(self.client.xlen(f"{self.stream}-dead"))

    def worker(self, consumer: str) -> Callable[[Callable[[int], object]], object]:
        return partial(adapter_workers.of_redis_streams, self.url("right"), self.stream, consumer)

    def break_connections(self) -> None:
        self.server.kill()
        self.server.start()

    def close(self) -> None:
        until(lambda: self.connections() == 0, 5)  # a deleted stream is an error for a reader that is leaving
        self.client.delete(self.stream, f"{self.stream}-dead")


@contextmanager
def redis_streams(folder: Path) -> Iterator[Callable[[], Adapter]]:
    server = RedisServer(folder, "--requirepass", "right")
    try:
        yield partial(RedisStreams, server)
    finally:
        server.close()


# -- the queue in PostgreSQL -------------------------------------------------------------------------------------------


class PostgresQueue(Adapter):
    """A table of its own."""

    name = "postgres_queue"

    def __init__(self, server: PostgresServer) -> None:
        self.server = server
        self.address = f"127.0.0.1:{server.port}"
        self.table = f"kit_{next(names)}"
        self.admin = server.connect()
        self.execute(queue_sql(self.table))
        self.execute(f"CREATE TABLE {self.table}_dead (body jsonb)")

    def conninfo(self, password: str, *, logged: bool = False) -> str:
        """`logged`: the server logs each statement that changes something, with its arguments."""
        user = f"tester:{quote(password, safe='')}"
        more = f"&options={quote('-c log_statement=mod')}" if logged else ""
        return f"postgresql://{user}@{self.address}/postgres?application_name={self.table}{more}"

    def execute(self, statement: str, *values: Any) -> Any:
        try:
            return self.admin.execute(statement, values or None)
        except psycopg.OperationalError:  # the server has been killed
            self.admin = self.server.connect()
            return self.admin.execute(statement, values or None)

    def count(self, of: str) -> int:
        return int(self.execute(f"SELECT count(*) FROM {of}").fetchone()[0])

    def put(self, numbers: Sequence[int]) -> None:
        self.execute(f"INSERT INTO {self.table} (body) SELECT to_jsonb(n) FROM unnest(%s::bigint[]) n", list(numbers))

    def fill(self, n: int) -> None:
        self.execute(f"INSERT INTO {self.table} (body) SELECT to_jsonb(n) FROM generate_series(0, {n - 1}) n")

    def open(self, consumer: str, executor: Executor, password: str = PASSWORD) -> AckedFlow[Job]:
        return jobs(self.conninfo(password, logged=True), self.table, executor, poll=0.1)

    def open_with(self, password: str) -> AckedFlow[Job]:
        return self.open("reader", ThreadPoolExecutor(1), password)

    def number(self, value: Job) -> int:
        return int(value.body)

    def left(self) -> int:
        return self.count(self.table)

    def handed_out(self) -> int:
        return self.count(f"{self.table} WHERE claimed_by IS NOT NULL")

    def acknowledgements(self) -> int:
        """The jobs that each DELETE names, in the log of the server: one that names a job again changes no row."""
        log = (self.server.folder / "log").read_text()
        found = re.findall(rf"DELETE FROM \S*{self.table}\b.*\n.*\$1 = '{{([\d,]*)}}'", log)
        return sum(len(ids.split(",")) for ids in found)

    def connections(self) -> int:
        return self.count(f"pg_stat_activity WHERE application_name = '{self.table}'")

    def bury(self, letter: Any) -> None:
        self.execute(f"INSERT INTO {self.table}_dead VALUES (to_jsonb(%s::bigint))", letter.element.body)

    def dead(self) -> int:
        return self.count(f"{self.table}_dead")

    def worker(self, consumer: str) -> Callable[[Callable[[int], object]], object]:
        return partial(adapter_workers.of_postgres, self.conninfo(PASSWORD), self.table, consumer)

    def break_connections(self) -> None:
        self.server.kill()
        self.server.start()

    def close(self) -> None:
        self.execute(f"DROP TABLE {self.table}, {self.table}_dead")
        self.admin.close()


@contextmanager
def postgres_queue(folder: Path) -> Iterator[Callable[[], Adapter]]:
    server = PostgresServer()
    try:
        server.start()
        yield partial(PostgresQueue, server)
    finally:
        server.close()


ADAPTERS: dict[str, Callable[[Path], AbstractContextManager[Callable[[], Adapter]]]] = {
    "redis_streams": redis_streams,
    "postgres_queue": postgres_queue,
    "kafka": kafka,
    "jetstream": jetstream,
    "sse": sse,
    "sse_kept": sse_kept,
}
"""Each takes an empty folder, starts a server, and gives the maker of descriptions. Without a server it skips."""
