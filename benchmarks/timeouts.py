"""A timeout of 100 ms over an upstream that keeps its thread: when the error is signalled, on the caller and on a pool.

python benchmarks/timeouts.py [--runs 20]
"""

from __future__ import annotations

import argparse
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from rich.table import Table
from side_by_side import console, reached

from reactive_runtime import Flow, hooks
from reactive_runtime.executors import ScheduledExecutor

SECONDS = 0.1
AIM = 0.15


class Upstreams:
    """Three that keep their thread until they are released."""

    def __init__(self) -> None:
        self.over = threading.Event()

    def sleeping(self) -> Flow[Any]:
        """A source inside of its `next`."""

        def numbers() -> Iterator[int]:
            self.over.wait(10)
            yield 1

        return Flow.from_supplier(numbers)

    def spinning(self) -> Flow[Any]:
        """A filter that drops everything, of a source without an end."""
        return Flow.range(2**60).filter(lambda _: False)

    def retrying(self) -> Flow[Any]:
        """A flow that fails at once, again and again."""
        return Flow.error(OSError("gone")).retry()


def signalled_after(flow: Flow[Any], over: threading.Event) -> float:
    """Seconds from the subscription to the TimeoutError."""
    at: list[float] = []
    ended = threading.Event()

    def fails(error: BaseException) -> None:
        at.append(time.perf_counter())
        assert isinstance(error, TimeoutError), error
        over.set()
        ended.set()

    begin = time.perf_counter()
    flow.subscribe(lambda _: None, on_error=fails, on_complete=ended.set)
    assert ended.wait(30)
    return at[0] - begin


def main() -> None:
    """Print the medians and the worst."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=20)
    runs = parser.parse_args().runs
    table = Table(title=f"a timeout of {SECONDS * 1e3:g} ms, {runs} runs: signalled after", title_justify="left")
    for column in ("over", "on", "median, ms", "worst, ms", "must reach"):
        table.add_column(column, justify="left" if column in ("over", "on") else "right")
    ways: dict[str, Callable[[Upstreams], Flow[Any]]] = {
        "a sleeping source": Upstreams.sleeping,
        "a spinning filter": Upstreams.spinning,
        "an endless retry": Upstreams.retrying,
    }
    slowest: list[float] = []
    with ScheduledExecutor() as clock, ThreadPoolExecutor(1) as pool, hooks.captured():
        for title, make in ways.items():
            for place in ("the caller", "a pool"):
                seconds = []
                for _ in range(runs):
                    upstreams = Upstreams()
                    source = make(upstreams)
                    source = source.subscribe_on(pool) if place == "a pool" else source
                    seconds.append(signalled_after(source.timeout(SECONDS, clock=clock), upstreams.over))
                    pool.submit(int).result()  # the thread is free again
                slowest.append(statistics.median(seconds))
                median, worst = statistics.median(seconds), max(seconds)
                table.add_row(title, place, f"{median * 1e3:.1f}", f"{worst * 1e3:.1f}", f"{AIM * 1e3:g} (median)")
    console.print(table)
    reached("a timeout of 100 ms over what keeps its thread: ms", max(slowest) * 1e3, at_most=AIM * 1e3)


if __name__ == "__main__":
    main()
