"""A listener that listens once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from examples.hazards.exercises.exercise import Exercise
from reactive_runtime.explore import Scenario


class Bell:
    """Calls its listeners; used by one thread."""

    def __init__(self) -> None:
        self.listeners: list[Callable[[], object]] = []

    def add(self, listener: Callable[[], object]) -> None:
        """From the next ring on it is called."""
        self.listeners.append(listener)

    def remove(self, listener: Callable[[], object]) -> None:
        """From the next ring on it is not called."""
        self.listeners.remove(listener)

    def ring(self) -> None:
        """Call each listener once."""
        for listener in self.listeners:
            listener()


class House:
    """Three listeners, of which the first, when it is called, removes itself and adds another one."""

    def __init__(self, bell: Any) -> None:
        self.bell = bell()
        self.called: list[str] = []
        for listener in (self.once, self.dog, self.cat):
            self.bell.add(listener)

    def once(self) -> None:
        self.called.append("once")
        self.bell.add(self.bird)
        self.bell.remove(self.once)

    def dog(self) -> None:
        self.called.append("dog")

    def cat(self) -> None:
        self.called.append("cat")

    def bird(self) -> None:
        self.called.append("bird")

    def ring_twice(self) -> None:
        self.bell.ring()
        self.bell.ring()

    def at_end(self) -> None:
        wanted = ["once", "dog", "cat", "dog", "cat", "bird"]
        assert self.called == wanted, f"{wanted} were to be called, and {self.called} were"


def scenario(bell: type[Any]) -> Any:
    """The check of a class."""
    return Scenario(
        lambda: House(bell), {"visitor": [House.ring_twice]}, House.at_end, name=bell.__name__, parts=[bell]
    )


EXERCISE = Exercise(
    title="Listen once",
    group="E",
    task="""`Bell.ring` calls each listener once that there is when it begins, also where one of them removes
    itself, or adds another. There is one thread: this is no race.""",
    hint="""What does a loop over a list do when an element before the next one is gone?""",
    program=Bell,
    check=scenario,
)
SCENARIO = scenario(Bell)
