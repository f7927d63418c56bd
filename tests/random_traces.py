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


def likely(dice: random.Random, run: str = "run", most: int = 3) -> list[Record]:
    """A few subscriptions, mostly by the rules; tickets are unique in the run."""
    edges: list[tuple[float, int, str]] = []
    found: list[Record] = []
    for number in range(dice.randint(1, most)):
        for it in _subscription(dice, run, number):
            at = len(found)
            found.append(it)
            edges.append((it.begin + dice.random() / 2, at, "begin"))
            if it.end is not None:
                edges.append((it.end + dice.random() / 2, at, "end"))
    tickets: list[dict[str, int]] = [{} for _ in found]
    now = 0
    for ticket, (_, at, edge) in enumerate(sorted(edges), start=1):
        now += dice.choice([1, 10, 100, 1_000, 100_000])
        tickets[at].update({edge: ticket, f"{edge}_ns": now})
    return [it._replace(**mine) for it, mine in zip(found, tickets, strict=True)]


def _subscription(dice: random.Random, run: str, number: int) -> list[Record]:
    facts: dict[str, Any] = {
        "run": run,
        "scenario": dice.choice(["one", "two"]),
        "subscription": number * dice.choice([1, 1, 100_000]),
        "shared_callers": dice.random() < 0.5,
        "ascending": dice.random() < 0.6,
        "elements": dice.choice([None, None, 0, 1, 3]),
        "late_signals": dice.choice([None, None, 0, 2, 15]),
    }
    kinds = [Signal.SUBSCRIBE, Signal.ON_SUBSCRIBE, *dice.choices(_MIDDLE, k=dice.randint(0, 14))]
    kinds += dice.choice([[], [Signal.ON_COMPLETE], [Signal.ON_ERROR]])
    kinds += dice.choice([[], [], [Signal.REQUEST], [Signal.REQUEST, Signal.ON_NEXT]])
    kinds += dice.choice([[], [Signal.SETTLED]])
    for _ in range(dice.randint(0, 2)):
        kinds.insert(dice.randint(0, len(kinds)), dice.choice(list(Signal)))
    if dice.random() < 0.4:
        kinds.pop(dice.randrange(len(kinds)))
    threads = dice.choice([(1,), (1, 2), (1, 2, 3)])
    records = []
    for place, kind in enumerate(kinds):
        begin = 100 * place
        reach = dice.choice([50] * 6 + [150, 250, 450, -1])
        fields: dict[str, Any] = {"thread": dice.choice(threads), "depth": dice.choice([0, 1, 2, 16, 17, None])}
        if kind == Signal.REQUEST:
            fields["n"] = dice.choice([1, 1, 2, 3, 5, 2**62, MAX_DEMAND - 1, MAX_DEMAND, 0, -1, None])
        elif kind == Signal.ON_NEXT:
            fields["value"] = dice.choice([place, place, place, dice.randint(-2, 6), None])
        if kind == Signal.ON_ERROR:
            fields["error"] = dice.choice(["OSError()", "raised OSError()"])
        elif dice.random() < (0.08 if kind == Signal.REQUEST else 0.03):
            fields["error"] = "raised OSError()"
        end = -1 if reach == -1 and dice.random() < 0.5 else begin + abs(reach)
        records.append(record(kind, begin, end, **{**facts, **fields}))
    return records


def dirty(dice: random.Random, run: str = "run", most: int = 3) -> list[Record]:
    """The same, with fields overwritten at random: anything that the columns can hold."""
    records = likely(dice, run, most)
    share = dice.choice([0.02, 0.1, 0.3])
    if dice.random() < 0.3:  # many records begin, or end, at one ticket
        by = dice.choice([2, 4, 10])
        records = [
            it._replace(begin=it.begin // by, end=None if it.end is None else it.end // by, scenario="one")
            for it in records
        ]
    begins = [it.begin for it in records]
    numbers = {name: lambda: dice.choice(_HUGE) for name in ("begin", "end", "begin_ns", "end_ns", "value", "n")}
    changes: dict[str, Any] = {
        **numbers,
        "elements": lambda: dice.choice([*_HUGE, None]),
        "late_signals": lambda: dice.choice([None, -(2**31), -1, 0, 3, 2**31 - 1]),
        "depth": lambda: dice.choice([None, -1, 2**31 - 1, 17]),
        "signal": lambda: dice.choice(["", "other", "ON_NEXT", "on_next", "settled", None]),
        "thread": lambda: dice.choice([1, 2, -1, 2**63 - 1]),
        "error": lambda: dice.choice([None, "", "raised", "raised ", "raised X()", "X()"]),
        "shared_callers": lambda: dice.random() < 0.5,
        "ascending": lambda: dice.random() < 0.5,
        "scenario": lambda: dice.choice(["one", "two", ""]),
        "subscription": lambda: dice.choice([0, 1, -1, 2**63 - 1, -(2**63)]),
    }

    def soiled(it: Record) -> Record:
        fields: dict[str, Any] = {name: change() for name, change in changes.items() if dice.random() < share}
        if dice.random() < share:
            fields |= {"begin": dice.choice(begins), "end": dice.choice([None, it.end, it.begin, *begins[:2]])}
        if dice.random() < share:
            fields |= dict.fromkeys(dice.sample(("end", "end_ns", "n", "value"), 2))
        return it._replace(**fields)

    records = [soiled(it) for it in records]
    return records + dice.choices(records, k=dice.choice([0, 0, 2]))


def shuffled(dice: random.Random, records: list[Record]) -> list[Record]:
    """In another order."""
    return dice.sample(records, len(records))


LAYOUTS = ["one file", "many files", "overlapping", "no statistics", "foreign"]


def written(
    folder: Path, layout: str, records: Sequence[Record], row_group_size: int = 17, seed: int = 0
) -> list[Path]:
    """The records as files: `layout` says how they lie there."""
    dice = random.Random(seed)
    of: dict[str, list[Record]] = {}
    for it in records:
        of.setdefault(it.run, []).append(it)
    parts: list[tuple[str, list[Record]]] = []
    if layout == "one file":
        parts = [("all", list(records))]
    elif layout == "foreign":  # of several runs, in no order
        mixed = shuffled(dice, list(records))
        parts = [(f"run={at}", mixed[at::3]) for at in range(3)]
    else:
        for run, mine in of.items():
            if layout == "overlapping":
                parts += [(run, mine[at::3]) for at in range(3)]
            else:
                mine.sort(key=lambda it: (it.subscription, it.begin))
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
