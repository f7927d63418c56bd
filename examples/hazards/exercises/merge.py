"""A publisher that two feeders push into. Signals are serial, by a lock; the end comes when both have ended."""

from __future__ import annotations

import threading
from typing import Any

from examples.hazards.exercises.exercise import Exercise
from reactive_runtime._spec import MAX_DEMAND
from reactive_runtime.atomics import AtomicInteger
from reactive_runtime.explore import Driven, call, publisher_scenario


class Merge:
    """What two feeders have, in whichever order it comes; the subscriber asks for everything."""

    def __init__(self) -> None:
        self.signals = threading.Lock()
        self.open = AtomicInteger(2)
        self.subscriber: Any = None

    def subscribe(self, subscriber: Any, /) -> None:
        self.subscriber = subscriber
        subscriber.on_subscribe(self)

    def request(self, n: int, /) -> None:
        pass

    def cancel(self) -> None:
        pass

    def feed(self, element: int) -> None:
        with self.signals:
            self.subscriber.on_next(element)

    def end(self) -> None:
        self.open.add_and_get(-1)
        if self.open.get() == 0:
            with self.signals:
                self.subscriber.on_complete()


def feeder(element: int) -> list[Any]:
    """The calls of a thread that feeds one element."""
    return [
        call(f"feed({element})", lambda driven: driven.publisher.feed(element)),
        call("end()", lambda driven: driven.publisher.end()),
    ]


def whole(driven: Driven) -> None:
    """Both elements came, and then the end."""
    assert sorted(driven.elements) == [1, 2], f"1 and 2 were fed, and {driven.elements} came"
    assert driven.first.completed, "both feeders have ended, and there was no on_complete"


def scenario(merge: type[Any]) -> Any:
    """The check of a class."""
    return publisher_scenario(
        merge, [feeder(1), feeder(2)], demand=MAX_DEMAND, elements=2, ascending=False, at_end=whole
    )


EXERCISE = Exercise(
    title="The last one ends it",
    group="F",
    task="""`Merge` passes on what two feeders have, one signal at a time, and completes once, when both have ended.""",
    hint="""Which of the two feeders is the last is known to the step that takes the count to zero. Is it asked?""",
    program=Merge,
    check=scenario,
)
SCENARIO = scenario(Merge)
