"""Bodies and Server-Sent Events of HTTP servers as flows, which read by demand.

Needs the extra `http`, which is httpx. How a request is sent, and what a cancel does, is in `_http.requesting`.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor
from functools import partial
from typing import Any, Final

from reactive_runtime._core.runtime.arguments import at_least, seconds_of
from reactive_runtime._core.sources.naming import instead
from reactive_runtime._flow import Flow
from reactive_runtime._support.public_names import at_home as _at_home
from reactive_runtime.connect._http.pauses import retry_after
from reactive_runtime.connect._http.requesting import Requests
from reactive_runtime.connect._http.response_reader import read_body, read_events, read_lines
from reactive_runtime.connect._http.sse import Event

__all__ = ["Event", "body", "events", "lines", "retry_after"]

ASKED: Final = {"accept": "text/event-stream", "cache-control": "no-store"}
"""Headers of a request for events."""


def body(
    url: str,
    *,
    executor: Executor,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    content: str | bytes | None = None,
    timeout: float | None = 10.0,
    options: Mapping[str, Any] | None = None,
) -> Flow[bytes]:
    """The body of an answer, in chunks as they come: up to 64 KiB each.

    Args:
        url: `http://` or `https://`. A user and a password in it are sent as a header.
        executor: The operators behind it run there. No thread is kept while the flow waits for the server.
        method: The method of the request.
        headers: Of the request. Unless they ask for another `accept-encoding`, the server has to send the body as it
            is. Ask no server for one that you do not trust: a chunk of a compressed body may be as large as its sender
            likes.
        content: The body of the request.
        timeout: Seconds for the server to accept the connection, and for each wait for more of its answer. None: no
            limit.
        options: Further arguments of `httpx.AsyncClient`, as `verify`, `auth`, `proxy` and `http2`.

    Returns:
        A flow of the bytes. It fails with `httpx.HTTPStatusError` where the status is none of success; with ValueError
        where the body has a `content-encoding` that was not asked for, or more than one; and with another error of
        httpx where the server can't be reached, goes away, or is too slow.

    Raises:
        TypeError: An argument has another type.
        ValueError: The URL can't be read, a header can't be sent, or `timeout` is not above 0.

    Demand:
        The first demand sends the request. At most three chunks are read ahead of demand, and what the buffer of the
        socket has; then the server waits.

    Cancellation:
        Closes the connection, also while the flow waits for it.

    Thread:
        Elements are signalled on `executor`. The event loop that all flows share reads them.

    Example:
        >>> import httpx
        >>> from concurrent.futures import ThreadPoolExecutor
        >>> with ThreadPoolExecutor(1) as pool:
        ...     try:
        ...         body("http://me:secret@localhost:1/rows?token=7", executor=pool).run()
        ...     except httpx.ConnectError as error:
        ...         print(str(error).partition("): ")[0])
        body(GET http://localhost:1/rows?…

    Origin:
        `Client.stream` of httpx, `bodyToFlux` of Spring.
    """
    return Requests("body", url, method, headers, content, timeout, options).flow(read_body, executor)


def lines(
    url: str,
    *,
    executor: Executor,
    max_size: int = 2**20,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    content: str | bytes | None = None,
    timeout: float | None = 10.0,
    options: Mapping[str, Any] | None = None,
) -> Flow[str]:
    r"""The lines of an answer, without their ends, `\n` or `\r\n`: for JSON lines, `.map(json.loads)`.

    Args:
        url: As for `body`.
        executor: As for `body`.
        max_size: How many characters a line has, at most, without its end. The flow fails with ValueError behind the
            lines before a longer one.
        method: As for `body`.
        headers: As for `body`.
        content: As for `body`.
        timeout: As for `body`.
        options: As for `body`.

    Returns:
        A flow of the lines. Bytes that the encoding of the answer has not become U+FFFD; it is UTF-8 unless the server
        names another encoding of text that Python knows. It fails as `body` does.

    Raises:
        TypeError: An argument has another type.
        ValueError: As for `body`, or `max_size` is below 1.

    Demand:
        As `body`.

    Cancellation:
        As `body`.

    Thread:
        As `body`.

    Example:
        >>> from concurrent.futures import ThreadPoolExecutor
        >>> with ThreadPoolExecutor(1) as pool:
        ...     print(lines("http://me:secret@localhost:1/rows", executor=pool).explain().splitlines()[0])
        lines(GET http://localhost:1/rows) flatten() consume

    Origin:
        `Response.iter_lines` of httpx.
    """
    at_least("lines", "max_size", 1, max_size)
    of = Requests("lines", url, method, headers, content, timeout, options)
    return of.flow(partial(read_lines, max_size=max_size), executor)


def events(
    url: str,
    *,
    executor: Executor,
    last_event_id: str | None = None,
    retry: float = 3.0,
    attempts: int = 5,
    max_size: int = 2**20,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    content: str | bytes | None = None,
    timeout: float | None = 60.0,
    options: Mapping[str, Any] | None = None,
) -> Flow[Event]:
    """Server-Sent Events: the records of a stream, over as many connections as it takes.

    When a connection ends, breaks or is silent for `timeout` seconds, the flow waits, and connects anew with the id of
    the last event, `Last-Event-ID`. It waits for as long as the server has said (`retry:`), an hour at most. The server
    decides what it sends again, and must give ids to lose nothing.

    Args:
        url: As for `body`.
        executor: As for `body`.
        last_event_id: The id that the first request sends, to go on behind an event of an earlier flow.
        retry: Seconds to wait before connecting anew, unless the server says otherwise. No wait is below 0.1 s.
        attempts: How often in a row the flow tries to connect anew; each wait is twice the one before, or as long as a
            `Retry-After` says. Then it fails with the last error. 0: with the first one.
        max_size: How many characters a line has, at most, with the name of its field, and how many the data of an event
            has, with the line feeds between its lines. The flow fails with ValueError behind the events before a longer
            one, and does not connect anew.
        method: As for `body`.
        headers: As for `body`.
        content: As for `body`.
        timeout: As for `body`. Heartbeats of the server have to come more often.
        options: As for `body`.

    Returns:
        A flow that completes when the server answers 204, and otherwise goes on until it is cancelled. It fails where
        the first connection can't be made; with `httpx.HTTPStatusError` where the status is not 200, unless it is 429,
        502, 503 or 504 and not the first answer; and with ValueError where the answer is no `text/event-stream`.

    Raises:
        TypeError: An argument has another type.
        ValueError: As for `body`, or a number is too small.

    Demand:
        As `body`.

    Cancellation:
        As `body`; also while the flow waits before connecting anew.

    Thread:
        As `body`.

    Example:
        >>> from concurrent.futures import ThreadPoolExecutor
        >>> with ThreadPoolExecutor(1) as pool:
        ...     prices = events("http://localhost:1/prices", executor=pool).map(lambda event: event.data)

    Origin:
        `EventSource` of browsers, https://html.spec.whatwg.org/multipage/server-sent-events.html.
    """
    if last_event_id is not None and not isinstance(last_event_id, str):
        raise TypeError(f"events: last_event_id must be a str, not {instead(last_event_id)}")
    seconds_of("events", "retry", retry)
    at_least("events", "attempts", 0, attempts)
    at_least("events", "max_size", 1, max_size)
    of = Requests("events", url, method, headers, content, timeout, options, ASKED)
    read = partial(read_events, last_id=last_event_id or "", retry=retry, attempts=attempts, most=max_size)
    return of.flow(read, executor)


_at_home(__name__, body, events, lines, retry_after)
