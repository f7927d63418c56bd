"""Kafka beside confluent-kafka by hand, with equal guarantees: median of pairs in one run, against a broker here.

python benchmarks/connect_kafka.py [--records 200000] [--pairs 5]

By hand: take as many as a batch, handle each, and commit. "each batch" passes a batch as a whole, as `read_lists` does:
no record can be handled on another thread, or behind the next one. "each on its own" has the guarantees of `read`: each
record has an acknowledgement of its own, for any thread and any order. Written is a batch, with a wait until the broker
has it. The settings of the client are the same.
"""

from __future__ import annotations

import itertools
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from by_hand import Pairs, options
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from connect.kafka_server import KafkaServer

from reactive_runtime import Flow
from reactive_runtime.connect.kafka import Record, Writer, read, read_lists

BATCH = 256
TEXT = b"sixteen bytes .."
HANDLED: list[bytes | None] = []
groups = itertools.count()


def settings_of(server: KafkaServer) -> dict[str, Any]:
    """As the adapter has them."""
    return {
        "bootstrap.servers": server.servers,
        "group.id": f"hand-{next(groups)}",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "queued.min.messages": 1_024,
        "queued.max.messages.kbytes": 4_096,
        "fetch.queue.backoff.ms": 5,
    }


def read_by_hand(server: KafkaServer, topic: str, records: int, *, waits: bool) -> None:
    """`waits`: for the answer to each commit; otherwise commit every 50 ms, as the adapter does."""
    consumer: Any = Consumer(settings_of(server))
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


class Passed:
    """By hand, for the guarantees of `read`: the offsets of one assignment of a partition that are not handled."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.open: set[int] = set()  # lock
        self.next = 0  # the thread that polls; behind the last that was taken

    def take(self, offset: int) -> Callable[[], None]:
        """One more; the call that acknowledges it, on any thread, in any order."""
        with self.lock:
            self.open.add(offset)
        self.next = offset + 1
        return partial(self.acknowledge, offset)

    def acknowledge(self, offset: int) -> None:
        with self.lock:
            self.open.discard(offset)

    def lowest(self) -> int:
        """All before this offset is handled."""
        with self.lock:
            return min(self.open, default=self.next)


def read_each_by_hand(server: KafkaServer, topic: str, records: int) -> None:
    """Each record is acknowledged on its own; of each partition the lowest offset that is not handled is committed.

    It is the quicker of two ways to write it: elements that are made ahead, a batch at a time, cost the garbage
    collector more than they save.
    """
    consumer: Any = Consumer(settings_of(server))
    passed: dict[tuple[str, int], Passed] = {}

    def commit(*, waits: bool) -> None:
        offsets = [TopicPartition(*place, found.lowest()) for place, found in passed.items() if found.next]
        if offsets:
            consumer.commit(offsets=offsets, asynchronous=not waits)

    def assigned(_: object, partitions: list[Any]) -> None:
        passed.update({(each.topic, each.partition): Passed() for each in partitions})

    def revoked(_: object, partitions: list[Any]) -> None:
        commit(waits=True)
        for each in partitions:
            passed.pop((each.topic, each.partition), None)

    consumer.subscribe([topic], on_assign=assigned, on_revoke=revoked)
    left, due = records, 0.0
    while left:
        assert sum(len(found.open) for found in passed.values()) < 100_000  # a worker that hands them on has to wait
        messages = consumer.consume(min(BATCH, left), 0.05)
        for message in messages:
            if message.error() is not None:
                raise KafkaException(message.error())
            acknowledge = passed[message.topic(), message.partition()].take(message.offset())
            HANDLED.append(message.value())
            acknowledge()
        left -= len(messages)
        if time.monotonic() >= due:
            commit(waits=False)
            due = time.monotonic() + 0.05
    commit(waits=True)
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
                "read, each on its own": (read_each_by_hand, read_by_demand),
                "read; by hand each batch, which waits": (partial(read_by_hand, waits=True), read_by_demand),
                "read; by hand each batch, every 50 ms": (partial(read_by_hand, waits=False), read_by_demand),
                "read_lists; by hand each batch, which waits": (
                    partial(read_by_hand, waits=True),
                    read_lists_by_demand,
                ),
                "read_lists; by hand each batch, every 50 ms": (
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
