"""The notebooks of the lessons are what the lessons say, and run."""

from __future__ import annotations

import os
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from examples.hazards import GROUPS, Group
from examples.hazards.exercises import EXERCISES, exercise, source_of_solution
from examples.hazards.notebooks import FOLDER, path_of, text_of

FIRST, *OTHERS = GROUPS

untyped: Any = nbformat


def ran(notebook: Any) -> Any:
    """The notebook with its outputs; a cell that raises fails the test."""
    NotebookClient(notebook, timeout=60, resources={"metadata": {"path": str(FOLDER)}}).execute()
    return notebook


def shown(cell: Any) -> str:
    """What a cell shows: the text of its result."""
    return "".join(output.data["text/plain"] for output in cell.outputs if output.output_type == "execute_result")


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.folder)
def test_a_notebook_is_made_of_the_lessons_and_the_exercises(group: Group) -> None:
    if os.environ.get("WRITE_DOCS"):
        path_of(group).write_text(text_of(group), encoding="utf-8")
    assert path_of(group).read_text(encoding="utf-8") == text_of(group), "python -m examples.hazards.notebooks"
    untyped.validate(untyped.read(path_of(group), as_version=4))


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.folder)
def test_on_slides_an_answer_stands_on_another_one_than_its_question(group: Group) -> None:
    """What `jupyter nbconvert --to slides` reads of a cell."""
    slides: list[list[str]] = []
    for cell in untyped.read(path_of(group), as_version=4).cells:
        if cell.metadata.slideshow.slide_type == "slide":
            slides.append([])
        slides[-1].append(cell.source)
    asked = [slide for slide in slides if any(source.startswith("**The question:**") for source in slide)]
    assert len(asked) == len(group.lessons)
    for slide in asked:
        assert slide[0].startswith("## ")
        assert not any("taught.fails()" in source or source.startswith("**The fix:**") for source in slide)


@pytest.mark.parametrize(
    "group",
    [FIRST, *(pytest.param(group, marks=pytest.mark.nightly) for group in OTHERS)],
    ids=lambda group: group.folder,
)
def test_a_notebook_runs_and_shows_what_is_found(group: Group) -> None:
    notebook = ran(untyped.read(path_of(group), as_version=4))
    results = {cell.source: cell for cell in notebook.cells if cell.cell_type == "code" and shown(cell)}
    failing = [cell for source, cell in results.items() if source == "taught.fails()" or ".checked(" in source]
    assert failing
    for cell in failing:
        assert " fails after " in shown(cell)
        assert "<figure" in cell.outputs[-1].data["text/html"]


def test_a_class_that_is_mended_in_its_cell_holds() -> None:
    """With the solution in place of the class, for all exercises."""
    cells = [untyped.v4.new_code_cell('import sys\nsys.path.insert(0, "../../..")')]
    for name in EXERCISES:
        cells.append(untyped.v4.new_code_cell(source_of_solution(name)))
        check = f'exercise("{name}").checked({exercise(name).program.__name__}, schedules=200)'
        cells.append(untyped.v4.new_code_cell(f"from examples.hazards.exercises import exercise\n{check}"))
    verdicts = [shown(cell) for cell in ran(untyped.v4.new_notebook(cells=cells)).cells if shown(cell)]
    assert len(verdicts) == len(EXERCISES)
    assert [said for said in verdicts if "exhausted" not in said and "held" not in said] == []
