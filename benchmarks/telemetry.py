"""The cost of an observed flow: telemetry imported but not used, and on; pairs in turn, process time.

"on": the flow is observed, exported to OpenTelemetry, and looked at twenty times a second. Each look runs on a thread
of its own, and its time counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from rich.table import Table
from side_by_side import console, pairs

from reactive_runtime import Flow
from reactive_runtime._core.failures import dropping
from reactive_runtime._operators import monitoring
from reactive_runtime.telemetry import export, observe

N = 300_000
ROUNDS = 41

CHAIN = Flow.range(N).map(lambda n: n + 1).filter(lambda n: n % 3).map(lambda n: n * 2)


def consume(flow: Flow[Any]) -> Callable[[], object]:
    return lambda: flow.subscribe(lambda n: None)


def block(flow: Flow[Any]) -> Callable[[], object]:
    return flow.block


def boundary(pool: ThreadPoolExecutor) -> Flow[Any]:
    return Flow.range(N).map(lambda n: n + 1).subscribe_on(pool).publish_on(pool).map(lambda n: n * 2)


def unused(run: Callable[[], object]) -> Callable[[], object]:
    """The same, as in a process without telemetry."""

    def runs() -> object:
        kept = monitoring.counted_as, dropping.counts_retries, dropping.counts_drops
        monitoring.counted_as = dropping.counts_retries = dropping.counts_drops = None
        try:
            return run()
        finally:
            monitoring.counted_as, dropping.counts_retries, dropping.counts_drops = kept

    return runs


def main() -> None:
    """Print a table."""
    provider = MeterProvider([InMemoryMetricReader()])
    export(provider)
    table = Table(title=f"An observed flow beside the same flow, {N:,} elements, {ROUNDS} pairs", title_justify="left")
    for column in ("flow", "quartile", "median", "quartile", "must reach"):
        table.add_column(column, justify="left" if column == "flow" else "right")
    with ThreadPoolExecutor(2, "pool") as pool:
        crossing = boundary(pool)
        rejecting = Flow.range(N).map(lambda n: n + 1).filter(lambda n: n % 10 == 0).map(lambda n: n * 2)
        maps = Flow.range(N).map(lambda n: n + 1).map(lambda n: n % 3).map(lambda n: n * 2)
        taking = CHAIN.take(N)
        middle = Flow.range(N).map(lambda n: n + 1).filter(lambda n: n % 3)
        rows: list[tuple[str, Callable[[], object], Callable[[], object], str]] = [
            ("off: fused chain, subscribe", consume(CHAIN), unused(consume(CHAIN)), "1.01"),
            ("off: boundary, block", block(crossing), unused(block(crossing)), "1.01"),
            ("on: map, map, map, subscribe", consume(observe(maps, "maps")), consume(maps), "1.05"),
            ("on: map, filter, map, subscribe", consume(observe(CHAIN, "chain")), consume(CHAIN), "1.05"),
            ("on: map, filter, map, block", block(observe(CHAIN, "blocked")), block(CHAIN), "1.05"),
            ("on: boundary, block", block(observe(crossing, "boundary")), block(crossing), "1.05"),
            ("on: fused, 9 of 10 rejected", consume(observe(rejecting, "rejecting")), consume(rejecting), ""),
            ("on: fused, with take", consume(observe(taking, "taking")), consume(taking), ""),
            (
                "on: fused, a name in the middle",
                consume(observe(middle.named("passed").map(lambda n: n * 2), "named")),
                unused(consume(middle.named("passed").map(lambda n: n * 2))),
                "",
            ),
        ]
        for title, one, other, aim in rows:
            low, median, high = pairs(one, other, ROUNDS, time.process_time)
            table.add_row(title, f"{low:.3f}", f"{median:.3f}", f"{high:.3f}", aim)
    console.print(table)


if __name__ == "__main__":
    main()
