"""Kafka: a source that reads topics for a consumer group, and what writes to one.

Needs the extra `kafka`, and Kafka 2.1 or later. `read` says what it guarantees; how it reads is in `_kafka.member`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import Any

from reactive_runtime._core.runtime.arguments import at_least, check_callable, check_executor, one_of
from reactive_runtime._core.sources.naming import instead
from reactive_runtime._flow import Flow
from reactive_runtime._operators.flow_base import combinator_flow
from reactive_runtime._support.public_names import all_at_home as _all_at_home
from reactive_runtime.connect._elements.acked_flow import AckedFlow
from reactive_runtime.connect._kafka.cluster import Cluster
from reactive_runtime.connect._kafka.member import OWN
from reactive_runtime.connect._kafka.reader import Reading
from reactive_runtime.connect._kafka.records import Record, Topics
from reactive_runtime.connect._kafka.sending import OWN as OWN_OF_WRITER
from reactive_runtime.connect._kafka.sending import Outgoing, Sending

__all__ = ["Record", "Writer", "read", "read_lists"]


def read(
    servers: str,
    topics: str | Sequence[str],
    group: str,
    *,
    executor: Executor,
    start: str = "earliest",
    at_most: int = 256,
    timeout: float = 10.0,
    options: Mapping[str, Any] | None = None,
) -> AckedFlow[Record]:
    """The records of topics, for one consumer of a group: at least once.

    The group has one offset for each partition: all before it is handled. It is committed every 50 ms where it has
    grown; and at once when another consumer gets the partition, and at the end. Elements that are acknowledged in
    another order wait for the first one: 100,000 at most, then no more are delivered.

    An element that is refused is not passed: the flow fails with the error of the refusal, and a new subscription
    begins with that element. To go on without it, `on_error_continue`.

    When a partition goes to another consumer, that one begins with the first element that is not handled here. So
    elements that were under way come twice, as they do after a crash.

    Args:
        servers: Some brokers, as "host:9092,other:9092".
        topics: The name of a topic, or several; one that begins with ^ is a pattern.
        group: The name of the group.
        executor: Its threads talk to the brokers. One thread is busy while there is demand.
        start: The place where a group begins in a partition without a commit of it: "earliest", "latest" (records that
            come before the first commit may be missed), or "error".
        at_most: How many records are taken from the client at once; 1 or more.
        timeout: For how many seconds no broker may be reached before the flow fails; and those for each answer.
        options: Further settings of the client (librdkafka), as `sasl.password`.

    Returns:
        A flow that goes on until it is cancelled. A broker that comes back within `timeout` is not noticed. It fails
        with KafkaException where none does, or refuses; `retry` subscribes again. While the member joins its group, a
        broker that is connected and gives no answer is noticed late: the group may need up to `max.poll.interval.ms`,
        5 minutes by default.

    Raises:
        TypeError: An argument has another type.
        ValueError: `servers` or `topics` is empty, `start` is another word, a number is too small, or `options` has a
            setting that the adapter makes.

    Demand:
        No more records are taken from the client than are demanded. While there is no demand, polling goes on, 10 times
        a second, and each may bring one record, which waits here: `at_most` + 64 at most, then the partitions are
        paused. The client fetches ahead: 4 MB, or the setting `queued.max.messages.kbytes`.

    Cancellation:
        Does not wait for the brokers. The thread is free within 50 ms; it commits what is handled, and leaves the
        group. A member that still joins, or whose broker is away, leaves as soon as the group hears it, on a thread of
        its own. An element that is acknowledged after that comes again: so put `take` behind `acknowledge`.

    Thread:
        Elements are signalled on `executor`.

    Example:
        >>> from concurrent.futures import ThreadPoolExecutor
        >>> from confluent_kafka import KafkaException
        >>> with ThreadPoolExecutor(1) as pool:
        ...     orders = read("localhost:1", "orders", "billing", executor=pool, timeout=0.2)
        ...     try:
        ...         orders.for_each(print)
        ...     except KafkaException as error:
        ...         print(error.args[0].str().partition(": ")[0])
        read('orders' at localhost:1)

    Origin:
        `KafkaReceiver` of reactor-kafka, with its offsets in order.
    """
    return _flow_of("read", servers, topics, group, executor, start, at_most, timeout, options)


def read_lists(
    servers: str,
    topics: str | Sequence[str],
    group: str,
    *,
    executor: Executor,
    start: str = "earliest",
    at_most: int = 256,
    timeout: float = 10.0,
    options: Mapping[str, Any] | None = None,
) -> AckedFlow[list[Record]]:
    """`read`, where each element is a list of records of one partition, which is acknowledged as a whole.

    For functions that handle many records at once: it takes half of the processor's time of `read`, since a list is one
    element.
    The guarantees are those of `read`, for lists: the group's offset passes a list when it and all before it are
    acknowledged, and a list that is refused, or under way at a crash, comes again with all of its records.

    Args:
        servers: As for `read`.
        topics: As for `read`.
        group: As for `read`.
        executor: As for `read`.
        start: As for `read`.
        at_most: How many records are taken from the client at once; 1 or more. A list has as many at most, and fewer
            where they are of several partitions, or no more are there.
        timeout: As for `read`.
        options: As for `read`.

    Returns:
        A flow of lists, none of which is empty, in the order of each partition. It ends as that of `read`.

    Raises:
        TypeError: As for `read`.
        ValueError: As for `read`.

    Demand:
        An element of demand is a list. `at_most` records are taken from the client when there is demand and no list
        waits here. Without demand each poll may bring one record, as in `read`: a list with one record.

    Cancellation:
        As `read`.

    Thread:
        As `read`.

    Example:
        >>> from concurrent.futures import ThreadPoolExecutor
        >>> with ThreadPoolExecutor(1) as pool:
        ...     orders = read_lists("localhost:1", "orders", "billing", executor=pool)
        ...     print(orders.map(len).elements().explain().splitlines()[0])
        read_lists('orders', 'billing') AckedFlow map(len) do_on_discard(_refuse) consume

    Origin:
        `KafkaReceiver.receiveBatch` of reactor-kafka.
    """
    return _flow_of("read_lists", servers, topics, group, executor, start, at_most, timeout, options)


def _flow_of(
    operator: str,
    servers: str,
    topics: str | Sequence[str],
    group: str,
    executor: Executor,
    start: str,
    at_most: int,
    timeout: float,
    options: Mapping[str, Any] | None,
) -> AckedFlow[Any]:
    names = (topics,) if isinstance(topics, str) else tuple(topics) if isinstance(topics, Sequence) else ()
    if not names or not all(isinstance(name, str) and name for name in names):
        kind = ValueError if isinstance(topics, str | Sequence) and not any(names) else TypeError
        raise kind(f"{operator}: topics must be a name, or a list of names, not {instead(topics)}")
    if not isinstance(group, str) or not group:
        raise TypeError(f"{operator}: group must be a str that is not empty, not {instead(group)}")
    shown = ", ".join(map(repr, names))
    cluster = Cluster(operator, servers, shown, timeout, options, OWN)
    check_executor(operator, executor)
    one_of(operator, "start", ("earliest", "latest", "error"), start)
    at_least(operator, "at_most", 1, at_most)
    of = Topics(cluster, names, group, start, at_most, as_lists=operator == "read_lists")
    flow: Flow[Any] = combinator_flow(f"{operator}({shown}, {group!r})", partial(Reading, of))
    return AckedFlow(flow.subscribe_on(executor))


class Writer:
    """Writes lists of elements to a topic: a function for `map`, behind `batch` or `buffer_timeout`.

    Of an `AckedFlow`, the elements of a list are acknowledged behind it, when all replicas that are in step have them
    (`acks=all`). The client sends a record again where a broker does not answer, and the broker takes it once, and in
    order (`enable.idempotence`). A list that a `retry` repeats is written again.

    Args:
        servers: As for `read`.
        topic: The name of the topic.
        key: Makes of an element the key of its record: bytes, str or None. None: records without a key.
        value: Makes of an element the value. None: the elements are bytes or str.
        headers: Makes of an element the headers: a dict, or a list of pairs. None: records without.
        timeout: Seconds within which the brokers must have a record.
        options: Further settings of the client (librdkafka).

    Raises:
        TypeError: An argument has another type.
        ValueError: `servers` or `topic` is empty, a number is too small, or `options` has a setting that the writer
            makes.

    Thread:
        Any thread may call `append`, several at once: each has connections of its own.

    Example:
        >>> from reactive_runtime import Flow
        >>> with Writer("localhost:1", "squares", value=lambda n: str(n * n)) as writer:
        ...     written = Flow.range(0).batch(256).map(writer.append).to_list().block()
        >>> written
        []

    Origin:
        `KafkaSender` of reactor-kafka.
    """

    def __init__(
        self,
        servers: str,
        topic: str,
        *,
        key: Callable[[Any], bytes | str | None] | None = None,
        value: Callable[[Any], bytes | str | None] | None = None,
        headers: Callable[[Any], Any] | None = None,
        timeout: float = 10.0,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        if not isinstance(topic, str):
            raise TypeError(f"Writer: topic must be a str, not {instead(topic)}")
        if not topic:
            raise ValueError("Writer: topic must not be empty")
        self._sending = Sending(Cluster("Writer", servers, repr(topic), timeout, options, OWN_OF_WRITER), topic)
        self._key = key if key is None else check_callable("Writer", "key", key)
        self._value = value if value is None else check_callable("Writer", "value", value)
        self._headers = headers if headers is None else check_callable("Writer", "headers", headers)

    def append(self, elements: Iterable[Any]) -> int:
        """Write the elements, and wait until the brokers have them; those of one partition in this order.

        Args:
            elements: As many as are worth a wait: some hundreds.

        Returns:
            How many they are.

        Raises:
            KafkaException: The brokers can't be reached, or refuse a record: the first of them is named by its key.
                Those before it may be there, and some behind it too.
            TypeError: A key or a value is neither bytes nor str: a note names it. Those before it may be there.
            Exception: The error of `key`, `value` or `headers`; then nothing is sent.
        """
        key, value, headers = self._key, self._value, self._headers
        records = [
            Outgoing(
                element if value is None else value(element),
                None if key is None else key(element),
                None if headers is None else headers(element),
            )
            for element in elements
        ]
        self._sending.send(records)
        return len(records)

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *error: object) -> None:
        """Close the connections; those in use, when they are no longer."""
        self._sending.close()


_all_at_home(globals())
