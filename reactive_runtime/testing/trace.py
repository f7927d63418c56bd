"""Traces on disk: one folder a run, with Parquet files of its signals and a metadata.json.

    <folder>/date=<day>/run=<run>/signals-00000.parquet   the columns of `Record`, up to a million records each
    <folder>/date=<day>/run=<run>/metadata.json           version, commit, Python, machine, scenarios, seed

A file is written under a name that begins with `_`, which readers pass over, and gets its own name when it is
whole: a run that is killed leaves readable files, and its facts in `_metadata.json`. Each file says which schema it
has: 1 had no `depth` and no `late_signals`, 2 is what is written here; docs/traces.md has the columns. Needs pyarrow,
which is imported on first use.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from reactive_runtime._core import primitives
from reactive_runtime.errors import MissingDependencyError, TraceError
from reactive_runtime.testing.recorder import SIGNALS, Chunk, Recorder, Row, fitting
from reactive_runtime.testing.records import Facts, Record

if TYPE_CHECKING:
    import pyarrow

__all__ = ["SCHEMA", "TraceWriter", "check_files", "metadata_of", "read_trace", "run_folders", "schema", "table_of"]

SCHEMA: Final = 2
"""The version of the columns; files of an older one can be read."""

_VERSION: Final = b"reactive_runtime.trace"
"""Where a file says its version."""

_SINCE: Final = {"depth": 2, "late_signals": 2}
"""Columns that older files have not."""

FILE_ROWS: Final = 1_000_000
GROUP_ROWS: Final = 100_000
FILE_SECONDS: Final = 10.0
"""After which a file is closed however few its rows are: what a run that is killed loses is what it wrote since."""

REPEATED: Final = ["run", "scenario", "subscription", "thread", "signal", "n", "elements", "error"]
"""Columns with few values, which files hold as a dictionary."""

RISING: Final = dict.fromkeys(("begin", "end", "begin_ns", "end_ns", "value"), "DELTA_BINARY_PACKED")
"""Columns that files hold as differences: a third of the bytes, and of a dictionary's time."""


def _arrow() -> tuple[Any, Any]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise MissingDependencyError("traces need pyarrow: pip install 'reactive-runtime[cli]'") from error
    return pa, parquet


def schema() -> pyarrow.Schema:
    """The columns of a trace, which are the fields of `Record`."""
    pa, _ = _arrow()
    fields = [
        ("run", pa.string(), False),
        ("scenario", pa.string(), False),
        ("subscription", pa.int64(), False),
        ("shared_callers", pa.bool_(), False),
        ("ascending", pa.bool_(), False),
        ("elements", pa.int64(), True),
        ("thread", pa.int64(), False),
        ("signal", pa.string(), False),
        ("n", pa.int64(), True),
        ("begin", pa.int64(), False),
        ("end", pa.int64(), True),
        ("begin_ns", pa.int64(), False),
        ("end_ns", pa.int64(), True),
        ("value", pa.int64(), True),
        ("error", pa.string(), True),
        ("depth", pa.int32(), True),
        ("late_signals", pa.int32(), True),
    ]
    columns = [pa.field(name, kind, nullable=nullable) for name, kind, nullable in fields]
    made: pyarrow.Schema = pa.schema(columns, metadata={_VERSION: str(SCHEMA).encode()})
    return made


def table_of(records: Sequence[Record]) -> pyarrow.Table:
    """Records as an Arrow table."""
    pa, _ = _arrow()
    table: pyarrow.Table = pa.Table.from_pylist([record._asdict() for record in records], schema=schema())
    return table


class TraceWriter:
    """Writes the chunks of one recorder to the folder of its run. `write` is the recorder's sink."""

    def __init__(self, folder: Path | str, run: str, metadata: Mapping[str, Any] | None = None) -> None:
        """Make the folder of the run, with what is known of it at its beginning.

        TraceError where it can't be made, or has a trace already.
        """
        _arrow()  # what is missing is said here, and not to a publisher in mid-signal
        now = datetime.now(UTC)
        self.path = Path(folder) / f"date={now:%Y-%m-%d}" / f"run={run}"
        self.run = run
        self.rows = 0  # _lock
        self._lock = primitives.Lock()  # held while writing: files are written by one thread at a time
        self._recorder: Recorder | None = None
        self._waiting: list[Any] = []  # _lock; tables of a row group to be
        self._waiting_rows = 0  # _lock
        self._file: Any = None  # _lock
        self._file_rows = 0  # _lock
        self._file_begun = 0.0  # _lock
        self._files = 0  # _lock
        self._failure: Exception | None = None  # _lock; the first: nothing is written after it
        self.waited = 0.0  # _lock
        self._facts = {
            "run": run,
            "schema": SCHEMA,
            "started": now.isoformat(timespec="seconds"),
            "python": platform.python_version(),
            "machine": f"{platform.node()}, {os.cpu_count()} cores, {platform.platform()}",
            **(metadata or {}),
        }
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            taken = any(self.path.glob("*signals-*.parquet")) or metadata_of(self.path) is not None
        except OSError as error:
            raise TraceError(f"{self.path}: can't be made: {error.strerror}") from error
        if taken:
            raise TraceError(f"{self.path}: has a trace already, which is not written over")
        _write(self.path / "_metadata.json", {**self._facts, "complete": False})

    def recorder(self) -> Recorder:
        """The recorder that writes here."""
        self._recorder = Recorder(self.run, self.write)
        return self._recorder

    def write(self, chunk: Chunk) -> None:
        """Write a chunk; a failure to write is kept for `close`, since the caller is a publisher in mid-signal."""
        assert self._recorder is not None
        self.write_of(self._recorder.facts, chunk)

    def write_of(self, facts: Sequence[Facts] | Mapping[int, Facts], chunk: Chunk) -> None:
        """The same with a chunk that was recorded elsewhere: `facts` has what is known of each subscription in it."""
        try:
            table = _table(self.run, facts, chunk)  # before the lock: threads convert side by side
        except Exception as error:
            with self._lock:
                self._failure = self._failure or error
            return
        begin = primitives.monotonic()
        with self._lock:
            self.waited += primitives.monotonic() - begin
            if self._failure is not None:
                return
            self._waiting.append(table)
            self._waiting_rows += table.num_rows
            self.rows += table.num_rows
            if self._waiting_rows >= GROUP_ROWS:
                self._attempt(self._write_group)

    @property
    def failed(self) -> bool:
        """Whether something could not be written: `close` says what. Nothing has been since."""
        return self._failure is not None  # it is written once

    def close(self, metadata: Mapping[str, Any] | None = None) -> None:
        """Finish the last file, and write the metadata. TraceError if anything could not be written."""
        if self._recorder is not None:
            self._recorder.flush()
        with self._lock:
            self._attempt(self._finish)
            failure = self._failure
            facts = {
                **self._facts,
                "finished": datetime.now(UTC).isoformat(timespec="seconds"),
                "records": self.rows,
                "recorder_waited": round(self.waited, 3),
                "complete": True,
                **(metadata or {}),
            }
        if failure is not None:
            raise _unwritten(self._name("_"), failure)
        _write(self.path / "_metadata.json", facts)
        try:
            (self.path / "_metadata.json").replace(self.path / "metadata.json")  # it is whole
        except OSError as error:
            raise _unwritten(self.path / "metadata.json", error) from error

    def _attempt(self, action: Callable[[], None]) -> None:
        try:
            if self._failure is None:
                action()
        except Exception as error:
            self._failure = error

    def _write_group(self) -> None:
        pa, parquet = _arrow()
        if self._file is None:
            self._file_begun = primitives.monotonic()
            self._file = parquet.ParquetWriter(
                self._name("_"), schema(), compression="zstd", use_dictionary=REPEATED, column_encoding=RISING
            )
        table, self._waiting, self._waiting_rows = pa.concat_tables(self._waiting), [], 0
        self._file.write_table(table, row_group_size=GROUP_ROWS)
        self._file_rows += table.num_rows
        if self._file_rows >= FILE_ROWS or primitives.monotonic() - self._file_begun >= FILE_SECONDS:
            self._close_file()

    def _finish(self) -> None:
        if self._waiting:
            self._write_group()
        if self._file is not None:
            self._close_file()

    def _close_file(self) -> None:
        self._file.close()
        self._file, self._file_rows = None, 0
        self._name("_").rename(self._name(""))
        self._files += 1

    def _name(self, prefix: str) -> Path:
        return self.path / f"{prefix}signals-{self._files:05}.parquet"


def _unwritten(path: Path, failure: Exception) -> TraceError:
    why = getattr(failure, "strerror", None) or str(failure) or type(failure).__name__
    error = TraceError(f"{path}: can't be written: {why.splitlines()[0]}")
    error.__cause__ = failure
    return error


def _write(path: Path, facts: Mapping[str, Any]) -> None:
    try:
        path.write_text(json.dumps(facts, indent=2, default=str) + "\n", encoding="utf-8")
    except OSError as error:
        raise _unwritten(path, error) from error


def _table(run: str, known: Sequence[Facts] | Mapping[int, Facts], chunk: Chunk) -> pyarrow.Table:
    """A chunk, by columns."""
    pa, _ = _arrow()
    size = len(chunk.rows)
    width = len(Row._fields)
    cells = list(chain.from_iterable(chunk.rows))  # then each column is a slice: several times as fast as zip(*rows)
    numbers, signals, n, begin, end, begin_ns, end_ns, values, errors, depths = (
        cells[at::width] for at in range(width)
    )
    # What is known of a subscription is looked up once, and repeated by Arrow: a chunk has many rows of few.
    subscriptions = pa.array(numbers, pa.int64()).dictionary_encode()
    facts = [known[number] for number in subscriptions.dictionary.to_pylist()]

    def repeated(of_each: list[Any], kind: Any) -> Any:
        return pa.array(of_each, kind).take(subscriptions.indices)

    columns = [
        pa.repeat(pa.scalar(run, pa.string()), size),
        repeated([fact.scenario for fact in facts], pa.string()),
        repeated([fact.subscription for fact in facts], pa.int64()),
        repeated([fact.shared_callers for fact in facts], pa.bool_()),
        repeated([fact.ascending for fact in facts], pa.bool_()),
        repeated([fact.elements for fact in facts], pa.int64()),
        pa.repeat(pa.scalar(chunk.thread, pa.int64()), size),
        pa.array([signal.value for signal in SIGNALS]).take(pa.array(signals)),
        pa.array(n, pa.int64()),
        pa.array(begin, pa.int64()),
        pa.array(end, pa.int64()),
        pa.array(begin_ns, pa.int64()),
        pa.array(end_ns, pa.int64()),
        _ints(values),
        pa.array(errors, pa.string()),
        pa.array(depths, pa.int32()),
        repeated([fact.late_signals for fact in facts], pa.int32()),
    ]
    table: pyarrow.Table = pa.table(columns, schema=schema())
    return table


def _ints(values: Sequence[Any]) -> Any:
    """As int64; what does not fit as `fitting` has it."""
    pa, _ = _arrow()
    try:
        return pa.array(values, pa.int64())
    except (OverflowError, pa.ArrowInvalid):
        return pa.array([fitting(value) for value in values], pa.int64())


def run_folders(folder: Path | str) -> list[Path]:
    """The folders of runs below `folder`, which may be one itself. TraceError where there is none."""
    folder = Path(folder)
    below = (folder, *sorted(folder.glob("*/")), *sorted(folder.glob("date=*/run=*/")))
    found = [path for path in below if any(path.glob("signals-*.parquet"))]
    if not found:
        what = "is no folder" if not folder.is_dir() else "has no runs: no date=<day>/run=<run>/signals-*.parquet in it"
        raise TraceError(f"{folder}: {what}")
    return found


def metadata_of(run: Path | str) -> dict[str, Any] | None:
    """What is known of the run in that folder; None where nothing is. One that was killed is not `complete`."""
    for name in ("metadata.json", "_metadata.json"):
        try:
            facts = json.loads((Path(run) / name).read_text(encoding="utf-8"))
        except (OSError, ValueError):  # not there, or cut off
            continue
        if isinstance(facts, dict):
            return facts
    return None


def check_files(folder: Path | str) -> list[Path]:
    """The trace files below `folder`. TraceError names the first that can't be read or has another schema."""
    files = [file for run in run_folders(folder) for file in sorted(run.glob("signals-*.parquet"))]
    for file in files:
        _check(file)
    return files


def _check(file: Path) -> None:
    pa, parquet = _arrow()
    try:
        found = parquet.read_schema(file)
    except (OSError, pa.ArrowException) as error:
        raise _unread(file, error) from error
    version = (found.metadata or {}).get(_VERSION, b"1").decode(errors="replace")
    if not version.isdecimal() or int(version) > SCHEMA:
        raise TraceError(f"{file}: has schema {version}, and this version reads up to {SCHEMA}: a newer one is needed")
    kinds = {field.name: field.type for field in found}
    for field in schema():
        if field.name not in kinds and int(version) < _SINCE.get(field.name, 1):
            continue
        if kinds.get(field.name) != field.type:
            has = kinds.get(field.name, "none")
            raise TraceError(f"{file}: is no trace: column {field.name!r} should be {field.type}, and is {has}")


def read_trace(folder: Path | str) -> list[Record]:
    """All records below `folder`, in order of run and `begin`; for traces that fit into memory.

    TraceError names a file that can't be read, or is no trace.
    """
    records = [record for file in check_files(folder) for record in _records(file)]
    return sorted(records, key=lambda record: (record.run, record.begin))


def _records(file: Path) -> list[Record]:
    pa, parquet = _arrow()
    try:
        table = parquet.ParquetFile(file).read(columns=list(Record._fields))  # those that there are
    except (OSError, pa.ArrowException) as error:
        raise _unread(file, error) from error
    return [Record(**{**dict.fromkeys(_SINCE), **row}) for row in table.to_pylist()]


def _unread(file: Path, error: Exception) -> TraceError:
    return TraceError(f"{file}: is no whole Parquet file ({next(iter(str(error).splitlines()), '')})")
