"""Ends of flows: a subscriber made of functions, a future, a value waited for, a `for` loop, a queue.

`block`, `run`, `for_each` and a `for` loop block, or may: they are for the edge of a program. A `KeyboardInterrupt`
while one of them waits cancels the flow.

A sink raises a copy of the error that the flow ended with, and gives a future a copy: of the same class and with the
same attributes. One instance may be signalled to many, and to raise it writes to its traceback (`failures/passing.py`).
So `is` does not find it; `except` does. The methods of a subscriber get the error itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, overload

from reactive_runtime._core.drains.drain_context import DrainContext
from reactive_runtime._core.failures import dropping
from reactive_runtime._core.failures.error_carrier import own_copy
from reactive_runtime._core.fusion.subscription import PulledSubscription
from reactive_runtime._core.queues.upstream import Relayed
from reactive_runtime._core.runtime import primitives
from reactive_runtime._core.runtime.arguments import (
    PREFETCH,
    at_least,
    check_callable,
    is_coroutine_function,
    not_none,
    seconds_of,
    signalled_error,
)
from reactive_runtime._core.sources.naming import a_kind, instead, is_subscriber
from reactive_runtime._core.timeout_reason import awaited_by, stalled_by
from reactive_runtime._operators.flow_base import FlowBase
from reactive_runtime._operators.side_effects import DoOnNext
from reactive_runtime._operators.sinks.loops import AsyncIteration, Iteration
from reactive_runtime._operators.sinks.queueing import Putting, SupportsPut
from reactive_runtime._operators.sinks.waiting import Overrun, Wait
from reactive_runtime._spec import MAX_DEMAND, Subscriber, Subscription

if TYPE_CHECKING:
    pass


__all__ = ["Disposable", "TerminalOperators", "run_to_end"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
R = TypeVar("R")


class TerminalOperators(FlowBase[T_co]):
    """Ends of flows: a subscriber made of functions, a future, a value waited for, a `for` loop, a queue."""

    __slots__ = ()

    def subscribe(
        self,
        on_next: Subscriber[T_co] | Callable[[T_co], object],
        on_error: Callable[[BaseException], object] | None = None,
        on_complete: Callable[[], object] | None = None,
        *,
        demand: int = MAX_DEMAND,
    ) -> Disposable:
        """Subscribe a `Subscriber`, or functions for the signals; nothing runs before.

        A `Subscriber` has signals of its own, and requests for itself: beside one, the other arguments are a TypeError.
        No `Exception` of the flow or of the subscriber comes out of this call (1.9).

        Args:
            on_next: A `Subscriber`, or a function that is called with each element.
            on_error: Called with the error that the flow ends with. None: an error goes to the hook of dropped errors.
            on_complete: Called when the flow has completed. None: nothing is called.
            demand: With functions: how many elements are requested at the start; 0 or more. MAX_DEMAND, the default,
                and what is above it, count as unbounded. 0: none, until the handle requests some.

        Returns:
            A `Disposable`, which requests more, and cancels. A function that raises has cancelled (2.13), and what it
            raised goes to the hook.

        Raises:
            TypeError: `on_next` is None, or neither a subscriber nor a function; `on_error` or `on_complete` cannot be
                called; `demand` is no int; or a `Subscriber` is given with other arguments.
            ValueError: `demand` is below 0.

        Demand:
            With functions `demand` elements, and what the handle requests. A `Subscriber` requests from its
            subscription.

        Cancellation:
            By `cancel` of the handle, from any thread, at any time.

        Thread:
            A flow without a boundary runs on this thread, inside this call, as far as the demand goes, and goes on on
            the thread that requests. Functions are called on the thread that signals, one at a time.

        Example:
            >>> from reactive_runtime import Flow
            >>> handle = Flow.range(10).subscribe(print, on_complete=lambda: print("done"), demand=2)
            0
            1
            >>> handle.request(1)
            2
            >>> handle.cancel()

        Origin:
            `Publisher.subscribe` of Reactive Streams; with functions, `subscribe` of Rx.
        """
        if is_subscriber(on_next):
            if on_error is not None or on_complete is not None or demand != MAX_DEMAND:
                raise TypeError(
                    "subscribe: on_error, on_complete and demand are for functions;"
                    f" {a_kind(on_next)} is a Subscriber, which has its own signals, and asks for itself"
                )
            if isinstance(on_next, type):
                raise _no_subscriber(on_next)
            return Disposable(self._run(on_next))
        if not callable(on_next):
            raise _no_subscriber(on_next)
        for name, function in (("on_next", on_next), ("on_error", on_error), ("on_complete", on_complete)):
            if function is not None:
                check_callable("subscribe", name, function)
        at_least("subscribe", "demand", 0, demand)
        return Disposable(self._run(_Functions(on_next, on_error, on_complete, demand)))

    def to_future(self) -> primitives.Future[T_co | None]:
        """Run the flow, and give its last element as a `concurrent.futures.Future`.

        Returns:
            A future with the last element, or None where the flow had none. A copy of the error that the flow ends
            with is the future's exception.

        Demand:
            Unbounded.

        Cancellation:
            Cancelling the future cancels the flow. An error that comes after that goes to the hook.

        Thread:
            A flow without a boundary runs on this thread, inside this call. The future is done on the thread on which
            the flow ends.

        Example:
            >>> from reactive_runtime import Flow
            >>> Flow.range(5).to_future().result()
            4

        Origin:
            `toFuture` of Rx and Reactor.
        """
        last = _Last[T_co]()
        self._run(last)
        return last.future

    def block(self, *, timeout: float | None = None) -> T_co | None:
        """Run the flow and wait for its last element; raise the error it ends with.

        Args:
            timeout: How many seconds it may take; 0 or more. None: there is no limit. A flow that runs on this thread
                is not interrupted; when the time is over, a warning in the log says where it is.

        Returns:
            The last element, or None where the flow had none.

        Raises:
            TimeoutError: The time is over. It says which flow it is, how many elements had come, and what it waited
                for.
            RuntimeError: The flow needs this thread: at once, or when an operator begins a flow that needs it. See
                `executors.blocking_allowed`.
            TypeError: `timeout` is no number.
            ValueError: `timeout` is negative or not finite.
            Exception: The error that the flow ended with: a copy, since another wait may raise it at the same time.

        Demand:
            Unbounded.

        Cancellation:
            When the time is over, and by a `KeyboardInterrupt` while it waits.

        Thread:
            A flow without a boundary runs on this thread. Others run on their executors, and this thread waits.

        Example:
            >>> from reactive_runtime import Flow
            >>> Flow.range(5).to_list().block(timeout=10)
            [0, 1, 2, 3, 4]

        Origin:
            `blockLast` of Reactor, `blockingLast` of RxJava.
        """
        return run_to_end("block", self, self, timeout)

    def iterate(self, *, prefetch: int = PREFETCH) -> Iteration[T_co]:
        """`for element in flow`: pull the elements from this thread.

        Args:
            prefetch: How many elements are requested ahead of the loop, of a flow that does not run on this thread; 1
                or more; 256. A `for` loop over the flow itself has the default; `flow.iterate(prefetch=...)` sets it.

        Returns:
            An iterator of the elements, an `Iteration`. It ends with the flow, and raises a copy of the error that the
            flow ends with; and a RuntimeError where the flow needs the thread of the loop, see
            `executors.blocking_allowed`. Its `next(timeout=...)` waits no longer than that for an element.

        Raises:
            TypeError: `prefetch` is no int.
            ValueError: `prefetch` is below 1.

        Demand:
            A flow that runs on this thread is pulled, one element at a time. Any other is at most `prefetch` elements
            ahead of the loop.

        Cancellation:
            By leaving the loop, when the iterator is closed, or by a `KeyboardInterrupt` while it waits.

        Thread:
            A flow without a boundary is run by the loop itself. Others run where they run, and the loop waits. A source
            on this thread that gives nothing for long, as an empty queue, is left in between for elements of other
            threads, and for an end.

        Example:
            >>> from reactive_runtime import Flow
            >>> for n in Flow.range(1_000_000_000):
            ...     if n == 2: break

        Origin:
            `toIterable` of Reactor, `blockingIterable` of RxJava.
        """
        at_least("iterate", "prefetch", 1, prefetch)
        return Iteration(self, prefetch)

    def iterate_async(self, *, prefetch: int = PREFETCH) -> AsyncIteration[T_co]:
        """`async for element in flow`: the elements, waited for without blocking the event loop.

        Args:
            prefetch: How many elements are requested ahead of the loop, of sources that have an executor; 1 or more;
                256. An `async for` loop over the flow itself has the default; `flow.iterate_async(prefetch=...)` sets
                it.

        Returns:
            An asynchronous iterator of the elements, an `AsyncIteration`. It ends with the flow, and raises a copy of
            the error that the flow ends with.

        Raises:
            TypeError: `prefetch` is no int.
            ValueError: `prefetch` is below 1.

        Demand:
            At most `prefetch` elements ahead of the loop, of sources that have an executor. Others are pulled, one at a
            time.

        Cancellation:
            By `aclose` (`contextlib.aclosing` calls it), or when the iterator is freed, as it is when an `async for`
            loop over the flow is left. A wait that is cancelled, by `asyncio.wait_for` or with its task, leaves the
            flow alive, and loses nothing.

        Thread:
            Sources without an executor are pulled by the loop itself, on its thread, and may block it: give them an
            executor with `subscribe_on`. One that gives nothing for long lets the event loop have its turn after 10 ms,
            unless a call of the user's code takes longer.

        Example:
            >>> import asyncio
            >>> from reactive_runtime import Flow
            >>> async def main():
            ...     return [n async for n in Flow.range(3)]
            >>> asyncio.run(main())
            [0, 1, 2]

        Origin:
            `async for` of Python.
        """
        return AsyncIteration(self, at_least("iterate_async", "prefetch", 1, prefetch))

    def run(self: FlowBase[Any], *, timeout: float | None = None) -> None:
        """Run the flow to its end, and drop its elements; raise the error it ends with.

        When it returns, the flow has released its source, its timers and its event loop; pools and clocks are their
        owners'.

        Args:
            timeout: How many seconds it may take; 0 or more. None: there is no limit. A flow that runs on this thread
                is not interrupted; when the time is over, a warning in the log says where it is.

        Returns:
            None, when the flow has completed.

        Raises:
            TimeoutError: The time is over. It says which flow it is, and what it waited for.
            RuntimeError: The flow needs this thread: at once, or when an operator begins a flow that needs it. See
                `executors.blocking_allowed`.
            TypeError: `timeout` is no number.
            ValueError: `timeout` is negative or not finite.
            Exception: The error that the flow ended with: a copy, since another wait may raise it at the same time.

        Demand:
            Unbounded.

        Cancellation:
            When the time is over, and by a `KeyboardInterrupt` while it waits.

        Thread:
            A flow without a boundary runs on this thread. Others run on their executors, and this thread waits.

        Example:
            >>> from reactive_runtime import Flow
            >>> Flow.range(2).do_on_next(print).run()
            0
            1

        Origin:
            `blockLast` of Reactor, `blockingSubscribe` of RxJava.
        """
        run_to_end("run", self._flow().ignore_elements(), self, timeout)

    def for_each(self, fn: Callable[[T_co], object], *, timeout: float | None = None) -> None:
        """Run the flow, and call `fn(element)` for each element, where the flow runs; raise the error it ends with.

        Args:
            fn: Called with each element. Its error ends the flow, and is raised here.
            timeout: How many seconds it may take; 0 or more. None: there is no limit. A flow that runs on this thread
                is not interrupted; when the time is over, a warning in the log says where it is.

        Returns:
            None, when the flow has completed.

        Raises:
            TimeoutError: The time is over. It says which flow it is, and what it waited for.
            RuntimeError: The flow needs this thread: at once, or when an operator begins a flow that needs it. See
                `executors.blocking_allowed`.
            TypeError: `fn` cannot be called, or `timeout` is no number.
            ValueError: `timeout` is negative or not finite.
            Exception: The error that the flow ended with, or that `fn` raised: a copy, since another wait may raise it
                at the same time.

        Demand:
            Unbounded.

        Cancellation:
            When the time is over, and by a `KeyboardInterrupt` while it waits.

        Thread:
            A flow without a boundary runs on this thread. Others run on their executors, where `fn` is called, and this
            thread waits.

        Example:
            >>> from reactive_runtime import Flow
            >>> Flow.range(2).for_each(print)
            0
            1

        Origin:
            `blockingForEach` of RxJava.
        """
        check_callable("for_each", "fn", fn)
        run_to_end("for_each", self._flow()._then(DoOnNext(fn, "for_each")).ignore_elements(), self, timeout)

    @overload
    def to_queue(self, queue: SupportsPut[T_co | None], *, end: None = None) -> primitives.Future[None]: ...

    @overload
    def to_queue(self, queue: SupportsPut[T_co | R], *, end: R) -> primitives.Future[None]: ...

    def to_queue(self, queue: SupportsPut[Any], *, end: object = None) -> primitives.Future[None]:
        """Run the flow, and `put` each element into `queue`, and `end` after the last, whichever way it ends.

        A bounded queue that is full blocks the thread of the flow, and thereby holds the source back: use `publish_on`
        with an executor that can spare one.

        Args:
            queue: A `queue.Queue`, or anything else with `put`.
            end: The object that is put after the last element, once.

        Returns:
            A future that is done when `end` has been put. It has a copy of the error that the flow ended with; an error
            of `put` ends the flow.

        Raises:
            TypeError: `queue` has no `put`, or one that has to be awaited, as `asyncio.Queue` has.

        Demand:
            Unbounded. A queue that is full holds the source back.

        Cancellation:
            Cancelling the future cancels the flow, and does not wait for the queue. The element that is being put comes
            into it yet. If there is no room for `end` just then, the thread that is putting puts it, or one that waits
            for room.

        Thread:
            `put` is called on the thread of the flow. A flow without a boundary runs on this one, inside this call.

        Example:
            >>> import queue
            >>> from reactive_runtime import Flow
            >>> numbers = queue.Queue()
            >>> Flow.range(2).to_queue(numbers, end="over").result()
            >>> [numbers.get() for _ in range(3)]
            [0, 1, 'over']

        Origin:
            `Sink.queue` of Akka and Pekko Streams, with the queues of Python.
        """
        if isinstance(queue, type) or not callable(getattr(queue, "put", None)):
            raise TypeError(f"to_queue: a queue is needed, not {instead(queue)}")
        if is_coroutine_function(queue.put):
            raise TypeError(
                f"to_queue: put of {instead(queue)} is a coroutine function, which no thread awaits: use a queue.Queue,"
                " or `async for` over the flow and await put there"
            )
        putting = Putting(queue, end)
        self._run(putting)
        return putting.future


class Disposable:
    """A running subscription: request more of it, or cancel it.

    Its methods may be called from any thread, at any time. It is a context manager: leaving it cancels.

    Args:
        subscription: The subscription that it requests from and cancels. A user gets a handle from `Flow.subscribe`.
    """

    __slots__ = ("_subscription",)

    def __init__(self, subscription: Subscription) -> None:
        self._subscription = subscription

    def request(self, n: int, /) -> None:
        """Request `n` more elements.

        Args:
            n: How many; 1 or more. An invalid `n` ends the flow through `on_error` (3.9).
        """
        self._subscription.request(n)

    def cancel(self) -> None:
        """Cancel the flow: of the signals only the one that is being delivered goes on (1.8).

        An element that is still being made then, by a slow iterator or function, goes to the hook.
        """
        self._subscription.cancel()

    def __enter__(self) -> Disposable:
        return self

    def __exit__(self, *_: object) -> None:
        self.cancel()


def _no_subscriber(item: object) -> TypeError:
    missing = [name for name in ("on_subscribe", "on_next", "on_error", "on_complete") if not hasattr(item, name)]
    return TypeError(
        f"subscribe: a Subscriber or a function is needed, not {instead(item)} (1.9)"
        + (f"; it has no {', '.join(missing)}" if missing else "")
    )


class _Functions(Generic[T]):
    """A subscriber made of functions."""

    shown_as: Final = "subscriber made of functions"

    __slots__ = ("_demand", "_on_complete", "_on_error", "_subscription", "on_checked_next")

    def __init__(
        self,
        on_next: Callable[[T], object],
        on_error: Callable[[BaseException], object] | None,
        on_complete: Callable[[], object] | None,
        demand: int,
    ) -> None:
        self.on_checked_next = on_next  # a drain of the package checks elements: it calls the function directly
        self._on_error = on_error
        self._on_complete = on_complete
        self._demand = demand
        self._subscription: Subscription | None = None  # the signals own it, which are serial (1.3)

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
        error = signalled_error(error, "the publisher")
        if self._on_error is None:
            dropping.error_dropped("a flow failed, and its subscriber has no on_error", error)
        else:
            self._on_error(error)

    def on_complete(self) -> None:
        if self._on_complete is not None:
            self._on_complete()


class _Last(Generic[T]):
    """Keeps the last element for a future."""

    shown_as: Final = "sink"

    __slots__ = ("_element", "_subscription", "_wait", "future", "number")

    def __init__(self, wait: Wait | None = None) -> None:
        """`wait`: the wait of the thread that waits for the future."""
        self.future: primitives.Future[T | None] = primitives.Future()
        self._wait = wait
        self._element: T | None = None  # the signals own it, which are serial (1.3)
        self._subscription: Subscription | None = None
        self.number = 0  # the signals own it; how many elements have come. `block` reads it

    def on_subscribe(self, subscription: Subscription, /) -> None:
        not_none("on_subscribe", subscription)
        if self._subscription is not None:
            subscription.cancel()  # 2.5
            return
        self._subscription = subscription
        drain = Relayed.unwrapped(subscription)
        if isinstance(drain, DrainContext):
            drain.waiter = self._wait
        self.future.add_done_callback(lambda future: subscription.cancel() if future.cancelled() else None)
        subscription.request(MAX_DEMAND)

    def running(self) -> PulledSubscription | None:
        """The subscription, for a look from any thread."""
        subscription = None if self._subscription is None else Relayed.unwrapped(self._subscription)
        return subscription if isinstance(subscription, PulledSubscription) else None

    def on_next(self, element: T, /) -> None:
        if element is None:
            not_none("on_next", element)
        self._element = element
        self.number += 1

    def on_error(self, error: BaseException, /) -> None:
        error = signalled_error(error, "the publisher")
        if self.future.set_running_or_notify_cancel():
            self.future.set_exception(own_copy(error))
        else:
            dropping.error_dropped("a flow failed after its future was cancelled", error)

    def on_complete(self) -> None:
        if self.future.set_running_or_notify_cancel():
            self.future.set_result(self._element)


def _result(future: primitives.Future[T]) -> T:
    """The result of a future that is done. `Future.result` would ignore an error whose truth value is False."""
    error = future.exception()
    if error is None:
        return future.result()
    try:
        raise error
    finally:
        del error, future  # break a cycle: the traceback refers to this frame


def run_to_end(sink: str, source: FlowBase[T], shown: FlowBase[Any], timeout: float | None) -> T | None:
    """Run `source`, and wait for its end; return its last element. `shown`: the flow that an error names."""
    if timeout is not None:
        seconds_of(sink, "timeout", timeout)
    wait = Wait(sink, source)
    last = _Last[T](wait)
    runs_here = timeout is not None and getattr(source._source, "executor", None) is None
    overrun = Overrun(sink, shown, timeout, last.running) if runs_here and timeout is not None else None
    try:
        running = source._run(last)
    finally:
        if overrun is not None:
            overrun.over()
    try:
        if not last.future.done():
            wait.until(last.future, timeout)
        return _result(last.future)
    except BaseException as error:  # a timeout, a Ctrl-C; the cancel does nothing if the flow itself has failed
        late = isinstance(error, TimeoutError) and not last.future.done()
        waited, cause = (awaited_by(running), stalled_by(running)) if late else ("", "")
        cancelled = last.future.cancel()
        if isinstance(error, TimeoutError) and not cancelled:
            return _result(last.future)  # the flow has just ended; or the error is its own
        if not late:
            raise
        came = f"{last.number} element{'s' * (last.number != 1)} had come"
        late_error = TimeoutError(f"{sink}: `{shown}` had not ended in {timeout:g} s: {came}; {waited}")
        if cause:
            late_error.add_note(cause)
        raise late_error from None
    finally:
        wait.over()
