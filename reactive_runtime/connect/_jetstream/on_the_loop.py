"""One connection that reads for a consumer: the part that runs on the event loop.

nats-py is for one event loop. A `Link` lives on the one of coroutines. The module `pull_session` has what other threads
say to it.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final
from weakref import WeakMethod

from reactive_runtime._core.failures import dropping
from reactive_runtime._core.runtime import eventloop, primitives
from reactive_runtime.connect._elements import last_notes
from reactive_runtime.connect._jetstream.consumer import Consumer, nak
from reactive_runtime.connect._jetstream.nats_servers import JetStreamError, new_replies

# isort: split
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.js import errors as js_errors

__all__ = ["Link"]

EXPIRES: Final = 5.0
"""Seconds after which the server ends a pull, and the session pulls again."""

AGAIN: Final = 0.25
"""Seconds until the next pull, where the server could not serve one."""


class Link:
    """A connection, for one subscription of a flow.

    Args:
        of: The consumer.
        news: Called when a message, the end of a pull, or an error has come: on the event loop, under no lock.
    """

    def __init__(self, of: Consumer, news: Callable[[], object]) -> None:
        self.of = of
        self._lock = primitives.Lock()
        # The flow is kept alive by a pull alone: one without demand may become garbage.
        self._news = WeakMethod(news)
        self._kept: Callable[[], object] | None = None  # _lock; while a pull is under way
        self._arrived: deque[Msg] = deque()  # _lock
        self._pulling = False  # _lock; a pull is under way
        self._failed: JetStreamError | None = None  # _lock; the first
        self._notes: list[tuple[str, bytes]] = []  # _lock; replies that are not sent
        self._noted = False  # _lock; the loop knows that there are some
        self._open = 0  # _lock; messages that were taken and are not settled
        self._left = False  # _lock; the flow has left, and hears no news
        self._loop = eventloop.borrow()
        # The loop's thread owns the rest:
        self._client: Client | None = None
        self._task: asyncio.Task[None] | None = None  # that of `_begin`
        self._subscription: Subscription | None = None
        self._replies = ""  # set when messages can be pulled
        self._wanted = 0  # what to pull when they can
        self._due = 0  # messages that the pull under way has still to bring
        self._since: float | None = None  # when JetStream stopped to answer
        self._timer: asyncio.TimerHandle | None = None  # for the pull under way
        self._patience: asyncio.TimerHandle | None = None  # while the connection is lost
        self._stopped = False  # no more messages come
        self._closing = False
        self._has_told = False  # it has sent something that the server may not have
        self._is_lost = False  # the server does not hear what is settled
        eventloop.call(self._loop, self._start)

    def _start(self) -> None:
        self._task = self._loop.create_task(self._begin())

    async def _begin(self) -> None:
        server = self.of.server
        try:
            client = await server.connect(self._on_lost, self._on_back, self._on_closed)
            self._client = client
            manager: Any = client.jsm(timeout=server.timeout)
            try:
                await self.of.make_if_missing(manager)
            except Exception as error:
                server.fail(server.what(error), error)
            replies = new_replies(client)
            self._subscription = await client.subscribe(replies, cb=self._on_message)
            self._replies = replies
        except JetStreamError as error:
            self._fail(error)
        except Exception as error:
            self._fail(server.error("the connection is lost", error))
        else:
            if self._wanted:
                await self._ask(self._wanted)

    def _pull(self, n: int) -> None:
        if self._replies and not self._closing:
            self._loop.create_task(self._ask(n))
        else:
            self._wanted = n

    async def _ask(self, n: int) -> None:
        assert self._client is not None
        of = self.of
        self._due = n
        self._timer = self._loop.call_later(EXPIRES + of.server.timeout, self._unanswered)
        request = json.dumps({"batch": n, "expires": int(EXPIRES * 1e9)}).encode()
        try:
            await self._client.publish(f"$JS.API.CONSUMER.MSG.NEXT.{of.stream}.{of.name}", request, self._replies)
        except Exception as error:
            self._fail(of.server.error("the connection is lost", error))

    async def _on_message(self, message: Msg) -> None:
        headers = message.headers or {}
        status = headers.get("Status", "")
        if message.reply.startswith("$JS.ACK."):
            self._since = None
            self._due -= 1
            with self._lock:
                first = not self._arrived
                self._arrived.append(message)
            if self._due == 0:
                self._ended()
            elif first:
                self._tell()
        elif status in ("404", "408"):  # there is none, or the time of the pull is over
            self._since = None
            self._ended()
        elif status != "100":
            self._refused(status, headers.get("Description", ""))

    def _refused(self, status: str, said: str) -> None:
        """The server can't serve a pull, for now or for ever."""
        now = self._loop.time()
        self._since = now if self._since is None else self._since
        if "deleted" in said.lower() or now - self._since > self.of.reconnect:
            said = said or "it is gone, or JetStream does not answer"
            what = f"the consumer {self.of.name!r} can't be read: {said} ({status}); a `retry` makes it again"
            self._fail(self.of.server.error(what))
        else:
            self._loop.call_later(AGAIN, self._ended)

    def _unanswered(self) -> None:
        self._loop.create_task(self._look())

    async def _look(self) -> None:
        """The server has said nothing of a pull: has it forgotten it, is the consumer gone, or does it not answer?"""
        client, of = self._client, self.of
        if client is None or not client.is_connected:  # it waits for the connection
            self._ended()
            return
        manager: Any = client.jsm(timeout=of.server.timeout)
        try:
            await manager.consumer_info(of.stream, of.name)
        except js_errors.NotFoundError as error:
            self._fail(of.server.error(f"the consumer {of.name!r} was deleted; a `retry` makes it again", error))
        except Exception as error:
            self._refused("no answer", of.server.what(error))
        else:
            self._since = None
            self._ended()

    def _ended(self) -> None:
        """The pull has ended."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        with self._lock:
            self._pulling = False
        self._tell()
        with self._lock:
            if not self._pulling:
                self._kept = None

    def _tell(self) -> None:
        with self._lock:
            news = None if self._left else self._news()
        if news is not None:
            news()

    async def _on_lost(self) -> None:
        if self._patience is None and not self._closing and self._client is not None:
            self._patience = self._loop.call_later(self.of.reconnect, self._give_up)

    async def _on_back(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None
        if self._replies:
            self._ended()  # the server has forgotten the pull

    async def _on_closed(self) -> None:
        if self._client is not None and not self._closing:
            self._fail(self.of.server.error("the connection is closed", self._client.last_error))

    def _give_up(self) -> None:
        what = f"the connection is lost, and there was no other for {self.of.reconnect:g} s; a `retry` subscribes again"
        self._fail(self.of.server.error(what, None if self._client is None else self._client.last_error))

    def _fail(self, error: JetStreamError) -> None:
        with self._lock:
            self._failed = self._failed or error
        self._tell()

    def _send(self) -> None:
        if not self._closing:
            self._loop.create_task(self._send_notes())

    async def _send_notes(self) -> None:
        while True:
            with self._lock:
                notes, self._notes = self._notes, []
                self._noted = bool(notes)
            if not notes:
                break
            try:
                assert self._client is not None
                self._has_told = True
                for reply, payload in notes:
                    await self._client.publish(reply, payload)
            except Exception as error:
                self._fail(self.of.server.error("acknowledgements can't be sent; the messages come again", error))
        self._close_if_done()

    def _forget(self) -> None:
        with self._lock:
            self._open = 0
        self._close_if_done()

    def _close_if_done(self) -> None:
        with self._lock:
            done = self._stopped and not self._noted and self._open <= 0
        if done and not self._closing:
            self._closing = True
            self._loop.create_task(self._close()).add_done_callback(self._is_closed)

    def _is_closed(self, _: object) -> None:
        last_notes.end(self)
        eventloop.give_back(self._loop)

    def _stop(self) -> None:
        self._loop.create_task(self._stop_messages())

    async def _stop_messages(self) -> None:
        """End the pull under way: it would take messages that no flow wants. Refuse those that have come meanwhile."""
        for timer in (self._timer, self._patience):
            if timer is not None:
                timer.cancel()
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task])
        client, subscription = self._client, self._subscription
        try:
            if client is not None and subscription is not None and client.is_connected:
                drained: Any = subscription.drain  # not typed
                await asyncio.wait_for(drained(), self.of.server.timeout)
                with self._lock:
                    arrived, self._arrived = self._arrived, deque()
                for message in arrived:
                    await client.publish(message.reply, nak(0))
        except Exception as error:
            self._lost(error)
        self._stopped = True
        self._close_if_done()

    async def _close(self) -> None:
        client = self._client
        if client is None:
            return
        try:
            if client.is_connected and not self._is_lost:
                await client.flush(max(1, round(self.of.server.timeout)))  # the server has the acknowledgements
        except Exception as error:
            self._lost(error)
        finally:
            with suppress(Exception):
                await client.close()

    def _lost(self, error: Exception) -> None:
        """The flow has left, and the server does not hear the last of it."""
        if self._has_told and not self._is_lost:
            failure = self.of.server.error("the last acknowledgements may be lost; the messages come again", error)
            dropping.error_dropped("a connection to NATS was closed", failure)
        self._is_lost = True
