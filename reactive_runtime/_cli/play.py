"""`explore --play`: the schedule is found by hand, in the terminal.

The table is the diagram of the explorer, row by row as it is played: a column for each thread, time downwards. Below it
stands what each thread does next.
"""

from __future__ import annotations

from typing import ClassVar, Final

from rich.table import Table
from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import Footer, Static

from reactive_runtime.explore._playing import Play, Position, next_text, step_text

__all__ = ["Game"]

COLOURS: Final = ("cyan", "yellow", "magenta", "green", "red", "blue")
"""Of the threads."""

MOST: Final = 9
"""Threads that have a key."""


class Game(App[None]):
    """The scheduler is the one at the keyboard.

    Args:
        play: What is played.
    """

    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #task { padding: 0 1; height: auto; }
    #history { height: 1fr; border: round $primary; padding: 0 1; }
    #next { height: auto; border: round $secondary; padding: 0 1; }
    #outcome { height: auto; padding: 0 1; text-style: bold; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(str(n), f"step({n})", f"thread {n}", show=False) for n in range(1, MOST + 1)),
        Binding("u", "undo", "undo"),
        Binding("r", "restart", "restart"),
        Binding("e", "explorers", "the explorer's"),
        Binding("q", "quit", "quit"),
    ]

    def __init__(self, play: Play) -> None:
        super().__init__()
        self.play = play
        self.shows_the_explorers: bool = False

    def compose(self) -> ComposeResult:
        """The task, what was done, what comes next, and how it ended."""
        yield Static(self._what_to_do(), id="task")
        with VerticalScroll(id="history"):
            yield Static(id="rows")
        yield Static(id="next")
        yield Static(id="outcome")
        yield Footer()

    def on_mount(self) -> None:
        """Show where it begins."""
        self.title = self.play.program.name
        self._show(self.play.position)

    def _what_to_do(self) -> str:
        name = self.play.program.name
        if self.play.result.failure is None:
            return f"{name}: the explorer has found no schedule that fails: {self.play.result.verdict}. Try it."
        if not self.play.explorers:
            return f"{name} fails under every schedule: there is nothing to choose."
        return f"{name}: you are the scheduler. Choose which thread does its next step, until something fails."

    # -- keys --------------------------------------------------------------------------------------------------

    def action_step(self, number: int) -> None:
        """Let a thread do its next step.

        Args:
            number: That of its column; nothing happens where it can't be chosen.
        """
        here = self.play.position
        thread = dict(enumerate(here.columns, start=1)).get(number)
        if thread in here.choices:
            self._show(self.play.choose(thread))

    def action_undo(self) -> None:
        """Take the last step back."""
        self._show(self.play.undo())

    def action_restart(self) -> None:
        """Take all steps back."""
        self._show(self.play.restart())

    def action_explorers(self) -> None:
        """Show the explorer's schedule, or the one that is played."""
        self.shows_the_explorers = not self.shows_the_explorers
        self._show(self.play.position)

    # -- what is shown -----------------------------------------------------------------------------------------

    def _show(self, here: Position) -> None:
        if self.shows_the_explorers:
            shown = self.play.at(self.play.explorers)
            self.query_one("#rows", Static).update(_history(shown, "the explorer's schedule"))
        else:
            self.query_one("#rows", Static).update(_history(here, "your schedule"))
        self.query_one("#next", Static).update(_next(here))
        self.query_one("#outcome", Static).update(self._outcome(here))
        self.query_one("#history", VerticalScroll).scroll_end(animate=False)

    def _outcome(self, here: Position) -> Text:
        count = f"{len(here.moves)} step{'s'[len(here.moves) == 1 :]}"
        if here.outcome == "failed":
            return Text(
                f"✗ {here.message}. Found, in {count}; the explorer takes {len(self.play.explorers)}.", "bright_red"
            )
        if here.outcome == "held":
            return Text(f"It came to its end, and all holds ({count}). Undo (u), and try another order.", "green")
        return Text(count)


def _history(here: Position, title: str) -> Table:
    table = Table(title=title, title_justify="left", box=None, expand=True, padding=(0, 2, 0, 0))
    for number, name in enumerate(here.columns.values(), start=1):
        table.add_column(f"{number} {name}", style=_colour(number), ratio=1)
    for step in here.steps:
        table.add_row(
            *(
                Text(step_text(step), overflow="ellipsis") if step.thread == thread else Text()
                for thread in here.columns
            )
        )
    return table


def _next(here: Position) -> Text:
    text = Text()
    keys = {thread: number for number, thread in enumerate(here.columns, start=1)}
    for item in here.threads:
        key = keys[item.thread]
        if text:
            text.append("\n")
        can = item.thread in here.choices
        text.append(f" {key} " if can else "   ", "reverse bold" if can else "")
        text.append(f" {item.name}: {next_text(item)}", _colour(key) if can else "dim")
    return text


def _colour(number: int) -> str:
    return COLOURS[(number - 1) % len(COLOURS)]
