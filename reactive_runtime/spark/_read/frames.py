"""Out of Spark: the rows of a DataFrame as a flow, fetched partition by partition as Arrow, by demand.

    demand ──▶ rows of one partition, as they arrive ──▶ partition i+1 is fetched while those of i are taken

A DataFrame is planned once for each subscription. A job fetches a partition, asked for no more than
`prefetch_partitions` ahead; where partitions are small it fetches several, more each time, and never more than were
taken before. All jobs of a subscription carry one tag. A cancel, or an error, cancels what runs under it.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, Literal

from reactive_runtime._core.runtime import primitives
from reactive_runtime._core.runtime.arguments import at_least, one_of
from reactive_runtime._flow import Flow
from reactive_runtime.errors import SparkError
from reactive_runtime.spark._read.arrow_jobs import SMALL, PartitionJobs, batches_of, jobs_of
from reactive_runtime.spark._read.spools import Spool
from reactive_runtime.spark._session.jobs import Jobs
from reactive_runtime.spark._session.spark_errors import a_dataframe, spark_error
from reactive_runtime.spark._write.arrow_types import first_line, mapped, twice
from reactive_runtime.spark._write.column_readers import Read, reader

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, StructType

__all__ = ["FORMS", "Form", "Rows", "flow_of_rows", "form_of", "form_of_schema", "sendable"]

Rows = Literal["dicts", "tuples", "batches"]

_MOST: Final = 64
"""Partitions of one job, at the most."""

_GRACE: Final = 0.05
"""Seconds that a task which sends batches has to stop before Spark interrupts it: Spark does not give back the memory
of a batch whose write it interrupts."""


def flow_of_rows(df: DataFrame, prefetch_partitions: int, form: Rows, batch_rows: int) -> Flow[Any]:
    """`Flow.from_dataframe`; see there."""
    a_dataframe("from_dataframe", df)
    at_least("from_dataframe", "prefetch_partitions", 1, prefetch_partitions)
    at_least("from_dataframe", "batch_rows", 1, batch_rows)
    one_of("from_dataframe", "form", FORMS, form)
    made = form_of("from_dataframe", df, form, batch_rows)
    elements = made.of_part()
    # One part after the other: the next is asked for when a row of it is. A list, which gives its rows without a wait.
    return Flow.defer(lambda: _Fetch(df, prefetch_partitions + 1).parts(batch_rows)).concat_map(
        lambda part: Flow.from_iterable(elements(*part))
    )


class _Fetch:
    """The rows of a DataFrame, for one subscription; `ahead` counts jobs, that whose rows are being taken too."""

    def __init__(self, df: DataFrame, ahead: int) -> None:
        self._df = df
        self._ahead = ahead
        self._jobs = Jobs(df.sparkSession, "from_dataframe", ahead)
        self._lock = primitives.Lock()
        self._over = False  # _lock
        self._fetching: PartitionJobs | None = None  # _lock
        self._spools: dict[int, Spool] = {}  # _lock; of the partitions that are asked for and not taken
        # For the thread that takes rows:
        self._asked = 0  # partitions
        self._begun = 0  # jobs
        self._held: deque[tuple[int, int]] = deque()  # jobs that are not taken: number, last partition
        self._small = 0  # small partitions that were taken, one after the other

    def parts(self, rows: int) -> Flow[tuple[int, pyarrow.RecordBatch]]:
        """All batches in order, in parts of so many rows at the most; each with the number of its first row."""
        # An iterator that waits, on a thread of its own: what demands rows does not wait.
        return (
            Flow.from_iterable(_numbered(self._parts(rows), 0))
            .subscribe_on(self._jobs.pool)
            .do_finally(lambda way: self._leave())
        )

    def _parts(self, rows: int) -> Generator[pyarrow.RecordBatch, None, None]:
        import pyarrow as pa

        planned = self._jobs.call(None, self._plan)
        if planned is None:
            yield from self._whole(rows)
            return
        self._ask(planned, 1)  # alone, to be there sooner
        partition = 0
        while partition < planned.count and (spool := self._spool(partition)) is not None:
            message = spool.take()
            if message is not None:
                self._ask(planned, self._ahead)
                yield from _parts(pa.ipc.read_record_batch(message, planned.schema), rows)
            elif spool.too_large:
                self._submit(planned, self._held[0][0], [partition])
                self._small = 0
            else:
                self._took(partition, spool)
                partition += 1
                self._ask(planned, self._ahead)

    def _whole(self, rows: int) -> Iterator[pyarrow.RecordBatch]:
        self._jobs.lasting = True
        with contextlib.closing(batches_of(self._df)) as batches:
            while (batch := self._jobs.call(None, next, batches, None)) is not None:
                yield from _parts(batch, rows)

    def _plan(self) -> PartitionJobs | None:
        self._df = sendable(self._df)
        planned = jobs_of("from_dataframe", self._df, self._ahead)
        with self._lock:
            self._fetching, over = planned, self._over
        if planned is not None and over:
            planned.close()
        return planned

    def _ask(self, planned: PartitionJobs, most: int) -> None:
        """Begin jobs, until there are `most` that are not taken."""
        while len(self._held) < most and self._asked < planned.count:
            end = min(self._asked + min(max(self._small, 1), _MOST), planned.count)
            partitions = list(range(self._asked, end))
            self._held.append((self._begun, end - 1))
            self._submit(planned, self._begun, partitions)
            self._asked, self._begun = end, self._begun + 1

    def _submit(self, planned: PartitionJobs, number: int, partitions: list[int]) -> None:
        spools = [Spool("from_dataframe", partition) for partition in partitions]
        with self._lock:
            if self._over:
                return
            self._spools.update(zip(partitions, spools, strict=True))
        self._jobs.submit(self._fetch, planned, number, partitions, spools)

    def _fetch(self, planned: PartitionJobs, number: int, partitions: list[int], spools: list[Spool]) -> None:
        try:
            self._jobs.call(None, planned.run, number, partitions, spools)
        except BaseException as error:  # it ends the flow, on the thread that takes rows
            for spool in spools:
                spool.fail(error)

    def _spool(self, partition: int) -> Spool | None:
        """None where it is over."""
        with self._lock:
            return None if self._over else self._spools[partition]

    def _took(self, partition: int, spool: Spool) -> None:
        with self._lock:
            self._spools.pop(partition, None)
        spool.close()
        self._small = self._small + 1 if spool.bytes <= SMALL else 0
        if self._held[0][1] == partition:
            self._held.popleft()

    def _leave(self) -> None:
        with self._lock:
            self._over = True
            spools, fetching = list(self._spools.values()), self._fetching
        for spool in spools:
            spool.close()
        if fetching is None:
            self._jobs.leave()
        else:
            fetching.stop()
            self._jobs.leave(_GRACE, fetching.close)


def sendable(df: DataFrame) -> DataFrame:
    """The same rows, in types that can be sent as Arrow.

    Structs with two fields of one name get others, which are not looked at, maps that can only be empty get keys, and
    texts with a length are texts.
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
    from pyspark.sql.types import CharType, MapType, NullType, StringType, StructField, StructType, VarcharType

    if isinstance(kind, CharType | VarcharType):
        return StringType()
    if isinstance(kind, MapType) and isinstance(kind.keyType, NullType):
        return MapType(StringType(), kind.valueType, kind.valueContainsNull)
    if isinstance(kind, StructType) and twice(kind.names):
        return StructType(
            [StructField(f"{f.name}_{place}", f.dataType, f.nullable, f.metadata) for place, f in enumerate(kind)]
        )
    return kind


# -- what an element is -----------------------------------------------------------------------------------------

Form = Callable[[Iterable["pyarrow.RecordBatch"], int], Iterable[Any]]
"""Makes the elements of the batches of a partition; the number is that of the first."""

FORMS: Final[tuple[Rows, ...]] = ("dicts", "tuples", "batches")

_BYTEARRAYS: Final = "spark.sql.execution.pyspark.binaryAsBytes"


def form_of(what: str, df: DataFrame, form: Rows, batch_rows: int) -> _Form:
    """The function that makes the elements of a DataFrame's batches. It can be pickled.

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


def form_of_schema(what: str, schema: StructType, form: Rows, batch_rows: int, binary: str = "true") -> _Form:
    """The same of batches that are of no DataFrame, whose `schema` is this one."""
    if form == "dicts" and (name := twice(schema.names)):
        raise ValueError(f"{what}: dicts would lose a column, since two are named {name!r}: rename one, or use tuples")
    for field in schema:
        try:
            reader(field.dataType)
        except Exception as error:
            raise spark_error(f"{what}: field {field.name!r}", error) from error
    made = _Form(what, batch_rows, schema, binary, form)
    return made if form != "batches" else _Form(what, batch_rows, None, "", form)


class _Form:
    """Makes elements of batches; what it knows of their types travels, what it makes of that does not."""

    def __init__(self, what: str, batch_rows: int, schema: StructType | None, binary: str, form: Rows) -> None:
        self._what = what
        self._batch_rows = batch_rows
        self._schema = schema
        self._binary = binary
        self._form: Rows = form

    def reads(self) -> list[Read]:
        """A reader for each column."""
        binary = bytes if self._binary == "true" else bytearray
        return [reader(field.dataType, binary) for field in self._schema or ()]

    def __call__(self, partition: Iterable[pyarrow.RecordBatch], first: int) -> Iterable[Any]:
        elements = self.of_part()
        parts = (part for batch in partition for part in _parts(batch, self._batch_rows))
        return chain.from_iterable(elements(*part) for part in _numbered(parts, first))

    def of_part(self) -> Callable[[int, pyarrow.RecordBatch], list[Any]]:
        """Makes the elements of a batch, all at once; the number is that of the first.

        SparkError names the element and the field that Python has no value for.
        """
        if self._schema is None:
            return lambda first, part: [part]
        names, reads = self._schema.names, self.reads()
        made: Any = list if self._form == "tuples" else _dicts_of(tuple(names))

        def elements(first: int, part: pyarrow.RecordBatch) -> list[Any]:
            try:
                return made(_tuples(reads, part))  # type: ignore[no-any-return]
            except _UNREAD as error:
                raise self._unread(names, reads, first, part) or error from error

        return elements

    def _unread(self, names: list[str], reads: list[Read], first: int, part: pyarrow.RecordBatch) -> SparkError | None:
        for place in range(part.num_rows):
            for name, read, column in zip(names, reads, part.columns, strict=True):
                try:
                    read(column.slice(place, 1))
                except _UNREAD as error:
                    return SparkError(
                        f"{self._what}: element {first + place}, field {name!r}: Python has no such value"
                        f" ({first_line(error)}): cast it in Spark, a text to binary and a time to string, or take the"
                        " entries of a map"
                    )
        return None


# A text that is no UTF-8, a time beyond the years of Python, a map whose keys can't be those of a dict.
_UNREAD: Final = (ValueError, OverflowError, OSError, TypeError)


def _numbered(
    parts: Generator[pyarrow.RecordBatch, None, None], first: int
) -> Iterator[tuple[int, pyarrow.RecordBatch]]:
    """Each with the number of its first row."""
    with contextlib.closing(parts):
        for part in parts:
            yield first, part
            first += part.num_rows


def _parts(batch: pyarrow.RecordBatch, rows: int) -> Iterator[pyarrow.RecordBatch]:
    for at in range(0, batch.num_rows, rows):
        yield batch if batch.num_rows <= rows else batch.slice(at, rows)


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
