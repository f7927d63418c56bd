"""What a verification is combined with in a test module: its checks run, or one line says why not and what to do."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from reactive_runtime import Flow
from reactive_runtime.tck import IdentityProcessorVerification, PublisherVerification

SPEC105 = "required_spec105_must_signal_on_complete_when_finite_stream_terminates"
EXACTLY_1 = "required_create_publisher_1_must_produce_a_stream_of_exactly_1_element"
SPEC102 = "required_spec102_may_signal_less_than_requested_and_terminate_subscription"

BASE = """
import time
import unittest

import pytest

from reactive_runtime import Flow
from reactive_runtime.tck import PublisherVerification


class Sound(PublisherVerification):
    default_no_signals_timeout = 0.02

    def create_publisher(self, elements):
        return Flow.range(elements)


class Broken(Sound):
    def create_publisher(self, elements):
        return Flow.range(elements + 1)
"""

RUNS = """
from base import *


class TestSound(Sound):
    pass


class TestBroken(Broken):
    pass


class TestRaising(Sound):
    def create_publisher(self, elements):
        return self.opened()

    def opened(self):
        raise OSError("no such table")


class TestHeir(TestBroken):
    def create_publisher(self, elements):
        return Flow.range(elements)


class TestOuter:
    class TestInner(Broken):
        pass


class TestSetUp(Broken):
    def setup_method(self, method):
        self.more, self.check = 0, method.__name__

    def create_publisher(self, elements):
        assert self.check
        return Flow.range(elements + self.more)

    def teardown_method(self):
        assert self.check


class TestFixtures(Broken):
    @pytest.fixture
    def folder(self, tmp_path):
        return tmp_path

    @pytest.fixture(autouse=True, params=[0, 1])
    def source(self, request, folder):
        self.more, self.folder = request.param, folder

    def create_publisher(self, elements):
        assert self.folder.is_dir()
        return Flow.range(elements + self.more)


@pytest.mark.parametrize("source", [0, 1], indirect=True)
class TestIndirect(Broken):
    @pytest.fixture(autouse=True)
    def source(self, request):
        self.more = request.param

    def create_publisher(self, elements):
        return Flow.range(elements + self.more)


@pytest.fixture(params=["quick", "slow"])
def source(request):
    request.cls.slow = request.param == "slow"


@pytest.mark.usefixtures("source")
class TestUseFixtures(Sound):
    def create_publisher(self, elements):
        flow = Flow.range(elements)
        return flow.map(lambda element: time.sleep(0.2) or element) if self.slow else flow

    def test_the_pace_is_that_of_the_parameter(self):
        assert (self.pace() >= 0.2) == self.slow


@pytest.mark.usefixtures("missing")
class TestMissingFixture(Sound):
    pass


@pytest.mark.skip(reason="not today")
class TestSkip(Broken):
    pass


@pytest.mark.xfail(reason="known")
class TestXfail(Broken):
    pass


@pytest.mark.xfail(strict=True)
class TestXfailStrict(Sound):
    pass


class Mixin:
    def required_create_publisher_1_must_produce_a_stream_of_exactly_1_element(self):
        pytest.fail("the one of the mixin")


class TestMixin(Mixin, Sound):
    pass


class Silent(Sound):
    __test__ = False


class TestNever(Sound):
    default_timeout = 0.05
    required_create_publisher_1_must_produce_a_stream_of_exactly_1_element = None

    def create_publisher(self, elements):
        return Flow.never()


class TestTimeout(Sound):
    default_timeout = -1


@pytest.mark.explore(schedules=3)
class TestExplored(Sound):
    pass
"""

VERDICTS = {
    "TestSound": "passed",
    "TestBroken": "failed: rule 1.5: a finite stream that succeeded ends with on_complete",
    "TestRaising": "failed: there is nothing to judge",
    "TestHeir": "passed",
    "TestOuter.TestInner": "failed: rule 1.5",
    "TestSetUp": "passed",
    "TestFixtures[0]": "passed",
    "TestFixtures[1]": "failed: rule 1.5",
    "TestIndirect[0]": "passed",
    "TestIndirect[1]": "failed: rule 1.5",
    "TestUseFixtures[quick]": "passed",
    "TestUseFixtures[slow]": "passed",
    "TestMissingFixture": "error: fixture 'missing' not found",
    "TestSkip": "skipped: not today",
    "TestXfail": "skipped: known",
    "TestXfailStrict": "failed: [XPASS(strict)]",
    "TestMixin": "failed: the one of the mixin",
    f"TestNever.{SPEC105}": "failed: rule 3.8: request(n) adds n to the demand: no demand is lost",
    "TestTimeout": "failed: ValueError: default_timeout: a number of seconds above 0 is needed, not -1",
    "TestExplored": "failed: a check of the kit is not explored, since it waits in real time: take the marker",
}

METHODS = "none of its checks would run. Leave TestCase out: pytest runs the checks, and so does reactive-runtime tck"

REFUSED = {
    "case_first": ("class TestIt(unittest.TestCase, Sound): pass", METHODS),
    "case_last": ("class TestIt(Sound, unittest.TestCase): pass", METHODS),
    "case_between": (
        "class Case(unittest.TestCase): pass\n\nclass Mine(Case): pass\n\nclass TestIt(Mine, Sound): pass",
        METHODS,
    ),
    "parameters": (
        "@pytest.mark.parametrize(('n', 'm'), [(1, 2)])\nclass TestIt(Sound): pass",
        "parametrize gives n, m, and a check takes no argument: give params to an autouse fixture of the class",
    ),
    "init": (
        "class TestIt(Sound):\n    def __init__(self, n=1): self.n = n",
        "TestIt has __init__, and pytest runs no check of a class that has: set up in setup_method",
    ),
    "new": (
        "class Outer:\n    class TestIt(Sound):\n        def __new__(cls): return super().__new__(cls)\n\n"
        "class TestOuter(Outer): pass",
        "Outer.TestIt has __new__, and pytest runs no check of a class that has: set up in setup_method",
    ),
    "async_factory": (
        "class TestIt(Sound):\n    async def create_publisher(self, elements): pass",
        "TestIt.create_publisher is an async def, and the kit does not await it: define it with def",
    ),
}
"""What is not run: a module of it, and what pytest says where it collects it."""


CHOSEN = "exactly_1_element or test_the or (TestNever and spec105_must)"
"""One check of each class, and the tests that are named so."""


class Case(NamedTuple):
    """What pytest reports of a test: its name in brief, its status, and the text of it."""

    name: str
    status: str
    text: str


class Run(NamedTuple):
    """What became of one run of pytest."""

    cases: list[Case]
    output: str

    def of(self, name: str) -> Case:
        (case,) = (case for case in self.cases if case.name == name)
        return case


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("variants")
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "base.py").write_text(BASE)
    (folder / "test_runs.py").write_text(RUNS)
    for name, (source, _) in REFUSED.items():
        (folder / f"test_{name}.py").write_text(f"from base import *\n\n{source}\n")
    return folder


def run(folder: Path, *arguments: str) -> Run:
    """A run of pytest over the folder."""
    # Hypothesis has no part in it, and takes most of the time that a process needs to start.
    report = folder / f"report{len(list(folder.glob('*.xml')))}.xml"
    done = process(
        folder, "pytest", "-p", "no:hypothesispytest", "-p", "no:cacheprovider", "-k", CHOSEN,
        "--junitxml", str(report), "--continue-on-collection-errors", *arguments,
    )  # fmt: skip
    cases = [case_of(case) for case in ElementTree.parse(report).iter("testcase")]
    return Run(sorted(cases), done.stdout)


def process(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=folder, env=os.environ, capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip


def case_of(element: Any) -> Case:
    name = f"{element.get('classname')}.{element.get('name')}".strip(".")
    name = name.removeprefix("test_runs.").replace(f".{EXACTLY_1}", "")
    child = element.find("*")
    if child is None:
        return Case(name, "passed", "")
    status = "failed" if child.tag == "failure" else child.tag
    text = f"{child.get('message')}\n{child.text}"
    return Case(name, status, re.sub("0x[0-9a-f]+", "0x…", text))  # where an object lies


@pytest.fixture(scope="module")
def plain(folder: Path) -> Run:
    return run(folder)


@pytest.mark.parametrize("name", VERDICTS)
def test_the_check_runs_and_judges(plain: Run, name: str) -> None:
    case = plain.of(name)
    status, _, why = VERDICTS[name].partition(": ")
    assert case.status == status
    assert why in case.text


def test_no_class_is_left_out_and_none_is_run_that_is_not_meant(plain: Run) -> None:
    paces = {f"TestUseFixtures.test_the_pace_is_that_of_the_parameter[{kind}]" for kind in ("quick", "slow")}
    refused = {case.name for case in plain.cases if "collection failure" in case.text}
    assert {case.name for case in plain.cases} == VERDICTS.keys() | paces | refused
    assert all(plain.of(name).status == "passed" for name in paces), plain.output


@pytest.mark.parametrize("name", REFUSED)
def test_what_would_run_no_check_is_refused_with_a_line(plain: Run, name: str) -> None:
    said = [case.text for case in plain.cases if case.name.startswith(f"test_{name}")]
    assert len(said) == 1, plain.output
    assert sum(REFUSED[name][1] in line for line in said[0].splitlines()) == 1, said[0]


def test_unittest_refuses_the_same_test_cases(folder: Path) -> None:
    done = process(folder, "unittest", "discover", "--pattern", "test_case_*.py")
    assert done.returncode == 1
    assert done.stderr.count(METHODS) == 3, done.stderr


def test_a_failure_shows_the_code_under_test_and_not_the_kit(plain: Run) -> None:
    broken = plain.of("TestBroken").text
    assert broken.startswith("reactive_runtime.tck.ConformanceError: rule 1.5: a finite stream")
    raising = plain.of("TestRaising").text
    assert ">       return self.opened()" in raising
    assert ">       raise OSError" in raising
    placed = ("TestSkip", "TestMissingFixture")  # what names the place of the check, and is no traceback
    texts = [case.text for case in plain.cases if case.name not in placed]
    shown = [line for text in texts for line in text.splitlines() if re.search(r"\.py:\d", line)]
    assert shown
    assert [line for line in shown if os.path.join("reactive_runtime", "tck") in line] == []


@pytest.mark.parametrize("arguments", [["-n", "2"], ["-n", "2", "--dist", "loadscope"]], ids=" ".join)
def test_side_by_side_the_verdicts_and_their_texts_are_the_same(plain: Run, folder: Path, arguments: list[str]) -> None:
    assert run(folder, *arguments).cases == plain.cases


# -- coroutines and event loops ---------------------------------------------------------------------------------


async def awaited(self: object, *arguments: Any) -> None:
    pytest.fail("nothing runs it")


@pytest.mark.parametrize("name", ["create_publisher", "create_failed_publisher", "create_element", SPEC102])
def test_what_the_kit_does_not_await_is_refused(name: str) -> None:
    with pytest.raises(TypeError, match=rf"^TestIt\.{name} is an async def, and the kit does not await it: define it"):
        type("TestIt", (IdentityProcessorVerification,), {name: awaited})


def test_an_async_method_of_its_own_is_not() -> None:
    verification: Any = type("TestIt", (PublisherVerification,), {"opened": awaited})
    assert len(verification.checks()) == len(PublisherVerification.checks())


def yielding(self: object) -> Any:
    yield


@pytest.mark.parametrize("own", [yielding, staticmethod(print), property(print)], ids=["yield", "static", "property"])
def test_what_overrides_a_check_and_would_judge_nothing_is_refused(own: Any) -> None:
    with pytest.raises(TypeError, match=rf"^TestIt\.{SPEC102} overrides a check, and is no plain method"):
        type("TestIt", (PublisherVerification,), {SPEC102: own})


def test_none_leaves_a_check_out_and_a_mixin_overrides_one() -> None:
    mixin = type("Mixin", (), {EXACTLY_1: lambda self: None})
    verification: Any = type("TestIt", (mixin, PublisherVerification), {SPEC102: None})
    names = [check.name for check in verification.checks()]
    assert EXACTLY_1 in names
    assert SPEC102 not in names


class OnLoop(PublisherVerification[int]):
    """Its publisher calls its subscriber on the event loop."""

    default_timeout = 0.05

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop

    def create_publisher(self, elements: int) -> Any:
        flow = Flow.range(elements)

        class Publisher:
            def subscribe(_, subscriber: Any) -> None:  # noqa: N805
                self.loop.call_soon_threadsafe(lambda: flow.subscribe(subscriber))

        return Publisher()


def test_a_check_that_holds_up_the_event_loop_says_so() -> None:
    check = next(check for check in OnLoop.checks() if check.name == EXACTLY_1)

    async def main() -> list[str]:
        verification = OnLoop(asyncio.get_running_loop())
        blocked = verification.outcome(check)
        beside = await asyncio.to_thread(verification.outcome, check)
        return [blocked.why, beside.status]

    why, beside = asyncio.run(main())
    assert "the event loop of MainThread stands still until the check is over" in why
    assert "call the kit on another thread, as with asyncio.to_thread" in why
    assert beside == "passed"


@pytest.mark.parametrize("create", [awaited, lambda self, elements: type("P", (), {"subscribe": awaited})()])
def test_a_coroutine_that_nothing_awaits_is_named(create: Any) -> None:
    verification: Any = type("TestIt", (PublisherVerification,), {})
    verification.create_publisher = create
    outcome = verification().outcome(verification.checks()[0])
    assert outcome.status == "failed"
    assert " returned a coroutine, and nothing awaits it: define it with def, not async def" in outcome.why
