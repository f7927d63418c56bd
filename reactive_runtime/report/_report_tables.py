"""Reads the tables that the pipeline writes, and puts together what the report shows."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import unquote

from reactive_runtime._core.runtime import primitives
from reactive_runtime._results.states import (
    Finding,
    State,
    findings_of,
    joined,
    label_of,
    line_of,
    scenario_of,
    state_of,
    unfound,
)
from reactive_runtime.errors import MissingDependencyError, TraceError
from reactive_runtime.spark._verdict.tables import Together, missing, settled, together

__all__ = ["Example", "Night", "Report", "Row", "load", "rows_by_run", "tables_of", "undisturbed"]

SHOWN: Final = 30
"""Runs in a history line."""

NIGHTS: Final = 14
"""Nights in the matrix."""

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
    """One scenario in the runs that were judged together; latency is that of the newest of them."""

    scenario: str
    subscriptions: int = 0
    signals: int = 0
    cancelled: int = 0
    rules: list[str] = field(default_factory=list)
    """Broken ones."""
    finding: Finding = field(default_factory=lambda: Finding(State.CLEAN))
    late_max: int | None = None
    late_inside_max: int | None = None
    latency: dict[str, Cells] = field(default_factory=dict)
    """By what was measured: count, p50, p90, p99, max in ns."""
    slower: float | None = None
    """How many times as long as usual, where that is a regression."""
    histograms: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    """By what was measured: (bucket, count)."""
    load: Cells | None = None
    """Its part of the load, where the run says so: rounds, signals (with calls), seconds."""
    history: list[tuple[str, int]] = field(default_factory=list)
    """(run, median of demand → element in ns), the oldest first."""

    @property
    def verdict(self) -> str:
        """In a word: what became of it; slower, where it is clean and became so."""
        state = self.finding.state
        return "slower" if self.slower and state is State.CLEAN else state.value

    @property
    def given_up(self) -> str:
        """Why it could not go on; empty where it could."""
        return self.finding.why if self.finding.state in (State.GIVEN_UP, State.STUCK) else ""

    def add(self, item: Cells) -> None:
        """Add the summary of one run."""
        for name in ("subscriptions", "signals", "cancelled"):
            setattr(self, name, getattr(self, name) + item[name])
        for name in ("late_max", "late_inside_max"):
            most = [one for one in (getattr(self, name), item[name]) if one is not None]
            setattr(self, name, max(most, default=None))

    def had(self, load: Cells) -> None:
        """Add the load of one run."""
        before = self.load or {}
        self.load = {name: before.get(name, 0) + load[name] for name in ("rounds", "signals", "seconds")}


@dataclass(frozen=True)
class Night:
    """The runs of one interpreter in one night."""

    date: str
    runs: int = 0
    rules: tuple[str, ...] = ()
    state: State | None = None
    """The worst state of all these runs; None where there are no runs."""

    @property
    def verdict(self) -> str:
        """In a word."""
        return "-" if self.state is None else self.state.value


@dataclass(frozen=True)
class Report:
    """The contents of a report."""

    runs: list[Cells]
    """The newest first."""
    rows: list[Row]
    examples: list[Example]
    violations: list[Cells]
    """By run and rule: run, rule, scenarios, subscriptions, count. The newest first."""
    regressions: list[Cells]
    """What became slower in these runs."""
    together: list[Cells]
    """The runs that were judged together the last time, the newest first: the headline is theirs, the worst of it."""
    unable: list[str] = field(default_factory=list)
    """Why others could not be judged then, a line each."""
    unfound: list[str] = field(default_factory=list)
    """The planted faults that were not found, a line each."""
    matrix: list[tuple[str, list[Night]]] = field(default_factory=list)
    """By interpreter, the newest first: what came of it in each night, the oldest first."""

    @property
    def newest(self) -> Cells:
        """The newest of the runs that were judged together."""
        return self.together[0]

    @property
    def broken(self) -> list[Cells]:
        """The rules that the runs broke which were judged together."""
        runs = {item["run"] for item in self.together}
        return [violation for violation in self.violations if violation["run"] in runs]

    @property
    def clean(self) -> bool:
        """Whether those runs broke no rule, and all of them was looked at."""
        return self.state is State.CLEAN

    @property
    def verdict(self) -> str:
        """In a word: broken, stuck, incomplete (not all was looked at), or clean."""
        return self.state.value

    @property
    def state(self) -> State:
        """The state of all that was judged together, from the states of its scenarios."""
        return state_of(self.findings, self.lost)

    @property
    def findings(self) -> dict[str, Finding]:
        """The finding of each scenario."""
        return {row.scenario: row.finding for row in self.rows if scenario_of(row.scenario) == row.scenario}

    @property
    def lost(self) -> list[str]:
        """A line for each run that was cut off or not judged, and for each planted fault that was not found."""
        return [*(_cut_off(run) for run in self.together if not run["complete"]), *self.unable, *self.unfound]

    @property
    def unseen(self) -> str:
        """A line on what was not looked at; empty where all was."""
        return line_of(self.findings, self.lost)


def _cut_off(run: Cells) -> str:
    return f"run {run['run']} was cut off before it was complete, or does not say that it came to its end"


DEMAND: Final = "demand → element"


def load(folder: Path | str, *, history: bool = True) -> Report:
    """The report on the runs whose verdict is in `folder`, or in `folder`/verdict.

    Args:
        folder: A folder of traces that were judged, or of a verdict.
        history: Whether runs are read that were judged before. False: the report has only those that were judged
            together the last time, and takes the same time however many there were before.

    Returns:
        What the report shows.

    Raises:
        TraceError: There is no verdict, or a table can't be read.
        MissingDependencyError: There is no pyarrow.
    """
    tables = tables_of(Path(folder))
    return undisturbed(tables, lambda: _load(tables, history))


def tables_of(folder: Path) -> Path:
    """The tables in that folder, or in its `verdict`; TraceError where there are none."""
    tables = folder / "verdict" if (folder / "verdict").is_dir() else folder
    settled(tables)
    there = any((tables / name).is_dir() for name in ("summary", "nights"))
    if not there and together(tables) is None:
        raise TraceError(f"{folder}: has no verdict to report: judge its runs with `reactive-runtime verify {folder}`")
    return tables


Made = TypeVar("Made")


def undisturbed(tables: Path, read: Callable[[], Made]) -> Made:
    """The result of `read`, of tables that no verifier replaces meanwhile."""
    for _ in range(_TRIES):
        before = _generation(tables)
        try:
            made = read()
        except TraceError:
            if _generation(tables) == before and not before[1]:
                raise
            primitives.sleep(_PAUSE)  # while a verdict is replaced, its tables are of two
            continue
        if _generation(tables) == before:
            return made
    raise TraceError(f"{tables}: a verifier replaces it all the time: make the report when it is done")


_TRIES: Final = 10

_PAUSE: Final = 0.1


def _generation(tables: Path) -> tuple[int, bool]:
    """It differs where a verdict has been replaced, or is just being."""
    try:
        return (tables / "verdict.json").stat().st_mtime_ns, (tables / ".commit").is_dir()
    except OSError:
        return 0, (tables / ".commit").is_dir()


def _load(tables: Path, history: bool) -> Report:
    last = together(tables)
    of = None if history or last is None else frozenset(last.runs)
    runs = sorted(rows_by_run(tables / "runs", of), key=lambda item: (item["started"] or "", item["run"]), reverse=True)
    if last is not None and last.unable and not last.runs:  # what there is, is of an earlier night
        raise TraceError(f"{tables}: no run could be judged: {last.unable[0]}")
    summary = rows_by_run(tables / "summary", of)
    _agree(tables, runs, summary, last, of)
    if not runs:
        raise TraceError(f"{tables}: names no run")
    names = {runs[0]["run"]} if last is None else set(last.runs)
    judged = [item for item in runs if item["run"] in names] or runs[:1]
    rows: dict[str, Row] = {}
    for run in judged:
        for entry in summary:
            if entry["run"] == run["run"]:
                rows.setdefault(entry["scenario"], Row(entry["scenario"])).add(entry)
        for scenario, had in _loads(run.get("load")).items():
            if scenario in rows:
                rows[scenario].had(had)
    broken = rows_by_run(tables / "violations", of, counted=("scenario", "rule"))
    judged_in = _judged_in(summary, broken)
    together_found = _findings_of_runs(judged, judged_in)
    for scenario, finding in together_found.items():
        rows.setdefault(scenario, Row(scenario)).finding = finding
    for entry in broken:
        row = rows.get(entry["scenario"])
        if entry["run"] in names and row is not None and entry["rule"] not in row.rules:
            row.rules.append(entry["rule"])
    for name, row in rows.items():
        if scenario_of(name) != name:
            row.finding = _of_link(row.rules, together_found[scenario_of(name)])
    _measured(rows, tables, runs, judged[0]["run"], of)
    regressions = [item for item in rows_by_run(tables / "regressions") if item["slower"] and item["run"] in names]
    for entry in regressions:
        if entry["scenario"] in rows:
            rows[entry["scenario"]].slower = entry["ratio"]
    examples = [
        Example(item["run"], item["rule"], item["scenario"], item["subscription"], item["seen"], item["diagram"])
        for item in rows_by_run(tables / "examples", of)
    ]
    age = {item["run"]: place for place, item in enumerate(runs)}
    examples.sort(key=lambda item: (age.get(item.run, len(age)), item.rule))
    by_rule = sorted(_by_rule(broken), key=lambda item: (age.get(item["run"], len(age)), item["rule"]))
    by_name = sorted(rows.values(), key=lambda item: item.scenario)
    unable = [] if last is None else last.unable
    faults = _faults_unfound(judged, judged_in)
    matrix = _matrix(runs, by_rule, judged_in)
    return Report(runs, by_name, examples, by_rule, regressions, judged, unable, faults, matrix)


def _agree(
    tables: Path, runs: Iterable[Cells], summary: Iterable[Cells], last: Together | None, of: Runs | None
) -> None:
    """TraceError where a table lacks what another, or `verdict.json`, says that it has.

    Each breach is in `violations` only, and without it a run would look clean: `summary` counts the subscriptions.
    """
    if last is None:
        raise _lacks(tables / "verdict.json", "is missing or damaged, and says which runs were judged together")
    if part := missing(tables):
        raise _lacks(tables / part, "is missing, and verdict.json names it")
    known, summed = {item["run"] for item in runs}, {item["run"] for item in summary}
    for table, names, others in (
        ("runs", known, [("verdict.json", last.runs), ("summary", summed)]),
        ("summary", summed, [("runs", known)]),
    ):
        for other, wanted in others:
            if lost := sorted(set(wanted) - names):
                raise _lacks(tables / table, f"has no row of run {lost[0]}, which {other} names")
    found = _broken_subscriptions(tables / "violations", of)
    for item in summary:
        count = found.pop((item["run"], item["scenario"]), 0)
        if item.get("broken", count) != count:
            why = f"has {count:,} broken subscriptions of {item['scenario']} in run {item['run']}, and summary"
            raise _lacks(tables / "violations", f"{why} {item['broken']:,}")
    for run, scenario in found:
        raise _lacks(tables / "summary", f"has no row of {scenario} in run {run}, which violations names")


def _lacks(part: Path, why: str) -> TraceError:
    return TraceError(f"{part}: {why}: judge the runs again with `reactive-runtime verify`")


def _broken_subscriptions(table: Path, of: Runs | None) -> dict[tuple[str, str], int]:
    """By run and scenario: how many subscriptions have a row."""
    found: dict[tuple[str, str], int] = {}
    for folder in _folders(table, of):
        parts = [part.select(["scenario", "subscription"]) for _, part in _parts(folder)]
        if parts:
            each = _arrow().concat_tables(parts).group_by(["scenario", "subscription"]).aggregate([])
            for item in each.group_by("scenario").aggregate([("subscription", "count")]).to_pylist():
                found[unquote(folder.name.removeprefix("run=")), item["scenario"]] = item["subscription_count"]
    return found


def _of_link(rules: list[str], scenario: Finding) -> Finding:
    """Of a link inside of a pipeline: broken where it breaks a rule itself, else as far looked at as its scenario."""
    if rules:
        return Finding(State.BROKEN, scenario.why, tuple(sorted(rules)))
    return Finding(State.CLEAN) if scenario.state is State.BROKEN else scenario


def _judged_in(summary: Iterable[Cells], broken: Iterable[Cells]) -> dict[str, dict[str, set[str]]]:
    """By run: the scenarios that were judged in it, each with the rules that it broke."""
    found: dict[str, dict[str, set[str]]] = {}
    for item in summary:
        found.setdefault(item["run"], {}).setdefault(item["scenario"], set())
    for item in broken:
        found.setdefault(item["run"], {}).setdefault(item["scenario"], set()).add(item["rule"])
    return found


def _loads(text: str | None) -> dict[str, Cells]:
    """The part of the load that each scenario had, as far as the run says something that can be shown."""
    loads = json.loads(text or "{}")
    found = {}
    for scenario, had in loads.items() if isinstance(loads, dict) else ():
        counts = [had.get(item) for item in ("rounds", "signals", "seconds")] if isinstance(had, dict) else []
        if [type(count) for count in counts] in ([int, int, int], [int, int, float]):
            found[scenario] = had
    return found


def _matrix(
    runs: list[Cells], by_rule: list[Cells], judged: dict[str, dict[str, set[str]]]
) -> list[tuple[str, list[Night]]]:
    """The last nights, by interpreter."""
    rules: dict[str, set[str]] = {}
    for entry in by_rule:
        rules.setdefault(entry["run"], set()).add(entry["rule"])
    dates = sorted({(run["started"] or "")[:10] for run in runs} - {""})[-NIGHTS:]
    found: dict[str, dict[str, list[Cells]]] = {}
    for entry in runs:
        if (entry["started"] or "")[:10] in dates:
            found.setdefault(entry["python"] or "not known", {}).setdefault(entry["started"][:10], []).append(entry)
    return [
        (
            python,
            [
                Night(
                    date,
                    len(of := by_date.get(date, [])),
                    tuple(sorted(set().union(*(rules.get(item["run"], set()) for item in of)))),
                    _state_of_runs(of, judged),
                )
                for date in dates
            ],
        )
        for python, by_date in found.items()
    ]


def _state_of_runs(runs: list[Cells], judged: dict[str, dict[str, set[str]]]) -> State | None:
    if not runs:
        return None
    lost = [_cut_off(run) for run in runs if not run["complete"]]
    return state_of(_findings_of_runs(runs, judged), lost + _faults_unfound(runs, judged))


def _findings_of_runs(runs: list[Cells], judged: dict[str, dict[str, set[str]]]) -> dict[str, Finding]:
    return joined((label_of(run), findings_of(run, judged.get(run["run"], {}))) for run in runs)


def _faults_unfound(runs: list[Cells], judged: dict[str, dict[str, set[str]]]) -> list[str]:
    return unfound((run, judged.get(run["run"], {})) for run in runs)


def _measured(rows: dict[str, Row], tables: Path, runs: list[Cells], newest: str, of: Runs | None) -> None:
    latency = {(item["run"], item["scenario"], item["what"]): item for item in rows_by_run(tables / "latency", of)}
    for (run, scenario, what), entry in latency.items():
        if run == newest and scenario in rows:
            rows[scenario].latency[what] = entry
    for entry in sorted(rows_by_run(tables / "histogram", frozenset([newest])), key=lambda item: item["bucket"]):
        if entry["scenario"] in rows:
            rows[entry["scenario"]].histograms.setdefault(entry["what"], []).append((entry["bucket"], entry["count"]))
    for run in [item["run"] for item in reversed(runs[:SHOWN])]:
        for row in rows.values():
            if found := latency.get((run, row.scenario, DEMAND)):
                row.history.append((run, found["p50"]))


def _by_rule(broken: Iterable[Cells]) -> list[Cells]:
    """Of (run, scenario, rule)."""
    found: dict[tuple[str, str], Cells] = {}
    for item in broken:
        known = found.setdefault(
            (item["run"], item["rule"]),
            {"run": item["run"], "rule": item["rule"], "scenarios": set(), "subscriptions": 0, "count": 0},
        )
        known["scenarios"].add(item["scenario"])
        known["subscriptions"] += item["count_count"]
        known["count"] += item["count_sum"]
    return list(found.values())


Runs = frozenset[str]
"""Names of runs."""


def rows_by_run(table: Path, of: Runs | None = None, counted: tuple[str, ...] = ()) -> list[Cells]:
    """The rows of a table, of some runs or of all; none where there is no such table.

    `counted`: only how many there are of each kind, distinguished by these columns, and the sum of their `count`: a bad
    night has a row for each of a million subscriptions.
    """
    rows: list[Cells] = []
    for run, found in _parts(table, of):
        made = found.group_by(list(counted)).aggregate([("count", "count"), ("count", "sum")]) if counted else found
        rows.extend({**item, "run": run} if run is not None else item for item in made.to_pylist())
    return rows


def _parts(table: Path, of: Runs | None = None) -> Iterator[tuple[str | None, Any]]:
    """The files of a table, of some runs or of all, each with its run; TraceError for one that can't be read."""
    pa = _arrow()
    files = (
        sorted(table.glob("**/*.parquet"))
        if of is None
        else [file for folder in _folders(table, of) for file in sorted(folder.glob("*.parquet"))]
    )
    for file in files:
        run = unquote(file.parent.name.removeprefix("run=")) if file.parent.name.startswith("run=") else None
        try:
            yield run, pa.parquet.ParquetFile(file).read()
        except (OSError, pa.ArrowException) as error:
            why = next(iter(str(error).splitlines()), "")
            raise TraceError(f"{file}: is no whole Parquet file ({why})") from error


def _folders(table: Path, of: Runs | None) -> list[Path]:
    """The partitions of a table, of some runs or of all."""
    try:
        names = sorted(name for name in os.listdir(table) if name.startswith("run="))
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [table / name for name in names if of is None or unquote(name[4:]) in of]


def _arrow() -> Any:
    try:
        import pyarrow as pa
        import pyarrow.parquet
    except ImportError as error:
        raise MissingDependencyError("the report needs pyarrow: pip install 'reactive-runtime[cli,report]'") from error
    return pa
