"""Into a table of a catalogue, as `DataFrame.writeTo` does it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from reactive_runtime._core.runtime import primitives
from reactive_runtime._support.public_names import at_home
from reactive_runtime.spark._session.jobs import Jobs
from reactive_runtime.spark._write.batches import Batches
from reactive_runtime.spark._write.kept_in_files import Check, Files, checks_of, options_of
from reactive_runtime.spark._write.marks import Once, marked
from reactive_runtime.spark._write.writes import (
    NO_OPTIONS,
    Append,
    Call,
    called,
    names_of_options,
    no_transaction,
    replacing,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["SparkTableSink"]

T = TypeVar("T")


class SparkTableSink(Generic[T]):
    """A writer of the elements of a flow to a table of a catalogue; made by `SparkSink.writeTo`.

    It is to a flow what `DataFrameWriterV2` is to a DataFrame, and its methods are spelt as they are there. Methods
    that choose return another sink; `option` and `options` raise the errors of `SparkSink.option`.

    `append` writes each micro-batch as it comes. `create` makes the table of the first, and appends the others. All
    other methods make one write, at the end of the flow: until then what was there stays. Each returns a future as
    `SparkSink.save` does. All but `append` raise SparkError where `exactly_once` was asked for.
    """

    def __init__(self, batches: Batches[T], table: str, calls: tuple[Call, ...], once: Once | None) -> None:
        self._batches = batches
        self._table = table
        self._calls = calls
        self._once = once

    def using(self, provider: str) -> SparkTableSink[T]:
        """This sink with a format for a table that is made.

        Args:
            provider: The name of the format.
        """
        return self._and("using", provider)

    def option(self, key: str, value: Any) -> SparkTableSink[T]:
        """This sink with an option, which Spark gets as it is.

        Args:
            key: As for `SparkSink.option`.
            value: As for `SparkSink.option`.
        """
        return self.options(**{key: value})

    def options(self, **options: Any) -> SparkTableSink[T]:
        """This sink with options, which Spark gets as they are.

        Args:
            **options: As for `SparkSink.option`.
        """
        no_transaction(options)
        return self._and("options", **options)

    def tableProperty(self, property: str, value: str) -> SparkTableSink[T]:  # noqa: N802
        """This sink with a property of a table that is made.

        Args:
            property: The name of the property.
            value: Its value.
        """
        return self._and("tableProperty", property, value)

    def partitionedBy(self, col: Column, *cols: Column) -> SparkTableSink[T]:  # noqa: N802
        """This sink with columns, or transforms of them, that a table that is made is partitioned by.

        Args:
            col: A column, or a transform such as `partitioning.days(col)`.
            *cols: More of them.
        """
        return self._and("partitionedBy", col, *cols)

    def append(self) -> primitives.Future[int]:
        """Run the flow, and append its elements to the table, which has to be there.

        Raises:
            SparkError: Exactly once is asked for where it can't be had.
        """
        return self._appended(self._table)

    def create(self) -> primitives.Future[int]:
        """Run the flow, and write its elements to a table that is made, and must not be there."""
        return self._appended(None, create=self._to("create"))

    def replace(self) -> primitives.Future[int]:
        """Run the flow, and put a table with its elements in the place of one that is there."""
        return self._replaced("replace")

    def createOrReplace(self) -> primitives.Future[int]:  # noqa: N802
        """Run the flow, and put a table with its elements in the place of one that is there, or of none."""
        return self._replaced("createOrReplace")

    def overwrite(self, condition: Column) -> primitives.Future[int]:
        """Run the flow, and put its elements in the place of the rows that a condition picks.

        Args:
            condition: A column that is true for the rows that go.
        """
        return self._replaced("overwrite", condition)

    def overwritePartitions(self) -> primitives.Future[int]:  # noqa: N802
        """Run the flow, and put its elements in the place of the partitions that they are in."""
        return self._replaced("overwritePartitions")

    def _and(self, name: str, *arguments: Any, **named: Any) -> SparkTableSink[T]:
        return SparkTableSink(self._batches, self._table, (*self._calls, (name, arguments, named)), self._once)

    def _appended(self, marks_in: str | None, *, create: Callable[..., object] | None = None) -> primitives.Future[int]:
        def write_of(jobs: Jobs) -> Append:
            marks = marked(self._once, self._batches.spark, marks_in)
            return Append(self._to("append"), jobs.over, create=create, marks=marks)

        how = "append" if create is None else "create"
        return self._batches.written(write_of, checks=lambda: self._checks(how))

    def _replaced(self, how: str, *arguments: Any) -> primitives.Future[int]:
        return self._batches.written(
            lambda _: replacing(self._to(how, *arguments), self._once), checks=lambda: self._checks(how)
        )

    def _checks(self, how: str) -> Sequence[Check]:
        by = [str(col) for name, columns, _ in self._calls if name == "partitionedBy" for col in columns]
        partitions = [name for name in self._batches.schema.names if f"Column<'{name}'>" in by]
        options = names_of_options(self._calls)
        files = Files(self._format(), self._table, partitions, options, anew=how in _MAKING)
        return checks_of(self._batches.spark, self._batches.schema, files)

    def _format(self) -> str | None:
        used = [arguments[0] for name, arguments, _ in self._calls if name == "using"]
        return used[-1] if used else None

    def _to(self, how: str, *arguments: Any) -> Callable[..., object]:
        # A writer that appends takes no description of a table.
        calls = [call for call in self._calls if call[0] == "options" or how in _MAKING]

        def call(frame: DataFrame, options: Mapping[str, str] = NO_OPTIONS) -> object:
            writer = frame.writeTo(self._table).options(**options_of(frame.sparkSession, self._format()), **options)
            return getattr(called(writer, calls), how)(*arguments)

        return call


_MAKING: Final = ("create", "replace", "createOrReplace")


at_home("reactive_runtime.spark", SparkTableSink)
