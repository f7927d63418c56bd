"""The cost of an open socket of `reactive_runtime.live` to flows: pairs in turn, closed and open, in process time.

The process time includes that of the thread that answers, which looks at the flows now and then. The last line is how
long the answer takes while 1,000 flows live.
"""

from __future__ import annotations

import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from side_by_side import console, pairs

from reactive_runtime import Flow, live

N = 300_000
ROUNDS = 9


def works(stack: ExitStack) -> dict[str, Callable[[], object]]:
    pools = [stack.enter_context(ThreadPoolExecutor(1)) for _ in range(2)]
    fused = Flow.range(N).map(lambda n: n + 1).filter(lambda n: n % 2 == 1).map(lambda n: n + 1)
    boundary = Flow.range(N).subscribe_on(pools[0]).publish_on(pools[1])
    return {
        "a fused chain, map filter map": lambda: [fused.block() for _ in range(40)],
        "a boundary": lambda: [boundary.block() for _ in range(40)],
    }


def opened(work: Callable[[], object], folder: Path) -> Callable[[], object]:
    """The work, while the socket is open; to open it is no part of an element's cost, and takes 0.1 ms."""

    def run() -> None:
        live.open(folder)
        try:
            work()
        finally:
            live.close()

    return run


def main() -> None:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "sockets"
        for name, work in works(stack).items():
            low, median, high = pairs(opened(work, folder), work, ROUNDS, time.process_time)
            console.print(f"{name}: open / closed {median:.3f} ({low:.3f} to {high:.3f}); must reach 1.01")
        started = threading.Event()
        handles = [Flow.range(9).map(str).subscribe(lambda text: started.set(), demand=1) for _ in range(1000)]
        seconds = []
        for _ in range(5):
            begin = time.perf_counter()
            live.snapshot(within=0)
            seconds.append(time.perf_counter() - begin)
        for handle in handles:
            handle.cancel()
        console.print(f"one look at 1,000 flows: {statistics.median(seconds) * 1e3:,.0f} ms")


if __name__ == "__main__":
    main()
