"""A worker that is closed while a task is submitted."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from examples.hazards.exercises.exercise import Exercise
from reactive_runtime.explore import Scenario


class Worker:
    """Keeps tasks, and does them when it is closed."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.closed = False
        self.tasks: list[Callable[[], object]] = []

    def submit(self, task: Callable[[], object]) -> bool:
        """Whether the task is accepted: then it is done."""
        if self.closed:
            return False
        with self.lock:
            self.tasks.append(task)
        return True

    def close(self) -> None:
        """Accept no more, and do what was accepted."""
        self.closed = True
        with self.lock:
            tasks, self.tasks = self.tasks, []
        for task in tasks:
            task()


class Evening:
    """One task comes in time, and one while the worker is closed. The first submits a task as well."""

    def __init__(self, worker: Any) -> None:
        self.worker = worker()
        self.done: list[str] = []
        self.accepted = ["early"] if self.worker.submit(self.early) else []

    def early(self) -> None:
        self.done.append("early")
        self.worker.submit(lambda: None)  # waits for ever where the lock is held

    def submit(self) -> None:
        if self.worker.submit(lambda: self.done.append("late")):
            self.accepted.append("late")

    def close(self) -> None:
        self.worker.close()

    def at_end(self) -> None:
        assert "early" in self.accepted, "a task was refused before the worker was closed"
        assert self.done == self.accepted, f"{self.accepted} were accepted, and {self.done} done"


def scenario(worker: type[Any]) -> Any:
    """The check of a class."""
    return Scenario(
        lambda: Evening(worker),
        {"submits": [Evening.submit], "closes": [Evening.close]},
        Evening.at_end,
        name=worker.__name__,
        parts=[worker],
    )


EXERCISE = Exercise(
    title="Closing time",
    group="B",
    task="""A task that `Worker.submit` accepts is done, whenever `close` comes. Before `close` every task is
    accepted. A task is not called with the lock held.""",
    hint="""`closed` is looked at before the lock is taken. What comes in between?""",
    program=Worker,
    check=scenario,
)
SCENARIO = scenario(Worker)
