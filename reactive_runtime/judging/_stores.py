"""The places of traces: folders of this machine, and those of the file systems that pyarrow knows (`s3://…`, `gs://…`).

`pages` lists a folder a page at a time, so that no folder is too large. `runs_in` and `parquet_in` say what a folder
holds, and which folders below it are still to be listed: tasks list a level after the other, many folders at once.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, urlsplit

import pyarrow as pa

from reactive_runtime.errors import TraceError
from reactive_runtime.testing._traces.trace_files import IS_TRACE, METADATA, SIGNALS, contents, digest_of, signature_of

__all__ = [
    "FILE",
    "FOLDER",
    "LISTED",
    "RUN",
    "UNABLE",
    "FewFiles",
    "batches",
    "few",
    "is_remote",
    "local",
    "opened",
    "pages",
    "parquet_in",
    "roots_of",
    "runs_in",
]

PAGE: Final = 1_000
"""Names of a page."""

FOLDER, RUN, FILE, UNABLE = range(4)
"""Kinds of rows of LISTED."""

_COLUMNS: Final[dict[str, pa.DataType]] = {
    "kind": pa.int8(),
    "root": pa.int32(),
    "level": pa.int32(),
    "folder": pa.string(),
    "run": pa.string(),
    "identity": pa.string(),
    "rows": pa.int64(),
    "complete": pa.bool_(),
    "file": pa.string(),
    "checksum": pa.string(),
    "text": pa.string(),
    "signature": pa.string(),
}

LISTED: Final = pa.schema(_COLUMNS)
"""A folder that is still to be listed, a run with the digest of its contents and its signature, a file of it with its
checksum, or why a run can't be judged (`text`)."""

_COPIES: Final = frozenset({"files", "checksums"})
"""Metadata that are rows of their own."""

_TABLES: Final = "verdict.json"
"""Is in a folder of tables of a verdict."""

_OF_VERDICT: Final = frozenset(
    {"runs", "violations", "summary", "latency", "histogram", "examples", "lineage", "regressions", "checkpoint"}
    | {"judged", "nights", "series"}
)
"""Folders beside it, which have no runs."""


class Entry(NamedTuple):
    """A name in a folder."""

    name: str
    is_file: bool
    is_link: bool = False


# -- file systems ---------------------------------------------------------------------------------------------


def is_remote(path: str) -> bool:
    """Whether a path is of a file system that pyarrow opens, and not of this machine."""
    return "://" in path and not path.startswith("file:")


def local(path: str) -> str:
    """The path of a file of this machine that is named by its URI; others as they are."""
    return unquote(urlsplit(path).path) if path.startswith("file:/") else path


@lru_cache(maxsize=64)
def _system(root: str) -> Any:
    """The file system of a URI without its path, and the path of its root."""
    from pyarrow import fs

    return fs.FileSystem.from_uri(root)


def _remote(path: str) -> tuple[Any, str]:
    """The file system, and the path in it. The query has its options: `s3://bucket/nights?endpoint_override=…`."""
    parts = urlsplit(path)
    scheme = {"s3a": "s3", "s3n": "s3"}.get(parts.scheme, parts.scheme)
    query = f"?{parts.query}" if parts.query else ""
    try:
        system, _ = _system(f"{scheme}://{parts.netloc}{query}")
    except (OSError, pa.ArrowException) as error:
        raise TraceError(f"{path}: can't be opened: {str(error).splitlines()[0]}") from error
    return system, (f"{parts.netloc}{unquote(parts.path)}" if scheme in ("s3", "gs") else unquote(parts.path))


def below(folder: str, name: str) -> str:
    """The path of a name in a folder."""
    if is_remote(folder):
        parts = urlsplit(folder)
        return parts._replace(path=f"{parts.path.rstrip('/')}/{name}").geturl()
    return f"{folder.rstrip('/')}/{name}"


def opened(path: str) -> Any:
    """A file, opened for reading; OSError where that can't be done."""
    if not is_remote(path):
        return open(path, "rb")
    system, name = _remote(path)
    return system.open_input_file(name)


def pages(folder: str) -> Iterator[list[Entry]]:
    """The names in a folder, PAGE at a time; none where it is none.

    Names of this machine that are neither files nor folders, as links to what is not there, are left out. OSError where
    the folder can't be read; FileNotFoundError where it is not there. A folder of an object store is always there.

    pyarrow has no pages of its own: a folder of another file system is one list in the memory of its task.
    """
    if is_remote(folder):
        from pyarrow import fs

        system, name = _remote(folder)
        found = iter(system.get_file_info(fs.FileSelector(name, allow_not_found=True)))
        while page := [Entry(item.base_name, item.type == fs.FileType.File) for item in islice(found, PAGE)]:
            yield page
        return
    try:
        listing = os.scandir(folder)
    except NotADirectoryError:
        return
    with listing as entries:
        known = (item for item in entries if item.is_file() or item.is_dir())
        while some := list(islice(known, PAGE)):
            yield [Entry(item.name, item.is_file(), item.is_symlink()) for item in some]


# -- what folders hold ----------------------------------------------------------------------------------------


def batches(rows: Iterable[Sequence[Any]], schema: pa.Schema, size: int = 4_096) -> Iterator[pa.RecordBatch]:
    """Rows as batches, a few thousand at a time."""
    left = iter(rows)
    while some := list(islice(left, size)):
        columns = [pa.array(cells, field.type) for cells, field in zip(zip(*some, strict=True), schema, strict=True)]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _row(kind: int, root: int, level: int, folder: str, **known: Any) -> tuple[Any, ...]:
    first = {"kind": kind, "root": root, "level": level, "folder": folder}
    return tuple({**first, **known}.get(name) for name in LISTED.names)


def runs_in(root: int, level: int, folder: str, elsewhere: frozenset[str]) -> Iterator[tuple[Any, ...]]:
    """Rows of LISTED: the run in a folder, with its files, and the folders below.

    Args:
        root: The number of the folder that was named, of which this one is part.
        level: How far below it this one lies.
        folder: The folder.
        elsewhere: Folders that were named themselves, and are not listed again.
    """
    folders: list[str] = []
    names: list[str] = []
    is_verdict = False
    try:
        for page in pages(folder):
            for entry in page:
                if entry.is_file:
                    is_verdict = is_verdict or entry.name == _TABLES
                    if entry.name in METADATA or IS_TRACE(entry.name):
                        names.append(entry.name)
                elif not entry.is_link or level < 2:  # a link further down may lead round in a circle
                    folders.append(entry.name)
    except OSError as error:
        yield from _unable(root, level, folder, error)
        return
    name = folder.rstrip("/").rpartition("/")[2]
    if any(map(SIGNALS, names)) or (names and (level <= 1 or name.startswith("run="))):
        yield from _run(root, level, folder, names)
    for item in folders:
        path = below(folder, item)
        if path not in elsewhere and not (is_verdict and (item in _OF_VERDICT or item.startswith("."))):
            yield _row(FOLDER, root, level + 1, path if is_remote(path) else os.path.realpath(path))


def _unable(root: int, level: int, folder: str, error: OSError) -> Iterator[tuple[Any, ...]]:
    """A folder that can't be listed; none where a folder that was named is not there: that is for others to say."""
    text = f"{folder}: can't be read: {error.strerror or error}"
    if isinstance(error, FileNotFoundError):
        if not level:
            return
        text = (
            f"{folder}: was listed, and is not there for a task on {socket.gethostname()}: all machines of Spark have"
            " to see the folders of runs at one path"
        )
    yield _row(UNABLE, root, level, folder, text=text)


def _run(root: int, level: int, folder: str, names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    if not any(name in METADATA or SIGNALS(name) for name in names):
        return
    signature = None if is_remote(folder) else signature_of(folder)  # before the metadata are read
    try:
        held = contents(folder, names, lambda name: opened(below(folder, name)))
    except TraceError as error:
        yield _row(UNABLE, root, level, folder, text=str(error))
        return
    except OSError as error:
        yield _row(UNABLE, root, level, folder, text=f"{folder}: can't be read: {error.strerror or error}")
        return
    facts = {name: value for name, value in held.metadata.items() if name not in _COPIES}
    known = {"run": held.run, "identity": held.identity, "rows": held.rows, "complete": held.complete}
    known["signature"] = signature
    digest = digest_of([*held.files], held.checksums, held.rows, held.complete)
    yield _row(RUN, root, level, folder, checksum=digest, text=json.dumps(facts, default=str), **known)
    for name in held.files:
        yield _row(FILE, root, level, folder, file=name, checksum=held.checksums.get(name))


def parquet_in(root: int, level: int, folder: str, _: frozenset[str]) -> Iterator[tuple[Any, ...]]:
    """Rows of LISTED: the Parquet files in a folder, but for those that readers pass over, and the folders below.

    A file that was named itself is one, whatever its name.
    """
    if not level and not is_remote(folder) and Path(folder).is_file():
        yield _row(FILE, root, level, str(Path(folder).parent), file=Path(folder).name)
        return
    try:
        for page in pages(folder):
            for entry in page:
                if entry.name[0] in "._":
                    continue
                if not entry.is_file:
                    if not entry.is_link:
                        yield _row(FOLDER, root, level + 1, below(folder, entry.name))
                elif entry.name.endswith(".parquet"):
                    yield _row(FILE, root, level, folder, file=entry.name)
    except OSError as error:
        yield from _unable(root, level, folder, error)


def roots_of(folders: Iterable[str]) -> list[str]:
    """Folders that were named, each once: paths without links, and URIs."""
    named = map(local, folders)
    return list(dict.fromkeys(item if is_remote(item) else os.path.realpath(item) for item in named))


# -- how much there is ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FewFiles:
    """So little that this process plans it sooner than tasks begin."""

    names: int = 2_000
    size: int = 256 << 20


def few(roots: Sequence[str], limit: FewFiles, is_one: Callable[[str], object] = IS_TRACE) -> bool:
    """Whether there are few names below these folders, and few bytes in the files that count.

    No more names than the limit are looked at. Of another file system: never.
    """
    left, size = limit.names - len(roots), 0
    folders = list(roots)
    while folders:
        folder = folders.pop()
        if is_remote(folder):
            return False
        try:
            listing = os.scandir(folder)
        except OSError:
            continue  # a file, or none: it is for others to say so
        with listing as entries:
            for entry in entries:
                left -= 1
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                elif is_one(entry.name):
                    size += entry.stat().st_size
                if left < 0 or size > limit.size:
                    return False
    return size + sum(Path(item).stat().st_size for item in roots if Path(item).is_file()) <= limit.size
