"""The memory of a process that handles a long backlog through our adapters: it should be flat.

python benchmarks/backlog.py [--messages 1000000] [--adapter redis_streams]

It looks at the disk and the memory first, fills the backlog, handles each message, and prints the memory of this
process behind each tenth, as it comes and in a table. The server is another process.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

from connect.adapters import ADAPTERS, Described
from rich.table import Table
from side_by_side import console

from reactive_runtime.tck._adapters.memory import Tenth, tenths
from reactive_runtime.tck._adapters.trial import Trial
from reactive_runtime.tck.adapters import Adapter

A_MESSAGE = 400
"""Bytes that a server may need for one, on disk and in memory; PostgreSQL writes each again when it is claimed."""
GROWTH = 16 * 2**20
"""Bytes that the process may grow from the first tenth to any other."""


def room(messages: int) -> None:
    """End the program where the machine has no room for the backlog."""
    disk = shutil.disk_usage(tempfile.gettempdir()).free
    memory = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for name, free in (("disk", disk), ("memory", memory)):
        if free < 2 * messages * A_MESSAGE:
            raise SystemExit(f"{messages:,} messages need {2 * messages * A_MESSAGE:,} bytes of {name}; free: {free:,}")


def handled(name: str, adapter: Adapter, messages: int) -> tuple[list[Tenth], float]:
    """The memory behind each tenth, which is printed as it comes, and the seconds after the first."""
    trial = Trial("A.10", adapter, Described(lambda: adapter).limits())
    found, times = [], []
    try:
        for tenth in tenths(trial, messages):
            found.append(tenth)
            times.append(time.monotonic())
            print(f"{name}: {tenth.resident / 2**20:.1f} MiB behind tenth {len(found)}", file=sys.stderr, flush=True)
    finally:
        trial.close()
    return found, times[-1] - times[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--adapter", choices=sorted(ADAPTERS), action="append", help="this one; default: all")
    given = parser.parse_args()
    room(given.messages)
    table = Table(title=f"MiB of the process behind each tenth of {given.messages:,} messages")
    for title in ("adapter", *(str(tenth) for tenth in range(1, 11)), "growth", "a second"):
        table.add_column(title, justify="left" if title == "adapter" else "right")
    grown = False
    for name in given.adapter or ADAPTERS:
        with tempfile.TemporaryDirectory() as folder, ADAPTERS[name](Path(folder)) as create:
            adapter = create()
            found, seconds = handled(name, adapter, given.messages)
            adapter.close()
        growth = max(tenth.resident for tenth in found) - found[0].resident
        grown |= growth > GROWTH
        cells = [f"{tenth.resident / 2**20:.1f}" for tenth in found]
        table.add_row(name, *cells, f"{growth / 2**20:.1f}", f"{given.messages * 0.9 / seconds:,.0f}")
    console.print(table)
    sys.exit(grown)


if __name__ == "__main__":
    main()
