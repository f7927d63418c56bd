"""What became of each scenario, as the XML that JUnit writes and CI servers read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from xml.etree import ElementTree

from reactive_runtime.errors import ScenarioError
from reactive_runtime.stress.harness import Failure
from reactive_runtime.stress.scenario import Scenario

__all__ = ["write_junit"]


def write_junit(
    path: Path, scenarios: Iterable[Scenario], broken: Mapping[str, Iterable[str]], given_up: Iterable[Failure]
) -> None:
    """A test case for each scenario: a failure for each rule that it broke, an error if it could not go on.

    `broken` says which rules, by scenario; a link inside a pipeline counts for its scenario. ScenarioError where the
    file can't be written.
    """
    suite = ElementTree.Element("testsuite", name="reactive-runtime stress")
    failures = errors = 0
    reasons = list(given_up)
    cases: dict[str, ElementTree.Element] = {}
    for it in scenarios:
        case = cases[it.name] = ElementTree.SubElement(suite, "testcase", classname="stress", name=it.name)
        rules = {rule for name, found in broken.items() if name in (it.name, f"{it.name}, link") for rule in found}
        rules |= {reason.rule for reason in reasons if reason.scenario == it.name and reason.rule}
        for rule in sorted(rules):
            ElementTree.SubElement(case, "failure", type="broken rule", message=f"rule {rule} was broken")
        failures += bool(rules)
    for reason in reasons:
        if reason.rule:
            continue
        if reason.scenario not in cases:  # a file that could not be imported
            cases[reason.scenario] = ElementTree.SubElement(suite, "testcase", classname="stress", name=reason.scenario)
        kind = "stuck" if reason.stuck else "unable"
        error = ElementTree.SubElement(cases[reason.scenario], "error", type=kind, message=reason.why)
        error.text = reason.stacks or None
        errors += 1
    suite.set("tests", str(len(cases)))
    suite.set("failures", str(failures))
    suite.set("errors", str(errors))
    ElementTree.indent(suite)
    try:
        ElementTree.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)
    except OSError as error:
        raise ScenarioError(f"{path}: can't be written: {error.strerror}") from error
