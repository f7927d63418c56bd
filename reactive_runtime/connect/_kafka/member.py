"""A member of a consumer group: takes records from the client as they are demanded.

The problem: the client fetches in advance, as much as it likes, and a consumer that does not poll is thrown out of its
group. To pause a partition throws away what was fetched of it. So a reader that pauses whenever there is no demand
fetches the same over and over; and one that does not pause gets more than is demanded.

The answer: take from the client what is demanded. Without demand go on polling, and keep the one record that a poll may
bring (`rest`). Those are delivered first. Only when the rest is full, pause, and resume when it is half empty: a pause
comes at most once for so many records. How much the client fetches in advance is a setting, and small.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

from reactive_runtime._core.failures.assembly import add_note
from reactive_runtime._core.runtime import primitives
from reactive_runtime.connect._elements.acked import NotHandledError
from reactive_runtime.connect._kafka.membership import Membership, key_of
from reactive_runtime.connect._kafka.records import Row, Topics, rows_of

# isort: split
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

__all__ = ["OWN", "POLL", "Member"]

OWN: Final = ("auto.offset.reset", "enable.auto.commit", "enable.auto.offset.store", "group.id", "on_commit")
"""Settings that are arguments of `read`, or are its own."""

ONE_READ: Final = 0.05
"""Seconds that one fetch waits for the client; then the thread looks for a cancel, and commits."""

POLL: Final = 0.1
"""Seconds between two polls while there is no demand, or while a function keeps the records that were fetched."""

COMMIT: Final = 0.05
"""Seconds between two commits."""

REST: Final = 64
"""So many records more than one fetch has are kept while there is no demand."""

_error_of: Final = Message.error
"""Of a message, called as often as there are records."""


class Member(Membership):
    """The consumer of one subscription. See `Membership` for its arguments and its threads."""

    def __init__(self, of: Topics, refused: Callable[[], object]) -> None:
        super().__init__(of, refused)
        self.rest: deque[Row] = deque()  # taken from the client, and not all handed out
        self.poll_at = self.commit_at = 0.0
        self.paused = self.fresh = False  # `fresh`: there are partitions that are not paused

    def join(self) -> None:
        """Make the client, and join the group with the next poll."""
        of, health = self.of, self.health
        also = of.cluster.settings.get("stats_cb")

        def on_statistics(statistics: str) -> None:
            health.on_statistics(statistics)
            if also is not None:
                also(statistics)

        defaults: dict[str, Any] = {
            "fetch.queue.backoff.ms": 5,
            "queued.min.messages": max(1_000, 4 * of.at_most),
            "queued.max.messages.kbytes": 4_096,
        }
        if of.cluster.settings.get("group.protocol", "classic") == "classic":  # in the other one the broker assigns
            defaults["partition.assignment.strategy"] = "cooperative-sticky"
        own = {
            "group.id": of.group,
            "auto.offset.reset": of.start,
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "on_commit": self.on_commit,
            "error_cb": health.on_error,
            "statistics.interval.ms": _interval(of.cluster.settings.get("statistics.interval.ms"), health.interval),
            "stats_cb": on_statistics,
        }
        self.consumer = of.cluster.make(Consumer, defaults, own)
        try:
            self.consumer.subscribe(
                list(of.topics), on_assign=self.on_assign, on_revoke=self.on_revoke, on_lost=self.on_lost
            )
        except KafkaException as error:
            self.consumer.close()
            raise of.cluster.named(error) from None

    def fetch(self, n: int) -> None:
        """Take from the client what is there, `n` records at most; if nothing is, wait a moment for one."""
        if self.paused:
            self.resume()
        messages = self.consumer.consume(n, 0)
        if not messages:
            first = self.consumer.poll(ONE_READ)
            if first is not None:
                messages = [first, *(self.consumer.consume(n - 1, 0) if n > 1 else ())]
        self.took(messages)

    def poll(self) -> None:
        """Answer the broker, and keep the record that this may bring."""
        first = self.consumer.poll(0)
        self.took(() if first is None else (first,))
        waiting = sum(map(len, self.rest))
        full = waiting >= self.of.at_most + REST
        if full and (self.fresh or not self.paused):
            self.consumer.pause(self.consumer.assignment())
            self.paused, self.fresh = True, False
        elif self.paused and waiting <= self.of.at_most // 2:
            self.resume()

    def resume(self) -> None:
        self.consumer.resume(self.consumer.assignment())
        self.paused = False

    def took(self, messages: Sequence[Any]) -> None:
        """After each call of the client: keep the records, commit, and fail if there is a reason to."""
        if any(map(_error_of, messages)):
            for message in messages:
                if (error := message.error()) is not None:
                    self.refuse(message, error)
            messages = [message for message in messages if message.error() is None]
        self.rest.extend(rows_of(messages, self.offsets, as_lists=self.of.as_lists))
        now = primitives.monotonic()
        self.poll_at = now + POLL
        if now >= self.commit_at and not self.commits:
            self.commit_at = now + COMMIT
            self.commit(self.offsets.finished())
        self.look()

    def refuse(self, message: Any, error: KafkaError) -> None:
        """The client gives an error in place of a record."""
        code = error.code()
        if code in (KafkaError._MAX_POLL_EXCEEDED, KafkaError._PARTITION_EOF):
            return  # the partitions are lost, and the client joins the group again with the next poll
        where = "" if message.topic() is None else f"{message.topic()}[{message.partition()}]"
        offset = "" if message.offset() is None or message.offset() < 0 else f" offset {message.offset()}"
        self.failure = self.failure or self.of.cluster.error(error, where + offset, self.health.last)

    def look(self) -> None:
        """Fail, if there is a reason to."""
        if self.failure is not None:
            raise self.failure
        if self.health.failure is not None:
            raise self.of.cluster.error(self.health.failure, also=self.health.last)
        refusal = self.offsets.refusal()
        if refusal is not None:
            topic, number = refusal.assigned.partition
            text = f"{self.of.cluster.title}: {topic}[{number}] offset {refusal.offset} was refused"
            if isinstance(refusal.error, Exception) and not isinstance(refusal.error, NotHandledError):
                add_note(refusal.error, f"{text}; a new subscription begins with it")
                raise refusal.error
            raise NotHandledError(f"{text}: {refusal.error}; a new subscription begins with it") from refusal.error

    # -- callbacks of the client, inside of its calls ------------------------------------------------------------------

    def on_assign(self, consumer: Any, partitions: list[TopicPartition]) -> None:
        self.offsets.assign(map(key_of, partitions))
        self.fresh = self.health.steady = True

    def on_revoke(self, consumer: Any, partitions: list[TopicPartition]) -> None:
        """Another consumer gets these: commit what is handled, and drop the rest.

        The commit goes out before the answer to the rebalance, to the same broker, which takes them in this order.
        """
        try:
            self.commit(self.offsets.finished(map(key_of, partitions)))
        except KafkaException:
            pass  # the next consumer gets the elements again
        finally:
            self.on_lost(consumer, partitions)

    def on_lost(self, consumer: Any, partitions: list[TopicPartition]) -> None:
        """They are another consumer's already."""
        self.health.steady = False  # the member joins again
        self.offsets.revoke(map(key_of, partitions))
        kept = [row for row in self.rest if not row.run.assigned.lost]
        self.rest.clear()
        self.rest.extend(kept)


def _interval(given: Any, most: int) -> Any:
    """Milliseconds between two statistics: they tell whether a broker can be reached, so they can't be switched off."""
    try:
        return given if 0 < int(given) <= most else most
    except (TypeError, ValueError):
        return most if given is None else given  # the client refuses it
