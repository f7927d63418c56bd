"""What a judge found, as rows that can be compared with another's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from reactive_runtime.judging import SUBSCRIPTIONS, VIOLATIONS, WAITS, Judged
from reactive_runtime.testing import Record
from reactive_runtime.testing._records import cut, in_order
from reactive_runtime.testing._reference import Reference

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
    return rows_of(_judged(in_order(mine), late_signals))


class _Watched:
    """A subscription so far."""

    def __init__(self, first: Record, late_signals: int) -> None:
        self.scenario = first.scenario
        self.reference = Reference(late_signals)
        self.broken: dict[str, tuple[int, int]] = {}  # by rule: how often, and the first `begin`

    def feed(self, record: Record) -> None:
        for finding in self.reference.feed(record):
            count, first = self.broken.get(finding.rule, (0, finding.first.begin))
            self.broken[finding.rule] = (count + finding.times, min(first, finding.first.begin))


def _judged(records: Iterable[Record], late_signals: int) -> Judged:
    """The findings in records that come in order; subscriptions may be mixed."""
    watched: dict[tuple[str, int], _Watched] = {}
    for record in records:
        key = (record.run, record.subscription)
        if key not in watched:
            watched[key] = _Watched(record, late_signals)
        watched[key].feed(record)
    subscriptions: list[dict[str, Any]] = []
    violations: list[dict[str, Any]] = []
    waits: dict[tuple[str, str, str, int], tuple[int, int]] = {}
    for (run, subscription), item in watched.items():
        whose = {"run": run, "scenario": item.scenario, "subscription": subscription}
        past = item.reference.past
        subscriptions.append({**whose, **past.amounts()._asdict(), "broken": len(item.broken)})
        violations += (
            {**whose, "rule": rule, "count": count, "first": first} for rule, (count, first) in item.broken.items()
        )
        for (what, bucket), (count, longest) in past.all_waits().items():
            place = (run, item.scenario, what, bucket)
            before, most = waits.get(place, (0, 0))
            waits[place] = (before + count, max(most, longest))
    counted = [dict(zip(WAITS.names, (*place, *counts), strict=True)) for place, counts in waits.items()]
    return Judged(
        pa.Table.from_pylist(subscriptions, schema=SUBSCRIPTIONS),
        pa.Table.from_pylist(violations, schema=VIOLATIONS),
        pa.Table.from_pylist(counted, schema=WAITS),
    )


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
