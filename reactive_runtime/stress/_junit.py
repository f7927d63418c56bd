"""Write the result of each scenario as JUnit's XML, which CI servers read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from reactive_runtime._results.ci_files import Suite
from reactive_runtime._results.states import Finding
from reactive_runtime.stress._harness import Failure
from reactive_runtime.testing.trace import metadata_of

__all__ = ["write_junit"]


def write_junit(
    path: Path,
    findings: Mapping[str, Finding],
    given_up: Iterable[Failure],
    runs: Sequence[Path] = (),
    unable: Sequence[str] = (),
    slower: Sequence[str] = (),
    seconds: float = 0.0,
) -> None:
    """A test case for each scenario: a failure for each rule that it broke, an error if it could not go on.

    `findings` says what became of each; one that was not looked at as a whole is skipped, with the reason. `given_up`
    has the stacks of those that were stuck. `runs` are the folders of what was recorded: host, seed and interpreter are
    said by their metadata. `unable`, lines on what could not be judged, and `slower` are a test case of their own.
    `seconds` is how long all took. The file is replaced in one rename. UnwrittenError where it can't be written.
    """
    suite = Suite("reactive-runtime stress", "stress")
    _where(suite, runs, seconds)
    for name, finding in findings.items():
        case = suite.case(name)
        for rule in finding.rules:
            case.failure("broken rule", f"rule {rule} was broken")
    for reason in given_up:
        if not reason.rule:  # it may be of a file that could not be imported
            suite.case(reason.scenario).error("stuck" if reason.stuck else "unable", reason.why, reason.stacks)
    for name, finding in findings.items():
        if finding.state.unseen:
            suite.case(name).skipped(finding.why)
    for why in unable:
        suite.case(_VERDICT).error("unable", why)
    for what in slower:
        suite.case(_VERDICT).failure("slower", what)
    suite.write(path)


_VERDICT: Final = "the verdict"


def _where(suite: Suite, runs: Sequence[Path], seconds: float) -> None:
    """Where it was, and with which seeds and interpreters."""
    suite.took(seconds)
    known = [metadata_of(run) or {} for run in runs]
    hosts = {str((entry.get("identity") or {}).get("host", "")) for entry in known} - {""}
    if hosts:
        suite.ran_on(", ".join(sorted(hosts)))
    for item in known:
        for name in ("run", "seed", "python", "machine", "commit"):
            if item.get(name) is not None:
                suite.say(name, item[name])
