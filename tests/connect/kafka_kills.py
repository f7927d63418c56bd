"""Kills workers and a broker at random moments, and counts what is lost and what comes twice.

PYTHONPATH=.:tests python tests/connect/kafka_kills.py [--kills 100] [--restarts 3] [--seed 0]

A worker reads the four partitions of one topic, writes each record to another, and acknowledges it. It is
killed (SIGKILL) after a random time, and another one begins; the broker is killed now and then too. In the end each
record has to be in the other topic; and the group has to know that all are handled.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from sinks import until

from connect.kafka_server import KafkaServer

ROOT = Path(__file__).parents[2]
PARTITIONS = 4

WORKER = """
import sys
from concurrent.futures import ThreadPoolExecutor
from confluent_kafka import KafkaException
from reactive_runtime.connect.kafka import Writer, read

servers, name = sys.argv[1:]
session = {"session.timeout.ms": 1_000, "heartbeat.interval.ms": 200}
with (
    ThreadPoolExecutor(1) as pool,
    ThreadPoolExecutor(4) as others,
    Writer(servers, f"{name}-out", key=lambda record: record.key, value=lambda record: record.value) as out,
):
    flow = read(servers, f"{name}-in", name, executor=pool, options=session)
    flow = flow.map_by_key(lambda record: record, lambda record: record.key, others, concurrency=4)
    flow = flow.buffer_timeout(20, 0.01).map(out.append).acknowledge().retry_backoff(1_000, when=KafkaException)
    flow.for_each(lambda _: print(flush=True))  # the first line: it is at work
"""


def run(server: KafkaServer, name: str, kills: int, restarts: int, seed: int) -> dict[str, int]:
    """The figures of a run: records, those lost, those that came twice, kills and restarts."""
    chance = random.Random(seed)
    come, gone = f"{name}-in", f"{name}-out"
    server.make(come, PARTITIONS)
    server.make(gone, PARTITIONS)
    restarted = chance.sample(range(kills), restarts)
    records = 0
    for n in range(kills):
        server.fill(come, range(records, records + 500))
        records += 500
        with begin(server.servers, name) as worker:
            wait_for_a_list(worker)
            if n in restarted:
                server.kill()
                server.start()
            time.sleep(chance.uniform(0, 0.2))
            worker.kill()
        print(f"{n + 1} killed, {server.committed(come, name)}", file=sys.stderr, flush=True)
    with begin(server.servers, name) as worker:  # there may be nothing left for it
        try:
            until(lambda: sum(server.committed(come, name).values()) == records)
        finally:
            worker.kill()
    values = [value or b"" for partition in server.values(gone, PARTITIONS) for _, value in partition]
    written = Counter(int(value.split()[0]) for value in values)
    lost, twice = records - len(written), len(values) - len(written)
    return {"records": records, "lost": lost, "twice": twice, "kills": kills, "restarts": restarts}


def begin(servers: str, name: str) -> subprocess.Popen[bytes]:
    """A worker."""
    command = [sys.executable, "-c", WORKER, servers, name]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


def wait_for_a_list(worker: subprocess.Popen[bytes]) -> None:
    """Wait until it has written something: there are records that no worker has seen."""
    assert worker.stdout is not None
    assert worker.stdout.readline(), "the worker has ended"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--kills", type=int, default=100)
    arguments.add_argument("--restarts", type=int, default=3)
    arguments.add_argument("--seed", type=int, default=0)
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        server = KafkaServer(Path(folder))
        try:
            print(run(server, "kills", options.kills, options.restarts, options.seed), flush=True)
        finally:
            server.close()


if __name__ == "__main__":
    main()
