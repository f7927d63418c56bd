"""The kit as its users meet it: collected by pytest under the names of the checks, and from the shell."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

QUICK = ("--timeout", "2", "--no-signals-timeout", "0.01")
MODULE = """
from reactive_runtime import Flow
from reactive_runtime.tck import PublisherVerification

class TestRange(PublisherVerification):
    default_timeout = 5
    default_no_signals_timeout = 0.02

    def create_publisher(self, elements):
        return Flow.range(elements)

class TestStuck(PublisherVerification):
    def create_publisher(self, elements):
        return Flow.never()

    def required_spec102_may_signal_less_than_requested_and_terminate_subscription(self):
        "Overridden, and still a test."

class Silent(PublisherVerification):
    pass

async def nothing(elements):
    pass

def now_and_then(elements):
    if elements == 0:
        raise OSError("no such table")
    return Flow.range(elements)

number = 5
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "test_mine.py").write_text(MODULE)
    return tmp_path


def run(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "COLUMNS": "200", **variables}
    command = [sys.executable, "-m", *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=100, check=False
    )


def test_pytest_collects_every_check_under_its_own_name(folder: Path) -> None:
    done = run(folder, "pytest", "-q", "--collect-only", "test_mine.py")
    names = re.findall(r"test_mine\.py::TestRange::(\w+)", done.stdout)
    assert len([name for name in names if not name.startswith("extra_")]) == 38
    assert "required_spec309_request_zero_must_signal_illegal_argument_exception" in names
    assert "TestStuck::required_spec102_may_signal_less_than_requested" in done.stdout


def test_pytest_reports_what_the_check_saw(folder: Path) -> None:
    done = run(folder, "pytest", "-q", "-rs", "test_mine.py", "-k", "spec102 or untested_spec106 or spec104 or spec302")
    assert "rule 3.2: request may be called from inside on_next and on_subscribe" in done.stdout
    assert "seen: 0 of 6 elements came, all requested from on_subscribe and on_next" in done.stdout
    assert "tck  subscriber 1: request(1) ->" in done.stdout
    assert "rule 1.4: create_failed_publisher returned None: there is none to test" in done.stdout
    assert re.search(r"1 failed, 3 passed, \d+ skipped", done.stdout), done.stdout


def test_the_command_prints_a_table_and_exits_with_0(folder: Path) -> None:
    done = run(
        folder,
        "reactive_runtime",
        "tck",
        "reactive_runtime:Flow.range",
        "--timeout",
        "5",
        "--no-signals-timeout",
        "0.02",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"3\.13 +│ cancel must make the publisher eventually", done.stdout)
    assert "75 passed, 0 failed, 16 skipped, in " in done.stdout
    assert "CONFORMS no check failed" in done.stdout


def test_the_command_takes_a_verification_and_its_settings(folder: Path) -> None:
    done = run(folder, "reactive_runtime", "tck", "test_mine:TestStuck", "--max-elements", "0")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"3\.2 .*│ skipped: needs 6 elements;", done.stdout)


def test_the_command_says_what_failed_and_exits_with_1(folder: Path) -> None:
    done = run(folder, "reactive_runtime", "tck", "test_mine:TestStuck", "--timeout", "0.05")
    assert done.returncode == 1
    assert "rule 3.8: request(n) adds n to the demand: no demand is lost" in done.stdout
    assert (
        "seen: an element was due; 0 of 1 elements came; waited 0.05 s for it (default_timeout, as given)"
        in done.stdout
    )
    assert re.search("^BROKEN   rule [1-4]", done.stdout, re.MULTILINE)


def test_a_factory_that_makes_no_publisher_breaks_no_rule_and_the_command_is_unable(folder: Path) -> None:
    done = run(folder, "reactive_runtime", "tck", "test_mine:nothing", "--timeout", "0.05")
    assert done.returncode == 4
    assert done.stdout.count("there is nothing to judge") == 1
    assert "rule by rule" not in done.stdout
    assert len(done.stdout.splitlines()) < 10
    assert re.search(
        r"UNABLE   test_mine:nothing: \d+ checks were not looked at: failed: create_publisher", done.stderr
    )
    assert "returned a coroutine, and nothing awaits it: define it with def, not async def" in done.stderr


def test_a_factory_that_fails_now_and_then_has_its_table(folder: Path) -> None:
    done = run(folder, "reactive_runtime", "tck", "test_mine:now_and_then", *QUICK)
    assert done.returncode == 3, done.stdout
    assert re.search(r"3\.13 +│ cancel must make the publisher eventually", done.stdout)
    assert "INCOMPLETE test_mine:now_and_then: 2 checks were not looked at" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere"], "'nowhere': package.module:name is needed"),
        (["nowhere:name"], "nowhere:name: importing nowhere raised ModuleNotFoundError: No module named 'nowhere'"),
        (["test_mine:missing"], "test_mine:missing: module 'test_mine' has no attribute 'missing'"),
        (["test_mine:nmuber"], "module 'test_mine' has no attribute 'nmuber'. Did you mean: 'number'?"),
        (["test_mine:number"], "a function of the number of elements, or a verification, not int"),
        (
            ["test_mine:TestRange", "--timeout", "-1"],
            "default_timeout: a number of seconds above 0 is needed, not -1.0",
        ),
    ],
)
def test_what_the_command_can_not_verify_is_one_line_and_exits_with_2(
    folder: Path, arguments: list[str], said: str
) -> None:
    done = run(folder, "reactive_runtime", "tck", *arguments)
    assert done.returncode == 2
    assert done.stderr.startswith("UNABLE   ")
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_variable_of_the_original_kit_that_is_no_number_is_named(folder: Path) -> None:
    done = run(folder, "reactive_runtime", "tck", "test_mine:nothing", DEFAULT_TIMEOUT_MILLIS="soon")
    assert done.returncode == 2
    assert "DEFAULT_TIMEOUT_MILLIS='soon': a number of milliseconds above 0 is needed" in done.stderr
