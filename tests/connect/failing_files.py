"""A file system in memory that fails, or waits, where a test says so, and counts what is open."""

from __future__ import annotations

import threading
from typing import Any, ClassVar

import fsspec  # type: ignore[import-untyped]
from fsspec.implementations.memory import MemoryFile, MemoryFileSystem  # type: ignore[import-untyped]


class FailingFileSystem(MemoryFileSystem):  # type: ignore[misc]
    """Its errors have the URL in them, as those of many clients have."""

    protocol = "failing"
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]

    fails: ClassVar[set[str]] = set()
    """Of "read", "write", "close", "move": what fails."""

    after: ClassVar[int] = 0
    """Bytes after which reading fails."""

    opened: ClassVar[int] = 0
    closed: ClassVar[int] = 0
    read: ClassVar[int] = 0
    """Bytes."""

    goes_on: ClassVar[threading.Event] = threading.Event()
    waits: ClassVar[threading.Event] = threading.Event()

    said: ClassVar[str] = "failing://me:geheim@host/"

    @classmethod
    def reset(cls) -> None:
        cls.store.clear()
        cls.fails, cls.after = set(), 0
        cls.opened, cls.closed, cls.read = 0, 0, 0
        cls.goes_on, cls.waits = threading.Event(), threading.Event()
        cls.goes_on.set()

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        name = path.removeprefix("failing://").rpartition("@")[2].removeprefix("host").strip("/")
        return f"/{name}" if name else ""

    @classmethod
    def wait(cls) -> None:
        if not cls.goes_on.is_set():
            cls.waits.set()
            cls.goes_on.wait(60)

    @classmethod
    def check(cls, what: str) -> None:
        if what in cls.fails:
            raise OSError(f"{what} of {cls.said} failed")

    def _open(self, path: str, mode: str = "rb", **more: Any) -> Any:
        file = super()._open(path, mode, **more)
        type(self).opened += 1
        return _File(type(self), file)

    def cp_file(self, path1: str, path2: str, **more: Any) -> None:
        self.check("move")
        super().cp_file(path1, path2, **more)


class _File:
    def __init__(self, fs: type[FailingFileSystem], file: MemoryFile) -> None:
        self._fs = fs
        self._file = file
        self.closed = False

    def read(self, n: int = -1) -> bytes:
        fs = self._fs
        fs.wait()
        if fs.read >= fs.after:
            fs.check("read")
        data: bytes = self._file.read(n)
        fs.read += len(data)
        return data

    def write(self, data: bytes) -> int:
        self._fs.wait()
        self._fs.check("write")
        return int(self._file.write(data))

    def close(self) -> None:
        if self.closed:  # a file is closed once, however often `close` is called
            return
        self.closed = True
        self._fs.closed += 1
        self._file.close()
        self._fs.check("close")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


fsspec.register_implementation("failing", FailingFileSystem, clobber=True)
