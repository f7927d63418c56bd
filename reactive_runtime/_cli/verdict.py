"""`verify` and `report`: judge recorded runs with Spark, and show what came of it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from reactive_runtime._cli._exits import BROKEN, INCOMPLETE, STATUS, UNUSABLE
from reactive_runtime._cli.console import (
    Conf,
    Master,
    Packages,
    app,
    fault,
    one_line,
    one_line_errors,
    out,
    refuse,
    titled,
    unable,
)
from reactive_runtime._cli.missing import check_installed
from reactive_runtime._core.runtime import primitives
from reactive_runtime._results.figures import in_words
from reactive_runtime._results.states import Finding, State, grouped
from reactive_runtime.errors import ReactiveError, SparkError, TraceError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from reactive_runtime.report import Report
    from reactive_runtime.spark._verdict.lineage import Outstanding
    from reactive_runtime.spark._verdict.traces import Verdict

__all__ = [
    "Came",
    "FailOnRegression",
    "check_endings",
    "check_master",
    "judged",
    "print_unseen",
    "removed",
    "reported",
    "session_on",
]

FailOnRegression = Annotated[
    bool, typer.Option("--fail-on-regression", help="Exit status 1 also where something has become slower.")
]

_LITTLE = 16 << 20
"""Bytes of Parquet that are judged in less time than the JVM takes to get up to speed: about a million records."""


_REPORT: Final = "report.html"
_YEAR: Final = "year.html"
_ENDINGS: Final = (".html", ".md", ".json")


@app.command()
def verify(
    context: typer.Context,
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
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say how many tasks, bytes and seconds it takes, and judge nothing.")
    ] = False,
    incremental: Annotated[
        bool,
        typer.Option("--incremental", help="Judge only runs that were not judged, or have changed since."),
    ] = False,
    again: Annotated[
        bool,
        typer.Option("--again", help="With --incremental: also what an older version of the rules has judged."),
    ] = False,
    fail_on_regression: FailOnRegression = False,
    master: Master = "local[*]",
    conf: Conf = None,
    packages: Packages = None,
) -> None:
    """Judge recorded runs, any number of any size, by the rules; write the verdict as Parquet.

    With --incremental, only those that were not judged yet: the verdict is on these, and the tables keep the others.

    With --follow, as a streaming job over one folder, which takes note of what it has judged: it can be killed at any
    time, and goes on when it is started again. A run that can't be judged is a line, and the others are judged.
    """
    with one_line_errors():
        check_installed("pyspark")
        from reactive_runtime.spark._session.spark_session import settings_of

        check_master(master)
        if not follow:
            refuse(context, ("once",), "is for runs that arrive: add --follow")
        if follow:
            refuse(context, ("incremental",), "a job that follows judges each run once: leave it out")
        if not incremental:
            refuse(context, ("again",), "is for what was judged before: add --incremental")
        to = out or runs[0] / "verdict"
        settings = settings_of(conf, packages)
        if follow:
            refuse(context, ("dry_run",), "is for runs that are there: leave out --follow")
        if dry_run:
            came = Came()
            refuse(context, ("incremental",), "--dry-run is for all runs that are there: leave it out")
            found = _estimated(runs, master, settings, came)
            if came.unable:
                raise typer.Exit(INCOMPLETE if found else UNUSABLE)
            return
        if follow:
            if len(runs) != 1:
                raise ReactiveError("--follow: should be given one folder, in which runs arrive")
            came = Came()
            try:
                _followed(runs[0], to, once, master, settings, came)
            except KeyboardInterrupt:
                if came.status(fail_on_regression) != BROKEN:
                    raise
                fault("interrupted")
        else:
            came = judged(runs, to, master, settings, incremental=incremental, again=again)
        status = came.status(fail_on_regression)
        if status:
            raise typer.Exit(status)


@app.command()
def report(
    runs: Annotated[Path, typer.Argument(help="Folder of runs that were judged, or of their verdict.")],
    out: Annotated[
        list[Path] | None,
        typer.Option(
            "--out", "-o", help=f"The file to write: .html, .md or .json; may be given many times; default: {_REPORT}."
        ),
    ] = None,
    year: Annotated[
        bool,
        typer.Option("--year", help="Of all nights of a year, on all machines: what began to fail where and when."),
    ] = False,
) -> None:
    """Write what was found as one HTML file, to look at in any browser, and as Markdown or JSON for a CI server.

    The exit status is that of the verdict which is reported; with --year it is 1 where a failure has not ended.
    """
    with one_line_errors():
        check_installed("jinja2", "numpy", "pyarrow")
        files = out or [Path(_YEAR if year else _REPORT)]
        check_endings("--out", files)
        for file in files:
            removed(file)
        status = _reported_year(runs, files) if year else reported(runs, files)
        if status:
            raise typer.Exit(status)


def reported(runs: Path, to: Sequence[Path]) -> int:
    """Write the report, and say where it is. The exit status of the verdict that it shows."""
    from reactive_runtime.report import write_report

    status = 0
    for file in to:
        found = write_report(runs, file)
        status = STATUS[found.state]
        out().print(f"report   {file} ({len(found.runs)} run(s), {len(found.rows)} scenarios)", soft_wrap=True)
    return status


def _reported_year(runs: Path, to: Sequence[Path]) -> int:
    """Write the report on a year, and print what has not ended. The exit status."""
    from reactive_runtime.report import write_year

    lasting = 0
    for file in to:
        year = write_year(runs, file)
        lasting = len(year.lasting)
        of = f"{year.first} to {year.last}, {year.runs:,} run(s) on {len(year.machines):,} machine(s)"
        out().print(f"year     {file} ({of}; {len(year.began):,} failure(s) began, {lasting:,} last)", soft_wrap=True)
    return BROKEN if lasting else 0


@app.command()
def prune(
    runs: Annotated[Path, typer.Argument(help="Folder of runs.")],
    nights: Annotated[int, typer.Option(min=1, help="Nights whose traces are kept, counted from the newest.")],
    verdicts: Annotated[
        int | None, typer.Option(min=1, help="Nights whose verdicts are kept; all of them, if it is not given.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be removed.")] = False,
) -> None:
    """Remove the traces of all but the last nights; their verdicts, which are small, stay as long as you say."""
    with one_line_errors():
        from reactive_runtime.report._retention import prune_traces, prune_verdicts

        for path in prune_traces(runs, nights, dry_run=dry_run):
            out().print(f"removed  {path}", soft_wrap=True)
        if verdicts is not None:
            for run in prune_verdicts(runs, verdicts, dry_run=dry_run):
                out().print(f"removed  verdict on {run}", soft_wrap=True)


_MASTERS: Final = re.compile(r"local(\[(\*|[1-9]\d*)(,\s*\d+)?\])?|local-cluster\[.*\]|yarn|(spark|k8s|sc)://\S+")


def check_master(master: str) -> None:
    """ReactiveError for what can't be one: Spark says that in a hundred lines, and after the load."""
    if not _MASTERS.fullmatch(master):
        known = "local[*], local[2], spark://host:port, k8s://..., yarn"
        raise ReactiveError(f"--master {master}: is no master of Spark: should be like {known}")


def check_endings(option: str, files: Sequence[Path]) -> None:
    """ReactiveError for a report that no format is known for: else it is said after the load."""
    for file in files:
        if file.suffix not in _ENDINGS and not file.is_dir():
            raise ReactiveError(f"{option} {file}: should end in {', '.join(_ENDINGS)}")


def removed(file: Path) -> None:
    """Remove the file of an earlier run: it is no result of this one."""
    try:
        file.unlink(missing_ok=True)
    except OSError as error:
        raise TraceError(f"{file}: can't be written: {error.strerror}") from error


@dataclass
class Came:
    """The outcome of a verdict, for the exit status and JUnit."""

    state: State | None = None
    """The worst state of all that was judged; None where nothing was."""
    slower: list[str] = field(default_factory=list)
    """A line for each thing that has become slower."""
    unable: list[str] = field(default_factory=list)
    """A line for each run that could not be judged, with the reason."""

    def skipped(self, error: TraceError) -> None:
        """A run could not be judged."""
        if str(error) not in self.unable:
            self.unable.append(str(error))
            unable(error)

    def add(self, verdict: Verdict, report: Report) -> None:
        """A verdict was made, and is shown."""
        if self.state is None or STATUS[report.state] == BROKEN or STATUS[self.state] not in (BROKEN, INCOMPLETE):
            self.state = report.state
        self.slower += [in_words(regression) for regression in verdict.regressions]

    def stays(self, report: Report) -> None:
        """Nothing is new: the verdict is the one before."""
        self.state = report.state
        out().print(f"verdict  as before: {report.verdict}", soft_wrap=True)

    def status(self, fail_on_regression: bool) -> int:
        """The exit status."""
        if self.slower and fail_on_regression:
            return BROKEN
        if self.state is None:
            return UNUSABLE if self.unable else 0
        return INCOMPLETE if self.unable and not STATUS[self.state] else STATUS[self.state]


def judged(
    runs: list[Path],
    to: Path,
    master: str,
    settings: Mapping[str, str],
    said: Sequence[str] = (),
    *,
    incremental: bool = False,
    again: bool = False,
) -> Came:
    """Judge the runs below these folders, each that can be, and print the verdict.

    `said`: lines on what could not be judged that have been printed already, and are not printed again.
    `incremental`, `again`: as of `reactive_runtime.spark.verify`.
    """
    from reactive_runtime.judging._stores import few, roots_of
    from reactive_runtime.spark import verify as judge
    from reactive_runtime.spark._session.spark_session import BRIEF, JUDGING, is_there
    from reactive_runtime.spark._verdict import judging
    from reactive_runtime.spark._verdict.lineage import outstanding
    from reactive_runtime.spark._verdict.progress import Progress
    from reactive_runtime.spark._verdict.traces import nothing_judged

    came = Came(unable=[*said])
    # Before Spark starts, which takes its time: is there anything to judge?
    roots = roots_of(map(str, runs))
    left = outstanding(runs, to, again=again) if incremental else None
    if left is not None:
        _print_before(left)
        for line in left.newer:
            came.skipped(line)
        roots = [str(folder) for folder in left.folders]
    begin = primitives.monotonic()
    files: list[Path] | None = None
    if few(roots, judging.FEW):
        files = _looked_at(roots, came)
        if not files and left is not None and left.before:
            if came.unable:
                nothing_judged(to, came.unable, before=True)
            came.stays(_report_of(to))
            return came
        if not files:
            nothing_judged(to, came.unable)
            return came
    if not is_there():  # the settings of one that is there are its owner's, and stay as they are
        is_little = files is not None and sum(file.stat().st_size for file in files) < _LITTLE
        brief = BRIEF if is_little else {}
        settings = {**JUDGING, **brief, **settings}
    spark = session_on(master, settings)
    what = "more files than are looked at one by one" if files is None else f"{len(files)} files"
    out().print(f"judging  {what} with Spark {spark.version} on {master}")
    note = _print_note if files is None else None  # of a few, it has been printed
    with Progress(spark, _print_progress):
        verdict = judge(spark, runs, to, unreadable=came.skipped, note=note, incremental=incremental, again=again)
    if verdict.summary:
        shown = _report_of(to)
        came.add(verdict, shown)
        _print_all(verdict, shown, to, begin)
    return came


def _looked_at(roots: Sequence[str], came: Came) -> list[Path]:
    """The files of all runs that can be judged. Prints what is to be known of each."""
    from reactive_runtime.spark._verdict.sources import notes_of
    from reactive_runtime.testing.trace import check_files, different_runs, run_folders

    found = different_runs([run for folder in roots for run in run_folders(folder)], came.skipped, _print_note)
    for line in notes_of(found):
        _print_note(line)
    files: list[Path] = []
    for held in found:
        try:
            files += check_files(held.folder)
        except TraceError as error:
            came.skipped(error)
    return files


def _print_progress(line: str) -> None:
    out().print(f"working  {line}", soft_wrap=True)


def _print_note(line: str) -> None:
    out().print(f"note     {line}", style="yellow", soft_wrap=True)


def _estimated(runs: Sequence[Path], master: str, settings: Mapping[str, str], came: Came) -> int:
    """Print what a verdict would cost; the number of runs that would be judged."""
    from reactive_runtime.spark import estimate

    spark = session_on(master, settings)
    cost = estimate(spark, runs, came.skipped)
    size, memory = cost.size / 1e6, max(cost.memory / 1e6, 1)
    what = f"{cost.runs:,} run(s), {cost.files:,} files, {cost.rows:,} records, {size:,.1f} MB"
    out().print(f"dry run  {what}", soft_wrap=True)
    side = min(cost.tasks, cost.cores)
    held = f"{side} side by side, each with {memory:,.0f} MB of records at most"
    out().print(f"tasks    {cost.tasks:,} that judge, {held}", soft_wrap=True)
    out().print(f"estimate {max(cost.seconds, 1):,.0f} s if no other work runs on {cost.cores} cores", soft_wrap=True)
    out().print(f"plan     {cost.plan}", soft_wrap=True)
    return cost.runs


def _print_before(left: Outstanding) -> None:
    """A line on the runs that were judged before."""
    if left.before:
        new = f"{len(left.folders):,} to judge" if left.folders else "nothing is new"
        out().print(f"before   {len(left.before):,} run(s) were judged before; {new}", soft_wrap=True)
    if left.older:
        first = min(left.older)
        from reactive_runtime.judging import RULES_VERSION

        rules = left.entries[first].rules
        more = f" and {len(left.older) - 1:,} more" if len(left.older) > 1 else ""
        said = f"{first}{more}: judged by an older version of the rules ({rules}, this is {RULES_VERSION})"
        out().print(f"note     {said}: add --again to judge them again", style="yellow", soft_wrap=True)


def session_on(master: str, settings: Mapping[str, str]) -> SparkSession:
    """Spark, or one line on why it can't be started: it says so in a hundred."""
    from reactive_runtime.spark import session

    try:
        return session(master, settings)
    except ReactiveError:
        raise
    except Exception as error:
        raise SparkError(f"--master {master}: Spark can't be started there: {one_line(error)}") from error


def _followed(folder: Path, to: Path, once: bool, master: str, settings: Mapping[str, str], came: Came) -> None:
    from reactive_runtime.spark import follow

    spark = session_on(master, settings)
    out().print(f"follows  {folder} with Spark {spark.version} on {master}", soft_wrap=True)

    def on_judged(verdict: Verdict) -> None:
        runs = sorted({item["run"] for item in verdict.summary})
        out().print(f"judged   {', '.join(runs)}", soft_wrap=True)
        shown = _report_of(to)
        came.add(verdict, shown)
        _print_all(verdict, shown, to, None)

    follow(spark, folder, to, on_judged, came.skipped, once=once)


def _report_of(to: Path) -> Report:
    """The tables of the report on that verdict, from which the table and the exit status here come too."""
    from reactive_runtime.report import load

    return load(to, history=False)


def print_unseen(findings: Mapping[str, Finding]) -> None:
    """A table of the scenarios that were not looked at as a whole, by state and reason; nothing where all were."""
    rows = [item for item in grouped(findings) if item[0].unseen and item[0] is not State.RECORDED]
    if not rows:
        return
    table = titled("what was not looked at")
    for title in ("state", "scenarios", "why"):
        table.add_column(title)
    for state, why, names in rows:
        table.add_row(state.value, ", ".join(names), why, style="yellow")
    out().print(table)


def _print_all(verdict: Verdict, report: Report, to: Path, begin: float | None) -> None:
    _print_summary(verdict, report)
    print_unseen(report.findings)
    _print_verdict(verdict)
    for regression in verdict.regressions:
        out().print(f"slower   {in_words(regression)}", style="yellow", soft_wrap=True)
    out().print(f"plan     {verdict.plan}", soft_wrap=True)
    took = "" if begin is None else f", {primitives.monotonic() - begin:.0f} s"
    out().print(f"verdict  {to}{took}", soft_wrap=True)
    if verdict.clean and report.state is State.STUCK:
        out().print(f"STUCK    no rule was broken in what there is; {report.unseen}", style="bold red", soft_wrap=True)
    elif verdict.clean and report.unseen:
        said = f"INCOMPLETE no rule was broken in what there is; {report.unseen}"
        out().print(said, style="bold yellow", soft_wrap=True)
    elif verdict.clean:
        out().print("clean    no rule was broken", style="green")
    else:
        rules = ", ".join(violation["rule"] for violation in verdict.violations)
        out().print(f"BROKEN   rule {rules}", style="bold red")


def _print_summary(verdict: Verdict, report: Report) -> None:
    states = {row.scenario: row.finding.state.value for row in report.rows}
    table = titled("what was judged")
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
    table.add_column("state")
    for row in verdict.summary:
        table.add_row(*(_cell(key, row[key]) for key in names), states.get(row["scenario"], "-"))
    out().print(table)


def _cell(key: str, value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, int):
        return f"{value / 1_000:,.0f}" if key.startswith("silence") else f"{value:,}"
    return str(value)


def _print_verdict(verdict: Verdict) -> None:
    from reactive_runtime.testing._rule_checks import RULES

    broken = {violation["rule"]: violation for violation in verdict.violations}
    table = titled("rule by rule")
    for title in ("rule", "asks", "broken", "subscriptions"):
        table.add_column(title, justify="right" if title in ("broken", "subscriptions") else "left")
    for rule, asks in RULES.items():
        found = broken.get(rule)
        counts = (f"{found['count']:,}", f"{found['subscriptions']:,}") if found else ("-", "-")
        table.add_row(rule, asks, *counts, style="red" if found else None)
    out().print(table)
    for breach in verdict.examples.values():
        out().print(str(breach), soft_wrap=True)
