"""What became of each scenario, as the XML that JUnit writes and CI servers read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from reactive_runtime._reports import Suite
from reactive_runtime.stress._declaring import Scenario
from reactive_runtime.stress._harness import Failure
from reactive_runtime.testing.trace import metadata_of

__all__ = ["write_junit"]


def write_junit(
    path: Path,
    scenarios: Iterable[Scenario],
    broken: Mapping[str, Iterable[str]],
    given_up: Iterable[Failure],
    runs: Sequence[Path] = (),
    unable: Sequence[str] = (),
    slower: Sequence[str] = (),
    seconds: float = 0.0,
    unseen: Mapping[str, str] | None = None,
) -> None:
    """A test case for each scenario: a failure for each rule that it broke, an error if it could not go on.

    `broken` says which rules, by scenario; a link inside a pipeline counts for its scenario. `runs` are the folders of
    what was recorded: host, seed and interpreter are said by their metadata. `unable`, lines on what could not be
    judged, and `slower` are a test case of their own. `seconds` is how long all took. `unseen`: the scenarios that were
    not looked at, each with the reason; they are skipped. The file is replaced in one rename. ScenarioError where it
    can't be written.
    """
    suite = Suite("reactive-runtime stress", "stress")
    _where(suite, runs, seconds)
    reasons = list(given_up)
    for scenario in scenarios:
        case = suite.case(scenario.name)
        rules = {
            rule
            for name, found in broken.items()
            if name in (scenario.name, f"{scenario.name}, link")
            for rule in found
        }
        rules |= {reason.rule for reason in reasons if reason.scenario == scenario.name and reason.rule}
        for rule in sorted(rules):
            case.failure("broken rule", f"rule {rule} was broken")
    for reason in reasons:
        if not reason.rule:  # it may be of a file that could not be imported
            suite.case(reason.scenario).error("stuck" if reason.stuck else "unable", reason.why, reason.stacks)
    for name, why in (unseen or {}).items():
        suite.case(name).skipped(why)
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
