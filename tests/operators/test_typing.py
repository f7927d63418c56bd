"""Every operator has the type it should have, under mypy --strict."""

from __future__ import annotations

import re
from pathlib import Path

from listing import lists_each
from mypy import api

from reactive_runtime import Flow

FILE = Path(__file__).with_name("typed.py")


def test_mypy_finds_the_types_that_are_asserted() -> None:
    found, faults, status = api.run(["--strict", "--follow-imports=silent", str(FILE)])
    assert status == 0, found + faults


def test_every_method_of_flow_has_its_type_asserted() -> None:
    asserted = set(re.findall(r"\.(\w+)\(", FILE.read_text()))
    public = {name for name in dir(Flow) if not name.startswith("_")}
    lists_each("tests/operators/typed.py", asserted & public, public)
