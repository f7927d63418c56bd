"""The kit for adapters is tested: it passes a sound adapter, and accuses each faulty one by the check of its fault."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from connect import faulty_adapters
from connect.faulty_adapters import FAULTS, Memory, Server, Source, verification
from reactive_runtime import Flow
from reactive_runtime.connect import Acked, AckedFlow
from reactive_runtime.tck import ConformanceError, NotVerified
from reactive_runtime.tck._adapters.demanding_reader import Reader, until
from reactive_runtime.tck._adapters.meanings import MEANINGS
from reactive_runtime.tck._adapters.secrets import PASSWORD, leaks
from reactive_runtime.tck._adapters.workers import Worker, report
from reactive_runtime.tck.adapters import Adapter, AdapterVerification, Result, judge, table

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def nothing_vanishes() -> None:
    """The kit breaks connections: elements that are settled then fail, and their errors go to the hook."""


@pytest.fixture(scope="module", autouse=True)
def server() -> Server:
    Memory.server = Server()
    return Memory.server


def findings(result: Result) -> list[tuple[str, str]]:
    return [(outcome.check.rule, outcome.why) for outcome in result.outcomes if outcome.status != "passed"]


def test_a_sound_adapter_passes() -> None:
    result = judge(verification())
    assert findings(result) == []
    assert [outcome.check.rule for outcome in result.outcomes] == list(MEANINGS)


@pytest.mark.nightly
@pytest.mark.parametrize("busy", [False, True], ids=["idle", "busy"])
@pytest.mark.parametrize("run", range(20))
def test_a_sound_adapter_passes_again_and_again(run: int, busy: bool) -> None:
    over = threading.Event()

    def spin() -> None:
        while not over.is_set():
            sum(range(1_000))

    thread = threading.Thread(target=spin)
    if busy:
        thread.start()
    try:
        assert findings(judge(verification())) == []
    finally:
        over.set()
        if busy:
            thread.join()


def test_each_rule_has_an_adapter_that_breaks_it() -> None:
    assert set(FAULTS.values()) == set(MEANINGS)


@pytest.mark.parametrize("kind", FAULTS, ids=lambda kind: kind.__name__)
def test_a_fault_is_found_by_its_check(kind: type[Source]) -> None:
    [check] = [check for check in AdapterVerification.checks() if check.rule == FAULTS[kind]]
    outcome = verification(kind).outcome(check)
    assert (outcome.status, outcome.rule) == ("failed", FAULTS[kind]), outcome.why


@pytest.mark.nightly
@pytest.mark.parametrize("kind", FAULTS, ids=lambda kind: kind.__name__)
def test_a_fault_is_found_by_no_other_check(kind: type[Source]) -> None:
    result = judge(verification(kind))
    assert result.accused == [FAULTS[kind]], findings(result)


class Bare(Memory):
    """A description that has only what it must have."""

    name = "bare"
    handed_out = Adapter.handed_out
    acknowledgements = Adapter.acknowledgements
    connections = Adapter.connections
    dead = Adapter.dead
    worker = Adapter.worker  # type: ignore[assignment]  # of another type where it is defined
    break_connections = Adapter.break_connections
    open_with = Adapter.open_with


class OfBare(AdapterVerification):
    def create_adapter(self) -> Adapter:
        return Bare()


def test_what_is_not_described_is_not_looked_at() -> None:
    outcomes = OfBare().configure(backlog=1_000, default_no_signals_timeout=0.05).outcomes()
    reasons = {outcome.check.rule: outcome.why for outcome in outcomes if outcome.status == "skipped"}
    assert reasons == {
        "A.1": "the description has no handed_out",
        "A.4": "each element settles once; the description has no acknowledgements",
        "A.6": "the description has no worker",
        "A.7": "the description has no break_connections",
        "A.8": "the description has no dead",
        "A.11": "the description has no open_with",
    }


class SlowToBegin(Memory):
    """Each flow but the first has nothing for longer than the kit waits for the second."""

    name = "slow to begin"
    opened = 0

    def open(self, consumer: str, executor: Any) -> AckedFlow[int]:
        flow = super().open(consumer, executor)
        self.opened += 1
        return flow.through(lambda acked: acked.delay_subscription(1.0)) if self.opened > 1 else flow


class Log(Adapter):
    """A source without acknowledgement, in memory; `behind` says what comes when its connection has been broken."""

    name, address, acknowledges = "log", "here:1", False

    def __init__(self, behind: str) -> None:
        self.behind, self.broken = behind, threading.Event()
        self.numbers: list[int] = []

    def put(self, numbers: Any) -> None:
        self.numbers += numbers

    def open(self, consumer: str, executor: Any) -> AckedFlow[int]:
        return AckedFlow(Flow.from_supplier(self.read).map(lambda n: Acked(n, lambda error: None)))

    def read(self) -> Iterator[int]:
        for n in self.numbers:
            if self.broken.is_set() and self.behind not in ("all", "a gap"):
                raise OSError(self.behind)
            if self.broken.is_set() and n == 40 and self.behind == "a gap":
                continue
            yield n

    def number(self, value: int) -> int:
        return value

    def break_connections(self) -> None:
        self.broken.set()


@pytest.mark.parametrize(
    ("behind", "status", "why"),
    [
        ("all", "passed", ""),
        ("here:1 is gone", "passed", ""),
        ("a gap", "failed", "the connection was lost, and the messages came out of order"),
        ("something is wrong", "failed", "the error does not name the server (here:1)"),
    ],
)
def test_a_source_without_acknowledgement_goes_on_or_names_its_server(behind: str, status: str, why: str) -> None:
    class Judged(AdapterVerification):
        def create_adapter(self) -> Adapter:
            return Log(behind)

    [check] = [check for check in AdapterVerification.checks() if check.rule == "A.7"]
    outcome = Judged().configure(default_timeout=5).outcome(check)
    assert outcome.status == status, outcome.why
    assert why in outcome.why


def test_a_source_that_takes_its_time_to_begin_anew_is_not_accused() -> None:
    class Judged(AdapterVerification):
        def create_adapter(self) -> Adapter:
            return SlowToBegin()

    [check] = [check for check in AdapterVerification.checks() if check.rule == "A.7"]
    outcome = Judged().configure(default_timeout=10, default_no_signals_timeout=0.05).outcome(check)
    assert outcome.status == "passed", outcome.why


def test_a_source_without_acknowledgement_has_no_checks_of_it() -> None:
    class Judged(AdapterVerification):
        def create_adapter(self) -> Adapter:
            return Log("all")

    outcomes = Judged().configure(default_timeout=1, default_no_signals_timeout=0.05, backlog=10).outcomes()
    reasons = {outcome.check.rule for outcome in outcomes if "has no acknowledgement" in outcome.why}
    assert reasons == {"A.2", "A.3", "A.4", "A.5", "A.6"}


def test_acknowledgements_that_are_not_counted_are_not_looked_at() -> None:
    class Uncounted(Memory):
        name = "uncounted"

        def acknowledgements(self) -> int:
            return 0

    class Judged(AdapterVerification):
        def create_adapter(self) -> Adapter:
            return Uncounted()

    [check] = [check for check in AdapterVerification.checks() if check.rule == "A.4"]
    outcome = Judged().configure(default_timeout=0.2, default_no_signals_timeout=0.05).outcome(check)
    assert (outcome.status, outcome.why) == (
        "skipped", "20 messages were acknowledged, and `acknowledgements` counts 0",
    )  # fmt: skip


def test_the_table_has_a_row_for_each_check_and_a_column_for_each_adapter() -> None:
    checks = AdapterVerification.checks()
    held, failed, missing = (
        OfBare().configure(backlog=1).outcome(check) for check in (checks[4], checks[0], checks[3])
    )
    assert held.status == "passed"
    lines = table([Result("one", [held]), Result("two", [failed, missing])]).splitlines()
    assert lines[0].split() == ["rule", "check", "one", "two"]
    assert [line.split()[0] for line in lines[1 : 1 + len(MEANINGS)]] == list(MEANINGS)
    assert lines[5].endswith("holds")
    assert lines[1].endswith("not looked at")
    assert "two, A.1, not looked at: the description has no handed_out" in lines


def test_a_failure_says_what_the_check_asks_and_what_was_seen() -> None:
    judged = verification(faulty_adapters.PrefetchesWithoutBound)
    with pytest.raises(ConformanceError, match=r"rule A\.1: the server hands out as many") as raised:
        judged.required_demand_reaches_the_server()
    assert "seen: 1 messages were demanded, the documented prefetch is 0, and the server has handed out" in str(
        raised.value
    )


def test_a_check_that_does_not_end_names_the_place() -> None:
    class Stuck(Memory):
        def put(self, numbers: Any) -> None:
            threading.Event().wait(30)

    class Judged(AdapterVerification):
        def create_adapter(self) -> Adapter:
            return Stuck()

    outcome = Judged().configure(default_timeout=0.05, backlog=1).outcome(AdapterVerification.checks()[1])
    assert outcome.status == "failed"
    assert "the check did not end within 1" in outcome.why
    assert "in wait" in outcome.why


# -- the ways to run it ----------------------------------------------------------------------------------------------

MODULE = """
import os
from connect import faulty_adapters
from connect.faulty_adapters import DropsPoison, Memory, Server, verification
from reactive_runtime.tck.adapters import AdapterVerification

Memory.server = Server()

class TestMine(AdapterVerification):
    backlog, default_no_signals_timeout = 1_000, 0.05
    def create_adapter(self):
        return Memory()

class TestDies(AdapterVerification):
    def create_adapter(self):
        os._exit(3)

class TestPoison(AdapterVerification):
    backlog, default_no_signals_timeout, default_timeout = 1_000, 0.05, 3.0
    def create_adapter(self):
        return verification(DropsPoison).create_adapter()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "test_mine.py").write_text(MODULE)
    return tmp_path


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": f"{folder}:{ROOT}:{ROOT / 'tests'}", "COLUMNS": "200"}
    command = [sys.executable, "-m", *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=100, check=False
    )


def test_pytest_runs_each_check(folder: Path) -> None:
    done = run(folder, "pytest", "-q", "-p", "no:cacheprovider", "test_mine.py", "-k", "not Dies")
    assert "1 failed, 21 passed" in done.stdout, done.stdout
    assert "rule A.8: a poison message ends in the dead letters" in done.stdout


def test_the_command_prints_a_table(folder: Path) -> None:
    done = run(folder, "reactive_runtime", "tck", "test_mine:TestMine")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "CONFORMS no check failed; 11 of 11 could be made" in done.stdout
    broken = run(folder, "reactive_runtime", "tck", "test_mine:TestPoison")
    assert broken.returncode == 1, broken.stdout + broken.stderr
    assert "BROKEN   rule A.8" in broken.stdout


def test_the_command_survives_an_adapter_that_ends_its_process(folder: Path) -> None:
    done = run(folder, "reactive_runtime", "tck", "test_mine:TestDies")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "the process was ended (status 3) inside of this check" in done.stdout
    assert "rule A.1: the server hands out as many" in done.stdout


# -- the parts ---------------------------------------------------------------------------------------------------------


def test_a_worker_may_be_a_command() -> None:
    worker = Worker([sys.executable, "-c", "import sys; print('words'); print(7, flush=True); sys.stdin.read(); 1 / 0"])
    assert until(lambda: worker.process.poll() is not None, 60)
    worker.kill()
    assert worker.numbers == [7]
    assert worker.words == "ZeroDivisionError: division by zero"


def test_a_worker_reports_whole_lines(capfd: pytest.CaptureFixture[str]) -> None:
    report(12)
    assert capfd.readouterr().out == "12\n"


@pytest.mark.parametrize("spelling", [PASSWORD, "sEcr3t%40w0rd%2Fx", "sEcr3t"])
def test_a_password_is_found_wherever_it_is(spelling: str) -> None:
    def error(text: str) -> Exception:
        return ValueError(text)

    noted = error("a")
    noted.add_note(spelling)
    caused = error("a")
    caused.__cause__ = KeyError(spelling)
    in_context = error("a")
    in_context.__context__ = ExceptionGroup("b", [OSError(spelling)])
    for found in (error(spelling), noted, caused, in_context):
        assert leaks(found, [], {}), repr(found)
    assert leaks(error("a"), [f"connect {spelling}"], {})
    assert leaks(error("a"), [], {"flow": spelling})
    assert not leaks(error("a"), ["connect"], {"flow": "jobs(host)"})


def test_a_reader_counts_what_it_does_not_keep() -> None:
    reader = Reader(int, keeps=False)
    reader.on_next(1)
    assert (reader.count, reader.elements) == (1, [])
    assert reader.wait(1, 0)
    assert not reader.wait(2, 0)


def test_a_description_without_the_least_says_what_to_define() -> None:
    with pytest.raises(NotImplementedError, match=r"has to define open\(self, consumer, executor\)"):
        Adapter().open("reader", None)  # type: ignore[arg-type]
    with pytest.raises(NotVerified, match="has no worker"):
        Adapter().worker("one")
