"""Where flows go: a subscriber made of functions, a future, a value waited for, a `for` loop.

The last three block, or may: they are for the edge of a program. A `KeyboardInterrupt` while one of them waits
cancels the flow.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from reactive_runtime._core import hooks, primitives
from reactive_runtime._core.arguments import not_none
from reactive_runtime._core.fuse import PENDING, Unstopped, name_source, none_element, pulled
from reactive_runtime._core.gather import END, Lane
from reactive_runtime._core.host import Host
from reactive_runtime._core.place import blame_step
from reactive_runtime._core.step import let_go
from reactive_runtime.errors import RejectedError
from reactive_runtime.executors import blocking_is_allowed, runs_here
from reactive_runtime.spec import MAX_DEMAND, Subscriber, Subscription

if TYPE_CHECKING:
    import asyncio

    from reactive_runtime.flow import Flow

__all__ = ["FlowHandle", "block", "for_each", "iterate", "iterate_async", "run", "subscribe", "to_future", "to_queue"]

T = TypeVar("T")

PREFETCH = 256


class FlowHandle:
    """A running subscription: ask it for more, or end it. Both from any thread, at any time.

    A context manager: leaving it cancels.
    """

    __slots__ = ("_subscription",)

    def __init__(self, subscription: Subscription) -> None:
        self._subscription = subscription

    def request(self, n: int, /) -> None:
        """Ask for `n` more elements, n >= 1; an invalid `n` ends the flow through `on_error` (3.9)."""
        self._subscription.request(n)

    def cancel(self) -> None:
        """End the flow: of the signals only the one that is being delivered goes on (1.8).

        An element that is still being made then, by a slow iterator or function, goes to the hook.
        """
        self._subscription.cancel()

    def __enter__(self) -> FlowHandle:
        return self

    def __exit__(self, *_: object) -> None:
        self.cancel()


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
    boundary runs on this thread, and is not interrupted. On a thread that the flow needs, a RuntimeError: see
    `executors.blocking_allowed`.

    >>> from reactive_runtime import Flow
    >>> Flow.range(5).to_list().block(timeout=10)
    [0, 1, 2, 3, 4]
    """
    refuse_to_wait("block", source)
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
    return _pull_here(source) if plan.pulls and plan.executor is None else _wait_for_each(source)


def _pull_here(source: Flow[T]) -> Generator[T, None, None]:
    plan = source._origin.plan()
    feed = plan.feed(None)
    steps = [step.fresh() for step in (*plan.steps, *source._steps)]
    try:
        for element in pulled(feed.open(), steps, Unstopped()):
            if element is None:
                raise none_element()
            yield element
    except Exception as error:
        name_source(error, feed.where)
        blame_step(error)
        raise
    finally:
        held = let_go(steps, ())
        feed.close()
        for element, heard in held:
            hooks.element_dropped("a loop ended before it was delivered", element, heard)


def _wait_for_each(source: Flow[T]) -> Generator[T, None, None]:
    refuse_to_wait("for", source)
    waiting = _Waiting(source)
    try:
        while (element := waiting.next()) is not END:
            yield element
    finally:
        waiting.close()


async def iterate_async(source: Flow[T], /) -> AsyncGenerator[T, None]:
    """`async for element in flow`: the elements, waited for without blocking the event loop.

    At most 256 elements are asked for ahead of the loop, of sources that have an executor; others are pulled by the
    loop itself, on its thread, and may block it: give them an executor with `subscribe_on`. Leaving the loop
    (`contextlib.aclosing` makes it prompt), or cancelling its task, cancels the flow.

    >>> import asyncio
    >>> from reactive_runtime import Flow
    >>> async def main():
    ...     return [n async for n in Flow.range(3)]
    >>> asyncio.run(main())
    [0, 1, 2]
    """
    import asyncio  # what only coroutines need is imported for them

    waiting = _Awaiting(source, asyncio.get_running_loop(), asyncio.Event())
    try:
        while (element := waiting.poll()) is not END:
            if element is PENDING:
                await waiting.event.wait()
                waiting.event.clear()
            else:
                yield element
    finally:
        waiting.close()


class _Puller(Host):
    """A host whose owner comes and pulls: it is woken, by `_launch`, when there is something to come for."""

    __slots__ = ("_lane",)

    def __init__(self, source: Flow[Any]) -> None:
        super().__init__()
        self._lane = Lane(self, source, PREFETCH, heard=self._heard)

    def poll(self) -> Any:
        """The next element, or END; PENDING: the drain is let go, and `_launch` will tell when to come back."""
        while (element := self._lane.poll()) is PENDING:
            self._lane.want(1)
            with self._lock:
                if self._missed:
                    self._missed = False
                    continue
                self._busy = False
            self._left()
            return PENDING
        return element

    def close(self) -> None:
        """Let go of the flow. For the owner, or, when there is none, for whoever was to come back."""
        with self._lock:
            self._stop = self._busy = True
        self._lane.close()
        self._let_go()

    def _rejected(self, error: RejectedError) -> None:
        raise AssertionError("drains without an executor are never rejected")


class _Waiting(_Puller):
    """The owner is the thread of a `for` loop, which sleeps when there is nothing."""

    __slots__ = ("_awake",)

    def __init__(self, source: Flow[Any]) -> None:
        self._awake = primitives.Semaphore(0)
        super().__init__(source)

    def _launch(self) -> None:
        self._awake.release()

    def next(self) -> Any:
        """The next element, waited for; END at the end. Raises the error that the flow ended with."""
        while (element := self.poll()) is PENDING:
            self._awake.acquire()
        return element


class _Awaiting(_Puller):
    """The owner is a coroutine."""

    __slots__ = ("_loop", "event")

    def __init__(self, source: Flow[Any], loop: asyncio.AbstractEventLoop, event: asyncio.Event) -> None:
        self._loop = loop
        self.event = event
        super().__init__(source)

    def _launch(self) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody will ever come back
            self._loop.call_soon_threadsafe(self.event.set)


def run(source: Flow[Any], /, timeout: float | None = None) -> None:
    """Run the flow to its end, and let its elements go; raise the error it ends with.

    Otherwise as `block`. When it returns, the flow has let go of its source, its timers and its event loop; pools and
    clocks are their owners'.

    >>> from reactive_runtime import Flow
    >>> Flow.range(2).do_on_next(print).run()
    0
    1
    """
    source.ignore_elements().block(timeout)


def for_each(source: Flow[T], fn: Callable[[T], object], /, timeout: float | None = None) -> None:
    """Run the flow, and call `fn(element)` for each element, where the flow runs; raise the error it ends with.

    What `fn` raises ends the flow, and is raised here. Otherwise as `block`.

    >>> from reactive_runtime import Flow
    >>> Flow.range(2).for_each(print)
    0
    1
    """
    source.do_on_next(fn).run(timeout)


def to_queue(source: Flow[T], queue: Any, /, end: object = None) -> primitives.Future[None]:
    """Run the flow, and `put` each element into `queue`, and `end` after the last, whichever way it ends.

    A bounded queue that is full blocks the thread of the flow, and thereby holds the source back: use `publish_on` with
    an executor that can spare one. The future is done at the end, and has the error; cancelling it cancels the flow.

    >>> import queue
    >>> from reactive_runtime import Flow
    >>> numbers = queue.Queue()
    >>> Flow.range(2).to_queue(numbers, end="over").result()
    >>> [numbers.get() for _ in range(3)]
    [0, 1, 'over']
    """
    if not callable(getattr(queue, "put", None)):
        raise TypeError(f"to_queue: a queue is needed, not {type(queue).__name__}")
    putting: Flow[Any] = source.do_on_next(queue.put).do_finally(lambda way: queue.put(end)).ignore_elements()
    return to_future(putting)


def refuse_to_wait(sink: str, source: Flow[Any]) -> None:
    """RuntimeError where the flow needs the very thread that is about to wait for it."""
    for part in source._parts():
        for executor in part.executors():
            if runs_here(executor) and not blocking_is_allowed():
                raise RuntimeError(
                    f"{sink}: this thread belongs to {executor!r}, which the flow needs to go on: waiting here for its"
                    " elements can wait for ever. Subscribe instead, or wait on another thread"
                    " (executors.blocking_allowed() switches this check off)"
                )
