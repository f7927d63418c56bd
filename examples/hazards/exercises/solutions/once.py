"""The thread that had to wait looks again: to look and to compute are one step."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Once:
    """Computes a value at the first `get`, and keeps it."""

    def __init__(self, compute: Callable[[], int]) -> None:
        self.compute = compute
        self.lock = threading.Lock()
        self.value: int | None = None

    def get(self) -> int:
        """The value."""
        with self.lock:
            if self.value is None:
                self.value = self.compute()
            return self.value


SOLUTION = Once
