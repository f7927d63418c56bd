"""Redis Streams: a source that reads for a consumer group, and what appends.

Needs the extra `redis`, and Redis 6.2 or later. `read` says what it guarantees; how it reads is in `_redis.group`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor
from functools import partial
from itertools import chain
from typing import Any, NoReturn

from reactive_runtime._core.runtime import primitives
from reactive_runtime._core.runtime.arguments import at_least, check_callable, check_executor, seconds_of
from reactive_runtime._core.sources.naming import instead
from reactive_runtime._flow import Flow
from reactive_runtime._operators.flow_base import combinator_flow
from reactive_runtime._support.public_names import all_at_home as _all_at_home
from reactive_runtime._support.shown import shown
from reactive_runtime.connect._elements.acked_flow import AckedFlow
from reactive_runtime.connect._elements.deliveries import check_dead_letters
from reactive_runtime.connect._redis.group import Group, Message, Reading
from reactive_runtime.connect._redis.server import Server, leave, text_of

# isort: split
import redis

__all__ = ["Message", "Writer", "read"]


def read(
    url: str,
    stream: str,
    group: str,
    consumer: str,
    *,
    executor: Executor,
    start: str = "0",
    at_most: int = 256,
    claim_after: float | None = 300.0,
    max_deliveries: int | None = None,
    dead_letters: Callable[[Message], object] | None = None,
    timeout: float = 10.0,
    options: Mapping[str, Any] | None = None,
) -> AckedFlow[Message]:
    """The entries of a stream, for one consumer of a group: at least once.

    First come the entries that this consumer has left pending; then those that others have, for `claim_after` seconds;
    then new ones. An acknowledged element is acknowledged at the server (XACK) together with the next fetch, or 50 ms
    later where there is none, and before the connection is closed. A refused one stays pending: it comes again after
    `claim_after` seconds, or with the next subscription. An element may come twice where the connection breaks, or
    where a server that is restarted has lost its acknowledgement.

    Args:
        url: As redis-py takes it: `redis://user:password@host:port/0`, `rediss://` or `unix://`.
        stream: The key of the stream, which is made if there is none.
        group: The name of the group, which is made if there is none.
        consumer: The name of this consumer: the same one after a restart, and never two at a time.
        executor: Its threads talk to the server. One thread is busy while there is demand.
        start: The id behind which a new group begins: "0" for all entries, "$" for those that come from now on.
        at_most: How many entries are fetched at once; 1 or more.
        claim_after: Seconds after which an entry that another consumer has not acknowledged is taken from it: longer
            than anyone handles one. None: never.
        max_deliveries: How often an entry is delivered. After that it goes to `dead_letters`. None: without end.
        dead_letters: Called with each such entry, which is acknowledged when it has returned. If it raises an error,
            the flow fails with it, and the entry stays pending.
        timeout: Seconds that the server has for each answer.
        options: Further arguments of `redis.Redis`, as `ssl_ca_certs`.

    Returns:
        A flow that goes on until it is cancelled. It fails with the error of redis-py where the server can't be
        reached, goes away, or refuses; `retry` subscribes again.

    Raises:
        TypeError: An argument has another type.
        ValueError: The URL can't be read, a number is too small, or only one of `max_deliveries` and `dead_letters` is
            given.

    Demand:
        No more entries are fetched than are demanded (COUNT), so none waits here. An entry that has been delivered
        twice is fetched alone.

    Cancellation:
        Does not wait for the server. The thread is free within 50 ms, or, if the server hangs, `timeout` seconds; it
        sends the last acknowledgements, and closes the connection. A thread that acknowledges an element after that
        sends it itself.

    Thread:
        Elements are signalled on `executor`.

    Example:
        >>> import redis
        >>> from concurrent.futures import ThreadPoolExecutor
        >>> with ThreadPoolExecutor(1) as pool:
        ...     orders = read("redis://localhost:1/0", "orders", "billing", "worker-1", executor=pool)
        ...     try:
        ...         orders.for_each(print)
        ...     except redis.ConnectionError as error:
        ...         print(str(error).partition(": ")[0])
        read('orders' at localhost:1)

    Origin:
        `StreamReceiver` of Spring Data Redis, with the demand as the COUNT of XREADGROUP.
    """
    server = Server("read", url, stream, timeout, options)
    for name, value in (("group", group), ("consumer", consumer), ("start", start)):
        if not isinstance(value, str):
            raise TypeError(f"read: {name} must be a str, not {instead(value)}")
    check_executor("read", executor)
    at_least("read", "at_most", 1, at_most)
    if claim_after is not None:
        seconds_of("read", "claim_after", claim_after, positive=True)
    check_dead_letters("read", max_deliveries, dead_letters)
    of = Group(server, stream, group, consumer, start, at_most, claim_after, max_deliveries, dead_letters)
    flow: Flow[Any] = combinator_flow(f"read({stream!r}, {group!r})", partial(Reading, of))
    return AckedFlow(flow.subscribe_on(executor))


class Writer:
    """Appends lists of elements to a stream: a function for `map`, behind `batch` or `buffer_timeout`.

    Of an `AckedFlow`, the elements of a list are acknowledged behind it, when the server has them all. Nothing is sent
    twice; but where the connection breaks, the server may have entries whose ids have not come back.

    Args:
        url: As for `read`.
        stream: The key of the stream, which is made if there is none.
        fields: Makes of an element the fields and values of its entry: str, bytes, int or float. By default the
            elements are mappings.
        maxlen: How many entries the stream keeps: the oldest go, also those that a group has not read. None: all.
        exact: Whether the server keeps exactly so many. False: some more, which costs it less.
        timeout: Seconds that the server has for each answer.
        options: Further arguments of `redis.Redis`.

    Raises:
        TypeError: An argument has another type.
        ValueError: The URL can't be read, or a number is too small.

    Thread:
        Any thread may call `append`, several at once: each has a connection of its own.

    Example:
        >>> from reactive_runtime import Flow
        >>> with Writer("redis://localhost:1/0", "squares", fields=lambda n: {"n": n * n}, maxlen=1_000) as writer:
        ...     ids = Flow.range(0).batch(256).map(writer.append).to_list().block()
        >>> ids
        []

    Origin:
        XADD with MAXLEN.
    """

    def __init__(
        self,
        url: str,
        stream: str,
        *,
        fields: Callable[[Any], Mapping[Any, Any]] = dict,
        maxlen: int | None = None,
        exact: bool = False,
        timeout: float = 10.0,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self._server = Server("Writer", url, stream, timeout, options)
        self._fields = check_callable("Writer", "fields", fields)
        bound = () if maxlen is None else ("MAXLEN", "=" if exact else "~", at_least("Writer", "maxlen", 0, maxlen))
        self._command = ("XADD", stream, *bound, "*")
        self._client = self._server.client()
        self._encode: Callable[[Any], bytes] = self._client.get_encoder().encode
        self._over = primitives.Event()

    def append(self, elements: Iterable[Any]) -> list[str]:
        """Append the elements in this order, in one packet.

        Args:
            elements: As many as are worth a packet: some hundreds.

        Returns:
            The ids of the new entries.

        Raises:
            redis.RedisError: The server can't be reached, goes away, or refuses an entry; any others may be there.
            redis.DataError: An element has no fields, or one that is no str, bytes, int or float; then nothing is sent.
            Exception: The error of `fields`; then nothing is sent.
        """
        try:
            with self._client.pipeline(transaction=False) as pipe:
                for number, element in enumerate(elements):
                    pipe.execute_command(*self._command, *self._entry(number, element))
                with self._server.named():
                    return [text_of(id) for id in pipe.execute()]
        finally:
            if self._over.is_set():  # the flow was cancelled meanwhile
                leave(self._client)

    def _entry(self, number: int, element: Any) -> list[Any]:
        """The fields and values of an element, as the client sends them."""
        fields = self._fields(element)
        try:
            entry = [self._encode(text) for text in chain.from_iterable(fields.items())]
        except (redis.DataError, UnicodeError) as error:
            self._refuse(number, element, f"can't be sent: {error}", error)
        if not entry:
            self._refuse(number, element, "has no fields", None)
        return entry

    def _refuse(self, number: int, element: Any, what: str, error: Exception | None) -> NoReturn:
        raise redis.DataError(
            f"{self._server.title}: element {number} of the list {what}, {shown(element)}: give `fields` that makes a"
            " mapping of it, with str, bytes, int or float"
        ) from error

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *error: object) -> None:
        """Close the connections; one that is in use, when it is no longer."""
        self._over.set()
        leave(self._client)


_all_at_home(globals())
