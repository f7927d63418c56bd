"""JSON lines beside the same by hand, with equal guarantees: median of pairs in one run, by process time.

python benchmarks/connect_files.py [--lines 100000] [--pairs 5]

By hand: write a file beside the target, have it on the disk, and rename it; read a file line by line.
"""

from __future__ import annotations

import json
import os
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from by_hand import Pairs, options

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


def main() -> None:
    given = options(__doc__, "lines", 100_000)
    pairs = Pairs("lines", given.count, given.pairs)
    with tempfile.TemporaryDirectory() as folder:
        both = Path(folder) / "values.jsonl", given.count
        pairs.compare("write JSON lines", partial(write_by_hand, *both), partial(write_by_flow, *both))
        pairs.compare("read JSON lines", partial(read_by_hand, *both), partial(read_by_flow, *both))
    pairs.show()


if __name__ == "__main__":
    main()
