"""The elements of a flow in micro-batches, each of which is written, one at a time.

elements ──▶ gathered ──▶ waits ──▶ written: one job, one batch
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from reactive_runtime._core.runtime import primitives
from reactive_runtime._core.runtime.arguments import at_least, seconds_of
from reactive_runtime._flow import Flow
from reactive_runtime.spark._session.jobs import Jobs
from reactive_runtime.spark._session.spark_errors import is_connected
from reactive_runtime.spark._write.arrow_types import LARGE, arrow_fields, without_tags
from reactive_runtime.spark._write.column_readers import reader
from reactive_runtime.spark._write.kept_in_files import Check
from reactive_runtime.spark._write.schemas import Elements, spark_schema
from reactive_runtime.spark._write.values import writer
from reactive_runtime.spark._write.writes import Write

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

__all__ = ["Batches"]

T = TypeVar("T")


class Batches(Generic[T]):
    """A flow, and how its elements are made rows. Nothing runs before a method is called."""

    def __init__(
        self, source: Flow[T], spark: SparkSession, schema: Any, batch_rows: int, seconds: float | None
    ) -> None:
        if not hasattr(spark, "createDataFrame"):
            raise TypeError(f"to_spark: a SparkSession is needed, not {type(spark).__name__}")
        at_least("to_spark", "batch_rows", 1, batch_rows)
        if seconds is not None:
            seconds_of("to_spark", "seconds", seconds, positive=True)
        self._source = source
        self.spark = spark
        self.schema: StructType = spark_schema("to_spark", schema)
        self._batch_rows = batch_rows
        self._seconds = seconds

    def written(
        self,
        write_of: Callable[[Jobs], Write],
        *,
        checks: Callable[[], Sequence[Check]] = tuple,
        nothing: type[Exception] | tuple[()] = (),
    ) -> primitives.Future[int]:
        """Each batch as a DataFrame to `write_of(jobs)`; how many elements that were.

        Each column goes through `checks` before Spark writes it. An error of the kind `nothing` is the end, and counts
        as none.
        """
        jobs = Jobs(self.spark, "to_spark", 2)
        try:
            write = write_of(jobs)
        except BaseException:
            jobs.leave()
            raise

        def frame(table: pyarrow.Table) -> DataFrame:
            # One partition: files are committed by renaming one of them, and a kill finds all of it or nothing.
            return _frame_of(self.spark, table, self.schema).coalesce(1)

        def put(table: pyarrow.Table) -> int:
            write.put(lambda: frame(table), table.num_rows)
            return table.num_rows

        def end() -> int:
            write.end(lambda: frame(arrow_fields(self.schema).empty_table()))
            return 0

        return self.into(jobs, put, end=end, checks=checks, nothing=nothing)

    def into(
        self,
        jobs: Jobs,
        put: Callable[[pyarrow.Table], int],
        *,
        end: Callable[[], int] = lambda: 0,
        checks: Callable[[], Sequence[Check]] = tuple,
        nothing: type[Exception] | tuple[()] = (),
        close: Callable[[], object] = lambda: None,
    ) -> primitives.Future[int]:
        """Batches to tables to calls of `put`, one at a time, and then of `end`; the sum of what they return.

        An error of the kind `nothing` is the end, with 0. `close` is called at the end of all.
        """
        batches: Flow[list[T]]
        if self._seconds is None:
            batches = self._source.batch(self._batch_rows)
        else:
            batches = self._source.buffer_timeout(self._batch_rows, self._seconds)

        def made() -> Flow[pyarrow.Table]:
            return batches.map(Elements("to_spark", self.schema, jobs.call((), checks)).table)

        # On a thread of ours, where none was chosen: a batch is gathered, and one waits, while one is written.
        tables = Flow.defer(made).subscribe_on(jobs.pool).publish_on(jobs.pool, prefetch=1)
        written = tables.map_parallel(lambda table: jobs.call(0, put, table), jobs.pool, concurrency=1)
        ended = Flow.from_callable(lambda: jobs.call(0, end)).subscribe_on(jobs.pool)
        whole = written.concat_with(ended)
        if nothing:
            whole = whole.on_error_return(lambda _: 0, when=nothing)

        def leave() -> None:
            jobs.leave()
            close()

        return whole.finalize(leave).sum().to_future()  # type: ignore[return-value]


_MOST: Final = "spark.sql.execution.arrow.maxRecordsPerBatch"

_without_limit = primitives.Lock()  # the setting of a session that has none, while a frame is made


def _frame_of(spark: SparkSession, table: pyarrow.Table, schema: StructType) -> DataFrame:
    """The table as a DataFrame, also with two settings with which PySpark alone can't make one."""
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
