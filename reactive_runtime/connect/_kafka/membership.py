"""The place of a consumer in its group: it commits, hears whether the group knows, and leaves.

The problem: the client says once that it leaves, and waits for no answer. A member that has left unheard holds up the
others, and the next one, until its session is over.

The answer: commit what is handled, wait for the answer for as long as the flow's `timeout`, and close the client when
the group hears it: at once, or on a thread of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from reactive_runtime._core.failures import dropping
from reactive_runtime._core.runtime import primitives
from reactive_runtime.connect._elements import last_notes
from reactive_runtime.connect._kafka.cluster import Health
from reactive_runtime.connect._kafka.offsets import Offsets, Partition
from reactive_runtime.connect._kafka.records import Topics

# isort: split
from confluent_kafka import KafkaError, KafkaException, TopicPartition

__all__ = ["Membership", "key_of"]

ANSWER: Final = 0.005
"""Seconds between two looks for the answer to the last commit; the answer itself ends no call of the client."""

LEAVING: Final = 60.0
"""Seconds for which a member that its group does not hear tries to leave it."""

ONE_ANSWER: Final = 1.0
"""Seconds that it waits for the group's broker, each time."""

_FINAL: Final = frozenset({KafkaError.GROUP_AUTHORIZATION_FAILED, KafkaError.TOPIC_AUTHORIZATION_FAILED})
"""With these a commit fails for good. After any other it is sent again, or the partition is lost."""


class Membership:
    """The client of one subscription, and what its group has to hear.

    The owner of the drain calls it, and behind `close` the thread that leaves; the client calls back inside of that.

    Args:
        of: The topics, and the settings.
        refused: Called on any thread, when an element was refused that must not be passed.
    """

    def __init__(self, of: Topics, refused: Callable[[], object]) -> None:
        self.of = of
        self.consumer: Any  # a `Consumer`; set by `Member.join`
        self.health = Health(of.cluster.timeout)
        self.offsets = Offsets(refused)
        self.commits = 0  # commits that are under way
        self.failure: Exception | None = None  # what a callback has found

    def on_commit(self, error: KafkaError | None, partitions: list[TopicPartition]) -> None:
        """The answer to a commit. One that has failed is sent again with the next."""
        self.commits -= 1
        for each in partitions:
            wrong = error or each.error
            if wrong is None:
                self.offsets.told(key_of(each), each.offset)
            elif wrong.code() in _FINAL or wrong.fatal():
                of = f"{each.topic}[{each.partition}] offset {each.offset} can't be committed"
                self.failure = self.failure or self.of.cluster.error(wrong, of)

    def commit(self, finished: dict[Partition, int]) -> None:
        """Send a commit; `on_commit` hears the answer."""
        if finished:
            offsets = [TopicPartition(topic, number, offset) for (topic, number), offset in finished.items()]
            self.consumer.commit(offsets=offsets, asynchronous=True)
            self.commits += 1

    def leave(self, *, failed: bool) -> None:
        """Commit what is handled, wait for the answer, and leave the group."""
        try:
            late = not self.last_commit()
        finally:
            self.offsets.revoke()
            self.close()
        if late and not failed:
            error = KafkaError(KafkaError._TIMED_OUT, "the last commit was not answered")
            raise self.of.cluster.error(error, also=self.health.last)

    def close(self) -> None:
        """Close the client; on a thread of its own, where the group would not hear now that the member leaves.

        A request to join that is under way comes on the same connection, and the client does not wait for its answer.
        """
        if not self.commits and (self.can_leave() or (self.health.failure and not self.consumer.memberid())):
            self.consumer.close()
            return
        if not self.health.away:
            last_notes.begin(self)
        primitives.Thread(target=self.close_later, name="kafka-leaves", daemon=True).start()

    def can_leave(self) -> bool:
        """Whether the member has a name and its place in the group, and the group's broker can be reached."""
        return self.health.steady and not self.health.away and bool(self.consumer.memberid())

    def close_later(self) -> None:
        """Close the client as soon as the group hears it. The thread that calls it owns the member now."""
        until = primitives.monotonic() + (LEAVING if self.consumer.memberid() else self.of.cluster.timeout)
        try:
            try:
                while primitives.monotonic() < until and not (self.can_leave() and self.answers()):
                    self.consumer.poll(ANSWER)  # what it brings comes again
            finally:
                self.consumer.close()  # with a commit under way the client waits for the broker, perhaps for ever
        except Exception as error:  # a callback of the user's has raised it, inside of a call of the client
            dropping.error_dropped("a member left its Kafka group", error)
        finally:
            last_notes.end(self)

    def answers(self) -> bool:
        """Whether the group's broker answers: one that has just begun reads its groups first, and refuses meanwhile."""
        try:
            self.consumer.committed([TopicPartition(self.of.topics[0], 0)], timeout=ONE_ANSWER)
        except KafkaException:
            return False
        return True

    def last_commit(self) -> bool:
        """Whether the group knows all that is handled."""
        until = primitives.monotonic() + self.of.cluster.timeout
        quiet = False
        while self.health.failure is None and primitives.monotonic() < until:
            if not self.commits:
                finished = self.offsets.finished()
                if not finished:
                    return True
                self.commit(finished)
            if not quiet:
                quiet = True
                self.consumer.pause(self.consumer.assignment())  # or each poll ends with a record that was fetched
            self.consumer.poll(ANSWER)  # what it brings comes again
        return not self.commits and not self.offsets.finished()


def key_of(partition: TopicPartition) -> Partition:
    """The partition, as `Offsets` knows it."""
    return partition.topic, partition.partition
