"""Redis Streams beside redis-py by hand, with equal guarantees: median of pairs in one run, against a server here.

python benchmarks/connect_redis.py [--entries 20000] [--pairs 5]

By hand: fetch as many as a batch, handle each, acknowledge the batch, fetch the next one; append a batch in a pipeline.
"""

from __future__ import annotations

import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import redis
from by_hand import Pairs, options
from connect.redis_server import RedisServer

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


def main() -> None:
    given = options(__doc__, "entries", 20_000)
    entries = given.count
    pairs = Pairs("entries", entries, given.pairs)
    with tempfile.TemporaryDirectory() as folder:
        server = RedisServer(Path(folder), "--appendonly", "no")

        def filled() -> None:
            server.client.delete("one")
            append_by_hand(server, "one", entries)

        try:
            pairs.compare(
                "append, 16 bytes",
                partial(append_by_hand, server, "one", entries),
                partial(append_by_demand, server, "one", entries),
                partial(server.client.delete, "one"),
            )
            pairs.compare(
                "read and acknowledge, 16 bytes",
                partial(read_by_hand, server, "one", entries),
                partial(read_by_demand, server, "one", entries),
                filled,
            )
        finally:
            server.close()
    pairs.show()


if __name__ == "__main__":
    main()
