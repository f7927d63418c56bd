"""The command: the main job end to end, its exit status, its files, its errors of one line."""

from __future__ import annotations

import itertools
import json
import os
import platform
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pyarrow.parquet as parquet
import pytest
from counted_load import COUNTED
from searching import one_pair_each_by_day

import reactive_runtime
from reactive_runtime._core.runtime import primitives
from reactive_runtime.stress import FAULTS, find
from reactive_runtime.testing.trace import holds, metadata_of, read_trace

needs_spark = pytest.mark.spark

pytestmark = pytest.mark.timeout(300)  # some start Spark, on a machine that may have other work

POOLS = ["threads", "processes-per-scenario"]

COMMAND = [sys.executable, "-m", "reactive_runtime"]


def call(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=200,
        env={**os.environ, **environment},
        check=False,
    )


def runs_in(folder: Path) -> list[Path]:
    return sorted(folder.glob("date=*/run=*"))


def the_run(folder: Path) -> Path:
    (run,) = runs_in(folder)
    return run


SAME_PYTHON = str(Path(sys.executable).parent / ".." / Path(sys.executable).parent.name / Path(sys.executable).name)
"""The interpreter by another path."""


@pytest.fixture(scope="module")
def clean_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    folder = tmp_path_factory.mktemp("runs")
    shown = ("--verify", "--report", folder / "report.html", "--master", "local[2]")
    few = ("range_on_a_thread", "slow_subscribers", "merged", "subscribers_come_and_go")  # each has its round
    done = call("stress", *few, "--seconds", "8", "--seed", "7", "--out", folder, *shown)
    return the_run(folder), done


@needs_spark
def test_the_main_job_is_clean_and_exits_with_0(
    clean_run: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    run, done = clean_run
    assert done.returncode == 0, done.stdout + done.stderr
    assert "seed 7" in done.stdout
    lines = done.stdout.splitlines()
    at_once = next(at for at, line in enumerate(lines) if line.startswith("clean    no rule was broken; "))
    assert at_once < next(at for at, line in enumerate(lines) if line.startswith("judging"))
    assert "clean    no rule was broken" in lines[at_once + 1 :]
    assert any(line.startswith("plan     ranges: ") for line in lines)
    assert "agree    Spark and the judge of this process have found the same: 0 violation(s)" in lines
    facts = json.loads((run / "metadata.json").read_text())
    assert facts["complete"] is True
    assert facts["seed"] == 7
    signals = sum(parquet.read_metadata(file).num_rows for file in run.glob("signals-*.parquet"))
    assert facts["records"] == signals > 1_000  # how many it is, is the machine's business


@needs_spark
def test_the_main_job_ends_with_the_path_of_its_report(
    clean_run: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    run, done = clean_run
    report = run.parent.parent / "report.html"
    assert done.stdout.splitlines()[-1].startswith(f"report   {report} (1 run(s), ")
    assert "Clean" in report.read_text()


@needs_spark
def test_what_a_run_is_stands_in_its_metadata(clean_run: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    facts = json.loads((clean_run[0] / "metadata.json").read_text())
    assert {"version", "commit", "python", "machine", "scenarios", "seed", "schema", "recorder_waited"} <= facts.keys()
    assert all(fact["kept"] == 0 for fact in facts["leaving"].values())


@needs_spark
def test_the_main_job_writes_its_verdict_as_parquet(
    clean_run: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    run, _ = clean_run
    verdict = run.parent.parent / "verdict"
    assert parquet.read_table(verdict / "violations").num_rows == 0
    load = json.loads((run / "metadata.json").read_text())["load"]
    had_a_round = {name for name, item in load.items() if item["rounds"]}  # how many, is the machine's business
    judged: list[Any] = parquet.read_table(verdict / "summary")["scenario"].to_pylist()
    assert {item.removesuffix(", link") for item in judged} == had_a_round != set()


@pytest.fixture(scope="module")
def verdict_on_faults(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, str], dict[str, set[str]]]:
    """One verdict on a run for each fault: what is shown of each rule, and the rules that each run broke."""
    folder = tmp_path_factory.mktemp("faults")
    for fault in FAULTS:
        seconds = "6" if fault in ("lost-demand", "overflow") else "2"  # of the load that it takes, some ten times
        load = ("stress", "range_on_the_callers", "--seconds", seconds, "--out", folder / fault)
        done = call(*load, "--repeat", "until-failure", REACTIVE_RUNTIME_FAULT=fault)  # once, if the machine is quick
        assert done.returncode == 1, done.stdout + done.stderr
    runs = {run.name.removeprefix("run="): fault for fault in FAULTS for run in runs_in(folder / fault)}
    done = call("verify", *(folder / fault for fault in FAULTS), "--out", folder / "verdict", "--master", "local[2]")
    assert done.returncode == 1, done.stdout + done.stderr
    broken: dict[str, set[str]] = {fault: set() for fault in FAULTS}
    for row in parquet.read_table(folder / "verdict" / "violations").to_pylist():
        broken[runs[row["run"]]].add(row["rule"])
    shown = {part.partition(": ")[0]: part for part in done.stdout.split("\nrule ")[1:]}
    return shown, broken


@needs_spark
@pytest.mark.timeout(900)  # the first of them does a load for each fault, and has all judged
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_caught_by_its_rule_and_its_signals_are_shown(
    fault: str, verdict_on_faults: tuple[dict[str, str], dict[str, set[str]]]
) -> None:
    shown, broken = verdict_on_faults
    rule = FAULTS[fault].rule
    assert rule in broken[fault], broken
    assert broken[fault] <= {rule, *FAULTS[fault].wake}
    assert "\n  seen: " in shown[rule]
    assert "\n  >> " in shown[rule]
    assert "  thread " in shown[rule]


def test_where_a_fault_has_no_answer_is_left_out_and_said_so(tmp_path: Path) -> None:
    load = (
        "--seconds",
        "1",
        "--threads",
        "3",
        "--out",
        tmp_path,
        "--fault",
        "signal-after-completion",
        "--repeat",
        "until-failure",
    )
    done = call("stress", "the_pool_*", "range_on_the_callers", *load)
    assert done.returncode == 1, done.stderr
    assert (
        "fault    signal-after-completion, of rule 1.7: a request after the end is answered with the end again"
        in done.stdout
    )
    assert "left out the_pool_is_shut_down, the_pool_of_the_source_is_shut_down: its executor stops" in done.stdout
    assert "fault    signal-after-completion is named by its rule 1.7" in done.stdout
    facts = json.loads((runs_in(tmp_path)[0] / "metadata.json").read_text())
    assert facts["scenarios"] == ["range_on_the_callers"]


@needs_spark
def test_what_each_scenario_had_of_the_load_is_reported_and_kept(
    clean_run: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    run, done = clean_run
    facts = json.loads((run / "metadata.json").read_text())
    assert set(facts["load"]) == set(facts["scenarios"])
    assert sum(fact["signals"] for fact in facts["load"].values()) == pytest.approx(facts["records"], rel=0.05)
    fewest = min(fact["rounds"] for fact in facts["load"].values())
    assert f"shared   each scenario had {fewest} rounds or more, and " in done.stdout
    assert re.search(r"^ +\d+% of 8 s, [\d,]+ signals in [\d,]+ rounds, now [a-z_0-9]+$", done.stdout, re.MULTILINE)


def test_stress_without_verify_records_and_exits_with_0(tmp_path: Path) -> None:
    done = call("stress", "range_on_the_callers", "--seconds", "0.5", "--threads", "2", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"run      {the_run(tmp_path)}" in done.stdout


def skipped_in(file: Path) -> dict[str, str]:
    """The test cases of JUnit's file that were skipped, with the reason."""
    cases = ElementTree.parse(file).getroot().iter("testcase")
    found = {case.get("name", ""): case.find("skipped") for case in cases}
    return {name: element.get("message", "") for name, element in found.items() if element is not None}


def test_a_scenario_without_a_round_is_skipped_and_the_run_is_incomplete(tmp_path: Path) -> None:
    """A tenth of a second is too short for all: a round of one takes longer than a thousandth."""
    junit = tmp_path / "stress.xml"
    done = call("stress", "--seconds", "0.1", "--junit", junit, "--out", tmp_path, "--verify", "--engine", "local")
    assert done.returncode == 3, done.stdout + done.stderr
    load = json.loads((the_run(tmp_path) / "metadata.json").read_text())["load"]
    names = {scenario.name for scenario in find("stress")}
    without = names - {name for name, item in load.items() if item["rounds"]}
    assert without
    assert f"INCOMPLETE {len(without)} of {len(names)} scenarios had no round" in done.stdout
    assert skipped_in(junit) == dict.fromkeys(without, "it had no round: give the load more --seconds")
    assert ElementTree.parse(junit).getroot().get("skipped") == str(len(without))


def test_a_scenario_without_a_round_in_one_of_two_runs_is_named(tmp_path: Path) -> None:
    """The second time, the first round of `a` takes longer than the load."""
    (tmp_path / "theirs.py").write_text(
        f"{COUNTED}from pathlib import Path\nfrom reactive_runtime import Flow\n"
        "from reactive_runtime.stress import scenario\n"
        "@scenario(elements=1)\ndef a(context):\n"
        f"    clock.passed += any(Path({str(tmp_path)!r}).glob('date=*/*/metadata.json'))\n    return Flow.range(1)\n"
        "@scenario(elements=1)\ndef b(context):\n    return Flow.range(1)\n"
    )
    junit = tmp_path / "stress.xml"
    load = ("stress", "--scenarios", tmp_path, "--seconds", "0.5", "--threads", "2", "--out", tmp_path)
    done = call(*load, "--repeat", "2", "--junit", junit)
    assert done.returncode == 3, done.stdout + done.stderr
    (second,) = [run.name[4:] for run in runs_in(tmp_path) if not (metadata_of(run) or {})["load"]["b"]["rounds"]]
    why = f"run {second} (Python {platform.python_version()}): it had no round: give the load more --seconds"
    assert skipped_in(junit) == {"b": why}
    assert "INCOMPLETE 1 of 2 scenarios had no round in a part of the runs: b" in done.stdout


def test_a_fault_that_is_not_found_is_no_clean_run(tmp_path: Path) -> None:
    junit = tmp_path / "stress.xml"
    load = ("stress", "published", "--seconds", "0.3", "--threads", "2", "--out", tmp_path, "--junit", junit)
    done = call(*load, "--fault", "two-drains", "--verify", "--engine", "local")
    assert done.returncode == 3, done.stdout + done.stderr
    line = "the planted fault two-drains was not found: no scenario has broken its rule 1.3"
    assert f"INCOMPLETE {line}" in done.stdout
    assert "clean    " not in done.stdout
    assert line in {error.get("message") for error in ElementTree.parse(junit).getroot().iter("error")}


def test_a_scenario_whose_streams_only_fail_is_noted(tmp_path: Path) -> None:
    (tmp_path / "theirs.py").write_text(
        f"{COUNTED}from reactive_runtime import Flow\nfrom reactive_runtime.stress import scenario\n"
        "@scenario(elements=1)\ndef fails(context):\n    return Flow.error(OSError('gone'))\n"
        "@scenario(elements=1)\ndef right(context):\n    return Flow.range(1)\n"
    )
    load = ("stress", "--scenarios", tmp_path, "--seconds", "0.5", "--threads", "2", "--out", tmp_path / "runs")
    done = call(*load, "--verify", "--engine", "local")
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(re.findall(r"^note     ", done.stdout, re.MULTILINE)) == 1
    assert re.search(r"^note     fails: no stream of it has completed, [\d,]+ ended with an error: ", done.stdout, re.M)


def test_an_interpreter_that_is_given_twice_has_two_runs(tmp_path: Path) -> None:
    twice = ("--python", sys.executable, "--python", sys.executable, "--python", SAME_PYTHON)
    done = call("stress", "range_on_the_callers", "--seconds", "0.3", "--threads", "2", "--out", tmp_path, *twice)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [run.name.rpartition("-py")[2].partition("-")[2] for run in runs_in(tmp_path)] == ["", "2", "3"]


def test_a_program_that_is_no_python_is_said(tmp_path: Path) -> None:
    done = call("stress", "range_on_the_callers", "--out", tmp_path, "--python", "/bin/true")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "--python /bin/true: is no Python: it does not say its version" in done.stderr


@pytest.mark.parametrize("command", [("stress", "--verify", "--report"), ("report", "runs", "--out")], ids=" ".join)
def test_a_report_of_no_known_format_is_refused_at_once(command: tuple[str, ...], tmp_path: Path) -> None:
    done = call(*command, tmp_path / "x.txt")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert f"{command[-1]} {tmp_path / 'x.txt'}: should end in .html, .md, .json" in done.stderr


def test_an_output_without_a_reader_leaves_the_status(tmp_path: Path) -> None:
    readable, writable = os.pipe()
    os.close(readable)
    command = [*COMMAND, "stress", "range_on_the_callers", "--seconds", "0.3", "--out", str(tmp_path)]
    done = subprocess.run(command, stdout=writable, stderr=subprocess.PIPE, text=True, timeout=100, check=False)
    os.close(writable)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("way", ["sys.stdout.close()", "sys.stdout = sys.stderr = None"])
def test_an_output_that_a_scenario_takes_leaves_the_status(way: str, tmp_path: Path) -> None:
    """The status was that of a wrong command line, or of a load that did not end."""
    code = f"import sys\n@scenario(elements=9)\ndef short(context):\n    {way}\n    return Flow.range(8)\n"
    (tmp_path / "theirs.py").write_text(THEIRS + code)
    load = ("--scenarios", tmp_path, "--threads", "2", "--out", tmp_path / "runs", "--seconds", "0.5")
    done = call("stress", "short", *load, "--verify", "--engine", "local", "--junit", tmp_path / "night.xml")
    assert done.returncode == 1, done.stdout + done.stderr
    assert ElementTree.parse(tmp_path / "night.xml").getroot().get("failures") == "1"


def test_what_was_not_judged_is_skipped(tmp_path: Path) -> None:
    junit = tmp_path / "stress.xml"
    done = call("stress", "range_on_a_thread", "--seconds", "1", "--junit", junit, "--out", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert skipped_in(junit) == {"range_on_a_thread": "its records were not judged: add --verify"}


@needs_spark
def test_a_run_that_was_cut_off_is_incomplete(tmp_path: Path) -> None:
    assert call("stress", "range_on_a_thread", "--seconds", "1", "--out", tmp_path).returncode == 0
    run = the_run(tmp_path)
    facts = json.loads((run / "metadata.json").read_text())
    (run / "metadata.json").unlink()
    (run / "_metadata.json").write_text(json.dumps({**facts, "complete": False}))
    done = call("verify", tmp_path, "--out", tmp_path / "verdict", "--master", "local[1]")
    assert done.returncode == 3, done.stdout + done.stderr
    said = "INCOMPLETE no rule was broken in what there is; 1 of 1 scenarios was cut off: range_on_a_thread; run "
    assert f"{said}{run.name[4:]} was cut off" in done.stdout
    assert "clean    no rule was broken" not in done.stdout


@pytest.mark.parametrize("given", ["option", "environment"])
def test_a_machine_is_named_by_option_or_environment(tmp_path: Path, given: str) -> None:
    load = ("stress", "range_on_the_callers", "--seconds", "0.2", "--threads", "1", "--out", tmp_path)
    named = {"option": ("--machine", "runners"), "environment": ()}[given]
    done = call(*load, *named, REACTIVE_RUNTIME_MACHINE="others" if named else "runners")
    assert done.returncode == 0, done.stderr
    assert (metadata_of(the_run(tmp_path)) or {})["machine"] == "runners"


def test_scenarios_are_listed_by_pattern_and_tag() -> None:
    listed = call("stress", "--list").stdout
    assert all(item.name in listed for item in find("stress"))
    some = call("stress", "range_*", "--list").stdout
    assert "range_on_a_thread" in some
    assert "fused_steps" not in some
    smoke = call("stress", "--list", "--tag", "smoke").stdout
    assert all((item.name in smoke) == ("smoke" in item.tags) for item in find("stress") if len(item.name) > 12)


def test_repeated_runs_are_judged_here_each_with_a_seed_of_its_own(tmp_path: Path) -> None:
    load = ("stress", "range_on_the_callers", "--seconds", "0.3", "--threads", "3", "--seed", "5", "--out", tmp_path)
    done = call(*load, "--repeat", "2")
    assert done.returncode == 0, done.stderr
    counts = [re.findall(rf"{word} ([\d,]+) signals and calls", done.stdout) for word in ("recorded", "broken;")]
    assert len(counts[0]) == 2
    assert counts[0] == counts[1]  # all that was recorded is judged
    assert [json.loads((run / "metadata.json").read_text())["seed"] for run in runs_in(tmp_path)] == [5, 6]


def test_runs_are_repeated_until_one_fails_and_its_seed_and_signals_are_shown(tmp_path: Path) -> None:
    load = ("stress", "range_on_the_callers", "--seconds", "0.3", "--threads", "3", "--out", tmp_path)
    xml = tmp_path.parent / f"{tmp_path.name}.xml"
    fault = ("--fault", "signal-after-completion")
    done = call(*load, "--repeat", "until-failure", "--seed", "5", *fault, "--junit", xml)
    assert done.returncode == 1, done.stderr
    failures = ElementTree.parse(xml).getroot().findall("testcase[@name='range_on_the_callers']/failure")
    wake = {f"rule {rule} was broken" for rule in FAULTS["signal-after-completion"].wake}
    assert {failure.get("message") for failure in failures} - wake == {"rule 1.7 was broken"}
    assert "rule 1.7" in done.stdout
    assert "\n  >> " in done.stdout
    judged, named = done.stdout.splitlines()[-2:]
    assert "with seed " in judged
    assert named.partition(";")[0] == "fault    signal-after-completion is named by its rule 1.7"
    assert "NOT its consequences" not in named


@pytest.mark.parametrize("pool", ["threads", "processes-per-scenario"])
def test_a_scenario_may_change_the_working_folder(
    pool: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    (tmp_path / "theirs").mkdir()
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    for name in ("first", "second"):
        (tmp_path / "theirs" / f"{name}.py").write_text(
            f"{COUNTED}import os\n"
            "from reactive_runtime import Flow\n"
            "from reactive_runtime.stress import scenario\n"
            f"os.chdir({str(elsewhere)!r})\n"
            f"@scenario(elements=1)\ndef {name}(context):\n"
            "    os.chdir('/')\n"
            "    return Flow.range(1)\n"
        )
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(tmp_path)]
    for order in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "Begin"]):
        subprocess.run([*git, *order], check=True)
    load = ["--scenarios", "theirs", "--threads", "2", "--seconds", "1", "--junit", "x.xml", "--out", "runs"]
    done = subprocess.run(
        [*COMMAND, "stress", *load, "--verify", "--engine", "local", "--pool", pool],
        capture_output=True,
        text=True,
        timeout=100,
        cwd=tmp_path,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(reactive_runtime.__file__).parents[1])},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert {item.scenario for item in read_trace(the_run(tmp_path / "runs"))} == {"first", "second"}
    ask = [*git, "rev-parse", "--short=12", "HEAD"]
    commit = subprocess.run(ask, check=True, capture_output=True, text=True).stdout.strip()
    assert (metadata_of(the_run(tmp_path / "runs")) or {})["commit"] == commit
    assert ElementTree.parse(tmp_path / "x.xml").getroot().get("tests") == "2"
    assert not list(elsewhere.iterdir())


@pytest.mark.parametrize("repeat", ["0", "00", "-1", "+1", "1.0", "\u0663", "9" * 5_000, ""], ids=lambda text: text[:9])
def test_a_number_of_runs_that_is_none_is_refused(repeat: str, tmp_path: Path) -> None:
    done = call("stress", "range_on_the_callers", "--seconds", "0.2", "--out", tmp_path, f"--repeat={repeat}")
    assert done.returncode == 2, done.stdout
    assert "should be a number of runs, 1 or more, or until-failure" in " ".join(done.stderr.split())
    assert runs_in(tmp_path) == []


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("return Deadlocks()", r"subscribe did not return within 3 s; it is at .*theirs\.py:9, in subscribe"),
        (
            "return Flow.range(1).map(lambda n: threading.Event().wait()).subscribe_on(context.pool(1))",
            r"a pool is still busy (after 3 s|3 s after all had cancelled)",  # its actors leave or stay, by the seed
        ),
    ],
    ids=["subscribe", "a task"],
)
def test_a_load_with_a_thread_that_never_returns_comes_to_its_end(body: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "theirs.py").write_text(
        "from reactive_runtime import Flow\n"
        "from reactive_runtime.stress import _harness as harness, scenario\n"
        "import threading\n"
        "harness.PATIENCE = 3.0\n"
        "class Deadlocks:\n"
        "    def subscribe(self, subscriber):\n"
        "        lock = threading.Lock()\n"
        "        with lock:\n"
        "            lock.acquire()\n"
        f"@scenario(elements=1)\ndef hanging(context):\n    {body}\n"
    )
    load = ("--scenarios", tmp_path, "--threads", "2", "--out", tmp_path / "runs", "--seconds", "1")
    done = call("stress", *load, "--verify", "--engine", "local")
    assert done.returncode == 1, done.stderr
    assert re.fullmatch(f"STUCK    hanging: {told}", done.stdout.splitlines()[-1])
    assert "clean" not in done.stdout


def test_a_scenario_that_can_not_go_on_is_reported_last_and_what_was_recorded_stays(tmp_path: Path) -> None:
    (tmp_path / "theirs.py").write_text(
        f"{COUNTED}from reactive_runtime import Flow\n"
        "from reactive_runtime.stress import scenario\n"
        "import threading\n"
        "round_of, patience = _harness._Stage.round, _harness.PATIENCE\n"
        "def hurried(stage, *of):\n"
        "    _harness.PATIENCE = 3.0 if stage.scenario.name == 'hanging' else patience\n"
        "    round_of(stage, *of)\n"
        "_harness._Stage.round = hurried\n"
        "@scenario(elements=1)\ndef broken(context):\n    raise OSError('no database')\n"
        "@scenario(elements=1)\ndef hanging(context):\n    threading.Event().wait()\n"
        "@scenario(elements=1)\ndef right(context):\n    return Flow.range(1)\n"
    )
    load = ("--scenarios", tmp_path, "--threads", "2", "--out", tmp_path / "runs")
    done = call("stress", *load, "--seconds", "1")
    assert done.returncode == 1, done.stderr
    last = done.stdout.splitlines()[-2:]
    assert last[0].startswith("UNABLE   broken: its factory")
    place = re.escape(str(tmp_path / "theirs.py"))
    hangs = rf"STUCK    hanging: its factory did not return within 3 s; it is at {place}:\d+, in hanging"
    assert re.fullmatch(hangs, last[1])
    run = the_run(tmp_path / "runs")
    assert set(json.loads((run / "metadata.json").read_text())["given_up"]) == {"broken", "hanging"}
    assert "threading.Event().wait()" in (run / "stuck.txt").read_text()
    assert {item.scenario for item in read_trace(run)} == {"right"}
    xml = tmp_path / "junit.xml"
    assert call("stress", "broken", "right", *load, "--seconds", "1", "--junit", xml).returncode == 3
    suite = ElementTree.parse(xml).getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("2", "0", "1")
    (error,) = suite.findall("testcase[@name='broken']/error")
    assert "no database" in (error.get("message") or "")


THEIRS = (
    "from reactive_runtime import Flow\n"
    "from reactive_runtime.stress import scenario\n"
    "@scenario(elements=9, live=2)\ndef right(context):\n    return Flow.range(9)\n"
)


def test_a_file_that_does_not_import_is_reported_in_a_line_and_the_others_go_on(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("import nothing_of_that_name\n")
    (tmp_path / "theirs.py").write_text(THEIRS)
    load = ("--scenarios", tmp_path, "--seconds", "0.5", "--threads", "2", "--out", tmp_path / "runs")
    done = call("stress", *load)
    assert done.returncode == 3
    assert done.stdout.splitlines()[-1].startswith(f"UNABLE   bad.py: {tmp_path / 'bad.py'}: can't be imported: Module")
    run = the_run(tmp_path / "runs")
    assert {item.scenario for item in read_trace(run)} == {"right"}
    assert set(json.loads((run / "metadata.json").read_text())["given_up"]) == {"bad.py"}
    xml = tmp_path / "junit.xml"
    elsewhere = call("stress", *load, "--pool", "processes-per-scenario", "--repeat", "2", "--junit", xml)
    assert elsewhere.returncode == 3
    assert elsewhere.stdout.count("INCOMPLETE no rule was broken in what was judged; ") == 2
    assert "clean    " not in elsewhere.stdout
    suite = ElementTree.parse(xml).getroot()
    assert {item.get("name"): item.find("error") is not None for item in suite.findall("testcase")} == {
        "right": False,
        "bad.py": True,
    }


def test_each_scenario_can_have_a_process_of_its_own_and_one_that_dies_hurts_no_other(tmp_path: Path) -> None:
    (tmp_path / "theirs.py").write_text(
        THEIRS + "import os, signal\n"
        "@scenario(elements=1)\ndef dying(context):\n    os.kill(os.getpid(), signal.SIGKILL)\n"
        "@scenario(elements=1)\ndef leaving(context):\n    os._exit(7)\n"
        "@scenario(elements=1)\ndef broken(context):\n    raise OSError('no database')\n"
        "@scenario(elements=5)\ndef other(context):\n    print('for nobody')\n"
        "    os.system('echo for nobody')\n    return Flow.range(5)\n"
    )
    load = ("--scenarios", tmp_path, "--seconds", "2", "--threads", "2", "--out", tmp_path / "runs")
    done = call("stress", *load, "--pool", "processes-per-scenario")
    assert done.returncode == 1, done.stdout + done.stderr
    last = sorted(done.stdout.splitlines()[-3:])
    assert last[0] == "STUCK    dying: its process ended with signal 9 before the load was over"
    assert last[1] == "STUCK    leaving: its process ended with status 7 before the load was over"
    assert last[2].startswith("UNABLE   broken: its factory")
    run = the_run(tmp_path / "runs")
    records = read_trace(run)
    assert {record.scenario for record in records} == {"right", "other"}
    assert len({(record.scenario, record.subscription) for record in records}) == len(
        {record.subscription for record in records}
    )
    facts = json.loads((run / "metadata.json").read_text())
    assert facts["records"] == len(records)
    assert all(fact["kept"] == 0 for fact in facts["leaving"].values())


@pytest.mark.parametrize(("way", "status"), [("return Flow.range(9)", 0), ("os._exit(7)", 1)])
def test_a_process_that_a_scenario_leaves_behind_is_not_waited_for(way: str, status: int, tmp_path: Path) -> None:
    code = (
        "import os, time\nleft = []\n"
        "@scenario(elements=9)\ndef forking(context):\n    if not left:\n        left.append(os.fork())\n"
        "        if not left[0]:\n            time.sleep(600)\n            os._exit(0)\n"
        f"        open({str(tmp_path / 'left')!r}, 'w').write(str(left[0]))\n"
        f"    {way}\n"
    )
    (tmp_path / "theirs.py").write_text(THEIRS + code)
    load = ("--scenarios", tmp_path, "--seconds", "1", "--threads", "2", "--out", tmp_path / "runs")
    command = [*COMMAND, "stress", *map(str, load), "--pool", "processes-per-scenario"]
    with (tmp_path / "said").open("w") as said:  # no pipe: what is left behind keeps it open too
        job = subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT)
    try:
        assert job.wait(100) == status, (tmp_path / "said").read_text()
        os.kill(int((tmp_path / "left").read_text()), 0)  # which is still there
    finally:
        job.kill()
        job.wait()
        os.kill(int((tmp_path / "left").read_text()), signal.SIGKILL)
    assert {record.scenario for record in read_trace(the_run(tmp_path / "runs"))} >= {"right"}


def test_interpreters_run_side_by_side_each_with_a_run_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "theirs.py").write_text(THEIRS)
    load = ("--scenarios", tmp_path, "--seconds", "0.5", "--threads", "2", "--out", tmp_path / "runs", "--repeat", "2")
    done = call("stress", *load, "--python", sys.executable)
    assert done.returncode == 0, done.stdout + done.stderr
    version = ".".join(map(str, sys.version_info[:3])) + ("" if primitives.has_gil() else "t")
    assert [run.name.rpartition("-")[2] for run in runs_in(tmp_path / "runs")] == [f"py{version}"] * 2
    assert done.stdout.count("clean    no rule was broken") == 2


def test_a_disk_that_is_full_is_one_line_and_what_was_recorded_stays(tmp_path: Path) -> None:
    limited = (
        "import resource, sys, signal\n"
        "from reactive_runtime.testing._traces import trace_writer as trace\n"
        "trace.FILE_ROWS = 4_000\n"
        "from reactive_runtime.testing import _recorder as recorder\n"
        "recorder.CHUNK = 500\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "told = trace.TraceWriter._tell\n"
        "def tell(self, *of, **more):\n"
        "    told(self, *of, **more)\n"
        "    if sum(self._files.values()) >= 8_000:\n"
        "        resource.setrlimit(resource.RLIMIT_FSIZE, (2_000, 2_000))\n"  # from here on files can't grow
        "trace.TraceWriter._tell = tell\n"
        "from reactive_runtime._cli import main\n"
        "main()\n"
    )
    arguments = ["stress", "range_on_the_callers", "--seconds", "60", "--threads", "4", "--out", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-c", limited, *arguments], capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 3, done.stdout + done.stderr
    assert done.stderr.startswith(f"reactive-runtime: {the_run(tmp_path)}")
    assert "can't be written: " in done.stderr
    assert f"INCOMPLETE 1 of 1 scenarios was cut off: range_on_the_callers; {the_run(tmp_path)}: was cut" in done.stdout
    assert done.stderr.count("\n") == 1
    assert len(read_trace(the_run(tmp_path))) >= 8_000


# -- a night that one can trust -----------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["os._exit(0)", "os.kill(os.getpid(), 9)", "os._exit(1)"])
def test_a_scenario_that_ends_the_process_is_no_success_and_no_broken_rule(way: str, tmp_path: Path) -> None:
    code = f"import os\n@scenario(elements=1)\ndef leaving(context):\n    {way}\n"
    (tmp_path / "theirs.py").write_text(THEIRS + code)
    xml, out = tmp_path / "night.xml", tmp_path / "runs"
    xml.write_text("<testsuite tests='1' failures='0' errors='0'/>")  # of last night
    load = ("--scenarios", tmp_path, "--seconds", "30", "--threads", "2", "--out", out, "--junit", xml)
    done = call("stress", *load)
    assert done.returncode == 3, done.stdout + done.stderr
    assert done.stderr.startswith("reactive-runtime: the load did not come to its end, its process ended with ")
    assert done.stderr.count("\n") == 1
    assert ElementTree.parse(xml).getroot().get("errors") == "1"
    assert skipped_in(xml) == dict.fromkeys(("right", "leaving"), "the run did not come to its end")
    assert holds(the_run(out)).complete is False


STUCK_AT_ITS_END = """
import threading
from reactive_runtime._cli.watch import watched
from reactive_runtime._core.runtime import primitives
import typer

def work():
    threading.Thread(target=threading.Event().wait).start()  # the interpreter waits for it
    for door in (threading, primitives):
        door.Thread = lambda **_: threading.Event().wait()  # no memory is left to begin another
    print("the verdict", flush=True)
    raise typer.Exit(1)

app = typer.Typer()
app.command()(lambda: watched(work))
app()
"""


def test_a_process_that_can_begin_no_thread_comes_to_its_end() -> None:
    done = subprocess.run(
        [sys.executable, "-c", STUCK_AT_ITS_END], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (1, "the verdict\n", "")


@pytest.mark.parametrize(
    ("way", "pool"), one_pair_each_by_day(["sys.exit(0)", "raise KeyboardInterrupt", "raise Odd"], POOLS)
)
def test_an_exit_out_of_a_scenario_is_its_own_and_the_others_go_on(way: str, pool: str, tmp_path: Path) -> None:
    code = (
        "import sys\nclass Odd(Exception):\n    def __repr__(self):\n        sys.exit(0)\n    __str__ = __repr__\n"
        f"class Leaving:\n    def subscribe(self, subscriber):\n        {way}\n"
        "@scenario(elements=1)\ndef leaving(context):\n    return Leaving()\n"
        f"@scenario(elements=1)\ndef unmade(context):\n    {way}\n"
    )
    (tmp_path / "theirs.py").write_text(COUNTED + THEIRS + code)
    load = ("--scenarios", tmp_path, "--seconds", "1", "--threads", "2", "--out", tmp_path / "runs", "--pool", pool)
    done = call("stress", *load, "--verify", "--engine", "local")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "BROKEN   rule 1.9; " in done.stdout
    assert f"UNABLE   unmade: its factory ({tmp_path / 'theirs.py'}) raised " in done.stdout
    run = the_run(tmp_path / "runs")
    assert {record.scenario for record in read_trace(run)} == {"right", "leaving"}
    assert set((metadata_of(run) or {})["given_up"]) == {"unmade"}


@pytest.mark.parametrize(("number", "pool"), one_pair_each_by_day([signal.SIGINT, signal.SIGTERM], POOLS))
def test_a_signal_ends_the_load_with_a_verdict_on_what_there_is(
    number: signal.Signals, pool: str, tmp_path: Path
) -> None:
    (tmp_path / "theirs.py").write_text(THEIRS)
    xml, out = tmp_path / "night.xml", tmp_path / "runs"
    load = ["--scenarios", tmp_path, "--seconds", "600", "--threads", "2", "--out", out, "--junit", xml]
    command = [*COMMAND, "stress", *map(str, load), "--pool", pool, "--repeat", "3"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as job:
        over = time.monotonic() + 100
        while not any((metadata_of(run) or {}).get("records") for run in runs_in(out)):
            assert time.monotonic() < over, "nothing is recorded"
            assert job.poll() is None
            time.sleep(0.01)
        job.send_signal(number)
        said, errors = job.communicate(timeout=100)
    assert job.returncode == 3, said + errors
    assert "stopped  after " in said
    assert said.count("INCOMPLETE no rule was broken in what was judged") == 1
    assert "clean    " not in said
    assert "; 2 of 3 runs were not begun: the load was ended" in said
    assert re.search(r"incomplete │ right     │ the load was ended after \S+ of 600 s: the rest was not run", said), (
        said
    )
    held = holds(the_run(out))
    assert held.complete
    metadata = metadata_of(held.folder) or {}
    assert metadata["stopped"] is True
    assert skipped_in(xml) == metadata["cut_short"]
    suite = ElementTree.parse(xml).getroot()
    (error,) = suite.findall("testcase[@name='the verdict']/error")
    assert (suite.get("tests"), error.get("message")) == ("2", "2 of 3 runs were not begun: the load was ended")


STOP = "def stop():\n    import os, signal\n    os.kill(os.getpid(), signal.SIGTERM)\n"


@pytest.mark.parametrize("pool", ["threads", "processes-per-scenario"])
def test_a_scenario_that_ends_the_load_early_makes_it_incomplete(pool: str, tmp_path: Path) -> None:
    code = "@scenario(elements=9)\ndef ending(context):\n    stop()\n    return Flow.range(9)\n"
    (tmp_path / "theirs.py").write_text(STOP + THEIRS + code)
    load = ("--scenarios", tmp_path, "--threads", "2", "--out", tmp_path / "runs", "--pool", pool)
    done = call("stress", "ending", *load, "--seconds", "60", "--verify", "--engine", "local")
    assert done.returncode == 3, done.stdout + done.stderr
    assert "INCOMPLETE 1 of 1 scenarios was cut off: ending" in done.stdout
    (why,) = (metadata_of(the_run(tmp_path / "runs")) or {})["cut_short"].values()
    assert re.fullmatch(r"the load was ended after \S+ of 60 s: the rest was not run", why)


@pytest.mark.parametrize("pool", POOLS)
def test_a_handler_of_a_scenario_file_leaves_the_load_its_signals(pool: str, tmp_path: Path) -> None:
    code = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    ending = "@scenario(elements=9)\ndef ending(context):\n    stop()\n    return Flow.range(9)\n"
    (tmp_path / "theirs.py").write_text(code + STOP + THEIRS + ending)
    load = ("--scenarios", tmp_path, "--threads", "2", "--out", tmp_path / "runs", "--pool", pool)
    done = call("stress", "ending", *load, "--seconds", "20")
    assert done.returncode == 3, done.stdout + done.stderr
    assert "INCOMPLETE 1 of 1 scenarios was cut off: ending" in done.stdout


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.parametrize("pool", POOLS)
def test_a_child_of_a_scenario_ends_by_sigterm(pool: str, tmp_path: Path) -> None:
    """It had the handler of the load, and `terminate` did nothing: the scenario was stuck."""
    code = (
        "import multiprocessing, signal, time\n"
        "children = []\n"
        "@scenario(elements=9)\n"
        "def forking(context):\n"
        "    if not children:\n"
        "        children.append(multiprocessing.get_context('fork').Process(target=time.sleep, args=(60,)))\n"
        "        children[0].start()\n"
        "        children[0].terminate()\n"
        "        children[0].join()\n"
        "    assert children[0].exitcode == -signal.SIGTERM\n"
        "    return Flow.range(9)\n"
    )
    (tmp_path / "theirs.py").write_text(THEIRS + code)
    load = ("--scenarios", tmp_path, "--threads", "2", "--out", tmp_path / "runs", "--pool", pool)
    done = call("stress", "forking", *load, "--seconds", "0.5", "--verify", "--engine", "local")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.parametrize("pool", POOLS)
def test_a_child_of_an_import_does_no_load_of_its_own(pool: str, tmp_path: Path) -> None:
    """It was a load of its own, in a folder of its own: the status was that of the load that ended first."""
    code = (
        "import os\nchild = os.fork()\n"
        "@scenario(elements=9)\ndef short(context):\n    return Flow.range(9 if child == 0 else 8)\n"
    )
    (tmp_path / "theirs.py").write_text(THEIRS + code)
    load = ("--scenarios", tmp_path, "--threads", "2", "--out", tmp_path / "runs", "--pool", pool)
    done = call("stress", "short", *load, "--seconds", "0.5", "--verify", "--engine", "local")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "BROKEN   rule conservation; " in done.stdout
    assert "clean    " not in done.stdout
    the_run(tmp_path / "runs")


def test_a_signal_between_two_runs_leaves_the_rest_unbegun(tmp_path: Path) -> None:
    """The first run had all of its time: what is missing is the other two."""
    (tmp_path / "theirs.py").write_text(THEIRS)
    code = (
        f"{STOP}from reactive_runtime._cli import main, stress\njudge = stress.judge_at_once\n"
        "stress.judge_at_once = lambda *of: (stop(), judge(*of))[1]\nmain()\n"
    )
    xml, out = tmp_path / "night.xml", tmp_path / "runs"
    load = ["--scenarios", tmp_path, "--seconds", "0.5", "--threads", "2", "--out", out, "--junit", xml]
    command = [sys.executable, "-c", code, "stress", *map(str, load), "--repeat"]
    for repeat, says in (
        ("3", "2 of 3 runs were not begun: the load was ended"),
        ("until-failure", "--repeat until-failure was ended after 1 run(s), before one has failed"),
    ):
        done = subprocess.run([*command, repeat], capture_output=True, text=True, timeout=100, check=False)
        assert done.returncode == 3, done.stdout + done.stderr
        assert f"INCOMPLETE {says}" in done.stdout
        (error,) = ElementTree.parse(xml).getroot().iter("error")
        assert error.get("message") == says
    last = subprocess.run([*command, "1"], capture_output=True, text=True, timeout=100, check=False)
    assert last.returncode == 0, last.stdout + last.stderr
    assert not any((metadata_of(run) or {})["cut_short"] for run in runs_in(out))


def test_junit_says_when_where_and_with_what_and_bears_any_text(tmp_path: Path) -> None:
    (tmp_path / "theirs.py").write_text(
        COUNTED + THEIRS + "def made(context):\n    raise OSError('\\x01 \\ud800 [/b] [red]no[/red]')\n"
        "made.__name__ = 'bell \\x07'\nodd = scenario(elements=1)(made)\n"
        "def half(context):\n    return Flow.range(1)\n"
        "half.__name__ = half.__doc__ = 'half \\ud800'\nhalf = scenario(elements=1)(half)\n"
    )
    xml = tmp_path / "made" / "night.xml"
    load = ("--scenarios", tmp_path, "--seconds", "0.3", "--threads", "2", "--seed", "5", "--out", tmp_path / "runs")
    done = call("stress", *load, "--junit", xml)
    assert done.returncode == 3, done.stderr
    assert "[/b] [red]no[/red]" in done.stdout
    suite = ElementTree.parse(xml).getroot()
    assert suite.get("hostname") == platform.node()
    assert (suite.get("timestamp") or "").startswith("20")
    assert float(suite.get("time") or 0) > 0
    told = {item.get("name"): item.get("value") for item in suite.findall("properties/property")}
    assert (told["seed"], told["python"]) == ("5", platform.python_version())
    assert {item.get("name") for item in suite.findall("testcase")} == {"right", "bell \\x07", "half \\ud800"}
    assert "half \\ud800" in {item.scenario for item in read_trace(the_run(tmp_path / "runs"))}
    assert call("stress", "--scenarios", tmp_path, "--list").returncode == 0


def test_what_others_write_is_shown_as_it_is(tmp_path: Path) -> None:
    doc = THEIRS.replace("    return", '    """[/b] an [red]odd[/red] one"""\n    return')
    (tmp_path / "theirs.py").write_text(doc)
    listed = call("stress", "--scenarios", tmp_path, "--list")
    assert (listed.returncode, "[/b] an [red]odd[/red] one" in listed.stdout) == (0, True)
    (tmp_path / "odd.py").write_text("def made(elements):\n    raise OSError('[/b] [red]no[/red]')\n")
    kit = call("tck", "odd:made", PYTHONPATH=f"{tmp_path}{os.pathsep}{os.getcwd()}")
    assert "MarkupError" not in kit.stderr
    assert "[/b]" in kit.stdout + kit.stderr


def test_threads_that_are_left_are_mentioned(tmp_path: Path) -> None:
    code = THEIRS.replace(
        "    return",
        "    import threading\n    if not any(it.name == 'left over' for it in threading.enumerate()):\n"
        "        threading.Thread(target=threading.Event().wait, name='left over', daemon=True).start()\n    return",
    )
    (tmp_path / "theirs.py").write_text(code)
    done = call(
        "stress",
        "--scenarios",
        tmp_path,
        "--seconds",
        "0.3",
        "--threads",
        "2",
        "--out",
        tmp_path / "runs",
        "--repeat",
        "1",
    )
    assert "threads  1 that scenarios have started still run: left over" in done.stdout
    assert (metadata_of(the_run(tmp_path / "runs")) or {})["threads_left"] == ["left over"]


@needs_spark
def test_what_an_earlier_night_has_left_goes_where_this_one_can_not_be_judged(tmp_path: Path) -> None:
    (tmp_path / "theirs.py").write_text(THEIRS)
    xml, report = tmp_path / "night.xml", tmp_path / "night.html"
    xml.write_text("<testsuite tests='1' failures='0' errors='0'/>")
    report.write_text("Clean")
    load = ("--scenarios", tmp_path, "--seconds", "0.3", "--threads", "2", "--out", tmp_path / "runs")
    artefacts = ("--verify", "--report", report, "--junit", xml)
    for more, java, says in (
        (("--master", "local[x]"), "", "--master local[x]: is no"),
        ((), "/nowhere", "needs Java"),
    ):
        done = call("stress", *load, *artefacts, *more, **({"JAVA_HOME": java} if java else {}))
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        assert says in done.stderr
        assert not report.exists()
        assert int(ElementTree.parse(xml).getroot().get("errors") or 0) >= 1
        report.write_text("Clean")


def test_a_folder_that_cannot_be_written_to_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    done = call("stress", "range_on_the_callers", "--seconds", "1", "--out", tmp_path / "file")
    assert (done.returncode, done.stderr.count("\n")) == (4, 1)
    assert "can't be made: Not a directory" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("stress", "none"), "no scenario 'none' in stress; there are:"),
        (("stress", "--tag", "none"), "no scenario with the tag 'none' in stress; tags are: nightly, smoke"),
        (("stress", "--repeat", "0"), "--repeat 0: should be a number of runs, 1 or more, or until-failure"),
        (("stress", "--junit", "."), "--junit .: is a folder, and should be a file"),
        (("stress", "--junit", "docs"), "--junit docs: is a folder, and should be a file"),
        (("stress", "--verify", "--report", "docs"), "--report docs: is a folder, and should be a file"),
        (("stress", "--seconds", "inf"), "--seconds inf: should be a number of seconds"),
        (("stress", "--report", "r.html"), "--report: there is nothing to report without a verdict: add --verify"),
        (("stress", "--fail-on-regression"), "--fail-on-regression: nothing is compared without a verdict"),
        (("stress", "--engine", "local"), "--engine: is for the verdict: add --verify"),
        (("stress", "--engine", "local", "--repeat", "2"), "--engine: is for the verdict: add --verify"),
        (("stress", "--master", "local[2]"), "--master: is for the verdict: add --verify"),
        (
            ("stress", "--verify", "--engine", "local", "--conf", "spark.a=b"),
            "--conf: --engine local starts no Spark",
        ),
        pytest.param(("verify", "docs", "--once"), "--once: is for runs that arrive: add --follow", marks=needs_spark),
        (("stress", "--pool", "greenlets"), "--pool greenlets: should be threads, or processes-per-scenario"),
        (("stress", "--python", "/no/python"), "--python /no/python: can't be started"),
        (("stress", "--scenarios", "nowhere"), "nowhere: no scenario files"),
        (("stress", "--fault", "none", "--seconds", "1"), "no fault 'none'; there are:"),
        (
            ("stress", "the_pool_*", "--fault", "overflow"),
            "--fault overflow: can't be planted in the_pool_is_shut_down",
        ),
        pytest.param(
            ("verify", "docs", "--master", "nowhere"), "--master nowhere: is no master of Spark", marks=needs_spark
        ),
        pytest.param(
            ("verify", "docs", "tests", "--follow"), "--follow: should be given one folder", marks=needs_spark
        ),
    ],
)
def test_a_wrong_command_line_is_one_line_and_exit_status_2(
    arguments: tuple[str, ...], says: str, tmp_path: Path
) -> None:
    out = ("--out", str(tmp_path)) if arguments[0] == "stress" else ()
    done = call(*arguments, *out)
    assert done.returncode == 2
    assert done.stderr.startswith("reactive-runtime: ")
    assert says in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        pytest.param(("verify", "nowhere"), "nowhere: is no folder", marks=needs_spark),
        pytest.param(("verify", "docs"), "docs: has no runs", marks=needs_spark),
        (("report", "docs"), "docs: has no verdict to report"),
        (("report", "nowhere"), "nowhere: has no verdict to report"),
    ],
)
def test_a_folder_that_can_not_be_used_is_one_line_and_exit_status_4(arguments: tuple[str, ...], says: str) -> None:
    done = call(*arguments)
    assert (done.returncode, done.stderr.count("\n")) == (4, 1)
    assert done.stderr.startswith("reactive-runtime: ")
    assert says in done.stderr


@needs_spark
@pytest.mark.parametrize("command", ["verify", "stress"])
@pytest.mark.parametrize(
    ("option", "text", "says"),
    [
        ("--conf", "memory=1g", "should be spark.key=value"),
        ("--packages", "a:b", "should be group:artifact:version"),
    ],
)
def test_a_setting_that_is_none_is_one_line(command: str, option: str, text: str, says: str, tmp_path: Path) -> None:
    done = call(command, tmp_path if command == "verify" else "--verify", option, text)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert says in done.stderr


def test_the_version_is_printed() -> None:
    done = call("--version")
    assert (done.returncode, done.stdout) == (0, f"reactive-runtime {reactive_runtime.__version__}\n")


def test_an_unknown_option_exits_with_2() -> None:
    assert call("stress", "--nonsense").returncode == 2


@pytest.mark.parametrize("command", [(), ("stress",), ("verify",)])
def test_help_says_what_a_command_does(command: tuple[str, ...]) -> None:
    done = call(*command, "--help")
    assert done.returncode == 0
    assert "Usage:" in done.stdout
    description = re.split(r"^(?:Arguments|Options):$", done.stdout, flags=re.MULTILINE)[0].splitlines()[1:]
    assert any(description)
    for line, following in itertools.pairwise(description):
        word = following.split()[:1]
        assert not line or not word or len(f"{line} {word[0]}") > 78  # filled to the edge
