"""Answers, read by demand: each function gives a list for each chunk of a body."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Final

from reactive_runtime.connect._http.event_parser import LONGEST_RETRY, EventParser, LineParser, known_encoding
from reactive_runtime.connect._http.pauses import retry_after
from reactive_runtime.connect._http.requesting import Requests
from reactive_runtime.connect._http.sse import Event, fits_header

# isort: split
import httpx

__all__ = ["read_body", "read_events", "read_lines"]

FOR_A_WHILE: Final = frozenset({429, 502, 503, 504})
"""The status of a server, or of the proxy before it, that will be there again."""

DOUBLED: Final = 20
"""How often a wait is doubled: then the least one is longer than the longest."""

LEAST_WAIT: Final = 0.1
"""Seconds before a new connection, at least, for a server that says 0 and ends each connection."""

BROKEN: Final = (httpx.NetworkError, httpx.TimeoutException, httpx.RemoteProtocolError)


async def read_body(of: Requests) -> AsyncGenerator[list[bytes], None]:
    """The chunks."""
    async with of.answer() as response:
        of.check(response)
        async with of.chunks(response) as chunks:
            async for chunk in chunks:
                yield [chunk]


async def read_lines(of: Requests, max_size: int) -> AsyncGenerator[list[str], None]:
    """The lines, without their ends."""
    async with of.answer() as response:
        of.check(response)
        parser = LineParser(known_encoding(response.encoding), max_size, cr=False)
        async with of.chunks(response) as chunks:
            async for chunk in chunks:
                if lines := parser.feed(chunk):
                    yield lines
                of.check_size(parser.failed)
        rest = parser.left()
        of.check_size(parser.failed)
        if rest:
            yield [rest]


async def read_events(
    of: Requests, last_id: str, retry: float, attempts: int, most: int
) -> AsyncGenerator[list[Event], None]:
    """The events of one connection after the other."""
    begun, failures = False, 0
    while True:
        parser, pause = EventParser(most, last_id), retry
        try:
            async with of.answer(_behind(last_id)) as response:
                if response.status_code == 204:
                    return
                of.check(response, only=200)
                of.check_type(response, "text/event-stream")
                begun, failures = True, 0
                async with of.chunks(response) as chunks:
                    async for chunk in chunks:
                        if events := parser.feed(chunk):
                            yield events
                        of.check_size(parser.failed)
        except (*BROKEN, httpx.HTTPStatusError) as error:
            passes = not isinstance(error, httpx.HTTPStatusError) or error.response.status_code in FOR_A_WHILE
            if not (begun and passes) or failures >= attempts:
                raise
            retry = parser.retry if parser.retry is not None else retry
            asked = retry_after(error, at_most=LONGEST_RETRY) or 0
            pause = max(max(retry, LEAST_WAIT) * 2 ** min(failures, DOUBLED), asked)
            failures += 1
        else:
            retry = pause = parser.retry if parser.retry is not None else retry
        last_id = parser.last_id
        await asyncio.sleep(max(LEAST_WAIT, min(pause, LONGEST_RETRY)))


def _behind(last_id: str) -> dict[str, bytes] | None:
    """The header for the last id, if there is one that a header can have.

    A server takes spaces and tabs around a value away, also where a client sends them, which h11 does not.
    """
    value = last_id.strip(" \t")
    return {"last-event-id": value.encode()} if value and fits_header(value) else None
