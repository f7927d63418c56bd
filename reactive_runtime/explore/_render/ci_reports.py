"""What CI servers read of an exploration: JUnit's XML, and SARIF 2.1.0, which shows the schedule at the lines.

Both are written before the exploration as well, as of one that did not come to its end: what an earlier one has left
does not outlive this one, whichever way it ends.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from reactive_runtime import __version__
from reactive_runtime._results.ci_files import Suite, write_whole
from reactive_runtime._support.shell_names import import_string
from reactive_runtime.explore._render.schedule_diagram import end_of
from reactive_runtime.explore._results import Failure, Result

__all__ = ["Reports"]

_SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_HELP: Final = {
    "invariant": "An invariant of the scenario does not hold under a schedule.",
    "raised": "A thread raises under a schedule.",
    "deadlock": "No thread can go on under a schedule.",
    "livelock": "A schedule repeats itself without end.",
    "limit": "A schedule does not come to an end within the limit of steps.",
    "never": "What some schedule has to show was shown by none.",
}
"""The rules of the SARIF file: what a failure may be."""


@dataclass(frozen=True)
class Reports:
    """The files that were asked for, of an exploration of one target."""

    target: str
    junit: Path | None
    sarif: Path | None

    def unable(self, why: str) -> None:
        """It came to no verdict."""
        if self.junit is not None:
            suite = self._suite()
            suite.case(self.target).error("unable", why)
            suite.write(self.junit)
        if self.sarif is not None:
            _write_sarif(self.sarif, [], [], [why])

    def done(self, result: Result) -> None:
        """It came to its end."""
        if self.junit is not None:
            self._write_junit(self.junit, result)
        if self.sarif is not None:
            found = _findings(result, _place_of(self.target))
            _write_sarif(self.sarif, found, [f"{result.verdict}"], [result.uncontrolled] if result.uncontrolled else [])

    def _suite(self) -> Suite:
        suite = Suite("reactive-runtime explore", self.target.partition(":")[0])
        suite.ran_on(platform.node())
        return suite

    def _write_junit(self, path: Path, result: Result) -> None:
        suite = self._suite()
        suite.took(result.seconds)
        for name in ("verdict", "schedules", "strategy", "points", "seed"):
            suite.say(name, getattr(result, name))
        suite.say("python", platform.python_version())
        case = suite.case(self.target)
        case.took(result.seconds)
        if (failure := result.failure) is not None:
            text = f"{failure.diagram()}\n\n{failure.traceback}\n\ntoken {failure.token}"
            case.failure(failure.kind, failure.message, text)
        elif result.uncontrolled:
            case.error("incomplete", str(result))
        elif result.verdict.kind == "incomplete" and not result.never:
            case.skipped(str(result))
        for what in result.never:
            case.failure("never", what)
        suite.write(path)


# -- SARIF -----------------------------------------------------------------------------------------------------


def _write_sarif(path: Path, results: list[Any], said: list[str], unable: list[str]) -> None:
    rules = sorted({result["ruleId"] for result in results})
    driver = {
        "name": "reactive-runtime explore",
        "version": __version__,
        "rules": [{"id": rule, "shortDescription": {"text": _HELP[rule]}} for rule in rules],
    }
    invocation = {
        "executionSuccessful": not unable,
        "toolExecutionNotifications": [
            *({"level": "note", "message": {"text": text}} for text in said),
            *({"level": "error", "message": {"text": text}} for text in unable),
        ],
    }
    run = {
        "tool": {"driver": driver},
        "invocations": [invocation],
        "originalUriBaseIds": {"SRCROOT": {"uri": f"{Path.cwd().as_uri()}/"}},
        "results": results,
    }
    log = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    write_whole(path, json.dumps(log, indent=1).encode(errors="backslashreplace"))


def _findings(result: Result, place: tuple[str, int] | None) -> list[Any]:
    found = [_finding("never", what, result.scenario, place) for what in result.never]
    if (failure := result.failure) is not None:
        one = _finding(failure.kind, end_of(failure), failure.scenario, failure.breach or place)
        if flows := _flows(failure):
            one["codeFlows"] = [{"message": {"text": "the schedule"}, "threadFlows": flows}]
        one["properties"] = {"token": failure.token, "preemptions": failure.preemptions, "gil": failure.gil}
        found.append(one)
    return found


def _finding(rule: str, text: str, scenario: str, place: tuple[str, int] | None) -> dict[str, Any]:
    name = _location(*place)["physicalLocation"]["artifactLocation"]["uri"] if place is not None else ""
    print_ = hashlib.sha256(f"{scenario} {rule} {name}".encode(errors="backslashreplace")).hexdigest()[:32]
    return {
        "ruleId": rule,
        "level": "error",
        "message": {"text": text or rule},
        "locations": [] if place is None else [_location(*place)],
        "partialFingerprints": {"scenario/v1": print_},
    }


def _flows(failure: Failure) -> list[Any]:
    """Of each thread what it does; the numbers say which step comes when."""
    flows: dict[int, list[Any]] = {}
    for number, step in enumerate(failure.steps, start=1):
        if step.line and step.thread:
            values = f"   # {step.value}" if step.value else ""
            location = _location(step.filename, step.line)
            location["message"] = {"text": f"{step.name}: {step.source or step.what}{values}"}
            flows.setdefault(step.thread, []).append({"executionOrder": number, "location": location})
    names = {step.thread: step.name for step in failure.steps}
    return [{"id": names[thread], "locations": locations} for thread, locations in sorted(flows.items())]


def _location(filename: str, line: int) -> dict[str, Any]:
    file = Path(filename)
    if file.is_absolute() and file.is_relative_to(Path.cwd()):
        uri: dict[str, Any] = {"uri": _quoted(file.relative_to(Path.cwd())), "uriBaseId": "SRCROOT"}
    else:
        uri = {"uri": file.as_uri() if file.is_absolute() else _quoted(file)}
    return {"physicalLocation": {"artifactLocation": uri, "region": {"startLine": line}}}


def _quoted(file: Path) -> str:
    """As a part of a URI."""
    return (Path("/") / file).as_uri().removeprefix("file:///")


def _place_of(target: str) -> tuple[str, int] | None:
    """Where the scenario stands, where that is known."""
    try:
        item = inspect.unwrap(import_string(target))
        return inspect.getsourcefile(item) or "", inspect.getsourcelines(item)[1]
    except (OSError, TypeError):
        return None
