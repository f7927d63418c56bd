"""What a judge found, as rows that can be compared with another's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from reactive_runtime.judging import Judged
from reactive_runtime.judging._slow import judge_in_order
from reactive_runtime.testing import Record
from reactive_runtime.testing._records import cut, in_order

__all__ = ["by_reference", "rows_of", "same"]

Rows = dict[str, Counter[tuple[Any, ...]]]


def rows_of(judged: Judged | Mapping[str, pa.Table]) -> Rows:
    """All rows of the three tables, in no order, each as often as it is there."""
    tables = judged._asdict() if isinstance(judged, Judged) else judged
    return {name: Counter(zip(*table.to_pydict().values(), strict=True)) for name, table in tables.items()}


def by_reference(records: Sequence[Record], late_signals: int = 1, upto: Mapping[str, int] | None = None) -> Rows:
    """What the reference finds."""
    upto = upto or {}
    mine = [record for record in records if record.run not in upto]
    for run, ticket in upto.items():
        mine += cut([record for record in records if record.run == run], ticket)
    return rows_of(judge_in_order(in_order(mine), late_signals))


def same(found: Rows, expected: Rows, records: Sequence[Record]) -> None:
    """AssertionError shows the rows that differ, and the records of the first of their subscriptions."""
    for name in sorted(expected, key="violations".__ne__):  # they name the rules that differ: these come first
        rows = expected[name]
        missing, more = rows - found[name], found[name] - rows
        if missing or more:
            run, _, number = next(iter(missing or more))[:3]
            of = [item for item in in_order(records) if item.run == run and item.subscription == number]
            shown = "\n".join(map(str, of[:60]))
            raise AssertionError(f"{name}: not found {list(missing)[:5]}, found besides {list(more)[:5]}\n{shown}")
