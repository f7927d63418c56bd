"""How much a verdict will cost, before it begins; and how far it has come, while it runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from reactive_runtime._core.runtime import primitives
from reactive_runtime._support.public_names import at_home
from reactive_runtime.errors import TraceError
from reactive_runtime.judging._gathering import MOST
from reactive_runtime.judging._stores import roots_of
from reactive_runtime.spark._session.spark_errors import is_connected
from reactive_runtime.spark._verdict.judging import cores_of, plan_runs_found
from reactive_runtime.spark._verdict.run_planning import plan_runs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Estimate", "Progress", "estimate"]

_READ, _JUDGE, _MOVE = 0.1e-6, 0.12e-6, 0.35e-6
"""Seconds of a core for a record (benchmarks/trace_pipeline.py)."""

_OPEN: Final = 0.5e-3
"""Seconds of a core to open a file (benchmarks/planning.py)."""

_COMPARE: Final = 400e6
"""Bytes a second whose checksum a core computes."""

_RECORD: Final = 400
"""Bytes that a record takes while it is judged."""


@dataclass(frozen=True)
class Estimate:
    """The cost of a verdict, as the footers of its files have it."""

    runs: int
    files: int
    rows: int
    size: int
    """Bytes of all files."""
    tasks: int
    """That judge."""
    cores: int
    """Tasks that run side by side."""
    memory: int
    """Bytes that a task holds, at most."""
    seconds: float
    """With nothing else on the cores; a rough guess."""
    plan: str
    """How the runs are judged, in a line."""


def estimate(
    spark: SparkSession, folders: Sequence[Path | str], unreadable: Callable[[TraceError], object]
) -> Estimate:
    """Plan the verdict on all runs below the folders, and judge nothing.

    Args:
        spark: The session.
        folders: Folders of runs.
        unreadable: Called for each run that can't be judged, as far as that shows without reading all bytes.

    Returns:
        The cost of the verdict.

    Raises:
        TraceError: A folder has no runs.
    """
    cores = cores_of(spark)
    runs = plan_runs(spark, roots_of(map(str, folders)), unreadable, cores, compare=False)
    try:
        how = plan_runs_found(spark, runs)
    finally:
        runs.kept.release()
    cores = cores_of(spark)  # again: executors of a cluster may have come since
    each = how.again * _READ + _JUDGE if how.way == "ranges" else _READ + _JUDGE + _MOVE
    used = max(min(cores, how.tasks), 1)
    seconds = (how.rows * each + how.files * _OPEN + how.size / _COMPARE) / used
    memory = min(how.largest, MOST) * _RECORD
    known = (runs.count, how.files, how.rows, how.size, how.tasks, cores)
    return Estimate(*known, memory, seconds, how.explain())


class Progress:
    """Reports every few seconds how many tasks of the session's running stages have ended. A context manager.

    Args:
        spark: The session. Of Spark Connect, nothing is reported.
        say: Called with a line, on a thread of its own.
        every: Seconds between two lines.
    """

    def __init__(self, spark: SparkSession, say: Callable[[str], object], every: float = 10.0) -> None:
        self._tracker: Any = None if is_connected(spark) else spark.sparkContext.statusTracker()
        self._say = say
        self._every = every
        self._over = primitives.Event()
        self._thread = primitives.Thread(target=self._report, name="progress of the verdict", daemon=True)

    def __enter__(self) -> Progress:
        if self._tracker is not None:
            self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._over.set()
        if self._tracker is not None:
            self._thread.join()

    def _report(self) -> None:
        begin = primitives.monotonic()
        while not self._over.wait(self._every):
            try:
                line = self._line()
            except Exception:  # the session has ended: that is for the verdict to say
                return
            if line:
                self._say(f"{line}; {primitives.monotonic() - begin:.0f} s so far")

    def _line(self) -> str:
        """Of all stages that run; empty if none does."""
        tasks = ended = running = failed = 0
        for job in self._tracker.getActiveJobsIds():
            found = self._tracker.getJobInfo(job)
            for stage in found.stageIds if found else ():
                known = self._tracker.getStageInfo(stage)
                if known and known.numActiveTasks:
                    tasks += known.numTasks
                    ended += known.numCompletedTasks
                    running += known.numActiveTasks
                    failed += known.numFailedTasks
        again = f", {failed} failed and run again" if failed else ""
        return f"{ended} of {tasks} tasks have ended, {running} run{again}" if tasks else ""


at_home("reactive_runtime.spark", Estimate, estimate)
