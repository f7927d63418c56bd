"""The job: in parts, each written whole or not at all, so that one that was killed goes on with the part it was at."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from http.client import HTTPConnection
from pathlib import Path
from threading import local
from typing import Any
from urllib.parse import urlsplit

from pyspark.sql import SparkSession

from reactive_runtime import Flow
from reactive_runtime.picklable import Threads, Timers
from reactive_runtime.spark import JobLimits, TaskMetrics, map_flow

IN_FLIGHT = 32
SCHEMA = "id long, name string"


class Client:
    """Calls the service; a connection a thread. It travels to the tasks, where it connects anew."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.kept = local()

    def __reduce__(self) -> Any:
        return Client, (self.address,)

    def name(self, row: dict[str, Any]) -> dict[str, Any]:
        """The row with what the service says of it; OSError where it is too busy."""
        where = urlsplit(self.address)
        connection = getattr(self.kept, "connection", None)
        if connection is None:
            connection = self.kept.connection = HTTPConnection(where.netloc, timeout=30)
        try:
            connection.request("GET", f"{where.path}/{row['id']}")
            answer = connection.getresponse()
            text = answer.read().decode()
        except BaseException:
            connection.close()
            raise
        if answer.status != 200:
            raise OSError(f"the service said {answer.status}")
        return {"id": row["id"], "name": text}


def enrich(client: Client, pool: Threads, clock: Timers, limits: JobLimits) -> Callable[[Flow[Any]], Flow[Any]]:
    """What happens in each task; the limits are of all tasks together."""
    name = limits.limited(client.name)

    def called(row: dict[str, Any]) -> Flow[dict[str, Any]]:
        one = Flow.from_callable(lambda: name(row)).subscribe_on(pool)
        return one.retry_backoff(5, clock=clock, first=0.01)

    return lambda rows: rows.flat_map(called, concurrency=IN_FLIGHT)


def run(
    spark: SparkSession,
    address: str,
    rows: int,
    out: Path,
    parts: int,
    calls_a_second: int,
    finished: Callable[[int], object],
) -> TaskMetrics:
    """Enrich `rows` rows into `out`, in `parts` parts; `finished` is called with the number of each that is there."""
    metrics = TaskMetrics(spark)
    limits = JobLimits(spark, rate=calls_a_second)
    fn = enrich(Client(address), Threads(IN_FLIGHT), Timers(), limits)
    for part in range(parts):
        done, begun = out / f"part={part}", out / f".part={part}"
        if not done.exists():
            first, last = rows * part // parts, rows * (part + 1) // parts
            df = map_flow(spark.range(first, last, 1, 2), fn, SCHEMA, metrics=metrics)
            df.write.mode("overwrite").parquet(str(begun))
            shutil.move(begun, done)  # it is there when all of it is
        finished(part)
    return metrics
