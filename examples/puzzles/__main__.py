"""Lists the puzzles, prints one, and marks what was handed in."""

from __future__ import annotations

import argparse
import ast
import inspect
import re
import sys
from pathlib import Path

from examples.hazards.lesson import paragraph
from examples.puzzles import CHAPTERS, PUZZLES, handed_in, puzzle, solutions_of, source_of_solution
from examples.puzzles.stage import Puzzle


def main(arguments: list[str] | None = None) -> int:
    """Do what the command line asks for; the exit status is 1 if a file that was handed in fails."""
    parser = argparse.ArgumentParser(prog="python -m examples.puzzles", description=__doc__)
    parser.add_argument("name", nargs="?", help="which puzzle; none: list them")
    parser.add_argument("files", nargs="*", type=Path, help="mark the class in each of these files; they are run")
    parser.add_argument("--given", action="store_true", help="the class as students get it")
    parser.add_argument("--hint", action="store_true", help="where to look")
    parser.add_argument("--solution", action="store_true", help="a class that holds")
    parser.add_argument("--schedules", type=int, default=500, help="of each run, at most; 500 if not given")
    parser.add_argument("--seed", type=int, default=0, help="of the schedules; 0 if not given")
    asked = parser.parse_args(arguments)
    if asked.name is None:
        _list()
        return 0
    if asked.name not in PUZZLES:
        parser.error(f"there is no puzzle {asked.name!r}: without a name this command lists them")
    item = puzzle(asked.name)
    if asked.given:
        print(_file(item), end="")
    elif asked.hint:
        print(paragraph(item.hint), end="")
    elif asked.solution:
        print(_solution(item), end="")
    elif asked.files:
        marks = [_mark(item, file, asked.schedules, asked.seed) for file in asked.files]
        return int(not all(marks))
    else:
        print(f"{item.title}\n{'=' * len(item.title)}\n\n{paragraph(item.task)}\n{item.skeleton()}")
        print(f"From: {item.source}.\n\nWrite it in a file of your own, and have it marked:\n")
        print(f"    python -m examples.puzzles {item.name} --given > mine.py")
        print(f"    python -m examples.puzzles {item.name} mine.py")
    return 0


def _list() -> None:
    for chapter, about in CHAPTERS.items():
        print(f"{about}\n")
        for item in PUZZLES.values():
            if item.given.__module__.endswith(f".{chapter}"):
                print(f"    {item.name:<26} {item.title}")
        print()


def _file(item: Puzzle) -> str:
    """A file to begin with."""
    text = item.skeleton()
    imports = [f"import {name}\n" for name in ("threading", "time") if re.search(rf"\b{name}\.\w", text)]
    head = "from __future__ import annotations\n\n"
    if "Act" in text or not imports:
        imports += [f"{chr(10) * bool(imports)}from examples.puzzles.monitor import Monitor  # if you like\n"]
        imports += ["from examples.puzzles.stage import Act\n"]
    return f'"""{item.title}: my solution."""\n\n{head}{"".join(imports)}\n\n{text}'


def _solution(item: Puzzle) -> str:
    """A file that holds: the class, and the imports of its module that it needs."""
    text, made = source_of_solution(item.name), solutions_of(item.name)[0]
    module = ast.parse(inspect.getsource(sys.modules[made.__module__]))
    lines = []
    for node in module.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            node.names = [one for one in node.names if re.search(rf"\b{one.asname or one.name}\b", text)]
            lines += [ast.unparse(node)] * bool(node.names)
    name = item.given.__name__
    alias = "" if made.__name__ == name else f"\n\n{name} = {made.__name__}\n"
    return "\n".join(["from __future__ import annotations\n", *lines, "\n", text]) + alias


def _mark(item: Puzzle, file: Path, schedules: int, seed: int) -> bool:
    try:
        results = item.marked(handed_in(item.name, file), schedules=schedules, seed=seed)
    except Exception as error:  # of the file: the next one is marked all the same
        print(f"{file}: {type(error).__name__}: {error}")
        return False
    last = results[-1]
    if last.failure is not None:
        print(f"{file}: run {len(results)} of {len(item.runs)} fails\n\n{last.failure.diagram()}")
    elif last.holds:
        print(f"{file}: holds. {'; '.join(str(result.verdict) for result in results)}")
    else:
        print(f"{file}: {last.verdict}")
    return last.holds


if __name__ == "__main__":
    sys.exit(main())
