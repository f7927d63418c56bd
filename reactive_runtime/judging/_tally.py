"""Counts the findings of a judge in trace files: the same for the same records, however they lie in files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from reactive_runtime.judging._files import Plan, plan, read, read_range
from reactive_runtime.judging._gathering import MOST, Gathered
from reactive_runtime.judging._kernel import Judged
from reactive_runtime.judging._rows import VALUED, Array, Rows

__all__ = ["Tally", "tally"]


@dataclass
class Tally:
    """Counts of a verdict, and of the records that it is on."""

    records: int = 0
    subscriptions: int = 0
    signals: int = 0
    elements: int = 0
    late: int = 0
    broken: Counter[str] = field(default_factory=Counter)
    """By rule: how many records break it."""
    breaking: Counter[str] = field(default_factory=Counter)
    """By rule: how many subscriptions break it."""
    fields: int = 0
    """A sum over all records of a number that all fields which a judge reads make."""

    def add(self, found: Judged) -> None:
        """Count what was found in some subscriptions."""
        self.subscriptions += len(found.subscriptions)
        for name in ("signals", "elements", "late"):
            numbers = found.subscriptions[name].drop_null().to_numpy()
            setattr(self, name, getattr(self, name) + int(numbers.sum()))
        rows: list[dict[str, Any]] = found.violations.select(["rule", "count"]).to_pylist()
        for row in rows:
            self.broken[row["rule"]] += row["count"]
            self.breaking[row["rule"]] += 1

    def count(self, rows: Rows) -> None:
        """Count some records."""
        self.records += len(rows)
        self.fields = (self.fields + _mixed(rows)) % 2**64

    def unlike(self, other: Tally) -> str:
        """The first count that differs in the other, in words; empty where all are the same."""
        for name, mine in vars(self).items():
            its = getattr(other, name)
            if mine != its:
                return f"{name}: {_shown(mine)} before, {_shown(its)} after"
        return ""


def _shown(count: object) -> str:
    return f"{count:,}" if isinstance(count, int) else str(dict(count)) if isinstance(count, Counter) else str(count)


def tally(files: Sequence[Path], most: int = MOST) -> Tally:
    """Judge the records of these files.

    Args:
        files: Trace files.
        most: How many records memory holds at once.

    Returns:
        The counts.

    Raises:
        TraceError: Names a file that can't be read, or is no trace.
    """
    found = Tally()
    planned = plan(files, most=most // 2 or 1)
    if planned.way == "ranges":
        for span in planned.ranges:
            with Gathered(most=most) as gathered:
                for rows in read_range(span):
                    found.count(rows)
                    gathered.add(rows)
                for part in gathered.judged():
                    found.add(part)
        return found
    with Gathered(most=most) as gathered:
        for file, numbers in _groups(planned).items():
            for rows in read(file, numbers):
                found.count(rows)
                gathered.add(rows)
        for part in gathered.judged():
            found.add(part)
    return found


def _groups(planned: Plan) -> dict[str, list[int]]:
    """The row groups, by file."""
    groups: dict[str, list[int]] = {}
    for group in planned.groups:
        groups.setdefault(group.file, []).append(group.number)
    return groups


_COLUMNS = (
    "subscription", "flags", "elements", "thread", "n", "begin", "end", "ns", "value", "late_signals",
)  # fmt: skip


def _mixed(rows: Rows) -> int:
    """A number that all columns of all rows make, whatever the order of the rows."""
    mixed = _word(rows.runs, rows.run) * np.uint64(3) + _word(rows.scenarios, rows.scenario)
    for name in _COLUMNS:
        mixed = mixed * np.uint64(0x9E3779B97F4A7C15) + _number(rows, name)
        mixed ^= mixed >> np.uint64(29)
    return int(mixed.sum(dtype=np.uint64))


def _number(rows: Rows, name: str) -> Array:
    numbers: Array = getattr(rows, name).astype(np.int64).view(np.uint64)
    if name != "value" or not rows.large:
        return numbers
    # Without VALUED it is a place among the large values, which are other places in other files.
    large = np.array([0, *(crc32(hex(value).encode()) for value in rows.large)], np.uint64)
    places = np.where(rows.flags & VALUED != 0, 0, rows.value)
    return np.where(places > 0, large[places], numbers)


def _word(words: Sequence[str], places: Array) -> Array:
    found: Array = np.array([crc32(word.encode()) for word in words], np.uint64)[places]
    return found
