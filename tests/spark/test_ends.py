"""How a flow out of Spark ends where the query, the session or the JVM does, and what Spark's own `stop` waits for."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import Future
from functools import wraps
from pathlib import Path
from typing import Any

import pytest
from searching import one_pair_each_by_day
from sinks import PATIENCE, Sink, until

from reactive_runtime import Flow
from reactive_runtime.errors import SparkError
from reactive_runtime.spark._read.streams import _Query

pytestmark = pytest.mark.timeout(300)

ALL = {"availableNow": True}


def numbers(spark: Any, folder: Path, files: int = 3, rows: int = 7) -> Any:
    """A streaming DataFrame, one file of numbers a batch."""
    for number in range(files):
        spark.range(number * rows, (number + 1) * rows, 1, 1).toDF("n").write.mode("append").parquet(str(folder))
    return spark.readStream.schema("n long").option("maxFilesPerTrigger", 1).parquet(str(folder))


def the_query(spark: Any) -> Any:
    until(lambda: len(spark.streams.active) == 1)
    return spark.streams.active[0]


def ended(sink: Sink) -> str:
    """The words of the error that it ended with."""
    sink.wait()
    kind, *rest = sink.signals[-1]
    assert kind == "on_error", sink.signals[-1]
    assert isinstance(rest[0], SparkError)
    return str(rest[0])


STOPPED = "from_stream: the query was stopped before its end"


TRIGGERS: dict[str, Any] = {"none": None, "available": ALL, "time": {"processingTime": "1 second"}}


@pytest.mark.parametrize(("demand", "when"), one_pair_each_by_day([0, 3, 8], list(TRIGGERS)))
def test_a_query_that_another_stops_ends_its_flow_with_an_error(
    demand: int, when: str, spark: Any, tmp_path: Path
) -> None:
    sink = Sink(demand)
    df = numbers(spark, tmp_path / "in")
    Flow.from_stream(df, checkpoint=tmp_path / "checkpoint", trigger=TRIGGERS[when]).subscribe(sink)
    sink.wait_for(demand)
    stopped = threading.Thread(target=the_query(spark).stop)
    stopped.start()
    stopped.join(PATIENCE)
    assert not stopped.is_alive(), "Spark's own stop hangs"
    assert ended(sink).startswith(STOPPED)
    assert len(sink.elements) == demand
    # What was not taken comes again.
    first = demand // 7 * 7
    again = Flow.from_stream(df, checkpoint=tmp_path / "checkpoint", trigger=ALL)
    assert [row["n"] for row in again] == list(range(first, 21))


def test_a_query_that_another_stops_ends_a_flow_without_demand_whose_batch_waits(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No row is asked for, so that nothing subscribes to the rows of the batch."""
    handed_over = threading.Event()
    hand_over = _Query._hand_over

    def noted(query: _Query, df: Any, number: int) -> None:
        handed_over.set()
        hand_over(query, df, number)

    monkeypatch.setattr(_Query, "_hand_over", noted)
    sink = Sink(0)
    Flow.from_stream(numbers(spark, tmp_path / "in"), checkpoint=tmp_path / "checkpoint").subscribe(sink)
    assert handed_over.wait(PATIENCE)
    the_query(spark).stop()
    assert ended(sink).startswith(STOPPED)
    assert sink.elements == []
    assert not hasattr(sink.error, "__notes__"), "it is Spark's error, and of no operator"


def test_stop_returns_while_the_subscriber_holds_a_row(spark: Any, tmp_path: Path) -> None:
    holds, free = threading.Event(), threading.Event()

    def hold(sink: Any, element: Any) -> None:
        holds.set()
        assert free.wait(PATIENCE)

    sink = Sink(100, hold)
    Flow.from_stream(numbers(spark, tmp_path / "in"), checkpoint=tmp_path / "checkpoint").subscribe(sink)
    try:
        assert holds.wait(PATIENCE)
        stopped = threading.Thread(target=the_query(spark).stop)
        stopped.start()
        stopped.join(PATIENCE / 2)
        assert not stopped.is_alive(), "Spark's own stop waits for the subscriber"
    finally:
        free.set()
    assert ended(sink).startswith(STOPPED)


def test_a_second_run_of_a_checkpoint_ends_the_first_which_says_so(spark: Any, tmp_path: Path) -> None:
    df = numbers(spark, tmp_path / "in")
    flow = Flow.from_stream(df, checkpoint=tmp_path / "checkpoint", trigger=ALL)
    one = Sink(3)
    flow.subscribe(one)
    one.wait_for(3)
    assert [row["n"] for row in flow] == list(range(21))
    assert ended(one) == f"from_stream: another run of the checkpoint {tmp_path}/checkpoint has begun, and ended this"


def test_a_query_that_is_stopped_between_two_batches_is_not_at_its_end(spark: Any, tmp_path: Path) -> None:
    """Its last batch was taken, and there are others: from the outside it looks as at its end."""
    df = numbers(spark, tmp_path / "in")
    sink = Sink(0)
    flow = Flow.from_stream(df, checkpoint=tmp_path / "checkpoint", trigger=ALL)
    flow.subscribe(sink)
    query = the_query(spark)
    stops = threading.Thread(target=query.stop)

    def stop_at_the_last(sink: Any, element: Any) -> None:
        if element["n"] == 6:
            stops.start()
            until(lambda: not query.isActive)

    sink.then = stop_at_the_last
    sink.subscription.request(100)
    stops_by = ended(sink)
    stops.join(PATIENCE)
    assert stops_by.startswith(STOPPED)
    assert len(sink.elements) == 7


@pytest.mark.parametrize("trigger", [ALL, {"once": True}], ids=["available", "once"])
@pytest.mark.parametrize("files", [0, 2])
def test_a_query_that_comes_to_its_own_end_completes(trigger: Any, files: int, spark: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    sink = Sink()
    Flow.from_stream(numbers(spark, tmp_path / "in", files), trigger=trigger).subscribe(sink)
    sink.wait()
    assert sink.signals[-1] == ("on_complete",)
    assert len(sink.elements) == 7 * files


def test_a_query_that_comes_to_its_own_end_while_it_is_looked_at_completes(spark: Any, tmp_path: Path) -> None:
    """Between the wait for its end and the look whether it is active, it has ended."""

    class LookedAtLate:
        def __init__(self, query: Any) -> None:
            self._query, self._late = query, True

        def awaitTermination(self, timeout: float) -> bool:  # noqa: N802 - Spark's own name
            if self._late:
                self._late = False
                assert self._query.awaitTermination(PATIENCE)
                return False
            return bool(self._query.awaitTermination(timeout))

        def __getattr__(self, name: str) -> Any:
            return getattr(self._query, name)

    class Writer:
        def __init__(self, writer: Any) -> None:
            self._writer = writer

        def start(self) -> LookedAtLate:
            return LookedAtLate(self._writer.start())

        def __getattr__(self, name: str) -> Any:
            made = getattr(self._writer, name)
            return lambda *arguments, **named: Writer(made(*arguments, **named))

    class Frame:
        def __getattr__(self, name: str) -> Any:
            return Writer(df.writeStream) if name == "writeStream" else getattr(df, name)

    df = numbers(spark, tmp_path / "in")
    emitted: list[Any] = []

    class Taking:
        """What `Flow.create` hands on, with a subscriber that takes each batch at once."""

        def on_cancel(self, then: Any) -> None: ...

        def emit(self, batch: Any) -> None:
            batch.commit()

        def complete(self) -> None:
            emitted.append("on_complete")

        def error(self, error: BaseException) -> None:
            emitted.append(error)

    taking: Any = Taking()
    frame: Any = Frame()
    _Query(frame, tmp_path / "checkpoint", ALL, "append", taking, Future()).start()
    until(lambda: bool(emitted))
    assert emitted == ["on_complete"]


class TooLate:
    """A streaming DataFrame, the process of whose source connects too late, so many times."""

    def __init__(self, df: Any, times: int) -> None:
        self._df, self.left, self.starts = df, times, 0

    def __getattr__(self, name: str) -> Any:
        return LateWriter(self, self._df.writeStream) if name == "writeStream" else getattr(self._df, name)


class LateWriter:
    def __init__(self, frame: TooLate, writer: Any) -> None:
        self._frame, self._writer = frame, writer

    def start(self) -> Any:
        self._frame.starts += 1
        self._frame.left -= 1
        return self if self._frame.left >= 0 else self._writer.start()

    def awaitTermination(self, timeout: float) -> bool:  # noqa: N802 - Spark's own name
        raise RuntimeError("Timed out while waiting for the Python worker to connect back")

    def stop(self) -> None:
        """It has ended."""

    def __getattr__(self, name: str) -> Any:
        made = getattr(self._writer, name)

        @wraps(made)  # its parameters are looked at
        def called(*arguments: Any, **named: Any) -> LateWriter:
            return LateWriter(self._frame, made(*arguments, **named))

        return called


def test_a_query_is_started_again_if_its_process_connects_late(spark: Any, tmp_path: Path) -> None:
    df: Any = TooLate(numbers(spark, tmp_path / "in"), 3)
    assert len(list(Flow.from_stream(df, trigger=ALL))) == 21
    assert df.starts == 4


def test_a_query_whose_process_is_always_late_fails(spark: Any, tmp_path: Path) -> None:
    df: Any = TooLate(numbers(spark, tmp_path / "in"), 100)
    with pytest.raises(SparkError, match="connect back"):
        list(Flow.from_stream(df, trigger=ALL))
    assert df.starts == 4


PROGRAM = """
import os, signal, sys, threading
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from sinks import PATIENCE, Sink, until
from reactive_runtime import Flow
from reactive_runtime.spark import session
from reactive_runtime.spark._session.spark_session import BRIEF

folder, way = Path(sys.argv[1]), sys.argv[2]
spark = session("local[2]", {**BRIEF, "spark.driver.memory": "1g"})
spark.range(0, 20, 1, 1).toDF("n").write.parquet(str(folder / "in"))
rows = spark.readStream.schema("n long").parquet(str(folder / "in"))
holds, waits, asks = Sink(3), Sink(0), Sink(30)
Flow.from_stream(rows, checkpoint=folder / "one").subscribe(holds)
Flow.from_stream(rows, checkpoint=folder / "three").subscribe(waits)
idle = Sink(100)
Flow.from_stream(rows, checkpoint=folder / "two").subscribe(idle)
frame = Flow.from_dataframe(spark.range(0, 100, 1, 10))
frame.subscribe(asks)
holds.wait_for(3)
idle.wait_for(20)
asks.wait_for(30)
waits.subscribed.wait(PATIENCE)
until(lambda: len(spark.streams.active) == 3)
if way == "stop":
    spark.stop()
else:
    os.kill(spark.sparkContext._gateway.proc.pid, signal.SIGKILL)
    for process in (spark.sparkContext._gateway.proc,):
        process.wait()
asks.subscription.request(100)
sinks = {"holds": holds, "waits": waits, "idle": idle, "asks": asks}
frame.subscribe(late := Sink())
sinks["late"] = late
for name, sink in sinks.items():
    if sink.ended.wait(PATIENCE):
        print(name, sink.signals[-1][0], sink.signals[-1][1:], flush=True)
    else:
        print(name, "hears nothing", flush=True)
os._exit(0)
"""


@pytest.mark.parametrize("way", [pytest.param("stop", marks=pytest.mark.nightly), "kill"])
def test_a_session_that_was_stopped_and_a_jvm_that_is_gone_are_reported_at_once(way: str, tmp_path: Path) -> None:
    tests = Path(__file__).parent.parent
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path), way, str(tests)],
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    words = "the session of Spark was stopped" if way == "stop" else "the JVM of Spark is gone"
    told = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert set(told) == {"holds", "waits", "idle", "asks", "late"}, done.stderr[-3000:]
    for name, end in told.items():
        what = "from_stream" if name in ("holds", "waits", "idle") else "from_dataframe"
        assert end.startswith("on_error"), (name, end)
        assert f"SparkError('{what}: {words}" in end or f"SparkError('from_dataframe: {words}" in end, (name, end)


def test_a_trigger_that_spark_has_not_is_refused_at_once(spark: Any) -> None:
    ticks = spark.readStream.format("rate").load()
    with pytest.raises(TypeError, match=r"^from_stream: trigger has no 'availableNowx', but processingTime, once"):
        Flow.from_stream(ticks, trigger={"availableNowx": True})
    with pytest.raises(ValueError, match=r"^from_stream: trigger: .*availableNow"):
        Flow.from_stream(ticks, trigger={"availableNow": "x"})
    with pytest.raises(ValueError, match=r"^from_stream: trigger: .*Error parsing 'soon' to interval"):
        Flow.from_stream(ticks, trigger={"processingTime": "soon"})
