"""Traces on disk: what is written is read, and what is no trace is named."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from sinks import Sink

from reactive_runtime import Flow
from reactive_runtime.errors import MissingDependencyError, TraceError
from reactive_runtime.testing import Record, Recorder
from reactive_runtime.testing import trace as module
from reactive_runtime.testing.trace import TraceWriter, check_files, metadata_of, read_trace, run_folders, schema


def written(folder: Path, run: str = "run", elements: int = 100) -> TraceWriter:
    writer = TraceWriter(folder, run)
    recorder = writer.recorder()
    recorder.wrap(Flow.range(elements), "numbers", ascending=True, elements=elements).subscribe(Sink())
    recorder.settle()
    writer.close({"seed": 7})
    return writer


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    writer = written(tmp_path)
    records = read_trace(tmp_path)
    assert len(records) == writer.rows == 105
    assert records[0].signal == "subscribe"
    assert [it.value for it in records if it.signal == "on_next"] == list(range(100))
    assert {it.scenario for it in records} == {"numbers"}


def test_the_metadata_says_what_the_run_was(tmp_path: Path) -> None:
    writer = written(tmp_path)
    facts = json.loads((writer.path / "metadata.json").read_text())
    assert facts["complete"] is True
    assert (facts["seed"], facts["records"], facts["run"]) == (7, 105, "run")


def test_values_that_no_64_bits_hold_are_written_as_hashes(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path, "run")
    recorder = writer.recorder()
    sink = Sink(demand=0)
    recorder.wrap(Flow.just(1, 2**70, "x")).subscribe(sink)
    sink.subscription.request(2**64)
    writer.close({})
    values = [it.value for it in read_trace(tmp_path) if it.signal == "on_next"]
    assert values == [1, hash(2**70), hash("x")]


def test_files_are_cut_and_a_run_that_is_killed_leaves_whole_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("FILE_ROWS", "GROUP_ROWS"):
        monkeypatch.setattr(module, name, 100)
    monkeypatch.setattr("reactive_runtime.testing.recorder.CHUNK", 60)
    writer = TraceWriter(tmp_path, "run")
    writer.recorder().wrap(Flow.range(1_000)).subscribe(Sink())
    # No close: as if the process had gone.
    assert len(check_files(tmp_path)) >= 5
    assert len(read_trace(tmp_path)) >= 600


def test_all_runs_of_a_folder_are_found_and_a_run_by_itself(tmp_path: Path) -> None:
    written(tmp_path, "one")
    written(tmp_path, "two")
    assert [path.name for path in run_folders(tmp_path)] == ["run=one", "run=two"]
    (day,) = tmp_path.iterdir()
    assert [path.name for path in run_folders(day)] == ["run=one", "run=two"]
    assert [path.name for path in run_folders(day / "run=two")] == ["run=two"]


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
    table = parquet.read_table(file)
    parquet.write_table(table.replace_schema_metadata({"reactive_runtime.trace": "3"}), file)
    with pytest.raises(TraceError, match=r"signals-00000\.parquet: has schema 3, and this version reads up to 2"):
        check_files(tmp_path)


def test_a_trace_of_the_first_schema_is_read_without_what_it_lacks(tmp_path: Path) -> None:
    file = next(written(tmp_path).path.glob("*.parquet"))
    table = parquet.ParquetFile(file).read().drop_columns(["depth"])
    parquet.write_table(table.replace_schema_metadata({}), file)
    assert {it.depth for it in read_trace(tmp_path)} == {None}


def test_a_run_that_is_killed_has_said_at_its_beginning_what_it_is(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path, "run", {"seed": 7})
    assert metadata_of(writer.path) == {**(metadata_of(writer.path) or {}), "seed": 7, "complete": False, "schema": 2}
    writer.close({"records": 0})
    assert (metadata_of(writer.path) or {})["complete"] is True
    (writer.path / "metadata.json").unlink()
    assert metadata_of(writer.path) is None
    (writer.path / "metadata.json").write_text('{"run": ')
    assert metadata_of(writer.path) is None


def test_a_file_is_closed_after_some_seconds_however_few_its_rows_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "GROUP_ROWS", 100)
    monkeypatch.setattr(module, "FILE_SECONDS", 0.0)
    monkeypatch.setattr("reactive_runtime.testing.recorder.CHUNK", 60)
    TraceWriter(tmp_path, "run").recorder().wrap(Flow.range(1_000)).subscribe(Sink())
    assert len(check_files(tmp_path)) >= 8


def test_the_depth_of_a_call_is_how_many_it_is_inside_of(tmp_path: Path) -> None:
    recorder = Recorder()
    sink = Sink(demand=1, then=lambda sink, n: sink.subscription.request(1) if n == 0 else None)
    recorder.wrap(Flow.range(2)).subscribe(sink)
    depths = [(it.signal, it.depth) for it in recorder.records() if it.signal in ("on_subscribe", "request")]
    # subscribe > on_subscribe > request (> on_next > request)
    assert depths[:2] == [("on_subscribe", 1), ("request", 2)]
    assert depths[2][1] >= 1


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

    monkeypatch.setattr(parquet, "ParquetWriter", full)
    monkeypatch.setattr(module, "GROUP_ROWS", 10)
    monkeypatch.setattr("reactive_runtime.testing.recorder.CHUNK", 10)
    writer = TraceWriter(tmp_path, "run")
    sink = Sink()
    writer.recorder().wrap(Flow.range(100)).subscribe(sink)
    assert len(sink.elements) == 100
    with pytest.raises(TraceError, match="No space left on device"):
        writer.close({})


def test_the_columns_are_the_fields_of_a_record() -> None:
    assert tuple(schema().names) == Record._fields


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
    monkeypatch.setattr(parquet, "ParquetWriter", full)
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
    facts = {(it.subscription, it.scenario, it.ascending, it.elements) for it in read_trace(tmp_path)}
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
