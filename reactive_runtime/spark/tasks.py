"""In Spark: a flow inside each task, between the rows that come and the rows that go.

    partition ──▶ rows ──demand── fn(flow) ──demand── rows ──▶ what follows in Spark

Spark pulls: the task asks the flow for rows as what follows asks the task for batches, and the flow pulls those that
come. Nothing is started before, nothing is left behind after.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from itertools import chain, islice
from operator import length_hint
from types import CellType, CodeType
from typing import TYPE_CHECKING, Any

from reactive_runtime._core import dropping, primitives
from reactive_runtime._core.arguments import at_least, check_callable, one_of
from reactive_runtime._texts import shown
from reactive_runtime.errors import SparkError
from reactive_runtime.flow import Flow
from reactive_runtime.picklable import Scope
from reactive_runtime.pipeline import Pipeline
from reactive_runtime.spark.frames import FORMS, Form, Rows, form_of
from reactive_runtime.spark.schemas import Elements, spark_schema
from reactive_runtime.spark.spark_errors import is_connected, not_stopped
from reactive_runtime.spark.spark_session import workers_can

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

__all__ = ["TaskMetrics", "map_flow"]


def map_flow(
    df: DataFrame,
    fn: Callable[[Flow[Any]], Flow[Any]],
    schema: Any,
    *,
    form: Rows = "dicts",
    batch_rows: int = 10_000,
    metrics: TaskMetrics | None = None,
) -> DataFrame:
    """The DataFrame through a flow: `fn` is called in each task of Spark, with the rows of a partition as a flow.

    Of streaming DataFrames likewise, batch by batch. Rows are in the order in which the flow gives them:
    `flat_map_sequential` and `map_parallel` keep that of the partition, `flat_map` does not. An error of the flow fails
    the task, and names the operator, the partition and the row.

    `fn` travels to the executors, so all it names has to be picklable: use `Threads` and `Timers` for its executors.
    They begin in the task, and have ended when it ends, in whichever way: a limit, a cancel, another attempt that was
    faster.

    Args:
        df: The DataFrame.
        fn: Is given the rows of a partition as a flow, and returns a flow of what becomes rows: mappings, sequences,
            objects, or Arrow batches; see `reactive_runtime.spark.schemas`.
        schema: Of the rows that the flow gives; as `reactive_runtime.spark.schemas` takes it.
        form: What an element is: "dicts", "tuples", or "batches" of Arrow.
        batch_rows: How many rows go on as one batch, 1 or more.
        metrics: Is added to by each task. None: nothing is counted.

    Returns:
        A DataFrame of `schema`. Nothing runs before Spark asks for its rows.

    Raises:
        TypeError: `df` is no DataFrame, `fn` can't be called, `schema` is no schema, or `batch_rows` is no int.
        ValueError: `form` is none of the three, `batch_rows` is below 1, or two columns have one name and are to be
            dicts.
        SparkError: `fn` can't be pickled (it names what can't), Spark or Python has no such type, the session was
            stopped, or its workers run a Python that can't do it.

    Demand:
        At most 256 rows ahead are asked for, plus `batch_rows` which go on as one batch.

    Cancellation:
        When the task ends before the flow does, the flow is cancelled, and its iterators are closed.
    """
    if not hasattr(df, "mapInArrow"):
        raise TypeError(f"map_flow: a DataFrame is needed, not {type(df).__name__}")
    check_callable("map_flow", "fn", fn)
    one_of("map_flow", "form", FORMS, form)
    at_least("map_flow", "batch_rows", 1, batch_rows)
    not_stopped("map_flow", df.sparkSession)
    workers_can("map_flow", df.sparkSession)
    wanted = spark_schema("map_flow", schema)
    Elements("map_flow", wanted)  # says so where there is a type that can't be made
    task = _Task(fn, wanted, form_of("map_flow", df, form, batch_rows), batch_rows, metrics)
    _travels(fn)
    return df.mapInArrow(task, wanted)


class TaskMetrics:
    """What the tasks of `map_flow` did, added up in accumulators of Spark: read it in the driver, after an action.

    A task that Spark ran twice is counted twice, as accumulators are.

    Args:
        spark: The session.

    Raises:
        RuntimeError: The session is one of Spark Connect, which has no accumulators.
    """

    def __init__(self, spark: SparkSession) -> None:
        if is_connected(spark):
            raise RuntimeError("TaskMetrics: Spark Connect has no accumulators: leave `metrics` out")
        from pyspark.accumulators import AccumulatorParam

        context = spark.sparkContext

        class Most(AccumulatorParam[int]):
            def zero(self, value: int) -> int:
                return 0

            def addInPlace(self, value1: int, value2: int) -> int:  # noqa: N802
                return max(value1, value2)

        self._taken, self._given, self._retries = (context.accumulator(0) for _ in range(3))
        self._in_flight = context.accumulator(0, Most())

    @property
    def taken(self) -> int:
        """Rows that flows took."""
        return int(self._taken.value)

    @property
    def given(self) -> int:
        """Rows that flows gave."""
        return int(self._given.value)

    @property
    def retries(self) -> int:
        """Attempts of `retry` and its like, after the first."""
        return int(self._retries.value)

    @property
    def in_flight(self) -> int:
        """The most calls that were in flight on `Threads`, in any one task."""
        return int(self._in_flight.value)

    def add(self, taken: int, given: int, retries: int, in_flight: int) -> None:
        """Add what one task did. `map_flow` calls it, in the task.

        Args:
            taken: Rows that its flow took.
            given: Rows that its flow gave.
            retries: Attempts of `retry` and its like, after the first.
            in_flight: The most calls that were in flight on `Threads`.
        """
        self._taken.add(taken)
        self._given.add(given)
        self._retries.add(retries)
        self._in_flight.add(in_flight)


class _Task:
    """What Spark calls, once for each task, on its worker."""

    def __init__(
        self,
        fn: Callable[[Flow[Any]], Flow[Any]],
        schema: StructType,
        form: Form,
        batch_rows: int,
        metrics: TaskMetrics | None,
    ) -> None:
        self._fn = fn
        self._schema = schema
        self._form = form
        self._batch_rows = batch_rows
        self._metrics = metrics

    def __call__(self, batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        elements = Elements("map_flow", self._schema)
        taken = _Taken(batches, self._form)
        retries = _Count()
        given = 0
        with Scope() as scope:
            dropping.listen_to_retries(retries.add)
            try:
                made = self._fn(Flow.from_supplier(taken.rows))
                with closing(iter(made)) as rows:  # type: ignore[type-var]
                    while some := list(islice(rows, self._batch_rows)):
                        table = elements.table(some)
                        given += table.num_rows
                        yield from table.to_batches()
            except GeneratorExit:
                raise
            except Exception as error:
                raise SparkError(f"map_flow: {_where()}{taken.located(error)}: {_with_notes(error)}") from error
        if self._metrics is not None:
            self._metrics.add(taken.count, given, retries.count, scope.most)


class _Count:
    """Counts what several threads do."""

    def __init__(self) -> None:
        self._lock = primitives.Lock()
        self.count = 0  # _lock

    def add(self) -> None:
        with self._lock:
            self.count += 1


class _Taken:
    """The rows that come, counted as they are taken. The flow's drain owns it."""

    def __init__(self, batches: Iterable[pyarrow.RecordBatch], form: Form) -> None:
        self._batches = iter(batches)
        self._form = form
        self._before = 0  # rows of earlier batches
        self._rows: list[Any] = []  # of this batch, and of the one before: what an error may be about
        self._earlier: list[Any] = []
        self._left: Iterator[Any] = iter(())

    def rows(self) -> Iterator[Any]:
        """All of them, once."""
        return chain.from_iterable(map(self._next, self._batches))

    def _next(self, batch: pyarrow.RecordBatch) -> Iterator[Any]:
        self._before += len(self._rows)
        self._earlier, self._rows = self._rows, list(self._form([batch]))
        self._left = iter(self._rows)
        return self._left

    @property
    def count(self) -> int:
        """How many were taken."""
        return self._before + len(self._rows) - length_hint(self._left)

    def located(self, error: BaseException) -> str:
        """Which row the error is about: the one that a frame of its traceback had in hand."""
        first = self._before - len(self._earlier)
        numbers = {id(row): first + place for place, row in enumerate([*self._earlier, *self._rows])}
        item: BaseException | None = error
        while item is not None:
            for frame in reversed(list(_frames(item))):
                for value in frame.values():
                    if id(value) in numbers:
                        return f"row {numbers[id(value)]} {shown(value)}"
            item = item.__cause__
        return f"one of the first {self.count} rows"


def _frames(error: BaseException) -> Iterator[dict[str, Any]]:
    trace = error.__traceback__
    while trace is not None:
        if not inspect.getmodule(trace.tb_frame) or trace.tb_frame.f_globals.get("__name__") != __name__:
            yield trace.tb_frame.f_locals
        trace = trace.tb_next


def _with_notes(error: BaseException) -> str:
    notes = "; ".join(getattr(error, "__notes__", ()))
    return f"{type(error).__name__}: {error}" + (f" ({notes})" if notes else "")


def _where() -> str:
    from pyspark import TaskContext

    context = TaskContext.get()
    return "" if context is None else f"partition {context.partitionId()}, "


def _travels(fn: Callable[..., Any]) -> None:
    """SparkError names what `fn` captures that can't be pickled."""
    error = _unpicklable(fn)
    if error is None:
        return
    path = _captured(fn)
    if not path:
        raise SparkError(f"map_flow: fn can't travel to the tasks: {error}") from error
    raise SparkError(
        f"map_flow: fn can't travel to the tasks: {' in '.join(reversed(path))} can't be pickled: {error};"
        " make it inside fn, or use Threads and Timers for executors"
    ) from error


def _unpicklable(item: object) -> Exception | None:
    from pyspark import cloudpickle

    dumps: Callable[[Any], bytes] = cloudpickle.dumps
    try:
        dumps(item)
    except Exception as error:
        return error
    return None


def _captured(item: object, known: frozenset[int] = frozenset()) -> list[str]:
    """The way to what can't be pickled: names, from the outside in."""
    for name, value in _inside(item).items():
        if id(value) not in known and _unpicklable(value) is not None:
            inner = _captured(value, known | {id(value)})
            return [name if inner else f"{name!r} ({type(value).__name__})", *inner]
    return []


def _inside(item: object) -> dict[str, Any]:
    if isinstance(item, Pipeline):
        _, calls = item.__reduce__()
        return {name: argument for name, args, named in calls for argument in (*args, *named.values())}
    if isinstance(item, tuple | list):
        return {f"item {place}": value for place, value in enumerate(item)}
    if not inspect.isfunction(item):
        return dict(getattr(item, "__dict__", {}))
    cells = zip(item.__code__.co_freevars, item.__closure__ or (), strict=True)
    found = {name: cell.cell_contents for name, cell in cells if _is_filled(cell)}
    found |= {name: item.__globals__[name] for name in _names(item.__code__) if name in item.__globals__}
    return found | dict(zip(item.__code__.co_varnames, item.__defaults__ or (), strict=False))


def _is_filled(cell: CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def _names(code: CodeType) -> set[str]:
    """The globals that code may ask for, and functions inside it."""
    inner = (_names(constant) for constant in code.co_consts if isinstance(constant, CodeType))
    return set(code.co_names).union(*inner)
