"""The memory that a long backlog takes while it is handled, tenth by tenth."""

from __future__ import annotations

import gc
import os
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from reactive_runtime.tck._adapters.trial import Trial

__all__ = ["TRACED", "Tenth", "resident", "tenths"]

TRACED: Final = 100_000
"""For longer backlogs the kit looks at the resident memory only: each allocation that is traced takes time."""

WINDOW: Final = 64
"""So many messages are demanded and not handled, at most."""


@dataclass(frozen=True, slots=True)
class Tenth:
    """The memory behind one tenth of a backlog.

    Args:
        handled: How many messages have been handled.
        traced: Bytes of Python objects; 0: not traced.
        resident: Bytes of the process in memory; 0 if the system does not report it.
    """

    handled: int
    traced: int
    resident: int


def resident() -> int:
    """Bytes of this process in memory; 0 if the system does not report it."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def tenths(trial: Trial, n: int) -> Iterator[Tenth]:
    """Fill a backlog, handle it slowly, and yield the memory behind each tenth."""
    trial.adapter.fill(n)
    with _traced(n <= TRACED) as traced:
        reader = trial.read(keeps=False, then=lambda element: element.acknowledge())
        for tenth in range(1, 11):
            _handle(trial, reader, n * tenth // 10)
            gc.collect()
            yield Tenth(reader.count, tracemalloc.get_traced_memory()[0] if traced else 0, resident())
        trial.leave(reader)


def _handle(trial: Trial, reader: Any, until: int) -> None:
    """A window after another: none is demanded before the last one is handled."""
    while (done := reader.count) < until:
        reader.request(min(WINDOW, until - done))
        trial.wait(reader, min(done + WINDOW, until))


@contextmanager
def _traced(wanted: bool) -> Iterator[bool]:
    if not wanted or tracemalloc.is_tracing():
        yield wanted
        return
    tracemalloc.start()
    try:
        yield True
    finally:
        tracemalloc.stop()
