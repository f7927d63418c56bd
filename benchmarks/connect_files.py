"""JSON lines beside the same by hand, with equal guarantees: median of pairs in one run, by process time.

python benchmarks/connect_files.py [--lines 100000] [--pairs 5]

By hand: write a file beside the target, have it on the disk, and rename it; read a file line by line.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.table import Table
from side_by_side import console

from reactive_runtime import Flow
from reactive_runtime.connect.files import json_lines, write_json_lines

HANDLED: list[int] = []
JSON = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


def value(n: int) -> dict[str, Any]:
    return {"n": n, "text": "sixteen bytes .."}


def handle(element: dict[str, Any]) -> None:
    HANDLED.append(element["n"])


def write_by_hand(path: Path, lines: int) -> None:
    part = path.with_suffix(".part")
    with open(part, "w", encoding="utf-8", newline="") as file:
        for n in range(lines):
            file.write(JSON(value(n)) + "\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)


def write_by_flow(path: Path, lines: int) -> None:
    write_json_lines(Flow.range(lines).map(value), path).run()


def read_by_hand(path: Path, lines: int) -> None:
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if len(line) > 1 << 20:
                raise ValueError(f"{path}: line {number} is too long")
            try:
                element = json.loads(line)
            except ValueError as error:
                raise ValueError(f"{path}: line {number} is malformed") from error
            handle(element)


def read_by_flow(path: Path, lines: int) -> None:
    json_lines(path).for_each(handle)


def seconds(fn: Callable[[Path, int], None], path: Path, lines: int) -> float:
    begin = time.process_time()
    fn(path, lines)
    return time.process_time() - begin


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--lines", type=int, default=100_000)
    arguments.add_argument("--pairs", type=int, default=5)
    options = arguments.parse_args()
    table = Table("what", "by hand, lines/s", "ours, lines/s", "ours / by hand")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "values.jsonl"
        parts = {"write JSON lines": (write_by_hand, write_by_flow), "read JSON lines": (read_by_hand, read_by_flow)}
        for name, (by_hand, ours) in parts.items():
            pairs = []
            for n in range(options.pairs + 1):
                order = (by_hand, ours) if n % 2 else (ours, by_hand)
                taken = {fn: seconds(fn, path, options.lines) for fn in order}
                if n:  # the first pair is to get warm
                    pairs.append((taken[by_hand], taken[ours]))
            hand, mine = (statistics.median(pair[at] for pair in pairs) for at in (0, 1))
            ratio = statistics.median(hand / mine for hand, mine in pairs)
            table.add_row(name, f"{options.lines / hand:,.0f}", f"{options.lines / mine:,.0f}", f"{ratio:.2f}")
    console.print(table)


if __name__ == "__main__":
    main()
