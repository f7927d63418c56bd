"""The pulls of a consumer, on the event loop: each asks the server for so many messages, one pull at a time.

The problem: a server that has restarted knows of no pull, and one whose stream is gone says nothing at all. A reader
that waits for the end of its pull waits for ever.

The answer: a pull has an end at the server (`EXPIRES`). If the server has not said so some time later, ask it for the
consumer: is it gone, does JetStream not answer, or has it forgotten the pull? Then pull again, or fail.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any, Final

from reactive_runtime.connect._jetstream.consumer import Consumer
from reactive_runtime.connect._jetstream.nats_servers import JetStreamError

# isort: split
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import errors as js_errors

__all__ = ["Pulls"]

EXPIRES: Final = 5.0
"""Seconds after which the server ends a pull, and the session pulls again."""

AGAIN: Final = 0.25
"""Seconds until the next pull, where the server could not serve one."""


class Pulls:
    """The pulls of one connection. The loop's thread owns it, and calls what it was made with.

    Args:
        of: The consumer.
        loop: The event loop.
        arrived: Called with each message, and with whether it is the last of its pull.
        ended: Called when a pull has ended, but by a message.
        failed: Called with the error, when there will be no more messages.
    """

    def __init__(
        self,
        of: Consumer,
        loop: asyncio.AbstractEventLoop,
        arrived: Callable[[Msg, bool], object],
        ended: Callable[[], object],
        failed: Callable[[JetStreamError], object],
    ) -> None:
        self.of = of
        self._loop = loop
        self._arrived, self._ended, self._failed = arrived, ended, failed
        self._client: Client | None = None
        self._replies = ""
        self._wanted = 0  # what to pull when there are replies
        self._due = 0  # messages that the pull under way has still to bring
        self._since: float | None = None  # when JetStream stopped to answer
        self._timer: asyncio.TimerHandle | None = None  # for the pull under way

    async def begin(self, client: Client, replies: str) -> None:
        """The client is connected, and has subscribed to `replies`."""
        self._client, self._replies = client, replies
        if self._wanted:
            await self.ask(self._wanted)

    def pull(self, n: int) -> None:
        """Ask for so many messages, or do so when it has begun."""
        if self._replies:
            self._loop.create_task(self.ask(n))
        else:
            self._wanted = n

    async def ask(self, n: int) -> None:
        assert self._client is not None
        of = self.of
        self._due = n
        self._timer = self._loop.call_later(EXPIRES + of.server.timeout, self._unanswered)
        request = json.dumps({"batch": n, "expires": int(EXPIRES * 1e9)}).encode()
        try:
            await self._client.publish(f"$JS.API.CONSUMER.MSG.NEXT.{of.stream}.{of.name}", request, self._replies)
        except Exception as error:
            self._failed(of.server.error("the connection is lost", error))

    async def on_message(self, message: Msg) -> None:
        """A message of the stream, or a word of the server's about the pull."""
        headers = message.headers or {}
        status = headers.get("Status", "")
        if message.reply.startswith("$JS.ACK."):
            self._since = None
            self._due -= 1
            if self._due == 0:
                self.stop()
            self._arrived(message, self._due == 0)
        elif status in ("404", "408"):  # there is none, or the time of the pull is over
            self._since = None
            self._over()
        elif status != "100":
            self._refused(status, headers.get("Description", ""))

    def again(self) -> None:
        """The server may have forgotten the pull: there was another connection."""
        if self._replies:
            self._over()

    def stop(self) -> None:
        """Wait no longer for the end of the pull under way."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _over(self) -> None:
        self.stop()
        self._ended()

    def _refused(self, status: str, said: str) -> None:
        """The server can't serve a pull, for now or for ever."""
        now = self._loop.time()
        self._since = now if self._since is None else self._since
        if "deleted" in said.lower() or now - self._since > self.of.reconnect:
            said = said or "it is gone, or JetStream does not answer"
            what = f"the consumer {self.of.name!r} can't be read: {said} ({status}); a `retry` makes it again"
            self._failed(self.of.server.error(what))
        else:
            self._loop.call_later(AGAIN, self._over)

    def _unanswered(self) -> None:
        self._loop.create_task(self._look())

    async def _look(self) -> None:
        """The server has said nothing of a pull: has it forgotten it, is the consumer gone, or does it not answer?"""
        client, of = self._client, self.of
        if client is None or not client.is_connected:  # it waits for the connection
            self._over()
            return
        manager: Any = client.jsm(timeout=of.server.timeout)
        try:
            await manager.consumer_info(of.stream, of.name)
        except js_errors.NotFoundError as error:
            self._failed(of.server.error(f"the consumer {of.name!r} was deleted; a `retry` makes it again", error))
        except Exception as error:
            self._refused("no answer", of.server.what(error))
        else:
            self._since = None
            self._over()
