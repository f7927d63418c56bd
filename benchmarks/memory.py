"""An infinite source with a slow subscriber, through every boundary and hot source: the memory in use stays flat."""

from __future__ import annotations

import itertools
import sys
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from rich.table import Table
from side_by_side import console

from reactive_runtime import Flow, hooks

Through = Callable[[Flow[Any], Executor], Flow[Any]]

MARKS = (10_000, 100_000)
FAR = (10_000, 1_000_000, 10_000_000)


def measured(through: Through, marks: tuple[int, ...]) -> list[float]:
    """KiB in use, above what there was before, when the source has made so many elements; all of them slowly used."""
    used: list[float] = []
    enough = threading.Event()

    def numbers() -> Iterator[int]:
        for n in itertools.count(1_000):  # above the ints that Python keeps anyway
            yield n
            if n - 1_000 in marks:
                used.append((tracemalloc.get_traced_memory()[0] - before) / 1024)
                if n - 1_000 == marks[-1]:
                    enough.set()

    with ThreadPoolExecutor(4) as pool:
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        handle = through(Flow.from_supplier(numbers).subscribe_on(pool), pool).subscribe(lambda n: sum(range(20)))
        enough.wait()
        handle.cancel()
    tracemalloc.stop()
    return used


def main() -> None:
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
    from operators.bounded import BOUNDARIES, HOT

    hooks.set_handler(lambda dropped: None)
    far = measured(lambda flow, pool: flow.publish_on(pool), FAR)
    console.print("publish_on: " + ", ".join(f"{kib:,.0f} KiB after {n:,}" for n, kib in zip(FAR, far, strict=True)))
    table = Table("through", title="memory in use, KiB, an infinite source and a slow subscriber", title_justify="left")
    for mark in MARKS:
        table.add_column(f"after {mark:,}", justify="right")
    for name, through in (BOUNDARIES | HOT).items():
        table.add_row(name, *(f"{kib:,.0f}" for kib in measured(through, MARKS)))
    console.print(table)


if __name__ == "__main__":
    main()
