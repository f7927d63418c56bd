"""Compacted runs: the same records and verdict, whatever the files were, and wherever a call is killed or fails."""

from __future__ import annotations

import errno
import json
import os
import random
import resource
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from breaches import element, request, trace
from hypothesis import given, settings
from hypothesis import strategies as st
from judges import by_reference, rows_of, same
from random_traces import dirty, likely, shuffled
from sinks import Sink
from strategies import traces
from typer.testing import CliRunner

from reactive_runtime import Flow
from reactive_runtime._cli.commands import app
from reactive_runtime.errors import TraceError
from reactive_runtime.judging import _compacting, _sorting, judge_runs, plan
from reactive_runtime.judging._compacting import Compacted, Limits, compact, compact_run
from reactive_runtime.judging._tally import tally
from reactive_runtime.testing import Record
from reactive_runtime.testing.trace import TraceWriter, check_files, holds, metadata_of, read_trace, table_of

LITTLE = Limits(held=40, at_once=2, judged=60, group=20)


@pytest.fixture(autouse=True, scope="module")
def _small_blocks() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_sorting, "_BLOCK", 16)
        yield


def run_of(folder: Path, parts: Sequence[Sequence[Record]], **metadata: Any) -> Path:
    """A complete run that has a file for each of the parts."""
    folder = folder / "date=2026-11-29" / "run=run"
    folder.mkdir(parents=True)
    files, checksums = {}, {}
    for number, part in enumerate(parts):
        file = folder / f"signals-{number:05}.parquet"
        parquet.write_table(table_of(part), file, row_group_size=9)
        files[file.name] = len(part)
        checksums[file.name] = sha256(file.read_bytes()).hexdigest()
    held = {"records": sum(files.values()), "files": files, "checksums": checksums, "complete": True}
    word = {"run": "run", "identity": {"random": "1"}, "schema": 4, "seed": 7, **held, **metadata}
    (folder / "metadata.json").write_text(json.dumps({key: of for key, of in word.items() if of is not None}))
    return folder


def some(seed: int, parts: int = 9, most: int = 20) -> list[list[Record]]:
    records = shuffled(random.Random(seed), likely(random.Random(seed), "run", most))
    return [records[at::parts] for at in range(parts)]


def counted(folder: Path) -> Counter[Record]:
    return Counter(read_trace(folder))


def names(folder: Path) -> list[str]:
    return sorted(item.name for item in folder.iterdir())


def is_compacted(folder: Path) -> None:
    """The folder has the files of the run in order, and nothing else."""
    held = holds(folder)
    assert names(folder) == sorted(["metadata.json", *(file.name for file in held.files)])
    assert "discarded" not in (metadata_of(folder) or {})
    tables = [parquet.read_table(file, columns=["subscription", "begin"]) for file in held.files]
    keys = list(zip(*pa.concat_tables(tables).to_pydict().values(), strict=True))
    assert keys == sorted(keys)


# -- the same verdict -----------------------------------------------------------------------------------------


@settings(max_examples=20, deadline=None)
@given(st.data())
def test_any_records_in_any_files_have_the_same_verdict(tmp_path_factory: Any, data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("runs")
    seed = data.draw(st.integers(0, 2**32))
    if data.draw(st.booleans()):
        records = data.draw(traces(most=4))
    else:
        records = data.draw(st.sampled_from([likely, dirty]))(random.Random(seed), "run", 12)
    records = [item._replace(run="run", signal=item.signal or "") for item in records]  # it may not be null
    rng = random.Random(seed)
    parts = data.draw(st.integers(2, 12))
    split: list[list[Record]] = [[] for _ in range(parts)]
    for item in shuffled(rng, records):
        split[rng.randrange(parts)].append(item)
    run = run_of(folder, split)
    before, had = rows_of(judge_runs([run])), counted(run)
    limits = Limits(*(data.draw(st.sampled_from(of)) for of in ([20, 9_999], [2, 48], [30, 9_999], [8, 999])))
    done = compact_run(run, size=data.draw(st.sampled_from([1, 9_000, 1 << 30])), limits=limits)
    assert (done.files, done.left) == (parts, len(holds(run).files))
    same(rows_of(judge_runs([run])), before, records)
    same(before, by_reference(records), records)
    assert counted(run) == had
    is_compacted(run)


def test_what_was_recorded_becomes_one_file(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path, "run", {"seed": 3})
    for _ in range(5):
        writer.recorder().wrap(Flow.range(50), ascending=True).subscribe(Sink())
        writer.flush()
    writer.close({"seconds": 9})
    had, before = counted(tmp_path), metadata_of(writer.path) or {}
    assert len(before["files"]) > 1
    done = compact_run(writer.path)
    assert (done.files, done.left, done.records) == (len(before["files"]), 1, len(had))
    assert counted(tmp_path) == had
    after = metadata_of(writer.path) or {}
    changed = {"files", "checksums", "compacted"}
    assert {key: of for key, of in after.items() if key not in changed} == {
        key: of for key, of in before.items() if key not in changed
    }
    ((name, rows),) = after["files"].items()
    assert rows == after["records"]
    assert after["checksums"][name] == sha256((writer.path / name).read_bytes()).hexdigest()
    assert compact_run(writer.path).left == 1
    assert metadata_of(writer.path) == after
    is_compacted(writer.path)


def test_files_have_the_size_that_is_asked_for(tmp_path: Path) -> None:
    run = run_of(tmp_path, some(1, 9, 300))
    had = sum(file.stat().st_size for file in run.glob("*.parquet"))
    compact_run(run, size=20_000, limits=LITTLE)
    sizes = [file.stat().st_size for file in sorted(run.glob("signals-*"))]
    assert 2 <= len(sizes) <= had // 20_000
    assert min(sizes) >= 20_000
    left = names(run)
    compact_run(run, size=15_000, limits=LITTLE)
    assert names(run) == left  # they are large enough
    assert compact_run(run, limits=LITTLE).left == 1
    is_compacted(run)


def test_ranges_read_sorted_files_once(tmp_path: Path) -> None:
    of_each = [trace(request(1, 3, 4), element(0, 5, 6), subscription=number, run="run") for number in range(60)]
    records = shuffled(random.Random(1), [item for items in of_each for item in items])
    run = run_of(tmp_path, [records[at::5] for at in range(5)])
    assert plan(check_files(run), most=20).way == "moved"
    compact_run(run, limits=Limits(group=15))
    in_order = plan(check_files(run), most=20)
    assert in_order.way == "ranges"
    assert in_order.again < 2


def test_files_of_older_versions_become_ones_of_this(tmp_path: Path) -> None:
    """Version 1 had no `depth`, `late_signals`, `large_value` and `none`; its metadata had no `files`."""
    run = run_of(tmp_path, some(3), files=None, checksums=None, schema=1)
    for file in run.glob("*.parquet"):
        table = parquet.read_table(file).drop_columns(["depth", "late_signals", "large_value", "none"])
        parquet.write_table(table.replace_schema_metadata({"reactive_runtime.trace": "1"}), file)
    had, before = counted(run), tally(check_files(run))
    compact_run(run, limits=LITTLE)
    assert counted(run) == had
    assert tally(check_files(run)) == before
    assert holds(run).checksums
    assert (metadata_of(run) or {})["schema"] == 4
    is_compacted(run)


def test_many_tables_in_memory_are_put_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_sorting, "_SMALL", 3)
    run = run_of(tmp_path, some(4, 20))
    had = counted(run)
    compact_run(run)
    assert counted(run) == had
    is_compacted(run)


def test_long_texts_go_to_disk_sooner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_sorting, "_HELD_BYTES", 5_000)
    parts = [[item._replace(error="x" * 400) for item in part] for part in some(5)]
    run = run_of(tmp_path, parts)
    had = counted(run)
    made: list[Path] = []
    put_away = _sorting.Sorting._put_away

    def counting(*of: Any) -> Any:
        stretch = put_away(*of)
        made.append(stretch.file)
        return stretch

    monkeypatch.setattr(_sorting.Sorting, "_put_away", counting)
    compact_run(run)
    assert len(made) > 5
    assert counted(run) == had


# -- kills and faults -----------------------------------------------------------------------------------------


class KilledError(BaseException):
    """The process is gone: nothing that it would do changes the disk."""


class Disk:
    """`os` for the modules that compact: the n-th operation that changes the disk is the last, or fails."""

    def __init__(self, last: int, error: OSError | None = None) -> None:
        self._last = last
        self._error = error
        self.count = 0
        self._open: set[int] = set()
        self.failed_at = ""

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def _counted(self, what: str) -> bool:
        """Whether the operation is done."""
        self.count += 1
        if self._error is None and self.count > self._last:
            raise KilledError
        if self.count == self._last:
            self.failed_at = what
        return self.count != self._last

    def _fault(self) -> BaseException:
        return KilledError() if self._error is None else self._error

    def open(self, file: Path, flags: int, mode: int = 0o777) -> int:
        if flags & os.O_CREAT and not self._counted(f"open {file}"):
            raise self._fault()
        made = os.open(file, flags, mode)
        self._open.add(made)
        return made

    def close(self, file: int) -> None:
        self._open.discard(file)
        os.close(file)

    def write(self, file: int, data: memoryview) -> int:
        if not self._counted("write"):
            os.write(file, data[: len(data) // 2])
            raise self._fault()
        return os.write(file, data)

    def fsync(self, file: int) -> None:
        if not self._counted("fsync"):
            raise self._fault()

    def replace(self, draft: Path, file: Path) -> None:
        if not self._counted(f"replace {file}"):
            raise self._fault()
        os.replace(draft, file)

    def unlink(self, file: Path) -> None:
        if not self._counted(f"unlink {file}"):
            raise self._fault()
        os.unlink(file)

    def reap(self) -> None:
        """Close the files of the process that was killed: so its lock is free."""
        for file in self._open:
            os.close(file)
        self._open = set()


def on(disk: Disk, run: Path, **options: Any) -> Compacted | BaseException:
    """Compact there: what became of it."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (_compacting, _sorting):
            patch.setattr(module, "os", disk)
        try:
            return compact_run(run, limits=FEW, **options)
        except (KilledError, TraceError) as error:
            return error
        finally:
            disk.reap()


def copied(run: Path, to: Path) -> Path:
    made = to / "date=2026-11-29" / "run=run"
    made.mkdir(parents=True)
    for file in run.iterdir():
        (made / file.name).write_bytes(file.read_bytes())
    return made


PARTS = some(9, 4, 8)
SIZE = 2_000
FEW = Limits(held=60, at_once=2, group=20)
"""Two sorted parts, which are merged to several files."""


def operations(run: Path, to: Path) -> tuple[int, int]:
    """How many operations there are in a call that succeeds, and how many files it leaves."""
    disk = Disk(10**9)
    done = on(disk, copied(run, to), size=SIZE)
    assert isinstance(done, Compacted)
    assert done.left > 1
    return disk.count, done.left


def test_a_kill_at_any_operation_leaves_the_verdict(tmp_path: Path) -> None:
    """The next call leaves a compacted run, whether it had to finish, or to begin anew."""
    origin = run_of(tmp_path / "origin", PARTS)
    had, before = counted(origin), tally(check_files(origin))
    count, left = operations(origin, tmp_path / "whole")
    as_it_was = 0
    for last in range(1, count + 1):
        run = copied(origin, tmp_path / str(last))
        disk = Disk(last)
        assert isinstance(on(disk, run, size=SIZE), KilledError)
        assert tally(check_files(run)) == before, disk.failed_at
        assert counted(run) == had, disk.failed_at
        as_it_was += holds(run).files[0].name == "signals-00000.parquet"
        compact_run(run, size=SIZE, limits=FEW)
        assert counted(run) == had, disk.failed_at
        assert len(holds(run).files) == left
        is_compacted(run)
    assert 15 < as_it_was < count - 10  # both sides of the step at which the new files are the run


@pytest.mark.parametrize("seed", range(4))
def test_kills_of_the_calls_that_go_on_leave_the_verdict(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    run = run_of(tmp_path / "origin", PARTS)
    had, before = counted(run), tally(check_files(run))
    count, _ = operations(run, tmp_path / "whole")
    for _ in range(6):
        on(Disk(rng.randint(1, count)), run, size=SIZE)
        assert tally(check_files(run)) == before
        assert counted(run) == had
    compact_run(run, size=SIZE, limits=FEW)
    is_compacted(run)
    assert counted(run) == had


def test_an_error_at_any_operation_names_a_file_and_loses_nothing(tmp_path: Path) -> None:
    origin = run_of(tmp_path / "origin", PARTS)
    had = counted(origin)
    count, _ = operations(origin, tmp_path / "whole")
    unnamed = 0
    for last in range(1, count + 1):
        run = copied(origin, tmp_path / str(last))
        disk = Disk(last, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
        found = on(disk, run, size=SIZE)
        if isinstance(found, TraceError):
            assert str(found).startswith(str(run)), disk.failed_at
            assert "No space left on device" in str(found)
            assert "\n" not in str(found)
        else:
            unnamed += 1
            assert disk.failed_at == f"unlink {run / '_compact.lock'}"
        assert counted(run) == had, disk.failed_at
        assert [name for name in names(run) if name.startswith("_compact-")] == [], disk.failed_at
        compact_run(run, size=SIZE, limits=FEW)
        assert counted(run) == had
        is_compacted(run)
    assert unnamed == 1


def test_files_are_removed_only_where_the_others_are_whole(tmp_path: Path) -> None:
    """A run that was killed before it removed the old files, and whose new one was damaged since, keeps both."""
    run = run_of(tmp_path, PARTS)
    disk = Disk(10**9)
    unlink, gone = disk.unlink, []

    def killed_at_old(file: Path) -> None:
        if file.name == "signals-00000.parquet":
            gone.append(file)
        if gone:
            raise KilledError
        unlink(file)

    disk.unlink = killed_at_old  # type: ignore[method-assign]
    assert isinstance(on(disk, run), KilledError)
    (new,) = holds(run).files
    data = bytearray(new.read_bytes())
    data[len(data) // 2] ^= 1
    new.write_bytes(data)
    there = names(run)
    with pytest.raises(TraceError, match=r"signals-00004\.parquet: has changed since it was written"):
        compact_run(run)
    assert [name for name in names(run) if name != "_compact.lock"] == [
        name for name in there if name not in ("_compact.lock", "_compact-metadata.json")
    ]


@pytest.mark.parametrize("step", ["_tell", "_remove", "_check"])
def test_a_process_that_is_killed_leaves_the_verdict(tmp_path: Path, step: str) -> None:
    run = run_of(tmp_path, PARTS)
    had = counted(run)
    program = f"""
import os, signal, sys
from pathlib import Path
from reactive_runtime.judging import _compacting
step = _compacting.{step}
def killed(*of):
    step(*of)
    os.kill(os.getpid(), signal.SIGKILL)
_compacting.{step} = killed
_compacting.compact_run(Path(sys.argv[1]))
"""
    done = subprocess.run([sys.executable, "-c", program, str(run)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert "_compact.lock" in names(run)
    assert counted(run) == had
    compact_run(run)
    assert counted(run) == had
    is_compacted(run)


def test_a_limit_on_the_size_of_files_is_one_line(tmp_path: Path) -> None:
    """The system refuses the write, as a full disk does."""
    run = run_of(tmp_path, PARTS)
    had, there = counted(run), names(run)
    limited = [sys.executable, "-m", "reactive_runtime", "compact", str(tmp_path)]
    done = subprocess.run(
        limited,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (3_000, 3_000)),
    )
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr == f"UNABLE   {run}/_compact-00000.parquet: can't be written: File too large\n"
    assert names(run) == there
    assert counted(run) == had


# -- bad input ------------------------------------------------------------------------------------------------


def test_another_verdict_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = run_of(tmp_path, PARTS)
    there = {file.name: file.read_bytes() for file in run.iterdir()}
    tables = _sorting.Sorting.sorted
    monkeypatch.setattr(_sorting.Sorting, "sorted", lambda *of: (table.slice(1) for table in tables(*of)))
    with pytest.raises(TraceError, match=r"run=run: compacted, it would have another verdict \(records: [\d,]+ before"):
        compact_run(run)
    assert {file.name: file.read_bytes() for file in run.iterdir()} == there


def test_a_field_that_differs_is_another_verdict(tmp_path: Path) -> None:
    records = likely(random.Random(8), "run", 9)
    at = next(place for place, item in enumerate(records) if item.value is not None)
    for changed in ({"value": 2**70}, {"thread": 9}, {"scenario": "other"}, {"late_signals": 7}, {"run": "other"}):
        others = [*records[:at], records[at]._replace(**changed), *records[at + 1 :]]
        folders = [run_of(tmp_path / f"{name} {changed}", [of]) for name, of in (("a", records), ("b", others))]
        one, other = (tally(check_files(folder)) for folder in folders)
        assert one.unlike(other)
        assert one.unlike(one) == ""


def command(*arguments: object) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, ["compact", *map(str, arguments)])
    return done.exit_code, done.stdout, done.stderr


def test_the_command_says_what_it_did(tmp_path: Path) -> None:
    run = run_of(tmp_path, PARTS)
    had = counted(run)
    status, said, _ = command(tmp_path, "--dry-run")
    assert (status, len(names(run))) == (0, 5)
    assert said.startswith(f"compact  {run}: 4 files, ")
    assert said.endswith(": would be 1\n")
    status, said, _ = command(tmp_path)
    assert status == 0
    assert said.startswith(f"compact  {run}: 4 files, ")
    assert ": now 1, " in said
    assert counted(run) == had
    assert command(tmp_path) == (0, "", "")
    assert command(tmp_path, "--size", "0")[0] == 2


def test_runs_that_are_not_complete_are_left_alone(tmp_path: Path) -> None:
    """One that is being written, one that was cut off, one without metadata, and files of other things."""
    writer = TraceWriter(tmp_path, "written")
    for _ in range(3):
        writer.recorder().wrap(Flow.range(9)).subscribe(Sink())
        writer.flush()
    cut_off = run_of(tmp_path / "cut off", PARTS, complete=False, watermark=9)
    (cut_off / "metadata.json").rename(cut_off / "_metadata.json")
    bare = run_of(tmp_path / "bare", PARTS)
    (bare / "metadata.json").unlink()
    whole = run_of(tmp_path / "whole", PARTS)
    (whole / "notes.txt").write_text("by hand")
    (tmp_path / "more.parquet").write_text("no trace")
    there = {folder: names(folder) for folder in (writer.path, cut_off, bare)}
    status, said, wrong = command(tmp_path)
    assert (status, wrong) == (0, "")
    assert f"note     {writer.path}: was cut off, or is being written: it is left alone\n" in said
    assert f"note     {cut_off}: was cut off, or is being written: it is left alone\n" in said
    assert f"note     {bare}: has no metadata: it is left alone\n" in said
    assert f"compact  {whole}: 4 files, " in said
    assert {folder: names(folder) for folder in there} == there
    assert (whole / "notes.txt").read_text() == "by hand"
    assert (tmp_path / "more.parquet").read_text() == "no trace"
    writer.close()
    assert f"compact  {writer.path}: 3 files, " in command(tmp_path)[1]


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda run: (run / "signals-00002.parquet").unlink(), "signals-00002.parquet: is not there"),
        (lambda run: (run / "signals-00002.parquet").write_bytes(b"PAR1PAR1"), "has changed since it was written"),
        (lambda run: (run / "signals-00009.parquet").touch(), "is not among the files that the run says it holds"),
        (lambda run: (run / "metadata.json").write_text("{"), "metadata.json: is no JSON"),
        (lambda run: respoken(run, discarded=["../x"]), "metadata.json: 'discarded' should be names of files"),
        (lambda run: respoken(run, discarded=["signals-00001.parquet"]), "that the run does not hold, and has 'sig"),
        (lambda run: respoken(run, discarded="all"), "metadata.json: 'discarded' should be a list, and is 'all'"),
        (lambda run: rewritten(run, more=True), "has a column 'more', which a trace has not: it would be lost"),
        (lambda run: rewritten(run, null="signal"), "column 'signal' has nulls; docs/traces.md says which may"),
        (lambda run: rewritten(run, null="thread"), "column 'thread' has nulls; docs/traces.md says which may"),
    ],
)
def test_a_damaged_run_is_a_line_and_the_others_are_compacted(tmp_path: Path, spoil: Any, why: str) -> None:
    run = run_of(tmp_path / "a", PARTS)
    spoil(run)
    there = {file.name: file.read_bytes() for file in run.iterdir()}
    status, said, wrong = command(tmp_path)
    assert (status, said, wrong.count("\n")) == (4, "", 1)
    assert wrong.startswith(f"UNABLE   {run}")
    assert why in wrong
    assert {file.name: file.read_bytes() for file in run.iterdir()} == there
    other = run_of(tmp_path / "b", PARTS)
    status, said, wrong = command(tmp_path)
    assert (status, wrong.count("\n")) == (3, 1)
    assert said.startswith(f"compact  {other}: 4 files, ")


def respoken(run: Path, **metadata: Any) -> None:
    (run / "metadata.json").write_text(json.dumps({**(metadata_of(run) or {}), **metadata}))


def rewritten(run: Path, more: bool = False, null: str = "") -> None:
    """One of its files is by another writer."""
    file = run / "signals-00002.parquet"
    table = parquet.read_table(file)
    if more:
        table = table.append_column("more", pa.nulls(len(table), pa.int64()))
    else:
        at, field = table.column_names.index(null), table.schema.field(null)
        table = table.set_column(at, field.with_nullable(True), pa.nulls(len(table), field.type))
    parquet.write_table(table, file)
    word = metadata_of(run) or {}
    respoken(run, checksums={**word["checksums"], file.name: sha256(file.read_bytes()).hexdigest()})


def test_a_folder_without_runs_is_a_line(tmp_path: Path) -> None:
    status, said, wrong = command(tmp_path)
    assert (status, said) == (4, "")
    assert wrong.startswith(f"reactive-runtime: {tmp_path}: has no runs: ")
    assert command(tmp_path / "none")[0] == 4


def test_no_right_to_write_is_a_line(tmp_path: Path) -> None:
    """As the system says it also where this process may do anything."""
    run = run_of(tmp_path, PARTS)
    there = names(run)
    found = on(Disk(1, OSError(errno.EACCES, os.strerror(errno.EACCES))), run)
    assert str(found) == f"{run}/_compact.lock: can't be written: Permission denied"
    assert names(run) == there


def test_a_file_that_cannot_be_read_is_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = run_of(tmp_path, PARTS)

    def broken(file: Path) -> str:
        raise OSError(errno.EIO, os.strerror(errno.EIO), str(file))

    there = names(run)
    monkeypatch.setattr(_compacting, "checksum_of", broken)
    draft = run / "_compact-00000.parquet"
    assert command(tmp_path) == (4, "", f"UNABLE   {draft}: can't be read: Input/output error\n")
    assert names(run) == there


def test_a_run_that_is_not_complete_is_refused(tmp_path: Path) -> None:
    run = run_of(tmp_path, PARTS, complete=False, watermark=9)
    with pytest.raises(TraceError, match="run=run: is not complete: it is left alone"):
        compact_run(run)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_a_line(tmp_path: Path) -> None:
    run = run_of(tmp_path, PARTS)
    run.chmod(0o500)
    try:
        assert command(tmp_path) == (
            4, "", f"UNABLE   {run}/_compact.lock: can't be written: Permission denied\n",
        )  # fmt: skip
    finally:
        run.chmod(0o700)


def test_a_second_call_meanwhile_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = run_of(tmp_path, PARTS)
    check, met = _compacting._check, []

    def meanwhile(*of: Any) -> None:
        met.append(command(tmp_path))
        check(*of)

    monkeypatch.setattr(_compacting, "_check", meanwhile)
    assert compact_run(run).left == 1
    assert met == [(4, "", f"UNABLE   {run}: another process compacts it: wait for that\n")]


def test_a_run_under_two_names_is_compacted_once(tmp_path: Path) -> None:
    run = run_of(tmp_path / "runs", PARTS)
    (tmp_path / "runs" / "link").symlink_to(run)
    said: list[object] = []
    (done,) = compact(tmp_path / "runs", note=said.append, unable=said.append)
    assert said == []
    assert (done.folder, done.files, done.left) == (run, 4, 1)
