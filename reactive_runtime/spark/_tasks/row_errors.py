"""Errors as a column: each row of a partition is a flow of its own, and what it ends with is a row too.

row ──▶ fn(Flow.just(row)) ──┬─ rows ────────────────────▶ the columns of the schema, `_error` is null
                             └─ an error, or a misfit ───▶ those are null, `_error` is {row, error, attempts}
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import copy_context
from copy import deepcopy
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from reactive_runtime._core.failures import dropping
from reactive_runtime._flow import Flow
from reactive_runtime.errors import SparkError
from reactive_runtime.spark._tasks.task_input import Counter, encodable, with_notes
from reactive_runtime.spark._write.arrow_types import arrow_fields, twice
from reactive_runtime.spark._write.schemas import Elements

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql.types import DataType, StructType

    from reactive_runtime._spec import Subscriber

__all__ = ["ERROR", "Outcome", "RowErrors", "each_row", "with_errors"]

ERROR: Final = "_error"
"""The column, named as Spark names its own: `_corrupt_record`, `_metadata`."""


class Outcome(NamedTuple):
    """The end of a row: a value, or an error."""

    row: Any
    value: Any
    error: str | None
    attempts: int


def each_row(
    rows: Flow[Any],
    schema: StructType,
    fn: Callable[[Flow[Any]], Flow[Any]],
    concurrency: int,
    retried: Callable[[], object],
) -> Flow[Outcome]:
    """The outcomes of all rows, in the order of the rows, `concurrency` of which are under way at once."""
    columns = [(place, field.name, _copied(field.dataType)) for place, field in enumerate(schema)]
    copies = [(place, name, copied) for place, name, copied in columns if copied is not None]

    def as_read(row: Any) -> Any:
        """A copy, which what `fn` does to the row leaves as it is; a row that has no parts to change is its own."""
        if isinstance(row, dict):
            made: Any = row.copy()
            for _, name, copied in copies:
                made[name] = copied(row[name])
            return made
        if not copies:
            return row
        made = list(row)
        for place, _, copied in copies:
            made[place] = copied(row[place])
        return tuple(made)

    def outcomes(row: Any) -> Any:
        return _Attempts(as_read(row), row, fn, retried)

    return rows.flat_map_sequential(outcomes, concurrency=concurrency)


_Copied = Callable[[Any], Any]


def _copied(kind: DataType) -> _Copied | None:
    """Copies a value of a column, as it was read; None where a function can't change one."""
    from pyspark.sql import types

    copied: _Copied
    if isinstance(kind, types.ArrayType):
        element = _copied(kind.elementType)
        copied = list if element is None else lambda value: list(map(element, value))
    elif isinstance(kind, types.MapType):
        of_value = _copied(kind.valueType)
        copied = dict if of_value is None else lambda value: {key: of_value(one) for key, one in value.items()}
    elif isinstance(kind, types.StructType):
        parts = [_copied(field.dataType) for field in kind]
        if not any(parts):
            return None
        copied = partial(_copied_row, parts)
    elif isinstance(kind, types.BinaryType):
        copied = bytes  # of a bytearray; of bytes it is these
    elif isinstance(kind, types.UserDefinedType | types.VariantType | types.GeometryType | types.GeographyType):
        copied = deepcopy
    else:
        return None
    return lambda value: None if value is None else copied(value)


def _copied_row(parts: list[_Copied | None], row: Any) -> Any:
    from pyspark.sql.types import Row

    made: Any = tuple.__new__(Row, (one if part is None else part(one) for part, one in zip(parts, row, strict=True)))
    made.__fields__ = row.__fields__
    return made


class _Attempts:
    """A publisher of what becomes of one row, which counts its attempts: its flow has a context of its own."""

    def __init__(
        self, as_read: Any, row: Any, fn: Callable[[Flow[Any]], Flow[Any]], retried: Callable[[], object]
    ) -> None:
        self._as_read = as_read
        self._row = row
        self._fn = fn
        self._retried = retried

    def subscribe(self, subscriber: Subscriber[Outcome], /) -> None:
        copy_context().run(self._subscribe, subscriber)

    def _subscribe(self, subscriber: Subscriber[Outcome]) -> None:
        attempts = Counter(1)

        def again() -> None:
            attempts.add()
            self._retried()

        def failure(error: BaseException) -> Flow[Outcome]:
            return Flow.just(Outcome(row, None, with_notes(error), attempts.count))

        dropping.listen_to_retries(again)
        row = self._as_read
        try:
            flow = self._fn(Flow.just(self._row))
        except Exception as error:
            flow = Flow.error(error)
        values = flow.map(lambda value: Outcome(row, value, None, attempts.count))
        values.on_error_resume(failure).subscribe(subscriber)


class RowErrors:
    """Makes Arrow tables of outcomes. One for each task, whose thread owns it."""

    def __init__(self, what: str, schema: StructType, rows: StructType) -> None:
        self._what = what
        self._schema = schema
        self._values, self._single = Elements(what, schema), Elements(what, schema)
        whole = with_errors(what, schema, rows)
        self._errors = Elements(what, whole)
        self._arrow = arrow_fields(whole)
        self.failed: int = 0
        """How many rows became an error."""

    def table(self, outcomes: Sequence[Outcome]) -> pyarrow.Table:
        """The outcomes as a table, in their order; a value that does not fit the schema is the error of its row."""
        import pyarrow as pa

        bad = [(place, item) for place, item in enumerate(outcomes) if item.error is not None]
        places, values, misfits = self._fitting([(p, item) for p, item in enumerate(outcomes) if item.error is None])
        bad += misfits
        error = self._arrow.field(ERROR).type
        parts = [
            pa.Table.from_arrays([*part.columns, pa.nulls(part.num_rows, error)], schema=self._arrow) for part in values
        ]
        if not bad:
            return pa.concat_tables(parts)
        self.failed += len(bad)
        nulls = (None,) * len(self._schema)
        rows = [(*nulls, {"row": o.row, "error": encodable(str(o.error)), "attempts": o.attempts}) for _, o in bad]
        places += [place for place, _ in bad]
        order = sorted(range(len(places)), key=places.__getitem__)
        return pa.concat_tables([*parts, self._errors.table(rows)]).take(order)

    def _fitting(
        self, items: list[tuple[int, Outcome]]
    ) -> tuple[list[int], list[pyarrow.Table], list[tuple[int, Outcome]]]:
        """The places and the values of those that fit, and those that do not, as errors."""
        if not items:
            return [], [], []
        try:
            table = self._values.table([item.value for _, item in items])
            if table.num_rows == len(items):  # else there are Arrow batches among them
                return [place for place, _ in items], [table], []
        except Exception:  # foreign code among it: attributes, items, types of the user's
            pass
        places, tables, misfits = [], [], []
        for place, item in items:
            try:
                self._single.count_anew()
                table = self._single.table([item.value])
                if table.num_rows != 1:
                    raise SparkError("an Arrow batch is no row: with errors as a column, give rows")
            except Exception as error:
                why = with_notes(error).replace(f"{self._what}: element 0, ", "", 1)
                misfits.append((place, item._replace(error=why)))
            else:
                places.append(place)
                tables.append(table)
        return places, tables, misfits


def with_errors(what: str, schema: StructType, rows: StructType) -> StructType:
    """The schema of the DataFrame: all columns may be null, and one more is what went wrong with the row."""
    from pyspark.sql.types import IntegerType, StringType, StructField, StructType

    if clash := next((name for name in schema.names if name.lower() == ERROR), None):  # as Spark compares them
        raise ValueError(f"{what}: the schema has a column {clash!r}, which is to be that of errors: rename it")
    if name := twice(rows.names):
        raise ValueError(f"{what}: two columns are named {name!r}: rename one, for the row in {ERROR!r} to have both")
    error = StructType(
        [
            StructField("row", rows, nullable=False),
            StructField("error", StringType(), nullable=False),
            StructField("attempts", IntegerType(), nullable=False),
        ]
    )
    columns = [StructField(field.name, field.dataType, True, field.metadata) for field in schema]
    return StructType([*columns, StructField(ERROR, error)])
