"""Every operator has the type it should have, under mypy --strict."""

from __future__ import annotations

from pathlib import Path

import pytest
from mypy import api

FILES = [Path(__file__).with_name("typed.py"), *sorted(Path(__file__).parents[1].glob("declared/*.py"))]


def test_mypy_finds_the_types_that_are_asserted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MYPYPATH", "tests:.")
    strict = ["--strict", "--follow-imports=silent", "--explicit-package-bases"]
    found, faults, status = api.run([*strict, *map(str, FILES)])
    assert status == 0, found + faults
