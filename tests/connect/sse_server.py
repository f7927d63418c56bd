"""A server of Server-Sent Events in a process of its own: it sends the lines of a file, also those that come later.

python tests/connect/sse_server.py PORT FILE
"""

from __future__ import annotations

import asyncio
import base64
import json
import socket
import subprocess
import sys
import urllib.request
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import uvicorn

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parents[1])]

from sinks import PATIENCE, until

from connect.redis_server import free_port
from connect.server_process import ServerProcess
from reactive_runtime import Flow
from reactive_runtime.connect.asgi import Event, EventStream

USER, PASSWORD = "me", "right"
BUFFER = 32_768
"""Bytes of the buffer of a socket, which the system doubles."""
LOOK = 0.01
"""Seconds between two looks at the end of the file."""


class Lines:
    """The application. The event loop owns the counts."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.connections = 0
        self.sent = 0  # events that were made for a connection
        me = base64.b64encode(f"{USER}:{PASSWORD}".encode())
        self.allowed = b"Basic " + me

    async def after(self, last: int) -> AsyncIterator[Event]:
        """The events behind this line."""
        self.connections += 1
        try:
            with open(self.file, encoding="ascii") as lines:
                number = -1
                while True:
                    line = lines.readline()
                    if not line:
                        await asyncio.sleep(LOOK)
                    elif (number := number + 1) > last:
                        self.sent += 1
                        yield Event(line.rstrip("\n"), id=str(number))
        finally:
            self.connections -= 1

    def flow(self, last: str | None) -> Flow[Event]:
        return Flow.from_async(partial(self.after, -1 if last is None else int(last)), prefetch=1)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] == "/events" and dict(scope["headers"]).get(b"authorization") == self.allowed:
            await EventStream(self.flow, retry=0.1, prefetch=1)(scope, receive, send)
            return
        status = 401 if scope["path"] == "/events" else 200
        body = json.dumps({"connections": self.connections, "sent": self.sent}).encode()
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": body})


class SseServer(ServerProcess):
    """The process; it survives a kill."""

    def __init__(self, file: Path) -> None:
        self.file = file
        file.touch()
        self.port = free_port()
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen([sys.executable, __file__, str(self.port), str(self.file)])
        until(self.answers)

    def answers(self) -> bool:
        assert self.process.poll() is None, "the server has ended"
        try:
            return bool(self.state())
        except OSError:  # it starts
            return False

    def state(self) -> dict[str, int]:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/state", timeout=PATIENCE) as answer:
            state: dict[str, int] = json.load(answer)
            return state

    def put(self, lines: list[str]) -> None:
        with self.file.open("a", encoding="ascii") as file:
            file.write("".join(f"{line}\n" for line in lines))


def main() -> None:
    port, file = sys.argv[1:]
    with socket.create_server(("127.0.0.1", int(port))) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER)  # of each connection
        config = uvicorn.Config(Lines(file), log_level="error", access_log=False, lifespan="off")
        uvicorn.Server(config).run([listening])


if __name__ == "__main__":
    main()
