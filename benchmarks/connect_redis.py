"""Redis Streams beside redis-py by hand, with equal guarantees: median of pairs in one run, against a server here.

python benchmarks/connect_redis.py [--entries 20000] [--pairs 5]

By hand: fetch as many as a batch, handle each, acknowledge the batch, fetch the next one; append a batch in a pipeline.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import redis
from connect.redis_server import RedisServer
from rich.table import Table
from side_by_side import console

from reactive_runtime import Flow
from reactive_runtime.connect.redis_streams import Message, Writer, read

BATCH = 256
TEXT = b"sixteen bytes .."
HANDLED: list[bytes] = []


def handle(fields: Any) -> None:
    HANDLED.append(fields[b"t"])


def read_by_hand(server: RedisServer, stream: str, entries: int) -> None:
    client: Any = redis.Redis.from_url(server.url, protocol=2)
    client.xgroup_create(stream, "hand", "0")
    while entries:
        [[_, fetched]] = client.xreadgroup("hand", "me", {stream: ">"}, count=min(BATCH, entries), block=50)
        for _, fields in fetched:
            handle(fields)
        client.xack(stream, "hand", *[id for id, _ in fetched])
        entries -= len(fetched)
    client.close()


def read_by_demand(server: RedisServer, stream: str, entries: int) -> None:
    def one(message: Message) -> Message:
        handle(message.fields)
        return message

    with ThreadPoolExecutor(1) as pool:
        flow = read(server.url, stream, "ours", "me", executor=pool, at_most=BATCH)
        flow.through(lambda flow: flow.take(entries)).map(one).acknowledge().run()


def append_by_hand(server: RedisServer, stream: str, entries: int) -> None:
    client = redis.Redis.from_url(server.url, protocol=2)
    for begin in range(0, entries, BATCH):
        with client.pipeline(transaction=False) as pipe:
            for _ in range(begin, min(begin + BATCH, entries)):
                pipe.xadd(stream, {"t": TEXT}, maxlen=entries)
            pipe.execute()
    client.close()


def append_by_demand(server: RedisServer, stream: str, entries: int) -> None:
    with Writer(server.url, stream, fields=lambda text: {"t": text}, maxlen=entries) as writer:
        Flow.range(entries).map(lambda _: TEXT).batch(BATCH).map(writer.append).run()


def seconds(fn: Callable[[], object]) -> tuple[float, float]:
    """By the clock, and of this process: the server is another one."""
    wall, process = time.perf_counter(), time.process_time()
    fn()
    return time.perf_counter() - wall, time.process_time() - process


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--entries", type=int, default=20_000)
    arguments.add_argument("--pairs", type=int, default=5)
    options = arguments.parse_args()
    entries = options.entries
    table = Table("what", "by hand, entries/s", "ours, entries/s", "ours / by hand", "of process time")
    with tempfile.TemporaryDirectory() as folder:
        server = RedisServer(Path(folder), "--appendonly", "no")
        try:
            parts: dict[str, tuple[Callable[..., None], Callable[..., None]]] = {
                "append, 16 bytes": (append_by_hand, append_by_demand),
                "read and acknowledge, 16 bytes": (read_by_hand, read_by_demand),
            }
            for name, (by_hand, ours) in parts.items():
                pairs = []
                for n in range(options.pairs + 1):
                    reads = by_hand is read_by_hand
                    streams = ["hand", "ours"] if not reads else ["both", "both"]
                    server.client.delete(*streams)
                    if reads:
                        append_by_hand(server, "both", entries)
                    order = [(by_hand, streams[0]), (ours, streams[1])]
                    taken = {
                        fn: seconds(lambda fn=fn, stream=stream: fn(server, stream, entries))  # type: ignore[misc]
                        for fn, stream in (order if n % 2 else order[::-1])
                    }
                    if n:  # the first pair is to get warm
                        pairs.append((*taken[by_hand], *taken[ours]))
                hand, mine = (statistics.median(pair[at] for pair in pairs) for at in (0, 2))
                ratio = statistics.median(pair[0] / pair[2] for pair in pairs)
                process = statistics.median(pair[1] / pair[3] for pair in pairs)
                table.add_row(
                    name, f"{entries / hand:,.0f}", f"{entries / mine:,.0f}", f"{ratio:.2f}", f"{process:.2f}"
                )
        finally:
            server.close()
    console.print(table)


if __name__ == "__main__":
    main()
