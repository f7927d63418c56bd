"""A thread that only looks at a circuit breaker makes it say twice that it has opened."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from examples.found import Find


class Opened:
    """One thread opens the breaker, another looks at it."""

    def __init__(self) -> None:
        pybreaker: Any = import_module("pybreaker")
        heard: list[str] = []

        class Listener(pybreaker.CircuitBreakerListener):  # type: ignore[misc]
            def state_change(self, cb: Any, old_state: Any, new_state: Any) -> None:
                heard.append(f"{old_state.name} → {new_state.name}")

        self.heard = heard
        self.breaker: Any = pybreaker.CircuitBreaker(listeners=[Listener()])

    def actor_opens(self) -> None:
        self.breaker.open()

    def actor_looks(self) -> None:
        self.breaker.state  # noqa: B018

    def at_end(self) -> None:
        assert self.heard == ["closed → open"], f"the listeners heard of {self.heard}"


FIND = Find(
    package="pybreaker==1.4.1",
    promise="thread-safe, as its list of features says.",
    what=(
        "`open` changes the state, and then the storage. The property `state` looks without the lock: in "
        "between it takes the storage's word, and puts the breaker back, and the listeners are notified once more."
    ),
    mended="take the lock in the property, or change the storage first.",
    program=Opened,
    message="the listeners heard of ['closed → open', 'open → open']",
    counted=True,
    gil=True,
)
