"""NATS JetStream: a source that reads for a durable consumer, and what publishes.

Needs the extra `nats`, and a server of version 2.9 or later with JetStream. `read` says what it guarantees; how it
reads is in `_jetstream.pull_session`. nats-py runs on the event loop of coroutines, and the elements on an executor.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor
from functools import partial
from typing import Any, Literal

from reactive_runtime._core import garbage_collection
from reactive_runtime._core.runtime import eventloop
from reactive_runtime._core.runtime.arguments import at_least, check_callable, check_executor, one_of, seconds_of
from reactive_runtime._core.sources.naming import instead
from reactive_runtime._flow import Flow
from reactive_runtime._operators.flow_base import combinator_flow
from reactive_runtime._support.public_names import all_at_home as _all_at_home
from reactive_runtime._support.shown import shown
from reactive_runtime.connect._elements.acked_flow import AckedFlow
from reactive_runtime.connect._elements.deliveries import check_dead_letters
from reactive_runtime.connect._jetstream.consumer import Consumer
from reactive_runtime.connect._jetstream.nats_servers import JetStreamError, Server
from reactive_runtime.connect._jetstream.publishing import Publishing, is_id
from reactive_runtime.connect._jetstream.pulling import Message, Reading, Settings

# isort: split
from nats.js import api

__all__ = ["JetStreamError", "Message", "Writer", "read"]


def read(
    url: str,
    stream: str,
    consumer: str,
    *,
    executor: Executor,
    subject: str | None = None,
    start: Literal["all", "new", "last"] = "all",
    at_most: int = 256,
    ack_wait: float = 30.0,
    refused_after: float = 0.0,
    max_deliveries: int | None = None,
    dead_letters: Callable[[Message], object] | None = None,
    reconnect: float = 30.0,
    timeout: float = 10.0,
    options: Mapping[str, Any] | None = None,
) -> AckedFlow[Message]:
    """The messages of a stream, for a durable consumer that several programs may share: at least once.

    An acknowledged element is acknowledged at the server within a moment, together with others; a refused one is
    refused there (NAK), and comes again after `refused_after` seconds. One that is neither comes again after
    `ack_wait` seconds. An acknowledgement that a lost connection takes along makes its message come again.

    Args:
        url: `nats://user:password@host:4222`, `nats://token@host`, `tls://`, `ws://`; several with commas.
        stream: The name of the stream, which has to be there.
        consumer: The name of the durable consumer. It is made if there is none; one that is there is taken as it is.
        executor: Its threads handle the elements. None of them is busy while there is no message.
        subject: The subject, with wildcards, of the messages that a new consumer gets; None: all.
        start: The first message of a new consumer: of "all", the "last" one, or the first "new" one.
        at_most: How many messages one pull is for; 1 or more.
        ack_wait: Seconds after which the server gives a message of a new consumer again: longer than anyone handles
            one.
        refused_after: Seconds after which a refused message comes again; 0: at once. One that was not handled, as at a
            cancel, comes again at once.
        max_deliveries: How often a message is delivered. After that it goes to `dead_letters`. None: without end.
        dead_letters: Called with each such message, which is ended at the server (TERM) when it has returned. If it
            raises an error, the flow fails with it, and the message comes again.
        reconnect: Seconds for which the flow waits for the server when the connection is lost; it goes on then.
        timeout: Seconds that the server has for each answer.
        options: Further arguments of `nats.connect`, as `user_credentials` or `tls`.

    Returns:
        A flow that goes on until it is cancelled. It fails with a `JetStreamError` that names the server and the
        stream, where the server can't be reached or refuses; `retry` subscribes again.

    Raises:
        TypeError: An argument has another type.
        ValueError: The URL can't be read, a number is too small, or only one of `max_deliveries` and `dead_letters` is
            given.

    Demand:
        A pull is for as many messages as are demanded, so none waits here.

    Cancellation:
        Does not wait for the server. Messages that were not delivered are refused; the connection is closed behind the
        last element that is settled.

    Thread:
        Elements are signalled on `executor`. The client runs on the event loop of coroutines.

    Example:
        >>> from concurrent.futures import ThreadPoolExecutor
        >>> with ThreadPoolExecutor(1) as pool:
        ...     orders = read("nats://localhost:1", "ORDERS", "billing", executor=pool)
        ...     try:
        ...         orders.for_each(print)
        ...     except JetStreamError as error:
        ...         print(str(error).partition(":1)")[0])
        read('ORDERS' at localhost

    Origin:
        Pull consumers of JetStream, with the demand as the batch of a pull.
    """
    server = Server("read", url, stream, timeout, options)
    if not isinstance(consumer, str) or not (subject is None or isinstance(subject, str)):
        raise TypeError("read: consumer and subject must be str")
    if not consumer or set(consumer) & set(".*> \t\r\n/\\"):
        raise ValueError(f"read: consumer must be a name without dots, wildcards and blanks, not {consumer!r}")
    check_executor("read", executor)
    one_of("read", "start", ("all", "new", "last"), start)
    at_least("read", "at_most", 1, at_most)
    for name, seconds, positive in (
        ("ack_wait", ack_wait, True),
        ("refused_after", refused_after, False),
        ("reconnect", reconnect, False),
    ):
        seconds_of("read", name, seconds, positive=positive)
    check_dead_letters("read", max_deliveries, dead_letters)
    config = api.ConsumerConfig(
        name=consumer,
        durable_name=consumer,
        deliver_policy=api.DeliverPolicy(start),
        ack_policy=api.AckPolicy.EXPLICIT,
        ack_wait=ack_wait,
        filter_subject=subject,
        max_ack_pending=-1,  # the demand is the bound
    )
    of = Settings(
        Consumer(server, stream, consumer, config, reconnect), at_most, refused_after, max_deliveries, dead_letters
    )
    title = f"read({stream!r}, {consumer!r})"
    flow: Flow[Any] = combinator_flow(title, partial(Reading, of), uses=(eventloop.OURS,))
    return AckedFlow(flow.subscribe_on(executor))


class Writer:
    """Publishes lists of elements to a subject: a function for `map`, behind `batch` or `buffer_timeout`.

    Of an `AckedFlow`, the elements of a list are acknowledged behind it, when the server has confirmed them all. If
    the connection breaks, the server may have messages that it has not confirmed; with `ids` it drops those that a
    `retry` repeats within the stream's window for duplicates (2 minutes by default).

    Args:
        url: As for `read`.
        subject: The subject; a stream has to be there that takes it.
        data: Makes of an element the body of its message, as bytes. None: the elements are bytes.
        ids: Makes of an element the id of its message (Nats-Msg-Id), a str. None: the messages have none.
        in_flight: How many messages may be published and not confirmed, over all calls; 1 or more.
        timeout: Seconds that the server has for each answer.
        options: Further arguments of `nats.connect`.

    Raises:
        TypeError: An argument has another type.
        ValueError: The URL can't be read, or a number is too small.

    Thread:
        Any thread may call `append`, several at once, but that of the event loop of coroutines.

    Example:
        >>> from reactive_runtime import Flow
        >>> with Writer("nats://localhost:1", "squares", data=lambda n: b"%d" % n, ids=str) as writer:
        ...     numbers = Flow.range(0).batch(256).map(writer.append).to_list().block()
        >>> numbers
        []

    Origin:
        `publish` of JetStream with its acknowledgement.
    """

    def __init__(
        self,
        url: str,
        subject: str,
        *,
        data: Callable[[Any], bytes] | None = None,
        ids: Callable[[Any], str] | None = None,
        in_flight: int = 256,
        timeout: float = 10.0,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        server = Server("Writer", url, subject, timeout, options)
        self._data = None if data is None else check_callable("Writer", "data", data)
        self._ids = None if ids is None else check_callable("Writer", "ids", ids)
        publishing = self._publishing = Publishing(server, subject, at_least("Writer", "in_flight", 1, in_flight))
        weakref.finalize(self, garbage_collection.outside, publishing.close).atexit = False

    def append(self, elements: Iterable[Any]) -> list[int]:
        """Publish the elements in this order, and wait until the server has them all.

        Args:
            elements: As many as are worth to wait for together: some hundreds.

        Returns:
            The numbers of the messages in the stream; of one that it had already, the number that it has there.

        Raises:
            JetStreamError: The server can't be reached, goes away, or refuses a message; those before it are there.
            TypeError: A body is not bytes, or an id not a str; then nothing is sent.
            ValueError: The writer is closed; or an id is empty, has a line break, or a blank at its beginning or end:
                then nothing is sent.
            Exception: The error of `data` or `ids`; then nothing is sent.
        """
        payloads = []
        for element in elements:
            body = element if self._data is None else self._data(element)
            id = None if self._ids is None else self._ids(element)
            if not isinstance(body, bytes):
                raise TypeError(f"Writer: a body must be bytes, not {instead(body)}, of {shown(element)}")
            if not (id is None or isinstance(id, str)):
                raise TypeError(f"Writer: an id must be a str, not {instead(id)}, of {shown(element)}")
            if id is not None and not is_id(id):  # a header would have another: that of another message, perhaps
                raise ValueError(
                    f"Writer: an id must not be empty, have line breaks, or blanks at its ends: not {shown(id)},"
                    f" of {shown(element)}"
                )
            payloads.append((body, id))
        return self._publishing.call(payloads)

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *error: object) -> None:
        """Close the connection; one that is in use, when it is no longer. So does the end of the writer's life."""
        self._publishing.close()


_all_at_home(globals())
