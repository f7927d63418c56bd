"""Flows as answers of an ASGI server: Server-Sent Events, and streaming bodies.

Needs no client: both classes are applications of ASGI 3. A handler of Starlette or FastAPI returns one, or it is
mounted, or a server runs it. `_http.answer` says how they stand between a flow and a socket.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from reactive_runtime._core.runtime.arguments import check_callable, seconds_of
from reactive_runtime._core.sources.naming import instead
from reactive_runtime._flow import Flow
from reactive_runtime._operators.sinks.loops import AsyncIteration
from reactive_runtime._support.public_names import all_at_home as _all_at_home
from reactive_runtime.connect._http.answer import Answer, Body, Scope
from reactive_runtime.connect._http.sse import HEARTBEAT, OPENING, Event, json_line, record, retry_record, text_of

__all__ = ["Event", "EventStream", "StreamBody", "json_line"]


class EventStream(Answer):
    """Server-Sent Events: each element of a flow is a record.

    Text and bytes are the data of a record, an `Event` is the record itself, and all else is sent as JSON. A comment is
    sent where no element has come for `heartbeat` seconds, or a proxy would close the connection. If the flow fails,
    the last record has the type `error`, and says nothing of the error, which the server gets, and logs.

    Args:
        flow: The elements. Or a function that makes the flow of each request of the `Last-Event-ID` that the client
            has sent: the id of the last record that it has; None for a client that has none. It is called on the event
            loop. An error that it raises is the answer of the server or of the framework.
        heartbeat: Seconds. None: no comments.
        retry: Seconds after which a page connects anew when the connection has ended. None: the browser decides.
        encode: Makes text or bytes of elements, or of the data of an `Event`.
        on_error: Makes the last record, an `Event`, of the error of the flow; None for no record. The server does not
            get the error then.
        prefetch: How many elements are requested ahead, and held for a client: 1 to 64.
        send_timeout: Seconds that the client has to take a record. Then the flow is cancelled, and the server closes
            the connection. None: no limit.
        status: The status of the answer.
        headers: Further headers.

    Raises:
        TypeError: An argument has another type.
        ValueError: A number is out of its range.

    Demand:
        At most `prefetch` elements are requested and not yet taken by the socket, so that a client that reads slowly
        holds back its own flow only.

    Cancellation:
        The flow is cancelled when the client has gone, also while it waits for an element or for the socket; and when
        the server cancels the task.

    Thread:
        The event loop. A flow without an executor runs there, and may block it: give it one with `subscribe_on`.

    Example:
        >>> prices = Flow.interval(1).map(lambda n: {"price": n})
        >>> app = EventStream(prices, retry=3)  # uvicorn program:app

    Origin:
        `ServerSentEvent` of Spring, `EventSource` of browsers.
    """

    _title = "EventStream"

    def __init__(
        self,
        flow: Flow[Any] | Callable[[str | None], Flow[Any]],
        *,
        heartbeat: float | None = 15.0,
        retry: float | None = None,
        encode: Callable[[Any], str | bytes] = text_of,
        on_error: Callable[[Exception], Event | None] | None = None,
        prefetch: int = 16,
        send_timeout: float | None = None,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        for name, value in (("heartbeat", heartbeat), ("retry", retry)):
            if value is not None:
                seconds_of(self._title, name, value, positive=name == "heartbeat")
        if not isinstance(flow, Flow) and not callable(flow):
            raise TypeError(f"EventStream: a Flow, or a function that makes one, is needed, not {instead(flow)}")
        if not isinstance(flow, Flow):
            check_callable(self._title, "flow", flow)
        if on_error is not None:
            check_callable(self._title, "on_error", on_error)
        self._heartbeat = heartbeat
        self._encode = check_callable(self._title, "encode", encode)
        self._on_error = on_error
        super().__init__(
            flow,
            "text/event-stream",
            opening=OPENING if retry is None else retry_record(retry),
            prefetch=prefetch,
            send_timeout=send_timeout,
            status=status,
            defaults={"cache-control": "no-store", "x-accel-buffering": "no"},
            headers=headers,
        )

    def _flow_for(self, scope: Scope) -> Flow[Any]:
        """The flow for a request."""
        if isinstance(self._flow, Flow):
            return self._flow
        sent = [value for name, value in scope["headers"] if name.lower() == b"last-event-id"]
        return self._a_flow(self._flow(sent[-1].decode(errors="replace") if sent else None), "of the function ")

    async def _stream(self, elements: AsyncIteration[Any], body: Body) -> None:
        """Write the records."""
        limit: float | None = 0.0  # the flow is subscribed to before the client sees the answer
        while True:
            try:
                data = await self._next(elements, limit)
            except StopAsyncIteration:
                break
            except Exception as error:
                await self._failed(error, body)
                return
            await body.write(data)
            limit = self._heartbeat
        await body.write(b"", more=False)

    async def _next(self, elements: AsyncIteration[Any], seconds: float | None) -> bytes:
        """The next record; a comment where none comes in time."""
        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                element = await anext(elements)
        except TimeoutError:
            if limit.expired():
                return HEARTBEAT if seconds else b""
            raise  # the flow's
        return self._encoded(self._record, element)

    def _record(self, element: Any) -> bytes:
        return record(element, self._encode)

    async def _failed(self, error: Exception, body: Body) -> None:
        if self._on_error is None:
            await body.write(record(Event("the stream has failed", "error"), text_of), more=False)
            raise error
        last = self._on_error(error)
        await body.write(b"" if last is None else self._record(last), more=False)


class StreamBody(Answer):
    """A body of bytes or text that is sent while a flow makes it.

    The answer begins with the first element: if the flow fails before that, the answer is the server's for an error. If
    it fails later, the server closes the connection, so that the client does not take a part for the whole.

    Args:
        flow: Bytes or text, which is sent as UTF-8; or what `encode` takes.
        media_type: The type of the body, as "text/csv; charset=utf-8".
        encode: Makes text or bytes of an element. For JSON lines: `json_line`.
        prefetch: How many elements are requested ahead, and held for a client: 1 to 64.
        send_timeout: Seconds that the client has to take an element. Then the flow is cancelled, and the server closes
            the connection. None: no limit.
        status: The status of the answer.
        headers: Further headers.

    Raises:
        TypeError: An argument has another type.
        ValueError: A number is out of its range.

    Demand:
        At most `prefetch` elements are requested and not yet taken by the socket.

    Cancellation:
        As for `EventStream`.

    Thread:
        The event loop. A flow without an executor runs there, and may block it: give it one with `subscribe_on`.

    Example:
        >>> rows = Flow.range(3).map(lambda n: {"n": n})
        >>> app = StreamBody(rows, media_type="application/x-ndjson", encode=json_line)

    Origin:
        `StreamingResponse` of Starlette.
    """

    _title = "StreamBody"

    def __init__(
        self,
        flow: Flow[Any],
        *,
        media_type: str,
        encode: Callable[[Any], str | bytes] | None = None,
        prefetch: int = 16,
        send_timeout: float | None = None,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        if not isinstance(media_type, str):
            raise TypeError(f"StreamBody: media_type must be a str, not {instead(media_type)}")
        self._encode = None if encode is None else check_callable(self._title, "encode", encode)
        super().__init__(
            self._a_flow(flow),
            media_type,
            prefetch=prefetch,
            send_timeout=send_timeout,
            status=status,
            headers=headers,
        )

    def _flow_for(self, scope: Scope) -> Flow[Any]:
        """The flow for a request."""
        return self._a_flow(self._flow)

    async def _stream(self, elements: AsyncIteration[Any], body: Body) -> None:
        """Write the elements."""
        async for element in elements:
            await body.write(self._encoded(self._bytes, element))
        await body.write(b"", more=False)

    def _bytes(self, element: Any) -> bytes:
        encoded = element if self._encode is None else self._encode(element)
        if isinstance(encoded, str):
            return encoded.encode()
        if not isinstance(encoded, bytes | bytearray | memoryview):
            raise TypeError(f"StreamBody: bytes or text is needed, not {instead(encoded)}: give `encode`")
        return bytes(encoded)


_all_at_home(globals())
