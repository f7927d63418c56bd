"""Each puzzle's solution holds; the class as it is given fails, and so does each wrong solution, for its reason."""

from __future__ import annotations

import importlib
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from searching import NIGHT, by_day
from tck.page import table_is

from examples.hazards import COURSE, lesson
from examples.puzzles import (
    CHAPTERS,
    ELSEWHERE,
    PUZZLES,
    __main__,
    handed_in,
    puzzle,
    solutions_of,
)

SCHEDULES = int(os.environ.get("EXPLORE_SCHEDULES", "40"))
"""Of each run with a solution; nightly 5,000."""

SEEDS = range(20) if NIGHT else range(1)

FOUND_WITHIN = 500 if NIGHT else 200
"""Schedules of each run, within which a wrong solution fails."""

PAGE = Path("docs/puzzles.md")

WRONG: dict[str, list[tuple[type[Any], str]]] = {}
for chapter in CHAPTERS:
    WRONG.update(importlib.import_module(f"explore.wrong_puzzles.{chapter}").WRONG)

BOOK = """serialization; rendezvous; mutex; multiplex; barrier; turnstile; reusable barrier; preloaded turnstile; queue;
exclusive queue; FIFO queue; producer-consumer; finite buffer; readers-writers; no-starve readers-writers;
writer-priority readers-writers; no-starve mutex; dining philosophers; Tanenbaum's solution; cigarette smokers;
generalized smokers; dining savages; barbershop; FIFO barbershop; Hilzer's barbershop; Santa Claus; building H2O;
river crossing; roller coaster; multi-car roller coaster; search-insert-delete; unisex bathroom;
no-starve unisex bathroom; baboon crossing; Modus Hall; sushi bar; child care; extended child care; room party;
Senate bus; Faneuil Hall; extended Faneuil Hall; dining hall; extended dining hall"""

GAME = """tutorial; boolean flags; simple counter; confused counter; critical section; insufficient lock; deadlock;
a more complex thread; manual-reset event; countdown event; countdown event revisited; the barrier; semaphores;
producer-consumer; producer-consumer, the variant; condition variables; dragonfire; triple danger; boss fight"""


def parts(source: str) -> set[tuple[str, str]]:
    """The book or the game, with each name that a puzzle has there."""
    found = set()
    for text in source.split("; "):
        place, _, names = text.partition(": ")
        found |= {(place, name) for name in [names, *names.split(", "), names.partition(" (")[0]]}
        found |= {(place, name) for name in names.split(" and ")}
    return found


def test_every_puzzle_of_the_book_and_every_level_of_the_game_is_there() -> None:
    there = set().union(*(parts(source) for source in [*ELSEWHERE, *(item.source for item in PUZZLES.values())]))
    wanted = {
        (place, " ".join(name.split()))
        for place, names in (("Little Book", BOOK), ("Deadlock Empire", GAME))
        for name in names.split(";")
    }
    assert wanted - there == set()
    assert set(ELSEWHERE.values()) <= set(COURSE)


def test_each_puzzle_has_a_solution_and_two_wrong_ones() -> None:
    assert set(WRONG) == set(PUZZLES)
    for name, item in PUZZLES.items():
        assert solutions_of(name)
        assert len(WRONG[name]) >= 2, name
        assert all(reason for _, reason in WRONG[name]), name
        assert not item.lesson or item.lesson in COURSE
        assert item.task.endswith(".")
        assert item.hint.endswith((".", "?"))


def refused(name: str, program: type[Any], reason: str) -> None:
    """It fails, and with each further seed the same run does."""
    item = puzzle(name)
    for seed in SEEDS:
        results = item.marked(program, schedules=FOUND_WITHIN, seed=seed, shrink=False)
        item = replace(item, runs=item.runs[len(results) - 1 : len(results)])
        last = results[-1]
        assert last.failure is not None, f"{program.__name__} was accepted with seed {seed}"
        assert any(part in last.failure.message for part in reason.split("|")), last.failure.message


@pytest.mark.parametrize("name", by_day(6, PUZZLES))
def test_the_solutions_hold(name: str) -> None:
    for program in solutions_of(name):
        for seed in SEEDS:
            results = puzzle(name).marked(program, schedules=SCHEDULES // len(SEEDS) or 1, seed=seed)
            assert len(results) == len(puzzle(name).runs)
            for result in results:
                result.assert_holds()
                assert result.verdict.kind in ("exhausted", "held")
                assert result.not_looked_into == []


@pytest.mark.parametrize("name", by_day(6, PUZZLES))
def test_the_class_as_it_is_given_is_refused(name: str) -> None:
    refused(name, puzzle(name).given, "")


@pytest.mark.parametrize(
    ("name", "program", "reason"), by_day(8, [(name, *case) for name, cases in WRONG.items() for case in cases])
)
def test_a_wrong_solution_is_refused_for_its_reason(name: str, program: type[Any], reason: str) -> None:
    refused(name, program, reason)


def test_a_file_that_holds_is_accepted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert __main__.main(["signal", "--solution"]) == 0
    file = tmp_path / "mine.py"
    file.write_text(capsys.readouterr().out)
    assert __main__.main(["signal", str(file)]) == 0
    assert (
        capsys.readouterr().out == f"{file}: holds. {puzzle('signal').marked(handed_in('signal', file))[0].verdict}\n"
    )


@pytest.mark.parametrize("name", by_day(6, PUZZLES))
def test_a_solution_that_is_printed_is_a_whole_file(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert __main__.main([name, "--solution"]) == 0
    file = tmp_path / "mine.py"
    file.write_text(capsys.readouterr().out)
    assert __main__.main([name, str(file), "--schedules", "3"]) == 0


def test_files_are_marked_one_after_the_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert __main__.main(["signal", "--given"]) == 0
    given = tmp_path / "given.py"
    given.write_text(capsys.readouterr().out)
    other = tmp_path / "other.py"
    other.write_text("class Signals: pass\n")
    raises = tmp_path / "raises.py"
    raises.write_text("import threading\n\nlock = threading.Look()\n")
    unmade = tmp_path / "unmade.py"
    unmade.write_text("class Signal:\n    def __init__(self):\n        self.semaphore = Semaphore(0)\n")
    files = [given, other, raises, unmade, tmp_path / "none.py"]
    assert __main__.main(["signal", *map(str, files)]) == 1
    said = capsys.readouterr().out
    assert "raises.py: AttributeError: module 'threading' has no attribute 'Look'" in said
    assert "unmade.py: ScenarioError: the set-up of Signal raised NameError: name 'Semaphore' is not defined" in said
    assert "given.py: run 1 of 1 fails\n" in said
    assert "✗ invariant: not in the order early, late: late, early" in said
    assert "other.py has no class Signal: keep the name that --given prints" in said
    assert "none.py" in said.splitlines()[-1]


@pytest.mark.parametrize("name", PUZZLES)
def test_a_file_to_begin_with_is_the_class_as_it_is_given(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert __main__.main([name, "--given"]) == 0
    file = tmp_path / "mine.py"
    file.write_text(capsys.readouterr().out)
    assert handed_in(name, file).__name__ == puzzle(name).given.__name__


def test_the_command_lists_prints_hints_and_solves(capsys: pytest.CaptureFixture[str]) -> None:
    assert __main__.main([]) == 0
    listed = capsys.readouterr().out
    assert [name for name in PUZZLES if f"    {name} " not in listed] == []
    for arguments, wanted in (
        (["water"], "python -m examples.puzzles water mine.py"),
        (["water", "--hint"], "shut the door"),
        (["water", "--solution"], "class Water(Monitor):"),
    ):
        assert __main__.main(arguments) == 0
        assert wanted in capsys.readouterr().out


def test_the_page_has_every_puzzle() -> None:
    rows = []
    for name, item in PUZZLES.items():
        about = f"[{lesson(item.lesson).title}](lessons/{item.lesson}.md)" if item.lesson else ""
        rows.append(f"| `{name}` | {item.task} | {item.source} | {about} |")
    table_is("the puzzles", rows, PAGE)
    table_is(
        "the rest",
        [f"| {source} | [{lesson(name).title}](lessons/{name}.md) |" for source, name in ELSEWHERE.items()],
        PAGE,
    )
