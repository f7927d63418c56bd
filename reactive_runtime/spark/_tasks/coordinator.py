"""A server in the driver, which counts for all tasks of a job. Each task has a `Link` to it.

    task ──ask──▶ driver: is there a permit, has its time come ──grant──▶ task ──call──▶ ──done──▶ driver
    task ──count──▶ driver ──counted──▶ task

Lines of JSON over TCP. Both ends know a secret, which travels with the function of the tasks; neither end sends it.
The server is one event loop on one thread, which owns all that it counts, so there is no lock. It begins with the first
object that needs it, and ends with the process. The server takes back the permits of a task when the connection of the
task ends, in whichever way.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import secrets
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol

from reactive_runtime._core.failures import dropping
from reactive_runtime._core.runtime import primitives
from reactive_runtime.errors import SparkError
from reactive_runtime.spark._session.spark_errors import is_connected
from reactive_runtime.spark._tasks.link import ANSWER, Address, line, proof

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Peer", "Permits", "Service", "address_of"]

BEHIND: Final = 0.1
"""Seconds of lost time that a rate makes up for, where calls were waiting all along: timers are late."""


class Service(Protocol):
    """An object in the driver that hears the words of tasks. The server's thread makes the calls."""

    def heard(self, peer: Peer, said: dict[str, Any]) -> None:
        """A task said something."""

    def lost(self, peer: Peer) -> None:
        """The connection of a task has ended."""


class Peer(Protocol):
    """A task, as the driver has it."""

    def say(self, **words: Any) -> None:
        """Answer."""


class Permits:
    """Permits to call: `concurrency` at once, and `rate` in each `per` seconds, evenly, first come, first served.

    The server's thread owns it. `loop` gives the one whose time it goes by.
    """

    def __init__(
        self,
        rate: float | None,
        per: float,
        concurrency: int | None,
        *,
        loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.get_running_loop,
    ) -> None:
        self._loop = loop
        self._pause = None if rate is None else per / rate
        self._concurrency = concurrency
        self._waiting: deque[tuple[Peer, int]] = deque()
        self._granted: set[tuple[Peer, int]] = set()
        self._next = 0.0  # when a call may begin, by the loop's clock
        self._timer: asyncio.TimerHandle | None = None

    def heard(self, peer: Peer, said: dict[str, Any]) -> None:
        """`ask`: a call is to begin; `done`: it is over, or not wanted any more."""
        if "ask" in said:
            if not self._waiting:  # time that no call wanted is not made up for
                self._next = max(self._next, self._loop().time())
            self._waiting.append((peer, said["ask"]))
        else:
            item = (peer, said["done"])
            if item in self._granted:
                self._granted.remove(item)
            elif item in self._waiting:
                self._waiting.remove(item)
        self._grant()

    def lost(self, peer: Peer) -> None:
        """The permits of the task are free."""
        self._waiting = deque(item for item in self._waiting if item[0] is not peer)
        self._granted = {item for item in self._granted if item[0] is not peer}
        self._grant()

    def _grant(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        loop = self._loop()
        while self._waiting and (self._concurrency is None or len(self._granted) < self._concurrency):
            if self._pause is not None:
                now = loop.time()
                if self._next > now:
                    self._timer = loop.call_at(self._next, self._grant)
                    return
                self._next = max(self._next, now - BEHIND) + self._pause
            peer, number = item = self._waiting.popleft()
            self._granted.add(item)
            peer.say(answered=number)


class _Peer:
    """A connection, in the driver. The server's thread owns it."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    def say(self, **words: Any) -> None:
        if not self._writer.is_closing():
            self._writer.write(line(words))


class _Server:
    """Begins with the first service of an interface, and serves all of that one."""

    def __init__(self, host: str, port: int) -> None:
        self._secret = secrets.token_bytes(32)
        self._lock = primitives.Lock()
        self._services: dict[
            str, Service
        ] = {}  # _lock; kept as long as the process: a job may outlive its driver's object
        self._ready: primitives.Future[int] = primitives.Future()
        primitives.Thread(target=self._run, args=(host, port), name="spark-coordinator", daemon=True).start()
        self._port = self._ready.result(ANSWER)

    def add(self, host: str, service: Service) -> Address:
        """Where tasks find the service."""
        key = secrets.token_hex(8)
        with self._lock:
            self._services[key] = service
        return Address(host, self._port, self._secret, key)

    def _run(self, host: str, port: int) -> None:
        try:
            asyncio.run(self._serve(host, port))
        except BaseException as error:
            if not self._ready.done():
                self._ready.set_exception(error)
            else:
                dropping.error_dropped("the driver no longer serves its tasks", error)

    async def _serve(self, host: str, port: int) -> None:
        server = await asyncio.start_server(self._connected, host, port)
        self._ready.set_result(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = _Peer(writer)
        service = None
        try:
            service = await asyncio.wait_for(self._known(peer, reader), ANSWER)
            if service is None:
                return
            peer.say(welcome=True)
            while said := await reader.readline():
                service.heard(peer, json.loads(said))
                await writer.drain()
        except (OSError, ValueError, TimeoutError):
            pass  # a task that is gone, or no task at all: what it held is given back below
        finally:
            if service is not None:
                service.lost(peer)
            writer.close()

    async def _known(self, peer: _Peer, reader: asyncio.StreamReader) -> Service | None:
        """The service that a connection is for; None where it does not know the secret."""
        nonce = secrets.token_hex(16)
        peer.say(nonce=nonce)
        said = json.loads(await reader.readline())
        if not hmac.compare_digest(proof(self._secret, nonce), str(said.get("proof"))):
            return None
        with self._lock:
            return self._services.get(str(said.get("key")))


_lock: Final = primitives.Lock()
_servers: Final[dict[tuple[str, int], _Server]] = {}  # _lock


def address_of(what: str, spark: SparkSession, service: Service, port: int = 0) -> Address:
    """Where the tasks of `spark` find `service`, which lives as long as this process.

    SparkError where the port can't be had; RuntimeError for a session of Spark Connect, whose tasks know no way here.
    """
    if is_connected(spark):
        raise RuntimeError(
            f"{what}: the tasks of Spark Connect can't reach this process: it needs a session of a master"
        )
    settings = spark.sparkContext.getConf()
    host = settings.get("spark.driver.host", "127.0.0.1") or "127.0.0.1"
    bound = settings.get("spark.driver.bindAddress", host) or host
    with _lock:
        server = _servers.get((bound, port))
        if server is None:
            try:
                server = _servers[bound, port] = _Server(bound, port)
            except OSError as error:
                raise SparkError(f"{what}: the driver can't listen on {bound}, port {port}: {error}") from error
    return server.add(host, service)
