"""The operator that writes a file: beside its place, and into place when all of it is written."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, Protocol

from reactive_runtime._core.drains.combinator import END, PENDING, Combinator, Elements
from reactive_runtime._core.runtime.arguments import PREFETCH
from reactive_runtime._flow import Flow
from reactive_runtime._support.shown import shown
from reactive_runtime.connect._elements.behind import Behind, Writes
from reactive_runtime.connect._files.place import FilesError, Place

# isort: split
from fsspec.core import OpenFile  # type: ignore[import-untyped]
from fsspec.implementations.local import LocalFileSystem  # type: ignore[import-untyped]
from fsspec.spec import AbstractFileSystem  # type: ignore[import-untyped]

__all__ = ["Format", "Sink"]

LONGEST: Final = 60
"""Characters of the name of a file that the name of the one beside it has: with the rest it is a name everywhere."""


class Format(Protocol):
    """Writes elements into an open file."""

    written: int

    def write(self, element: Any) -> object:
        """Write this one, now or later."""

    def finish(self) -> object:
        """Write what waits, and the end of the file."""

    def abandon(self) -> object:
        """Write no more."""


class _Part:
    """The file beside the place."""

    def __init__(self, place: Place, mode: str, encoding: str | None) -> None:
        self.fs, path = place.file_system()
        self.local = isinstance(self.fs, LocalFileSystem)
        self.target = os.path.realpath(path) if self.local else path
        if self.local:
            _check_replaceable(self.target)
        folder, _, name = self.target.replace(os.sep, "/").rpartition("/")
        part = f"{name[:LONGEST]}.{secrets.token_hex(4)}.part"
        self.path = f"{folder}/{part}" if folder or self.local else part
        compression = place.compression
        opened = OpenFile(self.fs, path, mode, compression=compression, encoding=encoding, newline="")
        opened.path = self.path  # what the compression was inferred from is the name of the target
        self.opened = opened
        try:
            self.file: Any = opened.__enter__()
        except BaseException:
            self.discard()  # a file system may have made it
            raise

    def commit(self) -> None:
        """Put the file into place."""
        self.opened.close()
        if not self.local:
            self.move()
            return
        with suppress(FileNotFoundError):
            os.chmod(self.path, stat.S_IMODE(os.stat(self.target).st_mode))
        file = os.open(self.path, os.O_RDWR)
        try:
            os.fsync(file)
        finally:
            os.close(file)
        os.replace(self.path, self.target)

    def move(self) -> None:
        fs = self.fs
        if type(fs).mv is not AbstractFileSystem.mv:
            fs.mv(self.path, self.target)
        else:  # what `mv` does otherwise, but for patterns: a name may have a * in it
            fs.cp_file(self.path, self.target)
            fs.rm_file(self.path)

    def discard(self) -> None:
        """Leave nothing behind, as far as the file system can be reached."""
        for file in reversed(self.opened.fobjects):
            with suppress(Exception):
                file.close()
        with suppress(Exception):
            self.fs.rm_file(self.path)


def _check_replaceable(target: str) -> None:
    """OSError for what is no file: a reader of a replaced pipe would wait for ever."""
    with suppress(FileNotFoundError):
        mode = os.stat(target).st_mode
        if not stat.S_ISREG(mode):
            error = IsADirectoryError if stat.S_ISDIR(mode) else OSError
            raise error(f"{target} is no regular file, and is not replaced: name another path")


class Sink(Combinator):
    """Writes the elements of a flow, and gives how many there were.

    Args:
        place: The file.
        mode: As of `open`.
        encoding: Of text.
        into: Makes the format, of the open file.
        source: The elements.
    """

    def __init__(
        self, place: Place, mode: str, encoding: str | None, into: Callable[[Any], Format], source: Flow[Any]
    ) -> None:
        super().__init__()
        self.place = place
        self.mode = mode
        self.encoding = encoding
        self.into = into
        self.source = source

    def waits_for(self) -> str:
        """See `Combinator.waits_for`."""
        return f"{self.place}"

    def elements(self) -> Elements:
        yield from self.demand()
        yield from self.home()
        try:
            with self.place.named("it can't be opened for writing"):
                part = _Part(self.place, self.mode, self.encoding)
        except FilesError as error:
            raise self.fault(error)  # noqa: B904  # the same error
        writing: Format | None = None

        def release() -> None:
            if writing is not None:
                with suppress(Exception):
                    writing.abandon()
            part.discard()

        behind = Behind(release)
        try:
            writing = self.into(part.file)
            step = _Write(self.place, writing, behind)
            flow = self.source._then(step)
            step.location = self.location  # the line that made this operator, which is the user's
            inner = self.inner(flow, prefetch=PREFETCH)
            while inner.next_signal() is not END:  # writes what there is
                yield PENDING
                yield from self.home()
            self.commit(part, writing)
        except BaseException:
            behind.leave()
            raise
        yield from self.demand()
        yield writing.written

    def commit(self, part: _Part, writing: Format) -> None:
        try:
            with self.place.named("it can't be finished"):
                writing.finish()
                part.commit()
        except FilesError as error:
            raise self.fault(error)  # noqa: B904  # the same error


class _Write(Writes):
    name = "write"

    def __init__(self, place: Place, writing: Format, behind: Behind) -> None:
        super().__init__(behind)
        self.place = place
        self.write = writing.write
        self.written = 0  # the drain's owner

    def on_next(self, element: Any) -> None:
        try:
            self.write(element)
        except FilesError:
            raise
        except Exception as error:
            self.place.fail(f"element {self.written} can't be written, {shown(element)}", error)
        self.written += 1

    def __str__(self) -> str:
        return self.place.operator
