"""The rows that a task takes: counted, taken once, and found again where an error is about one of them."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from operator import length_hint
from typing import TYPE_CHECKING, Any

from reactive_runtime._core.failures.assembly import notes_of
from reactive_runtime._core.runtime import primitives
from reactive_runtime._support.shown import shown
from reactive_runtime.errors import SparkError

if TYPE_CHECKING:
    import pyarrow

    from reactive_runtime.spark._read.frames import Form

__all__ = ["Counter", "TaskInput", "encodable", "failed", "with_notes"]


class Counter:
    """Counts what several threads do."""

    def __init__(self, count: int = 0) -> None:
        self._lock = primitives.Lock()
        self.count: int = count  # _lock; read without: a reader has the one before, or after

    def add(self) -> None:
        """One more."""
        with self._lock:
            self.count += 1


class TaskInput:
    """The rows that come, counted as they are taken.

    `again` is called where a flow would take them a second time: they are not there any more.
    """

    def __init__(
        self, batches: Iterable[pyarrow.RecordBatch], form: Form, again: Callable[[SparkError], object] | None = None
    ) -> None:
        self._batches = iter(batches)
        self._form = form
        self._again = again
        self._lock = primitives.Lock()
        self._begun = False  # _lock
        self._before = 0  # _lock; rows of earlier batches
        self._rows: list[Any] = []  # _lock; of this batch, and of the one before: what an error may be about
        self._earlier: list[Any] = []  # _lock
        self._left: Iterator[Any] = iter(())  # _lock; the flow's drain advances it

    def rows(self) -> Iterator[Any]:
        """All of them, once.

        A second call would find those that the first has left, and rows would be lost. So it is an error that no
        operator of the flow can take for another: `again` gets it too.
        """
        with self._lock:
            second, self._begun = self._begun, True
        if second:
            error = SparkError(
                "the rows of a partition come once, and the flow was subscribed to twice: put `retry` on the call for a"
                " row, as in flat_map(lambda row: Flow.from_callable(...).retry(3)), and share rows by"
                " publish().ref_count(2)"
            )
            if self._again is not None:
                self._again(error)
            raise error
        return chain.from_iterable(map(self._next, self._batches))

    def _next(self, batch: pyarrow.RecordBatch) -> Iterator[Any]:
        with self._lock:
            first = self._before + len(self._rows)
        rows = list(self._form([batch], first))
        left = iter(rows)
        with self._lock:
            self._before += len(self._rows)
            self._earlier, self._rows, self._left = self._rows, rows, left
        return left

    @property
    def count(self) -> int:
        """How many were taken. Any thread."""
        with self._lock:
            return self._before + len(self._rows) - length_hint(self._left)

    def found(self, error: BaseException) -> str:
        """The row that the error is about: the one that a frame of its traceback had in hand; empty: none."""
        with self._lock:
            first, rows = self._before - len(self._earlier), [*self._earlier, *self._rows]
        numbers = {id(row): first + place for place, row in enumerate(rows)}
        for item in reversed(list(_causes(error))):  # the first of them was where the row was
            for frame in reversed(list(_frames(item))):
                for value in frame.values():
                    if id(value) in numbers:
                        return f"row {numbers[id(value)]} {shown(value)}"
        return ""


def _causes(error: BaseException) -> Iterator[BaseException]:
    item: BaseException | None = error
    while item is not None:
        yield item
        item = item.__cause__


def _frames(error: BaseException) -> Iterator[dict[str, Any]]:
    trace = error.__traceback__
    while trace is not None:
        if not inspect.getmodule(trace.tb_frame) or trace.tb_frame.f_globals.get("__name__") != __name__:
            yield trace.tb_frame.f_locals
        trace = trace.tb_next


def encodable(text: str) -> str:
    """The text with lone surrogates written out: an error may have them, and nothing that goes to Spark."""
    return text.encode("utf-8", "backslashreplace").decode()


def failed(what: str, error: Exception, inputs: Iterable[TaskInput]) -> SparkError:
    """The error of a task, with the partition and the row that it is about.

    Its cause is the error; where Spark's worker could not send the traceback of that, an error with it as text.
    """
    rows = next((row for item in inputs if (row := item.found(error))), "") or _among(inputs)
    made = SparkError(encodable(f"{what}: {_where()}{rows}: {with_notes(error)}"))
    made.__cause__ = _sendable(error)
    return made


def _sendable(error: Exception) -> Exception:
    try:
        text = "".join(traceback.format_exception(error))
    except Exception:  # foreign code: its text, its notes
        return SparkError(encodable(with_notes(error)))
    sent = encodable(text)
    return error if sent == text else SparkError(sent)


def _among(inputs: Iterable[TaskInput]) -> str:
    count = sum(item.count for item in inputs)
    return f"one of the {count:,} rows that were taken" if count else "before a row was taken"


def with_notes(error: BaseException) -> str:
    """The error in one line, with what was noted on it."""
    notes = "; ".join(notes_of(error))
    try:
        said = str(error)
    except Exception as second:  # foreign code
        said = f"its text raised {type(second).__name__}"
    return f"{type(error).__name__}: {said}" + (f" ({notes})" if notes else "")


def _where() -> str:
    from pyspark import TaskContext

    context = TaskContext.get()
    return "" if context is None else f"partition {context.partitionId()}, "
