"""The report in short, for the page of a CI server: Markdown to be shown, JSON to be read by programs."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from reactive_runtime._results.figures import in_words
from reactive_runtime._results.states import State, grouped
from reactive_runtime.report._report_tables import DEMAND, Report
from reactive_runtime.testing._rule_checks import RULES

__all__ = ["WORDS", "escaped", "json_of", "markdown_of"]

WORDS: Final = {state.value: state.value.capitalize() for state in State}


def json_of(report: Report) -> str:
    """The runs that were judged together, and the nights before, for programs."""
    shown: dict[str, Any] = {
        "verdict": report.verdict,
        "runs": [{name: item.get(name) for name in _OF_RUN} for item in report.together],
        "unable": report.unable,
        "unseen": report.unseen or None,
        "broken": [{**item, "scenarios": sorted(item["scenarios"])} for item in report.broken],
        "slower": [
            {name: item.get(name) for name in _OF_SERIES} | {"said": in_words(item)} for item in report.regressions
        ],
        "scenarios": [
            {
                "scenario": row.scenario,
                "verdict": row.verdict,
                "rules": sorted(row.rules),
                "why": row.finding.why or None,
                "given_up": row.given_up or None,
                "subscriptions": row.subscriptions,
                "signals": row.signals,
                "p50_ns": row.latency.get(DEMAND, {}).get("p50"),
                "p99_ns": row.latency.get(DEMAND, {}).get("p99"),
            }
            for row in report.rows
        ],
        "nights": [
            {
                "python": python,
                "date": night.date,
                "verdict": night.verdict,
                "runs": night.runs,
                "rules": list(night.rules),
            }
            for python, nights in report.matrix
            for night in nights
        ],
    }
    return json.dumps(shown, indent=2, ensure_ascii=True, default=str) + "\n"


_OF_RUN: Final = ("run", "started", "complete", "version", "commit", "python", "machine", "seed", "seconds", "records")
_OF_SERIES: Final = ("run", "scenario", "what", "now", "usual", "ratio", "since")


def markdown_of(report: Report) -> str:
    """The same for people: a headline, what is not clean, and the nights."""
    signals = sum(item["records"] or 0 for item in report.together)
    lines = [
        f"## {WORDS[report.verdict]}",
        "",
        f"{signals:,} signals of {len(report.rows)} scenarios in {len(report.together)} run(s), the newest"
        f" {escaped(report.newest['run'])}, commit {escaped(report.newest['commit'] or 'not known')}.",
        "",
    ]
    lines += [f"- not judged: {escaped(item)}" for item in report.unable]
    lines += [f"- {escaped(item)}" for item in report.unfound]
    lines += [f"- cut off: {escaped(item['run'])}" for item in report.together if not item["complete"]]
    lines += [
        f"- rule {item['rule']} ({escaped(RULES.get(item['rule'], 'not known'))}) in"
        f" {escaped(', '.join(sorted(item['scenarios'])))}, run {escaped(item['run'])}: {item['subscriptions']:,}"
        " subscription(s)"
        for item in report.broken
    ]
    lines += [
        f"- {state.value}: {escaped(', '.join(names))}: {escaped(why)}"
        for state, why, names in grouped(report.findings)
        if state is not State.BROKEN
    ]
    lines += [f"- slower: {escaped(in_words(regression))}" for regression in report.regressions]
    dates = [item.date for item in report.matrix[0][1]] if report.matrix else []
    if dates:
        lines += ["", f"| Python | {' | '.join(dates)} |", f"| --- |{' --- |' * len(dates)}"]
        for python, nights in report.matrix:
            cells = [f"{night.verdict}{': ' + ', '.join(night.rules) if night.rules else ''}" for night in nights]
            lines.append(f"| {escaped(python)} | {' | '.join(cells)} |")
    return "\n".join(lines).rstrip() + "\n"


def escaped(text: object) -> str:
    """On one line, and as it is: what a trace carries may look like Markdown, or HTML."""
    flat = " ".join(str(text).split())
    return re.sub(r"([\\`*_{}\[\]<>#|~])", r"\\\1", flat)
