"""Into Spark: the elements of a flow as rows, written in micro-batches, or fed to a stream.

request(n) ◀── a batch is gathered while the one before is written ◀── each batch is one Spark job, or one segment
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from reactive_runtime._core import dropping, primitives
from reactive_runtime._core.arguments import at_least, seconds_of
from reactive_runtime.flow import Flow
from reactive_runtime.spark.jobs import Jobs
from reactive_runtime.spark.schemas import Elements, arrow_schema, spark_schema
from reactive_runtime.spark.segments import Segments
from reactive_runtime.spark.spark_errors import not_stopped

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["SparkFeed", "SparkSink"]

T = TypeVar("T")

_LOOK: Final = 0.05
"""Seconds after which the folder is looked at again, where it has no room: Spark does not say that it removed one."""


class SparkSink(Generic[T]):
    """Where the elements of a flow go, in Spark; made by `Flow.to_spark`. Nothing runs before a method is called."""

    def __init__(
        self, source: Flow[T], spark: SparkSession, schema: Any, batch_rows: int, seconds: float | None
    ) -> None:
        at_least("to_spark", "batch_rows", 1, batch_rows)
        if seconds is not None:
            seconds_of("to_spark", "seconds", seconds, positive=True)
        self._source = source
        self._spark = spark
        self._schema = arrow_schema("to_spark", schema)
        self._spark_schema = spark_schema("to_spark", schema)
        self._batch_rows = batch_rows
        self._seconds = seconds

    def parquet(self, path: str | Path, *, mode: str = "append", **options: Any) -> primitives.Future[int]:
        """Run the flow, and append its elements to a folder of Parquet files.

        Args:
            path: The folder, which is made if there is none.
            mode: As for `format`.
            **options: As for `format`.

        Returns:
            As of `format`.
        """
        return self.format("parquet", path, mode=mode, **options)

    def table(self, name: str, *, mode: str = "append", **options: Any) -> primitives.Future[int]:
        """Run the flow, and append its elements to a table of Spark's catalogue, which is made if there is none.

        Args:
            name: The name of the table.
            mode: As for `format`.
            **options: As for `format`.

        Returns:
            As of `format`.
        """
        return self._written(lambda writer: writer.mode(mode).options(**options).saveAsTable(name))

    def format(
        self, format: str, path: str | Path | None = None, *, mode: str = "append", **options: Any
    ) -> primitives.Future[int]:
        """Run the flow, and write its elements in any format of Spark.

        Each micro-batch is one job of Spark, whose rows are there when it is committed, or not at all. One that fails
        is written once more, and the error goes to the hook; when that fails too, the flow is cancelled, and the future
        has the error.

        Args:
            format: The name of a format of Spark.
            path: Where to write. None: the format needs no path.
            mode: The mode of Spark's `DataFrameWriter`; one that replaces ("overwrite") does so with every batch.
            **options: The options of Spark's `DataFrameWriter`.

        Returns:
            A future, which has the number of elements written, or the error. Cancelling it cancels the flow and the job
            that runs.

        Demand:
            A batch is gathered, and one waits, while one is written.

        Cancellation:
            A cancel of the future passes upstream, and cancels the job that runs.

        Thread:
            Batches are written on threads of the sink; the flow runs on one of them where it has no executor.
        """
        to = None if path is None else str(path)
        return self._written(lambda writer: writer.format(format).mode(mode).options(**options).save(to))

    def stream(self, folder: str | Path, *, segments: int = 4) -> SparkFeed:
        """Run the flow, and keep its elements in `folder` until a streaming query has taken them.

        Each micro-batch is a segment, a Parquet file. What is in the folder survives the end of either process:
        `elements_fed(folder)` says how many elements a flow that is begun again should skip. One flow at a time feeds a
        folder, and one query empties it.

        Args:
            folder: The folder, which is made if there is none.
            segments: How many segments are there at once, at most; 2 or more.

        Returns:
            The DataFrame for the query, and the future of the flow.

        Raises:
            TypeError: `segments` is no int.
            ValueError: `segments` is below 2.
            SparkError: The folder holds segments of another schema, or the session was stopped.

        Demand:
            When there is no room, the flow is not asked for more until Spark has committed a batch and removed what it
            was made of.
        """
        at_least("to_spark", "segments", 2, segments)
        not_stopped("to_spark", self._spark)
        kept = Segments(Path(folder), self._schema, segments)
        position = kept.recovered()
        jobs = Jobs(None, "to_spark", 2)

        def put(table: pyarrow.Table) -> int:
            return kept.put(table) if jobs.wait(kept.room, _LOOK) else 0

        done = self._run(jobs, put)
        return SparkFeed(kept.frame(self._spark, self._spark_schema), done, position, kept)

    def _written(self, write: Callable[[Any], object]) -> primitives.Future[int]:
        jobs = Jobs(self._spark, "to_spark", 2)

        def once(table: pyarrow.Table) -> int:
            # One partition: files are committed by renaming one of them, and a kill finds all of it or nothing.
            write(self._spark.createDataFrame(table, self._spark_schema).coalesce(1).write)
            return table.num_rows

        def twice(table: pyarrow.Table) -> int:
            try:
                return once(table)
            except Exception as error:
                if jobs.over():
                    raise
                dropping.error_dropped("to_spark: a micro-batch was not written, and is tried once more", error)
                return once(table)

        return self._run(jobs, twice)

    def _run(self, jobs: Jobs, write: Callable[[pyarrow.Table], int]) -> primitives.Future[int]:
        """Elements to batches to tables to calls of `write`, one at a time; the sum of what it returns."""
        rows = Elements("to_spark", self._schema)
        batches: Flow[list[T]]
        if self._seconds is None:
            batches = self._source.batch(self._batch_rows)
        else:
            batches = self._source.buffer_timeout(self._batch_rows, self._seconds)
        # On a thread of ours, where none was chosen: a batch is gathered, and one waits, while one is written.
        tables = batches.map(rows.table).subscribe_on(jobs.pool).publish_on(jobs.pool, prefetch=1)
        written = tables.map_parallel(lambda table: jobs.call(0, write, table), jobs.pool, concurrency=1)
        return written.finalize(jobs.leave).sum().to_future()  # type: ignore[return-value]


class SparkFeed:
    """A flow that feeds a streaming query; made by `SparkSink.stream`."""

    def __init__(self, dataframe: DataFrame, done: primitives.Future[int], position: int, kept: Segments) -> None:
        self.dataframe = dataframe
        """What the flow feeds: a streaming DataFrame, for one query, which should have a checkpoint."""
        self.done = done
        """Has the number of elements that were put into segments, at the end of the flow, or its error. Cancelling it
        ends the flow; what is in segments stays."""
        self.position = position
        """How many elements had been in segments before this one began; what `elements_fed` said then."""
        self._kept = kept

    def outstanding(self) -> int:
        """How many segments are there now.

        Returns:
            The number of files.
        """
        return self._kept.outstanding()
