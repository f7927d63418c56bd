"""What became of each scenario, as the XML that JUnit writes and CI servers read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

from reactive_runtime.errors import ScenarioError
from reactive_runtime.stress.declaring import Scenario
from reactive_runtime.stress.harness import Failure
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
) -> None:
    """A test case for each scenario: a failure for each rule that it broke, an error if it could not go on.

    `broken` says which rules, by scenario; a link inside a pipeline counts for its scenario. `runs` are the folders of
    what was recorded: host, seed and interpreter are said by their metadata. `unable`, lines on what could not be
    judged, and `slower` are a test case of their own. `seconds` is how long all took. The file is replaced in one
    rename. ScenarioError where it can't be written.
    """
    suite = ElementTree.Element("testsuite", name="reactive-runtime stress")
    _where(suite, runs, seconds)
    failures = errors = 0
    reasons = list(given_up)
    cases: dict[str, ElementTree.Element] = {}
    for scenario in scenarios:
        case = cases[scenario.name] = _case(suite, scenario.name)
        rules = {
            rule
            for name, found in broken.items()
            if name in (scenario.name, f"{scenario.name}, link")
            for rule in found
        }
        rules |= {reason.rule for reason in reasons if reason.scenario == scenario.name and reason.rule}
        for rule in sorted(rules):
            ElementTree.SubElement(case, "failure", type="broken rule", message=_said(f"rule {rule} was broken"))
        failures += bool(rules)
    for reason in reasons:
        if reason.rule:
            continue
        if reason.scenario not in cases:  # a file that could not be imported
            cases[reason.scenario] = _case(suite, reason.scenario)
        kind = "stuck" if reason.stuck else "unable"
        error = ElementTree.SubElement(cases[reason.scenario], "error", type=kind, message=_said(reason.why))
        error.text = _said(reason.stacks) or None
        errors += 1
    if unable or slower:
        case = _case(suite, "the verdict")
        for why in unable:
            ElementTree.SubElement(case, "error", type="unable", message=_said(why))
        for what in slower:
            ElementTree.SubElement(case, "failure", type="slower", message=_said(what))
        failures, errors = failures + bool(slower), errors + len(unable)
    suite.set("tests", str(len(suite.findall("testcase"))))
    suite.set("failures", str(failures))
    suite.set("errors", str(errors))
    ElementTree.indent(suite)
    draft = path.with_name(f".{path.name}.next")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        ElementTree.ElementTree(suite).write(draft, encoding="utf-8", xml_declaration=True)
        draft.replace(path)
    except OSError as error:
        raise ScenarioError(f"{path}: can't be written: {error.strerror}") from error


def _case(suite: ElementTree.Element, name: str) -> ElementTree.Element:
    return ElementTree.SubElement(suite, "testcase", classname="stress", name=_said(name))


def _where(suite: ElementTree.Element, runs: Sequence[Path], seconds: float) -> None:
    """When and where it was, and with which seeds and interpreters."""
    suite.set("timestamp", datetime.now(UTC).isoformat(timespec="seconds"))
    suite.set("time", f"{seconds:.3f}")
    known = [metadata_of(run) or {} for run in runs]
    hosts = {str((entry.get("identity") or {}).get("host", "")) for entry in known} - {""}
    if hosts:
        suite.set("hostname", _said(", ".join(sorted(hosts))))
    if not known:
        return
    properties = ElementTree.SubElement(suite, "properties")
    for item in known:
        for name in ("run", "seed", "python", "machine", "commit"):
            if item.get(name) is not None:
                ElementTree.SubElement(properties, "property", name=name, value=_said(str(item[name])))


_NO_XML: Final = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that no XML may have, not even as a number: what a scenario is called, or says, may."""


def _said(text: str) -> str:
    """The text, with what no XML may have as Python writes it."""
    return _NO_XML.sub(lambda found: ascii(found[0])[1:-1], text)
