"""An infinite source with a slow subscriber behind publish_on: memory after 10 million elements offered."""

from __future__ import annotations

import itertools
import threading
import tracemalloc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from side_by_side import console

from reactive_runtime import Flow

OFFERED = 10_000_000
MARKS = (10_000, 100_000, 1_000_000, OFFERED)


def main() -> None:
    offered = [0]

    def numbers() -> Iterator[int]:
        for n in itertools.count(1):
            offered[0] = n
            yield n

    seen = threading.Event()
    told: list[tuple[int, int, int]] = []
    delivered = [0]

    def slow(n: int) -> None:
        delivered[0] = n
        sum(range(20))  # slower than the source
        if n in MARKS:
            told.append((n, tracemalloc.get_traced_memory()[0], offered[0] - n))
            if n == OFFERED:
                seen.set()

    tracemalloc.start()
    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(1) as two:
        flow = Flow.from_supplier(numbers).subscribe_on(one).publish_on(two, prefetch=256)
        handle = flow.subscribe(slow)
        seen.wait()
        handle.cancel()
    for n, memory, ahead in told:
        console.print(
            f"after {n:>10,} elements: {memory / 1024:8,.0f} KiB in use, the source {ahead} ahead (prefetch 256)"
        )


if __name__ == "__main__":
    main()
