"""Random traces by plain dice, thousands in seconds: lawful ones with a few slips, and dirty ones as none records."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
from strategies import record

from reactive_runtime import MAX_DEMAND
from reactive_runtime.testing import Record, Signal
from reactive_runtime.testing.trace import table_of

__all__ = ["LAYOUTS", "dirty", "likely", "shuffled", "written"]

_MIDDLE = [Signal.ON_NEXT] * 5 + [Signal.REQUEST] * 4 + [Signal.CANCEL]
_HUGE = (-(2**63), -(2**62), -1, 0, 1, 2, 2**31 - 1, 2**31, 2**32, 2**61 - 1, 2**61, 2**62, 2**63 - 2, 2**63 - 1)


def likely(rng: random.Random, run: str = "run", most: int = 3) -> list[Record]:
    """A few subscriptions, mostly by the rules; tickets are unique in the run."""
    edges: list[tuple[float, int, str]] = []
    found: list[Record] = []
    for number in range(rng.randint(1, most)):
        for entry in _subscription(rng, run, number):
            at = len(found)
            found.append(entry)
            edges.append((entry.begin + rng.random() / 2, at, "begin"))
            if entry.end is not None:
                edges.append((entry.end + rng.random() / 2, at, "end"))
    tickets: list[dict[str, Any]] = [{} for _ in found]
    now = 0
    for ticket, (_, at, edge) in enumerate(sorted(edges), start=1):
        now += rng.choice([1, 10, 100, 1_000, 100_000])
        tickets[at].update({edge: ticket, f"{edge}_ns": now})
    return [item._replace(**mine) for item, mine in zip(found, tickets, strict=True)]


def _subscription(rng: random.Random, run: str, number: int) -> list[Record]:
    facts: dict[str, Any] = {
        "run": run,
        "scenario": rng.choice(["one", "two"]),
        "subscription": number * rng.choice([1, 1, 100_000]),
        "shared_callers": rng.random() < 0.5,
        "ascending": rng.random() < 0.6,
        "elements": rng.choice([None, None, 0, 1, 3]),
        "late_signals": rng.choice([None, None, 0, 2, 15]),
    }
    beyond = rng.choice([0] * 6 + [0.2, 1])  # how many of its elements have more than 64 bits, or nearly
    kinds = [Signal.SUBSCRIBE, Signal.ON_SUBSCRIBE, *rng.choices(_MIDDLE, k=rng.randint(0, 14))]
    kinds += rng.choice([[], [Signal.ON_COMPLETE], [Signal.ON_ERROR]])
    kinds += rng.choice([[], [], [Signal.REQUEST], [Signal.REQUEST, Signal.ON_NEXT]])
    kinds += rng.choice([[], [Signal.SETTLED]])
    for _ in range(rng.randint(0, 2)):
        kinds.insert(rng.randint(0, len(kinds)), rng.choice(list(Signal)))
    if rng.random() < 0.4:
        kinds.pop(rng.randrange(len(kinds)))
    threads = rng.choice([(1,), (1, 2), (1, 2, 3)])
    records = []
    for place, kind in enumerate(kinds):
        begin = 100 * place
        reach = rng.choice([50] * 6 + [150, 250, 450, -1])
        fields: dict[str, Any] = {"thread": rng.choice(threads), "depth": rng.choice([0, 1, 2, 16, 17, None])}
        if kind == Signal.REQUEST:
            fields["n"] = rng.choice([1, 1, 2, 3, 5, 2**62, MAX_DEMAND - 1, MAX_DEMAND, 0, -1, None])
        elif kind == Signal.ON_NEXT:
            fields["value"] = rng.choice([place, place, place, rng.randint(-2, 6), None])
            if fields["value"] is not None and rng.random() < beyond:
                fields["value"] += rng.choice([2**63 - 4, 2**70, -(2**64)])
        if kind == Signal.ON_ERROR:
            fields["error"] = rng.choice(["OSError()", "raised OSError()"])
        elif rng.random() < (0.08 if kind == Signal.REQUEST else 0.03):
            fields["error"] = "raised OSError()"
        fields["none"] = rng.random() < 0.03
        end = -1 if reach == -1 and rng.random() < 0.5 else begin + abs(reach)
        records.append(record(kind, begin, end, **{**facts, **fields}))
    return records


def dirty(rng: random.Random, run: str = "run", most: int = 3) -> list[Record]:
    """The same, with fields overwritten at random: anything that the columns can hold."""
    records = likely(rng, run, most)
    share = rng.choice([0.02, 0.1, 0.3])
    if rng.random() < 0.3:  # many records begin, or end, at one ticket
        by = rng.choice([2, 4, 10])
        records = [
            item._replace(begin=item.begin // by, end=None if item.end is None else item.end // by, scenario="one")
            for item in records
        ]
    begins = [item.begin for item in records]
    numbers = {name: lambda: rng.choice(_HUGE) for name in ("begin", "end", "begin_ns", "end_ns", "n")}
    changes: dict[str, Any] = {
        **numbers,
        "value": lambda: rng.choice([*_HUGE, 2**63, 2**64 + 1, -(2**63) - 1, 2**200]),
        "elements": lambda: rng.choice([*_HUGE, None]),
        "late_signals": lambda: rng.choice([None, -(2**31), -1, 0, 3, 2**31 - 1]),
        "depth": lambda: rng.choice([None, -1, 2**31 - 1, 17]),
        "signal": lambda: rng.choice(["", "other", "ON_NEXT", "on_next", "settled", None]),
        "thread": lambda: rng.choice([1, 2, -1, 2**63 - 1]),
        "error": lambda: rng.choice([None, "", "raised", "raised ", "raised X()", "X()"]),
        "shared_callers": lambda: rng.random() < 0.5,
        "ascending": lambda: rng.random() < 0.5,
        "none": lambda: rng.random() < 0.5,
        "scenario": lambda: rng.choice(["one", "two", ""]),
        "subscription": lambda: rng.choice([0, 1, -1, 2**63 - 1, -(2**63)]),
    }

    def soiled(item: Record) -> Record:
        fields: dict[str, Any] = {name: change() for name, change in changes.items() if rng.random() < share}
        if rng.random() < share:
            fields |= {"begin": rng.choice(begins), "end": rng.choice([None, item.end, item.begin, *begins[:2]])}
        if rng.random() < share:
            fields |= dict.fromkeys(rng.sample(("end", "end_ns", "n", "value"), 2))
        return item._replace(**fields)

    records = [soiled(item) for item in records]
    return records + rng.choices(records, k=rng.choice([0, 0, 2]))


def shuffled(rng: random.Random, records: list[Record]) -> list[Record]:
    """In another order."""
    return rng.sample(records, len(records))


LAYOUTS = ["one file", "many files", "overlapping", "no statistics", "foreign"]


def written(
    folder: Path, layout: str, records: Sequence[Record], row_group_size: int = 17, seed: int = 0
) -> list[Path]:
    """The records as files: `layout` says how they lie there."""
    rng = random.Random(seed)
    of: dict[str, list[Record]] = {}
    for entry in records:
        of.setdefault(entry.run, []).append(entry)
    parts: list[tuple[str, list[Record]]] = []
    if layout == "one file":
        parts = [("all", list(records))]
    elif layout == "foreign":  # of several runs, in no order
        mixed = shuffled(rng, list(records))
        parts = [(f"run={at}", mixed[at::3]) for at in range(3)]
    else:
        for run, mine in of.items():
            if layout == "overlapping":
                parts += [(run, mine[at::3]) for at in range(3)]
            else:
                mine.sort(key=lambda item: (item.subscription, item.begin))
                parts += [(run, mine[at : at + 40]) for at in range(0, len(mine), 40)]
    options: dict[str, Any] = {"row_group_size": row_group_size}
    if layout == "no statistics":
        options["write_statistics"] = False
    for number, (run, some) in enumerate(parts):
        table = table_of(some)
        table = table.cast(pa.schema([field.with_nullable(True) for field in table.schema]))
        if layout == "foreign":
            table = table.select(sorted(table.column_names, reverse=True)).append_column("more", pa.nulls(len(table)))
        (folder / run).mkdir(exist_ok=True)
        parquet.write_table(table, folder / run / f"signals-{number:05}.parquet", **options)
    return sorted(folder.glob("*/*.parquet"))
