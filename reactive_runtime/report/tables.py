"""Reads the tables that the pipeline writes, and puts together what the report shows."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from reactive_runtime.errors import MissingDependencyError, TraceError

__all__ = ["Example", "Report", "Row", "load"]

SHOWN: Final = 30
"""Runs in a history line."""

Cells = dict[str, Any]


@dataclass(frozen=True)
class Example:
    """One breach, drawn."""

    run: str
    rule: str
    scenario: str
    subscription: int
    seen: str
    diagram: str


@dataclass
class Row:
    """What is known of one scenario, in the newest run."""

    scenario: str
    subscriptions: int = 0
    signals: int = 0
    cancelled: int = 0
    rules: list[str] = field(default_factory=list)
    """Broken ones."""
    given_up: str = ""
    late_max: int | None = None
    late_inside_max: int | None = None
    latency: dict[str, Cells] = field(default_factory=dict)
    """By what was measured: count, p50, p90, p99, max in ns."""
    slower: float | None = None
    """How many times as long as usual, where that is a regression."""
    histograms: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    """By what was measured: (bucket, count)."""
    load: Cells | None = None
    """What it had of the load, where the run says so: rounds, signals (with calls), seconds."""
    history: list[tuple[str, int]] = field(default_factory=list)
    """(run, median of demand → element in ns), the oldest first."""

    @property
    def verdict(self) -> str:
        """In a word."""
        if self.given_up:
            return "given up"
        return "broken" if self.rules else "slower" if self.slower else "clean"


@dataclass(frozen=True)
class Report:
    """What is to be shown."""

    runs: list[Cells]
    """The newest first."""
    rows: list[Row]
    examples: list[Example]
    violations: list[Cells]
    """By run and rule: run, rule, scenarios, subscriptions, count. The newest first."""
    regressions: list[Cells]

    @property
    def newest(self) -> Cells:
        """The newest run."""
        return self.runs[0]

    @property
    def broken(self) -> list[Cells]:
        """What the newest run broke."""
        return [it for it in self.violations if it["run"] == self.newest["run"]]

    @property
    def clean(self) -> bool:
        """Whether the newest run broke no rule, and no scenario was given up."""
        return not self.broken and not any(row.given_up for row in self.rows)


DEMAND: Final = "demand → element"


def load(folder: Path | str) -> Report:
    """The report on the runs whose verdict is in `folder`, or in `folder`/verdict.

    TraceError where there is none, or a table can't be read.
    """
    folder = Path(folder)
    tables = folder if (folder / "summary").is_dir() else folder / "verdict"
    if not (tables / "summary").is_dir():
        raise TraceError(f"{folder}: has no verdict to report: judge its runs with `reactive-runtime verify {folder}`")
    runs = sorted(_rows(tables / "runs"), key=lambda it: (it["started"] or "", it["run"]), reverse=True)
    if not runs:
        raise TraceError(f"{tables}: names no run")
    newest = runs[0]["run"]
    rows = {it["scenario"]: _row(it) for it in _rows(tables / "summary", newest)}
    for scenario, why in json.loads(runs[0]["given_up"] or "{}").items():
        rows.setdefault(scenario, Row(scenario)).given_up = str(why)
    for scenario, had in _loads(runs[0].get("load")).items():
        if scenario in rows:
            rows[scenario].load = had
    broken = _rows(tables / "violations", counted=("scenario", "rule"))
    for it in broken:
        row = rows.get(it["scenario"])
        if it["run"] == newest and row is not None and it["rule"] not in row.rules:
            row.rules.append(it["rule"])
    _measured(rows, tables, runs)
    regressions = [it for it in _rows(tables / "regressions") if it["slower"] and it["run"] == newest]
    for it in regressions:
        if it["scenario"] in rows:
            rows[it["scenario"]].slower = it["ratio"]
    examples = [
        Example(it["run"], it["rule"], it["scenario"], it["subscription"], it["seen"], it["diagram"])
        for it in _rows(tables / "examples")
    ]
    age = {it["run"]: place for place, it in enumerate(runs)}
    examples.sort(key=lambda it: (age.get(it.run, len(age)), it.rule))
    by_rule = sorted(_by_rule(broken), key=lambda it: (age.get(it["run"], len(age)), it["rule"]))
    return Report(runs, sorted(rows.values(), key=lambda it: it.scenario), examples, by_rule, regressions)


def _loads(told: str | None) -> dict[str, Cells]:
    """What each scenario had of the load, as far as the run says something that can be shown."""
    loads = json.loads(told or "{}")
    found = {}
    for scenario, had in loads.items() if isinstance(loads, dict) else ():
        counts = [had.get(it) for it in ("rounds", "signals", "seconds")] if isinstance(had, dict) else []
        if [type(it) for it in counts] in ([int, int, int], [int, int, float]):
            found[scenario] = had
    return found


def _row(it: Cells) -> Row:
    known = ("scenario", "subscriptions", "signals", "cancelled", "late_max", "late_inside_max")
    return Row(**{name: it[name] for name in known})


def _measured(rows: dict[str, Row], tables: Path, runs: list[Cells]) -> None:
    newest = runs[0]["run"]
    latency = {(it["run"], it["scenario"], it["what"]): it for it in _rows(tables / "latency")}
    for (run, scenario, what), it in latency.items():
        if run == newest and scenario in rows:
            rows[scenario].latency[what] = it
    for it in sorted(_rows(tables / "histogram", newest), key=lambda it: it["bucket"]):
        if it["scenario"] in rows:
            rows[it["scenario"]].histograms.setdefault(it["what"], []).append((it["bucket"], it["count"]))
    for run in [it["run"] for it in reversed(runs[:SHOWN])]:
        for row in rows.values():
            if found := latency.get((run, row.scenario, DEMAND)):
                row.history.append((run, found["p50"]))


def _by_rule(broken: Iterable[Cells]) -> list[Cells]:
    """Of (run, scenario, rule)."""
    found: dict[tuple[str, str], Cells] = {}
    for it in broken:
        known = found.setdefault(
            (it["run"], it["rule"]),
            {"run": it["run"], "rule": it["rule"], "scenarios": set(), "subscriptions": 0, "count": 0},
        )
        known["scenarios"].add(it["scenario"])
        known["subscriptions"] += it["count_count"]
        known["count"] += it["count_sum"]
    return list(found.values())


def _rows(table: Path, run: str | None = None, counted: tuple[str, ...] = ()) -> list[Cells]:
    """The rows of a table, of one run or of all; none where there is no such table.

    `counted`: only how many there are of each kind, told apart by these columns, and the sum of their `count`: a bad
    night has a row for each of a million subscriptions.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise MissingDependencyError("the report needs pyarrow: pip install 'reactive-runtime[cli,report]'") from error
    rows: list[Cells] = []
    for file in sorted(table.glob("**/*.parquet")):
        of = unquote(file.parent.name.removeprefix("run=")) if file.parent.name.startswith("run=") else None
        if run is not None and of != run:
            continue
        try:
            found = parquet.ParquetFile(file).read()
            if counted:
                found = found.group_by(list(counted)).aggregate([("count", "count"), ("count", "sum")])
        except (OSError, pa.ArrowException) as error:
            why = next(iter(str(error).splitlines()), "")
            raise TraceError(f"{file}: is no whole Parquet file ({why})") from error
        rows.extend({**it, "run": of} if of is not None else it for it in found.to_pylist())
    return rows
