"""`sort`: order, runs on disk, and what becomes of the files."""

from __future__ import annotations

import gc
import random
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sinks import Sink

from reactive_runtime import Flow, hooks
from reactive_runtime._operators.keeping import sorting
from reactive_runtime.testing import TestPublisher


class Disk:
    """The temporary files that were made."""

    def __init__(self) -> None:
        self.files: list[Any] = []

    def open_files(self) -> int:
        return sum(not file.closed for file in self.files)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    made, disk = tempfile.TemporaryFile, Disk()

    def temporary(**options: Any) -> Any:
        file = made(**options)
        disk.files.append(file)
        return file

    monkeypatch.setattr(tempfile, "TemporaryFile", temporary)
    monkeypatch.setattr(sorting, "RUNS", 8)
    yield disk
    assert disk.open_files() == 0, "a file is left"


@pytest.mark.parametrize("reverse", [False, True])
def test_many_runs_are_merged_and_equal_elements_keep_their_order(reverse: bool, disk: Disk) -> None:
    chance = random.Random(1)
    pairs = [(chance.randrange(50), n) for n in range(2_000)]
    flow = Flow.from_iterable(pairs).sort(key=lambda pair: pair[0], reverse=reverse, capacity=4)
    assert list(flow) == sorted(pairs, key=lambda pair: pair[0], reverse=reverse)
    assert len(disk.files) > sorting.RUNS**2, "no run was merged twice"


def test_few_files_are_open_at_a_time(disk: Disk) -> None:
    opened: list[int] = []
    flow = Flow.range(2_000).do_on_next(lambda n: opened.append(disk.open_files())).sort(capacity=4)
    assert list(flow) == list(range(2_000))
    assert max(opened) <= 3 * sorting.RUNS


def test_few_elements_need_no_file(disk: Disk) -> None:
    assert list(Flow.range(9).sort(reverse=True)) == list(range(9))[::-1]
    assert disk.files == []


def test_the_files_are_in_the_folder_and_gone_with_the_end(tmp_path: Path) -> None:
    seen: list[list[Path]] = []
    flow = Flow.range(10).sort(capacity=3, folder=tmp_path).do_on_next(lambda n: seen.append(list(tmp_path.iterdir())))
    assert list(flow) == list(range(10))
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(FileNotFoundError):
        Flow.range(10).sort(capacity=3, folder=tmp_path / "none").run()


def test_a_cancel_in_the_middle_reports_what_is_on_disk_once(disk: Disk) -> None:
    source, sink = TestPublisher[int](), Sink()
    with hooks.captured() as drops:
        Flow.from_publisher(source).sort(capacity=2).subscribe(sink)
        source.emit(5, 3, 4, 1, 2)
        assert disk.open_files() == 2
        sink.subscription.cancel()
    assert sorted(drop.element for drop in drops) == [1, 2, 3, 4, 5]


def test_a_cancel_while_it_delivers_reports_the_rest_once(disk: Disk) -> None:
    sink = Sink(2)
    with hooks.captured() as drops:
        Flow.just(5, 3, 4, 1, 2).sort(capacity=2).subscribe(sink)
        assert sink.elements == [1, 2]
        sink.subscription.cancel()
    assert sorted(drop.element for drop in drops) == [3, 4, 5]


def test_a_cancel_at_any_moment_leaves_no_file(disk: Disk) -> None:
    for _ in range(100):
        source, sink = TestPublisher[int](), Sink()
        with hooks.captured() as drops:
            Flow.from_publisher(source).sort(capacity=1).subscribe(sink)
            cancels = threading.Thread(target=sink.subscription.cancel)
            cancels.start()
            source.emit(3, 1, 2)
            cancels.join()
        assert disk.open_files() == 0
        dropped = [drop.element for drop in drops]
        assert len(set(dropped)) == len(dropped)  # a publisher that is cancelled emits no more


def test_a_flow_that_is_freed_before_its_end_leaves_no_file(disk: Disk) -> None:
    source, sink = TestPublisher[int](), Sink()
    Flow.from_publisher(source).sort(capacity=1).subscribe(sink)
    source.emit(3, 1, 2)
    assert disk.open_files() == 3
    del source, sink
    gc.collect()
    assert disk.open_files() == 0


def test_an_error_of_the_source_reports_the_elements_and_deletes_the_files(disk: Disk) -> None:
    with hooks.captured() as drops, pytest.raises(OSError, match="gone"):
        Flow.just(3, 1, 2).concat_with(Flow.error(OSError("gone"))).sort(capacity=2).run()
    assert sorted(drop.element for drop in drops) == [1, 2, 3]


def test_an_element_that_cannot_be_pickled_fails_with_one_clear_line(disk: Disk) -> None:
    with hooks.captured() as drops, pytest.raises(TypeError, match="can't be pickled to the disk") as raised:
        Flow.range(5).map(lambda n: lambda: n).sort(key=lambda fn: fn(), capacity=2).run()
    assert "raise capacity" in str(raised.value)
    assert len(drops) == 2


def test_elements_that_cannot_be_compared_fail_the_flow(disk: Disk) -> None:
    flow: Flow[Any] = Flow.just(1, "a", 2, "b", 3)
    with hooks.captured() as drops, pytest.raises(TypeError, match="not supported between"):
        flow.sort(capacity=1).run()
    assert sorted(map(str, (drop.element for drop in drops))) == ["1", "2", "3", "a", "b"]


def test_the_key_is_called_once_for_each_element(disk: Disk) -> None:
    called: list[int] = []

    def key(n: int) -> int:
        called.append(n)
        return -n

    assert list(Flow.range(7).sort(key=key, capacity=2)) == [6, 5, 4, 3, 2, 1, 0]
    assert called == list(range(7))
