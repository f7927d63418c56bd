"""PostgreSQL and Redis on loopback, from Debian's packages: on the PATH, or where `.ci/servers` has unpacked them."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from pathlib import Path

__all__ = ["environment", "free_port", "postgres", "prepare_postgres", "redis"]

UNPACKED = Path(__file__).parents[2] / "build" / "servers"
USER = 65534
"""On Debian the number of the user, and of the group, that has no files."""


def free_port() -> int:
    """A port that no process listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def environment() -> dict[str, str]:
    """The environment of a server: where the libraries of the unpacked packages are."""
    libraries = {str(file.parent) for file in UNPACKED.glob("usr/lib/*/*.so*")}
    path = os.pathsep.join([*sorted(libraries), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])])
    return {**os.environ, **({"LD_LIBRARY_PATH": path} if path else {}), "LC_ALL": "C"}


def program(name: str, where: str) -> str:
    """The path of a server's program.

    Raises:
        FileNotFoundError: There is none.
    """
    found = shutil.which(name) or next((str(path) for path in UNPACKED.glob(f"{where}/{name}")), None)
    if found is None:
        found = next((str(path) for path in Path("/").glob(f"{where}/{name}")), None)
    if found is None:
        raise FileNotFoundError(f"there is no {name}: .ci/servers redis-server postgresql-15 unpacks it")
    return found


def prepare_postgres(folder: Path) -> None:
    """Make the files of a PostgreSQL server."""
    folder.mkdir()
    if os.getuid() == 0:  # the server refuses to run as root
        os.chown(folder, USER, USER)
    settings = ["-U", "service", "-A", "trust", "-E", "UTF8"]
    command = [*_without_root(), program("initdb", "usr/lib/postgresql/*/bin"), "-D", str(folder / "data"), *settings]
    subprocess.run(command, cwd=folder, env=environment(), check=True, stdout=subprocess.DEVNULL)


def postgres(folder: Path, port: int) -> list[str]:
    """The command of a PostgreSQL server."""
    settings = {"listen_addresses": "127.0.0.1", "port": port, "unix_socket_directories": ""}
    options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    return [*_without_root(), program("postgres", "usr/lib/postgresql/*/bin"), "-D", str(folder / "data"), *options]


def redis(folder: Path, port: int) -> list[str]:
    """The command of a Redis server that loses nothing at a kill."""
    return [
        *(program("redis-server", "usr/bin"), "--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder)),
        *("--save", "", "--appendonly", "yes", "--appendfsync", "always"),
    ]


def _without_root() -> list[str]:
    return ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"] if os.getuid() == 0 else []
