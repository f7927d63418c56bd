"""The tables of a verdict: Parquet, a partition a run, so that a run that is judged again replaces itself.

    <verdict>/.next/      what a verifier writes: no part of the verdict
    <verdict>/.commit/    the same when it is whole: it is the verdict now, and is moved to where it belongs
    <verdict>/<table>/run=<run>/part-….parquet
    <verdict>/verdict.json   which runs were judged together the last time, and which could not be
    <verdict>/.lock       held by the one verifier there may be

A verdict takes the place of the one before in one rename, of `.next` to `.commit`. A verifier that comes after a kill
moves what is left there (`settled`), and does it as often as it takes: what has been moved is no longer there, and what
was to be removed stays removed.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from reactive_runtime._results.states import cut_short_of
from reactive_runtime.errors import TraceError
from reactive_runtime.spark._feed.locks import FolderLock, HeldError
from reactive_runtime.spark._session.spark_session import local_path

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame

__all__ = [
    "EXAMPLES",
    "RUNS",
    "Draft",
    "Together",
    "facts_of",
    "missing",
    "one_verifier",
    "settled",
    "table",
    "together",
]

Columns = Mapping[str, str]
"""Names, and the functions of pyarrow that make their types."""

RUNS: Final[Columns] = {
    "run": "string",
    "started": "string",
    "complete": "bool_",
    "version": "string",
    "commit": "string",
    "python": "string",
    "machine": "string",
    "seed": "int64",
    "threads": "int64",
    "seconds": "float64",
    "records": "int64",
    "load": "string",
    "given_up": "string",
    "failed": "string",
    "cut_short": "string",
    "scenarios": "string",
    "fault": "string",
    "fault_rule": "string",
}

EXAMPLES: Final[Columns] = {
    "run": "string",
    "scenario": "string",
    "subscription": "int64",
    "rule": "string",
    "seen": "string",
    "diagram": "string",
}

_MOST: Final = 1_000_000
"""Runs that may be written in one go: as many as anyone has."""


_BROUGHT: Final = 1_000_000
"""Rows that this process holds at once of a table that tasks have made."""

_RUNS_BROUGHT: Final = 1_000
"""Runs that one query names."""

_NEXT: Final = ".next"
_COMMIT: Final = ".commit"
_WORD: Final = "verdict.json"


@dataclass(frozen=True)
class Together:
    """What was judged together."""

    runs: list[str]
    unable: list[str] = field(default_factory=list)
    """Why others could not be judged, a line each."""


@contextlib.contextmanager
def one_verifier(to: Path) -> Iterator[None]:
    """Be the one that writes the verdict in that folder, for as long as the block runs.

    What an earlier one has left half moved is moved first. TraceError where another is at work, or it can't be written.
    """
    try:
        to.mkdir(parents=True, exist_ok=True)
        lock = FolderLock(to / ".lock")
    except HeldError as error:
        raise TraceError(f"{to}: a verifier is at work there ({error}): wait for it, or give another --out") from error
    except OSError as error:
        raise TraceError(f"{to}: can't be written: {error.strerror}") from error
    with contextlib.closing(lock):
        _moved(to)
        yield


def settled(to: Path) -> None:
    """For readers: move what a verifier that was killed has left. One that is at work moves it itself."""
    if (to / _COMMIT).is_dir():
        with contextlib.suppress(TraceError), one_verifier(to):
            return


def together(to: Path) -> Together | None:
    """What was judged together the last time; None where that is not known."""
    try:
        word = json.loads((to / _WORD).read_text(encoding="utf-8"))
        return Together([str(run) for run in word["runs"]], [str(why) for why in word["unable"]])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def missing(to: Path) -> str:
    """The first part that `verdict.json` says was written, and that is not there; empty where all are."""
    try:
        word = json.loads((to / _WORD).read_text(encoding="utf-8"))
        parts = [f"{name}/{item}" for name, items in word.get("tables", {}).items() for item in items]
        parts += [name for name, there in word.get("whole", {}).items() if there]
    except (OSError, ValueError, AttributeError, TypeError):
        return ""
    return next((item for item in parts if not any((to / item).glob("*.parquet"))), "")


class Draft:
    """A verdict that is being written. One at a time: the caller is the one verifier."""

    def __init__(self, to: Path) -> None:
        """TraceError where it can't be written."""
        self._to = to
        self.path: Path = to / _NEXT
        """Where its tables are written, each a folder of partitions `run=<run>`."""
        self.is_shared: bool = True
        """Whether tasks see that folder as this process does."""
        try:
            shutil.rmtree(self.path, ignore_errors=True)
            self.path.mkdir(parents=True)
        except OSError as error:
            raise TraceError(f"{to}: can't be written: {error.strerror}") from error

    def add(self, table: pyarrow.Table, name: str) -> None:
        """A table, its rows by run."""
        import pyarrow as pa
        from pyarrow import dataset

        try:
            dataset.write_dataset(
                table,
                self.path / name,
                format="parquet",
                partitioning=dataset.partitioning(pa.schema([("run", pa.string())]), flavor="hive"),
                existing_data_behavior="overwrite_or_ignore",
                max_partitions=_MOST,
            )
        except OSError as error:
            raise TraceError(f"{self._to / name}: can't be written: {error.strerror or error}") from error

    def add_frame(self, rows: DataFrame, name: str) -> None:
        """A table, its rows by run; tasks write it, or where they do not see the folder this process, bit by bit.

        Spark computes the rows several times then. TraceError names a run that has too many rows for this process.
        """
        from pyspark.sql import functions as F

        if self.is_shared:
            by_run = rows.repartition("run")  # many tasks write, and of a run one
            by_run.write.mode("append").partitionBy("run").parquet(local_path(self.path / name))
            return
        some: list[str] = []
        left = _BROUGHT
        for run, count in sorted((row["run"], row["count"]) for row in rows.groupBy("run").count().collect()):
            if count > _BROUGHT:
                raise TraceError(
                    f"{self._to / name}: run {run} has {count:,} rows there, and tasks do not see that folder: give an"
                    " --out that all machines of Spark see at one path"
                )
            if some and (count > left or len(some) == _RUNS_BROUGHT):
                self.add(rows.where(F.col("run").isin(some)).toArrow(), name)
                some, left = [], _BROUGHT
            some.append(run)
            left -= count
        if some:
            self.add(rows.where(F.col("run").isin(some)).toArrow(), name)

    def whole(self, name: str, table: pyarrow.Table) -> None:
        """A table that is not by run: it replaces the one before as a whole.

        `name` may be that of a part, `nights/month=2026-11`.
        """
        import pyarrow.parquet as parquet

        try:
            (self.path / name).mkdir(parents=True)
            parquet.write_table(table, self.path / name / "part-0.parquet")
        except OSError as error:
            raise TraceError(f"{self._to / name}: can't be written: {error.strerror or error}") from error

    def discard(self, name: str) -> None:
        """Remove a folder of the draft, which is no part of the verdict."""
        shutil.rmtree(self.path / name, ignore_errors=True)

    def commit(
        self, judged: Together, replaced: Collection[str], tables: Collection[str], whole: Collection[str]
    ) -> None:
        """It is the verdict now: what these `tables` said of `replaced`, runs, and all that the `whole` said, goes."""
        word = {
            "runs": judged.runs,
            "replaced": list(replaced),
            "unable": judged.unable,
            "judged": datetime.now(UTC).isoformat(timespec="seconds"),
            "tables": {name: sorted(item.name for item in (self.path / name).glob("run=*")) for name in tables},
            "whole": {name: (self.path / name).is_dir() for name in whole},
        }
        try:
            shutil.rmtree(self._to / _COMMIT, ignore_errors=True)  # of an earlier one: it was moved
            with (self.path / _WORD).open("w", encoding="utf-8") as file:
                file.write(json.dumps(word, indent=2) + "\n")
                file.flush()
                os.fsync(file.fileno())
            _settle(self.path)  # with the rename the word counts: it is whole by then, also after a power cut
            self.path.rename(self._to / _COMMIT)
            _settle(self._to)
        except OSError as error:
            raise TraceError(f"{self._to}: can't be written: {error.strerror}") from error
        _moved(self._to)


def _settle(folder: Path) -> None:
    """Have the names in that folder on the disk, as they are now."""
    there = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(there)
    finally:
        os.close(there)


def _moved(to: Path) -> None:
    """Bring what is in `.commit` to where it belongs; again, where that was cut off."""
    made = to / _COMMIT
    if not made.is_dir():
        return
    try:
        if (made / _WORD).exists():  # it goes last
            word = json.loads((made / _WORD).read_text(encoding="utf-8"))
            for name, partitions in word["tables"].items():
                _replaced(made / name, to / name, partitions, set(word["replaced"]))
            for name, there in word["whole"].items():
                if not there or (made / name).is_dir():
                    shutil.rmtree(to / name, ignore_errors=True)
                if (made / name).is_dir():
                    (to / name).parent.mkdir(parents=True, exist_ok=True)
                    (made / name).rename(to / name)
            (made / _WORD).replace(to / _WORD)
        shutil.rmtree(made)
    except (OSError, ValueError, KeyError) as error:
        raise TraceError(f"{to}: can't be written: {error}") from error


def _replaced(made: Path, to: Path, partitions: Collection[str], runs: Collection[str]) -> None:
    to.mkdir(parents=True, exist_ok=True)
    stays = {item for item in partitions if not (made / item).is_dir()}  # it was moved before
    for name in os.listdir(to):
        if name.startswith("run=") and name not in stays and unquote(name.removeprefix("run=")) in runs:
            shutil.rmtree(to / name)
    for name in partitions:
        if name not in stays:
            (made / name).rename(to / name)


def table(rows: Sequence[Mapping[str, Any]], columns: Columns) -> pyarrow.Table:
    """The rows as an Arrow table."""
    import pyarrow as pa

    return pa.Table.from_pylist(
        list(rows), schema=pa.schema([(name, getattr(pa, kind)()) for name, kind in columns.items()])
    )


def facts_of(
    run: str, metadata: Mapping[str, Any], rows: int | None, complete: bool | None, is_known: bool
) -> dict[str, Any]:
    """A row of the table of runs; what is not known of the run is null."""
    known = {**metadata, "cut_short": cut_short_of(metadata)}
    for name in ("given_up", "failed", "cut_short", "load", "scenarios"):
        said, kind = known.get(name), list if name == "scenarios" else dict
        known[name] = json.dumps(said if isinstance(said, kind) else kind())
    row = {**known, "run": run} | ({"records": rows, "complete": complete} if is_known else {})
    return {name: _fitting(row.get(name), kind) for name, kind in RUNS.items()}


def _fitting(value: object, kind: str) -> object:
    """The value, or none where it is not of its column's type: a run from elsewhere may say anything of itself."""
    if kind == "bool_":
        return value if isinstance(value, bool) else None
    if kind == "string":
        return value if isinstance(value, str) else None
    if not isinstance(value, (int, float)) or isinstance(value, bool) or abs(value) >= 2**63:
        return None
    if kind == "float64":
        return float(value)
    return value if isinstance(value, int) else None
