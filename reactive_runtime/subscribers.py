"""Subscribers to extend: what the rules ask of one is done here, and what it is for is left to be written.

All three keep 2.5 (a second subscription is cancelled), 2.7 (their calls upstream are serial, from whatever threads
they come), 2.8 (what comes after a cancel is dropped, to the hook) and 2.13 (a signal returns normally; None is a
TypeError). A method of yours that raises has cancelled, and its error goes to `failed`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from typing import Generic, TypeVar

from reactive_runtime._core import hooks, primitives
from reactive_runtime._core.arguments import at_least, check_executor, not_none
from reactive_runtime._core.assembly import an_exception
from reactive_runtime._core.exits import Unwinding, goes_up
from reactive_runtime._core.prefetch_queue import Upstream
from reactive_runtime.executors import SerialExecutor
from reactive_runtime.spec import MAX_DEMAND, Subscription

__all__ = ["AsyncSubscriber", "BaseSubscriber", "BufferedSubscriber"]

T = TypeVar("T")


class BaseSubscriber(Generic[T]):
    """Override `received`, and, where wanted, `started`, `failed` and `completed`.

    They are called on the publisher's threads, one at a time. `request` and `cancel` may be called from any thread,
    at any time. Origin: `BaseSubscriber` of Reactor.

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
    """

    def __init__(self) -> None:
        self._lock = primitives.Lock()
        self._upstream: Upstream | None = None  # _lock; set once
        self._early = 0  # _lock; requested before there was a subscription
        self._over = False  # _lock; final: cancelled, failed or completed

    # -- to override -------------------------------------------------------------------------------------------

    def started(self) -> None:
        """The subscription is there. By default everything is requested; override it to ask for less."""
        self.request(MAX_DEMAND)

    def received(self, element: T) -> object:
        """One element."""

    def failed(self, error: BaseException) -> None:
        """The end, by failure: the publisher's, or an error of `started` or `received`. By default: to the hook."""
        hooks.error_dropped(f"{type(self).__name__} has no `failed`", error)

    def completed(self) -> None:
        """The end, by success."""

    # -- to call -----------------------------------------------------------------------------------------------

    def request(self, n: int, /) -> None:
        """Ask for `n` more elements, 1 or more; ValueError or TypeError otherwise. May come early."""
        at_least("request", "n", 1, n)
        with self._lock:
            upstream = self._upstream
            if upstream is None:
                self._early = min(self._early + n, MAX_DEMAND)
        if upstream is not None:
            upstream.request(n)

    def cancel(self) -> None:
        """Want no more. Idempotent; what comes after it is dropped."""
        with self._lock:
            self._over = True
            upstream = self._upstream
        if upstream is not None:
            upstream.cancel()

    def is_over(self) -> bool:
        """Whether it was cancelled, has failed, or is complete."""
        with self._lock:
            return self._over

    # -- the signals -------------------------------------------------------------------------------------------

    def on_subscribe(self, subscription: Subscription, /) -> None:
        """Take the one subscription; see `Subscriber.on_subscribe`."""
        not_none("on_subscribe", subscription)
        upstream = Upstream(subscription, self)
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
        """See `Subscriber.on_next`."""
        not_none("on_next", element)
        if self.is_over():
            hooks.element_dropped("it came after its subscriber had cancelled", element)  # 2.8
        else:
            self._guarded(self.received, element)

    def on_error(self, error: BaseException, /) -> None:
        """See `Subscriber.on_error`."""
        not_none("on_error", error)
        if self._ends():
            self._last(self.failed, error)
        else:
            hooks.error_dropped("an error after its subscriber had ended", error)

    def on_complete(self) -> None:
        """See `Subscriber.on_complete`."""
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
        """2.13: who raises has cancelled, and hears of it."""
        try:
            method(*arguments)
        except BaseException as error:
            self._left_by(error)

    def _left_by(self, error: BaseException) -> None:
        """A method raised. An exit (`_core.exits`) is an end as well, and goes on up where a user has called."""
        try:
            self.cancel()
        finally:
            if not isinstance(error, Unwinding):
                BaseSubscriber._last(self, self.failed, an_exception(error))
        if goes_up(error):
            raise error

    def _raised(self, error: BaseException, fault: Exception) -> None:
        """A call on the upstream raised `error`; an exit on its way up has signalled already, if it is from within."""
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
            hooks.raised(f"{type(self).__name__} raised out of its last signal (2.13)", error)


class AsyncSubscriber(BaseSubscriber[T]):
    """A `BaseSubscriber` whose methods run on `executor`, one at a time, so that a publisher is never held up (2.2).

    Asks for `demand` elements at first (1 or more), and for one more for each that `received` returns from; so at most
    `demand` wait. Override `received`: return False to cancel. An executor that refuses cancels, and is reported to
    `failed`, on the thread that noticed. Origin: `AsyncSubscriber` of the Reactive Streams examples.

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
    """

    def __init__(self, executor: Executor, /, demand: int = 1) -> None:
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
                hooks.element_dropped("it came after its subscriber had cancelled", element)
        return cancelled

    def _hand_over(self, function: Callable[..., object], *arguments: object) -> None:
        try:
            self._serial.submit(function, *arguments)
        except RuntimeError as error:
            self.cancel()
            super()._last(self.failed, error)


class BufferedSubscriber(BaseSubscriber[T]):
    """Keeps up to `capacity` elements for a thread that takes them; asks for more when so many were taken.

    `capacity` elements are asked for at first, and `capacity - threshold` each time that the buffer has fallen to
    `threshold` (0 to `capacity - 1`). So at most `capacity` ever wait. Iterate it, or `take` from it, on any threads
    but the publisher's. Origin: the buffer of version 0.3 of the specification, which asks for its whole
    capacity below the threshold, and can overflow; this one asks for the room there is.

    >>> from reactive_runtime import Flow
    >>> from reactive_runtime.subscribers import BufferedSubscriber
    >>> buffer = BufferedSubscriber(4)
    >>> _ = Flow.range(10).subscribe(buffer)
    >>> sum(buffer)
    45
    """

    def __init__(self, capacity: int = 256, threshold: int | None = None) -> None:
        """`capacity`: 1 or more; `threshold`: a quarter of it by default."""
        super().__init__()
        at_least("BufferedSubscriber", "capacity", 1, capacity)
        self._threshold = capacity >> 2 if threshold is None else threshold
        at_least("BufferedSubscriber", "threshold", 0, self._threshold)
        if self._threshold >= capacity:
            raise ValueError(f"BufferedSubscriber: threshold must be below capacity ({capacity}), not {threshold}")
        self._capacity = capacity
        self._changed = primitives.Condition(self._lock)
        self._buffer: deque[T] = deque()  # _lock; len + _asked <= capacity
        self._asked = 0  # _lock; requested, and not yet here
        self._finished = False  # _lock; nothing more will come into the buffer
        self._error: BaseException | None = None  # _lock; and this is why

    def started(self) -> None:
        """Fill the buffer."""
        self._refill()

    def received(self, element: T) -> None:
        """Keep it."""
        with self._changed:
            self._asked -= 1
            self._buffer.append(element)
            self._changed.notify()

    def failed(self, error: BaseException) -> None:
        """The thread that takes hears of it, after what is in the buffer."""
        with self._changed:
            self._finished, self._error = True, error
            self._changed.notify_all()

    def completed(self) -> None:
        """The thread that takes hears of it, after what is in the buffer."""
        with self._changed:
            self._finished = True
            self._changed.notify_all()

    def take(self, timeout: float | None = None) -> T:
        """The next element, waited for, up to `timeout` seconds (None: for ever).

        Raises TimeoutError; what the publisher failed with; StopIteration after the last element or a cancel.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: self._buffer or self._finished, timeout):
                raise TimeoutError(f"no element in {timeout} s")
            if not self._buffer:
                if self._error is not None:
                    stop = isinstance(self._error, StopIteration)  # which would be taken for the end
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
        """Want no more; what is in the buffer is dropped, to the hook, and takers are woken."""
        super().cancel()
        with self._changed:
            self._finished = True
            left = list(self._buffer)
            self._buffer.clear()
            self._changed.notify_all()
        for element in left:
            hooks.element_dropped("it waited in a buffer that was cancelled", element)

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        return self.take()
