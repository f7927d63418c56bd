"""The verdict at once, by the judge of this process; and whether Spark's is the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from reactive_runtime._cli.console import out, unable
from reactive_runtime._core.runtime import primitives
from reactive_runtime._results.states import (
    Finding,
    State,
    findings_of,
    joined,
    label_of,
    scenario_of,
    state_of,
    unfound,
)
from reactive_runtime.errors import TraceError

__all__ = ["ENGINES", "UNJUDGED", "AtOnce", "agree", "judge_at_once", "violations_of"]

ENGINES: Final = ("spark", "local")

UNJUDGED: Final = "not all of its records could be judged"

Rows = Counter[tuple[Any, ...]]
"""Scenario, subscription, rule, count and first of each violation, as often as it was found."""

_ROW: Final = ["scenario", "subscription", "rule", "count", "first"]


@dataclass
class AtOnce:
    """The findings of the judge in this process."""

    violations: dict[Path, Rows] = field(default_factory=dict)
    """By run, of those that could be judged."""
    judged: dict[Path, dict[str, set[str]]] = field(default_factory=dict)
    """The same by scenario: the rules that each broke, of those that were judged."""
    unable: list[str] = field(default_factory=list)
    """Why others could not."""
    findings: dict[str, Finding] = field(default_factory=dict)
    """The state of each scenario of all these runs."""


def judge_at_once(runs: Sequence[Path], show: bool, seed: int | None = None) -> AtOnce:
    """Judge the runs here, and print what came of it: clean, broken or incomplete; to `show`, the first breaches."""
    import pyarrow.parquet as parquet

    from reactive_runtime.judging import judge_runs, shown
    from reactive_runtime.testing.trace import holds, metadata_of

    begin = primitives.monotonic()
    came, records = AtOnce(), 0
    found: list[tuple[str, dict[str, Finding]]] = []
    cut: list[str] = []
    known: list[tuple[dict[str, Any], dict[str, set[str]]]] = []
    for run in runs:
        metadata = metadata_of(run) or {}
        try:
            judged = judge_runs([run])
            records += sum(parquet.read_metadata(file).num_rows for file in holds(run).files)
            for breach in shown([run], judged) if show else ():
                out().print(str(breach), soft_wrap=True)
        except TraceError as error:
            came.unable.append(str(error))
            unable(error)
            found.append((label_of(metadata), findings_of(metadata, {}, UNJUDGED)))
            continue
        for name, failed in _never_completed(judged.subscriptions):
            what = f"no stream of it has completed, {failed:,} ended with an error: is that what it should do?"
            out().print(f"note     {name}: {what}", style="yellow", soft_wrap=True)
        came.violations[run] = _rows(judged.violations)
        names: list[Any] = judged.subscriptions.column("scenario").unique().to_pylist()
        came.judged[run] = {name: set() for name in names}
        for scenario, _, rule, *_ in came.violations[run]:
            came.judged[run].setdefault(scenario, set()).add(rule)
        found.append((label_of(metadata), findings_of(metadata, came.judged[run])))
        known.append((metadata, came.judged[run]))
        if metadata.get("complete") is not True:
            cut.append(f"{run}: was cut off before it was complete")
    came.findings = joined(found)
    state = state_of(came.findings, [*came.unable, *cut, *unfound(known)])
    took = f"{records:,} signals and calls judged in {primitives.monotonic() - begin:.1f} s, in this process"
    rules = sorted({rule for rows in came.violations.values() for _, _, rule, *_ in rows})
    if rules:
        with_seed = "" if seed is None else f", with seed {seed}"
        out().print(f"BROKEN   rule {', '.join(rules)}{with_seed}; {took}", style="bold red", soft_wrap=True)
    elif came.violations and state is not State.CLEAN:
        out().print(f"INCOMPLETE no rule was broken in what was judged; {took}", style="bold yellow", soft_wrap=True)
    elif came.violations:
        out().print(f"clean    no rule was broken; {took}", style="green", soft_wrap=True)
    return came


def agree(here: AtOnce, verdict: Path) -> None:
    """Say that Spark's verdict, in that folder, is the same; TraceError names both where it is not."""
    count = 0
    for run, mine in here.violations.items():
        theirs = violations_of(run, verdict)
        if mine != theirs:
            raise TraceError(
                f"{run}: two judges, two verdicts: {_only('of this process', mine - theirs)};"
                f" {_only('in Spark', theirs - mine)}: one of them has a fault, please report it with the run"
            )
        count += mine.total()
    out().print(f"agree    Spark and the judge of this process have found the same: {count:,} violation(s)")


def violations_of(run: Path, verdict: Path) -> Rows:
    """The violations of a run in a verdict of Spark."""
    import pyarrow.parquet as parquet

    found: Rows = Counter()
    for file in (verdict / "violations" / run.name).glob("*.parquet"):
        found += _rows(parquet.ParquetFile(file).read(_ROW))
    return found


def _never_completed(subscriptions: Any) -> Iterator[tuple[str, int]]:
    """The scenarios whose streams only fail, each with how many do: that breaks no rule, and shows little."""
    ended = subscriptions.group_by("scenario").aggregate([("completed", "any"), ("failed", "sum")])
    for row in ended.sort_by("scenario").to_pylist():
        if row["failed_sum"] and not row["completed_any"] and scenario_of(row["scenario"]) == row["scenario"]:
            yield row["scenario"], row["failed_sum"]


def _rows(table: Any) -> Rows:
    return Counter(zip(*(table.column(name).to_pylist() for name in _ROW), strict=True))


def _only(judge: str, rows: Rows) -> str:
    if not rows:
        return f"the judge {judge} alone found nothing"
    scenario, subscription, rule, count, first = min(rows)
    others = f", and {len(rows) - 1:,} more" if len(rows) > 1 else ""
    where = f"subscription {subscription} of {scenario}"
    return f"the judge {judge} alone found rule {rule} broken {count} time(s), first at {first}, in {where}{others}"
