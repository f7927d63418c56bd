"""The parts of the service as processes of this machine: started, started again when they end, killed, and stopped.

On machines of your own a supervisor such as systemd or Kubernetes does this.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import psycopg

from examples.service import servers
from examples.service.settings import QUEUE, SCHEMA, Settings
from reactive_runtime.connect.postgres_queue import queue_sql

__all__ = ["Part", "Service"]

ROOT = Path(__file__).parents[2]
PATIENCE = 60.0
"""How many seconds a part has to start, or to end."""


@dataclass
class Part:
    """A process, which is started again when it ends.

    Args:
        name: Its name.
        command: How it is started.
        environment: Its environment.
        folder: The folder in which it runs.
    """

    name: str
    command: list[str]
    environment: dict[str, str]
    folder: Path
    process: subprocess.Popen[bytes] | None = None
    starts: int = 0

    def start(self) -> None:
        """Start it; its output goes to a file with its name."""
        with (self.folder / f"{self.name}.log").open("ab") as log:
            self.process = subprocess.Popen(
                self.command, cwd=self.folder, env=self.environment, stdout=log, stderr=log, start_new_session=True
            )
        self.starts += 1

    def kill(self) -> None:
        """As `kill -9`, of the process and of its children."""
        assert self.process is not None
        for pid in (self.process.pid, *children_of(self.process.pid)):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait(PATIENCE)

    def stop(self) -> int:
        """SIGTERM, and wait for its end. Returns its exit status."""
        assert self.process is not None
        self.process.terminate()
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()
            return -signal.SIGKILL


class Service:
    """All parts; a context manager, at the end of which they are stopped.

    Args:
        workers: How many workers there are.
        port: The port of the web process. None: a free one.
    """

    def __init__(self, workers: int = 2, port: int | None = None) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="service-"))
        self.folder.chmod(0o755)  # PostgreSQL runs as another user where this one is root
        postgres, redis, places = servers.free_port(), servers.free_port(), servers.free_port()
        self.port = port or servers.free_port()
        self.settings = Settings(
            database=f"postgresql://service@127.0.0.1:{postgres}/postgres",
            redis=f"redis://127.0.0.1:{redis}/0",
            places=f"http://127.0.0.1:{places}",
        )
        self.url = f"http://127.0.0.1:{self.port}"
        self.parts: dict[str, Part] = {}
        self.metrics: dict[str, str] = {}
        self._lock = threading.Lock()  # no part ends, or starts, beside the thread that watches
        self._leaves = threading.Event()
        self._watches = threading.Thread(target=self._watch, name="parts", daemon=True)
        servers.prepare_postgres(self.folder / "postgres")
        (self.folder / "redis").mkdir()
        self._add("postgres", servers.postgres(self.folder / "postgres", postgres))
        self._add("redis", servers.redis(self.folder / "redis", redis))
        self._add("places", [sys.executable, "-m", "examples.service.places", str(places)])
        for n in range(1, workers + 1):
            self._add(f"worker-{n}", [sys.executable, "-m", "examples.service.worker"])
        self._add("web", [sys.executable, "-m", "examples.service.web", str(self.port)])

    def _add(self, name: str, command: list[str]) -> None:
        port = servers.free_port()
        self.metrics[name] = f"http://127.0.0.1:{port}/metrics"
        environment = {
            **servers.environment(),
            **self.settings.to_environment(),
            "PYTHONPATH": str(ROOT),
            "REACTIVE_RUNTIME_LIVE": "1",
            "METRICS_PORT": str(port),
        }
        self.parts[name] = Part(name, command, environment, self.folder)

    def __enter__(self) -> Self:
        try:
            self.parts["postgres"].start()
            until("PostgreSQL answers", self._makes_tables)
            for name, part in self.parts.items():
                if name != "postgres":
                    part.start()
            until("the page is there", self._shows_page)
        except BaseException:
            self._stop_parts()
            raise
        self._watches.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leaves.set()
        self._watches.join()
        self._stop_parts()

    def _stop_parts(self) -> None:
        for part in reversed(self.parts.values()):  # the workers finish their jobs while the servers are there
            if part.process is not None:
                part.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def kill(self, name: str) -> None:
        """Kill a part; it is started again."""
        with self._lock:
            self.parts[name].kill()

    @contextmanager
    def still(self) -> Iterator[None]:
        """No part is started again during the block."""
        with self._lock:
            yield

    def _watch(self) -> None:
        while not self._leaves.wait(0.1):
            with self._lock:
                for part in self.parts.values():
                    if part.process is None or part.process.poll() is not None:
                        part.start()

    def _makes_tables(self) -> bool:
        try:
            with psycopg.connect(self.settings.database, connect_timeout=5) as connection:
                connection.execute(SCHEMA)
                connection.execute(queue_sql(QUEUE).encode())
        except psycopg.OperationalError:
            return False
        return True

    def _shows_page(self) -> bool:
        web = self.parts["web"].process
        if web is not None and web.poll() is not None:
            raise RuntimeError(
                f"the web process has ended with status {web.returncode}; is port {self.port} in use?"
                f" Its log: {(self.folder / 'web.log').read_text()[-1_000:]}"
            )
        try:
            with urllib.request.urlopen(self.url, timeout=5):
                return True
        except OSError:
            return False


def until(what: str, holds: Callable[[], bool]) -> None:
    """Wait for it.

    Raises:
        TimeoutError: It took longer than `PATIENCE`.
    """
    end = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > end:
            raise TimeoutError(f"after {PATIENCE} s still not: {what}")
        time.sleep(0.05)


def children_of(parent: int) -> list[int]:
    """The processes that it has started."""
    try:
        return [int(pid) for pid in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]
    except FileNotFoundError:
        return []
