"""Server-Sent Events, described for the kit: a source without acknowledgement, whose client keeps the position."""

from __future__ import annotations

import itertools
import socket
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx

from connect import adapter_workers
from connect.sse_server import BUFFER, PASSWORD, USER, SseServer
from reactive_runtime.connect import Acked, AckedFlow
from reactive_runtime.connect.http import Event, events
from reactive_runtime.tck.adapters import Adapter

names = itertools.count()

TEXT = "x" * 4_000
"""An event has four thousand bytes, so that buffers stand for a number of events."""


def nothing(error: BaseException | None) -> None:
    """The server does not hear of it."""


class ServerSentEvents(Adapter):
    """A file of its own, and a server that sends its lines."""

    name = "sse"
    acknowledges = False
    prefetch = 4 * 17 + 40
    """The chunk at hand, three that are read ahead, of 64 KiB each, and the buffers of both sockets and the server."""

    def __init__(self, folder: Path) -> None:
        self.server = SseServer(folder / f"kit-{next(names)}")
        self.address = f"127.0.0.1:{self.server.port}"
        self.letters: list[int] = []  # the thread of the flow appends

    def put(self, numbers: Sequence[int]) -> None:
        self.server.put([f"{n} {TEXT}" for n in numbers])

    def fill(self, n: int) -> None:
        for begin in range(0, n, 10_000):
            self.server.put([str(number) for number in range(begin, min(n, begin + 10_000))])

    def url(self, password: str = PASSWORD) -> str:
        return f"http://{USER}:{quote(password, safe='')}@{self.address}/events"

    def options(self) -> dict[str, Any]:
        small = httpx.AsyncHTTPTransport(socket_options=[(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)])
        return {"attempts": 20, "options": {"transport": small}}

    def open(self, consumer: str, executor: Executor, password: str = PASSWORD) -> AckedFlow[Event]:
        flow = events(self.url(password), executor=executor, **self.options())
        return AckedFlow(flow.map(lambda event: Acked(event, nothing)))

    def open_with(self, password: str) -> AckedFlow[Event]:
        return self.open("reader", ThreadPoolExecutor(1), password)

    def number(self, value: Event) -> int:
        return int(value.data.split()[0])

    def handed_out(self) -> int:
        return self.server.state()["sent"]

    def connections(self) -> int:
        return self.server.state()["connections"]

    def bury(self, letter: Any) -> None:
        self.letters.append(self.number(letter.element))

    def dead(self) -> int:
        return len(self.letters)

    def break_connections(self) -> None:
        self.server.kill()
        self.server.start()

    def close(self) -> None:
        self.server.kill()
        self.server.file.unlink()


class KeptPosition(ServerSentEvents):
    """The reader keeps the id of the last event that it has handled, in a file, and a new one goes on behind it."""

    name = "sse_kept"
    acknowledges = True
    in_order = True

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.kept = self.server.file.with_suffix(".kept")

    def open(self, consumer: str, executor: Executor, password: str = PASSWORD) -> AckedFlow[Event]:
        flow: AckedFlow[Event] = adapter_workers.kept_events(self.url(password), self.kept, executor, **self.options())
        return flow

    def positions(self) -> list[int]:
        """The ids that were kept, one after the other."""
        return [int(id) for id in self.kept.read_text(encoding="ascii").split()] if self.kept.exists() else []

    def left(self) -> int:
        handled = self.positions()[-1] + 1 if self.kept.exists() else 0
        return self.server.file.read_bytes().count(b"\n") - handled

    def acknowledgements(self) -> int:
        """By how many events the position has moved; each time that it has not counts as one."""
        positions = [-1, *self.positions()]
        return sum(max(now - before, 1) for before, now in itertools.pairwise(positions))

    def worker(self, consumer: str) -> Callable[[Callable[[int], object]], object]:
        return partial(adapter_workers.of_kept_events, self.url(), str(self.kept))

    def close(self) -> None:
        super().close()
        self.kept.unlink(missing_ok=True)


@contextmanager
def sse(folder: Path) -> Iterator[Callable[[], Adapter]]:
    yield partial(ServerSentEvents, folder)


@contextmanager
def sse_kept(folder: Path) -> Iterator[Callable[[], Adapter]]:
    yield partial(KeptPosition, folder)
