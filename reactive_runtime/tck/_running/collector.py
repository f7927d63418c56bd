"""The garbage collections that checks wait for: one serves all checks, and a pause follows it.

A collection stops all threads of the process, for a tenth of a second with a million objects. A check that waits for
the collection of a subscriber asks again and again, and so do other checks beside it. If each request collected, the
implementation would stand still for nine tenths of the time, and its calls would count as hanging.
"""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable
from typing import Final

__all__ = ["COLLECTOR", "Collector"]

PAUSE: Final = 4
"""The pause after a collection is so many times as long as the collection."""


class Collector:
    """Collects for all checks, one collection at a time."""

    def __init__(self, collect: Callable[[], object] = gc.collect, clock: Callable[[], float] = time.monotonic) -> None:
        self._collect = collect
        self._clock = clock
        self._changed = threading.Condition()
        self._begun = 0  # _changed; collections
        self._ended = 0  # _changed; of them
        self._next = 0.0  # _changed; when the next may begin, by the clock

    def collect(self) -> None:
        """Wait for the end of a collection that begins after this call. Any thread."""
        with self._changed:
            wanted = self._begun + 1
            while self._ended < wanted:
                if self._begun > self._ended:
                    self._changed.wait()
                elif (pause := self.pause()) > 0:
                    self._changed.wait(pause)
                else:
                    self._begun += 1
                    break
            else:
                return
        began = self._clock()
        try:
            self._collect()
        finally:
            with self._changed:
                self._ended = self._begun
                ended = self._clock()
                self._next = ended + PAUSE * (ended - began)
                self._changed.notify_all()

    def pause(self) -> float:
        """Seconds until the next collection may begin. With the lock, or if no other thread collects."""
        return self._next - self._clock()


COLLECTOR: Final = Collector()
"""The collector of this process."""
