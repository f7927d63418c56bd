"""Out of Spark, as it comes: a Structured Streaming query as a flow.

    demand ──▶ rows of one micro-batch ──▶ all taken: Spark commits it ──▶ the next micro-batch is planned

The query hands over one micro-batch at a time and waits, on a thread of its own, until the last of its rows has been
taken; only then does Spark commit it. So demand holds the query back, and what was not taken comes again.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from reactive_runtime._core import dropping, primitives
from reactive_runtime._core.arguments import one_of
from reactive_runtime._operators.creating import Emitter
from reactive_runtime.errors import SparkError
from reactive_runtime.flow import Flow
from reactive_runtime.spark.frames import Rows, flow_of_rows
from reactive_runtime.spark.spark_errors import a_dataframe, not_stopped, spark_error

if TYPE_CHECKING:
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
    one_of("from_stream", "mode", get_args(Mode), mode)
    if not df.isStreaming:
        raise TypeError("from_stream: a streaming DataFrame is needed (readStream); for others there is from_dataframe")

    def taken(batch: _Batch) -> Flow[Any]:
        all_of_it = flow_of_rows(batch.df, prefetch_partitions, form, batch_rows)
        # `concat` subscribes to the second when what follows has returned from the last row of the first.
        return Flow.concat(all_of_it, Flow.defer(batch.commit))

    def begun(emitter: Emitter[_Batch]) -> None:
        _Query(df, checkpoint, trigger, mode, emitter).start()

    return Flow.create(begun, capacity=2).concat_map(taken)


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
        """It will not be taken any more."""
        if self._first():
            self._settled.set_exception(_NotTakenError("this batch was not taken: the flow is over"))

    def wait(self) -> None:
        """For the one or the other."""
        self._settled.result()

    def _first(self) -> bool:
        with self._lock:
            first, self._open = self._open, False
        return first


_IS_IT: Final = "if it is that of another query, use another folder"


class _Query:
    """The query of one subscription."""

    def __init__(
        self,
        df: DataFrame,
        checkpoint: str | Path | None,
        trigger: Mapping[str, Any] | None,
        mode: Mode,
        emitter: Emitter[_Batch],
    ) -> None:
        writer = df.writeStream.outputMode(mode).foreachBatch(self._hand_over)
        if checkpoint is not None:
            writer = writer.option("checkpointLocation", str(checkpoint))
        self._writer = writer if trigger is None else writer.trigger(**trigger)
        self._session = df.sparkSession
        self._checkpoint = checkpoint
        self._goes_on = checkpoint is not None and (Path(checkpoint) / "offsets").exists()
        self._emitter = emitter
        self._lock = primitives.Lock()
        self._over = False  # _lock
        self._batch: _Batch | None = None  # _lock; the one that Spark waits for; None: there has been none
        self._query: Any = None  # _lock

    def start(self) -> None:
        """Returns at once; the query runs on a thread of its own."""
        self._emitter.on_cancel(self._stop)
        primitives.Thread(target=self._run, name="from_stream", daemon=True).start()

    def _run(self) -> None:
        try:
            not_stopped("from_stream", self._session)
            query = self._writer.start()
            with self._lock:
                self._query = query
                over = self._over
            if over:
                query.stop()
            query.awaitTermination()
        except Exception as error:
            with self._lock:
                over, begun = self._over, self._batch is not None
            if not over:
                failure = spark_error("from_stream", error)
                if self._goes_on and not begun:
                    failure = SparkError(f"{failure}; the checkpoint {self._checkpoint} was there before: {_IS_IT}")
                failure.__cause__ = error
                self._emitter.error(failure)
        else:
            self._emitter.complete()

    def _hand_over(self, df: DataFrame, number: int) -> None:
        """On Spark's thread: return when all of it has been taken."""
        batch = _Batch(df)
        with self._lock:
            over, self._batch = self._over, batch
        if over:
            batch.refuse()
        else:
            self._emitter.emit(batch)
        batch.wait()

    def _stop(self) -> None:
        """The flow is over: it was cancelled, has failed, or the query has ended."""
        with self._lock:
            self._over = True
            batch, query = self._batch, self._query
        if batch is not None:
            batch.refuse()
        if query is not None:  # stopping waits for Spark, and a cancel should not
            primitives.Thread(target=_quietly_stopped, args=(query,), name="from_stream: stop", daemon=True).start()


def _quietly_stopped(query: Any) -> None:
    try:
        query.stop()
    except Exception as error:
        dropping.error_dropped("from_stream: Spark could not stop the query", error)
