"""What each hazard is made of, and how it is printed."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import Any

from reactive_runtime.explore import Result, explore

__all__ = ["Lesson"]


@dataclass(frozen=True)
class Lesson:
    """A hazard, a program that has it, and one that does not."""

    title: str
    hazard: str
    """In two sentences."""
    broken: Any
    fixed: Any
    fix: str
    """In one sentence or two."""

    def fails(self, schedules: int = 2_000, seed: int = 0) -> Result:
        """Explore the broken program."""
        return explore(self.broken, schedules=schedules, seed=seed)

    def survives(self, schedules: int = 2_000, seed: int = 0) -> Result:
        """Explore the fixed one in the same way."""
        return explore(self.fixed, schedules=schedules, seed=seed)

    def teach(self, number: int | None = None) -> None:
        """Print the hazard, a schedule that shows it, the fix, and that the fixed program survives."""
        title = self.title if number is None else f"{number}. {self.title}"
        print(f"{title}\n{'=' * len(title)}\n")
        print(_paragraph(self.hazard))
        failure = self.fails().failure
        assert failure is not None, f"{self.title}: the hazard was not found"
        print(failure.diagram())
        print(f"\n{_paragraph('The fix: ' + self.fix)}")
        result = self.survives().assert_holds()
        print(f"Fixed, under the same exploration: {result.verdict}.\n")


def _paragraph(text: str) -> str:
    return textwrap.fill(" ".join(text.split()), 100) + "\n"
