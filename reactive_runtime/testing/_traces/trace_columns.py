"""The columns of a trace: records, and rows as they were recorded, as Arrow tables."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from reactive_runtime.errors import MissingDependencyError
from reactive_runtime.testing._buffers import NONE, ON_NEXT, PACKED, REQUEST, SIGNALS, Chunk
from reactive_runtime.testing._records import (
    COLUMNS,
    CUT,
    LARGE,
    Record,
    SubscriptionMetadata,
    fitting,
    from_large,
    to_large,
)

if TYPE_CHECKING:
    import pyarrow

__all__ = [
    "SCHEMA",
    "SINCE",
    "VERSION",
    "arrow",
    "columns_of",
    "cut_off",
    "records_of",
    "schema",
    "split_at",
    "table_of",
    "with_metadata",
]

SCHEMA: Final = 4
"""The version of the columns; files of an older one can be read."""


VERSION: Final = b"reactive_runtime.trace"
"""Where a file says its version."""


SINCE: Final = {"depth": 2, "late_signals": 2, LARGE: 3, "none": 4}
"""Columns that older files have not."""


_BLOCK: Final = 2_000
"""Records that are turned into columns in one go: more would not stay in the cache from one column to the next."""


def arrow() -> tuple[Any, Any]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise MissingDependencyError("traces need pyarrow: pip install 'reactive-runtime[cli]'") from error
    return pa, parquet


def compute() -> Any:
    import pyarrow.compute

    return pyarrow.compute


def schema() -> pyarrow.Schema:
    """The columns of a trace: the fields of `Record`, and `large_value`, in which ints beyond 64 bits are.

    Returns:
        The Arrow schema, with the version of the columns in its metadata.

    Raises:
        MissingDependencyError: There is no pyarrow.
    """
    pa, _ = arrow()
    fields = [
        ("run", pa.string(), False),
        ("scenario", pa.string(), False),
        ("subscription", pa.int64(), False),
        ("shared_callers", pa.bool_(), False),
        ("ascending", pa.bool_(), False),
        ("elements", pa.int64(), True),
        ("thread", pa.int64(), False),
        ("signal", pa.string(), False),
        ("n", pa.int64(), True),
        ("begin", pa.int64(), False),
        ("end", pa.int64(), True),
        ("begin_ns", pa.int64(), False),
        ("end_ns", pa.int64(), True),
        ("value", pa.int64(), True),
        ("error", pa.string(), True),
        ("depth", pa.int32(), True),
        ("late_signals", pa.int32(), True),
        ("none", pa.bool_(), False),
        (LARGE, pa.string(), True),
    ]
    columns = [pa.field(name, kind, nullable=nullable) for name, kind, nullable in fields]
    made: pyarrow.Schema = pa.schema(columns, metadata={VERSION: str(SCHEMA).encode()})
    return made


def table_of(records: Sequence[Record]) -> pyarrow.Table:
    """Records as an Arrow table.

    Args:
        records: The records, whose order is kept.

    Returns:
        A table of the columns of `schema`.

    Raises:
        MissingDependencyError: There is no pyarrow.
    """
    pa, _ = arrow()
    known_as = schema()
    blocks = []
    for at in range(0, len(records), _BLOCK):
        some = records[at : at + _BLOCK]
        # Not zip(*some): its iterators, one a record, would each count for the garbage collection.
        cells: list[Any] = [list(map(itemgetter(place), some)) for place in range(_FIELDS)]
        value, large = _values(cells[_VALUE])
        cells[_VALUE] = value
        arrays = [pa.array(of, field.type) for of, field in zip([*cells, large], known_as, strict=True)]
        blocks.append(pa.record_batch(arrays, schema=known_as))
    table: pyarrow.Table = pa.Table.from_batches(blocks, schema=known_as)
    return table


_FIELDS: Final = len(COLUMNS) - 1
"""Fields of a record that are columns: the first of them."""


_VALUE: Final = Record._fields.index("value")


def _values(values: list[Any]) -> tuple[Any, list[Any]]:
    """The cells of `value` and of `large_value`."""
    pa, _ = arrow()
    try:
        return pa.array(values, pa.int64()), [None] * len(values)
    except OverflowError:  # some are beyond 64 bits
        large = [to_large(value) if type(value) is int else None for value in values]
        return [value if beyond is None else None for value, beyond in zip(values, large, strict=True)], large


def columns_of(chunks: Sequence[Chunk]) -> pyarrow.Table:
    """Rows as they were recorded, by columns; in any order."""
    pa, _ = arrow()
    numbers, threads = array("q"), array("q")
    others: list[tuple[int, tuple[Any, ...]]] = []
    for chunk in chunks:
        packed_rows = [row for row in chunk.packed if type(row) is bytes]
        numbers.frombytes(b"".join(packed_rows))
        threads.extend(array("q", [chunk.thread]) * len(packed_rows))
        if len(packed_rows) < len(chunk.packed):
            others += [(chunk.thread, row) for row in chunk.packed if type(row) is tuple]
    packed = _of_packed(numbers, threads)
    table: pyarrow.Table = pa.concat_tables([packed, _of_tuples(others)]) if others else packed
    return table


def _of_packed(numbers: array[int], threads: array[int]) -> pyarrow.Table:
    pa, _ = arrow()
    pc = compute()

    def column(cells: array[int]) -> Any:
        return pa.Array.from_buffers(pa.int64(), len(cells), [None, pa.py_buffer(cells)])

    subscriptions, signals, arguments, begin, end, begin_ns, end_ns, depth = (
        column(numbers[at::PACKED]) for at in range(PACKED)
    )
    none = pa.scalar(None, pa.int64())
    columns = [
        subscriptions,
        column(threads),
        signals.cast(pa.int8()),
        pc.if_else(pc.equal(signals, REQUEST), arguments, none),
        *(begin, end, begin_ns, end_ns),
        pc.if_else(pc.equal(signals, ON_NEXT), arguments, none),
        pa.nulls(len(threads), pa.string()),
        depth.cast(pa.int32()),
        pa.repeat(pa.scalar(False), len(threads)),
        pa.nulls(len(threads), pa.string()),
    ]
    table: pyarrow.Table = pa.table(columns, schema=_recorded())
    return table


def _of_tuples(rows: Sequence[tuple[int, tuple[Any, ...]]]) -> pyarrow.Table:
    pa, _ = arrow()
    kinds = _recorded()
    cells = [
        (row[0], thread, *row[1:7], fitting(row[7]), *row[8:], row[7] is NONE, to_large(row[7])) for thread, row in rows
    ]
    columns = [pa.array(of, field.type) for of, field in zip(zip(*cells, strict=True), kinds, strict=True)]
    table: pyarrow.Table = pa.table(columns, schema=kinds)
    return table


def _recorded() -> pyarrow.Schema:
    """The columns of rows as they were recorded."""
    pa, _ = arrow()
    kinds = {"signal": pa.int8(), "error": pa.string(), "depth": pa.int32(), "none": pa.bool_(), LARGE: pa.string()}
    numbers = ["subscription", "thread", "signal", "n", "begin", "end", "begin_ns", "end_ns", "value"]
    names = [*numbers, "error", "depth", "none", LARGE]
    made: pyarrow.Schema = pa.schema([(name, kinds.get(name, pa.int64())) for name in names])
    return made


def split_at(rows: Any, ticket: int) -> tuple[Any, Any]:
    """The rows that had begun and ended by that ticket, and the others."""
    pc = compute()
    ended = pc.or_kleene(pc.is_null(rows["end"]), pc.less_equal(rows["end"], ticket))
    whole = pc.and_(pc.less_equal(rows["begin"], ticket), ended)
    return rows.filter(whole), rows.filter(pc.invert(whole))


def cut_off(later: Any, under_way: Sequence[tuple[int, tuple[Any, ...]]], ticket: int) -> pyarrow.Table:
    """The calls that had begun by that ticket and not ended: those that have by now, and those that have not."""
    pa, _ = arrow()
    pc = compute()
    since = later.filter(pc.less_equal(later["begin"], ticket))
    known = set(since["begin"].to_pylist())
    missing = [Chunk(thread, [row]) for thread, row in under_way if row[3] not in known]
    calls = pa.concat_tables([since, columns_of(missing)])
    ends = pc.subtract(pa.scalar(CUT, pa.int64()), calls["begin"])
    calls = calls.set_column(calls.schema.names.index("end"), "end", ends)
    calls = calls.set_column(calls.schema.names.index("end_ns"), "end_ns", pa.nulls(len(calls), pa.int64()))
    # The call raised its error later; the error of an on_error was there at its beginning.
    later_raised = pc.starts_with(pc.fill_null(calls["error"], ""), "raised ")
    errors = pc.if_else(later_raised, pa.scalar(None, pa.string()), calls["error"])
    table: pyarrow.Table = calls.set_column(calls.schema.names.index("error"), "error", errors)
    return table


def with_metadata(
    run: str, known: Sequence[SubscriptionMetadata] | Mapping[int, SubscriptionMetadata], rows: Any
) -> pyarrow.Table:
    """Rows as they were recorded, with all that is known of them; texts as dictionaries, of which there are few."""
    pa, _ = arrow()
    size = len(rows)
    # Look a subscription up once, and let Arrow repeat its fields: there are many rows of few subscriptions.
    subscriptions = rows["subscription"].combine_chunks().dictionary_encode()
    metadata = [known[number] for number in subscriptions.dictionary.to_pylist()]

    def repeated(of_each: list[Any], kind: Any) -> Any:
        return pa.array(of_each, kind).take(subscriptions.indices)

    def texts(indices: Any, values: list[str]) -> Any:
        return pa.DictionaryArray.from_arrays(indices, pa.array(values, pa.string()))

    scenarios = {name: at for at, name in enumerate(dict.fromkeys(entry.scenario for entry in metadata))}
    columns = {
        **{name: rows[name] for name in rows.schema.names},
        "run": texts(pa.repeat(pa.scalar(0, pa.int32()), size), [run]),
        "scenario": texts(repeated([scenarios[entry.scenario] for entry in metadata], pa.int32()), list(scenarios)),
        "shared_callers": repeated([entry.shared_callers for entry in metadata], pa.bool_()),
        "ascending": repeated([entry.ascending for entry in metadata], pa.bool_()),
        "elements": repeated([entry.elements for entry in metadata], pa.int64()),
        "signal": texts(rows["signal"].combine_chunks().cast(pa.int32()), [signal.value for signal in SIGNALS]),
        "late_signals": repeated([entry.late_signals for entry in metadata], pa.int32()),
    }
    known_as = schema()
    made = {name: columns[name] for name in known_as.names}
    table: pyarrow.Table = pa.table(made).replace_schema_metadata(known_as.metadata)
    return table


def records_of(table: pyarrow.Table) -> list[Record]:
    """The inverse of `table_of`.

    Args:
        table: A table with the columns of a trace; those that older traces lack may be missing.

    Returns:
        The records, whose order is kept.

    Raises:
        TraceError: `large_value` has what is no int.
    """
    return [_record(row) for row in table.to_pylist()]


def _record(row: dict[str, Any]) -> Record:
    fields = {**dict.fromkeys(SINCE), **row}
    fields["none"] = bool(fields["none"])
    large = fields.pop(LARGE)
    if large is not None and fields["value"] is None:
        fields["value"] = from_large(large)
    return Record(**fields)
