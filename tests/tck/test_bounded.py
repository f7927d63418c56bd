"""A run of the kit ends, and says where: what spins is ended, what takes all memory is, and time has a budget."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from small_publisher import Publisher, Subscription

from tck.broken import Publishers
from tck.test_bad_input import outcome
from tck.test_pytest_and_command import run

MODULE = """
import itertools, sys
sys.path.insert(0, {tests!r})
from small_publisher import Publisher, Subscription

def made(**methods):
    return type("Made", (Publisher,), {{"subscription": type("Faulty", (Subscription,), methods)}})

def in_python(*arguments):
    while True:
        pass

def in_python_whatever_is_raised(*arguments):
    while True:
        try:
            while True:
                pass
        except BaseException:
            pass

def in_c(*arguments):
    sum(itertools.repeat(0))

def only_after_many(loop):
    def cancel(self):
        if self.sent == 5:
            loop()
        Subscription.cancel(self)
    return cancel

def in_request(loop):
    def request(self, n, /):
        if n == 10:
            loop()
        Subscription.request(self, n)
    return request

cancel_python = made(cancel=in_python)
cancel_stubborn = made(cancel=only_after_many(in_python_whatever_is_raised))
cancel_c = made(cancel=only_after_many(in_c))
request_python = made(request=in_request(in_python))
request_c = made(request=in_request(in_c))

class subscribe_python(Publisher):
    def subscribe(self, subscriber, /):
        super().subscribe(subscriber)
        if self.elements == 31:
            in_python()

class subscribe_c(Publisher):
    def subscribe(self, subscriber, /):
        super().subscribe(subscriber)
        if self.elements == 31:
            in_c()

class Eager(Publisher):
    def __init__(self, elements, failure=None):
        super().__init__(elements, failure)
        self.all = list(range(elements))

class EagerOneTooMany(Eager):
    class subscription(Subscription):
        def add(self, n):
            super().add(n + (n == 7))

class Slow(Publisher):
    class subscription(Subscription):
        def emit(self, element):
            import time
            time.sleep(0.02)
            super().emit(element)
"""
QUICK = ("--timeout", "0.5", "--no-signals-timeout", "0.01", "--call-timeout", "0.4")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(MODULE.format(tests=str(Path(__file__).parents[1])))
    return tmp_path


@pytest.mark.timeout(200)
@pytest.mark.parametrize(
    ("name", "rules", "call", "place"),
    [
        ("cancel_python", "3.15", "cancel", "in in_python"),
        ("cancel_stubborn", "3.15", "cancel", "in in_python_whatever_is_raised"),
        ("cancel_c", "3.15", "cancel", "in_c"),
        ("request_python", "3.16", "request", "in in_python"),
        ("request_c", "3.16", "request", "in_c"),
        ("subscribe_python", "1.9", "subscribe", "in in_python"),
        ("subscribe_c", "1.9", "subscribe", "in_c"),
    ],
)
def test_call_that_spins_is_named_with_its_place(folder: Path, name: str, rules: str, call: str, place: str) -> None:
    done = run(folder, "reactive_runtime", "tck", f"mine:{name}", *QUICK, "--budget", "90")
    assert done.returncode == 1, done.stdout + done.stderr
    assert re.search(rf"^BROKEN   rule {re.escape(rules)}$", done.stdout, re.MULTILINE), done.stdout
    assert re.search(rf"seen: {call}\([^)]*\).* (has not returned within|let no other thread)", done.stdout)
    assert place in done.stdout
    if name != "cancel_python":
        assert int(re.findall(r"(\d+) passed", done.stdout)[0]) > 50  # the others were judged


@pytest.mark.timeout(200)
def test_publisher_that_takes_all_memory_hears_of_max_elements(folder: Path) -> None:
    done = run(folder, "reactive_runtime", "tck", "mine:Eager", *QUICK, "--memory", "300")
    assert done.returncode == 3, done.stdout + done.stderr
    assert re.search(r"^INCOMPLETE mine:Eager: 1 check was not looked at", done.stdout, re.MULTILINE)
    assert "took more than 300 MiB in create_publisher(2147483647); max_elements_from_publisher, or --max-elements" in (
        done.stdout
    )
    assert "BROKEN" not in done.stdout


def test_publisher_that_says_its_elements_conforms(folder: Path) -> None:
    done = run(folder, "reactive_runtime", "tck", "mine:Eager", *QUICK, "--max-elements", "10000")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.timeout(200)
def test_fault_of_publisher_that_takes_all_memory_is_found(folder: Path) -> None:
    done = run(folder, "reactive_runtime", "tck", "mine:EagerOneTooMany", *QUICK, "--memory", "300")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "seen: 8 elements came, and 7 were requested" in done.stdout
    assert re.search(r"^BROKEN   rule 1\.1; 1 check was not looked at: not run: the process took", done.stdout, re.M)


@pytest.mark.timeout(200)
def test_check_beyond_the_budget_is_not_run(folder: Path) -> None:
    done = run(folder, "reactive_runtime", "tck", "mine:Slow", "--budget", "4")
    assert done.returncode == 3, done.stdout + done.stderr
    assert re.search(r"[1-9]\d* passed, 0 failed, \d+ skipped, [1-9]\d* not run, in ", done.stdout)
    assert re.search(r"^INCOMPLETE mine:Slow: \d+ checks were not looked at: .*the budget of 4 s", done.stdout, re.M)
    assert "CONFORMS" not in done.stdout


def test_command_says_how_far_it_is(folder: Path) -> None:
    done = run(folder, "reactive_runtime", "tck", "mine:Slow", "--budget", "2")
    assert re.search(r"check 1 of \d+, \d of 2 s: subscription request must result in", done.stderr)


def test_outcomes_beyond_a_budget_are_not_run() -> None:
    outcomes = list(Publishers().outcomes(budget=0.0))
    assert {item.status for item in outcomes[1:]} == {"not run"}
    assert "the budget of 0 s was over" in outcomes[-1].why


class Spins(Subscription):
    def cancel(self) -> None:
        while True:
            pass


SPINNING = Publishers(type("Made", (Publisher,), {"subscription": Spins})).configure(call_timeout=0.3)


def test_thread_that_spins_in_cancel_is_ended() -> None:
    """Also where no process is ended: in pytest, the next check has the machine for itself."""
    for _ in range(2):
        result = outcome(
            SPINNING, "required_spec307_after_subscription_is_cancelled_additional_cancelations_must_be_nops"
        )
        assert (result.status, result.rule) == ("failed", "3.15")
        assert "in cancel" in result.why
        before = time.process_time()
        time.sleep(0.2)
        assert time.process_time() - before < 0.1
