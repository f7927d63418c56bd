"""The exercises are broken, their solutions hold, and what looks like a solution, or does nothing, is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from examples.hazards import GROUPS
from examples.hazards.exercises import EXERCISES, __main__, exercise, solution
from explore.wrong_solutions import IDLE, WRONG
from reactive_runtime.explore import explore

SEEDS = range(5)

FOLDER = Path("examples/hazards/exercises")


def accepted(name: str, handed_in: type) -> list[int]:
    """The seeds with which the check finds nothing."""
    scenario = exercise(name).check(handed_in)
    return [seed for seed in SEEDS if explore(scenario, seed=seed, shrink=False).failure is None]


def test_each_group_has_an_exercise_and_there_are_ten() -> None:
    assert [exercise(name).group for name in EXERCISES] == sorted(exercise(name).group for name in EXERCISES)
    assert {exercise(name).group for name in EXERCISES} == {group.letter for group in GROUPS}
    assert len(EXERCISES) >= 10


@pytest.mark.parametrize("name", EXERCISES)
def test_what_signals_to_a_subscriber_belongs_to_the_group_of_reactive_streams(name: str) -> None:
    """The groups before it need nothing that it explains."""
    assert (exercise(name).group == "F") == ("on_next" in (FOLDER / f"{name}.py").read_text())


def test_each_file_is_an_exercise_with_a_solution() -> None:
    further = {"__init__", "__main__", "exercise"}
    assert {file.stem for file in FOLDER.glob("*.py")} - further == set(EXERCISES)
    assert {file.stem for file in (FOLDER / "solutions").glob("*.py")} - further == set(EXERCISES)
    assert set(WRONG) == set(IDLE) == set(EXERCISES)


@pytest.mark.parametrize("name", EXERCISES)
def test_an_exercise_is_broken_with_every_seed(name: str) -> None:
    assert accepted(name, exercise(name).program) == []


@pytest.mark.parametrize("name", EXERCISES)
def test_the_solution_holds(name: str) -> None:
    result = exercise(name).checked(solution(name)).assert_holds()
    assert result.verdict.kind == "exhausted" or result.schedules == 2_000
    assert result.notes == []


@pytest.mark.parametrize(("name", "handed_in"), [(name, item) for name, items in WRONG.items() for item in items])
def test_what_looks_like_a_solution_is_refused(name: str, handed_in: type) -> None:
    assert accepted(name, handed_in) == []


@pytest.mark.parametrize("name", EXERCISES)
def test_what_delivers_nothing_is_refused(name: str) -> None:
    assert accepted(name, IDLE[name]) == []


def test_the_command_lists_the_exercises(capsys: pytest.CaptureFixture[str]) -> None:
    assert __main__.main([]) == 0
    assert [line.split()[:2] for line in capsys.readouterr().out.splitlines()] == [
        [exercise(name).group, name] for name in EXERCISES
    ]


def test_the_command_gives_the_task_and_what_the_explorer_says(capsys: pytest.CaptureFixture[str]) -> None:
    assert __main__.main(["tickets"]) == 1
    said = capsys.readouterr().out
    assert "✗ invariant: there was one ticket, and 2 were sold" in said
    assert "Mend it in tickets.py" in said


def test_the_command_gives_a_hint_and_the_solution(capsys: pytest.CaptureFixture[str]) -> None:
    assert __main__.main(["tickets", "--hint"]) == 0
    assert "between them?" in capsys.readouterr().out
    assert __main__.main(["tickets", "--solution"]) == 0
    assert capsys.readouterr().out == (FOLDER / "solutions" / "tickets.py").read_text()


def test_the_command_says_that_a_mended_class_holds(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    mended = replace(exercise("tickets"), program=solution("tickets"))
    monkeypatch.setattr("examples.hazards.exercises.tickets.EXERCISE", mended)
    assert __main__.main(["tickets"]) == 0
    assert capsys.readouterr().out.endswith("It holds.\n")
