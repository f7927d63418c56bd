"""A publisher of one value that is set later, by another thread than the one that asks for it."""

from __future__ import annotations

from typing import Any

from examples.hazards.exercises.exercise import Exercise
from reactive_runtime.explore import Driven, call, publisher_scenario, request


class Promise:
    """One value, one subscriber. Either may come first: the value, or the demand for it."""

    def __init__(self) -> None:
        self.subscriber: Any = None
        self.value: int | None = None
        self.requested = False

    def subscribe(self, subscriber: Any, /) -> None:
        self.subscriber = subscriber
        subscriber.on_subscribe(self)

    def request(self, n: int, /) -> None:
        self.requested = True
        if self.value is not None:
            self.emit(self.value)

    def cancel(self) -> None:
        self.subscriber = None

    def set(self, value: int) -> None:
        self.value = value
        if self.requested:
            self.emit(value)

    def emit(self, value: int) -> None:
        subscriber = self.subscriber
        if subscriber is not None:
            subscriber.on_next(value)
            subscriber.on_complete()


def whole(driven: Driven) -> None:
    """The value came, and then the end."""
    assert driven.elements == [7], f"7 was set and requested, and {driven.elements} came"
    assert driven.first.completed, "7 came, and no on_complete"


def scenario(promise: type[Any]) -> Any:
    """The check of a class."""
    actors = [request(1), call("set(7)", lambda driven: driven.publisher.set(7))]
    return publisher_scenario(promise, actors, elements=1, at_end=whole)


EXERCISE = Exercise(
    title="A value that comes later",
    group="F",
    task="""`Promise` signals its value once, when it is there and requested, whichever of the two comes first; then
    it completes.""",
    hint="""Each of the two threads does a step, and looks at the step of the other. How many threads may find that
    both are done?""",
    program=Promise,
    check=scenario,
)
SCENARIO = scenario(Promise)
