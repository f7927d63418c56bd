"""The socket that answers `ps` and `top`: one for each process, for the same user only.

The folder is `/tmp/reactive-runtime-UID`, of mode 0700; the socket in it, `PID.sock`, of mode 0600. On Linux, each side
refuses the connection of another user (`SO_PEERCRED`). A client sends nothing: it connects, and reads one snapshot as
JSON, until the stream ends.

A thread of its own answers. It takes no lock of a flow, so it answers while all pools are stuck. Between answers it
looks now and then, to know ages and rates; then it rests for 300 times as long as the look took.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import select
import socket
import stat
import struct
from pathlib import Path
from typing import Final

from reactive_runtime._core.runtime import primitives
from reactive_runtime._core.sources.naming import instead
from reactive_runtime.errors import ReactiveError
from reactive_runtime.live._history import look
from reactive_runtime.live._model import Snapshot
from reactive_runtime.live._snapshot import history, snapshot

__all__ = ["LiveError", "ask", "close", "folder_of", "open", "open_as_asked"]

VARIABLE: Final = "REACTIVE_RUNTIME_LIVE"
EVERY: Final = 0.5
"""Seconds between two looks, at least."""

REST: Final = 300
"""A look is followed by so many times its length without one."""

ANSWER: Final = 5.0
"""Seconds that `ask` waits for an answer."""

CLIENT: Final = 1.0
"""Seconds that a client may take to receive its answer: the next one waits."""


class LiveError(ReactiveError):
    """`ps` can't ask a process, or a process can't open its socket: the message says why, and what to do."""


class _Server:
    """The socket, and the thread that answers."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        before = os.umask(0o177)  # 0600 from the beginning: between `bind` and a `chmod` any user could connect
        try:
            self._socket.bind(str(path))
        except OSError as error:
            self._socket.close()
            raise LiveError(f"live.open: {path} can't be made: {error}") from error
        finally:
            os.umask(before)
        self._socket.listen(8)
        self._socket.setblocking(False)
        self._wake, self._woken = os.pipe()
        self._ended = primitives.allocate_lock()  # held while the thread runs
        self._ended.acquire()
        primitives.begin_thread(self._run, ())

    def _run(self) -> None:
        try:
            poll = select.poll()  # not `select`: that takes no file from the 1024th on
            for file in (self._socket.fileno(), self._wake):
                poll.register(file, select.POLLIN)
            rest = EVERY
            while True:
                ready = [file for file, _ in poll.poll(rest * 1000)]
                if self._wake in ready:
                    return
                begin = primitives.monotonic()
                # The client has gone; or a look failed, and the next one may not: the client then says so.
                # It does not log: a stuck thread may hold the lock of a handler.
                with contextlib.suppress(Exception):
                    if ready:
                        self._answer()
                        continue
                    history.take(look())
                rest = max(EVERY, REST * (primitives.monotonic() - begin))
        finally:
            self._ended.release()

    def _answer(self) -> None:
        client, _ = self._socket.accept()
        with client:
            client.settimeout(CLIENT)
            user = peer_user(client)
            if user is None or user == os.geteuid():
                client.sendall(snapshot().to_json().encode())

    def end(self) -> None:
        """End the thread, and remove the socket."""
        os.write(self._woken, b".")
        self._ended.acquire(timeout=ANSWER)
        self.leave()
        with contextlib.suppress(OSError):
            self.path.unlink()

    def leave(self) -> None:
        """Close the files, in a child of `os.fork`: its thread is the parent's, and so is the path."""
        self._socket.close()
        os.close(self._wake)
        os.close(self._woken)


_lock = primitives.allocate_lock()
_server: _Server | None = None  # _lock


def open(folder: str | os.PathLike[str] | None = None) -> Path:
    """Open the socket that `reactive-runtime ps` and `top` ask; if it is open already, this does nothing.

    With REACTIVE_RUNTIME_LIVE=1 in the environment the package calls this when `Flow` is imported. A child of
    `os.fork` has no socket until it calls this.

    Args:
        folder: The folder of the socket; if it exists, it must have mode 0700 and belong to this user. None:
            `/tmp/reactive-runtime-UID`.

    Returns:
        The path of the socket.

    Raises:
        TypeError: `folder` is no path.
        LiveError: The folder belongs to another user, is open to other users, or is not a folder; Python can't make the
            socket; or the system has no Unix sockets.

    Thread:
        May be called on any thread.
    """
    global _server
    if not hasattr(socket, "AF_UNIX"):
        raise LiveError("live.open: this system has no Unix sockets; call live.snapshot() instead")
    with _lock:
        if _server is None:
            where = folder_of(folder)
            _check_folder(where)
            path = where / f"{os.getpid()}.sock"
            path.unlink(missing_ok=True)  # of an earlier process with this PID
            _server = _Server(path)
            atexit.register(close)
        return _server.path


def close() -> None:
    """Close and remove the socket; if there is none, this does nothing."""
    global _server
    with _lock:
        server, _server = _server, None
    if server is not None:
        atexit.unregister(close)
        server.end()


def open_as_asked() -> None:
    """Open the socket if the environment variable says so. An error is one line on standard error, and no more."""
    value = os.environ.get(VARIABLE, "")
    if value in ("", "0"):
        return
    try:
        open(None if value == "1" else value)
    except LiveError as error:
        with contextlib.suppress(OSError):
            os.write(2, f"reactive_runtime: {VARIABLE}={value}: {error}\n".encode())


def ask(pid: int, folder: str | os.PathLike[str] | None = None) -> Snapshot:
    """The snapshot of another process of this user, which has called `open`.

    Args:
        pid: The process.
        folder: The folder that the process passed to `open`; None: the usual one.

    Returns:
        The flows of that process at this moment.

    Raises:
        TypeError: `pid` is no int, or `folder` is no path.
        LiveError: There is no such process, it belongs to another user, it has no socket, or it gives no answer.

    Thread:
        May be called on any thread; it waits for the answer, for five seconds at most.
    """
    where = folder_of(folder)
    path = where / f"{pid}.sock"
    _check_process(pid, path)
    _check_folder(where, make=False)
    if not path.exists():
        raise LiveError(
            f"process {pid} has no socket in {where}: it runs without reactive_runtime, or has not called"
            f" live.open(), as {VARIABLE}=1 in its environment does; a forked child has to call it for itself"
        )
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(ANSWER)
        try:
            client.connect(str(path))
            user = peer_user(client)
            if user is not None and user != os.geteuid():
                raise LiveError(f"process {pid}: the socket {path} belongs to the user {user}, and is not read")
            text = b"".join(iter(lambda: client.recv(1 << 16), b"")).decode()
        except ConnectionRefusedError:
            raise LiveError(
                f"process {pid}: an earlier process has left {path} behind, and this one has none"
            ) from None
        except TimeoutError:
            raise LiveError(
                f"process {pid} has given no answer in {ANSWER:g} s: it is stopped, or code in C keeps the interpreter"
            ) from None
        except OSError as error:
            raise LiveError(f"process {pid} could not be asked: {error}") from error
    if not text:
        raise LiveError(f"process {pid} has refused to answer: it runs as another user, or could not look at its flows")
    try:
        return Snapshot.from_json(text)
    except ValueError as error:
        raise LiveError(
            f"process {pid} has given no snapshot; is its reactive_runtime of this version? {error}"
        ) from error


def folder_of(folder: str | os.PathLike[str] | None) -> Path:
    """The folder of this user's sockets. It ignores TMPDIR, which may differ between a service and a shell."""
    if folder is None:
        return Path(f"/tmp/reactive-runtime-{os.geteuid()}")
    try:
        return Path(folder)
    except TypeError:
        raise TypeError(f"live: folder must be a str or an os.PathLike of one, not {instead(folder)}") from None


def peer_user(connection: socket.socket) -> int | None:
    """The user at the other end; None: the system does not say."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return None
    size = struct.calcsize("3i")
    user: int = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, option, size))[1]
    return user


def _check_folder(where: Path, *, make: bool = True) -> None:
    """Raise LiveError unless the folder is this user's and closed to others. A symbolic link is refused."""
    if make:
        with contextlib.suppress(FileExistsError):
            try:
                where.mkdir(mode=0o700)
            except FileExistsError:
                raise
            except OSError as error:
                raise LiveError(f"the folder {where} can't be made: {error}") from error
    try:
        found = where.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISDIR(found.st_mode):
        raise LiveError(f"{where} is no folder: remove it, or name another one")
    if found.st_uid != os.geteuid():
        raise LiveError(f"the folder {where} belongs to the user {found.st_uid}: name another one")
    if stat.S_IMODE(found.st_mode) & 0o077:
        raise LiveError(f"the folder {where} is open to other users: chmod 700 {where}")


def _check_process(pid: int, path: Path) -> None:
    """Raise LiveError unless it is a process of this user. Remove the socket of a process that has ended."""
    if not isinstance(pid, int):
        raise TypeError(f"live.ask: pid must be an int, not {instead(pid)}")
    if pid < 1:
        raise LiveError(f"{pid} is no PID: name a process by a number from 1")
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        left = path.exists()
        if left:
            with contextlib.suppress(OSError):
                path.unlink()
        behind = f"; the socket that it has left, {path}, is removed" if left else ""
        raise LiveError(f"there is no process {pid}{behind}") from None
    except PermissionError:
        raise LiveError(f"process {pid} belongs to another user: ask as that user") from None
    with contextlib.suppress(OSError):  # a user who may signal any process; and only where there is /proc
        user = os.stat(f"/proc/{pid}").st_uid
        if user != os.geteuid():
            raise LiveError(f"process {pid} belongs to the user {user}: ask as that user")


def _begin_anew() -> None:
    """In a child of `os.fork`: the socket is the parent's, and its thread is not here."""
    global _lock, _server
    _lock = primitives.allocate_lock()
    server, _server = _server, None
    if server is not None:
        atexit.unregister(close)
        server.leave()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)
