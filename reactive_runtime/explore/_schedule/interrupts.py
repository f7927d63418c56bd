"""Defers Ctrl-C to the end of the run: the thread that it interrupts may not be the one with the turn."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any

__all__ = ["Interrupts"]


class Interrupts:
    """Keeps an interrupt while the block runs; `raise_kept` raises it. Does nothing on a thread other than the main."""

    def __init__(self) -> None:
        self._kept = False
        self._before: Any = None

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.getsignal(signal.SIGINT)
            if self._before is not None:
                signal.signal(signal.SIGINT, self._keep)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
        self.raise_kept()

    def _keep(self, number: int, frame: FrameType | None) -> None:
        self._kept = True

    def raise_kept(self) -> None:
        """Between two runs, where no other thread has the turn."""
        if self._kept:
            self._kept = False
            raise KeyboardInterrupt
