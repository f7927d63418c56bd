"""Traces on disk: what is written is read, and what is no trace is named."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import queue
import re
import shutil
import sys
import threading
import time
import weakref
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from sinks import PATIENCE, Sink

from reactive_runtime import Flow
from reactive_runtime.errors import MissingDependencyError, TraceError
from reactive_runtime.judging import judge_runs
from reactive_runtime.stress._worker import rows_of
from reactive_runtime.testing import Chunk, Record, Recorder, TestPublisher, check
from reactive_runtime.testing._records import COLUMNS, CUT
from reactive_runtime.testing._traces import trace_columns, trace_writer
from reactive_runtime.testing.trace import (
    SCHEMA,
    TraceWriter,
    check_files,
    different_runs,
    holds,
    metadata_of,
    read_trace,
    records_of,
    run_folders,
    schema,
    table_of,
)


def written(folder: Path, run: str = "run", elements: int = 100) -> TraceWriter:
    writer = TraceWriter(folder, run)
    recorder = writer.recorder()
    recorder.wrap(Flow.range(elements), "numbers", ascending=True, elements=elements).subscribe(Sink())
    recorder.settle()
    writer.close({"seed": 7})
    return writer


def forget_checksums(run: Path) -> None:
    """As if its files had been written as they are now, by an earlier version."""
    path = run / "metadata.json"
    facts = json.loads(path.read_text())
    del facts["checksums"]
    path.write_text(json.dumps(facts))


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    writer = written(tmp_path)
    records = read_trace(tmp_path)
    assert len(records) == writer.rows == 105
    assert records[0].signal == "subscribe"
    assert [record.value for record in records if record.signal == "on_next"] == list(range(100))
    assert {record.scenario for record in records} == {"numbers"}


def test_an_update_of_its_system_does_not_make_it_another_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = []
    for release in ("6.1.0-18", "6.12.3"):
        updated = platform.uname_result("Linux", "here", release, f"#1 {release}", "x86_64")
        monkeypatch.setattr(platform, "uname", lambda told=updated: told)
        for name in ("system", "node", "release", "version", "machine"):
            monkeypatch.setattr(platform, name, partial(getattr, updated, name))
        monkeypatch.setattr(platform, "platform", lambda *_, of=release: f"Linux-{of}-x86_64")
        told.append((metadata_of(TraceWriter(tmp_path, f"on {release}").path) or {})["machine"])
    assert told == [f"here, {os.cpu_count()} cores, Linux x86_64"] * 2


def test_the_metadata_says_what_the_run_was(tmp_path: Path) -> None:
    writer = written(tmp_path)
    facts = json.loads((writer.path / "metadata.json").read_text())
    assert facts["complete"] is True
    assert (facts["seed"], facts["records"], facts["run"]) == (7, 105, "run")


def test_an_element_has_its_value_on_disk_where_it_is_an_int_and_else_its_hash(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path, "run")
    recorder = writer.recorder()
    sink = Sink(demand=0)
    recorder.wrap(Flow.just(1, 2**70, "x")).subscribe(sink)
    sink.subscription.request(2**64)
    writer.close({})
    values = [item.value for item in read_trace(tmp_path) if item.signal == "on_next"]
    assert values == [1, 2**70, hash("x")]


class OnThreads:
    """A publisher whose subscriber requests on one thread, while another is inside of the signals."""

    def __init__(self, elements: int) -> None:
        self._elements = elements
        self._do: dict[str, queue.SimpleQueue[Callable[[], object] | None]] = {}
        self._done: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []

    def subscribe(self, subscriber: Any, /) -> None:
        self.subscriber = subscriber
        subscriber.on_subscribe(self)

    def request(self, n: int, /) -> None: ...

    def cancel(self) -> None: ...

    def on(self, name: str, do: Callable[[], object], wait: bool = True) -> None:
        """Do it on the thread of that name, which lives until `end`."""
        if name not in self._do:
            self._do[name] = queue.SimpleQueue()
            self._threads.append(threading.Thread(target=self._run, args=(self._do[name],)))
            self._threads[-1].start()
        self._do[name].put(do)
        if wait:
            self._done.get(timeout=PATIENCE)

    def _run(self, doing: queue.SimpleQueue[Callable[[], object] | None]) -> None:
        while (do := doing.get()) is not None:
            do()
            self._done.put(None)

    def emit(self) -> None:
        for element in range(self._elements):
            self.subscriber.on_next(element)

    def end(self) -> None:
        for doing in self._do.values():
            doing.put(None)
        for thread in self._threads:
            thread.join(PATIENCE)


def test_what_is_there_of_a_killed_run_has_no_gap_whichever_thread_filled_its_buffer_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reactive_runtime.testing._recorder.CHUNK", 60)
    monkeypatch.setattr(trace_writer, "GROUP_ROWS", 60, raising=False)
    monkeypatch.setattr(trace_writer, "FILE_ROWS", 60, raising=False)
    writer = TraceWriter(tmp_path, "run")
    publisher, sink = OnThreads(200), Sink(demand=0)
    try:
        writer.recorder().wrap(publisher).subscribe(sink)
        publisher.on("a caller", lambda: sink.subscription.request(200))  # its row waits in a buffer that is not full
        publisher.on("another", publisher.emit)  # these fill three
        publisher.on("a caller", lambda: None)
        # No close: as if the process had gone, while its own thread was between two files. Then with more written:
        with writer._writing:
            assert run_is_right(writer.path)
        writer.flush()
        with writer._writing:
            assert run_is_right(writer.path)
            assert len(read_trace(tmp_path)) == 203
    finally:
        publisher.end()


def run_is_right(run: Path) -> bool:
    """What it holds breaks no rule."""
    return not any(run.glob("signals-*.parquet")) or not check(read_trace(run))


def test_a_call_under_way_where_a_run_was_cut_off_is_there_and_accused_of_nothing(tmp_path: Path) -> None:
    inside, leave = threading.Event(), threading.Event()
    writer = TraceWriter(tmp_path, "run")
    publisher = OnThreads(3)

    def stay(sink: Sink, element: int) -> None:
        if element == 1:
            sink.subscription.request(5)

    class Staying(OnThreads):
        def request(self, n: int, /) -> None:
            if n == 5:
                inside.set()
                leave.wait(PATIENCE)

    publisher, sink = Staying(3), Sink(demand=3, then=stay)
    try:
        writer.recorder().wrap(publisher, ascending=True).subscribe(sink)
        publisher.on("a thread", publisher.emit, wait=False)
        assert inside.wait(PATIENCE)
        writer.flush()
        held = holds(writer.path)
        assert (held.complete, held.rows) == (False, 6)
        assert sorted(file.name for file in held.files) == ["open-00000.parquet", "signals-00000.parquet"]
        records = read_trace(tmp_path)
        under_way = [record.signal for record in records if record.end == CUT - record.begin]
        assert under_way == ["on_next", "request"]  # a request inside of a signal, not returned: 3.2, if it were so
        assert check(records) == []
        assert all(record.begin <= (held.watermark or 0) for record in records)
    finally:
        leave.set()
        publisher.end()
    writer.flush()  # each has one row, and its own end
    records = read_trace(tmp_path)
    assert [(record.signal, record.value) for record in records if record.signal == "on_next"] == [
        ("on_next", n) for n in range(3)
    ]
    assert all(record.end is not None and record.end < CUT // 2 for record in records)
    assert [file.name for file in holds(writer.path).files] == ["signals-00000.parquet", "signals-00001.parquet"]
    writer.close()
    assert len(read_trace(tmp_path)) == holds(writer.path).rows == 7


def test_a_run_is_flushed_while_it_goes_on_however_few_its_rows_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_writer, "FLUSH_SECONDS", 0.001, raising=False)
    writer = TraceWriter(tmp_path, "run")
    writer.recorder().wrap(Flow.range(7)).subscribe(Sink())
    over = time.monotonic() + PATIENCE
    while not (metadata_of(writer.path) or {}).get("records"):
        assert time.monotonic() < over, "nothing was written"
        time.sleep(0.001)
    assert len(read_trace(tmp_path)) == 11
    writer.close()


class InHand:
    """What a writer waits at, with a clock in hand: time goes by while it waits, and `passing` is called each tenth."""

    def __init__(self, passing: Callable[[], object]) -> None:
        self.tenths = 0
        self._passing = passing
        self._set = False

    def set(self) -> None:
        self._set = True

    def clear(self) -> None:
        self._set = False

    def wait(self, seconds: float) -> None:
        for _ in range(0 if self._set else round(10 * seconds)):
            self.tenths += 1
            self._passing()


@pytest.mark.parametrize("fails", [False, True], ids=["", "every other look at the recorder fails"])
def test_what_was_signalled_is_on_the_disk_two_seconds_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    written_in_time = trace_writer._written_in_time
    monkeypatch.setattr(
        trace_writer, "_written_in_time", lambda *_: None
    )  # the writer's own thread, by the machine's clock
    writer, over = TraceWriter(tmp_path, "run"), threading.Event()
    recorder = writer.recorder()
    look = recorder.checkpoint
    looks: list[int] = []  # when, in tenths of a second
    signalled = [0]  # by each of them

    def every_other() -> Any:
        looks.append(clock.tenths)
        return None if fails and len(looks) % 2 else look()

    def signal() -> None:
        recorder.wrap(Flow.range(3)).subscribe(Sink())
        signalled.append(signalled[-1] + 7)
        assert (holds(writer.path).rows or 0) >= signalled[max(0, clock.tenths - 20)]
        if clock.tenths >= 60:
            over.set()

    monkeypatch.setattr(recorder, "checkpoint", every_other)
    clock = InHand(signal)
    written_in_time(weakref.ref(writer), clock, over)  # type: ignore[arg-type]
    assert clock.tenths == 60
    assert not fails or looks[::2] == looks[1::2]  # one that fails is followed by another at once
    writer.close()
    assert holds(writer.path).rows == signalled[-1]


def test_the_records_of_a_subscription_lie_together_and_footers_say_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_writer, "GROUP_ROWS", 100)
    writer = TraceWriter(tmp_path, "run")
    publisher = writer.recorder().wrap(Flow.range(96))
    sinks = [Sink(demand=0) for _ in range(4)]
    for sink in sinks:
        publisher.subscribe(sink)
    for _ in range(97):
        for sink in sinks:
            sink.subscription.request(1)
    writer.close()
    (file,) = holds(writer.path).files
    footer: Any = parquet.ParquetFile(file).metadata
    at = {footer.schema.column(n).name: n for n in range(footer.num_columns)}
    groups = [footer.row_group(n) for n in range(footer.num_row_groups)]
    bounds = [
        (group.column(at["subscription"]).statistics.min, group.column(at["subscription"]).statistics.max)
        for group in groups
    ]
    assert [low for low, _ in bounds] == sorted(low for low, _ in bounds)
    assert max(high - low for low, high in bounds) <= 1
    assert all(group.column(at["begin"]).statistics.has_min_max for group in groups)
    rows = parquet.read_table(file, partitioning=None).select(["subscription", "begin"]).to_pylist()
    assert rows == sorted(rows, key=lambda row: (row["subscription"], row["begin"]))


def test_threads_that_record_faster_than_files_are_written_wait_and_lose_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_writer, "FILE_ROWS", 100)
    monkeypatch.setattr("reactive_runtime.testing._recorder.CHUNK", 10)
    writer = TraceWriter(tmp_path, "run")
    publisher = writer.recorder().wrap(Flow.range(2_000))
    threads = [threading.Thread(target=lambda: publisher.subscribe(Sink())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    writer.close()
    assert holds(writer.path).rows == len(read_trace(tmp_path)) == 4 * 2_004
    assert check(read_trace(tmp_path)) == []


def test_all_runs_of_a_folder_are_found_and_a_run_by_itself(tmp_path: Path) -> None:
    written(tmp_path, "one")
    written(tmp_path, "two")
    assert [path.name for path in run_folders(tmp_path)] == ["run=one", "run=two"]
    (day,) = tmp_path.iterdir()
    assert [path.name for path in run_folders(day)] == ["run=one", "run=two"]
    assert [path.name for path in run_folders(day / "run=two")] == ["run=two"]


def test_runs_that_lie_deeper_are_found_beside_the_others(tmp_path: Path) -> None:
    near = written(tmp_path, "near").path
    deep = written(tmp_path / "of" / "another machine", "deep").path
    empty = tmp_path / "of" / "date=2026-11-28" / "run=empty"
    empty.mkdir(parents=True)
    shutil.copy(deep / "metadata.json", empty)
    assert run_folders(tmp_path) == [near, deep, empty]
    assert {record.run for record in read_trace(tmp_path / "of" / "another machine")} == {"deep"}


def test_a_folder_without_runs_is_named(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=f"{tmp_path}: has no runs"):
        check_files(tmp_path)
    with pytest.raises(TraceError, match="gone: is no folder"):
        check_files(tmp_path / "gone")


def test_a_file_of_another_schema_is_named_with_the_column(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    file = tmp_path / "run" / "signals-00000.parquet"
    parquet.write_table(pa.table({"run": ["a"], "scenario": [1]}), file)
    with pytest.raises(TraceError, match=r"signals-00000\.parquet: is no trace: column 'scenario' should be string"):
        check_files(tmp_path)


def test_a_trace_of_a_newer_schema_is_one_line_that_says_so(tmp_path: Path) -> None:
    file = next(written(tmp_path).path.glob("*.parquet"))
    table = parquet.read_table(file, partitioning=None)
    parquet.write_table(table.replace_schema_metadata({"reactive_runtime.trace": "5"}), file)
    forget_checksums(file.parent)
    with pytest.raises(TraceError, match=r"signals-00000\.parquet: has schema 5, and this version reads up to 4"):
        check_files(tmp_path)


def test_a_trace_of_the_first_schema_is_read_without_what_it_lacks(tmp_path: Path) -> None:
    file = next(written(tmp_path).path.glob("*.parquet"))
    table = parquet.ParquetFile(file).read().drop_columns(["depth"])
    parquet.write_table(table.replace_schema_metadata({}), file)
    forget_checksums(file.parent)
    assert {item.depth for item in read_trace(tmp_path)} == {None}


def test_a_run_that_is_killed_has_said_at_its_beginning_what_it_is(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path, "run", {"seed": 7})
    assert metadata_of(writer.path) == {**(metadata_of(writer.path) or {}), "seed": 7, "complete": False, "schema": 4}
    writer.close({"records": 0})
    assert (metadata_of(writer.path) or {})["complete"] is True
    (writer.path / "metadata.json").unlink()
    assert metadata_of(writer.path) is None
    (writer.path / "metadata.json").write_text('{"run": ')
    assert metadata_of(writer.path) is None


def test_the_depth_of_a_call_is_how_many_it_is_inside_of(tmp_path: Path) -> None:
    recorder = Recorder()
    sink = Sink(demand=1, then=lambda sink, n: sink.subscription.request(1) if n == 0 else None)
    recorder.wrap(Flow.range(2)).subscribe(sink)
    depths = [
        (record.signal, record.depth) for record in recorder.records() if record.signal in ("on_subscribe", "request")
    ]
    # subscribe > on_subscribe > request (> on_next > request)
    assert depths[:2] == [("on_subscribe", 1), ("request", 2)]
    third = depths[2][1]
    assert third is not None
    assert third >= 1


def test_a_truncated_file_is_named(tmp_path: Path) -> None:
    file = next(written(tmp_path).path.glob("*.parquet"))
    file.write_bytes(file.read_bytes()[:-10])
    with pytest.raises(TraceError, match=r"signals-00000\.parquet: is no whole Parquet file") as caught:
        check_files(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(TraceError, match=r"file/date=[-0-9]+/run=run: can't be made"):
        TraceWriter(tmp_path / "file", "run")


def test_a_failure_to_write_reaches_close_and_not_the_publisher(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(parquet, "write_table", full)
    monkeypatch.setattr(trace_writer, "FILE_ROWS", 10)
    monkeypatch.setattr("reactive_runtime.testing._recorder.CHUNK", 10)
    writer = TraceWriter(tmp_path, "run")
    sink = Sink()
    writer.recorder().wrap(Flow.range(100)).subscribe(sink)
    assert len(sink.elements) == 100
    with pytest.raises(TraceError, match="No space left on device"):
        writer.close({})


def test_elements_of_any_size_are_read_as_they_were(tmp_path: Path) -> None:
    elements = [-(2**70), -(2**63) - 1, -(2**63), 0, 2**63 - 1, 2**63, 2**64 + 1, 2**70, 10**30, 1 << 20_000]
    writer = TraceWriter(tmp_path, "run")
    writer.recorder().wrap(Flow.from_iterable(elements), ascending=True).subscribe(Sink())
    writer.close()
    records = read_trace(tmp_path)
    assert [item.value for item in records if item.signal == "on_next"] == elements
    assert check(records) == []
    assert records_of(table_of(records)) == records
    again = [item._replace(begin=item.begin + 1_000, end=None) for item in records if item.signal == "on_next"]
    assert all(len(str(item)) < 3_000 for item in check([*records, *again]))


def test_an_element_beyond_64_bits_comes_from_another_process_as_text(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path, "run")
    recorder = Recorder("worker", sink=lambda chunk: lines.append(json.dumps([list(row) for row in rows_of(chunk)])))
    lines: list[str] = []
    recorder.wrap(Flow.from_iterable([1, 2**64, 1 << 20_000]), ascending=True).subscribe(Sink())
    recorder.flush()
    source = writer.source(recorder.subscriptions)
    source.write(Chunk(1, [tuple(row) for line in lines for row in json.loads(line)]))
    source.end()
    writer.close()
    assert [item.value for item in read_trace(tmp_path) if item.signal == "on_next"] == [1, 2**64, 1 << 20_000]


def test_a_large_value_that_is_no_int_is_named(tmp_path: Path) -> None:
    file = next(written(tmp_path).path.glob("*.parquet"))
    table = parquet.ParquetFile(file).read()
    table = table.set_column(table.column_names.index("value"), "value", pa.nulls(len(table), pa.int64()))
    wrong = table.set_column(table.column_names.index("large_value"), "large_value", pa.array(["zwölf"] * len(table)))
    parquet.write_table(wrong, file)
    forget_checksums(file.parent)
    told = r"signals-00000\.parquet: is no trace: column 'large_value' has 'zwölf', which is no int in hexadecimal"
    with pytest.raises(TraceError, match=told):
        read_trace(tmp_path)
    with pytest.raises(TraceError, match=told):
        judge_runs([tmp_path])


def test_the_columns_are_the_fields_of_a_record_and_one_for_large_values() -> None:
    assert tuple(schema().names) == COLUMNS == (*Record._fields, "large_value")


def test_a_file_that_is_damaged_in_the_middle_is_named(tmp_path: Path) -> None:
    file = next(written(tmp_path, elements=5_000).path.glob("*.parquet"))
    data = bytearray(file.read_bytes())
    data[20:3_000] = b"\xff" * 2_980
    file.write_bytes(data)
    with pytest.raises(TraceError, match=r"signals-00000\.parquet: ") as caught:
        read_trace(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_run_is_not_written_over(tmp_path: Path) -> None:
    written(tmp_path)
    with pytest.raises(TraceError, match="has a trace already"):
        TraceWriter(tmp_path, "run")
    assert len(read_trace(tmp_path)) == 105


def test_metadata_that_cannot_be_written_are_named(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path, "run")
    (writer.path / "metadata.json").mkdir()
    with pytest.raises(TraceError, match=r"metadata\.json: can't be written"):
        writer.close({})


def test_a_full_disk_names_the_file_and_leaves_no_word_that_the_run_is_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    writer = TraceWriter(tmp_path, "run")
    writer.recorder().wrap(Flow.range(100)).subscribe(Sink())
    monkeypatch.setattr(parquet, "write_table", full)
    with pytest.raises(TraceError, match=r"signals-00000\.parquet: can't be written: No space left on device"):
        writer.close({})
    assert not (writer.path / "metadata.json").exists()


def test_what_is_known_of_each_subscription_is_beside_its_signals(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path, "run")
    recorder = writer.recorder()
    for number in range(3):
        recorder.wrap(
            Flow.range(number), f"scenario {number}", ascending=number == 1, elements=number or None
        ).subscribe(Sink())
    writer.close({})
    facts = {(item.subscription, item.scenario, item.ascending, item.elements) for item in read_trace(tmp_path)}
    assert facts == {(0, "scenario 0", False, None), (1, "scenario 1", True, 1), (2, "scenario 2", False, 2)}


def test_without_pyarrow_a_line_says_what_to_install_and_the_recorder_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'reactive-runtime\[cli\]'"):
        TraceWriter(tmp_path, "run")
    recorder = Recorder()
    recorder.wrap(Flow.range(1)).subscribe(Sink())
    assert recorder.records()


# -- what a run says that it holds --------------------------------------------------------------------------------


def test_a_file_that_is_not_there_or_not_counted_or_has_too_few_records_is_reported_in_a_line(tmp_path: Path) -> None:
    run = written(tmp_path).path
    file = run / "signals-00000.parquet"
    whole = file.read_bytes()
    file.unlink()
    with pytest.raises(TraceError, match=r"signals-00000\.parquet: is not there, and the run says that it holds 105"):
        check_files(tmp_path)
    file.write_bytes(whole)
    (run / "signals-00001.parquet").write_bytes(whole)
    with pytest.raises(TraceError, match=r"signals-00001\.parquet: is not among the files that the run says it holds"):
        check_files(tmp_path)
    (run / "signals-00001.parquet").unlink()
    table = parquet.ParquetFile(file).read()
    parquet.write_table(table.slice(0, 90), file)
    forget_checksums(run)
    with pytest.raises(TraceError, match=r"its files have 90 records, and it says that it holds 105"):
        check_files(tmp_path)


def test_a_file_that_a_kill_has_left_uncounted_is_not_looked_at(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path, "run")
    writer.recorder().wrap(Flow.range(5)).subscribe(Sink())
    writer.flush()
    (writer.path / "signals-00001.parquet").write_bytes(b"PAR1, and whatever comes")
    assert len(read_trace(tmp_path)) == 9


@pytest.mark.parametrize(
    ("facts", "says"),
    [
        ({"files": ["signals-00000.parquet"]}, "'files' should be an object"),
        ({"files": {"../../secret.parquet": 3}}, "should be names of files"),
        ({"files": {"signals-00000.parquet": "many"}}, "should be names of files"),
        ({"files": {}, "checksums": {}}, "'records' is 105, and 'files' count 0: a file was taken out or added"),
        ({"records": "105"}, "'records' should be a whole number"),
        ({"complete": "yes"}, "'complete' should be true or false"),
        ({"run": 7}, "'run' should be a text"),
        ({"identity": 7}, "'identity' should be an object"),
        ({"watermark": "x"}, "'watermark' should be a whole number"),
        ({"schema": 9}, "has schema 9, and this version reads 1 to 4: "),
        ({"schema": 0}, "has schema 0, and this version reads 1 to 4: "),
        ({"schema": "4"}, "'schema' should be a whole number"),
        ([1, 2], "should be an object, not list"),
        ("{", "is no JSON"),
        pytest.param("[" * 100_000, "is no JSON", id="nested"),
    ],
)
def test_metadata_that_was_edited_by_hand_is_one_line(tmp_path: Path, facts: Any, says: str) -> None:
    run = written(tmp_path).path
    file = run / "metadata.json"
    told = {**json.loads(file.read_text()), **facts} if isinstance(facts, dict) else facts
    file.write_text(told if isinstance(told, str) else json.dumps(told))
    with pytest.raises(TraceError, match="metadata.json: .*" + says) as caught:
        check_files(tmp_path)
    assert "\n" not in str(caught.value)


def test_no_reader_judges_a_schema_that_is_not_known(tmp_path: Path) -> None:
    run = written(tmp_path).path
    facts = json.loads((run / "metadata.json").read_text())
    (run / "metadata.json").write_text(json.dumps({**facts, "schema": SCHEMA + 1}))
    for read in (read_trace, check_files, holds, lambda folder: judge_runs([folder])):
        with pytest.raises(TraceError, match=f"has schema {SCHEMA + 1}, and this version reads 1 to {SCHEMA}"):
            read(run)


def test_a_run_that_was_copied_is_one_and_two_of_one_name_are_not_mixed(tmp_path: Path) -> None:
    one = written(tmp_path / "a").path
    shutil.copytree(one, tmp_path / "copy" / "run=run")
    other = written(tmp_path / "b").path
    errors: list[TraceError] = []
    found = different_runs([one, tmp_path / "copy" / "run=run", one / ".." / one.name], errors.append)
    assert [finding.folder for finding in found] == [one.resolve()]
    assert errors == []
    assert [run.folder for run in different_runs([one, other], errors.append)] == [one.resolve()]
    assert [f"another run of that name is in {one.resolve()}" in str(error) for error in errors] == [True]


def test_of_two_copies_the_one_that_came_to_its_end_counts(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path, "run")
    writer.recorder().wrap(Flow.range(5)).subscribe(Sink())
    writer.flush()
    early = tmp_path / "early"
    shutil.copytree(writer.path, early)
    writer.close()
    for order in ([early, writer.path], [writer.path, early]):
        (held,) = different_runs(order, lambda error: pytest.fail(str(error)))
        assert (held.complete, held.folder) == (True, writer.path.resolve())


def test_of_two_copies_the_one_that_is_whole_counts(tmp_path: Path) -> None:
    damaged = written(tmp_path / "a").path
    whole = tmp_path / "copy" / damaged.name
    shutil.copytree(damaged, whole)
    (file,) = damaged.glob("signals-*.parquet")
    file.write_bytes(file.read_bytes()[:100])
    for order in ([damaged, whole], [whole, damaged]):
        (held,) = different_runs(order, lambda error: pytest.fail(str(error)))
        assert held.folder == whole.resolve()


def test_a_damaged_copy_that_held_more_is_said(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path, "run")
    writer.recorder().wrap(Flow.range(5)).subscribe(Sink())
    writer.flush()
    early = tmp_path / "early"
    shutil.copytree(writer.path, early)
    writer.recorder().wrap(Flow.range(5)).subscribe(Sink())
    writer.close()
    sorted(writer.path.glob("signals-*.parquet"))[-1].write_bytes(b"PAR1")
    errors: list[TraceError] = []
    (held,) = different_runs([early, writer.path], errors.append)
    assert held.folder == early.resolve()
    assert [str(writer.path.resolve()) in str(error) for error in errors] == [True]
    early.joinpath(sorted(item.name for item in early.glob("signals-*.parquet"))[0]).write_bytes(b"PAR1")
    assert different_runs([early, writer.path], errors.append)[0].folder == writer.path.resolve()


def test_copies_of_a_trace_that_says_nothing_of_itself_are_one(tmp_path: Path) -> None:
    for name, elements in (("a", 10), ("b", 10), ("c", 11)):
        (tmp_path / name).mkdir()
        run = written(tmp_path / f"of {name}", f"run {elements}", elements=elements).path
        (run / "signals-00000.parquet").rename(tmp_path / name / "signals-00000.parquet")
    shutil.copytree(tmp_path / "a", tmp_path / "copy of a")
    found = different_runs([tmp_path / name for name in ("a", "copy of a", "c")], lambda error: pytest.fail(str(error)))
    assert [finding.folder.name for finding in found] == ["a", "c"]


@pytest.mark.parametrize("identity", [None, {}])
def test_two_runs_without_an_identity_are_not_copies(identity: Any, tmp_path: Path) -> None:
    folders = []
    for name in ("one", "other"):
        folder = written(tmp_path / name, name).path
        facts = json.loads((folder / "metadata.json").read_text())
        (folder / "metadata.json").write_text(json.dumps(facts | {"identity": identity}))
        shutil.copytree(folder, tmp_path / "copies" / name)
        folders += [folder, tmp_path / "copies" / name]
    found = different_runs(folders, lambda error: pytest.fail(str(error)))
    assert [held.run for held in found] == ["one", "other"]


def test_a_run_of_an_earlier_version_that_was_cut_off_can_not_be_judged(tmp_path: Path) -> None:
    run = written(tmp_path).path
    facts = metadata_of(run) or {}
    del facts["files"]
    (run / "metadata.json").unlink()
    (run / "_metadata.json").write_text(json.dumps({**facts, "complete": False}))
    with pytest.raises(TraceError, match="was cut off, and does not say up to where its threads had come"):
        check_files(tmp_path)


@pytest.mark.parametrize("read", [read_trace, check_files, lambda folder: judge_runs([folder])])
def test_each_byte_that_changed_is_noticed(tmp_path: Path, read: Callable[[Path], object]) -> None:
    """Those of pages, of which each has a checksum; of the heads of pages; and of the footer."""
    file = next(written(tmp_path, elements=5).path.glob("*.parquet"))
    data = file.read_bytes()
    for at in range(len(data)):
        changed = bytearray(data)
        changed[at] ^= 1 << at % 8
        file.write_bytes(changed)
        with pytest.raises(TraceError, match=re.escape(str(file))):
            read(tmp_path)


@pytest.mark.parametrize("wrong", [{}, {"signals-00000.parquet": 7}, 7])
def test_checksums_that_are_none_are_named(tmp_path: Path, wrong: Any) -> None:
    path = written(tmp_path).path / "metadata.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "checksums": wrong}))
    with pytest.raises(TraceError, match="'checksums' should"):
        check_files(tmp_path)


def test_a_trace_without_checksums_is_read(tmp_path: Path) -> None:
    """An earlier version wrote none."""
    run = written(tmp_path).path
    forget_checksums(run)
    assert len(read_trace(run)) == 105


def test_an_element_of_none_has_no_value_on_disk(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path, "run")
    numbers: TestPublisher[int] = TestPublisher(breaks="2.13")
    writer.recorder().wrap(numbers).subscribe(Sink(demand=1))
    numbers.emit(7)
    numbers.fail(OSError())
    writer.close()
    assert [(record.signal, record.value) for record in read_trace(tmp_path) if record.signal == "on_next"] == [
        ("on_next", None)
    ]


SENT: dict[str, Callable[[Any], object]] = {
    "on_subscribe": lambda sink: sink.on_subscribe(None),
    "on_next": lambda sink: sink.on_next(None),
    "on_error": lambda sink: sink.on_error(None),
}


@pytest.mark.parametrize("signal", SENT)
@pytest.mark.parametrize("raises", [False, True])
def test_that_an_argument_was_none_is_on_disk_and_judged_as_in_memory(
    tmp_path: Path, signal: str, raises: bool
) -> None:
    class Refuses(Sink):
        def on_subscribe(self, subscription: Any, /) -> None:
            self.refuse(subscription)

        def on_next(self, element: Any, /) -> None:
            self.refuse(element)

        def on_error(self, error: Any, /) -> None:
            self.refuse(error)

        def refuse(self, item: Any) -> None:
            if raises and item is None:
                raise TypeError("None is no argument (2.13)")

    class Sends:
        def subscribe(self, subscriber: Any, /) -> None:
            if signal != "on_subscribe":
                subscriber.on_subscribe(Nothing())
            with contextlib.suppress(TypeError):
                SENT[signal](subscriber)

    class Nothing:
        def request(self, n: int, /) -> None: ...

        def cancel(self) -> None: ...

    writer, memory = TraceWriter(tmp_path, "run"), Recorder("run")
    for recorder in (writer.recorder(), memory):
        recorder.wrap(Sends()).subscribe(Refuses())
        recorder.settle()
    writer.close()
    read = read_trace(tmp_path)
    assert [(record.signal, record.none) for record in read] == [
        (record.signal, record.none) for record in memory.records()
    ]
    assert [record.signal for record in read if record.none] == [signal]
    rules = {item.rule for item in check(memory.records())}
    assert "2.13" in rules
    assert {item.rule for item in check(read)} == rules
    assert set(judge_runs([tmp_path]).violations["rule"].to_pylist()) == rules


def test_a_trace_without_the_column_says_nothing_of_none(tmp_path: Path) -> None:
    file = next(written(tmp_path).path.glob("*.parquet"))
    table = parquet.ParquetFile(file).read().drop_columns(["none"])
    parquet.write_table(table.replace_schema_metadata({"reactive_runtime.trace": "3"}), file)
    forget_checksums(file.parent)
    assert {record.none for record in read_trace(tmp_path)} == {False}
    assert judge_runs([tmp_path]).violations.num_rows == 0


def test_that_an_element_was_none_comes_through_the_pipe_of_a_worker() -> None:
    chunks: list[Chunk] = []
    recorder = Recorder("run", chunks.append)
    numbers: TestPublisher[int] = TestPublisher(breaks="2.13")
    recorder.wrap(numbers).subscribe(Sink(demand=1))
    numbers.emit(7)
    recorder.flush()
    rows = [tuple(row) for chunk in chunks for row in json.loads(json.dumps(rows_of(chunk)))]
    assert [record.signal for record in (recorder.record_of(0, row) for row in rows) if record.none] == ["on_next"]
    none: list[Any] = trace_columns.columns_of([Chunk(0, rows)])["none"].to_pylist()
    assert sum(none) == 1
