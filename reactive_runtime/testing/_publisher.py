"""A publisher driven by hand, which keeps the rules, or breaks the one it is asked to."""

from __future__ import annotations

from typing import Any, Final, Generic, TypeVar

from reactive_runtime import rules
from reactive_runtime._core.runtime import primitives
from reactive_runtime._core.runtime.arguments import not_none
from reactive_runtime._spec import MAX_DEMAND, Subscriber
from reactive_runtime.testing._protocol import is_valid, meeting, shown

__all__ = ["TestPublisher"]

T = TypeVar("T")

BREAKABLE: Final = ("1.1", "1.3", "1.7", "1.8", "1.9", "2.13", "3.9")


class TestPublisher(Generic[T]):
    """`emit`, `complete` and `fail` signal to every subscriber there is, on the calling thread.

    Keeping the rules, `emit` is an AssertionError where a subscriber has asked for no more (1.1), and all three are
    where a subscriber is inside of another signal (1.3), or its `on_subscribe` has not begun (1.9). A subscriber that
    has cancelled, or has got the end, gets nothing. A request below 1, or of what is no int, is answered with
    `on_error` (3.9); where a signal is under way, behind that. One rule may be broken:

    - "1.1": elements go out without demand.
    - "1.3": each element goes out twice at the same time, on two threads. They meet inside of a `Recorder` or a
      `Probe`, which sees both, and right before `on_next` of any other subscriber, where a quick one may not.
    - "1.7": elements and ends go out after the end.
    - "1.8": elements and ends go out after a cancel.
    - "1.9": there is no `on_subscribe`.
    - "2.13": each element is None.
    - "3.9": a request below 1 is taken for what it is.

    Args:
        breaks: The number of the one rule that is not kept. None: all are kept.

    Raises:
        ValueError: `breaks` is not one of these rules.

    Example:
        >>> from reactive_runtime import Flow
        >>> from reactive_runtime.testing import TestPublisher
        >>> numbers = TestPublisher()
        >>> _ = Flow.from_publisher(numbers).map(lambda n: n * n).subscribe(print, demand=2)
        >>> numbers.demand
        2
        >>> numbers.emit(3)
        9

    Origin:
        `TestPublisher` of Reactor.
    """

    __test__ = False  # nothing for pytest to collect

    def __init__(self, *, breaks: str | None = None) -> None:
        if breaks is not None and breaks not in BREAKABLE:
            what = "a rule" if breaks not in rules.RULES else "a rule that can be broken here"
            raise ValueError(f"TestPublisher: {breaks!r} is not {what}: {', '.join(BREAKABLE)}")
        self._breaks = breaks
        self._lock = primitives.Lock()
        self._subscriptions: list[_Driven[T]] = []  # _lock

    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        """Connect `subscriber`, and call its `on_subscribe` (not where "1.9" is broken).

        Args:
            subscriber: The subscriber to connect.

        Raises:
            TypeError: `subscriber` is None (1.9), or has no `on_subscribe`.
        """
        if subscriber is None:
            raise TypeError("subscribe(None): None is not allowed here (1.9)")
        if not callable(getattr(subscriber, "on_subscribe", None)):
            raise TypeError(f"subscribe({shown(subscriber)}): a Subscriber is needed, and that has no on_subscribe")
        subscription = _Driven(subscriber, self._breaks)
        with self._lock:
            self._subscriptions.append(subscription)
        if self._breaks != "1.9":
            subscription.begin()

    def _all(self) -> list[_Driven[T]]:
        with self._lock:
            return list(self._subscriptions)

    def emit(self, *elements: T) -> None:
        """Signal each of `elements`.

        Args:
            *elements: The elements, in their order.

        Raises:
            TypeError: An element is None (2.13).
            AssertionError: A subscriber has asked for no more (1.1), is inside of another signal (1.3), or its
                `on_subscribe` has not begun (1.9), and that is not the rule that is broken.

        Thread:
            `on_next` is called on this thread; on two others where "1.3" is broken.
        """
        __tracebackhide__ = True
        for element in elements:
            not_none("emit", element)
        for element in elements:
            for subscription in self._all():
                subscription.emit(element)

    def complete(self) -> None:
        """Signal the end.

        Raises:
            AssertionError: A subscriber is inside of another signal (1.3), or its `on_subscribe` has not begun (1.9).

        Thread:
            `on_complete` is called on this thread.
        """
        __tracebackhide__ = True
        for subscription in self._all():
            subscription.end(None)

    def fail(self, error: BaseException) -> None:
        """Signal the end, by failure.

        Args:
            error: What `on_error` is called with.

        Raises:
            TypeError: `error` is None (2.13), or no exception.
            AssertionError: A subscriber is inside of another signal (1.3), or its `on_subscribe` has not begun (1.9).

        Thread:
            `on_error` is called on this thread.
        """
        __tracebackhide__ = True
        not_none("fail", error)
        if not isinstance(error, BaseException):
            raise TypeError(f"fail: error must be an exception, not {shown(error)}")
        for subscription in self._all():
            subscription.end(error)

    @property
    def demand(self) -> int:
        """What is asked for and not yet met, by the subscriber that asks for the least; 0 without one.

        A subscriber that has cancelled, or has got the end, asks for nothing more, and does not count.
        """
        return min((item.demand() for item in self._all() if not item.is_silent()), default=0)

    @property
    def cancelled(self) -> int:
        """How many subscribers have cancelled."""
        return sum(subscription.is_cancelled() for subscription in self._all())

    @property
    def subscribers(self) -> int:
        """How many subscribers there have been."""
        return len(self._all())


class _Driven(Generic[T]):
    """One subscription."""

    def __init__(self, subscriber: Subscriber[T], breaks: str | None) -> None:
        self._subscriber: Any = subscriber
        self._breaks = breaks
        self._lock = primitives.Lock()
        self._demand = 0  # _lock
        self._cancelled = False  # _lock
        self._ended = False  # _lock
        self._subscribed = False  # _lock; its on_subscribe has begun
        self._subscribing = 0  # _lock; the thread inside of it
        self._inside = ""  # _lock; the signal that is under way; whose thread clears it
        self._answer: BaseException | None = None  # _lock; the end that waits for that signal to return

    def begin(self) -> None:
        with self._lock:
            self._subscribed, self._subscribing = True, primitives.get_ident()
        try:
            self._subscriber.on_subscribe(self)
        finally:
            with self._lock:
                self._subscribing = 0
            self._answered()

    def request(self, n: int, /) -> None:
        if not is_valid(n) and self._breaks != "3.9":
            with self._lock:
                if self._answer is None:
                    self._answer = ValueError(f"request({shown(n)}): demand is an int, at least 1 (3.9)")
            self._answered()
            return
        with self._lock:
            if isinstance(n, int):
                self._demand = min(self._demand + n, MAX_DEMAND)

    def cancel(self) -> None:
        with self._lock:
            self._cancelled = True

    def demand(self) -> int:
        with self._lock:
            return self._demand

    def is_silent(self) -> bool:
        with self._lock:
            return self._silent()

    def is_cancelled(self) -> bool:
        with self._lock:
            return self._cancelled

    def _silent(self) -> bool:
        """Called with the lock held."""
        return (self._cancelled and self._breaks != "1.8") or (self._ended and self._breaks != "1.7")

    def _answered(self) -> None:
        """The end that a request was answered with, once no signal is under way."""
        with self._lock:
            here = self._subscribing in (0, primitives.get_ident())
            if self._answer is None or self._inside or not here or self._silent():
                return
            error, self._answer = self._answer, None
            self._ended, self._inside = True, "on_error"
        self._signal("on_error", error)

    def _signal(self, signal: str, *arguments: Any) -> None:
        """Call it, and then what has waited for it to return."""
        try:
            getattr(self._subscriber, signal)(*arguments)
        finally:
            with self._lock:
                self._inside = ""
            self._answered()

    def _enter(self, what: str, signal: str) -> None:
        """Called with the lock held: that signal is under way from now on."""
        __tracebackhide__ = True
        if self._breaks not in ("1.9", "1.3"):
            if not self._subscribed:
                raise AssertionError(f"{what}: the subscriber's on_subscribe has not begun (1.9)")
            if self._inside or self._subscribing not in (0, primitives.get_ident()):
                raise AssertionError(f"{what}: the subscriber is inside of {self._inside or 'on_subscribe'} (1.3)")
        self._inside = signal

    def emit(self, element: Any) -> None:
        __tracebackhide__ = True
        with self._lock:
            if self._silent():
                return
            if not self._demand and self._breaks != "1.1":
                raise AssertionError("emit: the subscriber has asked for no more elements (1.1)")
            self._enter("emit", "on_next")
            if self._demand and self._demand != MAX_DEMAND:
                self._demand -= 1
        if self._breaks == "2.13":
            element = None
        if self._breaks != "1.3":
            self._signal("on_next", element)
            return
        on_next = meeting(self._subscriber, primitives.Barrier(2))
        threads = [primitives.Thread(target=on_next, args=(element,)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with self._lock:
            self._inside = ""
        self._answered()

    def end(self, error: BaseException | None) -> None:
        __tracebackhide__ = True
        with self._lock:
            if self._silent():
                return
            self._enter("complete" if error is None else "fail", "on_complete" if error is None else "on_error")
            self._ended = True
        if error is None:
            self._signal("on_complete")
        else:
            self._signal("on_error", error)
