"""The signals around a breach, looked up in the files that hold them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow.compute as pc
import pyarrow.parquet as parquet

from reactive_runtime.judging._files import Group, footers
from reactive_runtime.judging._stores import opened
from reactive_runtime.testing._checker import Violation, check
from reactive_runtime.testing._records import COLUMNS, Record, cut
from reactive_runtime.testing.trace import records_of

__all__ = ["examples", "examples_in"]

_SHOWN: Final = 100_000
"""How many records of a subscription are looked at, to show the few around the breach."""

_READ: Final = 5_000_000
"""Records of the row groups that are read for a breach, about: a few seconds."""

_BEYOND: Final = 1_000
"""How many of them may come after it: one signal too many after a cancel may come some way after the first."""


def examples(
    files: Sequence[Path],
    chosen: Sequence[Mapping[str, Any]],
    late_signals: int = 1,
    upto: Mapping[str, int] | None = None,
    context: int = 12,
) -> list[Violation]:
    """For each row of a judge's violations, the violation as the checker sees it there, with the signals around."""
    return examples_in(footers(files) if chosen else [], chosen, late_signals, upto, context)


def examples_in(
    groups: Sequence[Group],
    chosen: Sequence[Mapping[str, Any]],
    late_signals: int = 1,
    upto: Mapping[str, int] | None = None,
    context: int = 12,
) -> list[Violation]:
    """As `examples`, of files whose row groups are known.

    Of each breach, row groups of `_READ` records are read at most, those that begin first.
    """
    found: list[Violation] = []
    for row in chosen:
        run, subscription, first = row["run"], row["subscription"], row["first"]
        held = [group for group in groups if group.run in (None, run) and group.low <= subscription <= group.high]
        records = _first(held, run, subscription, first)
        if upto and run in upto:
            records = cut(records, upto[run])
        judged = check(records, late_signals=late_signals, context=context)
        # The whole subscription was judged, of which this may be a part: how often it breaks the rule is known.
        for breach in judged:
            if breach.rule == row["rule"]:
                breach.count = row["count"]
                found.append(breach)
    return found


def _first(groups: Sequence[Group], run: str, subscription: int, first: int) -> list[Record]:
    """The first records of the subscription, up to some beyond the ticket, as far as they are shown."""
    records: list[Record] = []
    last, read = 2**63 - 1, 0
    for item in sorted(groups, key=lambda group: (group.least, group.file, group.number)):
        if item.least > last or read >= _READ:
            break  # nothing in the others is shown, or there is too much of it
        read += item.rows
        records += _records(item.file, item.number, run, subscription, last)
        records.sort(key=lambda record: record.begin)
        most = min(sum(record.begin <= first for record in records) + _BEYOND, _SHOWN)
        del records[most:]
        last = records[-1].begin if len(records) == most else last
    return records


def _records(file: str, number: int, run: str, subscription: int, last: int) -> list[Record]:
    """The first `_SHOWN` records of the subscription in a row group that begin at that ticket or before."""
    with opened(file) as data, parquet.ParquetFile(data) as whole:
        names = [name for name in COLUMNS if name in whole.schema_arrow.names]
        table = whole.read_row_group(number, columns=names)
    mine = (pc.field("subscription") == subscription) & (pc.field("run") == run) & (pc.field("begin") <= last)
    table = table.filter(mine)
    return records_of(table.take(pc.sort_indices(table, [("begin", "ascending")])[:_SHOWN]))
