"""One connection that reads for a consumer: the part that runs on the event loop.

nats-py is for one event loop. A `Link` lives on the one of coroutines. The module `pull_session` has what other threads
say to it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from weakref import WeakMethod

from reactive_runtime._core.failures import dropping
from reactive_runtime._core.runtime import eventloop, primitives
from reactive_runtime.connect._elements import last_notes
from reactive_runtime.connect._jetstream.consumer import Consumer, nak
from reactive_runtime.connect._jetstream.nats_servers import JetStreamError, new_replies
from reactive_runtime.connect._jetstream.pulls import Pulls

# isort: split
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

__all__ = ["Link"]


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
        self._pulls = Pulls(of, self._loop, self._on_message, self._ended, self._fail)
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
            self._subscription = await client.subscribe(replies, cb=self._pulls.on_message)
        except JetStreamError as error:
            self._fail(error)
        except Exception as error:
            self._fail(server.error("the connection is lost", error))
        else:
            await self._pulls.begin(client, replies)

    def _pull(self, n: int) -> None:
        if not self._closing:
            self._pulls.pull(n)

    def _on_message(self, message: Msg, is_last: bool) -> None:
        with self._lock:
            first = not self._arrived
            self._arrived.append(message)
        if is_last:
            self._ended()
        elif first:
            self._tell()

    def _ended(self) -> None:
        """The pull has ended."""
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
        self._pulls.again()

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
        self._pulls.stop()
        if self._patience is not None:
            self._patience.cancel()
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
