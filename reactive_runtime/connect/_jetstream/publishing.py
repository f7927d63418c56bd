"""The connection of a writer: messages that the server has confirmed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from reactive_runtime._core.runtime import eventloop, primitives
from reactive_runtime.connect._jetstream.nats_servers import Server, new_replies

# isort: split
from nats import errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import api
from nats.js import errors as js_errors

__all__ = ["Publishing", "is_id"]

HEADERS: Final = len(f"NATS/1.0\r\n{api.Header.MSG_ID.value}: \r\n\r\n")
"""Bytes of the headers of a message, without its id."""

Payload = tuple[bytes, str | None]
"""The body of a message, and its id."""


def is_id(id: str) -> bool:
    """Whether a header keeps this id as it is. Of others the client makes ids that two messages may share."""
    return bool(id) and id == id.strip() and not {"\r", "\n"} & set(id)


class Publishing:
    """A connection that several threads publish over.

    Args:
        server: The server.
        subject: Of the messages.
        in_flight: How many may be published and not confirmed.
    """

    def __init__(self, server: Server, subject: str, in_flight: int) -> None:
        self.server = server
        self.subject = subject
        self._lock = primitives.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None  # _lock; borrowed with the first call
        self._over = False  # _lock
        self._calls = 0  # _lock; under way
        # The loop's thread owns these:
        self._client: Client | None = None
        self._connecting = asyncio.Lock()
        self._places = asyncio.Semaphore(in_flight)
        self._replies = ""
        self._number = 0  # of the message that was sent last
        self._waiting: dict[int, asyncio.Future[int]] = {}  # not confirmed

    def call(self, payloads: Sequence[Payload]) -> list[int]:
        """Publish, and wait until all are confirmed: their numbers in the stream. Any thread but the loop's."""
        if eventloop.OURS.runs_here():
            raise RuntimeError(
                f"{self.server.title}: append waits for the event loop of coroutines, and was called on its thread:"
                " put publish_on with an executor before it"
            )
        with self._lock:
            if self._over:
                raise ValueError(f"{self.server.title}: the writer is closed")
            if self._loop is None:
                self._loop = eventloop.borrow()
            loop = self._loop
            self._calls += 1
        try:
            return asyncio.run_coroutine_threadsafe(self._publish(payloads), loop).result()
        finally:
            with self._lock:
                self._calls -= 1
            self._leave()

    def close(self) -> None:
        """Close the connection; one that is in use, when it is no longer."""
        with self._lock:
            self._over = True
        self._leave()

    def _leave(self) -> None:
        with self._lock:
            done = self._over and not self._calls and self._loop is not None
            loop, self._loop = (self._loop, None) if done else (None, self._loop)
        if loop is not None:
            asyncio.run_coroutine_threadsafe(self._close(), loop).add_done_callback(lambda _: eventloop.give_back(loop))

    # -- on the loop -------------------------------------------------------------------------------------------------

    async def _connected(self) -> Client:
        async with self._connecting:
            if self._client is None or self._client.is_closed:
                client = await self.server.connect()
                self._replies = new_replies(client)
                await client.subscribe(f"{self._replies}.*", cb=self._on_reply)
                self._client = client
        return self._client

    async def _on_reply(self, message: Msg) -> None:
        future = self._waiting.get(int(message.subject.rpartition(".")[2]))
        if future is None or future.done():
            return
        try:
            if (message.headers or {}).get("Status") == "503":
                raise js_errors.NoStreamResponseError
            answer = json.loads(message.data)
            if "error" in answer:
                raise js_errors.APIError.from_error(answer["error"])
            future.set_result(answer["seq"])
        except Exception as error:
            future.set_exception(error)

    async def _place(self) -> None:
        """Wait until one more may be in flight."""
        if self._places.locked():
            await asyncio.wait_for(self._places.acquire(), self.server.timeout)
        else:
            await self._places.acquire()

    async def _send(self, client: Client, body: bytes, id: str | None) -> asyncio.Future[int]:
        headers = None if id is None else {api.Header.MSG_ID.value: id}
        if id is not None and len(body) + HEADERS + len(id.encode()) > client.max_payload:
            raise errors.MaxPayloadError  # the client looks at the body alone, and the server would end the connection
        await self._place()
        self._number = number = self._number + 1
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future

        def done(_: object) -> None:
            del self._waiting[number]
            self._places.release()

        future.add_done_callback(done)
        try:
            await client.publish(self.subject, body, f"{self._replies}.{number}", headers)
        except BaseException:
            future.cancel()
            raise
        return future

    async def _publish(self, payloads: Sequence[Payload]) -> list[int]:
        server, futures = self.server, list[asyncio.Future[int]]()
        refused: Exception | None = None
        client = await self._connected()
        try:
            try:
                for body, id in payloads:
                    futures.append(await self._send(client, body, id))
            except Exception as error:
                refused = error  # those before it are under way
            if futures and (refused is None or client.is_connected):
                await asyncio.wait(futures, timeout=server.timeout)
            failed = [future.exception() for future in futures if future.done()]
            if not any(failed) and len(failed) < len(futures):
                raise refused or TimeoutError
            numbers = [future.result() for future in futures if future.done()]
            if refused is not None:
                raise refused
            return numbers
        except Exception as error:
            first = next((n for n, future in enumerate(futures) if not _is_kept(future)), len(futures))
            if isinstance(error, TimeoutError):
                what = f"it has not confirmed element {first} within {server.timeout:g} s, and may have it"
                server.fail(f"{what}; with `ids`, a `retry` adds none twice", error)
            server.fail(f"element {first} is not taken: {server.what(error)}", error)
        finally:
            for future in futures:
                future.cancel()  # those that are not confirmed give their places back

    async def _close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            with suppress(Exception):
                await client.close()


def _is_kept(future: asyncio.Future[Any]) -> bool:
    return future.done() and not future.cancelled() and future.exception() is None
