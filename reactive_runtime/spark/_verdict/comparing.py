"""Hold a run against those before it on its machine and Python, and keep what is known of these.

A history is gone through night by night (`regressions.History`). Below a verdict there is a file for each machine and
Python of all that is known after its newest complete run: `series/place=<digest>/part-0.parquet`. The next run goes on
from there, and costs the same however many nights there are before it. If runs come in another order, or the file is
of another version or damaged, the history is gone through from its beginning again, in the tables.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from reactive_runtime.errors import TraceError
from reactive_runtime.spark._verdict.regressions import ALL, History, Name, Seen

if TYPE_CHECKING:
    import pyarrow

__all__ = ["Compared", "compared", "regressions"]

_VERSION: Final = 1
"""Of what is kept: another one is not read."""

_COLUMNS: Final = {
    "run": "string",
    "scenario": "string",
    "what": "string",
    "now": "int64",
    "usual": "int64",
    "ratio": "float64",
    "spread": "float64",
    "runs": "int64",
    "slower": "bool_",
    "since": "string",
    "nights": "int64",
    "before": "int64",
}

Place = tuple[Any, Any]
"""A machine and a Python."""

Run = Mapping[str, Any]
"""A row of the table of runs."""


@dataclass(frozen=True)
class Compared:
    """The result of a comparison."""

    table: pyarrow.Table | None
    """A row a series; None where there is no history to judge by."""
    kept: dict[str, pyarrow.Table] = field(default_factory=dict)
    """By the name of a table, what is known now: each replaces the one before as a whole."""


def regressions(tables: Path, latency: pyarrow.Table, runs: pyarrow.Table) -> pyarrow.Table | None:
    """The table of `compared`."""
    return compared(tables, latency, runs).table


def compared(tables: Path, latency: pyarrow.Table, runs: pyarrow.Table) -> Compared:
    """Hold the newest of these runs, one for each machine and Python, against those before it below `tables`.

    `latency` and `runs` are the tables of the runs just judged, which replace what `tables` has of them. A row a
    series, the slowest first: run, scenario, what, now, usual (ns; of all scenarios: how many times the usual, in
    thousandths), ratio, spread (as a factor), runs, slower, since; nights, how many before this one the change has
    lasted for, and before, their median in ns, where it is slower.
    """
    import pyarrow as pa

    judged: dict[str, Run] = {item["run"]: item for item in runs.to_pylist()}
    everything = _Everything(tables, judged, _medians(latency.to_pylist()))
    by_place: dict[Place, list[Run]] = {}
    for run in sorted(judged.values(), key=_when):
        by_place.setdefault(_place(run), []).append(run)
    rows: list[dict[str, Any]] = []
    kept: dict[str, pyarrow.Table] = {}
    for place, mine in by_place.items():
        newest = mine[-1]
        went = _gone_on(tables, place, mine, everything) or _gone_through(place, everything)
        if newest["run"] in everything.medians_judged:
            rows += went.rows_of(newest["run"])
        if went.last is not None:
            kept[_name(place)] = went.table(place)
    rows.sort(key=lambda item: (not item["slower"], -item["ratio"]))
    schema = pa.schema([(name, getattr(pa, column)()) for name, column in _COLUMNS.items()])
    return Compared(pa.Table.from_pylist(rows, schema=schema) if rows else None, kept)


@dataclass
class _Everything:
    """The runs just judged, and those of the tables, which are read on first use."""

    tables: Path
    judged: dict[str, Run]
    medians_judged: dict[str, dict[Name, float]]

    @cached_property
    def runs(self) -> dict[str, Run]:
        return {row["run"]: row for row in _rows(self.tables / "runs")} | self.judged

    @cached_property
    def medians(self) -> dict[str, dict[Name, float]]:
        before = _medians(row for row in _rows(self.tables / "latency") if row["run"] not in self.judged)
        return before | self.medians_judged


@dataclass
class _Went:
    """A history that was gone through."""

    history: History
    last: tuple[str, str] | None
    """When its newest complete run began, and its name."""
    seen: dict[str, dict[Name, Seen]] = field(default_factory=dict)
    nights: dict[tuple[str, Name], int] = field(default_factory=dict)
    """How many nights before the run a change had lasted for."""

    def night(self, run: Run, values: Mapping[Name, float]) -> None:
        """One more. One that is not complete is held against those before it, and is no measure itself."""
        history = self.history if run.get("complete") else copy.deepcopy(self.history)
        found = history.night(run["run"], values)
        self.seen = {run["run"]: found}
        self.nights = {(run["run"], name): history.nights_since(item.since) for name, item in found.items()}
        if run.get("complete"):
            self.last = _when(run)

    def rows_of(self, run: str) -> list[dict[str, Any]]:
        rows = []
        for (scenario, what), one in self.seen[run].items():
            now = int(one.now * (1_000 if scenario == ALL else 1))
            values = (run, scenario, what, now, int(now / one.ratio), one.ratio, one.spread)
            slow = int(median(one.took)) if one.took and scenario != ALL else None
            nights = self.nights[run, (scenario, what)]
            rows.append(dict(zip(_COLUMNS, (*values, one.nights, one.slower, one.since, nights, slow), strict=True)))
        return rows

    def table(self, place: Place) -> pyarrow.Table:
        import pyarrow as pa

        state = json.dumps({"version": _VERSION, "place": place, "last": self.last, **self.history.kept()})
        return pa.table({"state": pa.array([state], pa.large_string())})


def _gone_on(tables: Path, place: Place, mine: list[Run], everything: _Everything) -> _Went | None:
    """Go on from what is kept; None where it is not there, or these runs are not all newer."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    file = tables / _name(place) / "part-0.parquet"
    try:
        (text,) = parquet.ParquetFile(file).read().column("state").to_pylist()
        state = json.loads(str(text))
        if state["version"] != _VERSION or tuple(state["place"]) != place:
            return None
        last = (str(state["last"][0]), str(state["last"][1]))
        went = _Went(History.of_kept(state), last)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, pa.ArrowException):
        return None
    known = set(went.history.runs)
    if any(_when(run) <= last or run["run"] in known for run in mine):
        return None
    _go(went, mine, everything.medians_judged)
    return went


def _gone_through(place: Place, everything: _Everything) -> _Went:
    """From its beginning; the runs after the newest that was judged are gone through for what is kept only."""
    mine = sorted((run for run in everything.runs.values() if _place(run) == place), key=_when)
    upto = max(at for at, run in enumerate(mine) if run["run"] in everything.judged) + 1
    went = _Went(History(), None)
    before = [run for run in mine[: upto - 1] if run.get("complete") and _when(run) < _when(mine[upto - 1])]
    _go(went, [*before, mine[upto - 1]], everything.medians)
    seen, nights = went.seen, went.nights
    _go(went, [run for run in mine[upto:] if run.get("complete")], everything.medians)
    went.seen, went.nights = seen, nights
    return went


def _go(went: _Went, runs: Iterable[Run], medians: Mapping[str, Mapping[Name, float]]) -> None:
    ordered = list(runs)
    for run in ordered:
        if run["run"] in medians and (run.get("complete") or run is ordered[-1]):
            went.night(run, medians[run["run"]])


def _medians(rows: Iterable[Mapping[str, Any]]) -> dict[str, dict[Name, float]]:
    medians: dict[str, dict[Name, float]] = {}
    for row in rows:
        if row["p50"] is not None:
            medians.setdefault(row["run"], {})[row["scenario"], row["what"]] = row["p50"]
    return medians


def _name(place: Place) -> str:
    digest = sha256(json.dumps(place).encode()).hexdigest()
    return f"series/place={digest[:16]}"


def _place(run: Run) -> Place:
    return run.get("machine"), run.get("python")


def _when(run: Run) -> tuple[str, str]:
    return run.get("started") or "", run["run"]


def _rows(table: Path) -> list[dict[str, Any]]:
    """All rows of a table that is partitioned by run. TraceError names a file that can't be read."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    found: list[dict[str, Any]] = []
    for file in sorted(table.glob("run=*/*.parquet")):
        run = unquote(file.parent.name.removeprefix("run="))
        try:
            found.extend({**row, "run": run} for row in parquet.ParquetFile(file).read().to_pylist())
        except (OSError, pa.ArrowException) as error:
            raise TraceError(f"{file}: is no whole Parquet file ({next(iter(str(error).splitlines()), '')})") from error
    return found
