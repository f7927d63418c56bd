"""Two reads that have to fit together are made under the lock under which both are written."""

from __future__ import annotations

import threading


class Account:
    """A current and a savings account."""

    def __init__(self, current: int) -> None:
        self.lock = threading.Lock()
        self.current = current
        self.savings = 0

    def save(self, amount: int) -> None:
        """Move an amount to the savings."""
        with self.lock:
            self.current -= amount
            self.savings += amount

    def total(self) -> int:
        """All that there is."""
        with self.lock:
            return self.current + self.savings


SOLUTION = Account
