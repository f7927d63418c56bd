"""In Spark: a flow inside each task, between the rows that come and the rows that go.

    partition ──▶ rows ──demand── fn(flow) ──demand── rows ──full, or due──▶ what follows in Spark

The flow runs on a thread of its own, and on its executors. The task's thread asks it for rows, and hands on what is
there: a full batch, or what has waited for `max_delay`. Nothing is started before the task, nothing is left behind
after.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, Final, Literal

from reactive_runtime._core.failures import dropping
from reactive_runtime._core.runtime import primitives
from reactive_runtime._core.runtime.arguments import at_least, check_callable, one_of, seconds_of
from reactive_runtime._flow import Flow
from reactive_runtime._support.public_names import at_home
from reactive_runtime._support.shown import shown
from reactive_runtime.errors import SparkError
from reactive_runtime.picklable import Scope
from reactive_runtime.pipeline import Pipeline
from reactive_runtime.spark._read.frames import FORMS, Form, Rows, form_of, form_of_schema, sendable
from reactive_runtime.spark._session.spark_errors import not_stopped
from reactive_runtime.spark._session.spark_session import workers_can
from reactive_runtime.spark._tasks.row_errors import RowErrors, each_row, with_errors
from reactive_runtime.spark._tasks.task_input import Counter, TaskInput, failed
from reactive_runtime.spark._tasks.task_metrics import TaskMetrics
from reactive_runtime.spark._tasks.task_output import TaskOutput
from reactive_runtime.spark._tasks.travel import travels
from reactive_runtime.spark._tasks.worker_stream import sent
from reactive_runtime.spark._write.arrow_types import arrow_fields, mapped, twice
from reactive_runtime.spark._write.column_readers import reader
from reactive_runtime.spark._write.schemas import Elements, spark_schema
from reactive_runtime.spark._write.values import mapping_of, names_of

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, StructType

__all__ = ["OnError", "TaskFlow", "map_flow"]

OnError = Literal["fail", "column"]

_ON_ERROR: Final[tuple[OnError, ...]] = ("fail", "column")


def map_flow(
    df: DataFrame,
    fn: Callable[[Flow[Any]], Flow[Any]],
    schema: Any,
    *,
    form: Rows = "dicts",
    batch_rows: int = 10_000,
    max_delay: float = 0.1,
    on_error: OnError = "fail",
    concurrency: int | None = None,
    by_partition: bool = False,
    metrics: TaskMetrics | None = None,
) -> DataFrame:
    """The DataFrame through a flow: `fn` is called in each task of Spark, with the rows of a partition as a flow.

    It takes a streaming DataFrame batch by batch. Rows are in the order in which the flow gives them:
    `flat_map_sequential` and `map_parallel` keep that of the partition, `flat_map` does not. An error of the flow fails
    the task, and names the operator, the partition and the row.

    With `on_error="column"` each row is a flow of its own: `fn` is called for each, and its `retry` and `timeout` are
    those of one row. A row that ends with an error, or whose result does not fit the schema, becomes a row whose
    columns are null, and whose column `_error` has the `row`, the `error` as text, and the number of `attempts`. That
    column of other rows is null. The order is that of the partition.

    `fn` travels to the executors, so all it names has to be picklable: use `Threads` and `Timers` for its executors.
    They begin in the task, and end with it, in whichever way: a limit, a cancel, another attempt that was faster.

    The rows of a partition come once: a `retry` of all of them, or a second subscriber, is an error.

    Args:
        df: The DataFrame.
        fn: Is given the rows of a partition as a flow, and returns a flow of what becomes rows: mappings, sequences,
            objects, or Arrow batches; see `reactive_runtime.spark._write.schemas`.
        schema: Of the rows that the flow gives; as `reactive_runtime.spark._write.schemas` takes it.
        form: The kind of an element: "dicts", as `Flow.from_dataframe` has it, "tuples", or "batches" of Arrow.
        batch_rows: How many rows go on as one batch, at most, 1 or more.
        max_delay: After how many seconds a row goes on in a batch that is not full; from 0.
        on_error: "fail": the task fails. "column": a row that fails becomes a row with an error.
        concurrency: Rows that are under way at once, with `on_error="column"`; 1 or more. None: 16.
        by_partition: True: a `Pipeline` may have operators whose result depends on more than one row, as that of `take`
            and `batch` does (`Pipeline.stateful`); each partition is a flow of its own to them.
        metrics: Is added to by each task. None: nothing is counted.

    Returns:
        A DataFrame of `schema`. Nothing runs before Spark asks for its rows.

    Raises:
        TypeError: `df` is no DataFrame, `fn` can't be called, `schema` is no schema, or a number is none.
        ValueError: `form` or `on_error` is none of the choices, a number is too small, two fields of `schema` have
            one name, or two columns of `df` have and are to be dicts, `concurrency` is given without
            `on_error="column"`, or a `Pipeline` has an operator that would see a part of the rows only.
        SparkError: `fn` can't be pickled (it names what can't), Spark or Python has no such type, the DataFrame or the
            schema has no columns, the session was stopped, or its workers run a Python that can't do it.

    Demand:
        At most `batch_rows` rows are asked for, or wait to go on.

    Cancellation:
        When the task ends before the flow does, the flow is cancelled, and its iterators are closed. The task notices
        with the next batch that it sends, within a second.
    """
    if not hasattr(df, "mapInArrow"):
        raise TypeError(f"map_flow: a DataFrame is needed, not {type(df).__name__}")
    under_way = _rows_under_way(on_error, concurrency)
    not_stopped("map_flow", df.sparkSession)
    if not df.columns:
        raise SparkError("map_flow: the DataFrame has no columns, and a task gets no rows without any: select one")
    workers_can("map_flow", df.sparkSession)
    task = _Task("map_flow", fn, schema, form, batch_rows, max_delay, metrics)
    task.form = form_of("map_flow", df, form, batch_rows)
    if on_error == "column":
        task.by_row(df.schema, under_way)
    elif not by_partition:
        _refuse_stateful(fn, "would see the rows of one partition only: if that is meant, say by_partition=True")
    travels("map_flow", fn)
    read = sendable(df)
    if not all(map(_can_be_asked_for, df.columns)) or twice(map(str.lower, df.columns)):
        read = read.toDF(*(f"c{place}" for place in range(len(df.columns))))
        task.form = _Named(task.form, df.columns) if form == "batches" else task.form
    return read.mapInArrow(task.batches, task.schema)


def _rows_under_way(on_error: OnError, concurrency: int | None) -> int:
    """How many rows are under way at once, where each is a flow of its own."""
    one_of("map_flow", "on_error", _ON_ERROR, on_error)
    if concurrency is not None and on_error != "column":
        raise ValueError("map_flow: concurrency is for on_error='column'; else the operators of fn have their own")
    return at_least("map_flow", "concurrency", 1, 16 if concurrency is None else concurrency)


def _can_be_asked_for(name: str) -> bool:
    """Whether PySpark finds a column by its name, as `mapInArrow` does: these it takes for a path, or for all."""
    return not set(name) & set(".`*")


def _refuse_doubled(what: str, schema: StructType) -> None:
    """ValueError for two fields of one name: Spark can't read a batch from a worker where some are."""
    from pyspark.sql.types import StructType

    def refuse(kind: DataType) -> DataType:
        if isinstance(kind, StructType) and (name := twice(kind.names)):
            raise ValueError(f"{what}: two fields of the schema are named {name!r}, which Spark can't read: rename one")
        return kind

    mapped(schema, refuse)


class _Named:
    """Batches with the names that their columns have in the DataFrame."""

    def __init__(self, form: Form, names: list[str]) -> None:
        self._form = form
        self._names = names

    def __call__(self, partition: Iterable[pyarrow.RecordBatch], first: int) -> Iterable[Any]:
        return self._form((batch.rename_columns(self._names) for batch in partition), first)


def _refuse_stateful(fn: object, why: str) -> None:
    if isinstance(fn, Pipeline) and fn.stateful:
        raise ValueError(f"map_flow: `{fn.stateful[0]}` of the pipeline {why}")


class TaskFlow:
    """A flow for the functions that Spark calls with rows, beside `map_flow`: of groups, cogroups, and state.

    `groupBy(…).applyInArrow` calls `table`, or `batches` where it gives an iterator; `cogroup(…).applyInArrow` calls
    `table` with both tables, and `fn` is given two flows; `handleInputRows` of `transformWithState` calls `rows`.

    It travels to the tasks inside the function that calls it. Executors (`Threads`, `Timers`) begin with a call, and
    have ended with it.

    Args:
        fn: Is given the rows as a flow, one flow for each table, and returns a flow of what becomes rows: mappings,
            sequences, objects, or Arrow batches.
        schema: Of the rows that the flow gives; as `reactive_runtime.spark._write.schemas` takes it.
        form: The kind of an element: "dicts", "tuples", or "batches" of Arrow; the types of their values are those that
            Arrow has.
        batch_rows: How many rows go on as one batch, at most, 1 or more.
        max_delay: After how many seconds a row goes on in a batch that is not full; from 0. It is for `batches`.
        metrics: Is added to by each call. None: nothing is counted.

    Raises:
        TypeError: `fn` can't be called, `schema` is no schema, or a number is none.
        ValueError: `form` is none of the three, a number is too small, or two fields of `schema` have one name.
        SparkError: `fn` can't be pickled (it names what can't), or Spark or Python has no such type.
    """

    def __init__(
        self,
        fn: Callable[..., Flow[Any]],
        schema: Any,
        *,
        form: Rows = "dicts",
        batch_rows: int = 10_000,
        max_delay: float = 0.1,
        metrics: TaskMetrics | None = None,
    ) -> None:
        self._task = _Task("TaskFlow", fn, schema, form, batch_rows, max_delay, metrics)
        travels("TaskFlow", fn)

    @property
    def schema(self) -> StructType:
        """The schema of the rows that it gives, for the call of Spark."""
        return self._task.schema

    def table(self, *tables: pyarrow.Table) -> pyarrow.Table:
        """Run the flow over whole tables, and wait for its end.

        Args:
            *tables: A flow of the rows of each is an argument of `fn`.

        Returns:
            The rows that the flow gave.

        Raises:
            SparkError: The flow failed, with the partition and the row, or a row does not fit the schema.

        Thread:
            A flow without a boundary runs on this one.
        """
        return self._task.table(tables)

    def batches(self, batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        """Run the flow over batches as they come, and give others as they are full or due.

        Args:
            batches: Their rows are the argument of `fn`.

        Returns:
            An iterator, which cancels the flow when it is closed. It raises a SparkError where the flow failed, or a
            row does not fit the schema.

        Thread:
            A flow without a boundary runs on a thread of its own.
        """
        return self._task.batches(batches)

    def rows(self, *rows: Iterable[Any]) -> Iterator[Any]:
        """Run the flow over rows as they are, and give its elements as they come.

        Args:
            *rows: A flow of each is an argument of `fn`. Its elements are the rows themselves.

        Returns:
            An iterator of a `Row` of `schema` for each element, which cancels the flow when it is closed. It raises a
            SparkError where the flow failed, or an element has not the fields of the schema, or a value that does not
            fit its field.

        Thread:
            A flow without a boundary runs on the one that iterates, so that it may use the state of a processor.
        """
        return self._task.rows(rows)


class _Task:
    """A flow and its settings, which travel to the tasks."""

    def __init__(
        self,
        what: str,
        fn: Callable[..., Flow[Any]],
        schema: Any,
        form: Rows,
        batch_rows: int,
        max_delay: float,
        metrics: TaskMetrics | None,
    ) -> None:
        self._what = what
        self._fn = check_callable(what, "fn", fn)
        self._form_name: Rows = one_of(what, "form", FORMS, form)
        self._batch_rows = at_least(what, "batch_rows", 1, batch_rows)
        self._max_delay = seconds_of(what, "max_delay", max_delay)
        self._given: StructType = spark_schema(what, schema)
        _refuse_doubled(what, self._given)
        self._metrics = metrics
        self._by_row: tuple[StructType, int] | None = None  # errors are a column: the schema of rows, how many at once
        self.schema: StructType = self._given
        self.form: Form = _ArrowForm(what, form, batch_rows)

    def by_row(self, rows: StructType, under_way: int) -> None:
        """Errors are a column."""
        if self._form_name == "batches":
            raise ValueError(f"{self._what}: on_error='column' is of rows, and form='batches' has none")
        _refuse_stateful(self._fn, "would see one row only, with on_error='column'")
        self._by_row = rows, under_way
        self.schema = spark_schema(self._what, with_errors(self._what, self._given, rows))
        _refuse_doubled(self._what, self.schema)

    # -- in a task, and its thread but for what the flow runs

    def batches(self, batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        """For `mapInArrow`."""
        import pyarrow as pa

        empty = pa.RecordBatch.from_pylist([], arrow_fields(self.schema))
        output = TaskOutput(self._batch_rows, self._max_delay)
        taken = TaskInput(batches, self.form, output.fail)
        with self._running([taken]) as running:
            own = primitives.ThreadPoolExecutor(1, self._what)
            running.scope.enter(own)
            made, tables = self._flow_and_tables(Flow.from_supplier(taken.rows), running)
            try:
                output.begin(made.subscribe_on(own))
                while (elements := output.take()) is not None:
                    ready = [empty]
                    if elements:
                        table = tables.table(elements)
                        running.given += table.num_rows
                        running.report()
                        ready = table.to_batches()
                    yield from sent(ready, empty)
            finally:
                output.cancel()

    def _flow_and_tables(self, rows: Flow[Any], running: _Running) -> tuple[Flow[Any], Elements | RowErrors]:
        if self._by_row is None:
            return self._made(rows), Elements(self._what, self._given)
        schema, under_way = self._by_row
        running.row_errors = RowErrors(self._what, self._given, schema)
        return each_row(rows, schema, self._made, under_way, running.retries.add), running.row_errors

    def table(self, inputs: Sequence[pyarrow.Table]) -> pyarrow.Table:
        """For groups and cogroups."""
        import pyarrow as pa

        taken = [TaskInput(item.to_batches(), self.form) for item in inputs]
        elements = Elements(self._what, self._given)
        tables = [arrow_fields(self._given).empty_table()]
        with self._running(taken) as running, self._iterated(taken) as made:
            for some in _in_lists(made, self._batch_rows):
                tables.append(elements.table(some))
                running.given += tables[-1].num_rows
        return pa.concat_tables(tables)

    def rows(self, inputs: Sequence[Iterable[Any]]) -> Iterator[Any]:
        """For state."""
        from pyspark.sql import Row

        names = self._given.names
        kind = Row(*names)
        elements = Elements(self._what, self._given)
        reads = [reader(field.dataType) for field in self._given]
        taken = [TaskInput([item], _as_they_are) for item in inputs]  # type: ignore[list-item]  # no batches of Arrow
        with self._running(taken) as running, self._iterated(taken) as made:
            for element in made:
                running.given += 1
                table = elements.table([tuple(_values(element, names))])
                yield kind(*(read(column.chunk(0))[0] for read, column in zip(reads, table.columns, strict=True)))

    def _iterated(self, taken: Sequence[TaskInput]) -> closing[Any]:
        return closing(iter(self._made(*(Flow.from_supplier(item.rows) for item in taken))))

    def _made(self, *flows: Flow[Any]) -> Flow[Any]:
        made: object = self._fn(*flows)
        if not isinstance(made, Flow):
            raise TypeError(f"fn returned {shown(made)}, and no flow")
        return made

    @contextmanager
    def _running(self, taken: Sequence[TaskInput]) -> Iterator[_Running]:
        """End all executors that the block begins, and report its counts, in whichever way it ends."""
        with Scope() as scope:
            running = _Running(scope, taken, self._metrics)
            dropping.listen_to_retries(running.retries.add)
            try:
                yield running
            except BaseException as error:
                try:
                    running.report()
                except Exception as second:
                    dropping.error_dropped(f"{self._what}: what a task did could not be counted", second)
                if not isinstance(error, Exception):
                    raise
                made = failed(self._what, error, taken)
                raise made from made.__cause__
            running.report()


class _Running:
    """One run of a flow, and what of it is counted. The task's thread owns it."""

    def __init__(self, scope: Scope, taken: Sequence[TaskInput], metrics: TaskMetrics | None) -> None:
        self.scope = scope
        self.retries = Counter()
        self.given = 0
        self.row_errors: RowErrors | None = None
        self._taken = taken
        self._metrics = metrics
        self._reported = {"taken": 0, "given": 0, "retries": 0, "failed": 0}

    def report(self) -> None:
        """Count what was done since the last report."""
        if self._metrics is None:
            return
        counts = {
            "taken": sum(item.count for item in self._taken),
            "given": self.given,
            "retries": self.retries.count,
            "failed": 0 if self.row_errors is None else self.row_errors.failed,
        }
        news = {name: count - self._reported[name] for name, count in counts.items()}
        self._reported = counts
        self._metrics.add(**news, in_flight=self.scope.most)


class _ArrowForm:
    """Makes elements of batches that are of no DataFrame, by their own schema."""

    def __init__(self, what: str, form: Rows, batch_rows: int) -> None:
        self._what = what
        self._name: Rows = form
        self._batch_rows = batch_rows

    def __call__(self, partition: Iterable[pyarrow.RecordBatch], first: int) -> Iterable[Any]:
        for batch in partition:
            yield from self._form(batch)([batch], first)
            first += batch.num_rows

    def _form(self, batch: pyarrow.RecordBatch) -> Form:
        from pyspark.sql.pandas.types import from_arrow_schema

        return form_of_schema(self._what, from_arrow_schema(batch.schema), self._name, self._batch_rows)


def _as_they_are(rows: Iterable[Any], first: int) -> Iterable[Any]:
    (inner,) = rows
    return inner  # type: ignore[no-any-return]


def _in_lists(elements: Iterable[Any], most: int) -> Iterator[list[Any]]:
    """Lists of at most so many; an Arrow batch counts as its rows."""
    some: list[Any] = []
    rows = 0
    for element in elements:
        some.append(element)
        rows += getattr(element, "num_rows", 1)
        if rows >= most:
            yield some
            some, rows = [], 0
    if some:
        yield some


def _values(element: Any, names: Sequence[str]) -> Iterable[Any]:
    """The values of an element for the fields of the schema; ValueError where it has other fields."""
    if isinstance(element, tuple) and (own := names_of(element)) is not None and own != list(names):
        element = mapping_of(element, own)
    if isinstance(element, Mapping):
        if element.keys() != set(names):
            raise ValueError(f"{shown(element)} has not the fields of the schema: {', '.join(names)}")
        return [element[name] for name in names]
    if isinstance(element, Sequence) and not isinstance(element, str | bytes):
        if len(element) != len(names):
            raise ValueError(f"{shown(element)} has {len(element)} values, and the schema {len(names)} fields")
        return element
    return [getattr(element, name) for name in names]


at_home("reactive_runtime.spark", TaskFlow, map_flow)
