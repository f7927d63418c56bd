"""Exercises: each is a class with one fault.

    python -m examples.hazards.exercises                    what there is
    python -m examples.hazards.exercises tickets            the task, and what the explorer says of the class as it is
    python -m examples.hazards.exercises tickets --hint
    python -m examples.hazards.exercises tickets --solution

Mend the class in its file, `tickets.py`, until the explorer says that it holds. A class that does nothing, and so
breaks nothing, is refused. The solutions are in a folder of their own; there are others.
"""

from __future__ import annotations

import importlib
import inspect

from examples.hazards.exercises.exercise import Exercise

__all__ = ["EXERCISES", "exercise", "solution", "source_of_solution"]

EXERCISES = (
    "tickets",
    "once",
    "account",
    "server",
    "worker",
    "mailbox",
    "transfer",
    "display",
    "bell",
    "promise",
    "batches",
    "merge",
    "countdown",
)
"""Their names, in the order of the lessons: A to F."""


def exercise(name: str) -> Exercise:
    """The exercise of that name."""
    found: Exercise = importlib.import_module(f"examples.hazards.exercises.{name}").EXERCISE
    return found


def solution(name: str) -> type:
    """The class that solves the exercise of that name."""
    found: type = importlib.import_module(f"examples.hazards.exercises.solutions.{name}").SOLUTION
    return found


def source_of_solution(name: str) -> str:
    """The file of the solution."""
    return inspect.getsource(importlib.import_module(f"examples.hazards.exercises.solutions.{name}"))
