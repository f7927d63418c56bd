"""The lessons teach what they say, and the chapter shows what the lessons print."""

from __future__ import annotations

import difflib
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from searching import NIGHT

from examples.found import FINDS
from examples.hazards import COURSE, GROUPS, WORDS, Group, lesson, module_of
from examples.hazards.lesson import LIMIT
from reactive_runtime.explore import Failure, explore

PAGE = Path("docs/hazards.md")
FIRST = COURSE[:1]

FOUND = re.compile(r"python -m examples\.found (\w+)")


@cache
def found(name: str) -> Failure:
    """What the explorer finds in the broken program of a lesson."""
    failure = lesson(name).fails().failure
    assert failure is not None
    return failure


def sentences(text: str) -> list[str]:
    """The sentences of a text; what is in backquotes ends none."""
    bare = re.sub(r"`[^`]*`", "code", " ".join(text.split()))
    return re.split(r"(?<=[.?!])\s+", bare)


# -- what a lesson has ----------------------------------------------------------------------------------------


def test_there_are_at_least_thirty_two_lessons_in_six_groups() -> None:
    assert len(COURSE) >= 32
    assert len(set(COURSE)) == len(COURSE)
    assert [group.letter for group in GROUPS] == list("ABCDEF")
    files = {path.stem for group in GROUPS for path in Path("examples/hazards", group.folder).glob("[a-z]*.py")}
    assert files == set(COURSE)


@pytest.mark.parametrize("name", COURSE)
def test_a_lesson_is_complete(name: str) -> None:
    taught = lesson(name)
    assert len(sentences(taught.hazard)) == 3, sentences(taught.hazard)
    assert taught.question.endswith("?")
    assert taught.and_if
    assert taught.met
    for item in taught.and_if:
        assert item.question.endswith("?")
        assert item.answer.endswith((".", "*."))
    for place in taught.met:
        assert set(FOUND.findall(place.what)) <= set(FINDS)
    kinds = {"atomicity violation", "order violation", "deadlock", "livelock", "starvation", "no race"}
    assert taught.terms[0] in kinds
    assert taught.gil in ("either way", "only without", "one thread")


@pytest.mark.parametrize(
    ("term", "name"),
    [
        ("lost update", "lost_update"),
        ("time of check to time of use (TOCTOU)", "check_then_act"),
        ("write skew", "write_skew"),
        ("this escape", "escaping_this"),
        ("safe publication", "unsafe_publication"),
        ("Coffman's conditions", "lock_order"),
        ("deadlock", "lock_order"),
        ("open call", "calling_out_with_a_lock"),
        ("thread-starvation deadlock", "starved_pool"),
        ("ABA problem", "recycled_subscription"),
    ],
)
def test_the_word_of_the_literature_stands_in_the_lesson(term: str, name: str) -> None:
    assert term in lesson(name).terms


# -- what it shows --------------------------------------------------------------------------------------------


def test_all_lessons_run_one_after_the_other() -> None:
    """Each finds its hazard, its fix holds, and each answer to "And if" is what was found."""
    done = subprocess.run(
        [sys.executable, "-m", "examples.hazards"], capture_output=True, text=True, timeout=180, check=False
    )
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stderr.splitlines() if not line.startswith("explore: rewriting ")] == []
    for number, name in enumerate(COURSE, start=1):
        assert f"{number}. {lesson(name).title}\n" in done.stdout
    assert done.stdout.count("─\n✗ ") == len(COURSE)
    assert done.stdout.count("Fixed, under the same exploration: ") == len(COURSE)
    assert done.stdout.count("\nAnd if ") == sum(len(lesson(name).and_if) for name in COURSE)
    assert done.stdout.count("\nWith a GIL, and without: ") == len(COURSE)
    assert max(len(line) for line in done.stdout.splitlines() if not line.startswith(("✗ ", "http"))) <= 100


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in FIRST else [pytest.mark.nightly]) for name in COURSE]
)
def test_a_lesson_runs_alone(name: str) -> None:
    command = [sys.executable, "-m", module_of(name)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "✗" in done.stdout
    assert "The fix: " in done.stdout


def test_lessons_are_run_by_name() -> None:
    command = [sys.executable, "-m", "examples.hazards"]
    done = subprocess.run([*command, "lost_update"], capture_output=True, text=True, timeout=60, check=True)
    assert "1. Lost update\n" in done.stdout
    assert done.stdout.count("✗") == 1
    wrong = subprocess.run([*command, "lost_updates"], capture_output=True, text=True, timeout=60, check=False)
    assert wrong.returncode == 1
    assert "no lesson is called 'lost_updates'; there are lost_update, " in wrong.stderr


@pytest.mark.parametrize("name", COURSE)
def test_what_is_said_of_a_gil_is_so(name: str) -> None:
    taught = lesson(name)
    assumed = explore(taught.broken, gil="assumed", schedules=2_000 if NIGHT else 200, shrink=False, limit=LIMIT)
    assert assumed.holds == (taught.gil == "only without"), assumed


@pytest.mark.parametrize("name", [name for name in COURSE if lesson(name).gil == "one thread"])
def test_a_lesson_of_one_thread_has_one(name: str) -> None:
    """What is left of the program is one actor; its tasks are tasks of one event loop, or of a pool of one thread."""
    assert len(found(name).program) == 1


@pytest.mark.nightly
@pytest.mark.parametrize("name", COURSE)
def test_a_hazard_is_found_with_each_of_twenty_seeds_and_its_fix_survives_five_thousand_schedules(name: str) -> None:
    taught = lesson(name)
    for seed in range(20):
        assert taught.fails(seed=seed).failure is not None, seed
    verdict = taught.survives(schedules=5_000).assert_holds().verdict
    assert verdict.kind in ("exhausted", "held")
    for item in taught.and_if:
        item.explored(schedules=5_000, seed=1)


def test_the_front_page_shows_what_the_command_prints() -> None:
    assert found("lost_demand").diagram() in Path("docs/index.md").read_text()


# -- the chapter ----------------------------------------------------------------------------------------------


def chapter() -> str:
    head = "<!-- made by the tests: WRITE_DOCS=1 pytest tests/explore/test_hazards.py -->\n" + _HEAD
    return "\n".join(
        [head, *(part for group in GROUPS for part in (_about(group), *map(_section, group.lessons))), _words()]
    )


_HEAD = f"""# Hazards

{len(COURSE)} ways to get threads wrong, in the order of a course.
Each has a small program that is broken, and one that is not, in [examples/hazards](../examples/hazards).
`make show NAME=hazards` prints all of them, and `python -m examples.hazards lost_demand` prints one.
The site has a page for each: with the programs, a question before the answer, and what follows from the fix.
The diagrams are found by the [explorer](explore.md).
They have a column for each thread, time downwards, and behind each line what it saw or changed.
The sign ▶ marks a switch away from a thread that could have gone on.
The sign ▷ marks one from a thread that had ended or had to wait, or from a task that had come to an `await`.
The sign ◆ shows where a thread waits for ever, and ✗ which line raised.
The table at the end explains the words.
Those of the project, such as drain, demand, schedule and preemption, are in the [glossary](glossary.md).
Exercises, each with a hint and a solution, are in [examples/hazards/exercises](../examples/hazards/exercises).
`python -m examples.hazards.exercises` lists them.
"""


def by_sentence(text: str) -> str:
    """A sentence a line, as pages have them."""
    return re.sub(r"(?<=[.!?]) (?=[A-Z`])", "\n", " ".join(text.split()))


def _about(group: Group) -> str:
    return f"## {group.letter}. {group.title}\n\n{by_sentence(group.about)}\n"


def _words() -> str:
    rows = "\n".join(f"| {word} | {meaning} |" for word, meaning in WORDS.items())
    return f"## Words\n\n| word | meaning |\n| --- | --- |\n{rows}\n"


def _section(name: str) -> str:
    item = lesson(name)
    path = Path(*module_of(name).split(".")).with_suffix(".py")
    return (
        f"### {COURSE.index(name) + 1}. {item.title}\n\n{by_sentence(item.hazard)}\n\n[{path.name}](../{path})\n\n"
        f"In the literature: {', '.join(item.terms)}.\n\n"
        f"```text\n{found(name).diagram()}\n```\n\nThe fix: {by_sentence(item.fix)}\n\n"
        f"{by_sentence(item.gil_text)}\n"
    )


def test_the_chapter_shows_what_is_found_today() -> None:
    text = chapter()
    if os.environ.get("WRITE_DOCS"):
        PAGE.write_text(text)
    page, found = (without_lines_of_python(of).splitlines() for of in (PAGE.read_text(), text))
    differs = "\n".join(difflib.unified_diff(page, found, "the page", "found", lineterm="", n=0))
    assert not differs, f"run WRITE_DOCS=1 pytest tests/explore/test_hazards.py\n{differs}"


def without_lines_of_python(text: str) -> str:
    """Lines of the standard library have other numbers in each Python."""
    return re.sub(r"\b(\w+)\.py:\d+", lambda place: place[0] if place[1] in COURSE else f"{place[1]}.py", text)
