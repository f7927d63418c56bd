"""The collections of garbage that checks wait for: one serves them all, and there is a pause after it.

A collection stops each thread of the process, and takes as long as the process has objects: a tenth of a second for a
million of them. A check that waits until a subscriber is collected asks again and again, and others beside it do the
same. With a collection for each of them, an implementation was stopped for nine tenths of the time, and was accused of
calls that did not return.
"""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable
from typing import Final

__all__ = ["COLLECTOR", "Collector"]

PAUSE: Final = 4
"""How many times as long as a collection took there is none after it."""


class Collector:
    """Collects for all that ask, one collection at a time."""

    def __init__(self, collect: Callable[[], object] = gc.collect, clock: Callable[[], float] = time.monotonic) -> None:
        self._collect = collect
        self._clock = clock
        self._changed = threading.Condition()
        self._begun = 0  # _changed; collections
        self._ended = 0  # _changed; of them
        self._next = 0.0  # _changed; when the next may begin, by the clock

    def collect(self) -> None:
        """Return when a collection has ended that began after this call. Any thread."""
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
        """Seconds until the next collection may begin. With the lock, or where no other thread collects."""
        return self._next - self._clock()


COLLECTOR: Final = Collector()
"""That of the process."""
