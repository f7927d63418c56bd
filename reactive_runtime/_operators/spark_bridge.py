"""To Spark and back: what needs the extra `reactive-runtime[spark]`.

This is the one place that looks upwards: `reactive_runtime.spark` is imported when one of these is called.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from reactive_runtime._core.flow_base import FlowBase

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

    from reactive_runtime.flow import Flow
    from reactive_runtime.spark.sinks import SparkSink

__all__ = ["SparkOperators"]

T_co = TypeVar("T_co", covariant=True)

Mode = Literal["append", "update", "complete"]
"""Of the output of a streaming query: those of Spark."""


class SparkOperators(FlowBase[T_co]):
    """To Spark and back: what needs the extra `reactive-runtime[spark]`."""

    __slots__ = ()

    @overload
    @staticmethod
    def from_dataframe(
        df: DataFrame, *, prefetch_partitions: int = ..., form: Literal["tuples"] = ..., batch_rows: int = ...
    ) -> Flow[tuple[Any, ...]]: ...

    @overload
    @staticmethod
    def from_dataframe(
        df: DataFrame, *, prefetch_partitions: int = ..., form: Literal["dicts"], batch_rows: int = ...
    ) -> Flow[dict[str, Any]]: ...

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
        form: Literal["tuples", "dicts", "batches"] = "tuples",
        batch_rows: int = 10_000,
    ) -> Flow[Any]:
        """The rows of a DataFrame of Spark, in the order of its partitions, for each subscriber anew.

        `form` says what an element is: "tuples", "dicts", or "batches" of Arrow with up to `batch_rows` rows (1 or
        more). Partitions are fetched as Arrow, one Spark job each, up to `prefetch_partitions` (1 or more) ahead of the
        one whose rows are being taken; the first when the first row is asked for. So `prefetch_partitions` + 1 of them
        are in memory, at the most, and `batch_rows` rows as Python's objects. Jobs run on threads of the flow, which
        goes on there up to its next boundary.

        Cancelling the flow cancels its jobs, which carry a tag of their own. An error of a job is a SparkError that
        begins with Spark's reason; the Java stack is its cause. TypeError for what is no DataFrame, or one of Spark
        Connect.

        >>> from reactive_runtime import Flow
        >>> from reactive_runtime.spark import session
        >>> df = session("local[2]").range(0, 1000, 1, numPartitions=4)
        >>> Flow.from_dataframe(df).map(lambda row: row[0]).sum().block()
        499500
        """
        flow: Flow[Any] = _spark("frames").flow_of_rows(df, prefetch_partitions, form, batch_rows)
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
        form: Literal["tuples"] = ...,
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
        form: Literal["dicts"],
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
        form: Literal["tuples", "dicts", "batches"] = "tuples",
        batch_rows: int = 10_000,
    ) -> Flow[Any]:
        """The rows of a streaming DataFrame, as its query brings them; each subscriber has a query of its own.

        A micro-batch is committed when the last of its rows has been taken: when `on_next` has returned, or a boundary
        downstream has it. Until then Spark plans no other, so that demand holds the query back. With a `checkpoint`, a
        folder, a later subscription goes on after the last batch that was committed; a batch that was taken in part
        comes again from its beginning (at least once: what follows should not mind a row that it has seen). Put no
        boundary after it where a row must not be lost with the process.

        `trigger` is Spark's: `{"availableNow": True}` completes the flow when all there was has been taken. `mode` is
        Spark's output mode: what aggregates wants "update" or "complete". The others are those of `from_dataframe`, for
        each batch. The query begins when the flow is subscribed to; cancelling stops it. An error of the query is a
        SparkError that begins with Spark's reason. TypeError for what is no streaming DataFrame.

        >>> from reactive_runtime import Flow
        >>> from reactive_runtime.spark import session
        >>> ticks = session("local[2]").readStream.format("rate").options(rowsPerSecond=100, numPartitions=1).load()
        >>> Flow.from_stream(ticks).map(lambda row: row[1]).take(3).to_list().block()
        [0, 1, 2]
        """
        flow: Flow[Any] = _spark("streams").flow_of_stream(
            df, checkpoint, trigger, mode, prefetch_partitions, form, batch_rows
        )
        return flow

    def to_spark(
        self, spark: SparkSession, schema: Any, *, batch_rows: int = 100_000, seconds: float | None = None
    ) -> SparkSink[T_co]:
        """The elements as rows of Spark: appended to files or a table, or fed to a stream; see `SparkSink`.

        `schema` is a `pyarrow.Schema`, a `StructType`, a DDL string, a dataclass, a TypedDict or a model of pydantic.
        Elements are mappings, sequences in the order of the fields, objects with these attributes, or Arrow batches.
        They are gathered in micro-batches of `batch_rows` elements (1 or more), or of those there are `seconds` after
        the first of them. While one is written the next is gathered, and another may wait; no more is asked of the
        source.

        A source that has no executor runs on a thread of the sink. An element that does not fit is a SparkError that
        names it and the field, and ends the flow; batches before it are written. TypeError or SparkError for what is no
        schema.

        >>> import tempfile
        >>> from reactive_runtime import Flow
        >>> from reactive_runtime.spark import session
        >>> spark = session("local[2]")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     squares = Flow.range(10).map(lambda n: (n, n * n))
        ...     written = squares.to_spark(spark, "n long, square long").parquet(folder)
        ...     written.result(), spark.read.parquet(folder).agg({"square": "sum"}).first()[0]
        (10, 285)
        """
        sink: SparkSink[T_co] = _spark("sinks").SparkSink(self, spark, schema, batch_rows, seconds)
        return sink


def _spark(module: str) -> Any:
    return import_module(f"reactive_runtime.spark.{module}")
