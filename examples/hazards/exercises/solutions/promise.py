"""One state: nothing, asked for, there, done. The thread that completes the pair emits."""

from __future__ import annotations

from typing import Any

from examples.hazards.exercises import promise
from reactive_runtime.atomics import AtomicReference


class Promise(promise.Promise):
    """One value, one subscriber. Either may come first: the value, or the demand for it."""

    def __init__(self) -> None:
        super().__init__()
        self.state: AtomicReference[Any] = AtomicReference(None)

    def request(self, n: int, /) -> None:
        if not self.state.compare_and_set(None, "asked") and type(value := self.state.get()) is int:
            self.once(value, value)

    def set(self, value: int) -> None:
        if not self.state.compare_and_set(None, value):
            self.once("asked", value)

    def once(self, state: Any, value: int) -> None:
        """Emit, on the thread that ends this state."""
        if self.state.compare_and_set(state, "done"):
            self.emit(value)


SOLUTION = Promise
