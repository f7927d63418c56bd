"""A publisher whose subscriber asks for the next element inside of `on_next`."""

from __future__ import annotations

from typing import Any

from examples.hazards.exercises.exercise import Exercise
from reactive_runtime.explore import Scenario


class Countdown:
    """The numbers from `start` down to 1, as they are requested; used by one thread."""

    def __init__(self, start: int, subscriber: Any) -> None:
        self.left = start
        self.subscriber = subscriber

    def request(self, n: int) -> None:
        """Ask for `n` more elements."""
        for _ in range(n):
            if self.left > 0:
                self.left -= 1
                self.subscriber.on_next(self.left + 1)


class Subscriber:
    """Asks for two elements and, inside of `on_next`, for two more, one by one; notes how deep it is called."""

    def __init__(self, countdown: Any) -> None:
        self.elements: list[int] = []
        self.depth = self.deepest = 0
        self.countdown = countdown(5, self)

    def on_next(self, element: int) -> None:
        self.depth += 1
        self.deepest = max(self.deepest, self.depth)
        self.elements.append(element)
        if len(self.elements) <= 2:
            self.countdown.request(1)
        self.depth -= 1

    def begin(self) -> None:
        self.countdown.request(2)

    def at_end(self) -> None:
        assert self.elements == [5, 4, 3, 2], f"four elements of five were requested, and {self.elements} came"
        assert self.deepest == 1, f"on_next was called inside of on_next, {self.deepest} deep"


def scenario(countdown: type[Any]) -> Any:
    """The check of a class."""
    return Scenario(
        lambda: Subscriber(countdown),
        {"subscriber": [Subscriber.begin]},
        Subscriber.at_end,
        name=countdown.__name__,
        parts=[countdown],
    )


EXERCISE = Exercise(
    title="Deeper and deeper",
    group="F",
    task="""`Countdown.request` delivers all that is requested, in order, and never calls `on_next` inside of
    `on_next`. There is one thread: this is no race.""",
    hint="""A request that comes while an element is delivered leaves its demand to the loop that delivers.""",
    program=Countdown,
    check=scenario,
)
SCENARIO = scenario(Countdown)
