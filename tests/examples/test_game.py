"""`explore --play` in the terminal, played through once."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest
from rich.console import Console
from textual.widgets import Static

from examples.hazards import lesson
from reactive_runtime._cli.play import Game
from reactive_runtime.explore._playing import Play


def shown(game: Game, name: str) -> str:
    """The text of a part of the screen."""
    console = Console(width=100)
    with console.capture() as capture:
        console.print(game.query_one(f"#{name}", Static).content)
    return capture.get()


def test_a_lesson_is_played_through_with_a_step_back_and_the_explorers_schedule() -> None:
    game = Game(Play(lesson("lost_update").broken))

    async def played() -> None:
        async with game.run_test(size=(100, 30)) as pilot:
            assert "you are the scheduler" in shown(game, "task")
            assert "(load self.count)" in shown(game, "next")
            await pilot.press("1", "1")
            assert "store 1" in shown(game, "rows")
            assert "a: has ended" in shown(game, "next")
            await pilot.press("u")  # the other order
            assert "store 1" not in shown(game, "rows")
            await pilot.press("2", "1", "2")
            assert game.play.position.outcome == "failed"
            assert "✗ invariant: two were added, and the count is 1. Found, in 4 steps" in shown(game, "outcome")
            await pilot.press("1")  # it has ended: nothing happens
            assert len(game.play.position.moves) == 4
            await pilot.press("r", "1", "1", "2", "2")
            assert "all holds" in shown(game, "outcome")
            assert "the explorer's schedule" not in shown(game, "rows")
            await pilot.press("e")
            assert "the explorer's schedule" in shown(game, "rows")
            await pilot.press("e", "q")

    asyncio.run(played())


def test_where_the_explorer_finds_nothing_the_game_says_so() -> None:
    game = Game(Play(lesson("lost_update").fixed))

    async def opened() -> None:
        async with game.run_test(size=(100, 30)):
            assert "the explorer has found no schedule that fails: exhausted" in " ".join(shown(game, "task").split())

    asyncio.run(opened())


def test_where_there_is_one_thread_there_is_nothing_to_choose() -> None:
    game = Game(Play(lesson("unbounded_recursion").broken))

    async def opened() -> None:
        async with game.run_test(size=(100, 30)):
            assert "there is nothing to choose" in shown(game, "task")
            assert "✗" in shown(game, "outcome")

    asyncio.run(opened())


@pytest.mark.parametrize(("target", "said"), [("examples.hazards:nothing", "nothing"), ("examples.hazards", "name")])
def test_the_command_says_in_a_line_what_can_not_be_played(target: str, said: str) -> None:
    command = [sys.executable, "-m", "reactive_runtime", "explore", "--play", target]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
