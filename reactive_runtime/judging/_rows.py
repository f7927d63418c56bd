"""The columns of a trace as the judge takes them: numbers and flags, and the names of runs and scenarios."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from reactive_runtime.errors import TraceError
from reactive_runtime.testing._records import COLUMNS, CUT, LARGE, UNDER_WAY, Record, Signal, fitting, from_large
from reactive_runtime.testing._rule_checks import RECURSION

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "ASCENDING",
    "DEEP",
    "KINDS",
    "NEVER",
    "PACKED",
    "RAISED",
    "REQUIRED",
    "SHARED",
    "UNCLOCKED",
    "UNKNOWN",
    "VALUED",
    "Array",
    "Rows",
    "flags_in_sql",
    "unfit",
]

Array = npt.NDArray[Any]

KINDS: Final = tuple(Signal)
"""Signals by number: the lowest four bits of `flags` have the number."""

UNKNOWN: Final = len(KINDS)
"""The number of any other text in the column `signal`."""

RAISED, SHARED, ASCENDING, DEEP, VALUED, NEVER, UNCLOCKED, NONE = (16 << place for place in range(8))
"""Flags, in this order: the call raised; the columns `shared_callers` and `ascending`; the depth is above that of 3.3;
`value` is not null; `end` is null; a cancel whose `end_ns` is null; the column `none`."""

PACKED: Final = pa.schema(
    [
        pa.field("run", pa.dictionary(pa.int32(), pa.string())),
        pa.field("scenario", pa.dictionary(pa.int32(), pa.string())),
        pa.field("subscription", pa.int64()),
        pa.field("flags", pa.int16()),
        pa.field("elements", pa.int64()),
        pa.field("thread", pa.int64()),
        pa.field("n", pa.int64()),
        pa.field("begin", pa.int64()),
        pa.field("end", pa.int64()),
        pa.field("ns", pa.int64()),
        pa.field("value", pa.int64()),
        pa.field("late_signals", pa.int32()),
        pa.field(LARGE, pa.string()),
    ]
)
"""The columns of `Rows` in Arrow, on disk and between Spark's tasks. Only the last column has nulls."""

REQUIRED: Final = ("run", "scenario", "subscription", "thread", "begin", "begin_ns", "shared_callers", "ascending")
"""Columns that may not have nulls."""

_FLAGS: Final = frozenset({"shared_callers", "ascending", "none"})
_TEXTS: Final = frozenset({"run", "scenario", "signal", "error", LARGE})
NEEDED: Final = (*REQUIRED, "signal", "elements", "n", "end", "end_ns", "value", "error")
"""Columns that a trace has; others may be missing."""


def unfit(schema: pa.Schema) -> str | None:
    """The first column of a Parquet file that is missing, there twice, or of another type; None if all are right."""
    for name in COLUMNS:
        at = schema.get_all_field_indices(name)
        if len(at) != 1:
            if name in NEEDED or at:
                return f"it has {'no column' if not at else 'more than one column'} {name!r}"
            continue
        kind = schema.field(at[0]).type
        should, fits = "integers", pa.types.is_integer(kind) and kind != pa.uint64()
        if name in _FLAGS:
            should, fits = "bool", pa.types.is_boolean(kind)
        elif name in _TEXTS:
            of = kind.value_type if pa.types.is_dictionary(kind) else kind
            should, fits = "strings", pa.types.is_string(of) or pa.types.is_large_string(of)
        if not fits and not (name in ("error", LARGE) and pa.types.is_null(kind)):
            return f"column {name!r} should be of {should}, and is {kind}"
    return None


@dataclass(frozen=True)
class Rows:
    """Records by columns, in any order."""

    runs: list[str]
    scenarios: list[str]
    run: Array
    """Places in `runs`. `scenario` has places in `scenarios`."""
    scenario: Array
    subscription: Array
    flags: Array
    """The number of the signal (`KINDS`), and flags."""
    elements: Array
    """-1: not known."""
    thread: Array
    n: Array
    """The argument of a request; 0 if it is invalid."""
    begin: Array
    end: Array
    """UNDER_WAY or more: the call had not returned where its record was cut off, or, with the flag NEVER, at all."""
    ns: Array
    """Nanoseconds at the beginning of the call; of a cancel, at its end."""
    value: Array
    """The value, with the flag VALUED. Without it: the place of the value in `large`, from 1, or 0 for no value."""
    late_signals: Array
    """-1: the trace has no number."""
    large: list[int] = field(default_factory=list)
    """Values beyond 64 bits."""

    def __len__(self) -> int:
        return len(self.begin)

    # -- from tables and from other rows ----------------------------------------------------------------------

    @classmethod
    def of_table(cls, table: pa.Table) -> Rows:
        """The rows of a table with the columns of `Record`, of any layout.

        Args:
            table: The table; columns that older traces lack may be missing.

        Returns:
            Its rows, in its order.

        Raises:
            TraceError: A column is missing, is of another type, or has nulls that it must not have.
        """
        try:
            return cls._of_table(table)
        except (pa.ArrowException, KeyError) as error:
            raise TraceError(f"is no trace: {str(error).splitlines()[0]}; docs/traces.md has the columns") from error

    @classmethod
    def _of_table(cls, table: pa.Table) -> Rows:
        for name in REQUIRED:
            if table.column(name).null_count:
                raise TraceError(f"is no trace: column {name!r} has nulls; docs/traces.md says which may have some")
        kind = _kinds(table)
        flags = kind.astype(np.int16)
        flags |= _bools(table, "shared_callers") * np.int16(SHARED)
        flags |= _bools(table, "ascending") * np.int16(ASCENDING)
        flags[_raised(table, kind)] |= RAISED
        if "none" in table.column_names:
            flags |= _bools(table, "none") * np.int16(NONE)
        if "depth" in table.column_names:
            flags[_ints(table, "depth", 0) > RECURSION] |= DEEP
        valued, never = ~_nulls(table, "value"), _nulls(table, "end")
        flags |= valued * np.int16(VALUED)
        flags |= never * np.int16(NEVER)
        ns = _ints(table, "begin_ns", 0)
        cancels = np.flatnonzero(kind == KINDS.index(Signal.CANCEL))
        if len(cancels):
            ends = _taken(table, "end_ns", cancels)
            ns = ns.copy()
            ns[cancels] = _numbers(ends, 0)
            flags[cancels[ends.is_null().to_numpy()]] |= UNCLOCKED
        elements = _ints(table, "elements", -1)
        if table.column("elements").null_count < len(table) and (elements < 0).any():
            elements = np.where(_nulls(table, "elements"), -1, np.maximum(elements, 0))
        runs, run = _names(table, "run")
        scenarios, scenario = _names(table, "scenario")
        value, flags, large = _values(table, _ints(table, "value", 0), flags)
        return cls(
            runs,
            scenarios,
            run,
            scenario,
            _ints(table, "subscription", 0),
            flags,
            elements,
            _ints(table, "thread", 0),
            np.maximum(_ints(table, "n", 0), 0),
            _ints(table, "begin", 0),
            _ints(table, "end", CUT),
            ns,
            value,
            _late(table),
            large,
        )

    @classmethod
    def of_packed(cls, batch: pa.RecordBatch | pa.Table) -> Rows:
        """The inverse of `packed`.

        Args:
            batch: A result of `packed`.

        Returns:
            The rows.
        """
        table = pa.table(batch) if isinstance(batch, pa.RecordBatch) else batch
        runs, run = _names(table, "run")
        scenarios, scenario = _names(table, "scenario")
        numbers = {name: table.column(name).to_numpy() for name in _NUMBERS}
        numbers["value"], numbers["flags"], large = _values(table, numbers["value"], numbers["flags"])
        return cls(runs, scenarios, run, scenario, **numbers, large=large)

    @classmethod
    def together(cls, parts: Sequence[Rows]) -> Rows:
        """The rows of all parts, one part after the other.

        Args:
            parts: The parts; one at least.

        Returns:
            The rows.
        """
        if len(parts) == 1:
            return parts[0]
        runs, run = _joined([(part.runs, part.run) for part in parts])
        scenarios, scenario = _joined([(part.scenarios, part.scenario) for part in parts])
        numbers = {name: np.concatenate([getattr(part, name) for part in parts]) for name in _NUMBERS}
        large: list[int] = []
        if any(part.large for part in parts):
            values = []
            for part in parts:
                has_large = (part.value > 0) & (part.flags & VALUED == 0)
                values.append(part.value + has_large * np.int64(len(large)))
                large += part.large
            numbers["value"] = np.concatenate(values)
        return cls(runs, scenarios, run, scenario, **numbers, large=large)

    # -- to batches, other rows and records -------------------------------------------------------------------

    def packed(self) -> pa.RecordBatch:
        """The rows as one Arrow batch.

        Returns:
            A batch of the schema `PACKED`.
        """
        names = [(self.runs, self.run), (self.scenarios, self.scenario)]
        words = [
            pa.DictionaryArray.from_arrays(codes.astype(np.int32), pa.array(of, pa.string())) for of, codes in names
        ]
        columns = {name: getattr(self, name) for name in _NUMBERS}
        large = pa.nulls(len(self), pa.string())
        if self.large:
            valued = self.flags & VALUED != 0
            places = np.where(valued, 0, self.value)
            columns["value"] = np.where(valued, self.value, 0)
            large = pa.array([hex(self.large[place - 1]) if place else None for place in places.tolist()], pa.string())
        numbers = [pa.array(column).cast(PACKED.field(name).type) for name, column in columns.items()]
        arrays = [*words, *numbers, large]
        return pa.RecordBatch.from_arrays(arrays, schema=PACKED)

    def where(self, chosen: Array | slice) -> Rows:
        """Some of the rows.

        Args:
            chosen: A mask, places, or a slice.

        Returns:
            The rows that are chosen.
        """
        columns = {name: getattr(self, name)[chosen] for name in ("run", "scenario", *_NUMBERS)}
        return replace(self, **columns)

    def ranked(self) -> Rows:
        """The rows with all values in 64 bits: if one is beyond, each value is replaced by its rank.

        Returns:
            The rows; these rows if no value is beyond 64 bits.
        """
        if not self.large:
            return self
        valued = self.flags & VALUED != 0
        beyond = np.flatnonzero(~valued & (self.value > 0))
        ints, rank = np.unique(self.value[valued], return_inverse=True)
        mine = [self.large[place - 1] for place in self.value[beyond].tolist()]
        larger = {value: place for place, value in enumerate(sorted(set(mine)))}
        below = sum(value < 0 for value in larger)  # the others are above all of 64 bits
        value = np.zeros(len(self), np.int64)
        value[valued] = rank + below
        value[beyond] = [larger[item] + (len(ints) if item > 0 else 0) for item in mine]
        flags = self.flags.copy()
        flags[beyond] |= VALUED
        return replace(self, value=value, flags=flags, large=[])

    def upto(self, tickets: Mapping[str, int]) -> Rows:
        """The rows as they were known at a ticket, as `cut` of `reactive_runtime.testing._records` cuts records.

        Args:
            tickets: The ticket of each run that was cut off; the others are whole.

        Returns:
            The rows.
        """
        known = np.array([tickets.get(run, 0) for run in self.runs], np.int64)[self.run]
        is_cut = np.array([run in tickets for run in self.runs], bool)[self.run]
        if not is_cut.any():
            return self
        there = ~is_cut | (self.begin <= known)
        rows = self.where(there)
        known, is_cut = known[there], is_cut[there]
        open_ = is_cut & ((rows.end > known) | (rows.end >= UNDER_WAY))
        flags = np.where(open_, rows.flags & ~(NEVER | RAISED), rows.flags).astype(np.int16)
        cancels = open_ & (flags & 15 == KINDS.index(Signal.CANCEL))
        return replace(rows, flags=flags | cancels * np.int16(UNCLOCKED), end=np.where(open_, CUT, rows.end))

    def records(self, places: Array | slice) -> Iterator[Record]:
        """Some rows as records for the reference. Only the fields that rules look at are kept.

        Args:
            places: Places, or a slice.

        Yields:
            A record for each.
        """
        columns = [getattr(self, name)[places].tolist() for name in ("run", "scenario", *_NUMBERS)]
        for run, scenario, subscription, flags, elements, thread, n, begin, end, ns, value, late in zip(
            *columns, strict=True
        ):
            kind = flags & 15
            clock = None if flags & UNCLOCKED else ns
            yield Record(
                run=self.runs[run],
                scenario=self.scenarios[scenario],
                subscription=subscription,
                shared_callers=bool(flags & SHARED),
                ascending=bool(flags & ASCENDING),
                elements=None if elements < 0 else elements,
                thread=thread,
                signal=KINDS[kind].value if kind < UNKNOWN else "",
                n=n,
                begin=begin,
                end=None if flags & NEVER else end,
                begin_ns=ns,
                end_ns=clock,
                value=value if flags & VALUED else self.large[value - 1] if value else None,
                error="raised " if flags & RAISED else None,
                depth=RECURSION + 1 if flags & DEEP else 0,
                late_signals=None if late < 0 else late,
                none=bool(flags & NONE),
            )


_MANY: Final = 2**31 - 1
"""The largest int32: `late_signals` are clipped to it."""

_NUMBERS: Final = tuple(item.name for item in fields(Rows))[4:-1]
assert [*_NUMBERS, LARGE] == PACKED.names[2:]


# -- columns --------------------------------------------------------------------------------------------------


def _taken(table: pa.Table, name: str, places: Array) -> Any:
    at: Any = pa.array(places)
    return table.column(name).take(at)


def _numbers(column: Any, missing: int) -> Array:
    """Integers; null as `missing`."""
    if column.null_count:
        column = column.fill_null(missing)
    numbers: Array = column.to_numpy()
    return numbers


def _ints(table: pa.Table, name: str, missing: int) -> Array:
    column = table.column(name)
    if not pa.types.is_integer(column.type):
        raise TraceError(f"is no trace: column {name!r} should be of integers, and is {column.type}")
    return _numbers(column if column.type == pa.int64() else column.cast(pa.int64()), missing)


def _nulls(table: pa.Table, name: str) -> Array:
    column = table.column(name)
    if not column.null_count:
        return np.zeros(len(column), bool)
    nulls: Array = column.is_null().to_numpy()
    return nulls


def _bools(table: pa.Table, name: str) -> Array:
    column: Any = table.column(name)
    if not pa.types.is_boolean(column.type):
        raise TraceError(f"is no trace: column {name!r} should be of bool, and is {column.type}")
    bools: Array = (column.fill_null(False) if column.null_count else column).to_numpy()
    return bools


def _names(table: pa.Table, name: str) -> tuple[list[str], Array]:
    """The distinct words of a column, and for each row the place of its word."""
    column: Any = table.column(name)
    if not pa.types.is_dictionary(column.type):
        if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
            raise TraceError(f"is no trace: column {name!r} should be of strings, and is {column.type}")
        column = column.dictionary_encode()
    words: list[Any]
    if column.num_chunks > 1:
        words, codes = _joined(
            [(item.dictionary.to_pylist(), item.indices.fill_null(-1).to_numpy()) for item in column.chunks]
        )
    elif column.num_chunks:
        (chunk,) = column.chunks
        words, codes = chunk.dictionary.to_pylist(), chunk.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    else:
        words, codes = [], np.zeros(0, np.int32)
    return words, codes


def _joined(parts: Sequence[tuple[Sequence[str], Array]]) -> tuple[list[str], Array]:
    """The distinct words of all parts, and the codes of all parts as places in them; -1 stays -1."""
    words = list(dict.fromkeys(word for some, _ in parts for word in some))
    places = {word: place for place, word in enumerate(words)}
    codes = []
    for some, mine in parts:
        to = np.array([*(places[word] for word in some), -1], np.int32)  # the last is what -1 leads to
        codes.append(to[mine])
    return words, np.concatenate(codes) if codes else np.zeros(0, np.int32)


def _kinds(table: pa.Table) -> Array:
    words, codes = _names(table, "signal")
    numbers = {signal.value: number for number, signal in enumerate(KINDS)}
    of = np.array([*(numbers.get(word, UNKNOWN) for word in words), UNKNOWN], np.uint8)
    kinds: Array = of[codes]
    return kinds


def _raised(table: pa.Table, kind: Array) -> Array:
    """The rows whose call raised: `error` is set. That of an `on_error` was signalled, unless it begins with raised."""
    column = table.column("error")
    if column.null_count == len(column):
        return np.zeros(0, np.int64)
    erring = np.flatnonzero(~_nulls(table, "error"))
    texts = _taken(table, "error", erring)
    if pa.types.is_dictionary(texts.type):
        texts = texts.cast(texts.type.value_type)
    says: Array = pc.starts_with(texts, "raised ").to_numpy()
    found: Array = erring[(kind[erring] != KINDS.index(Signal.ON_ERROR)) | says]
    return found


def _values(table: pa.Table, value: Array, flags: Array) -> tuple[Array, Array, list[int]]:
    """`value` and `flags` with the numbers of `large_value` put in, and the numbers beyond 64 bits."""
    column = table.column(LARGE) if LARGE in table.column_names else None
    if column is None or column.null_count == len(column):
        return value, flags, []
    places = np.flatnonzero(~_nulls(table, LARGE) & (flags & VALUED == 0))
    value, flags = value.copy(), flags.copy()
    large: list[int] = []
    for place, text in zip(places.tolist(), _taken(table, LARGE, places).to_pylist(), strict=True):
        number = from_large(text)
        if fitting(number) is None:
            large.append(number)
            number = len(large)
        else:
            flags[place] |= VALUED
        value[place] = number
    return value, flags, large


def _late(table: pa.Table) -> Array:
    if "late_signals" not in table.column_names:
        return np.full(len(table), -1, np.int32)
    late = _ints(table, "late_signals", -1)
    if table.column("late_signals").null_count < len(table) and (late < 0).any():
        late = np.where(_nulls(table, "late_signals"), -1, np.clip(late, 0, _MANY))
    return late.astype(np.int32)


def flags_in_sql(columns: Collection[str]) -> str:
    """`flags` of records with these columns, as an expression of Spark's SQL.

    If a column of REQUIRED is null, the expression is -1 for the first of them, -2 for the second, and so on.
    """
    kinds = " ".join(f"when '{signal.value}' then {number}" for number, signal in enumerate(KINDS))
    conditions = {
        RAISED: f"error is not null and (not signal <=> '{Signal.ON_ERROR.value}' or startswith(error, 'raised '))",
        SHARED: "coalesce(cast(shared_callers as boolean), false)",
        ASCENDING: "coalesce(cast(ascending as boolean), false)",
        DEEP: f"coalesce(depth > {RECURSION}, false)" if "depth" in columns else "false",
        VALUED: "value is not null",
        NEVER: "end is null",
        UNCLOCKED: f"signal <=> '{Signal.CANCEL.value}' and end_ns is null",
        NONE: "coalesce(cast(none as boolean), false)" if "none" in columns else "false",
    }
    bits = " + ".join(f"if({text}, {flag}, 0)" for flag, text in conditions.items())
    nulls = " ".join(f"when {name} is null then {-place}" for place, name in enumerate(REQUIRED, 1))
    return f"cast(case {nulls} else case signal {kinds} else {UNKNOWN} end + {bits} end as smallint)"
