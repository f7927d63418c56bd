"""Judging many small files beside judging the few that `reactive-runtime compact` makes of them.

python benchmarks/compacting.py [--files 10000] [--records 100] [--runs 10]

Makes runs of so many files in all, of so many records each, whose verdict is known; judges them in a process of its
own, compacts them, and judges them again. A wrong verdict is printed, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from made_traces import LIVE, SCENARIOS, THREADS, Run
from rich.table import Table
from side_by_side import console

from reactive_runtime.judging import judge_runs
from reactive_runtime.judging._compacting import compact
from reactive_runtime.testing import Chunk
from reactive_runtime.testing._buffers import PACKED
from reactive_runtime.testing._records import SubscriptionMetadata
from reactive_runtime.testing._traces.trace_columns import columns_of
from reactive_runtime.testing.trace import TraceWriter

LENGTH = 100
"""Records of each subscription."""


def write(run: Run, folder: Path, records: int) -> None:
    """Write the run in files of so many records, as if a second had no more of them."""
    facts = {
        number: SubscriptionMetadata(number, f"scenario {number % SCENARIOS}", shared_callers=True, ascending=True)
        for number in run.numbers
    }
    writer = TraceWriter(folder, run.name)
    source = writer.source(facts)
    for _, threads, rows in run.slices(records):
        chunks = []
        for thread in range(1, THREADS + 1):
            mine = rows[threads == thread].tobytes()
            chunks.append(Chunk(thread, [mine[at : at + 8 * PACKED] for at in range(0, len(mine), 8 * PACKED)]))
        with writer._writing:  # not by `flush`: it writes the metadata for each file, which are long here
            writer._file("signals", [source._rows(columns_of(chunks))])
            writer._made += 1
    source.end()
    writer.close()


def serve(what: str, folder: Path) -> None:
    """Judge the folder, or compact it, and print what it took."""
    used, begin = time.process_time(), time.perf_counter()
    findings: list[Any] = []
    if what == "compact":
        wrong: list[object] = []
        findings = [run.left for run in compact(folder, note=wrong.append, unable=wrong.append)]
        if wrong:
            raise SystemExit(str(wrong[0]))
    else:
        found = judge_runs([folder])
        columns = ("run", "subscription", "rule", "count", "first")
        findings = sorted(zip(*(found.violations[name].to_pylist() for name in columns), strict=True))
        findings += [len(found.subscriptions)]
    took = {"seconds": time.perf_counter() - begin, "processor": time.process_time() - used}
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({**took, "memory": memory, "findings": findings}))


def measured(what: str, folder: Path) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, __file__, "--serve", what, str(folder)], stdout=subprocess.PIPE, check=True, text=True
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--records", type=int, default=100)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--serve", nargs=2, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.serve:
        serve(asked.serve[0], Path(asked.serve[1]))
        return 0
    subscriptions = max(asked.files * asked.records // asked.runs // LENGTH // LIVE * LIVE, LIVE)
    runs = [Run(f"run-{number:03}", subscriptions, broken=(7,), length=LENGTH) for number in range(asked.runs)]
    due: list[Any] = [list(finding) for run in runs for finding in run.findings()]
    due.append(sum(len(run.numbers) for run in runs))
    table = Table(title="many small files, and the few that `compact` makes of them", title_justify="left")
    for column in ("what", "files", "MB", "seconds", "processor s", "µs a record", "MiB at most", "verdict"):
        table.add_column(column, justify="left" if column in ("what", "verdict") else "right")
    right = True
    with tempfile.TemporaryDirectory(prefix="compacting-") as name:
        folder = Path(name)
        begin = time.perf_counter()
        for run in runs:
            write(run, folder, asked.records)
        records = sum(run.records for run in runs)
        console.print(f"{records:,} records written in {time.perf_counter() - begin:.0f} s", style="dim")
        least: dict[str, float] = {}
        for what, rounds in (("judge", asked.rounds), ("compact", 1), ("judge compacted", asked.rounds)):
            files = list(folder.glob("*/*/signals-*"))
            size = sum(file.stat().st_size for file in files)
            seen = [measured(what, folder) for _ in range(rounds)]
            best = min(seen, key=lambda item: item["processor"])
            wrong = what != "compact" and any(item["findings"] != due for item in seen)
            right = right and not wrong
            least[what] = best["processor"]
            cells = [f"{len(files):,}", f"{size / 1e6:.1f}", f"{best['seconds']:.1f}", f"{best['processor']:.1f}"]
            cells += [f"{best['processor'] / records * 1e6:.2f}", f"{best['memory']:,.0f}"]
            table.add_row(what, *cells, "WRONG" if wrong else "" if what == "compact" else "right")
    console.print(table)
    ratio = least["judge"] / least["judge compacted"]
    console.print(f"compacted, judging takes 1/{ratio:.1f} of the processor time; every verdict is right: {right}")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
