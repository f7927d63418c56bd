"""A run of the kit ends, and says where: what spins is ended, what takes all memory is, and time has a budget."""

from __future__ import annotations

import multiprocessing
import re
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from small_publisher import Publisher, Subscription

from reactive_runtime.tck._running.child import LastCalls
from tck.broken import Publishers, publisher_of, verification_of
from tck.test_bad_input import FIRST, Made, outcome
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
        pytest.param("cancel_python", "3.15", "cancel", "in in_python", marks=pytest.mark.nightly),
        ("cancel_stubborn", "3.15", "cancel", "in in_python_whatever_is_raised"),
        pytest.param("cancel_c", "3.15", "cancel", "in_c", marks=pytest.mark.nightly),
        pytest.param("request_python", "3.16", "request", "in in_python", marks=pytest.mark.nightly),
        pytest.param("request_c", "3.16", "request", "in_c", marks=pytest.mark.nightly),
        pytest.param("subscribe_python", "1.9", "subscribe", "in in_python", marks=pytest.mark.nightly),
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
    assert re.search(
        r"^INCOMPLETE mine:Slow: \d+ checks were not looked at: .*the budget of 4 s \(--budget\)", done.stdout, re.M
    )
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


def spinning() -> Publishers:
    made = publisher_of(Spins)
    return Publishers(made).configure(call_timeout=0.3, default_timeout=0.3, default_no_signals_timeout=0.01)


def test_thread_that_spins_in_cancel_is_ended() -> None:
    """Also where no process is ended: in pytest, the next check has the machine for itself."""
    name = "required_spec307_after_subscription_is_cancelled_additional_cancelations_must_be_nops"
    before = set(threading.enumerate())
    result = outcome(spinning(), name)
    assert (result.status, result.rule) == ("failed", "3.15")
    assert "in cancel" in result.why
    for thread in set(threading.enumerate()) - before:
        thread.join(10)
        assert not thread.is_alive()


@pytest.mark.parametrize(
    "name",
    [
        "extra_spec312_a_cancel_inside_on_subscribe_must_be_heard",
        "extra_spec312_a_cancel_from_another_thread_must_be_heard",
        "extra_spec110_the_same_subscriber_twice_must_not_break_its_first_subscription",
        "extra_spec305_cancel_must_return_while_the_subscriber_is_busy_elsewhere",
        "required_create_publisher_1_must_produce_a_stream_of_exactly_1_element",
    ],
)
def test_call_that_spins_is_accused_and_none_around_it(name: str) -> None:
    """`subscribe` and `request` do not return while a cancel inside of them, or beside them, spins."""
    before = set(threading.enumerate())
    result = outcome(spinning(), name)
    for thread in set(threading.enumerate()) - before:
        thread.join(10)
        assert not thread.is_alive()
    if name.startswith("required_create"):  # it cancels nothing
        assert result.status == "passed"
    else:
        assert (result.status, result.rule in ("3.5", "3.15")) == ("failed", True), result.why


def test_failure_in_a_check_comes_before_a_cancel_that_spins() -> None:
    class Loses(Spins):
        def emit(self, element: int) -> None:
            if element != 3:
                super().emit(element)

    verification = verification_of(Loses)
    verification.configure(call_timeout=0.3, default_timeout=0.3, default_no_signals_timeout=0.01)
    assert outcome(verification, FIRST).rule == "3.8"


def long_streams(fails: Callable[[], object]) -> Made:
    """A factory that does nothing wrong below 2**31 - 1 elements."""

    def create(elements: int) -> Publisher:
        if elements > 1_000_000:
            fails()
        return Publisher(elements)

    return Made(create, default_timeout=0.5, default_no_signals_timeout=0.01, call_timeout=0.1)


MOST = "required_spec317_must_not_signal_on_error_when_pending_above_long_max_value"


def out_of_memory() -> None:
    raise MemoryError


@pytest.mark.parametrize("fails", [threading.Event().wait, out_of_memory], ids=["hangs", "raises"])
def test_factory_that_fails_for_many_elements_fails_no_other_check(fails: Callable[[], object]) -> None:
    verification = long_streams(fails)
    result = outcome(verification, MOST)
    assert (result.status, result.rule) == ("failed", "")
    assert "create_publisher(2147483647)" in result.why
    assert "max_elements_from_publisher, or --max-elements, says how many elements" in result.why
    assert outcome(verification, FIRST).status == "passed"


def test_last_call_and_its_rule_are_read() -> None:
    calls = LastCalls(multiprocessing.get_context("spawn"))
    assert calls.last() == ("", None)
    calls.begins("create_publisher(31)", "")
    assert (calls.last(), calls.asked()) == (("create_publisher(31)", ""), 31)
    calls.begins("cancel()", "3.15")
    assert (calls.last(), calls.asked()) == (("cancel()", "3.15"), 31)
