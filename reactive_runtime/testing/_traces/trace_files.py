"""Say what the folder of a run holds, by its metadata, and whether its files are as they were written."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any, Final

from reactive_runtime.errors import TraceError
from reactive_runtime.testing._records import COLUMNS, Record
from reactive_runtime.testing._rule_checks import RULES_VERSION
from reactive_runtime.testing._traces.trace_columns import SCHEMA, SINCE, VERSION, arrow, records_of, schema

__all__ = [
    "Held",
    "arrived",
    "check_files",
    "checked",
    "checksum_of",
    "different_runs",
    "holds",
    "metadata_of",
    "read_through",
    "read_trace",
    "run_folders",
]


def run_folders(folder: Path | str) -> list[Path]:
    """The folders of runs below `folder`, which may be one itself.

    Args:
        folder: A folder of a run, or one that has some below it, at any depth.

    Returns:
        The folders, in order; those that lie deeper than `date=<day>/run=<run>` come last.

    Raises:
        TraceError: There is no run.
    """
    folder = Path(folder)
    below = (folder, *sorted(folder.glob("*/")), *sorted(folder.glob("date=*/run=*/")))
    found = [path for path in below if any(path.glob("signals-*.parquet")) or _metadata_file(path) is not None]
    deeper = {file.parent for file in folder.rglob("signals-*.parquet")}
    deeper |= {path for path in folder.rglob("run=*/") if _metadata_file(path) is not None}
    found += sorted(deeper.difference(found))
    if not found:
        what = "is no folder" if not folder.is_dir() else "has no runs: no date=<day>/run=<run>/signals-*.parquet in it"
        raise TraceError(f"{folder}: {what}")
    return found


def _metadata_file(run: Path) -> Path | None:
    """The metadata of the run in that folder: of all of it, where there are such."""
    for name in METADATA:
        if (run / name).is_file():
            return run / name
    return None


def metadata_of(run: Path | str) -> dict[str, Any] | None:
    """What is known of the run in that folder.

    Args:
        run: The folder of the run.

    Returns:
        Its metadata; that of a run that was killed is not `complete`. None where there is none, or none that can be
        read.
    """
    for name in METADATA:
        try:
            metadata = json.loads((Path(run) / name).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):  # not there, cut off, or nested without end
            continue
        if isinstance(metadata, dict):
            return metadata
    return None


@dataclass(frozen=True)
class Held:
    """The contents of a run by its own word: judges judge that, and nothing else."""

    folder: Path
    run: str
    """Its name."""
    identity: str
    """The same for two folders only where they hold the same run."""
    files: list[Path]
    rows: int | None
    """In all files; None where that is not known."""
    complete: bool | None
    """Whether the run was closed; None where it does not say."""
    watermark: int | None
    """A run that was cut off: all threads had passed this ticket, and the files hold what there was up to there. None
    for one that is complete, and where its records come from several processes, each cut off at a ticket of its own."""
    checksums: Mapping[str, str] = field(default_factory=dict)
    """Of each file, by its name. Of older traces there are none."""
    signature: str | None = None
    """As `signature_of` has it, from before the metadata were read: a run that was written on since has another."""


def digest_of(files: Sequence[str], checksums: Mapping[str, str], rows: int | None, complete: bool | None) -> str:
    """A digest of the contents of a run, by its own word: the same where its files are the same."""
    named = [[file, checksums.get(file)] for file in files]
    return sha256(json.dumps([named, rows, complete]).encode()).hexdigest()[:32]


_FILE: Final = re.compile(r"(signals|open)-\d+\.parquet")

METADATA: Final = ("metadata.json", "_metadata.json")
"""Of all of a run; and of one that goes on, or was cut off."""

SIGNALS: Final = re.compile(r"signals-.*\.parquet").fullmatch
"""Matches names of files that make a folder that of a run."""

IS_TRACE: Final = re.compile(r"signals-.*\.parquet|open-\d+\.parquet").fullmatch
"""Matches names of files with records."""


def holds(run: Path | str) -> Held:
    """What the run in that folder holds.

    A trace without metadata, from elsewhere, holds the files that there are. Files are counted, and not read: what is
    in them is compared with `rows` by `check_files`.

    Args:
        run: The folder of the run.

    Returns:
        What its metadata counts.

    Raises:
        TraceError: The metadata is wrong, or files are not there; in one line.
    """
    folder = Path(run)
    signature = signature_of(folder)
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries if entry.is_file()]
    except (FileNotFoundError, NotADirectoryError):
        names = []
    found = contents(str(folder), names, lambda name: (folder / name).open("rb"))
    files = [folder / name for name in found.files]
    known = (found.rows, found.complete, found.watermark, found.checksums)
    return Held(folder, found.run, found.identity, files, *known, signature)


def signature_of(folder: Path | str) -> str | None:
    """A value that changes with the metadata of the run, or without them with its files; None: there is no run."""
    for name in METADATA:
        try:
            found = os.stat(f"{folder}/{name}")
        except OSError:
            continue
        return f"{name} {found.st_size} {found.st_mtime_ns}"
    try:
        files = sorted(Path(folder).glob("signals-*.parquet"))
        stats = [(file.name, found.st_size, found.st_mtime_ns) for file in files for found in [file.stat()]]
    except OSError:
        return None
    return sha256(json.dumps(stats).encode()).hexdigest()[:32] if stats else None


@dataclass(frozen=True)
class Contents:
    """As `Held`, of a folder of any file system: its files are names."""

    run: str
    identity: str
    files: list[str]
    rows: int | None
    complete: bool | None
    watermark: int | None
    checksums: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)


def contents(folder: str, names: Iterable[str], opened: Callable[[str], Any]) -> Contents:
    """The contents of the run in a folder of any file system.

    Args:
        folder: Its name, for errors; the last part may be the name of the run.
        names: Of the files in it; others than those of a run are passed over.
        opened: Opens a file of it for reading, by its name.

    Returns:
        The contents by its metadata.

    Raises:
        TraceError: As `holds` does.
    """
    known = {name for name in names if name in METADATA or IS_TRACE(name)}
    there = sorted(name for name in known if SIGNALS(name))
    path = next((name for name in METADATA if name in known), None)
    if path is None:
        name = _name_within(there, opened) or _name_of(folder)
        return Contents(name, _footprint(there, opened), there, None, None, None)
    metadata = _read(f"{folder}/{path}", path, opened)
    at = f"{folder}/{path}"
    name = _of(at, metadata, "run", str) or _name_of(folder)
    version = _of(at, metadata, "schema", int)
    if version is not None and not 1 <= version <= SCHEMA:
        raise TraceError(
            f"{at}: has schema {version}, and this version reads 1 to {SCHEMA}: judge the run with the version of"
            " reactive_runtime that has recorded it, or a newer one"
        )
    rules = _of(at, metadata, "rules", int)
    if rules is not None and rules > RULES_VERSION:
        raise TraceError(
            f"{at}: was recorded for version {rules} of the rules, and this version judges by {RULES_VERSION}: judge"
            " the run with the version of reactive_runtime that has recorded it, or a newer one"
        )
    complete = _of(at, metadata, "complete", bool)
    watermark = _of(at, metadata, "watermark", int)
    identity = _of(at, metadata, "identity", dict)
    named = json.dumps(identity, sort_keys=True) if identity else ""
    files = _of(at, metadata, "files", dict)
    checksums = _of(at, metadata, "checksums", dict)
    if files is None:  # an earlier version has written it
        if complete is False:
            what = "was cut off, and does not say up to where its threads had come: it can't be judged"
            raise TraceError(f"{folder}: {what}")
        rows = _of(at, metadata, "records", int)
        return Contents(name, named or _footprint(there, opened), there, rows, complete, None, {}, metadata)
    counted = _counted(folder, at, metadata, files, checksums, known)
    discarded = files.keys() | _discarded(at, metadata)
    surplus = [item for item in there if item not in discarded]
    # Of a run that was killed: the last file may be there, and not yet be counted.
    if surplus and (
        complete or len(surplus) > 1 or any(surplus[0] < item for item in files if item.startswith("signals"))
    ):
        raise TraceError(f"{folder}/{surplus[0]}: is not among the files that the run says it holds")
    held = sorted(files)
    identity_of = named or _footprint(held, opened)
    return Contents(name, identity_of, held, counted, complete, watermark, checksums or {}, metadata)


def _read(at: str, name: str, opened: Callable[[str], Any]) -> dict[str, Any]:
    try:
        with opened(name) as file:
            metadata = json.loads(file.read().decode("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise TraceError(f"{at}: is no JSON ({next(iter(str(error).splitlines()), '')})") from error
    if not isinstance(metadata, dict):
        raise TraceError(f"{at}: is no metadata of a run: should be an object, not {type(metadata).__name__}")
    return metadata


def _counted(
    folder: str, at: str, metadata: Mapping[str, Any], files: Mapping[str, Any], checksums: Any, known: set[str]
) -> int:
    """How many records the files hold, by the metadata; TraceError where that can't be, or a file is not there."""
    for file, rows in files.items():
        if not _FILE.fullmatch(file) or type(rows) is not int or rows < 0:
            raise TraceError(f"{at}: 'files' should be names of files, each with its rows, and has {file!r}: {rows!r}")
        if checksums is not None and not isinstance(checksums.get(file), str):
            raise TraceError(f"{at}: 'checksums' should have a text of {file!r}")
        if file not in known:
            raise TraceError(f"{folder}/{file}: is not there, and the run says that it holds {rows:,} records")
    records = _of(at, metadata, "records", int)
    counted: int = sum(files.values())
    if records not in (None, counted):
        what = "a file was taken out or added"
        raise TraceError(f"{at}: 'records' is {records:,}, and 'files' count {counted:,}: {what}")
    return counted


def _discarded(path: str, metadata: Mapping[str, Any]) -> frozenset[str]:
    """The files beside those that the run holds that are no part of it: what compacts a run has them there."""
    names = _of(path, metadata, "discarded", list) or []
    for name in names:
        if not isinstance(name, str) or not _FILE.fullmatch(name) or name in metadata["files"]:
            raise TraceError(
                f"{path}: 'discarded' should be names of files that the run does not hold, and has {name!r}"
            )
    return frozenset(names)


def _of(path: str, metadata: Mapping[str, Any], name: str, kind: type) -> Any:
    value = metadata.get(name)
    if value is not None and type(value) is not kind:
        raise TraceError(f"{path}: {name!r} should be {_KINDS[kind]}, and is {str(value)[:80]!r}")
    return value


_KINDS: Final = {str: "a text", bool: "true or false", int: "a whole number", dict: "an object", list: "a list"}


def _name_of(folder: str) -> str:
    return folder.rstrip("/").rpartition("/")[2].removeprefix("run=")


def _name_within(files: Sequence[str], opened: Callable[[str], Any]) -> str | None:
    """The name that the records have, where the footers say one."""
    pa, parquet = arrow()
    names: set[str] = set()
    for file in files:
        try:
            with opened(file) as data:
                footer = parquet.read_metadata(data)
            at = footer.schema.names.index("run")
            for n in range(footer.num_row_groups):
                within = footer.row_group(n).column(at).statistics
                names |= {within.min, within.max}
        except (OSError, ValueError, AttributeError, pa.ArrowException):  # it is for others to say what is wrong
            return None
    return names.pop() if len(names) == 1 and all(isinstance(name, str) for name in names) else None


def _footprint(files: Iterable[str], opened: Callable[[str], Any]) -> str:
    """Of a trace that says nothing of itself: its footers, which have sizes and statistics of all there is."""
    digest = sha256()
    for name in files:
        with opened(name) as file:
            file.seek(0, os.SEEK_END)
            size = file.tell()
            file.seek(size - min(size, 1 << 16))
            digest.update(name.encode() + file.read())
    return digest.hexdigest()


def different_runs(
    folders: Iterable[Path],
    skipped: Callable[[TraceError], object],
    note: Callable[[str], object] | None = None,
) -> list[Held]:
    """What the runs in these folders hold, each run once, however many of the folders are copies of it.

    Of copies, one that is whole is taken before one that is damaged or was cut off.

    Args:
        folders: The folders of the runs.
        skipped: Called for each run that can't be judged: its metadata is wrong, or another run has its name.
        note: Called with a line on each folder that is a copy of another.

    Returns:
        What each run holds.
    """
    copies: dict[str, list[Held]] = {}
    for folder in dict.fromkeys(item.resolve() for item in folders):
        try:
            held = holds(folder)
        except TraceError as error:
            skipped(error)
        else:
            copies.setdefault(held.identity, []).append(held)
    names: dict[str, Held] = {}
    best = {identity: _best(of, skipped) for identity, of in copies.items()}
    if note is not None:
        for identity, of in copies.items():
            for held in of:
                if held is not best[identity]:
                    note(copy_of(held.folder, best[identity].folder))
    for held in best.values():
        other = names.setdefault(held.run, held)
        if other is not held:
            skipped(TraceError(f"{held.folder}: another run of that name is in {other.folder}: judge them one by one"))
    return list(names.values())


def copy_of(folder: Path | str, other: Path | str) -> str:
    """The line on a copy."""
    return f"{folder}: is a copy of the run in {other}, which is judged once"


def _best(copies: list[Held], skipped: Callable[[TraceError], object]) -> Held:
    """The copy that holds most and is undamaged; where all are damaged, the one that says that it holds most."""
    most = sorted(copies, key=_claim, reverse=True)
    if len(most) == 1:
        return most[0]
    damaged: list[TraceError] = []
    for held in most:
        try:
            checked(held)
        except TraceError as error:
            damaged.append(error)
            continue
        for worse, why in zip(most, damaged, strict=False):
            if _claim(worse) > _claim(held):
                skipped(why)
        return held
    return most[0]


def _claim(held: Held) -> tuple[bool, int]:
    """How much a run says that it holds."""
    return held.complete or False, held.rows or 0


def check_files(folder: Path | str) -> list[Path]:
    """The trace files that the runs below `folder` hold.

    Args:
        folder: As `run_folders` takes it.

    Returns:
        The files of all runs.

    Raises:
        TraceError: Names the first run that does not hold what its metadata says, or the first file that can't be read
            or has another schema.
    """
    return [file for run in run_folders(folder) for file in checked(holds(run))]


def checked(held: Held) -> list[Path]:
    """The files of that run, as they were written: their checksums have been compared, and their footers read.

    Args:
        held: What the run holds, as `holds` says.

    Returns:
        Its files.

    Raises:
        TraceError: Names the first file that can't be read, has changed, or has another schema; or the run, where it
            has a record too few or too many.
    """
    rows = 0
    for file in held.files:
        _same(file, held.checksums.get(file.name))  # first: what has changed may be anything
        rows += _check(file)
    if held.rows is not None and rows != held.rows:
        what = f"its files have {rows:,} records, and it says that it holds {held.rows:,}: it can't be judged"
        raise TraceError(f"{held.folder}: {what}")
    return held.files


def read_through(held: Held) -> None:
    """Read all that a run holds, and keep nothing.

    Args:
        held: What the run holds, as `holds` says.

    Raises:
        TraceError: Names a file whose bytes have changed.
    """
    pa, parquet = arrow()
    for file in held.files:
        try:
            for _ in parquet.ParquetFile(file, page_checksum_verification=True).iter_batches():
                pass
        except (OSError, pa.ArrowException) as error:
            raise _unread(file, error) from error


def _same(file: Path, checksum: str | None) -> None:
    """TraceError where the file has not that checksum, if one is known."""
    if checksum is None:
        return
    if not _is_whole(file):
        raise TraceError(f"{file}: is no whole Parquet file (it has no mark at its end)")
    try:
        found = checksum_of(file)
    except OSError as error:
        raise _unread(file, error) from error
    if found != checksum:
        raise TraceError(f"{file}: has changed since it was written: its checksum is another")


def checksum_of(file: Path) -> str:
    with file.open("rb") as opened:
        return file_digest(opened, "sha256").hexdigest()


def arrived(run: Path) -> bool:
    """Whether all files are there, in their size, that the run says it holds: a run may be copied, last things first.

    Args:
        run: The folder of the run.

    Returns:
        True as well where it says nothing, or something that can't be so, since waiting would not help.
    """
    metadata = metadata_of(run)
    files = (metadata or {}).get("files")
    if metadata is not None and files is None and metadata.get("records"):
        return any(run.glob("signals-*.parquet"))
    if not isinstance(files, dict):
        return True
    return all(not _FILE.fullmatch(name) or _is_whole(run / name) for name in files)


def _is_whole(file: Path) -> bool:
    """Whether it has its end: Parquet files have a mark there."""
    try:
        with file.open("rb") as opened:
            opened.seek(-4, os.SEEK_END)
            return opened.read() == b"PAR1"
    except OSError:
        return False


def _check(file: Path) -> int:
    """How many records it has."""
    pa, parquet = arrow()
    try:
        footer = parquet.read_metadata(file)
    except (OSError, pa.ArrowException) as error:
        raise _unread(file, error) from error
    return check_footer(file, footer)


def check_footer(file: Path | str, footer: Any) -> int:
    """How many records it has by its footer; TraceError where that is no trace's, or of a newer schema."""
    pa, _ = arrow()
    try:
        found = footer.schema.to_arrow_schema()
    except (OSError, pa.ArrowException) as error:
        raise _unread(file, error) from error
    version = (found.metadata or {}).get(VERSION, b"1").decode(errors="replace")
    if not version.isdecimal() or int(version) > SCHEMA:
        raise TraceError(f"{file}: has schema {version}, and this version reads up to {SCHEMA}: a newer one is needed")
    kinds = {column.name: column.type for column in found}
    for column in schema():
        if column.name not in kinds and int(version) < SINCE.get(column.name, 1):
            continue
        if kinds.get(column.name) != column.type:
            has = kinds.get(column.name, "none")
            raise TraceError(f"{file}: is no trace: column {column.name!r} should be {column.type}, and is {has}")
    rows: int = footer.num_rows
    return rows


def read_trace(folder: Path | str) -> list[Record]:
    """All records below `folder`, in order of run and `begin`; for traces that fit into memory.

    Args:
        folder: As `run_folders` takes it.

    Returns:
        The records.

    Raises:
        TraceError: Names a file that can't be read, or is no trace.
    """
    records = [record for file in check_files(folder) for record in _records(file)]
    return sorted(records, key=lambda record: (record.run, record.begin))


def _records(file: Path) -> list[Record]:
    pa, parquet = arrow()
    try:
        opened = parquet.ParquetFile(file, page_checksum_verification=True)
        table = opened.read(columns=list(COLUMNS))  # those that there are
    except (OSError, pa.ArrowException) as error:
        raise _unread(file, error) from error
    try:
        return records_of(table)
    except TraceError as error:
        raise TraceError(f"{file}: {error}") from error


def _unread(file: Path | str, error: Exception) -> TraceError:
    return TraceError(f"{file}: is no whole Parquet file ({next(iter(str(error).splitlines()), '')})")
