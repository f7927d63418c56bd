"""Long subscriptions, each judged by many tasks: two jobs, between which the driver merges summaries.

All records are moved once, those of a long subscription to the tasks of its pieces, and stay there on disk. The first
job sums up each piece, the second judges each piece behind what lies before it. The driver receives some kilobytes for
each piece, and a piece has about a million records.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from reactive_runtime.judging._files import RANGE, long_from
from reactive_runtime.judging._kernel import schema_of
from reactive_runtime.judging._long import (
    COUNTED,
    Long,
    Pieces,
    before_each,
    counted,
    long_of,
    verdict_of,
)
from reactive_runtime.judging._pieces import Summary
from reactive_runtime.judging._stores import batches
from reactive_runtime.spark._verdict.judge_tasks import ALL, JudgeSent, Settings, described, given, unpacked
from reactive_runtime.spark._verdict.planning import Kept, spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["find_long", "judge_with_long", "parts_of_long"]

_MOST_PARTS: Final = 10_000
"""Tasks that pieces are spread over, at most."""

_OF_PIECES: Final = schema_of(piece=pa.int64(), what=pa.binary())


@dataclass(frozen=True)
class _Count:
    """In a task: the subscriptions with most records in some of its row groups."""

    def __call__(self, some: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for groups in described(some):
            yield from counted([(file, number) for file, number in groups])


@dataclass(frozen=True)
class _SumUp:
    """In a task: the summary of each of its pieces."""

    settings: Settings
    long: tuple[Long, ...]

    def __call__(self, some: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with _filled(self.settings, self.long, some) as pieces:
            yield from batches(((piece, pickle.dumps(found)) for piece, found in pieces.summed_up()), _OF_PIECES)


@dataclass(frozen=True)
class _JudgePieces:
    """In a task: the findings in each of its pieces."""

    settings: Settings
    long: tuple[Long, ...]
    before: dict[int, bytes]
    """The summary of what lies before each piece; a task unpacks those of its own pieces."""

    def __call__(self, some: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with _filled(self.settings, self.long, some) as pieces:
            yield from batches(
                ((piece, pickle.dumps(found)) for piece, found in pieces.judged(self._before)), _OF_PIECES
            )

    def _before(self, piece: int) -> Summary:
        found: Summary = pickle.loads(self.before[piece])  # from the driver of this job
        return found


def _filled(settings: Settings, long: tuple[Long, ...], some: Iterator[pa.RecordBatch]) -> Pieces:
    pieces = Pieces(long, settings.late_signals, settings.upto, settings.most)
    try:
        for rows in unpacked(some):
            pieces.add(rows)
    except BaseException as error:
        pieces.__exit__(type(error), error, error.__traceback__)
        raise
    return pieces


def find_long(groups: DataFrame, rows: int, cores: int) -> tuple[Long, ...]:
    """The subscriptions that one task each would take too long for.

    Args:
        groups: A row for each task, with the row groups that it sends.
        rows: How many records there are in all.
        cores: How many tasks run side by side.

    Returns:
        How they are cut; none where all are short, as far as a sample tells.
    """
    from pyspark.sql import functions as F

    least = long_from(rows, cores)
    if rows < least:
        return ()
    found = groups.mapInArrow(_Count(), spark_schema(COUNTED)).groupBy("run", "subscription")
    sums = found.agg(F.sum("count").alias("count"), F.min("least").alias("least"), F.max("most").alias("most"))
    return long_of([row.asDict() for row in sums.where(f"count >= {least}").collect()], RANGE)


def parts_of_long(long: Sequence[Long]) -> int:
    """How many tasks share the pieces."""
    return min(sum(item.pieces for item in long), _MOST_PARTS)


def judge_with_long(sent: DataFrame, parts: int, settings: Settings, long: tuple[Long, ...], held: Kept) -> DataFrame:
    """Judge what was sent: the pieces of long subscriptions now, the others when Spark computes the result.

    Args:
        sent: Packed rows with the places of their tasks, those of pieces from `parts` on.
        parts: How many tasks judge the others.
        settings: How.
        long: The long subscriptions.
        held: Keeps the rows on the disks of the executors.

    Returns:
        The findings in all, rows of ALL.
    """
    there = held.add(sent.repartitionById(parts + parts_of_long(long), "place"))
    mine, others = (there.where(f"place {which} {parts}").select("blob") for which in (">=", "<"))
    before, totals = before_each(long, _collected(mine, _SumUp(settings, long)))
    packed = {piece: pickle.dumps(summary) for piece, summary in before.items()}
    findings = _collected(mine, _JudgePieces(settings, long, packed))
    found = pa.Table.from_batches(given(verdict_of(long, totals, findings)), ALL)
    spark: SparkSession = sent.sparkSession
    frame = others.mapInArrow(JudgeSent(settings), spark_schema(ALL))
    return frame.unionByName(spark.createDataFrame(found)) if len(found) else frame


def _collected(mine: DataFrame, work: Any) -> dict[int, Any]:
    rows = mine.mapInArrow(work, spark_schema(_OF_PIECES)).collect()
    return {row["piece"]: pickle.loads(row["what"]) for row in rows}  # from tasks of this job
