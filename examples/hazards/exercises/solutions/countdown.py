"""A request that finds the loop at work leaves its demand there."""

from __future__ import annotations

from typing import Any


class Countdown:
    """The numbers from `start` down to 1, as they are requested; used by one thread."""

    def __init__(self, start: int, subscriber: Any) -> None:
        self.left = start
        self.subscriber = subscriber
        self.demand = 0
        self.delivers = False

    def request(self, n: int) -> None:
        """Ask for `n` more elements."""
        self.demand += n
        if self.delivers:
            return
        self.delivers = True
        while self.demand > 0 and self.left > 0:
            self.demand -= 1
            self.left -= 1
            self.subscriber.on_next(self.left + 1)
        self.delivers = False


SOLUTION = Countdown
