"""`pytest --explore`: the tests of a suite that start threads run under many schedules, without a change.

first    every test runs as always; of each, the plugin keeps which threads it started, and which files it executed
then     the tests that started threads, and passed, are explored: those of changed files first, until the time is over

A test counts once: the report of a test that is to be explored waits for its exploration. A test that no schedule can
order is left out with the reason, and passes as it did.
"""

from __future__ import annotations

import inspect
import json
import math
import os
import random
import subprocess
import sys
import unittest
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest
from _pytest.runner import runtestprotocol

from reactive_runtime._core.runtime import primitives
from reactive_runtime.errors import ExploreError, MissingDependencyError
from reactive_runtime.explore._checks.scenario import Scenario
from reactive_runtime.explore._exploration import explore, replay
from reactive_runtime.explore._explore_command import saved, token_in
from reactive_runtime.explore._instrument.code_patcher import assertions_explained
from reactive_runtime.explore._pytest_plugin import Fixtures, file_of, why
from reactive_runtime.explore._results import Failure, Result
from reactive_runtime.explore._standins.threads import put_back
from reactive_runtime.explore._suite_watch import Watch

__all__ = ["Left", "Suite"]

_monotonic: Final = primitives.monotonic  # the real one

_HANG: Final = 10.0
"""Seconds that a thread may be blocked by something that is not controlled."""
_LIMIT: Final = 10_000
"""Steps of a schedule."""
_SHARE: Final = 1.0
"""Seconds that a test gets at least."""
_FEW: Final = (("bounded", 0), *((name, seed) for seed in range(5) for name in ("pct2", "random")))
"""Schedules of which one holds, unless the test fails under every schedule: strategies, each with a seed."""

FLAKY: Final = "fails without the explorer, too, when it runs again"
CLOCK: Final = "reads the clock"
SOCKETS: Final = "uses sockets"
PROCESSES: Final = "starts processes"
BLOCKED: Final = "is blocked by what the explorer does not control"
DIFFERS: Final = "does not do the same each time"
LONG: Final = "has schedules of too many steps"
COROUTINE: Final = "is a coroutine function"
DRAWN: Final = "draws its input"
OUTSIDE: Final = "shares threads with other tests"
LATE: Final = "was not reached in the time"
ALWAYS: Final = "fails under every schedule, and passes without the explorer"


class Left(Exception):  # noqa: N818
    """The test is left out.

    Args:
        reason: One of the reasons above.
        detail: The line, or the value, if one is known.
    """

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason: str = reason
        self.detail: str = detail


@dataclass
class _Candidate:
    """A test that starts threads. The main thread owns it."""

    item: Any
    reports: list[pytest.TestReport]
    watch: Watch
    explored: dict[str, Any] = field(default_factory=dict)


class Suite:
    """The plugin of a session. The main thread owns it."""

    def __init__(self, config: pytest.Config) -> None:
        options = config.option
        if getattr(options, "numprocesses", None):
            raise pytest.UsageError("--explore runs in one process, since it pins its threads to one core: add -n 0")
        self._seconds: float = options.explore_seconds
        self._schedules: int = options.explore_schedules if options.explore else 1
        records_only = not options.explore
        self._seed: int = random.SystemRandom().randrange(1 << 32) if records_only else options.explore_seed
        self._record: Path | None = options.explore_record
        self._tokens: dict[str, str] = _recorded(options.explore_replay) if options.explore_replay else {}
        self._replays = bool(options.explore_replay)
        self._changed: set[str] = _changed(config.rootpath, options.explore_since)
        self._candidates: list[_Candidate] = []
        self._told: dict[str, dict[str, Any]] = {}

    # -- every test, as always ------------------------------------------------------------------------------------

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Select the recorded tests, where there are such."""
        if not self._replays:
            return
        dropped = [item for item in items if item.nodeid not in self._tokens]
        items[:] = [item for item in items if item.nodeid in self._tokens]
        if dropped:
            config.hook.pytest_deselected(items=dropped)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        """Run the test as always. The reports of one that is to be explored wait."""
        if not isinstance(item, pytest.Function) or item.get_closest_marker("explore") is not None:
            return None
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        with Watch(profile=bool(self._changed)) as watch:
            reports = runtestprotocol(item, log=False, nextitem=nextitem)
        candidate = _Candidate(item, reports, watch)
        if watch.threads and all(report.outcome == "passed" for report in reports):
            try:
                _check(item, watch)
                self._candidates.append(candidate)
                return True
            except Left as left:
                _leave(candidate, left)
        _log(candidate)
        return True

    # -- those with threads, explored -----------------------------------------------------------------------------

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Any:
        """When all tests have run, explore those that start threads."""
        result = yield
        until = _monotonic() + self._seconds
        waiting = sorted(self._candidates, key=lambda candidate: self._changed.isdisjoint(candidate.watch.files))
        logged = 0
        try:
            for number, candidate in enumerate(waiting):
                left = until - _monotonic()
                if left <= 0 or session.shouldfail or session.shouldstop:
                    _leave(candidate, Left(LATE))
                else:
                    following = waiting[number + 1].item if number + 1 < len(waiting) else None
                    self._explore(candidate, following, max(_SHARE, left / (len(waiting) - number)))
                logged += 1
                _log(candidate)
        finally:  # they have passed, also if the user has interrupted the explorer
            for candidate in waiting[logged:]:
                _leave(candidate, Left(LATE))
                _log(candidate)
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        return result

    def _explore(self, candidate: _Candidate, following: Any, seconds: float) -> None:
        """Run the test once more, explored; its report of the call is that of the exploration, if that fails."""
        item = candidate.item
        runs = item.runtest
        item.runtest = lambda: self._search(candidate, seconds)
        try:
            reports = runtestprotocol(item, log=False, nextitem=following)
        finally:
            item.runtest = runs
        if reports[0].outcome != "passed":
            _leave(candidate, Left(FLAKY, "its set-up"))
        elif reports[1].outcome == "failed":
            candidate.reports[1] = reports[1]

    def _search(self, candidate: _Candidate, seconds: float) -> None:
        """In place of the test. Fails if a schedule fails."""
        item = candidate.item
        try:
            test = Test(item)
            clocks = self._again(test)
            with assertions_explained():
                began = _used()
                result, file = self._found(test, seconds)
                used = _used() - began
            if result.uncontrolled:
                raise Left(DIFFERS, result.uncontrolled.rpartition(": ")[2])
            if result.failure is not None:
                _check_failure(result.failure, clocks)
                if not (self._replays or test.may_hold()):
                    raise Left(ALWAYS, result.failure.message.partition("\n")[0])
        except Left as left:
            _leave(candidate, left)
            return
        except ExploreError as error:
            _leave(candidate, _left(error))
            return
        candidate.explored.update(schedules=result.schedules, seconds=used, unseen=result.not_looked_into)
        if result.failure is None:
            file.unlink(missing_ok=True)
            candidate.explored["outcome"] = "held"
            return
        candidate.explored.update(outcome="failed", message=result.failure.message, token=result.failure.token)
        _save(result, file)
        if self._record is not None:
            _write(self._record, item.nodeid, result.failure)
        pytest.fail(
            f"fails under a schedule that was written to {file}:\n{why(result)}\n\n{result.failure.traceback}\n\n"
            f"token: {result.failure.token}",
            pytrace=False,
        )

    def _again(self, test: Test) -> list[str]:
        """Run it once more unexplored: it has to pass, and to start the threads itself. Returns readings of clocks."""
        with Watch(str(test.item.path), profile=True) as watch:
            try:
                test.run()
                if not watch.threads:  # its fixtures, which pytest had set up, may start them
                    test.run()
            except Exception as error:
                raise Left(FLAKY, f"{type(error).__name__}: {error}") from None
        test.raises = bool(watch.raised)
        test.modules = _executed(watch.files, test.item.config.rootpath)
        if not watch.threads:
            raise Left(OUTSIDE, "the fixture that starts them is of a wider scope")
        return watch.clocks

    def _found(self, test: Test, seconds: float) -> tuple[Result, Path]:
        """The result of the recorded schedule, of the one that failed last time, or else of a search."""
        scenario, file = test.scenario(), file_of(test.item)
        if self._replays:
            return replay(scenario, self._tokens[test.item.nodeid], modules=test.modules, hang=_HANG), file
        if file.exists():
            with suppress(ExploreError):
                before = replay(scenario, token_in(file), modules=test.modules, hang=_HANG)
                if before.failure is not None:
                    return before, file
        options: dict[str, Any] = {"schedules": self._schedules, "seed": self._seed, "seconds": seconds}
        if self._schedules == 1:
            options["strategy"] = "random"
        options.update(test.options())
        result = explore(scenario, shrink=False, **options)  # a schedule that is too long would take minutes to reduce
        if result.failure is not None and "did not end within" not in result.failure.message:
            options["seconds"] = math.inf
            again = explore(scenario, **options)
            result = again if again.failure is not None else result
        return result, file

    # -- what is said of it ---------------------------------------------------------------------------------------

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Collect the results, under pytest-xdist those of its workers."""
        explored: dict[str, Any] | None = getattr(report, "explored", None)
        if explored:
            self._told[report.nodeid] = explored

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say how many tests were explored, and which were left out."""
        if not self._told:
            return
        terminalreporter.section("explored schedules")
        for line in _lines(self._told):
            terminalreporter.write_line(line)


class Test:
    """A test that runs many times, with fixtures of its own each time.

    Args:
        item: Pytest has set it up.
    """

    def __init__(self, item: Any) -> None:
        self.item: Any = item
        self.raises: bool = False
        """True if threads of it end with errors also without the explorer."""
        self.modules: list[ModuleType] = []
        """Those of the suite, and of what it tests, that it executes; the explorer looks into these as well."""
        self._fixtures = Fixtures(item, every=True)
        self._first = True
        """True until it has run once; the main thread writes it."""
        self._inside = False
        """True while the test runs; the thread that runs it writes it."""

    def scenario(self) -> Scenario[Any]:
        """One actor: the fixtures, the test and the tear-down, since each may start threads and wait for them."""
        item = self.item
        parts = [item.function, *self._fixtures.functions, *([] if item.cls is None else [item.cls])]
        return Scenario(
            lambda: True,
            {"test": [lambda _: self._explored()]},
            tear_down=self._after,
            name=item.name,
            parts=parts,
        )

    def options(self) -> dict[str, Any]:
        """How it is explored."""
        return {"modules": self.modules, "hang": _HANG, "limit": _LIMIT, "early_timeouts": 0}

    def may_hold(self) -> bool:
        """Whether one of a few schedules holds. If not, it fails because it is explored, or by what is left behind."""
        scenario = self.scenario()
        return any(
            explore(scenario, schedules=1, strategy=name, seed=seed, shrink=False, **self.options()).failure is None
            for name, seed in _FEW
        )

    def _after(self, _: object) -> None:
        """After a schedule, whose thread has torn the fixtures down, unless it is blocked."""
        if self._inside:
            self._inside = False
            self._fixtures.give_up()

    def _explored(self) -> None:
        if self.raises:
            put_back(_ignored)
        self.run()

    def run(self) -> None:
        """Run it once. AssertionError if it calls `sys.exit`."""
        item = self.item
        self._inside = True
        try:
            if self._first:
                self._first = False
                arguments = self._fixtures.given()
            else:
                vars(item).pop("_instance", None)
                vars(item)["_obj"] = None
                arguments = self._fixtures.set_up()
            if isinstance(item.instance, unittest.TestCase):
                _run_case(item.instance)
            else:
                item.obj(**arguments)
        except SystemExit as error:
            raise AssertionError(f"the test called sys.exit({error.code!r})") from error
        finally:
            self._fixtures.tear_down(None)
            self._inside = False


class _Raising(unittest.TestResult):
    """Keeps the first error of a test case."""

    error: BaseException | None = None

    def _keep(self, error: Any) -> None:
        self.error = self.error or error[1]

    def addError(self, test: Any, err: Any) -> None:  # noqa: N802
        self._keep(err)

    def addFailure(self, test: Any, err: Any) -> None:  # noqa: N802
        self._keep(err)

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:  # noqa: N802
        if err is not None:
            self._keep(err)


def _run_case(case: unittest.TestCase) -> None:
    """Its set-up, the test, and its tear-down; raises what the first of them raises."""
    result = _Raising()
    case.run(result)
    if result.error is not None:
        raise result.error


def _ignored(_: object) -> None:
    """In place of `threading.excepthook`, for a test whose threads end with errors anyway."""


def _executed(files: set[str], root: Path) -> list[ModuleType]:
    """The modules below the root that have any of these files, without installed ones."""
    found: list[ModuleType] = []
    for module in list(sys.modules.values()):
        file = vars(module).get("__file__") if type(module) is ModuleType else None
        if file in files and Path(file).is_relative_to(root) and "site-packages" not in Path(file).parts:
            found.append(module)
    return found


def _used() -> float:
    """Seconds of the processor that this process has used: other work on the machine does not count."""
    return sum(os.times()[:2])


def _check(item: Any, watch: Watch) -> None:
    """Raises `Left` for a test that no schedule can order."""
    if inspect.iscoroutinefunction(item.function) or inspect.isasyncgenfunction(item.function):
        raise Left(COROUTINE)
    if hasattr(item.obj, "hypothesis"):
        raise Left(DRAWN, "by hypothesis")
    for reason, places in ((PROCESSES, watch.processes), (SOCKETS, watch.sockets)):
        if places:
            raise Left(reason, places[0])


def _check_failure(failure: Failure, clocks: list[str]) -> None:
    """Raises `Left` for a failure that says nothing about the program."""
    if isinstance(failure.error, pytest.skip.Exception):
        raise Left(FLAKY, f"it skips itself: {failure.error}")
    if failure.kind in ("limit", "livelock") and "did not end within" in failure.message:
        raise Left(LONG, failure.message)
    if clocks and failure.error is not None:
        raise Left(CLOCK, clocks[0])


def _left(error: ExploreError) -> Left:
    text = str(error)
    if "come to no point" in text:
        return Left(BLOCKED, text.partition(" s, ")[2].partition(". It is")[0])
    if "pool that was made outside" in text:
        return Left(OUTSIDE, "a pool")
    if "process" in text:
        return Left(PROCESSES, text)
    return Left(BLOCKED, text)


def _leave(candidate: _Candidate, left: Left) -> None:
    candidate.explored.update(outcome="left out", reason=left.reason, detail=left.detail)


def _log(candidate: _Candidate) -> None:
    """Report the test, as its own run or its exploration left it."""
    item, reports = candidate.item, candidate.reports
    for report in reports:
        if report.when == "call" and candidate.explored:
            vars(report)["explored"] = candidate.explored
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)


def _save(result: Result, file: Path) -> None:
    """The schedule, and its picture if there is Jinja2."""
    saved(result, file)
    assert result.failure is not None
    with suppress(MissingDependencyError):
        file.with_suffix(".svg").write_text(result.failure.svg(), encoding="utf-8")


def _write(file: Path, nodeid: str, failure: Failure) -> None:
    """Append the schedule of a test that failed to the record."""
    line = json.dumps({"test": nodeid, "message": failure.message, "token": failure.token})
    with file.open("a", encoding="utf-8") as out:
        out.write(line + "\n")


def _recorded(file: Path) -> dict[str, str]:
    """The token of each test in a record; of a test that failed more than once, the last."""
    try:
        lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
        return {str(line["test"]): str(line["token"]) for line in lines}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise pytest.UsageError(
            f"--explore-replay {file}: no record of --explore-record, which has a line of JSON for each test: {error}"
        ) from None


def _changed(root: Path, since: str) -> set[str]:
    """The files that differ from that revision, and new ones; none where this is no repository of git."""
    found: set[str] = set()
    for command in (["diff", "--name-only", "--relative", since, "--"], ["ls-files", "--others", "--exclude-standard"]):
        try:
            ran = subprocess.run(["git", *command], cwd=root, capture_output=True, text=True, timeout=30, check=True)
        except (OSError, subprocess.SubprocessError):
            return set()
        found.update(str(root / name) for name in ran.stdout.splitlines())
    return found


def _lines(told: dict[str, dict[str, Any]]) -> Iterator[str]:
    """The summary of a session."""
    explored = {name: item for name, item in told.items() if item["outcome"] != "left out"}
    left = {name: item for name, item in told.items() if item["outcome"] == "left out"}
    schedules = sum(item["schedules"] for item in explored.values())
    seconds = sum(item["seconds"] for item in explored.values())
    failed = sum(item["outcome"] == "failed" for item in explored.values())
    rate = f", {schedules / seconds:,.0f} a second of the processor" if seconds else ""
    yield f"{len(explored)} of {len(told)} tests with threads explored, {failed} failed; {schedules:,} schedules{rate}"
    unseen = {name: calls for name, item in explored.items() if (calls := item["unseen"])}
    if unseen:
        yield f"{len(unseen)} of these may do more than what the explorer looked into:"
    yield from (f"  {name} ({calls[0]})" for name, calls in unseen.items())
    for reason, count in Counter(item["reason"] for item in left.values()).most_common():
        yield f"left out: {count} {reason}"
        for name, item in left.items():
            if item["reason"] == reason:
                yield f"  {name}" + (f" ({item['detail']})" if item["detail"] else "")
