"""`pytest --explore`: the threaded tests of a suite run under many schedules, without a change."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from reactive_runtime.explore import _suite_plugin
from reactive_runtime.explore._suite_plugin import (
    ALWAYS,
    BLOCKED,
    CLOCK,
    DIFFERS,
    FLAKY,
    LATE,
    LONG,
    OUTSIDE,
    PROCESSES,
    SOCKETS,
)

pytest_plugins = ["pytester"]

COUNTING = """
import asyncio
import random
import signal
import socket
import subprocess
import threading
import time
import unittest
from concurrent.futures import ThreadPoolExecutor

import pytest


class Counter:
    def __init__(self):
        self.count = 0

    def add(self):
        self.count += 1


class Locked(Counter):
    def __init__(self):
        super().__init__()
        self.lock = threading.Lock()

    def add(self):
        with self.lock:
            super().add()


def counts(counter):
    threads = [threading.Thread(target=counter.add) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counter.count == 2


"""

SUITE = """
@pytest.fixture
def counter():
    return Counter()


@pytest.fixture(params=[Counter, Locked])
def either(request):
    return request.param()


def test_races(counter):
    counts(counter)


def test_holds(tmp_path, monkeypatch):
    (tmp_path / "new").mkdir()
    monkeypatch.setenv("SCHEDULE", "one")
    counts(Locked())


def test_either(either):
    counts(either)


def test_pool():
    counter = Counter()
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: counter.add(), range(2)))
    assert counter.count == 2


def test_without_threads():
    assert not Counter().count


class TestPlain:
    def setup_method(self):
        self.counter = Counter()

    def test_races(self):
        counts(self.counter)


class TestOfUnittest(unittest.TestCase):
    def setUp(self):
        self.counter = Counter()
        self.addCleanup(setattr, self, "counter", None)

    def test_races(self):
        counts(self.counter)

    def test_holds_in_a_subtest(self):
        with self.subTest(kind="locked"):
            counts(Locked())


@pytest.fixture
def worker():
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    yield thread
    done.set()
    thread.join()


def test_thread_of_a_fixture(worker):
    assert worker.is_alive()


def test_thread_that_raises_anyway(monkeypatch):
    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    thread = threading.Thread(target=lambda: 1 / 0)
    thread.start()
    thread.join()
"""

LEFT_OUT = """
pool = ThreadPoolExecutor(1)
turns = iter(range(100))
lock = threading.Lock()


@pytest.fixture
def stopping():
    event = threading.Event()
    yield event
    event.wait()


@pytest.fixture(scope="module")
def taken():
    lock = threading.Lock()
    lock.acquire()
    return lock


@pytest.fixture(scope="module")
def threaded():
    thread = threading.Thread(target=lambda: None)
    thread.start()
    thread.join()


def test_flaky():
    counts(Locked())
    assert next(turns) == 0


def test_main_thread():
    counts(Locked())
    signal.signal(signal.SIGUSR1, signal.getsignal(signal.SIGUSR1))


def test_clock():
    began = time.monotonic()
    thread = threading.Thread(target=time.sleep, args=(0.01,))
    thread.start()
    thread.join()
    assert time.monotonic() - began != 0.01


def test_socket():
    counts(Locked())
    socket.socket().close()


def test_process():
    counts(Locked())
    subprocess.run(["true"])


def test_coroutine_inside_is_explored():
    async def main():
        await asyncio.to_thread(int)

    asyncio.run(main())


def test_pool_from_outside():
    counts(Locked())
    pool.submit(int).result()


def test_random():
    counts(Locked())
    for _ in range(random.SystemRandom().randrange(1000)):
        lock.acquire()
        lock.release()


def test_long():
    counts(Locked())
    for _ in range(11_000):
        lock.acquire()
        lock.release()


def test_wider_fixture(threaded):
    assert True


def test_lock_of_a_wider_fixture_blocks(taken, stopping):
    thread = threading.Thread(target=taken.release)
    thread.start()
    taken.acquire()
    thread.join()
    stopping.set()
"""


def test_suite_fails_where_threads_race_and_else_passes(pytester: pytest.Pytester) -> None:
    """Functions with fixtures and parameters, classes, unittest, pools, threads of fixtures."""
    pytester.makepyfile(test_counting=COUNTING + SUITE)
    ran = pytester.runpytest("--explore", "--explore-schedules=60")
    ran.assert_outcomes(passed=6, failed=5)
    assert {line.split()[1] for line in ran.outlines if line.startswith("FAILED")} == {
        f"test_counting.py::{name}"
        for name in ("test_races", "test_either[Counter]", "test_pool", "TestPlain::test_races",
                     "TestOfUnittest::test_races")
    }  # fmt: skip
    ran.stdout.fnmatch_lines(
        ["✗   ?? assert counter.count == 2*", "token: rr2-*", "10 of 10 tests with threads explored, 5 failed; *"]
    )
    kept = sorted(path.name for path in (pytester.path / "__schedules__").iterdir())
    assert len(kept) == 10
    assert "test_counting.test_races.schedule" in kept
    assert "test_counting.test_races.svg" in kept


def test_each_test_that_no_schedule_orders_is_left_out_with_reason(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_suite_plugin, "_HANG", 0.5)
    pytester.makepyfile(test_counting=COUNTING + LEFT_OUT)
    ran = pytester.runpytest("--explore", "--explore-schedules=30")
    ran.assert_outcomes(passed=11)
    ran.stdout.fnmatch_lines(["1 of 11 tests with threads explored, 0 failed; 30 schedules*"])
    left: dict[str, str] = {}
    reason = ""
    for line in ran.outlines:
        if line.startswith("left out: "):
            reason = line.split(" ", 3)[3]
        elif line.startswith("  test_counting.py::"):
            left[line.split("::")[1].split()[0]] = reason
    assert left == {
        "test_flaky": FLAKY,
        "test_main_thread": ALWAYS,
        "test_clock": CLOCK,
        "test_socket": SOCKETS,
        "test_process": PROCESSES,
        "test_pool_from_outside": OUTSIDE,
        "test_random": DIFFERS,
        "test_long": LONG,
        "test_wider_fixture": OUTSIDE,
        "test_lock_of_a_wider_fixture_blocks": BLOCKED,
    }


@pytest.mark.parametrize("imported", ["import numbers_of", "numbers_of = importlib.import_module('numbers_of')"])
def test_module_that_a_test_imports_is_looked_into(imported: str, pytester: pytest.Pytester) -> None:
    """The test has no name for it at its top."""
    pytester.makepyfile(
        numbers_of="total = 0\n\ndef add():\n    global total\n    total += 1\n",
        test_inside=f"""
            import importlib
            import threading

            def test_races():
                {imported}
                numbers_of.total = 0
                threads = [threading.Thread(target=numbers_of.add) for _ in range(2)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
                assert numbers_of.total == 2
        """,
    )
    pytester.runpytest("--explore", "--explore-schedules=60").assert_outcomes(failed=1)


def test_what_is_not_looked_into_is_named_in_the_summary(pytester: pytest.Pytester) -> None:
    hidden = 'def test_hidden():\n    n = {"n": 0}\n    counter = Counter()\n'
    hidden += '    counter.add = lambda: exec("n[\'n\'] += 1", {"n": n})\n    counter.count = 2\n    counts(counter)\n'
    pytester.makepyfile(test_counting=COUNTING + hidden)
    ran = pytester.runpytest("--explore", "--explore-schedules=5")
    ran.assert_outcomes(passed=1)
    ran.stdout.fnmatch_lines(
        ["1 of these may do more than what the explorer looked into:", "  test_counting.py::test_hidden (`exec(*"]
    )


def test_tests_that_passed_are_reported_if_the_user_interrupts(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_counting=COUNTING + "turns = iter(range(9))\n\ndef test_a():\n    counts(Locked())\n    if next(turns):\n"
        "        raise KeyboardInterrupt\n\ndef test_b():\n    counts(Locked())\n"
    )
    ran = pytester.runpytest_inprocess("--explore", no_reraise_ctrlc=True)
    assert ran.ret == pytest.ExitCode.INTERRUPTED
    ran.assert_outcomes(passed=2)
    ran.stdout.fnmatch_lines([f"left out: 2 {LATE}"])


def test_session_ends_when_its_seconds_are_over(pytester: pytest.Pytester) -> None:
    many = "@pytest.mark.parametrize('number', range(50))\ndef test_holds(number):\n    counts(Locked())\n"
    pytester.makepyfile(test_counting=COUNTING + many)
    ran = pytester.runpytest("--explore", "--explore-seconds=0.001")
    ran.assert_outcomes(passed=50)
    ran.stdout.fnmatch_lines([f"left out: * {LATE}"])


def test_failure_that_was_recorded_is_replayed_elsewhere(pytester: pytest.Pytester) -> None:
    """One schedule of each test is run; a failing one goes to the record, and a replay runs nothing else."""
    pytester.makepyfile(test_counting=COUNTING + SUITE)
    ran = pytester.runpytest("--explore", "--explore-record=ci.json", "test_counting.py::test_races")
    ran.assert_outcomes(failed=1)
    (line,) = (pytester.path / "ci.json").read_text().splitlines()
    record = json.loads(line)
    assert record["test"] == "test_counting.py::test_races"
    (pytester.path / "__schedules__" / "test_counting.test_races.schedule").unlink()
    again = pytester.runpytest("--explore-replay=ci.json")
    again.assert_outcomes(failed=1, deselected=10)
    again.stdout.fnmatch_lines([f"token: {record['token']}"])


def test_record_takes_one_schedule_of_each_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_counting=COUNTING + SUITE)
    ran = pytester.runpytest("--explore-record=ci.json", "-k", "test_holds")
    ran.assert_outcomes(passed=2)
    ran.stdout.fnmatch_lines(["2 of 2 tests with threads explored, 0 failed; 2 schedules*"])
    assert not (pytester.path / "ci.json").exists()


def test_what_is_no_record_is_refused_by_name(pytester: pytest.Pytester) -> None:
    (pytester.path / "ci.json").write_text("nonsense\n")
    ran = pytester.runpytest("--explore-replay=ci.json")
    ran.stderr.fnmatch_lines(["ERROR: --explore-replay ci.json: no record of --explore-record*"])


def test_more_than_one_process_is_refused(pytester: pytest.Pytester) -> None:
    ran = pytester.runpytest("--explore", "-n", "2")
    ran.stderr.fnmatch_lines(["ERROR: --explore runs in one process*add -n 0"])


def test_tests_of_changed_files_are_explored_first(pytester: pytest.Pytester) -> None:
    """The diff names a module, and the test that executes it comes before tests of files that did not change."""
    one = "import threading\n\ndef work():\n    thread = threading.Thread()\n    thread.start()\n    thread.join()\n"
    pytester.makepyfile(
        early=one,
        late=one,
        test_a="import early\n\ndef test_early():\n    early.work()\n",
        test_b="import late\n\ndef test_late():\n    late.work()\n",
    )
    for command in (
        ["init", "-q"],
        ["add", "."],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "Begin"],
    ):
        subprocess.run(["git", *command], cwd=pytester.path, check=True)

    def order() -> list[str]:
        ran = pytester.runpytest("--explore", "--explore-schedules=2", "-v")
        ran.assert_outcomes(passed=2)
        return [line.split()[0] for line in ran.outlines if " PASSED " in line]

    assert order() == ["test_a.py::test_early", "test_b.py::test_late"]
    (Path(pytester.path) / "late.py").write_text(one + "\n# changed\n")
    assert order() == ["test_b.py::test_late", "test_a.py::test_early"]
