"""A value that is expensive, and computed when it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from examples.hazards.exercises.exercise import Exercise
from reactive_runtime.explore import Scenario


class Once:
    """Computes a value at the first `get`, and keeps it."""

    def __init__(self, compute: Callable[[], int]) -> None:
        self.compute = compute
        self.value: int | None = None

    def get(self) -> int:
        """The value."""
        if self.value is None:
            self.value = self.compute()
        return self.value


class Users:
    """Two threads that need the value."""

    def __init__(self, once: Any) -> None:
        self.computed: list[int] = []
        self.got: list[int] = []
        self.once = once(self.compute)
        self.early = len(self.computed)

    def compute(self) -> int:
        self.computed.append(42)
        return 42

    def use(self) -> None:
        self.got.append(self.once.get())

    def at_end(self) -> None:
        assert self.early == 0, "it was computed before the first call"
        assert self.got == [42, 42], f"both should get 42, and got {self.got}"
        assert len(self.computed) == 1, f"it was computed {len(self.computed)} times"


def scenario(once: type[Any]) -> Any:
    """The check of a class."""
    return Scenario(
        lambda: Users(once), {"a": [Users.use], "b": [Users.use]}, Users.at_end, name=once.__name__, parts=[once]
    )


EXERCISE = Exercise(
    title="Once",
    group="A",
    task="""`Once.get` computes the value at the first call, and every call returns it. However many threads ask, it
    is computed once.""",
    hint="""A lock around `compute` alone is not enough: the thread that waited for it has looked before.""",
    program=Once,
    check=scenario,
)
SCENARIO = scenario(Once)
