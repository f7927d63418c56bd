"""Into Spark: the elements of a flow as rows, written in micro-batches, or fed to a stream.

request(n) ◀── a batch is gathered while the one before is written ◀── each batch is one Spark job, or one segment
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from reactive_runtime._core import dropping, primitives
from reactive_runtime._core.arguments import at_least, seconds_of
from reactive_runtime.flow import Flow
from reactive_runtime.spark.jobs import Jobs
from reactive_runtime.spark.schemas import Elements, arrow_schema, spark_schema
from reactive_runtime.spark.segments import Segments, folder_of
from reactive_runtime.spark.spark_errors import is_connected, not_stopped
from reactive_runtime.spark.values import LARGE, arrow_fields, reader, without_tags, writer

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

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
        arrow_schema("to_spark", schema)  # says so where there is a type that can't be made
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
        folder, which it holds a lock of, and one query empties it: with the DataFrame that is returned, or in another
        process with that of `read_feed`.

        Args:
            folder: The folder, which is made if there is none: a path, or an address that begins with `file:`.
            segments: How many segments are there at once, at most; 2 or more.

        Returns:
            The DataFrame for the query, and the future of the flow.

        Raises:
            TypeError: `segments` is no int.
            ValueError: `segments` is below 2.
            SparkError: Another flow feeds the folder, which is named. Or it holds segments of another schema, is an
                address of an object store, or the session was stopped.

        Demand:
            When there is no room, the flow is not asked for more until Spark has committed a batch and removed what it
            was made of.
        """
        at_least("to_spark", "segments", 2, segments)
        not_stopped("to_spark", self._spark)
        kept = Segments(folder_of("to_spark", folder), self._spark_schema, segments)
        position = kept.recovered()
        jobs = Jobs(None, "to_spark", 2)

        def put(table: pyarrow.Table) -> int:
            return kept.put(table) if jobs.wait(kept.room, _LOOK) else 0

        try:
            frame = kept.frame(self._spark)
            done = self._run(jobs, put, kept.close)
        except BaseException:
            kept.close()
            raise
        return SparkFeed(frame, done, position, kept)

    def _written(self, write: Callable[[Any], object]) -> primitives.Future[int]:
        jobs = Jobs(self._spark, "to_spark", 2)

        def once(table: pyarrow.Table) -> int:
            # One partition: files are committed by renaming one of them, and a kill finds all of it or nothing.
            write(_frame_of(self._spark, table, self._spark_schema).coalesce(1).write)
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

    def _run(
        self, jobs: Jobs, write: Callable[[pyarrow.Table], int], close: Callable[[], object] = lambda: None
    ) -> primitives.Future[int]:
        """Batches to tables to calls of `write`, one at a time; the sum of what it returns. At the end `close`."""
        rows = Elements("to_spark", self._spark_schema)
        batches: Flow[list[T]]
        if self._seconds is None:
            batches = self._source.batch(self._batch_rows)
        else:
            batches = self._source.buffer_timeout(self._batch_rows, self._seconds)
        # On a thread of ours, where none was chosen: a batch is gathered, and one waits, while one is written.
        tables = batches.map(rows.table).subscribe_on(jobs.pool).publish_on(jobs.pool, prefetch=1)
        written = tables.map_parallel(lambda table: jobs.call(0, write, table), jobs.pool, concurrency=1)

        def leave() -> None:
            jobs.leave()
            close()

        return written.finalize(leave).sum().to_future()  # type: ignore[return-value]


_MOST: Final = "spark.sql.execution.arrow.maxRecordsPerBatch"

_without_limit = primitives.Lock()  # the setting of a session that has none, while a frame is made


def _frame_of(spark: SparkSession, table: pyarrow.Table, schema: StructType) -> DataFrame:
    """The table as a DataFrame, with two settings as well with which PySpark by itself can't make one."""
    bare = without_tags(schema)
    if bare == schema or spark.conf.get(LARGE, "false") != "true":
        return _limited(spark, table, schema)
    # It would make the bytes of a variant large no more than it should, and Spark read what is not there. As bytes
    # and no variant they are made large, and a task makes variants of them.
    return _limited(spark, table.cast(arrow_fields(bare)), bare).mapInArrow(_Made(schema), schema)


def _limited(spark: SparkSession, table: pyarrow.Table, schema: StructType) -> DataFrame:
    if is_connected(spark) or int(spark.conf.get(_MOST) or 1) > 0:
        return spark.createDataFrame(table, schema)
    with _without_limit:  # a batch of 0 rows is refused, which should be one without a limit
        none = spark.conf.get(_MOST)
        try:
            spark.conf.set(_MOST, max(1, table.num_rows))
            return spark.createDataFrame(table, schema)
        finally:
            spark.conf.set(_MOST, none or "0")


class _Made:
    """Makes batches of a schema of those without its tags, value by value. It travels to the tasks."""

    def __init__(self, schema: StructType) -> None:
        self._schema = schema

    def __call__(self, batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        import pyarrow as pa

        reads = [reader(field.dataType) for field in self._schema]
        writes = [writer(field.dataType, nullable=field.nullable) for field in self._schema]
        for batch in batches:
            columns = [
                write(read(column), None) for read, write, column in zip(reads, writes, batch.columns, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=arrow_fields(self._schema))


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
