"""JUnit's XML, the summary, the report, the table on the terminal and the exit statuses say the same of a load."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from counted_load import COUNTED
from typer.testing import CliRunner

from reactive_runtime._cli.commands import app

pytestmark = pytest.mark.timeout(300)

PRELUDE = """
import json, os, pathlib, signal, time
from reactive_runtime import Flow
from reactive_runtime.stress import scenario

OUT = pathlib.Path({out!r})

def written():  # the files that the run says it holds; one that is being written is not among them
    runs = OUT.glob("date=*/run=*/_metadata.json")
    return [run.parent / file for run in runs for file in json.loads(run.read_text())["files"] if "signals" in file]

def stop():  # the load ends after this round
    os.kill(os.getpid(), signal.SIGTERM)

@scenario(elements=9, live=2)
def first(context):
    {act}
    return Flow.range(9)

@scenario(elements=9, live=2)
def second(context):
    return Flow.range(9)
"""
"""Two scenarios, of which the first has the first round; it acts in each of its rounds."""

LIMIT = """
import resource, signal
from reactive_runtime.testing import _recorder as recorder
from reactive_runtime.testing._traces import trace_writer as trace
trace.FILE_ROWS, recorder.CHUNK = 400, 50
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
told = trace.TraceWriter._tell
def tell(self, *of, **more):
    told(self, *of, **more)
    if sum(self._files.values()) >= 800:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2_000, 2_000))  # from here on files can't grow
trace.TraceWriter._tell = tell
"""
MAIN = "from reactive_runtime._cli import main\nmain()\n"


@dataclass(frozen=True)
class Cause:
    """One thing that may happen to a load, and what all outputs have to say of it."""

    act: str
    state: str
    """Of all."""
    status: int
    first: str
    second: str
    more: tuple[str, ...] = ()
    before: str = ""
    """Code that runs before the command."""
    arguments: tuple[str, ...] = ("--verify", "--engine", "local")
    damage: Callable[[Path], object] | None = None
    """What happens to the folder of the runs before the load."""
    verdict: bool = True
    """Whether there is a run that `verify` can judge."""
    stress_says: dict[str, str] = field(default_factory=dict)
    """States that only the load's own outputs have."""
    seconds: str = "60"
    """Of load."""


def in_the_way(folder: Path) -> None:
    """The place of the runs is a file: nothing can be written below it, as on a disk that is read-only."""
    folder.write_text("in the way")


CAUSES = {
    "clean": Cause("None", "clean", 0, "clean", "clean", before=COUNTED, seconds="2"),
    "ended early": Cause("stop() if len(written()) else None", "incomplete", 3, "incomplete", "incomplete"),
    "ended at once": Cause("stop()", "incomplete", 3, "incomplete", "incomplete"),
    "no round": Cause("time.sleep(1)", "incomplete", 3, "clean", "skipped", seconds="0.5"),
    "given up": Cause(
        "raise OSError('no database')", "incomplete", 3, "given up", "clean", before=COUNTED, seconds="2"
    ),
    "broken": Cause(
        "stop() if len(written()) else None", "broken", 1, "broken", "broken", ("--fault", "signal-after-completion")
    ),
    "killed": Cause("os._exit(7) if len(written()) else None", "incomplete", 3, "incomplete", "incomplete"),
    "disk full": Cause("None", "incomplete", 3, "incomplete", "incomplete", before=LIMIT),
    "read-only": Cause("None", "unusable", 4, "not judged", "not judged", damage=in_the_way, verdict=False),
    "half gone": Cause(
        "(written()[0].unlink(), stop()) if len(written()) else None",
        "unusable",
        4,
        "not judged",
        "not judged",
        verdict=False,
    ),
    "not judged": Cause(
        "None",
        "clean",
        0,
        "clean",
        "clean",
        arguments=(),
        stress_says={"first": "recorded", "second": "recorded"},
        before=COUNTED,
        seconds="2",
    ),
}


@dataclass
class Said:
    """What the outputs have said."""

    stress: subprocess.CompletedProcess[str]
    junit: dict[str, str]
    """By test case: passed, failure, error or skipped."""
    verify: Any
    report: Any
    folder: Path


def of_junit(file: Path) -> dict[str, str]:
    cases = ElementTree.parse(file).getroot().iter("testcase")
    return {case.get("name", ""): case[0].tag if len(case) else "passed" for case in cases}


@pytest.fixture(scope="module")
def said_of(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Said]:
    """Everything that is said of a cause; each load is run once."""
    known: dict[str, Said] = {}

    def said(name: str) -> Said:
        if name not in known:
            known[name] = put_under_load(CAUSES[name], tmp_path_factory.mktemp("cause"), spark)
        return known[name]

    return said


def put_under_load(cause: Cause, folder: Path, spark: Any) -> Said:
    runs, junit = folder / "runs", folder / "stress.xml"
    (folder / "theirs").mkdir()
    (folder / "theirs" / "both.py").write_text(PRELUDE.format(out=str(runs), act=cause.act))
    if cause.damage is not None:
        cause.damage(runs)
    load = ["stress", "--scenarios", folder / "theirs", "--out", runs, "--junit", junit, "--threads", "2"]
    load += ["--seconds", cause.seconds, *cause.arguments, *cause.more]
    stress = subprocess.run(
        [sys.executable, "-c", cause.before + MAIN, *map(str, load)],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
        env={**os.environ, "COLUMNS": "200"},
    )
    master = spark.sparkContext.master
    verify = CliRunner().invoke(app, ["verify", str(runs), "--out", str(folder / "verdict"), "--master", master])
    files = [item for name in ("summary.md", "summary.json", "report.html") for item in ("-o", str(folder / name))]
    report = CliRunner().invoke(app, ["report", str(folder / "verdict"), *files])
    return Said(stress, of_junit(junit), verify, report, folder)


BY_NIGHT = {"ended at once": "ended early", "disk full": "killed"}
"""Causes that are like another one, which is there by day."""


@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.nightly if name in BY_NIGHT else ()) for name in CAUSES])
def cause(request: pytest.FixtureRequest) -> str:
    return str(request.param)


IN_JUNIT = {"clean": "passed", "broken": "failure", "given up": "error", "stuck": "error"}


def test_junit(cause: str, said_of: Callable[[str], Said]) -> None:
    """Only what was looked at as a whole, and breaks no rule, is a test case that passed."""
    wanted = CAUSES[cause]
    said = said_of(cause)
    states = {"first": wanted.first, "second": wanted.second} | wanted.stress_says
    assert {name: said.junit[name] for name in states} == {
        name: IN_JUNIT.get(state, "skipped") for name, state in states.items()
    }
    not_whole = cause in ("killed", "disk full", "read-only", "half gone")
    assert said.junit.get("the verdict", "none") == ("error" if not_whole else "none")


def test_the_exit_statuses(cause: str, said_of: Callable[[str], Said]) -> None:
    said, status = said_of(cause), CAUSES[cause].status
    assert said.stress.returncode == status, said.stress.stdout + said.stress.stderr
    assert said.verify.exit_code == status, said.verify.output
    assert said.report.exit_code == status, said.report.output


@pytest.mark.parametrize("command", ["stress", "verify"])
def test_the_terminal(cause: str, command: str, said_of: Callable[[str], Said]) -> None:
    """The table names each scenario that was not looked at, and only a clean load is called so."""
    wanted, said = CAUSES[cause], said_of(cause)
    if command == "verify" and not wanted.verdict:
        assert len(said.verify.stderr.splitlines()) >= 1
        assert str(said.folder / "runs") in said.verify.stderr
        return
    if cause in ("killed", "read-only") and command == "stress":  # the process has ended before it had a verdict
        assert said.stress.stderr.count("\n") == 1
        assert "clean    " not in said.stress.stdout
        return
    told = said.stress.stdout if command == "stress" else said.verify.output
    states = {"first": wanted.first, "second": wanted.second}
    if command == "stress" and wanted.stress_says:
        assert not re.search(r"^clean ", told, re.MULTILINE)
        return
    assert bool(re.search(r"^clean ", told, re.MULTILINE)) == (wanted.state == "clean"), told
    assert bool(re.search(r"^(INCOMPLETE|UNUSABLE) ", told, re.MULTILINE)) == (
        wanted.state in ("incomplete", "unusable")
    ), told
    table = told.partition("what was not looked at")[2].partition("└")[0]
    for name, state in states.items():
        row = next((line for line in table.splitlines() if name in line), "")
        assert (f"│ {state} " in row) == (state not in ("clean", "broken")), told


def test_the_summary(cause: str, said_of: Callable[[str], Said]) -> None:
    wanted, said = CAUSES[cause], said_of(cause)
    if not wanted.verdict:
        assert not (said.folder / "summary.md").exists()
        return
    text = (said.folder / "summary.md").read_text()
    assert text.startswith(f"## {wanted.state.capitalize()}\n")
    for name, state in (("first", wanted.first), ("second", wanted.second)):
        listed = re.search(rf"^- {state}: [^:]*\b{name}\b", text, re.MULTILINE) is not None
        assert listed == (state not in ("clean", "broken")), text
    shown = json.loads((said.folder / "summary.json").read_text())
    assert shown["verdict"] == wanted.state
    verdicts = {item["scenario"]: item["verdict"] for item in shown["scenarios"]}
    assert {name: verdicts[name] for name in ("first", "second")} == {"first": wanted.first, "second": wanted.second}


def test_the_report(cause: str, said_of: Callable[[str], Said]) -> None:
    wanted, said = CAUSES[cause], said_of(cause)
    if not wanted.verdict:
        assert not (said.folder / "report.html").exists()
        return
    page = (said.folder / "report.html").read_text()
    assert f'<div class="verdict {wanted.state}"' in page
    assert f'<p class="word">{wanted.state.capitalize()}</p>' in page
    rows = dict(re.findall(r'<tr data-verdict="([^"]*)">\s*<th scope="row">(first|second)</th>', page))
    found = {name: state for state, name in re.findall(r'data-verdict="([^"]*)">\s*<th scope="row">(\w+)</th>', page)}
    assert rows
    assert (found["first"], found["second"]) == (wanted.first, wanted.second)


def test_a_run_of_which_half_is_gone_is_a_clear_error_and_nothing_is_lost(said_of: Callable[[str], Said]) -> None:
    """The line names the file that is gone; what is left of the run is still there."""
    said = said_of("half gone")
    (run,) = (said.folder / "runs").glob("date=*/run=*")
    gone = "signals-00000.parquet: is not there, and the run says that it holds "
    assert gone in said.verify.stderr
    assert gone in said.stress.stderr
    assert (run / "metadata.json").exists()
    files = json.loads((run / "metadata.json").read_text())["files"]
    assert {item.name for item in run.glob("*.parquet")} == set(files) - {"signals-00000.parquet"}


def test_both_judges_call_a_load_incomplete_and_neither_calls_it_clean(tmp_path: Path) -> None:
    """With Spark there are two verdicts: that of this process at once, and Spark's."""
    runs, report = tmp_path / "runs", tmp_path / "report.md"
    (tmp_path / "both.py").write_text(PRELUDE.format(out=str(runs), act="stop()"))
    load = ["stress", "--scenarios", tmp_path, "--out", runs, "--threads", "2", "--seconds", "60", "--verify"]
    command = [sys.executable, "-m", "reactive_runtime", *load, "--report", report, "--master", "local[1]"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 3, done.stdout + done.stderr
    words = re.findall(r"^(clean|INCOMPLETE) ", done.stdout, re.MULTILINE)
    assert words == ["INCOMPLETE"] * 3, done.stdout
    assert report.read_text().startswith("## Incomplete")


def test_a_night_that_can_not_be_judged_leaves_no_report_of_the_one_before(
    spark: Any, said_of: Callable[[str], Said]
) -> None:
    """The verdict in the folder was clean; the next run there is damaged."""
    folder = said_of("clean").folder
    master, out = spark.sparkContext.master, folder / "night.md"
    damaged = said_of("half gone").folder / "runs"
    tables = folder / "other"
    assert (
        CliRunner().invoke(app, ["verify", str(folder / "runs"), "--out", str(tables), "--master", master]).exit_code
        == 0
    )
    assert CliRunner().invoke(app, ["verify", str(damaged), "--out", str(tables), "--master", master]).exit_code == 4
    report = CliRunner().invoke(app, ["report", str(tables), "-o", str(out)])
    assert (report.exit_code, out.exists()) == (4, False)
    assert "no run could be judged" in report.stderr
