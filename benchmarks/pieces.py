"""How fast one subscription is judged that does not fit into memory, and how much memory that takes.

python benchmarks/pieces.py [--records 8000000] [--most 6000000]

The trace is written first, which takes longer. It keeps all rules but 1.1, which its long subscription breaks; the exit
status is 1 where the verdict says otherwise.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from pathlib import Path

from made_traces import Run, write_all
from side_by_side import console

from reactive_runtime.judging import judge_runs

FEW = 64
"""Other subscriptions, of 1,000 records each."""


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--records", type=int, default=8_000_000)
    parser.add_argument("--most", type=int, default=6_000_000, help="records that memory may hold at once")
    asked = parser.parse_args()
    run = Run("long", FEW, long=asked.records, broken=(FEW,))
    with tempfile.TemporaryDirectory(prefix="pieces-") as folder:
        write_all([(run, Path(folder))])  # in a process of its own, whose memory does not count
        begin, used = time.perf_counter(), time.process_time()
        judged = judge_runs([folder], most=asked.most)
        wall, used = time.perf_counter() - begin, time.process_time() - used
    found = judged.violations.select(["run", "subscription", "rule", "count", "first"]).to_pylist()
    right = [tuple(row.values()) for row in found] == run.findings()
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    console.print(
        f"{run.records:,} records: {run.records / used / 1e6:.2f} million a second of processor time, "
        f"{run.records / wall / 1e6:.2f} by the clock; {most:,.0f} MiB at most; the verdict is right: {right}"
    )
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
