"""The report in short, for the page of a CI server: Markdown to be shown, JSON to be read by programs."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from reactive_runtime.report.tables import DEMAND, Report
from reactive_runtime.testing.rules import RULES

__all__ = ["WORDS", "json_of", "markdown_of"]

WORDS: Final = {"broken": "Broken", "given up": "Given up", "not judged": "Not all judged", "clean": "Clean"}


def json_of(report: Report) -> str:
    """What came of the runs that were judged together, and of the nights before."""
    told: dict[str, Any] = {
        "verdict": report.verdict,
        "runs": [{name: it.get(name) for name in _OF_RUN} for it in report.together],
        "unable": report.unable,
        "broken": [{**it, "scenarios": sorted(it["scenarios"])} for it in report.broken],
        "slower": [{name: it.get(name) for name in _OF_SERIES} for it in report.regressions],
        "scenarios": [
            {
                "scenario": row.scenario,
                "verdict": row.verdict,
                "rules": sorted(row.rules),
                "given_up": row.given_up or None,
                "subscriptions": row.subscriptions,
                "signals": row.signals,
                "p50_ns": row.latency.get(DEMAND, {}).get("p50"),
                "p99_ns": row.latency.get(DEMAND, {}).get("p99"),
            }
            for row in report.rows
        ],
        "nights": [
            {"python": python, "date": it.date, "verdict": it.verdict, "runs": it.runs, "rules": list(it.rules)}
            for python, nights in report.matrix
            for it in nights
        ],
    }
    return json.dumps(told, indent=2, ensure_ascii=True, default=str) + "\n"


_OF_RUN: Final = ("run", "started", "complete", "version", "commit", "python", "machine", "seed", "seconds", "records")
_OF_SERIES: Final = ("run", "scenario", "what", "now", "usual", "ratio", "since")


def markdown_of(report: Report) -> str:
    """The same for people: a headline, what is not clean, and the nights."""
    signals = sum(it["records"] or 0 for it in report.together)
    lines = [
        f"## {WORDS[report.verdict]}",
        "",
        f"{signals:,} signals of {len(report.rows)} scenarios in {len(report.together)} run(s), the newest"
        f" {_escaped(report.newest['run'])}, commit {_escaped(report.newest['commit'] or 'not known')}.",
        "",
    ]
    lines += [f"- not judged: {_escaped(it)}" for it in report.unable]
    lines += [
        f"- rule {it['rule']} ({_escaped(RULES.get(it['rule'], 'not known'))}) in"
        f" {_escaped(', '.join(sorted(it['scenarios'])))}, run {_escaped(it['run'])}: {it['subscriptions']:,}"
        " subscription(s)"
        for it in report.broken
    ]
    lines += [f"- {_escaped(it.scenario)} was given up: {_escaped(it.given_up)}" for it in report.rows if it.given_up]
    lines += [f"- slower: {_escaped(it['scenario'])}, {it['ratio']:.1f} times the usual" for it in report.regressions]
    dates = [it.date for it in report.matrix[0][1]] if report.matrix else []
    if dates:
        lines += ["", f"| Python | {' | '.join(dates)} |", f"| --- |{' --- |' * len(dates)}"]
        for python, nights in report.matrix:
            cells = [f"{it.verdict}{': ' + ', '.join(it.rules) if it.rules else ''}" for it in nights]
            lines.append(f"| {_escaped(python)} | {' | '.join(cells)} |")
    return "\n".join(lines).rstrip() + "\n"


def _escaped(text: object) -> str:
    """On one line, and as it is: what a trace carries may look like Markdown, or HTML."""
    flat = " ".join(str(text).split())
    return re.sub(r"([\\`*_{}\[\]<>#|~])", r"\\\1", flat)
