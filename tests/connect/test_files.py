"""Files and objects: by demand and bounded in, whole or not at all out, and each error names its file and line."""

from __future__ import annotations

import gc
import gzip
import json
import logging
import math
import os
import threading
import traceback
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import fsspec  # type: ignore[import-untyped]
import pyarrow as pa
import pytest
from pyarrow import parquet as pq
from sinks import PATIENCE, Sink, until

from connect.failing_files import FailingFileSystem
from examples.connect import orders_in_files
from reactive_runtime import DeadLetter, Flow
from reactive_runtime.connect import files
from reactive_runtime.connect._files import place, text
from reactive_runtime.connect.files import (
    FilesError,
    arrow,
    csv,
    json_lines,
    lines,
    parquet,
    write_arrow,
    write_csv,
    write_json_lines,
    write_lines,
    write_parquet,
)
from reactive_runtime.hooks import captured


@pytest.fixture(autouse=True)
def fs() -> Iterator[type[FailingFileSystem]]:
    FailingFileSystem.reset()
    yield FailingFileSystem
    FailingFileSystem.goes_on.set()


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as pool:
        yield pool


@pytest.fixture(params=["local", "memory", "failing"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    fsspec.filesystem("memory").store.clear()
    return {"local": str(tmp_path), "memory": "memory://docs", "failing": "failing://me:geheim@host"}[request.param]


def put(url: str, data: bytes) -> str:
    with fsspec.open(url, "wb") as file:
        file.write(data)
    return url


def got(flow: Flow[Any]) -> list[Any]:
    return flow.to_list().block(timeout=PATIENCE) or []


def failure(flow: Flow[Any]) -> FilesError:
    with pytest.raises(FilesError) as raised:
        flow.to_list().block(timeout=PATIENCE)
    return raised.value


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


# -- in ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("portion", [1, 2, 3, 7, 1 << 18])
@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"a", ["a"]),
        (b"a\n", ["a"]),
        (b"a\r\nb\r\n\r\nc", ["a", "b", "", "c"]),
        (b"\n\na\n\n", ["", "", "a", ""]),
        ("ä€😀\n\x0b\u2028x\n".encode(), ["ä€😀", "\x0b\u2028x"]),
    ],
)
def test_the_lines_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, portion: int, data: bytes, expected: list[str]
) -> None:
    monkeypatch.setattr(text, "PORTION", portion)
    assert got(lines(put(str(tmp_path / "a.txt"), data))) == expected


@pytest.mark.parametrize(
    ("encoding", "data"),
    [("latin-1", b"\xe4\n"), ("utf-8-sig", "\ufeffä\nä\n".encode()), ("shift_jis", "ア\n".encode("shift_jis"))],
)
def test_encodings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoding: str, data: bytes) -> None:
    monkeypatch.setattr(text, "PORTION", 4)
    assert got(lines(put(str(tmp_path / "a.txt"), data), encoding=encoding)) == data.decode(encoding).splitlines()


def test_a_path_object_and_a_compressed_file(tmp_path: Path) -> None:
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(b"a\nb\n"))
    assert got(lines(path)) == ["a", "b"]
    other = tmp_path / "b"
    other.write_bytes(path.read_bytes())
    assert got(lines(other, compression="gzip")) == ["a", "b"]
    assert "'utf-8'" not in str(failure(lines(other)))
    path.write_bytes(gzip.compress(os.urandom(10_000))[:5_000])
    assert f"lines: {path}: line " in str(failure(lines(path, at_most=1_000_000)))


def test_a_file_of_zstandard_that_was_cut_off_is_an_error(tmp_path: Path) -> None:
    zstandard = pytest.importorskip("zstandard")
    content = [str(n * 7_919 % 100_003) for n in range(100_000)]
    data = "".join(f"{line}\n" for line in content).encode()
    frame = zstandard.ZstdCompressor().compress(data)
    unsized = zstandard.ZstdCompressor(write_checksum=True, write_content_size=False).compress(data)
    url = str(tmp_path / "a.zst")
    between = b"\x50\x2a\x4d\x18" + (5).to_bytes(4, "little") + b"hello"  # a frame without data
    assert got(lines(put(url, frame + between + unsized))) == content * 2
    assert got(lines(put(url, zstandard.ZstdCompressor().compress(b"\n" * 500_000)))) == [""] * 500_000
    assert got(lines(put(url, b""))) == []
    for whole in (frame, unsized):
        for left in (1, 4, 7, len(whole) // 3, len(whole) // 2, len(whole) - 4, len(whole) - 1):
            error = failure(lines(put(url, frame + whole[:left])))
            assert f"lines: {url}: line " in str(error)
            assert "can't be read" in str(error)
    assert "the compressed file ends too early" in str(failure(lines(put(url, frame[:-1]))))


def test_an_archive_with_several_files_is_an_error(tmp_path: Path) -> None:
    url = str(tmp_path / "a.zip")
    with zipfile.ZipFile(url, "w") as archive:
        archive.mkdir("folder")
        archive.writestr("folder/a.txt", "a\nb\n")
    assert got(lines(url)) == ["a", "b"]
    assert got(write_lines(Flow.just("c"), str(tmp_path / "b.zip"))) == [1]
    assert got(lines(str(tmp_path / "b.zip"))) == ["c"]
    with zipfile.ZipFile(url, "a") as archive:
        archive.writestr("b.txt", "c\n")
    error = str(failure(lines(url)))
    assert f"lines: {url}: it has 2 files, ['folder/a.txt', 'b.txt']: name one, as zip://name::{url}" in error
    assert got(lines(f"zip://b.txt::{url}")) == ["c"]
    open_files = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 0
    failure(lines(url))
    failure(lines(put(str(tmp_path / "c.zip"), b"no archive")))
    assert not open_files or len(os.listdir("/proc/self/fd")) <= open_files


def test_a_part_of_a_chain(tmp_path: Path) -> None:
    with fsspec.open(f"simplecache::file://{put(str(tmp_path / 'a'), b'x')}") as file:
        assert file.read() == b"x"
    assert got(lines(f"simplecache::file://{tmp_path}/a")) == ["x"]


@pytest.mark.parametrize("portion", [3, 1 << 18])
@pytest.mark.parametrize(("data", "number"), [(b"12345678\n", 1), (b"a\nb\n12345678", 3), (b"1234567\n12345678\nx", 2)])
def test_a_line_that_is_too_long_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, portion: int, data: bytes, number: int
) -> None:
    monkeypatch.setattr(text, "PORTION", portion)
    url = put(str(tmp_path / "a.txt"), data)
    sink = Sink()
    lines(url, at_most=7).subscribe(sink)
    assert sink.elements == data.decode().split("\n")[: number - 1]
    assert f"lines: {url}: line {number} has more than 7 bytes" in str(sink.error)
    assert got(lines(url, at_most=8)) == data.decode().split()


def test_a_line_without_end_needs_no_more_memory_than_its_bound(fs: type[FailingFileSystem]) -> None:
    url = put("failing://a", b"x" * 5_000_000)
    assert "line 1 has more than 600000 bytes" in str(failure(lines(url, at_most=600_000)))
    assert fs.read == 3 * text.PORTION
    assert fs.closed == fs.opened


@pytest.mark.parametrize("portion", [5, 1 << 18])
def test_bytes_that_are_no_text_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, portion: int) -> None:
    monkeypatch.setattr(text, "PORTION", portion)
    url = put(str(tmp_path / "a.txt"), b"abc\nde\xff\nf\n")
    sink = Sink()
    lines(url).subscribe(sink)
    assert sink.elements == ["abc"]
    assert f"{url}: line 2 is no utf-8, at its byte 3 (invalid start byte)" in str(sink.error)


def test_the_file_is_read_by_portions_on_demand(fs: type[FailingFileSystem]) -> None:
    url = put("failing://a", b"0123456789abcde\n" * 100_000)
    fs.opened = fs.closed = 0
    sink = Sink(demand=0)
    lines(url).subscribe(sink)
    assert fs.opened == 0
    for n in (1, 7, 1_000):
        sink.subscription.request(n)
        assert (fs.opened, fs.read) == (1, text.PORTION)
    sink.subscription.request(text.PORTION // 16)
    assert fs.read == 2 * text.PORTION
    sink.subscription.cancel()
    assert fs.closed == 1
    assert len(sink.elements) == 1 + 7 + 1_000 + text.PORTION // 16


def test_a_cancel_does_not_wait_for_a_read(fs: type[FailingFileSystem], pool: ThreadPoolExecutor) -> None:
    url = put("failing://a", b"a\n")
    fs.opened = fs.closed = 0
    fs.goes_on.clear()
    sink = Sink()
    lines(url).subscribe_on(pool).subscribe(sink)
    assert fs.waits.wait(PATIENCE)
    sink.subscription.cancel()  # comes back, while the read waits
    assert (fs.opened, fs.closed) == (1, 0)
    fs.goes_on.set()
    until(lambda: fs.closed == 1)
    assert sink.signals == [("on_subscribe",)]


def test_a_flow_that_is_garbage_closes_its_file(fs: type[FailingFileSystem]) -> None:
    url = put("failing://a", b"a\nb\n")
    fs.opened = fs.closed = 0
    sink = Sink(demand=1)
    lines(url).subscribe(sink)
    assert (fs.opened, fs.closed) == (1, 0)
    del sink
    until(lambda: gc.collect() >= 0 and fs.closed == 1)


def test_json_lines_and_blank_ones(tmp_path: Path) -> None:
    url = put(str(tmp_path / "a.jsonl"), b'{"n": 1}\n\n  \n[2]\r\n"three"\n')
    assert got(json_lines(url)) == [{"n": 1}, [2], "three"]
    assert got(json_lines(url, loads=len)) == [8, 3, 7]


@pytest.mark.parametrize("line", ["{", '{"n": 1} x', "nil", "[" * 100_000, "9" * 5_000], ids=range(5))
def test_a_malformed_line_of_json_is_named(tmp_path: Path, line: str) -> None:
    url = put(str(tmp_path / "a.jsonl"), f"1\n\n{line}\n2\n".encode())
    error = failure(json_lines(url))
    assert f"json_lines: {url}: line 3 is malformed" in str(error)
    assert isinstance(error.__cause__, ValueError | RecursionError)


def test_a_null_is_named(tmp_path: Path) -> None:
    url = put(str(tmp_path / "a.jsonl"), b"1\nnull\n")
    assert "line 2 is null" in str(failure(json_lines(url)))


def test_malformed_lines_become_dead_letters(tmp_path: Path) -> None:
    url = put(str(tmp_path / "a.jsonl"), b"1\n{\n3\n")
    dead: list[DeadLetter] = []
    flow = (
        lines(url).enumerate(1).on_error_continue(lambda line: line.map(lambda pair: json.loads(pair[1])), dead.append)
    )
    assert got(flow) == [1, 3]
    assert [letter.element for letter in dead] == [(2, "{")]


@pytest.mark.parametrize("portion", [3, 1 << 18])
def test_csv_with_names_and_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, portion: int) -> None:
    monkeypatch.setattr(text, "PORTION", portion)
    url = put(str(tmp_path / "a.csv"), 'id,name\r\n1,tea\r\n\r\n2,"two\r\n""lines"""\r\n3,"a,\u2028b"\r\n'.encode())
    assert got(csv(url)) == [
        {"id": "1", "name": "tea"},
        {"id": "2", "name": 'two\r\n"lines"'},
        {"id": "3", "name": "a,\u2028b"},
    ]
    assert got(csv(url, header=False))[0] == ["id", "name"]
    other = put(str(tmp_path / "b.csv"), b"1;2\n")
    assert got(csv(other, header=False, dialect={"delimiter": ";"})) == [["1", "2"]]
    assert got(csv(put(str(tmp_path / "c.csv"), b""))) == []
    lax = put(str(tmp_path / "d.csv"), b'1,"2"x\n')
    assert got(csv(lax, header=False, dialect={"strict": False})) == [["1", "2x"]]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"a,b\n1,2\n3\n", "line 3 has 1 fields, and there are 2 names, ['3']"),
        (b"a,b\n1,2,3\n", "line 2 has 3 fields"),
        (b'a,b\n1,2\n1,"2"x\n', "line 3 is malformed: "),
        (b'a,b\n1,"2\n3\n', "line 3 is malformed, of a row that begins in line 2: "),
        (b"a,a\n", "line 1 names a field twice"),
        (b'a,b\n1,"' + b"x" * 200_000 + b'"\n', "line 2 is malformed: field larger"),
        (b'a,b\n1,"' + b"2\n" * 200_000, "the row that begins in line 2 has more than 1000 characters"),
    ],
)
def test_a_malformed_row_of_csv_is_named(tmp_path: Path, data: bytes, said: str) -> None:
    url = put(str(tmp_path / "a.csv"), data)
    flow = csv(url, at_most=1_000 if "more than" in said else 1_000_000)
    assert f"csv: {url}: {said}" in str(failure(flow))


def test_batches_and_rows_of_arrow(tmp_path: Path) -> None:
    table = pa.table({"n": range(5_000)})
    for name, new in (("file", pa.ipc.new_file), ("stream", pa.ipc.new_stream)):
        url = str(tmp_path / name)
        with new(url, table.schema) as writer:
            writer.write_table(table, max_chunksize=2_000)
        assert [batch.num_rows for batch in got(arrow(url))] == [2_000, 2_000, 1_000]
        assert got(arrow(url, rows=True)) == table.to_pylist()
        data = Path(url).read_bytes()
        put(url, data[: len(data) // 2])
        assert f"arrow: {url}: " in str(failure(arrow(url)))
    assert "it is no Arrow file or stream" in str(failure(arrow(put(str(tmp_path / "x"), b"hello, world"))))


def test_batches_and_rows_of_parquet(tmp_path: Path) -> None:
    table = pa.table({"n": range(5_000), "t": ["x"] * 5_000})
    url = str(tmp_path / "a.parquet")
    pq.write_table(table, url, row_group_size=1_500)
    batches = got(parquet(url, batch=1_000, columns=["n"]))
    assert max(batch.num_rows for batch in batches) <= 1_000
    assert pa.Table.from_batches(batches) == table.select(["n"])
    assert got(parquet(url, rows=True)) == table.to_pylist()
    assert "it has no column m, but n, t" in str(failure(parquet(url, columns=["n", "m"])))
    assert "it is no Parquet file" in str(failure(parquet(put(str(tmp_path / "x"), b"hello, world"))))


def test_batches_are_read_on_demand(fs: type[FailingFileSystem]) -> None:
    table = pa.table({"n": range(1_000_000)})
    with fsspec.open("failing://a", "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=10_000)
    fs.opened = fs.closed = 0
    sink = Sink(demand=1)
    arrow("failing://a", rows=True).subscribe(sink)
    before = fs.read
    assert before < 400_000
    sink.subscription.request(9_000)
    assert fs.read == before
    sink.subscription.cancel()
    assert (fs.opened, fs.closed) == (1, 1)


# -- out -----------------------------------------------------------------------------------------------------------

WRITERS: dict[str, tuple[Callable[..., Flow[int]], Callable[..., Flow[Any]], list[Any]]] = {
    "lines": (write_lines, lines, ["a", "", "ä"]),
    "json": (write_json_lines, json_lines, [{"n": 1}, [2, None], "ä\n"]),
    "csv": (write_csv, csv, [{"id": "1", "name": 'a"\n,b'}, {"id": "2", "name": ""}]),
    "arrow": (write_arrow, lambda url: arrow(url, rows=True), [{"n": 1, "t": "a"}, {"n": 2, "t": None}]),
    "parquet": (write_parquet, lambda url: parquet(url, rows=True), [{"n": 1, "t": "a"}, {"n": 2, "t": None}]),
}


@pytest.mark.parametrize("kind", WRITERS)
def test_what_is_written_is_read(folder: str, kind: str) -> None:
    write, read, elements = WRITERS[kind]
    url = f"{folder}/a[1]*.{kind}"
    for count in (len(elements), 1):  # the second replaces the first
        assert got(write(Flow.from_iterable(elements[:count]), url)) == [count]
        assert got(read(url)) == elements[:count]
    fs, path = fsspec.url_to_fs(folder)
    assert len(fs.ls(path)) == 1


@pytest.mark.parametrize("kind", ["lines", "json", "csv"])
def test_what_is_written_compressed(tmp_path: Path, kind: str) -> None:
    write, read, elements = WRITERS[kind]
    url = str(tmp_path / "a.gz")
    assert got(write(Flow.from_iterable(elements), url)) == [len(elements)]
    assert gzip.decompress(Path(url).read_bytes())
    assert got(read(url)) == elements


def test_encodings_out(tmp_path: Path) -> None:
    path = tmp_path / "a"
    for encoding in ("utf-8-sig", "utf-16", "latin-1"):
        got(write_lines(Flow.just("ä", "b"), path, encoding=encoding))
        assert path.read_bytes() == "ä\nb\n".encode(encoding)


@pytest.mark.parametrize("kind", WRITERS)
def test_an_error_leaves_the_old_file_and_nothing_else(folder: str, kind: str) -> None:
    write, _, elements = WRITERS[kind]
    url = put(f"{folder}/a", b"old")
    with pytest.raises(ZeroDivisionError):
        got(write(Flow.concat(Flow.from_iterable(elements), Flow.error(ZeroDivisionError())), url))
    bad = failure(write(Flow.from_iterable([*elements, object()]), url))
    assert f"a: element {len(elements)} can't be written, <object" in str(bad)
    fs, path = fsspec.url_to_fs(folder)
    assert len(fs.ls(path)) == 1
    assert fs.cat_file(fs.ls(path, detail=False)[0]) == b"old"


@pytest.mark.parametrize("kind", WRITERS)
def test_a_cancel_leaves_the_old_file_and_nothing_else(
    folder: str, kind: str, fs: type[FailingFileSystem], pool: ThreadPoolExecutor
) -> None:
    write, _, elements = WRITERS[kind]
    url = put(f"{folder}/a", b"old")
    where, path = fsspec.url_to_fs(folder)
    sink = Sink()
    write(Flow.just(elements[0]).repeat(), url).subscribe_on(pool).subscribe(sink)
    until(lambda: len(where.ls(path)) == 2)
    sink.subscription.cancel()
    until(lambda: len(where.ls(path)) == 1)
    assert [where.cat_file(name) for name in where.ls(path, detail=False)] == [b"old"]
    assert sink.signals == [("on_subscribe",)]
    assert fs.opened == fs.closed


def test_a_cancel_closes_the_file_behind_a_write_under_way(
    fs: type[FailingFileSystem], pool: ThreadPoolExecutor, tmp_path: Path
) -> None:
    """The source has an executor, whose thread writes; the thread that cancels does not wait for it."""
    path = tmp_path / "a.gz"
    maps, goes_on, closed = threading.Event(), threading.Event(), threading.Event()

    def held(n: int) -> str:
        if n == 100:
            maps.set()
            assert goes_on.wait(PATIENCE)
            closed.set() if not names(tmp_path) else None
        return str(n)

    sink = Sink()
    with captured() as dropped:
        write_lines(Flow.range(1_000_000).subscribe_on(pool).map(held), path).subscribe(sink)
        assert maps.wait(PATIENCE)
        sink.subscription.cancel()
        goes_on.set()
        until(lambda: names(tmp_path) == [])
        pool.submit(int).result(PATIENCE)
    assert not closed.is_set()
    assert dropped == []


def test_a_file_of_gzip_without_a_byte_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(b"")
    assert "line 1 can't be read: the compressed file is empty" in str(failure(lines(path)))
    write_lines(Flow.empty(), path).run()
    assert got(lines(path)) == []


@pytest.mark.parametrize("what", ["write", "close", "move"])
def test_a_file_system_that_fails_leaves_nothing(fs: type[FailingFileSystem], what: str) -> None:
    fs.fails = {what}
    error = failure(write_lines(Flow.range(10_000).map(str), "failing://me:geheim@host/a"))
    assert "write_lines: failing://host/a: " in str(error)
    assert f"{what} of failing://***host/ failed" in str(error)
    assert fs.store == {}
    assert fs.opened == fs.closed == 1


def test_the_old_file_is_there_until_the_new_one_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("old\n")
    path.chmod(0o640)
    link = tmp_path / "link"
    link.symlink_to(path)
    seen = []
    flow = Flow.range(3).map(str).do_on_next(lambda _: seen.append(path.read_text()))
    assert got(write_lines(flow, link)) == [3]
    assert seen == ["old\n"] * 3
    assert path.read_text() == "0\n1\n2\n"
    assert path.stat().st_mode & 0o777 == 0o640
    assert link.is_symlink()
    assert names(tmp_path) == ["a", "link"]


def test_what_is_no_file_is_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        assert "is no regular file, and is not replaced" in str(failure(write_lines(Flow.just("a"), path)))
    assert "it can't be opened for writing" in str(failure(write_lines(Flow.just("a"), tmp_path / "no" / "a")))
    assert names(tmp_path) == ["pipe"]


def test_a_name_as_long_as_the_file_system_takes(tmp_path: Path) -> None:
    path = tmp_path / ("ä" * 120)
    assert got(write_lines(Flow.just("a"), path)) == [1]
    assert path.read_text() == "a\n"


def test_a_slow_file_holds_the_source_back(fs: type[FailingFileSystem], pool: ThreadPoolExecutor) -> None:
    made: list[int] = []
    sink = Sink()
    fs.goes_on.clear()
    with ThreadPoolExecutor(1) as other:
        flow = Flow.range(5_000).do_on_next(made.append).map(lambda n: f"{n:9999}").publish_on(other)
        write_lines(flow, "failing://a").subscribe_on(pool).subscribe(sink)
        assert fs.waits.wait(PATIENCE)
        assert len(made) <= 3 * 256
        fs.goes_on.set()
        assert sink.wait().elements == [5_000]
    assert [int(line) for line in got(lines("failing://a"))] == list(range(5_000))


def test_the_count_waits_for_demand(tmp_path: Path) -> None:
    sink = Sink(demand=0)
    write_lines(Flow.just("a"), tmp_path / "a").subscribe(sink)
    assert names(tmp_path) == []
    sink.subscription.request(1)
    assert sink.elements == [1]


@pytest.mark.parametrize(
    ("elements", "said"),
    [
        ([{"a": 1}, {"b": 1}], "its fields are ['b'], and not ['a']"),
        ([{"a": 1}, {"a": 1, "b": 1}], "its fields are ['a', 'b']"),
        ([{"a": 1}, [1, 2]], "it has 2 values"),
        ([[1], {"a": 1}], "the elements before it were sequences"),
        (["ab"], "must be a mapping or a sequence"),
        ([[1], []], "element 1 can't be written, []: it has no values"),
        ([{}, {}], "element 0 can't be written, {}: it has no values"),
    ],
)
def test_rows_that_do_not_fit_are_refused(tmp_path: Path, elements: list[Any], said: str) -> None:
    assert said in str(failure(write_csv(Flow.from_iterable(elements), tmp_path / "a.csv")))


def test_csv_of_sequences(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    got(write_csv(Flow.just((1, None)), path, ["a", "b"], dialect={"lineterminator": "\n"}))
    assert path.read_text() == "a,b\n1,\n"
    got(write_csv(Flow.just([1, 2]), path))
    assert path.read_bytes() == b"1,2\r\n"
    rows = [["a\rb", "c\nd"], ["\r\n", "e\r"]]
    for dialect in ({"lineterminator": "\n"}, {"lineterminator": "\n", "delimiter": ";", "quotechar": "'"}, {}):
        got(write_csv(Flow.from_iterable(rows), path, dialect=dialect))
        assert got(csv(path, header=False, dialect=dialect)) == rows
        assert path.read_bytes().endswith(b"\n" if dialect else b"\r\n")
    got(write_csv(Flow.empty(), path, ["a"]))
    assert got(csv(path)) == []
    names: Any = iter(["a", "b"])
    flow = write_csv(Flow.just((1, 2)), path, names)
    assert got(flow) == got(flow) == [1]
    assert got(csv(path)) == [{"a": "1", "b": "2"}]


def test_values_that_json_does_not_have_are_refused(tmp_path: Path) -> None:
    for element in (math.nan, {1, 2}):
        assert "element 1 can't be written" in str(failure(write_json_lines(Flow.just(1, element), tmp_path / "a")))
    flow = write_json_lines(Flow.just({"a": 1}), tmp_path / "a", dumps=lambda value: json.dumps(value, indent=1))
    assert "has a line end in it" in str(failure(flow))
    assert names(tmp_path) == []


@pytest.mark.parametrize("write", [write_arrow, write_parquet])
def test_tables_out_in_several_forms(tmp_path: Path, write: Callable[..., Flow[int]]) -> None:
    read = arrow if write is write_arrow else parquet
    url = str(tmp_path / "a")
    table = pa.table({"n": range(10)})
    elements = [{"n": 77}, table, *table.to_batches(), {"n": 78}, {}]
    assert got(write(Flow.from_iterable(elements), url)) == [23]
    assert [row["n"] for row in got(read(url, rows=True))] == [77, *range(10), *range(10), 78, None]
    assert got(write(Flow.empty(), url, schema=table.schema)) == [0]
    assert got(read(url, rows=True)) == []
    assert "a file without rows needs a schema" in str(failure(write(Flow.empty(), url)))
    unknown = failure(write(Flow.just({"n": 1}, {"m": 1}), url))
    assert "row 1 has columns that the file has not: ['m']" in str(unknown)
    wrong = failure(write(Flow.just({"n": 1}, {"n": "x"}), url, batch=1))
    assert "element 1 can't be written" in str(wrong)
    assert "rows 1 to 1 are no batch" in str(wrong)
    assert got(read(url, rows=True)) == []


@pytest.mark.parametrize("write", [write_arrow, write_parquet])
def test_no_column_of_a_row_is_lost(tmp_path: Path, write: Callable[..., Flow[int]]) -> None:
    read = arrow if write is write_arrow else parquet
    url = str(tmp_path / "a")
    assert "rows 0 to 1 have no columns; give a schema" in str(failure(write(Flow.just({}, {}), url)))
    batch = pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    assert got(write(Flow.just(batch), url)) == [1]
    assert got(read(url)) == [batch]
    assert f"{url}: it names a column twice, ['a', 'a']" in str(failure(read(url, rows=True)))
    got(write(Flow.just({"a": 1, "b": 2}), url))
    if write is write_parquet:
        columns: Any = iter(["a"])
        flow = parquet(url, columns=columns, rows=True)
        assert got(flow) == got(flow) == [{"a": 1}]


LATE = datetime(2020, 1, 1, 5, 6, 7, 123_456)
EAST = timezone(timedelta(hours=5))
LOSSES: list[tuple[Any, Any, Any]] = [
    (pa.int64(), 1, 1.5),
    (pa.int8(), 1.0, Decimal("1.5")),
    (pa.float32(), 0.1, 1e39),
    (pa.float16(), 1.0, 1e5),
    (pa.date32(), LATE.date(), LATE),
    (pa.date64(), datetime(2020, 1, 1), LATE),
    (pa.timestamp("s"), LATE.replace(microsecond=0), LATE),
    (pa.timestamp("ms", "UTC"), LATE.replace(microsecond=1_000, tzinfo=UTC), LATE.replace(tzinfo=UTC)),
    (pa.timestamp("us"), LATE.replace(tzinfo=UTC), LATE.replace(tzinfo=EAST)),
    (pa.timestamp("ms"), LATE.replace(microsecond=0), LATE.replace(microsecond=0, tzinfo=EAST)),
    (pa.time64("us"), LATE.time(), LATE.time().replace(tzinfo=EAST)),
    (pa.time32("s"), LATE.time().replace(microsecond=0), LATE.time()),
    (pa.duration("s"), timedelta(seconds=-1), timedelta(seconds=1.5)),
    (pa.struct([("a", pa.int64())]), {"a": 1}, {"a": 1, "b": 2}),
    (pa.struct([("a", pa.int64())]), {}, {"a": 1.5}),
    (pa.list_(pa.int64()), [1, None], [1, 1.5]),
    (pa.map_(pa.string(), pa.int64()), {"a": 1}, {"a": 1.5}),
    (pa.map_(pa.string(), pa.list_(pa.int64())), [("a", [1])], [("a", [1.5])]),
    (pa.dictionary(pa.int8(), pa.int64()), 1, 1.5),
]


@pytest.mark.parametrize(("kind", "good", "bad"), LOSSES, ids=[f"{n}-{kind}" for n, (kind, *_) in enumerate(LOSSES)])
def test_a_column_that_would_change_a_value_is_an_error(tmp_path: Path, kind: Any, good: Any, bad: Any) -> None:
    url = str(tmp_path / "a")
    schema = pa.schema([("n", pa.int64()), ("a", kind)])
    assert got(write_arrow(Flow.just({"n": 1, "a": good}, {"n": 2}, {"a": None}), url, schema=schema)) == [3]
    rows = [{"n": 1, "a": good}] * 3 + [{"n": 2, "a": bad}]
    error = failure(write_arrow(Flow.from_iterable(rows), url, schema=schema, batch=2))
    assert "row 3: column 'a' is " in str(error)
    assert "whole; give a schema" in str(error)


def test_rows_that_come_later_are_held_to_the_first_ones(tmp_path: Path) -> None:
    url = str(tmp_path / "a")
    rows = [{"n": 1}, {"n": 2}, {"n": 3.0}, {"n": 4.5}]
    assert "row 3: column 'n' is int64, which can't hold 4.5" in str(
        failure(write_arrow(Flow.from_iterable(rows), url, batch=2))
    )
    got(write_arrow(Flow.from_iterable(rows), url))
    assert got(arrow(url, rows=True)) == [{"n": 1.0}, {"n": 2.0}, {"n": 3.0}, {"n": 4.5}]


def test_a_row_that_python_has_not_is_named(tmp_path: Path) -> None:
    url = str(tmp_path / "a")
    batch = pa.RecordBatch.from_arrays([pa.array([253_402_300_800], pa.timestamp("s"))], names=["a"])
    got(write_arrow(Flow.just(batch), url))
    error = failure(arrow(url, rows=True))
    assert f"arrow: {url}: a record batch has a value that Python has not" in str(error)
    assert got(arrow(url)) == [batch]


def test_batches_of_rows(tmp_path: Path) -> None:
    url = str(tmp_path / "a")
    got(write_arrow(Flow.range(25).map(lambda n: {"n": n}), url, batch=10))
    assert [batch.num_rows for batch in got(arrow(url))] == [10, 10, 5]
    got(write_parquet(Flow.range(25).map(lambda n: {"n": n}), url, batch=10, settings={"compression": "zstd"}))
    assert pq.ParquetFile(url).metadata.num_row_groups == 3


# -- errors, arguments, memory -------------------------------------------------------------------------------------

SECRET = "sEcr3t/K3y"
URLS = [
    f"s3://AKIA:{SECRET}@bucket/dir/a.csv",
    "ftp://me:sEcr3t@127.0.0.1:1/a",
    "ftp://me:sEcr%743t@127.0.0.1:1/a",
    f"zip://a.csv::ftp://me:{SECRET}@host/a.zip",
    "https://127.0.0.1:1/a?X-Signature=sEcr3t&x=1",
    "failing://me:sEcr3t@host/a",
]


@pytest.mark.parametrize("url", URLS)
def test_credentials_are_not_shown(url: str, caplog: pytest.LogCaptureFixture, fs: type[FailingFileSystem]) -> None:
    caplog.set_level(logging.DEBUG)
    fs.said, fs.fails = url, {"read", "write"}
    put_anyway = fsspec.filesystem("failing")
    fs.fails = set()
    put_anyway.pipe_file("/a", b"a\n")
    fs.fails = {"read", "write"}
    for flow in (lines(url), write_lines(Flow.just("a"), url), parquet(url)):
        error = failure(flow)
        texts = [str(error), repr(error), *traceback.format_exception(error), flow.explain(), repr(flow), caplog.text]
        said = "\n".join([*texts, *getattr(error, "__notes__", ())])
        for secret in ("sEcr3t", "K3y", "sEcr%743t"):
            assert secret not in said
        assert url.rpartition("@")[2].partition("?")[0].removeprefix("https://") in str(error)


def test_secrets_among_the_options_are_not_shown(fs: type[FailingFileSystem]) -> None:
    fs.said, fs.fails = "geheim!", {"read"}
    fsspec.filesystem("failing").pipe_file("/a", b"a\n")
    for options in ({"password": "geheim!"}, {"client": {"api_key": "geheim!"}}, {"secrets": {"x": "geheim!"}}):
        error = failure(lines("failing://a", options=options))
        assert "geheim" not in "".join(traceback.format_exception(error))
        assert "read of *** failed" in str(error)
    fs.said = "user ann"
    assert "user ann" in str(failure(lines("failing://a", options={"username": "ann"})))


def test_names_for_messages() -> None:
    for url, name in [
        ("/home/a@b/c:d@e", "/home/a@b/c:d@e"),
        ("s3://bucket/me@x", "s3://bucket/me@x"),
        ("sftp://me@host/x", "sftp://host/x"),
        ("ftp://h:21/x", "ftp://h:21/x"),
        ("file:///a?b", "file:///a?b"),
    ]:
        assert place.Place("x", url, None, None).name == name


@pytest.mark.parametrize(
    ("call", "kind", "said"),
    [
        (lambda: lines(7), TypeError, "url must be a str or an os.PathLike"),  # type: ignore[arg-type]
        (lambda: lines(b"a"), TypeError, "url must be a str"),  # type: ignore[arg-type]
        (lambda: lines("a", options=7), TypeError, "options must be a mapping"),  # type: ignore[arg-type]
        (lambda: lines("a", encoding="utf-16"), ValueError, "which utf-16 does not"),
        (lambda: lines("a", encoding="base64"), ValueError, "must be a codec of Python for text"),
        (lambda: lines("a", encoding="nix"), ValueError, "must be a codec"),
        (lambda: lines("a", encoding=7), TypeError, "encoding must be a str"),  # type: ignore[arg-type]
        (lambda: lines("a", at_most=0), ValueError, "at_most must be at least 1"),
        (lambda: lines("a", compression="nix"), ValueError, "compression must be None or one of infer"),
        (lambda: json_lines("a", loads=7), TypeError, "loads"),  # type: ignore[arg-type]
        (lambda: csv("a", dialect={"delimiter": "ab"}), TypeError, "csv: dialect must be"),
        (lambda: parquet("a", batch=0), ValueError, "batch must be at least 1"),
        (lambda: parquet("a", columns="n"), TypeError, "columns must be a list"),
        (lambda: write_lines(7, "a"), TypeError, "source"),  # type: ignore[arg-type]
        (lambda: write_lines(Flow.empty(), "a", encoding="nix"), ValueError, "must be a codec"),
        (lambda: write_csv(Flow.empty(), "a", "ab"), TypeError, "fields must be a list"),
        (lambda: write_json_lines(Flow.empty(), "a", dumps=7), TypeError, "dumps"),  # type: ignore[arg-type]
        (lambda: write_arrow(Flow.empty(), "a", schema=7), TypeError, "schema must be a pyarrow.Schema"),
        (lambda: write_arrow(Flow.empty(), "a", batch=0), ValueError, "batch must be at least 1"),
    ],
)
def test_bad_arguments_are_refused_at_once(call: Callable[[], Flow[Any]], kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said):
        call()


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
def test_a_long_file_needs_no_memory(tmp_path: Path) -> None:
    sizes = []
    values = Flow.range(200_000).map(lambda n: {"n": n, "text": "x" * 100})
    assert got(write_json_lines(values, tmp_path / "a.jsonl")) == [200_000]
    for n, _ in enumerate(json_lines(tmp_path / "a.jsonl")):
        if n % 20_000 == 19_999:
            sizes.append(resident())
    assert len(sizes) == 10
    assert sizes[-1] - sizes[0] < 8_000_000  # the file has 24 MB


def test_the_example_prices_orders(tmp_path: Path) -> None:
    source = put(str(tmp_path / "orders.csv"), b"name,count\ntea,2\nmilk,four\nmilk,1\n")
    assert orders_in_files.price_all(source, str(tmp_path / "priced.parquet"), str(tmp_path / "bad.jsonl")) == 2
    assert got(parquet(tmp_path / "priced.parquet", rows=True)) == [
        {"name": "tea", "price": 6},
        {"name": "milk", "price": 1},
    ]
    assert got(json_lines(tmp_path / "bad.jsonl")) == [
        {"order": {"name": "milk", "count": "four"}, "error": "ValueError"}
    ]


def test_all_public_names_are_of_the_module() -> None:
    assert {getattr(files, name).__module__ for name in files.__all__} == {"reactive_runtime.connect.files"}
