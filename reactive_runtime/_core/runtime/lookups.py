"""Look-ups of addresses, each on a thread of its own.

asyncio does those of an event loop on its pool, which has few threads, and a look-up can't be interrupted: those of
streams that have been cancelled would hold back all others.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from typing import Any, Final

from reactive_runtime._core.runtime import primitives

__all__ = ["Lookups"]

MOST: Final = 256
"""Look-ups at the same time, with those for which no flow waits any more."""


class Lookups:
    """Stands for the `getaddrinfo` of an event loop, on whose thread it is called."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._room = asyncio.Semaphore(MOST)  # the loop's thread

    async def __call__(
        self, host: Any, port: Any, *, family: int = 0, type: int = 0, proto: int = 0, flags: int = 0
    ) -> Any:
        """The answer of `socket.getaddrinfo`. A cancel does not wait for it."""
        await self._room.acquire()
        found: asyncio.Future[Any] = self._loop.create_future()
        arguments = (host, port, family, type, proto, flags)
        try:
            primitives.Thread(
                target=self._look_up, args=(found, arguments), name="reactive-lookup", daemon=True
            ).start()
        except BaseException:
            self._room.release()
            raise
        return await found

    def _look_up(self, found: asyncio.Future[Any], arguments: tuple[Any, ...]) -> None:
        """On the thread of the look-up."""
        addresses, failed = None, None
        try:
            addresses = socket.getaddrinfo(*arguments)
        except Exception as error:
            failed = error
        with suppress(RuntimeError):  # the loop is closed: no flow waits
            self._loop.call_soon_threadsafe(self._end, found, addresses, failed)

    def _end(self, found: asyncio.Future[Any], addresses: Any, failed: Exception | None) -> None:
        """On the loop's thread."""
        self._room.release()
        if found.done():
            return
        if failed is None:
            found.set_result(addresses)
        else:
            found.set_exception(failed)
