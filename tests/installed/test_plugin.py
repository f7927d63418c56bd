"""The plugin of pytest costs nothing where it is not used: it imports nothing of the package."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

from installed.environments import ROOT

PLUGIN = "pytest_reactive_runtime"

RUN = """
import sys

class Look:
    def pytest_unconfigure(self):
        print("imported", *sorted(name for name in sys.modules if name.partition(".")[0] == "reactive_runtime"))

import pytest
status = pytest.main(["-q", "-p", "no:cacheprovider", "-p", "pytest_reactive_runtime", "--rootdir", "."], [Look()])
sys.exit(status)
"""


def test_it_is_the_plugin_that_pytest_finds() -> None:
    found = [point.value for point in metadata.entry_points(group="pytest11") if point.name == "reactive_runtime"]
    assert set(found) == {PLUGIN}


def test_it_imports_nothing_of_the_package() -> None:
    code = (
        f"import sys, pytest\nbefore = set(sys.modules)\nimport {PLUGIN}\nprint(*sorted(set(sys.modules) - before))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == [PLUGIN]


def test_a_run_without_the_marker_imports_nothing_of_the_package(tmp_path: Path) -> None:
    assert _run(tmp_path, "def test_it():\n    assert 1 + 1 == 2\n") == []


def test_a_marked_test_imports_the_explorer(tmp_path: Path) -> None:
    marked = "import pytest\n\n@pytest.mark.explore(schedules=2)\ndef test_it():\n    assert 1 + 1 == 2\n"
    assert "reactive_runtime.explore._exploration" in _run(tmp_path, marked)


def _run(folder: Path, test: str) -> list[str]:
    """The modules of the package that a run of this one test has imported."""
    (folder / "test_it.py").write_text(test)
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        capture_output=True, text=True, timeout=60, check=False, cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout
    (imported,) = (line.split()[1:] for line in done.stdout.splitlines() if line.startswith("imported"))
    return imported
