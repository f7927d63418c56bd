"""Between the flow of a task and the task's thread: what the flow gives, in batches that leave when they are due.

flow, on threads of its own ──on_next──▶ rows ──take, full or due──▶ the task's thread ──▶ Spark
                             ◀─request──        as many as were taken
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from reactive_runtime._core import dropping, primitives
from reactive_runtime._core.arguments import not_none
from reactive_runtime.spec import Subscription

if TYPE_CHECKING:
    from reactive_runtime.flow import Flow

__all__ = ["TaskOutput"]

LOOK: Final = 1.0
"""Seconds after which a task without rows writes a batch without any: where Spark has ended the task, that fails."""


class TaskOutput:
    """A subscriber whose elements one other thread takes: `most` rows together, or those of the last `max_delay`.

    What is requested and what waits is never more than `most` rows; an element that is an Arrow batch counts as its
    rows, and these are requested one by one, so that no more than one is beyond.
    """

    shown_as: Final = "map_flow"

    def __init__(self, most: int, max_delay: float) -> None:
        self._most = most
        self._max_delay = max_delay
        self._lock = primitives.Lock()
        self._changed = primitives.Condition(self._lock)
        self._elements: list[Any] = []  # _lock; given, and not taken
        self._rows = 0  # _lock; of those
        self._since = 0.0  # _lock; when the first of them came
        self._over = False  # _lock; final: the end came, or the flow was cancelled
        self._error: BaseException | None = None  # _lock; set once, with `_over`
        self._subscription: Subscription | None = None  # _lock; set once
        self._arrow: bool | None = (
            None  # set once, by the first `on_next`, before `_lock`; whether elements are Arrow's
        )

    def begin(self, flow: Flow[Any]) -> None:
        """Subscribe. For the task's thread, once."""
        flow.subscribe(self)

    def take(self) -> list[Any] | None:
        """What is to leave now, waited for; None at the end. Raises the error of the flow, after what came before it.

        Nothing: there was none for a while. For the task's thread.
        """
        with self._lock:
            if not self._changed.wait_for(lambda: self._elements or self._over, LOOK):
                return []
            left = self._since + self._max_delay - primitives.monotonic()
            if self._elements and left > 0:
                self._changed.wait_for(lambda: self._rows >= self._most or self._over, left)
            if not self._elements:
                if self._error is not None:
                    raise self._error
                return None
            taken, rows = self._elements, self._rows
            self._elements, self._rows = [], 0
            subscription = None if self._over else self._subscription
        if subscription is not None:
            if not self._arrow:
                subscription.request(rows)
            elif rows >= self._most:  # else the one that is to come next was requested
                subscription.request(1)
        return taken

    def fail(self, error: BaseException) -> None:
        """End it with an error that is no signal of the flow. Any thread."""
        self._end(error)

    def cancel(self) -> None:
        """Cancel the flow; nothing is taken any more. Any thread."""
        with self._lock:
            self._over = True
            left, self._elements, self._rows = self._elements, [], 0
            subscription, self._subscription = self._subscription, None
            self._changed.notify()
        if subscription is not None:
            subscription.cancel()
        dropping.elements_dropped("its task ended before it was sent", left)

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
        not_none("on_next", element)
        if self._arrow is not False:
            self._on_first_or_arrow(element)
            return
        with self._lock:
            over = self._over
            if not over:
                self._elements.append(element)
                self._rows += 1
                if self._rows == 1:
                    self._since = primitives.monotonic()
                    self._changed.notify()
                elif self._rows == self._most:
                    self._changed.notify()
        if over:
            dropping.element_dropped("it came after its task had ended", element)

    def _on_first_or_arrow(self, element: Any) -> None:
        import pyarrow as pa

        first = self._arrow is None
        if first:
            self._arrow = isinstance(element, pa.RecordBatch | pa.Table)
        with self._lock:
            over = self._over
            if not over:
                self._elements.append(element)
                self._rows += element.num_rows if self._arrow else 1
                if len(self._elements) == 1:
                    self._since = primitives.monotonic()
                self._changed.notify()
            more = (self._most - 1 if first else 0) if not self._arrow else int(self._rows < self._most)
            subscription = self._subscription
        if over:
            dropping.element_dropped("it came after its task had ended", element)
        elif more and subscription is not None:
            subscription.request(more)

    def on_error(self, error: BaseException, /) -> None:
        """It is raised behind what waits."""
        not_none("on_error", error)
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
                self._changed.notify()
        return first
