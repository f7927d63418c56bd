"""An answer of ASGI that is a flow: what `EventStream` and `StreamBody` share.

The problem: a server's `send` returns when the socket has room, and no earlier. A loop that asks the flow for the next
element while `send` waits fills memory for each client that reads slowly. And only `receive` says that the client has
gone, so that a loop that waits for an element, or in `send`, does not notice it.

The answer: one task takes an element, sends it, and takes the next. Another waits for `receive`, and cancels the first
when the client has gone; then the first cancels the flow.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any, Final

from reactive_runtime._core.failures.assembly import add_note
from reactive_runtime._core.runtime.arguments import at_least, seconds_of
from reactive_runtime._core.sources.naming import instead
from reactive_runtime._flow import Flow
from reactive_runtime._operators.sinks.loops import AsyncIteration
from reactive_runtime._support.shown import shown

if TYPE_CHECKING:
    Response = object
else:
    try:  # FastAPI sends what a handler returns only if it is one
        from starlette.responses import Response
    except ImportError:
        Response = object

__all__ = ["Answer", "Body", "Receive", "Scope", "Send"]

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

MOST: Final = 64
"""Elements that an answer holds, at most."""

TURN: Final = 4
"""Elements behind which others on the event loop have their turn: a `send` with room does not wait.

asyncio logs a warning at the fifth write to a connection that is lost, if the event loop has had no turn since.
"""

_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""The name of a header."""

_CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
"""Characters that no value of a header has: control characters but a tab."""

_NO_HEADERS: Final[Mapping[str, str]] = {}


class _GoneError(Exception):
    """The server says in `send` that the client has gone."""


class Body:
    """The body of one answer. One task uses it."""

    def __init__(
        self, title: str, send: Send, start: dict[str, Any], opening: bytes, send_timeout: float | None
    ) -> None:
        self._title = title
        self._send = send
        self._start: dict[str, Any] | None = start  # None: it has been sent
        self._opening = opening  # before the first bytes
        self._timeout = send_timeout
        self._sent = 0
        self.over = False
        """All is sent, or is about to be: it is no news that the client has gone."""

    async def write(self, data: bytes, *, more: bool = True) -> None:
        """Return when the server has taken the bytes, which waits for room in the socket."""
        self.over = not more
        limit = asyncio.timeout(self._timeout)
        try:
            if self._timeout is None:
                await self._written(data, more)
            else:
                async with limit:
                    await self._written(data, more)
        except OSError as error:
            if limit.expired():
                raise TimeoutError(
                    f"{self._title}: the client took nothing for {self._timeout:g} s (send_timeout), and is left"
                ) from None
            raise _GoneError from error
        self._sent += 1
        if more and self._sent % TURN == 0:
            await asyncio.sleep(0)

    async def _written(self, data: bytes, more: bool) -> None:
        if self._start is not None:
            start, self._start = self._start, None
            await self._send(start)
            data = self._opening + data
        await self._send({"type": "http.response.body", "body": data, "more_body": more})


class Answer(Response):
    """An application of ASGI 3 that answers each request with a flow.

    A `Response` where Starlette is installed, with the attributes that Starlette and FastAPI look at.
    """

    _title = ""

    # `Response.__init__` makes a body, and its length: it is not called.
    def __init__(
        self,
        flow: Any,
        media_type: str,
        *,
        opening: bytes = b"",
        prefetch: int,
        send_timeout: float | None,
        status: int,
        defaults: Mapping[str, str] = _NO_HEADERS,
        headers: Mapping[str, str] | None,
    ) -> None:
        self._flow = flow
        self._prefetch = at_least(self._title, "prefetch", 1, prefetch)
        if prefetch > MOST:
            raise ValueError(f"{self._title}: prefetch must be at most {MOST}, not {prefetch}")
        if send_timeout is not None:
            seconds_of(self._title, "send_timeout", send_timeout, positive=True)
        self._send_timeout = send_timeout
        self._opening = opening
        self.status_code: int = at_least(self._title, "status", 200, status)
        self.media_type = media_type
        self.background: Callable[[], Awaitable[None]] | None = None
        if headers is not None and not isinstance(headers, Mapping):
            raise TypeError(f"{self._title}: headers must be a mapping, not {instead(headers)}")
        given = {str(name).lower(): value for name, value in (headers or {}).items()}
        self.raw_headers: list[tuple[bytes, bytes]] = [
            self._header(name, value) for name, value in {"content-type": media_type, **defaults, **given}.items()
        ]

    def _header(self, name: str, value: str) -> tuple[bytes, bytes]:
        """For a server, which could not send it with a line break, or would send two."""
        if not isinstance(value, str):
            raise TypeError(f"{self._title}: headers must be of str, not {instead(name)}: {instead(value)}")
        if not _TOKEN.fullmatch(name):
            raise ValueError(f"{self._title}: {shown(name)} is no name of a header")
        if _CONTROL.search(value):
            raise ValueError(f"{self._title}: the header {name} must be one line, not {shown(value)}")
        return name.encode("latin-1"), value.encode("latin-1")

    def _flow_for(self, scope: Scope) -> Flow[Any]:
        """The flow for a request."""
        raise NotImplementedError

    async def _stream(self, elements: AsyncIteration[Any], body: Body) -> None:
        """Write the elements."""
        raise NotImplementedError

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request. A server or a framework calls this."""
        if scope["type"] != "http":
            raise RuntimeError(f"{self._title}: it answers http, not {scope['type']}")
        start = {"type": "http.response.start", "status": self.status_code, "headers": list(self.raw_headers)}
        head = scope["method"] == "HEAD"
        body = Body(self._title, send, start, b"" if head else self._opening, self._send_timeout)
        if head:
            await body.write(b"", more=False)
        else:
            await self._exchange(self._flow_for(scope), receive, body)
        if self.background is not None:
            await self.background()

    async def _exchange(self, flow: Flow[Any], receive: Receive, body: Body) -> None:
        def gone(_: object) -> None:
            if not body.over:
                serving.cancel()

        serving = asyncio.ensure_future(self._serve(flow, body))
        watching = asyncio.ensure_future(_gone(receive))
        watching.add_done_callback(gone)
        try:
            await asyncio.wait({serving})
        finally:
            body.over = True
            serving.cancel()
            watching.cancel()
            await asyncio.wait({serving, watching})
        failed = None if watching.cancelled() else watching.exception()
        if not serving.cancelled():
            serving.result()
        elif failed is not None:
            raise failed

    async def _serve(self, flow: Flow[Any], body: Body) -> None:
        async with aclosing(flow.iterate_async(prefetch=self._prefetch)) as elements:
            with suppress(_GoneError):
                await self._stream(elements, body)

    def _encoded(self, encode: Callable[[Any], bytes], element: Any) -> bytes:
        """Call a user's function; its error names the element."""
        try:
            return encode(element)
        except Exception as error:
            add_note(error, f"{self._title} could not send {shown(element)}")
            raise

    def _a_flow(self, flow: object, made: str = "") -> Flow[Any]:
        """`flow`, or TypeError where it is none."""
        if not isinstance(flow, Flow):
            raise TypeError(f"{self._title}: {made}a Flow is needed, not {instead(flow)}")
        return flow


async def _gone(receive: Receive) -> None:
    """Wait until the client has gone; what is left of the body of the request is of no interest."""
    while (await receive())["type"] != "http.disconnect":
        pass
