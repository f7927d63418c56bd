"""The three moments at which the kit cancels, and how long the call takes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from reactive_runtime.tck._adapters.demanding_reader import Reader
from reactive_runtime.tck._adapters.trial import Trial
from reactive_runtime.tck._running.environment import started

__all__ = ["idle", "in_mid_element", "in_mid_fetch", "quietly"]


def quietly(count: Callable[[], int], otherwise: int) -> int:
    """A count of the server, which may be starting."""
    try:
        return count()
    except Exception:
        return otherwise


def _timed(trial: Trial, reader: Reader) -> float:
    """Seconds of one call of cancel, on a thread of its own."""
    took: list[float] = []

    def cancel() -> None:
        begin = time.perf_counter()
        reader.cancel()
        took.append(time.perf_counter() - begin)

    thread = started(cancel, "tck-cancel")
    thread.join(trial.limits.patience)
    if not took:
        trial.fail(f"cancel did not return within {trial.limits.patience:g} s")
    return took[0]


def _still(trial: Trial, reader: Reader, number: int) -> None:
    """Nothing comes after a cancel, but what was under way when it returned."""
    trial.never(lambda: False)
    count = reader.count
    trial.adapter.put([number + 999])
    if not trial.never(lambda: reader.count > count):
        trial.fail("cancel returned, and messages that were put in later were delivered")
    trial.leave(reader)


def idle(trial: Trial, number: int) -> float:
    reader = trial.read(1_000_000, then=lambda element: element.acknowledge())
    trial.until(lambda: quietly(trial.adapter.left, 0) == 0)
    trial.never(lambda: False)  # the thread waits at the server by then
    took = _timed(trial, reader)
    _still(trial, reader, number)
    return took


def in_mid_fetch(trial: Trial, number: int) -> float:
    trial.adapter.put(range(number, number + 500))
    reader = trial.read(1_000_000, keeps=False, then=lambda element: element.acknowledge())
    trial.wait(reader, 1)
    took = _timed(trial, reader)
    _still(trial, reader, number)
    return took


def in_mid_element(trial: Trial, number: int) -> float:
    """Signals are serial, so what comes behind the element that is held comes after the cancel."""
    inside, on = threading.Event(), threading.Event()

    def hold(element: Any) -> None:
        inside.set()
        on.wait(trial.limits.patience)

    trial.adapter.put(range(number, number + 20))
    reader = trial.read(1_000_000, then=hold)
    try:
        if not inside.wait(trial.limits.patience):
            trial.fail("no message was delivered")
        took = _timed(trial, reader)
        count = reader.count
    finally:
        on.set()
    if not trial.never(lambda: reader.count > count):
        trial.fail(f"cancel returned while a message was handled, and {reader.count - count} more were delivered")
    _still(trial, reader, number)
    return took
