"""Recorded runs judged in this process: on one thread, without Spark, some millions of records a second."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa

from reactive_runtime.judging._examples import examples
from reactive_runtime.judging._files import Range, plan, read_range
from reactive_runtime.judging._gathering import MOST, Gathered
from reactive_runtime.judging._kernel import SUBSCRIPTIONS, VIOLATIONS, WAITS, Judged
from reactive_runtime.testing._checker import Violation
from reactive_runtime.testing.trace import check_files

__all__ = ["judge_range", "judge_runs", "shown", "together"]


def judge_runs(
    folders: Sequence[Path | str],
    *,
    late_signals: int = 1,
    upto: Mapping[str, int] | None = None,
    most: int = MOST,
) -> Judged:
    """Judge all runs below the folders, in this process; memory is bounded by `most` records, and by what is found.

    Args:
        folders: As `testing.trace.check_files` takes each.
        late_signals: How many signals may follow a cancel from outside, where the trace does not say.
        upto: The ticket of each run that is judged as it was at that ticket. None: all runs are judged whole.
        most: How many records are held in memory at once.

    Returns:
        The findings, as Arrow tables, in order of run.

    Raises:
        TraceError: Names what is no trace.
    """
    files = [file for folder in folders for file in check_files(folder)]
    planned = plan(files, most=most // 2 or 1)
    if planned.way == "moved":  # ranges would read each record several times: read it once, and put it on disk
        planned = plan(files, way="ranges", most=max(planned.rows, 1))
    return together(found for span in planned.ranges for found in judge_range(span, late_signals, upto, most))


def judge_range(
    item: Range, late_signals: int = 1, upto: Mapping[str, int] | None = None, most: int = MOST
) -> Iterable[Judged]:
    """Judge one range of a plan."""
    with Gathered(late_signals=late_signals, upto=upto, most=most) as gathered:
        for rows in read_range(item):
            gathered.add(rows)
        yield from gathered.judged()


def together(parts: Iterable[Judged]) -> Judged:
    """All that was found, in order."""
    judged = list(parts)
    subscriptions = pa.concat_tables([SUBSCRIPTIONS.empty_table(), *(item.subscriptions for item in judged)])
    violations = pa.concat_tables([VIOLATIONS.empty_table(), *(item.violations for item in judged)])
    waits = pa.concat_tables([WAITS.empty_table(), *(item.waits for item in judged)])
    whose = ["run", "scenario", "what", "bucket"]
    counted = waits.group_by(whose).aggregate([("count", "sum"), ("largest", "max")])
    waits = counted.rename_columns([*whose, "count", "largest"]).cast(WAITS)
    return Judged(
        subscriptions.sort_by([("run", "ascending"), ("subscription", "ascending")]),
        violations.sort_by([("run", "ascending"), ("first", "ascending"), ("rule", "ascending")]),
        waits.sort_by([(name, "ascending") for name in whose]),
    )


_SHOWN: Final = 3


def shown(
    folders: Sequence[Path | str],
    judged: Judged,
    *,
    late_signals: int = 1,
    upto: Mapping[str, int] | None = None,
) -> list[Violation]:
    """The first few violations, each of another rule, with the signals around them.

    Args:
        folders: The folders that were judged.
        judged: The findings in them.
        late_signals: As for `judge_runs`.
        upto: As for `judge_runs`.

    Returns:
        At most three violations.

    Raises:
        TraceError: Names what is no trace.
    """
    rows = {row["rule"]: row for row in reversed(judged.violations.to_pylist())}
    chosen = sorted(rows.values(), key=lambda row: (row["run"], row["first"]))[:_SHOWN]
    files = [file for folder in folders for file in check_files(folder)]
    return examples(files, chosen, late_signals, upto)
