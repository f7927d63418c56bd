"""The table `nights`: a row for each scenario of each run, in one file a month, for questions on a year.

    <verdict>/nights/month=2026-11/part-0.parquet

It repeats what `runs`, `summary`, `latency` and `violations` have in a folder a run: 365 nights of 200 machines are
73,000 runs, and 12 files here. A verifier writes the months of its runs anew. `rows_of` makes the rows, also of
verdicts from before there was this table.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from reactive_runtime._results.states import Finding, State, findings_of, scenario_of
from reactive_runtime.errors import TraceError
from reactive_runtime.spark._verdict.lineage import month_of
from reactive_runtime.testing._latency import DEMAND, SILENCE

if TYPE_CHECKING:
    import pyarrow

__all__ = ["NIGHTS", "months_with", "months_without", "rows_of", "schema"]

_PERCENTS: Final = ("p50", "p90", "p99", "max")
_MEASURED: Final = {"demand": DEMAND, "silence": SILENCE}

NIGHTS: Final[Mapping[str, str]] = {
    "run": "string",
    "started": "string",
    "machine": "string",
    "python": "string",
    "commit": "string",
    "version": "string",
    "complete": "bool_",
    "scenario": "string",
    "state": "string",
    "rules": "string",
    "subscriptions": "int64",
    "broken": "int64",
    "signals": "int64",
    "rounds": "int64",
    "load_signals": "int64",
    "load_seconds": "float64",
    **{f"{name}_{percent}": "int64" for name in _MEASURED for percent in _PERCENTS},
}
"""The columns, and the functions of pyarrow that make their types.

`state` is the word that the report has for the scenario, `rules` are those that it broke, `1.3, 2.7`. `load_signals` of
`load_seconds` is the throughput. `demand_…` and `silence_…` are the percentiles of demand → element and of cancel →
silence, in ns.
"""

_OF_RUN: Final = ("run", "started", "machine", "python", "commit", "version", "complete")

Row = Mapping[str, Any]


def schema() -> pyarrow.Schema:
    """The columns, for Arrow."""
    import pyarrow as pa

    return pa.schema([(name, getattr(pa, kind)()) for name, kind in NIGHTS.items()])


def rows_of(
    runs: Iterable[Row],
    summary: Iterable[Row],
    latency: Iterable[Row],
    rules: Mapping[tuple[str, str], Collection[str]],
) -> list[dict[str, Any]]:
    """The rows of some runs, from the rows of the other tables.

    Args:
        runs: Of `runs`.
        summary: Of `summary`.
        latency: Of `latency`.
        rules: By run and scenario, the rules that it broke.

    Returns:
        A row for each scenario that a run names, or that was judged.
    """
    summed: dict[str, dict[str, Row]] = {}
    for row in summary:
        summed.setdefault(row["run"], {})[row["scenario"]] = row
    waits = {(row["run"], row["scenario"], row["what"]): row for row in latency}
    rows = []
    for run in runs:
        mine = summed.get(run["run"], {})
        judged = {scenario: set(rules.get((run["run"], scenario), ())) for scenario in mine}
        findings = findings_of(run, judged)
        load = _loads(run.get("load"))
        for scenario in sorted(findings.keys() | mine.keys()):
            finding = _finding(scenario, findings, judged)
            row = {name: run.get(name) for name in _OF_RUN}
            row |= {"scenario": scenario, "state": finding.state.value, "rules": ", ".join(finding.rules)}
            row |= {name: mine.get(scenario, {}).get(name) for name in ("subscriptions", "broken", "signals")}
            row |= load.get(scenario, {})
            for name, what in _MEASURED.items():
                wait = waits.get((run["run"], scenario, what), {})
                row |= {f"{name}_{percent}": wait.get(percent) for percent in _PERCENTS}
            rows.append(row)
    return rows


def _finding(scenario: str, findings: Mapping[str, Finding], judged: Mapping[str, Collection[str]]) -> Finding:
    """Of a scenario; or of a link inside of its pipeline, which is broken where it breaks a rule itself."""
    if scenario in findings and scenario_of(scenario) == scenario:
        return findings[scenario]
    broken = tuple(sorted(judged.get(scenario, ())))
    return Finding(State.BROKEN, rules=broken) if broken else Finding(State.CLEAN)


def _loads(text: object) -> dict[str, dict[str, Any]]:
    """The part of the load that each scenario had, as far as the run says numbers."""
    try:
        loads = json.loads(text) if isinstance(text, str) else {}
    except (ValueError, RecursionError):
        return {}
    found: dict[str, dict[str, Any]] = {}
    for scenario, had in loads.items() if isinstance(loads, dict) else ():
        if not isinstance(had, dict):
            continue
        rounds, signals, seconds = had.get("rounds"), had.get("signals"), had.get("seconds", "")
        if _counts(rounds) and _counts(signals) and (_counts(seconds) or type(seconds) is float):
            found[scenario] = {"rounds": rounds, "load_signals": signals, "load_seconds": float(seconds)}
    return found


def _counts(number: Any) -> bool:
    return type(number) is int and 0 <= number < 2**63


def months_with(out: Path, rows: Iterable[Row], replaced: Mapping[str, str | None]) -> dict[str, pyarrow.Table]:
    """The months in which these rows are, with them.

    Args:
        out: The folder of the tables.
        rows: The rows of runs that were judged.
        replaced: These runs, and the month that each was in before, if any.

    Returns:
        By the name of a table: it replaces the one before as a whole.
    """
    import pyarrow as pa

    by_month: dict[str, list[Row]] = {month: [] for month in replaced.values() if month is not None}
    for row in rows:
        by_month.setdefault(month_of(row["started"]), []).append(row)
    made = {}
    for month, mine in by_month.items():
        added = pa.Table.from_pylist(list(mine), schema=schema())
        kept = _without(out, month, replaced)
        made[f"nights/month={month}"] = added if kept is None else pa.concat_tables([kept, added])
    return made


def months_without(out: Path, runs: Collection[str]) -> dict[str, pyarrow.Table]:
    """All months that have rows of these runs, without those.

    Args:
        out: The folder of the tables.
        runs: The names of the runs.

    Returns:
        As of `months_with`; of a month that has no others, a table without rows.
    """
    made = {}
    for folder in sorted((out / "nights").glob("month=*")):
        month = folder.name.removeprefix("month=")
        left = _without(out, month, runs)
        before = _month(out, month)
        if left is not None and before is not None and len(left) < len(before):
            made[f"nights/{folder.name}"] = left
    return made


def _without(out: Path, month: str, runs: Collection[str]) -> pyarrow.Table | None:
    import pyarrow as pa
    import pyarrow.compute as pc

    found = _month(out, month)
    if found is None:
        return None
    return found.filter(pc.invert(pc.is_in(found["run"], pa.array(sorted(runs), pa.string()))))


def _month(out: Path, month: str) -> pyarrow.Table | None:
    """The rows of a month; None where there are none. TraceError names a file that can't be read."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    file = out / "nights" / f"month={month}" / "part-0.parquet"
    if not file.exists():
        return None
    try:
        return parquet.ParquetFile(file).read().select(list(NIGHTS)).cast(schema())
    except (OSError, KeyError, ValueError, pa.ArrowException) as error:
        why = next(iter(str(error).splitlines()), "")
        raise TraceError(f"{file}: can't be read ({why}): remove its folder, and judge the runs again") from error
