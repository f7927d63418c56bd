"""That it is closed is said, and looked at, under the lock that the tasks are under."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Worker:
    """Keeps tasks, and does them when it is closed."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.closed = False
        self.tasks: list[Callable[[], object]] = []

    def submit(self, task: Callable[[], object]) -> bool:
        """Whether the task is accepted: then it is done."""
        with self.lock:
            if self.closed:
                return False
            self.tasks.append(task)
            return True

    def close(self) -> None:
        """Accept no more, and do what was accepted."""
        with self.lock:
            self.closed = True
            tasks, self.tasks = self.tasks, []
        for task in tasks:
            task()


SOLUTION = Worker
