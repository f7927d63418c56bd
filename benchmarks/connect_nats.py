"""NATS JetStream beside nats-py by hand, with equal guarantees: median of pairs in one run, against a server here.

python benchmarks/connect_nats.py [--messages 20000] [--pairs 5]

By hand: fetch as many as a batch, handle each, acknowledge each, fetch the next batch; publish a batch, and wait until
the server has confirmed it.
"""

from __future__ import annotations

import asyncio
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import nats
from by_hand import Pairs, options
from connect.nats_server import NatsServer
from nats.js.errors import NotFoundError

from reactive_runtime import Flow
from reactive_runtime.connect.jetstream import Message, Writer, read

BATCH = 256
BODY = b"sixteen bytes .."
HANDLED: list[bytes] = []


def handle(body: bytes) -> None:
    HANDLED.append(body)


def read_by_hand(server: NatsServer, stream: str, messages: int) -> None:
    async def run() -> None:
        left = messages
        client: Any = await nats.connect(server.url)
        subscription = await client.jetstream().pull_subscribe(stream, durable="hand", stream=stream)
        while left:
            fetched = await subscription.fetch(min(BATCH, left), timeout=5)
            for message in fetched:
                handle(message.data)
                await message.ack()
            left -= len(fetched)
        await client.flush()
        await client.close()

    asyncio.run(run())


def read_by_demand(server: NatsServer, stream: str, messages: int) -> None:
    def one(message: Message) -> Message:
        handle(message.data)
        return message

    with ThreadPoolExecutor(1) as pool:
        flow = read(server.url, stream, "ours", executor=pool, at_most=BATCH)
        flow.through(lambda flow: flow.take(messages)).map(one).acknowledge().run()


def publish_by_hand(server: NatsServer, stream: str, messages: int) -> None:
    async def run() -> None:
        client: Any = await nats.connect(server.url)
        context = client.jetstream(publish_async_max_pending=BATCH)
        for begin in range(0, messages, BATCH):
            count = min(BATCH, messages - begin)
            for future in [await context.publish_async(stream, BODY) for _ in range(count)]:
                await future
        await client.close()

    asyncio.run(run())


def publish_by_demand(server: NatsServer, stream: str, messages: int) -> None:
    with Writer(server.url, stream, in_flight=BATCH) as writer:
        Flow.range(messages).map(lambda _: BODY).batch(BATCH).map(writer.append).run()


def main() -> None:
    given = options(__doc__, "messages", 20_000)
    messages = given.count
    pairs = Pairs("messages", messages, given.pairs)
    with tempfile.TemporaryDirectory() as folder:
        server = NatsServer(Path(folder))

        def emptied() -> None:
            with suppress(NotFoundError):
                server.run(server.stream.delete_stream, "S")
            server.make("S")

        def filled() -> None:
            emptied()
            publish_by_hand(server, "S", messages)

        try:
            pairs.compare(
                "publish, 16 bytes",
                partial(publish_by_hand, server, "S", messages),
                partial(publish_by_demand, server, "S", messages),
                emptied,
            )
            pairs.compare(
                "read and acknowledge, 16 bytes",
                partial(read_by_hand, server, "S", messages),
                partial(read_by_demand, server, "S", messages),
                filled,
            )
        finally:
            server.close()
    pairs.show()


if __name__ == "__main__":
    main()
