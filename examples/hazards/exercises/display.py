"""A sensor reports to a display, and the display asks the sensor."""

from __future__ import annotations

import threading
from typing import Any

from examples.hazards.exercises.exercise import Exercise
from reactive_runtime.explore import Scenario


class Sensor:
    """Has a value, and reports a new one to its display."""

    def __init__(self, display: Any) -> None:
        self.lock = threading.Lock()
        self.display = display
        self.number = 0

    def set(self, number: int) -> None:
        """There is a new value."""
        with self.lock:
            self.number = number
            self.display.show(number)

    def value(self) -> int:
        """The value."""
        with self.lock:
            return self.number


class Display:
    """Shows what it was given last, and may ask for it itself. This class is not to be changed."""

    def __init__(self, sensor: Any) -> None:
        self.lock = threading.Lock()
        self.sensor = sensor(self)
        self.shown = 0

    def show(self, number: int) -> None:
        with self.lock:
            self.shown = number

    def refresh(self) -> None:
        with self.lock:
            self.shown = self.sensor.value()

    def set(self) -> None:
        self.sensor.set(1)

    def at_end(self) -> None:
        assert self.shown == 1, f"the sensor was set to 1, and {self.shown} is shown"


def scenario(sensor: type[Any]) -> Any:
    """The check of a class."""
    actors = {"sets": [Display.set], "refreshes": [Display.refresh]}
    return Scenario(lambda: Display(sensor), actors, Display.at_end, name=sensor.__name__, parts=[sensor])


EXERCISE = Exercise(
    title="Whom do you call with a lock held?",
    group="D",
    task="""`Sensor.set` stores a value and reports it to the display, which has a lock of its own. Mend the sensor:
    the display stays as it is, and shows the last value in the end.""",
    hint="""A lock that may be taken twice by one thread does not help: two threads meet here. Decide inside, call
    outside.""",
    program=Sensor,
    check=scenario,
)
SCENARIO = scenario(Sensor)
