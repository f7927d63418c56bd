"""The producers of one topic: each sends one list at a time.

The problem: the client has one queue for all that is sent, and refuses when it is full; a
callback hears what became of each record, on whichever thread polls.

The answer: each thread that sends has a producer of its own, and waits until its queue is empty. So no more is in a
queue than one list; where the queue is full all the same, the thread waits for room. The client reports only
records that have failed; the first of them is the error of the list.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from reactive_runtime._core.failures.assembly import add_note
from reactive_runtime._core.runtime import primitives
from reactive_runtime._support.shown import shown
from reactive_runtime.connect._kafka.cluster import Cluster, Health

# isort: split
from confluent_kafka import KafkaError, KafkaException, Producer

__all__ = ["OWN", "Outgoing", "Sending"]

OWN: Final = (
    "acks",
    "delivery.report.only.error",
    "delivery.timeout.ms",
    "enable.idempotence",
    "message.timeout.ms",
    "on_delivery",
    "transactional.id",  # each thread that writes has a producer of its own
)
"""Settings that are arguments of a writer, or are its own."""

ROOM: Final = 0.05
"""Seconds that one call of the client waits for room in the queue."""


class Outgoing(NamedTuple):
    """A record that is to be sent, in the order of the arguments of `produce`."""

    value: Any
    key: Any
    headers: Any


class _Sender:
    """A producer, and the records that failed. One thread at a time uses it."""

    def __init__(self, cluster: Cluster) -> None:
        self.health = Health(cluster.timeout)
        self.title = cluster.title
        self.failed: list[tuple[KafkaError, Any]] = []  # the errors and keys of records
        own = {
            "acks": "all",
            "delivery.report.only.error": True,
            "enable.idempotence": True,
            "error_cb": self.health.on_error,
            "message.timeout.ms": int(cluster.timeout * 1_000),
            "on_delivery": self.told,
        }
        # A topic that is missing is an error of its own, if the client does not wait for longer than the records may.
        missing = {"topic.metadata.propagation.max.ms": int(cluster.timeout * 500)}
        self.producer: Any = cluster.make(Producer, missing, own)

    def told(self, error: KafkaError | None, message: Any) -> None:
        """The fate of a record; inside of a call of the client."""
        if error is not None:
            self.failed.append((error, message.key()))

    def send(self, topic: str, records: Sequence[Outgoing]) -> None:
        """Send them, and wait for the answers. The errors are in `failed`."""
        produce = self.producer.produce
        value = key = None
        try:
            for value, key, headers in records:
                while True:
                    try:
                        if headers is None:
                            produce(topic, value, key)
                        else:
                            produce(topic, value, key, headers=headers)
                        break
                    except BufferError:
                        self.producer.poll(ROOM)
        except KafkaException as error:  # as where it is too large
            self.failed.append((error.args[0], key))
        except Exception as error:  # it is neither bytes nor text
            what = f"the value {shown(value)} with the key {shown(key)} can't be sent; those before it may be there"
            add_note(error, f"{self.title}: {what}")
            raise
        finally:
            self.producer.flush()  # `message.timeout.ms` ends it


class Sending:
    """Sends lists to a topic; any thread calls it."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self._cluster = cluster
        self._topic = topic
        self._lock = primitives.Lock()
        self._idle: list[_Sender] = []  # _lock
        self._over: bool = False  # _lock; final: no sender is kept any more

    def send(self, records: Sequence[Outgoing]) -> None:
        """Send them, and wait until the brokers have them all."""
        with self._lock:
            sender = self._idle.pop() if self._idle else None
        sender = sender or _Sender(self._cluster)
        sender.send(self._topic, records)
        if sender.failed:  # it is not used again: after some errors it can't be
            error, key = sender.failed[0]
            of = f"key {shown(key)}"
            raise self._cluster.error(error, of, sender.health.why()) from None
        with self._lock:
            if not self._over:
                self._idle.append(sender)

    def close(self) -> None:
        """Keep no producer. One that is in use is dropped when it is no longer."""
        with self._lock:
            self._over = True
            self._idle.clear()
