"""Hot sources: they emit whether or not they have subscribers, and all subscribers get the same elements.

Each is a flow, with its operators; `on_next` and `emit` may be called on any thread, by many at once. Elements that
wait for a subscriber are kept in a buffer of its own, which is bounded; subscribers without an executor are called on
the thread that emits, one signal at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from reactive_runtime._core.failures.failure import Failure
from reactive_runtime._core.queues.emit_result import EmitResult
from reactive_runtime._core.queues.multicaster import Multicaster
from reactive_runtime._core.queues.subscriber_buffer import SubscriberBuffer
from reactive_runtime._core.runtime import primitives
from reactive_runtime._core.runtime.arguments import (
    at_least,
    not_none,
)
from reactive_runtime._core.sources.flow_source import Hot
from reactive_runtime._core.sources.pollable import Pollable
from reactive_runtime._flow import Flow
from reactive_runtime._spec import Subscription
from reactive_runtime._submission_publisher import SubmissionPublisher
from reactive_runtime._support.public_names import all_at_home
from reactive_runtime.errors import RejectedError

__all__ = [
    "BehaviorProcessor",
    "EmitResult",
    "PublishProcessor",
    "ReplayProcessor",
    "SubmissionPublisher",
    "UnicastProcessor",
]

T = TypeVar("T")

CAPACITY = 256


class _HotProcessor(Flow[T]):
    """A flow that is a subscriber as well, of one upstream, or is fed by hand.

    When its last subscriber has cancelled, it cancels its upstream, unless `auto_cancel` is False, and has completed.
    """

    __slots__ = ("__weakref__", "_multicaster")

    def __init__(self, multicaster: Multicaster, enter: Callable[[], Pollable] | None = None) -> None:
        """`enter`: lets subscribers in, in place of the multicaster."""
        ahead = multicaster.enter if enter is None else None
        self._begin(Hot(f"{type(self).__name__}()", enter or multicaster.enter, ahead=ahead))
        self._multicaster = multicaster

    def emit(self, element: T) -> EmitResult:
        """Give `element` to every subscriber, or, where one of them has no room, to none.

        Never blocks.

        Args:
            element: Anything but None.

        Returns:
            The outcome; see `EmitResult`. Only `OK` delivers it.

        Raises:
            TypeError: `element` is None (2.13). Nothing else is raised.

        Thread:
            Any, by many at once. Subscribers without an executor are called on this thread.
        """
        not_none("emit", element)
        return self._multicaster.emit(element)

    def on_subscribe(self, subscription: Subscription, /) -> None:
        """Take the one upstream; a further one is cancelled (2.5). It is asked for what the slowest has room for.

        Args:
            subscription: The link to the upstream.

        Raises:
            TypeError: `subscription` is None (2.13).
        """
        self._multicaster.on_subscribe(subscription)

    def on_next(self, element: T, /) -> None:
        """`emit`, and what can't be delivered goes to the hook of dropped elements.

        Args:
            element: Anything but None.

        Raises:
            TypeError: `element` is None (2.13).
        """
        self._multicaster.on_next(element)

    def on_error(self, error: BaseException, /) -> None:
        """Fail: every subscriber gets the error, after what waits for it.

        Args:
            error: The error.

        Raises:
            TypeError: `error` is None (2.13).
        """
        self._multicaster.on_error(error)

    def on_complete(self) -> None:
        """Complete: every subscriber gets the end, after what waits for it."""
        self._multicaster.on_complete()

    def subscribers(self) -> int:
        """How many subscribers there are.

        Returns:
            The number; it may have changed when it is read.
        """
        return self._multicaster.size()


class PublishProcessor(_HotProcessor[T]):
    """Gives each element to the subscribers there are; those that come later get what comes later.

    The slowest holds an upstream back. With no subscriber, nothing is asked of the upstream, and what is emitted by
    hand is refused. After the end, a subscriber gets the end. Elements that an upstream was asked for find room,
    whatever is emitted by hand beside them: then up to twice `capacity` elements wait.

    Args:
        capacity: At most so many elements wait for each subscriber, 1 or more.
        auto_cancel: Whether the upstream is cancelled when the last subscriber has cancelled; a subscriber that comes
            later then gets the end. One that is fed by hand goes on.

    Raises:
        TypeError: `capacity` is no int.
        ValueError: `capacity` is below 1.

    Demand:
        The upstream is asked for what the slowest subscriber has room for.

    Example:
        >>> from reactive_runtime.hot import PublishProcessor
        >>> numbers = PublishProcessor()
        >>> _ = numbers.map(lambda n: n * 10).subscribe(print)
        >>> numbers.emit(4)
        40
        <EmitResult.OK: 'ok'>

    Origin:
        `PublishProcessor` of RxJava, and `MulticastProcessor` for the end.
    """

    __slots__ = ()

    def __init__(self, *, capacity: int = CAPACITY, auto_cancel: bool = True) -> None:
        multicaster = Multicaster(at_least("PublishProcessor", "capacity", 1, capacity), auto_cancel=auto_cancel)
        super().__init__(multicaster)


class ReplayProcessor(_HotProcessor[T]):
    """As `PublishProcessor`, and subscribers that come later get the last `n` elements first.

    After the end, they still do, and then the end. While there is no subscriber, an upstream goes on for up to
    `capacity` elements.

    Args:
        n: How many elements are replayed, 0 or more.
        capacity: At most so many elements wait for each subscriber, 1 or more.
        auto_cancel: Whether the upstream is cancelled when the last subscriber has cancelled.

    Raises:
        TypeError: `n` or `capacity` is no int.
        ValueError: `n` is below 0, or `capacity` is below 1.

    Example:
        >>> from reactive_runtime.hot import ReplayProcessor
        >>> numbers = ReplayProcessor(2)
        >>> for n in range(5):
        ...     _ = numbers.emit(n)
        >>> _ = numbers.subscribe(print)
        3
        4

    Origin:
        `ReplayProcessor` of RxJava, bounded.
    """

    __slots__ = ()

    def __init__(self, n: int, *, capacity: int = CAPACITY, auto_cancel: bool = True) -> None:
        at_least("ReplayProcessor", "n", 0, n)
        multicaster = Multicaster(
            at_least("ReplayProcessor", "capacity", 1, capacity), n, waits=False, auto_cancel=auto_cancel
        )
        super().__init__(multicaster)


class BehaviorProcessor(_HotProcessor[T]):
    """As `PublishProcessor`, and subscribers that come later get the latest element first; in the beginning `initial`.

    After the end, only the end. While there is no subscriber, an upstream goes on for up to `capacity` elements.

    Args:
        initial: The latest element at the beginning. Anything but None.
        capacity: At most so many elements wait for each subscriber, 1 or more.
        auto_cancel: Whether the upstream is cancelled when the last subscriber has cancelled.

    Raises:
        TypeError: `initial` is None, or `capacity` is no int.
        ValueError: `capacity` is below 1.

    Example:
        >>> from reactive_runtime.hot import BehaviorProcessor
        >>> state = BehaviorProcessor("off")
        >>> _ = state.subscribe(print)
        off
        >>> state.emit("on")
        on
        <EmitResult.OK: 'ok'>

    Origin:
        `BehaviorProcessor` of RxJava.
    """

    __slots__ = ()

    def __init__(self, initial: T, *, capacity: int = CAPACITY, auto_cancel: bool = True) -> None:
        not_none("BehaviorProcessor", initial)
        at_least("BehaviorProcessor", "capacity", 1, capacity)
        multicaster = Multicaster(capacity, 1, waits=False, forgets=True, auto_cancel=auto_cancel)
        multicaster.emit(initial)
        super().__init__(multicaster)


class UnicastProcessor(_HotProcessor[T]):
    """For one subscriber, and buffers up to `capacity` elements until it comes.

    A second subscriber is refused (`on_subscribe`, then `on_error(RejectedError)`). When the one has cancelled, the
    upstream is cancelled, and what is emitted is answered with `CANCELLED`.

    Args:
        capacity: At most so many elements wait for the subscriber, 1 or more.

    Raises:
        TypeError: `capacity` is no int.
        ValueError: `capacity` is below 1.

    Example:
        >>> from reactive_runtime.hot import UnicastProcessor
        >>> numbers = UnicastProcessor()
        >>> numbers.emit(4)
        <EmitResult.OK: 'ok'>
        >>> _ = numbers.subscribe(print)
        4

    Origin:
        `UnicastProcessor` of RxJava.
    """

    __slots__ = ("_lock", "_reader", "_taken")

    def __init__(self, *, capacity: int = CAPACITY) -> None:
        multicaster = Multicaster(at_least("UnicastProcessor", "capacity", 1, capacity))
        self._lock = primitives.Lock()
        self._taken = False  # _lock; the subscriber has come
        self._reader = multicaster.enter()
        self._reader.on_gone = multicaster.disconnect
        super().__init__(multicaster, self._enter)

    def _enter(self) -> Pollable:
        with self._lock:
            refused, self._taken = self._taken, True
        if not refused:
            return self._reader
        buffer = SubscriberBuffer(1)
        refusal = RejectedError("this UnicastProcessor has its one subscriber already")
        buffer.end(Failure(refusal, kept=True))
        return buffer

    def emit(self, element: T) -> EmitResult:
        """Give `element` to the subscriber, or keep it until it comes.

        Never blocks.

        Args:
            element: Anything but None.

        Returns:
            The outcome; see `EmitResult`.

        Raises:
            TypeError: `element` is None (2.13). Nothing else is raised.
        """
        emission = super().emit(element)
        return EmitResult.CANCELLED if emission is EmitResult.NO_SUBSCRIBER else emission

    def subscribers(self) -> int:
        """1 while the subscriber is there, else 0.

        Returns:
            0 or 1.
        """
        with self._lock:
            taken = self._taken
        return super().subscribers() if taken else 0


all_at_home(globals())
