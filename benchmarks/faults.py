"""Seconds of load until each planted fault breaks its own rule, with all scenarios of `make run`; as docs have it.

python benchmarks/faults.py [--seeds 5] [--seconds 30] [FAULT ...]

Judging is not counted. Exit status 1 where a fault was not named in time, or where a rule was broken that is neither
its own nor a consequence of it.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from reactive_runtime import hooks
from reactive_runtime._core.runtime.primitives import monotonic
from reactive_runtime.stress import FAULTS, Load, Result, answered, find, planted, run
from reactive_runtime.testing import Chunk, Recorder, check


def named(fault: str, seed: int, seconds: float) -> tuple[float | None, set[str]]:
    """After how many seconds of load the fault's rule was broken, and all rules that were broken until then."""
    chunks: list[Chunk] = []
    recorder = Recorder("faults", chunks.append)
    judging, found = 0.0, None
    broken: set[str] = set()

    def judge(result: Result) -> Any:
        nonlocal judging, found
        begin = monotonic()
        recorder.flush()
        taken = chunks[:]
        del chunks[: len(taken)]
        records = [recorder.record_of(chunk.thread, row) for chunk in taken for row in chunk.rows]
        broken.update(item.rule for item in check(records))  # no subscription outlives its round
        if FAULTS[fault].rule in broken:
            found = result.seconds - judging
        judging += monotonic() - begin
        return found is not None

    with planted(fault):
        result = run(answered(find("stress"))[0], Load(12, seconds, seed), recorder, judge)
    broken.update(f"{failure.scenario}: {failure.why}" for failure in result.failures)
    return found, broken


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("faults", nargs="*", metavar="FAULT", default=[])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=30.0)
    given = parser.parse_args()
    hooks.set_handler(lambda _: None)
    wrong: list[str] = []
    print(f"load average {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores\n")
    seeds = range(1, given.seeds + 1)
    print("| fault | its rule | " + " | ".join(f"seed {seed}" for seed in seeds) + " | broken besides |")
    print("| --- | --- |" + " ---: |" * given.seeds + " --- |")
    for fault in given.faults or FAULTS:
        kind = FAULTS[fault]
        cells = []
        besides: set[str] = set()
        for seed in seeds:
            found, broken = named(fault, seed, given.seconds)
            cells.append("not named" if found is None else f"{found:.2f} s")
            besides |= broken - {kind.rule}
            if found is None:
                wrong.append(f"{fault} was not named with seed {seed}")
        wrong += [f"{fault}: {item} is no consequence" for item in sorted(besides - kind.wake.keys())]
        row = (f"`{fault}`", kind.rule, *cells, ", ".join(sorted(besides)) or "-")
        print("| " + " | ".join(row) + " |", flush=True)
    print(f"\n{'; '.join(wrong) or 'each was named, and nothing was broken that is no consequence'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
