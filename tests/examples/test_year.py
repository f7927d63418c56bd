"""The notebook on a year is made of its cells, runs, and finds what is planted; the picture of the page is taken."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from examples.year import picture
from examples.year.made_year import commit_of, date_of
from examples.year.notebook import NOTEBOOK, text_of_notebook

untyped: Any = nbformat


def shown(cell: Any) -> str:
    """The text of the cell's result."""
    return "".join(output.data["text/plain"] for output in cell.outputs if output.output_type == "execute_result")


def test_the_notebook_is_made_of_the_cells() -> None:
    if os.environ.get("WRITE_DOCS"):
        NOTEBOOK.write_text(text_of_notebook(), encoding="utf-8")
    assert NOTEBOOK.read_text(encoding="utf-8") == text_of_notebook(), "python -m examples.year.notebook"
    untyped.validate(untyped.read(NOTEBOOK, as_version=4))


def test_the_notebook_runs_and_finds_what_is_planted() -> None:
    notebook = untyped.read(NOTEBOOK, as_version=4)
    NotebookClient(notebook, timeout=100, resources={"metadata": {"path": str(NOTEBOOK.parent)}}).execute()
    tables = [shown(cell) for cell in notebook.cells if cell.cell_type == "code" and shown(cell)]
    (began,) = [table for table in tables if "one of them" in table]
    expected = [(60, "group_by", 2), (40, "replay", 12), (20, "merge", 1)]
    assert len({line.split()[0] for line in began.splitlines() if line.startswith("20")}) == len(expected), began
    lines = began.splitlines()[2 : 2 + len(expected)]  # further columns are below
    for line, (night, scenario, machines) in zip(lines, expected, strict=True):
        assert line.split()[:3] == [date_of(night), commit_of(night), scenario]
        assert int(line.split()[4]) == machines
    assert sum("0.99" in table for table in tables) == 1


def test_the_picture_is_taken_in_chromium(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("chromium") is None:
        pytest.skip("there is no chromium on the PATH (Debian: apt-get install chromium)")
    monkeypatch.setattr(picture, "made_year", a_short_year)
    picture.main(str(tmp_path / "year.png"))
    assert (tmp_path / "year.png").read_bytes().startswith(b"\x89PNG")


def a_short_year(planted: Any) -> Any:
    """A short year: the long one takes seconds."""
    from examples.year.made_year import made_year

    return made_year(planted, machines=10, nights=100)
