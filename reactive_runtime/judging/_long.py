"""Long subscriptions that several tasks share: how they are found, cut into pieces, and judged.

    row groups ──▶ some of them counted ──▶ long subscriptions
    each record of one ──▶ its piece, by its `begin` ──▶ the piece summed up, in one task
    all summaries, merged ──▶ what lies before each piece ──▶ the piece judged, in one task ──▶ findings, merged

The count is an estimate. It decides who judges a subscription, and not the verdict (`_pieces`).
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as parquet

from reactive_runtime.errors import TraceError
from reactive_runtime.judging._kernel import Judged, schema_of
from reactive_runtime.judging._pieces import Findings, Summary, judge_piece, verdict
from reactive_runtime.judging._rows import Array, Rows
from reactive_runtime.judging._stores import is_remote, opened
from reactive_runtime.judging._stretches import Stretches

__all__ = ["COUNTED", "Long", "Pieces", "before_each", "counted", "long_of", "pieces_of", "verdict_of"]

_ONE_OF: Final = 8
"""Of so many row groups one is counted."""

_FIRST: Final = 16
"""Subscriptions that a task names, those with most records."""

_MOST: Final = 64
"""Long subscriptions that are cut, at most; another one is judged by one task."""

_MOST_PIECES: Final = 2_000
"""Pieces of all long subscriptions, at most: the driver keeps some kilobytes for each."""

_HELD: Final = 500_000
"""Records of a piece that are judged at once."""

COUNTED: Final = schema_of(
    run=pa.string(), subscription=pa.int64(), count=pa.int64(), least=pa.int64(), most=pa.int64()
)
"""About how many records a subscription has, and between which tickets they begin."""


@dataclass(frozen=True)
class Long:
    """A long subscription, and how it is cut.

    Args:
        run: Its run.
        subscription: Its number.
        first: A ticket of the first piece. Lower ones are in that piece too.
        width: How many tickets a piece has. The last piece has all higher ones.
        pieces: How many pieces there are.
    """

    run: str
    subscription: int
    first: int
    width: int
    pieces: int

    def of(self, rows: Rows) -> Array:
        """Mark the rows that are of it."""
        mine: Array = rows.subscription == self.subscription
        if rows.runs != [self.run]:
            mine &= np.array([of == self.run for of in rows.runs], bool)[rows.run]
        return mine

    def piece(self, begin: Array) -> Array:
        """The pieces of records that begin at these tickets."""
        last = min(self.first + self.width * self.pieces, 2**63) - 1
        since = np.clip(begin, self.first, last).astype(np.uint64) - np.uint64(self.first % 2**64)
        pieces: Array = np.minimum(since // np.uint64(self.width), np.uint64(self.pieces - 1)).astype(np.int64)
        return pieces


def pieces_of(rows: Rows, long: Sequence[Long]) -> Array:
    """The number of the piece of each row, counted through all long subscriptions; -1: it is of no long one."""
    found = np.full(len(rows), -1, np.int64)
    before = 0
    for item in long:
        mine = np.flatnonzero(item.of(rows))
        if len(mine):
            found[mine] = before + item.piece(rows.begin[mine])
        before += item.pieces
    return found


# -- how they are found -----------------------------------------------------------------------------------------


def counted(groups: Sequence[tuple[str, int]]) -> Iterator[pa.RecordBatch]:
    """Of some of these row groups, files and numbers, the subscriptions with most records: rows of COUNTED."""
    some = groups[::_ONE_OF]
    tables = [_columns(file, number) for file, number in some]
    if not tables:
        return
    records = pa.concat_tables(tables).group_by(["run", "subscription"])
    found = records.aggregate([("begin", "count"), ("begin", "min"), ("begin", "max")]).rename_columns(COUNTED.names)
    scale = len(groups) / len(some)
    found = found.set_column(2, "count", pc.cast(pc.multiply(found.column("count"), scale), pa.int64(), safe=False))
    yield from found.sort_by([("count", "descending")]).slice(0, _FIRST).cast(COUNTED).combine_chunks().to_batches()


def _columns(file: str, number: int) -> pa.Table:
    try:
        with (
            opened(file) if is_remote(file) else contextlib.nullcontext(file) as data,
            parquet.ParquetFile(data) as whole,
        ):
            names = ["run", "subscription", "begin"]
            table = whole.read_row_group(number, columns=names, use_threads=False)
    except (OSError, pa.ArrowException) as error:
        raise TraceError(f"{file}: is no whole Parquet file ({str(error).splitlines()[0]})") from error
    types = [pa.string(), pa.int64(), pa.int64()]
    return pa.table([table.column(name).cast(kind) for name, kind in zip(names, types, strict=True)], names)


def long_of(found: Iterable[Mapping[str, int | str]], piece: int) -> tuple[Long, ...]:
    """How these are cut into pieces of about so many records.

    Args:
        found: Rows of COUNTED, each of another subscription.
        piece: Records of a piece; more where there would be more than `_MOST_PIECES` pieces in all.

    Returns:
        At most `_MOST` of them, those with most records.
    """
    rows = sorted(found, key=lambda row: (-int(row["count"]), str(row["run"]), int(row["subscription"])))
    rows = rows[:_MOST]
    least = -(-sum(int(row["count"]) for row in rows) // (_MOST_PIECES - len(rows) + 1))
    return tuple(_cut(row, max(piece, least)) for row in rows)


def _cut(row: Mapping[str, int | str], piece: int) -> Long:
    first, last = int(row["least"]), int(row["most"])
    wanted = min(max(-(-int(row["count"]) // piece), 1), last - first + 1)
    width = min(-(-(last - first + 1) // wanted), 2**63)
    return Long(str(row["run"]), int(row["subscription"]), first, width, wanted)


# -- what a task does with pieces ---------------------------------------------------------------------------------


class Pieces:
    """Some pieces of long subscriptions, on the disk of a task. A context manager, which removes them.

    Args:
        long: All long subscriptions.
        late_signals: How many signals may follow a cancel from outside, where the records do not say.
        upto: The ticket of each run that is judged as it was at that ticket.
        most: How many records are held in memory at once.

    Thread:
        One thread at a time.
    """

    def __init__(self, long: Sequence[Long], late_signals: int, upto: Mapping[str, int], most: int) -> None:
        self._long = long
        self._late_signals = late_signals
        self._upto = upto
        self._most = most
        self._folder = tempfile.TemporaryDirectory(prefix="reactive-runtime-pieces-")
        self._stretches: dict[int, Stretches] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for stretches in self._stretches.values():
            stretches.close()
        self._folder.cleanup()

    def add(self, rows: Rows) -> None:
        """Add records of long subscriptions, in any order."""
        if self._upto:
            rows = rows.upto(self._upto)
        pieces = pieces_of(rows, self._long)
        for piece in np.unique(pieces).tolist():
            if piece not in self._stretches:
                self._stretches[piece] = Stretches(Path(self._folder.name) / str(piece))
            self._stretches[piece].add([rows.where(np.flatnonzero(pieces == piece))])
        if sum(stretches.held for stretches in self._stretches.values()) > self._most:
            for stretches in self._stretches.values():
                stretches.put_away()

    def summed_up(self) -> Iterator[tuple[int, Summary]]:
        """The summary of each piece, by its number."""
        for piece, parts in self._each():
            summary = Summary()
            for part in parts:
                summary = summary.then(Summary.of(Rows.together(part)))
            yield piece, summary

    def judged(self, before: Callable[[int], Summary]) -> Iterator[tuple[int, Findings]]:
        """The findings in each piece, behind the summary of all records before it."""
        for piece, parts in self._each():
            summary, findings = before(piece), Findings()
            for part in parts:
                found, summary = judge_piece(part, summary, self._late_signals)
                findings = findings.then(found)
            yield piece, findings

    def _each(self) -> Iterator[tuple[int, Iterator[list[Rows]]]]:
        for piece, stretches in self._stretches.items():
            yield piece, stretches.pieces(min(self._most, _HELD))


# -- what the driver does with summaries and findings -------------------------------------------------------------


def before_each(
    long: Sequence[Long], summaries: Mapping[int, Summary]
) -> tuple[dict[int, Summary], tuple[Summary, ...]]:
    """Merge the summaries of pieces.

    Args:
        long: The long subscriptions.
        summaries: That of each piece which has records.

    Returns:
        For each of these pieces the summary of what lies before it; and for each subscription that of all.
    """
    before: dict[int, Summary] = {}
    totals, start = [], 0
    for item in long:
        total = Summary()
        for piece in range(start, start + item.pieces):
            if piece in summaries:
                before[piece] = total
                total = total.then(summaries[piece])
        start += item.pieces
        totals.append(total)
    return before, tuple(totals)


def verdict_of(long: Sequence[Long], totals: Sequence[Summary], findings: Mapping[int, Findings]) -> Iterator[Judged]:
    """The verdict on each long subscription that has records, of the findings in its pieces."""
    start = 0
    for item, total in zip(long, totals, strict=True):
        found = Findings()
        for piece in range(start, start + item.pieces):
            if piece in findings:
                found = found.then(findings[piece])
        start += item.pieces
        if total.rows is not None:
            yield verdict(found, total)
