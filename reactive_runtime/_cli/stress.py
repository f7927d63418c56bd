"""`stress`: put publishers under load, and record every signal."""

from __future__ import annotations

import itertools
import math
import random
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from reactive_runtime._cli import stress_options as options
from reactive_runtime._cli._exits import BROKEN, STATUS
from reactive_runtime._cli.console import Conf, Master, Packages, app, fault, one_line_errors, out, refuse
from reactive_runtime._cli.missing import check_installed
from reactive_runtime._cli.stress_load import StressLoad, failed_of
from reactive_runtime._cli.verdict import (
    FailOnRegression,
    check_endings,
    check_master,
    judged,
    print_unseen,
    removed,
    reported,
)
from reactive_runtime._cli.verdict_here import ENGINES, UNJUDGED, AtOnce, agree, judge_at_once, violations_of
from reactive_runtime._cli.watch import Stop, watched
from reactive_runtime._core.runtime import primitives
from reactive_runtime._results.ci_files import UnwrittenError
from reactive_runtime._results.states import Finding, State, findings_of, joined, label_of, line_of, state_of, unfound
from reactive_runtime._support.this_process import only_here
from reactive_runtime.errors import ReactiveError

if TYPE_CHECKING:
    from reactive_runtime.stress import Failure, Scenario

_OF_SPARK: Final = ("master", "conf", "packages")
"""Options that are for Spark alone."""


@app.command()
def stress(
    context: typer.Context,
    scenarios: options.Names = None,
    listing: options.Listing = False,
    tag: options.Tag = None,
    repeat: options.Repeat = "1",
    threads: options.Threads = 12,
    seconds: options.Seconds = 30.0,
    seed: options.Seed = None,
    pool: options.Pool = "threads",
    python: options.Pythons = None,
    out: options.Out = Path("runs"),
    where: options.Where = None,
    fault: options.Fault = "",
    verify: options.Verify = False,
    engine: options.Engine = "spark",
    report: options.Reports = None,
    junit: options.Junit = None,
    fail_on_regression: FailOnRegression = False,
    machine: options.Machine = "",
    master: Master = "local[*]",
    conf: Conf = None,
    packages: Packages = None,
) -> None:
    """Put publishers under load by many threads, and record every signal to Parquet.

    With --verify the runs are judged at once in this process, and then by Spark, and the two have to agree; with
    --repeat each run is judged as it is done, without Spark. Ctrl-C and SIGTERM end the load after the round under
    way: what there is by then is judged; a second one ends all.
    """

    def load(n: int, found: list[Scenario], stop: Stop) -> StressLoad:
        return StressLoad(
            found, there, threads, seconds, first + n, to, fault, machine, in_processes, python or [], stop, here
        )

    def work() -> None:
        with one_line_errors():
            asked.carry_out(listing, load)

    with one_line_errors():
        reports = report or []
        check_endings("--report", reports)
        if not listing:
            _forgotten(reports, junit)
        _check_choices(context, pool, seconds, verify, engine, bool(reports or fail_on_regression))
        check_installed(*_needed(verify, engine, reports))
        from reactive_runtime.spark._session.spark_session import settings_of
        from reactive_runtime.stress._declaring import default_folder

        if verify and engine == "spark":
            check_master(master)
        verdict = _Verdict(verify, engine, master, settings_of(conf, packages), fail_on_regression)
        first = random.randrange(2**31) if seed is None else seed
        in_processes = pool == "processes-per-scenario"
        # All paths are absolute from here on: a scenario may change the working folder.
        folder = where if where is not None else default_folder()
        there = str(Path(folder).absolute()) if Path(folder).is_dir() else folder
        here, to = Path.cwd(), out.absolute()
        files = [file.absolute() for file in reports]
        asked = _Asked(scenarios or [], tag, folder, repeat, fault, verdict, files, junit and junit.absolute())
        watched(work)


def _check_choices(
    context: typer.Context, pool: str, seconds: float, verify: bool, engine: str, of_tables: bool
) -> None:
    """ReactiveError for an option that can't be what it is, or that does nothing beside the others."""
    if pool not in ("threads", "processes-per-scenario"):
        raise ReactiveError(f"--pool {pool}: should be threads, or processes-per-scenario")
    if not math.isfinite(seconds):
        raise ReactiveError(f"--seconds {seconds}: should be a number of seconds")
    if engine not in ENGINES:
        raise ReactiveError(f"--engine {engine}: should be spark, or local")
    if engine == "local":
        if of_tables:
            raise ReactiveError("--engine local: --report and --fail-on-regression need the tables that Spark writes")
        refuse(context, _OF_SPARK, "--engine local starts no Spark")
    if not verify:
        refuse(context, ("report",), "there is nothing to report without a verdict: add --verify")
        refuse(context, ("fail_on_regression",), "nothing is compared without a verdict: add --verify")
        refuse(context, ("engine", *_OF_SPARK), "is for the verdict: add --verify")


_UNENDED: Final = "the run did not come to its end"


def _needed(verify: bool, engine: str, report: Sequence[Path]) -> Iterator[str]:
    """The packages that this load and its verdict will take."""
    yield from ("numpy", "pyarrow")
    if verify and engine == "spark":
        yield "pyspark"
    if report:
        yield "jinja2"


def _forgotten(report: list[Path], junit: Path | None) -> None:
    """Remove the reports of an earlier night, and let JUnit's XML say that this one has not ended yet."""
    from reactive_runtime.stress._junit import write_junit

    for option, file in (*(("--report", file) for file in report), ("--junit", junit)):
        if file is not None and file.is_dir():
            raise ReactiveError(f"{option} {file}: is a folder, and should be a file")
    for file in report:
        removed(file)
    if junit is not None:
        write_junit(junit, {}, [], unable=[_UNENDED])


@dataclass(frozen=True)
class _Verdict:
    """Which verdict is asked for."""

    wanted: bool
    """With --verify."""
    engine: str
    master: str
    settings: dict[str, str]
    fail_on_regression: bool


@dataclass
class _Asked:
    """The wishes of the user for a load and its verdict, and the results so far."""

    names: list[str]
    tag: str | None
    where: str
    repeat: str
    fault: str
    verdict: _Verdict
    report: list[Path]
    junit: Path | None
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

    def carry_out(self, listing: bool, load: Callable[[int, list[Scenario], Stop], StressLoad]) -> None:
        """List the scenarios, or put them under load and judge the runs. Leaves with the status of all."""
        stop = Stop()
        stop.listen()
        try:
            with one_line_errors():
                self._find()
                stop.listen()  # a scenario file may have set a handler of its own
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
                    self._judge_the_fault()
        except typer.Exit as left:
            self.without_verdict = "the run could not be judged: what it has printed says why"
            self._write_junit()
            broken = self._state in (State.BROKEN, State.STUCK)
            raise typer.Exit(BROKEN if broken else left.exit_code) from None
        self._write_junit()
        self._say_the_state()
        if self.slower and self.verdict.fail_on_regression:
            raise typer.Exit(BROKEN)
        if STATUS[self._state]:
            raise typer.Exit(STATUS[self._state])

    def _find(self) -> None:
        from reactive_runtime.stress import Failure, find

        def skipped(file: Path, error: ReactiveError) -> None:
            self.given_up.append(Failure(file.name, str(error)))

        with only_here():
            self.found = find(self.where, self.names, tag=self.tag, skipped=skipped)

    def _judge_the_fault(self) -> None:
        """Say whether the judges have named the planted fault; the run has lost something where they have not."""
        from reactive_runtime.stress import verdict_on
        from reactive_runtime.testing.trace import metadata_of

        line = verdict_on(self.fault, {rule for rules in self.broken.values() for rule in rules})
        out().print(f"fault    {line}", style="bold red" if "NOT" in line else "yellow", markup=False, soft_wrap=True)
        self.lost += unfound((metadata_of(run) or {}, judged) for run, judged in self.judged_here.items())

    def _say_the_state(self) -> None:
        """The last lines: what was not looked at, and which scenarios could not go on."""
        findings, lost = self._findings(), [*self.lost, *self.unable]
        print_unseen(findings)
        if not self._wanted and self._state in (State.RECORDED, State.INCOMPLETE):
            out().print("unjudged no record was judged: add --verify, or judge the runs with `reactive-runtime verify`")
        if self._state in (State.INCOMPLETE, State.UNUSABLE):
            word = "INCOMPLETE" if self._state is State.INCOMPLETE else "UNUSABLE"
            out().print(f"{word} {line_of(findings, lost)}", style="bold yellow", soft_wrap=True)
        _print_given_up(self.given_up)

    @property
    def _wanted(self) -> bool:
        """Whether a verdict was asked for."""
        return self.verdict.wanted or self.repeat != "1"

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
            "failed": failed_of(self.given_up),
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

    def _put_under_load(self, load: Callable[[int, list[Scenario], Stop], StressLoad], stop: Stop) -> None:
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
        if not self.verdict.wanted:
            return
        here = self._judge_at_once(self.runs)
        if self.verdict.engine == "local":
            return
        to = self.runs[0].parent.parent / "verdict"
        came = judged(self.runs, to, self.verdict.master, self.verdict.settings, here.unable)
        self.unable += [item for item in came.unable if item not in self.unable]
        self.slower += came.slower
        for run in self.runs:
            for name, _, rule, *_ in violations_of(run, to):
                self.judged_here.setdefault(run, {}).setdefault(name, set()).add(rule)
        if not (came.unable or here.unable):
            agree(here, to)
        reported(to, self.report)

    def _judge_at_once(self, runs: list[Path], seed: int | None = None) -> AtOnce:
        sys.setrecursionlimit(self.recursion_limit)  # a scenario may have set one of its own
        show = seed is not None or self.verdict.engine == "local"  # otherwise Spark will show them
        here = judge_at_once(runs, show, seed)
        self.judged_here |= here.judged
        self.unable += here.unable
        return here

    def _write_junit(self) -> None:
        """Write JUnit's XML. If the disk refuses it, print a line; the run is incomplete then."""
        from reactive_runtime.stress._junit import write_junit

        if self.junit is None:
            return
        seconds = primitives.monotonic() - self.began
        slower = self.slower if self.verdict.fail_on_regression else []
        unable = [*self.lost, *self.unable, *filter(None, [self.without_verdict])]
        try:
            write_junit(self.junit, self._findings(), self.given_up, self.runs, unable, slower, seconds)
        except UnwrittenError as error:
            fault(error)
            self.lost.append(str(error))


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
        out().print(line, style="yellow", markup=False, soft_wrap=True)
    return found


def _list(scenarios: list[Scenario]) -> None:
    from rich.table import Table

    table = Table("scenario", "what it is", "live", "tags")
    for scenario in scenarios:
        table.add_row(scenario.name, scenario.summary, str(scenario.live), " ".join(sorted(scenario.tags)))
    out().print(table)


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


def _print_given_up(failures: list[Failure]) -> None:
    for failure in failures:
        word = "BROKEN" if failure.rule else "STUCK" if failure.stuck else "UNABLE"
        rule = f"rule {failure.rule}, " if failure.rule else ""
        out().print(f"{word:8} {failure.scenario}: {rule}{failure.why}", style="bold red", soft_wrap=True)
