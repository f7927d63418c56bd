"""The command `reactive-runtime explore`, and the marker for pytest."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

LOST = "examples.hazards.streams.lost_demand:TextbookSubscription"
KEPT = "examples.hazards.streams.lost_demand:AddedAtOnce"

pytest_plugins = ["pytester"]


def run(*arguments: str, env: dict[str, str] | None = None, given: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "reactive_runtime", "explore", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False, env=env, input=given)


def test_a_failure_is_drawn_saved_and_had_again(tmp_path: Path) -> None:
    file, picture = tmp_path / "deep" / "lost.schedule", tmp_path / "lost.svg"
    done = run(LOST, "--seed", "7", "--save", str(file), "--svg", str(picture))
    assert done.returncode == 1, done.stderr
    assert "│" in done.stdout
    assert "rule 3.8" in done.stdout
    assert "FAILED" in done.stdout
    assert "2 preemption(s), the fewest there are" in done.stdout
    assert picture.read_text().startswith("<svg")
    again = run(LOST, "--replay", str(file))
    assert again.returncode == 1
    diagram = [line for line in done.stdout.splitlines() if "│" in line]
    assert diagram == [line for line in again.stdout.splitlines() if "│" in line]
    assert all(line.startswith("#") for line in file.read_text().splitlines()[:-1])


def test_what_holds_exits_with_0_and_says_how_much_was_looked_at() -> None:
    done = run(KEPT)
    assert done.returncode == 0, done.stderr
    assert "EXHAUSTED" in done.stdout
    sampled = run(KEPT, "--strategy", "random", "--schedules", "30", "--points", "line", "--engine", "threads")
    assert "HELD     30 schedules" in sampled.stdout
    capped = "examples.hazards.streams.demand_overflow:CappedSubscription"
    bounded = run(capped, "--strategy", "bounded", "--bound", "1")
    assert "EXHAUSTED within 1 preemption" in bounded.stdout


def test_two_jobs_share_the_schedules() -> None:
    done = run(KEPT, "--jobs", "2", "--schedules", "40", "--strategy", "random")
    assert done.returncode == 0, done.stderr
    assert "HELD     40 schedules, estimated coverage" in done.stdout
    failed = run(LOST, "--jobs", "2")
    assert failed.returncode == 1
    assert "rule 3.8" in failed.stdout


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["nonsense"], "package.module:name is needed"),
        (["no.such.module:x"], "ModuleNotFoundError"),
        (["examples.hazards.streams.lost_demand:Missing"], "Missing"),
        (["examples.hazards.streams.lost_demand:MAX"], "MAX"),
        (["math:pi"], "a scenario is a class"),
        ([LOST, "--strategy", "luck"], "strategy must be one of"),
        ([LOST, "--points", "words"], "points must be one of"),
        ([LOST, "--jobs", "2", "--strategy", "bounded"], "has no parts to share"),
        ([LOST, "--module", "no.such"], "no module 'no.such'"),
        ([LOST, "--debug"], "--debug goes with --replay"),
    ],
)
def test_what_it_can_not_do_is_one_line_and_exit_status_2(arguments: list[str], why: str) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert why in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_file_that_is_no_schedule_is_reported(tmp_path: Path) -> None:
    cases = ((None, "can't be read"), ("", "one line"), ("rr2-x\nrr1-y\n", "one line"), ("hello\n", "no token"))
    for text, why in cases:
        file = tmp_path / "x.schedule"
        if text is not None:
            file.write_text(text)
        done = run(LOST, "--replay", str(file))
        assert done.returncode == 4
        assert why in done.stderr


RACING = """
import threading
import pytest

{marker}
def test_counts():
    count = 0
    lock = threading.Lock()

    def add():
        nonlocal count
        with lock:
            before = count
        with lock:
            count = before + {step}

    threads = [threading.Thread(target=add) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert count == 2 * {step}, f"the count is {{count}}"
"""
MARKED = "@pytest.mark.explore(seed=3)"


def test_a_marked_test_runs_under_many_schedules_and_keeps_the_one_that_fails(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_racing=RACING.format(marker="", step=1))
    pytester.runpytest_subprocess().assert_outcomes(passed=1)  # real threads are not fast enough to fail

    pytester.makepyfile(test_racing=RACING.format(marker=MARKED, step=1))
    first = pytester.runpytest_subprocess()
    first.assert_outcomes(failed=1)
    first.stdout.fnmatch_lines(["*fails under a schedule that was written to*", "*the count is 1*", "*before = count*"])
    kept = list(pytester.path.glob("__schedules__/*.schedule"))
    assert [item.name for item in kept] == ["test_racing.test_counts.schedule"]

    second = pytester.runpytest_subprocess()
    second.assert_outcomes(failed=1)
    second.stdout.fnmatch_lines(["*fails again, under the schedule of*"])

    repaired = RACING.format(marker=MARKED, step=1).replace(
        "        with lock:\n            count", "            count"
    )
    pytester.makepyfile(test_racing=repaired)
    pytester.runpytest_subprocess().assert_outcomes(passed=1)
    assert not list(pytester.path.glob("__schedules__/*.schedule"))


OF_CLASSES = """
import collections, sys, threading
import pytest

def run(*functions):
    threads = [threading.Thread(target=function) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

class TestRacing:
    @pytest.mark.explore(schedules=50)
    def test_counts(self):
        self.count = 0
        def add():
            self.count += 1
        run(add, add)
        assert self.count == 2

class TestSound:
    @pytest.mark.explore(schedules=50)
    def test_counts(self):
        run(int, int)

@pytest.mark.explore(schedules=50)
def test_hidden():
    counter = collections.Counter()
    run(lambda: counter.update("x"), lambda: counter.update("x"))

@pytest.mark.explore(schedules=50)
def test_exits():
    sys.exit(3)
"""


def test_two_tests_of_one_name_have_two_files_of_schedules(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_both=OF_CLASSES)
    pytester.runpytest_subprocess("-k", "TestRacing").assert_outcomes(failed=1)
    pytester.runpytest_subprocess("-k", "TestSound").assert_outcomes(passed=1)
    kept = list(pytester.path.glob("__schedules__/*.schedule"))
    assert [item.name for item in kept] == ["test_both.TestRacing.test_counts.schedule"]


def test_a_marked_test_says_what_was_not_looked_into(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_both=OF_CLASSES)
    ran = pytester.runpytest_subprocess("-k", "test_hidden")
    ran.assert_outcomes(passed=1, warnings=1)
    ran.stdout.fnmatch_lines(['*test_both.py::test_hidden is *not looked into: `counter.update("x")` at test_both.py*'])


def test_a_marked_test_that_exits_fails(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_both=OF_CLASSES)
    ran = pytester.runpytest_subprocess("-k", "test_exits")
    ran.assert_outcomes(failed=1)
    ran.stdout.fnmatch_lines(["*the test called sys.exit(3)*"])


def test_a_marked_test_has_its_fixtures_and_may_be_skipped(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.fixture
        def number():
            return 7

        @pytest.mark.explore(schedules=5)
        @pytest.mark.parametrize("other", [1, 2])
        def test_fixture(number, other):
            assert number == 7

        @pytest.mark.explore(schedules=5)
        def test_skipped():
            pytest.skip("not today")

        @pytest.mark.explore(5)
        def test_wrong():
            pass
        """
    )
    outcome = pytester.runpytest_subprocess()
    outcome.assert_outcomes(passed=2, skipped=1, failed=1)
    outcome.stdout.fnmatch_lines(["*the marker explore takes keywords only*"])


UNRUN = """
import unittest
import pytest

@pytest.mark.explore
async def test_coroutine():
    assert False

class TestCase(unittest.TestCase):
    @pytest.mark.explore
    def test_method(self):
        assert False

@pytest.mark.explore
class TestOfAClass:
    async def test_coroutine(self):
        assert False

    def test_that_is_run(self):
        pass
"""


def test_a_marker_that_could_do_nothing_is_refused(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_unrun=UNRUN)
    result = pytester.runpytest_subprocess()
    told = result.stdout.str()
    assert "test_unrun.py::test_coroutine has the marker explore, and is a coroutine function" in told
    assert "TestCase::test_method has the marker explore, and is a method of a unittest.TestCase" in told
    assert "TestOfAClass::test_coroutine has the marker explore, and is a coroutine function" in told
    assert result.parseoutcomes()["passed"] == 1
    assert sum(result.parseoutcomes().get(name, 0) for name in ("failed", "error", "errors")) == 3


DETAILS = """
import threading
import pytest

class Account:
    def __init__(self):
        self.lock = threading.Lock()
        self.balance = 0

    def __repr__(self):
        with self.lock:
            return f"<an account with {self.balance}>"

    def pay_in(self):
        self.balance += 1

@pytest.mark.explore(seed=3)
def test_balance():
    account = Account()
    threads = [threading.Thread(target=account.pay_in) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert account.balance == len([1, 2]) and account
"""


def test_an_assertion_has_its_details(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_details=DETAILS)
    for told in ("*fails under a schedule that was written to*", "*fails again, under the schedule of*"):
        result = pytester.runpytest_subprocess()
        result.assert_outcomes(failed=1)
        result.stdout.fnmatch_lines(
            [told, "*assert (1 == 2)", "*where 1 = <an account with 1>.balance", "*and   2 = len(*1, 2*"]
        )
        assert "return f" not in result.stdout.str()  # its own steps are not among those of the program


FIXTURES = """
import threading
import pytest

log = []

@pytest.fixture(scope="module")
def wide():
    log.append("wide")
    yield []
    assert log.count("made") == log.count("gone") > 20
    assert log.count("wide") == 1

@pytest.fixture
def lock():
    return threading.Lock()

@pytest.fixture(params=[1, 2])
def items(request, lock, wide, tmp_path, monkeypatch):
    assert isinstance(wide, list)
    log.append("made")
    yield [request.param]
    log.append("gone")

class TestInAClass:
    def setup_method(self):
        self.own = []

    @pytest.mark.explore(schedules=30, strategy="random")
    @pytest.mark.parametrize("other", ["a"])
    def test_fresh(self, items, lock, other):
        def add():
            with lock:  # a real one would be waited for in earnest
                items.append(3)
                self.own.append(3)

        threads = [threading.Thread(target=add) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert items[0] in (1, 2)
        assert items[1:] == self.own == [3, 3]

@pytest.fixture
def unable():
    if log.count("tried") == 3:
        raise OSError("no disk")
    log.append("tried")

@pytest.mark.explore(schedules=30)
def test_unable(unable):
    pass

def test_the_next_one_is_as_ever(items):
    assert items in ([1], [2])
"""


def test_fixtures_of_function_scope_are_set_up_for_each_schedule(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_fixtures=FIXTURES)
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(passed=4, failed=1)
    result.stdout.fnmatch_lines(["*the set-up of test_unable raised OSError: no disk*"])


FIRST_LINES = {
    "docstring": '"""One line."""\n\n',
    "docstring_of_lines": '"""Several\n\nlines."""\n\n',
    "comment": "# A comment.\n\n",
    "empty_lines": "\n\n\n",
    "future": "from __future__ import annotations\n\n",
    "constant": "LIMIT = 3; OTHER = 4\n",
}


def test_a_marked_test_may_stand_behind_any_first_lines(pytester: pytest.Pytester) -> None:
    marked = "import pytest\n\n\n@pytest.mark.explore(schedules=2)\ndef test_it():\n    assert len([1]) == 1\n"
    pytester.makepyfile(**{f"test_{name}": "" for name in FIRST_LINES})
    for name, lines in FIRST_LINES.items():
        (pytester.path / f"test_{name}.py").write_text(lines + marked)
    pytester.runpytest_subprocess().assert_outcomes(passed=len(FIRST_LINES))


CHECKED = """
import threading
import pytest

class Counter:
    def __init__(self):
        self.count = 0

@pytest.fixture
def counter():
    counter = Counter()
    yield counter
    assert counter.count == 2, f"the count is {{counter.count}} at the end"

@pytest.mark.explore(seed=3)
def test_counts(counter):
    lock = threading.Lock()
    def adds():
        {lock}
            counter.count += 1
    threads = [threading.Thread(target=adds) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""


def test_what_a_fixture_checks_at_its_end_holds_under_each_schedule(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_checked=CHECKED.format(lock="with lock:"))
    pytester.runpytest_subprocess().assert_outcomes(passed=1)
    pytester.makepyfile(test_checked=CHECKED.format(lock="if lock:"))
    for told in ("*fails under a schedule that was written to*", "*fails again, under the schedule of*"):
        result = pytester.runpytest_subprocess()
        result.assert_outcomes(failed=1)
        result.stdout.fnmatch_lines([told, "*the count is 1 at the end*"])


DICE = """
import itertools
import threading
import pytest

runs = itertools.count()

@pytest.mark.explore
def test_dice():
    for _ in range(next(runs)):
        threading.Lock().acquire()
"""


def test_a_marked_test_that_is_not_the_same_each_time_fails(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_dice=DICE)
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*incomplete (1 schedule): it does not do the same each time*test_dice.py:*"])


def test_only_schedules_of_an_interpreter_with_a_gil_can_be_asked_for() -> None:
    lesson = "examples.hazards.atomicity.lost_update:Counter"
    assert "needs a build without a GIL" in run(lesson).stdout
    assumed = run(lesson, "--gil", "assumed")
    assert assumed.returncode == 0, assumed.stderr
    assert run(lesson, "--gil", "none").returncode == 2


def test_a_replay_stops_in_the_debugger(tmp_path: Path) -> None:
    file = tmp_path / "lost.schedule"
    run(LOST, "--save", str(file))
    done = run(LOST, "--replay", str(file), "--debug", given="p self.demand\nc\n")
    assert done.returncode == 1
    assert "AtomicInteger(" in done.stdout
    assert "FAILED" in done.stdout


STUCK = """
import itertools

class Stuck:
    def actor_a(self):
        sum(itertools.repeat(0))  # no other thread can run, and none is asked to stop
"""


@pytest.mark.parametrize("jobs", [[], ["--jobs", "2"]], ids=["here", "jobs"])
def test_an_endless_loop_in_c_ends_the_command_with_the_stacks(tmp_path: Path, jobs: list[str]) -> None:
    (tmp_path / "stuck.py").write_text(STUCK)
    done = run("stuck:Stuck", "--hang", "0.5", *jobs, env={**os.environ, "PYTHONPATH": f"{tmp_path}:{Path.cwd()}"})
    assert done.returncode == 3
    assert 'stuck.py", line 6 in actor_a' in done.stderr
    assert jobs or "the exploration did not come to its end, its process ended with status 1" in done.stderr


LEAVING = """
import os

class Leaving:
    def actor_a(self):
        os._exit(0)
"""


def test_a_program_that_ends_the_process_has_no_verdict(tmp_path: Path) -> None:
    (tmp_path / "leaving.py").write_text(LEAVING)
    done = run("leaving:Leaving", env={**os.environ, "PYTHONPATH": f"{tmp_path}:{Path.cwd()}"})
    assert done.returncode == 3
    assert "the exploration did not come to its end, its process ended with status 0" in done.stderr
