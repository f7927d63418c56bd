"""The value is stored under the lock, and reported without it: an open call."""

from __future__ import annotations

import threading
from typing import Any


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


SOLUTION = Sensor
