"""The writer of a topic: it takes a list of elements at a time, and waits until the brokers have them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from reactive_runtime._core.runtime.arguments import check_callable
from reactive_runtime._core.sources.naming import instead
from reactive_runtime.connect._kafka.cluster import Cluster
from reactive_runtime.connect._kafka.sending import OWN, Outgoing, Sending

__all__ = ["Writer"]


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
        self._sending = Sending(Cluster("Writer", servers, repr(topic), timeout, options, OWN), topic)
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
