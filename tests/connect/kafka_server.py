"""A real Kafka broker on loopback, one node that is its own controller, which tests may kill and start again."""

from __future__ import annotations

import shutil
import socket
import struct
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec
from confluent_kafka.cimpl import NewTopic
from sinks import PATIENCE, until

from connect.server_process import ServerProcess

JARS = Path(__file__).parents[2] / "build" / "servers" / "kafka"

SETTINGS = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=OPEN://127.0.0.1:{port},GUARDED://127.0.0.1:{guarded},CONTROLLER://127.0.0.1:{controller}
listener.security.protocol.map=OPEN:PLAINTEXT,GUARDED:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=OPEN
controller.listener.names=CONTROLLER
sasl.enabled.mechanisms=PLAIN
listener.name.guarded.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \\
    user_me="{password}";
log.dirs={folder}/data
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
broker.heartbeat.interval.ms=200
broker.session.timeout.ms=4000
group.initial.rebalance.delay.ms=0
group.consumer.heartbeat.interval.ms=500
group.consumer.min.heartbeat.interval.ms=500
group.min.session.timeout.ms=1000
"""

LOADING = {
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
}
"""A broker that has just begun reads its groups from the disk, and answers with one of these meanwhile."""

FENCED = KafkaError.INVALID_REPLICATION_FACTOR
"""The answer for a new topic while the broker counts as gone: a busy machine has kept it from its heartbeat."""

ELECTING = {
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.UNKNOWN_LEADER_EPOCH,
}
"""A broker that has just begun becomes the leader of its partitions, and answers with one of these meanwhile."""

PASSWORD = "sEcr3t.w0rd"
"""Of the user `me`, at the guarded port."""


def free_ports(n: int) -> list[int]:
    servers = [socket.create_server(("127.0.0.1", 0)) for _ in range(n)]
    ports: list[int] = [server.getsockname()[1] for server in servers]
    for server in servers:
        server.close()
    return ports


def java() -> list[str]:
    """The command of Java; skips the tests where there is none, or no broker."""
    if shutil.which("java") is None:
        pytest.skip("there is no java on the PATH")
    if not (JARS.parent / f"{JARS.name}.fetched").exists():
        pytest.skip("there are no jars of a broker: .ci/kafka")
    return ["java", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{JARS}/*"]


class KafkaServer(ServerProcess):
    """A broker with its files in `folder`; it survives a kill."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.java = java()
        self.port, guarded, controller = free_ports(3)
        self.servers, self.guarded = f"127.0.0.1:{self.port}", f"127.0.0.1:{guarded}"
        self.settings = folder / "server.properties"
        self.settings.write_text(
            SETTINGS.format(folder=folder, port=self.port, guarded=guarded, controller=controller, password=PASSWORD)
        )
        new = ["kafka.tools.StorageTool", "format", "-t", "AAAAAAAAAAAAAAAAAAAAAA", "-c", str(self.settings)]
        subprocess.run([*self.java, *new], capture_output=True, check=True)
        self.start()

    def start(self) -> None:
        with (self.folder / "said.txt").open("a") as said:
            self.process = subprocess.Popen([*self.java, "kafka.Kafka", str(self.settings)], stdout=said, stderr=said)
        self.admin = AdminClient({"bootstrap.servers": self.servers, "log_level": 0, "reconnect.backoff.max.ms": 200})
        until(self.answers)
        consumer = Consumer({"bootstrap.servers": self.servers, "group.id": "look", "log_level": 0})
        until(partial(self.coordinates, consumer))  # the admin client may crash while there is no coordinator
        consumer.close()

    def coordinates(self, consumer: Any) -> bool:
        try:
            consumer.committed([TopicPartition("none", 0)], timeout=1)
        except KafkaException:
            return False
        return True

    def answers(self) -> bool:
        assert self.process.poll() is None, (self.folder / "said.txt").read_text()
        try:
            return bool(self.admin.list_topics(timeout=1).brokers)
        except KafkaException:
            return False

    def close(self) -> None:
        self.go_on()
        self.kill()

    # -- what the broker knows -----------------------------------------------------------------------------------

    def make(self, topic: str, partitions: int = 1) -> None:
        """Make a topic."""
        until(partial(self.makes, topic, partitions))
        until(lambda: topic in self.admin.list_topics(timeout=PATIENCE).topics)

    def makes(self, topic: str, partitions: int) -> bool:
        for made in self.admin.create_topics([NewTopic(topic, partitions)]).values():
            try:
                made.result(PATIENCE)
            except KafkaException as error:
                if error.args[0].code() != FENCED:
                    raise
                return False
        return True

    def fill(self, topic: str, numbers: range, *, text: bytes = b"", partition: int | None = None) -> None:
        """Write a record for each number; its key is the number's last digit."""
        producer = Producer({"bootstrap.servers": self.servers, "acks": "all", "log_level": 0})
        to: dict[str, Any] = {} if partition is None else {"partition": partition}
        for n in numbers:
            while True:
                try:
                    producer.produce(topic, b"%d %b" % (n, text), str(n % 10), **to)
                    break
                except BufferError:
                    producer.poll(0.1)
        assert producer.flush(PATIENCE) == 0

    def committed(self, topic: str, group: str = "g") -> dict[int, int]:
        """The offsets that the group has committed, by partition."""
        found: dict[int, int] = {}

        def loaded() -> bool:
            [answer] = self.admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]).values()
            try:
                places = answer.result(PATIENCE).topic_partitions
            except KafkaException as error:
                if error.args[0].code() not in LOADING:
                    raise
                return False
            found.update({each.partition: each.offset for each in places if each.topic == topic})
            return True

        until(loaded)
        return found

    def members(self, group: str = "g") -> int:
        """How many consumers the group has."""
        [answer] = self.admin.describe_consumer_groups([group]).values()
        try:
            return len(answer.result(PATIENCE).members)
        except KafkaException:  # there is no such group yet
            return 0

    def values(self, topic: str, partitions: int = 1) -> list[list[tuple[bytes | None, bytes | None]]]:
        """The keys and values of all records, by partition."""
        consumer = Consumer({"bootstrap.servers": self.servers, "group.id": "look", "log_level": 0})
        found: list[list[tuple[bytes | None, bytes | None]]] = []
        for number in range(partitions):
            place = TopicPartition(topic, number, 0)
            _, end = consumer.get_watermark_offsets(place, PATIENCE)
            consumer.assign([place])
            records: list[tuple[bytes | None, bytes | None]] = []
            while len(records) < end:
                records += [(each.key(), each.value()) for each in consumer.consume(end - len(records), 0.2)]
            found.append(records)
        consumer.close()
        return found

    def written(self, topic: str, partitions: int = 1) -> int:
        """How many records a topic has, of which none was deleted."""
        latest: Any = OffsetSpec.latest
        places = {TopicPartition(topic, number): latest() for number in range(partitions)}
        ends: list[int] = []

        def leads() -> bool:
            answers = self.admin.list_offsets(places).values()
            try:
                ends[:] = [answer.result(PATIENCE).offset for answer in answers]
            except KafkaException as error:
                if error.args[0].code() not in ELECTING:
                    raise
                return False
            return True

        until(leads)
        return sum(ends)

    def commits(self) -> Iterator[tuple[str, str, int, int]]:
        """Each commit that the broker has got: the group, the topic, the partition and the offset."""
        for key, value in self.values("__consumer_offsets")[0]:
            if key is None or value is None or struct.unpack_from(">h", key)[0] > 1:
                continue  # it is about the members of a group
            group, at = _text(key, 2)
            topic, at = _text(key, at)
            yield group, topic, struct.unpack_from(">i", key, at)[0], struct.unpack_from(">q", value, 2)[0]


def _text(data: bytes, at: int) -> tuple[str, int]:
    """A text behind its length, and where it ends."""
    end = at + 2 + struct.unpack_from(">h", data, at)[0]
    return data[at + 2 : end].decode(), end
