"""A real Redis server on loopback, which tests may kill and start again."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from sinks import until

from connect.server_process import ServerProcess

UNPACKED = Path(__file__).parents[2] / "build" / "servers" / "usr"
NAME = "reader"
"""The name that the connections of the flows have at the server."""


def program() -> str:
    """The program of the server; skips the tests where there is none."""
    found = shutil.which("redis-server", path=f"{os.environ['PATH']}:{UNPACKED / 'bin'}")
    if found is None:
        pytest.skip("there is no redis-server, neither on the PATH nor unpacked: .ci/servers redis-server")
    return found


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


class RedisServer(ServerProcess):
    """A server with its files in `folder`; it survives a kill."""

    def __init__(self, folder: Path, *settings: str) -> None:
        self.folder = folder
        self.settings = settings
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.client: Any = redis.Redis(port=self.port, password=self.password(), retry=Retry(NoBackoff(), 0))
        self.start()

    def password(self) -> str | None:
        return self.settings[self.settings.index("--requirepass") + 1] if "--requirepass" in self.settings else None

    def start(self) -> None:
        libraries = ":".join(str(path) for path in (UNPACKED / "lib").glob("*-linux-gnu*"))
        command = [program(), "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder)]
        self.process = subprocess.Popen(
            [*command, "--save", "", "--appendonly", "yes", *self.settings],
            env={**os.environ, "LD_LIBRARY_PATH": libraries},
            stdout=subprocess.DEVNULL,
        )
        until(self.answers)

    def answers(self) -> bool:
        assert self.process.poll() is None, "the server has ended"
        try:
            return bool(self.client.ping())
        except redis.ConnectionError:  # it starts, or loads its files
            return False

    def close(self) -> None:
        self.client.close()
        self.go_on()
        self.kill()

    # -- what the server knows ---------------------------------------------------------------------------------

    def fill(self, stream: str, numbers: range, **more: Any) -> None:
        """Append an entry for each number."""
        for begin in range(0, len(numbers), 5_000):
            with self.client.pipeline(transaction=False) as pipe:
                for n in numbers[begin : begin + 5_000]:
                    pipe.xadd(stream, {"n": n, **more})
                pipe.execute()

    def pending(self, stream: str, group: str = "g") -> int:
        """How many entries have been delivered and not acknowledged."""
        return int(self.client.xpending(stream, group)["pending"])

    def delivered(self, stream: str) -> int:
        """How many entries the group has been given."""
        groups = self.client.xinfo_groups(stream) if self.client.exists(stream) else []
        return int(groups[0]["entries-read"] or 0) if groups else 0

    def calls(self, command: str) -> int:
        """How often it has been called, since the server was started."""
        return int(self.client.info("commandstats").get(f"cmdstat_{command}", {"calls": 0})["calls"])

    def connections(self) -> int:
        """How many connections flows have."""
        return sum(entry["name"] == NAME for entry in self.client.client_list())
