"""Whatever the code under test does, the kit comes to a verdict: conformant, broken, incomplete or unable."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from searching import one_pair_each_by_day
from small_publisher import Publisher, Subscription

from reactive_runtime.tck import Check, Outcome
from reactive_runtime.tck._running import child as _tck_child
from tck.broken import Publishers, verification_of
from tck.test_bad_input import FIRST, outcome
from tck.test_pytest_and_command import run

MODULE = """
import _thread, os, subprocess, sys, threading, time
from reactive_runtime import Flow
from reactive_runtime.tck import PublisherVerification

class Leaves:
    def __init__(self, elements, leave):
        self.elements, self.leave = elements, leave

    def subscribe(self, subscriber, /):
        self.leave()

def exits(elements):
    return Leaves(elements, lambda: sys.exit(0))

def ends_the_process(elements):
    if elements == 20:
        os._exit(0)
    return Flow.range(elements)

def ends_each_time(elements):
    os._exit(0)

def closes_files(most):
    os.closerange(3, most)
    return Flow.range

def closes_what_it_inherited(elements):
    return closes_files(64)(elements)

def closes_every_file(elements):
    return closes_files(4_096)(elements)

def forks(elements):
    os.fork()
    return Flow.range(elements)

def leaves_a_copy(elements):
    if elements == 6 and os.fork() == 0:
        os._exit(0)
    return Flow.range(elements)

def ends_its_process_in_request(elements):
    return Flow.range(elements).map(lambda n: os._exit(0) if n == 900 else n)

def ends_its_process_in_subscribe(elements):
    return Leaves(elements, lambda: os._exit(0)) if elements in (3, 20) else Flow.range(elements)

def ends_its_process_later(elements):
    return Leaves(elements, lambda: os._exit(0)) if elements == 20 else Flow.range(elements)

def is_killed(elements):
    if elements == 20:
        os.kill(os.getpid(), 9)
    return Flow.range(elements)

def leaves_threads(elements):
    if elements == 6:
        threading.Thread(target=time.sleep, args=(1_000,)).start()
        threading.Thread(target=time.sleep, args=(1_000,), daemon=True).start()
    return Flow.range(elements)

def interrupts(elements):
    if elements == 20:
        _thread.interrupt_main()
        time.sleep(2)
    return Flow.range(elements)

def interrupts_always(elements):
    _thread.interrupt_main()
    return Flow.range(elements)

def says_that_it_began(elements):
    open("began", "w").close()
    time.sleep(0.5)
    return Flow.range(elements)

def closes_stdout(elements):
    if not sys.stdout.closed:
        sys.stdout.close()
        os.close(1)
    return Flow.range(elements)

def prints(elements):
    print("an element " * 10_000)
    return Flow.range(elements)

def leaves_a_process(elements):
    if elements == 6:
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1_000)"])
    return Flow.range(elements)

def shows_no_text(elements):
    return Flow.range(elements).map(lambda n: Unprintable())

def shows_no_text_twice(elements):
    return Flow.range(elements + 1).map(lambda n: Unprintable())

class Unprintable:
    def __repr__(self):
        return "\\ud800 and \\N{SNOWMAN}" * 100

def ends_each_process(elements):
    if os.path.exists("ended"):
        os._exit(0)
    if elements == 20:
        open("ended", "w").close()
        os._exit(0)
    return Flow.range(elements)

class Unmeasured(PublisherVerification):
    def pace(self):
        raise RuntimeError("no pace")

def says_markup(elements):
    raise OSError("[/red] [bold]no [link=x] " + "x" * 100_000)
"""
QUICK = ("--timeout", "2", "--no-signals-timeout", "0.01")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(MODULE)
    (tmp_path / "exits.py").write_text("import sys\nsys.exit(0)\n")
    (tmp_path / "once.py").write_text("open('imported', 'x').close()\nfrom mine import ends_its_process_later\n")
    (tmp_path / "ends.py").write_text("import os\nos._exit(0)\n")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "status", "said"),
    [
        ("exits", 1, "subscribe(subscriber) raised SystemExit: 0"),
        ("ends_the_process", 3, "seen: the process was ended (status 0) inside of this check, in create_publisher(20)"),
        ("ends_each_time", 4, "seen: the process was ended (status 0) inside of this check, in create_publisher(5)"),
        ("ends_its_process_in_subscribe", 1, "BROKEN   rule 1.9\n"),
        ("ends_its_process_in_request", 1, "BROKEN   rule 3.16\n"),
        ("is_killed", 3, "seen: the process was ended by signal 9 inside of this check, in create_publisher(20)"),
        ("closes_what_it_inherited", 0, "CONFORMS"),
        ("closes_every_file", 4, "the code under test closed the pipe by which the kit hears of its checks"),
        ("forks", 4, "create_publisher(5) forked the process, and the copy came back into the kit"),
        ("leaves_a_copy", 0, "CONFORMS"),
        ("interrupts", 3, "seen: the code under test interrupted the main thread (_thread.interrupt_main or SIGINT)"),
        ("interrupts_always", 4, "the code under test interrupted the main thread (_thread.interrupt_main or SIGINT)"),
        ("leaves_threads", 0, "CONFORMS"),
        ("leaves_a_process", 0, "CONFORMS"),
        ("closes_stdout", 0, "CONFORMS"),
        ("prints", 0, "CONFORMS"),
        ("says_markup", 4, "raised OSError: [/red] [bold]no [link=x] xxx"),
    ],
)
def test_the_command_says_what_it_saw(folder: Path, name: str, status: int, said: str) -> None:
    done = run(folder, "reactive_runtime", "tck", f"mine:{name}", *QUICK)
    assert done.returncode == status, done.stdout + done.stderr
    assert said in done.stdout
    assert "an element an element" not in done.stdout
    assert len(done.stdout) < 200_000
    verdict = done.stderr if status == 4 else done.stdout
    words = {0: "CONFORMS", 1: "BROKEN", 3: "INCOMPLETE", 4: "UNABLE"}
    assert verdict.rstrip().splitlines()[-1].startswith(words[status])


def test_an_interrupt_by_code_under_test_is_named_once_and_breaks_no_rule(folder: Path) -> None:
    done = run(folder, "reactive_runtime", "tck", "mine:interrupts", *QUICK)
    assert done.stdout.count("  seen: the code under test interrupted the main thread") == 1
    assert "BROKEN" not in done.stdout
    assert re.search(
        r"INCOMPLETE mine:interrupts: \d+ checks were not looked at: failed: the code under test", done.stdout
    )


@pytest.fixture
def keys() -> Iterator[None]:
    """A process that this one starts takes Ctrl-C, also where this one runs behind a shell's `&`, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_that_is_lost_or_becomes_another_error_is_named_and_the_next_check_is_judged(keys: None) -> None:
    class Judges:
        """Checks in which the interrupt is swallowed, as in the callback of a weak reference, and one without."""

        interrupted = True

        def outcome(self, check: Check) -> Outcome:
            if self.interrupted:
                with contextlib.suppress(KeyboardInterrupt):
                    signal.raise_signal(signal.SIGINT)
                return Outcome(check, "failed", "RuntimeError: release unlocked lock", "3.6")
            return Outcome(check, "passed", "")

    verification: Any = Judges()
    check = next(iter(Publishers().checks()))
    interrupts = _tck_child._Interrupts()
    outcome = interrupts.outcome(verification, check)
    assert (outcome.status, outcome.rule) == ("failed", "")
    assert outcome.why == _tck_child.INTERRUPTED
    verification.interrupted = False
    assert interrupts.outcome(verification, check).status == "passed"


@pytest.mark.parametrize("name", ["ends_the_process", "interrupts"])
def test_what_comes_after_the_end_of_a_process_is_judged_too(folder: Path, name: str) -> None:
    done = run(folder, "reactive_runtime", "tck", f"mine:{name}", *QUICK)
    assert " 0 passed" not in done.stdout
    assert "3.17" in done.stdout


def test_a_key_at_the_terminal_ends_everything(folder: Path, keys: None) -> None:
    command = [sys.executable, "-m", "reactive_runtime", "tck", "mine:says_that_it_began", *QUICK]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        deadline = time.monotonic() + 60
        while not (folder / "began").exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=60)  # it returns when the child has ended too, which has this pipe
    assert process.returncode == 3
    assert "reactive-runtime: interrupted" in said


@pytest.mark.parametrize(("name", "status"), [("mine:ends_each_process", 3), ("once:ends_its_process_later", 1)])
def test_a_verdict_stays_where_no_further_process_comes_to_a_check(folder: Path, name: str, status: int) -> None:
    done = run(folder, "reactive_runtime", "tck", name, "--no-signals-timeout", "0.01")
    assert done.returncode == status, done.stdout + done.stderr
    assert "the process was ended (status 0) inside of this check" in done.stdout


@pytest.mark.parametrize(
    ("target", "status", "said"),
    [
        ("mine:Unmeasured", 4, "mine:Unmeasured: RuntimeError: no pace"),
        ("exits:publisher", 2, "importing exits raised SystemExit"),
        ("ends:publisher", 4, "the process was ended (status 0) before the first check"),
    ],
)
def test_what_ends_where_it_is_imported_can_not_be_judged(folder: Path, target: str, status: int, said: str) -> None:
    done = run(folder, "reactive_runtime", "tck", target)
    assert done.returncode == status, done.stdout
    assert said in done.stderr


def test_the_status_is_the_verdict_also_where_nothing_listens(folder: Path) -> None:
    command = f"{sys.executable} -m reactive_runtime tck mine:exits; echo $? >status"
    subprocess.run(["bash", "-c", f"({command}) | true"], cwd=folder, timeout=100, check=True, capture_output=True)
    assert (folder / "status").read_text().strip() == "1"


STATUSES = {"mine:leaves_threads": 0, "mine:exits": 1, "mine:nothing": 2}


@pytest.mark.parametrize(("target", "closed"), one_pair_each_by_day(STATUSES, [">&-", "<&- >&-", ">&- 2>&-"]))
def test_the_status_is_the_verdict_where_standard_streams_are_closed(folder: Path, target: str, closed: str) -> None:
    command = f"{sys.executable} -m reactive_runtime tck {target} {' '.join(QUICK)} {closed}"
    done = subprocess.run(["bash", "-c", command], cwd=folder, timeout=100, check=False, capture_output=True)
    assert done.returncode == STATUSES[target], done.stderr


@pytest.mark.parametrize(("encoding", "status"), one_pair_each_by_day(["utf-8:strict", "ascii", "latin-1"], [1, 0]))
def test_what_an_encoding_has_not_is_escaped(
    folder: Path, encoding: str, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = "shows_no_text_twice" if status else "shows_no_text"
    monkeypatch.setenv("PYTHONIOENCODING", encoding)
    command = [sys.executable, "-m", "reactive_runtime", "tck", f"mine:{target}", *QUICK]
    done = subprocess.run(command, cwd=folder, timeout=100, check=False, capture_output=True)
    assert done.returncode == status, done.stderr
    verdict = done.stdout.decode(encoding.partition(":")[0])
    assert ("BROKEN" if status else "CONFORMS") in verdict
    assert not status or "\\ud800" in verdict


def test_failed_goes_with_a_function_and_names_one(folder: Path) -> None:
    (folder / "verified.py").write_text(
        "from reactive_runtime import Flow\nfrom reactive_runtime.tck import PublisherVerification\n\n"
        "class Verified(PublisherVerification):\n    def create_publisher(self, elements):\n"
        "        return Flow.range(elements)\n\nNUMBER = 3\n"
    )
    for target, failed, said in (
        ("verified:Verified", "nothing:there", "--failed nothing:there: verified:Verified is a verification"),
        ("mine:leaves_threads", "verified:NUMBER", "--failed verified:NUMBER: a function without arguments, not int"),
    ):
        done = run(folder, "reactive_runtime", "tck", target, "--failed", failed)
        assert (done.returncode, said in done.stderr) == (2, True), done.stderr


def leaving(error: BaseException) -> Callable[[], None]:
    def leave() -> None:
        raise error

    return leave


class Ours(BaseException):
    """No Exception."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


ERRORS = [SystemExit(0), GeneratorExit(), asyncio.CancelledError(), KeyboardInterrupt(), Ours()]


@pytest.mark.parametrize("error", ERRORS, ids=lambda item: type(item).__name__)
@pytest.mark.parametrize("where", ["create", "subscribe", "request", "cancel", "request inside on_next"])
def test_whatever_is_raised_is_an_outcome(error: BaseException, where: str) -> None:
    class Leaves(Subscription):
        def request(self, n: int, /) -> None:
            if where == "request" or (where == "request inside on_next" and self.sent):
                raise error
            super().request(n)

        def cancel(self) -> None:
            if where == "cancel":
                raise error
            super().cancel()

    class Made(Publisher):
        subscription = Leaves

        def __init__(self, *arguments: Any) -> None:
            if where == "create":
                raise error
            super().__init__(*arguments)

        def subscribe(self, subscriber: Any, /) -> None:
            if where == "subscribe":
                raise error
            super().subscribe(subscriber)

    name = "required_spec312_cancel_must_make_the_publisher_to_eventually_stop_signaling"
    if where == "request inside on_next":
        name = "required_spec302_must_allow_synchronous_request_calls_from_on_next_and_on_subscribe"
    result = outcome(Publishers(Made), name)
    assert result.status == "failed"
    assert type(error).__name__ in result.why
    rule = {"create": "", "subscribe": "1.9", "cancel": "3.15"}.get(where, "3.16")
    assert result.rule == rule


def test_an_element_whose_repr_fails_or_is_long_is_cut() -> None:
    class Bad:
        def __repr__(self) -> str:
            raise SystemExit(3)

    class Gives(Subscription):
        def emit(self, element: Any) -> None:
            super().emit(Bad() if element else "x" * 1_000_000)

    class Made(Publisher):
        subscription = Gives

    broken = type("More", (Gives,), {"add": lambda self, n: Subscription.add(self, n + 1)})
    assert outcome(Publishers(Made), FIRST).status == "passed"
    result: Outcome = outcome(verification_of(broken), FIRST)
    assert "<Bad, whose repr raised SystemExit>" in result.why
    assert len(result.why) < 5_000


@pytest.mark.parametrize("check", ["optional_spec111_may_support_multi_subscribe", "optional_spec105_empty_stream"])
def test_a_must_that_is_broken_inside_an_optional_check_fails_it(check: str) -> None:
    class Doubles(Subscription):
        def start(self) -> None:
            self.subscriber.on_subscribe(self)
            self.subscriber.on_subscribe(self)
            self.run()

    verification = verification_of(Doubles)
    name = next(item.name for item in verification.checks() if item.name.startswith(check))
    result = outcome(verification, name)
    assert (result.status, result.rule) == ("failed", "2.12")


def test_a_call_that_waits_for_an_element_without_demand_is_no_second_breach() -> None:
    """The subscriber is busy in an element that it has not requested, inside `subscribe`: that is 1.1, not 1.9."""

    class Pushes(Subscription):
        def start(self) -> None:
            self.add(1)
            super().start()

    verification = verification_of(Pushes).configure(call_timeout=0.2)
    result = outcome(verification, "extra_spec305_cancel_must_return_while_the_subscriber_is_busy_elsewhere")
    assert (result.status, result.rule) == ("failed", "1.1")
    assert "still inside subscribe(subscriber)" not in result.why
