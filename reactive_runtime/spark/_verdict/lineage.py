"""The lineage of each verdict, and which runs were judged before.

    lineage   by run: a row for each file that was judged: its records and checksum, the versions of the rules and of
              the program, and when
    judged    one file with a row for each run: the same without its files; written anew by each verifier

The second says which runs are new, without reading those before: of a run whose metadata are as they were, in size and
time, nothing is opened. So a later change of a file is not seen if the metadata stay. If `judged` is not there, it is
made of `lineage`; runs judged before there was either have rules 0.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from reactive_runtime import __version__
from reactive_runtime.errors import TraceError
from reactive_runtime.testing._rule_checks import RULES_VERSION
from reactive_runtime.testing._traces.trace_files import digest_of, signature_of
from reactive_runtime.testing.trace import Held, holds, metadata_of, run_folders

if TYPE_CHECKING:
    import pyarrow

__all__ = [
    "Entry",
    "Outstanding",
    "an_entry",
    "entries_of",
    "entry_of",
    "index_of",
    "lineage_of",
    "month_of",
    "newer",
    "outstanding",
]


@dataclass(frozen=True)
class Entry:
    """One run that was judged."""

    run: str
    rules: int = 0
    """The version of the rules; 0: from before there was one."""
    version: str | None = None
    """Of the program."""
    judged: str | None = None
    """When, in UTC."""
    late_signals: int | None = None
    """The setting of the judge; None: not known."""
    folder: str | None = None
    signature: str | None = None
    """Of the folder, before its metadata were read: it changes with them."""
    identity: str | None = None
    contents: str | None = None
    """A digest of the names, records and checksums of its files; None: not known."""
    complete: bool | None = None
    records: int | None = None
    month: str | None = None
    """Of its beginning."""


_INDEX: Final = {
    "run": "string",
    "rules": "int64",
    "version": "string",
    "judged": "string",
    "late_signals": "int64",
    "folder": "string",
    "signature": "string",
    "identity": "string",
    "contents": "string",
    "complete": "bool_",
    "records": "int64",
    "month": "string",
}
_FILES: Final = {"file": "string", "file_records": "int64", "checksum": "string"}


def entries_of(out: Path, note: Callable[[str], object] | None = None) -> dict[str, Entry]:
    """The runs that were judged, by name.

    Args:
        out: The folder of the tables.
        note: Called with a line where the table `judged` is there, and is damaged.

    Returns:
        An entry for each run that the tables name.
    """
    index = out / _JUDGED
    found = _read(index)
    if found is not None:
        return {row["run"]: Entry(**row) for row in found}
    if note is not None and index.exists():
        note(f"{index}: can't be read: which runs were judged is taken from the table lineage, and this is made anew")
    entries: dict[str, Entry] = {}
    for folder in _partitions(out / "runs"):
        run = unquote(folder.name.removeprefix("run="))
        entries[run] = Entry(run)
        for file in sorted((out / "lineage" / folder.name).glob("*.parquet")):
            if rows := _read(file):
                entries[run] = Entry(**{**rows[0], "run": run})
    return entries


_JUDGED: Final = Path("judged", "part-0.parquet")
"""The file of the table `judged`."""


def _partitions(table: Path) -> list[Path]:
    return sorted(table.glob("run=*"))


def _read(file: Path) -> list[dict[str, Any]] | None:
    """The rows of the index in that file; None where it is not there, or damaged."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    try:
        table = parquet.ParquetFile(file).read()
        names = [name for name in _INDEX if name in table.column_names]
        rows: list[dict[str, Any]] = table.select(names).to_pylist()
    except (OSError, pa.ArrowException):
        return None
    return rows if all(isinstance(row.get("rules"), int) for row in rows) else None


def entry_of(held: Held, late_signals: int) -> Entry:
    """The entry of a run that is judged now.

    Args:
        held: The contents of the run.
        late_signals: The setting of the judge.

    Returns:
        The entry.
    """
    metadata = metadata_of(held.folder) or {}
    known = (held.signature, held.identity, _contents(held), held.complete, held.rows)
    return an_entry(held.run, str(held.folder), *known, month_of(metadata.get("started")), late_signals)


def an_entry(
    run: str,
    folder: str,
    signature: str | None,
    identity: str | None,
    contents: str | None,
    complete: bool | None,
    records: int | None,
    month: str,
    late_signals: int,
) -> Entry:
    """The same of a run whose files this process has not looked at."""
    return Entry(
        run=run,
        rules=RULES_VERSION,
        version=__version__,
        judged=datetime.now(UTC).isoformat(timespec="seconds"),
        late_signals=late_signals,
        folder=folder,
        signature=signature,
        identity=identity,
        contents=contents,
        complete=complete,
        records=records,
        month=month,
    )


def month_of(started: object) -> str:
    """The month of a time as metadata have it; `unknown` where it is none."""
    month = started[:7] if isinstance(started, str) else ""
    known = len(month) == 7 and month[4] == "-" and (month[:4] + month[5:]).isdecimal() and month.isascii()
    return month if known else "unknown"


def lineage_of(held: Iterable[Held], entries: Mapping[str, Entry]) -> pyarrow.Table:
    """The table `lineage` of runs that were judged: a row for each file.

    Args:
        held: The contents of each run.
        entries: Their entries.

    Returns:
        The table.
    """
    rows = []
    for item in held:
        counted = (metadata_of(item.folder) or {}).get("files")
        counts = counted if isinstance(counted, dict) else {}
        for file in item.files:
            of_file = (file.name, counts.get(file.name), item.checksums.get(file.name))
            rows.append({**vars(entries[item.run]), **dict(zip(_FILES, of_file, strict=True))})
    return _table(rows, {**_INDEX, **_FILES})


def index_of(entries: Iterable[Entry]) -> pyarrow.Table:
    """The table `judged`."""
    return _table([vars(entry) for entry in entries], _INDEX)


def _table(rows: list[dict[str, Any]], columns: Mapping[str, str]) -> pyarrow.Table:
    import pyarrow as pa

    return pa.Table.from_pylist(rows, schema=pa.schema([(name, getattr(pa, kind)()) for name, kind in columns.items()]))


def newer(out: Path, entries: Mapping[str, Entry], runs: Collection[str]) -> tuple[set[str], list[TraceError]]:
    """Those of the runs whose verdict was made by newer rules than these, and a line for each version of such.

    Args:
        out: The folder of the tables.
        entries: The runs that were judged.
        runs: The names of runs.

    Returns:
        Their names, and the lines.
    """
    found: dict[int, list[Entry]] = {}
    for run in sorted(runs):
        entry = entries.get(run)
        if entry is not None and entry.rules > RULES_VERSION:
            found.setdefault(entry.rules, []).append(entry)
    lines = []
    for rules, mine in sorted(found.items()):
        more = f" and of {len(mine) - 1:,} more" if len(mine) > 1 else ""
        lines.append(
            TraceError(
                f"{out / _JUDGED}: verdict of run {mine[0].run}{more}: was made by version {rules} of the rules, and"
                f" this program has {RULES_VERSION}: it stays as it is; judge it with reactive_runtime"
                f" {mine[0].version} or newer"
            )
        )
    return {entry.run for mine in found.values() for entry in mine}, lines


@dataclass
class Outstanding:
    """The runs below some folders, by whether they are to be judged."""

    folders: list[Path] = field(default_factory=list)
    """The folders of those that are."""
    before: set[str] = field(default_factory=set)
    """The names of those that were judged before, and are not judged again."""
    older: set[str] = field(default_factory=set)
    """Those of them that an older version of the rules has judged."""
    newer: list[TraceError] = field(default_factory=list)
    """A line on those of them that a newer version of the rules has judged."""
    entries: dict[str, Entry] = field(default_factory=dict)
    """All runs that were judged, by name."""


def outstanding(
    folders: Sequence[Path | str],
    out: Path,
    *,
    late_signals: int = 1,
    again: bool = False,
    note: Callable[[str], object] | None = None,
) -> Outstanding:
    """Find the runs below these folders that are to be judged: those that were not, and those that have changed since.

    Args:
        folders: Folders of runs.
        out: The folder of the tables.
        late_signals: The setting of the judge: a run that was judged with another one is judged again.
        again: Whether runs are judged again that an older version of the rules has judged.
        note: As for `entries_of`.

    Returns:
        The runs. A folder that can't be read as a run is one to be judged: it is named then.

    Raises:
        TraceError: Names a folder without runs, or one of another file system.
    """
    from reactive_runtime.judging._stores import is_remote, local  # it needs numpy, and `prune` does not

    places = [local(str(folder)) for folder in folders]
    for place in places:
        if is_remote(place):
            raise TraceError(
                f"{place}: can't be judged incrementally: only folders of this machine, or mounted here, can; judge it"
                " without incremental, or mount the store"
            )
    entries = entries_of(out, note)
    by_folder = {entry.folder: entry for entry in entries.values() if entry.folder is not None}
    found = Outstanding(entries=entries)
    for folder in places:
        any_run = False
        for path, known in _runs_below(Path(folder), out, by_folder):
            any_run = True
            entry = known or _judged_elsewhere(Path(path), entries)
            other = entry is None or entry.late_signals not in (None, late_signals)
            if entry is None or other or (again and entry.rules < RULES_VERSION):
                found.folders.append(Path(path))
            else:
                found.before.add(entry.run)
        if not any_run:
            run_folders(folder)  # which says what is wrong
    found.older = {run for run in found.before if entries[run].rules < RULES_VERSION}
    found.newer = newer(out, entries, found.before)[1]
    return found


def _runs_below(folder: Path, apart: Path, by_folder: Mapping[str, Entry]) -> Iterator[tuple[str, Entry | None]]:
    """The folders of runs, each with its entry where it is as it was; not those below `apart`.

    The folder of such a run is not listed: a year has hundreds of thousands of files.
    """
    left, seen, apart_of = [os.fspath(folder.resolve())], set(), os.fspath(apart.resolve())
    while left:
        path = left.pop()
        if path in seen or path == apart_of:
            continue
        seen.add(path)
        known = by_folder.get(path)
        if known is not None and known.signature == signature_of(path):
            yield path, known
            continue
        is_run = False
        try:
            with os.scandir(path) as listed:
                for item in sorted(listed, key=lambda item: item.name, reverse=True):
                    if item.is_dir():
                        left.append(os.path.realpath(item.path) if item.is_symlink() else item.path)
                    else:
                        is_run = is_run or _of_run(item.name)
        except OSError:
            continue
        if is_run:
            yield path, None


def _of_run(name: str) -> bool:
    return name in ("metadata.json", "_metadata.json") or (name.startswith("signals-") and name.endswith(".parquet"))


def _judged_elsewhere(folder: Path, entries: Mapping[str, Entry]) -> Entry | None:
    """The entry of the run in that folder where it was judged, as it is or more of it; in another folder, perhaps."""
    try:
        held = holds(folder)
    except TraceError:
        return None
    entry = entries.get(held.run)
    if entry is None or entry.contents is None:  # judged before there was a lineage: nothing is known of its files
        return entry
    if entry.identity != held.identity:
        return None
    claim, judged = _claim(held.complete, held.rows), _claim(entry.complete, entry.records)
    if claim < judged or entry.contents == _contents(held):
        return entry
    compacted = (metadata_of(folder) or {}).get("compacted") is not None
    return entry if compacted and claim == judged else None


def _claim(complete: bool | None, records: int | None) -> tuple[bool, int]:
    return complete or False, records or 0


def _contents(held: Held) -> str:
    return digest_of([file.name for file in held.files], held.checksums, held.rows, held.complete)
