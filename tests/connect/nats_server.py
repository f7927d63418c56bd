"""A real NATS server with JetStream on loopback, which tests may kill and start again."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import threading
import urllib.request
from collections.abc import Callable, Coroutine, Iterable
from pathlib import Path
from typing import Any

import nats
import pytest
from nats.js import api
from nats.js import errors as js_errors
from sinks import PATIENCE, until

from connect.redis_server import UNPACKED, free_port
from connect.server_process import ServerProcess

NAME = "reader"
"""The name that the connections of the flows have at the server."""


def program() -> str:
    """The program of the server; skips the tests where there is none."""
    found = shutil.which("nats-server", path=f"{os.environ['PATH']}:{UNPACKED / 'sbin'}:/usr/sbin")
    if found is None:
        pytest.skip("there is no nats-server, neither on the PATH nor unpacked: .ci/servers nats-server")
    return found


class NatsServer(ServerProcess):
    """A server with its files in `folder`; it survives a kill."""

    def __init__(self, folder: Path, *settings: str, user: str = "") -> None:
        self.folder = folder
        self.settings = settings
        self.port, self.monitor = free_port(), free_port()
        self.url = f"nats://{user}127.0.0.1:{self.port}"
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._client: Any = None
        self.start()

    def start(self) -> None:
        command = [program(), "-js", "-sd", str(self.folder), "-a", "127.0.0.1", "-p", str(self.port)]
        self.process = subprocess.Popen(
            [*command, "-m", str(self.monitor), "-l", str(self.folder / "log"), *self.settings],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        until(self.answers)

    def answers(self) -> bool:
        assert self.process.poll() is None, "the server has ended"
        try:
            return bool(self.asked("healthz")["status"] == "ok")
        except OSError:  # it starts
            return False

    def asked(self, what: str) -> Any:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.monitor}/{what}", timeout=PATIENCE) as answer:
            return json.load(answer)

    def end(self) -> None:
        """Have it end, with all that it knows on disk: behind a kill, it gives the last acknowledged messages again."""
        self.process.terminate()
        self.process.wait()

    def close(self) -> None:
        self.go_on()
        if self._client is not None:
            self.run(self._client.close)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self.kill()

    # -- what the server knows ---------------------------------------------------------------------------------

    def run(self, function: Callable[..., Coroutine[Any, Any, Any]], *arguments: Any, **named: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(function(*arguments, **named), self._loop).result(PATIENCE)

    @property
    def stream(self) -> Any:
        """A JetStreamContext of the tests."""
        if self._client is None or self._client.is_closed:
            self._client = self.run(nats.connect, self.url, reconnect_time_wait=0.1, name="tests")
        return self._client.jetstream()

    def make(self, stream: str, **more: Any) -> None:
        self.run(self.stream.add_stream, name=stream, subjects=[stream, f"{stream}.*"], **more)

    def fill(self, stream: str, numbers: Iterable[int], more: bytes = b"") -> None:
        """Publish a message for each number."""

        async def publish() -> None:
            context = self._client.jetstream(publish_async_max_pending=1_000)
            for future in [await context.publish_async(stream, b"%d" % n + more) for n in numbers]:
                await future

        assert self.stream
        self.run(publish)

    def info(self, stream: str, consumer: str = "c") -> api.ConsumerInfo:
        info: api.ConsumerInfo = self.run(self.stream.consumer_info, stream, consumer)
        return info

    def has_consumer(self, stream: str, consumer: str = "c") -> bool:
        try:
            return bool(self.info(stream, consumer))
        except js_errors.NotFoundError:
            return False

    def pending(self, stream: str) -> int:
        """How many messages have been delivered and not acknowledged."""
        return int(self.info(stream).num_ack_pending or 0)

    def delivered(self, stream: str) -> int:
        """How many messages the consumer has been given, again or not."""
        delivered = self.info(stream).delivered
        return delivered.consumer_seq if delivered else 0

    def left(self, stream: str) -> int:
        """How many messages are not acknowledged, delivered or not."""
        info = self.info(stream)
        return int(info.num_ack_pending or 0) + int(info.num_pending or 0)

    def stored(self, stream: str) -> list[bytes]:
        """The bodies of the messages."""

        async def get() -> list[bytes]:
            context = self._client.jetstream()
            state = (await context.stream_info(stream)).state
            return [(await context.get_msg(stream, n)).data for n in range(max(state.first_seq, 1), state.last_seq + 1)]

        assert self.stream
        bodies: list[bytes] = self.run(get)
        return bodies

    def size(self, stream: str) -> int:
        """How many messages there are."""
        return int(self.run(self.stream.stream_info, stream).state.messages)

    def listen(self, subject: str, to: Callable[..., Coroutine[Any, Any, None]]) -> None:
        """Call `to` with each message of a subject, on the loop of the tests."""
        assert self.stream
        self.run(self._client.subscribe, subject, cb=to)
        self.run(self._client.flush)

    def connections(self, name: str = NAME) -> int:
        """How many connections flows have."""
        return sum(entry.get("name") == name for entry in self.asked("connz")["connections"])

    def connected(self) -> int:
        """How many connections there were since the start."""
        return int(self.asked("varz")["total_connections"])
