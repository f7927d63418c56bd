"""Runs judged as they come: a streaming job that takes note of what it has judged."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from reactive_runtime._core.runtime import primitives
from reactive_runtime._support.public_names import at_home
from reactive_runtime.errors import TraceError
from reactive_runtime.judging._stores import few, roots_of
from reactive_runtime.spark._session.spark_session import literal, local_path
from reactive_runtime.spark._verdict import judging
from reactive_runtime.spark._verdict.tables import one_verifier
from reactive_runtime.spark._verdict.traces import Verdict, judged_runs
from reactive_runtime.testing.trace import (
    arrived,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["follow"]

LOOK_SECONDS: Final = 2
"""Between two looks of `follow` for runs that have not come as a whole."""


def follow(
    spark: SparkSession,
    folder: Path | str,
    out: Path | str,
    judged: Callable[[Verdict], object],
    unreadable: Callable[[TraceError], object],
    *,
    late_signals: int = 1,
    once: bool = False,
    runs_at_once: int = 16,
) -> None:
    """Judge each run below `folder` when it is complete, until interrupted.

    A Structured Streaming job: it writes down below `out` (`checkpoint`) which runs it has judged, and goes on from
    there when it is started again, however it ended. Each run is judged once; a batch that was cut off is judged again
    from its beginning, and replaces what it had written. A run whose metadata have come before its files is reported to
    `unreadable` as well, and waited for (`waiting.json` names it), however long that takes; with `once`, until the next
    time. A run that was killed has no end, and is left to `verify`.

    Args:
        spark: The session.
        folder: Where runs appear.
        out: The folder of the tables.
        judged: Called with the verdict of each batch.
        unreadable: Called for each run that can't be judged; the others are.
        late_signals: How many signals may follow a cancel that came from outside, where the trace does not say.
        once: Whether to judge what is there by now, and return.
        runs_at_once: The most runs of a batch.

    Raises:
        TraceError: `folder` is none, or another verifier is at work below `out`.
        Exception: A batch has raised it; the job has ended.

    Thread:
        `judged` and `unreadable` are called on threads of the job, one batch at a time.
    """
    if not Path(folder).is_dir():
        raise TraceError(f"{folder}: is no folder")
    with one_verifier(Path(out)):
        _Followed(spark, Path(folder), Path(out), judged, unreadable, late_signals).run(once, runs_at_once)


class _Followed:
    """The job of `follow`."""

    def __init__(
        self,
        spark: SparkSession,
        folder: Path,
        out: Path,
        judged: Callable[[Verdict], object],
        unreadable: Callable[[TraceError], object],
        late_signals: int,
    ) -> None:
        self._spark = spark
        self._folder = folder
        self._out = out
        self._on_judged = judged
        self._unreadable = unreadable
        self._late_signals = late_signals
        self._once = False
        self._one_batch = primitives.Lock()  # held while one is judged: there are those of Spark, and those that waited
        self._waiting = _Waiting(out / "waiting.json")  # _one_batch
        self._failure: BaseException | None = None  # _one_batch; the first

    def run(self, once: bool, runs_at_once: int) -> None:
        """Until interrupted, or once."""
        self._once = once
        ended = (
            self._spark.readStream.format("text")
            .option("wholetext", "true")
            .option("recursiveFileLookup", "true")
            .option("pathGlobFilter", "metadata.json")
            .option("maxFilesPerTrigger", runs_at_once)
            .option("maxFileAge", "36500d")  # by default, a file a week older than the newest is passed over
            .load(literal(self._folder))
        )
        writer = ended.writeStream.foreachBatch(self._batch)
        writer = writer.option("checkpointLocation", local_path(self._out / "checkpoint"))
        query = (writer.trigger(availableNow=True) if once else writer.trigger(processingTime="2 seconds")).start()
        try:
            while not query.awaitTermination(LOOK_SECONDS):
                if not once:
                    self._judge([])
            self._judge([])
            for run in self._waiting.runs if once else ():
                self._not_yet(run)
        except Exception as error:
            if self._failure is not None:
                raise self._failure from error
            raise
        finally:
            query.stop()

    def _not_yet(self, run: Path) -> None:
        self._unreadable(
            TraceError(f"{run}: not all files that it says it holds are there: it is judged when they are")
        )

    def _batch(self, rows: DataFrame, _: int) -> None:
        from pyspark.sql import functions as F

        try:
            found = rows.select(F.input_file_name().alias("file")).distinct().collect()
            self._judge(sorted(_path(row["file"]).parent for row in found))
        except BaseException as error:
            with self._one_batch:
                self._failure = self._failure or error
            raise

    def _judge(self, new: Sequence[Path]) -> None:
        """The runs that are new, and those that were waited for and are there."""
        with self._one_batch:
            there = []
            for run in dict.fromkeys([*self._waiting.runs, *new]):
                if arrived(run):
                    there.append(run)
                elif run not in self._waiting.runs:
                    self._waiting.add(run)
                    if not self._once:
                        self._not_yet(run)
            if there:
                roots = roots_of(map(str, there))
                runs = there if few(roots, judging.FEW) else None
                verdict = judged_runs(
                    self._spark, roots, runs, self._out, self._late_signals, self._unreadable, follows=True
                )
                if verdict.summary:
                    self._on_judged(verdict)
                self._waiting.remove(there)  # last: what is killed before is judged again


class _Waiting:
    """The runs whose metadata have come, and their files have not; kept in a file."""

    def __init__(self, file: Path) -> None:
        self._file = file
        try:
            self.runs = [Path(load) for load in json.loads(file.read_text(encoding="utf-8"))]
        except (OSError, ValueError):
            self.runs = []

    def add(self, run: Path) -> None:
        """One more."""
        self._write([*self.runs, run])

    def remove(self, runs: Sequence[Path]) -> None:
        """These are there."""
        left = [item for item in self.runs if item not in runs]
        if left != self.runs:
            self._write(left)

    def _write(self, runs: list[Path]) -> None:
        draft = self._file.with_suffix(".next")
        draft.write_text(json.dumps([str(item) for item in runs]), encoding="utf-8")
        draft.replace(self._file)
        self.runs = runs


def _path(uri: str) -> Path:
    """The file that Spark names so."""
    return Path(unquote(urlsplit(uri).path))


at_home("reactive_runtime.spark", follow)
