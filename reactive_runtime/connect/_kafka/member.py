"""A member of a consumer group: takes records from the client, and commits.

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

from reactive_runtime._core.failures import dropping
from reactive_runtime._core.failures.assembly import add_note
from reactive_runtime._core.runtime import primitives
from reactive_runtime.connect._elements import last_notes
from reactive_runtime.connect._elements.acked import NotHandledError
from reactive_runtime.connect._kafka.cluster import Health
from reactive_runtime.connect._kafka.offsets import Offsets, Partition
from reactive_runtime.connect._kafka.records import Row, Topics, rows_of

# isort: split
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

__all__ = ["OWN", "POLL", "Member"]

OWN: Final = ("auto.offset.reset", "enable.auto.commit", "enable.auto.offset.store", "group.id", "on_commit")
"""Settings that are arguments of `read`, or are its own."""

ONE_READ: Final = 0.05
"""Seconds that one fetch waits for the client; then the thread looks for a cancel, and commits."""

ANSWER: Final = 0.005
"""Seconds between two looks for the answer to the last commit; the answer itself ends no call of the client."""

POLL: Final = 0.1
"""Seconds between two polls while there is no demand, or while a function keeps the records that were fetched."""

COMMIT: Final = 0.05
"""Seconds between two commits."""

LEAVING: Final = 60.0
"""Seconds for which a member that its group does not hear tries to leave it."""

ONE_ANSWER: Final = 1.0
"""Seconds that it waits for the group's broker, each time."""

REST: Final = 64
"""So many records more than one fetch has are kept while there is no demand."""

_FINAL: Final = frozenset({KafkaError.GROUP_AUTHORIZATION_FAILED, KafkaError.TOPIC_AUTHORIZATION_FAILED})
"""With these a commit fails for good. After any other it is sent again, or the partition is lost."""


_error_of: Final = Message.error
"""Of a message, called as often as there are records."""


class Member:
    """The consumer of one subscription.

    The owner of the drain calls it, and behind `close` the thread that leaves; the client calls back inside of that.

    Args:
        of: The topics, and the settings.
        refused: Called on any thread, when an element was refused that must not be passed.
    """

    def __init__(self, of: Topics, refused: Callable[[], object]) -> None:
        self.of = of
        self.consumer: Any  # a `Consumer`; set by `join`
        self.health = Health(of.cluster.timeout)
        self.offsets = Offsets(refused)
        self.rest: deque[Row] = deque()  # taken from the client, and not all handed out
        self.poll_at = self.commit_at = 0.0
        self.commits = 0  # commits that are under way
        self.failure: Exception | None = None  # what a callback has found
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
        self.offsets.assign(map(_key, partitions))
        self.fresh = self.health.steady = True

    def on_revoke(self, consumer: Any, partitions: list[TopicPartition]) -> None:
        """Another consumer gets these: commit what is handled, and drop the rest.

        The commit goes out before the answer to the rebalance, to the same broker, which takes them in this order.
        """
        try:
            self.commit(self.offsets.finished(map(_key, partitions)))
        except KafkaException:
            pass  # the next consumer gets the elements again
        finally:
            self.on_lost(consumer, partitions)

    def on_lost(self, consumer: Any, partitions: list[TopicPartition]) -> None:
        """They are another consumer's already."""
        self.health.steady = False  # the member joins again
        self.offsets.revoke(map(_key, partitions))
        kept = [row for row in self.rest if not row.run.assigned.lost]
        self.rest.clear()
        self.rest.extend(kept)

    def on_commit(self, error: KafkaError | None, partitions: list[TopicPartition]) -> None:
        """The answer to a commit. One that has failed is sent again with the next."""
        self.commits -= 1
        for each in partitions:
            wrong = error or each.error
            if wrong is None:
                self.offsets.told(_key(each), each.offset)
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
            self.rest.clear()
            self.close()
        if late and not failed:
            error = KafkaError(KafkaError._TIMED_OUT, "the last commit was not answered")
            raise self.of.cluster.error(error, also=self.health.last)

    def close(self) -> None:
        """Close the client; on a thread of its own, where the group would not hear now that the member leaves.

        The client says it once, and does not wait for the answer to a request to join, which comes on the same
        connection. A member that has left unheard holds up the others, and the next one, until its session is over.
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
        while self.health.failure is None and primitives.monotonic() < until:
            if not self.commits:
                finished = self.offsets.finished()
                if not finished:
                    return True
                self.commit(finished)
            self.consumer.poll(ANSWER)  # what it brings comes again
        return not self.commits and not self.offsets.finished()


def _interval(given: Any, most: int) -> Any:
    """Milliseconds between two statistics: they tell whether a broker can be reached, so they can't be switched off."""
    try:
        return given if 0 < int(given) <= most else most
    except (TypeError, ValueError):
        return most if given is None else given  # the client refuses it


def _key(partition: TopicPartition) -> Partition:
    return partition.topic, partition.partition
