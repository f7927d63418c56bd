"""Into Spark: the elements of a flow as rows, written in micro-batches, or fed to a stream.

request(n) ◀── a batch is gathered while the one before is written ◀── each batch is one Spark job, or one segment
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from reactive_runtime._core.runtime import primitives
from reactive_runtime._core.runtime.arguments import at_least, check_callable
from reactive_runtime._flow import Flow
from reactive_runtime._support.public_names import at_home
from reactive_runtime.errors import SparkError
from reactive_runtime.spark._feed.segments import Segments, folder_of
from reactive_runtime.spark._session.jobs import Jobs
from reactive_runtime.spark._session.spark_errors import not_stopped
from reactive_runtime.spark._write.batches import Batches
from reactive_runtime.spark._write.kept_in_files import Files, checks_of, options_of
from reactive_runtime.spark._write.marks import Once, marked
from reactive_runtime.spark._write.table_sink import SparkTableSink
from reactive_runtime.spark._write.writes import (
    NO_OPTIONS,
    Append,
    Call,
    Each,
    IsThereError,
    Write,
    called,
    names_of_options,
    no_transaction,
    replacing,
)

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, DataFrameWriter, SparkSession

__all__ = ["SparkFeed", "SparkSink"]

T = TypeVar("T")

_LOOK: Final = 0.05
"""Seconds between two looks for room in the folder: Spark does not say that it removed a segment."""


class SparkSink(Generic[T]):
    """A writer of the elements of a flow into Spark; made by `Flow.to_spark`. Nothing runs before a method writes.

    It is to a flow what `DataFrameWriter` is to a DataFrame, and its methods are spelt as they are there.

    Methods that choose, such as `format`, `mode`, `option`, `partitionBy`, return another sink, and leave this one as
    it is. One that takes columns raises SparkError where the schema lacks one. One that takes options raises ValueError
    for an option with which Delta would leave out all batches but the first.

    Methods that write, such as `save`, `saveAsTable`, `insertInto`, `jdbc`, run the flow. Each returns a future as
    `save` does, raises the errors of `save`, and has the demand, the cancellation and the threads of `save`.

    In mode "append", the default, each micro-batch is one job of Spark, whose rows are there when Spark has committed
    it. The sink writes a batch that fails once more, and the hook gets the error; when that fails too, the sink cancels
    the flow, and the future has the error. In mode "error" and "ignore" the sink writes the first micro-batch so, and
    appends the others. In mode "overwrite" the sink makes one write of all of the flow, at its end: until then what was
    there stays.

    A flow without elements makes the table or the folder, as a DataFrame without rows does. A value that the files of
    a format would change is an error, in the future, before its batch is written.
    """

    def __init__(
        self, source: Flow[T], spark: SparkSession, schema: Any, batch_rows: int, seconds: float | None
    ) -> None:
        self._batches = Batches(source, spark, schema, batch_rows, seconds)
        self._mode = "append"
        self._format: str | None = None
        self._calls: tuple[Call, ...] = ()
        self._once: Once | None = None

    def format(self, source: str) -> SparkSink[T]:
        """This sink with a format.

        Args:
            source: The name of a format of Spark.
        """
        return self._with(_format=source, _calls=(*self._calls, ("format", (source,), {})))

    def mode(self, saveMode: str) -> SparkSink[T]:  # noqa: N803 - as PySpark spells it
        """This sink with a mode.

        Args:
            saveMode: "append", "overwrite", "ignore", "error" or "errorifexists", as the modes of Spark.

        Raises:
            ValueError: There is no such mode.
        """
        if not isinstance(saveMode, str) or saveMode.lower() not in _MODES:
            raise ValueError(f"to_spark: mode should be one of {', '.join(_MODES)}, not {saveMode!r}")
        return self._with(_mode=saveMode.lower())

    def option(self, key: str, value: Any) -> SparkSink[T]:
        """This sink with an option, which Spark gets as it is.

        Args:
            key: The name of the option.
            value: A str, a number or a bool.

        Raises:
            ValueError: The option would have all batches but the first left out.
        """
        return self.options(**{key: value})

    def options(self, **options: Any) -> SparkSink[T]:
        """This sink with options, which Spark gets as they are.

        Args:
            **options: As for `option`.
        """
        no_transaction(options)
        return self._with(_calls=(*self._calls, ("options", (), options)))

    def partitionBy(self, *cols: str | Sequence[str]) -> SparkSink[T]:  # noqa: N802 - as PySpark spells it
        """This sink with columns that the files or the table are partitioned by.

        Args:
            *cols: Names of columns, or one list of them.

        Raises:
            SparkError: The schema has no such column.
        """
        return self._laid_out("partitionBy", *_names(cols))

    def bucketBy(self, numBuckets: int, *cols: str | Sequence[str]) -> SparkSink[T]:  # noqa: N802, N803
        """This sink with columns that the table is bucketed by.

        Args:
            numBuckets: How many buckets.
            *cols: As for `partitionBy`.
        """
        sink = self._laid_out("bucketBy", *_names(cols))
        return sink._with(_calls=(*self._calls, ("bucketBy", (numBuckets, *_names(cols)), {})))

    def sortBy(self, *cols: str | Sequence[str]) -> SparkSink[T]:  # noqa: N802
        """This sink with columns that each bucket is sorted by.

        Args:
            *cols: As for `partitionBy`.
        """
        return self._laid_out("sortBy", *_names(cols))

    def clusterBy(self, *cols: str | Sequence[str]) -> SparkSink[T]:  # noqa: N802
        """This sink with columns that the table is clustered by.

        Args:
            *cols: As for `partitionBy`.
        """
        return self._laid_out("clusterBy", *_names(cols))

    def exactly_once(self, app: str, *, position: int = 0) -> SparkSink[T]:
        """This sink with the promise that each element is in the table once, over kills and new beginnings of the flow.

        The table, of Delta or Iceberg, says with each micro-batch how many elements of the flow it has. A flow that is
        begun again should skip as many: `elements_written` says how many there are. A flow that begins with another
        element is an error before anything is written.

        Args:
            app: The name of the flow in the table. One flow at a time has that name.
            position: The number of the element that this flow begins with: how many of its elements are in the table.

        Returns:
            Another sink, for mode "append".

        Raises:
            TypeError: `app` is no str, or `position` no int.
            ValueError: `app` is empty, or `position` below 0.
        """
        if not isinstance(app, str):
            raise TypeError(f"to_spark: app should be a str, not {app!r}")
        if not app:
            raise ValueError("to_spark: app should be a name, and is empty")
        at_least("to_spark", "position", 0, position)
        return self._with(_once=Once(app, position))

    def save(
        self,
        path: str | Path | None = None,
        *,
        format: str | None = None,
        mode: str | None = None,
        partitionBy: str | Sequence[str] | None = None,  # noqa: N803
        **options: Any,
    ) -> primitives.Future[int]:
        """Run the flow, and write its elements to a path, or to what the options name.

        Args:
            path: Where to write. None: the format needs no path.
            format: As for the method `format`. None: that of the sink, or the one that is Spark's default.
            mode: As for the method `mode`. None: that of the sink, which is "append" where none was given.
            partitionBy: A column, or a list of columns, as for the method `partitionBy`.
            **options: As for the method `options`.

        Returns:
            A future, which has the number of elements written, or the error. In mode "ignore" the number is 0 where
            something was there. Cancelling it cancels the flow and the job that runs.

        Raises:
            TypeError: An option is a misspelt parameter.
            ValueError: There is no such mode.
            SparkError: The schema has no such column, or exactly once is asked for where it can't be had.

        Demand:
            A batch is gathered, and one waits, while one is written.

        Cancellation:
            A cancel of the future passes upstream, and cancels the job that runs.

        Thread:
            Batches are written on threads of the sink; the flow runs on one of them where it has no executor.
        """
        sink = self._given("save", format, mode, partitionBy, options)
        to = None if path is None else str(path)
        return sink._written(lambda writer: writer.save(to), marks=sink._path_of_delta(to))

    def parquet(
        self,
        path: str | Path,
        *,
        mode: str | None = None,
        partitionBy: str | Sequence[str] | None = None,  # noqa: N803
        **options: Any,
    ) -> primitives.Future[int]:
        """Run the flow, and write its elements to a folder of Parquet files.

        Args:
            path: The folder, which is made if there is none.
            mode: As for `save`.
            partitionBy: As for `save`.
            **options: As for `save`.
        """
        return self._given("parquet", "parquet", mode, partitionBy, options).save(path)

    def orc(
        self,
        path: str | Path,
        *,
        mode: str | None = None,
        partitionBy: str | Sequence[str] | None = None,  # noqa: N803
        **options: Any,
    ) -> primitives.Future[int]:
        """Run the flow, and write its elements to a folder of ORC files.

        Args:
            path: As for `parquet`.
            mode: As for `save`.
            partitionBy: As for `save`.
            **options: As for `save`.
        """
        return self._given("orc", "orc", mode, partitionBy, options).save(path)

    def json(self, path: str | Path, *, mode: str | None = None, **options: Any) -> primitives.Future[int]:
        """Run the flow, and write its elements to a folder of files with one JSON object a line.

        Args:
            path: As for `parquet`.
            mode: As for `save`.
            **options: As for `save`.
        """
        return self._given("json", "json", mode, None, options).save(path)

    def csv(self, path: str | Path, *, mode: str | None = None, **options: Any) -> primitives.Future[int]:
        """Run the flow, and write its elements to a folder of CSV files.

        Args:
            path: As for `parquet`.
            mode: As for `save`.
            **options: As for `save`.
        """
        return self._given("csv", "csv", mode, None, options).save(path)

    def saveAsTable(  # noqa: N802
        self,
        name: str,
        *,
        format: str | None = None,
        mode: str | None = None,
        partitionBy: str | Sequence[str] | None = None,  # noqa: N803
        **options: Any,
    ) -> primitives.Future[int]:
        """Run the flow, and write its elements to a table of Spark's catalogue, which is made if there is none.

        Args:
            name: The name of the table.
            format: As for `save`.
            mode: As for `save`.
            partitionBy: As for `save`; the columns of a table that is there, in its order.
            **options: As for `save`.
        """
        sink = self._given("saveAsTable", format, mode, partitionBy, options)
        return sink._written(lambda writer: writer.saveAsTable(name), marks=name, table=name)

    def insertInto(self, tableName: str, *, overwrite: bool | None = None) -> primitives.Future[int]:  # noqa: N802, N803
        """Run the flow, and insert its elements into a table that is there, by the position of the columns.

        Args:
            tableName: The name of the table.
            overwrite: Whether to replace what it has, or, with `spark.sql.sources.partitionOverwriteMode` set to
                "dynamic", the partitions that the elements are in. None: whether the mode is "overwrite".

        Raises:
            SparkError: Exactly once is asked for, which this write has no way to say in the table.
        """
        sink = self if overwrite is None else self._with(_mode="overwrite" if overwrite else "append")
        return sink._written(lambda writer: writer.insertInto(tableName), table=tableName, by_position=True)

    def jdbc(
        self, url: str, table: str, *, mode: str | None = None, properties: Mapping[str, str] | None = None
    ) -> primitives.Future[int]:
        """Run the flow, and write its elements to a table of a database.

        A batch is one transaction, where the database has them.

        Args:
            url: The address of the database: `jdbc:…`.
            table: The name of the table there, which is made if there is none.
            mode: As for `save`.
            properties: Properties of the connection: user, password, driver.
        """
        sink = self._given("jdbc", None, mode, None, {})
        given = None if properties is None else dict(properties)
        return sink._written(lambda writer: writer.jdbc(url, table, properties=given), format="jdbc")

    def foreachBatch(self, func: Callable[[DataFrame, int], object]) -> primitives.Future[int]:  # noqa: N802
        """Run the flow, and call a function with each micro-batch, to merge it into a table, say.

        Args:
            func: Called with the DataFrame of a micro-batch and the number of that, from 0. Where it raises, it is
                called once more with the same.

        Returns:
            A future, which has the number of elements in the batches, or the error.

        Raises:
            TypeError: `func` can't be called, or is a coroutine function.
            SparkError: The sink has settings of a writer, which this does not use.

        Thread:
            `func` is called on a thread of the sink, one call at a time.
        """
        check_callable("to_spark", "func of foreachBatch", func)
        self._plain("foreachBatch")
        return self._batches.written(lambda jobs: Each(func, jobs.over))

    def writeTo(self, table: str) -> SparkTableSink[T]:  # noqa: N802
        """The elements of the flow to a table of a catalogue, by name, as `DataFrame.writeTo` does.

        Args:
            table: The name of the table.

        Returns:
            A `SparkTableSink`, whose methods run the flow.

        Raises:
            SparkError: The sink has a format, a mode or partitions, which are chosen there in another way.
        """
        if self._mode != "append" or any(name != "options" for name, _, _ in self._calls):
            raise SparkError(
                "to_spark: writeTo takes no mode, no format and no partitionBy: use its own `using`, `partitionedBy`,"
                " `append`, `overwritePartitions` and so on"
            )
        return SparkTableSink(self._batches, table, self._calls, self._once)

    def stream(self, folder: str | Path, *, segments: int = 4) -> SparkFeed:
        """Run the flow, and keep its elements in `folder` until a streaming query has taken them.

        Each micro-batch is a segment, a Parquet file. The segments survive the end of either process:
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
        self._plain("stream")
        not_stopped("to_spark", self._batches.spark)
        kept = Segments(folder_of("to_spark", folder), self._batches.schema, segments)
        position = kept.recovered()
        jobs = Jobs(None, "to_spark", 2)

        def put(table: pyarrow.Table) -> int:
            return kept.put(table) if jobs.wait(kept.room, _LOOK) else 0

        try:
            frame = kept.frame(self._batches.spark)
            done = self._batches.into(jobs, put, close=kept.close)
        except BaseException:
            kept.close()
            raise
        return SparkFeed(frame, done, position, kept)

    def _with(self, **changes: Any) -> SparkSink[T]:
        other = copy(self)
        for name, value in changes.items():
            setattr(other, name, value)
        return other

    def _laid_out(self, how: str, *cols: str) -> SparkSink[T]:
        known = {name.lower() for name in self._batches.schema.names}
        if missing := [name for name in cols if name.lower() not in known]:
            raise SparkError(
                f"to_spark: {how}: the schema has no column {missing[0]!r}: {', '.join(self._batches.schema.names)}"
            )
        return self._with(_calls=(*self._calls, (how, cols, {})))

    def _given(
        self,
        what: str,
        format: str | None,
        mode: str | None,
        columns: str | Sequence[str] | None,
        options: Mapping[str, Any],
    ) -> SparkSink[T]:
        """This sink with what a method that writes was given as well."""
        for name in options:
            if meant := get_close_matches(_bare(name), _PARAMETERS, n=1, cutoff=0.8):
                raise TypeError(
                    f"to_spark: {what} has no parameter {name!r}, but {_PARAMETERS[meant[0]]}: an option that is called"
                    f" so is given with option({name!r}, …)"
                )
        sink = self if format is None else self.format(format)
        sink = sink if mode is None else sink.mode(mode)
        sink = sink if columns is None else sink.partitionBy(*_names((columns,)))
        return sink.options(**options) if options else sink

    def _plain(self, what: str) -> None:
        if self._calls or self._mode != "append" or self._once is not None:
            raise SparkError(f"to_spark: {what} takes no format, mode, options, columns and no exactly_once")

    def _path_of_delta(self, path: str | None) -> str | None:
        """A path as Spark SQL names the table of Delta that is there; None where the format is another."""
        if path is None or (self._format or self._batches.spark.conf.get("spark.sql.sources.default", "")) != "delta":
            return None
        return f"delta.`{path.replace('`', '``')}`"

    def _written(
        self,
        write: Callable[[DataFrameWriter], object],
        *,
        table: str | None = None,
        marks: str | None = None,
        format: str | None = None,
        by_position: bool = False,
    ) -> primitives.Future[int]:
        """Run the flow in the mode of the sink.

        Args:
            write: Ends the calls of a writer.
            table: The table of the catalogue that it writes to.
            marks: The table as Spark SQL names it, where that can say how many elements of the flow it has.
            format: The format of the writer. None: that of the sink.
            by_position: Whether it writes to the columns of the table by their position, and not by their names.
        """
        spark = self._batches.spark
        format = format or self._format
        partitions = [name for call, names, _ in self._calls if call == "partitionBy" for name in names]
        anew = self._mode != "append" and not by_position
        files = Files(format, table, partitions, names_of_options(self._calls), by_position, anew)

        def to(mode: str) -> Callable[..., object]:
            def call(frame: DataFrame, options: Mapping[str, str] = NO_OPTIONS) -> object:
                writer = frame.write.options(**options_of(spark, format), **options)
                return write(called(writer, self._calls).mode(mode))

            return call

        def write_of(jobs: Jobs) -> Write:
            if self._mode == "overwrite":
                return replacing(to("overwrite"), self._once)
            create = None if self._mode == "append" else to("error")  # as all of PySpark spells it
            kept = marked(self._once, spark, None if create else marks)
            return Append(to("append"), jobs.over, create=create, marks=kept)

        return self._batches.written(
            write_of,
            checks=lambda: checks_of(spark, self._batches.schema, files),
            nothing=IsThereError if self._mode == "ignore" else (),
        )


_MODES: Final = ("append", "overwrite", "ignore", "error", "errorifexists", "default")


def _bare(name: str) -> str:
    return name.replace("_", "").lower()


_PARAMETERS: Final = {
    _bare(name): name
    for name in ("mode", "format", "partitionBy", "bucketBy", "sortBy", "clusterBy", "overwrite", "properties")
}
"""Names that are no options, also where they are misspelt."""


def _names(cols: Sequence[str | Sequence[str]]) -> list[str]:
    return [name for col in cols for name in ([col] if isinstance(col, str) else col)]


class SparkFeed:
    """A flow that feeds a streaming query; made by `SparkSink.stream`."""

    def __init__(self, dataframe: DataFrame, done: primitives.Future[int], position: int, kept: Segments) -> None:
        self.dataframe = dataframe
        """The streaming DataFrame that the flow feeds, for one query, which should have a checkpoint."""
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


at_home("reactive_runtime.spark", SparkFeed, SparkSink)
