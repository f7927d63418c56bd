"""What a lesson is made of, and how it is printed.

hazard      what goes wrong, in three sentences
broken      a small program that has it
question    what the student answers before the answer is shown
fix, fixed  how it is put right, and the program put right
and_if      what a student asks next: each answer is a program that is run
met         where it was met for real
gil         whether it can happen with a GIL
"""

from __future__ import annotations

import shutil
import textwrap
from dataclasses import dataclass
from typing import Any, Final, Literal

from reactive_runtime.explore import Result, explore

__all__ = ["GIL", "AndIf", "Gil", "Lesson", "Met", "paragraph"]

Gil = Literal["either way", "only without", "one thread"]

GIL: Final[dict[Gil, str]] = {
    "either way": "It happens with a GIL and without one, on every CPython.",
    "only without": "With a GIL it does not happen from CPython 3.10 on: since then (python/cpython#18334) threads "
    "change at calls and where a loop goes round, and here is neither in between. It happens up to 3.9, and without a "
    "GIL (3.13t and later).",
    "one thread": "A GIL makes no difference: one thread is enough.",
}
"""What is said of each. The tests explore each broken program with a GIL assumed, and compare."""

LIMIT: Final = 1_000
"""Steps of a schedule, at most: no lesson needs more, and a livelock is drawn sooner."""


@dataclass(frozen=True, kw_only=True)
class AndIf:
    """A question that the fix raises."""

    question: str
    """What follows `And if`: "the counter were atomic?"."""
    answer: str
    program: Any
    """Shows it."""
    fails: bool
    """What is found when it is explored."""

    def explored(self, schedules: int | None = None, seed: int = 0) -> Result:
        """Run it; AssertionError where the answer is wrong."""
        schedules = schedules or (2_000 if self.fails else 100)
        result = explore(self.program, schedules=schedules, seed=seed, limit=LIMIT)
        assert result.holds != self.fails, f"And if {self.question} {result}"
        return result


@dataclass(frozen=True, kw_only=True)
class Met:
    """Where the hazard was met for real, or who has described it."""

    what: str
    where: str
    """An address, or a title with its year."""


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """A hazard, a program that has it, and one that does not."""

    title: str
    terms: tuple[str, ...]
    """What the literature calls it; the first is the kind of fault, as Lu and others have it."""
    hazard: str
    """In three sentences."""
    broken: Any
    question: str
    """What a student thinks about before the answer is shown."""
    fixed: Any
    fix: str
    """In one sentence or two."""
    and_if: tuple[AndIf, ...]
    met: tuple[Met, ...]
    gil: Gil
    gil_note: str = ""
    """What is to be said of this lesson alone."""

    def fails(self, schedules: int = 2_000, seed: int = 0) -> Result:
        """Explore the broken program."""
        return explore(self.broken, schedules=schedules, seed=seed, limit=LIMIT)

    def survives(self, schedules: int = 500, seed: int = 0) -> Result:
        """Explore the fixed one in the same way."""
        return explore(self.fixed, schedules=schedules, seed=seed, limit=LIMIT)

    def teach(self, number: int | None = None) -> None:
        """Print the lesson: hazard, question, a schedule that shows it, the fix, and what is asked next."""
        title = self.title if number is None else f"{number}. {self.title}"
        print(f"{title}\n{'=' * len(title)}\n")
        print(paragraph(f"In the literature: {', '.join(self.terms)}."))
        print(paragraph(self.hazard))
        print(paragraph(f"The question: {self.question}"))
        failure = self.fails().failure
        assert failure is not None, f"{self.title}: the hazard was not found"
        print(failure.diagram(width=_width()))
        print(f"\n{paragraph('The fix: ' + self.fix)}")
        result = self.survives().assert_holds()
        print(f"Fixed, under the same exploration: {result.verdict}.\n")
        for item in self.and_if:
            verdict = item.explored().verdict
            print(paragraph(f"And if {item.question} {item.answer} Explored: {verdict}."))
        print(paragraph(f"With a GIL, and without: {self.gil_text}"))
        for place in self.met:
            print(paragraph(f"Met for real: {place.what} {place.where}"))

    @property
    def gil_text(self) -> str:
        """Whether it can happen with a GIL, and from which CPython on."""
        return f"{GIL[self.gil]} {self.gil_note}".rstrip()


def paragraph(text: str) -> str:
    """A text in lines that fit into the terminal, and an empty line."""
    return textwrap.fill(" ".join(text.split()), _width(), break_long_words=False, break_on_hyphens=False) + "\n"


def _width() -> int:
    return max(40, min(100, shutil.get_terminal_size((100, 24)).columns))
