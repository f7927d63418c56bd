"""Puzzles of synchronization, marked by the explorer: from the Little Book of Semaphores and The Deadlock Empire.

    python -m examples.puzzles                              what there is
    python -m examples.puzzles barrier                      the task, and the class as you get it
    python -m examples.puzzles barrier --given > mine.py    the class in a file of your own
    python -m examples.puzzles barrier mine.py              marks it; several files are marked one after the other
    python -m examples.puzzles barrier --hint
    python -m examples.puzzles barrier --solution

Write the class, and keep its name and its methods. Each method gets functions: the acts that it has to call. The tasks
are in this project's words; the book and the game have their own.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import Any

from examples.puzzles.stage import Puzzle, source_of

__all__ = ["CHAPTERS", "ELSEWHERE", "PUZZLES", "handed_in", "puzzle", "solutions_of", "source_of_solution"]

CHAPTERS = {
    "signals": "Signals: threads that wait for each other",
    "classics": "Classics: buffers, readers and writers, philosophers, smokers",
    "shops": "Shops: a pot, barbershops, Santa Claus, water, a boat, roller coasters",
    "rooms": "Rooms: those that only some may use at the same time",
    "halls": "Halls: a party, a bus, a court, tables",
    "levels": "Levels: classes that look right, to be mended",
}
"""Modules with puzzles, in order, with what they are about."""

PUZZLES: dict[str, Puzzle] = {
    item.name: item for name in CHAPTERS for item in importlib.import_module(f"examples.puzzles.{name}").PUZZLES
}
"""By name, in order."""

ELSEWHERE = {
    "Deadlock Empire: tutorial, non-atomic instructions": "lost_update",
    "Deadlock Empire: boolean flags": "spin_lock",
    "Deadlock Empire: simple counter": "lost_update",
    "Deadlock Empire: confused counter": "lost_update",
    "Deadlock Empire: critical section": "lock_order",
    "Deadlock Empire: insufficient lock": "check_then_act",
    "Deadlock Empire: deadlock": "lock_order",
    "Deadlock Empire: producer-consumer, the variant": "check_then_act",
    "Deadlock Empire: condition variables": "if_instead_of_while",
    "Little Book: concurrent writes and updates": "lost_update",
}
"""Further names of the book and the game, with the lesson that is about them."""


def puzzle(name: str) -> Puzzle:
    """The puzzle of that name; KeyError where there is none."""
    if name not in PUZZLES:
        raise KeyError(f"no puzzle is called {name!r}; there are {', '.join(PUZZLES)}")
    return PUZZLES[name]


def solutions_of(name: str) -> list[type[Any]]:
    """Classes that solve it; the first is the one to show."""
    found: list[type[Any]] = _module(name).SOLUTIONS[name]
    return found


def source_of_solution(name: str) -> str:
    """The text of the first of them, with the classes of the same file that it is made of."""
    return source_of(solutions_of(name)[0])


def handed_in(name: str, file: Path) -> type[Any]:
    """The class that solves the puzzle, from a file of a student. The file is run.

    Raises:
        AttributeError: The file has no class of that name.
    """
    module_name = f"handed_in_{name}_{abs(hash(file.resolve()))}"
    spec = importlib.util.spec_from_file_location(module_name, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is no file of Python: its name has to end with .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module  # the explorer looks into modules that are imported
    spec.loader.exec_module(module)
    wanted = puzzle(name).given.__name__
    if not isinstance(found := getattr(module, wanted, None), type):
        raise AttributeError(f"{file} has no class {wanted}: keep the name that --given prints")
    return found


def _module(name: str) -> Any:
    chapter = puzzle(name).given.__module__.rpartition(".")[2]
    return importlib.import_module(f"examples.puzzles.solutions.{chapter}")
