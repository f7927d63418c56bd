"""The command `reactive-runtime`: put publishers under load, judge what was recorded, run the kit, explore schedules.

Exit status: 0 where no rule was broken, 1 where one was, 2 where the command could not do its work; then one line
on standard error says why.
"""

from __future__ import annotations

import contextlib
import itertools
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, NoReturn

from reactive_runtime._core import primitives
from reactive_runtime.errors import ReactiveError

try:
    import typer
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.table import Table
except ImportError:
    sys.exit("reactive-runtime: the command needs typer and rich: pip install 'reactive-runtime[cli]'")

if TYPE_CHECKING:
    from reactive_runtime.spark.traces import Verdict
    from reactive_runtime.stress import Failure, Scenario, Tally
    from reactive_runtime.tck import Outcome, Verification

__all__ = ["app", "main"]

BROKEN: Final = 1
UNABLE: Final = 2

app = typer.Typer(
    name="reactive-runtime",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Reactive Streams for Python threads: stress publishers, judge signals by the rules, run the kit, explore.",
)
out = Console(highlight=False, width=None if sys.stdout.isatty() else 120)

Master = Annotated[str, typer.Option(help="Where Spark runs: local[*], local[2], spark://host:port.")]
Conf = Annotated[list[str] | None, typer.Option(help="A Spark setting, spark.key=value; may be given many times.")]


@app.command()
def stress(
    scenarios: Annotated[
        list[str] | None, typer.Argument(help="Names of scenarios, or patterns (range_*); all, if there are none.")
    ] = None,
    listing: Annotated[bool, typer.Option("--list", help="Say which scenarios there are, and stop.")] = False,
    tag: Annotated[str | None, typer.Option(help="Only those with this tag: smoke, nightly.")] = None,
    repeat: Annotated[
        str, typer.Option(help="So many runs, each judged here, with the seeds that follow; or until-failure.")
    ] = "1",
    threads: Annotated[int, typer.Option(min=1, help="Threads that fire request and cancel.")] = 12,
    seconds: Annotated[float, typer.Option(min=0.1, help="Seconds of load.")] = 30.0,
    seed: Annotated[int | None, typer.Option(help="Seed of all dice; drawn and printed, if not given.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for the runs; each gets a folder of its own in it.")] = Path("runs"),
    where: Annotated[
        str, typer.Option("--scenarios", help="Folder of scenario files, or a module that has some.")
    ] = "stress",
    fault: Annotated[
        str, typer.Option(envvar="REACTIVE_RUNTIME_FAULT", help="Swap in a broken subscription, to see it caught.")
    ] = "",
    verify: Annotated[bool, typer.Option("--verify", help="Judge the run with Spark when the load is over.")] = False,
    junit: Annotated[Path | None, typer.Option(help="Write what became of each scenario, as JUnit's XML.")] = None,
    master: Master = "local[*]",
    conf: Conf = None,
) -> None:
    """Put publishers under fire by many threads, and record every signal to Parquet.

    With --verify the run is judged at once, by Spark; with --repeat each run is judged as it is done, without. Exit
    status 1 says that a rule was broken.
    """
    from reactive_runtime.stress import find
    from reactive_runtime.stress.junit import write_junit

    with _one_line_errors():
        found = find(where, scenarios or [], tag)
        if listing:
            _list(found)
            return
        first = random.randrange(2**31) if seed is None else seed
        broken: dict[str, set[str]] = {}
        for n in _repeated(repeat):
            run, given_up = _load(found, threads, seconds, first + n, out, fault)
            if repeat != "1":
                broken = _judge_here(run, first + n)
            if broken or given_up:
                break
        if verify and _judge([run], run / "verdict", master, conf):
            broken = _broken_by(run / "verdict")
        if junit is not None:
            write_junit(junit, found, broken, given_up)
        _print_given_up(given_up)
        if broken or any(it.stuck for it in given_up):
            raise typer.Exit(BROKEN)
        if given_up:
            raise typer.Exit(UNABLE)


@app.command()
def verify(
    runs: Annotated[list[Path], typer.Argument(help="Folders of runs, or folders that hold such folders.")],
    out: Annotated[
        Path | None, typer.Option(help="Folder for violations and summary; default: <first>/verdict.")
    ] = None,
    master: Master = "local[*]",
    conf: Conf = None,
) -> None:
    """Judge recorded runs, any number of any size, by the rules; write violations and a summary as Parquet."""
    with _one_line_errors():
        if _judge(runs, out or runs[0] / "verdict", master, conf):
            raise typer.Exit(BROKEN)


@app.command()
def tck(
    target: Annotated[
        str,
        typer.Argument(help="package.module:name of a function(elements) that returns a publisher, or a verification."),
    ],
    failed: Annotated[
        str | None, typer.Option(help="package.module:name of a function() that returns a publisher which fails.")
    ] = None,
    timeout: Annotated[float | None, typer.Option(help="Seconds for what has to come.")] = None,
    no_signals_timeout: Annotated[float | None, typer.Option(help="Seconds in which nothing may come.")] = None,
    poll_timeout: Annotated[float | None, typer.Option(help="Seconds between looks that nobody wakes.")] = None,
    gc_timeout: Annotated[float | None, typer.Option(help="Seconds for a subscriber to be dropped (3.13).")] = None,
    call_timeout: Annotated[float | None, typer.Option(help="Seconds after which a call counts as hanging.")] = None,
    max_elements: Annotated[int | None, typer.Option(min=0, help="The longest stream it can make.")] = None,
    recursion: Annotated[
        int | None, typer.Option(min=1, help="How deep request and on_next may recurse (3.3).")
    ] = None,
    skip_stochastic: Annotated[bool, typer.Option(help="Skip what is tested by repetition.")] = False,
) -> None:
    """Is it conformant? Run the kit on a publisher, or on what a verification makes, and print a table, rule by rule.

    Timeouts that are not given are taken from the environment, as the original kit has them (DEFAULT_TIMEOUT_MILLIS).
    """
    from reactive_runtime.tck.command import verification_of

    with _one_line_errors():
        verification = verification_of(
            target,
            failed=failed,
            default_timeout=timeout,
            default_no_signals_timeout=no_signals_timeout,
            default_poll_timeout=poll_timeout,
            publisher_reference_gc_timeout=gc_timeout,
            call_timeout=call_timeout,
            max_elements_from_publisher=max_elements,
            bounded_depth_of_on_next_and_request_recursion=recursion,
            skip_stochastic_tests=skip_stochastic or None,
        )
        _run_checks(target, verification)


@app.command()
def explore(
    target: Annotated[
        str,
        typer.Argument(help="package.module:name of a class with actor_ methods, a Scenario or a function."),
    ],
    schedules: Annotated[int, typer.Option(min=1, help="Schedules to run, at most.")] = 2_000,
    seed: Annotated[int, typer.Option(help="Seed of all dice.")] = 0,
    strategy: Annotated[
        str, typer.Option(help="portfolio, random, pct or pct<depth>, pos, urw, bounded.")
    ] = "portfolio",
    points: Annotated[str, typer.Option(help="Where threads can change: sync, shared, line, opcode.")] = "shared",
    bound: Annotated[int | None, typer.Option(min=0, help="Preemptions that bounded goes to, at most.")] = None,
    module: Annotated[list[str] | None, typer.Option(help="A further module to look into.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Steps of a schedule, at most.")] = 20_000,
    jobs: Annotated[int, typer.Option(min=1, help="Processes, each with a seed and a core of its own.")] = 1,
    engine: Annotated[str, typer.Option(help="threads, or greenlets.")] = "threads",
    replay: Annotated[Path | None, typer.Option(help="Run the one schedule that was saved to this file.")] = None,
    save: Annotated[Path | None, typer.Option(help="Write a failing schedule to this file.")] = None,
    svg: Annotated[Path | None, typer.Option(help="Draw a failing schedule to this file.")] = None,
) -> None:
    """Run a program of threads under many schedules, one thread at a time, until it fails; draw the schedule.

    Exit status 1 says that it failed, 0 that it held under as many schedules as is printed.
    """
    from reactive_runtime.explore.command import Asked, explored, replayed, saved

    with _one_line_errors():
        modules = tuple(module or ())
        if replay is not None:
            result = replayed(target, replay, modules)
        else:
            asked = Asked(target, schedules, seed, strategy, points, modules, bound, limit, engine)
            result = explored(asked, jobs)
        for note in result.notes:
            out.print(f"note     {note}", markup=False, soft_wrap=True)
        rate = result.schedules / max(result.seconds, 1e-9)
        out.print(
            f"explored {result.scenario}: {result.schedules:,} schedules in {result.seconds:.2f} s"
            f" ({rate:,.0f} a second), {result.strategy}, points {result.points}, seed {result.seed}",
            soft_wrap=True,
        )
        failure = result.failure
        if failure is None:
            out.print(f"HOLDS    {result.verdict}", style="green")
            return
        out.print(f"\n{failure.diagram()}\n", markup=False, soft_wrap=True)
        if save is not None:
            saved(result, save)
        if svg is not None:
            svg.write_text(failure.svg())
        again = f"--replay {save}" if save is not None else f"token {failure.token}"
        if not failure.gil:
            out.print("note     this schedule needs a build without a GIL", markup=False)
        least = ", the fewest there are" if failure.minimal else ""
        out.print(f"again    {again}", markup=False, soft_wrap=True)
        out.print(
            f"FAILS    found by schedule {failure.found_after}, {failure.preemptions} preemption(s){least}",
            style="bold red",
        )
        raise typer.Exit(BROKEN)


# -- the load -------------------------------------------------------------------------------------------------


def _list(scenarios: list[Scenario]) -> None:
    table = Table("scenario", "what it is", "live", "tags")
    for it in scenarios:
        table.add_row(it.name, it.summary, str(it.live), " ".join(sorted(it.tags)))
    out.print(table)


def _repeated(repeat: str) -> Iterable[int]:
    if repeat == "until-failure":
        return itertools.count()
    if not repeat.isdecimal() or repeat == "0":
        raise ReactiveError(f"--repeat {repeat}: should be a number of runs, 1 or more, or until-failure")
    return range(int(repeat))


def _judge_here(run: Path, seed: int) -> dict[str, set[str]]:
    """By the checker, in this process: for runs that fit into memory. The rules that each scenario broke."""
    from reactive_runtime.testing.checker import check
    from reactive_runtime.testing.trace import read_trace

    violations = check(read_trace(run), context=12)
    for shown in violations[:3]:
        out.print(str(shown), markup=False, soft_wrap=True)
    if violations:
        rules = ", ".join(sorted({it.rule for it in violations}))
        out.print(f"BROKEN   rule {rules}, with seed {seed}", style="bold red")
    else:
        out.print("clean    no rule was broken", style="green")
    broken: dict[str, set[str]] = {}
    for it in violations:
        broken.setdefault(it.scenario, set()).add(it.rule)
    return broken


def _print_given_up(failures: list[Failure]) -> None:
    for it in failures:
        out.print(f"{'STUCK' if it.stuck else 'UNABLE':8} {it.scenario}: {it.why}", style="bold red", soft_wrap=True)


def _load(
    scenarios: list[Scenario], threads: int, seconds: float, seed: int, to: Path, fault: str
) -> tuple[Path, list[Failure]]:
    from reactive_runtime import __version__
    from reactive_runtime.stress import Load, planted, run
    from reactive_runtime.testing.trace import TraceWriter

    writer = TraceWriter(to, f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{seed}")
    out.print(f"load     {len(scenarios)} scenarios, {threads} threads, {seconds:g} s, seed {seed}")
    if fault:
        out.print(f"fault    {fault} is planted: the verdict has to name it", style="yellow")
    with planted(fault) if fault else contextlib.nullcontext(), _progress(seconds, scenarios) as progress:
        tally = run(
            scenarios, Load(threads, seconds, seed), writer.recorder(), lambda tally: progress(tally, writer.rows)
        )
    writer.close(
        {
            "version": __version__,
            "scenarios": [scenario.name for scenario in scenarios],
            "seed": seed,
            "threads": threads,
            "seconds": round(tally.seconds, 3),
            "fault": fault or None,
            "given_up": {it.scenario: it.why for it in tally.failures},
            "dropped": dict(tally.dropped),
        }
    )
    for what, count in tally.dropped.most_common():
        out.print(f"dropped  {count:,} x {what}", markup=False, soft_wrap=True)
    stacks = "\n".join(f"{it.scenario}: {it.why}\n\n{it.stacks}" for it in tally.failures if it.stuck)
    if stacks:
        (writer.path / "stuck.txt").write_text(stacks, encoding="utf-8")
        out.print(f"stuck    what all threads were at: {writer.path / 'stuck.txt'}", style="red", soft_wrap=True)
    rate = writer.rows / tally.seconds
    out.print(
        f"recorded {writer.rows:,} signals of {tally.subscriptions:,} subscriptions in {tally.seconds:.1f} s"
        f" ({rate:,.0f} a second)\nrun      {writer.path}",
        soft_wrap=True,
    )
    return writer.path, tally.failures


@contextlib.contextmanager
def _progress(seconds: float, scenarios: list[Scenario]) -> Iterator[Callable[[Tally, int], None]]:
    """A bar where there is a terminal, a plain line every five seconds where there is none."""
    if not out.is_terminal:
        said = [0.0]

        def say(tally: Tally, rows: int) -> None:
            if tally.seconds - said[0] >= 5:
                said[0] = tally.seconds
                out.print(f"         {tally.seconds:3.0f} of {seconds:g} s, {rows:,} signals written")

        yield say
        return
    columns = (TextColumn("load    "), BarColumn(), TimeElapsedColumn(), TextColumn("{task.fields[rows]:,} signals"))
    with Progress(*columns, console=out, transient=True) as bar:
        task = bar.add_task("load", total=seconds, rows=0)
        yield lambda tally, rows: bar.update(task, completed=tally.seconds, rows=rows)


# -- the verdict ----------------------------------------------------------------------------------------------


def _judge(runs: list[Path], to: Path, master: str, conf: list[str] | None) -> bool:
    """Print the verdict; whether a rule was broken."""
    from reactive_runtime.spark import session
    from reactive_runtime.spark import verify as judge
    from reactive_runtime.testing.trace import check_files

    files = [file for folder in runs for file in check_files(folder)]  # before Spark starts: it takes its time
    begin = primitives.monotonic()
    spark = session(master, dict(_setting(text) for text in conf or []))
    out.print(f"judging  {len(files)} files with Spark {spark.version} on {master}")
    verdict = judge(spark, runs, to)
    _print_summary(verdict)
    _print_verdict(verdict)
    out.print(f"verdict  {to} (violations, summary), {primitives.monotonic() - begin:.0f} s", soft_wrap=True)
    if verdict.clean:
        out.print("clean    no rule was broken", style="green")
    else:
        rules = ", ".join(it["rule"] for it in verdict.violations)
        out.print(f"BROKEN   rule {rules}", style="bold red")
    return not verdict.clean


def _broken_by(verdict: Path) -> dict[str, set[str]]:
    """The rules that each scenario broke."""
    import pyarrow.parquet as parquet

    table = parquet.read_table(verdict / "violations", columns=["scenario", "rule"])
    found: dict[str, set[str]] = {}
    for row in table.group_by(["scenario", "rule"]).aggregate([]).to_pylist():
        found.setdefault(row["scenario"], set()).add(row["rule"])
    return found


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.startswith("spark."):
        raise ReactiveError(f"--conf {text!r}: should be spark.key=value")
    return key, value


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
    from reactive_runtime.testing.checker import check
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
    for rule, records in verdict.examples.items():
        shown = next((it for it in check(records, context=12) if it.rule == rule), None)
        out.print(str(shown) if shown else f"rule {rule}: {RULES[rule]}", markup=False, soft_wrap=True)


# -- the kit --------------------------------------------------------------------------------------------------

STYLES: Final = {"passed": "green", "failed": "bold red", "skipped": None}


def _run_checks(target: str, verification: Verification) -> None:
    table = Table(title=f"{target}, rule by rule", title_justify="left", show_lines=False)
    for title in ("rule", "check", "kind", "outcome"):
        table.add_column(title)
    counts: Counter[str] = Counter()
    begin = primitives.monotonic()
    failures: list[Outcome] = []
    for outcome in verification.outcomes():
        counts[outcome.status] += 1
        if outcome.status == "failed":
            failures.append(outcome)
        it = outcome.check
        kind = it.kind if it.original else f"{it.kind}, extra"
        table.add_row(it.rule, it.sentence, kind, _why(outcome), style=STYLES[outcome.status])
    out.print(table)
    for failure in failures:
        out.print(f"{failure.check.name}\n{failure.why}\n", markup=False, soft_wrap=True)
    seconds = primitives.monotonic() - begin
    out.print(f"{', '.join(f'{counts[status]} {status}' for status in STYLES)}, in {seconds:.1f} s")
    if failures:
        rules = sorted({it.check.rule for it in failures}, key=lambda rule: [int(part) for part in rule.split(".")])
        out.print(f"BROKEN   rule {', '.join(rules)}", style="bold red")
        raise typer.Exit(BROKEN)
    out.print("CONFORMS no check failed", style="green")


def _why(outcome: Outcome) -> str:
    """In a table there is room for a line: what was seen, or why it was skipped."""
    if outcome.status == "passed":
        return "passed"
    seen = next((line for line in outcome.why.splitlines() if line.startswith("  seen: ")), outcome.why)
    seen = seen.removeprefix("  seen: ").removeprefix(f"rule {outcome.check.rule}: ")
    return f"{outcome.status}: {seen.splitlines()[0]}"


# -- errors ---------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _one_line_errors() -> Iterator[None]:
    try:
        yield
    except ReactiveError as error:
        _stop(str(error))
    except ValueError as error:  # an option that only the one who uses it can judge
        _stop(str(error))
    except KeyboardInterrupt:
        _stop("interrupted")


def _stop(why: str) -> NoReturn:
    print(f"reactive-runtime: {why}", file=sys.stderr)
    raise typer.Exit(UNABLE)


def main() -> None:
    """Run the command."""
    app()
