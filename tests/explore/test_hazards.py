"""The lessons teach what they say, the exercises are broken, and the chapter shows what the lessons print."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from examples.hazards import COURSE, lesson, module_of
from examples.hazards.exercises import batches, merge, promise
from examples.hazards.lesson import Lesson
from explore.answers import ANSWERS
from reactive_runtime.explore import explore

PAGE = Path("docs/hazards.md")


def test_all_lessons_run_one_after_the_other() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "examples.hazards"], capture_output=True, text=True, timeout=90, check=False
    )
    assert done.returncode == 0, done.stderr
    for number, name in enumerate(COURSE, start=1):
        assert f"{number}. {lesson(name).title}\n" in done.stdout
    assert done.stdout.count("─\n✗ ") == len(COURSE)
    assert done.stdout.count("Fixed, under the same exploration: ") == len(COURSE)


@pytest.mark.parametrize("name", COURSE)
def test_a_lesson_runs_alone(name: str) -> None:
    command = [sys.executable, "-m", module_of(name)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "✗" in done.stdout
    assert "The fix: " in done.stdout


@pytest.mark.parametrize("name", COURSE)
def test_a_hazard_is_described_in_two_sentences(name: str) -> None:
    text = " ".join(lesson(name).hazard.split())
    assert text.endswith(".")
    assert text.count(". ") + text.count("; ") in (1, 2), text


def test_the_front_page_shows_what_the_command_prints() -> None:
    failure = explore(lesson("lost_demand").broken).failure
    assert failure is not None
    assert failure.diagram() in Path("docs/index.md").read_text()


EXERCISES: dict[str, Any] = {"batches": batches.SCENARIO, "promise": promise.SCENARIO, "merge": merge.SCENARIO}


@pytest.mark.parametrize("name", EXERCISES)
def test_an_exercise_is_broken_and_its_answer_is_not(name: str) -> None:
    assert not explore(EXERCISES[name]).holds
    explore(ANSWERS[name]).assert_holds()


def chapter() -> str:
    return "\n".join(
        ["<!-- made by the tests: WRITE_DOCS=1 pytest tests/explore/test_hazards.py -->", _HEAD, *_lessons()]
    )


_HEAD = """# Hazards

Fourteen ways to get threads wrong, in the order of a course.
Each has a small program that is broken, and one that is not, in [examples/hazards](../examples/hazards).
`make hazards` prints all of them, and `python -m examples.hazards.streams.lost_demand` prints one.
The diagrams are found by the [explorer](explore.md).
They have a column for each thread, time downwards, and behind each line what it saw or changed.
The sign ▶ marks a switch away from a thread that could have gone on.
The sign ▷ marks one from a thread that had ended or had to wait.
The sign ◆ shows where a thread waits for ever, and ✗ which line raised.

Three exercises without the answer are in [examples/hazards/exercises](../examples/hazards/exercises).
"""


def by_sentence(text: str) -> str:
    """A sentence a line, as pages have them."""
    return re.sub(r"(?<=[.!?]) (?=[A-Z`])", "\n", " ".join(text.split()))


def _lessons() -> list[str]:
    return [_section(number, name, lesson(name)) for number, name in enumerate(COURSE, start=1)]


def _section(number: int, name: str, item: Lesson) -> str:
    failure = item.fails().failure
    assert failure is not None
    path = Path(*module_of(name).split(".")).with_suffix(".py")
    hazard, fix = by_sentence(item.hazard), by_sentence(item.fix)
    return (
        f"## {number}. {item.title}\n\n{hazard}\n\n[{path.name}](../{path})\n\n"
        f"```text\n{failure.diagram()}\n```\n\nThe fix: {fix}\n"
    )


def test_the_chapter_shows_what_is_found_today() -> None:
    text = chapter()
    if os.environ.get("WRITE_DOCS"):
        PAGE.write_text(text)
    assert PAGE.read_text() == text, "run WRITE_DOCS=1 pytest tests/explore/test_hazards.py"
