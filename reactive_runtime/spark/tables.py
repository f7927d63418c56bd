"""The tables of a verdict: Parquet, a partition a run, so that a run that is judged again replaces itself."""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from reactive_runtime.errors import TraceError
from reactive_runtime.testing.trace import metadata_of

if TYPE_CHECKING:
    import pyarrow

__all__ = ["EXAMPLES", "RUNS", "clear", "facts", "table", "write"]

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


def clear(to: Path, runs: Collection[str]) -> None:
    """Forget what the table says of these runs, and make its folder; TraceError where it can't be written."""
    try:
        to.mkdir(parents=True, exist_ok=True)
        for partition in to.glob("run=*"):
            if unquote(partition.name.removeprefix("run=")) in runs:
                shutil.rmtree(partition)
    except OSError as error:
        raise TraceError(f"{to}: can't be written: {error.strerror}") from error


def write(table: pyarrow.Table, to: Path, runs: Collection[str]) -> None:
    """Write what there is to say of these runs, and nothing else of them; TraceError where it can't be written."""
    import pyarrow as pa
    from pyarrow import dataset

    clear(to, runs)
    try:
        dataset.write_dataset(
            table,
            to,
            format="parquet",
            partitioning=dataset.partitioning(pa.schema([("run", pa.string())]), flavor="hive"),
            existing_data_behavior="overwrite_or_ignore",
            max_partitions=_MOST,
        )
    except OSError as error:
        raise TraceError(f"{to}: can't be written: {error.strerror or error}") from error


def table(rows: Sequence[Mapping[str, Any]], columns: Columns) -> pyarrow.Table:
    """The rows as an Arrow table."""
    import pyarrow as pa

    return pa.Table.from_pylist(
        list(rows), schema=pa.schema([(name, getattr(pa, kind)()) for name, kind in columns.items()])
    )


def facts(folders: Collection[Path], runs: Collection[str]) -> list[dict[str, Any]]:
    """A row of the table of runs for each; what is not known of a run is null."""
    known: dict[str, dict[str, Any]] = {}
    for folder in folders:
        told = metadata_of(folder) or {}
        told["load"] = json.dumps(told.get("load") or {})
        told["given_up"] = json.dumps(told.get("given_up") or {})
        known[told.get("run", folder.name.removeprefix("run="))] = told
    rows = [{**known.get(run, {}), "run": run} for run in runs]
    return [{name: _fitting(row.get(name), kind) for name, kind in RUNS.items()} for row in rows]


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
