"""Kafka beside confluent-kafka by hand, with equal guarantees: median of pairs in one run, against a broker here.

python benchmarks/connect_kafka.py [--records 200000] [--pairs 5]

By hand: take as many as a batch, handle each, commit the batch (and wait for the answer, or not), take the next one;
write a batch, and wait until the broker has it. The settings of the client are the same.
"""

from __future__ import annotations

import itertools
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from by_hand import Pairs, options
from confluent_kafka import Consumer, KafkaException, Producer
from connect.kafka_server import KafkaServer

from reactive_runtime import Flow
from reactive_runtime.connect.kafka import Record, Writer, read, read_lists

BATCH = 256
TEXT = b"sixteen bytes .."
HANDLED: list[bytes | None] = []
groups = itertools.count()


def read_by_hand(server: KafkaServer, topic: str, records: int, *, waits: bool) -> None:
    """`waits`: for the answer to each commit; otherwise commit every 50 ms, as the adapter does."""
    consumer: Any = Consumer(
        {
            "bootstrap.servers": server.servers,
            "group.id": f"hand-{next(groups)}",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "queued.min.messages": 1_024,
            "queued.max.messages.kbytes": 4_096,
            "fetch.queue.backoff.ms": 5,
        }
    )
    consumer.subscribe([topic])
    left, due = records, 0.0
    while left:
        messages = consumer.consume(min(BATCH, left), 0.05)
        for message in messages:
            if message.error() is not None:
                raise KafkaException(message.error())
            HANDLED.append(message.value())
        left -= len(messages)
        if messages and (waits or time.monotonic() >= due or not left):
            consumer.commit(asynchronous=not waits and bool(left))
            due = time.monotonic() + 0.05
    consumer.close()


def read_by_demand(server: KafkaServer, topic: str, records: int) -> None:
    def one(record: Record) -> Record:
        HANDLED.append(record.value)
        return record

    with ThreadPoolExecutor(1) as pool:
        flow = read(server.servers, topic, f"ours-{next(groups)}", executor=pool, at_most=BATCH)
        flow.through(lambda flow: flow.take(records)).map(one).acknowledge().run()


def read_lists_by_demand(server: KafkaServer, topic: str, records: int) -> None:
    """As by hand: the records of a list are handled, and then the list is passed as a whole."""

    def each(batch: list[Record]) -> int:
        for record in batch:
            HANDLED.append(record.value)
        return len(batch)

    with ThreadPoolExecutor(1) as pool:
        flow = read_lists(server.servers, topic, f"ours-{next(groups)}", executor=pool, at_most=BATCH)
        flow.map(each).acknowledge().take_while(lambda _: len(HANDLED) < records).run()


def write_by_hand(server: KafkaServer, topic: str, records: int) -> None:
    failed: list[Any] = []

    def told(error: Any, message: Any) -> None:
        if error is not None:
            failed.append(error)

    producer: Any = Producer({"bootstrap.servers": server.servers, "acks": "all", "enable.idempotence": True})
    for begin in range(0, records, BATCH):
        for _ in range(begin, min(begin + BATCH, records)):
            producer.produce(topic, TEXT, on_delivery=told)
        producer.flush()
        assert not failed


def write_by_demand(server: KafkaServer, topic: str, records: int) -> None:
    with Writer(server.servers, topic) as writer:
        Flow.range(records).map(lambda _: TEXT).batch(BATCH).map(writer.append).run()


def main() -> None:
    given = options(__doc__, "records", 200_000)
    records = given.count
    pairs = Pairs("records", records, given.pairs)
    with tempfile.TemporaryDirectory() as folder:
        server = KafkaServer(Path(folder))
        try:
            server.make("both", 4)
            parts: dict[str, tuple[Callable[..., None], Callable[..., None]]] = {
                "write, 16 bytes": (write_by_hand, write_by_demand),
                "read and commit, 16 bytes; by hand each batch waits": (
                    partial(read_by_hand, waits=True),
                    read_by_demand,
                ),
                "read and commit, 16 bytes; by hand every 50 ms": (partial(read_by_hand, waits=False), read_by_demand),
                "read_lists and commit, 16 bytes; by hand every 50 ms": (
                    partial(read_by_hand, waits=False),
                    read_lists_by_demand,
                ),
            }
            for name, (by_hand, ours) in parts.items():
                pairs.compare(
                    name,
                    partial(by_hand, server, "both", records),
                    partial(ours, server, "both", records),
                    HANDLED.clear,
                )
        finally:
            server.close()
    pairs.show()


if __name__ == "__main__":
    main()
