"""Races found in packages of PyPI: each program fails under the explorer, as it says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from docs._site import finds
from examples.found import FINDS, find, schedule_of

PROGRAM = """
import sys
sys.path[:0] = sys.argv[2:]
from examples.found import find
from reactive_runtime.explore import replay

item = find(sys.argv[1])
for seed in range(5):
    failure = item.explored(seed).failure
    assert failure is not None, seed
    assert failure.message == item.message, failure.message
    assert failure.gil == item.gil, failure.gil
    if seed == 0:
        print(failure.diagram())
again = replay(item.program, failure.token).failure
assert again is not None and again.message == item.message
"""

BY_DAY = "token_bucket"  # the smallest


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == BY_DAY else pytest.mark.nightly) for name in FINDS]
)
def test_a_find_fails_with_each_seed_as_it_says(name: str, tmp_path: Path) -> None:
    """The package is installed into a folder of its own; what this environment has is not touched.

    Its page on the site shows a schedule that was found; WRITE_DOCS=1 writes that of today. What it shows of the
    standard library differs from one Python to the next.
    """
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target"]
    subprocess.run([*pip, str(tmp_path), find(name).package], check=True, timeout=100)
    command = [sys.executable, "-c", PROGRAM, name, str(tmp_path), "."]
    found = subprocess.run(command, check=True, timeout=100, stdout=subprocess.PIPE, text=True).stdout
    if os.environ.get("WRITE_DOCS"):
        schedule_of(name).write_text(found, encoding="utf-8")
    kept = schedule_of(name).read_text(encoding="utf-8")
    for text in (kept, found):
        assert text.splitlines()[-1].startswith("✗ ")
        assert text.splitlines()[-1].endswith(find(name).message)


def test_each_module_is_listed_and_each_find_is_reported_whole() -> None:
    modules = {file.stem.removesuffix("_race") for file in Path("examples/found").glob("*_race.py")}
    assert modules == set(FINDS)
    page = Path("docs/explore.md").read_text()
    for name in FINDS:
        item = find(name)
        assert item.package.count("==") == 1
        assert all([item.promise, item.what, item.mended, item.message])
        row = re.search(rf"^\| {item.package.replace('==', ' ')} \|.*\| (yes|no) \| (yes|no) \|$", page, re.MULTILINE)
        assert row is not None, item.package
        assert row.groups() == ("yes" if item.gil else "no", "yes" if item.counted else "no")


def test_the_page_of_each_find_shows_its_program_and_a_schedule_that_fails_as_it_says() -> None:
    pages = finds.pages()
    assert set(pages) == {"index.md", *(f"{name}.md" for name in FINDS)}
    for name in FINDS:
        item, page = find(name), pages[f"{name}.md"]
        assert f"# {item.package.replace('==', ' ')}: " in page
        assert f"class {item.program.__name__}" in page
        assert f"{item.message}\n```" in page
        assert f"]({name}.md)" in pages["index.md"]
