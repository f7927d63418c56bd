"""Runs that are judged: planned by this process, or by tasks where there are more files than it should look at."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Protocol

from reactive_runtime.errors import TraceError
from reactive_runtime.judging._examining import GROUP, HELD
from reactive_runtime.judging._files import Group, footers
from reactive_runtime.spark._verdict.judging import Found, cores_of, judge_files, judge_runs
from reactive_runtime.spark._verdict.lineage import Entry, an_entry, entry_of, index_of, lineage_of, month_of
from reactive_runtime.spark._verdict.planning import path_of
from reactive_runtime.spark._verdict.run_notes import notes_on
from reactive_runtime.spark._verdict.run_planning import SAID, RunsInTasks, without_damaged, without_runs
from reactive_runtime.spark._verdict.tables import Draft, facts_of
from reactive_runtime.testing.trace import Held, metadata_of, read_through

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["ByDriver", "ByTasks", "Source", "notes_of"]

_AROUND: Final = 1_000
"""Row groups that are looked at, at most, to show the signals around a breach."""


_OF_RUN: Final = ("folder", "run", "identity", "rows", "complete", "checksum", "text", "signature")
"""Columns of a run: `checksum` is the digest of its contents, `text` its metadata."""


def notes_of(held: Sequence[Held]) -> list[str]:
    """Notes on these runs, a line each."""
    now = datetime.now(UTC)
    return [
        line for item in held for line in notes_on(str(item.folder), item.complete, metadata_of(item.folder) or {}, now)
    ]


class Source(Protocol):
    """Runs that can be judged."""

    @property
    def names(self) -> list[str]:
        """Of the runs."""
        ...

    @property
    def notes(self) -> list[str]:
        """Notes on them, a line each; of many runs, on the first."""
        ...

    def judged(self, spark: SparkSession, late_signals: int) -> Found:
        """The findings in them."""
        ...

    def facts(self, runs: set[str]) -> list[dict[str, Any]]:
        """A row of the table of runs for each of these."""
        ...

    def groups(self, chosen: Sequence[Mapping[str, Any]]) -> list[Group]:
        """Row groups that may hold these subscriptions; of many, those of each that begin first."""
        ...

    def entries(self, late_signals: int) -> dict[str, Entry]:
        """The entry of each run, by name, where it is judged now."""
        ...

    def write_lineage(self, entries: Mapping[str, Entry], draft: Draft) -> None:
        """Write a row for each file."""

    def without(self, runs: Collection[str]) -> Source:
        """The others than these runs."""
        ...

    def whole(self, skipped: Callable[[TraceError], object]) -> Source | None:
        """The runs without those that can't be read to their end; None if that is none of them."""
        ...

    def release(self) -> None:
        """Free what was kept of the plan."""


@dataclass(frozen=True)
class ByDriver:
    """A few runs: this process has looked at their files."""

    held: Sequence[Held]

    @property
    def names(self) -> list[str]:
        return [item.run for item in self.held]

    @property
    def notes(self) -> list[str]:
        return notes_of(self.held)

    def judged(self, spark: SparkSession, late_signals: int) -> Found:
        return judge_files(spark, [file for item in self.held for file in item.files], late_signals=late_signals)

    def facts(self, runs: set[str]) -> list[dict[str, Any]]:
        known = {item.run: item for item in self.held}
        rows = []
        for run in sorted(runs):
            held = known.get(run)
            if held is None:
                rows.append(facts_of(run, {}, None, None, False))
            else:
                rows.append(facts_of(run, metadata_of(held.folder) or {}, held.rows, held.complete, True))
        return rows

    def groups(self, chosen: Sequence[Mapping[str, Any]]) -> list[Group]:
        return footers([file for item in self.held for file in item.files]) if chosen else []

    def entries(self, late_signals: int) -> dict[str, Entry]:
        return {item.run: entry_of(item, late_signals) for item in self.held}

    def write_lineage(self, entries: Mapping[str, Entry], draft: Draft) -> None:
        draft.add(lineage_of(self.held, entries), "lineage")

    def without(self, runs: Collection[str]) -> ByDriver:
        return ByDriver([item for item in self.held if item.run not in runs])

    def whole(self, skipped: Callable[[TraceError], object]) -> ByDriver | None:
        left = []
        for item in self.held:
            try:
                read_through(item)
            except TraceError as error:
                skipped(error)
            else:
                left.append(item)
        return None if len(left) == len(self.held) else ByDriver(left)

    def release(self) -> None:
        pass


@dataclass(frozen=True)
class ByTasks:
    """Any number of runs; this process has a row for each run, and none for a file."""

    spark: SparkSession
    plan: RunsInTasks

    @cached_property
    def _rows(self) -> list[Any]:
        return self.plan.runs.select(*_OF_RUN).collect()

    @property
    def names(self) -> list[str]:
        return [row["run"] for row in self._rows]

    @property
    def notes(self) -> list[str]:
        now = datetime.now(UTC)
        lines = (
            line
            for row in sorted(self._rows, key=lambda row: str(row["folder"]))
            for line in notes_on(row["folder"], row["complete"], json.loads(row["text"]), now)
        )
        return [*self.plan.notes, *islice(lines, SAID)]

    def judged(self, spark: SparkSession, late_signals: int) -> Found:
        return judge_runs(spark, self.plan, late_signals)

    def facts(self, runs: set[str]) -> list[dict[str, Any]]:
        known = {row["run"]: row for row in self._rows}
        rows = []
        for run in sorted(runs):
            row = known.get(run)
            metadata = json.loads(row["text"]) if row else {}
            rows.append(facts_of(run, metadata, row and row["rows"], row and row["complete"], row is not None))
        return rows

    def groups(self, chosen: Sequence[Mapping[str, Any]]) -> list[Group]:
        from pyspark.sql import Window
        from pyspark.sql import functions as F

        if not chosen:
            return []
        of = []
        for number, (run, subscription) in enumerate(sorted({(row["run"], row["subscription"]) for row in chosen})):
            mine = F.col("run").isNull() | (F.col("run") == run)
            within = F.lit(subscription).between(F.col("low"), F.col("high"))
            of.append(F.when(mine & within, F.lit(number)))
        each = F.explode(F.array_compact(F.array(*of)))
        found = self.plan.groups.where(F.col("kind") == GROUP).withColumn("of", each).withColumn("path", path_of())
        begins = Window.partitionBy("of").orderBy("least", "path", "number")
        found = found.withColumn("nth", F.row_number().over(begins)).where(F.col("nth") <= _AROUND)
        names = ("path", "number", "rows", "run", "low", "high", "least")
        return [Group(*row) for row in found.select(*names).distinct().collect()]

    def entries(self, late_signals: int) -> dict[str, Entry]:
        entries = {}
        for row in self._rows:
            known = (row["signature"], row["identity"], row["checksum"], row["complete"], row["rows"])
            month = month_of(json.loads(row["text"]).get("started"))
            entries[row["run"]] = an_entry(row["run"], row["folder"], *known, month, late_signals)
        return entries

    def write_lineage(self, entries: Mapping[str, Entry], draft: Draft) -> None:
        index = self.spark.createDataFrame(index_of(entries.values()))
        counted = self.plan.groups.where(f"kind = {HELD}").select("folder", "file", "rows")
        files = self.plan.files.join(counted, ["folder", "file"]).withColumnRenamed("rows", "file_records")
        files = files.select("folder", "file", "file_records", "checksum").join(index, "folder")
        draft.add_frame(files.select(*index.columns, "file", "file_records", "checksum"), "lineage")

    def without(self, runs: Collection[str]) -> ByTasks:
        return ByTasks(self.spark, without_runs(self.plan, runs))

    def whole(self, skipped: Callable[[TraceError], object]) -> ByTasks | None:
        left = without_damaged(self.plan, skipped, cores_of(self.spark))
        return None if left is None else ByTasks(self.spark, left)

    def release(self) -> None:
        self.plan.kept.release()
