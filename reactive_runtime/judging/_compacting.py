"""Compacts the files of a run: many small ones become few, sorted by subscription and begin.

The metadata say which files the run holds, and which files beside them are `discarded`: no part of it, and removed by
whatever compacts the run next. Each step ends before the next begins, on disk as well:

    1. `_compact-….parquet` are written; readers pass over such names. They are judged: the verdict has to be the same.
    2. metadata.json is replaced: it names the files of step 3 as discarded.
    3. The new files get their names.
    4. metadata.json is replaced: the run holds the new files; the old ones are discarded.
    5. The old files are removed.
    6. metadata.json is replaced: nothing is discarded.

A reader sees the old files up to step 4, then the new ones. A kill leaves a run that the next call takes back to what
it was (up to step 4), or finishes (from there on): both are to remove what is discarded.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as parquet

from reactive_runtime.errors import TraceError
from reactive_runtime.judging._gathering import MOST
from reactive_runtime.judging._sorting import AT_ONCE, HELD, Sorting, Written, unwritten
from reactive_runtime.judging._tally import Tally, tally
from reactive_runtime.testing._traces.trace_columns import SCHEMA
from reactive_runtime.testing._traces.trace_files import checksum_of
from reactive_runtime.testing._traces.trace_writer import GROUP_ROWS
from reactive_runtime.testing.trace import Held, checked, holds, run_folders

__all__ = ["SIZE", "Compacted", "Limits", "compact", "compact_run"]

SIZE: Final = 128 << 20
"""Bytes that a file has at least, where the run has as many."""

_DRAFT: Final = "_compact-"
"""Names of unfinished files begin with it."""

_LOCK: Final = "_compact.lock"
_METADATA: Final = "metadata.json"


@dataclass(frozen=True)
class Limits:
    """How many records memory holds at once.

    Args:
        held: While they are sorted.
        at_once: How many sorted parts are merged at once.
        judged: While they are judged.
        group: In a row group of a new file.
    """

    held: int = HELD
    at_once: int = AT_ONCE
    judged: int = MOST
    group: int = GROUP_ROWS


_USUAL: Final = Limits()


@dataclass(frozen=True)
class Compacted:
    """The outcome for a run."""

    folder: Path
    files: int
    """How many there were."""
    left: int
    """How many there are."""
    size: int
    """The bytes of the files that there were. `left_size`: of those that there are."""
    left_size: int
    records: int


def compact(
    folder: Path,
    *,
    size: int = SIZE,
    dry_run: bool = False,
    note: Callable[[str], object],
    unable: Callable[[TraceError], object],
) -> Iterator[Compacted]:
    """Compact each complete run below the folder.

    Args:
        folder: A folder of a run, or one that has some below it.
        size: Bytes that a file should have at least.
        dry_run: Change nothing, and guess how many files there would be.
        note: Called with a line on each run that is left alone, as it is not complete.
        unable: Called for each run that can't be compacted.

    Yields:
        The outcome for each complete run; for one that had nothing to compact, as many files as before.

    Raises:
        TraceError: There is no run.
    """
    for run in dict.fromkeys(item.resolve() for item in run_folders(folder)):
        try:
            held = holds(run)
            if not _is_complete(held):
                what = "has no metadata" if held.complete is None else "was cut off, or is being written"
                note(f"{run}: {what}: it is left alone")
            elif dry_run:
                had = _bytes(held.files)
                left = max(had // size, 1) if _is_small(held, size) else len(held.files)
                yield Compacted(run, len(held.files), left, had, had, held.rows or 0)
            else:
                yield compact_run(run, size=size)
        except TraceError as error:
            unable(error)
        except OSError as error:
            unable(TraceError(f"{error.filename or run}: can't be read: {error.strerror or error}"))


def _is_complete(held: Held) -> bool:
    return bool(held.complete) and (held.folder / _METADATA).is_file()


def _is_small(held: Held, size: int) -> bool:
    """Whether fewer files would do."""
    compacted = _metadata(held.folder).get("compacted")
    return len(held.files) > 1 and not (isinstance(compacted, int) and compacted >= size)


def _bytes(files: Sequence[Path]) -> int:
    return sum(file.stat().st_size for file in files)


def compact_run(folder: Path, *, size: int = SIZE, limits: Limits = _USUAL) -> Compacted:
    """Compact one run; first finish, or take back, what an earlier call has left.

    Args:
        folder: The folder of a run, which is complete.
        size: Bytes that a file should have at least.
        limits: How much memory holds at once.

    Returns:
        The outcome; as many files as before if there was nothing to compact.

    Raises:
        TraceError: Names a file that can't be read or written. The run is as it was, or, if something can't be removed
            at the end, compacted. Or the run is not complete.
        OSError: A file can't be read.
    """
    if not _is_complete(holds(folder)):
        raise TraceError(f"{folder}: is not complete: it is left alone")
    with _alone(folder):
        _tidy(folder)
        found = holds(folder)
        if not _is_small(found, size):
            had = _bytes(found.files)
            return Compacted(folder, len(found.files), len(found.files), had, had, found.rows or 0)
        had, before = _bytes(checked(found)), tally(found.files, limits.judged)
        try:
            drafts = _written(found, before.records, size, limits)
            _check(folder, before, tally(drafts, limits.judged))
            made = _exchanged(found, drafts, size)
        except BaseException:
            with contextlib.suppress(OSError, TraceError):
                _tidy(folder)
            raise
        return Compacted(folder, len(found.files), len(made), had, _bytes(made), before.records)


# -- one at a time --------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold the lock of that folder; TraceError where another process does."""
    path = folder / _LOCK
    try:
        file = _locked(path)
    except BlockingIOError as error:
        raise TraceError(f"{folder}: another process compacts it: wait for that") from error
    except OSError as error:
        raise unwritten(path, error) from error
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            os.unlink(path)  # while it is locked: so that it is this one
        os.close(file)


def _locked(path: Path) -> int:
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            if sys.platform != "win32":  # there, the caller has to see that there is one
                import fcntl

                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if path.exists() and os.path.samestat(os.fstat(file), os.stat(path)):
                return file
        except BaseException:
            os.close(file)
            raise
        os.close(file)  # the one that had it has removed it


# -- what is on disk ------------------------------------------------------------------------------------------


def _metadata(folder: Path) -> dict[str, Any]:
    """The metadata of a complete run; `holds` has found nothing wrong with them."""
    found: dict[str, Any] = json.loads((folder / _METADATA).read_text(encoding="utf-8"))
    return found


def _tell(folder: Path, metadata: Mapping[str, Any]) -> None:
    """Replace the metadata, in one rename, and wait until the disk has them."""
    draft, path = folder / f"{_DRAFT}metadata.json", folder / _METADATA
    try:
        file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        try:
            data = memoryview((json.dumps(metadata, indent=2) + "\n").encode())
            while data:
                data = data[os.write(file, data) :]
            os.fsync(file)
        finally:
            os.close(file)
        os.replace(draft, path)
    except OSError as error:
        raise unwritten(path, error) from error
    _settle(folder)


def _settle(folder: Path) -> None:
    """Wait until the disk has the names in the folder, where a system can say so."""
    if sys.platform == "win32":
        return
    try:
        file = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(file)
        finally:
            os.close(file)
    except OSError as error:
        raise unwritten(folder, error) from error


def _remove(file: Path) -> None:
    try:
        os.unlink(file)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise TraceError(f"{file}: can't be removed: {error.strerror or error}") from error


def _tidy(folder: Path) -> None:
    """Remove what an earlier call has left: drafts, and what the metadata discard."""
    for draft in sorted(folder.glob(f"{_DRAFT}*")):
        _remove(draft)
    metadata = _metadata(folder)
    if "discarded" not in metadata:
        return
    checked(holds(folder))  # before anything is removed: is the run whole without it?
    for name in metadata.pop("discarded"):
        _remove(folder / name)
    _settle(folder)
    _tell(folder, metadata)


# -- the steps ------------------------------------------------------------------------------------------------


def _written(found: Held, records: int, size: int, limits: Limits) -> list[Path]:
    """Step 1: the records, sorted, in files of that many bytes or more."""
    sorting = Sorting(found.folder, f"{_DRAFT}sort-", limits.held, limits.at_once)
    made: list[Path] = []
    file: Written | None = None
    with contextlib.ExitStack() as stack:
        for table in sorting.sorted(found.files):
            if file is None:
                made.append(found.folder / f"{_DRAFT}{len(made):05}.parquet")
                file = stack.enter_context(Written(made[-1], limits.group))
            file.add(table)
            records -= len(table)
            # The last file has what is left: as much as another, or more, by the bytes that a record takes here.
            if file.size >= size and records * file.size >= size * file.rows:
                file.close()
                file = None
    return made


def _check(folder: Path, before: Tally, after: Tally) -> None:
    """TraceError where the new files have another verdict, or other records."""
    unlike = before.unlike(after)
    if unlike:
        raise TraceError(f"{folder}: compacted, it would have another verdict ({unlike}): it is left as it was")


def _exchanged(found: Held, drafts: Sequence[Path], size: int) -> list[Path]:
    """Steps 2 to 6: the new files, which are the run then."""
    folder, metadata = found.folder, _metadata(found.folder)
    first = 1 + max(int(re.sub(r"\D", "", file.stem)) for file in [*found.files, *folder.glob("signals-*.parquet")])
    made = [folder / f"signals-{number:05}.parquet" for number in range(first, first + len(drafts))]
    rows = dict(zip([file.name for file in made], map(_rows, drafts), strict=True))
    checksums = dict(zip(rows, map(checksum_of, drafts), strict=True))
    old = {file.name: _rows(file) for file in found.files} if metadata.get("files") is None else metadata["files"]
    _tell(folder, {**metadata, "files": old, "discarded": list(rows)})
    for draft, to in zip(drafts, made, strict=True):
        try:
            os.replace(draft, to)
        except OSError as error:
            raise unwritten(to, error) from error
    _settle(folder)
    held = {"records": sum(rows.values()), "files": rows, "checksums": checksums, "schema": SCHEMA, "compacted": size}
    _tell(folder, {**metadata, **held, "discarded": list(old)})
    for file in found.files:
        _remove(file)
    _settle(folder)
    _tell(folder, {**metadata, **held})
    return made


def _rows(file: Path) -> int:
    rows: int = parquet.read_metadata(file).num_rows
    return rows
