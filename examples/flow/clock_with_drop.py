"""A clock that can't be held back: a slow subscriber gets the ticks it has time for, and the others are dropped."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from reactive_runtime import Flow

TICKS = 50


def main() -> tuple[list[int], int]:
    """The ticks that were worked on, and how many were not."""
    dropped: list[int] = []
    busy = threading.Event()

    def work(tick: int) -> int:
        busy.wait(0.01)  # much longer than it takes to the next tick
        return tick

    with ThreadPoolExecutor(1) as pool:
        ticks = (
            Flow.interval(0.001, overflow="drop")
            .take_while(lambda tick: tick < TICKS)
            .do_on_discard(dropped.append)
            .publish_on(pool, prefetch=1)  # asks for a tick when it has none
            .map(work)
            .to_list()
            .block(timeout=60)
        )
    return ticks or [], sum(tick < TICKS for tick in dropped)


if __name__ == "__main__":
    worked_on, dropped = main()
    print(f"{len(worked_on)} ticks worked on, {dropped} dropped")
