"""`to_file`: a sink that puts a whole file into place, or nothing."""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Any, Final, TypeVar

from reactive_runtime._core.runtime import primitives
from reactive_runtime._core.runtime.arguments import seconds_of
from reactive_runtime._core.sources.naming import instead
from reactive_runtime._operators.flow_base import FlowBase
from reactive_runtime._operators.side_effects import DoOnNext
from reactive_runtime._operators.sinks.terminal import run_to_end
from reactive_runtime._support.shown import shown

if TYPE_CHECKING:
    pass

__all__ = ["FileSinks"]

T_co = TypeVar("T_co", covariant=True)


class FileSinks(FlowBase[T_co]):
    """`to_file`: a sink that puts a whole file into place, or nothing."""

    __slots__ = ()

    def to_file(self, path: str | os.PathLike[str], *, encoding: str = "utf-8", timeout: float | None = None) -> int:
        """Run the flow, and write each element as a line of a text file, which replaces `path` when the flow completes.

        The sink writes the lines to a new file in the same folder. When the flow has completed, it replaces `path` by
        the new file in one step (an atomic rename), and keeps the permissions of the old file: a reader finds the old
        file or the new one. If `path` is a symbolic link, the sink replaces the file that the link points to. It does
        not replace a directory, a device, a pipe or a socket. If the flow fails, the sink leaves `path` as it was, and
        removes the new file; a process that is killed leaves the new file behind, with the ending `.part`.

        Args:
            path: The file to write.
            encoding: The name of a codec of Python.
            timeout: How many seconds the flow may take; see `for_each`.

        Returns:
            The number of lines, when the file is in place and on the disk.

        Raises:
            TypeError: `path` is no path, `encoding` is not a str, `timeout` is no number, or an element is not a str.
            ValueError: `timeout` is negative or not finite, `encoding` is no codec for text, or an element has several
                lines.
            TimeoutError: The time is over.
            RuntimeError: The flow needs this thread; see `for_each`.
            OSError: The sink can't write the file; or `path` exists and is not a file, which the sink checks before the
                flow begins.
            Exception: The error that the flow ended with, as with `for_each`.

        Demand:
            Unbounded. A slow disk holds the source back.

        Cancellation:
            The sink cancels the flow after `timeout`, and at a `KeyboardInterrupt` while it waits.

        Thread:
            The threads of the flow write the lines. The calling thread puts the file into place.

        Example:
            >>> import os, tempfile
            >>> from reactive_runtime import Flow
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     path = os.path.join(folder, "squares.txt")
            ...     lines = Flow.range(3).map(lambda n: str(n * n)).to_file(path)
            ...     print(lines, list(Flow.from_file(path)))
            3 ['0', '1', '4']

        Origin:
            `FileIO.toPath` of Pekko, with the usual write and rename.
        """
        name = os.fspath(path) if isinstance(path, os.PathLike) else path
        if not isinstance(name, str):
            raise TypeError(f"to_file: path must be a str or an os.PathLike of one, not {instead(path)}")
        if not isinstance(encoding, str):
            raise TypeError(f"to_file: encoding must be a str, not {type(encoding).__name__}")
        try:
            "".encode(encoding)  # LookupError for a codec of bytes too, as `base64`
        except LookupError:
            raise ValueError(f"to_file: encoding must be a codec of Python for text, not {encoding!r}") from None
        if timeout is not None:
            seconds_of("to_file", "timeout", timeout)
        target = os.path.realpath(name)
        _check_replaceable(target)
        if not os.path.basename(name):  # `realpath` drops the separator
            raise IsADirectoryError(f"to_file: {name} names a folder, not a file: leave the last {name[-1]} out")
        folder, file = os.path.split(target)
        part = os.path.join(folder, f"{file[:60]}.{secrets.token_hex(4)}.part")  # up to 254 bytes in UTF-8
        lines = _Lines(open(part, "x", encoding=encoding, newline="\n"))  # noqa: SIM115  # `_Lines` closes it
        try:
            with lines:
                written = self._flow()._then(DoOnNext(lines.write, "to_file"))
                run_to_end("to_file", written.ignore_elements(), self, timeout)
            with suppress(FileNotFoundError):
                os.chmod(part, stat.S_IMODE(os.stat(target).st_mode))
            os.replace(part, target)
        except BaseException:
            with suppress(OSError):
                os.unlink(part)
            raise
        return lines.number


def _check_replaceable(target: str) -> None:
    """Raise an OSError if `path` is something other than a file: a reader of a replaced pipe would wait for ever."""
    try:
        mode = os.stat(target).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISREG(mode):
        error = IsADirectoryError if stat.S_ISDIR(mode) else OSError
        raise error(f"to_file: {target} is no regular file, and is not replaced: name another path, or use for_each")


class _Lines:
    """Writes lines. After its block it writes none, although a thread of the flow may still deliver an element."""

    def __init__(self, file: IO[str]) -> None:
        self._file: Final = file
        self._lock = primitives.Lock()  # held while a line is written: no other lock is taken then
        self._over = False  # _lock
        self.number = 0  # _lock; how many lines

    def write(self, line: Any) -> None:
        """Write one line. Raise TypeError if it is no str, ValueError if it has several lines."""
        if not isinstance(line, str):
            raise TypeError(f"to_file: each element must be a str, and one is {shown(line)}: put map(str) before it")
        if "\n" in line or "\r" in line:
            raise ValueError(f"to_file: each element is a line, and one has a line end in it: {shown(line)}")
        with self._lock:
            if not self._over:
                self._file.write(line + "\n")
                self.number += 1

    def __enter__(self) -> _Lines:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        with self._lock:
            self._over = True
        try:
            if kind is None:
                self._file.flush()
                os.fsync(self._file.fileno())
        finally:
            with suppress(OSError):  # `flush` has raised it already
                self._file.close()
