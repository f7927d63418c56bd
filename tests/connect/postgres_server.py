"""A PostgreSQL server on loopback, in a folder of its own, which tests start, stop and kill."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PATIENCE = 60.0
USER, PASSWORD = "tester", "s3cret-pa55"


def programs() -> Path:
    """The folder with `initdb` and `postgres`; skips where there is none."""
    on_path = shutil.which("postgres")
    if on_path is not None:
        return Path(on_path).resolve().parent
    for root in (ROOT / "build" / "servers", Path("/")):
        found = sorted(root.glob("usr/lib/postgresql/*/bin/postgres"))
        if found:
            return found[-1].parent
    pytest.skip("there is no PostgreSQL server: .ci/servers postgresql-15 postgresql-client-15")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class PostgresServer:
    """Started by `start`; `close` removes its folder."""

    def __init__(self) -> None:
        self.programs = programs()
        self.folder = Path(tempfile.mkdtemp(prefix="postgres-"))
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None
        self.options: dict[str, Any] = {}
        libraries = sorted({str(path.parent) for path in (ROOT / "build" / "servers").glob("usr/lib/*/*.so*")})
        path = os.pathsep.join([*libraries, *filter(None, [os.environ.get("LD_LIBRARY_PATH")])])
        self.options["env"] = {**os.environ, **({"LD_LIBRARY_PATH": path} if path else {}), "LC_ALL": "C"}
        if os.getuid() == 0:  # `initdb` and `postgres` refuse to run as root
            user = pwd.getpwnam("nobody")
            self.options |= {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
            os.chown(self.folder, user.pw_uid, user.pw_gid)
        secret = self.folder / "password"
        secret.write_text(PASSWORD)
        secret.chmod(0o644)
        settings = ["-U", USER, "-A", "scram-sha-256", f"--pwfile={secret}", "--no-sync", "-E", "UTF8"]
        command = [str(self.programs / "initdb"), "-D", str(self.folder / "data"), *settings]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False, **self.options)
        if done.returncode:
            shutil.rmtree(self.folder, ignore_errors=True)
            pytest.skip(f"there is no PostgreSQL server: initdb failed: {done.stderr.strip()[-300:]}")

    @property
    def conninfo(self) -> str:
        return f"postgresql://{USER}:{PASSWORD}@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        settings = {"listen_addresses": "127.0.0.1", "port": self.port, "unix_socket_directories": "", "fsync": "off"}
        settings |= {"jit": "off", "max_connections": 40, "shared_buffers": "16MB", "full_page_writes": "off"}
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(
                [str(self.programs / "postgres"), "-D", str(self.folder / "data"), *options],
                cwd=self.folder,
                stdout=log,
                stderr=log,
                start_new_session=True,
                **self.options,
            )
        end = time.monotonic() + PATIENCE
        while True:
            try:
                self.connect().close()
                return
            except psycopg.OperationalError:
                assert self.process.poll() is None, (self.folder / "log").read_text()[-2000:]
                assert time.monotonic() < end, (self.folder / "log").read_text()[-2000:]
                time.sleep(0.02)

    def connect(self) -> psycopg.Connection[Any]:
        return psycopg.connect(self.conninfo, autocommit=True, connect_timeout=int(PATIENCE))

    def signal(self, number: int) -> None:
        """To the server and its processes: each has a group of its own."""
        assert self.process is not None
        for pid in (self.process.pid, *_children(self.process.pid)):
            with suppress(ProcessLookupError):  # it has ended meanwhile
                os.kill(pid, number)

    def kill(self) -> None:
        """As `kill -9`, of all of its processes; each has left the shared memory then."""
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGSTOP)  # it begins none that would not be in the list
        children = _children(self.process.pid)
        self.signal(signal.SIGKILL)
        self.process.wait(PATIENCE)
        end = time.monotonic() + PATIENCE
        while any(_runs(pid) for pid in children):
            assert time.monotonic() < end, "a process of the server does not end"
            time.sleep(0.005)

    def close(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGQUIT)  # at once: its folder goes too
            self.process.wait(PATIENCE)
        shutil.rmtree(self.folder, ignore_errors=True)


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _children(parent: int) -> list[int]:
    path = Path(f"/proc/{parent}/task/{parent}/children")
    return [int(pid) for pid in path.read_text().split()]
