"""The command: the main job end to end, its exit status, its files, its errors of one line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pyarrow.parquet as parquet
import pytest

from reactive_runtime.stress import FAULTS, find
from reactive_runtime.testing.trace import read_trace

pytestmark = pytest.mark.timeout(300)  # some start Spark, on a machine that may have other work

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


@pytest.fixture(scope="module")
def clean_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    folder = tmp_path_factory.mktemp("runs")
    done = call("stress", "--seconds", "3", "--seed", "7", "--out", folder, "--verify", "--master", "local[2]")
    return the_run(folder), done


def test_the_main_job_is_clean_and_exits_with_0(
    clean_run: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    run, done = clean_run
    assert done.returncode == 0, done.stdout + done.stderr
    assert "seed 7" in done.stdout
    assert "clean    no rule was broken" in done.stdout
    facts = json.loads((run / "metadata.json").read_text())
    assert facts["complete"] is True
    assert facts["seed"] == 7
    signals = sum(parquet.read_metadata(file).num_rows for file in run.glob("signals-*.parquet"))
    assert facts["records"] == signals > 10_000


def test_the_main_job_writes_its_verdict_as_parquet(
    clean_run: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    run, _ = clean_run
    verdict = run.parent.parent / "verdict"
    assert parquet.read_table(verdict / "violations").num_rows == 0
    assert parquet.read_table(verdict / "summary").num_rows >= 6


CAUGHT_BY = {
    "lost-demand": {"3.8", "3.17"},
    "overflow": {"3.17"},
    "two-drains": {"1.3"},
    "signal-after-completion": {"1.7"},
    "forgotten-cancel": {"1.8"},
}


@pytest.fixture(scope="module")
def verdict_on_faults(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, str], dict[str, set[str]]]:
    """One verdict on a run for each fault: what is shown of each rule, and the rules that each run broke."""
    folder = tmp_path_factory.mktemp("faults")
    load = ("stress", "range_on_the_callers", "--seconds")
    for fault in CAUGHT_BY:
        # Some three subscriptions lose demand in a second; on a machine with other work it may be one in two.
        seconds = "20" if fault == "lost-demand" else "3"
        done = call(*load, seconds, "--out", folder / fault, REACTIVE_RUNTIME_FAULT=fault)
        assert done.returncode == 0, done.stdout + done.stderr
    runs = {the_run(folder / fault).name.removeprefix("run="): fault for fault in CAUGHT_BY}
    done = call("verify", *(folder / fault for fault in CAUGHT_BY), "--out", folder / "verdict", "--master", "local[2]")
    assert done.returncode == 1, done.stdout + done.stderr
    broken: dict[str, set[str]] = {fault: set() for fault in CAUGHT_BY}
    for row in parquet.read_table(folder / "verdict" / "violations").to_pylist():
        broken[runs[row["run"]]].add(row["rule"])
    shown = {part.partition(": ")[0]: part for part in done.stdout.split("\nrule ")[1:]}
    return shown, broken


@pytest.mark.parametrize("fault", CAUGHT_BY)
def test_a_planted_fault_is_caught_by_its_rule_and_its_signals_are_shown(
    fault: str, verdict_on_faults: tuple[dict[str, str], dict[str, set[str]]]
) -> None:
    shown, broken = verdict_on_faults
    named = CAUGHT_BY[fault] & broken[fault]
    assert named, broken
    for rule in named:
        assert "\n  seen: " in shown[rule]
        assert "\n  >> " in shown[rule]
        assert "  thread " in shown[rule]


def test_every_fault_there_is_is_tried() -> None:
    assert set(CAUGHT_BY) == set(FAULTS)


def test_stress_without_verify_records_and_exits_with_0(tmp_path: Path) -> None:
    done = call("stress", "range_on_the_callers", "--seconds", "0.5", "--threads", "2", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"run      {the_run(tmp_path)}" in done.stdout


def test_scenarios_are_listed_by_pattern_and_tag() -> None:
    listed = call("stress", "--list").stdout
    assert all(it.name in listed for it in find("stress"))
    some = call("stress", "range_*", "--list").stdout
    assert "range_on_a_thread" in some
    assert "fused_steps" not in some
    smoke = call("stress", "--list", "--tag", "smoke").stdout
    assert all((it.name in smoke) == ("smoke" in it.tags) for it in find("stress") if len(it.name) > 12)


def test_repeated_runs_are_judged_here_each_with_a_seed_of_its_own(tmp_path: Path) -> None:
    load = ("stress", "range_on_the_callers", "--seconds", "0.3", "--threads", "3", "--seed", "5", "--out", tmp_path)
    done = call(*load, "--repeat", "2")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("clean    no rule was broken") == 2
    assert [json.loads((run / "metadata.json").read_text())["seed"] for run in runs_in(tmp_path)] == [5, 6]


def test_runs_are_repeated_until_one_fails_and_its_seed_and_signals_are_shown(tmp_path: Path) -> None:
    load = ("stress", "range_on_the_callers", "--seconds", "0.3", "--threads", "3", "--out", tmp_path)
    xml = tmp_path.parent / f"{tmp_path.name}.xml"
    fault = ("--fault", "signal-after-completion")
    done = call(*load, "--repeat", "until-failure", "--seed", "5", *fault, "--junit", xml)
    assert done.returncode == 1, done.stderr
    (failure,) = ElementTree.parse(xml).getroot().findall("testcase[@name='range_on_the_callers']/failure")
    assert failure.get("message") == "rule 1.7 was broken"
    assert "rule 1.7" in done.stdout
    assert "\n  >> " in done.stdout
    assert "with seed " in done.stdout.splitlines()[-1]


def test_a_scenario_that_can_not_go_on_is_told_last_and_what_was_recorded_stays(tmp_path: Path) -> None:
    (tmp_path / "theirs.py").write_text(
        "from reactive_runtime import Flow\n"
        "from reactive_runtime.stress import harness, scenario\n"
        "import threading\n"
        "harness.PATIENCE = 0.3\n"
        "@scenario(elements=1)\ndef broken(rig):\n    raise OSError('no database')\n"
        "@scenario(elements=1)\ndef hanging(rig):\n    threading.Event().wait()\n"
        "@scenario(elements=1)\ndef right(rig):\n    return Flow.range(1)\n"
    )
    load = ("--scenarios", tmp_path, "--seconds", "1", "--threads", "2", "--out", tmp_path / "runs")
    done = call("stress", *load)
    assert done.returncode == 1, done.stderr
    last = done.stdout.splitlines()[-2:]
    assert last[0].startswith("UNABLE   broken: its factory")
    assert last[1] == "STUCK    hanging: its factory did not return within 0.3 s"
    run = the_run(tmp_path / "runs")
    assert set(json.loads((run / "metadata.json").read_text())["given_up"]) == {"broken", "hanging"}
    assert "threading.Event().wait()" in (run / "stuck.txt").read_text()
    assert {it.scenario for it in read_trace(run)} == {"right"}
    xml = tmp_path / "junit.xml"
    assert call("stress", "broken", "right", *load, "--junit", xml).returncode == 2
    suite = ElementTree.parse(xml).getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("2", "0", "1")
    (error,) = suite.findall("testcase[@name='broken']/error")
    assert "no database" in (error.get("message") or "")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("stress", "none"), "no scenario 'none' in stress; there are:"),
        (("stress", "--tag", "none"), "no scenario with the tag 'none' in stress; tags are: nightly, smoke"),
        (("stress", "--repeat", "0"), "--repeat 0: should be a number of runs, 1 or more, or until-failure"),
        (("stress", "--scenarios", "nowhere"), "nowhere: no scenario files"),
        (("stress", "--fault", "none", "--seconds", "1"), "no fault 'none'; there are:"),
        (("verify", "nowhere"), "nowhere: is no folder"),
        (("verify", "docs"), "docs: has no runs"),
    ],
)
def test_an_error_is_one_line_and_exit_status_2(arguments: tuple[str, ...], says: str, tmp_path: Path) -> None:
    out = ("--out", str(tmp_path)) if arguments[0] == "stress" else ()
    done = call(*arguments, *out)
    assert done.returncode == 2
    assert done.stderr.startswith("reactive-runtime: ")
    assert says in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_setting_that_is_none_is_one_line(clean_run: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    done = call("verify", clean_run[0], "--conf", "memory=1g")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "should be spark.key=value" in done.stderr


def test_an_unknown_option_exits_with_2() -> None:
    assert call("stress", "--nonsense").returncode == 2


@pytest.mark.parametrize("command", [(), ("stress",), ("verify",)])
def test_help_says_what_a_command_does(command: tuple[str, ...]) -> None:
    done = call(*command, "--help")
    assert done.returncode == 0
    assert "Usage:" in done.stdout
