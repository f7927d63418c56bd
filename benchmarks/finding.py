"""Seconds of the processor until each of the thirty planted races is found, here and in another checkout, in turn.

python benchmarks/finding.py [--seeds 5] [--times 1] [--against FOLDER] [--python PYTHON] [--limit 60] [--elapsed]
                             [NAME ...]

`--against` names a checkout of another version; its harness runs the races of this one. `--python` names the
interpreter of what is compared with, of this version if no other is named: one with a GIL, beside one without. Each
version has a process of its own, and they take turns: race by race, seed by seed. It counts the time that the
process has used up to the end of the round that broke a rule of the race: it says the same on a machine with other
work. Judging is not counted. A race that is not found within the limit counts with the limit. Times until a race is
found differ as much as lifetimes do: one that looks slower is measured again, with four times as many other seeds.
`--elapsed` counts the seconds of the clock in place of the processor's, for a machine without other work: a thread that
sleeps uses no processor, and finds nothing meanwhile.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from contextlib import suppress
from inspect import signature
from pathlib import Path
from time import monotonic, process_time
from typing import Any

HERE = Path(__file__).parent.parent
NOISE = 0.05
"""Seconds that a round or two differ by from one time to the next. Less is not slower, nor is less than by half."""


def worker() -> None:
    """Find what each line of standard input asks for, with the `reactive_runtime` that is first on the path."""
    from planted import PLANTED, Planted

    from reactive_runtime import hooks
    from reactive_runtime.stress import Load, run, scenario
    from reactive_runtime.testing import Recorder, check

    hooks.set_handler(lambda _: None)

    class FoundError(Exception):
        pass

    def found(name: str, seed: int, limit: float, elapsed: bool) -> dict[str, Any]:
        clock = monotonic if elapsed else process_time
        kind = PLANTED[name]
        chunks: list[Any] = []
        recorder = Recorder("run", chunks.append)
        told = {"seconds": 0.0, "rounds": 0, "found": False}
        judging = 0.0

        word = "workload" if "workload" in signature(scenario).parameters else "mix"  # of earlier versions
        only = {word: kind.workload} if hasattr(kind, "workload") else {}

        @scenario(elements=kind.count, live=24, **only)
        def planted(context: Any) -> Any:
            return Planted(kind, context.pool(3))

        begin = clock()

        def judge(_: object) -> None:
            nonlocal judging
            now = clock()
            recorder.flush()
            taken = chunks[:]
            del chunks[: len(taken)]
            records = [recorder.record_of(chunk.thread, row) for chunk in taken for row in chunk.rows]
            told.update(seconds=now - begin - judging, rounds=told["rounds"] + 1)
            told["found"] = any(
                item.rule in kind.rules for item in check(records)
            )  # no subscription outlives its round
            if told["found"] or told["seconds"] > limit:
                raise FoundError
            judging += clock() - now

        with suppress(FoundError):
            run([planted.scenario], Load(12, 1e6, seed), recorder, judge)
        return told

    for line in sys.stdin:
        print(json.dumps(found(**json.loads(line))), flush=True)


def started(checkout: Path, python: str = sys.executable) -> subprocess.Popen[str]:
    """A worker for that version, on that interpreter."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(checkout), str(HERE / "tests")])}
    if python != sys.executable:
        environment.pop("PYTHON_GIL", None)  # a build with a GIL does not start where it is to do without
    return subprocess.Popen(
        [python, __file__, "--worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )


def asked(process: subprocess.Popen[str], **question: Any) -> dict[str, Any]:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(question) + "\n")
    process.stdin.flush()
    answer: dict[str, Any] = json.loads(process.stdout.readline())
    return answer


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument(
        "--times", type=int, default=1, help="So often with each seed: the order of threads is no seed's."
    )
    parser.add_argument("--against", type=Path)
    parser.add_argument("--python")
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--elapsed", action="store_true")
    given = parser.parse_args()
    sys.path.insert(0, str(HERE / "tests"))
    from planted import PLANTED

    other = "before" if given.against else "there"
    workers: dict[str, subprocess.Popen[str]] = {}
    if compares := bool(given.against or given.python):
        workers[other] = started((given.against or HERE).resolve(), given.python or sys.executable)
    workers["here"] = started(HERE.resolve())
    print(f"load average {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores")
    of = "" if given.elapsed else " of the processor"
    print(f"seconds{of}, medians of {given.seeds} seeds, each {given.times} time(s)\n")
    print("| race | " + " | ".join(workers) + (f" | here / {other} |" if compares else " |"))
    print("| --- |" + " ---: |" * (len(workers) + compares))
    totals = dict.fromkeys(workers, 0.0)
    lost: list[str] = []

    def measured(name: str, seeds: range, label: str) -> dict[str, float]:
        """The median of each version; prints a row."""
        seconds: dict[str, list[float]] = {version: [] for version in workers}
        for seed in [*seeds] * given.times:
            for version, process in workers.items():
                told = asked(process, name=name, seed=seed, limit=given.limit, elapsed=given.elapsed)
                seconds[version].append(told["seconds"] if told["found"] else given.limit)
                if not told["found"] and version == "here":
                    lost.append(f"{name}, seed {seed}")
        medians = {version: statistics.median(values) for version, values in seconds.items()}
        cells = [f"{medians[version]:.2f}" for version in workers]
        if compares:
            cells.append(f"{medians['here'] / medians[other]:.2f}")
        print(f"| {label} | " + " | ".join(cells) + " |", flush=True)
        return medians

    def slower(medians: dict[str, float]) -> bool:
        before = medians.get(other, float("inf"))
        return medians["here"] > max(before + NOISE, 1.5 * before)

    again = []
    for name in given.names or PLANTED:
        medians = measured(name, range(1, given.seeds + 1), name)
        for version, median in medians.items():
            totals[version] += median
        if slower(medians):
            again.append(name)
    print("| all | " + " | ".join(f"{total:.1f}" for total in totals.values()) + (" | |" if compares else " |"))
    more = range(given.seeds + 1, 5 * given.seeds + 1)
    still = [item for item in again if slower(measured(item, more, f"{item}, {len(more)} other seeds"))]
    print(f"\nnot found within {given.limit:g} s: {', '.join(lost) or 'none'}")
    if compares:
        print(f"slower by half, and by more than {NOISE:g} s: {', '.join(still) or 'none'}")
    print(f"load average {os.getloadavg()[0]:.1f}")
    for process in workers.values():
        assert process.stdin is not None
        process.stdin.close()
        process.wait()
    return 1 if lost else 0


if __name__ == "__main__":
    if sys.argv[1:] == ["--worker"]:
        worker()
    else:
        sys.exit(main())
