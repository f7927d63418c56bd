"""NATS JetStream beside nats-py by hand, with equal guarantees: median of pairs in one run, against a server here.

python benchmarks/connect_nats.py [--messages 20000] [--pairs 5]

By hand: fetch as many as a batch, handle each, acknowledge each, fetch the next batch; publish a batch, and wait until
the server has confirmed it.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import nats
from connect.nats_server import NatsServer
from rich.table import Table
from side_by_side import console

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


def seconds(fn: Callable[[], object]) -> tuple[float, float]:
    """By the clock, and of this process: the server is another one."""
    wall, process = time.perf_counter(), time.process_time()
    fn()
    return time.perf_counter() - wall, time.process_time() - process


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--messages", type=int, default=20_000)
    arguments.add_argument("--pairs", type=int, default=5)
    options = arguments.parse_args()
    messages = options.messages
    table = Table("what", "by hand, messages/s", "ours, messages/s", "ours / by hand", "of process time")
    with tempfile.TemporaryDirectory() as folder:
        server = NatsServer(Path(folder))
        try:
            parts: dict[str, tuple[Callable[..., None], Callable[..., None]]] = {
                "publish, 16 bytes": (publish_by_hand, publish_by_demand),
                "read and acknowledge, 16 bytes": (read_by_hand, read_by_demand),
            }
            for name, (by_hand, ours) in parts.items():
                pairs = []
                for n in range(options.pairs + 1):
                    stream = f"S{n}{name[0]}"
                    server.make(stream)
                    if by_hand is read_by_hand:
                        publish_by_hand(server, stream, messages)
                    taken = {
                        fn: seconds(lambda fn=fn, stream=stream: fn(server, stream, messages))  # type: ignore[misc]
                        for fn in ((by_hand, ours) if n % 2 else (ours, by_hand))
                    }
                    server.run(server.stream.delete_stream, stream)
                    if n:  # the first pair is to get warm
                        pairs.append((*taken[by_hand], *taken[ours]))
                hand, mine = (statistics.median(pair[at] for pair in pairs) for at in (0, 2))
                ratio = statistics.median(pair[0] / pair[2] for pair in pairs)
                process = statistics.median(pair[1] / pair[3] for pair in pairs)
                table.add_row(
                    name, f"{messages / hand:,.0f}", f"{messages / mine:,.0f}", f"{ratio:.2f}", f"{process:.2f}"
                )
        finally:
            server.close()
    console.print(table)


if __name__ == "__main__":
    main()
