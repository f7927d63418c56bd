"""Files that CI servers read: JUnit's XML, and how a report is written so that no half of it is ever read."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

from reactive_runtime.errors import ScenarioError

__all__ = ["Case", "Suite", "UnwrittenError", "write_whole"]


class UnwrittenError(ScenarioError):
    """A file for a CI server can't be written."""


class Suite:
    """One test suite of a JUnit file.

    Args:
        name: Its name.
        classname: That of its cases.
    """

    def __init__(self, name: str, classname: str) -> None:
        self._element = ElementTree.Element("testsuite", name=_xml(name))
        self._classname = classname
        self._properties: ElementTree.Element | None = None
        self._element.set("timestamp", datetime.now(UTC).isoformat(timespec="seconds"))
        self.cases: dict[str, Case] = {}
        """By name."""

    def took(self, seconds: float) -> None:
        """How long all took."""
        self._element.set("time", f"{seconds:.3f}")

    def ran_on(self, host: str) -> None:
        """Where it was."""
        self._element.set("hostname", _xml(host))

    def say(self, name: str, value: object) -> None:
        """A property: with what it was."""
        if self._properties is None:
            self._properties = ElementTree.Element("properties")
            self._element.insert(0, self._properties)
        ElementTree.SubElement(self._properties, "property", name=name, value=_xml(str(value)))

    def case(self, name: str) -> Case:
        """The test case of that name."""
        if name not in self.cases:
            element = ElementTree.SubElement(
                self._element, "testcase", classname=_xml(self._classname), name=_xml(name)
            )
            self.cases[name] = Case(element)
        return self.cases[name]

    def write(self, path: Path) -> None:
        """Write the file. UnwrittenError where that can't be."""
        self._element.set("tests", str(len(self.cases)))
        self._element.set("failures", str(sum(case.failed for case in self.cases.values())))
        self._element.set("errors", str(sum(case.errors for case in self.cases.values())))
        self._element.set("skipped", str(sum(case.is_skipped for case in self.cases.values())))
        ElementTree.indent(self._element)
        write_whole(path, ElementTree.tostring(self._element, encoding="utf-8", xml_declaration=True))


class Case:
    """A test case: it passed, where nothing is said of it."""

    def __init__(self, element: ElementTree.Element) -> None:
        self._element = element
        self.failed = False
        self.errors = 0
        self.is_skipped = False

    def failure(self, kind: str, message: str, text: str = "") -> None:
        """It failed."""
        self.failed = True
        self._add("failure", kind, message, text)

    def error(self, kind: str, message: str, text: str = "") -> None:
        """It came to no verdict."""
        self.errors += 1
        self._add("error", kind, message, text)

    def skipped(self, why: str) -> None:
        """It was not looked at; once. Nothing changes where it has failed, or come to no verdict."""
        if not (self.failed or self.errors or self.is_skipped):
            self.is_skipped = True
            ElementTree.SubElement(self._element, "skipped", message=_xml(why))

    def took(self, seconds: float) -> None:
        """How long it took."""
        self._element.set("time", f"{seconds:.3f}")

    def _add(self, name: str, kind: str, message: str, text: str) -> None:
        element = ElementTree.SubElement(self._element, name, type=kind, message=_xml(message))
        element.text = _xml(text) or None


_NO_XML: Final = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that no XML may have, not even as a number: what a scenario is called, or says, may."""


def _xml(text: str) -> str:
    """The text, with what no XML may have as Python writes it."""
    return _NO_XML.sub(lambda found: ascii(found[0])[1:-1], text)


def write_whole(path: Path, data: bytes) -> None:
    """Replace a file in one rename. UnwrittenError where that can't be."""
    draft = path.with_name(f".{path.name}.next")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.write_bytes(data)
        draft.replace(path)
    except OSError as error:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise UnwrittenError(f"{path}: can't be written: {error.strerror}") from error
