"""To look and to take are one step, under one lock."""

from __future__ import annotations

import threading


class Office:
    """Sells tickets, as long as there are any."""

    def __init__(self, tickets: int) -> None:
        self.lock = threading.Lock()
        self.tickets = tickets

    def sell(self) -> bool:
        """Whether there was one."""
        with self.lock:
            if self.tickets == 0:
                return False
            self.tickets -= 1
            return True


SOLUTION = Office
