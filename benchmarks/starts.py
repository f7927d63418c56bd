"""How long a process takes to start: the import, the command's help, the first exploration, pytest with the plugin.

    python benchmarks/starts.py [--rounds 21]

Whole processes, from outside, in turn, so that a change of the machine's load meets all of them; medians. The processor
time is what the operating system counts for the process that has ended.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

PROGRAM = '''
"""Two threads and a buffer."""

import threading

from reactive_runtime.explore import explore


class Buffer:
    """A queue with a capacity."""

    def __init__(self, capacity):
        self.capacity = capacity
        self.elements = []
        self.lock = threading.Lock()
        self.added = self.taken = 0

    def put(self, element):
        with self.lock:
            if len(self.elements) < self.capacity:
                self.elements.append(element)
                self.added += 1
                return True
        return False

    def take(self):
        with self.lock:
            if self.elements:
                self.taken += 1
                return self.elements.pop(0)
        return None


class Program:
    """One thread puts, the other takes."""

    def __init__(self):
        self.buffer = Buffer(2)
        self.got = []

    def actor_producer(self):
        for element in "ab":
            self.buffer.put(element)

    def actor_consumer(self):
        for _ in range(2):
            element = self.buffer.take()
            if element is not None:
                self.got.append(element)

    def at_end(self):
        assert self.got == list("ab")[: len(self.got)]
        assert self.buffer.added - self.buffer.taken == len(self.buffer.elements)


assert explore(Program).holds
'''

ROOT = Path(__file__).parent.parent


def commands(folder: Path) -> dict[str, list[str]]:
    """The command lines, by the row of the table; what they read is in the folder."""
    (folder / "threads.py").write_text(PROGRAM)
    (folder / "flows.py").write_text(
        PROGRAM.replace("import threading", "import threading\n\nimport reactive_runtime.hot")
    )
    (folder / "test_empty.py").write_text("")
    command = "from reactive_runtime._cli import main; main()"
    collect = ["-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "test_empty.py", "-p"]
    rows = {
        "the interpreter alone": ["-c", "pass"],
        "`import reactive_runtime`": ["-c", "import reactive_runtime"],
        "`from reactive_runtime import Flow`": ["-c", "from reactive_runtime import Flow"],
        "`reactive-runtime --help`": ["-c", command, "--help"],
        "a first `explore()`, 50 lines, two threads": ["threads.py"],
        "the same where flows are imported": ["flows.py"],
        "pytest without the plugin": [*collect, "no:reactive_runtime"],
        "pytest with the plugin": [*collect, "reactive_runtime"],
    }
    return {row: [sys.executable, *arguments] for row, arguments in rows.items()}


def started(command: list[str], folder: Path) -> tuple[float, float]:
    """Seconds of one process, by the clock and of the processor. Its output is dropped unless it fails."""
    keep = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment = {**keep, "PYTHONPATH": str(ROOT)}
    began = time.perf_counter()
    child = os.fork()
    if not child:
        os.chdir(folder)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.execve(command[0], command, environment)
    _, status, usage = os.wait4(child, 0)
    took = time.perf_counter() - began
    if os.waitstatus_to_exitcode(status) not in (0, 5):  # 5: pytest has collected no test
        raise SystemExit(f"starts: {' '.join(command)} ended with {os.waitstatus_to_exitcode(status)}")
    return took, usage.ru_utime + usage.ru_stime


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=21, help="processes of each row; the medians are printed")
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = commands(folder)
        for command in rows.values():  # writes the bytecode
            started(command, folder)
        figures: dict[str, list[tuple[float, float]]] = {row: [] for row in rows}
        for _ in range(rounds):
            for row, command in rows.items():
                figures[row].append(started(command, folder))
    print(f"Python {sys.version.split()[0]}, medians of {rounds} processes\n")
    print("| a process | by the clock, ms | of the processor, ms | times the interpreter |\n| --- | --: | --: | --: |")
    alone = statistics.median(spent for _, spent in figures["the interpreter alone"])
    for row, taken in figures.items():
        clock, spent = (statistics.median(column) for column in zip(*taken, strict=True))
        print(f"| {row} | {clock * 1e3:.0f} | {spent * 1e3:.0f} | {spent / alone:.1f} |")


if __name__ == "__main__":
    main()
