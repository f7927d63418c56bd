"""A subscriber that puts elements into a queue: the machinery of `to_queue`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from reactive_runtime._core.failures import dropping
from reactive_runtime._core.failures.assembly import an_exception
from reactive_runtime._core.failures.error_carrier import own_copy
from reactive_runtime._core.failures.exits import contained, goes_up
from reactive_runtime._core.runtime import primitives
from reactive_runtime._core.runtime.arguments import (
    not_none,
    signalled_error,
)
from reactive_runtime._spec import MAX_DEMAND, Subscription

if TYPE_CHECKING:
    pass

__all__ = ["Putting", "SupportsPut"]

T_co = TypeVar("T_co", covariant=True)
T_in = TypeVar("T_in", contravariant=True)


class SupportsPut(Protocol[T_in]):
    """A queue that takes elements: those of `queue` and of `multiprocessing` do."""

    def put(self, item: T_in, /) -> object: ...


class Putting:
    """Puts elements into a queue, and then the end mark, exactly once.

    idle ──an element──▶ putting ──▶ idle … ──end, error, cancel──▶ over (final). The thread that makes it over puts the
    end; a cancel while an element is being put leaves that to the thread that puts it.
    """

    shown_as: Final = "subscriber of to_queue"

    __slots__ = ("_cancelled", "_end", "_lock", "_over", "_put", "_put_nowait", "_putting", "_subscription", "future")

    def __init__(self, queue: SupportsPut[Any], end: object) -> None:
        self.future: primitives.Future[None] = primitives.Future()
        self._put: Callable[[Any], object] = queue.put
        self._put_nowait: Callable[[Any], object] | None = getattr(queue, "put_nowait", None)
        self._end = end
        self._lock = primitives.Lock()
        self._putting = False  # _lock; a thread of the flow is inside `put`
        self._cancelled = False  # _lock
        self._over = False  # _lock; final
        self._subscription: Subscription | None = None  # the signals own it, which are serial (1.3)

    def on_subscribe(self, subscription: Subscription, /) -> None:
        not_none("on_subscribe", subscription)
        if self._subscription is not None:
            subscription.cancel()  # 2.5
            return
        self._subscription = subscription
        self.future.add_done_callback(self._done)
        subscription.request(MAX_DEMAND)

    def on_next(self, element: Any, /) -> None:
        not_none("on_next", element)
        with self._lock:
            late = self._cancelled or self._over
            self._putting = not late
        if late:
            dropping.element_dropped("it came after its future was cancelled", element)
            return
        failure: BaseException | None = None
        try:
            self._put(element)
        except BaseException as error:
            failure = error
        with self._lock:
            self._putting = False
            over = self._over = self._cancelled or failure is not None
        if over:
            assert self._subscription is not None
            self._subscription.cancel()
            self._ended(failure)
        if failure is not None and goes_up(failure):
            raise failure

    def on_error(self, error: BaseException, /) -> None:
        error = signalled_error(error, "the publisher")
        if self._is_last():
            self._ended(error)
        else:
            dropping.error_dropped("a flow failed after its future was cancelled", error)

    def on_complete(self) -> None:
        if self._is_last():
            self._ended(None)

    def _is_last(self) -> bool:
        with self._lock:
            first, self._over = not self._over, True
        return first

    def _ended(self, failure: BaseException | None) -> None:
        """Put the end mark, then set the future. The flow's thread calls it, and may wait for room."""
        self._put_end()
        if not self.future.set_running_or_notify_cancel():
            if failure is not None:
                dropping.error_dropped("a flow failed after its future was cancelled", failure)
        elif failure is not None:
            self.future.set_exception(own_copy(an_exception(failure)))
        else:
            self.future.set_result(None)

    def _put_end(self) -> None:
        try:
            self._put(self._end)
        except BaseException as error:
            dropping.raised("to_queue: the end could not be put", error)

    def _done(self, future: primitives.Future[None]) -> None:
        """Cancel the flow with the future. Any thread calls it, and does not wait (3.5)."""
        if not future.cancelled():
            return
        assert self._subscription is not None
        self._subscription.cancel()
        with self._lock:
            self._cancelled = True
            mine = not (self._putting or self._over)
            self._over = self._over or mine
        if mine and not self._put_at_once():
            primitives.Thread(target=contained, args=(self._put_end,), name="reactive-end", daemon=True).start()

    def _put_at_once(self) -> bool:
        """Put the end mark, if there is room."""
        if self._put_nowait is None:
            return False
        try:
            self._put_nowait(self._end)
        except Exception:
            return False
        return True
