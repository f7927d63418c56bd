"""Kafka, described for the kit: a topic of its own with two partitions, and a group of the same name."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException, Producer
from sinks import PATIENCE

from connect import adapter_workers
from connect.kafka_server import KafkaServer
from reactive_runtime.connect import AckedFlow
from reactive_runtime.connect.kafka import Record, read
from reactive_runtime.tck.adapters import Adapter

names = itertools.count()

PARTITIONS = 2
TEXT = b"x" * 1_000
"""A record has a thousand bytes, so that the settings below stand for a number of records."""

SMALL: dict[str, Any] = {
    "queued.max.messages.kbytes": 100,
    "fetch.message.max.bytes": 100_000,
    "statistics.interval.ms": 50,
}
QUICK: dict[str, Any] = {"session.timeout.ms": 1_000, "heartbeat.interval.ms": 200}
"""A consumer that was killed is gone after its session."""


class Kafka(Adapter):
    """The broker counts offsets, commits and members. It does not count what it hands out: the client does that."""

    name = "kafka"
    in_order = True
    prefetch = 100 + PARTITIONS * 100 + 20
    """The queue of the client, an answer for each partition, and the rest of a batch of the writer: see `SMALL`."""

    def __init__(self, server: KafkaServer) -> None:
        self.server = server
        self.address = server.servers
        self.topic = f"kit-{next(names)}"
        self.received: dict[str, int] = {}  # by client, what it has got; assigned by callbacks of the client
        server.make(self.topic, PARTITIONS)
        server.make(f"{self.topic}-dead")
        self.producer: Any = Producer(
            {
                "bootstrap.servers": server.servers,
                "acks": "all",
                "batch.num.messages": 10,
                "linger.ms": 1,
                "log_level": 0,
            }
        )

    def put(self, numbers: Sequence[int]) -> None:
        self.write(self.topic, numbers)

    def fill(self, n: int) -> None:
        self.server.fill(self.topic, range(n))

    def write(self, topic: str, numbers: Sequence[int]) -> None:
        for n in numbers:
            while True:
                try:
                    to = n % PARTITIONS if topic == self.topic else 0
                    self.producer.produce(topic, b"%d %b" % (n, TEXT), partition=to)
                    break
                except BufferError:
                    self.producer.poll(0.1)
        assert self.producer.flush(PATIENCE) == 0

    def options(self) -> dict[str, Any]:
        me = f"{self.topic}-{next(names)}"

        def count(statistics: str) -> None:
            partitions = json.loads(statistics)["topics"].get(self.topic, {"partitions": {}})["partitions"].values()
            self.received[me] = sum(each["rxmsgs"] for each in partitions)

        return {**SMALL, **QUICK, "stats_cb": count}

    def open(self, consumer: str, executor: Executor) -> AckedFlow[Record]:
        return read(self.server.servers, self.topic, self.topic, executor=executor, options=self.options())

    def open_with(self, password: str) -> AckedFlow[Record]:
        login = {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "me",
            "sasl.password": password,
        }
        pool = ThreadPoolExecutor(1)
        return read(self.server.guarded, self.topic, self.topic, executor=pool, options=login, timeout=5.0)

    def number(self, value: Record) -> int:
        assert value.value is not None
        return int(value.value.split()[0])

    def committed(self) -> int:
        return sum(max(0, offset) for offset in self.server.committed(self.topic, self.topic).values())

    def left(self) -> int:
        return self.server.written(self.topic, PARTITIONS) - self.committed()

    def handed_out(self) -> int:
        return sum(self.received.values()) - self.committed()

    def acknowledgements(self) -> int:
        """By how many records the commits of the group have moved its offsets; each that moves none counts as one."""
        at: dict[int, int] = {}
        count = 0
        for group, topic, partition, offset in self.server.commits():
            if (group, topic) == (self.topic, self.topic):
                count += max(offset - at.get(partition, 0), 1)
                at[partition] = offset
        return count

    def connections(self) -> int:
        return self.server.members(self.topic)

    def bury(self, letter: Any) -> None:
        self.write(f"{self.topic}-dead", [self.number(letter.element)])

    def dead(self) -> int:
        return self.server.written(f"{self.topic}-dead")

    def worker(self, consumer: str) -> Callable[[Callable[[int], object]], object]:
        return partial(adapter_workers.of_kafka, self.server.servers, self.topic, QUICK)

    def break_connections(self) -> None:
        self.server.kill()
        self.server.start()

    def close(self) -> None:
        for deleted in self.server.admin.delete_topics([self.topic, f"{self.topic}-dead"]).values():
            with suppress(KafkaException):
                deleted.result(PATIENCE)


@contextmanager
def kafka(folder: Path) -> Iterator[Callable[[], Adapter]]:
    server = KafkaServer(folder)
    try:
        yield partial(Kafka, server)
    finally:
        server.close()
