"""Modules that import one another in a circle, type-checking imports counted: at most three of them in one knot.

A knot is a strongly connected component of the graph of imports. To understand one of its modules, a reader has to
know all of them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

PACKAGE = "reactive_runtime"
MOST = 3

KNOWN: dict[str, tuple[int, str]] = {
    "_flow": (52, "each operator returns a Flow, which is made of all operators"),
    "explore._schedule.scheduler": (5, "a task, its states and its carrier name the scheduler, which makes them"),
    "explore._results": (4, "a result draws itself, and the drawings name the result"),
}
"""The knots above `MOST` that are left: one module of each, how many modules it has at most, and the reason."""

Graph = dict[str, set[str]]


def modules(root: Path) -> dict[str, Path]:
    """The files of a package by their dotted names."""
    files = {file: file.relative_to(root.parent).with_suffix("").parts for file in sorted(root.rglob("*.py"))}
    return {".".join(parts[:-1] if parts[-1] == "__init__" else parts): file for file, parts in files.items()}


def imported(name: str, file: Path) -> Iterator[str]:
    """The names that a module imports, by any import statement in it, each with its module."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = name.split(".") if file.name == "__init__.py" else name.split(".")[:-1]
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *filter(None, [node.module])])
            yield from (f"{base}.{alias.name}" for alias in node.names)


@cache
def graph_of(root: Path) -> Graph:
    """Which modules of the package each module imports; `from package import module` imports the module only."""
    known = modules(root)
    graph: Graph = {name: set() for name in known}
    for name, file in known.items():
        for target in imported(name, file):
            parts = target.split(".")
            above = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
            module = next((item for item in above if item in known), name)
            if module != name:
                graph[name].add(module)
    return graph


def knots(graph: Graph) -> list[list[str]]:
    """The strongly connected components of more than one module, by the algorithm of Tarjan."""
    numbers: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(module: str) -> None:
        numbers[module] = lowest[module] = len(numbers)
        stack.append(module)
        for target in sorted(graph[module]):
            if target not in numbers:
                visit(target)
                lowest[module] = min(lowest[module], lowest[target])
            elif target in stack:
                lowest[module] = min(lowest[module], numbers[target])
        if lowest[module] == numbers[module]:
            at = stack.index(module)
            found.append(sorted(stack[at:]))
            del stack[at:]

    for module in sorted(graph):
        if module not in numbers:
            visit(module)
    return sorted(knot for knot in found if len(knot) > 1)


def test_no_knot_has_more_than_three_modules_but_for_those_known() -> None:
    allowed = {f"{PACKAGE}.{module}": most for module, (most, _) in KNOWN.items()}
    found = knots(graph_of(Path(PACKAGE)))
    assert [knot for knot in found if len(knot) > max([MOST, *(allowed.get(module, 0) for module in knot)])] == []


@pytest.mark.parametrize("module", KNOWN)
def test_a_knot_that_was_untied_is_no_longer_known(module: str) -> None:
    sizes = [len(knot) for knot in knots(graph_of(Path(PACKAGE))) if f"{PACKAGE}.{module}" in knot]
    assert max(sizes, default=1) > MOST, f"remove {module} from KNOWN"


def test_knots_are_found_however_modules_import(tmp_path: Path) -> None:
    root = tmp_path / "loops"
    (root / "low").mkdir(parents=True)
    texts = {
        "__init__": "",
        "one": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from loops.two import Two\n",
        "two": "def late():\n    import loops.three\n",
        "three": "from . import one\n",
        "above": "from loops import one, missing\nimport json\n",
        "low/__init__": "from .four import Four\n",
        "low/four": "from loops import low\n",
    }
    for name, text in texts.items():
        (root / f"{name}.py").write_text(text)
    assert knots(graph_of(root)) == [["loops.low", "loops.low.four"], ["loops.one", "loops.three", "loops.two"]]
