"""NATS JetStream, described for the kit: a stream of its own, and the durable consumer "c"."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from nats.aio.msg import Msg
from nats.js import errors as js_errors

from connect import adapter_workers
from connect.nats_server import NatsServer
from reactive_runtime.connect import AckedFlow
from reactive_runtime.connect.jetstream import Message, read
from reactive_runtime.tck.adapters import Adapter

names = itertools.count()

ACK_WAIT = 3.0
"""Seconds after which the messages of a worker that was killed come again."""


class JetStream(Adapter):
    """The server counts pending messages and connections, and passes each acknowledgement on to whichever listens."""

    name = "jetstream"

    def __init__(self, server: NatsServer) -> None:
        self.server = server
        self.address = f"127.0.0.1:{server.port}"
        self.stream = f"KIT{next(names)}"
        self.acknowledged: list[bytes] | None = None  # the loop of the server's client appends
        server.make(self.stream)
        server.make(f"{self.stream}-dead")

    def put(self, numbers: Sequence[int]) -> None:
        self.server.fill(self.stream, numbers)

    def open(self, consumer: str, executor: Executor, password: str = "right") -> AckedFlow[Message]:
        url = f"nats://me:{quote(password, safe='')}@{self.address}"
        options = {"name": self.stream}
        return read(url, self.stream, "c", executor=executor, ack_wait=ACK_WAIT, options=options)

    def open_with(self, password: str) -> AckedFlow[Message]:
        return self.open("reader", ThreadPoolExecutor(1), password)

    def number(self, value: Message) -> int:
        return int(value.data)

    def left(self) -> int:
        try:
            return self.server.left(self.stream)
        except js_errors.NotFoundError:  # there is no consumer yet
            return self.server.size(self.stream)

    def handed_out(self) -> int:
        try:
            return self.server.pending(self.stream)
        except js_errors.NotFoundError:
            return 0

    def acknowledgements(self) -> int:
        if self.acknowledged is None:
            self.acknowledged = heard = []

            async def note(message: Msg) -> None:
                if message.data.startswith(b"+ACK"):
                    heard.append(message.data)

            self.server.listen(f"$JS.ACK.{self.stream}.>", note)
        return len(self.acknowledged)

    def connections(self) -> int:
        return self.server.connections(self.stream)

    def bury(self, letter: Any) -> None:
        self.server.fill(f"{self.stream}-dead", [self.number(letter.element)])

    def dead(self) -> int:
        return self.server.size(f"{self.stream}-dead")

    def worker(self, consumer: str) -> Callable[[Callable[[int], object]], object]:
        return partial(adapter_workers.of_jetstream, self.server.url, self.stream, ACK_WAIT)

    def break_connections(self) -> None:
        self.server.end()
        self.server.start()

    def kill_server(self) -> None:
        """For the campaign of kills, which counts those that come twice."""
        self.server.kill()
        self.server.start()

    def close(self) -> None:
        for stream in (self.stream, f"{self.stream}-dead"):
            with suppress(js_errors.NotFoundError):
                self.server.run(self.server.stream.delete_stream, stream)


@contextmanager
def jetstream(folder: Path) -> Iterator[Callable[[], Adapter]]:
    server = NatsServer(folder, "--user", "me", "--pass", "right", user="me:right@")
    try:
        yield partial(JetStream, server)
    finally:
        server.close()
