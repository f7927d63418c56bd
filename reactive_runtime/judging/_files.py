"""The plan of a judge, made from the footers of Parquet files: which row groups each task reads.

The plan cuts a run into ranges of subscriptions. The task that judges a range reads the row groups that may hold some
of it, by their statistics, and keeps the records of the range: no record moves between tasks. If subscriptions lie
scattered over all row groups, or the footers have no statistics, each range would read everything. Then it costs less
to read each record once and move it to the task that judges it. `Plan.way` is the cheaper of the two.

One long subscription alone makes the statistics of all its row groups wide. So a plan may look at the column of
subscriptions, 3 ns a record, and give each long one a range of its own (`cut_apart`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

from reactive_runtime.errors import TraceError
from reactive_runtime.judging._rows import Rows, unfit
from reactive_runtime.judging._stores import is_remote, opened
from reactive_runtime.testing._records import COLUMNS

__all__ = [
    "RANGE",
    "WORTH_A_LOOK",
    "ForeignError",
    "Group",
    "Plan",
    "Range",
    "cut",
    "cut_apart",
    "footers",
    "groups_of",
    "is_cheap_apart",
    "long_from",
    "places_of",
    "plan",
    "read",
    "read_range",
]

RANGE: Final = 1_000_000
"""Records that a range is made of, at most, as far as footers tell."""

READ_AGAIN: Final = 4.0
"""How often ranges may read a record, on average, before it costs less to move all records. Measured
(benchmarks/trace_pipeline.py): to read a record takes 0.1 µs, to judge it 0.12, to move it 0.35."""

WORTH_A_LOOK: Final = 1.5
"""If ranges read a record more often than this, it is worth to look for long subscriptions."""

_TOO_MUCH: Final = 2**50
"""Records that no plan reads."""

_LOWEST, _HIGHEST = -(2**63), 2**63 - 1

_WORDS: Final = ["run", "scenario", "signal"]
"""Columns that are read as the dictionaries that they are."""


class ForeignError(TraceError):
    """A Parquet file with columns that this judge can't take; Spark may read it."""

    def __init__(self, file: Path, why: str) -> None:
        super().__init__(f"{file}: is no trace: {why}; docs/traces.md has the columns")
        self.why: str = f"{file}: {why}"


@dataclass(frozen=True)
class Group:
    """A row group of a file, and its statistics."""

    file: str
    number: int
    rows: int
    run: str | None
    """The run of all its records; None where there may be several."""
    low: int = _LOWEST
    """Its subscriptions lie from here to `high`."""
    high: int = _HIGHEST
    least: int = _LOWEST
    """No record of it begins before this ticket."""


@dataclass(frozen=True)
class Range:
    """Some subscriptions of a run, or of all runs; and the row groups that may hold some of them, by file."""

    run: str | None
    low: int
    high: int
    groups: tuple[tuple[str, tuple[int, ...]], ...]
    rows: int
    """Of these row groups."""
    without: tuple[int, ...] = ()
    """Subscriptions that have ranges of their own."""


@dataclass(frozen=True)
class Plan:
    """How the files are judged."""

    way: Literal["ranges", "moved"]
    """By ranges; or all records are read once, and moved to where their subscription is judged."""
    ranges: tuple[Range, ...]
    groups: tuple[Group, ...]
    again: float
    """How often ranges read a record, on average."""
    largest: int
    """The most records that a range reads."""
    tasks: int
    """How many tasks should share the work."""

    @property
    def rows(self) -> int:
        """Records in all."""
        return sum(group.rows for group in self.groups)

    def explain(self) -> str:
        """The plan in a line.

        Returns:
            How the files are judged, how many records they have, and what the other way would cost.
        """
        unknown = sum((group.low, group.high) == (_LOWEST, _HIGHEST) for group in self.groups)
        files = {group.file for group in self.groups}
        found = f"{self.rows:,} records in {len(self.groups)} row groups of {len(files)} files"
        if unknown:
            found += f", {unknown} of them without statistics"
        would = "read" if self.way == "ranges" else "would read"
        cost = f"{len(self.ranges)} ranges of subscriptions {would} each record {self.again:.1f} times"
        return f"{self.way}: {found}; {cost}, one of them {self.largest:,} records"


def footers(files: Sequence[Path]) -> list[Group]:
    """The row groups of the files; TraceError names one that can't be read, and is a ForeignError for its columns."""
    found: list[Group] = []
    for file in files:
        try:
            opened = parquet.ParquetFile(file)
            metadata, schema = opened.metadata, opened.schema_arrow
        except (OSError, pa.ArrowException) as error:
            raise TraceError(f"{file}: is no whole Parquet file ({str(error).splitlines()[0]})") from error
        why = unfit(schema)
        if why is not None:
            raise ForeignError(file, why)
        found += groups_of(str(file), metadata)
    return found


def places_of(footer: Any) -> dict[str, int]:
    """The number of each column of a footer, by its path."""
    return {footer.schema.column(at).path: at for at in range(footer.num_columns)}


def groups_of(file: str, footer: Any, columns: Mapping[str, int] | None = None) -> list[Group]:
    """The row groups of a file that have rows, by its footer; `columns` as of `places_of`, where they are known."""
    found: list[Group] = []
    columns = places_of(footer) if columns is None else columns
    for number in range(footer.num_row_groups):
        group = footer.row_group(number)
        if group.num_rows:
            runs = _statistics(group, columns.get("run"))
            low, high = _statistics(group, columns.get("subscription")) or (_LOWEST, _HIGHEST)
            run = runs[0] if runs is not None and runs[0] == runs[1] else None
            least, _ = _statistics(group, columns.get("begin")) or (_LOWEST, _HIGHEST)
            found.append(Group(file, number, group.num_rows, run, low, high, least))
    return found


def _statistics(group: Any, at: int | None) -> tuple[Any, Any] | None:
    """The least and the largest value of a column, where they are known."""
    if at is None:
        return None
    known = group.column(at).statistics
    if known is None or not known.has_min_max or not isinstance(known.min, (int, str)):
        return None
    return known.min, known.max


def plan(
    files: Sequence[Path],
    *,
    cores: int = 1,
    most: int = RANGE,
    way: Literal["ranges", "moved"] | None = None,
    little: int = 1,
    apart: bool = False,
) -> Plan:
    """How to judge these files on so many cores, so that all of them are busy to the end.

    Args:
        files: Parquet files of traces.
        cores: How many cores there are, 1 or more.
        most: How many records a range has at most, as far as footers tell.
        way: "ranges" or "moved", whatever it costs. None: the way that costs less.
        little: How many records a core should have at least: where there are fewer, fewer cores are used.
        apart: If ranges made from footers read records several times: look for long subscriptions, and give each a
            range of its own where that costs less.

    Returns:
        The plan, made from the footers, and with `apart` from the column of subscriptions.

    Raises:
        TraceError: Names a file that can't be read. A `ForeignError` names one whose columns the judge can't take.
    """
    groups = footers(files)
    total = sum(group.rows for group in groups)
    cores = max(min(cores, total // little), 1)
    tasks = cores * max(-(-total // (most * cores)), 1)
    size = max(-(-total // tasks), 1)
    # Plan each run alone; row groups of several runs may hold records of any.
    alone = all(group.run is not None for group in groups)
    runs: dict[str | None, list[Group]] = {}
    for entry in groups:
        runs.setdefault(entry.run if alone else None, []).append(entry)
    ranges = [item for run, mine in runs.items() for item in cut(run, mine, size)]
    again = sum(span.rows for span in ranges) / max(total, 1)
    largest = max((span.rows for span in ranges), default=0)
    cheap = again <= READ_AGAIN and largest <= READ_AGAIN * size
    if apart and alone and way is None and again > WORTH_A_LOOK:
        found = [item for run, mine in runs.items() for item in cut_apart(run, mine, size, long_from(total, cores))]
        read, most_read = sum(span.rows for span in found), max((span.rows for span in found), default=0)
        if is_cheap_apart(read, most_read, total, cores) and (not cheap or read < again * total):
            ranges, again, largest, cheap = found, read / max(total, 1), most_read, True
    return Plan(way or ("ranges" if cheap else "moved"), tuple(ranges), tuple(groups), again, largest, tasks)


def cut(run: str | None, groups: Sequence[Group], size: int) -> Iterator[Range]:
    """Ranges of about `size` records, as if the subscriptions of a row group were spread evenly."""
    lows, highs, each = (np.array([getattr(entry, name) for entry in groups], np.int64) for name in _OF_GROUP)
    known = (lows != _LOWEST) | (highs != _HIGHEST)
    low, high, rows = (of[known].astype(float) for of in (lows, highs, each))
    count = max(-(-int(rows.sum()) // size), 1)
    begin, last = _LOWEST, int(highs[known].max()) if known.any() else _HIGHEST
    for number in range(1, count + 1):
        wanted = rows.sum() * number / count
        end = last if number == count else _reaching(wanted, low, high, rows, begin, last)
        if end >= last:
            end = _HIGHEST  # a row group without statistics may hold any subscription
        mine = np.flatnonzero((lows <= end) & (highs >= begin))
        if len(mine):
            held = _held(groups[at] for at in mine.tolist())
            yield Range(run, begin, end, held, int(each[mine].sum()))
        if end == _HIGHEST:
            return
        begin = end + 1


_OF_GROUP: Final = ("low", "high", "rows")

_LONG: Final = 2 * RANGE

_UNEVEN: Final = 1.5
"""A subscription is too long for one task where it has so many times the records that a core would have if all had the
same."""


def long_from(total: int, cores: int) -> int:
    """Records from which on a subscription is too long for one task, of so many on so many cores."""
    return max(_LONG, int(_UNEVEN * total / cores))


def is_cheap_apart(read: int, largest: int, total: int, cores: int) -> bool:
    """Whether ranges of `cut_apart` cost less than to move all records.

    Args:
        read: Records that all ranges read.
        largest: Records that the largest reads, which is most likely that of a long subscription.
        total: Records in all.
        cores: How many tasks run side by side.
    """
    return read <= READ_AGAIN * total and largest <= READ_AGAIN * total / cores


def cut_apart(run: str | None, groups: Sequence[Group], size: int, too_long: int) -> Iterator[Range]:
    """As `cut`, and each subscription of half a range or more has a range of its own, those first.

    The column of subscriptions is read for that. If one has `too_long` records or more, there is one range, which reads
    more than any plan allows.

    Args:
        run: The run of all records, or None.
        groups: Row groups.
        size: Records of a range.
        too_long: As of `long_from`.
    """
    seen = [_subscriptions(group) for group in groups]
    numbers, at = np.unique(np.concatenate([of for of, _ in seen]), return_inverse=True)
    counts = np.bincount(at, weights=np.concatenate([count for _, count in seen]), minlength=len(numbers))
    long = numbers[counts >= size / 2]
    if (counts >= too_long).any():
        yield Range(run, _LOWEST, _HIGHEST, (), _TOO_MUCH)
        return
    others = []
    for number in long.tolist():
        mine = [group for group, (of, _) in zip(groups, seen, strict=True) if (of == number).any()]
        yield Range(run, number, number, _held(mine), sum(group.rows for group in mine))
    for group, (of, count) in zip(groups, seen, strict=True):
        left = ~np.isin(of, long)
        if left.any():
            low, high = int(of[left].min()), int(of[left].max())
            others.append(replace(group, rows=int(count[left].sum()), low=low, high=high))
    whole = {(group.file, group.number): group.rows for group in groups}
    for span in cut(run, others, size) if others else ():
        rows = sum(whole[file, number] for file, numbers in span.groups for number in numbers)
        yield replace(span, rows=rows, without=tuple(long[(long >= span.low) & (long <= span.high)].tolist()))


def _subscriptions(group: Group) -> tuple[Any, Any]:
    """The subscriptions in a row group, and how many records each has; TraceError names the file."""
    try:
        source = opened(group.file) if is_remote(group.file) else contextlib.nullcontext(group.file)
        with source as data, parquet.ParquetFile(data) as whole:
            column = whole.read_row_group(group.number, columns=["subscription"], use_threads=False).column(0)
    except (OSError, pa.ArrowException) as error:
        raise TraceError(f"{group.file}: is no whole Parquet file ({str(error).splitlines()[0]})") from error
    if column.null_count:
        raise TraceError(f"{group.file}: is no trace: column 'subscription' has nulls; docs/traces.md says which may")
    return np.unique(column.to_numpy(), return_counts=True)


def _held(groups: Iterable[Group]) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """The numbers of row groups, by file."""
    files: dict[str, list[int]] = {}
    for group in groups:
        files.setdefault(group.file, []).append(group.number)
    return tuple((file, tuple(numbers)) for file, numbers in files.items())


def _reaching(wanted: float, low: Any, high: Any, rows: Any, begin: int, last: int) -> int:
    """The least subscription up to which there are so many records."""
    while begin < last:
        middle = (begin + last) // 2
        if float((rows * np.clip((middle - low + 1) / (high - low + 1), 0, 1)).sum()) >= wanted:
            last = middle
        else:
            begin = middle + 1
    return begin


# -- reading --------------------------------------------------------------------------------------------------


def read(file: str, numbers: Sequence[int]) -> Iterator[Rows]:
    """The records of these row groups, one after the other; TraceError names the file."""
    try:
        source = opened(file) if is_remote(file) else contextlib.nullcontext(file)
        with (
            source as data,
            parquet.ParquetFile(data, read_dictionary=_WORDS, page_checksum_verification=True) as whole,
        ):
            names = set(whole.schema_arrow.names)
            columns = [name for name in COLUMNS if name in names]
            for number in numbers:
                yield Rows.of_table(whole.read_row_group(number, columns=columns, use_threads=False))
    except (OSError, pa.ArrowException) as error:
        raise TraceError(f"{file}: is no whole Parquet file ({str(error).splitlines()[0]})") from error
    except TraceError as error:
        raise TraceError(f"{file}: {error}") from error


def read_range(item: Range) -> Iterator[Rows]:
    """The records of the range."""
    for file, numbers in item.groups:
        for rows in read(file, numbers):
            within = (rows.subscription >= item.low) & (rows.subscription <= item.high)
            if item.without:
                within &= ~np.isin(rows.subscription, item.without)
            if within.all():
                yield rows
            elif within.any():
                yield rows.where(within)
