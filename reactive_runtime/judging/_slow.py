"""The judge for a subscription that does not fit into memory: the reference, a record at a time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from reactive_runtime.judging._kernel import SUBSCRIPTIONS, VIOLATIONS, WAITS, Judged
from reactive_runtime.testing._records import Record
from reactive_runtime.testing._reference import Reference

__all__ = ["judge_in_order"]


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


def judge_in_order(records: Iterable[Record], late_signals: int = 1) -> Judged:
    """Judge records that come in the order of `in_order` of the reference; subscriptions may be mixed.

    What is kept is what is known of each subscription, whatever the number of its records.
    """
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
