"""Functions of the tasks that judge: row groups and packed rows in, findings out."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from reactive_runtime.errors import TraceError
from reactive_runtime.judging._files import Range, read, read_range
from reactive_runtime.judging._gathering import Gathered, scattered
from reactive_runtime.judging._kernel import SUBSCRIPTIONS, VIOLATIONS, WAITS, Judged, schema_of
from reactive_runtime.judging._long import Long, pieces_of
from reactive_runtime.judging._rows import NEEDED, PACKED, REQUIRED, Rows, flags_in_sql
from reactive_runtime.testing._records import CUT, LARGE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = [
    "ALL",
    "SENT",
    "JudgeRanges",
    "JudgeSent",
    "SendGroups",
    "SendRows",
    "Settings",
    "described",
    "given",
    "packed",
    "unpacked",
]

_BLOB: Final = 500_000
"""Records that are read before they are sorted to their tasks."""

_LEVEL: Final = 99
"""Rows are scattered over tasks by other numbers than over the files of one task."""

_COLUMNS: Final[dict[str, pa.DataType]] = {
    field.name: field.type for schema in (SUBSCRIPTIONS, VIOLATIONS, WAITS) for field in schema
}

ALL: Final = schema_of(part=pa.int8(), **_COLUMNS)
"""The rows of all tables, one table below the other, that tasks give; `part` says of which."""

SENT: Final = schema_of(place=pa.int32(), blob=pa.binary())


def described(batches: Iterable[pa.RecordBatch]) -> Iterator[Any]:
    for batch in batches:
        yield from (json.loads(str(text)) for text in batch.column("what").to_pylist())


@dataclass(frozen=True)
class Settings:
    late_signals: int
    upto: dict[str, int]
    most: int

    def gathered(self) -> Gathered:
        return Gathered(late_signals=self.late_signals, upto=self.upto, most=self.most)


@dataclass(frozen=True)
class JudgeRanges:
    settings: Settings

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for ranges in described(batches):
            for span in ranges:
                groups = tuple((file, tuple(numbers)) for file, numbers in span.pop("groups"))
                with self.settings.gathered() as gathered:
                    for rows in read_range(Range(groups=groups, **span)):
                        gathered.add(rows)
                    yield from given(gathered.judged())


@dataclass(frozen=True)
class SendGroups:
    parts: int
    long: tuple[Long, ...] = ()
    """Subscriptions whose pieces go to tasks of their own, `of_long` in number."""
    of_long: int = 1

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = (rows for groups in described(batches) for file, number in groups for rows in read(file, [number]))
        yield from _sent(rows, self)


@dataclass(frozen=True)
class SendRows:
    parts: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from _sent(map(_of_frame, _chunks(batches)), SendGroups(self.parts))


@dataclass(frozen=True)
class JudgeSent:
    settings: Settings

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with self.settings.gathered() as gathered:
            for rows in unpacked(batches):
                gathered.add(rows)
            yield from given(gathered.judged())


def unpacked(batches: Iterator[pa.RecordBatch]) -> Iterator[Rows]:
    """The rows in the blobs that were sent."""
    for batch in batches:
        for blob in batch.column("blob"):
            with pa.ipc.open_stream(blob.as_buffer()) as stream:
                for packed in stream:
                    yield Rows.of_packed(packed)


def given(parts: Iterable[Judged]) -> Iterator[pa.RecordBatch]:
    for judged in parts:
        for part, table in enumerate(judged):
            if len(table):
                columns: dict[str, Any] = {name: table.column(name) for name in table.column_names}
                columns["part"] = pa.array(np.full(len(table), part, np.int8))
                full = [columns.get(item.name, pa.nulls(len(table), item.type)) for item in ALL]
                yield from pa.Table.from_arrays(full, schema=ALL).combine_chunks().to_batches(max_chunksize=100_000)


def _sent(some: Iterable[Rows], to: SendGroups) -> Iterator[pa.RecordBatch]:
    """Packed rows, by the number of the task that judges their subscription."""
    held: list[Rows] = []
    size = 0
    for rows in some:
        held.append(rows)
        size += len(rows)
        if size >= _BLOB:
            yield _blobs(Rows.together(held), to)
            held, size = [], 0
    if size:
        yield _blobs(Rows.together(held), to)


def _blobs(rows: Rows, to: SendGroups) -> pa.RecordBatch:
    parts = to.parts
    places = (scattered(rows, _LEVEL) % np.uint64(parts)).astype(np.int32)
    if to.long:
        pieces = pieces_of(rows, to.long)
        places = np.where(pieces >= 0, parts + pieces % to.of_long, places).astype(np.int32)
        parts += to.of_long
    order = np.argsort(places.astype(np.uint16) if parts < 2**16 else places, kind="stable")
    bounds = np.searchsorted(places[order], np.arange(parts + 1))
    rows = rows.where(order)
    filled = [place for place in range(parts) if bounds[place] < bounds[place + 1]]
    blobs = [_blob(rows.where(slice(bounds[place], bounds[place + 1]))) for place in filled]
    return pa.RecordBatch.from_arrays([pa.array(filled, pa.int32()), pa.array(blobs, pa.binary())], schema=SENT)


def _blob(rows: Rows) -> bytes:
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, PACKED, options=pa.ipc.IpcWriteOptions(compression="lz4")) as stream:
        stream.write_batch(rows.packed())
    blob: bytes = out.getvalue().to_pybytes()
    return blob


# -- any DataFrame --------------------------------------------------------------------------------------------


def packed(signals: DataFrame) -> DataFrame:
    """The columns of PACKED, by Spark: numbers and flags, and the names of run and scenario."""
    from pyspark.sql import functions as F

    exact = signals.sparkSession.conf.get("spark.sql.caseSensitive") == "true"
    known = set(signals.columns) if exact else {name.lower() for name in signals.columns}
    missing = [name for name in NEEDED if name not in known]
    if missing:
        raise TraceError(
            f"the DataFrame is no trace: it has no column {', '.join(map(repr, missing))}; see docs/traces.md"
        )

    kinds = {name.lower(): kind for name, kind in signals.dtypes}

    def whole(name: str) -> str:
        """Its numbers, as SQL; what is none of 64 bits fails the job, and is not cut."""
        kind = kinds[name.lower()]
        if kind in ("tinyint", "smallint", "int", "bigint", "void"):
            return f"cast({name} as bigint)"
        if not (kind.startswith("decimal(") and kind.endswith(",0)")):
            raise TraceError(f"the DataFrame is no trace: column {name!r} should be of integers, and is {kind}")
        beyond = f"raise_error('the DataFrame is no trace: column {name} has what is beyond 64 bits')"
        return f"if({name} is null, null, coalesce(try_cast({name} as bigint), cast({beyond} as bigint)))"

    def number(name: str, missing: int) -> Any:
        return F.expr(f"coalesce({whole(name)}, {missing}L)").alias(name)

    def least(name: str, kind: str) -> Any:
        if name not in known:
            return F.lit(-1).cast(kind).alias(name)
        counted = f"greatest({whole(name)}, 0L)"
        counted = counted if kind == "bigint" else f"least({counted}, {2**31 - 1}L)"
        return F.expr(f"cast(if({name} is null, -1L, {counted}) as {kind})").alias(name)

    beyond = kinds.get(LARGE, "string")
    if beyond not in ("string", "void"):
        raise TraceError(f"the DataFrame is no trace: column {LARGE!r} should be of strings, and is {beyond}")
    return signals.select(
        *(F.col(name).cast("string").alias(name) for name in ("run", "scenario")),
        number("subscription", 0),
        F.expr(flags_in_sql(known)).alias("flags"),
        least("elements", "bigint"),
        number("thread", 0),
        F.expr(f"greatest(coalesce({whole('n')}, 0L), 0L)").alias("n"),
        number("begin", 0),
        number("end", CUT),
        F.expr(f"coalesce(if(signal <=> 'cancel', {whole('end_ns')}, {whole('begin_ns')}), 0L)").alias("ns"),
        number("value", 0),
        least("late_signals", "int"),
        *([F.col(LARGE).cast("string").alias(LARGE)] if LARGE in known else []),
    )


def _chunks(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Batches together: each has its cost."""
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        held.append(batch)
        size += len(batch)
        if size >= _BLOB // 4:
            yield pa.Table.from_batches(held)
            held, size = [], 0
    if size:
        yield pa.Table.from_batches(held)


def _of_frame(table: pa.Table) -> Rows:
    """Rows of what `packed` gives; TraceError names a column with nulls."""
    flags = table.column("flags").to_numpy()
    wrong = -int(flags.min()) if len(flags) else 0
    if wrong > 0:
        raise TraceError(
            f"the DataFrame is no trace: column {REQUIRED[wrong - 1]!r} has nulls; docs/traces.md says which may"
        )
    return Rows.of_packed(table)
