"""Subscribers to extend: what the rules ask of one is done here, and what it is for is left to be written.

All three keep 2.5 (a second subscription is cancelled), 2.7 (their calls upstream are serial, from whatever threads
they come), 2.8 (what comes after a cancel is dropped, to the hook) and 2.13 (a signal returns normally; None is a
TypeError). A method of yours that raises has cancelled, and its error goes to `failed`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from reactive_runtime._core.failures import dropping
from reactive_runtime._core.failures.assembly import an_exception
from reactive_runtime._core.failures.exits import Unwinding, goes_up
from reactive_runtime._core.queues.upstream import Upstream
from reactive_runtime._core.runtime import primitives
from reactive_runtime._core.runtime.arguments import (
    at_least,
    check_executor,
    is_coroutine_function,
    not_none,
    seconds_of,
    signalled_error,
)
from reactive_runtime._core.sources.naming import a_kind, kind_of
from reactive_runtime._spec import MAX_DEMAND, Subscription
from reactive_runtime.executors import SerialExecutor

__all__ = ["AsyncSubscriber", "BaseSubscriber", "BufferedSubscriber"]

T = TypeVar("T")


class BaseSubscriber(Generic[T]):
    """Override `received`, and, where wanted, `started`, `failed` and `completed`.

    A method that raises has cancelled, and its error goes to `failed`. None of them is awaited: a class that makes one
    of them a coroutine function is refused, with a TypeError, where it is defined.

    Thread:
        The methods to override are called on the publisher's threads, one at a time. `request` and `cancel` may be
        called from any thread, at any time.

    Example:
        >>> from reactive_runtime import Flow
        >>> from reactive_runtime.subscribers import BaseSubscriber
        >>> class Two(BaseSubscriber):
        ...     def started(self):
        ...         self.request(2)
        ...     def received(self, element):
        ...         print(element)
        >>> _ = Flow.range(9).subscribe(Two())
        0
        1

    Origin:
        `BaseSubscriber` of Reactor.
    """

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        for name in ("started", "received", "failed", "completed"):
            if is_coroutine_function(getattr(cls, name)):
                raise TypeError(
                    f"{cls.__name__}: {name} is a coroutine function, which no thread awaits: make it a plain function,"
                    " or use `async for` over the flow"
                )

    def __init__(self) -> None:
        self._lock = primitives.Lock()
        self._upstream: Upstream | None = None  # _lock; set once
        self._early = 0  # _lock; the demand before there was a subscription
        self._over = False  # _lock; final: it has been cancelled, has failed or has completed

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            forgotten = ": its __init__ has to call super().__init__()" if name == "_lock" else ""
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{forgotten}")

    # -- to override -------------------------------------------------------------------------------------------

    def started(self) -> None:
        """The subscription is there. By default everything is requested; override it to ask for less."""
        self.request(MAX_DEMAND)

    def received(self, element: T) -> object:
        """One element; override it. By default it does nothing.

        Args:
            element: Anything but None.

        Returns:
            Anything; `AsyncSubscriber` cancels where it is False.
        """

    def failed(self, error: BaseException) -> None:
        """The end, by failure. By default it goes to the hook.

        Args:
            error: The publisher's error, or that of `started` or `received`.
        """
        dropping.error_dropped(f"{kind_of(self)} has no `failed`", error)

    def completed(self) -> None:
        """The end, by success; override it. By default it does nothing."""

    # -- to call -----------------------------------------------------------------------------------------------

    def request(self, n: int, /) -> None:
        """Ask for more elements. It may come before there is a subscription: then it is passed on when there is one.

        Args:
            n: How many more, 1 or more; the sum counts as at most MAX_DEMAND.

        Raises:
            TypeError: `n` is no int.
            ValueError: `n` is below 1.

        Thread:
            Any, at any time: the calls upstream are serial (2.7).
        """
        at_least("request", "n", 1, n)
        with self._lock:
            upstream = self._upstream
            if upstream is None:
                self._early = min(self._early + n, MAX_DEMAND)
        if upstream is not None:
            upstream.request(n)

    def cancel(self) -> None:
        """Want no more. Idempotent; what comes after it is dropped, to the hook.

        Thread:
            Any, at any time.
        """
        with self._lock:
            self._over = True
            upstream = self._upstream
        if upstream is not None:
            upstream.cancel()

    def is_over(self) -> bool:
        """Whether it was cancelled, has failed, or is complete.

        Returns:
            True from then on.
        """
        with self._lock:
            return self._over

    # -- the signals -------------------------------------------------------------------------------------------

    def on_subscribe(self, subscription: Subscription, /) -> None:
        """Take the one subscription; see `Subscriber.on_subscribe`.

        Args:
            subscription: The link to the publisher. A second one is cancelled (2.5), and so is one after `cancel`.

        Raises:
            TypeError: `subscription` is None (2.13).
        """
        not_none("on_subscribe", subscription)
        upstream = Upstream(subscription, self._raised)
        with self._lock:
            refused = self._upstream is not None or self._over
            if not refused:
                self._upstream = upstream
            early, self._early = self._early, 0
        if refused:
            subscription.cancel()  # 2.5
            return
        if early:
            upstream.request(early)
        self._guarded(self.started)

    def on_next(self, element: T, /) -> None:
        """Hand an element to `received`; see `Subscriber.on_next`.

        Args:
            element: Anything but None. After the end or a cancel it goes to the hook.

        Raises:
            TypeError: `element` is None (2.13).
        """
        not_none("on_next", element)
        if self.is_over():
            dropping.element_dropped("it came after its subscriber had cancelled", element)  # 2.8
        else:
            self._guarded(self.received, element)

    def on_error(self, error: BaseException, /) -> None:
        """Hand the error to `failed`; see `Subscriber.on_error`.

        Args:
            error: The error. After the end or a cancel it goes to the hook.

        Raises:
            TypeError: `error` is None (2.13).
        """
        error = signalled_error(error, f"the publisher of {kind_of(self)}")
        if self._ends():
            self._last(self.failed, error)
        else:
            dropping.error_dropped("an error after its subscriber had ended", error)

    def on_complete(self) -> None:
        """Call `completed`, unless it is over already; see `Subscriber.on_complete`."""
        if self._ends():
            self._last(self.completed)

    def _ends(self) -> bool:
        with self._lock:
            first, self._over = not self._over, True
            upstream = self._upstream
        if upstream is not None:
            upstream.ended()
        return first

    def _guarded(self, method: Callable[..., object], *arguments: object) -> None:
        """Call a method of the subclass. If it raises, cancel, and give the error to `failed` (2.13)."""
        try:
            method(*arguments)
        except BaseException as error:
            self._left_by(error)

    def _left_by(self, error: BaseException) -> None:
        """End after an error of a method. An exit (`failures.exits`) also goes on up if the user has called."""
        try:
            self.cancel()
        finally:
            if not isinstance(error, Unwinding):
                BaseSubscriber._last(self, self.failed, an_exception(error))
        if goes_up(error):
            raise error

    def _raised(self, error: BaseException, fault: Exception) -> None:
        """End after a call on the upstream has raised `error`. An exit from its own methods has ended it already."""
        if not goes_up(error):
            self.on_error(fault)
            return
        if not isinstance(error, Unwinding) and self._ends():
            self._last(self.failed, fault)
        raise error

    def _last(self, method: Callable[..., object], *arguments: object) -> None:
        try:
            method(*arguments)
        except BaseException as error:
            dropping.raised(f"{a_kind(self)} raised out of its last signal (2.13)", error)


class AsyncSubscriber(BaseSubscriber[T]):
    """A `BaseSubscriber` whose methods run on `executor`, one at a time, so that a publisher is never held up (2.2).

    Override `received`: return False to cancel. An executor that refuses cancels, and is reported to `failed`, on the
    thread that noticed.

    Args:
        executor: Where the methods run.
        demand: How many elements are asked for at first, 1 or more; at most so many wait.

    Raises:
        TypeError: `executor` has no `submit`, or `demand` is no int.
        ValueError: `demand` is below 1.

    Demand:
        `demand` at first, and one more for each element that `received` returns from.

    Example:
        >>> from concurrent.futures import ThreadPoolExecutor
        >>> from reactive_runtime import Flow
        >>> from reactive_runtime.subscribers import AsyncSubscriber
        >>> class Printed(AsyncSubscriber):
        ...     def received(self, element):
        ...         print(element)
        ...         return element < 1
        >>> with ThreadPoolExecutor(1) as pool:
        ...     _ = Flow.range(9).subscribe(Printed(pool))
        0
        1

    Origin:
        `AsyncSubscriber` of the Reactive Streams examples.
    """

    def __init__(self, executor: Executor, *, demand: int = 1) -> None:
        super().__init__()
        self._serial = SerialExecutor(check_executor("AsyncSubscriber", executor))
        self._first_demand = at_least("AsyncSubscriber", "demand", 1, demand)

    def started(self) -> None:
        """The subscription is there, and `demand` elements are asked for."""

    def _guarded(self, method: Callable[..., object], *arguments: object) -> None:
        self._hand_over(self._work, method, *arguments)

    def _last(self, method: Callable[..., object], *arguments: object) -> None:
        self._hand_over(super()._last, method, *arguments)

    def _work(self, method: Callable[..., object], *arguments: object) -> None:
        if self._cancelled_meanwhile(arguments):
            return
        try:
            going_on = method(*arguments)
        except BaseException as error:
            self._left_by(error)
            return
        if method == self.started:
            self.request(self._first_demand)
        elif going_on is False:
            self.cancel()
        elif not self.is_over():
            self.request(1)

    def _cancelled_meanwhile(self, arguments: tuple[object, ...]) -> bool:
        with self._lock:
            cancelled = self._upstream is None or self._upstream.is_cancelled()
        if cancelled:
            for element in arguments:
                dropping.element_dropped("it came after its subscriber had cancelled", element)
        return cancelled

    def _hand_over(self, function: Callable[..., object], *arguments: object) -> None:
        try:
            self._serial.submit(function, *arguments)
        except RuntimeError as error:
            self.cancel()
            super()._last(self.failed, error)


class BufferedSubscriber(BaseSubscriber[T]):
    """Keeps up to `capacity` elements for a thread that takes them; asks for more when so many were taken.

    Iterate it, or `take` from it.

    Args:
        capacity: How many elements may wait, 1 or more.
        threshold: More are asked for when the buffer has fallen to so many, 0 to `capacity - 1`. None: a quarter of
            `capacity`.

    Raises:
        TypeError: An argument is no int.
        ValueError: `capacity` is below 1, or `threshold` is below 0 or not below `capacity`.

    Demand:
        `capacity` elements are asked for at first, and `capacity - threshold` each time that the buffer has fallen to
        `threshold`. So at most `capacity` ever wait.

    Thread:
        It may be taken from on any threads but the publisher's, by several at once.

    Example:
        >>> from reactive_runtime import Flow
        >>> from reactive_runtime.subscribers import BufferedSubscriber
        >>> buffer = BufferedSubscriber(capacity=4)
        >>> _ = Flow.range(10).subscribe(buffer)
        >>> sum(buffer)
        45

    Origin:
        The buffer of version 0.3 of the specification, which asks for its whole capacity below the threshold, and can
        overflow; this one asks for the room there is.
    """

    def __init__(self, *, capacity: int = 256, threshold: int | None = None) -> None:
        super().__init__()
        at_least("BufferedSubscriber", "capacity", 1, capacity)
        self._threshold = capacity >> 2 if threshold is None else threshold
        at_least("BufferedSubscriber", "threshold", 0, self._threshold)
        if self._threshold >= capacity:
            raise ValueError(f"BufferedSubscriber: threshold must be below capacity ({capacity}), not {threshold}")
        self._capacity = capacity
        self._changed = primitives.Condition(self._lock)
        self._buffer: deque[T] = deque()  # _lock; len + _asked <= capacity
        self._asked = 0  # _lock; how many elements are requested, and have not come
        self._finished = False  # _lock; no more elements come into the buffer
        self._error: BaseException | None = None  # _lock; the error that ended it

    def started(self) -> None:
        """Request as many elements as the buffer has room for."""
        self._refill()

    def received(self, element: T) -> None:
        """Keep the element, and wake a thread that waits in `take`.

        Args:
            element: The element.
        """
        with self._changed:
            self._asked -= 1
            self._buffer.append(element)
            self._changed.notify()

    def failed(self, error: BaseException) -> None:
        """`take` raises the error, after what is in the buffer.

        Args:
            error: The error.
        """
        with self._changed:
            self._finished, self._error = True, error
            self._changed.notify_all()

    def completed(self) -> None:
        """`take` raises StopIteration, after what is in the buffer."""
        with self._changed:
            self._finished = True
            self._changed.notify_all()

    def take(self, timeout: float | None = None) -> T:
        """The next element, waited for.

        Args:
            timeout: Seconds to wait. None: for ever.

        Returns:
            The element.

        Raises:
            TypeError: `timeout` is no number.
            ValueError: `timeout` is below 0, or not finite.
            TimeoutError: There was no element in `timeout` seconds.
            StopIteration: After the last element, or after a cancel.
            BaseException: The error that the publisher failed with.
        """
        if timeout is not None:
            seconds_of("take", "timeout", timeout)
        with self._changed:
            if not self._changed.wait_for(lambda: self._buffer or self._finished, primitives.one_wait(timeout)):
                raise TimeoutError(f"no element in {timeout} s")
            if not self._buffer:
                if self._error is not None:
                    stop = isinstance(self._error, StopIteration)  # which a loop would take for its end
                    raise an_exception(self._error) if stop else self._error
                raise StopIteration
            element = self._buffer.popleft()
        self._refill()
        return element

    def _refill(self) -> None:
        with self._lock:
            n = self._capacity - len(self._buffer) - self._asked
            if self._over or len(self._buffer) + self._asked > self._threshold:
                return
            self._asked += n
        self.request(n)

    def cancel(self) -> None:
        """Want no more; what is in the buffer is dropped, to the hook, and threads in `take` are woken.

        Thread:
            Any, at any time.
        """
        super().cancel()
        with self._changed:
            self._finished = True
            left = list(self._buffer)
            self._buffer.clear()
            self._changed.notify_all()
        for element in left:
            dropping.element_dropped("it waited in a buffer that was cancelled", element)

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        return self.take()
