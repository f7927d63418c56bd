"""All scenarios under load on an interpreter that ThreadSanitizer looks at: what it reports, by where it is.

python benchmarks/thread_sanitizer.py PYTHON [--seconds 60] [--suppressions FILE]

PYTHON is what `.ci/thread-sanitizer` has built. It reports races between accesses in C: each of Python's own objects is
one of them, so that a race that tears an object, or crashes, is found, and one that only loses an update is not; that
is for the harness and the explorer. A report with a frame of `Python/instrumentation.c` is of `sys.settrace`, which the
harness makes threads hesitate with: CPython's own. Any other report fails the command.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KNOWN = {"Python/instrumentation.c": "sys.settrace"}
"""Files of CPython whose races are known and are none of ours."""


def load(seconds: float) -> None:
    """In the process that is looked at."""
    from reactive_runtime.stress import Load, find, run
    from reactive_runtime.testing import Recorder

    result = run(find(ROOT / "stress"), Load(4, seconds, 1), Recorder("run", lambda chunk: None), lambda done: None)
    print(f"{result.rounds} rounds of {len(result.load)} scenarios, {result.signals:,} signals, {result.failures}")


def places(report: str) -> Counter[str]:
    """How often each function and file of C is where a report is: that of a known race, where it has one."""
    found: Counter[str] = Counter()
    for warning in report.split("WARNING: ThreadSanitizer: ")[1:]:
        accesses = warning.partition(" created by ")[0]
        frames = re.findall(r"^    #\d+ (\S+) (\S+?):\d+", accesses, re.MULTILINE)
        function, file = next((frame for frame in frames if frame[1] in KNOWN), frames[0] if frames else ("?", "?"))
        found[f"{file} {function}"] += 1
    return found


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("python", type=Path)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--suppressions", type=Path)
    given = parser.parse_args()
    listed = given.suppressions or given.python.parent.parent / "suppressions_free_threading.txt"
    with tempfile.TemporaryDirectory() as folder:
        options = f"suppressions={listed} log_path={folder}/report exitcode=0 history_size=3"
        command = [given.python, __file__, "--load", str(given.seconds)]
        environment = {**os.environ, "TSAN_OPTIONS": options, "PYTHONPATH": str(ROOT), "PYTHON_GIL": "0"}
        subprocess.run(command, env=environment, check=True, cwd=ROOT)
        found = sum((places(file.read_text()) for file in Path(folder).iterdir()), Counter[str]())
    ours = 0
    for place, times in found.most_common():
        known = KNOWN.get(place.partition(" ")[0])
        ours += not known
        print(f"{times:4} {place}{f': known, {known}' if known else ''}")
    print(f"{sum(found.values())} reports, {ours} places that are not known")
    return 1 if ours else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--load"]:
        load(float(sys.argv[2]))
    else:
        sys.exit(main())
