"""A model of the cost of a verdict, fitted on sizes that are judged here, and its answer for larger ones.

python benchmarks/cost.py [--sizes 1000000 10000000 100000000 1000000000] [--of 50000000] [--runs 10 100 1000]

Made-up runs are written and judged by `verify` in a session on `local[2]`, from their folders to the tables of the
verdict, warm: each of `--sizes` records, in runs of `--of` records at most; and so many runs of 1,000 records as
`--runs` says. Each is judged once and its files are removed. For each the program notes the seconds, the processor time
of all processes, the tasks, the bytes of the files, the bytes that Spark shuffled, the most that the driver's Python
had resident, and the heap of its JVM after a collection.

Cost is a constant, and so much a record and a run. The numbers are fitted on all sizes but the largest, least squares
of relative errors; then the model says what the largest should take, beside what it took. At the end it says what
`--predict` records would take on `--workers` machines of `--cores` cores, in `--night-runs` runs. A verdict that is
wrong is printed, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import numpy as np
from made_traces import LENGTH, Run, processor_seconds, write_all
from rich.table import Table
from side_by_side import console

from reactive_runtime.spark import session, verify
from reactive_runtime.spark._session.spark_session import JUDGING

CORES = 2
"""Of this machine that Spark uses."""

WARM = 3
"""Verdicts that do not count, before those that do."""


@dataclass(frozen=True)
class Size:
    """So many runs of so many records each."""

    runs: int
    records: int

    @property
    def all(self) -> int:
        return self.runs * self.records


@dataclass(frozen=True)
class Cost:
    """The cost of the verdict on one size."""

    size: Size
    seconds: float
    processor: float
    tasks: int
    read: int
    """Bytes of the files."""
    shuffled: int
    """Bytes that tasks wrote for other tasks."""
    resident: int
    """Bytes of the driver's Python at most, so far."""
    heap: int
    """Bytes that the JVM holds after a collection."""
    right: bool


def sizes_of(asked: argparse.Namespace) -> list[Size]:
    large = [Size(-(-records // asked.of), min(records, asked.of)) for records in asked.sizes]
    return [*(Size(runs, LENGTH) for runs in asked.runs), *large]


def written(size: Size, folder: Path) -> int:
    """Write the runs of a size; the bytes of their files."""
    begin = time.perf_counter()
    each = size.records // LENGTH
    runs = [(Run(f"cost-{number:05}", each), folder / f"{number:05}") for number in range(size.runs)]
    places = write_all(runs)
    read = sum(file.stat().st_size for place in places for file in place.glob("*.parquet"))
    took = time.perf_counter() - begin
    console.print(
        f"{size.all:,} records in {size.runs:,} runs, {read / 1e6:,.0f} MB, written in {took:.0f} s", style="dim"
    )
    return read


class Stages:
    """The stages that Spark has run, as its own page on this machine has them."""

    def __init__(self, spark: Any) -> None:
        context = spark.sparkContext
        self._url = f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}/stages"
        self._seen: set[int] = set()
        self.new()

    def new(self) -> tuple[int, int]:
        """The tasks that have ended since the last time, and the bytes that they wrote for others."""
        with urlopen(self._url, timeout=60) as answer:
            stages = [stage for stage in json.load(answer) if stage["stageId"] not in self._seen]
        self._seen.update(stage["stageId"] for stage in stages)
        return sum(stage["numCompleteTasks"] for stage in stages), sum(stage["shuffleWriteBytes"] for stage in stages)


def judged(spark: Any, stages: Stages, size: Size, scratch: Path) -> Cost:
    """Write a size, judge it, and remove it."""
    folder = scratch / f"{size.runs}-{size.records}"
    read = written(size, folder)
    used, begin = processor_seconds(os.getpid()), time.perf_counter()
    verdict = verify(spark, [folder], scratch / "verdict")
    seconds, used = time.perf_counter() - begin, processor_seconds(os.getpid()) - used
    subscriptions = sum(row["subscriptions"] for row in verdict.summary)
    right = verdict.clean and subscriptions == size.all // LENGTH
    if not right:
        console.print(f"WRONG: {subscriptions} subscriptions of {size.all // LENGTH}, clean: {verdict.clean}")
    del verdict
    tasks, shuffled = stages.new()
    shutil.rmtree(folder)
    shutil.rmtree(scratch / "verdict")
    jvm: Any = spark.sparkContext._jvm
    jvm.java.lang.System.gc()
    runtime = jvm.java.lang.Runtime.getRuntime()
    heap = runtime.totalMemory() - runtime.freeMemory()
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    console.print(f"judged in {seconds:.1f} s, {used:.1f} s of processors", style="dim")
    return Cost(size, seconds, used, tasks, read, shuffled, resident, heap, right)


def fitted(costs: Sequence[Cost], of: str) -> np.ndarray[Any, Any]:
    """The cost of a verdict, a run and a record: by least squares of relative errors, and never below nothing."""
    value = np.array([float(getattr(cost, of)) for cost in costs])
    parts = np.array([[1.0, cost.size.runs, cost.size.all] for cost in costs])
    weights = 1 / np.maximum(value, 1.0)
    kept = [0, 1, 2]
    while True:  # without those whose share would be negative
        found = np.linalg.lstsq(parts[:, kept] * weights[:, None], value * weights, rcond=None)[0]
        if (found >= 0).all():
            break
        kept.pop(int(np.argmin(found)))
    numbers = np.zeros(3)
    numbers[kept] = found
    return numbers


def says(model: np.ndarray[Any, Any], runs: int, records: int) -> float:
    return float(model @ np.array([1.0, runs, records]))


FITTED = ("processor", "read", "shuffled")
"""Tasks have a bound, 10,000 that judge; the driver's memory grows with runs and scenarios, and not with records."""


def shown(costs: Sequence[Cost]) -> None:
    table = Table(title="the cost of a verdict", title_justify="left")
    columns = ("records", "runs", "seconds", "processor s", "million a s and core", "tasks", "MB read", "MB shuffled")
    for column in (*columns, "driver: Python, MB", "its JVM, MB"):
        table.add_column(column, justify="right")
    for cost in costs:
        rate = f"{cost.size.all / cost.processor / 1e6:.2f}"
        sizes = [f"{item / 1e6:,.0f}" for item in (cost.read, cost.shuffled, cost.resident, cost.heap)]
        cells = [f"{cost.size.runs:,}", f"{cost.seconds:.1f}", f"{cost.processor:.1f}", rate, f"{cost.tasks:,}"]
        table.add_row(f"{cost.size.all:,}", *cells, *sizes)
    console.print(table)


def predicted(costs: Sequence[Cost], asked: argparse.Namespace) -> None:
    """The model without the largest, beside the largest; then the model of all, and what it says of many more."""
    largest = max(costs, key=lambda cost: cost.size.all)
    others = [cost for cost in costs if cost is not largest]
    table = Table(title="the model", title_justify="left")
    far = f"{asked.predict:.0e} records in {asked.night_runs:,} runs"
    for column in ("", "a verdict", "a run", "a record", f"of {largest.size.all:,}: said", "was", "off by", far):
        table.add_column(column, justify="left" if not column else "right")
    for of in FITTED:
        without, whole = fitted(others, of), fitted(costs, of)
        said, was = says(without, largest.size.runs, largest.size.all), float(getattr(largest, of))
        cells = [f"{number:.3g}" for number in whole]
        more = f"{says(whole, asked.night_runs, int(asked.predict)):.3g}"
        table.add_row(of, *cells, f"{said:.3g}", f"{was:.3g}", f"{said / max(was, 1.0) - 1:+.0%}", more)
    console.print(table)
    cores = asked.workers * asked.cores
    work = says(fitted(costs, "processor"), asked.night_runs, int(asked.predict))
    console.print(
        f"on {asked.workers} workers of {asked.cores} cores, evenly shared: {work / cores:,.0f} s; "
        "a core is one of this machine's"
    )


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", type=int, nargs="*", default=[10**6, 10**7, 10**8, 10**9])
    parser.add_argument("--of", type=int, default=50_000_000, help="records of a run, at most")
    parser.add_argument("--runs", type=int, nargs="*", default=[10, 100, 1_000])
    parser.add_argument("--predict", type=float, default=1e12, help="records")
    parser.add_argument("--night-runs", type=int, default=365 * 200, help="runs that have them")
    parser.add_argument("--workers", type=int, default=100)
    parser.add_argument("--cores", type=int, default=8)
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the files are removed
    settings = {**JUDGING, "spark.ui.enabled": "true", "spark.ui.showConsoleProgress": "false"}
    spark = session(f"local[{CORES}]", {**settings, "spark.driver.memory": "1g"})
    with tempfile.TemporaryDirectory(prefix="cost-") as folder:
        stages = Stages(spark)
        for _ in range(WARM):
            judged(spark, stages, Size(2, 100_000), Path(folder))
        costs = [judged(spark, stages, size, Path(folder)) for size in sizes_of(asked)]
    spark.stop()
    shown(costs)
    if len(costs) > 3:
        predicted(costs, asked)
    return 0 if all(cost.right for cost in costs) else 1


if __name__ == "__main__":
    sys.exit(main())
