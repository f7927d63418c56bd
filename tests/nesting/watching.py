"""Runs cells of the grid, each under a watchdog: a cell that does not end is a finding, with what each thread is at."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

from nesting.cells import Cell, run
from reactive_runtime._support.thread_frames import thread_frames

__all__ = ["Watched", "findings"]

WORKERS = 4
LIMIT = 60.0
"""Seconds in which a cell has ended; it takes some milliseconds."""


class Watched:
    """A thread for each cell, and a pool for all of them: a new one after a cell that hangs, or has shut it down."""

    def __init__(self) -> None:
        self.pool = ThreadPoolExecutor(WORKERS, "cells")

    def finding(self, cell: Cell, limit: float = LIMIT, shut_down_at: int | None = None) -> str | None:
        """What does not hold of the cell; None: all does. `shut_down_at`: see `run`."""
        found: list[str | None] = []

        def judged() -> None:
            try:
                run(cell, self.pool, shut_down_at=shut_down_at)
            except BaseException as error:
                found.append(f"{cell}: {type(error).__name__}: {error}")
            else:
                found.append(None)

        thread = threading.Thread(target=judged, daemon=True, name="cell")
        thread.start()
        thread.join(limit)
        if found and shut_down_at is None:
            return found[0]
        hung, self.pool = self.pool, ThreadPoolExecutor(WORKERS, "cells")
        hung.shutdown(wait=False, cancel_futures=True)
        if found:
            return found[0]
        return f"{cell}: no end within {limit:g} s\n{''.join(stacks(thread))}"

    def close(self) -> None:
        self.pool.shutdown()


def stacks(thread: threading.Thread) -> Iterator[str]:
    """Where the thread of the cell is, and those of its pool."""
    standing = thread_frames()
    for other in [thread, *threading.enumerate()]:
        if other.ident in standing and (other is thread or other.name.startswith("cells")):
            yield f"{other.name}:\n"
            yield from traceback.format_stack(standing.pop(other.ident))


def findings(cells: Iterable[Cell]) -> Iterator[tuple[Cell, str | None]]:
    """Each cell, with what does not hold of it."""
    watched = Watched()
    try:
        for cell in cells:
            yield cell, watched.finding(cell)
    finally:
        watched.close()
