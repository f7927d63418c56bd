"""A year of nights that is made up: rows of the table `nights`, in which a few scenarios begin to fail.

python -m examples.year.made_year FOLDER [--machines 200] [--nights 365] [--planted 6]

It writes the tables of a verdict below the folder, and prints what it has planted.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

from reactive_runtime.spark._verdict.nights import schema

__all__ = ["SCENARIOS", "Planted", "commit_of", "date_of", "made_year", "planted_in", "write_year"]

SCENARIOS: Final = ("flat_map", "group_by", "merge", "publish_on", "replay", "timeout")

BEGIN: Final = datetime(2025, 12, 1, 2, 15, tzinfo=UTC)

NIGHTS_A_COMMIT: Final = 2
"""Each commit is tested for so many nights."""

RULES: Final = ("1.1", "1.3", "1.8", "2.7", "conservation")


@dataclass(frozen=True)
class Planted:
    """A scenario begins to fail on a night, on some machines."""

    scenario: str
    night: int
    machines: tuple[int, ...]
    rule: str
    nights: int | None = None
    """For how many nights; None: it has not ended."""
    every: int = 1
    """It fails on each night, on every second and so on."""

    def on(self, night: int) -> bool:
        """Whether it fails on that night."""
        since = night - self.night
        return since >= 0 and (self.nights is None or since < self.nights) and since % self.every == 0


def date_of(night: int) -> str:
    """The day of that night."""
    return f"{BEGIN + timedelta(days=night):%Y-%m-%d}"


def commit_of(night: int) -> str:
    """The commit that is tested in that night."""
    return f"{(night // NIGHTS_A_COMMIT + 1) * 0x9E3779B97F % 2**48:012x}"


def machine_of(number: int) -> str:
    """The name of a machine."""
    return f"machine-{number:03}, 12 cores, Linux"


def planted_in(rng: random.Random, count: int, machines: int, nights: int) -> list[Planted]:
    """So many regressions, each of a scenario and a rule of its own: some last, some end, some come and go."""
    kinds = [(scenario, rule) for scenario in SCENARIOS for rule in RULES]
    found = []
    for at, (scenario, rule) in enumerate(rng.sample(kinds, count)):
        of = rng.sample(range(machines), min(machines, rng.choice([1, 1, 3, machines])))
        night = rng.randrange(NIGHTS_A_COMMIT, nights - 20, NIGHTS_A_COMMIT)  # the first of its commit
        ends = None if at % 3 else rng.randrange(1, 12)
        found.append(Planted(scenario, night, tuple(sorted(of)), rule, ends, rng.choice([1, 1, 3])))
    return found


def made_year(planted: Sequence[Planted], machines: int = 200, nights: int = 365, seed: int = 0) -> pa.Table:
    """The rows: a run a machine and night, each of all scenarios.

    Latency and throughput differ by scenario, machine and night; a hundredth of all scenarios was not looked at.
    """
    rng = np.random.default_rng(seed)
    count = nights * machines * len(SCENARIOS)
    night, rest = np.divmod(np.arange(count), machines * len(SCENARIOS))
    machine, scenario = np.divmod(rest, len(SCENARIOS))
    wait = 2_000 * (1 + scenario) * np.exp(rng.normal(0, 0.3, count) + 0.2 * np.sin(machine))
    waits = {name: (times * wait).astype(np.int64) for name, times in (("p50", 1), ("p90", 2), ("p99", 5), ("max", 9))}
    signals = (1_000_000 * np.exp(rng.normal(0, 0.2, count)) / (1 + scenario)).astype(np.int64)
    state = np.where(rng.random(count) < 0.01, "skipped", "clean").astype(object)
    rules = np.full(count, "", object)
    names = np.array(SCENARIOS)
    for item in planted:
        on = np.array([item.on(at) for at in range(nights)])
        broken = on[night] & np.isin(machine, item.machines) & (names[scenario] == item.scenario)
        state[broken] = "broken"
        rules[broken] = [", ".join(sorted({*text.split(", "), item.rule} - {""})) for text in rules[broken]]
    texts: dict[str, Any] = {
        "run": [f"{date_of(at)}-{of}" for at in range(nights) for of in range(machines)],
        "started": [f"{date_of(at)}T02:15:00+00:00" for at in range(nights)],
        "commit": [commit_of(at) for at in range(nights)],
        "machine": [machine_of(of) for of in range(machines)],
    }
    places = {"run": night * machines + machine, "started": night, "commit": night, "machine": machine}
    columns: dict[str, Any] = {name: np.array(texts[name], object)[places[name]] for name in texts}
    columns |= {"python": ["3.13.1"] * count, "version": ["0.1.0"] * count, "complete": [True] * count}
    columns |= {"scenario": names[scenario].astype(object), "state": state, "rules": rules}
    columns |= {"subscriptions": np.full(count, 100), "broken": (state == "broken").astype(np.int64)}
    columns |= {"signals": signals, "rounds": np.full(count, 20), "load_signals": signals}
    columns |= {"load_seconds": np.full(count, 0.5)}
    columns |= {f"{what}_{name}": of for what in ("demand", "silence") for name, of in waits.items()}
    return pa.table({field.name: pa.array(columns[field.name], field.type) for field in schema()})


def write_year(folder: Path, rows: pa.Table) -> Path:
    """Write the table as a verifier does, a file a month; the folder of the verdict."""
    tables = folder / "verdict"
    months = np.array([str(text)[:7] for text in rows["started"].to_pylist()])
    for month in np.unique(months):
        part = tables / "nights" / f"month={month}"
        part.mkdir(parents=True)
        parquet.write_table(rows.filter(pa.array(months == month)), part / "part-0.parquet")
    (tables / "verdict.json").write_text('{"runs": [], "unable": []}\n', encoding="utf-8")
    return tables


def main() -> None:
    """Write a year, and print what is planted."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--machines", type=int, default=200)
    parser.add_argument("--nights", type=int, default=365)
    parser.add_argument("--planted", type=int, default=6)
    asked = parser.parse_args()
    planted = planted_in(random.Random(7), asked.planted, asked.machines, asked.nights)
    write_year(asked.folder, made_year(planted, asked.machines, asked.nights))
    for item in sorted(planted, key=lambda item: item.night):
        where = f"{len(item.machines)} machine(s), the first {machine_of(item.machines[0])}"
        print(f"{date_of(item.night)} {commit_of(item.night)} {item.scenario}: rule {item.rule}, on {where}")


if __name__ == "__main__":
    main()
