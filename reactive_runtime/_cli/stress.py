"""`stress`: put publishers under load, and record every signal."""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import random
import re
import secrets
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from reactive_runtime._cli._exits import BROKEN, STATUS
from reactive_runtime._cli.console import Conf, Master, Packages, app, fault, one_line_errors, out, refuse
from reactive_runtime._cli.missing import check_installed
from reactive_runtime._cli.verdict import (
    FailOnRegression,
    check_endings,
    check_master,
    judged,
    print_unseen,
    removed,
    reported,
)
from reactive_runtime._cli.verdict_here import ENGINES, UNJUDGED, AtOnce, agree, judge_at_once
from reactive_runtime._cli.watch import Stop, watched
from reactive_runtime._core.runtime import primitives
from reactive_runtime._results.ci_files import UnwrittenError, write_whole
from reactive_runtime._results.states import Finding, State, findings_of, joined, label_of, line_of, state_of, unfound
from reactive_runtime.errors import ReactiveError, TraceError

if TYPE_CHECKING:
    from reactive_runtime.stress import Failure, Result, Scenario
    from reactive_runtime.testing.trace import TraceWriter


PROGRESS_SECONDS: Final = 2.0

_OF_SPARK: Final = ("master", "conf", "packages")
"""Options that are for Spark alone."""


@app.command()
def stress(
    context: typer.Context,
    scenarios: Annotated[
        list[str] | None, typer.Argument(help="Names of scenarios, or patterns (range_*); all, if there are none.")
    ] = None,
    listing: Annotated[bool, typer.Option("--list", help="Say which scenarios there are, and stop.")] = False,
    tag: Annotated[str | None, typer.Option(help="Only those with this tag: smoke, nightly.")] = None,
    repeat: Annotated[
        str,
        typer.Option(
            help="So many runs, with the seeds that follow, or until-failure; of more than one each is judged here."
        ),
    ] = "1",
    threads: Annotated[int, typer.Option(min=1, max=1_024, help="Threads that fire request and cancel.")] = 12,
    seconds: Annotated[float, typer.Option(min=0.1, help="Seconds of load.")] = 30.0,
    seed: Annotated[
        int | None, typer.Option(help="Seed of all random numbers; drawn and printed, if not given.")
    ] = None,
    pool: Annotated[
        str, typer.Option(help="threads: all scenarios in turn; processes-per-scenario: each in one of its own.")
    ] = "threads",
    python: Annotated[
        list[str] | None, typer.Option(help="An interpreter to run under; several run side by side, a run for each.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the runs; each gets a folder of its own in it.")] = Path("runs"),
    where: Annotated[
        str | None,
        typer.Option(
            "--scenarios",
            help="Folder of scenario files, or a module that has some; default: ./stress, else those of the package.",
        ),
    ] = None,
    fault: Annotated[
        str, typer.Option(envvar="REACTIVE_RUNTIME_FAULT", help="Swap in a broken subscription, to see it caught.")
    ] = "",
    verify: Annotated[bool, typer.Option("--verify", help="Judge the runs when the load is over.")] = False,
    engine: Annotated[
        str,
        typer.Option(help="With --verify: spark, which also writes the tables; or local, in this process."),
    ] = "spark",
    report: Annotated[
        list[Path] | None,
        typer.Option(
            help="With --verify: write the report to this file, .html, .md or .json; may be given many times."
        ),
    ] = None,
    junit: Annotated[Path | None, typer.Option(help="Write what became of each scenario, as JUnit's XML.")] = None,
    fail_on_regression: FailOnRegression = False,
    machine: Annotated[
        str,
        typer.Option(
            envvar="REACTIVE_RUNTIME_MACHINE",
            help="Name of this machine: runs are compared with those of the same; default: host, cores and system.",
        ),
    ] = "",
    master: Master = "local[*]",
    conf: Conf = None,
    packages: Packages = None,
) -> None:
    """Put publishers under load by many threads, and record every signal to Parquet.

    With --verify the runs are judged at once in this process, and then by Spark, and the two have to agree; with
    --repeat each run is judged as it is done, without Spark. Ctrl-C and SIGTERM end the load after the round under
    way: what there is by then is judged; a second one ends all.
    """

    def work() -> None:
        with one_line_errors():
            put_and_judge()  # all paths are absolute there: a scenario may change the working folder

    def put_and_judge() -> None:
        asked = _Asked(
            scenarios or [],
            tag,
            folder,
            repeat,
            verify,
            engine,
            [file.absolute() for file in report or []],
            junit and junit.absolute(),
            master,
            settings,
            fail_on_regression,
            fault,
        )
        there, to = (str(Path(folder).absolute()) if Path(folder).is_dir() else folder), out.absolute()
        here = Path.cwd()
        asked.carry_out(listing, lambda n, found, stop: _Load(
            found, there, threads, seconds, first + n, to, fault, machine, in_processes, python or [], stop, here
        ))  # fmt: skip

    with one_line_errors():
        check_endings("--report", report or [])
        if not listing:
            _forgotten(report or [], junit)
        if pool not in ("threads", "processes-per-scenario"):
            raise ReactiveError(f"--pool {pool}: should be threads, or processes-per-scenario")
        if not math.isfinite(seconds):
            raise ReactiveError(f"--seconds {seconds}: should be a number of seconds")
        if engine not in ENGINES:
            raise ReactiveError(f"--engine {engine}: should be spark, or local")
        if engine == "local" and (report or fail_on_regression):
            raise ReactiveError("--engine local: --report and --fail-on-regression need the tables that Spark writes")
        if engine == "local":
            refuse(context, _OF_SPARK, "--engine local starts no Spark")
        if not verify:
            refuse(context, ("report",), "there is nothing to report without a verdict: add --verify")
            refuse(context, ("fail_on_regression",), "nothing is compared without a verdict: add --verify")
            refuse(context, ("engine", *_OF_SPARK), "is for the verdict: add --verify")
        check_installed(*_needed(verify, engine, report or []))
        from reactive_runtime.spark._session.spark_session import settings_of
        from reactive_runtime.stress._declaring import default_folder

        if verify and engine == "spark":
            check_master(master)
        settings = settings_of(conf, packages)
        in_processes = pool == "processes-per-scenario"
        folder = where if where is not None else default_folder()
        first = random.randrange(2**31) if seed is None else seed
        watched(work)


_UNENDED: Final = "the run did not come to its end"


def _needed(verify: bool, engine: str, report: Sequence[Path]) -> Iterator[str]:
    """The packages that this load and its verdict will take."""
    yield from ("numpy", "pyarrow")
    if verify and engine == "spark":
        yield "pyspark"
    if report:
        yield "jinja2"


def _forgotten(report: list[Path], junit: Path | None) -> None:
    """What an earlier night has left does not outlive this one, whichever way it ends."""
    from reactive_runtime.stress._junit import write_junit

    for option, file in (*(("--report", file) for file in report), ("--junit", junit)):
        if file is not None and file.is_dir():
            raise ReactiveError(f"{option} {file}: is a folder, and should be a file")
    for file in report:
        removed(file)
    if junit is not None:
        write_junit(junit, {}, [], unable=[_UNENDED])


@dataclass
class _Asked:
    """What is to be done with the load and what comes of it, and what has come of it so far."""

    names: list[str]
    tag: str | None
    where: str
    repeat: str
    verify: bool
    engine: str
    report: list[Path]
    junit: Path | None
    master: str
    settings: dict[str, str]
    fail_on_regression: bool
    fault: str
    given_up: list[Failure] = field(default_factory=list)
    judged_here: dict[Path, dict[str, set[str]]] = field(default_factory=dict)
    """By run: the rules that each scenario broke, of those that were judged."""
    runs: list[Path] = field(default_factory=list)
    found: list[Scenario] = field(default_factory=list)
    unable: list[str] = field(default_factory=list)
    """Why something could not be judged."""
    slower: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    """A line for each part that was not looked at: a file that the disk refused, runs that were not begun."""
    without_verdict: str = ""
    """Why there is no verdict, where the command ends before it has one."""
    recursion_limit: int = field(default_factory=sys.getrecursionlimit)
    began: float = field(default_factory=primitives.monotonic)

    def carry_out(self, listing: bool, load: Callable[[int, list[Scenario], Stop], _Load]) -> None:
        """All of it."""
        from reactive_runtime.stress import Failure, find
        from reactive_runtime.testing.trace import metadata_of

        stop = Stop()
        stop.listen()
        try:
            with one_line_errors():
                self.found = find(
                    self.where,
                    self.names,
                    tag=self.tag,
                    skipped=lambda file, error: self.given_up.append(Failure(file.name, str(error))),
                )
                if listing:
                    _list(self.found)
                    _print_given_up(self.given_up)
                    return
                if self.fault:
                    self.found = _without_those_left_out(self.found, self.fault)
                self.without_verdict = _UNENDED
                self._write_junit()  # as it is where the process is killed
                self.without_verdict = ""
                self._put_under_load(load, stop)
                self._judge()
                if self.fault and self._wanted:
                    _print_verdict_on(self.fault, self.broken)
                    judged = self.judged_here.items()
                    self.lost += unfound((metadata_of(run) or {}, of) for run, of in judged)
        except typer.Exit as left:
            self.without_verdict = "the run could not be judged: what it has printed says why"
            self._write_junit()
            broken = self._state in (State.BROKEN, State.STUCK)
            raise typer.Exit(BROKEN if broken else left.exit_code) from None
        self._write_junit()
        findings, lost = self._findings(), [*self.lost, *self.unable]
        print_unseen(findings)
        if not self._wanted and self._state in (State.RECORDED, State.INCOMPLETE):
            out.print("unjudged no record was judged: add --verify, or judge the runs with `reactive-runtime verify`")
        if self._state in (State.INCOMPLETE, State.UNUSABLE):
            word = "INCOMPLETE" if self._state is State.INCOMPLETE else "UNUSABLE"
            out.print(f"{word} {line_of(findings, lost)}", style="bold yellow", soft_wrap=True)
        _print_given_up(self.given_up)
        if self.slower and self.fail_on_regression:
            raise typer.Exit(BROKEN)
        if STATUS[self._state]:
            raise typer.Exit(STATUS[self._state])

    @property
    def _wanted(self) -> bool:
        """Whether a verdict was asked for."""
        return self.verify or self.repeat != "1"

    @property
    def broken(self) -> dict[str, set[str]]:
        """The rules that each scenario broke, by its name in the records."""
        found: dict[str, set[str]] = {}
        for run in self.judged_here.values():
            for name, rules in run.items():
                if rules:
                    found.setdefault(name, set()).update(rules)
        return found

    @property
    def _state(self) -> State:
        """The state of all."""
        return state_of(self._findings(), [*self.lost, *self.unable])

    def _findings(self) -> dict[str, Finding]:
        """The state of each scenario, by the metadata of its runs and by the verdict."""
        from reactive_runtime.testing.trace import metadata_of

        named = {
            "scenarios": [item.name for item in self.found],
            "given_up": {item.scenario: item.why for item in self.given_up},
            "failed": _failed(self.given_up),
        }
        unable = self.without_verdict or (UNJUDGED if self.unable else "")
        if not self.runs:
            return findings_of({**named, "complete": True}, {}, unable)
        runs = []
        for run in self.runs:
            judged = self.judged_here.get(run, {}) if self._wanted else None
            metadata = metadata_of(run) or {}
            runs.append((label_of(metadata), findings_of(metadata | named, judged, unable)))
        return joined(runs)

    def _put_under_load(self, load: Callable[[int, list[Scenario], Stop], _Load], stop: Stop) -> None:
        with stop.heard():  # also between two runs
            for n in _repeated(self.repeat):
                this = load(n, self.found, stop)
                made, failures = this.runs(self.given_up)
                self.lost += this.lost
                self.runs += made
                if self.repeat != "1":
                    for run in made:
                        self._judge_at_once([run], this.seed)
                self.given_up += failures
                if self.broken or failures or self.lost:
                    break
                if stop.asked is not None:
                    self.lost += _unbegun(self.repeat, n + 1)
                    break

    def _judge(self) -> None:
        if not self.verify:
            return
        here = self._judge_at_once(self.runs)
        if self.engine == "local":
            return
        to = self.runs[0].parent.parent / "verdict"
        came = judged(self.runs, to, self.master, self.settings, here.unable)
        self.unable += [item for item in came.unable if item not in self.unable]
        self.slower += came.slower
        for run in self.runs:
            for name, rules in _broken_by(to, [run]).items():
                self.judged_here.setdefault(run, {}).setdefault(name, set()).update(rules)
        if not (came.unable or here.unable):
            agree(here, to)
        reported(to, self.report)

    def _judge_at_once(self, runs: list[Path], seed: int | None = None) -> AtOnce:
        sys.setrecursionlimit(self.recursion_limit)  # a scenario may have set one of its own
        show = seed is not None or self.engine == "local"  # otherwise Spark will show them
        here = judge_at_once(runs, show, seed)
        self.judged_here |= here.judged
        self.unable += here.unable
        return here

    def _write_junit(self) -> None:
        """Write what became of each scenario. What can't be written is a line, and makes the run incomplete."""
        from reactive_runtime.stress._junit import write_junit

        if self.junit is None:
            return
        seconds = primitives.monotonic() - self.began
        slower = self.slower if self.fail_on_regression else []
        unable = [*self.lost, *self.unable, *filter(None, [self.without_verdict])]
        try:
            write_junit(self.junit, self._findings(), self.given_up, self.runs, unable, slower, seconds)
        except UnwrittenError as error:
            fault(error)
            self.lost.append(str(error))


def _failed(failures: Iterable[Failure]) -> dict[str, str]:
    """Of the scenarios that were given up, those of which that is a failure: stuck, or the rule that was broken."""
    return {item.scenario: item.rule or State.STUCK.value for item in failures if item.rule or item.stuck}


# -- the load -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Load:
    """What a run is to be."""

    scenarios: list[Scenario]
    where: str
    threads: int
    seconds: float
    seed: int
    to: Path
    fault: str
    machine: str
    in_processes: bool
    pythons: list[str]
    stop: Stop
    began_in: Path
    """The working folder before any scenario was imported: one may change it."""
    lost: list[str] = field(default_factory=list)
    """The files that the disk refused, a line each: that run is cut off there."""

    def runs(self, skipped: list[Failure]) -> tuple[list[Path], list[Failure]]:
        """Run it, once for each interpreter, side by side. The folders of the runs, and what was given up."""
        from reactive_runtime.stress._processes import version_of

        # Two hosts may begin in the same second with the same seed.
        name = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{self.seed}-{secrets.token_hex(2)}"
        process = "" if not self.in_processes else ", a process a scenario"
        out.print(
            f"load     {len(self.scenarios)} scenarios, {self.threads} threads, {self.seconds:g} s,"
            f" seed {self.seed}{process}"
        )
        if not self.pythons and not self.in_processes:
            path, failures = self._here(self._writer(name), skipped)
            return [path], failures
        versions = [(python, version_of(python)) for python in self.pythons] or [("", "")]
        writers = []
        for number, (python, version) in enumerate(versions):
            same = sum(version == earlier for _, earlier in versions[:number])
            of = f"-py{version}{f'-{same + 1}' if same else ''}" if version else ""
            writers.append((python, self._writer(f"{name}{of}", version)))
        return self._elsewhere(writers, skipped)

    def _writer(self, name: str, python: str = "") -> TraceWriter:
        from reactive_runtime import __version__
        from reactive_runtime.stress._faults import fault_of
        from reactive_runtime.testing.trace import TraceWriter

        facts = {
            "version": __version__,
            "commit": _commit(self.began_in),
            "scenarios": [scenario.name for scenario in self.scenarios],
            "seed": self.seed,
            "threads": self.threads,
            "fault": self.fault or None,
            "fault_rule": fault_of(self.fault).rule if self.fault else None,
        }
        named = {"python": python, "machine": self.machine}
        return TraceWriter(self.to, name, facts | {what: name for what, name in named.items() if name})

    def _here(self, writer: TraceWriter, skipped: list[Failure]) -> tuple[Path, list[Failure]]:
        """In this process, all scenarios in turn."""
        from reactive_runtime.stress import Load, planted, run

        before = set(primitives.running_threads())
        with (
            planted(self.fault) if self.fault else contextlib.nullcontext(),
            _progress(self.seconds, self.scenarios) as progress,
        ):

            def over(result: Result) -> bool:
                progress(result)
                return writer.failed or self.stop.asked is not None

            result = run(self.scenarios, Load(self.threads, self.seconds, self.seed), writer.recorder(), over)
        left = _still_running(before)
        self._close(writer, result, skipped, left)
        return writer.path, result.failures

    def _elsewhere(
        self, writers: list[tuple[str, TraceWriter]], skipped: list[Failure]
    ) -> tuple[list[Path], list[Failure]]:
        """In processes of their own, those of all interpreters side by side."""
        from reactive_runtime.stress import Load
        from reactive_runtime.stress._processes import Order, Processes, run_in_processes

        names = [scenario.name for scenario in self.scenarios]
        groups = [[name] for name in names] if self.in_processes else [names]
        at_once = max(1, (os.cpu_count() or 1) // len(writers)) if self.in_processes else 1
        seconds = self.seconds * min(at_once, len(groups)) / len(groups)

        processes = Processes()

        def carried_out(python: str, writer: TraceWriter) -> Result:
            orders = [
                Order(
                    self.where,
                    group,
                    Load(self.threads, seconds, self.seed),
                    self.fault,
                    python or sys.executable,
                )
                for group in groups
            ]
            return run_in_processes(orders, writer, at_once, processes)

        with self.stop.heard(processes.stop), ThreadPoolExecutor(len(writers)) as pool:
            results = list(pool.map(lambda item: carried_out(*item), writers))
        for (_, writer), result in zip(writers, results, strict=True):
            self._close(writer, result, skipped)
        return [writer.path for _, writer in writers], [failure for result in results for failure in result.failures]

    def _close(self, writer: TraceWriter, result: Result, skipped: list[Failure], left: Sequence[str] = ()) -> None:
        """The end of a run: what it amounted to, on paper and on the terminal. `left`: threads that still run."""
        stopped = self.stop.asked is not None
        whole = self._written(
            writer,
            {
                "stopped": stopped,
                "cut_short": result.cut_short,
                "threads_left": list(left),
                "seconds": round(result.seconds, 3),
                "load": {name: item.facts() for name, item in result.load.items()},
                "given_up": {item.scenario: item.why for item in (*skipped, *result.failures)},
                "failed": _failed(result.failures),
                "dropped": dict(result.dropped),
                "leaving": {
                    name: metric.facts() for name, metric in result.cancellation_metrics.items() if metric.idle
                },
            },
        )
        if stopped:
            out.print(f"stopped  after {result.seconds:.1f} of {self.seconds:g} s: what there is by now is judged")
        if left:
            shown = ", ".join(left[:5]) + (", ..." if len(left) > 5 else "")
            out.print(f"threads  {len(left)} that scenarios have started still run: {shown}", soft_wrap=True)
        for what, count in result.dropped.most_common():
            out.print(f"dropped  {count:,} x {what}", soft_wrap=True)
        stacks = "\n".join(
            f"{failure.scenario}: {failure.why}\n\n{failure.stacks}" for failure in result.failures if failure.stuck
        )
        if stacks and whole:
            self._write_stuck(writer.path / "stuck.txt", stacks)
        measured = [metric for metric in result.cancellation_metrics.values() if metric.idle]
        if measured:
            idle = 1e3 * max(seconds for item in measured for seconds in item.idle)
            closed = 1e3 * max((seconds for item in measured for seconds in item.closed), default=0.0)
            out.print(
                f"left     {sum(item.subscribers for item in measured):,} subscribers in mid-stream: nothing of them"
                f" was left on a pool after {idle:.1f} ms, every iterator closed after {closed:.1f} ms,"
                f" {sum(item.kept for item in measured)} could not be collected",
                soft_wrap=True,
            )
        if writer.waited > 0.01 * self.threads * result.seconds:
            out.print(f"recorder held the load up: its threads waited {writer.waited:.1f} s for the files")
        if len(result.load) > 1:
            least = min(result.load.items(), key=lambda item: item[1].signals)
            fewest = min(item.rounds for item in result.load.values())
            out.print(
                f"shared   each scenario had {fewest:,} rounds or more, and {least[1].signals:,} signals or more"
                f" (fewest: {least[0]})",
                markup=False,
                soft_wrap=True,
            )
        rate = writer.rows / max(result.seconds, 1e-9)
        word = "recorded" if whole else "cut off,"
        out.print(
            f"{word} {writer.rows:,} signals and calls of {result.subscriptions:,} subscriptions"
            f" in {result.seconds:.1f} s ({rate:,.0f} a second)\nrun      {writer.path}",
            soft_wrap=True,
        )

    def _write_stuck(self, file: Path, stacks: str) -> None:
        try:
            write_whole(file, stacks.encode())
        except UnwrittenError as error:
            fault(error)
            self.lost.append(str(error))
        else:
            out.print(f"stuck    what all threads were at: {file}", style="red", soft_wrap=True)

    def _written(self, writer: TraceWriter, metadata: dict[str, Any]) -> bool:
        """Finish the run; whether all of it was written. What was, until a disk was full, stays and can be judged."""
        try:
            writer.close(metadata)
        except TraceError as error:
            fault(error)
            self.lost.append(f"{writer.path}: was cut off: {str(error).partition(': ')[2]}")
            return False
        return True


def _still_running(before: set[primitives.Thread]) -> list[str]:
    """The threads that the load has left behind, after a moment in which they may come to their end."""
    patience = primitives.monotonic() + 1.0
    while True:
        left = [
            thread for thread in primitives.running_threads() if thread not in before and thread.name != "trace writer"
        ]
        if not left or primitives.monotonic() > patience:
            return sorted(rest.name for rest in left)
        primitives.Event().wait(0.01)


def _commit(folder: Path) -> str | None:
    """Of the code that the load is put on: what git says of that folder; `+` where it was changed since."""
    ask = ["git", "describe", "--always", "--abbrev=12", "--exclude=*", "--dirty=+"]
    try:
        answer = subprocess.run(ask, cwd=folder, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip() or None


@contextlib.contextmanager
def _progress(seconds: float, scenarios: list[Scenario]) -> Iterator[Callable[[Result], object]]:
    """A bar where there is a terminal, a plain line every two seconds where there is none."""

    def status(result: Result) -> str:
        return f"{result.signals:,} signals in {result.rounds:,} rounds, now {result.running}"

    if not out.is_terminal:
        said = [0.0]

        def say(result: Result) -> None:
            if result.seconds - said[0] >= PROGRESS_SECONDS:
                said[0] = result.seconds
                done = min(1.0, result.seconds / seconds)
                out.print(f"         {done:4.0%} of {seconds:g} s, {status(result)}", markup=False, soft_wrap=True)

        yield say
        return
    columns = (TextColumn("load    "), BarColumn(), TimeElapsedColumn(), TextColumn("{task.fields[status]}"))
    with Progress(*columns, console=out, transient=True) as bar:
        task = bar.add_task("load", total=seconds, status="")
        yield lambda result: bar.update(task, completed=result.seconds, status=status(result))


def _without_those_left_out(scenarios: list[Scenario], fault: str) -> list[Scenario]:
    """Those that a fault can be planted in; says which are left out, and why. ReactiveError if none is left."""
    from reactive_runtime.stress._faults import NO_ANSWER, answered, fault_of

    planted = fault_of(fault)
    found, left_out = answered(scenarios)
    names = ", ".join(item.name for item in left_out)
    if not found:
        raise ReactiveError(f"--fault {fault}: can't be planted in {names}: {NO_ANSWER}")
    lines = [f"fault    {fault}, of rule {planted.rule}: {planted.summary}"]
    if left_out:
        lines.append(f"left out {names}: {NO_ANSWER}")
    for line in lines:
        out.print(line, style="yellow", markup=False, soft_wrap=True)
    return found


def _list(scenarios: list[Scenario]) -> None:
    table = Table("scenario", "what it is", "live", "tags")
    for scenario in scenarios:
        table.add_row(scenario.name, scenario.summary, str(scenario.live), " ".join(sorted(scenario.tags)))
    out.print(table)


def _repeated(repeat: str) -> Iterable[int]:
    if repeat == "until-failure":
        return itertools.count()
    if not re.fullmatch("0*[1-9][0-9]{0,17}", repeat):
        raise ReactiveError(f"--repeat {repeat}: should be a number of runs, 1 or more, or until-failure")
    return range(int(repeat))


def _unbegun(repeat: str, begun: int) -> Iterator[str]:
    """A line on the runs that were not begun, where the load was ended after `begun` of them."""
    if repeat == "until-failure":
        yield f"--repeat until-failure was ended after {begun} run(s), before one has failed"
    elif (rest := int(repeat) - begun) > 0:
        yield f"{rest} of {int(repeat)} runs were not begun: the load was ended"


def _print_verdict_on(fault: str, broken: dict[str, set[str]]) -> None:
    from reactive_runtime.stress import verdict_on

    line = verdict_on(fault, {rule for rules in broken.values() for rule in rules})
    out.print(f"fault    {line}", style="bold red" if "NOT" in line else "yellow", markup=False, soft_wrap=True)


def _print_given_up(failures: list[Failure]) -> None:
    for failure in failures:
        word = "BROKEN" if failure.rule else "STUCK" if failure.stuck else "UNABLE"
        rule = f"rule {failure.rule}, " if failure.rule else ""
        out.print(f"{word:8} {failure.scenario}: {rule}{failure.why}", style="bold red", soft_wrap=True)


# -- the verdict ----------------------------------------------------------------------------------------------


def _broken_by(verdict: Path, runs: list[Path]) -> dict[str, set[str]]:
    """The rules that each scenario broke in these runs."""
    import pyarrow.parquet as parquet

    found: dict[str, set[str]] = {}
    for run in runs:
        for file in (verdict / "violations" / run.name).glob("*.parquet"):
            for row in parquet.ParquetFile(file).read(["scenario", "rule"]).to_pylist():
                found.setdefault(row["scenario"], set()).add(row["rule"])
    return found
