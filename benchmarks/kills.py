"""Random kills of workers and servers over our adapters: is any message lost, and how many come twice?

python benchmarks/kills.py [--kills 100] [--adapter redis_streams] [--seed 1]

Two workers, each a process, handle messages while more are put in. After a random time this kills a worker with
SIGKILL, and starts it again under its name; or kills the server, with a chance of one in five, and starts it again with
what it has on disk. At the end it lets the workers finish. A message is lost if neither a worker has handled it, nor
does the server keep it.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from connect.adapters import ADAPTERS
from rich.table import Table
from side_by_side import console

from reactive_runtime.tck._adapters.workers import Worker
from reactive_runtime.tck.adapters import Adapter

WORKERS = ("one", "two")
AT_ONCE = 2_000
"""So many messages are put in before each kill, where the server keeps fewer."""
OF_THE_SERVER = 0.2
PATIENCE = 120.0


@dataclass
class Campaign:
    """The kills of one adapter, and the messages that workers handled."""

    adapter: Adapter
    random: random.Random
    put: int = 0
    killed: int = 0
    restarted: int = 0
    workers: dict[str, Worker] = field(default_factory=dict)
    handled: Counter[int] = field(default_factory=Counter)

    def start(self, name: str) -> None:
        self.workers[name] = Worker(self.adapter.worker(name))

    def end(self, name: str) -> None:
        worker = self.workers.pop(name)
        worker.kill()
        self.handled.update(worker.numbers)

    def count(self) -> int:
        """How many have been handled, those that came twice included."""
        return self.handled.total() + sum(len(worker.numbers) for worker in self.workers.values())

    def fill(self) -> None:
        if self.adapter.left() < AT_ONCE:
            self.adapter.put(range(self.put, self.put + AT_ONCE))
            self.put += AT_ONCE

    def handles_more_than(self, count: int) -> bool:
        """Whether more have been handled; else there is something to handle."""
        if self.count() > count:
            return True
        self.fill()
        return False

    def kill(self) -> None:
        """Kill something while messages are being handled."""
        before = self.count()
        self.wait(lambda: self.handles_more_than(before), "no message is handled")
        time.sleep(self.random.uniform(0, 0.3))
        if self.random.random() < OF_THE_SERVER:
            getattr(self.adapter, "kill_server", self.adapter.break_connections)()
            self.restarted += 1
        else:
            name = self.random.choice(WORKERS)
            self.end(name)
            self.start(name)
            self.killed += 1

    def wait(self, what: Callable[[], Any], otherwise: str) -> None:
        """Wait while there is progress; a worker that has ended is started again."""
        over, count = time.monotonic() + PATIENCE, self.count()
        while not what():
            if self.count() > count:
                over, count = time.monotonic() + PATIENCE, self.count()
            if time.monotonic() > over:
                words = [worker.words for worker in self.workers.values()]
                raise SystemExit(f"{self.adapter.name}: {otherwise} within {PATIENCE:g} s; the workers say: {words}")
            for name, worker in list(self.workers.items()):
                if worker.process.poll() is not None:
                    self.end(name)
                    self.start(name)
            time.sleep(0.01)

    def run(self, kills: int) -> None:
        for name in WORKERS:
            self.start(name)
        try:
            for _ in range(kills):
                self.kill()
            self.wait(lambda: self.adapter.left() == 0, f"the server keeps {self.adapter.left()} messages")
        finally:
            for name in list(self.workers):
                self.end(name)

    @property
    def lost(self) -> int:
        return len(set(range(self.put)) - set(self.handled)) - self.adapter.left()

    @property
    def twice(self) -> int:
        return self.handled.total() - len(self.handled)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100, help="for each adapter")
    parser.add_argument("--adapter", choices=sorted(ADAPTERS), action="append", help="this one; default: all")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    table = Table(title=f"{given.kills} random kills of each, seed {given.seed}")
    for title in ("adapter", "kills of a worker", "of the server", "acknowledged", "lost", "twice", "seconds"):
        table.add_column(title, justify="left" if title == "adapter" else "right")
    lost, without = 0, []
    for name in given.adapter or ADAPTERS:
        begin = time.monotonic()
        with tempfile.TemporaryDirectory() as folder, ADAPTERS[name](Path(folder)) as create:
            if not (adapter := create()).acknowledges:
                adapter.close()
                without.append(name)
                continue
            campaign = Campaign(adapter, random.Random(given.seed))
            campaign.run(given.kills)
            lost += campaign.lost
            figures = (campaign.killed, campaign.restarted, campaign.put, campaign.lost, campaign.twice)
            table.add_row(name, *(f"{figure:,}" for figure in figures), f"{time.monotonic() - begin:.0f}")
            campaign.adapter.close()
    console.print(table)
    for name in without:
        console.print(f"{name}: not looked at, since the source has no acknowledgement")
    sys.exit(lost > 0)


if __name__ == "__main__":
    main()
