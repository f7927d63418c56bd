"""In a task: the way to what the driver counts for all tasks of a job. See `coordinator` for the other end.

task ──ask──▶ driver: is there a permit, has its time come ──answered──▶ task ──call──▶ ──done──▶ driver
task ──count──▶ driver ──answered──▶ task
"""

from __future__ import annotations

import hashlib
import hmac
import json
import socket
from concurrent.futures import Executor
from contextlib import suppress
from typing import Any, Final, NamedTuple

from reactive_runtime._core.runtime import primitives
from reactive_runtime.errors import SparkError
from reactive_runtime.picklable import Scope

__all__ = ["ANSWER", "Address", "Link", "Linked", "line", "proof"]

ANSWER: Final = 30.0
"""Seconds within which the other end answers a new connection."""


class Address(NamedTuple):
    """Where an object of the driver is found by its tasks."""

    host: str
    port: int
    secret: bytes
    key: str

    def __repr__(self) -> str:
        return f"<Address {self.host}:{self.port}>"


def line(words: dict[str, Any]) -> bytes:
    """The words as one line of JSON."""
    return json.dumps(words).encode() + b"\n"


def proof(secret: bytes, nonce: str) -> str:
    """The proof that an end knows the secret, which neither end sends."""
    return hmac.new(secret, nonce.encode(), hashlib.sha256).hexdigest()


class Link:
    """The connection of a task to one service. A thread of its own hears what the driver says."""

    def __init__(self, what: str, address: Address) -> None:
        self._what = what
        self._place = f"{address.host}:{address.port}"
        self._sending = primitives.Lock()  # a line is written whole
        self._lock = primitives.Lock()
        self._answers: dict[int, primitives.Future[None]] = {}  # _lock
        self._over: SparkError | None = None  # _lock; final
        self._number = primitives.tickets()
        try:
            self._socket = socket.create_connection((address.host, address.port), ANSWER)
        except OSError as error:
            raise self._unreachable(error) from error
        self._lines = self._socket.makefile("rb")
        try:
            self._introduce(address)
        except (OSError, ValueError) as error:
            self._close()
            raise self._unreachable(error) from error
        self._reader = primitives.Thread(target=self._hear, name="spark-link", daemon=True)
        self._reader.start()

    def _introduce(self, address: Address) -> None:
        nonce = json.loads(self._lines.readline())["nonce"]
        self._send({"proof": proof(address.secret, nonce), "key": address.key})
        if not self._lines.readline():
            raise ConnectionError("it does not know this task: its driver was begun anew")
        self._socket.settimeout(None)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def _unreachable(self, error: Exception) -> SparkError:
        return SparkError(
            f"{self._what}: the driver can't be reached at {self._place}: {error}; spark.driver.host and `port` say"
            " where its tasks look for it"
        )

    def _close(self) -> None:
        self._lines.close()
        self._socket.close()

    def ask(self) -> tuple[int, primitives.Future[None]]:
        """Ask for a permit: its number, for `done`, and a future that is done when it is granted."""
        return self._say("ask")

    def done(self, number: int) -> None:
        """Give a permit back, or do without one that was asked for."""
        with self._lock:
            answer = self._answers.pop(number, None)
            gone = self._over
        if answer is not None:
            answer.cancel()
        if gone is None:
            with suppress(OSError):  # the driver has taken it back with the connection
                self._send({"done": number})

    def count(self, **counts: int) -> None:
        """Report counts, and wait until they are in; SparkError where the driver is gone."""
        self._say("count", **counts)[1].result()

    def _say(self, word: str, **more: int) -> tuple[int, primitives.Future[None]]:
        number = self._number()
        answer: primitives.Future[None] = primitives.Future()
        with self._lock:
            if self._over is not None:
                raise self._over
            self._answers[number] = answer
        try:
            self._send({word: number, **more})
        except OSError as error:
            self._end(error)
        return number, answer

    def _send(self, words: dict[str, Any]) -> None:
        with self._sending:
            self._socket.sendall(line(words))

    def _hear(self) -> None:
        try:
            for said in self._lines:
                number = json.loads(said)["answered"]
                with self._lock:
                    answer = self._answers.pop(number, None)
                if answer is not None and answer.set_running_or_notify_cancel():
                    answer.set_result(None)
            self._end(ConnectionError("it has closed the connection"))
        except (OSError, ValueError) as error:
            self._end(error)

    def _end(self, error: BaseException) -> None:
        gone = SparkError(f"{self._what}: the driver at {self._place} is gone: {error}")
        gone.__cause__ = error
        with self._lock:
            if self._over is None:
                self._over = gone
            gone = self._over
            answers, self._answers = self._answers, {}
        for answer in answers.values():
            if answer.set_running_or_notify_cancel():
                answer.set_exception(gone)

    def close(self, why: str) -> None:
        """End it: what waits for an answer fails with a SparkError. Waits for its thread."""
        with self._lock:
            if self._over is None:
                self._over = SparkError(f"{self._what}: {why}")
        with suppress(OSError):  # the other end was first
            self._socket.shutdown(socket.SHUT_RDWR)
        self._reader.join()
        self._close()


class Linked(Executor):  # in no more than its `shutdown`, by which a `Scope` ends it
    """An object that has a link to the driver in the tasks: its first use begins the link, `Scope` ends it."""

    def __init__(self, what: str, address: Address) -> None:
        self._what = what
        self.address = address
        self._link_lock = primitives.Lock()
        self._link: Link | None = None  # _link_lock

    def linked(self) -> Link:
        """The link of the scope that this runs in; RuntimeError where that is over.

        One thread connects, the others wait for it. The scope is entered under the same lock, so that its end comes
        before, and nothing begins, or after, and ends what has begun.
        """
        scope = Scope.current()
        with self._link_lock:
            if scope is not None:
                scope.enter(self, first=True)
            if self._link is None:
                self._link = Link(self._what, self.address)
            return self._link

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the link; what comes later begins a new one. `Scope` calls it."""
        with self._link_lock:
            link, self._link = self._link, None
        if link is not None:
            link.close("the task that this call is for is over")
