"""Folders of this machine and of other file systems, listed in pages; files examined, cheap checks first."""

from __future__ import annotations

import json
import random
import shutil
import socket
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from breaches import element, request, trace

from reactive_runtime.errors import TraceError
from reactive_runtime.judging import _examining as examining
from reactive_runtime.judging import _stores as stores
from reactive_runtime.judging._examining import GROUP, HELD, WRONG, check_run, examined
from reactive_runtime.judging._files import footers, read
from reactive_runtime.judging._stores import FOLDER, LISTED, RUN, FewFiles, few, pages, parquet_in, runs_in
from reactive_runtime.testing.trace import checked, holds, run_folders, table_of

RECORDS = trace(request(9, 3, 4), *(element(n, 5 + 2 * n, 6 + 2 * n) for n in range(9)))


def a_run(folder: Path, **facts: Any) -> Path:
    folder.mkdir(parents=True)
    parquet.write_table(table_of(RECORDS), folder / "signals-00000.parquet", write_page_checksum=True)
    checksum = sha256((folder / "signals-00000.parquet").read_bytes()).hexdigest()
    held = {"files": {"signals-00000.parquet": len(RECORDS)}, "checksums": {"signals-00000.parquet": checksum}}
    (folder / "metadata.json").write_text(json.dumps({"run": folder.name, "complete": True, **held, **facts}))
    return folder


def all_rows(root: Path, look: Callable[..., Any] = runs_in) -> list[dict[str, Any]]:
    """Rows of LISTED of all levels below the root."""
    found, left = [], [(0, str(root))]
    while left:
        level, folder = left.pop()
        for row in look(0, level, folder, frozenset()):
            known = dict(zip(LISTED.names, row, strict=True))
            if known["kind"] == FOLDER:
                left.append((known["level"], known["folder"]))
            else:
                found.append(known)
    return found


def test_a_folder_is_listed_a_page_at_a_time(tmp_path: Path) -> None:
    for number in range(2_500):
        (tmp_path / f"file-{number}").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    found = list(pages(str(tmp_path)))
    assert [len(page) for page in found] == [1_000, 1_000, 502]
    others = {entry for page in found for entry in page if not entry.is_file}
    assert others == {("folder", False, False), ("link", False, True)}
    assert list(pages(str(tmp_path / "file-1"))) == []


@pytest.mark.parametrize("look", [runs_in, parquet_in])
def test_a_folder_that_one_machine_does_not_see_is_named(look: Callable[..., Any], tmp_path: Path) -> None:
    gone = str(tmp_path / "date=1")
    (row,) = look(0, 1, gone, frozenset())  # another task has listed it
    known = dict(zip(LISTED.names, row, strict=True))
    assert (known["kind"], known["folder"]) == (stores.UNABLE, gone)
    there = f"{gone}: was listed, and is not there for a task on {socket.gethostname()}: "
    assert known["text"].startswith(there)
    assert list(look(0, 0, gone, frozenset())) == []  # the driver says what is wrong with what was named
    (tmp_path / "latest").symlink_to(tmp_path / "nowhere")
    assert list(look(0, 0, str(tmp_path), frozenset())) == []


@pytest.mark.parametrize("seed", range(20))
def test_tasks_find_the_runs_that_run_folders_finds(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    for number in range(6):
        depth = rng.randrange(4)
        names = [rng.choice(["date=1", "run=2", "a", "b"]) for _ in range(depth)]
        folder = tmp_path.joinpath(*names, f"{rng.choice(['run=', 'x'])}1{number}")
        a_run(folder)
        if rng.random() < 0.3:
            (folder / "signals-00000.parquet").unlink()
        if rng.random() < 0.3:
            (folder / "metadata.json").unlink()
    (tmp_path / "verdict" / "runs" / "run=2").mkdir(parents=True)
    (tmp_path / "verdict" / "verdict.json").write_text("{}")
    rows = all_rows(tmp_path)
    try:
        expected = {str(folder) for folder in run_folders(tmp_path)}
    except TraceError:
        expected = set()
    assert {row["folder"] for row in rows if row["kind"] != stores.FILE} == expected
    for row in rows:
        if row["kind"] == RUN:
            held = holds(row["folder"])
            assert (row["run"], row["identity"], row["rows"]) == (held.run, held.identity, held.rows)


def test_hidden_files_are_no_traces(tmp_path: Path) -> None:
    for name in ("a.parquet", "_b.parquet", ".c.parquet", "d.txt", "x/e.parquet", "_x/f.parquet"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert sorted(row["file"] for row in all_rows(tmp_path, parquet_in)) == ["a.parquet", "e.parquet"]


def test_what_is_few_is_counted_no_further_than_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(30):
        a_run(tmp_path / f"run={number}")
    size = sum(file.stat().st_size for file in tmp_path.rglob("*.parquet"))
    assert few([str(tmp_path)], FewFiles(200, size))
    assert not few([str(tmp_path)], FewFiles(200, size - 1))
    assert not few([str(tmp_path)], FewFiles(20, size))
    assert not few(["s3://bucket/nights"], FewFiles())
    assert few([str(tmp_path / "nowhere")], FewFiles())


def cut(data: bytes) -> bytes:
    return data[:-8]


def turned(data: bytes) -> bytes:
    return data[:30] + bytes([data[30] ^ 1]) + data[31:]


def same(data: bytes) -> bytes:
    return data


@pytest.mark.parametrize("change", [same, cut, turned])
@pytest.mark.parametrize("whole", [0, 1 << 20], ids=["large", "small"])
def test_a_file_is_examined_as_it_is_checked(
    change: Callable[[bytes], bytes], whole: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(examining, "_WHOLE", whole)
    run = a_run(tmp_path / "run=a")
    file = run / "signals-00000.parquet"
    checksum = sha256(file.read_bytes()).hexdigest()
    file.write_bytes(change(file.read_bytes()))
    rows = examined(str(run), file.name, checksum, True)
    if change is same:
        assert [row.kind for row in rows] == [GROUP, HELD]
        (group,) = footers([file])
        assert (rows[0].rows, rows[0].run, rows[0].low, rows[0].high) == (group.rows, group.run, group.low, group.high)
        assert rows[1].checksum == (None if whole else checksum)
        check_run(str(run))
        return
    with pytest.raises(TraceError) as said:
        checked(holds(run))
    with pytest.raises(TraceError) as again:
        check_run(str(run))
    assert str(said.value) == str(again.value)
    if whole or change is cut:
        assert [(row.kind, row.text) for row in rows] == [(WRONG, str(said.value))]
    else:  # its bytes are read later
        (row,) = examining.changed(str(run), file.name, checksum)
        assert row.text == str(said.value)


def test_columns_of_each_file_are_looked_at_though_the_last_were_right(tmp_path: Path) -> None:
    run = a_run(tmp_path / "run=a")
    table = table_of(RECORDS)
    parquet.write_table(table.set_column(6, "thread", table["thread"].cast(pa.int32())), run / "signals-00001.parquet")
    known = examining.known_footers()
    assert examined(str(run), "signals-00000.parquet", None, True, known)[-1].kind == HELD
    (row,) = examined(str(run), "signals-00001.parquet", None, True, known)
    assert row.text is not None
    assert row.text.endswith("is no trace: column 'thread' should be int64, and is int32")


def test_another_file_system_is_listed_and_read(tmp_path: Path) -> None:
    run = a_run(tmp_path / "nights" / "run=a")
    system, _ = stores._system("mock://host")
    system.create_dir("nights/run=a")
    for file in run.iterdir():
        with system.open_output_stream(f"nights/run=a/{file.name}") as out:
            out.write(file.read_bytes())
    rows = all_rows(Path("unused"), lambda root, level, folder, none: runs_in(root, level, at(folder), none))
    (held,) = [row for row in rows if row["kind"] == RUN]
    assert held["folder"] == "mock://host/nights/run=a"
    assert held["run"] == "run=a"
    check_run(held["folder"])
    (file_row,) = [row for row in rows if row["kind"] == stores.FILE]
    found = examined(held["folder"], file_row["file"], file_row["checksum"], True)
    assert [row.kind for row in found] == [GROUP, HELD]
    (part,) = read(stores.below(held["folder"], file_row["file"]), [0])
    assert len(part) == len(RECORDS)
    shutil.rmtree(tmp_path / "nights")


def at(folder: str) -> str:
    return "mock://host/nights" if folder == "unused" else folder


def test_options_of_a_uri_stay_behind_the_path() -> None:
    root = "s3://bucket/nights?endpoint_override=localhost:5000&scheme=http"
    assert stores.below(root, "run=a") == "s3://bucket/nights/run=a?endpoint_override=localhost:5000&scheme=http"
    assert stores.below("/nights/", "run=a") == "/nights/run=a"
    assert stores.roots_of(["file:///a%20b", "/a b"]) == ["/a b"]
