"""Notebooks: one a group of lessons, made of the lessons and the exercises.

`python -m examples.hazards.notebooks` writes them anew. They run in a clone, in Jupyter or in an editor that has it.
Each cell says whether a slide begins with it: `jupyter nbconvert --execute --to slides a_atomicity.ipynb` makes slides.
"""

from __future__ import annotations

import ast
import inspect
import json
import sys
from pathlib import Path
from typing import Any, Final

from examples.hazards import GROUPS, Group, lesson, module_of
from examples.hazards.exercises import EXERCISES, exercise

__all__ = ["FOLDER", "notebook", "path_of", "text_of"]

FOLDER: Final = Path(__file__).parent

_BEGIN: Final = """\
import inspect
import sys

sys.path.insert(0, "../../..")  # the clone

from examples.hazards import lesson
from examples.hazards.exercises import exercise
"""


def path_of(group: Group) -> Path:
    """The file of a group's notebook."""
    return FOLDER / f"{group.letter.lower()}_{group.folder}.ipynb"


def text_of(group: Group) -> str:
    """What is in that file."""
    return json.dumps(notebook(group), indent=1, ensure_ascii=False) + "\n"


def notebook(group: Group) -> dict[str, Any]:
    """The notebook of a group, without outputs."""
    cells = [
        _said(f"# {group.letter}. {group.title}\n\n{_flat(group.about)}", slide=True),
        _said("Run a cell with Shift+Enter. Think about each question before you run the cell below it."),
        _run(_BEGIN),
    ]
    for name in group.lessons:
        cells += _lesson(name)
    for name in EXERCISES:
        if exercise(name).group == group.letter:
            cells += _exercise(name)
    for number, cell in enumerate(cells):
        cell["id"] = f"{group.letter.lower()}-{number}"
    about = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return {"cells": cells, "metadata": about, "nbformat": 4, "nbformat_minor": 5}


def _lesson(name: str) -> list[dict[str, Any]]:
    taught = lesson(name)
    return [
        _said(
            f"## {taught.title}\n\n{_flat(taught.hazard)}\n\nThe whole lesson: `python -m {module_of(name)}`",
            slide=True,
        ),
        _run(f'taught = lesson("{name}")\nprint(inspect.getsource(taught.broken))'),
        _said(f"**The question:** {_flat(taught.question)}"),
        _run("taught.fails()", slide=True),  # the answer is not on the slide of the question
        _said(f"**The fix:** {_flat(taught.fix)}", slide=True),
        _run("print(inspect.getsource(taught.fixed))\ntaught.survives()"),
    ]


def _exercise(name: str) -> list[dict[str, Any]]:
    item = exercise(name)
    return [
        _said(f"## Exercise: {item.title}\n\n{_flat(item.task)} Mend the class in the next cell.", slide=True),
        _run(_source_of(item.program)),
        _run(f'exercise("{name}").checked({item.program.__name__})', slide=True),
        _said(f"<details><summary>A hint</summary>{_flat(item.hint)}</details>"),
    ]


def _source_of(program: type[Any]) -> str:
    """The class, those before it in its file, and what they import."""
    module = sys.modules[program.__module__]
    text = inspect.getsource(module)
    classes, imports = [], []
    for node in ast.parse(text).body:
        if isinstance(node, ast.ClassDef):
            classes.append(ast.get_source_segment(text, node) or "")
            if node.name == program.__name__:
                break
        elif isinstance(node, ast.Import | ast.ImportFrom):
            imports.append(node)
    body = "\n\n\n".join(classes)
    names = {node.id for part in classes for node in ast.walk(ast.parse(part)) if isinstance(node, ast.Name)}
    kept = []
    for node in imports:
        used = [item for item in node.names if (item.asname or item.name) in names or item.name == "annotations"]
        if used:
            node.names = used
            kept.append(ast.unparse(node))
    return "\n".join(kept) + f"\n\n\n{body}"


def _said(text: str, *, slide: bool = False) -> dict[str, Any]:
    return {"cell_type": "markdown", "id": "", "metadata": _begins(slide), "source": text.splitlines(keepends=True)}


def _run(code: str, *, slide: bool = False) -> dict[str, Any]:
    lines = code.rstrip().splitlines(keepends=True)
    about = _begins(slide)
    return {"cell_type": "code", "execution_count": None, "id": "", "metadata": about, "outputs": [], "source": lines}


def _begins(slide: bool, /) -> dict[str, Any]:
    return {"slideshow": {"slide_type": "slide" if slide else "-"}}


def _flat(text: str) -> str:
    return " ".join(text.split())


def write() -> None:
    """Write all of them."""
    for group in GROUPS:
        path_of(group).write_text(text_of(group), encoding="utf-8")
