"""`verify` and `report`: judge recorded runs with Spark, and show what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from reactive_runtime._core import primitives
from reactive_runtime.cli.console import BROKEN, UNABLE, Conf, Master, Packages, app, one_line_errors, out
from reactive_runtime.errors import ReactiveError, TraceError

if TYPE_CHECKING:
    from reactive_runtime.spark.traces import Verdict

__all__ = ["judged", "reported"]

_LITTLE = 16 << 20
"""Bytes of Parquet that are judged in less time than the JVM takes to get up to speed: about a million records."""


@app.command()
def verify(
    runs: Annotated[list[Path], typer.Argument(help="Folders of runs, or folders that hold such folders.")],
    out: Annotated[
        Path | None, typer.Option(help="Folder for the tables of the verdict; default: <first>/verdict.")
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Go on, and judge each run when it is complete, until interrupted.")
    ] = False,
    once: Annotated[
        bool, typer.Option("--once", help="With --follow: judge what has come since the last time, and stop.")
    ] = False,
    master: Master = "local[*]",
    conf: Conf = None,
    packages: Packages = None,
) -> None:
    """Judge recorded runs, any number of any size, by the rules; write the verdict as Parquet.

    With --follow, as a streaming job over one folder, which takes note of what it has judged: it can be killed at any
    time, and goes on when it is started again.
    """
    from reactive_runtime.spark.session import settings_of

    with one_line_errors():
        to = out or runs[0] / "verdict"
        settings = settings_of(conf, packages)
        if follow:
            if len(runs) != 1:
                raise ReactiveError("--follow: should be given one folder, in which runs arrive")
            broken = _followed(runs[0], to, once, master, settings)
        else:
            broken = judged(runs, to, master, settings)
        if broken:
            raise typer.Exit(BROKEN)


@app.command()
def report(
    runs: Annotated[Path, typer.Argument(help="Folder of runs that were judged, or of their verdict.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write.")] = Path("report.html"),
) -> None:
    """Write what was found as one HTML file, to look at in any browser."""
    with one_line_errors():
        reported(runs, out)


def reported(runs: Path, to: Path) -> None:
    """Write the report, and say where it is."""
    from reactive_runtime.report import write_report

    found = write_report(runs, to)
    out.print(f"report   {to} ({len(found.runs)} run(s), {len(found.rows)} scenarios)", soft_wrap=True)


def judged(runs: list[Path], to: Path, master: str, settings: Mapping[str, str]) -> bool:
    """Print the verdict; whether a rule was broken."""
    from reactive_runtime.spark import verify as judge
    from reactive_runtime.spark.session import BRIEF, session
    from reactive_runtime.testing.trace import check_files, metadata_of, run_folders

    files = [file for folder in runs for file in check_files(folder)]  # before Spark starts: it takes its time
    for run in (run for folder in runs for run in run_folders(folder)):
        facts = metadata_of(run)
        if facts is None or not facts.get("complete"):
            why = "has no metadata" if facts is None else "was not completed"
            out.print(f"note     {run}: {why}; what was recorded is judged", style="yellow", soft_wrap=True)
    begin = primitives.monotonic()
    brief = BRIEF if sum(file.stat().st_size for file in files) < _LITTLE else {}
    spark = session(master, {**brief, **settings})
    out.print(f"judging  {len(files)} files with Spark {spark.version} on {master}")
    return _told(judge(spark, runs, to), to, begin)


def _followed(folder: Path, to: Path, once: bool, master: str, settings: Mapping[str, str]) -> bool:
    from reactive_runtime.spark import follow, session

    spark = session(master, settings)
    broken, unable = [], []
    out.print(f"follows  {folder} with Spark {spark.version} on {master}", soft_wrap=True)

    def tell(verdict: Verdict) -> None:
        runs = sorted({it["run"] for it in verdict.summary})
        out.print(f"judged   {', '.join(runs)}", soft_wrap=True)
        if _told(verdict, to, None):
            broken.append(True)

    def skipped(error: TraceError) -> None:
        unable.append(error)
        out.print(f"UNABLE   {error}", style="bold red", soft_wrap=True)

    follow(spark, folder, to, tell, skipped, once=once)
    if unable and not broken:
        raise typer.Exit(UNABLE)
    return bool(broken)


def _told(verdict: Verdict, to: Path, begin: float | None) -> bool:
    _print_summary(verdict)
    _print_verdict(verdict)
    for it in verdict.regressions:
        out.print(
            f"slower   {it['scenario']}, {it['what']}: {it['now'] / 1000:,.0f} µs, {it['ratio']:.1f} times the usual",
            style="yellow",
            soft_wrap=True,
        )
    took = "" if begin is None else f", {primitives.monotonic() - begin:.0f} s"
    out.print(f"verdict  {to}{took}", soft_wrap=True)
    if verdict.clean:
        out.print("clean    no rule was broken", style="green")
    else:
        rules = ", ".join(it["rule"] for it in verdict.violations)
        out.print(f"BROKEN   rule {rules}", style="bold red")
    return not verdict.clean


def _print_summary(verdict: Verdict) -> None:
    table = Table(title="what was judged", title_justify="left")
    names = {
        "scenario": "scenario",
        "subscriptions": "subscriptions",
        "signals": "signals",
        "cancelled": "cancelled",
        "late_p99": "late p99",
        "late_max": "late max",
        "silence_ns_p99": "silence p99, µs",
        "silence_ns_max": "silence max, µs",
    }
    for key, title in names.items():
        table.add_column(title, justify="left" if key == "scenario" else "right")
    for row in verdict.summary:
        table.add_row(*(_cell(key, row[key]) for key in names))
    out.print(table)


def _cell(key: str, value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, int):
        return f"{value / 1_000:,.0f}" if key.startswith("silence") else f"{value:,}"
    return str(value)


def _print_verdict(verdict: Verdict) -> None:
    from reactive_runtime.testing.rules import RULES

    broken = {it["rule"]: it for it in verdict.violations}
    table = Table(title="rule by rule", title_justify="left")
    for title in ("rule", "asks", "broken", "subscriptions"):
        table.add_column(title, justify="right" if title in ("broken", "subscriptions") else "left")
    for rule, asks in RULES.items():
        found = broken.get(rule)
        counts = (f"{found['count']:,}", f"{found['subscriptions']:,}") if found else ("-", "-")
        table.add_row(rule, asks, *counts, style="red" if found else None)
    out.print(table)
    for breach in verdict.examples.values():
        out.print(str(breach), markup=False, soft_wrap=True)
