"""What CI servers read: JUnit's XML and SARIF 2.1.0, of every way that an exploration may end."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

import pytest

from reactive_runtime.errors import ScenarioError
from reactive_runtime.explore import explore
from reactive_runtime.explore._render.ci_reports import Reports

PROGRAMS: Final = """
import itertools
import os
import random
import threading

from reactive_runtime.explore import sometimes

runs = itertools.count()


class Counter:
    def __init__(self):
        self.count = 0

    def actor_a(self):
        self.count += 1

    def actor_b(self):
        self.count += 1

    def at_end(self):
        assert self.count == 2, "\\x00 lost \\ud800 <one>"


class Kept(Counter):
    def actor_b(self):
        pass

    def at_end(self):
        assert self.count == 1


class Shy(Kept):
    def at_end(self):
        sometimes(self.count == 5, "five were added")


class Waiting(Kept):
    def actor_a(self):
        lock = threading.Lock()
        lock.acquire()
        lock.acquire()


class Emptied(Kept):
    def actor_a(self):
        [].pop()


class Dice(Kept):
    def actor_b(self):
        for _ in range(next(runs)):
            threading.Lock().acquire()


class Unable(Kept):
    def actor_b(self):
        os.fork() if False else None
        import concurrent.futures

        concurrent.futures.ProcessPoolExecutor(1).submit(int)


class Leaving(Kept):
    def actor_b(self):
        os._exit(0)


class Shuffled:
    def __init__(self):
        self.items = [1, 2, 3]

    def actor_a(self):
        random.Random(1).shuffle(self.items)

    def actor_b(self):
        self.items.append(4)

    def at_end(self):
        pass
"""


def explored(tmp_path: Path, name: str) -> tuple[int, ElementTree.Element, dict[str, Any]]:
    """The status, the test suite and the SARIF log of the command."""
    (tmp_path / "programs.py").write_text(PROGRAMS)
    junit, sarif = tmp_path / "out" / "junit.xml", tmp_path / "out" / "found.sarif"
    done = subprocess.run(
        [sys.executable, "-m", "reactive_runtime", "explore", f"programs:{name}", "--junit", junit, "--sarif", sarif],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{Path.cwd()}"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    log = json.loads(sarif.read_text())
    check_sarif(log)
    suite = ElementTree.parse(junit).getroot()
    assert suite.tag == "testsuite"
    assert suite.get("tests") == "1"
    assert [case.get("name") for case in suite.iter("testcase")] == [f"programs:{name}"]
    assert sorted(item.name for item in junit.parent.iterdir()) == ["found.sarif", "junit.xml"]
    return done.returncode, suite, log["runs"][0]


def check_sarif(log: dict[str, Any]) -> None:
    """What section 3 of SARIF 2.1.0 asks of the objects that are used, and that each line is one of its file."""
    assert log["version"] == "2.1.0"
    assert log["$schema"].endswith("sarif-schema-2.1.0.json")
    assert len(log["runs"]) == 1
    (run,) = log["runs"]
    assert run["tool"]["driver"]["name"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert len(rules) == len(set(rules))
    for invocation in run["invocations"]:
        assert type(invocation["executionSuccessful"]) is bool
        for told in invocation["toolExecutionNotifications"]:
            assert told["level"] in ("none", "note", "warning", "error")
            assert told["message"]["text"]
    bases = run["originalUriBaseIds"]
    assert all(base["uri"].endswith("/") for base in bases.values())
    for result in run["results"]:
        assert result["ruleId"] in rules
        assert result["level"] in ("none", "note", "warning", "error")
        assert result["message"]["text"]
        assert all(re.fullmatch(r"[\w/]+", name) and value for name, value in result["partialFingerprints"].items())
        for location in result["locations"]:
            check_location(location, bases)
        for flow in result.get("codeFlows", ()):
            assert flow["threadFlows"]
            orders = [step["executionOrder"] for thread in flow["threadFlows"] for step in thread["locations"]]
            assert len(orders) == len(set(orders))
            assert all(type(order) is int and order >= 0 for order in orders)
            for thread in flow["threadFlows"]:
                assert thread["id"]
                assert thread["locations"]
                own = [step["executionOrder"] for step in thread["locations"]]
                assert own == sorted(own)
                for step in thread["locations"]:
                    check_location(step["location"], bases)
                    assert step["location"]["message"]["text"]


def check_location(location: dict[str, Any], bases: dict[str, Any]) -> None:
    file = location["physicalLocation"]["artifactLocation"]
    assert set(file) <= {"uri", "uriBaseId"}
    whole = bases[file["uriBaseId"]]["uri"] + file["uri"] if "uriBaseId" in file else file["uri"]
    assert whole.startswith("file:///")
    lines = Path(whole.removeprefix("file://")).read_text().splitlines()
    assert 1 <= location["physicalLocation"]["region"]["startLine"] <= len(lines)


def test_a_failure_is_one_result_with_the_schedule_at_its_lines(tmp_path: Path) -> None:
    status, suite, run = explored(tmp_path, "Counter")
    assert status == 1
    assert (suite.get("failures"), suite.get("errors")) == ("1", "0")
    (failure,) = suite.iter("failure")
    assert failure.get("type") == "invariant"
    assert failure.get("message") == "\\x00 lost \\ud800 <one>"
    assert "self.count += 1" in (failure.text or "")
    assert "token rr2-" in (failure.text or "")
    (result,) = run["results"]
    assert result["ruleId"] == "invariant"
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "programs.py", "uriBaseId": "SRCROOT"}
    assert "assert self.count == 2" in PROGRAMS.splitlines()[place["region"]["startLine"] - 1]
    flows = result["codeFlows"][0]["threadFlows"]
    assert {flow["id"] for flow in flows} == {"a", "b"}
    assert result["properties"]["token"].startswith("rr2-")
    assert run["invocations"][0]["executionSuccessful"]


@pytest.mark.parametrize(("name", "kind"), [("Waiting", "deadlock"), ("Emptied", "raised")])
def test_a_failure_of_any_kind_has_a_line(tmp_path: Path, name: str, kind: str) -> None:
    status, suite, run = explored(tmp_path, name)
    assert status == 1
    assert [failure.get("type") for failure in suite.iter("failure")] == [kind]
    assert [result["ruleId"] for result in run["results"]] == [kind]
    assert run["results"][0]["locations"]


def test_what_holds_is_a_case_that_passed(tmp_path: Path) -> None:
    status, suite, run = explored(tmp_path, "Kept")
    assert status == 0
    assert (suite.get("failures"), suite.get("errors"), run["results"]) == ("0", "0", [])
    said = {item.get("name"): item.get("value") for item in suite.iter("property")}
    assert said["verdict"] == "exhausted"
    assert {"seed", "strategy", "points", "python", "schedules"} <= set(said)
    assert run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"] == "exhausted"


def test_what_was_never_seen_is_a_failure(tmp_path: Path) -> None:
    status, suite, run = explored(tmp_path, "Shy")
    assert status == 1
    assert [failure.get("type") for failure in suite.iter("failure")] == ["never"]
    (result,) = run["results"]
    assert result["ruleId"] == "never"
    line = result["locations"][0]["physicalLocation"]["region"]["startLine"]
    assert PROGRAMS.splitlines()[line - 1].startswith("class Shy")


@pytest.mark.parametrize(
    ("name", "why", "wanted"),
    [
        ("Dice", "does not do the same each time", 3),
        ("Unable", "pool of processes", 4),
        ("Leaving", "the exploration did not come to its end", 3),
        ("Missing", "Missing", 2),
    ],
)
def test_without_a_verdict_there_is_an_error(tmp_path: Path, name: str, why: str, wanted: int) -> None:
    status, suite, run = explored(tmp_path, name)
    assert status == wanted
    assert (suite.get("failures"), suite.get("errors")) == ("0", "1")
    (error,) = suite.iter("error")
    assert why in (error.get("message") or "")
    assert not run["invocations"][0]["executionSuccessful"]
    assert why in run["invocations"][0]["toolExecutionNotifications"][-1]["message"]["text"]


def test_what_is_incomplete_is_skipped_and_no_success(tmp_path: Path) -> None:
    """No schedule failed, and one call was not looked into: the last line says INCOMPLETE."""
    status, suite, _ = explored(tmp_path, "Shuffled")
    assert status == 3
    assert (suite.get("failures"), suite.get("errors"), suite.get("skipped")) == ("0", "0", "1")
    (skipped,) = suite.iter("skipped")
    assert "not looked into: `random.Random(1).shuffle(self.items)`" in (skipped.get("message") or "")


def test_a_file_that_can_not_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ScenarioError, match=r"x\.xml: can't be written"):
        Reports("programs:Kept", tmp_path / "file" / "x.xml", None).unable("why")


def test_a_scenario_without_a_place_has_no_location(tmp_path: Path) -> None:
    result = explore(lambda: None)
    reports = Reports("math:pi", None, tmp_path / "x.sarif")
    reports.done(result)
    check_sarif(json.loads((tmp_path / "x.sarif").read_text()))
