"""To Spark and back: what needs the extra `reactive-runtime[spark]`.

This is the one module of its layer that imports from one above: `reactive_runtime.spark`, when one of these is called.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from reactive_runtime._operators.flow_base import FlowBase
from reactive_runtime.errors import MissingDependencyError

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

    from reactive_runtime._flow import Flow
    from reactive_runtime.spark._write.spark_sink import SparkSink

__all__ = ["SparkOperators"]

T_co = TypeVar("T_co", covariant=True)

Mode = Literal["append", "update", "complete"]
"""The output modes of a streaming query in Spark."""


class SparkOperators(FlowBase[T_co]):
    """To Spark and back: what needs the extra `reactive-runtime[spark]`."""

    __slots__ = ()

    @overload
    @staticmethod
    def from_dataframe(
        df: DataFrame, *, prefetch_partitions: int = ..., form: Literal["dicts"] = ..., batch_rows: int = ...
    ) -> Flow[dict[str, Any]]: ...

    @overload
    @staticmethod
    def from_dataframe(
        df: DataFrame, *, prefetch_partitions: int = ..., form: Literal["tuples"], batch_rows: int = ...
    ) -> Flow[tuple[Any, ...]]: ...

    @overload
    @staticmethod
    def from_dataframe(
        df: DataFrame, *, prefetch_partitions: int = ..., form: Literal["batches"], batch_rows: int = ...
    ) -> Flow[pyarrow.RecordBatch]: ...

    @staticmethod
    def from_dataframe(
        df: DataFrame,
        *,
        prefetch_partitions: int = 1,
        form: Literal["dicts", "tuples", "batches"] = "dicts",
        batch_rows: int = 10_000,
    ) -> Flow[Any]:
        """The rows of a DataFrame of Spark, in the order of its partitions.

        A Spark job fetches a partition as Arrow, batch by batch, past the heap of the driver's JVM. What is not taken
        yet waits here, 16 MiB of a partition in memory and the rest in a temporary file. Partitions that are small are
        fetched several a job. Values are those of `DataFrame.collect`.

        Args:
            df: A DataFrame of Spark. Of Spark Connect the whole is computed by the server, whatever is demanded.
            prefetch_partitions: How many jobs may fetch ahead of the partition whose rows are being taken, 1 or more.
            form: The form of an element: "dicts", as `map_flow` has it, "tuples", or "batches" of Arrow.
            batch_rows: How many rows are made into Python's objects at a time, and are in a batch of Arrow at most, 1
                or more.

        Returns:
            A flow of rows, fetched for each subscriber anew. It fails with SparkError where a job fails, and where a
            task is lost whose second attempt has other rows than were taken of the first. The message begins with
            Spark's reason, and the Java stack is the cause.

        Raises:
            TypeError: `df` is no DataFrame, or a number is not an int.
            ValueError: A number is below 1, `form` is none of the three, or two columns have one name and are to be
                dicts.
            SparkError: Python has no values of a type: it is an interval of months, which `collect` refuses too.
            ModuleNotFoundError: The extra `reactive-runtime[spark]` is not installed.

        Demand:
            The first partition is fetched when the first row is demanded, the others while rows are taken: one a job
            at first, and no more small ones than were taken before. A job computes its partitions whole.

        Cancellation:
            Ends the jobs of this subscription, which carry a tag of their own.

        Thread:
            Rows come on a thread of the flow, or on the one that demands them, up to the next boundary. Jobs have the
            group, the description, the pool and the tags of the thread that subscribes.

        Example:
            >>> from reactive_runtime import Flow
            >>> from reactive_runtime.spark import session
            >>> df = session("local[2]").range(0, 1000, 1, numPartitions=4)
            >>> Flow.from_dataframe(df).map(lambda row: row["id"]).sum().block()
            499500

        Origin:
            `DataFrame.toLocalIterator` of Spark, with demand.
        """
        flow: Flow[Any] = _spark("_read.frames").flow_of_rows(df, prefetch_partitions, form, batch_rows)
        return flow

    @overload
    @staticmethod
    def from_stream(
        df: DataFrame,
        *,
        checkpoint: str | Path | None = ...,
        trigger: Mapping[str, Any] | None = ...,
        mode: Mode = ...,
        prefetch_partitions: int = ...,
        form: Literal["dicts"] = ...,
        batch_rows: int = ...,
    ) -> Flow[dict[str, Any]]: ...

    @overload
    @staticmethod
    def from_stream(
        df: DataFrame,
        *,
        checkpoint: str | Path | None = ...,
        trigger: Mapping[str, Any] | None = ...,
        mode: Mode = ...,
        prefetch_partitions: int = ...,
        form: Literal["tuples"],
        batch_rows: int = ...,
    ) -> Flow[tuple[Any, ...]]: ...

    @overload
    @staticmethod
    def from_stream(
        df: DataFrame,
        *,
        checkpoint: str | Path | None = ...,
        trigger: Mapping[str, Any] | None = ...,
        mode: Mode = ...,
        prefetch_partitions: int = ...,
        form: Literal["batches"],
        batch_rows: int = ...,
    ) -> Flow[pyarrow.RecordBatch]: ...

    @staticmethod
    def from_stream(
        df: DataFrame,
        *,
        checkpoint: str | Path | None = None,
        trigger: Mapping[str, Any] | None = None,
        mode: Mode = "append",
        prefetch_partitions: int = 1,
        form: Literal["dicts", "tuples", "batches"] = "dicts",
        batch_rows: int = 10_000,
    ) -> Flow[Any]:
        """The rows of a streaming DataFrame of Spark, as its query brings them.

        A micro-batch is committed when the last of its rows has been taken: when `on_next` has returned, or a boundary
        downstream has it. A batch that was taken in part comes again from its beginning (at least once: what follows
        should not mind a row that it has seen). Put no boundary after it where a row must not be lost with the process.

        Args:
            df: A streaming DataFrame.
            checkpoint: A folder. A later subscription with it goes on after the last batch that was committed.
            trigger: That of Spark. `{"availableNow": True}` completes the flow when all there was has been taken.
            mode: Spark's output mode. A query that aggregates needs "update" or "complete".
            prefetch_partitions: That of `from_dataframe`, for each micro-batch.
            form: That of `from_dataframe`.
            batch_rows: That of `from_dataframe`.

        Returns:
            A flow of rows, with a query of its own for each subscriber. It completes where the query came to its own
            end. It fails with SparkError where the query fails, is stopped by anyone else, or ends with its session or
            JVM; the message begins with the reason. It fails with TypeError or ValueError, at the first micro-batch,
            where `prefetch_partitions`, `form` or `batch_rows` is not what `from_dataframe` takes.

        Raises:
            TypeError: `df` is no streaming DataFrame, or one of Spark Connect, or Spark has no such `trigger`.
            ValueError: `mode` is none of the three, or Spark does not take the value of `trigger`.
            ModuleNotFoundError: The extra `reactive-runtime[spark]` is not installed.

        Demand:
            Holds the query back: Spark plans no other micro-batch until all rows of the last one have been taken.

        Cancellation:
            Stops the query. A batch that was not taken to its end is not committed.

        Thread:
            The query begins when the flow is subscribed to, and runs on a thread of its own. Rows come on threads of
            the flow, which goes on there up to its next boundary.

        Example:
            >>> from reactive_runtime import Flow
            >>> from reactive_runtime.spark import session
            >>> ticks = session("local[2]").readStream.format("rate").options(rowsPerSecond=100, numPartitions=1).load()
            >>> Flow.from_stream(ticks).map(lambda row: row["value"]).take(3).to_list().block()
            [0, 1, 2]

        Origin:
            `foreachBatch` of Spark's Structured Streaming, with demand.
        """
        flow: Flow[Any] = _spark("_read.streams").flow_of_stream(
            df, checkpoint, trigger, mode, prefetch_partitions, form, batch_rows
        )
        return flow

    def to_spark(
        self, spark: SparkSession, schema: Any, *, batch_rows: int = 100_000, seconds: float | None = None
    ) -> SparkSink[T_co]:
        """The elements as rows of Spark: appended to files or a table, or fed to a stream.

        Elements are mappings, sequences in the order of the fields, objects with these attributes, or Arrow batches.
        They are gathered in micro-batches. Values are checked as `createDataFrame` of Spark checks them.

        Args:
            spark: The session that writes.
            schema: A `pyarrow.Schema`, a `StructType`, a DDL string, a dataclass, a TypedDict or a model of pydantic.
            batch_rows: How many elements are in a micro-batch at most, 1 or more.
            seconds: After so many seconds from its first element a micro-batch is written as it is, above 0. None: when
                it is full, or the source has ended.

        Returns:
            A `SparkSink`, whose methods run the flow. An element that does not fit ends the flow with a SparkError that
            names it and the field; the batches before it are written.

        Raises:
            TypeError: `schema` is none of these, `batch_rows` is not an int, or `seconds` is not a number.
            ValueError: `batch_rows` is below 1, or `seconds` is not above 0 or not finite.
            SparkError: `schema` has a type that Spark has not, or is a DDL string that Spark cannot read, for want of a
                session perhaps.
            ModuleNotFoundError: The extra `reactive-runtime[spark]` is not installed.

        Demand:
            While one micro-batch is written the next is gathered, and another may wait. No more is requested of the
            source.

        Cancellation:
            Cancelling the future of the sink cancels the source, and the job that runs.

        Thread:
            A source that has no executor runs on a thread of the sink. Jobs run on threads of the sink.

        Example:
            >>> import tempfile
            >>> from reactive_runtime import Flow
            >>> from reactive_runtime.spark import session
            >>> spark = session("local[2]")
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     squares = Flow.range(10).map(lambda n: (n, n * n))
            ...     written = squares.to_spark(spark, "n long, square long").parquet(folder)
            ...     written.result(), spark.read.parquet(folder).agg({"square": "sum"}).first()[0]
            (10, 285)

        Origin:
            `DataFrameWriter` of Spark, with demand.
        """
        sink: SparkSink[T_co] = _spark("_write.spark_sink").SparkSink(self, spark, schema, batch_rows, seconds)
        return sink


def _spark(module: str) -> Any:
    """Import a module of the bridge, which needs the extra."""
    try:
        import_module("pyspark")  # first: the checks of arguments need only the name of PySpark
        return import_module(f"reactive_runtime.spark.{module}")
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.startswith("reactive_runtime"):
            raise
        raise MissingDependencyError(f"Spark needs {error.name}: pip install 'reactive-runtime[spark]'") from error
