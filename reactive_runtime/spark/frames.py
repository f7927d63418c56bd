"""Out of Spark: the rows of a DataFrame as a flow, fetched partition by partition as Arrow, by demand.

    demand ──▶ rows of one partition ──▶ partition i+1 is fetched while those of i are taken ──▶ one Spark job each

A DataFrame is planned once for each subscription; then each partition is a job of its own (a shuffle is computed by the
first, and kept by Spark for the others), asked for no more than `prefetch_partitions` ahead. All jobs of a subscription
carry one tag. A cancel, or an error, cancels what runs under it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, Literal

from reactive_runtime._core.arguments import at_least, one_of
from reactive_runtime.flow import Flow
from reactive_runtime.spark.jobs import Jobs
from reactive_runtime.spark.spark_errors import a_dataframe

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame

__all__ = ["FORMS", "Rows", "flow_of_rows", "values"]

Rows = Literal["tuples", "dicts", "batches"]


def flow_of_rows(df: DataFrame, prefetch_partitions: int, form: Rows, batch_rows: int) -> Flow[Any]:
    """`Flow.from_dataframe`; see there."""
    a_dataframe("from_dataframe", df)
    at_least("from_dataframe", "prefetch_partitions", 1, prefetch_partitions)
    at_least("from_dataframe", "batch_rows", 1, batch_rows)
    one_of("from_dataframe", "form", tuple(FORMS), form)
    return Flow.defer(lambda: _Partitions(df, prefetch_partitions).rows(FORMS[form](batch_rows)))


class _Partitions:
    """The partitions of a DataFrame, for one subscription."""

    def __init__(self, df: DataFrame, prefetch_partitions: int) -> None:
        self._df = df
        self._ahead = prefetch_partitions + 1  # the partition whose rows are being taken is one of them
        self._jobs = Jobs(df.sparkSession, "from_dataframe", self._ahead)
        # Set by the call that plans, before any that fetches is made:
        self._schema: Any = None
        self._rdds: list[Any] = []

    def rows(self, form: Form) -> Flow[Any]:
        """The elements that `form` makes of each partition."""
        jobs = self._jobs
        planned = Flow.from_callable(lambda: jobs.call(0, self._plan)).subscribe_on(jobs.pool)
        none: deque[pyarrow.RecordBatch] = deque()
        fetched = planned.flat_map(Flow.range).map_parallel(
            lambda n: jobs.call(none, self._fetch, n), jobs.pool, concurrency=self._ahead
        )
        taken = fetched.flat_map_iterable(lambda batches: chain(form(_taken(batches)), jobs.done_with()))
        return taken.do_finally(lambda way: jobs.leave())

    def _plan(self) -> int:
        from pyspark.sql.pandas.types import to_arrow_schema

        zone = self._df.sparkSession.conf.get("spark.sql.session.timeZone")
        self._schema = to_arrow_schema(self._df.schema, timezone=zone)
        one = self._batches()  # adaptive execution runs all but the last stage here
        count: int = one.getNumPartitions()
        # Where a job fails, Spark ends all that run over the same RDD: those that run at once do not share one.
        self._rdds = [one, *(self._batches() for _ in range(1, min(self._ahead, count)))]
        return count

    def _batches(self) -> Any:
        java: Any = self._df._jdf
        return java.toArrowBatchRdd().toJavaRDD()

    def _fetch(self, partition: int) -> deque[pyarrow.RecordBatch]:
        import pyarrow as pa
        from pyspark.util import _load_from_socket

        if not self._jobs.hold(self._ahead, first=not partition):
            return deque()
        context: Any = self._df.sparkSession.sparkContext
        rdd = self._rdds[partition % self._ahead]
        served = context._jvm.PythonRDD.runJob(context._jsc.sc(), rdd, [partition])
        with _load_from_socket(served, _Messages()) as messages:  # type: ignore[arg-type]
            batches = deque(pa.ipc.read_record_batch(message, self._schema) for message in messages)
        self._jobs.arrived()
        return batches


def _taken(batches: deque[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    """All of them, each dropped as it is taken: the future that brought them may be on a stack further down."""
    while batches:
        yield batches.popleft()


class _Messages:
    """Reads what Spark serves into Arrow's own memory, which is given back as soon as it is not needed."""

    def load_stream(self, stream: Any) -> Iterator[Any]:
        import pyarrow as pa
        from pyspark.serializers import read_int

        while True:
            try:
                size = read_int(stream)  # type: ignore[no-untyped-call]
            except EOFError:
                return
            message = pa.allocate_buffer(size)
            if stream.readinto(memoryview(message)) < size:
                raise ConnectionError("Spark went away while it served a partition")
            yield message


# -- what an element is -----------------------------------------------------------------------------------------

Form = Callable[[Iterable["pyarrow.RecordBatch"]], Iterable[Any]]
"""Makes the elements of the batches of a partition."""


def _as_batches(most: int) -> Form:
    def batches(partition: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        for batch in partition:
            for at in range(0, batch.num_rows, most):
                yield batch if batch.num_rows <= most else batch.slice(at, most)

    return batches


def _as_tuples(most: int) -> Form:
    batches = _as_batches(most)

    def tuples(partition: Iterable[pyarrow.RecordBatch]) -> Iterator[tuple[Any, ...]]:
        return chain.from_iterable(map(_tuples, batches(partition)))

    return tuples


def _as_dicts(most: int) -> Form:
    batches = _as_batches(most)

    def dicts(partition: Iterable[pyarrow.RecordBatch]) -> Iterator[dict[str, Any]]:
        return chain.from_iterable(map(_dicts, batches(partition)))

    return dicts


FORMS: Final[dict[Rows, Callable[[int], Form]]] = {
    "tuples": _as_tuples,
    "dicts": _as_dicts,
    "batches": _as_batches,
}


def _tuples(batch: pyarrow.RecordBatch) -> Iterable[tuple[Any, ...]]:
    if not batch.num_columns:
        return [()] * batch.num_rows
    return zip(*map(values, batch.columns), strict=True)


def _dicts(batch: pyarrow.RecordBatch) -> list[dict[str, Any]]:
    return _dicts_of(tuple(batch.schema.names))(_tuples(batch))


@lru_cache(maxsize=64)
def _dicts_of(names: tuple[str, ...]) -> Callable[[Iterable[tuple[Any, ...]]], list[dict[str, Any]]]:
    """`[{'a': v0, 'b': v1} for (v0, v1,) in rows]`, written for these names: half the time of dict(zip(names, row))."""
    values = [f"v{place}" for place in range(len(names))]
    pairs = ", ".join(f"{name!r}: {value}" for name, value in zip(names, values, strict=True))
    made: Any = eval(f"lambda rows: [{{{pairs}}} for ({''.join(f'{value}, ' for value in values)}) in rows]")
    return made  # type: ignore[no-any-return]


_PLAIN: Final = {"int64": "q", "int32": "i", "int16": "h", "int8": "b", "double": "d", "float": "f"}


def values(column: Any) -> list[Any]:
    """A column as Python's values: numbers that are all there straight from memory, a tenth of the time."""
    code: Any = _PLAIN.get(str(column.type))
    if code is None or column.null_count:
        listed: list[Any] = column.to_pylist()
        return listed
    numbers = memoryview(column.buffers()[1]).cast("B").cast(code)
    return numbers[column.offset : column.offset + len(column)].tolist()
