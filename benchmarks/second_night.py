"""The cost of a night beside its own records, with histories of 1, 10, 100 and 1,000 nights.

python benchmarks/second_night.py [--records 2000000] [--histories 1,10,100,1000] [--rounds 3]

A history is runs of some records each, one a night, judged by `verify` as all runs are. Then a night of `--records` is
added, and judged in a warm session, `local[2]`, by `verify(incremental=True)`; the report that the command prints is
read too. `alone` is the same run, judged without a history. Both are judged in turn, and the least of each counts:
other work on the machine makes it more, and never less. The factor is that after a history by that alone; the
processor time, of all processes, is changed less by other work. A wrong verdict is printed, and the exit status is 1.
Of a run that was judged only the metadata are looked at, so it does not matter how many records it has.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from made_traces import Run, processor_seconds, write
from rich.table import Table
from side_by_side import console

from reactive_runtime.report import load
from reactive_runtime.spark import session, verify
from reactive_runtime.spark._session.spark_session import JUDGING

WITHIN = 1.1
"""The factor that a night may cost, beside its own records' time."""

SMALL = 10
"""Subscriptions of each run of a history."""

LENGTH = 100
"""Records of each of them."""


def dated(folder: Path, run: str, day: int) -> None:
    """Say in the metadata of a run that it is of that night."""
    file = folder / "metadata.json"
    metadata = json.loads(file.read_text(encoding="utf-8"))
    began = datetime(2025, 1, 1, 2, 15, tzinfo=UTC) + timedelta(days=day)
    file.write_text(json.dumps({**metadata, "run": run, "started": began.isoformat(), "machine": "here"}))


def history(folder: Path, nights: int) -> None:
    """Runs of so many nights, each a copy of one that was written, with an identity of its own."""
    made = write(Run("made", SMALL, length=LENGTH), folder / "made")
    for day in range(nights):
        name = f"night-{day:04}"
        path = folder / "runs" / f"date={day:04}" / f"run={name}"
        shutil.copytree(made, path)
        dated(path, name, day)
        metadata = json.loads((path / "metadata.json").read_text(encoding="utf-8"))
        renamed(path, name)
        files = sorted(path.glob("signals-*.parquet"))
        sums = {file.name: sum_of(file) for file in files}
        metadata |= {"identity": {"night": day}, "checksums": sums}
        (path / "metadata.json").write_text(json.dumps(metadata))
    shutil.rmtree(folder / "made")


def renamed(path: Path, run: str) -> None:
    """The same records, of that run."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    for file in path.glob("signals-*.parquet"):
        table = parquet.ParquetFile(file).read()
        at = table.column_names.index("run")
        names = pa.array([run] * len(table), table.schema.field("run").type)
        parquet.write_table(table.set_column(at, table.schema.field("run"), names), file)


def sum_of(file: Path) -> str:
    from reactive_runtime.testing._traces.trace_files import checksum_of

    return checksum_of(file)


def judged(spark: Any, folder: Path, out: Path, run: Run) -> tuple[float, float]:
    """Judge what is outstanding: the seconds that it took, with the report, and those of processors."""
    used, begin = processor_seconds(os.getpid()), time.perf_counter()
    verdict = verify(spark, [folder], out, incremental=True)
    report = load(out, history=False)
    took = time.perf_counter() - begin, processor_seconds(os.getpid()) - used
    signals = sum(row["subscriptions"] for row in verdict.summary)
    if not (verdict.clean and report.verdict == "clean" and signals == run.subscriptions):
        console.print(f"WRONG: {signals} subscriptions of {run.subscriptions}, {report.verdict}")
        raise SystemExit(1)
    return took


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--histories", default="1,10,100,1000")
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    spark = session("local[2]", JUDGING)
    title = f"a night of {asked.records:,} records, after others"
    table = Table(title=title, title_justify="left")
    columns = ("nights before", "alone, s", "after them, s", "factor", "processor s", "after them", "factor")
    for column in (*columns, f"at most {WITHIN}"):
        table.add_column(column, justify="right")
    run = Run("new", max(asked.records // 1_000, 1))
    with tempfile.TemporaryDirectory(prefix="second-night-") as scratch:
        new = write(run, Path(scratch) / "new")
        dated(new, "new", 2_000)
        judged(spark, new, Path(scratch) / "warm", run)
        for nights in map(int, asked.histories.split(",")):
            folder = Path(scratch) / str(nights)
            history(folder, nights)
            verify(spark, [folder / "runs"], folder / "before", incremental=True)
            moved = folder / "runs" / "date=new" / "run=new"
            shutil.copytree(new, moved)
            alone: list[tuple[float, float]] = []
            beside: list[tuple[float, float]] = []
            for at in range(asked.rounds):
                out = folder / f"out {at}"
                shutil.copytree(folder / "before", out)
                turns = [(beside, folder / "runs", out), (alone, moved, folder / f"alone {at}")]
                for taken, what, to in turns if at % 2 else turns[::-1]:
                    taken.append(judged(spark, what, to, run))
            cells, factors = [], []
            for of in range(2):
                least = [min(took[of] for took in taken) for taken in (alone, beside)]
                factors.append(least[1] / least[0])
                cells += [*(f"{item:.2f}" for item in least), f"{factors[-1]:.2f}"]
            console.print(f"{nights:,} nights before: factor {factors[0]:.2f}, by processor time {factors[1]:.2f}")
            table.add_row(f"{nights:,}", *cells, "yes" if max(factors) <= WITHIN else "NO")
    spark.stop()
    console.print(table)


if __name__ == "__main__":
    main()
