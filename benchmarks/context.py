"""The cost of a context that follows its element, in µs an element: pairs in turn, process time.

Each row compares a flow with the same flow in a region of `with_context`. The last one compares two equal flows without
it: what is not used adds no code to a flow, so this row is the noise.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from rich.table import Table
from side_by_side import console

from reactive_runtime import Flow

N = 300_000
ROUNDS = 21


def difference(one: Callable[[], object], other: Callable[[], object]) -> list[float]:
    """The quartiles of how much longer `one` takes, in µs an element, after one pair to warm up."""
    found = []
    for turn in range(ROUNDS + 1):
        seconds = []
        for way in (one, other):
            gc.collect()
            begin = time.process_time()
            way()
            seconds.append(time.process_time() - begin)
        if turn:
            found.append((seconds[0] - seconds[1]) / N * 1e6)
    return statistics.quantiles(found, n=4)


def plus(n: int) -> int:
    return n + 1


def main() -> None:
    """Print a table."""
    table = Table(title=f"with_context, µs an element more, {N:,} elements, {ROUNDS} pairs", title_justify="left")
    for column in ("flow", "quartile", "median", "quartile", "must reach"):
        table.add_column(column, justify="left" if column == "flow" else "right")
    numbers = Flow.range(N)
    with ThreadPoolExecutor(2, "pool") as pool:
        cold = numbers.subscribe_on(pool)
        made = cold.map(plus)
        rows: list[tuple[str, Flow[int], Flow[int], str]] = [
            ("map", numbers.with_context(lambda flow: flow.map(plus)), numbers.map(plus), "0.2"),
            ("do_on_next", numbers.with_context(lambda flow: flow.do_on_next(plus)), numbers.do_on_next(plus), "0.2"),
            (
                "behind a map: publish_on, map",
                made.with_context(lambda flow: flow.publish_on(pool).map(plus)),
                made.publish_on(pool).map(plus),
                "0.2",
            ),
            (
                "behind a bare range, which a boundary takes in bulk: publish_on, map",
                cold.with_context(lambda flow: flow.publish_on(pool).map(plus)),
                cold.publish_on(pool).map(plus),
                "0.2",
            ),
            (
                "three functions: map, publish_on, map, do_on_next",
                cold.with_context(lambda flow: flow.map(plus).publish_on(pool).map(plus).do_on_next(plus)),
                made.publish_on(pool).map(plus).do_on_next(plus),
                "",
            ),
            ("beside: a map before publish_on", made.publish_on(pool).map(plus), cold.publish_on(pool).map(plus), ""),
            ("unused: map", numbers.map(plus), Flow.range(N).map(plus), "0"),
        ]
        for title, one, other, aim in rows:
            low, median, high = difference(one.block, other.block)
            table.add_row(title, f"{low:.3f}", f"{median:.3f}", f"{high:.3f}", aim)
    console.print(table)


if __name__ == "__main__":
    main()
