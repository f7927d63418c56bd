"""Between the flow of a task and the task's thread: what the flow gives, in batches that leave when they are due.

flow, on threads of its own ──on_next──▶ queue ──take, full or due──▶ the task's thread ──▶ Spark
                             ◀─request──         as many as were taken
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from reactive_runtime._core.failures import dropping
from reactive_runtime._core.runtime import primitives
from reactive_runtime._core.runtime.arguments import not_none, signalled_error
from reactive_runtime._spec import Subscription

if TYPE_CHECKING:
    from reactive_runtime._flow import Flow

__all__ = ["TaskOutput"]

_END: Final = object()

LOOK: Final = 1.0
"""Seconds after which a task without a row that is due writes a batch without any: where Spark has ended the task, that
fails."""


class TaskOutput:
    """A subscriber whose elements one other thread takes: `most` rows together, or those of the last `max_delay`.

    The rows that are requested and those that wait are `most` at the most; an Arrow batch counts as its
    rows, and these are requested one by one, so that no more than one is beyond.

    A row goes through a queue, and takes no lock of ours: that costs as much as three steps of the flow. Whether all
    that was requested has come is seen from two counts. The thread that takes adds to `_asked` before it requests, so
    the drain sees no less than what it may give.
    """

    shown_as: Final = "map_flow"

    def __init__(self, most: int, max_delay: float) -> None:
        self._most = most
        self._max_delay = max_delay
        self._waiting: primitives.SimpleQueue[Any] = (
            primitives.SimpleQueue()
        )  # what was given and not taken, and _END at the end
        self._put = self._waiting.put
        self._lock = primitives.Lock()
        self._changed = primitives.Condition(self._lock)
        self._over = False  # _lock; final: the end came, or the flow was cancelled
        self._error: BaseException | None = None  # _lock; set once, with `_over`
        self._subscription: Subscription | None = None  # _lock; set once
        self._arrow: bool | None = None  # the drain's; set once, by the first `on_next`: whether elements are Arrow's
        self._came = 0  # the drain's; rows in all. The task's thread reads it, and is notified when it is `_asked`
        self._asked = 1  # _lock; rows that may have come in all. The drain reads it without, see above
        self._cancelled = False  # the task's thread's; set before it empties the queue, read behind what was put there
        self._emptied = primitives.monotonic()  # the task's thread's; what waits has come since
        self._first: Any = None  # the task's thread's; taken out of the queue, and waits for `_due`
        self._due = 0.0  # the task's thread's
        self._ended = False  # the task's thread's; it has found _END

    def begin(self, flow: Flow[Any]) -> None:
        """Subscribe. For the task's thread, once."""
        flow.subscribe(self)

    def take(self) -> list[Any] | None:
        """Wait for the elements that leave now; None at the end. Raises the error of the flow, after those before it.

        Nothing: none was due for a while. For the task's thread.
        """
        taken = [] if self._ended else self._taken()
        if self._ended and not taken:
            if self._error is not None:
                raise self._error
            return None
        with self._lock:
            full = self._came >= self._asked
            self._asked += sum(element.num_rows for element in taken) if self._arrow else len(taken)
            more = len(taken) if not self._arrow else int(full and self._came < self._asked)
            subscription = None if self._over else self._subscription
        if more and subscription is not None:
            subscription.request(more)
        return taken

    def _taken(self) -> list[Any]:
        if self._first is None:
            try:
                first, since = self._waiting.get_nowait(), self._emptied
            except primitives.Empty:
                try:
                    first, since = self._waiting.get(timeout=LOOK), primitives.monotonic()
                except primitives.Empty:
                    return []
            self._first, self._due = first, since + self._max_delay
        left = self._due - primitives.monotonic()
        if left > 0:
            with self._lock:
                leaves = self._changed.wait_for(lambda: self._over or self._came >= self._asked, min(left, LOOK))
            if left > LOOK and not leaves:
                return []
        taken = [self._first, *(self._waiting.get_nowait() for _ in range(self._waiting.qsize()))]
        self._first = None
        self._emptied = primitives.monotonic()
        if not self._over:  # set before _END is put
            return taken
        end = next((place for place, element in enumerate(taken) if element is _END), None)
        self._ended = end is not None
        if self._ended:
            dropping.elements_dropped("they came after the error of their task", taken[end:][1:])
        return taken[:end]

    def fail(self, error: BaseException) -> None:
        """End it with an error that is no signal of the flow. Any thread."""
        self._end(error)

    def cancel(self) -> None:
        """Cancel the flow; nothing is taken any more. For the task's thread."""
        with self._lock:
            self._over = self._cancelled = True
            subscription, self._subscription = self._subscription, None
        if subscription is not None:
            subscription.cancel()
        first, self._first = self._first, None
        self._drop_waiting("its task ended before it was sent", () if first is None else (first,))

    def _drop_waiting(self, why: str, before: Iterable[Any] = ()) -> None:
        left = list(before)
        with suppress(primitives.Empty):
            while True:
                left.append(self._waiting.get_nowait())
        dropping.elements_dropped(why, [element for element in left if element is not _END])

    # -- signals

    def on_subscribe(self, subscription: Subscription, /) -> None:
        """One row is requested, whose type says how many more."""
        not_none("on_subscribe", subscription)
        with self._lock:
            late = self._over or self._subscription is not None
            if not late:
                self._subscription = subscription
        if late:
            subscription.cancel()  # 2.5
        else:
            subscription.request(1)

    def on_next(self, element: Any, /) -> None:
        """It waits to be taken."""
        if element is None:
            not_none("on_next", element)
        if self._arrow is not False:
            self._on_first_or_arrow(element)
        else:
            self._put(element)
            came = self._came = self._came + 1
            if came == self._asked:
                with self._lock:
                    self._changed.notify()
        if self._cancelled:
            self._drop_waiting("it came after its task had ended")

    def _on_first_or_arrow(self, element: Any) -> None:
        import pyarrow as pa

        first = self._arrow is None
        if first:
            self._arrow = isinstance(element, pa.RecordBatch | pa.Table)
        self._put(element)
        with self._lock:
            if first:
                self._asked += self._most - 1
            self._came += element.num_rows if self._arrow else 1
            if self._came >= self._asked:
                self._changed.notify()
            more = int(self._came < self._asked) if self._arrow else self._most - 1
            subscription = self._subscription
        if more and subscription is not None:
            subscription.request(more)

    def on_error(self, error: BaseException, /) -> None:
        """It is raised behind what waits."""
        error = signalled_error(error, "the publisher")
        if not self._end(error):
            dropping.error_dropped("a flow failed after its task had ended", error)

    def on_complete(self) -> None:
        """The end is behind what waits."""
        self._end(None)

    def _end(self, error: BaseException | None) -> bool:
        with self._lock:
            first = not self._over
            if first:
                self._over, self._error = True, error
                self._waiting.put(_END)
                self._changed.notify()
        return first
