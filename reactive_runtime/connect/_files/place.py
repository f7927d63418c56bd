"""The place of a file: its URL, how it is opened, and errors that name it without its credentials.

The problem: the URL of a file may have a password in it, or a signature; and fsspec, its file systems and their clients
put URLs into their errors.

The answer: a `Place` has a name for messages, made of the URL without user, password and query. Each error becomes a
`FilesError` with that name. A client's error with a secret in it is not its cause.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from gzip import GzipFile
from typing import Any, Final, NoReturn
from urllib.parse import parse_qsl, unquote
from zipfile import ZipFile

from reactive_runtime._core.sources.naming import instead
from reactive_runtime._support.shown import shown
from reactive_runtime.connect._elements.hiding import LEAST_SECRET, raise_hidden
from reactive_runtime.errors import MissingDependencyError, ReactiveError

try:
    import fsspec  # type: ignore[import-untyped]
    from fsspec.asyn import AsyncFileSystem  # type: ignore[import-untyped]
    from fsspec.core import OpenFile, get_compression, split_protocol, url_to_fs  # type: ignore[import-untyped]
except ImportError as error:
    raise MissingDependencyError("files need fsspec: pip install 'reactive-runtime[files]'") from error

from reactive_runtime.connect._files.zstd_frames import checks_no_end, whole_frames

__all__ = ["FilesError", "Place"]

SECRETS: Final = re.compile(r"pass|secret|token|key|cred|sas|auth", re.IGNORECASE)
"""In the names of options whose values are shown nowhere."""


class FilesError(ReactiveError):
    """A file is not there, can't be read or written, or has something malformed in it.

    The message names the operator, the file, and the line or the element, where there is one. The error of the client
    is the `__cause__`, unless there is a secret in it.
    """


class Place:
    """A file, and the file system that it is in.

    Args:
        operator: The name of the operator, for messages.
        url: A path, or a URL of fsspec.
        options: Further arguments of its file system.
        compression: As of `fsspec.open`.

    Raises:
        TypeError: An argument has another type.
        ValueError: fsspec has no such compression.
    """

    def __init__(
        self, operator: str, url: str | os.PathLike[str], options: Mapping[str, Any] | None, compression: str | None
    ) -> None:
        text = os.fspath(url) if isinstance(url, os.PathLike) else url
        if not isinstance(text, str):
            raise TypeError(f"{operator}: url must be a str or an os.PathLike of one, not {instead(url)}")
        if options is not None and not isinstance(options, Mapping):
            raise TypeError(f"{operator}: options must be a mapping, not {instead(options)}")
        known = ["infer", *(name for name in fsspec.available_compressions() if name)]
        if compression is not None and compression not in known:
            raise ValueError(f"{operator}: compression must be None or one of {', '.join(known)}, not {compression!r}")
        self.operator = operator
        self.compression = compression
        self._url = text
        self._options = dict(options or {})
        self.name, found = _without_secrets(text)
        self._secrets = [secret for secret in {*found, *_values(self._options)} if len(secret) >= LEAST_SECRET]

    def __repr__(self) -> str:
        return self.name

    def file_system(self) -> tuple[Any, str]:
        """The file system, which may connect to a server for that, and the path in it."""
        outer, chained, _ = self._url.partition("::")
        protocol = outer if chained and "://" not in outer else split_protocol(outer)[0]
        options = dict(self._options)
        if not issubclass(fsspec.get_filesystem_class(protocol or "file"), AsyncFileSystem):
            options.setdefault("skip_instance_cache", True)  # one connection, as of FTP, is for one thread at a time
        fs, path = url_to_fs(self._url, **options)
        return fs, path

    @contextmanager
    def reading(self) -> Iterator[Any]:
        """The file, opened for bytes."""
        with self.named("it can't be opened"):
            fs, path = self.file_system()
            compression: Any = get_compression(path, self.compression)
            own = self._reader(compression)
            opened = OpenFile(fs, path, "rb", compression=None if own else compression)
            file = opened.__enter__()
        try:
            if own:
                with self.named("it can't be opened"):
                    file = own(file)
            yield file
        finally:
            opened.close()

    def _reader(self, compression: str | None) -> Callable[[Any], Any] | None:
        """A reader for a compression of which fsspec would lose a part without an error; else None."""
        if compression == "zip":
            return self._only_file
        if compression == "gzip":
            return _gunzip
        return whole_frames if compression == "zstd" and checks_no_end() else None

    def _only_file(self, file: Any) -> Any:
        """The file in a ZIP archive. fsspec would read the first of several."""
        archive = ZipFile(file)
        names = [entry.filename for entry in archive.infolist() if not entry.is_dir()]
        if len(names) != 1:
            self.fail(f"it has {len(names)} files, {shown(names)}: name one, as zip://name::{self.name}")
        return archive.open(names[0])

    def fail(self, what: str, cause: BaseException | None = None) -> NoReturn:
        """Raise an error that names the file, and hides what is secret."""
        raise_hidden(FilesError, f"{self.operator}: {self.name}: {what}", cause, self._secrets)

    @contextmanager
    def named(self, what: str) -> Iterator[None]:
        """Errors inside become errors of this file."""
        try:
            yield
        except FilesError:
            raise
        except Exception as error:
            self.fail(what, error)


def _gunzip(file: Any) -> Any:
    not_empty: Any = _NotEmpty(file)
    return GzipFile(fileobj=not_empty, mode="rb")


class _NotEmpty:
    """A file of gzip, which has a header at least: one without a byte was cut off, and its reader is content."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._begun = False  # the thread that reads

    def read(self, n: int = -1) -> bytes:
        """Up to `n` bytes. EOFError where the file has none."""
        read: bytes = self._file.read(n)
        if n and not read and not self._begun:
            raise EOFError("the compressed file is empty, and has not even a header")
        self._begun = self._begun or bool(read)
        return read

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _without_secrets(url: str) -> tuple[str, set[str]]:
    """The URL for messages, and what was left out of it: of each part of a chain (`zip://a.csv::s3://…`)."""
    parts, secrets = [], set()
    for part in url.split("::"):
        protocol, mark, rest = part.partition("://")
        if not mark or protocol in ("file", "local"):
            parts.append(part)
            continue
        authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
        if ":" in authority and "@" in rest:  # a password may have a / or an @ in it
            user, _, rest = rest.rpartition("@")
            password = user.partition(":")[2]
            secrets |= {f"{user}@", password, *re.split(r"[/@:?#]", password)}  # a URL may be quoted in parts
        elif "@" in authority:
            rest = rest.partition("@")[2]
        rest, _, query = rest.partition("?")
        secrets |= {query, *(value for _, value in parse_qsl(query))}
        parts.append(f"{protocol}://{rest}{'?…' if query else ''}")
    return "::".join(parts), secrets | {unquote(secret) for secret in secrets}


def _values(options: Mapping[str, Any], *, secret: bool = False) -> Iterator[str]:
    """The values of options that are secret, also of those inside of others."""
    for name, value in options.items():
        hidden = secret or bool(SECRETS.search(str(name)))
        if isinstance(value, Mapping):
            yield from _values(value, secret=hidden)
        elif hidden and isinstance(value, str):
            yield value
