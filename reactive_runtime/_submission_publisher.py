"""A publisher that programs submit elements to, and that waits for slow subscribers: that of the JDK."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar

from reactive_runtime._core.failures import dropping
from reactive_runtime._core.failures.failure import Failure, Spread
from reactive_runtime._core.queues.subscriber_buffer import SubscriberBuffer
from reactive_runtime._core.queues.waking import wake_all
from reactive_runtime._core.runtime import primitives
from reactive_runtime._core.runtime.arguments import (
    an_error,
    at_least,
    check_callable,
    check_executor,
    not_none,
    seconds_of,
)
from reactive_runtime._core.sources.flow_source import Hot
from reactive_runtime._core.sources.naming import executor_name
from reactive_runtime._flow import Flow
from reactive_runtime.executors import blocking_is_allowed, runs_here, threads_of

__all__ = ["SubmissionPublisher"]

T = TypeVar("T")

MAX_BUFFER = 256


class _Buffer(SubscriberBuffer):
    """The elements that wait for one subscriber of a `SubmissionPublisher`, and the submitters that wait for room.

    The `_changed` of the publisher owns the fields that this class adds.
    """

    __slots__ = ("last", "waiting")

    def __init__(self, capacity: int) -> None:
        super().__init__(capacity)
        self.waiting: deque[_Offer] = deque()  # ascending by number
        self.last = 0  # the number of the last item

    def _freed(self) -> None:
        self.on_room()  # at once: other threads wait for room, and need it more than this one does

    def take(self, offer: _Offer, *, waits: bool) -> bool:
        """Put the item of an offer, if that keeps the order of submission. False: there is no room.

        If it `waits`, the offer then waits for room.
        """
        first = not self.waiting or offer.number < self.waiting[0].number
        if first and offer.number > self.last and self.put(offer.item):
            offer.given, self.last = True, offer.number
        elif waits and not (self.gone() or self.over()):
            self.waiting.append(offer)
            self.room()  # the buffer was full at the last look, and calls back when it has room
        return offer.given

    def serve(self) -> bool:
        """Put the offers that wait, as far as there is room. Return whether it has put any."""
        served = False
        while self.waiting and self.put(self.waiting[0].item):
            offer = self.waiting.popleft()
            offer.given, self.last, served = True, offer.number, True
        return served


class _Offer:
    """One item for one subscriber. The publisher's `_changed` owns it while others can see it."""

    __slots__ = ("buffer", "given", "here", "item", "number")

    def __init__(self, item: Any, number: int, buffer: _Buffer) -> None:
        self.item = item
        self.number = number
        self.buffer = buffer
        self.given = False
        self.here = False  # a thread of the publisher's executor waits for it


def _wake(buffers: Iterable[_Buffer]) -> None:
    wake_all([drain for buffer in buffers if (drain := buffer.news()) is not None])


class SubmissionPublisher(Flow[T]):
    """Hands what is submitted to its subscribers, each with a bounded buffer, on `executor`.

    `submit` blocks while a buffer is full, `offer` drops. All subscribers see the same order; one that comes later
    sees what is submitted later. A context manager: leaving it closes, with the error where one goes through.

    Args:
        executor: Where subscribers are called.
        max_buffer: How many elements may wait for each subscriber, 1 or more.

    Raises:
        TypeError: `executor` has no `submit`, or `max_buffer` is no int.
        ValueError: `max_buffer` is below 1.

    Thread:
        Each method may be called on any thread, by many at once.

    Example:
        >>> from concurrent.futures import ThreadPoolExecutor
        >>> from reactive_runtime.hot import SubmissionPublisher
        >>> with ThreadPoolExecutor(1) as pool:
        ...     with SubmissionPublisher(pool) as numbers:
        ...         total = numbers.sum().to_future()
        ...         for n in range(5):
        ...             _ = numbers.submit(n)
        ...     total.result()
        10

    Origin:
        `SubmissionPublisher` of `java.util.concurrent`.
    """

    __slots__ = (
        "__weakref__",
        "_buffers",
        "_changed",
        "_closed",
        "_error",
        "_executor",
        "_max_buffer",
        "_submitted",
    )

    def __init__(self, executor: Executor, *, max_buffer: int = MAX_BUFFER) -> None:
        check_executor("SubmissionPublisher", executor)
        at_least("SubmissionPublisher", "max_buffer", 1, max_buffer)
        self._changed = primitives.Condition()
        self._buffers: dict[_Buffer, None] = {}  # _changed; one for each subscriber, until it leaves, or to the end
        self._submitted = 0  # _changed; how many items there have been
        self._closed = False  # _changed; final
        self._error: BaseException | None = None  # _changed; closed with this
        self._max_buffer = max_buffer
        self._executor = executor
        self._begin(Hot("SubmissionPublisher()", self._enter, executor))

    def _enter(self) -> SubscriberBuffer:
        buffer = _Buffer(self._max_buffer)
        buffer.on_room, buffer.on_gone = partial(self._serve, buffer), partial(self._leave, buffer)
        with self._changed:
            if self._closed:
                buffer.end(None if self._error is None else Failure(self._error, kept=True))
            else:
                self._buffers[buffer] = None
        return buffer

    def _serve(self, buffer: _Buffer) -> None:
        """Let the threads that wait give their items, in the order in which they came: there is room."""
        with self._changed:
            served = buffer.serve()
            if served:
                self._changed.notify_all()
        if served:
            buffer.wake()

    def _leave(self, buffer: _Buffer) -> None:
        with self._changed:
            self._buffers.pop(buffer, None)
            buffer.waiting.clear()
            self._changed.notify_all()

    def submit(self, item: T) -> int:
        """Give `item` to every subscriber; blocks while one of them has no room for it, and has not cancelled.

        Threads that wait are served in the order in which they came. If it raises RuntimeError, the item is dropped for
        the subscribers that do not have it, to the hook.

        Args:
            item: Anything but None.

        Returns:
            The most elements that now wait for any subscriber.

        Raises:
            TypeError: `item` is None.
            RuntimeError: After `close`; when a `close` comes before every subscriber has the item; and on a thread of
                `executor` where each of its other threads waits here already, since none is left to make room.
        """
        return max(0, self._give(item, None, None))

    def offer(
        self,
        item: T,
        timeout: float = 0.0,
        *,
        on_drop: Callable[[T], object] | None = None,
    ) -> int:
        """Give `item` to every subscriber that has room for it within `timeout` seconds.

        Args:
            item: Anything but None.
            timeout: Seconds to wait for room, from 0.
            on_drop: Called with `item` for each subscriber that had no room. The item is tried once more if it returns
                something true, and no later item has come before it; then it is dropped, to the hook. None: it is
                dropped at once.

        Returns:
            If it was dropped, minus the number of subscribers that did not get it; else the most elements that now wait
            for any.

        Raises:
            TypeError: `item` is None, `timeout` is no number, or `on_drop` cannot be called.
            ValueError: `timeout` is below 0, or not finite.
            RuntimeError: After `close`.

        Thread:
            Any; `on_drop` is called on this thread. Its error goes on up.
        """
        seconds_of("offer", "timeout", timeout)
        if on_drop is not None:
            check_callable("offer", "on_drop", on_drop)
        return self._give(item, timeout, on_drop)

    def _give(self, item: T, timeout: float | None, on_drop: Callable[[T], object] | None) -> int:
        not_none("submit", item)
        deadline = None if timeout is None else primitives.monotonic() + timeout
        with self._changed:
            if self._closed:
                raise RuntimeError("this SubmissionPublisher is closed")
            self._submitted += 1
            served = [buffer for buffer in self._buffers if buffer.serve()]
            if served:
                self._changed.notify_all()
            offers = [_Offer(item, self._submitted, buffer) for buffer in self._buffers]
            late = [offer for offer in offers if not offer.buffer.take(offer, waits=timeout != 0)]
        try:
            _wake(served)
            _wake(offer.buffer for offer in offers if offer.given)
            self._wait_for(late, deadline)
            for offer in late:
                if not offer.given and on_drop is not None and on_drop(item):
                    self._once_more(offer)
        finally:
            drops = self._drop(late)
        if drops and timeout is None:  # `submit` gives up only if no thread is left
            raise RuntimeError("this SubmissionPublisher was closed before every subscriber had room for the item")
        return -drops if drops else self.estimate_maximum_lag()

    def _wait_for(self, late: list[_Offer], deadline: float | None) -> None:
        """Wait until all offers are given, or have nothing to wait for, or the time is over."""
        if not late:
            return
        threads = threads_of(self._executor) if deadline is None and self._is_here() else None
        with self._changed:
            for offer in late:
                offer.here = threads is not None
            while any(offer in offer.buffer.waiting for offer in late):
                left = None if deadline is None else deadline - primitives.monotonic()
                if left is not None and left <= 0:
                    break
                if threads is not None and self._waiting_here() >= threads:
                    raise self._no_thread_left()
                self._changed.wait(primitives.one_wait(left))
        self._give_up(late)

    def _waiting_here(self) -> int:
        """How many threads of the executor wait in `submit`. The caller holds the lock."""
        return len({offer.number for buffer in self._buffers for offer in buffer.waiting if offer.here})

    def _is_here(self) -> bool:
        """Whether the executor runs on this thread, which would have to make the room that it waits for."""
        return not blocking_is_allowed() and runs_here(self._executor)

    def _no_thread_left(self) -> RuntimeError:
        return RuntimeError(
            f"submit: a subscriber has no room ({self._max_buffer} wait for it), and this thread,"
            f" {primitives.current_thread().name}, is the last one of {executor_name(self._executor)}, on which"
            " subscribers are called: to wait here would be for ever. Submit on another thread, give the publisher an"
            " executor of its own or a larger max_buffer, or use offer"
            " (executors.blocking_allowed() switches this check off)"
        )

    def _give_up(self, late: list[_Offer]) -> None:
        """Take the offers out of the lines in which they wait."""
        with self._changed:
            for offer in late:
                if offer in offer.buffer.waiting:
                    offer.buffer.waiting.remove(offer)

    def _drop(self, late: list[_Offer]) -> int:
        """Drop the item for each subscriber that misses it. Return how many do."""
        self._give_up(late)
        # A subscriber that has cancelled misses nothing.
        missing = [offer for offer in late if not (offer.given or offer.buffer.has_cancelled())]
        for offer in missing:
            dropping.element_dropped("a subscriber had no room for what was offered", offer.item)
        return len(missing)

    def _once_more(self, offer: _Offer) -> None:
        with self._changed:
            given = offer.buffer.take(offer, waits=False)
        if given:
            offer.buffer.wake()

    def close(self) -> None:
        """Complete: each subscriber gets the end, after what waits for it."""
        self._end(None)

    def close_exceptionally(self, error: BaseException) -> None:
        """Fail: each subscriber gets `error`, after what waits for it.

        Args:
            error: The error. After a close it has no effect.

        Raises:
            TypeError: `error` is None, or no exception.
        """
        an_error("close_exceptionally", error)
        self._end(error)

    def _end(self, error: BaseException | None) -> None:
        with self._changed:
            if self._closed:
                return
            self._closed, self._error = True, error
            buffers, self._buffers = self._buffers, {}
            spread = Spread()
            late: list[Failure] = []  # the buffers of subscribers that are about to leave
            for buffer in buffers:
                buffer.waiting.clear()
                failure = None if error is None else Failure(error, spread)
                if not buffer.end(failure) and failure is not None:
                    late.append(failure)
            self._changed.notify_all()
        _wake(buffers)
        for failure in late:
            failure.left(None)

    def is_closed(self) -> bool:
        """Whether `close` or `close_exceptionally` was called.

        Returns:
            True from then on.
        """
        with self._changed:
            return self._closed

    def has_subscribers(self) -> bool:
        """Whether there is a subscriber.

        Returns:
            True or False; it may have changed when it is read.
        """
        with self._changed:
            return bool(self._buffers)

    def max_buffer(self) -> int:
        """How many elements may wait for each subscriber.

        Returns:
            The bound that was given.
        """
        return self._max_buffer

    def estimate_maximum_lag(self) -> int:
        """The most elements that wait for any subscriber.

        Returns:
            The number; 0 without a subscriber.
        """
        return max((buffer.lag() for buffer in self._present()), default=0)

    def estimate_minimum_demand(self) -> int:
        """The least demand of any subscriber that is not yet met.

        Returns:
            The number; 0 without a subscriber. It is negative where so many wait that are not asked for.
        """
        return min((buffer.demand() for buffer in self._present()), default=0)

    def _present(self) -> list[_Buffer]:
        with self._changed:
            return list(self._buffers)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        else:
            self.close_exceptionally(error)
