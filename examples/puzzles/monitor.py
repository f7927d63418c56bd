"""A lock whose blocks wait for a condition: the solutions use it, and so may you."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["Monitor"]


class Monitor:
    """State under one lock: `with self.when(condition):` waits until the condition holds, with the lock held.

    At the end of the block each waiting thread looks at its condition again. In the block
    call only what is short, and does not wait.

    Origin:
        The conditional critical region of Hoare (1972) and of Brinch Hansen (1972).
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()

    @contextmanager
    def when(self, condition: Callable[[], object] = lambda: True) -> Iterator[None]:
        """The lock, from the moment at which `condition` holds until the end of the block."""
        with self._changed:
            self._changed.wait_for(condition)
            yield
            self._changed.notify_all()
