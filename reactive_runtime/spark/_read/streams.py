"""Out of Spark, as it comes: a Structured Streaming query as a flow.

    demand ──▶ rows of one micro-batch ──▶ all taken: Spark commits it ──▶ the next micro-batch is planned

The query hands over one micro-batch at a time and waits, on a thread of its own, until the last of its rows has been
taken; only then does Spark commit it. So demand holds the query back, and what was not taken comes again.

Spark says of a query that has ended whether it has failed, but not whether it came to its own end or was stopped, and
of one that is being stopped nothing at all before its batch is given back. So a thread watches the
query while it runs: where the query is being stopped, that thread gives back the batch that waits, and the flow fails.

A source in Python has a process, which Spark gives up if it does not connect within 10 s. On a busy machine it may not:
then the query is started again, if no batch has come from it.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from reactive_runtime._core.failures import dropping
from reactive_runtime._core.runtime import primitives
from reactive_runtime._core.runtime.arguments import one_of
from reactive_runtime._flow import Flow
from reactive_runtime._operators.sources.creating import Emitter
from reactive_runtime.errors import SparkError
from reactive_runtime.spark._feed.segments import local_path
from reactive_runtime.spark._read.frames import Rows, flow_of_rows
from reactive_runtime.spark._session.spark_errors import (
    a_dataframe,
    found_no_more,
    is_connected,
    lost,
    not_stopped,
    spark_error,
    worker_was_late,
)
from reactive_runtime.spark._write.arrow_types import first_line

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame

__all__ = ["Mode", "flow_of_stream"]

Mode = Literal["append", "update", "complete"]


def flow_of_stream(
    df: DataFrame,
    checkpoint: str | Path | None,
    trigger: Mapping[str, Any] | None,
    mode: Mode,
    prefetch_partitions: int,
    form: Rows,
    batch_rows: int,
) -> Flow[Any]:
    """`Flow.from_stream`; see there."""
    a_dataframe("from_stream", df)
    if is_connected(df):
        raise TypeError(
            "from_stream: a DataFrame of Spark Connect can't be used here, whose batches only its server sees: use a"
            " session with a master, or map_flow, which runs on the executors"
        )
    one_of("from_stream", "mode", get_args(Mode), mode)
    if not df.isStreaming:
        raise TypeError("from_stream: a streaming DataFrame is needed (readStream); for others there is from_dataframe")
    if trigger is not None:
        _check_trigger(df, trigger)

    def taken(batch: _Batch) -> Flow[Any]:
        all_of_it = flow_of_rows(batch.df, prefetch_partitions, form, batch_rows)
        # `concat` subscribes to the second when what follows has returned from the last row of the first.
        return Flow.concat(all_of_it, Flow.defer(batch.commit))

    def from_stream() -> Flow[Any]:
        cut: primitives.Future[object] = primitives.Future()

        def begun(emitter: Emitter[_Batch]) -> None:
            _Query(df, checkpoint, trigger, mode, emitter, cut).start()

        batches = Flow.create(begun, capacity=2)

        def failing(ends: Emitter[Any]) -> None:  # the hook gets it, where the flow was cancelled meanwhile
            cut.add_done_callback(lambda done: ends.error(_error_of(done)))

        # Not inside of `taken`, which is called when there is demand: a flow without any fails as well.
        return batches.concat_map(taken).take_until(Flow.create(failing))

    return Flow.defer(from_stream)


def _check_trigger(df: DataFrame, trigger: Mapping[str, Any]) -> None:
    """TypeError for a trigger that Spark does not know, ValueError for a value that Spark does not take."""
    from pyspark.errors import IllegalArgumentException

    known = inspect.signature(df.writeStream.trigger).parameters
    if other := [name for name in trigger if name not in known]:
        raise TypeError(f"from_stream: trigger has no {other[0]!r}, but {', '.join(known)}")
    try:
        df.writeStream.trigger(**trigger)
    except (ValueError, IllegalArgumentException) as error:
        raise ValueError(f"from_stream: trigger: {first_line(error)}") from error


def _error_of(failed: primitives.Future[object]) -> BaseException:
    error = failed.exception()
    assert error is not None, "a flow is cut by an error only"
    return error


class _NotTakenError(Exception):
    """Raised into Spark, so that it does not commit a batch that was not taken."""


def _is_news(record: logging.LogRecord) -> bool:
    return not (record.exc_info and isinstance(record.exc_info[1], _NotTakenError))


logging.getLogger("py4j.clientserver").addFilter(_is_news)  # it logs all that a callback raises


class _Batch:
    """A micro-batch that Spark waits for."""

    def __init__(self, df: DataFrame) -> None:
        self.df = df
        self._lock = primitives.Lock()
        self._open = True  # _lock
        self._settled: primitives.Future[None] = primitives.Future()

    def commit(self) -> Flow[Any]:
        """All rows have been taken."""
        if self._first():
            self._settled.set_result(None)
        return Flow.empty()

    def refuse(self) -> None:
        """It will not be taken any more, unless it was."""
        if self._first():
            self._settled.set_exception(_NotTakenError("this batch was not taken: the flow is over"))

    def was_taken(self) -> bool:
        """Whether it was committed."""
        return self._settled.done() and self._settled.exception() is None

    def wait(self) -> None:
        """For the one or the other."""
        self._settled.result()

    def _first(self) -> bool:
        with self._lock:
            first, self._open = self._open, False
        return first


_IS_IT: Final = "if it is that of another query, use another folder"

_LOOK: Final = 0.2
"""Seconds between two looks at a query: Spark does not say when it is being stopped."""

_STARTS: Final = 4
"""How often a query is started, at most, where the process of its source connects too late."""

_runs: dict[str, _Query] = {}  # _runs_lock; those that run, by checkpoint

_runs_lock = primitives.Lock()


class _Query:
    """The query of one subscription. `cut` gets the error with which the flow fails, rows that wait or not."""

    def __init__(
        self,
        df: DataFrame,
        checkpoint: str | Path | None,
        trigger: Mapping[str, Any] | None,
        mode: Mode,
        emitter: Emitter[_Batch],
        cut: primitives.Future[object],
    ) -> None:
        writer = df.writeStream.outputMode(mode).foreachBatch(self._hand_over)
        if checkpoint is not None:
            writer = writer.option("checkpointLocation", str(checkpoint))
        self._writer = writer if trigger is None else writer.trigger(**trigger)
        self._ends = "availableNow" in (trigger or {}), "once" in (trigger or {})
        self._session = df.sparkSession
        self._checkpoint = checkpoint
        folder = None if checkpoint is None else local_path(checkpoint)
        self._goes_on = folder is not None and (folder / "offsets").exists()
        self._place = str(folder.absolute()) if folder is not None else str(checkpoint)
        self._emitter = emitter
        self._cut = cut
        self._lock = primitives.Lock()
        self._over = False  # _lock
        self._batch: _Batch | None = None  # _lock; the one that Spark waits for; None: there has been none
        self._query: Any = None  # _lock
        self._replaced = False  # _lock; whether another run of its checkpoint has begun

    def start(self) -> None:
        """Returns at once; the query runs on a thread of its own."""
        self._emitter.on_cancel(self._stop)
        primitives.Thread(target=self._run, name="from_stream", daemon=True).start()

    def _run(self) -> None:
        try:
            not_stopped("from_stream", self._session)
            self._replace()
            failure = self._ran()
        except Exception as error:
            failure = self._failure(error)
        self._leave()
        with self._lock:
            over, batch = self._over, self._batch
        if failure is None:
            self._emitter.complete()
        elif not over:
            if batch is not None:
                batch.refuse()
            self._cut.set_exception(failure)

    def _ran(self) -> SparkError | None:
        """Start the query, and wait until it has ended; see `_watched`."""
        for left in reversed(range(_STARTS)):
            query = self._writer.start()
            with self._lock:
                self._query = query
                over = self._over
            if over:
                query.stop()
            try:
                return self._watched(query)
            except Exception as error:
                with self._lock:
                    again = left and self._batch is None and not self._over
                if not (again and worker_was_late(error)):
                    raise
        raise AssertionError

    def _watched(self, query: Any) -> SparkError | None:
        """Wait until it has ended, or is about to; why, where that was not its own end. Raises what it failed with."""
        while not query.awaitTermination(_LOOK):
            if self._holds_a_batch() and not query.isActive:  # Spark waits for the batch, to end the query
                return self._stopped()
            failure = lost("from_stream", self._session)
            if failure is not None:
                return failure
        return lost("from_stream", self._session) or (None if self._at_its_end(query) else self._stopped())

    def _holds_a_batch(self) -> bool:
        """Whether Spark waits for a batch. Without one, a query that is not active any more is about to end itself."""
        with self._lock:
            return self._batch is not None and not self._batch.was_taken()

    def _at_its_end(self, query: Any) -> bool:
        """Whether a query that has ended, without an error, was not stopped."""
        if self._holds_a_batch():
            return False
        all_there_was, once = self._ends
        with self._lock:
            batch = self._batch
        if once and batch is not None:
            return True
        return (all_there_was or once) and found_no_more(query, batches=batch is not None)

    def _stopped(self) -> SparkError:
        with self._lock:
            replaced = self._replaced
        if replaced:
            return SparkError(
                f"from_stream: another run of the checkpoint {self._checkpoint} has begun, and ended this"
            )
        return SparkError(
            "from_stream: the query was stopped before its end: by its `stop`, or by another run of its checkpoint"
        )

    def _failure(self, error: Exception) -> SparkError:
        ended = lost("from_stream", self._session)
        if ended is not None:
            return ended
        failure = spark_error("from_stream", error)
        with self._lock:
            begun = self._batch is not None
        if self._goes_on and not begun:
            failure = SparkError(f"{failure}; the checkpoint {self._checkpoint} was there before: {_IS_IT}")
        failure.__cause__ = error
        return failure

    def _replace(self) -> None:
        """Spark ends a query when another begins with its checkpoint: so that the one before can say so."""
        if self._checkpoint is None:
            return
        with _runs_lock:
            before, _runs[self._place] = _runs.get(self._place), self
        if before is not None:
            before._is_replaced()

    def _is_replaced(self) -> None:
        with self._lock:
            self._replaced = True

    def _leave(self) -> None:
        with _runs_lock:
            if _runs.get(self._place) is self:
                del _runs[self._place]

    def _hand_over(self, df: DataFrame, number: int) -> None:
        """On Spark's thread: return when all of it has been taken."""
        batch = _Batch(df)
        with self._lock:
            over, self._batch = self._over, batch
        if over:
            batch.refuse()
        else:  # not on this thread, which Spark waits for when it stops: a subscriber may hold up the one that emits
            primitives.Thread(target=self._emitter.emit, args=(batch,), name="from_stream: batch", daemon=True).start()
        batch.wait()

    def _stop(self) -> None:
        """The flow is over: it was cancelled, has failed, or the query has ended."""
        with self._lock:
            self._over = True
            batch, query = self._batch, self._query
        if batch is not None:
            batch.refuse()
        if query is not None:  # stopping waits for Spark, and a cancel should not
            primitives.Thread(
                target=self._quietly_stopped, args=(query,), name="from_stream: stop", daemon=True
            ).start()

    def _quietly_stopped(self, query: Any) -> None:
        try:
            query.stop()
        except Exception as error:
            if lost("from_stream", self._session) is None:
                dropping.error_dropped("from_stream: Spark could not stop the query", error)
