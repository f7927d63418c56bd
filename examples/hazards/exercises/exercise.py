"""What an exercise is made of, and how it is checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from reactive_runtime.explore import Result, explore

__all__ = ["Exercise"]


@dataclass(frozen=True)
class Exercise:
    """A class with one fault, to be mended, and the program of threads that shows whether it still has it."""

    title: str
    group: str
    """The letter of the lessons that it belongs to."""
    task: str
    """What the class promises, and what may stay as it is."""
    hint: str
    program: type[Any]
    """The class that is to be mended."""
    check: Callable[[type[Any]], Any]
    """Makes the scenario of a class: of the one that is to be mended, or of a solution."""

    def checked(self, program: type[Any] | None = None, *, schedules: int = 2_000, seed: int = 0) -> Result:
        """Explore the class as it stands, or another in its place."""
        return explore(self.check(program or self.program), schedules=schedules, seed=seed)
