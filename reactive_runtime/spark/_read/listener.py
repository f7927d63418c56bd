"""Where the tasks of partitions send their batches: a port of this process, for one subscription.

task ──▶ secret, partition ──▶ (size, sum, batch)* ──▶ -1        driver ──▶ one byte: it has all, or wants no more
"""

from __future__ import annotations

import contextlib
import hmac
import secrets
import selectors
import socket
import struct
from typing import Any, Final

from reactive_runtime._core.runtime import primitives
from reactive_runtime.errors import SparkError
from reactive_runtime.spark._read.spools import Spool

__all__ = ["Listener"]

_BATCH: Final = struct.Struct(">iq")

_PARTITION: Final = struct.Struct(">i")

_MARK: Final = -1
"""The partition of a connection that this process makes: all that came before it were accepted."""

_HELLO_SECONDS: Final = 30.0
"""After which a connection that has not said what it is gets closed."""


class Listener:
    """Receives the batches of those partitions that are expected, on threads of its own; `what` names them."""

    def __init__(self, what: str, host: str) -> None:
        self._what = what
        self.secret: str = secrets.token_hex(16)
        self._server = socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
        self._address: tuple[str, int] = self._server.getsockname()[:2]
        self.port: int = self._address[1]
        self._wake, self._woken = socket.socketpair()
        self._lock = primitives.Lock()
        self._changed = primitives.Condition(self._lock)
        self._accepted = 0  # _lock; connections that have not said yet what they are
        self._spools: dict[int, Spool] = {}  # _lock
        self._connections: dict[int, socket.socket] = {}  # _lock; the latest of each partition
        self._stopped = False  # _lock; no batch is of use any more
        self._over = False  # _lock
        primitives.Thread(target=self._accept, name=f"{what}: listener", daemon=True).start()

    def expect(self, partition: int, spool: Spool) -> None:
        """Batches of a partition go to its spool, until `forget`."""
        with self._lock:
            self._spools[partition] = spool

    def forget(self, partition: int) -> None:
        """No task sends batches of a partition any more."""
        with self._lock:
            self._spools.pop(partition, None)

    def settle(self, partition: int) -> None:
        """Wait until all is received that a task of a partition has sent, where none runs any more."""
        with contextlib.suppress(OSError), socket.create_connection(self._address, _HELLO_SECONDS) as mark:
            mark.sendall(self.secret.encode() + _PARTITION.pack(_MARK))
            mark.recv(1)
        with self._lock:
            self._changed.wait_for(
                lambda: self._over or not (self._accepted or partition in self._connections), _HELLO_SECONDS
            )

    def stop(self) -> None:
        """Tasks end when they have sent the batch that they are at; what still comes is dropped."""
        with self._lock:
            self._stopped = True
            self._spools.clear()
            connections = list(self._connections.values())
        for connection in connections:
            _answer(connection)

    def close(self) -> None:
        """Threads end, with what they receive."""
        with self._lock:
            over, self._over = self._over, True
            self._changed.notify_all()
            connections = list(self._connections.values())
        if over:
            return
        self._wake.close()
        for connection in connections:
            _cut_off(connection)

    def _accept(self) -> None:
        with self._server, self._woken, selectors.DefaultSelector() as selector:
            selector.register(self._server, selectors.EVENT_READ)
            selector.register(self._woken, selectors.EVENT_READ)
            while True:
                ready = {key.fileobj for key, _ in selector.select()}
                if self._woken in ready:
                    return
                with contextlib.suppress(OSError):  # it has gone already
                    connection, _ = self._server.accept()
                    self._begin(connection)

    def _begin(self, connection: socket.socket) -> None:
        """Receive on a thread of its own. Without one, the task is cut off: Spark runs it again, or says why not."""
        with self._lock:
            self._accepted += 1
        thread = primitives.Thread(target=self._receive, args=(connection,), name=f"{self._what}: batches", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            connection.close()
            with self._lock:
                self._accepted -= 1
                self._changed.notify_all()

    def _receive(self, connection: socket.socket) -> None:
        partition = _MARK
        # A task that was lost, or another attempt of which took over: Spark runs it again, or says why not.
        with connection, contextlib.suppress(OSError, EOFError):
            try:
                partition = self._hello(connection)
                spool = None if partition == _MARK else self._taken_over(partition, connection)
            finally:
                with self._lock:
                    self._accepted -= 1
                    self._changed.notify_all()
            try:
                if spool is not None:
                    _fill(spool, connection, f"{self._what}: partition {partition}")
            finally:
                with self._lock:
                    if self._connections.get(partition) is connection:
                        del self._connections[partition]
                    self._changed.notify_all()

    def _hello(self, connection: socket.socket) -> int:
        """The partition of which a connection brings batches; `_MARK` where it has none to bring."""
        connection.settimeout(_HELLO_SECONDS)
        secret = bytes(_read(connection, len(self.secret)))
        if not hmac.compare_digest(secret, self.secret.encode()):
            return _MARK
        partition: int = _PARTITION.unpack(_read(connection, _PARTITION.size))[0]
        connection.settimeout(None)
        return partition

    def _taken_over(self, partition: int, connection: socket.socket) -> Spool | None:
        """The spool that a connection fills from now on; one of another attempt is cut off."""
        with self._lock:
            if self._over:
                return None
            before = self._connections.get(partition)
            self._connections[partition] = connection
            spool, stopped = self._spools.get(partition), self._stopped
        if stopped:
            _answer(connection)
            spool = Spool(self._what, partition)
            spool.close()
        if before is not None:
            _cut_off(before)
        return spool


def _fill(spool: Spool, connection: socket.socket, where: str) -> None:
    attempt = spool.begin()
    while True:
        size, sum = _BATCH.unpack(_read(connection, _BATCH.size))
        if size < 0:
            spool.whole(attempt)
            _answer(connection)
            return
        batch = _read(connection, size)
        try:
            spool.put(attempt, sum, batch)
        except OSError as error:
            failure = SparkError(
                f"{where}: what is not taken yet can't be kept in a file: {error}: make room, or set TMPDIR"
            )
            failure.__cause__ = error
            spool.fail(failure)
            return


def _read(connection: socket.socket, size: int) -> Any:
    import pyarrow as pa

    buffer = pa.allocate_buffer(size)
    view = memoryview(buffer)
    while len(view):
        count = connection.recv_into(view)
        if not count:
            raise EOFError
        view = view[count:]
    return buffer


def _answer(connection: socket.socket) -> None:
    """The task may end: all is here, or is of no use."""
    with contextlib.suppress(OSError):  # it has ended already
        connection.sendall(b"\1")


def _cut_off(connection: socket.socket) -> None:
    """The thread that reads it goes on, and finds its end."""
    with contextlib.suppress(OSError):  # it has its end already
        connection.shutdown(socket.SHUT_RDWR)
