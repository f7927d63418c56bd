"""Notices a thread that neither comes to a point nor ends: blocked by something nobody controls, or in a loop."""

from __future__ import annotations

import _thread
import sys
import traceback

from reactive_runtime.errors import ExploreError
from reactive_runtime.explore.carriers import ThreadCarriers
from reactive_runtime.explore.logical import Stop
from reactive_runtime.explore.machine import Machine

__all__ = ["Watchdog"]


class Watchdog:
    """A real thread that looks now and then whether the machine has moved."""

    def __init__(self, machine: Machine, kept: ThreadCarriers, seconds: float) -> None:
        self._machine = machine
        self._kept = kept
        self._seconds = seconds
        self._running = _thread.allocate_lock()  # held while there is something to watch
        self._running.acquire()
        self._complaint: str | None = None  # written before the main thread is woken, read by it

    def __enter__(self) -> Watchdog:
        _thread.start_new_thread(self._watch, ())
        return self

    def __exit__(self, *_: object) -> None:
        self._running.release()

    def _watch(self) -> None:
        machine = self._machine
        before = (-1, -1)
        while not self._running.acquire(timeout=self._seconds):
            now = (machine.run, machine.steps)
            current = machine.current
            if now == before and machine.active and current is not machine.main and current is not None:
                frame = sys._current_frames().get(current.ident)
                stack = traceback.extract_stack(frame)[-1] if frame is not None else None
                where = (
                    "somewhere"
                    if stack is None
                    else f"at {stack.filename}:{stack.lineno}, in {stack.name}: {stack.line}"
                )
                self._complaint = (
                    f"thread {current.name} has come to no point for {self._seconds:g} s, {where}. It is blocked by"
                    " something the explorer does not control (a lock made outside of the scenario, a C extension, a"
                    " socket), or in a loop without a point"
                )
                self._kept.give_up()
                machine.stop = Stop("stuck", self._complaint, current)
                machine.aborting = True
                for it in machine.threads:
                    it.ended = it is not machine.main
                machine.main.go()
                return
            before = now

    def complain(self) -> None:
        """On the main thread, after a run."""
        if self._complaint is not None:
            raise ExploreError(self._complaint)
