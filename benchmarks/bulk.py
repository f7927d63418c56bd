"""How many records a second `check` judges that are in memory: by the reference alone, and by columns first; in turn.

python benchmarks/bulk.py [--records 500000]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time

from made_traces import LENGTH
from rich.table import Table
from side_by_side import console

from reactive_runtime.judging import _bulk as bulk
from reactive_runtime.testing import Record, check
from reactive_runtime.testing import _checker as checker

ROUNDS = 3
ALONE, FIRST = "the reference alone", "by columns first"


def made(records: int, broken: int) -> list[Record]:
    """Subscriptions of LENGTH records; every so many-th gets one element too many; 0: none does."""
    found: list[Record] = []
    ticket = 0

    def add(subscription: int, signal: str, n: int | None = None, value: int | None = None) -> None:
        nonlocal ticket
        ticket += 2
        known = ("run", "scenario", subscription, False, True, None, 1, signal, n)
        found.append(Record(*known, ticket, ticket + 1, ticket * 100, ticket * 100 + 50, value, None))

    for subscription in range(records // LENGTH):
        add(subscription, "subscribe")
        add(subscription, "on_subscribe")
        elements = LENGTH - 3
        add(subscription, "request", elements - bool(broken and subscription % broken == 0))
        for value in range(elements):
            add(subscription, "on_next", value=value)
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--records", type=int, default=500_000)
    asked = parser.parse_args()
    table = Table(title="check: records a second, by processor time, medians", title_justify="left")
    for column in ("subscriptions that break a rule", ALONE, FIRST, "ratio"):
        table.add_column(column, justify="right")
    bulk.suspects(made(LENGTH, 0))  # imported, and warm
    for broken, said in ((0, "none"), (100, "1 in 100"), (1, "all")):
        records = made(asked.records, broken)
        took: dict[str, list[float]] = {ALONE: [], FIRST: []}
        verdicts = []
        for _ in range(ROUNDS):
            for way, many in ((ALONE, sys.maxsize), (FIRST, 0)):
                checker.MANY = many  # type: ignore[misc]
                begin = time.process_time()
                verdicts.append(check(records))
                took[way].append(time.process_time() - begin)
        assert all(verdict == verdicts[0] for verdict in verdicts)
        alone, first = (statistics.median(took[way]) for way in (ALONE, FIRST))
        table.add_row(said, f"{len(records) / alone:,.0f}", f"{len(records) / first:,.0f}", f"{alone / first:.2f}")
    console.print(table)


if __name__ == "__main__":
    main()
