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
from reactive_runtime.spark.spark_errors import a_dataframe, not_stopped, spark_error
from reactive_runtime.spark.values import LARGE, Read, arrow_fields, mapped, reader, twice

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, StructType

__all__ = ["FORMS", "Form", "Rows", "flow_of_rows", "form_of", "form_of_schema"]

Rows = Literal["tuples", "dicts", "batches"]


def flow_of_rows(df: DataFrame, prefetch_partitions: int, form: Rows, batch_rows: int) -> Flow[Any]:
    """`Flow.from_dataframe`; see there."""
    a_dataframe("from_dataframe", df)
    at_least("from_dataframe", "prefetch_partitions", 1, prefetch_partitions)
    at_least("from_dataframe", "batch_rows", 1, batch_rows)
    one_of("from_dataframe", "form", FORMS, form)
    made = form_of("from_dataframe", df, form, batch_rows)
    return Flow.defer(lambda: _Partitions(df, prefetch_partitions).rows(made))


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
        self._df = _sendable(self._df)
        settings, count = None, 0
        while settings != (settings := self._settings()):  # what Spark writes has to be what is read
            zone, large = settings
            self._schema = arrow_fields(self._df.schema, zone, large=large)
            one = self._batches()  # adaptive execution runs all but the last stage here
            count = one.getNumPartitions()
            # Where a job fails, Spark ends all that run over the same RDD: those that run at once do not share one.
            self._rdds = [one, *(self._batches() for _ in range(1, min(self._ahead, count)))]
        return count

    def _settings(self) -> tuple[str, bool]:
        """What decides in which form Spark sends batches: read before they are planned, and looked at again after."""
        conf: Any = self._df.sparkSession.conf
        large: str = conf.get(LARGE, "false")
        return conf.get("spark.sql.session.timeZone"), large == "true"

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
        not_stopped("from_dataframe", self._df.sparkSession)  # what is served has no end of its own: it may be cut off
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


def _sendable(df: DataFrame) -> DataFrame:
    """The same rows, in types that can be sent as Arrow.

    Structs with two fields of one name get others, which are not looked at, and maps that can only be empty get keys.
    """
    from pyspark.sql import functions

    schema = df.schema
    kinds = [mapped(field.dataType, _changed) for field in schema]
    if all(kind == field.dataType for kind, field in zip(kinds, schema, strict=True)):
        return df
    named = df.toDF(*(f"c{place}" for place in range(len(kinds))))  # two may have one name
    columns = [functions.col(f"c{place}").cast(kind) for place, kind in enumerate(kinds)]
    return named.select(*columns).toDF(*schema.names)


def _changed(kind: DataType) -> DataType:
    from pyspark.sql.types import MapType, NullType, StringType, StructField, StructType

    if isinstance(kind, MapType) and isinstance(kind.keyType, NullType):
        return MapType(StringType(), kind.valueType, kind.valueContainsNull)
    if isinstance(kind, StructType) and twice(kind.names):
        return StructType(
            [StructField(f"{f.name}_{place}", f.dataType, f.nullable, f.metadata) for place, f in enumerate(kind)]
        )
    return kind


# -- what an element is -----------------------------------------------------------------------------------------

Form = Callable[[Iterable["pyarrow.RecordBatch"]], Iterable[Any]]
"""Makes the elements of the batches of a partition."""

FORMS: Final[tuple[Rows, ...]] = ("tuples", "dicts", "batches")

_BYTEARRAYS: Final = "spark.sql.execution.pyspark.binaryAsBytes"


def form_of(what: str, df: DataFrame, form: Rows, batch_rows: int) -> Form:
    """What makes the elements of a DataFrame's batches. It can be pickled.

    Args:
        what: The operator, for errors.
        df: The DataFrame.
        form: What an element is.
        batch_rows: How many rows are made into elements at a time.

    Raises:
        ValueError: As dicts, a row would lose a column, since two have one name.
        SparkError: Python has no values of a type.
    """
    binary: Any = df.sparkSession.conf.get(_BYTEARRAYS, "true")
    return form_of_schema(what, df.schema, form, batch_rows, binary)


def form_of_schema(what: str, schema: StructType, form: Rows, batch_rows: int, binary: str = "true") -> Form:
    """The same of batches that are of no DataFrame, whose `schema` is this one."""
    if form == "batches":
        return _Form(batch_rows, None, "", form)
    if form == "dicts" and (name := twice(schema.names)):
        raise ValueError(f"{what}: dicts would lose a column, since two are named {name!r}: rename one, or use tuples")
    made = _Form(batch_rows, schema, binary, form)
    try:
        made.reads()
    except Exception as error:
        raise spark_error(what, error) from error
    return made


class _Form:
    """Makes elements of batches; what it knows of their types travels, what it makes of that does not."""

    def __init__(self, batch_rows: int, schema: StructType | None, binary: str, form: Rows) -> None:
        self._batch_rows = batch_rows
        self._schema = schema
        self._binary = binary
        self._form: Rows = form

    def reads(self) -> list[Read]:
        """A reader for each column."""
        binary = bytes if self._binary == "true" else bytearray
        return [reader(field.dataType, binary) for field in self._schema or ()]

    def __call__(self, partition: Iterable[pyarrow.RecordBatch]) -> Iterable[Any]:
        batches = self._batches(partition)
        if self._schema is None:
            return batches
        reads = self.reads()
        tuples = (_tuples(reads, batch) for batch in batches)
        if self._form == "tuples":
            return chain.from_iterable(tuples)
        return chain.from_iterable(map(_dicts_of(tuple(self._schema.names)), tuples))

    def _batches(self, partition: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        most = self._batch_rows
        for batch in partition:
            for at in range(0, batch.num_rows, most):
                yield batch if batch.num_rows <= most else batch.slice(at, most)


def _tuples(reads: list[Read], batch: pyarrow.RecordBatch) -> Iterable[tuple[Any, ...]]:
    if not reads:
        return [()] * batch.num_rows
    return zip(*(read(column) for read, column in zip(reads, batch.columns, strict=True)), strict=True)


@lru_cache(maxsize=64)
def _dicts_of(names: tuple[str, ...]) -> Callable[[Iterable[tuple[Any, ...]]], list[dict[str, Any]]]:
    """`[{'a': v0, 'b': v1} for (v0, v1,) in rows]`, written for these names: half the time of dict(zip(names, row))."""
    values = [f"v{place}" for place in range(len(names))]
    pairs = ", ".join(f"{name!r}: {value}" for name, value in zip(names, values, strict=True))
    made: Any = eval(f"lambda rows: [{{{pairs}}} for ({''.join(f'{value}, ' for value in values)}) in rows]")
    return made  # type: ignore[no-any-return]
