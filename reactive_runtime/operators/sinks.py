"""Where flows go: a subscriber made of functions, a future, a value waited for, a `for` loop.

The last three block, or may: they are for the edge of a program. A `KeyboardInterrupt` while one of them waits
cancels the flow.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from reactive_runtime._core import hooks, primitives
from reactive_runtime._core.arguments import not_none
from reactive_runtime._core.drain import Drain
from reactive_runtime._core.fuse import PENDING, Unstopped, pulled
from reactive_runtime._core.inbox import Inbox
from reactive_runtime.errors import RejectedError
from reactive_runtime.spec import MAX_DEMAND, Subscriber, Subscription

if TYPE_CHECKING:
    from reactive_runtime.flow import Flow

__all__ = ["FlowHandle", "block", "iterate", "subscribe", "to_future"]

T = TypeVar("T")

PREFETCH = 256


class FlowHandle:
    """A running subscription: ask it for more, or end it. Both from any thread, at any time."""

    __slots__ = ("_subscription",)

    def __init__(self, subscription: Subscription) -> None:
        self._subscription = subscription

    def request(self, n: int, /) -> None:
        """Ask for `n` more elements, n >= 1; an invalid `n` ends the flow through `on_error` (3.9)."""
        self._subscription.request(n)

    def cancel(self) -> None:
        """End the flow: at most the one signal that is under way may still come (1.8)."""
        self._subscription.cancel()


def subscribe(
    source: Flow[T],
    on_next: Subscriber[T] | Callable[[T], object],
    on_error: Callable[[BaseException], object] | None = None,
    on_complete: Callable[[], object] | None = None,
    *,
    demand: int = MAX_DEMAND,
) -> FlowHandle:
    """Subscribe a `Subscriber`, or functions for the signals; nothing runs before.

    With functions, `demand` elements are requested at the start (0 <= demand <= MAX_DEMAND, the default, which
    reads as unbounded); the handle requests more. Without `on_error` an error goes to the hook of dropped
    errors. A function that raises has cancelled (2.13), and what it raised goes to the hook.

    A flow without a boundary runs on this thread, inside this call, as far as the demand goes. Raises TypeError
    for None or for what is neither a subscriber nor a function, and nothing else (1.9).

    >>> from reactive_runtime import Flow
    >>> handle = Flow.range(10).subscribe(print, on_complete=lambda: print("done"), demand=2)
    0
    1
    >>> handle.request(1)
    2
    >>> handle.cancel()
    """
    if isinstance(on_next, Subscriber):
        return FlowHandle(source._run(on_next))
    if not callable(on_next):
        raise _no_subscriber(on_next)
    if type(demand) is not int or demand < 0:
        kind = ValueError if type(demand) is int else TypeError
        raise kind(f"subscribe: demand must be an int from 0 to MAX_DEMAND, not {demand!r}")
    return FlowHandle(source._run(_Functions(on_next, on_error, on_complete, demand)))


def _no_subscriber(it: object) -> TypeError:
    missing = [name for name in ("on_subscribe", "on_next", "on_error", "on_complete") if not hasattr(it, name)]
    return TypeError(
        f"subscribe: a Subscriber or a function is needed, not {type(it).__name__} (1.9);"
        f" it has no {', '.join(missing)}"
    )


class _Functions(Generic[T]):
    """A subscriber made of functions."""

    __slots__ = ("_demand", "_on_complete", "_on_error", "_subscription", "on_checked_next")

    def __init__(
        self,
        on_next: Callable[[T], object],
        on_error: Callable[[BaseException], object] | None,
        on_complete: Callable[[], object] | None,
        demand: int,
    ) -> None:
        self.on_checked_next = on_next  # for a drain of ours, which checks: the function itself, no call in between
        self._on_error = on_error
        self._on_complete = on_complete
        self._demand = demand
        self._subscription: Subscription | None = None  # serial signals own it (1.3)

    def on_subscribe(self, subscription: Subscription, /) -> None:
        not_none("on_subscribe", subscription)
        if self._subscription is not None:
            subscription.cancel()  # 2.5
            return
        self._subscription = subscription
        if self._demand:
            subscription.request(self._demand)

    def on_next(self, element: T, /) -> None:
        not_none("on_next", element)
        self.on_checked_next(element)

    def on_error(self, error: BaseException, /) -> None:
        not_none("on_error", error)
        if self._on_error is None:
            hooks.error_dropped("a flow failed, and its subscriber has no on_error", error)
        else:
            self._on_error(error)

    def on_complete(self) -> None:
        if self._on_complete is not None:
            self._on_complete()


def to_future(source: Flow[T], /) -> primitives.Future[T | None]:
    """Run the flow, and give its last element as a `concurrent.futures.Future` (None where it had no element).

    Demand is unbounded. Cancelling the future cancels the flow; an error of the flow is the future's exception.

    >>> from reactive_runtime import Flow
    >>> Flow.range(5).to_future().result()
    4
    """
    last = _Last[T]()
    source._run(last)
    return last.future


class _Last(Generic[T]):
    """Keeps the last element for a future."""

    __slots__ = ("_element", "_subscription", "future")

    def __init__(self) -> None:
        self.future: primitives.Future[T | None] = primitives.Future()
        self._element: T | None = None  # serial signals own it (1.3)
        self._subscription: Subscription | None = None

    def on_subscribe(self, subscription: Subscription, /) -> None:
        not_none("on_subscribe", subscription)
        if self._subscription is not None:
            subscription.cancel()  # 2.5
            return
        self._subscription = subscription
        self.future.add_done_callback(lambda future: subscription.cancel() if future.cancelled() else None)
        subscription.request(MAX_DEMAND)

    def on_next(self, element: T, /) -> None:
        not_none("on_next", element)
        self._element = element

    def on_error(self, error: BaseException, /) -> None:
        not_none("on_error", error)
        if self.future.set_running_or_notify_cancel():
            self.future.set_exception(error)
        else:
            hooks.error_dropped("a flow failed after its future was cancelled", error)

    def on_complete(self) -> None:
        if self.future.set_running_or_notify_cancel():
            self.future.set_result(self._element)


def block(source: Flow[T], /, timeout: float | None = None) -> T | None:
    """Run the flow and wait for its last element (None where it had none); raise the error it ends with.

    `timeout` in seconds; when it runs out the flow is cancelled and TimeoutError is raised. A flow without a
    boundary runs on this thread, and is not interrupted.

    >>> from reactive_runtime import Flow
    >>> Flow.range(5).to_list().block(timeout=10)
    [0, 1, 2, 3, 4]
    """
    future = to_future(source)
    try:
        return future.result(timeout)
    except BaseException:  # a timeout, a Ctrl-C; for the flow's own error the cancel does nothing
        future.cancel()
        raise


def iterate(source: Flow[T], /) -> Iterator[T]:
    """`for element in flow`: pull the elements from this thread.

    A flow without a boundary is run by the loop itself, one element at a time. Others run where they run, at
    most 256 elements ahead of the loop. Leaving the loop, or closing the iterator, cancels the flow.

    >>> from reactive_runtime import Flow
    >>> for n in Flow.range(1_000_000_000):
    ...     if n == 2: break
    """
    plan = source._origin.plan()
    if plan.pulls and plan.executor is None:
        return _pull_here(source)
    return _wait_for_each(source)


def _pull_here(source: Flow[T]) -> Generator[T, None, None]:
    plan = source._origin.plan()
    feed = plan.feed()
    steps = [step.fresh() for step in (*plan.steps, *source._steps)]
    try:
        for element in pulled(feed.open(), steps, Unstopped()):
            if element is None:
                raise TypeError("None came out of the source: None is not an element (2.13)")
            yield element
    finally:
        feed.close()


def _wait_for_each(source: Flow[T]) -> Generator[T, None, None]:
    waiting = _Waiting(source)
    try:
        while (element := waiting.next()) is not PENDING:
            yield element
    finally:
        waiting.inbox.close()


class _Waiting(Drain):
    """A drain whose owner is the thread of a `for` loop: it sleeps when there is nothing, and is woken to own."""

    __slots__ = ("_awake", "_elements", "inbox")

    def __init__(self, source: Flow[Any]) -> None:
        super().__init__(owned=True)
        self._awake = primitives.Semaphore(0)
        self.inbox = Inbox(source._run, PREFETCH)
        self.inbox.attach(self)
        self.inbox.connect()
        self._elements = self.inbox.open()

    def _launch(self) -> None:
        self._awake.release()

    def next(self) -> Any:
        """The next element, waited for; PENDING at the end. Raises the error that the flow ended with."""
        while True:
            element = next(self._elements, None)
            if element is None:
                return PENDING
            if element is not PENDING:
                return element
            with self._lock:
                if self._missed:
                    self._missed = False
                    continue
                self._busy = False
            self._awake.acquire()

    def _rejected(self, error: RejectedError) -> None:
        raise AssertionError("drains without an executor are never rejected")
