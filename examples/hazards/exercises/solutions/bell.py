"""The loop goes over a copy: what changes the list meanwhile counts from the next ring on."""

from __future__ import annotations

from collections.abc import Callable


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
        for listener in tuple(self.listeners):
            listener()


SOLUTION = Bell
