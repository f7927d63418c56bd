"""Feeds: one flow at a time, by a lock that a kill frees; a reader in any process; folders, and no addresses."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from sinks import PATIENCE, until

from reactive_runtime import Flow
from reactive_runtime.errors import SparkError
from reactive_runtime.spark import elements_fed, read_feed
from reactive_runtime.spark._feed.locks import FolderLock, HeldError
from reactive_runtime.spark._feed.segment_source import SegmentSource
from reactive_runtime.spark._feed.segments import Segments

pytestmark = pytest.mark.timeout(300)

SCHEMA = pa.schema([("n", pa.int64())])


def fed(spark: Any, folder: Path, numbers: Flow[int]) -> Any:
    return numbers.map(lambda n: (n,)).to_spark(spark, "n long", batch_rows=5).stream(folder, segments=100)


def test_a_second_flow_is_refused_while_the_first_feeds_and_the_error_names_that(spark: Any, tmp_path: Path) -> None:
    one = fed(spark, tmp_path / "feed", Flow.range(10).concat_with(Flow.never()))
    until(lambda: elements_fed(tmp_path / "feed") == 10)
    words = rf"^to_spark: .*feed: another flow feeds this folder \(process {os.getpid()} on .*\)"
    for _ in range(2):
        with pytest.raises(SparkError, match=words):
            fed(spark, tmp_path / "feed", Flow.range(10))
    assert len(list((tmp_path / "feed" / "segments").iterdir())) == 2  # nothing of the first was thrown away
    one.done.cancel()
    assert fed(spark, tmp_path / "feed", Flow.range(5)).done.result(PATIENCE) == 5


@pytest.mark.parametrize("way", ["its end", "an error", "a cancel"])
def test_the_folder_is_free_when_a_flow_is_over(way: str, spark: Any, tmp_path: Path) -> None:
    ends = {"its end": Flow.range(7), "an error": Flow.range(7).map(lambda n: 7 // (6 - n)), "a cancel": Flow.never()}
    for _ in range(3):
        feed = fed(spark, tmp_path / "feed", ends[way])
        if way == "its end":
            feed.done.result(PATIENCE)
        elif way == "a cancel":
            feed.done.cancel()
        else:
            with pytest.raises(ZeroDivisionError):
                feed.done.result(PATIENCE)


def filled(folder: Path, begin: int, end: int) -> Segments:
    kept = Segments(folder, SCHEMA, 9)
    kept.recovered()
    for first in range(begin, end, 2):
        kept.put(pa.table({"n": [first, first + 1]}))
    kept.close()
    return kept


def reader_of(folder: Path) -> Any:
    return SegmentSource({"path": str(folder)}).streamReader(None)


def test_of_two_queries_of_a_feed_the_second_fails(tmp_path: Path) -> None:
    """As Spark calls them, in processes of their own."""
    kept = filled(tmp_path, 0, 4)
    one, other = reader_of(tmp_path), reader_of(tmp_path)
    began = [(reader, reader.initialOffset()) for reader in (one, other)]
    ends = [reader.latestOffset(start, None) for reader, start in began]
    for (reader, start), end in zip(began, ends, strict=True):
        assert len(reader.partitions(start, end)) == 2
    filled(tmp_path, 4, 8)
    assert reader_of(tmp_path).latestOffset(ends[0], None) == {**ends[0], "elements": 8}  # it is begun again
    for call in (other.commit, lambda end: other.latestOffset(end, None)):
        with pytest.raises(SparkError, match="another query has committed elements of this feed"):
            call(ends[1])
    assert kept.outstanding() == 2
    third = reader_of(tmp_path)
    with pytest.raises(SparkError, match="the segment that begins with element 0 is not there"):
        third.partitions(third.initialOffset(), third.latestOffset(third.initialOffset(), None))


def test_a_query_goes_on_that_plans_with_the_wrapper(tmp_path: Path) -> None:
    """`triggerAvailableNowWrapper` takes the end of a batch from the initial offset, each time that a query begins."""
    start = None
    for begin in (0, 4, 8):
        kept = filled(tmp_path, begin, begin + 4)
        reader = reader_of(tmp_path)
        end = reader.latestOffset(reader.initialOffset(), None)
        start = start or reader.initialOffset()
        reader.latestOffset(start, None)
        for _ in range(2):  # once more after a kill
            assert len(reader.partitions(start, end)) == 2
        start = end
    reader.commit(start)
    assert kept.outstanding() == 0


def test_a_query_of_an_earlier_release_goes_on(tmp_path: Path) -> None:
    kept, reader = filled(tmp_path, 0, 6), reader_of(tmp_path)
    old = {"feed": reader.initialOffset()["feed"], "elements": 2}  # without the name of a query
    assert reader.latestOffset(old, None) == {**old, "elements": 6}
    assert kept.outstanding() == 2
    with pytest.raises(SparkError, match="another query has committed elements of this feed"):
        reader.commit({**old, "elements": 4, "query": "another"})
    assert kept.outstanding() == 2
    reader.commit({**old, "elements": 6})
    assert kept.outstanding() == 0


def test_a_folder_that_can_not_be_used_is_free_as_well(spark: Any, tmp_path: Path) -> None:
    fed(spark, tmp_path / "feed", Flow.range(5)).done.result(PATIENCE)
    for _ in range(2):
        with pytest.raises(SparkError, match="holds segments of another schema"):
            Flow.just(("a",)).to_spark(spark, "s string").stream(tmp_path / "feed")
    assert fed(spark, tmp_path / "feed", Flow.range(5)).done.result(PATIENCE) == 5


def test_a_flow_that_is_closed_while_it_writes_keeps_the_folder_until_that_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes, goes_on = threading.Event(), threading.Event()
    real = parquet.write_table

    def held(*arguments: Any) -> None:
        writes.set()
        assert goes_on.wait(PATIENCE)
        real(*arguments)

    monkeypatch.setattr(parquet, "write_table", held)
    one, two = Segments(tmp_path, SCHEMA, 9), Segments(tmp_path, SCHEMA, 9)
    one.recovered()
    writer = threading.Thread(target=one.put, args=(pa.table({"n": [0, 1]}),))
    writer.start()
    assert writes.wait(PATIENCE)
    one.close()
    found: list[int] = []
    waits = threading.Thread(target=lambda: found.append(two.recovered()))
    waits.start()
    assert found == []
    goes_on.set()
    for thread in (writer, waits):
        thread.join(PATIENCE)
    assert found == [2]  # the segment was finished, and is counted
    assert one.put(pa.table({"n": [9]})) == 0  # it is over
    two.close()


WRITER = """
import sys, time
from pathlib import Path
import pyarrow as pa
from reactive_runtime.spark._feed.locks import FolderLock, HeldError
from reactive_runtime.spark._feed.segment_source import SegmentSource
from reactive_runtime.spark._feed.segments import Segments
kept = Segments(Path(sys.argv[1]), pa.schema([("n", pa.int64())]), 4)
position = kept.recovered()
print(position, flush=True)
while position < 100:
    if kept.room():
        position += kept.put(pa.table({"n": list(range(position, position + 10))}))
    else:
        time.sleep(0.002)
"""


def begun(folder: Path) -> subprocess.Popen[str]:
    """A process that feeds the folder, and has begun to."""
    process = subprocess.Popen([sys.executable, "-c", WRITER, str(folder)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline().strip().isdigit()
    return process


def gone(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


def test_a_kill_frees_the_folder(spark: Any, tmp_path: Path) -> None:
    writer = begun(tmp_path / "feed")
    try:
        with pytest.raises(SparkError, match=rf"another flow feeds this folder \(process {writer.pid} on "):
            fed(spark, tmp_path / "feed", Flow.range(5))
    finally:
        gone(writer)
    assert fed(spark, tmp_path / "feed", Flow.range(5)).done.result(PATIENCE) == 5


FORKS = """
import os, sys, time
from pathlib import Path
from reactive_runtime.spark._feed.locks import FolderLock

lock = FolderLock(Path(sys.argv[1]))
read, write = os.pipe()
child = os.fork()
if child == 0:
    if "closes" in sys.argv:
        lock.close()
    os.write(write, b".")
    while True:
        time.sleep(60)
os.read(read, 1)
print(child, flush=True)
time.sleep(600)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("child", ["leaves", "closes"])
def test_a_kill_frees_the_folder_although_a_forked_child_lives_on(child: str, tmp_path: Path) -> None:
    """As the workers of multiprocessing, where it forks. While the parent lives, the lock is its own."""
    file = tmp_path / ".lock"
    writer = subprocess.Popen([sys.executable, "-c", FORKS, file, child], stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    forked = int(writer.stdout.readline())
    try:
        with pytest.raises(HeldError, match=f"process {writer.pid} on "):
            FolderLock(file)
        gone(writer)
        os.kill(forked, 0)  # it lives
        FolderLock(file).close()
    finally:
        os.kill(forked, signal.SIGKILL)


SLOW = """
import os, signal, sys
from pathlib import Path

os.register_at_fork(after_in_child=signal.pause)  # the child does nothing else from here on
from reactive_runtime.spark._feed.locks import FolderLock

lock = FolderLock(Path(sys.argv[1]))
child = os.fork()
lock.close()
FolderLock(Path(sys.argv[1])).close()
os.kill(child, signal.SIGKILL)
"""

GRANDCHILD = """
import os, sys
from pathlib import Path
from reactive_runtime.spark._feed.locks import FolderLock

lock = FolderLock(Path(sys.argv[1]))
if os.fork() == 0:
    os.closerange(3, 64)  # as a daemon does
    log = open(sys.argv[1] + ".log", "w")
    if os.fork() == 0:
        del lock
        log.write("written")
        log.flush()
        os._exit(0)
    os.wait()
    os._exit(0)
os.wait()
print(open(sys.argv[1] + ".log").read())
"""

FULL = """
import resource, sys
from pathlib import Path
import pyarrow as pa
from reactive_runtime.spark._feed.segments import Segments

soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
schema = pa.schema([("n", pa.int64())])
for limit in 0, soft:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        Segments(Path(sys.argv[1]), schema, 4).recovered()
    except Exception as error:
        kept = error
    else:
        kept = None
    print("it works" if kept is None else type(kept).__name__)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize(
    ("program", "said"),
    [
        pytest.param(SLOW, "", id="a child that has not come to closing its own"),
        pytest.param(GRANDCHILD, "written\n", id="a number of a file that is another's by now"),
        pytest.param(FULL, "SparkError\nit works\n", id="a disk that was full when the lock was taken"),
    ],
)
def test_a_lock_is_where_it_was_taken_and_nowhere_else(program: str, said: str, tmp_path: Path) -> None:
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", program, str(tmp_path / "feed")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, said), done.stderr


def test_a_feed_is_read_in_another_process_beside_the_one_that_feeds_it(spark: Any, tmp_path: Path) -> None:
    """Twice: the writer is killed in the middle, and another goes on. Each number comes once, in order."""
    feed = tmp_path / "feed"
    writer = begun(feed)
    try:
        rows = Flow.from_stream(read_feed(feed, session=spark), checkpoint=tmp_path / "checkpoint")
        taken: list[int] = []
        handle = rows.map(lambda row: row["n"]).subscribe(taken.append)
        until(lambda: len(taken) >= 30)
    finally:
        gone(writer)
    writer = begun(feed)
    try:
        until(lambda: len(taken) >= 100)
    finally:
        gone(writer)
        handle.cancel()
    assert taken == list(range(100))


def test_a_feed_is_read_by_the_name_of_its_format(spark: Any, tmp_path: Path) -> None:
    fed(spark, tmp_path / "feed", Flow.range(7)).done.result(PATIENCE)
    df = spark.readStream.format("reactive_runtime_segments").load(str(tmp_path / "feed"))
    assert df.schema == read_feed(tmp_path / "feed").schema
    assert list(Flow.from_stream(df, trigger={"availableNow": True})) == [{"n": n} for n in range(7)]


def test_a_folder_without_a_feed_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SparkError, match=r"^read_feed: .*: there is no feed in this folder"):
        read_feed(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_address_is_a_folder_or_is_refused(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = Flow.range(3).map(lambda n: (n,)).to_spark(spark, "n long")
    for place, folder in ((f"file://{tmp_path}/a%20b", "a b"), (f"file:{tmp_path}/c", "c"), ("d", "d")):
        assert rows.stream(place).done.result(PATIENCE) == 3
        assert elements_fed(place) == elements_fed(tmp_path / folder) == 3
        assert list(Flow.from_stream(read_feed(place), trigger={"availableNow": True})) == [
            {"n": 0},
            {"n": 1},
            {"n": 2},
        ]
    for place in ("s3a://bucket/feed", "hdfs://host/feed", "file://host/feed"):
        words = rf"{re.escape(place)}: a feed is a folder that this process and the executors see by its path"
        with pytest.raises(SparkError, match=f"^to_spark: {words}"):
            rows.stream(place)
        with pytest.raises(SparkError, match=f"^elements_fed: {words}"):
            elements_fed(place)
        with pytest.raises(SparkError, match=f"^read_feed: {words}"):
            read_feed(place)
    assert sorted(item.name for item in tmp_path.iterdir()) == ["a b", "c", "d"]
