"""The cost of planning a verdict as files become more: time, and the memory of the driver.

python benchmarks/planning.py [--files 10000 100000] [--each 100] [--only local]

Made-up runs of `--each` small files are planned from their folders: listed, each run once, marks and footers and
columns and checksums compared, row groups cut into ranges of subscriptions, ranges packed into tasks that judge. Each
number of files is planned by a session of its own, on `local[2]`, where tasks run in the driver's JVM, and on a
standalone cluster of a master and two workers with a core each, where they do not. Memory is the most that the
driver's Python had resident, and what is used of the heap of its JVM after a collection, with the plan in hand.
Nothing is judged. A plan that does not count each file and record is printed, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
from made_traces import processor_seconds
from rich.table import Table
from scale import cluster, environment
from side_by_side import console

from reactive_runtime.spark import session
from reactive_runtime.testing import Record
from reactive_runtime.testing.trace import table_of

ELEMENTS = 20
"""Of each subscription; there are two in a file."""

NAME = "run-{:06}"
PLANNED = "planned "


def records(file: int) -> list[Record]:
    """Of the file with that number, of run 0."""
    made = []
    for number in (2 * file, 2 * file + 1):
        signals: list[tuple[str, int | None]] = [("subscribe", None), ("on_subscribe", None), ("request", ELEMENTS)]
        signals += [("on_next", None)] * ELEMENTS
        for at, (kind, n) in enumerate(signals):
            begin = 1 + 100 * number + 2 * at
            known: dict[str, Any] = {"n": n, "value": at if kind == "on_next" else None, "error": None}
            times = {"begin": begin, "end": begin + 1, "begin_ns": 1_000 * begin, "end_ns": 1_000 * begin + 500}
            facts = {"run": NAME.format(0), "scenario": "made up", "subscription": number, "thread": 1, "signal": kind}
            more = {"shared_callers": False, "ascending": True, "elements": None}
            made.append(Record(**{**facts, **more, **known, **times}))
    return made


def write(folder: Path, files: int, each: int) -> None:
    """Runs of `each` files, as many as have `files` together: those of one run, under other names."""
    with tempfile.TemporaryDirectory() as scratch:
        first = Path(scratch) / "file.parquet"
        originals, rows = [], 0
        for number in range(each):
            table = table_of(records(number))
            rows = len(table)
            # As it is, so that a name of the same length can take the place of another.
            parquet.write_table(table, first, compression="none", write_statistics=True, store_schema=False)
            originals.append(first.read_bytes())
    for run in range(files // each):
        name = NAME.format(run)
        place = folder / f"date=2026-11-{1 + run % 28:02}" / f"run={name}"
        place.mkdir(parents=True)
        checksums = {}
        for number, data in enumerate(originals):
            mine = data.replace(NAME.format(0).encode(), name.encode())
            file = f"signals-{number:05}.parquet"
            (place / file).write_bytes(mine)
            checksums[file] = sha256(mine).hexdigest()
        facts = {"run": name, "identity": {"random": name}, "complete": True, "schema": 4}
        held = {"files": dict.fromkeys(checksums, rows), "checksums": checksums, "records": rows * each}
        (place / "metadata.json").write_text(json.dumps({**facts, **held}))


def plan(master: str, folder: str) -> None:
    """In a process of its own: plan, and print what it took."""
    from reactive_runtime.spark._verdict.planning import plan_groups
    from reactive_runtime.spark._verdict.run_planning import plan_runs

    spark = session(master, {"spark.driver.memory": "2g", "spark.executor.memory": "1g"})
    spark.range(100).mapInArrow(lambda batches: batches, "id long").count()  # tasks have begun once
    wrong: list[Exception] = []
    used, begin = processor_seconds(os.getpid()), time.perf_counter()
    runs = plan_runs(spark, [folder], wrong.append, spark.sparkContext.defaultParallelism)
    listed = time.perf_counter() - begin
    made = plan_groups(runs.groups, runs.sums, spark.sparkContext.defaultParallelism, None, 100_000)
    took, used = time.perf_counter() - begin, processor_seconds(os.getpid()) - used
    jvm: Any = spark.sparkContext._jvm
    jvm.java.lang.System.gc()
    runtime = jvm.java.lang.Runtime.getRuntime()
    heap = runtime.totalMemory() - runtime.freeMemory()
    told = {
        "seconds": took,
        "examined": listed,
        "processor": used,
        "python": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "heap": heap,
        "files": made.files,
        "records": made.rows,
        "runs": runs.count,
        "wrong": [str(error) for error in wrong],
        "tasks": made.tasks,
        "plan": made.explain(),
    }
    print(PLANNED + json.dumps(told), flush=True)
    spark.stop()


def planned(master: str, folder: Path, scratch: Path) -> dict[str, Any]:
    command = [sys.executable, __file__, "--plan", master, str(folder)]
    done = subprocess.run(command, env=environment(scratch), capture_output=True, text=True, check=False)
    for line in done.stdout.splitlines():
        if line.startswith(PLANNED):
            told: dict[str, Any] = json.loads(line.removeprefix(PLANNED))
            return told
    raise SystemExit(f"{master}: the session has ended, with status {done.returncode}:\n{done.stderr[-3000:]}")


def rows(
    asked: argparse.Namespace, scratch: Path, masters: dict[str, str]
) -> Iterator[tuple[str, int, dict[str, Any]]]:
    for files in asked.files:
        folder = scratch / f"files-{files}"
        begin = time.perf_counter()
        write(folder, files, asked.each)
        console.print(f"{files:,} files written in {time.perf_counter() - begin:.0f} s", style="dim")
        for name, master in masters.items():
            told = planned(master, folder, scratch)
            console.print(
                f"{name}, {files:,} files: {told['seconds']:.1f} s, {told['processor']:.1f} s of processor", style="dim"
            )
            yield name, files, told


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--files", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--each", type=int, default=100, help="files of a run")
    parser.add_argument("--only", choices=("local", "cluster"), help="one of the two masters")
    parser.add_argument("--plan", nargs=2, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.plan:
        plan(*asked.plan)
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that what was begun is ended
    table = Table(title="planning", title_justify="left")
    for column in (
        "files",
        "runs",
        "where",
        "seconds",
        "processor s",
        "µs a file",
        "Python, MB",
        "heap, MB",
        "tasks",
        "plan",
    ):
        table.add_column(column, justify="left" if column in ("where", "plan") else "right")
    status = 0
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="planning-")))
        masters = {} if asked.only == "cluster" else {"local[2]": "local[2]"}
        if asked.only != "local":
            masters["cluster"] = stack.enter_context(cluster(scratch))[0]
        for name, files, told in rows(asked, scratch, masters):
            seconds = float(str(told["seconds"]))
            right = told["files"] == files and told["records"] == files * 2 * (ELEMENTS + 3) and not told["wrong"]
            if not right:
                status = 1
                console.print(f"{name}, {files:,}: WRONG: {told}")
            sizes = [f"{int(str(told[of])) / 1e6:,.0f}" for of in ("python", "heap")]
            way = str(told["plan"]).partition(":")[0]
            used = float(str(told["processor"]))
            cells = [f"{seconds:.1f}", f"{used:.1f}", f"{used / files * 1e6:.0f}", *sizes, str(told["tasks"]), way]
            table.add_row(f"{files:,}", f"{told['runs']:,}", name, *cells)
    console.print(table)
    return status


if __name__ == "__main__":
    sys.exit(main())
