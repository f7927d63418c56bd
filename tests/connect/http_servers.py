"""Servers of HTTP on loopback: uvicorn on a thread, sockets that answer as a test says; and a slow client."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import uvicorn
from sinks import PATIENCE, until

SMALL = 4096
"""Bytes of the buffers of a socket, so that little is under way."""


@contextmanager
def served(app: Any, *, port: int = 0, buffer: int = SMALL, date: bool = True) -> Iterator[int]:
    """Run uvicorn with an application; the port."""
    with socket.create_server(("127.0.0.1", port)) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, buffer)  # of each connection
        config = uvicorn.Config(
            app, log_config=None, access_log=False, lifespan="off", timeout_graceful_shutdown=1, date_header=date
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        try:
            until(lambda: bool(server.started) or not thread.is_alive())
            yield listening.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join(PATIENCE)
            assert not thread.is_alive()


class Client:
    """A connection that has sent a request, and reads when a test says so."""

    def __init__(self, port: int, path: str = "/", *, method: str = "GET", headers: str = "") -> None:
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL)
        self.socket.settimeout(PATIENCE)
        self.socket.connect(("127.0.0.1", port))
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n"
        self.socket.sendall(head.encode("latin-1"))
        self.got = b""

    def until(self, part: bytes) -> bytes:
        """Read until the answer has this part."""
        while part not in self.got:
            data = self.socket.recv(SMALL)
            assert data, f"the answer has ended without {part!r}: {self.got[-500:]!r}"
            self.got += data
        return self.got

    def all(self) -> bytes:
        """Read to the end, if there is one."""
        with suppress(ConnectionResetError):
            while data := self.socket.recv(SMALL):
                self.got += data
        self.close()
        return self.got

    def close(self) -> None:
        self.socket.close()


def head_of(answer: bytes) -> tuple[int, dict[str, str]]:
    """The status, and the headers."""
    first, *lines = answer.partition(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")
    return int(first.split()[1]), {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}


def body_of(answer: bytes) -> bytes:
    """The body, which is in chunks. AssertionError where the last one is missing."""
    rest, body = answer.partition(b"\r\n\r\n")[2], b""
    while True:
        size, found, rest = rest.partition(b"\r\n")
        assert found, f"the body has no end: {body!r}"
        if not int(size, 16):
            return body
        body, rest = body + rest[: int(size, 16)], rest[int(size, 16) + 2 :]


Answer = bytes | Callable[[socket.socket], object]


class Scripted:
    """A server that gives one answer after the other, each over a connection of its own, and then refuses them."""

    def __init__(self, *answers: Answer, buffer: int = SMALL) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, buffer)
        self._listening.settimeout(PATIENCE)
        self.port: int = self._listening.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/path"
        self.requests: list[str] = []  # the server's thread
        self.left: list[bytes] = []  # likewise; what a client has sent behind its request, up to its end
        self.failed: list[BaseException] = []
        self._thread = threading.Thread(target=self._serve, args=(answers,), daemon=True)
        self._thread.start()

    def _serve(self, answers: tuple[Answer, ...]) -> None:
        try:
            for n, answer in enumerate(answers, start=1):
                connection, _ = self._listening.accept()
                if n == len(answers):
                    self._listening.close()
                with connection:
                    connection.settimeout(PATIENCE)
                    self._answer(connection, answer)
        except BaseException as error:
            self.failed.append(error)
        finally:
            self._listening.close()

    def _answer(self, connection: socket.socket, answer: Answer) -> None:
        head = b""
        while b"\r\n\r\n" not in head:
            if not (data := connection.recv(65536)):
                return  # the client has left before it has sent its request
            head += data
        self.requests.append(head.decode("latin-1"))
        with suppress(ConnectionError):
            if isinstance(answer, bytes):
                connection.sendall(answer)
                connection.shutdown(socket.SHUT_WR)
            else:
                answer(connection)
            self.left.append(until_closed(connection))

    def sent(self, name: str) -> list[str | None]:
        """The values of a header of the requests."""
        found: list[str | None] = []
        for request in self.requests:
            lines = [line.partition(": ") for line in request.split("\r\n")]
            found.append(next((value for key, _, value in lines if key.lower() == name), None))
        return found

    def done(self) -> Scripted:
        """Wait until each answer was given, and each client has closed its connection."""
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive(), "a connection is still open, or was not made"
        assert not self.failed, self.failed
        return self


def until_closed(connection: socket.socket) -> bytes:
    """Wait until the client has closed the connection."""
    got = b""
    while data := connection.recv(65536):
        got += data
    return got


def answer(body: bytes, *, status: str = "200 OK", kind: str = "text/plain", more: str = "", size: int = 0) -> bytes:
    """An answer with its length, which may be more than it has."""
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {size or len(body)}\r\n{more}\r\n"
    return head.encode() + body


def stream(body: bytes = b"", *, more: str = "") -> bytes:
    """Server-Sent Events, which end with the connection."""
    return f"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n{more}\r\n".encode() + body
