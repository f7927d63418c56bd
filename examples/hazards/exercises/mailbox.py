"""A box that holds one letter."""

from __future__ import annotations

import threading
from typing import Any

from examples.hazards.exercises.exercise import Exercise
from reactive_runtime.explore import Scenario


class Mailbox:
    """`put` waits until the box is empty, `take` until there is a letter."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.letters: list[str] = []

    def put(self, letter: str) -> None:
        """Leave a letter."""
        with self.changed:
            if self.letters:
                self.changed.wait()
            self.letters.append(letter)
            self.changed.notify()

    def take(self) -> str:
        """Take the letter."""
        with self.changed:
            if not self.letters:
                self.changed.wait()
            letter = self.letters.pop()
            self.changed.notify()
            return letter


class Street:
    """Two that put, and two that take."""

    def __init__(self, mailbox: Any) -> None:
        self.box = mailbox()
        self.taken: list[str] = []

    def put_a(self) -> None:
        self.box.put("a")

    def put_b(self) -> None:
        self.box.put("b")

    def take(self) -> None:
        self.taken.append(self.box.take())

    def at_each_step(self) -> None:
        assert len(self.box.letters) <= 1, f"the box holds {self.box.letters}"

    def at_end(self) -> None:
        assert sorted(self.taken) == ["a", "b"], f"a and b were put, and {self.taken} taken"


def scenario(mailbox: type[Any]) -> Any:
    """The check of a class."""
    actors = {"puts": [Street.put_a], "puts too": [Street.put_b], "takes": [Street.take], "takes too": [Street.take]}
    return Scenario(
        lambda: Street(mailbox),
        actors,
        Street.at_end,
        at_each_step=Street.at_each_step,
        name=mailbox.__name__,
        parts=[mailbox],
    )


EXERCISE = Exercise(
    title="One letter at a time",
    group="C",
    task="""The box holds one letter, in the list `letters`. `put` waits until it is empty, and `take` until it is
    not. Two threads put, two take, and all of them end.""",
    hint="""There are two faults. A thread that was woken is not the next to have the lock. And whom does `notify`
    wake, where threads of both kinds wait?""",
    program=Mailbox,
    check=scenario,
)
SCENARIO = scenario(Mailbox)
