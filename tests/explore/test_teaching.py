"""The tables of the teacher's page are what the lessons and the exercises say."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

from tck.page import table_is

from examples.hazards import COURSE, GROUPS, group_of, lesson, module_of
from examples.hazards.avoided import AVOIDED
from examples.hazards.exercises import EXERCISES, exercise
from examples.puzzles import PUZZLES
from reactive_runtime import Flow
from reactive_runtime.rules import RULES

PAGE = Path("docs/teaching.md")

MAP = Path("docs/hazard-map.md")

NEEDS = {
    "A": "threads, a lock",
    "B": "A",
    "C": "A, and a condition",
    "D": "A",
    "E": "A",
    "F": "A to D, and the tutorial",
}
"""By group."""

AWAITS = {"check_await_act", "lost_by_cancelling", "lock_across_await", "unread_exception"}
"""Lessons that need asyncio."""


def first_sentence(text: str) -> str:
    return re.split(r"(?<=[.?!])\s", " ".join(text.split()))[0]


def minutes(name: str) -> int:
    """What the page says of them: with one thread, or one event loop, there is less to choose."""
    return 13 - 5 * (lesson(name).gil == "one thread") + 2 * len(lesson(name).and_if)


def shown(name: str) -> str:
    """What the explorer says of the schedule that it finds."""
    failure = lesson(name).fails().failure
    assert failure is not None
    assert "`" not in failure.message
    assert "|" not in failure.message
    return failure.message


def test_the_table_of_the_course_is_what_the_lessons_say() -> None:
    rows = []
    for name in COURSE:
        letter = group_of(name).letter
        needs = NEEDS[letter] + (", and asyncio" if name in AWAITS else "")
        title = f"[{lesson(name).title}](lessons/{name}.md)"
        rows.append(f"| {title} | {letter} | {minutes(name)} | {needs} | `{shown(name)}` |")
    table_is("the course", rows, PAGE)


def test_the_lessons_that_need_asyncio_are_those_that_import_it() -> None:
    sources = {name: Path(f"{module_of(name).replace('.', '/')}.py").read_text() for name in COURSE}
    assert {name for name, source in sources.items() if "import asyncio" in source} == AWAITS


def test_the_table_of_the_exercises_is_what_they_say() -> None:
    rows = [
        f"| `{name}`: {exercise(name).title} | {exercise(name).group} | {first_sentence(exercise(name).task)} |"
        for name in EXERCISES
    ]
    table_is("the exercises", rows, PAGE)


def linked(name: str) -> str:
    """A name that avoids a hazard, with its page in the reference."""
    if "." not in name:
        assert callable(getattr(Flow, name))
        return f"[`{name}`](reference/flow/{name}.rst)"
    module, _, member = name.rpartition(".")
    assert member in importlib.import_module(f"reactive_runtime.{module}").__all__
    return f"[`{member}`](reference/{module}.rst)"


def practised(name: str) -> str:
    """The puzzles of a lesson."""
    return ", ".join(f"`{item.name}`" for item in PUZZLES.values() if item.lesson == name)


def test_the_map_has_every_lesson_with_its_rule_and_what_avoids_it() -> None:
    assert list(AVOIDED) == list(COURSE)
    rows = []
    for name, (rule, by, how) in AVOIDED.items():
        taught = lesson(name)
        assert not rule or rule in RULES
        title = f"[{taught.title}](lessons/{name}.md)"
        rows.append(f"| {title} | {taught.terms[0]} | {rule} | {linked(by)} | {how} | {practised(name)} |")
    table_is("the map", rows, MAP)


def test_a_lesson_that_names_a_rule_has_it_in_the_map() -> None:
    named = {name: rule for name in COURSE if (rule := getattr(lesson(name).broken, "rule", ""))}
    assert len(named) >= 7
    assert {name: AVOIDED[name].rule for name in named} == named


def test_the_map_explains_its_rules() -> None:
    used = {item.rule for item in AVOIDED.values()} - {""}
    rows = [f"| {rule} | {RULES[rule]} |" for rule in RULES if rule in used]
    table_is("the rules of the map", rows, MAP)
    assert all(AVOIDED[name].rule or name == "recycled_subscription" for name in GROUPS[-1].lessons)
